//! Counters of sequences in memory. The definitions of a sequence share its counter, so the catalog
//! holds it; the database above counts with it and writes its records.

use std::fmt;
use std::sync::{Arc, OnceLock};

use sync::{SpinLock, WaitQueue};

/// A sequence's counter in memory, which its definitions share.
pub struct Counter {
    /// Where it stands.
    pub state: SpinLock<CounterState>,
    /// Waiters for a record being written.
    pub logged: WaitQueue,
}

/// Where a counter stands.
#[derive(Clone, Copy)]
pub struct CounterState {
    /// The last value given out, or the first to give out when `called` is false.
    pub value: i64,
    /// Whether `value` has been given out.
    pub called: bool,
    /// How many more values are covered by the record in the system tree.
    pub covered: i64,
    /// Somebody is writing a record.
    pub logging: bool,
    /// Its record is gone, or is about to go: only statements that see an old definition use it,
    /// and write no other.
    pub retired: bool,
}

impl Counter {
    /// A counter that stands here.
    pub fn new(state: CounterState) -> Counter {
        Counter { state: SpinLock::new(state), logged: WaitQueue::new() }
    }

    /// pg_sequences' last value: None before the first.
    pub fn last_value(&self) -> (i64, bool) {
        let state = self.state.lock();
        (state.value, state.called)
    }

    /// Waits until nobody writes a record, and keeps others from it; whether the counter is
    /// retired.
    pub fn begin_logging(&self) -> bool {
        let mut retired = false;
        self.logged.wait_until(|| {
            let mut state = self.state.lock();
            let free = !state.logging;
            state.logging = true;
            retired = state.retired;
            free
        });
        retired
    }
}

/// Where a sequence's counter is kept. All definitions with its number share it. So a statement
/// that still sees an old one counts on from where others stopped. The counter goes with the last
/// catalog that knows it.
#[derive(Clone, Default)]
pub struct CounterPlace(Arc<OnceLock<Counter>>);

impl CounterPlace {
    /// The counter, when it has been in use.
    pub fn counter(&self) -> Option<&Counter> {
        self.0.get()
    }

    /// Puts a counter there, unless another one was first; gives the one that is there.
    pub fn put(&self, counter: Counter) -> &Counter {
        self.0.get_or_init(|| counter)
    }
}

impl fmt::Debug for CounterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CounterPlace")
    }
}

impl PartialEq for CounterPlace {
    fn eq(&self, _: &CounterPlace) -> bool {
        true
    }
}
