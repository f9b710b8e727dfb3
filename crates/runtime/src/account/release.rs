//! Gives freed large blocks back to the system beside the cores.
//!
//! To unmap 100 MiB takes the kernel 5 to 20 ms, and the thread that frees them stands still
//! meanwhile. So a core puts a large block into a list, and the thread of [`mod@super::watch`]
//! unmaps it, piece by piece. What must hold:
//!
//! 1. A block in the list counts for the process until it is given back.
//! 2. No session is refused memory while blocks wait in the list: a thread that finds memory short
//!    empties it first.
//! 3. Nothing here allocates, takes a lock or parks. A block is its own entry of the list.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use sync::atomic::{AtomicI64, AtomicPtr, Ordering};

use super::{TAKEN, block, limit, signal};

/// A smaller block is freed where it is, which takes a millisecond or two.
const LARGE: usize = 16 << 20;
/// Up to this size the kept part of a block that shrinks is copied.
const MOVED: usize = 64 << 10;
/// Bytes unmapped at a time. No other thread can map memory meanwhile.
const PIECE: usize = 2 << 20;
const PAGE: usize = 4096;
/// A share of the limit that may wait in the list. A block beyond it is freed where it is.
const SHARE: i64 = 4;

/// The first bytes of a block in the list.
struct Entry {
    next: *mut Entry,
    layout: Layout,
}

static LIST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
/// Bytes of the blocks in the list.
static WAITING: AtomicI64 = AtomicI64::new(0);

/// Frees a block that its thread has subtracted from its sum: at once, or beside the cores where it
/// is large.
///
/// # Safety
/// As [`GlobalAlloc::dealloc`] of the system's allocator.
#[cold]
#[inline(never)]
pub(super) unsafe fn free(start: *mut u8, layout: Layout) {
    let bytes = block(layout.size());
    let entry = start.cast::<Entry>();
    // Relaxed, here and below: sums, which order nothing.
    let fits = || WAITING.load(Ordering::Relaxed) + bytes <= limit() / SHARE;
    if layout.size() < LARGE || !entry.is_aligned() || !fits() || !signal::is_watched() {
        // SAFETY: the caller's contract.
        return unsafe { System.dealloc(start, layout) };
    }
    WAITING.fetch_add(bytes, Ordering::Relaxed);
    TAKEN.fetch_add(bytes, Ordering::Relaxed);
    // Relaxed: what is there is not looked at, only written to the entry.
    let mut next = LIST.load(Ordering::Relaxed);
    loop {
        // SAFETY: the block is larger than an entry and aligned for it (tested above), and nobody
        // else uses it any more.
        unsafe { entry.write(Entry { next, layout }) };
        // Release: the thread that takes the list sees the entry. Relaxed: what was there instead
        // is only written to the entry.
        match LIST.compare_exchange_weak(next, entry, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break,
            Err(now) => next = now,
        }
    }
    signal::released();
}

/// Makes a block smaller, whose thread has subtracted the difference from its sum. The part of a
/// large one that is kept moves where it is small, so that the rest is freed beside the cores.
///
/// # Safety
/// As [`GlobalAlloc::realloc`] of the system's allocator.
#[cold]
#[inline(never)]
pub(super) unsafe fn shrink(start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if layout.size() < LARGE || size > MOVED {
        // SAFETY: the caller's contract.
        return unsafe { System.realloc(start, layout, size) };
    }
    // SAFETY: the caller's contract: the size is not zero, and fits the alignment. The new block is
    // as long as what is copied, which the old one holds, and they are different blocks. The old
    // one is freed once.
    unsafe {
        let moved = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            ptr::copy_nonoverlapping(start, moved, size);
            free(start, layout);
        }
        moved
    }
}

/// Gives back what waits in the list; whether anything did.
pub(super) fn empty() -> bool {
    // Acquire: the entries are seen as they were written. The list is taken as a whole, so no entry
    // is met twice.
    let mut first = LIST.swap(ptr::null_mut(), Ordering::Acquire);
    let any = !first.is_null();
    while !first.is_null() {
        // SAFETY: entries of the list are whole, and the list is this thread's alone since the
        // swap.
        let Entry { next, layout } = unsafe { first.read() };
        // SAFETY: the block was given here by `free`, whose caller's contract it is, and nothing of
        // it is used any more.
        unsafe { give_back(first.cast(), layout) };
        let bytes = block(layout.size());
        // Relaxed: as above.
        WAITING.fetch_sub(bytes, Ordering::Relaxed);
        TAKEN.fetch_sub(bytes, Ordering::Relaxed);
        first = next;
    }
    any
}

/// Frees a block. Its pages go one piece after the other: the kernel lets others map memory in
/// between.
///
/// # Safety
/// As [`GlobalAlloc::dealloc`] of the system's allocator.
unsafe fn give_back(start: *mut u8, layout: Layout) {
    let mut at = start.align_offset(PAGE);
    let end = layout.size().saturating_sub((start.addr() + layout.size()) % PAGE);
    while at < end {
        let length = PIECE.min(end - at);
        // SAFETY: whole pages within the block, whose content nobody wants. A failure leaves them
        // to the call below.
        unsafe { crate::os::mapping::discard(start.add(at), length) };
        at += length;
    }
    // SAFETY: the caller's contract.
    unsafe { System.dealloc(start, layout) };
}
