//! A disk on which the log has no room left: the checkpoint that makes room needs some itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime::stop;
use storage::checkpoint::{self, CheckpointPages};
use storage::log::{Wal, WalOptions};
use storage::{Error, Lsn};
use sync::atomic::{AtomicU64, Ordering};

/// A wait longer than this counts as a hang.
const LONG: Duration = Duration::from_secs(60);

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct NoPages;

impl CheckpointPages for NoPages {
    fn write_before(&self, _: Lsn, _: &mut dyn FnMut(usize, usize)) -> Result<(), Error> {
        Ok(())
    }

    fn seal(&self, _: u32, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn count(&self) -> u32 {
        0
    }
}

/// Waits until `value` stands still, or the time is over.
fn settled(value: &dyn Fn() -> u64) -> u64 {
    let (mut last, mut since) = (value(), Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(5));
        if value() != last {
            (last, since) = (value(), Instant::now());
        }
    }
    last
}

/// The one test here: stop points belong to the process.
#[test]
fn a_checkpoint_makes_room_when_there_is_none() {
    let folder = Folder(std::env::temp_dir().join(format!("allcore-short-log-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let options = runtime::Options { cores: Some(2), pin: false, ..Default::default() };
    let machine = runtime::Runtime::start(options).unwrap();
    let sizes = WalOptions {
        segment_bytes: 1 << 20,
        ring_bytes: 1 << 20,
        checkpoint_bytes: 3 << 20,
        ..WalOptions::new(2)
    };
    let wal = machine.call(0, || Wal::create(&folder.0, sizes).unwrap());
    machine.call(0, || checkpoint::run(&wal, &NoPages)).unwrap();
    // No space left on device.
    stop::arm_all("log.segment.make=fail:28").unwrap();

    // Fibers append abort or commit records until the room reserved for them is used up; then they
    // wait for more.
    let ends = Arc::new(AtomicU64::new(0));
    for core in 0..2 {
        let (ender, count) = (Arc::clone(&wal), Arc::clone(&ends));
        machine.spawn(core, move || {
            while !runtime::shutting_down() {
                ender.ensure_reserved(0).unwrap();
                ender.append_abort(7, Lsn::ZERO);
                count.fetch_add(1, Ordering::Relaxed);
                runtime::fiber::safe_point();
            }
        });
    }
    let ended = || ends.load(Ordering::Relaxed);
    for _ in 0..3 {
        let before = settled(&ended);
        let (done, result) = mpsc::channel();
        let wal = Arc::clone(&wal);
        machine.spawn(0, move || done.send(checkpoint::run(&wal, &NoPages)).unwrap());
        let result = result.recv_timeout(LONG).expect("a checkpoint waits for nobody");
        assert!(result.is_ok(), "{result:?}");
        let start = Instant::now();
        while ended() == before {
            assert!(start.elapsed() < LONG, "{before} transactions ended, and no more");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    stop::clear();
    machine.shutdown();
}
