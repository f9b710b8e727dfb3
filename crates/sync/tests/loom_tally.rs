//! Model check of the profiler's counts: a reader never sees a count from before a reset.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sync --test loom_tally --release`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;

use sync::atomic;

#[allow(dead_code, reason = "the profiler uses the rest")]
#[path = "../src/profile/tally.rs"]
mod tally;

use tally::Tally;

#[test]
fn a_reader_sees_whole_counts_of_one_epoch() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let line = Arc::new(Tally::new());
        // Before the reset.
        line.enter(1);
        line.wait(1000);
        let own = line.clone();
        let writer = thread::spawn(move || {
            own.enter(2);
            own.wait(7);
        });
        for epoch in [1, 2] {
            let Some([count, hold_total, hold_max, wait_total, wait_max, holds, waits]) = line.read(epoch)
            else {
                continue;
            };
            let bound = if epoch == 1 { 1000 } else { 7 };
            assert!(
                (wait_total == bound || wait_total == 0 && epoch == 2) && wait_max <= bound && waits <= 1
            );
            assert_eq!([count, hold_total, hold_max, holds], [0; 4]);
        }
        writer.join().unwrap();
        assert_eq!(line.read(1), None);
        assert_eq!(line.read(2), Some([0, 0, 0, 7, 7, 0, 1]));
    });
}
