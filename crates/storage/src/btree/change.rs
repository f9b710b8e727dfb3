//! One change of one entry: decided, applied and logged under the leaf's exclusive latch.
//!
//! The steps of a change:
//! 1. The change ensures log room. It finds the leaf and latches it in the state that the
//!    search saw, or that the change before left ([`Near`]).
//! 2. The change decides, given the present value. When the leaf has no room, the change releases
//!    the latch, makes room, and begins at 1 again.
//! 3. The change writes the new value into a scratch buffer. The bytes that differ from the old
//!    value go into the page and the log record.
//! 4. When the leaf has become nearly empty, a change of its own merges it with a neighbour.

use std::cell::RefCell;

use runtime::core_local;

use super::descend::{Aim, Retry, Stop};
use super::near::Near;
use super::{Action, EntryChange, MAX_ENTRY, MAX_KEY, Tree, merge, split};
use crate::log::Share;
use crate::node::edit;
use crate::node::redo::op;
use crate::node::{CAPACITY, Node};
use crate::page::PAGE_SIZE;
use crate::{Error, PageMut, Store};

/// Log room for a change of one leaf: an image of it, the operation, and the undo information.
const LOG_ROOM: usize = PAGE_SIZE + 4 * MAX_ENTRY;
/// A leaf is merged with a neighbour when a removal leaves it this many bytes, if the two fit
/// together.
const MERGE_BELOW: usize = CAPACITY / 4;
/// Scratch buffers kept on each core. One is in use at a time, except while a reader's callback
/// runs.
const KEPT: usize = 4;

core_local! {
    static FREE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// The private buffers of one operation, kept per core.
pub(super) struct Scratch {
    value: Vec<u8>,
    undo: Vec<u8>,
    kept: bool,
}

impl Scratch {
    /// Takes a scratch from the core's list, or makes one.
    pub fn take() -> Scratch {
        let kept = FREE.with(|free| free.borrow_mut().pop());
        let make = || Scratch {
            value: Vec::with_capacity(MAX_ENTRY),
            undo: Vec::with_capacity(MAX_ENTRY),
            kept: true,
        };
        let mut scratch = kept.unwrap_or_else(make);
        scratch.kept = true;
        scratch
    }

    /// The buffer for a value.
    pub fn value(&mut self) -> &mut Vec<u8> {
        &mut self.value
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::mem::take(&mut self.kept) {
            return;
        }
        let back = Scratch {
            value: std::mem::take(&mut self.value),
            undo: std::mem::take(&mut self.undo),
            kept: false,
        };
        // A thread that is ending has no list any more: the buffers are freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT {
                free.push(back);
            }
        });
    }
}

/// The outcome of one attempt.
enum Attempt {
    /// The change is done; true when the leaf has become nearly empty.
    Done(bool),
    /// The leaf has no room for an entry of this many bytes beside its key.
    NoRoom(usize),
    /// The entry, of this many bytes, is larger than any leaf takes.
    TooLarge(usize),
}

impl Tree {
    /// Runs one change of the entry at `key`.
    pub fn change(&self, store: &Store, key: &[u8], change: &mut impl EntryChange) -> Result<(), Error> {
        self.change_near(store, key, &mut Near::default(), change)
    }

    /// As [`Tree::change`], for one of several changes, which share `near`.
    pub fn change_near(
        &self,
        store: &Store,
        key: &[u8],
        near: &mut Near,
        change: &mut impl EntryChange,
    ) -> Result<(), Error> {
        if key.len() > MAX_KEY {
            return Err(Error::TooLarge { bytes: key.len(), limit: MAX_KEY });
        }
        let mut scratch = Scratch::take();
        let mut retry = Retry::new(&store.pool);
        let share = if change.compensates() { Share::Reserved } else { Share::Ordinary };
        loop {
            store.wal.ensure_for(share, LOG_ROOM)?;
            match self.try_change(store, (&mut retry, near), key, change, &mut scratch) {
                Ok(Attempt::Done(false)) => return Ok(()),
                Ok(Attempt::Done(true)) => {
                    drop(scratch);
                    merge::tidy(self, store, key);
                    return Ok(());
                }
                Ok(Attempt::NoRoom(len)) => split::make_room(self, store, share, key, len)?,
                Ok(Attempt::TooLarge(bytes)) => return Err(Error::TooLarge { bytes, limit: MAX_ENTRY }),
                Err(stop) => retry.after(stop)?,
            }
        }
    }

    #[inline]
    fn try_change(
        &self,
        store: &Store,
        (retry, near): (&mut Retry<'_>, &mut Near),
        key: &[u8],
        change: &mut impl EntryChange,
        scratch: &mut Scratch,
    ) -> Result<Attempt, Stop> {
        let mut page = match near.latch(&store.pool, self, key) {
            Some(page) => page,
            None => retry.latch_leaf(self, Aim::At(key))?,
        };
        let attempt = change_leaf(store, &mut page, key, change, scratch)
            .ok_or_else(|| Stop::Corrupt(page.page_no(), "unreadable leaf"))?;
        near.leave(self, page);
        Ok(attempt)
    }
}

/// Decides and applies the change in a latched leaf; `None` when the leaf is damaged.
fn change_leaf(
    store: &Store,
    page: &mut PageMut<'_>,
    key: &[u8],
    change: &mut impl EntryChange,
    scratch: &mut Scratch,
) -> Option<Attempt> {
    let bytes = page.bytes();
    let node = Node::of(bytes);
    let found = node.search(key)?;
    let present = match found.exact {
        true => Some(bytes.get(node.value(found.index)?)?),
        false => None,
    };
    let Scratch { value, undo, .. } = scratch;
    undo.clear();
    value.clear();
    match (change.decide(present), present) {
        (Action::None, _) | (Action::Remove, None) => Some(Attempt::Done(false)),
        (Action::Remove, Some(_)) => {
            let link = change.apply(present, &mut [], undo);
            let before = node.used()?;
            edit::remove(page.bytes_mut(), found.index)?;
            let after = Node::of(page.bytes());
            let small = after.count()? == 0 || (before > MERGE_BELOW && after.used()? <= MERGE_BELOW);
            let mut record = store.wal.change();
            record.page(page, op::REMOVE, &[key]);
            record.undo(undo);
            change.logged(record.commit(link));
            Some(Attempt::Done(small))
        }
        (Action::Put, _) => {
            let len = change.value_len();
            if key.len() + len > MAX_ENTRY {
                return Some(Attempt::TooLarge(key.len() + len));
            }
            let room = match found.exact {
                true => edit::has_room_for_value(bytes, found.index, len)?,
                false => edit::has_room(bytes, key, len + 2)?,
            };
            if !room {
                return Some(Attempt::NoRoom(len + 2));
            }
            value.resize(len, 0);
            let link = change.apply(present, value, undo);
            let key_len = (key.len() as u16).to_le_bytes();
            let mut record = store.wal.change();
            if let Some(old) = present {
                let (front, back) = unchanged_ends(old, value);
                let (front_len, back_len) = ((front as u16).to_le_bytes(), (back as u16).to_le_bytes());
                edit::replace_value(page.bytes_mut(), found.index, value)?.then_some(())?;
                let middle = &value[front..len - back];
                record.page(page, op::REPLACE, &[&key_len, &front_len, &back_len, key, middle]);
            } else {
                edit::insert_value(page.bytes_mut(), key, value)?.then_some(())?;
                record.page(page, op::INSERT, &[&key_len, key, value]);
            }
            record.undo(undo);
            change.logged(record.commit(link));
            Some(Attempt::Done(false))
        }
    }
}

/// The number of bytes at the front and at the back of a value that stay as they are. The loop
/// compares eight bytes at a time.
pub fn unchanged_ends(old: &[u8], new: &[u8]) -> (usize, usize) {
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
    };
    let shorter = old.len().min(new.len());
    let mut front = 0;
    while front + 8 <= shorter {
        let (Some(a), Some(b)) = (word(old, front), word(new, front)) else { break };
        if a != b {
            front += (a ^ b).trailing_zeros() as usize / 8;
            break;
        }
        front += 8;
    }
    while front < shorter && old[front] == new[front] {
        front += 1;
    }
    let most = shorter - front;
    let mut back = 0;
    while back + 8 <= most {
        let ends = (word(old, old.len() - back - 8), word(new, new.len() - back - 8));
        let (Some(a), Some(b)) = ends else { break };
        if a != b {
            return (front, back + (a ^ b).leading_zeros() as usize / 8);
        }
        back += 8;
    }
    while back < most && old[old.len() - back - 1] == new[new.len() - back - 1] {
        back += 1;
    }
    (front, back)
}
