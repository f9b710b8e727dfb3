//! Row `latch` (P15, B14): latches that readers share.
//!
//! PostgreSQL takes such a latch for each page it reads, so the latch of a hot page is a counter
//! that all cores change. [`FieldsLatch`] is the stock state, LWLock as in PostgreSQL 9.4.
//! [`ExchangeLatch`] is the step of 9.5, [`AddLatch`] the published one of P15. [`TurnstileLatch`]
//! is FreeBSD's reader-writer lock, which B14 measured under its page faults.

mod add;
mod exchange;
mod fields;
mod lwlock;
mod turnstile;

pub use add::AddLatch;
pub use exchange::ExchangeLatch;
pub use fields::FieldsLatch;
pub use turnstile::TurnstileLatch;

use crate::caller::Caller;
use crate::spin::Finally;

/// Exclusion between those that change something and those that read it.
pub trait Latch: Sync {
    /// Runs `body` while nothing changes what the latch guards. An optimistic latch runs it again
    /// if something did change; the last result counts.
    fn read<R>(&self, me: &mut Caller, body: impl FnMut() -> R) -> R;
    /// Runs `body` while no other thread reads or changes what the latch guards.
    fn write<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R;
}

/// A latch that readers hold.
pub trait HeldLatch: Sync + Sized {
    /// An open latch for threads numbered below `threads`.
    fn new(threads: usize) -> Self;
    /// Waits until no thread holds the latch exclusively, and shares it.
    fn lock_shared(&self, me: &mut Caller);
    /// Gives a share back. Only for a thread that has one.
    fn unlock_shared(&self, me: &mut Caller);
    /// Waits until no other thread holds the latch, and takes it exclusively.
    fn lock(&self, me: &mut Caller);
    /// Gives the latch back. Only for the exclusive holder.
    fn unlock(&self, me: &mut Caller);
    /// Threads that share the latch.
    fn shares(&self, me: &mut Caller) -> u32;
}

impl<L: HeldLatch> Latch for L {
    #[inline]
    fn read<R>(&self, me: &mut Caller, mut body: impl FnMut() -> R) -> R {
        self.lock_shared(me);
        let unlock = Finally(|| self.unlock_shared(me));
        let result = body();
        drop(unlock);
        result
    }

    #[inline]
    fn write<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R {
        self.lock(me);
        let unlock = Finally(|| self.unlock(me));
        let result = body();
        drop(unlock);
        result
    }
}

/// How a thread wants a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, rounds, threads};

    /// One operation in four changes two words; the others must see them equal.
    fn excludes_and_shares(latch: &impl HeldLatch) {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        // Relaxed, here and below: ordered by the latch under test.
        let see = || words.each_ref().map(|word| word.load(Ordering::Relaxed));
        at_once(|me| {
            for round in 0..rounds() {
                if (round + me.number() as u64).is_multiple_of(4) {
                    latch.write(me, || {
                        let seen = see();
                        words
                            .iter()
                            .zip(seen)
                            .for_each(|(word, seen)| word.store(seen + 1, Ordering::Relaxed));
                    });
                } else {
                    let seen = latch.read(me, see);
                    assert_eq!(seen[0], seen[1]);
                }
            }
        });
        assert_eq!(see(), [threads() as u64 * rounds() / 4; 2]);
    }

    #[test]
    fn readers_of_each_latch_see_whole_changes_of_more_threads_than_cores() {
        excludes_and_shares(&FieldsLatch::new(threads()));
        excludes_and_shares(&ExchangeLatch::new(threads()));
        excludes_and_shares(&AddLatch::new(threads()));
        excludes_and_shares(&TurnstileLatch::new(threads()));
    }

    /// A step of one of the threads.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Share,
        Unshare,
        Lock,
        Unlock,
    }

    /// Threads by number, 0 to 3, with their steps.
    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        let step = prop_oneof![
            3 => Just(Step::Share),
            3 => Just(Step::Unshare),
            1 => Just(Step::Lock),
            2 => Just(Step::Unlock),
        ];
        prop::collection::vec((0usize..4, step), 0..300)
    }

    /// Plays those steps on a latch that need not wait, and on the threads' shares as numbers.
    fn counts_shares(latch: &impl HeldLatch, steps: &[(usize, Step)]) -> Result<(), TestCaseError> {
        let (mut writer, mut shares) = (None, [0u32; 4]);
        for &(thread, step) in steps {
            let me = &mut Caller::new(thread);
            match step {
                Step::Share if writer.is_none() => {
                    latch.lock_shared(me);
                    shares[thread] += 1;
                }
                Step::Unshare if shares[thread] > 0 => {
                    latch.unlock_shared(me);
                    shares[thread] -= 1;
                }
                Step::Lock if writer.is_none() && shares == [0; 4] => {
                    latch.lock(me);
                    writer = Some(thread);
                }
                Step::Unlock if writer == Some(thread) => {
                    latch.unlock(me);
                    writer = None;
                }
                _ => {}
            }
            prop_assert_eq!(latch.shares(me), shares.iter().sum::<u32>());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_latch_counts_its_shares_and_lets_those_in_that_need_not_wait(steps in steps()) {
            counts_shares(&FieldsLatch::new(4), &steps)?;
            counts_shares(&ExchangeLatch::new(4), &steps)?;
            counts_shares(&AddLatch::new(4), &steps)?;
            counts_shares(&TurnstileLatch::new(4), &steps)?;
        }
    }

    fn shares(latch: &impl HeldLatch) {
        let (mut one, mut other) = (Caller::new(0), Caller::new(1));
        latch.lock_shared(&mut one);
        latch.lock_shared(&mut other);
        assert_eq!(latch.shares(&mut one), 2);
        latch.unlock_shared(&mut one);
        latch.unlock_shared(&mut other);
        assert_eq!(latch.shares(&mut one), 0);
        latch.write(&mut one, || ());
    }

    #[test]
    fn two_readers_hold_each_latch_at_once() {
        shares(&FieldsLatch::new(2));
        shares(&ExchangeLatch::new(2));
        shares(&AddLatch::new(2));
        shares(&TurnstileLatch::new(2));
    }
}
