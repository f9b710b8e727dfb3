//! This core's timers: a heap of deadlines over a slab of actions.
//!
//! Cancelling empties the slab's entry. The deadline stays in the heap until it passes. When dead
//! deadlines are the majority, the heap is rebuilt. So set-and-cancel per statement costs O(log n)
//! and bounded memory.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::ManuallyDrop;
use std::time::Duration;

use sync::core_local;

use crate::time;

core_local! {
    /// The timers of this core. `end` drops them: a value with a destructor costs a check at each
    /// use.
    static TIMERS: ManuallyDrop<RefCell<Timers>> = const { ManuallyDrop::new(RefCell::new(Timers::NONE)) };
    /// Whether a worker's loop fires them.
    static FIRES: Cell<bool> = const { Cell::new(false) };
}

/// A timer that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

pub(crate) type Action = Box<dyn FnOnce()>;

#[derive(Default)]
struct Entry {
    generation: u32,
    action: Option<Action>,
}

/// The timers of one core.
struct Timers {
    entries: Vec<Entry>,
    free: Vec<u32>,
    deadlines: BinaryHeap<Reverse<(u64, TimerId)>>,
}

impl Timers {
    const NONE: Timers = Timers { entries: Vec::new(), free: Vec::new(), deadlines: BinaryHeap::new() };

    fn set(&mut self, deadline: u64, action: Action) -> TimerId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            u32::try_from(self.entries.len() - 1).expect("fewer timers than memory")
        });
        let entry = &mut self.entries[index as usize];
        entry.action = Some(action);
        let id = TimerId { index, generation: entry.generation };
        self.deadlines.push(Reverse((deadline, id)));
        id
    }

    fn take(&mut self, id: TimerId) -> Option<Action> {
        let entry =
            self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation)?;
        let action = entry.action.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(action)
    }

    fn cancel(&mut self, id: TimerId) -> Option<Action> {
        let action = self.take(id);
        let live = self.entries.len() - self.free.len();
        if self.deadlines.len() > 2 * live + 64 {
            let entries = &self.entries;
            self.deadlines.retain(|Reverse((_, id))| entries[id.index as usize].generation == id.generation);
        }
        action
    }

    /// The next timer that is due, taken out.
    fn due(&mut self, now: u64) -> Option<Action> {
        while let Some(&Reverse((deadline, id))) = self.deadlines.peek() {
            if deadline > now {
                return None;
            }
            self.deadlines.pop();
            if let Some(action) = self.take(id) {
                return Some(action);
            }
        }
        None
    }

    /// When to look again.
    fn next_deadline(&self) -> Option<u64> {
        self.deadlines.peek().map(|Reverse((deadline, _))| *deadline)
    }
}

/// Whether this thread's timers go off: it is a worker.
pub(crate) fn is_fired() -> bool {
    FIRES.get()
}

/// This thread is a worker from now on, whose loop fires its timers.
pub(crate) fn begin() {
    FIRES.set(true);
}

/// The worker's loop has ended: its timers never go off.
pub(crate) fn end() {
    FIRES.set(false);
    let timers = TIMERS.with(|timers| timers.replace(Timers::NONE));
    drop(timers); // after the borrow: what an action owns may cancel timers too
}

/// The next timer of this core that is due, taken out.
#[inline]
pub(crate) fn due(now: u64) -> Option<Action> {
    TIMERS.with(|timers| timers.borrow_mut().due(now))
}

/// When to look at this core's timers again.
#[inline]
pub(crate) fn next_deadline() -> Option<u64> {
    TIMERS.with(|timers| timers.borrow().next_deadline())
}

/// Calls `action` on this core after `time`, on the worker's loop: it must not park. Panics outside
/// a worker.
pub fn after(time: Duration, action: impl FnOnce() + 'static) -> TimerId {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    // The turn's time may be stale after long work: a timer never goes off early by it, so ask the
    // precise clock.
    let deadline = time::precise().saturating_add(nanos);
    assert!(is_fired(), "a timer is set on a worker of the runtime only");
    TIMERS.with(|timers| timers.borrow_mut().set(deadline, Box::new(action)))
}

/// Cancels a timer. Does nothing if it has gone off. Only on the core that set it.
pub fn cancel(timer: TimerId) {
    let action = TIMERS.with(|timers| timers.borrow_mut().cancel(timer));
    drop(action); // after the borrow: what it owns may cancel timers too
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_in_order_and_cancelled_ones_never() {
        let mut timers = Timers::NONE;
        let late = timers.set(30, Box::new(|| {}));
        let early = timers.set(10, Box::new(|| {}));
        assert_eq!(timers.next_deadline(), Some(10));
        assert!(timers.due(9).is_none());
        assert!(timers.cancel(early).is_some() && timers.cancel(early).is_none());
        assert!(timers.due(29).is_none() && timers.due(30).is_some() && timers.due(99).is_none());
        assert!(timers.cancel(late).is_none());
        for round in 0..10_000 {
            let id = timers.set(1_000_000 + round, Box::new(|| {}));
            timers.cancel(id);
        }
        assert!(timers.deadlines.len() < 100 && timers.entries.len() < 5);
    }
}
