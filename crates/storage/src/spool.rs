//! A spool: bytes appended at the end and read from anywhere. Its last part is in memory, the rest
//! in temporary pages.
//!
//! Up to its bound a spool is a plain buffer. Beyond it, whole pages move from the buffer's front
//! to temporary pages of the pool. They stay there as long as there is room, and go to the file
//! `temp` like any page, without the log. What must hold:
//!
//! 1. The spool's one owner writes each page once, when it is made. Readers belong to the owner
//!    too.
//! 2. Every page is returned on a core of its own store: when its bytes were read and released, or
//!    when the spool is dropped. A drop does not park and may happen anywhere: from elsewhere it
//!    sends the pages to their store. A store whose workers have ended needs them no more.
//! 3. Spooled pages do not push others out: they enter the pool unused, first in line for eviction.

use std::sync::Arc;

use runtime::{fiber, interrupt, work};

use crate::page::{BODY_SIZE, HEADER_SIZE, PageKind, PageNo};
use crate::{Error, Store};

/// Pages returned between two looks at the clock: some microseconds' work.
const PAGES_AT_ONCE: usize = 16;
/// A drop, which must not park, leaves more pages than this to a fiber of their own.
const PAGES_DROPPED: usize = 4096;
/// Bytes of a spool in one page.
pub const PIECE: usize = BODY_SIZE;

/// Bytes in memory and in temporary pages.
pub struct Spool {
    /// The store that owns the pages; set once there are any.
    store: Option<Arc<Store>>,
    pages: Vec<PageNo>,
    /// The number of pages at the front that were returned.
    released: usize,
    /// The bytes after the pages.
    tail: Vec<u8>,
    /// The most bytes of the tail while there are no pages.
    bound: usize,
    len: u64,
}

impl Spool {
    /// An empty spool that keeps `bound` bytes in memory before it uses pages.
    pub fn new(bound: usize) -> Spool {
        let bound = bound.max(PIECE);
        Spool { store: None, pages: Vec::new(), released: 0, tail: Vec::new(), bound, len: 0 }
    }

    /// The number of bytes appended.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a part is in pages.
    pub fn is_spilled(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Appends the bytes that `write` adds to the buffer. When the bound is passed, it parks and
    /// obeys interrupts. After an error the spool can only be dropped.
    pub fn append(&mut self, store: &Arc<Store>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        let before = self.tail.len();
        write(&mut self.tail);
        self.len += (self.tail.len() - before) as u64;
        // A spilled spool gathers one page at a time.
        let bound = if self.is_spilled() { PIECE } else { self.bound };
        if self.tail.len() > bound { self.spill(store, PIECE) } else { Ok(()) }
    }

    /// Empties the spool and keeps a buffer that was enough.
    pub fn clear(&mut self) {
        self.release_before(u64::MAX);
        self.pages.clear();
        self.released = 0;
        self.tail.clear();
        self.len = 0;
    }

    /// Moves all bytes into pages. Then the spool takes no more bytes and needs hardly any memory.
    /// Parks.
    pub fn seal(&mut self, store: &Arc<Store>) -> Result<(), Error> {
        self.spill(store, 1)
    }

    /// Moves the front of the tail into pages until less than `least` bytes are left.
    fn spill(&mut self, store: &Arc<Store>, least: usize) -> Result<(), Error> {
        let store = &**self.store.get_or_insert_with(|| Arc::clone(store));
        let mut at = 0;
        while self.tail.len() - at >= least {
            // The first move may cover many pages.
            safe_point()?;
            let piece = &self.tail[at..self.tail.len().min(at + PIECE)];
            let page_no = store.space.claim_temporary()?;
            if let Err(error) = store.pool.reserve(1) {
                store.space.free_temporary(page_no);
                return Err(error);
            }
            let mut page = store.pool.create(page_no, PageKind::Spool, 0, 0);
            page.bytes_mut()[HEADER_SIZE..HEADER_SIZE + piece.len()].copy_from_slice(piece);
            store.pool.header(page.frame()).set_usage(0);
            drop(page);
            self.pages.push(page_no);
            at += piece.len();
        }
        self.tail.drain(..at);
        // The buffer that held everything is not kept for the rest.
        self.tail.shrink_to(if least == PIECE { 2 * PIECE } else { 0 });
        Ok(())
    }

    /// Returns the pages before `at`, which will not be read again. Yields between them.
    pub fn release_before(&mut self, at: u64) {
        let Some(store) = &self.store else { return };
        let end = ((at / PIECE as u64) as usize).min(self.pages.len());
        while self.released < end {
            let some = end.min(self.released + PAGES_AT_ONCE);
            give_back(store, &self.pages[self.released..some]);
            self.released = some;
            work::yield_after(work::STRIDE);
        }
    }

    /// Copies a page's piece; parks until it is resident.
    fn read_page(&self, index: usize, to: &mut [u8; PIECE]) -> Result<(), Error> {
        let missing = || Error::Corrupt { page: PageNo::NONE, what: "a spool has no such page" };
        let store = self.store.as_ref().ok_or_else(missing)?;
        let page_no = *self.pages.get(index).filter(|_| index >= self.released).ok_or_else(missing)?;
        loop {
            let page = match store.pool.get(page_no) {
                Ok(page) => page,
                Err(miss) => {
                    store.pool.resolve(page_no, miss)?;
                    continue;
                }
            };
            if page.bytes().copy_to(HEADER_SIZE, to) && page.validate().is_ok() {
                return Ok(());
            }
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let mut pages = std::mem::take(&mut self.pages);
        if pages.len() - self.released > PAGES_DROPPED && store.runtime.core_here().is_some() {
            pages.drain(..self.released);
            fiber::spawn_local(move || {
                for some in pages.chunks(PAGES_AT_ONCE) {
                    give_back(&store, some);
                    work::yield_after(work::STRIDE);
                }
            });
        } else {
            give_back(&store, &pages[self.released..]);
        }
    }
}

fn give_back(store: &Arc<Store>, pages: &[PageNo]) {
    if store.runtime.core_here().is_some() {
        pages.iter().for_each(|&page_no| store.space.free_temporary(page_no));
    } else {
        let (owner, pages) = (Arc::clone(store), pages.to_vec());
        store.runtime.spawn(0, move || pages.iter().for_each(|&page_no| owner.space.free_temporary(page_no)));
    }
}

/// A place in a spool, and the page it is in.
#[derive(Default)]
pub struct SpoolReader {
    at: u64,
    page: Option<(usize, Box<[u8; PIECE]>)>,
    /// The bytes of a read that spans several places.
    gathered: Vec<u8>,
}

impl SpoolReader {
    /// The place of the next read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Moves to a place.
    pub fn seek(&mut self, at: u64) {
        self.at = at;
    }

    /// The next `len` bytes of `spool`, which must have them. Parks for a page that is not
    /// resident. Does not copy bytes that lie in memory.
    #[inline]
    pub fn read<'a>(&'a mut self, spool: &'a Spool, len: usize) -> Result<&'a [u8], Error> {
        let paged = (spool.pages.len() * PIECE) as u64;
        if self.at >= paged {
            let at = (self.at - paged) as usize;
            self.at += len as u64;
            return spool.tail.get(at..at + len).ok_or_else(beyond_end);
        }
        self.read_paged(spool, len)
    }

    fn read_paged<'a>(&'a mut self, spool: &'a Spool, len: usize) -> Result<&'a [u8], Error> {
        if self.at + len as u64 > spool.len {
            return Err(beyond_end());
        }
        let within = (self.at % PIECE as u64) as usize;
        if within + len <= PIECE {
            let index = (self.at / PIECE as u64) as usize;
            self.at += len as u64;
            return Ok(&self.load(spool, index)?[within..within + len]);
        }
        self.gathered.clear();
        self.gathered.reserve(len);
        while self.gathered.len() < len {
            safe_point()?;
            let (index, within) = ((self.at / PIECE as u64) as usize, (self.at % PIECE as u64) as usize);
            let left = len - self.gathered.len();
            if index == spool.pages.len() {
                self.gathered.extend_from_slice(&spool.tail[..left]);
                self.at += left as u64;
                break;
            }
            let part = left.min(PIECE - within);
            self.load(spool, index)?;
            if let Some((_, page)) = &self.page {
                self.gathered.extend_from_slice(&page[within..within + part]);
            }
            self.at += part as u64;
        }
        Ok(&self.gathered)
    }

    fn load(&mut self, spool: &Spool, index: usize) -> Result<&[u8; PIECE], Error> {
        let (held, page) = self.page.get_or_insert_with(|| (usize::MAX, Box::new([0; PIECE])));
        if *held != index {
            *held = usize::MAX;
            spool.read_page(index, page)?;
            *held = index;
        }
        Ok(page)
    }
}

/// Yields to other fibers; fails when an interrupt ends the statement.
fn safe_point() -> Result<(), Error> {
    fiber::safe_point();
    Ok(interrupt::check()?)
}

fn beyond_end() -> Error {
    Error::Corrupt { page: PageNo::NONE, what: "read beyond a spool's end" }
}

#[cfg(test)]
mod tests;
