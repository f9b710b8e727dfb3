//! Budgets of work: how much a piece of code may do where it must not suspend.
//!
//! Code counts its work in bytes ([`crate::work`]). The counters are plain cells of the thread.
//! Fibers share them: a fiber that begins with a half-full counter looks a little earlier than it
//! would have to. What must hold:
//!
//! 1. Work within a budget never suspends. It ends with [`Stopped::Budget`] where it would go past
//!    the budget.
//! 2. The work within an inner budget counts against the budget around it.

use std::cell::Cell;

use sync::core_local;

use crate::interrupt::Interrupted;

/// Why work ended before its result was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The statement was interrupted.
    Interrupted(Interrupted),
    /// The work did not fit its budget, or there is no thread for it.
    Budget,
}

core_local! {
    /// Work since the last look.
    static DONE: Cell<usize> = const { Cell::new(0) };
    /// Rest of the budget; `NO_BUDGET` outside [`within`].
    static BUDGET: Cell<usize> = const { Cell::new(NO_BUDGET) };
}

const NO_BUDGET: usize = usize::MAX;

/// Counts `bytes` of work. Returns all work since the last look.
#[inline]
pub(crate) fn count(bytes: usize) -> usize {
    let done = DONE.get().saturating_add(bytes);
    DONE.set(done);
    done
}

/// The rest of the budget; `usize::MAX` where there is none.
pub(crate) fn left() -> usize {
    BUDGET.get()
}

/// Takes the counted work from the budget, except for `kept` bytes, which stay counted. Returns
/// false if it does not fit.
pub(crate) fn charge(kept: usize) -> bool {
    let done = DONE.replace(kept) - kept;
    let left = BUDGET.get();
    if left != NO_BUDGET {
        BUDGET.set(left.saturating_sub(done));
    }
    left >= done
}

/// Whether the running work has a budget.
pub(crate) fn has_budget() -> bool {
    BUDGET.get() != NO_BUDGET
}

/// Ends the running work, which has a budget.
pub(crate) fn use_up() {
    BUDGET.set(0);
}

/// Runs `body` with at most `budget` bytes of work, for code that must not suspend and may stay
/// undone. `body` must not park. Its work counts against the outer budget too.
pub fn within<R>(budget: usize, body: impl FnOnce() -> R) -> R {
    struct Back {
        around: usize,
        own: usize,
    }
    impl Drop for Back {
        fn drop(&mut self) {
            charge(0);
            let used = self.own - BUDGET.get();
            BUDGET.set(if self.around == NO_BUDGET { NO_BUDGET } else { self.around - used });
        }
    }
    charge(0);
    let around = BUDGET.get();
    let _back = Back { around, own: budget.min(around) };
    BUDGET.set(budget.min(around));
    body()
}

/// [`within`] for results that are useful only when complete. `None` if the budget was used up.
pub fn whole_within<R>(budget: usize, body: impl FnOnce() -> R) -> Option<R> {
    within(budget, || {
        let done = body();
        charge(0);
        (BUDGET.get() > 0).then_some(done)
    })
}
