//! Row `sleep-lock` (K07): locks whose waiters sleep.
//!
//! K07 found threads that hammer the file-descriptor lock: with more clients than cores, throughput
//! fell to about a single thread's. [`FutexLock`] is the stock state, a mutex that asks the kernel
//! at each contended step. [`AdaptiveLock`] is the published one: a waiter spins while the owner
//! runs and sleeps otherwise. The trait is [`crate::spin::Exclusion`].

mod adaptive;
mod futex;

pub use adaptive::AdaptiveLock;
pub use futex::FutexLock;

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spin::Lock;
    use crate::spin::tests::{excludes, keeps_order, plans};
    use crate::test_threads::{rounds, threads};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn sections_under_a_sleeping_lock_come_one_after_the_other(plans in plans()) {
            keeps_order(&FutexLock::new(plans.len()), &plans)?;
            keeps_order(&AdaptiveLock::new(plans.len()), &plans)?;
        }
    }

    #[test]
    fn each_sleeping_lock_excludes_more_threads_than_cores() {
        excludes(&FutexLock::new(threads()), rounds());
        excludes(&AdaptiveLock::new(threads()), rounds());
    }
}
