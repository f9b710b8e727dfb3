//! Row `semaphore` (B14): the semaphores on which a database's processes sleep.
//!
//! PostgreSQL gives each backend a semaphore. On FreeBSD 10 they were System V's, whose kernel
//! takes the mutex of a whole set for each call. The fix was POSIX semaphores, which ask the kernel
//! only when a thread must sleep. Both are in the crate `calls`, because they are the system's.
//! Here is the trait, and [`FutexSemaphores`], the step between them: the smallest semaphore that
//! asks the kernel only then.
//!
//! What must hold: a wait ends after a post that it can count for itself. No post is lost between a
//! waiter's look and its sleep.

mod futex;

pub use futex::FutexSemaphores;

use crate::caller::Caller;

/// A number of semaphores.
pub trait Semaphores: Sync {
    /// Waits until the semaphore's count is above 0, and takes 1 off.
    fn wait(&self, me: &mut Caller, which: usize);
    /// Adds 1 to the semaphore's count and wakes a waiter.
    fn post(&self, which: usize);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, on, rounds, threads};

    #[test]
    fn a_semaphore_of_one_excludes_more_threads_than_cores() {
        let (semaphores, sum) = (FutexSemaphores::new(1, 1), AtomicU64::new(0));
        at_once(|me| {
            for _ in 0..rounds() {
                semaphores.wait(me, 0);
                // Relaxed: ordered by the semaphore.
                sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                semaphores.post(0);
            }
        });
        assert_eq!(sum.into_inner(), threads() as u64 * rounds());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Threads share semaphores in a random order. Each wait ends, because as many posts come.
        #[test]
        fn as_many_waits_as_posts_end(
            count in 0u16..3, order in prop::collection::vec(0usize..3, 0..200), pairs in 1usize..4,
        ) {
            let semaphores = FutexSemaphores::new(3, count);
            // Half of the threads post, the others wait, all in the same order.
            on(2 * pairs, |me| {
                for &which in &order {
                    if me.number().is_multiple_of(2) {
                        semaphores.post(which);
                    } else {
                        semaphores.wait(me, which);
                    }
                }
            });
            for word in &semaphores.0 {
                let left = word.word().load(Ordering::Relaxed);
                prop_assert_eq!(left, u32::from(count), "nobody waits, and what was there is left");
            }
        }
    }

    #[test]
    fn a_semaphore_counts_posts_before_waits() {
        let semaphores = FutexSemaphores::new(2, 0);
        let mut me = Caller::new(0);
        (0..3).for_each(|_| semaphores.post(1));
        (0..3).for_each(|_| semaphores.wait(&mut me, 1));
    }
}
