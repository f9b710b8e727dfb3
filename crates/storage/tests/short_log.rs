//! A disk on which the log has no room left: the checkpoint that makes room needs some itself, and
//! so does the start before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime::memory::HugePages;
use runtime::{Runtime, stop};
use storage::checkpoint::{self, CheckpointPages};
use storage::log::{Wal, WalOptions};
use storage::recovery::UndoHandler;
use storage::{Error, Lsn, Store, StoreOptions};
use sync::atomic::{AtomicU64, Ordering};

/// A wait longer than this counts as a hang.
const LONG: Duration = Duration::from_secs(60);

const CORES: usize = 2;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("allcore-short-log-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

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

fn start_machine() -> Arc<Runtime> {
    let options = runtime::Options { cores: Some(CORES), pin: false, ..Default::default() };
    Runtime::start(options).unwrap()
}

fn sizes() -> WalOptions {
    WalOptions {
        segment_bytes: 1 << 20,
        ring_bytes: 1 << 20,
        checkpoint_bytes: 3 << 20,
        ..WalOptions::new(CORES)
    }
}

fn fill_disk() {
    // No space left on device.
    stop::arm_all("log.segment.make=fail:28; log.segment.reserve=fail:28").unwrap();
}

/// Fibers that append abort records until the room reserved for them is used up; then they wait for
/// more. Returns the count of records.
fn end_transactions(machine: &Runtime, wal: &Arc<Wal>, cores: usize) -> Arc<AtomicU64> {
    let ends = Arc::new(AtomicU64::new(0));
    for core in 0..cores {
        let (ender, count) = (Arc::clone(wal), Arc::clone(&ends));
        machine.spawn(core, move || {
            while !runtime::shutting_down() {
                ender.ensure_reserved(0).unwrap();
                ender.append_abort(7, Lsn::ZERO);
                count.fetch_add(1, Ordering::Relaxed);
                runtime::fiber::safe_point();
            }
        });
    }
    ends
}

/// The one test here: stop points belong to the process.
#[test]
fn a_checkpoint_makes_room_when_there_is_none() {
    checkpoints_of_a_running_server();
    start_after_a_crash();
}

fn checkpoints_of_a_running_server() {
    let folder = Folder::new("running");
    let machine = start_machine();
    let wal = machine.call(0, || Wal::create(&folder.0, sizes()).unwrap());
    machine.call(0, || checkpoint::run(&wal, &NoPages)).unwrap();
    fill_disk();
    let ends = end_transactions(&machine, &wal, CORES);
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

struct NothingToUndo;

impl UndoHandler for NothingToUndo {
    fn undo(&mut self, txn: u64, _: Lsn, _: &[u8], _: Lsn, _: Lsn) -> Result<Lsn, Error> {
        panic!("transaction {txn} was never begun")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn start_after_a_crash() {
    let (folder, left) = (Folder::new("crashed"), Folder::new("left"));
    let machine = start_machine();
    let options = StoreOptions { huge_pages: HugePages::Off, wal: sizes(), ..StoreOptions::new(64, CORES) };
    let store = machine.call(0, || Store::create(&folder.0, &machine, &options).unwrap());
    fill_disk();
    // One core: what others have drawn and not used is room for the start.
    let ends = end_transactions(&machine, store.wal(), 1);
    settled(&|| ends.load(Ordering::Relaxed));
    machine.call(0, || store.wal().wait_durable(store.wal().position()).unwrap());
    // The store holds its folder's lock, so the crashed folder is a copy.
    copy(&folder.0, &left.0);
    let (done, recovered) = mpsc::channel();
    let own = Arc::clone(&machine);
    let path = left.0.clone();
    machine.spawn(0, move || {
        let store = Store::open(&path, &own, &options).unwrap();
        done.send(store.recover(&mut NothingToUndo)).unwrap();
        store.abandon();
    });
    let recovered = recovered.recv_timeout(LONG).expect("the start waits for room in vain");
    assert!(recovered.is_ok(), "{recovered:?}");
    stop::clear();
    machine.call(0, || store.abandon());
    machine.shutdown();
}
