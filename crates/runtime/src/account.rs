//! Counts memory where it is allocated: by thread, by session, and for the whole process.
//!
//! The executable makes [`Counting`] its global allocator. An allocation adds the size of its block
//! to a plain cell of its thread. Only when the thread has used up its lease (1 MiB) does it write
//! the counter that all threads share. A block's size is what the C library's allocator takes for
//! it ([`block`]): 32 bytes for a value of 8.
//!
//! A session's account is its [`Interrupt`]. While a fiber serves a session, the session pays for
//! the bytes that the thread allocates less those that it frees. `enter` notes the thread's sum,
//! and `leave` adds the difference. Infallible allocations cannot fail. So a session beyond its
//! limit is interrupted ([`Reason::Memory`]), and its statement gives up at the next safe point.
//! Code that builds one large value asks first ([`ask`]). What must hold:
//!
//! 1. The process's sum counts allocated bytes, reserved bytes and those that [`resident`] adds. It
//!    differs from the true sum by at most [`SLACK`] a thread.
//! 2. Nothing here allocates, takes a lock or parks: it runs inside the allocator.
//! 3. Only one thread at a time enters an account, that of its session. The account outlives the
//!    time it is entered for.
//!
//! If an embedding program installs another allocator, nothing is counted and no session is
//! refused.

mod release;
mod reserve;
mod resident;
mod signal;
mod watch;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use sync::atomic::{AtomicI64, AtomicU64, Ordering};
use sync::{CachePadded, core_local};

use crate::interrupt::{Interrupt, Interrupted, Reason};
use crate::os::heap;

pub use crate::groups::available_bytes;

pub(crate) use reserve::Call;
pub use reserve::{Reservation, is_waited_for, reserve};
pub use resident::excess;
pub use watch::watch;

/// Stands for the end of reserved memory in a thread that has reserved none.
const NONE_RESERVED: i64 = i64::MIN;
/// Most calls beside the cores that run at a time.
pub(crate) const CALLS_MAX: usize = 16;
/// Size of the lease that a thread takes from the process's counter, in bytes.
const LEASE: i64 = 1 << 20;
/// Most bytes that a thread has taken or given back without counting them for the process.
const SLACK: i64 = 3 * LEASE;
/// Code does not ask for a smaller value. Instead its statement is stopped at the next safe point.
pub(crate) const ASKED: usize = 64 << 10;
/// After a thread has freed this much since its peak, free memory goes back to the system.
const TRIMMED: i64 = 32 << 20;
/// The same for a thread that has nothing to do.
const TRIMMED_AT_REST: i64 = 4 << 20;
/// Most that a session may hold to go on while memory is short, so that the large ones are stopped
/// first.
const SMALL_MOST: i64 = 4 << 20;
/// The least value of that bound, however many sessions there are. In the worst case each session
/// exceeds the limit by so much.
const SMALL_LEAST: i64 = 64 << 10;
/// A share of the limit that the sessions which go on may hold together.
const SMALL_SHARE: i64 = 4;
/// Blocks of this size and more are mappings of their own, which go back to the system when they
/// are freed.
const MAPPED: i32 = 1 << 20;
/// Free memory at the heap's end that is kept.
const HEAP_END: i32 = 4 << 20;

/// One thread's count, and whose account it works for.
struct Cells {
    /// Bytes allocated less bytes freed by this thread.
    sum: Cell<i64>,
    /// Beyond this the thread needs another lease.
    limit: Cell<i64>,
    /// Below this the thread gives leases back.
    floor: Cell<i64>,
    /// The sum at which the thread has used up what it has reserved, or [`NONE_RESERVED`]: see
    /// [`fn@reserve`].
    reserved: Cell<i64>,
    /// The sum when the account was entered.
    base: Cell<i64>,
    account: Cell<*const Interrupt>,
    /// The highest sum since memory was last given back to the system, by leases.
    peak: Cell<i64>,
}

core_local! {
    static CELLS: Cells = const {
        Cells {
            sum: Cell::new(0),
            limit: Cell::new(0),
            floor: Cell::new(-SLACK),
            reserved: Cell::new(NONE_RESERVED),
            base: Cell::new(0),
            account: Cell::new(ptr::null()),
            peak: Cell::new(0),
        }
    };
}

/// Bytes that threads hold as leases. This is the process's sum, at most [`SLACK`] a thread too
/// high or too low. Padded: every lease writes it, and the linker puts statics that every
/// transaction reads next to it.
static TAKEN: CachePadded<AtomicI64> = CachePadded::new(AtomicI64::new(0));
/// Limit of all sessions together, in bytes; none until it is set.
static LIMIT: AtomicU64 = AtomicU64::new(i64::MAX as u64);

/// A session that holds more is stopped or refused while memory is short; set by [`share_among`].
static SMALL: AtomicI64 = AtomicI64::new(SMALL_MOST);

/// The system's allocator, counting.
#[derive(Debug, Clone, Copy)]
pub struct Counting;

// SAFETY: every call is the system allocator's, with the layout given; counting touches plain cells
// and atomics only.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the system allocator's.
        counted(block(layout.size()), unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        counted(block(layout.size()), unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if subtract(block(layout.size())) {
            // SAFETY: as above.
            unsafe { System.dealloc(start, layout) }
        } else {
            give_back(layout.size());
            // SAFETY: as above.
            unsafe { release::free(start, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = block(size) - block(layout.size());
        if more >= 0 {
            // SAFETY: as above.
            return counted(more, unsafe { System.realloc(start, layout, size) });
        }
        if !subtract(-more) {
            give_back(0);
            // SAFETY: as above.
            return unsafe { release::shrink(start, layout, size) };
        }
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }
}

/// Counts the bytes of an allocation, unless it failed.
#[inline(always)]
fn counted(bytes: i64, start: *mut u8) -> *mut u8 {
    if !start.is_null() {
        add(bytes);
    }
    start
}

/// Bytes that glibc's allocator takes for a value of this size: a head of 8 bytes more, in steps of
/// 16, and at least 32.
#[inline(always)]
const fn block(size: usize) -> i64 {
    let taken = (size + 23) & !15;
    if taken < 32 { 32 } else { taken as i64 }
}

#[inline(always)]
fn add(bytes: i64) {
    CELLS.with(|cells| {
        let sum = cells.sum.get() + bytes;
        cells.sum.set(sum);
        if sum > cells.limit.get() {
            take(cells);
        }
    });
}

/// Returns false if the thread has leases to give back, as after any block of 3 MiB. So only then
/// does the thread look at what it has freed.
#[inline(always)]
fn subtract(bytes: i64) -> bool {
    CELLS.with(|cells| {
        let sum = cells.sum.get() - bytes;
        cells.sum.set(sum);
        sum >= cells.floor.get()
    })
}

/// Moves the thread's lease to its sum, or to the end of its reservation if that is higher. Returns
/// the process's sum.
fn lease(cells: &Cells) -> i64 {
    let sum = cells.sum.get();
    let (before, now) = (cells.limit.get(), sum.max(cells.reserved.get()) + LEASE);
    cells.limit.set(now);
    cells.floor.set(sum + LEASE - SLACK);
    // Relaxed: a sum, which orders nothing.
    let taken = TAKEN.fetch_add(now - before, Ordering::Relaxed) + now - before;
    if taken > limit() / 2 {
        signal::much();
    }
    taken
}

/// Takes a lease. Interrupts the running session if it has passed its limit, or holds much while
/// the process is short.
#[cold]
#[inline(never)]
fn take(cells: &Cells) {
    let taken = lease(cells);
    cells.peak.set(cells.peak.get().max(cells.sum.get()));
    let short = taken > limit() && (!release::empty() || is_short());
    // The watch sees this while the statement still runs.
    if let Some(account) = note_in(cells) {
        let held = account.held_in_all();
        if held > account.memory_limit() || short && is_large(held) {
            account.overdraw();
        }
    }
    if short {
        signal::pressure();
    }
}

/// Gives leases back, and asks for a trim if the thread has freed much. A freed block that is a
/// mapping of its own does not count: the system has it back.
#[cold]
#[inline(never)]
fn give_back(block: usize) {
    CELLS.with(|cells| {
        lease(cells);
        // Only notes the account: freeing memory never stops a call or a statement.
        note_in(cells);
        if block >= MAPPED as usize {
            cells.peak.set(cells.peak.get() - block as i64);
        }
        trim(cells, TRIMMED);
    });
}

/// Asks for a trim when the thread has freed more than this since its peak.
fn trim(cells: &Cells, most: i64) {
    if cells.peak.get() - cells.sum.get() > most {
        cells.peak.set(cells.sum.get());
        signal::freed();
    }
}

/// Asks for a trim where a thread that has nothing to do would keep free memory.
pub(crate) fn rest() {
    CELLS.with(|cells| trim(cells, TRIMMED_AT_REST));
}

/// Charges the thread's allocations to this account from now on. It must outlive the matching
/// [`leave`]; null charges nobody.
#[inline(always)]
pub(crate) fn enter(account: *const Interrupt) {
    CELLS.with(|cells| {
        cells.account.set(account);
        cells.base.set(cells.sum.get());
    });
}

/// Counts memory that the allocator does not know. It is the stack of a fiber that suspends while
/// it serves a session, or replies that the kernel holds.
#[cold]
pub(crate) fn keep(bytes: usize) {
    add(bytes as i64);
}

/// Takes back what [`keep`] counted.
#[cold]
pub(crate) fn keep_no_more(bytes: usize) {
    if !subtract(bytes as i64) {
        give_back(0);
    }
}

/// Ends the thread's work for its account. Returns that account.
#[inline(always)]
pub(crate) fn leave() -> *const Interrupt {
    CELLS.with(|cells| {
        let entered = cells.account.replace(ptr::null());
        // SAFETY: an entered account outlives the time it is entered for.
        if let Some(account) = unsafe { entered.as_ref() } {
            account.set_held(account.held() + cells.sum.get() - cells.base.get());
        }
        entered
    })
}

/// Runs `body` and charges its allocations to this account, whichever is entered.
pub(crate) fn charged_to<R>(account: &Arc<Interrupt>, body: impl FnOnce() -> R) -> R {
    let before = leave();
    enter(Arc::as_ptr(account));
    let done = body();
    leave();
    enter(before);
    done
}

/// Runs `body`, whose allocations count for the process alone.
pub fn charged_to_nobody(body: impl FnOnce()) {
    let before = leave();
    body();
    enter(before);
}

/// The account that is entered.
pub(crate) fn current() -> Option<Arc<Interrupt>> {
    let account = CELLS.with(|cells| cells.account.get());
    if account.is_null() {
        return None;
    }
    // SAFETY: an account is entered by a pointer from `Arc::as_ptr`, and its owner outlives the
    // time it is entered for. So the count is at least one here, and the new owner gets the one
    // added.
    Some(unsafe {
        Arc::increment_strong_count(account);
        Arc::from_raw(account)
    })
}

/// Notes the bytes that the entered account holds now, for readers on other threads.
pub(crate) fn note() {
    CELLS.with(|cells| {
        note_in(cells);
    });
}

/// As [`note`]; the account.
fn note_in(cells: &Cells) -> Option<&Interrupt> {
    // SAFETY: an entered account outlives the time it is entered for.
    let account = unsafe { cells.account.get().as_ref() }?;
    let sum = cells.sum.get();
    account.note_held(account.held() + sum - cells.base.replace(sum));
    Some(account)
}

/// Bytes the session that runs holds; 0 where none does.
pub fn held() -> i64 {
    CELLS.with(|cells| {
        // SAFETY: an entered account outlives the time it is entered for.
        let account = unsafe { cells.account.get().as_ref() };
        account.map_or(0, |account| account.held() + cells.sum.get() - cells.base.get())
    })
}

/// Adds what another thread allocated for the session that runs.
pub(crate) fn take_over(bytes: i64) {
    CELLS.with(|cells| cells.base.set(cells.base.get() - bytes));
}

/// Sets the bytes that the running session holds. Shared plans and definitions need this: one
/// session allocates and another frees them, so the difference would add up in both accounts.
#[inline]
pub fn settle(bytes: i64) {
    CELLS.with(|cells| {
        // SAFETY: an entered account outlives the time it is entered for.
        if let Some(account) = unsafe { cells.account.get().as_ref() } {
            account.set_held(bytes);
            cells.base.set(cells.sum.get());
        }
    });
}

/// Runs `body`. Returns its result, and the bytes by which the running session's memory grew.
pub fn measure<R>(body: impl FnOnce() -> R) -> (R, usize) {
    let before = held();
    let done = body();
    (done, usize::try_from(held() - before).unwrap_or(0))
}

/// Asks for the memory of a value before it is built.
///
/// # Errors [`Reason::Memory`] if the session or the process may not have so much more. Values
/// below 64 KiB are always granted. While the process is short, a session that holds little still
/// gets a little, so that large ones are stopped first.
#[inline]
pub fn ask(bytes: usize) -> Result<(), Interrupted> {
    if bytes < ASKED { Ok(()) } else { ask_now(bytes) }
}

#[cold]
fn ask_now(bytes: usize) -> Result<(), Interrupted> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let fits = || {
        room().is_none_or(|room| {
            let small = !is_large(room.held.saturating_add(bytes));
            bytes <= room.own && (small || bytes <= room.whole)
        })
    };
    if fits() || release::empty() && fits() { Ok(()) } else { Err(Interrupted(Reason::Memory)) }
}

/// Whether the running session may keep memory beyond its statement. False while the process is
/// short of memory and the session holds much already.
pub fn may_keep() -> bool {
    !is_short() || !is_large(held())
}

/// Bytes that a session holds, and that it and the process may still take.
struct Room {
    held: i64,
    own: i64,
    whole: i64,
}

/// `None` if the thread has entered no account.
fn room() -> Option<Room> {
    CELLS.with(|cells| {
        // SAFETY: an entered account outlives the time it is entered for.
        let account = unsafe { cells.account.get().as_ref() }?;
        let held = account.held_in_all() + cells.sum.get() - cells.base.get();
        // Relaxed: a sum, which orders nothing.
        let whole = limit().saturating_sub(TAKEN.load(Ordering::Relaxed));
        Some(Room { held, own: account.memory_limit().saturating_sub(held), whole })
    })
}

/// Bytes the running session may still have by its own limit.
pub(crate) fn left_to_session() -> i64 {
    room().map_or(i64::MAX, |room| room.own.max(0))
}

/// Bytes that the running session may still take. `None` if the thread has entered no account.
pub fn left() -> Option<u64> {
    room().map(|room| u64::try_from(room.own.min(room.whole)).unwrap_or(0))
}

/// Bytes that all threads have allocated or reserved and not freed, plus [`excess`]. Wrong by at
/// most [`SLACK`] a thread.
pub fn taken() -> u64 {
    // Relaxed: a sum, which orders nothing.
    u64::try_from(TAKEN.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bounds the bytes of all sessions together, and sets up the system's allocator to give freed
/// memory back.
pub fn set_limit(bytes: u64) {
    // Relaxed: set before there are sessions; a number that orders nothing.
    LIMIT.store(bytes.min(i64::MAX as u64), Ordering::Relaxed);
    heap::configure(MAPPED, HEAP_END);
}

/// Limit of all sessions together, in bytes.
pub fn limit() -> i64 {
    // Relaxed: a number that orders nothing.
    LIMIT.load(Ordering::Relaxed) as i64
}

/// Whether more is taken than the limit.
pub fn is_short() -> bool {
    // Relaxed: a sum, which orders nothing.
    TAKEN.load(Ordering::Relaxed) > limit()
}

/// Whether a session that holds so much may be stopped while memory is short.
pub fn is_large(held: i64) -> bool {
    // Relaxed: a number that orders nothing.
    held > SMALL.load(Ordering::Relaxed)
}

/// Sets what counts as large by the number of sessions. The sessions that go on while memory is
/// short hold at most a quarter of the limit together.
pub fn share_among(sessions: usize) {
    let sessions = i64::try_from(sessions).unwrap_or(i64::MAX).max(1);
    let share = limit() / SMALL_SHARE / sessions;
    // Relaxed: as in `is_large`.
    SMALL.store(share.clamp(SMALL_LEAST, SMALL_MOST), Ordering::Relaxed);
}
