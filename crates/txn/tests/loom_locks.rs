//! Loom models of the lock table. They include `locks.rs`, which needs `sync` and a hash table.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p txn --test loom_locks --release`
#![cfg(loom)]

#[path = "../src/locks.rs"]
#[allow(dead_code)] // the models need only a part of it
mod locks;

use std::panic::Location;
use std::task::Waker;

use locks::{Grants, LockTable, Request, TagRef};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sync::SpinLock;
use sync::atomic::{AtomicBool, Ordering};
use sync::profile::{Kind, Site};

/// A position in the log, as `storage` has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
struct Lsn(u64);

impl Lsn {
    const ZERO: Lsn = Lsn(0);
}

const ROW: TagRef<'static> = TagRef::Row(7, b"key");
/// The mode of FOR UPDATE.
const UPDATE: u8 = 3;

/// The table, a slot's grant for each of two sessions, and what the lock guards.
struct World {
    locks: LockTable,
    granted: [AtomicBool; 2],
    guarded: UnsafeCell<u32>,
}

// SAFETY: the holder of the row's lock alone touches `guarded`. Loom checks that.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl Grants for World {
    fn granted(&self, slot: u32) {
        // Release: as a slot's grant.
        self.granted[slot as usize].store(true, Ordering::Release);
    }
}

impl World {
    fn new() -> Arc<World> {
        let granted = [AtomicBool::new(false), AtomicBool::new(false)];
        Arc::new(World { locks: LockTable::new(), granted, guarded: UnsafeCell::new(0) })
    }

    fn request(&self, slot: u32, waker: Option<Waker>) -> Request {
        let site = Site { class: ROW.class(), kind: Kind::Acquire, at: Location::caller() };
        self.locks.request(site, (ROW, ROW.hash()), slot, UPDATE, waker)
    }

    fn is_granted(&self, slot: u32) -> bool {
        // Acquire: as a look at a slot's grant.
        self.granted[slot as usize].load(Ordering::Acquire)
    }

    /// Locks the row, changes what it guards, and commits as `known`.
    fn run(&self, slot: u32, known: u64) {
        match self.request(slot, Some(Waker::noop().clone())) {
            Request::Granted(_) => {}
            Request::Queued(_) => {
                // Loom fails if nobody grants it.
                while !self.is_granted(slot) {
                    thread::yield_now();
                }
            }
            other => panic!("{other:?}"),
        }
        self.use_guarded();
        self.locks.release(ROW, slot, Lsn(known), self);
    }

    fn use_guarded(&self) {
        self.guarded.with_mut(|guarded| {
            // SAFETY: under the row's lock.
            unsafe { *guarded += 1 }
        });
    }

    fn count(&self) -> u32 {
        // SAFETY: the other session has ended.
        self.guarded.with(|guarded| unsafe { *guarded })
    }

    fn is_empty(&self) -> bool {
        !self.locks.may_be_locked(ROW.hash()) && !self.locks.must_wait(ROW, ROW.hash(), 9, UPDATE)
    }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 20_000;
    model.check(check);
}

#[test]
fn two_sessions_get_a_row_one_after_the_other() {
    model(|| {
        let world = World::new();
        let other = world.clone();
        let session = thread::spawn(move || other.run(1, 6));
        world.run(0, 5);
        session.join().unwrap();
        assert_eq!(world.count(), 2);
        assert!(world.is_empty());
        assert_eq!(world.locks.released(ROW.hash()), Lsn(6));
    });
}

/// One session gives up its wait while the holder releases: it has left, or it was granted.
#[test]
fn a_wait_that_is_given_up_leaves_no_lock_behind() {
    model(|| {
        let world = World::new();
        assert!(matches!(world.request(0, None), Request::Granted(_)));
        let other = world.clone();
        let waiter = thread::spawn(move || {
            match other.request(1, Some(Waker::noop().clone())) {
                Request::Granted(_) => {}
                Request::Queued(_) => {
                    other.locks.leave(ROW, 1, &*other);
                    if !other.is_granted(1) {
                        return;
                    }
                }
                request => panic!("{request:?}"),
            }
            other.use_guarded();
            other.locks.release(ROW, 1, Lsn(6), &*other);
        });
        world.use_guarded();
        world.locks.release(ROW, 0, Lsn(5), &*world);
        waiter.join().unwrap();
        assert!(world.is_empty());
        assert!((1..=2).contains(&world.count()));
    });
}

/// A writer asks for locks under the leaf's latch, and then names itself in the row. A session that
/// locks the row makes its entry, and then looks at the row under that latch.
#[test]
fn a_writer_or_the_session_that_locks_the_row_sees_the_other() {
    model(|| {
        let world = World::new();
        let row = Arc::new(SpinLock::new(&"leaf", false));
        let (other, leaf) = (world.clone(), row.clone());
        let writer = thread::spawn(move || {
            let mut is_written = leaf.lock();
            if other.locks.may_be_locked(ROW.hash()) {
                // It has seen the former holder's commit, where there is none any more.
                return true;
            }
            *is_written = true;
            false
        });
        assert!(matches!(world.request(0, None), Request::Granted(_)));
        let sees_writer = *row.lock();
        assert!(writer.join().unwrap() || sees_writer, "each takes the row for its own");
    });
}

/// A writer that finds no lock knows the last holder's commit.
#[test]
fn a_writer_that_finds_no_lock_knows_the_last_commit() {
    model(|| {
        let world = World::new();
        assert!(matches!(world.request(0, None), Request::Granted(_)));
        let other = world.clone();
        let writer = thread::spawn(move || {
            if !other.locks.may_be_locked(ROW.hash()) {
                assert_eq!(other.locks.released(ROW.hash()), Lsn(5));
            }
        });
        world.locks.release(ROW, 0, Lsn(5), &*world);
        writer.join().unwrap();
    });
}
