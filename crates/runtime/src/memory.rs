//! Big memory: frames on huge pages, and reserved arrays that are backed as they are touched.

use std::io;
use std::ops::Range;

use sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::device::Purpose;
use crate::groups;
use crate::os::mapping::{self, advise_huge, discard, map};

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
const GIGANTIC_PAGE: usize = 1 << 30;

/// Whether huge pages are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HugePages {
    /// Explicit huge pages if granted, else transparent ones, else ordinary ones.
    #[default]
    Try,
    /// Explicit huge pages, or an error.
    On,
    /// Ordinary pages.
    Off,
}

/// The kind of pages that a region was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionKind {
    /// 1 GiB pages from the kernel's pool.
    Gigantic,
    /// 2 MiB pages from the kernel's pool.
    Huge,
    /// Ordinary pages the kernel was asked to merge into huge ones.
    Transparent,
    /// Ordinary pages.
    Ordinary,
}

impl RegionKind {
    /// Whether the pages come from the kernel's pool of huge pages. They are neither swapped out
    /// nor counted as resident.
    pub fn is_explicit(self) -> bool {
        matches!(self, RegionKind::Gigantic | RegionKind::Huge)
    }

    /// Bytes that one touch may have to bring in.
    pub fn page_bytes(self) -> usize {
        match self {
            RegionKind::Gigantic => GIGANTIC_PAGE,
            RegionKind::Huge | RegionKind::Transparent => HUGE_PAGE,
            RegionKind::Ordinary => PAGE,
        }
    }

    /// Its name for a person.
    pub fn name(self) -> &'static str {
        match self {
            RegionKind::Gigantic => "huge pages of 1 GiB",
            RegionKind::Huge => "huge pages of 2 MiB",
            RegionKind::Transparent => "transparent huge pages",
            RegionKind::Ordinary => "ordinary pages",
        }
    }
}

/// From which NUMA nodes a region's pages come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// From several nodes in turn: [`interleave`] has asked for it, and the kernel grants it.
    Interleaved,
    /// By the policy of the process, which an operator has given it, as `numactl` and `--node` do.
    Operator,
    /// From the node of the thread that touches a page first.
    None,
}

impl Policy {
    /// Its name for a person.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Interleaved => "interleaved",
            Policy::Operator => "operator",
            Policy::None => "none",
        }
    }
}

/// Huge pages of 2 MiB that hold regions of so many bytes.
pub fn huge_pages_for(regions: &[usize]) -> usize {
    regions.iter().map(|bytes| bytes.div_ceil(HUGE_PAGE)).sum()
}

/// Zeroed anonymous memory, mapped until dropped.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    len: usize,
    kind: RegionKind,
}

// SAFETY: a region is only an address range; who may touch which byte is up to its owner.
unsafe impl Send for Region {}
// SAFETY: as above: it gives out a raw pointer only.
unsafe impl Sync for Region {}

impl Region {
    /// Memory for `bytes` (rounded up to whole pages of the kind granted). Pages of 1 GiB are asked
    /// for where `bytes` fills them.
    ///
    /// # Errors
    /// Where the system has no address space, or refuses the huge pages that must be.
    pub fn frames(bytes: usize, pages: HugePages) -> io::Result<Region> {
        if pages == HugePages::Off {
            let len = bytes.max(1).next_multiple_of(PAGE);
            let start = map(len, Purpose::Pages)?;
            // SAFETY: our own new mapping; advice changes no contents. A kernel that takes none of
            // it has no huge pages to give.
            let _ = unsafe { advise_huge(start, len, false) };
            return Ok(Region { start, len, kind: RegionKind::Ordinary });
        }
        let len = bytes.max(1).next_multiple_of(HUGE_PAGE);
        if len.is_multiple_of(GIGANTIC_PAGE)
            && let Ok(start) = map_explicit(len, GIGANTIC_PAGE)
        {
            return Ok(Region { start, len, kind: RegionKind::Gigantic });
        }
        match map_explicit(len, HUGE_PAGE) {
            Ok(start) => return Ok(Region { start, len, kind: RegionKind::Huge }),
            Err(error) if pages == HugePages::On => return Err(error),
            Err(_) => {}
        }
        let (start, kind) = map_transparent(len)?;
        Ok(Region { start, len, kind })
    }

    /// As [`Region::frames`], in transparent huge pages where the kernel has them. Those of its
    /// pool are left to frames.
    ///
    /// # Errors
    /// Where the system has no address space.
    pub fn beside_frames(bytes: usize, pages: HugePages) -> io::Result<Region> {
        if pages == HugePages::Off {
            return Region::frames(bytes, pages);
        }
        let len = bytes.max(1).next_multiple_of(HUGE_PAGE);
        let (start, kind) = map_transparent(len)?;
        Ok(Region { start, len, kind })
    }

    /// First byte: aligned to the page size.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// The kind of pages that it was granted.
    pub fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Bytes of a part behind which memory stands, by whole pages. The first access to a page
    /// without memory takes a page fault.
    pub fn present(&self, part: Range<usize>) -> usize {
        assert!(part.start <= part.end && part.end <= self.len, "{part:?} of {}", self.len);
        present(self.start, part)
    }

    /// Makes every page of a part present without changing it. Others may use the part meanwhile.
    ///
    /// By faults and not by `MADV_POPULATE_WRITE`, which keeps the whole address space locked
    /// meanwhile: threads and stacks of fibers could not be made. Ordinary steps where huge pages
    /// are a wish, since the kernel need not grant it.
    pub fn touch(&self, part: Range<usize>) {
        assert!(part.start <= part.end && part.end <= self.len, "{part:?} of {}", self.len);
        let step = if self.kind.is_explicit() { HUGE_PAGE } else { PAGE };
        // From the beginning of the first page on, so that no step passes over the last page.
        touch(self.start, part.start / step * step..part.end, step);
    }
}

/// Keeps all of these regions' memory from being swapped out, from its first touch on. Memory that
/// nobody has touched stays free. The kernel never swaps explicit huge pages out, but would count
/// them against the limit.
///
/// # Errors
/// Why none of them is kept.
pub fn lock(regions: &[&Region]) -> Result<(), String> {
    let regions: Vec<&Region> = regions.iter().copied().filter(|one| !one.kind.is_explicit()).collect();
    let bytes: usize = regions.iter().map(|region| region.len).sum();
    for (at, region) in regions.iter().enumerate() {
        if let Err(error) = mapping::lock(region.start, region.len) {
            regions[..at].iter().for_each(|region| mapping::unlock(region.start, region.len));
            // The kernel's two ways to say that the limit is too low.
            let is_limit =
                matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::PermissionDenied);
            return Err(match mapping::lock_limit().filter(|_| is_limit) {
                Some(limit) => format!(
                    "RLIMIT_MEMLOCK allows {} KiB, {} KiB are needed (ulimit -l, LimitMEMLOCK=)",
                    limit >> 10,
                    bytes.div_ceil(1 << 10)
                ),
                None => error.to_string(),
            });
        }
    }
    Ok(())
}

/// Has the memory of regions that all cores use come from these NUMA nodes in turn, page by page.
/// Otherwise each page is on the node whose thread touched it first. A region that one thread fills
/// is then on one node, whose memory serves all cores. It does nothing without nodes. Where the
/// kernel refuses, a line of the log says so.
///
/// Returns for each region whether the kernel grants it.
pub fn interleave<const N: usize>(nodes: &[usize], what: &str, regions: [&dyn Spread; N]) -> [bool; N] {
    if nodes.is_empty() {
        return [false; N];
    }
    let spread = |region: &dyn Spread| {
        let (start, len) = region.range();
        mapping::interleave(start, len, nodes)
    };
    // All are tried, also behind one that is refused.
    let spread = regions.map(spread);
    if let Some(error) = spread.iter().find_map(|spread| spread.as_ref().err()) {
        log::warn!("{what} are not spread over the NUMA nodes, since the kernel refuses: {error}");
    }
    spread.map(|spread| spread.is_ok())
}

/// Memory that [`interleave`] can spread.
pub trait Spread: sealed::Sealed {
    /// Its first byte, and its length.
    fn range(&self) -> (*mut u8, usize);
}

impl sealed::Sealed for Region {}

impl Spread for Region {
    fn range(&self) -> (*mut u8, usize) {
        (self.start, self.len)
    }
}

impl<T: ZeroAtomic> sealed::Sealed for AtomicArray<T> {}

impl<T: ZeroAtomic> Spread for AtomicArray<T> {
    fn range(&self) -> (*mut u8, usize) {
        (self.start.cast(), mapped_bytes::<T>(self.len))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.kind.is_explicit() {
            // Relaxed: a sum.
            explicit(self.kind.page_bytes()).fetch_sub(self.len, Ordering::Relaxed);
        }
        unmap(self.start, self.len);
    }
}

/// Makes each page present without changing it.
fn touch(start: *mut u8, range: Range<usize>, step: usize) {
    for offset in range.step_by(step) {
        // SAFETY: the caller's range is inside its mapping. Exchanging zero for zero changes
        // nothing even if somebody writes there at the same time, and is a write to the machine (an
        // add of zero is left out by the compiler).
        let word = unsafe { AtomicU32::from_ptr(start.add(offset).cast()) };
        // Relaxed: no order.
        let _ = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Bytes of a range behind which memory stands, by whole pages.
fn present(start: *const u8, range: Range<usize>) -> usize {
    let pages = range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE);
    mapping::present(start.wrapping_add(pages.start), pages.len()).min(range.len())
}

/// Bytes of explicit huge pages of this size that this process has mapped.
fn explicit(page: usize) -> &'static AtomicUsize {
    static MAPPED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    &MAPPED[usize::from(page == GIGANTIC_PAGE)]
}

/// Maps explicit huge pages of this size. The kernel grants also those that a control group
/// forbids, and ends the process at the first touch of one too many. So the limit is looked up
/// before. Another process of the group can still take what is left before it is touched here.
fn map_explicit(len: usize, page: usize) -> io::Result<*mut u8> {
    // Relaxed: a sum. Buffers are mapped by one thread.
    let needed = explicit(page).load(Ordering::Relaxed) + len;
    if let Some(limit) = groups::huge_page_limit(page).filter(|limit| *limit < needed as u64) {
        return Err(io::Error::other(format!(
            "the control group still allows {} MiB of huge pages of {} MiB, {} MiB are needed",
            limit >> 20,
            page >> 20,
            needed >> 20
        )));
    }
    let start = map(len, Purpose::HugePages(page.ilog2()))?;
    explicit(page).fetch_add(len, Ordering::Relaxed);
    Ok(start)
}

/// Maps memory for which the kernel is asked to use huge pages, where it has them.
fn map_transparent(len: usize) -> io::Result<(*mut u8, RegionKind)> {
    // An aligned start lets the kernel use huge pages from the first byte on.
    let start = map_aligned(len, HUGE_PAGE)?;
    // SAFETY: our own new mapping; advice changes no contents.
    let advised = unsafe { advise_huge(start, len, true) };
    Ok((start, if advised { RegionKind::Transparent } else { RegionKind::Ordinary }))
}

/// Maps more and gives back what is before and after the aligned part.
fn map_aligned(len: usize, alignment: usize) -> io::Result<*mut u8> {
    let start = map(len + alignment, Purpose::Pages)?;
    let before = start.align_offset(alignment);
    // SAFETY: `before` is below `alignment`, so the aligned part lies inside the mapping.
    let aligned = unsafe { start.add(before) };
    if before > 0 {
        unmap(start, before);
    }
    if before < alignment {
        // SAFETY: the end of the aligned part is inside the mapping.
        unmap(unsafe { aligned.add(len) }, alignment - before);
    }
    Ok(aligned)
}

fn unmap(start: *mut u8, len: usize) {
    // SAFETY: called with parts of mappings made here that nothing refers to any more.
    unsafe { mapping::unmap(start, len) };
}

/// The atomics an [`AtomicArray`] may hold: valid when all their bytes are zero.
pub trait ZeroAtomic: sealed::Sealed + Send + Sync + 'static {
    /// Sets it to zero.
    fn clear(&self);
}

mod sealed {
    /// Only the types of this crate's choice.
    pub trait Sealed {}
    impl Sealed for super::AtomicU32 {}
    impl Sealed for super::AtomicU64 {}
}

impl ZeroAtomic for AtomicU32 {
    fn clear(&self) {
        // Relaxed: the release orders it, as for the pages given back whole.
        self.store(0, Ordering::Relaxed);
    }
}

impl ZeroAtomic for AtomicU64 {
    fn clear(&self) {
        self.store(0, Ordering::Relaxed); // Relaxed: as above
    }
}

/// A zeroed array of atomics in reserved virtual memory, backed lazily.
#[derive(Debug)]
pub struct AtomicArray<T: ZeroAtomic> {
    start: *mut T,
    len: usize,
    kind: RegionKind,
}

// SAFETY: shared access gives `&T` to atomics only.
unsafe impl<T: ZeroAtomic> Send for AtomicArray<T> {}
// SAFETY: as above.
unsafe impl<T: ZeroAtomic> Sync for AtomicArray<T> {}

impl<T: ZeroAtomic> AtomicArray<T> {
    /// Reserves room for `len` zeroed elements.
    pub fn reserve(len: usize) -> io::Result<Self> {
        let start = map(Self::bytes(len)?, Purpose::Pages)?;
        Ok(Self { start: start.cast(), len, kind: RegionKind::Ordinary })
    }

    /// As [`AtomicArray::reserve`], in transparent huge pages where the kernel has them. Pages of
    /// its pool would have to be reserved for all of the room.
    pub fn reserve_huge(len: usize) -> io::Result<Self> {
        let (start, kind) = map_transparent(Self::bytes(len)?)?;
        Ok(Self { start: start.cast(), len, kind })
    }

    /// Bytes to map for `len` elements.
    fn bytes(len: usize) -> io::Result<usize> {
        len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(mapped_bytes::<T>(len))
    }

    /// Bytes of the first `len` elements behind which memory stands, by whole pages.
    pub fn present(&self, len: usize) -> usize {
        assert!(len <= self.len, "{len} of {}", self.len);
        present(self.start.cast(), 0..len * size_of::<T>())
    }

    /// The kind of its pages.
    pub fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Makes the memory of the first `len` elements present without changing it.
    pub fn touch(&self, len: usize) {
        assert!(len <= self.len, "{len} of {}", self.len);
        touch(self.start.cast(), 0..len * size_of::<T>(), PAGE);
    }

    /// Element `index`. Panics out of bounds.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        assert!(index < self.len, "index {index} of {}", self.len);
        // SAFETY: inside the mapping, which lives as long as `self`, holds zeroes or what the
        // atomics wrote, and is aligned.
        unsafe { &*self.start.add(index) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives memory back: elements of the range read zero again (whole pages only; the rest is set
    /// to zero singly).
    pub fn release(&self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let each_page = PAGE / size_of::<T>();
        let pages = range.start.next_multiple_of(each_page)..range.end / each_page * each_page;
        if pages.start >= pages.end {
            range.for_each(|index| self.get(index).clear());
            return;
        }
        (range.start..pages.start).chain(pages.end..range.end).for_each(|index| self.get(index).clear());
        // SAFETY: whole pages inside our mapping. They read zero afterwards, which is a value of
        // `T`; a concurrent reader or writer sees stores of zero.
        let released = unsafe {
            let start = self.start.add(pages.start);
            discard(start.cast(), pages.len() * size_of::<T>())
        };
        if !released {
            pages.for_each(|index| self.get(index).clear());
        }
    }
}

impl<T: ZeroAtomic> Drop for AtomicArray<T> {
    fn drop(&mut self) {
        unmap(self.start.cast(), mapped_bytes::<T>(self.len));
    }
}

/// Bytes mapped for `len` elements.
fn mapped_bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).max(1).next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_zeroed_writable_and_aligned() {
        for pages in [HugePages::Try, HugePages::Off] {
            let region = Region::frames(50 << 20, pages).unwrap();
            assert!(region.len() >= 50 << 20);
            region.touch(2 << 20..region.len());
            let present = region.present(0..region.len());
            assert!((region.len() - (2 << 20)..=region.len()).contains(&present), "{present} bytes");
            let part = PAGE - 1..PAGE + 1;
            region.touch(part.clone());
            assert_eq!(region.present(part), 2, "both pages of two bytes");
            region.touch(0..region.len());
            assert_eq!(region.present(0..region.len()), region.len(), "not every page is there");
            let alignment = if pages == HugePages::Try { HUGE_PAGE } else { PAGE };
            assert!(region.as_ptr().addr().is_multiple_of(alignment));
            // SAFETY: inside the region, which nobody else uses.
            unsafe {
                let last = region.as_ptr().add(region.len() - 1);
                assert_eq!(*last, 0);
                *last = 7;
                assert_eq!(*last, 7);
            }
        }
    }

    #[test]
    #[cfg(not(model))] // it has no nodes
    fn regions_are_spread_over_nodes() {
        let region = Region::frames(4 << 20, HugePages::Try).unwrap();
        let array = AtomicArray::<AtomicU32>::reserve_huge(1 << 20).unwrap();
        let of = |start: *mut u8| mapping::is_interleaved(start);
        assert_eq!(interleave(&[], "regions", [&region, &array]), [false; 2]);
        match of(region.as_ptr()) {
            Ok(is_spread) => assert!(!is_spread, "without nodes nothing changes"),
            Err(error) => return println!("skipped: the kernel does not say where memory is: {error}"),
        }
        // A page that is there is no obstacle.
        region.touch(0..PAGE);
        // Node 0 is there on every machine, if the kernel knows nodes and lets us ask.
        if let Err(error) = mapping::interleave(region.as_ptr(), region.len(), &[0]) {
            return println!("skipped: the kernel spreads no memory: {error}");
        }
        assert_eq!(interleave(&[0], "regions", [&region, &array]), [true; 2]);
        let last = array.range().0.wrapping_add(array.range().1 - 1);
        let last = last.map_addr(|address| address / PAGE * PAGE);
        for page in [region.as_ptr(), array.range().0, last] {
            assert!(of(page).unwrap());
        }
        region.touch(0..region.len());
        array.touch(array.len());
        assert_eq!(region.present(0..region.len()), region.len());
        // A node that no machine has is refused, and the memory serves as before.
        assert_eq!(interleave(&[1023], "regions", [&region]), [false]);
        assert!(of(region.as_ptr()).unwrap());
    }

    #[test]
    fn an_array_is_lazy_and_released_parts_read_zero() {
        let array = AtomicArray::<AtomicU64>::reserve(1 << 30).unwrap();
        let touched = [0, 511, 512, 5000, 10_239, 10_240, (1 << 30) - 1];
        touched.iter().for_each(|&index| array.get(index).store(9, Ordering::Relaxed));
        array.release(511..10_240);
        let left: Vec<u64> = touched.iter().map(|&index| array.get(index).load(Ordering::Relaxed)).collect();
        assert_eq!(left, [9, 0, 0, 0, 0, 9, 9]);
        array.release(0..1);
        assert_eq!(array.get(0).load(Ordering::Relaxed), 0);
    }
}
