//! Loom models of weak table locks against strong ones. They include `weak.rs` and `locks.rs`,
//! which need `sync` and a hash table.
//!
//! Session 0 takes weak modes of a table, session 1 a strong one. No interleaving, and no weakness
//! of the memory model, lets both use the table, or lets a session wait for a lock that is free.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p txn --test loom_weak --release`
#![cfg(loom)]

#[path = "../src/locks.rs"]
#[allow(dead_code)] // the models need only a part of it
mod locks;
#[path = "../src/weak.rs"]
#[allow(dead_code)] // as above
mod weak;

use std::panic::Location;
use std::task::Waker;

use locks::{Grants, LockTable, Request, TagRef};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicBool, Ordering};
use sync::profile::{Kind, Site};
use weak::{StrongCounts, Taken, WeakLocks, Word};

/// A position in the log, as `storage` has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
struct Lsn(u64);

impl Lsn {
    const ZERO: Lsn = Lsn(0);
}

const TABLE: u32 = 7;
const TAG: TagRef<'static> = TagRef::Table(TABLE);
/// Modes, in PostgreSQL's order.
const ACCESS_SHARE: u8 = 0;
const ROW_EXCLUSIVE: u8 = 2;
const SHARE: u8 = 4;
const EXCLUSIVE: u8 = 6;
const ACCESS_EXCLUSIVE: u8 = 7;

/// The lock table, the slots of two sessions, and two parts of the table. A session reads the first
/// one under ACCESS SHARE, and writes the second one under ROW EXCLUSIVE.
struct World {
    locks: LockTable,
    strong: StrongCounts,
    slots: [WeakLocks; 2],
    granted: [AtomicBool; 2],
    read: UnsafeCell<u32>,
    written: UnsafeCell<u32>,
}

// SAFETY: the holders of the table's locks alone touch its parts. Loom checks that.
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
        let world = World {
            locks: LockTable::new(),
            strong: StrongCounts::new(),
            slots: [WeakLocks::new(), WeakLocks::new()],
            granted: [AtomicBool::new(false), AtomicBool::new(false)],
            read: UnsafeCell::new(0),
            written: UnsafeCell::new(0),
        };
        world.strong.settle();
        world.slots.iter().for_each(WeakLocks::settle);
        Arc::new(world)
    }

    /// Asks the lock table for a mode, and waits for it if asked to; whether the slot has it.
    fn lock_listed(&self, slot: u32, mode: u8, waits: bool) -> bool {
        let site = Site { class: TAG.class(), kind: Kind::Acquire, at: Location::caller() };
        let waker = waits.then(|| Waker::noop().clone());
        match self.locks.request(site, (TAG, TAG.hash()), slot, mode, waker) {
            Request::Granted(_) | Request::Held => true,
            Request::Queued(_) => {
                // Loom fails if nobody grants it. Acquire: as a look at a slot's grant.
                while !self.granted[slot as usize].load(Ordering::Acquire) {
                    thread::yield_now();
                }
                true
            }
            Request::Refused => false,
        }
    }

    fn release_listed(&self, slot: u32, modes: u8) {
        self.locks.release_modes(TAG, (slot, modes), Lsn::ZERO, self);
    }

    /// Uses the parts that these modes allow to use.
    fn use_under(&self, modes: u8) {
        if modes >> ACCESS_SHARE & 1 != 0 {
            // SAFETY: under a lock that excludes writers.
            self.read.with(|read| unsafe { *read });
        }
        if modes >> ROW_EXCLUSIVE & 1 != 0 {
            // SAFETY: under a lock that excludes others but session 0.
            self.written.with_mut(|written| unsafe { *written += 1 });
        }
    }

    /// Locks the table in a strong mode, uses it, and gives the lock up.
    fn run_strong(&self, mode: u8) {
        self.strong.begin(TABLE);
        self.slots[0].move_away(&self.locks, 0, TABLE, mode);
        self.lock_listed(1, mode, true);
        if mode == ACCESS_EXCLUSIVE {
            // SAFETY: under the lock that excludes all others.
            self.read.with_mut(|read| unsafe { *read += 1 });
        }
        // SAFETY: under a lock that excludes ROW EXCLUSIVE.
        self.written.with_mut(|written| unsafe { *written += 1 });
        self.release_listed(1, u8::MAX);
        self.strong.end(TABLE, 1);
    }

    fn check_empty(&self) {
        assert_eq!(self.slots[0].iter().next(), None);
        assert!(!self.locks.may_be_locked(TAG.hash()), "an entry is left");
    }
}

/// The table locks of session 0, as the session keeps them.
struct Weak<'a> {
    world: &'a World,
    modes: u8,
    fast: Option<(usize, Word)>,
    is_listed: bool,
}

impl Weak<'_> {
    fn new(world: &World) -> Weak<'_> {
        Weak { world, modes: 0, fast: None, is_listed: false }
    }

    /// Takes a mode, if it is free or the session waits.
    fn lock(&mut self, mode: u8, waits: bool) {
        if !self.lock_fast(mode) {
            if !self.world.lock_listed(0, mode, waits) {
                return;
            }
            self.is_listed = true;
        }
        self.modes |= 1 << mode;
        let is_here = |(place, word): (usize, Word)| {
            word.modes() >> mode & 1 != 0 && self.world.slots[0].has(place, word)
        };
        let is_listed = || self.world.locks.holds(TAG, TAG.hash(), 0, mode);
        assert!(self.fast.is_some_and(is_here) || is_listed(), "the mode is nowhere");
    }

    fn lock_fast(&mut self, mode: u8) -> bool {
        let slot = &self.world.slots[0];
        let before = self.fast.map(|(_, word)| word);
        let Some(place) = self.fast.map(|(place, _)| place).or_else(|| slot.free_place()) else {
            return false;
        };
        let after = Word::new(TABLE, before.map_or(0, Word::modes) | 1 << mode);
        let give_up = || self.world.release_listed(0, 1 << mode);
        let taken = slot.take(place, before, after, &self.world.strong, give_up);
        match taken {
            Taken::Held => self.fast = Some((place, after)),
            Taken::Refused => {}
            Taken::Moved => (self.fast, self.is_listed) = (None, true),
        }
        taken == Taken::Held
    }

    /// Gives up a mode that is in the slot, or was moved from there.
    fn unlock_mode(&mut self, mode: u8) {
        let (place, word) = self.fast.expect("it is in the slot");
        let left = Word::new(TABLE, word.modes() & !(1 << mode));
        self.modes &= !(1 << mode);
        self.fast = Some((place, left));
        if !self.world.slots[0].replace(place, word, left) {
            (self.fast, self.is_listed) = (None, true);
            self.world.release_listed(0, 1 << mode);
        }
    }

    fn use_table(&self) {
        self.world.use_under(self.modes);
    }

    fn unlock(self) {
        let is_given_up = self.fast.is_some_and(|(place, word)| self.world.slots[0].give_up(place, word));
        if self.is_listed || !is_given_up {
            self.world.release_listed(0, u8::MAX);
        }
    }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.max_branches = 20_000;
    model.check(check);
}

/// Both sessions lock the table, use it, and give it up.
fn check_pair(weak: u8, strong: u8) {
    model(move || {
        let world = World::new();
        let other = world.clone();
        let session = thread::spawn(move || other.run_strong(strong));
        let mut own = Weak::new(&world);
        own.lock(weak, true);
        own.use_table();
        own.unlock();
        session.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn a_reader_and_a_strong_locker_exclude_each_other() {
    check_pair(ACCESS_SHARE, ACCESS_EXCLUSIVE);
}

#[test]
fn a_writer_and_a_strong_locker_exclude_each_other() {
    check_pair(ROW_EXCLUSIVE, SHARE);
}

/// A session that reads the table comes to write it, while a session asks for a strong lock. If it
/// does not wait to write, it goes on to read.
fn check_more(strong: u8, waits: bool) {
    model(move || {
        let world = World::new();
        let mut own = Weak::new(&world);
        own.lock(ACCESS_SHARE, true);
        let other = world.clone();
        let session = thread::spawn(move || other.run_strong(strong));
        own.use_table();
        own.lock(ROW_EXCLUSIVE, waits);
        own.use_table();
        own.unlock();
        session.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn a_reader_that_comes_to_write_keeps_its_lock_from_a_mover() {
    check_more(ACCESS_EXCLUSIVE, true);
    check_more(ACCESS_EXCLUSIVE, false);
}

#[test]
fn a_mover_takes_both_modes_if_it_conflicts_with_the_second() {
    check_more(EXCLUSIVE, true);
    check_more(EXCLUSIVE, false);
}

/// One session has a strong lock, a second one asks for another. A word that the second one moves
/// is not yet a lock beside the first one's.
#[test]
fn a_moved_word_is_no_lock_beside_a_strong_one() {
    model(|| {
        let world = World::new();
        world.strong.begin(TABLE);
        assert!(world.lock_listed(1, ACCESS_EXCLUSIVE, false));
        let other = world.clone();
        let mover = thread::spawn(move || {
            other.strong.begin(TABLE);
            other.slots[0].move_away(&other.locks, 0, TABLE, ACCESS_EXCLUSIVE);
        });
        let mut own = Weak::new(&world);
        own.lock(ROW_EXCLUSIVE, false);
        assert_eq!(own.modes, 0, "beside a lock that excludes it");
        own.unlock();
        mover.join().unwrap();
        world.release_listed(1, u8::MAX);
        world.check_empty();
    });
}

/// A rollback to a savepoint gives one of two modes up while a session moves them.
#[test]
fn a_mode_that_is_given_up_stops_no_strong_locker() {
    model(|| {
        let world = World::new();
        let mut own = Weak::new(&world);
        own.lock(ACCESS_SHARE, true);
        own.lock(ROW_EXCLUSIVE, true);
        let other = world.clone();
        let session = thread::spawn(move || other.run_strong(SHARE));
        own.use_table();
        own.unlock_mode(ROW_EXCLUSIVE);
        // Loom fails if the strong locker waits for a reader.
        session.join().unwrap();
        own.use_table();
        own.unlock();
        world.check_empty();
    });
}
