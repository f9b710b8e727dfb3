//! The space map: which pages of the file `pages` are in use.
//!
//! Pages come in groups of [`PAGES_PER_MAP`]. Page 1 of each group is its map, with one bit for
//! each page of the group, itself included. The log record of the change that begins or ends a
//! page's use also sets or clears its bit. So a crash neither loses a page nor uses one twice.
//! Memory (`bitmap`) decides which numbers can be claimed, from a copy of the maps made at start. A
//! change first claims a number and sets its bit when it uses it. A number that was claimed and
//! never used is free again after a crash.
//!
//! What must hold:
//! 1. A page's number is free in memory only once its bit is clear in the map, as far as the log
//!    has been appended.
//! 2. A group's map page exists before any of the group's numbers can be claimed.
//! 3. The map page is latched last of all pages of a change, and the log has room before.
//!
//! Some free pages are reserved for rollbacks, which must work on a full disk. Putting an entry
//! back may split a page that others have filled meanwhile.
//!
//! Temporary pages have numbers and no maps: nothing of them survives a restart.

use std::sync::Arc;

use runtime::stop;
use runtime::wait_event::{self, WaitEvent};
use sync::WaitQueue;
use sync::atomic::{AtomicBool, Ordering};

use crate::Error;
use crate::bitmap::PageNumbers;
use crate::error::{FormatProblem, IoContext};
use crate::log::{Share, TxnLink, Wal};
use crate::page::{self, BODY_SIZE, Damage, HEADER_SIZE, PageKind, PageNo};
use crate::pool::{PageMut, Pinned, Pool, Restart, yield_for_latch};

/// Pages of a group: the number of bits in one map page.
pub(crate) const PAGES_PER_MAP: u32 = BODY_SIZE as u32 * 8;
/// Place of the map page within its group.
const MAP_INDEX: u32 = 1;
/// The store's own page, which names the file's format.
pub(crate) const META_PAGE: PageNo = PageNo(0);
/// Root of the first tree. It is in use from the start, so that an opened store finds its way.
pub const SYSTEM_ROOT: PageNo = PageNo(2);

/// Redo code: an empty map page. Payload: its page number.
pub(crate) const OP_MAP_NEW: u8 = 1;
/// Redo code: bits of a map page set. Payload: their numbers, u16 each.
pub(crate) const OP_MAP_SET: u8 = 2;
/// Redo code: bits of a map page cleared. Payload: their numbers, u16 each.
pub(crate) const OP_MAP_CLEAR: u8 = 3;
/// Redo code: the store's own page. No payload.
pub(crate) const OP_META_NEW: u8 = 4;

/// The highest redo code of this module; the trees have those above.
pub(crate) const OP_LAST: u8 = 15;

/// The first bytes of the body of the store's own page.
const META_MAGIC: &[u8; 16] = b"allcore pages 1\n";

/// The file grows by a sixteenth of itself, between these bounds (1 MiB and 64 MiB). So growth is
/// rare, and one step does not fill a nearly full disk.
const GROWTH_MIN: u32 = 128;
const GROWTH_MAX: u32 = 8192;
/// Pages by which the file grows when the disk has no room for more.
const GROWTH_LAST: u32 = 8;
/// Free pages held back for rollbacks: this part of the file, between these bounds.
const HELD_BACK_PART: u32 = 64;
const HELD_BACK_MIN: u32 = 32;
const HELD_BACK_MAX: u32 = 4096;
/// The most bits that one record clears.
const CLEAR_MAX: usize = 1000;
/// Room in the log for a record of this module, beside page images.
const RECORD_BYTES: usize = 4 * CLEAR_MAX;

/// The map page of a page, and the page's bit there.
pub fn map_page_of(page_no: PageNo) -> (PageNo, u16) {
    let group = page_no.index() / PAGES_PER_MAP;
    (PageNo(group * PAGES_PER_MAP + MAP_INDEX), (page_no.index() % PAGES_PER_MAP) as u16)
}

fn is_set(map: &[u8], bit: u16) -> bool {
    map[HEADER_SIZE + usize::from(bit) / 8] >> (bit % 8) & 1 != 0
}

/// Sets a page's bit in its map page's bytes.
pub(crate) fn set_bit(map: &mut [u8], bit: u16) {
    map[HEADER_SIZE + usize::from(bit) / 8] |= 1 << (bit % 8);
}

/// Clears a page's bit in its map page's bytes.
pub(crate) fn clear_bit(map: &mut [u8], bit: u16) {
    map[HEADER_SIZE + usize::from(bit) / 8] &= !(1 << (bit % 8));
}

/// Applies an op of this module to a page, as recovery does. False when there is no such op or its
/// payload is wrong.
pub fn redo(op: u8, payload: &[u8], bytes: &mut [u8]) -> bool {
    match op {
        OP_MAP_NEW => {
            let Ok(number) = payload.try_into() else { return false };
            format_map(bytes, PageNo(u32::from_le_bytes(number)));
        }
        OP_META_NEW => format_meta(bytes),
        OP_MAP_SET | OP_MAP_CLEAR => {
            let (bits, rest) = payload.as_chunks::<2>();
            let bits = || bits.iter().map(|&bit| u16::from_le_bytes(bit));
            if !rest.is_empty() || bits().any(|bit| u32::from(bit) >= PAGES_PER_MAP) {
                return false;
            }
            bits().for_each(|bit| if op == OP_MAP_SET { set_bit(bytes, bit) } else { clear_bit(bytes, bit) });
        }
        _ => return false,
    }
    true
}

fn format_map(bytes: &mut [u8], page_no: PageNo) {
    page::format(bytes, page_no, PageKind::SpaceMap, 0, 0);
    set_bit(bytes, MAP_INDEX as u16);
    if page_no.0 == MAP_INDEX {
        set_bit(bytes, META_PAGE.0 as u16);
        set_bit(bytes, SYSTEM_ROOT.0 as u16);
    }
}

fn format_meta(bytes: &mut [u8]) {
    page::format(bytes, META_PAGE, PageKind::Meta, 0, 0);
    bytes[HEADER_SIZE..HEADER_SIZE + META_MAGIC.len()].copy_from_slice(META_MAGIC);
}

/// Fails when the body of the store's own page is of another version or is none.
fn check_meta(body: &[u8]) -> Result<(), Error> {
    let first = &body[..META_MAGIC.len()];
    if first == META_MAGIC {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Err(Error::Format(match first.starts_with(b"allcore pages ") {
        true => FormatProblem::Version { found: text(first), read: text(META_MAGIC) },
        false => FormatProblem::Damaged("pages"),
    }))
}

/// The page numbers of one file, and the fiber that grows it.
struct Numbers {
    free: PageNumbers,
    growing: AtomicBool,
    grown: WaitQueue,
}

impl Numbers {
    fn new(free: PageNumbers) -> Numbers {
        Numbers { free, growing: AtomicBool::new(false), grown: WaitQueue::new(&"file extension") }
    }

    /// Claims a number. Where none is free, one fiber runs `grow` and the others wait for it.
    fn claim(&self, share: Share, grow: impl Fn() -> Result<(), Error>) -> Result<u32, Error> {
        let core = runtime::core();
        loop {
            let taken = match share {
                Share::Ordinary => self.free.take(core),
                Share::Reserved | Share::Checkpoint => self.free.take_held_back(core),
            };
            if let Some(index) = taken {
                return Ok(index);
            }
            // Acquire: this grower sees what the last one did.
            if self.growing.swap(true, Ordering::Acquire) {
                // Acquire: as above.
                let grown = || !self.growing.load(Ordering::Acquire);
                wait_event::during(WaitEvent::DataFileExtend, || self.grown.wait_until(grown));
            } else {
                let _turn = Growing(self);
                // Another fiber may have grown the file or returned a number since the look above.
                if self.free.is_exhausted() {
                    match wait_event::during(WaitEvent::DataFileExtend, &grow) {
                        Err(full @ Error::DiskFull(_)) => return self.free.take_of_any(core).ok_or(full),
                        grown => grown?,
                    }
                }
            }
        }
    }
}

/// The turn of growing a file. Its drop ends the turn in every case.
struct Growing<'a>(&'a Numbers);

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        // Release: the next grower sees what this one did.
        self.0.growing.store(false, Ordering::Release);
        self.0.grown.wake_all();
    }
}

/// The number of free pages held back in a file of `pages` pages.
fn held_back(pages: u32) -> u32 {
    (pages / HELD_BACK_PART).clamp(HELD_BACK_MIN, HELD_BACK_MAX)
}

/// The pages in use.
pub struct Space {
    pool: Arc<Pool>,
    wal: Arc<Wal>,
    durable: Numbers,
    temporary: Numbers,
}

impl Space {
    fn empty(pool: &Arc<Pool>, wal: &Arc<Wal>) -> Space {
        let cores = pool.cores();
        Space {
            pool: Arc::clone(pool),
            wal: Arc::clone(wal),
            durable: Numbers::new(PageNumbers::holding_back(cores, held_back)),
            temporary: Numbers::new(PageNumbers::new(cores)),
        }
    }

    /// The space of a new store. Makes its first pages.
    pub fn create(pool: &Arc<Pool>, wal: &Arc<Wal>) -> Result<Space, Error> {
        let space = Space::empty(pool, wal);
        space.prepare()?;
        let mut meta = pool.create(META_PAGE, PageKind::Meta, 0, 0);
        format_meta(meta.bytes_mut());
        let mut change = wal.change();
        change.new_page(&mut meta, OP_META_NEW, &[]);
        change.commit(TxnLink::NONE);
        drop(meta);
        space.grow()?;
        Ok(space)
    }

    /// The space of a store whose log has been redone. Reads the map pages.
    pub fn open(pool: &Arc<Pool>, wal: &Arc<Wal>) -> Result<Space, Error> {
        let space = Space::empty(pool, wal);
        let meta = pool.pin(META_PAGE)?.lock_yielding();
        check_meta(&meta.bytes()[HEADER_SIZE..])?;
        drop(meta);
        let file = pool.file(META_PAGE);
        let mut start = 0;
        // A group without a written map was being added when the process died: it does not exist
        // yet.
        while let Some(map) = space.map_if_written(PageNo(start + MAP_INDEX))? {
            let map = map.lock_yielding();
            let used = |page: u32| is_set(map.bytes(), (page - start) as u16);
            let group = start..start + PAGES_PER_MAP;
            let last_used = group.clone().rev().find(|&page| used(page)).unwrap_or(start);
            // Recovery may have made pages beyond the file's end.
            let end = file.pages().max(last_used + 1).min(group.end);
            space.durable.free.extend(end, used);
            start = group.end;
        }
        file.grow(space.durable.free.pages())?;
        Ok(space)
    }

    fn map_if_written(&self, map_page: PageNo) -> Result<Option<Pinned<'_>>, Error> {
        match self.pool.pin(map_page) {
            Ok(map) => Ok(Some(map)),
            Err(Error::Corrupt { what, .. }) if what == Damage::NeverWritten.what() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parks until one frame is reserved and the log has room, both at the same moment.
    fn prepare(&self) -> Result<(), Error> {
        loop {
            self.pool.reserve(1)?;
            self.wal.ensure(RECORD_BYTES)?;
            if self.pool.has_reserve(1) {
                return Ok(());
            }
        }
    }

    /// Claims the number of a page that is not in use. It may park and may fail, so call it before
    /// the first latch. The page is in use once its bit is set (see [`map_page_of`],
    /// [`OP_MAP_SET`]). The caller returns an unused claim.
    pub fn claim(&self) -> Result<PageNo, Error> {
        self.claim_for(Share::Ordinary)
    }

    /// As [`Space::claim`], by the kind of work: rollbacks get the pages held back for them.
    pub(crate) fn claim_for(&self, share: Share) -> Result<PageNo, Error> {
        self.durable.claim(share, || self.grow()).map(PageNo)
    }

    /// Returns the number of an unused claim, or of a page whose bit an appended record has
    /// cleared. In the second case the caller first drops the page from the pool: `Pool::discard`.
    pub fn unclaim(&self, page_no: PageNo) {
        self.durable.free.put(runtime::core(), page_no.index());
    }

    /// The map page of a page, and the page's bit there.
    pub fn map_page_of(&self, page_no: PageNo) -> (PageNo, u16) {
        map_page_of(page_no)
    }

    /// Sets a page's bit in its latched map page. The caller logs it with [`OP_MAP_SET`] and the
    /// bit as payload.
    pub(crate) fn mark_used(&self, map: &mut PageMut<'_>, bit: u16) {
        debug_assert!(!is_set(map.bytes(), bit), "a page is used once");
        set_bit(map.bytes_mut(), bit);
    }

    /// Clears a page's bit in its latched map page. The caller logs it with [`OP_MAP_CLEAR`] and
    /// the bit as payload.
    pub(crate) fn mark_free(&self, map: &mut PageMut<'_>, bit: u16) {
        debug_assert!(is_set(map.bytes(), bit), "a page is freed once");
        clear_bit(map.bytes_mut(), bit);
    }

    /// Frees the pages of a dropped tree, which nobody refers to any more, durably. Parks. After an
    /// error some of the pages stay in use; only the map says which ones (see
    /// [`crate::btree::Tree::collect_levels`]).
    pub fn free(&self, pages: &[PageNo]) -> Result<(), Error> {
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        for group in pages.chunk_by(|one, other| map_page_of(*one).0 == map_page_of(*other).0) {
            let map = self.pool.pin(map_page_of(group[0]).0)?;
            for part in group.chunks(CLEAR_MAX) {
                self.clear(&map, part)?;
                for &page_no in part {
                    self.pool.discard(page_no);
                    self.unclaim(page_no);
                }
                runtime::fiber::safe_point();
            }
        }
        Ok(())
    }

    fn clear(&self, map: &Pinned<'_>, pages: &[PageNo]) -> Result<(), Error> {
        let bits: Vec<u8> = pages.iter().flat_map(|&page_no| map_page_of(page_no).1.to_le_bytes()).collect();
        let mut map = loop {
            // Room in the log is the core's, so it is ensured again after each park. Freeing must
            // work while the disk is full, so it may use the log's reserve.
            self.wal.ensure_reserved(RECORD_BYTES)?;
            match map.lock() {
                Ok(map) => break map,
                Err(Restart) => yield_for_latch(),
            }
        };
        pages.iter().for_each(|&page_no| self.mark_free(&mut map, map_page_of(page_no).1));
        let mut change = self.wal.change();
        change.page(&mut map, OP_MAP_CLEAR, &[&bits]);
        change.commit(TxnLink::NONE);
        Ok(())
    }

    /// Extends the file, and makes the map pages of groups that begin there. One fiber at a time.
    fn grow(&self) -> Result<(), Error> {
        let file = self.pool.file(META_PAGE);
        let now = self.durable.free.pages();
        let step = (now / 16).clamp(GROWTH_MIN, GROWTH_MAX);
        // A group begins with its map page, or it does not begin.
        let target = |step: u32| match now + step {
            target if target % PAGES_PER_MAP <= MAP_INDEX && target / PAGES_PER_MAP > now / PAGES_PER_MAP => {
                target + MAP_INDEX + 1
            }
            target => target,
        };
        let mut pages = target(step);
        let grow_file = |pages| {
            stop::fault("storage.space.grow").during("growing a file of pages")?;
            file.grow(pages)
        };
        match grow_file(pages) {
            Err(Error::DiskFull(_)) => {
                pages = target(GROWTH_LAST);
                grow_file(pages)?;
            }
            grown => grown?,
        }
        stop::point("storage.space.grown");
        let first_group = now.div_ceil(PAGES_PER_MAP);
        for group in (first_group..).take_while(|group| group * PAGES_PER_MAP < pages) {
            self.make_map(PageNo(group * PAGES_PER_MAP + MAP_INDEX))?;
        }
        let fixed = |page: u32| page % PAGES_PER_MAP == MAP_INDEX || page <= SYSTEM_ROOT.0;
        self.durable.free.extend(pages, fixed);
        Ok(())
    }

    fn make_map(&self, map_page: PageNo) -> Result<(), Error> {
        self.prepare()?;
        let mut map = self.pool.create(map_page, PageKind::SpaceMap, 0, 0);
        format_map(map.bytes_mut(), map_page);
        let mut change = self.wal.change();
        change.new_page(&mut map, OP_MAP_NEW, &[&map_page.0.to_le_bytes()]);
        change.commit(TxnLink::NONE);
        Ok(())
    }

    /// Claims a temporary page.
    pub fn claim_temporary(&self) -> Result<PageNo, Error> {
        let grow = || {
            let now = self.temporary.free.pages();
            let pages = now + (now / 16).clamp(GROWTH_MIN, GROWTH_MAX);
            self.pool.file(PageNo::temporary(0)).grow(pages)?;
            self.temporary.free.extend(pages, |_| false);
            Ok(())
        };
        self.temporary.claim(Share::Ordinary, grow).map(PageNo::temporary)
    }

    /// Returns a temporary page and its frame.
    pub fn free_temporary(&self, page_no: PageNo) {
        debug_assert!(page_no.is_temporary());
        self.pool.discard(page_no);
        self.temporary.free.put(runtime::core(), page_no.index());
    }

    /// The number of pages in the file `pages`, and how many of them are free.
    pub fn pages(&self) -> (u32, u32) {
        (self.durable.free.pages(), self.durable.free.free())
    }

    /// The number of temporary pages, and how many of them are free.
    pub fn temporary_pages(&self) -> (u32, u32) {
        (self.temporary.free.pages(), self.temporary.free.free())
    }

    /// Whether the page's bit is set. For checks. Parks.
    pub fn is_used(&self, page_no: PageNo) -> Result<bool, Error> {
        let (map_page, bit) = map_page_of(page_no);
        Ok(is_set(self.pool.pin(map_page)?.lock_yielding().bytes(), bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_SIZE;

    #[test]
    fn every_group_has_its_map() {
        assert_eq!(map_page_of(PageNo(0)), (PageNo(1), 0));
        assert_eq!(map_page_of(PageNo(1)), (PageNo(1), 1));
        assert_eq!(map_page_of(PageNo(PAGES_PER_MAP - 1)), (PageNo(1), 65279));
        assert_eq!(map_page_of(PageNo(PAGES_PER_MAP + 7)), (PageNo(PAGES_PER_MAP + 1), 7));
    }

    #[test]
    fn redo_follows_what_was_done() {
        let mut bytes = vec![0; PAGE_SIZE];
        assert!(redo(OP_MAP_NEW, &1u32.to_le_bytes(), &mut bytes));
        assert!([0, 1, 2].iter().all(|&bit| is_set(&bytes, bit)) && !is_set(&bytes, 3));
        assert!(redo(OP_MAP_SET, &[3, 0, 0xff, 0xfe], &mut bytes));
        assert!(is_set(&bytes, 3) && is_set(&bytes, 0xfeff));
        assert!(redo(OP_MAP_CLEAR, &[3, 0], &mut bytes));
        assert!(!is_set(&bytes, 3) && is_set(&bytes, 0xfeff));
        assert!(redo(OP_META_NEW, &[], &mut bytes));
        assert!(bytes[HEADER_SIZE..].starts_with(META_MAGIC));
    }

    #[test]
    fn redo_refuses_operations_that_do_not_fit() {
        let mut bytes = vec![0; PAGE_SIZE];
        let before = bytes.clone();
        for (op, payload) in
            [(OP_MAP_SET, &[1][..]), (OP_MAP_SET, &[0xff, 0xff]), (OP_MAP_NEW, &[1]), (99, &[])]
        {
            assert!(!redo(op, payload, &mut bytes));
        }
        assert_eq!(bytes, before);
    }
}
