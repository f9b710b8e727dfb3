//! Sessions that wait for a part of the log to become durable: a list for each core.
//!
//! What must hold: no waiter sleeps past its wake-up. A waiter enters its list, which ends with a
//! fence, and then looks at what it waits for. A change of that is followed by [`Waiters::fence`]
//! and a look at the lists. So either the waiter sees the change, or its waker is found.
//!
//! Whether anybody waits is asked several times for each write. So one word has the highest LSN of
//! all, and only those who wake look into the cores' lists.
//!
//! `tests/loom_log.rs` runs this file under loom.

use std::task::Waker;

use sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use sync::{CachePadded, PerCore, SpinLock};

/// The waiters of all cores.
#[derive(Debug)]
pub struct Waiters {
    /// By core. The last list is that of threads that are no workers.
    lists: PerCore<List>,
    /// The highest LSN that anybody has waited for. It only rises: a waiter leaves once its LSN is
    /// durable, or wakes to see to that itself.
    highest: CachePadded<AtomicU64>,
}

#[derive(Debug)]
struct List {
    queue: SpinLock<Queue>,
    /// The highest LSN in the list, 0 if it is empty. Changed under its lock.
    highest: AtomicU64,
    /// Whether a session of this core goes to gather.
    claimed: AtomicBool,
    /// Sessions of this core whose wait has ended. Only they count here.
    served: AtomicU64,
}

#[derive(Debug)]
struct Queue {
    /// The LSN that each waits for, and its waker.
    waiters: Vec<(u64, Waker)>,
    /// The LSNs of those that have come since the last [`Waiters::take_arrived`].
    arrived: Vec<u64>,
}

impl List {
    fn new() -> List {
        List {
            queue: SpinLock::new(&"log waiters", Queue { waiters: Vec::new(), arrived: Vec::new() }),
            highest: AtomicU64::new(0),
            claimed: AtomicBool::new(false),
            served: AtomicU64::new(0),
        }
    }
}

impl Waiters {
    /// No waiters, on so many cores.
    pub fn new(cores: usize) -> Waiters {
        Waiters {
            lists: PerCore::new(cores + 1, |_| List::new()),
            highest: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Adds a waiter of `core` for `lsn`; one that is not counted yet is counted by the session
    /// that claims. The caller then looks whether it must park. A change that it does not see is
    /// followed by a look at the lists, which finds it.
    pub fn enter(&self, core: Option<usize>, lsn: u64, waker: Waker, is_counted: bool) {
        let list = self.list(core);
        {
            let mut queue = list.queue.lock();
            queue.waiters.push((lsn, waker));
            if !is_counted {
                queue.arrived.push(lsn);
            }
            // Relaxed: changed under the lock, and ordered by the fence below.
            let highest = list.highest.load(Ordering::Relaxed).max(lsn);
            list.highest.store(highest, Ordering::Relaxed); // Relaxed: as its load
        }
        // Release: a thread that learns of the waiter here finds it in its list.
        self.highest.fetch_max(lsn, Ordering::Release);
        Self::fence();
    }

    /// Takes the entry of a caller that does not park out of its list, if it is still there.
    /// Otherwise a wake-up for one that gathers next could go to it.
    #[cold]
    pub(crate) fn leave(&self, core: Option<usize>, waker: &Waker) {
        let list = self.list(core);
        let waiters = &mut list.queue.lock().waiters;
        if let Some(found) = waiters.iter().rposition(|(_, entered)| entered.will_wake(waker)) {
            waiters.swap_remove(found);
            list.note(waiters);
        }
    }

    /// Counts a session of `core` whose wait has ended.
    pub(crate) fn note_served(&self, core: Option<usize>) {
        self.list(core).served.fetch_add(1, Ordering::Relaxed); // Relaxed: a count
    }

    /// Sessions whose wait has ended.
    pub(crate) fn served(&self) -> u64 {
        // Relaxed: a count.
        self.lists.iter().map(|list| list.served.load(Ordering::Relaxed)).sum()
    }

    /// Orders a change before the look at the lists that follows it.
    pub fn fence() {
        // SeqCst: the entry of a waiter and a change that concerns it are a store each, followed by
        // a load of the other's. One of the two loads sees the other's store.
        fence(Ordering::SeqCst);
    }

    /// Whether somebody waits for more than `end`, which no write covers.
    pub(crate) fn any_above(&self, end: u64) -> bool {
        // Acquire: pairs with `enter`.
        self.highest.load(Ordering::Acquire) > end
    }

    /// Counts the sessions of `core` that have come since the last call, and wait for more than
    /// `departed`. The caller has given up the core's claim, so it finds all that counted on it.
    pub(crate) fn take_arrived(&self, core: Option<usize>, departed: u64) -> usize {
        let mut queue = self.list(core).queue.lock();
        let count = queue.arrived.iter().filter(|lsn| **lsn > departed).count();
        queue.arrived.clear();
        count
    }

    /// Makes the caller the one session of `core` that goes to gather, unless there is one. It
    /// calls [`Waiters::release`] soon. Until then the core's others may park.
    pub(crate) fn claim(&self, core: Option<usize>) -> bool {
        // Relaxed: ordered by the fences.
        !self.is_claimed(core) && !self.list(core).claimed.swap(true, Ordering::Relaxed)
    }

    /// Whether a session of `core` goes to gather.
    pub(crate) fn is_claimed(&self, core: Option<usize>) -> bool {
        // Relaxed: ordered by the caller's fence.
        self.list(core).claimed.load(Ordering::Relaxed)
    }

    /// Ends a claim. The caller gathers then, or looks whether others wait.
    pub(crate) fn release(&self, core: Option<usize>) {
        self.list(core).claimed.store(false, Ordering::Relaxed); // Relaxed: ordered by the fence
        Self::fence();
    }

    /// Moves the wakers of LSNs up to `end` to `woken`, one core's after the other's. Calls `wake`
    /// after each core's.
    pub fn take_up_to(&self, end: u64, woken: &mut Vec<Waker>, mut wake: impl FnMut(&mut Vec<Waker>)) {
        for list in self.lists.iter().filter(|list| list.may_have_any()) {
            {
                let waiters = &mut list.queue.lock().waiters;
                woken.extend(waiters.extract_if(.., |(lsn, _)| *lsn <= end).map(|(_, waker)| waker));
                list.note(waiters);
            }
            wake(woken);
        }
    }

    /// Takes the waker of one LSN above `end`, of `core` if it has one.
    pub fn take_one_above(&self, core: Option<usize>, end: u64) -> Option<Waker> {
        let others = self.lists.iter();
        std::iter::once(self.list(core)).chain(others).find_map(|list| list.take_one_above(end))
    }

    fn list(&self, core: Option<usize>) -> &List {
        self.lists.get(core.unwrap_or(self.lists.len() - 1))
    }
}

impl List {
    fn may_have_any(&self) -> bool {
        // Relaxed: ordered by the fences.
        self.highest.load(Ordering::Relaxed) > 0
    }

    fn take_one_above(&self, end: u64) -> Option<Waker> {
        if !self.may_have_any() {
            return None;
        }
        let waiters = &mut self.queue.lock().waiters;
        let found = waiters.iter().position(|(lsn, _)| *lsn > end)?;
        let (_, waker) = waiters.swap_remove(found);
        self.note(waiters);
        Some(waker)
    }

    /// Stores what is read without the lock.
    fn note(&self, waiters: &[(u64, Waker)]) {
        let highest = waiters.iter().map(|(lsn, _)| *lsn).max().unwrap_or(0);
        self.highest.store(highest, Ordering::Relaxed); // Relaxed: changed under the lock
    }
}
