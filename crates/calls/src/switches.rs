//! Context switches: the kernel counts them for every arm alike, wherever its waiters sleep.

use crate::checked;

/// Context switches of this process's threads until now, but for the calling thread. At a switch a
/// thread sleeps, gives its time slice to another thread, or loses its processor.
pub fn of_others() -> u64 {
    // The calling thread last: what it does between the two calls must not count for others.
    let all = of(libc::RUSAGE_SELF);
    all.saturating_sub(of(libc::RUSAGE_THREAD))
}

fn of(whom: libc::c_int) -> u64 {
    // SAFETY: zeroes are a valid `rusage`, which the call fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage`.
    let result = unsafe { libc::getrusage(whom, &raw mut usage) };
    checked("getrusage", result.into());
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_that_sleeps_counts_and_the_calling_one_does_not() {
        // A sleep on a busy machine may be over before its thread gives the processor away. So half
        // of them have to count.
        let sleep = || (0..40).for_each(|_| thread::sleep(Duration::from_micros(500)));
        let before = of_others();
        thread::spawn(sleep).join().unwrap();
        assert!(of_others() >= before + 20);
        let (own, all) = (of(libc::RUSAGE_THREAD), of(libc::RUSAGE_SELF));
        sleep();
        assert!(of(libc::RUSAGE_THREAD) >= own + 20 && of(libc::RUSAGE_SELF) >= all + 20);
    }
}
