//! Loom model of how snapshots are announced. It includes `announce.rs`, which knows atomics only.
//!
//! A core's thread takes a snapshot, ends it, runs the keeper's task, and takes another. The keeper
//! scans and recycles what is below. No interleaving, and no weakness of the memory model, lets it
//! recycle what a snapshot in use needs.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p txn --test loom_announce --release`
#![cfg(loom)]

#[path = "../src/announce.rs"]
#[allow(dead_code)]
mod announce;

use announce::{CoreFloors, SessionFloor};
use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};

struct World {
    published: AtomicU64,
    floors: CoreFloors,
    sessions: [SessionFloor; 2],
    /// Everything below has been recycled.
    recycled: AtomicU64,
}

impl World {
    /// A statement's snapshot, as the engine takes it.
    fn snapshot(&self, session: usize) -> u64 {
        let csn = self.published.load(Ordering::Acquire);
        self.sessions[session].announce(csn);
        csn
    }

    /// Reads with a snapshot. The model fails if a version that the snapshot needs may have been
    /// recycled.
    fn read(&self, csn: u64) {
        assert!(self.recycled.load(Ordering::SeqCst) <= csn, "recycled under a snapshot in use");
    }
}

#[test]
fn nothing_is_recycled_under_a_snapshot() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2); // three threads without a bound take minutes
    model.check(|| {
        let world = Arc::new(World {
            published: AtomicU64::new(1),
            floors: CoreFloors::new(1),
            sessions: [SessionFloor::new(), SessionFloor::new()],
            recycled: AtomicU64::new(0),
        });
        let core = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let parked = world.snapshot(0);
                // The keeper's task, while session 0 is parked.
                world.floors.raise(0, &world.published);
                let other = world.snapshot(1);
                world.read(other);
                world.sessions[1].clear();
                world.read(parked);
                world.sessions[0].clear();
            })
        };
        let committer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.published.store(2, Ordering::Release))
        };
        for _ in 0..2 {
            let oldest = world.floors.oldest(world.sessions.iter());
            world.recycled.store(oldest, Ordering::SeqCst);
        }
        core.join().unwrap();
        committer.join().unwrap();
    });
}
