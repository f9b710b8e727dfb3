//! The watch: a thread that acts while memory is short, and gives freed memory back to the system.
//! It gives large blocks back at once, and the rest when much was freed.
//!
//! What must hold: the allocator only unparks it ([`signal`]). It runs beside the cores, so no
//! statement can hold it up.

use std::io;
use std::time::Duration;

use super::resident::{self, Resident};
use super::{release, reserve, signal};
use crate::os::heap;
use crate::os::thread::{park_timeout, spawn};
use crate::time;

/// The time between two rounds while memory is short.
const ROUND: Duration = Duration::from_millis(20);
/// The watch trims the heaps once no thread has freed much for so many nanoseconds, at the latest
/// after [`TRIM_MOST`]. While blocks are freed in no order, a heap's free memory is a list of
/// millions of small pieces. Walking that list takes seconds, in which the heap's thread stands
/// still, and finds hardly a free page.
const TRIM_QUIET: u64 = 100_000_000;
const TRIM_MOST: u64 = 2_000_000_000;

/// Starts the watch, one for the process. While more memory is taken than the limit, it calls
/// `relieve` every 20 ms. More than `resident` bytes, pages of files aside, count as taken beyond
/// the limit: see [`super::resident`].
///
/// # Errors
/// When no thread can be had, or the system does not tell what is resident.
pub fn watch(resident: u64, mut relieve: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut resident = Resident::at_most(resident)?;
    let work = move || {
        // When to trim, in nanoseconds: once it is quiet, and at the latest.
        let mut due: Option<(u64, u64)> = None;
        loop {
            if signal::RELEASED.take() {
                release::empty();
                reserve::freed();
            }
            let now = time::precise();
            let is_asked = now >= resident.next_look() && signal::MUCH.take();
            let looks = is_asked || now >= resident.last_look();
            if looks {
                resident.look(trim);
            }
            if signal::SHORT.take() || looks {
                while super::is_short() || resident::excess() > 0 {
                    if reserve::is_owed() {
                        trim();
                    }
                    if !release::empty() && super::is_short() {
                        relieve();
                    }
                    park_timeout(ROUND);
                    resident.look(trim);
                }
                reserve::freed();
            }
            let now = time::precise();
            if signal::FREED.take() {
                let latest = due.map_or(now + TRIM_MOST, |(_, latest)| latest);
                due = Some((latest.min(now + TRIM_QUIET), latest));
            }
            if due.is_some_and(|(at, _)| now >= at || reserve::is_owed()) {
                due = None;
                trim();
                continue;
            }
            // A sender that sets the flag later unparks the thread.
            let is_asked = signal::MUCH.is_set();
            let look = if is_asked { resident.next_look() } else { resident.last_look() };
            let at = due.map_or(look, |(at, _)| at.min(look));
            park_timeout(Duration::from_nanos(at.saturating_sub(now)));
        }
    };
    let thread = spawn("memory", None, work)?.thread().clone();
    signal::begin(thread);
    Ok(())
}

/// Gives the free pages of all threads' heaps back to the system.
fn trim() {
    reserve::with_trim(heap::trim);
}
