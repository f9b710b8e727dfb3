//! Stop points: places where a test can make the engine die, yield, sleep, wait or fail.
//!
//! Off, a point costs one relaxed load of a static. A point exists where the code calls [`point`]
//! or [`fault`] with its name, `crate.place`. Points are armed by [`arm`] or by the environment
//! variable `ALLCORE_STOP="name=action[@nth][;name=action...]"`, read once by
//! [`arm_from_environment`]. Each crate lists its points in a constant, as [`OWN_POINTS`] does for
//! this one. The program passes all lists to [`refuse_unknown`], so that a misspelt name ends the
//! start. Actions:
//!
//! - `kill`: the process kills itself as a power failure would;
//! - `yield`: others run first;
//! - `sleep:MS`: the whole core sleeps;
//! - `park`: waits until [`release`];
//! - `fail:ERRNO`: the operation of a [`fault`] fails with that error.
//!
//! With `@nth` the action happens at the nth hit only, without it at every hit. A test of the crate
//! `allcore` checks the lists. They name exactly the points of the code, every name that a test
//! arms is a point, and a test uses each point.

use std::io;
use std::time::Duration;

use sync::atomic::{AtomicBool, Ordering};
use sync::{CachePadded, Mutex, MutexGuard, held, park, preemption_point};

use crate::os::{process, thread};

/// The stop points of this crate.
pub const OWN_POINTS: &[&str] = &["runtime.balance.wander", "runtime.start.thread", "runtime.start.worker"];
/// The environment variable that arms points.
const VARIABLE: &str = "ALLCORE_STOP";

/// Padded: every transaction reads it, and the linker puts statics that cores write next to it.
static ARMED: CachePadded<AtomicBool> = CachePadded::new(AtomicBool::new(false));
static POINTS: Mutex<Vec<Point>> = Mutex::new(Vec::new());

/// The action at an armed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The process kills itself with SIGKILL.
    Kill,
    /// Others run first.
    Yield,
    /// The whole core sleeps.
    Sleep(Duration),
    /// Waits until released.
    Park,
    /// The operation there fails with this error of the operating system.
    Fail(i32),
}

#[derive(Debug)]
struct Point {
    name: String,
    action: Action,
    /// Only at this hit (counted from 1); `None` at every hit.
    nth: Option<u64>,
    hits: u64,
    released: bool,
}

/// Text of `ALLCORE_STOP` that is no action.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl std::fmt::Display for ParseError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{:?} is no stop action (kill, yield, sleep:MS, park, fail:ERRNO, each with or without @nth)",
            self.0
        )
    }
}

impl std::error::Error for ParseError {}

/// A name in `ALLCORE_STOP` that no stop point has.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownPoint {
    name: String,
    /// The names of all points, sorted.
    known: Vec<&'static str>,
}

impl std::fmt::Display for UnknownPoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UnknownPoint { name, known } = self;
        write!(out, "{VARIABLE} names {name:?}, which is no stop point; name one of {}", known.join(", "))
    }
}

impl std::error::Error for UnknownPoint {}

/// A place where a test can stop the engine.
#[inline]
pub fn point(name: &'static str) {
    preemption_point();
    // Relaxed: armed before the load that matters in a test, and a switch that is seen late harms
    // nothing.
    if ARMED.load(Ordering::Relaxed) {
        reached(name);
    }
}

/// A place where a test can make the operating system fail: the operation itself follows when this
/// is well.
#[inline]
pub fn fault(name: &'static str) -> io::Result<()> {
    preemption_point();
    // Relaxed: see `point`.
    if ARMED.load(Ordering::Relaxed)
        && let Some(Action::Fail(error)) = reached(name)
    {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

/// Arms one point.
pub fn arm(name: &str, action: Action, nth: Option<u64>) {
    points().push(Point { name: name.to_owned(), action, nth, hits: 0, released: false });
    // Relaxed: see `point`.
    ARMED.store(true, Ordering::Relaxed);
}

/// Arms the points that the environment variable `ALLCORE_STOP` names, if it is set.
pub fn arm_from_environment() -> Result<(), ParseError> {
    process::variable(VARIABLE).map_or(Ok(()), |text| arm_all(&text))
}

/// Fails when `ALLCORE_STOP` names a point that is in none of the lists of the crates.
pub fn refuse_unknown(lists: &[&[&'static str]]) -> Result<(), UnknownPoint> {
    process::variable(VARIABLE).map_or(Ok(()), |text| refuse_unknown_in(&text, lists))
}

fn refuse_unknown_in(text: &str, lists: &[&[&'static str]]) -> Result<(), UnknownPoint> {
    let mut known = lists.concat();
    let names = entries(text).filter_map(|entry| entry.split_once('=')).map(|(name, _)| name);
    match names.into_iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            known.sort_unstable();
            Err(UnknownPoint { name: name.to_owned(), known })
        }
    }
}

/// The entries `name=action[@nth]` of a text.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Arms points written as `name=action[@nth][;...]`.
pub fn arm_all(text: &str) -> Result<(), ParseError> {
    for one in entries(text) {
        let unknown = || ParseError(one.to_owned());
        let (name, rest) = one.split_once('=').ok_or_else(unknown)?;
        let (action, nth) = match rest.split_once('@') {
            Some((action, nth)) => (action, Some(nth.parse().map_err(|_| unknown())?)),
            None => (rest, None),
        };
        let action = match action.split_once(':') {
            Some(("fail", error)) => Action::Fail(error.parse().map_err(|_| unknown())?),
            Some(("sleep", ms)) => Action::Sleep(Duration::from_millis(ms.parse().map_err(|_| unknown())?)),
            None if action == "kill" => Action::Kill,
            None if action == "yield" => Action::Yield,
            None if action == "park" => Action::Park,
            _ => return Err(unknown()),
        };
        arm(name, action, nth);
    }
    Ok(())
}

/// Releases the fibers parked at the point, and lets all pass from now on.
pub fn release(name: &str) {
    points().iter_mut().filter(|point| point.name == name).for_each(|point| point.released = true);
}

/// How often an armed point was reached.
pub fn hits(name: &str) -> u64 {
    points().iter().filter(|point| point.name == name).map(|point| point.hits).max().unwrap_or(0)
}

/// Takes every point off.
pub fn clear() {
    // Relaxed: see `point`.
    ARMED.store(false, Ordering::Relaxed);
    points().clear();
}

fn points() -> MutexGuard<'static, Vec<Point>> {
    POINTS.lock()
}

#[cold]
fn reached(name: &'static str) -> Option<Action> {
    let due = {
        let mut points = points();
        let mut due = None;
        for point in points.iter_mut().filter(|point| point.name == name) {
            point.hits += 1;
            if !point.released && point.nth.is_none_or(|nth| nth == point.hits) {
                due = Some(point.action);
            }
        }
        due
    };
    match due {
        None | Some(Action::Fail(_)) => {}
        Some(Action::Kill) => process::kill(),
        Some(Action::Yield) => let_others_run(),
        Some(Action::Sleep(time)) => thread::sleep(time),
        Some(Action::Park) => {
            while points().iter().any(|point| point.name == name && !point.released) {
                let_others_run();
                thread::sleep(Duration::from_micros(100));
            }
        }
    }
    due
}

/// Yields the fiber, or only the thread while a latch is held.
fn let_others_run() {
    if held::count() == 0 {
        park::yield_now();
    } else {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests;
