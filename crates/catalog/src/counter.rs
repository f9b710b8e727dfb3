//! Counters of sequences in memory.
//!
//! All definitions of one sequence share its counter, so the catalog holds it. The database layer
//! above advances the counter and writes its records to the system tree.

use std::fmt;
use std::sync::Arc;

use runtime::wait_event::{self, WaitEvent};
use sync::{OnceLock, SpinLock, WaitQueue};
use txn::Lsn;

/// A sequence's counter in memory, shared by the sequence's definitions.
pub struct Counter {
    /// The counter's state.
    pub state: SpinLock<CounterState>,
    /// Sessions that wait until a record is written.
    pub logged: WaitQueue,
}

/// The state of a counter.
#[derive(Clone, Copy)]
pub struct CounterState {
    /// The last value that the counter returned. When `called` is false: the first one to return.
    pub value: i64,
    /// Whether the counter has returned `value`.
    pub called: bool,
    /// The number of further values that the record in the system tree covers.
    pub covered: i64,
    /// The commit of the record in the system tree. A session that got a value from the counter
    /// waits at its commit until the record is on disk.
    pub record: Lsn,
    /// A session is writing a record.
    pub logging: bool,
    /// The counter's record is deleted or about to be. Only statements that see an old definition
    /// still use the counter, and they write no record.
    pub retired: bool,
}

impl Counter {
    /// A counter in this state.
    pub fn new(state: CounterState) -> Counter {
        Counter { state: SpinLock::new(&"sequence", state), logged: WaitQueue::new(&"sequence record") }
    }

    /// The last value for pg_sequences, and whether the counter has returned it.
    pub fn last_value(&self) -> (i64, bool) {
        let state = self.state.lock();
        (state.value, state.called)
    }

    /// Waits until no session writes a record, and keeps others from writing one. Returns whether
    /// the counter is retired.
    pub fn begin_logging(&self) -> bool {
        let mut retired = false;
        let is_free = || {
            let mut state = self.state.lock();
            let free = !state.logging;
            state.logging = true;
            retired = state.retired;
            free
        };
        wait_event::during(WaitEvent::Sequence, || self.logged.wait_until(is_free));
        retired
    }
}

/// The place that holds a sequence's counter. All definitions with its number share the place. So a
/// statement that sees an old definition continues with the same counter. The counter is freed with
/// the last catalog that refers to it.
#[derive(Clone, Default)]
pub struct CounterPlace(Arc<OnceLock<Counter>>);

impl CounterPlace {
    /// The counter, if a session has used it.
    pub fn counter(&self) -> Option<&Counter> {
        self.0.get()
    }

    /// Stores a counter unless another session stored one first; returns the stored one.
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
