//! Loom models of a frame: its marks of changes and writes, and the way from a page's entry to its
//! bytes. They include `frame.rs`, `entry.rs`, `page.rs` and `log/fill.rs`, which need `sync` only,
//! so that loom need not run all of storage.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p storage --test loom_frame --release`
#![cfg(loom)]

#[allow(dead_code)] // the models need only a part of it
#[path = "../src/entry.rs"]
mod entry;
#[allow(dead_code)] // as above
#[path = "../src/log/fill.rs"]
mod fill;
#[allow(dead_code)] // as above
#[path = "../src/frame.rs"]
mod frame;
#[allow(dead_code)] // as above
#[path = "../src/page.rs"]
mod page;

use entry::Entry;
use fill::Fill;
use frame::Frame;
use loom::sync::Arc;
use loom::thread;
use page::{Lsn, PageNo};
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::profile::{Class, Hold};

/// The class of the latches below.
const CLASS: fn() -> Class = || &"page";
const START: u64 = 8;

/// A frame with a page of one word, and the word as it is in the file. Nothing but the frame orders
/// their accesses.
struct Held {
    frame: Frame,
    word: AtomicU64,
    file: AtomicU64,
}

impl Held {
    fn new() -> Held {
        Held { frame: Frame::new(), word: AtomicU64::new(0), file: AtomicU64::new(0) }
    }

    fn lock(&self) -> Hold {
        loop {
            let seen = self.frame.latch.load();
            if let Some(hold) = self.frame.latch.try_lock(seen, CLASS) {
                return hold;
            }
            thread::yield_now();
        }
    }

    /// Changes the page to `word`. The log ends at `lsn`.
    fn change(&self, word: u64, lsn: u64) {
        let hold = self.lock();
        self.frame.mark_dirty(|| Some(Lsn(lsn)));
        self.word.store(word, Ordering::Relaxed); // Relaxed: as a page's bytes
        self.frame.latch.unlock_changed(hold);
    }

    /// Writes the page, as the page writer does: from a copy, without the latch.
    fn write(&self) {
        let hold = self.lock();
        let begun = self.frame.begin_write();
        let copy = self.word.load(Ordering::Relaxed); // Relaxed: as a page's bytes
        self.frame.latch.unlock_unchanged(hold);
        if begun {
            self.file.store(copy, Ordering::Relaxed); // Relaxed: as a file's bytes
            let hold = self.lock();
            self.frame.end_write(true);
            self.frame.latch.unlock_unchanged(hold);
        }
    }

    /// A page that is clean may leave its frame. Then its file has all changes.
    fn check(&self) {
        let hold = self.lock();
        if !self.frame.is_dirty() {
            // Relaxed: as a page's bytes.
            assert_eq!(self.file.load(Ordering::Relaxed), self.word.load(Ordering::Relaxed));
        }
        self.frame.latch.unlock_unchanged(hold);
    }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 20_000;
    model.check(check);
}

#[test]
fn a_clean_page_has_all_its_changes_in_the_file() {
    model(|| {
        let held = Arc::new(Held::new());
        held.change(1, START);
        let other = held.clone();
        let writer = thread::spawn(move || {
            other.write();
            other.check();
        });
        held.change(2, START + 1);
        held.check();
        writer.join().unwrap();
        held.check();
        held.write();
        assert!(!held.frame.is_dirty());
        held.check();
    });
}

#[test]
fn two_writers_leave_no_old_copy_behind() {
    model(|| {
        let held = Arc::new(Held::new());
        held.change(1, START);
        let other = held.clone();
        let writer = thread::spawn(move || other.write());
        held.change(2, START + 1);
        held.write();
        writer.join().unwrap();
        held.check();
    });
}

/// A checkpoint begins, and looks at a frame that is being changed. Either it sees that the frame
/// is dirty, or the record of the change lies behind its redo position.
#[test]
fn a_checkpoint_misses_no_change_before_its_redo_position() {
    model(|| {
        let world = Arc::new((Held::new(), Fill::new(1, START)));
        let other = world.clone();
        let changer = thread::spawn(move || {
            let (held, fill) = &*other;
            let hold = held.lock();
            held.frame.mark_dirty(|| Some(Lsn(fill.position())));
            let record = fill.reserve(0, START, 1).start;
            held.word.store(1, Ordering::Relaxed); // Relaxed: as a page's bytes
            held.frame.latch.unlock_changed(hold);
            fill.complete(0);
            record
        });
        let (held, fill) = &*world;
        let redo = fill.begin_epoch().redo;
        let seen = held.frame.is_dirty_before(Lsn(redo));
        let record = changer.join().unwrap();
        assert!(seen || record >= redo, "the record at {record} is before {redo}, and nobody writes it");
    });
}

/// Two pages that share one frame, one after the other. A page's bytes are its number.
struct Pool {
    held: Held,
    entries: [AtomicU32; 2],
}

impl Pool {
    fn enter(&self, page: u32) {
        self.held.word.store(u64::from(page), Ordering::Relaxed); // Relaxed: as a page's bytes
        let hold = self.held.lock();
        self.held.frame.set_page_no(PageNo(page));
        self.held.frame.latch.unlock_changed(hold);
        // Release: as in the pool.
        self.entries[page as usize].store(Entry::resident(0).0, Ordering::Release);
    }

    /// Evicts the page if nobody has pinned it.
    fn vacate(&self, page: u32) -> bool {
        let frame = &self.held.frame;
        let Some(hold) = frame.latch.try_lock_idle(frame.latch.load(), CLASS) else { return false };
        // Release: as in the pool.
        self.entries[page as usize].store(Entry::ABSENT.0, Ordering::Release);
        frame.set_page_no(PageNo::NONE);
        frame.latch.unlock_changed(hold);
        true
    }

    /// Reads the page through its entry, as the pool does; pins it first if asked for.
    fn read(&self, page: u32, pins: bool) {
        let frame = &self.held.frame;
        // Acquire: as in the pool.
        if Entry(self.entries[page as usize].load(Ordering::Acquire)).frame().is_none() {
            return;
        }
        let seen = frame.latch.load();
        if seen.is_locked() || frame.page_no() != PageNo(page) {
            return;
        }
        let is_pinned = pins && frame.latch.try_pin(seen);
        let word = self.held.word.load(Ordering::Relaxed); // Relaxed: as a page's bytes
        if frame.latch.validate(seen) {
            assert_eq!(word, u64::from(page), "the bytes of another page");
        }
        if is_pinned {
            // Relaxed: as above.
            assert_eq!(self.held.word.load(Ordering::Relaxed), u64::from(page), "pinned");
            frame.latch.unpin();
        }
    }
}

fn check_reader(pins: bool) {
    model(move || {
        let pool = Arc::new(Pool { held: Held::new(), entries: [AtomicU32::new(0), AtomicU32::new(0)] });
        pool.enter(0);
        let other = pool.clone();
        let loader = thread::spawn(move || {
            if other.vacate(0) {
                other.enter(1);
            }
        });
        pool.read(0, pins);
        pool.read(1, pins);
        loader.join().unwrap();
    });
}

#[test]
fn a_reader_believes_no_bytes_of_another_page() {
    check_reader(false);
}

#[test]
fn a_pinned_page_stays_in_its_frame() {
    check_reader(true);
}
