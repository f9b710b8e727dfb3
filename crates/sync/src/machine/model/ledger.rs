//! A ledger of the cache lines that move between the virtual processors.
//!
//! Each virtual thread has a processor of its own, with a cache that never runs full. As in the
//! protocol MESI, a thread waits for a transfer when it reads a line which another has written
//! since. It also waits when it writes a line that another cache holds. What must hold:
//!
//! 1. The ledger hears of atomics, of the model's locks and of optimistic reads, each with its
//!    address. It hears of no plain access under a latch, and of no count of an `Arc`.
//! 2. A line that nobody has written since the ledger began costs no transfer to read: each
//!    processor can keep it for ever.
//! 3. The ledger changes nothing in a run, which has the same events without it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::panic::Location;

use super::{access, current};

/// Bytes of a line.
const LINE: usize = 64;

/// The state of a line.
#[derive(Debug, Default)]
struct Line {
    /// The threads whose caches hold it.
    holders: BTreeSet<usize>,
    /// The last one that wrote it.
    writer: Option<usize>,
}

impl Line {
    /// A thread touches the line; whether it waits for a transfer.
    fn touch(&mut self, thread: usize, is_write: bool) -> bool {
        let is_held = self.holders.contains(&thread);
        let is_moved = if is_write {
            self.holders.len() > usize::from(is_held)
        } else {
            !is_held && self.writer.is_some_and(|writer| writer != thread)
        };
        if is_write {
            self.holders.clear();
            self.writer = Some(thread);
        }
        self.holders.insert(thread);
        is_moved
    }
}

/// Transfers that one place of the program has caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The virtual thread that waited for the line.
    pub thread: usize,
    /// Where it did.
    pub place: &'static Location<'static>,
    /// Whether it came to write.
    pub is_write: bool,
    /// How often.
    pub transfers: u64,
}

#[derive(Debug, Default)]
struct Ledger {
    lines: HashMap<usize, Line>,
    transfers: HashMap<(usize, &'static Location<'static>, bool), u64>,
}

thread_local! {
    static LEDGER: RefCell<Option<Ledger>> = const { RefCell::new(None) };
}

/// Begins to count, with empty caches.
pub fn begin() {
    LEDGER.set(Some(Ledger::default()));
}

/// Forgets the transfers so far. The caches keep their lines.
pub fn reset() {
    with(|ledger| ledger.transfers.clear());
}

/// Ends the count; its entries in no order.
pub fn end() -> Vec<Entry> {
    let ledger = LEDGER.take().unwrap_or_default();
    let entry = |((thread, place, is_write), transfers)| Entry { thread, place, is_write, transfers };
    ledger.transfers.into_iter().map(entry).collect()
}

fn with(body: impl FnOnce(&mut Ledger)) {
    LEDGER.with_borrow_mut(|ledger| {
        if let Some(ledger) = ledger {
            body(ledger);
        }
    });
}

/// A thread has touched a line.
fn touch(address: usize, place: &'static Location<'static>, is_write: bool) {
    with(|ledger| {
        let thread = current();
        if ledger.lines.entry(address / LINE).or_default().touch(thread, is_write) {
            *ledger.transfers.entry((thread, place, is_write)).or_default() += 1;
        }
    });
}

/// A read of shared memory: others may run before it.
#[inline]
#[track_caller]
pub(super) fn read<T>(at: *const T) {
    access();
    touch(at.addr(), Location::caller(), false);
}

/// A write of shared memory, or an attempt at one: others may run before it.
#[inline]
#[track_caller]
pub(super) fn write<T>(at: *const T) {
    access();
    touch(at.addr(), Location::caller(), true);
}
