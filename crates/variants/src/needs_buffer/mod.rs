//! Row `needs-buffer` (B14): telling the threads that wait for a buffer that one is free.
//!
//! A release of a buffer must wake those that wait for its kind, though almost nobody waits. In
//! FreeBSD 10 one mutex guards the flags of what waiters need, and every release takes it
//! ([`MutexNeeds`], the stock state). The fix changes the flags by atomics. A reader-writer lock
//! around them is taken shared by releases and exclusive by a thread that goes to sleep
//! ([`SharedNeeds`], the published one).
//!
//! What must hold: a thread that finds nothing free and goes to sleep is woken by the next release
//! of that kind. No wake-up is lost between its look and its sleep.

mod mutex;
mod shared;
mod sleepers;

pub use mutex::MutexNeeds;
pub use shared::SharedNeeds;

use crate::caller::Caller;

/// The kinds of buffers; each is one bit of the flags.
pub const KINDS: usize = 4;

/// The needs of the threads that wait.
pub trait Needs: Sync {
    /// Tells those that wait for this kind that a buffer is free. The caller has freed it before.
    fn freed(&self, me: &mut Caller, kind: usize);
    /// Waits until `take` gives a buffer of this kind. `take` may run several times.
    fn wait<R>(&self, me: &mut Caller, kind: usize, take: impl FnMut() -> Option<R>) -> R;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, on, rounds, threads};

    /// Takes a buffer if one is free.
    fn take(free: &AtomicU64) -> Option<()> {
        let seen = free.load(Ordering::Relaxed);
        let taken =
            seen > 0 && free.compare_exchange(seen, seen - 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then_some(())
    }

    /// Threads take and free the buffers of their plans. The test hangs if a wake-up is lost.
    fn ends(needs: &impl Needs, buffers: &[u64], plans: &[Vec<usize>]) -> Result<(), TestCaseError> {
        let free: Vec<AtomicU64> = buffers.iter().map(|count| AtomicU64::new(*count)).collect();
        on(plans.len(), |me| {
            for kind in &plans[me.number()] {
                needs.wait(me, *kind, || take(&free[*kind]));
                free[*kind].fetch_add(1, Ordering::Release);
                needs.freed(me, *kind);
            }
        });
        let left: Vec<u64> = free.into_iter().map(AtomicU64::into_inner).collect();
        prop_assert_eq!(left, buffers, "each buffer is free again");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn threads_that_need_buffers_of_any_kind_are_all_woken(
            buffers in prop::collection::vec(1u64..3, KINDS),
            plans in prop::collection::vec(prop::collection::vec(0..KINDS, 0..200), 1..6),
        ) {
            ends(&MutexNeeds::new(plans.len()), &buffers, &plans)?;
            ends(&SharedNeeds::new(plans.len()), &buffers, &plans)?;
        }
    }

    /// More threads than buffers take and free them; the test hangs if a wake-up is lost.
    fn loses_no_wake_up(needs: &impl Needs) {
        let free: [AtomicU64; KINDS] = std::array::from_fn(|_| AtomicU64::new(1));
        at_once(|me| {
            for round in 0..rounds() as usize {
                let kind = (me.number() + round) % KINDS;
                needs.wait(me, kind, || take(&free[kind]));
                free[kind].fetch_add(1, Ordering::Release);
                needs.freed(me, kind);
            }
        });
        assert!(free.iter().all(|free| free.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn more_threads_than_buffers_and_cores_are_all_woken() {
        loses_no_wake_up(&MutexNeeds::new(threads()));
        loses_no_wake_up(&SharedNeeds::new(threads()));
    }
}
