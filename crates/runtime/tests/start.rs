//! A start that fails leaves no worker behind, whichever core it fails on.

use std::time::{Duration, Instant};

use runtime::stop::{self, Action};
use runtime::{FileIo, Options, Runtime};

/// A wait that takes longer than this never ends.
const LONG: Duration = Duration::from_secs(60);
const CORES: u64 = 3;

/// This process's workers.
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a process has threads");
    // A thread that ends while its name is read is none.
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("core-")).count()
}

fn start() -> std::io::Result<std::sync::Arc<Runtime>> {
    let options =
        Options { cores: Some(CORES as usize), pin: false, file_io: FileIo::Threads, ..Options::default() };
    Runtime::start(options)
}

#[test]
fn a_start_that_fails_leaves_no_worker() {
    for point in ["runtime.start.thread", "runtime.start.worker"] {
        for nth in 1..=CORES {
            stop::arm(point, Action::Fail(libc::EMFILE), Some(nth));
            let Err(error) = start() else { panic!("{point} {nth}: the start does not fail") };
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{point} {nth}");
            stop::clear();
            // A joined thread is listed for a moment more.
            let begun = Instant::now();
            while workers() > 0 {
                assert!(begun.elapsed() < LONG, "{} workers run on ({point} {nth})", workers());
                std::thread::yield_now();
            }
        }
    }
    let runtime = start().expect("the start works");
    assert_eq!(workers() as u64, CORES);
    assert_eq!(runtime.facts().pinned, 0);
    runtime.shutdown();
}
