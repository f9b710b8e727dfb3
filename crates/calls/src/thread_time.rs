//! Processor time of the calling thread.

use std::time::Duration;

use crate::checked;

/// Processor time that the calling thread has taken until now. Time in which other threads have its
/// processor does not count.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec`, which the call fills in.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    checked("clock_gettime", result.into());
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_takes_no_time_and_one_that_computes_does() {
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(20));
        assert!(thread_time() - before < Duration::from_millis(15));
        while thread_time() - before < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
    }
}
