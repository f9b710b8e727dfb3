//! The lock profiler: how long each lock is held and waited for, by class and by place in the code.
//!
//! An acquisition looks at one flag, which nobody writes while the profiler is off. When it is on,
//! the acquisition notes the processor's clock in the lock's guard. The release adds the hold's
//! time to a `Tally` of the place. Each thread has tallies of its own and writes them by plain
//! stores, so counting shares no cache line between cores. A reader sums them. What must hold:
//!
//! 1. A tally has one writer: the thread that owns its table. A thread that ends gives the table
//!    with its counts to the next one.
//! 2. A reset notes its time and raises one number, the epoch. A tally of an older epoch counts as
//!    empty, and its writer clears it before it counts again. Time before the reset does not count:
//!    a hold that began earlier is left out, and a wait counts from the reset on.
//! 3. Counting takes no lock and no memory: it runs while locks are held, and inside the allocator.
//!    Only [`rows`] takes memory.
//! 4. A waiter marks the lock's key, and the release of the hold that was waited for takes the
//!    mark. A mark that comes late meets the next hold, for which the waiter waits, too.
//!
//! Loom's machine and the model's have no profiler: there it is never on, and this costs nothing.

#[cfg(any(loom, model))]
#[path = "profile/absent.rs"]
mod counting;
#[cfg(not(any(loom, model)))]
mod counting;
#[cfg(not(any(loom, model)))]
mod marks;
#[cfg(not(any(loom, model)))]
mod tally;

use std::panic::Location;

pub use counting::{disable, enable, reset, rows};
pub(crate) use counting::{is_on, mark};

/// The class of a lock: what it guards, in a few words. One machine word, so that a lock can keep
/// it: `SpinLock::new(&"lock table", ...)`.
pub type Class = &'static &'static str;

/// The way in which a place takes a lock or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Takes the lock.
    Acquire,
    /// Takes the lock again that it gave up in order to wait.
    Reacquire,
    /// Reads optimistically, and waits while the latch is held.
    Read,
    /// Reads optimistically, and has to start over: what it read has changed.
    Restart,
    /// Asks for the latch of what it has read, which has changed or is held.
    Upgrade,
    /// Waits for an event, and holds nothing afterwards.
    Wait,
}

impl Kind {
    /// As the profile shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Acquire => "acquire",
            Kind::Reacquire => "reacquire",
            Kind::Read => "read",
            Kind::Restart => "restart",
            Kind::Upgrade => "upgrade",
            Kind::Wait => "wait",
        }
    }
}

/// A place in the code that takes a lock of some class in some way.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The lock's class.
    pub class: Class,
    /// How the place takes it.
    pub kind: Kind,
    /// The place.
    pub at: &'static Location<'static>,
}

impl Site {
    /// A site whose place is the caller.
    #[must_use]
    #[track_caller]
    #[inline]
    pub fn here(class: Class, kind: Kind) -> Site {
        Site { class, kind, at: Location::caller() }
    }
}

/// One row of the profile. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The class of the lock.
    pub class: &'static str,
    /// The source file and line.
    pub site: String,
    /// How the place takes the lock.
    pub kind: Kind,
    /// The counts.
    pub counts: Counts,
}

/// The counts of one place. Times are in nanoseconds, or in ticks of the processor's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquisitions, waits, restarts or refused upgrades.
    pub count: u64,
    /// Time that the lock was held, summed over holds that have ended.
    pub hold_total: u64,
    /// The longest hold that has ended.
    pub hold_max: u64,
    /// Time waited.
    pub wait_total: u64,
    /// The longest wait.
    pub wait_max: u64,
    /// Holds during which another thread or session waited.
    pub contended_hold: u64,
    /// Acquisitions that had to wait.
    pub contended_wait: u64,
}

/// A hold that the profiler counts: a place and the moment when it began. Zero while the profiler
/// is off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Hold(u64);

impl Hold {
    /// A hold that is not counted.
    pub const NONE: Hold = Hold(0);

    /// A hold of a free lock that begins now, where the profiler is on.
    #[inline]
    pub fn begin(key: usize, site: impl FnOnce() -> Site) -> Hold {
        if is_on() { Hold::begin_counted(key, site) } else { Hold::NONE }
    }

    /// Out of line, so that code which is off stays small.
    #[cold]
    #[inline(never)]
    fn begin_counted(key: usize, site: impl FnOnce() -> Site) -> Hold {
        counting::begin(key, &site(), None)
    }

    /// As [`Hold::begin`], for a lock that tells by itself whether it is waited for.
    #[inline]
    pub fn begin_unmarked(site: impl FnOnce() -> Site) -> Hold {
        Hold::begin(0, site)
    }

    /// Ends a hold that [`Hold::begin_unmarked`] or [`Waiting::hold_unmarked`] began. `contended`
    /// says whether somebody waits for the lock.
    #[inline]
    pub fn end_unmarked(self, contended: impl FnOnce() -> bool) {
        if self.0 != 0 {
            self.end_asked(contended);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_asked(self, contended: impl FnOnce() -> bool) {
        counting::end(self, contended());
    }

    /// Ends the hold of the lock with this key.
    #[inline]
    pub fn end(self, key: usize) {
        if self.0 != 0 {
            self.end_marked(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_marked(self, key: usize) {
        counting::end(self, counting::take_mark(key));
    }
}

/// A wait for a lock that began when the profiler was on.
#[derive(Debug, Clone, Copy)]
pub struct Waiting(u64);

impl Waiting {
    /// A wait for the lock with this key begins.
    #[cold]
    pub fn begin(key: usize) -> Waiting {
        let waiting = Waiting(counting::ticks());
        mark(key);
        waiting
    }

    /// The wait is over and the hold begins.
    #[cold]
    pub fn hold(self, key: usize, site: &Site) -> Hold {
        counting::begin(key, site, Some(self))
    }

    /// As [`Waiting::begin`], for a lock that tells by itself whether it is waited for.
    #[inline]
    #[must_use]
    pub fn begin_unmarked() -> Option<Waiting> {
        is_on().then(|| Waiting(counting::ticks()))
    }

    /// As [`Waiting::hold`], for such a lock.
    #[cold]
    pub fn hold_unmarked(self, site: &Site) -> Hold {
        self.hold(0, site)
    }

    /// The wait is over, and nothing is held.
    #[cold]
    pub fn end(self, site: &Site) {
        counting::count_wait(site, self);
    }
}

/// Runs `wait`, in which the caller waits for an event of this class.
#[inline]
#[track_caller]
pub fn wait<R>(class: Class, wait: impl FnOnce() -> R) -> R {
    if !is_on() {
        return wait();
    }
    let (site, since) = (Site::here(class, Kind::Wait), Waiting(counting::ticks()));
    let waited = wait();
    since.end(&site);
    waited
}

/// Counts an event that has no duration, where the profiler is on.
#[inline]
pub fn count(site: impl FnOnce() -> Site) {
    if is_on() {
        count_now(site);
    }
}

#[cold]
#[inline(never)]
fn count_now(site: impl FnOnce() -> Site) {
    counting::count_event(&site());
}

#[cfg(all(test, not(any(loom, model))))]
mod tests;
