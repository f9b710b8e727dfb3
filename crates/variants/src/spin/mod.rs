//! Row `spin` (P15, B14): locks whose waiters poll.
//!
//! P15 found 32% of CPU time in PostgreSQL's spin lock. B14's tail falls as one over the number of
//! clients, since all waiters storm a released test-and-set lock. [`TestAndSet`] is the stock
//! state. [`TestTestAndSet`], [`Ticket`] without and with proportional backoff are the steps.
//! [`Mcs`] is the published one (Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization
//! on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991).
//!
//! A waiter gives its time slice away after 100 polls. The holder, or the head of the queue, may be
//! a preempted thread. The lock profiler counts waits, by the place that takes the lock. A lock
//! that is free costs nothing for it.

mod mcs;
mod tas;
mod ticket;
mod ttas;

pub use mcs::Mcs;
pub use tas::TestAndSet;
pub use ticket::Ticket;
pub use ttas::TestTestAndSet;
pub(crate) use ttas::{Held, Word};

use crate::caller::Caller;

/// Mutual exclusion of a section of code: the mechanism of the rows `spin` and `sleep-lock`.
pub trait Exclusion: Sync {
    /// Runs `body` while no other thread runs one under the same lock.
    #[track_caller]
    fn with<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R;
}

/// A lock with two ends.
pub trait Lock: Sync + Sized {
    /// An open lock for threads numbered below `threads`.
    fn new(threads: usize) -> Self;
    /// Waits for the lock and takes it.
    #[track_caller]
    fn lock(&self, me: &mut Caller);
    /// Gives the lock back. Only for the holder.
    fn unlock(&self, me: &mut Caller);
}

impl<L: Lock> Exclusion for L {
    #[inline]
    fn with<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R {
        self.lock(me);
        let unlock = Finally(|| self.unlock(me));
        let result = body();
        drop(unlock);
        result
    }
}

/// Runs a closure when it is dropped, so that a panic in a section gives the lock back.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    use super::*;
    use crate::test_threads::{at_once, on, rounds, threads};

    /// Checks that a lock excludes: threads add by a load and a store, and no addition is lost.
    pub(crate) fn excludes(lock: &impl Exclusion, rounds: u64) {
        let sum = AtomicU64::new(0);
        at_once(|me| {
            for _ in 0..rounds {
                lock.with(me, || {
                    // Relaxed: ordered by the lock under test.
                    let seen = sum.load(Ordering::Relaxed);
                    sum.store(seen + 1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(sum.into_inner(), threads() as u64 * rounds);
    }

    /// The lengths of the sections of some threads, in steps of computing.
    pub(crate) fn plans() -> impl Strategy<Value = Vec<Vec<u16>>> {
        prop::collection::vec(prop::collection::vec(0u16..2_000, 0..40), 1..6)
    }

    /// Runs each thread's plan under the lock, which writes a journal: whose section came when.
    pub(crate) fn keeps_order(lock: &impl Exclusion, plans: &[Vec<u16>]) -> Result<(), TestCaseError> {
        let all: usize = plans.iter().map(Vec::len).sum();
        let journal: Vec<AtomicUsize> = (0..all).map(|_| AtomicUsize::new(usize::MAX)).collect();
        let (length, inside) = (AtomicUsize::new(0), AtomicBool::new(false));
        let alone = on(plans.len(), |me| {
            let number = me.number();
            plans[number].iter().all(|steps| {
                lock.with(me, || {
                    // Relaxed, here and below: ordered by the lock under test.
                    let was_alone = !inside.swap(true, Ordering::Relaxed);
                    let at = length.load(Ordering::Relaxed);
                    (0..*steps).for_each(|step| _ = std::hint::black_box(step));
                    journal[at].store(number, Ordering::Relaxed);
                    length.store(at + 1, Ordering::Relaxed);
                    inside.store(false, Ordering::Relaxed);
                    was_alone
                })
            })
        });
        prop_assert!(alone.iter().all(|alone| *alone), "two threads were inside");
        let journal: Vec<usize> = journal.into_iter().map(AtomicUsize::into_inner).collect();
        for (number, plan) in plans.iter().enumerate() {
            prop_assert_eq!(journal.iter().filter(|other| **other == number).count(), plan.len());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn sections_under_a_spin_lock_come_one_after_the_other(plans in plans()) {
            keeps_order(&TestAndSet::new(plans.len()), &plans)?;
            keeps_order(&TestTestAndSet::new(plans.len()), &plans)?;
            keeps_order(&Ticket::<0>::new(plans.len()), &plans)?;
            keeps_order(&Ticket::<30>::new(plans.len()), &plans)?;
            keeps_order(&Mcs::new(plans.len()), &plans)?;
        }
    }

    #[test]
    fn each_spin_lock_excludes_more_threads_than_cores() {
        excludes(&TestAndSet::new(threads()), rounds());
        excludes(&TestTestAndSet::new(threads()), rounds());
        excludes(&Ticket::<0>::new(threads()), rounds());
        excludes(&Ticket::<30>::new(threads()), rounds());
        excludes(&Mcs::new(threads()), rounds());
    }

    #[test]
    fn a_panic_in_a_section_gives_the_lock_back() {
        let lock = Mcs::new(1);
        let panic = std::panic::AssertUnwindSafe(|| lock.with(&mut Caller::new(0), || panic!("expected")));
        std::panic::catch_unwind(panic).unwrap_err();
        assert_eq!(lock.with(&mut Caller::new(0), || 7), 7);
    }
}
