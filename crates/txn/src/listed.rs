//! The list of running transactions on the engine's own path, in a build with `--cfg variants`.
//!
//! With `--variant snapshot=stock` a session copies the list whenever it takes a snapshot, and a
//! transaction enters and leaves it. The list is `variants::snapshot::ListSnapshots`, one place a
//! session slot. What must hold:
//!
//! 1. The engine decides visibility by commit numbers all the same. So the variant costs the copy
//!    and the list's lock, and not the search in the copy for each row.
//! 2. A slot has one session, which runs on one thread at a time and holds the list's lock across
//!    no park. So the slot's number is the caller's number.

use std::cell::{Cell, RefCell};

use variants::caller::Caller;
use variants::chosen::{Row, is_stock};
use variants::runs;
use variants::snapshot::{List, ListSnapshots, Snapshots};

/// The list, if this process runs the variant.
#[derive(Debug)]
pub(crate) struct Listed(Option<ListSnapshots>);

/// A session's part.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Its transaction's number in the list; 0 for none.
    number: Cell<u64>,
    /// The copy made last.
    copy: RefCell<List>,
}

impl Listed {
    /// A list for so many slots.
    pub(crate) fn new(slots: usize) -> Listed {
        Listed(is_stock(Row::Snapshot).then(|| ListSnapshots::for_threads_to_come(slots)))
    }

    /// A session claims a slot.
    pub(crate) fn enter(&self, slot: u32) {
        if let Some(list) = &self.0 {
            list.enter(&mut Caller::new(slot as usize));
        }
    }

    /// The session's transaction begins to write.
    pub(crate) fn begin(&self, slot: u32, own: &Own) {
        if let Some(list) = &self.0 {
            own.number.set(list.begin(&mut Caller::new(slot as usize)));
        }
    }

    /// The session's transaction has ended.
    pub(crate) fn end(&self, slot: u32, own: &Own) {
        if let Some(list) = &self.0
            && own.number.get() != 0
        {
            list.commit(&mut Caller::new(slot as usize), own.number.take());
        }
    }

    /// The session takes a snapshot.
    #[inline]
    pub(crate) fn copy(&self, slot: u32, own: &Own) {
        if let Some(list) = &self.0 {
            runs::count(Row::Snapshot);
            list.take(&mut Caller::new(slot as usize), &mut own.copy.borrow_mut());
        }
    }
}

impl Own {
    /// Gives the transaction to another session, as its slot.
    pub(crate) fn give_to(&self, other: &Own) {
        other.number.set(self.number.take());
    }
}
