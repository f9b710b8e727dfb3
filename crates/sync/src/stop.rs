//! Named stop points: places where a test can make the engine die, yield, sleep or wait.
//!
//! Off, a point costs one relaxed load of a static. Points are armed by [`arm`] or by the environment variable
//! `ALLCORE_STOP="name=action[@nth][;name=action...]"`, read once by [`arm_from_environment`]. Actions: `kill` (the
//! process kills itself as a power failure would), `yield`, `sleep:MS`, `park` (until [`release`]), `fail:ERRNO` (the
//! operation of a [`fault`] fails with that error). With `@nth` the action happens at the nth hit only, without it at
//! every hit.
//!
//! The statics are plain atomics, not the facade's: stop points are not for loom.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{held, park};

/// The names of all stop points in the engine's source. A point that is not listed, or that no test uses, fails a test.
pub const NAMES: &[&str] = &[
    "btree.build.appended",
    "btree.collapse.logged",
    "btree.merge.latched",
    "btree.merge.logged",
    "btree.root_split.logged",
    "btree.split.latched",
    "btree.split.logged",
    "checkpoint.after_control",
    "checkpoint.before_control",
    "checkpoint.begin",
    "checkpoint.pages_written",
    "log.flush.after_write",
    "log.flush.before_write",
    "log.flush.write",
    "log.segment.make",
    "log.segment.recycle",
    "recovery.redo",
    "recovery.renounced",
    "recovery.undo",
    "runtime.start.thread",
    "runtime.start.worker",
    "sql.tree.freed",
    "sql.tree.freed_part",
    "sql.tree.listed",
    "sql.tree.made",
    "sql.tree.settling",
    "sql.vacuum.locked",
    "sql.vacuum.stepped",
    "storage.evict.before_free",
    "storage.evict.before_write",
    "storage.evict.chosen",
    "storage.load.read",
    "storage.pages.read",
    "storage.pages.sync",
    "storage.pages.write",
    "storage.space.grow",
    "storage.space.grown",
    "storage.writer.after_write",
    "sync.test",
    "sync.test.fault",
    "txn.commit.appended",
    "txn.commit.before_append",
    "txn.commit.before_publish",
    "txn.commit.room",
    "txn.rollback.step",
];

static ARMED: AtomicBool = AtomicBool::new(false);
static POINTS: Mutex<Vec<Point>> = Mutex::new(Vec::new());

/// What happens at an armed point.
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
    /// What is done there fails with this error of the operating system.
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

/// Why an `ALLCORE_STOP` text was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum ParseError {
    /// No stop point has this name.
    UnknownName(String),
    /// Not an action.
    UnknownAction(String),
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownName(name) => write!(out, "no stop point is named {name:?}"),
            Self::UnknownAction(text) => write!(
                out,
                "{text:?} is no stop action (kill, yield, sleep:MS, park, fail:ERRNO, each with or without @nth)"
            ),
        }
    }
}

impl std::error::Error for ParseError {}

/// A place where a test can stop the engine.
#[inline]
pub fn point(name: &'static str) {
    // Relaxed: armed before the load that matters in a test, and a switch that is seen late harms nothing.
    if ARMED.load(Ordering::Relaxed) {
        reached(name);
    }
}

/// A place where a test can make the operating system fail: the operation itself follows when this is well.
#[inline]
pub fn fault(name: &'static str) -> io::Result<()> {
    // Relaxed: see `point`.
    if ARMED.load(Ordering::Relaxed)
        && let Some(Action::Fail(error)) = reached(name)
    {
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

/// Arms one point.
pub fn arm(name: &str, action: Action, nth: Option<u64>) -> Result<(), ParseError> {
    if !NAMES.contains(&name) {
        return Err(ParseError::UnknownName(name.to_owned()));
    }
    points().push(Point { name: name.to_owned(), action, nth, hits: 0, released: false });
    // Relaxed: see `point`.
    ARMED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Arms what the environment variable `ALLCORE_STOP` says, if it is set.
pub fn arm_from_environment() -> Result<(), ParseError> {
    match std::env::var("ALLCORE_STOP") {
        Ok(text) => arm_all(&text),
        Err(_) => Ok(()),
    }
}

/// Arms points written as `name=action[@nth][;...]`.
pub fn arm_all(text: &str) -> Result<(), ParseError> {
    for one in text.split(';').filter(|one| !one.trim().is_empty()) {
        let unknown = || ParseError::UnknownAction(one.to_owned());
        let (name, rest) = one.trim().split_once('=').ok_or_else(unknown)?;
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
        arm(name, action, nth)?;
    }
    Ok(())
}

/// Lets go whoever is parked at the point, and makes it pass from now on.
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

fn points() -> std::sync::MutexGuard<'static, Vec<Point>> {
    // Poisoned: a test that panicked inside leaves the list as good as it was.
    POINTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
        Some(Action::Kill) => kill_this_process(),
        Some(Action::Yield) => let_others_run(),
        Some(Action::Sleep(time)) => std::thread::sleep(time),
        Some(Action::Park) => {
            while points().iter().any(|point| point.name == name && !point.released) {
                let_others_run();
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
    due
}

/// Yields where that is allowed: under a latch only the thread may give way.
fn let_others_run() {
    if held::count() == 0 {
        park::yield_now();
    } else {
        std::thread::yield_now();
    }
}

fn kill_this_process() -> ! {
    // SAFETY: plain system calls without memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    // The signal is on its way; nothing of this thread may run on.
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
