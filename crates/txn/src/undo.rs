//! Undo: the versions that newer ones replaced, for readers that still see them and for rollback.
//!
//! Each core appends records to temporary pages of its own. A record holds the whole replaced
//! version, or says that there was none. It links to the transaction's record before it.
//! Invariants:
//!
//! 1. A record never changes once a version header names it.
//! 2. A page is used again only when every transaction that wrote into it is below the horizon.
//!    Then no reader follows a pointer into it (visibility stops at a version below the horizon),
//!    and no rollback passes through it.
//! 3. Appending happens under a leaf's latch and never waits. The page must be resident and have
//!    room. Otherwise the writer gives the latch back, has room made ([`UndoSpace::provide`]) and
//!    begins again.
//! 4. Nothing of undo survives a restart: recovery undoes from the log.
//!
//! ```text
//! record: length u16 | key length u16 | tree u32 | root u32 | flags u32 | previous record u64
//!         | previous lsn u64 | txid u64 | key
//!         | version (header and payload), if flags say that there is one | the row's new key
//! flags: 1 = there is a version; bits 16 to 31: bytes of the new key
//! ```

use std::collections::VecDeque;

use storage::btree::Tree;
use storage::page::{HEADER_SIZE, Lsn, PAGE_SIZE, PageKind, PageNo};
use storage::{Error, Store};
use sync::racy::RacyBytes;
use sync::{PerCore, SpinLock};

use crate::version::UndoPointer;

/// Bytes of a record before its key.
const RECORD_HEADER: usize = 40;
/// Bytes of the largest record.
const RECORD_MAX: usize = RECORD_HEADER + storage::btree::MAX_ENTRY + 2 * storage::btree::MAX_KEY;
const _: () = assert!(RECORD_MAX <= PAGE_SIZE - HEADER_SIZE);
const HAS_VERSION: u32 = 1;
const MOVED_SHIFT: u32 = 16;
/// Empty pages kept for the next use; more are given back.
const SPARE_PAGES: usize = 4;

/// The undo record of one change.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The changed tree.
    pub tree: Tree,
    /// The entry's key.
    pub key: &'a [u8],
    /// The transaction that changed it.
    pub txid: u64,
    /// The transaction's undo record before this one.
    pub previous: UndoPointer,
    /// The transaction's log record before this change.
    pub(crate) previous_lsn: Lsn,
    /// The replaced version, header included; `None` if there was no entry.
    pub version: Option<&'a [u8]>,
    /// The key under which the row continues, if the change ended it here because its key changed.
    /// Otherwise empty.
    pub moved_to: &'a [u8],
}

impl<'a> Record<'a> {
    fn len(&self) -> usize {
        RECORD_HEADER + self.key.len() + self.version.map_or(0, <[u8]>::len) + self.moved_to.len()
    }

    fn write(&self, to: &mut [u8]) {
        let version = if self.version.is_some() { HAS_VERSION } else { 0 };
        let flags = version | (self.moved_to.len() as u32) << MOVED_SHIFT;
        to[0..2].copy_from_slice(&(self.len() as u16).to_le_bytes());
        to[2..4].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        to[4..8].copy_from_slice(&self.tree.id.to_le_bytes());
        to[8..12].copy_from_slice(&self.tree.root.0.to_le_bytes());
        to[12..16].copy_from_slice(&flags.to_le_bytes());
        to[16..24].copy_from_slice(&self.previous.raw().to_le_bytes());
        to[24..32].copy_from_slice(&self.previous_lsn.0.to_le_bytes());
        to[32..40].copy_from_slice(&self.txid.to_le_bytes());
        let (key, rest) = to[RECORD_HEADER..].split_at_mut(self.key.len());
        key.copy_from_slice(self.key);
        let (version, moved_to) = rest.split_at_mut(rest.len() - self.moved_to.len());
        version.copy_from_slice(self.version.unwrap_or_default());
        moved_to.copy_from_slice(self.moved_to);
    }

    /// Reads a record's bytes; `None` if they are no record.
    pub fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let key_len = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
        let flags = u32_at(12)?;
        let (key, rest) = bytes.get(RECORD_HEADER..)?.split_at_checked(key_len)?;
        let moved_len = (flags >> MOVED_SHIFT) as usize;
        let (version, moved_to) = rest.split_at_checked(rest.len().checked_sub(moved_len)?)?;
        Some(Record {
            tree: Tree::new(u32_at(4)?, PageNo(u32_at(8)?)),
            key,
            txid: u64_at(32)?,
            previous: UndoPointer::from_raw(u64_at(16)?),
            previous_lsn: Lsn(u64_at(24)?),
            version: (flags & HAS_VERSION != 0).then_some(version),
            moved_to,
        })
    }
}

/// The current page is not resident or has no room for the record. Call [`UndoSpace::provide`] with
/// no latch held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

struct CoreUndo {
    current: Option<PageNo>,
    end: usize,
    /// The newest transaction that wrote into the current page.
    newest: u64,
    /// Full pages with the newest transaction of each, oldest page first.
    full: VecDeque<(PageNo, u64)>,
}

/// All cores' undo pages.
pub struct UndoSpace {
    cores: PerCore<SpinLock<CoreUndo>>,
}

impl UndoSpace {
    /// No pages.
    pub fn new(cores: usize) -> UndoSpace {
        let empty = |_| {
            SpinLock::new(&"undo pages", CoreUndo { current: None, end: 0, newest: 0, full: VecDeque::new() })
        };
        UndoSpace { cores: PerCore::new(cores, empty) }
    }

    /// Appends a record to this core's current page. Neither parks nor waits.
    pub fn append(&self, store: &Store, core: usize, record: &Record<'_>) -> Result<UndoPointer, NoRoom> {
        let len = record.len();
        let mut own = self.cores.get(core).lock();
        let page_no = own.current.ok_or(NoRoom)?;
        if own.end + len > PAGE_SIZE {
            return Err(NoRoom);
        }
        let page = store.pool().get(page_no).map_err(|_| NoRoom)?;
        let mut page = page.lock().map_err(|_| NoRoom)?;
        let at = own.end;
        record.write(&mut page.bytes_mut()[at..at + len]);
        own.end = at + len;
        own.newest = own.newest.max(record.txid);
        Ok(UndoPointer::new(page_no.index(), at as u16))
    }

    /// Whether a record with this many bytes of key and version fits the current page. Asking first
    /// saves a descent that would end in [`NoRoom`].
    pub fn has_room(&self, core: usize, room: usize) -> bool {
        let own = self.cores.get(core).lock();
        own.current.is_some() && own.end + RECORD_HEADER + room <= PAGE_SIZE
    }

    /// Makes room: brings the current page back, or begins a new one if `room` bytes of key and
    /// version do not fit. Parks. Other fibers of the core may use the room before the caller does.
    pub(crate) fn provide(&self, store: &Store, core: usize, room: usize, horizon: u64) -> Result<(), Error> {
        let current = {
            let own = self.cores.get(core).lock();
            own.current.filter(|_| own.end + RECORD_HEADER + room <= PAGE_SIZE)
        };
        if let Some(page_no) = current {
            return match store.pool().get(page_no).map(|_| ()) {
                // The page writer has it latched for a moment.
                Ok(()) => {
                    storage::pool::yield_for_latch();
                    Ok(())
                }
                Err(miss) => store.pool().resolve(page_no, miss),
            };
        }
        let recycled = self.take_recyclable(core, horizon);
        let page_no = match recycled {
            Some(page_no) => page_no,
            None => store.space().claim_temporary()?,
        };
        if let Err(error) = store.pool().reserve(1) {
            store.space().free_temporary(page_no);
            return Err(error);
        }
        drop(store.pool().create(page_no, PageKind::Undo, 0, 0));
        let mut own = self.cores.get(core).lock();
        let newest = std::mem::replace(&mut own.newest, 0);
        own.end = HEADER_SIZE;
        if let Some(full) = own.current.replace(page_no) {
            own.full.push_back((full, newest));
        }
        Ok(())
    }

    fn take_recyclable(&self, core: usize, horizon: u64) -> Option<PageNo> {
        let mut own = self.cores.get(core).lock();
        let &(page_no, newest) = own.full.front()?;
        if newest >= horizon {
            return None;
        }
        own.full.pop_front();
        Some(page_no)
    }

    /// Gives unneeded pages back, except the spare ones. Runs on the core itself.
    pub fn shrink(&self, store: &Store, core: usize, horizon: u64) {
        loop {
            let page_no = {
                let mut own = self.cores.get(core).lock();
                // Pages are nearly in order of their transactions; one out of order is freed a
                // little later.
                match own.full.get(SPARE_PAGES) {
                    Some(&(_, newest)) if newest < horizon && own.full[0].1 < horizon => own.full.pop_front(),
                    _ => None,
                }
            };
            match page_no {
                Some((page_no, _)) => store.space().free_temporary(page_no),
                None => return,
            }
        }
    }

    /// Number of pages in use by all cores.
    pub fn pages(&self) -> usize {
        self.cores
            .iter()
            .map(|core| core.lock())
            .map(|own| own.full.len() + usize::from(own.current.is_some()))
            .sum()
    }
}

/// Copies the record at `pointer` into `bytes`. Parks if its page is not resident. The caller knows
/// that the record still exists (rule 2).
pub fn read(store: &Store, pointer: UndoPointer, bytes: &mut Vec<u8>) -> Result<(), Error> {
    let page_no = PageNo::temporary(pointer.index());
    loop {
        let page = match store.pool().get(page_no) {
            Ok(page) => page,
            Err(miss) => {
                store.pool().resolve(page_no, miss)?;
                continue;
            }
        };
        bytes.clear();
        let copied = copy_record(page.bytes(), pointer.offset(), bytes);
        if page.validate().is_err() {
            continue;
        }
        return if copied { Ok(()) } else { Err(Error::Corrupt { page: page_no, what: "no undo record" }) };
    }
}

fn copy_record(page: RacyBytes<'_>, at: usize, bytes: &mut Vec<u8>) -> bool {
    // Torn lengths stay within the page by append_to's own check.
    page.u16_at(at).is_some_and(|len| page.append_to(at, usize::from(len), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_written() {
        let record = Record {
            tree: Tree::new(7, PageNo(99)),
            key: b"some key",
            txid: 1 << 40,
            previous: UndoPointer::new(5, 600),
            previous_lsn: Lsn(123_456),
            version: Some(b"sixteen bytes ahead and more"),
            moved_to: b"another key",
        };
        let versions = [None, Some(&b""[..]), record.version];
        for (version, moved_to) in versions.into_iter().flat_map(|v| [(v, &b""[..]), (v, record.moved_to)]) {
            let record = Record { version, moved_to, ..record };
            let mut bytes = vec![0; record.len()];
            record.write(&mut bytes);
            let back = Record::parse(&bytes).expect("parses");
            assert_eq!((back.tree.id, back.tree.root), (7, PageNo(99)));
            assert_eq!((back.key, back.txid, back.version), (record.key, record.txid, version));
            assert_eq!(back.moved_to, moved_to);
            assert_eq!((back.previous, back.previous_lsn), (record.previous, record.previous_lsn));
        }
        for len in 0..RECORD_HEADER {
            assert!(Record::parse(&vec![0xff; len]).is_none());
        }
    }
}
