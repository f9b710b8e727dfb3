//! The resources that a structure change reserves before its first latch: page numbers, frames, log
//! room, resident map pages.
//!
//! Page numbers outlive restarts of the change and are returned when it ends without them. Frames
//! and log room belong to the core: the change reserves them again before each attempt, after the
//! last possible park.

use super::descend::{Retry, Stop, look};
use crate::log::Share;
use crate::page::PAGE_SIZE;
use crate::{Error, PageMut, PageNo, Pool, Store};

/// Log room for the payloads of one structure change, without images: the nodes that it makes, and
/// two purges.
const LOG_ROOM: usize = 4 * PAGE_SIZE;

/// Page numbers claimed for a structure change.
pub(super) struct Reservation<'s> {
    store: &'s Store,
    share: Share,
    pages: Vec<PageNo>,
}

impl<'s> Reservation<'s> {
    /// An empty reservation for work of this kind.
    pub fn new(store: &'s Store, share: Share) -> Reservation<'s> {
        Reservation { store, share, pages: Vec::new() }
    }

    /// A reservation of a page number that was claimed before.
    pub fn of(store: &'s Store, page_no: PageNo) -> Reservation<'s> {
        Reservation { store, share: Share::Ordinary, pages: vec![page_no] }
    }

    /// Reserves `pages` numbers, as many frames, and log room; parks. They are there until the next
    /// park.
    pub fn prepare(&mut self, pages: usize) -> Result<(), Error> {
        while self.pages.len() < pages {
            self.pages.push(self.store.space.claim_for(self.share)?);
        }
        loop {
            self.store.pool.reserve(pages)?;
            self.store.wal.ensure_for(self.share, LOG_ROOM)?;
            if self.store.pool.has_reserve(pages) {
                return Ok(());
            }
        }
    }

    /// The claimed number at `index`.
    pub fn page(&self, index: usize) -> PageNo {
        self.pages[index]
    }

    /// Marks the first `count` numbers as in use.
    pub fn used(&mut self, count: usize) {
        self.pages.drain(..count);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.pages.drain(..).for_each(|page_no| self.store.space.unclaim(page_no));
    }
}

/// A latched map page, and the bits of it that a change sets or clears.
pub(super) struct MapBits<'p> {
    pub map: PageMut<'p>,
    pub bits: Vec<u8>,
}

/// Latches the map pages of `pages`, after all nodes: in order of their numbers, each once.
pub(super) fn latch_maps<'p>(
    store: &Store,
    pool: &'p Pool,
    pages: &[PageNo],
) -> Result<Vec<MapBits<'p>>, Stop> {
    let mut bits: Vec<(PageNo, u16)> =
        pages.iter().map(|&page_no| store.space.map_page_of(page_no)).collect();
    bits.sort_unstable();
    let mut maps = Vec::new();
    for group in bits.chunk_by(|one, other| one.0 == other.0) {
        let map = look(pool, group[0].0, None)?.page.lock()?;
        maps.push(MapBits { map, bits: group.iter().flat_map(|(_, bit)| bit.to_le_bytes()).collect() });
    }
    Ok(maps)
}

impl MapBits<'_> {
    /// The bits' numbers.
    pub fn each(&self) -> impl Iterator<Item = u16> + use<> {
        let (bits, _) = self.bits.as_chunks::<2>();
        bits.iter().map(|&bit| u16::from_le_bytes(bit)).collect::<Vec<_>>().into_iter()
    }
}

/// Repeats a structure change until it succeeds or fails for good. Reserves `pages` pages before
/// each attempt.
pub(super) fn attempt<'s, R>(
    store: &'s Store,
    share: Share,
    pages: usize,
    change: impl FnMut(&mut Reservation<'s>) -> Result<R, Stop>,
) -> Result<R, Error> {
    attempt_with(Reservation::new(store, share), pages, change)
}

/// As [`attempt`], with page numbers that were claimed before.
pub(super) fn attempt_with<'s, R>(
    mut reservation: Reservation<'s>,
    pages: usize,
    mut change: impl FnMut(&mut Reservation<'s>) -> Result<R, Stop>,
) -> Result<R, Error> {
    let store = reservation.store;
    let mut retry = Retry::new(&store.pool);
    loop {
        reservation.prepare(pages)?;
        match change(&mut reservation) {
            Ok(done) => return Ok(done),
            Err(stop) => retry.after(stop)?,
        }
    }
}
