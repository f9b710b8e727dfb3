//! Page faults of the workers and of the other threads, as the kernel counts them.
//!
//! A reader asks the kernel; nobody counts meanwhile.

use crate::Runtime;
use crate::stat::Stat;

/// Page faults of a thread, or of several, since the process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// The thread's name.
    pub thread: String,
    /// The worker's number; none for all threads that are no workers, also those that have ended.
    pub worker: Option<usize>,
    /// Faults that needed no disk.
    pub minor: u64,
    /// Faults that waited for a disk.
    pub major: u64,
}

impl Runtime {
    /// The page faults of each worker, and behind them those of all other threads. Empty where the
    /// system does not tell. Reads a file of the kernel for each worker.
    pub fn page_faults(&self) -> Vec<Faults> {
        let of_worker = |(worker, &thread): (usize, &i32)| {
            let Stat { minor, major, .. } = Stat::of_thread(thread)?;
            Some(Faults { thread: self.shared.name(worker), worker: Some(worker), minor, major })
        };
        let mut faults: Vec<Faults> =
            self.worker_threads().iter().enumerate().filter_map(of_worker).collect();
        // Read last, so that it is not less than the sum of the workers.
        if let Some(all) = Stat::of_process() {
            let sum = |of: fn(&Faults) -> u64| faults.iter().map(of).sum();
            let minor = all.minor.saturating_sub(sum(|one| one.minor));
            let major = all.major.saturating_sub(sum(|one| one.major));
            faults.push(Faults { thread: "others".to_owned(), worker: None, minor, major });
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIo;
    use crate::tests::start_with;

    #[test]
    fn faults_count_for_the_thread_that_takes_them() {
        const BYTES: usize = 16 << 20;
        let runtime = start_with(2, FileIo::Threads);
        let of = |faults: &[Faults], worker| {
            faults.iter().find(|one| one.worker == worker).map(|one| one.minor).unwrap()
        };
        let region = crate::memory::Region::frames(BYTES, crate::memory::HugePages::Off).unwrap();
        let before = runtime.page_faults();
        assert_eq!(before.len(), runtime.worker_count() + 1);
        runtime.call(1, || region.touch(0..BYTES));
        let after = runtime.page_faults();
        let taken = |worker| of(&after, worker) - of(&before, worker);
        let pages = (BYTES / 4096) as u64;
        assert!(taken(Some(1)) >= pages, "{} of {pages} faults", taken(Some(1)));
        assert!(taken(Some(0)) < pages / 2, "worker 0 touched nothing: {}", taken(Some(0)));
        runtime.shutdown();
    }
}
