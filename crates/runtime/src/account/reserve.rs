//! Memory reserved ahead, for work that can't be counted or stopped while it runs: PostgreSQL's
//! parser is C code.
//!
//! A reservation counts for the process at once. It lengthens the lease of its thread, and the
//! thread's own allocations then use it up, so that nothing is counted twice. What must hold:
//!
//! 1. Reservations fit the process's limit, but for those of sessions that hold little, and at most
//!    [`AT_ONCE`] are held at a time: half of the threads beside the cores stay free of them.
//! 2. No thread waits for memory. Work with a budget ends, and begins anew beside the core. A call
//!    beside the cores ends ([`Call`]), its fiber waits, in order, and the call begins anew with all
//!    that it lacked. So whoever waits holds no reservation, and the others come to their end.
//! 3. A call is refused where it would not fit an idle server, and where no reservation is left
//!    whose end could make room.
//! 4. A call that holds a reservation and asks for another (an expression of the catalog is parsed
//!    for a statement) uses up its own, and gets the rest at once where it fits, whoever waits.
//! 5. A call's reservation lasts until the heaps have been trimmed: each of some threads would
//!    otherwise keep, in a heap of its own, what it has freed and nobody counts.

use std::cell::Cell;
use std::marker::PhantomData;

use sync::atomic::{AtomicBool, Ordering};
use sync::{SpinLock, WaitQueue};

use super::{CELLS, LEASE, NONE_RESERVED, TAKEN, ask, is_large, lease, limit, release, room, watch};
use crate::aside;
use crate::interrupt::{self, Interrupted, Reason};
use crate::work::{self, Stopped};

/// Most reservations that are held at a time, but for those of sessions that hold little.
const AT_ONCE: usize = aside::THREADS_MAX / 2;

/// Memory that is the running thread's until this is dropped. A thread drops its reservations in the
/// reverse of their order.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    /// The sum up to which the thread had reserved memory before; None where nothing is reserved.
    before: Option<i64>,
    /// It stays on its thread.
    here: PhantomData<*const ()>,
}

/// The reservations that are held.
struct Held {
    /// Reservations, with those that have ended and last until the heaps are trimmed.
    count: usize,
    ended: Ended,
}

/// Reservations that have ended: how many, and the bytes that still count for them.
struct Ended {
    count: usize,
    bytes: i64,
}

impl Ended {
    const NONE: Ended = Ended { count: 0, bytes: 0 };
}

static HELD: SpinLock<Held> = SpinLock::new(Held { count: 0, ended: Ended::NONE });
/// A fiber is the first of those that wait.
static FIRST: AtomicBool = AtomicBool::new(false);
/// The fibers behind it.
static OTHERS: WaitQueue = WaitQueue::new();
/// Where the first one waits for a reservation to end.
static ENDS: WaitQueue = WaitQueue::new();

thread_local! {
    /// The call of this thread that can begin anew.
    static CALL: Cell<Option<Progress>> = const { Cell::new(None) };
}

/// How far a call is that can begin anew.
#[derive(Clone, Copy)]
struct Progress {
    /// The thread's sum when the call began.
    begun: i64,
    /// Bytes that the call needs from its beginning on, once it has found that it lacks some.
    needs: Option<i64>,
}

/// What becomes of a reservation that is asked for.
enum Attempt {
    Granted,
    Refused,
    /// It may fit when another reservation has ended.
    Later,
}

/// Reserves so many bytes for what the running thread does next for its session. Less than 1 MiB is
/// asked for, as by [`ask`], and not reserved.
///
/// # Errors
/// [`Reason::Memory`] where the session or the process can't have so much. [`Stopped::Budget`]
/// where work that can begin anew would have to wait: it has a budget, or is a [`Call`].
pub fn reserve(bytes: usize) -> Result<Reservation, Stopped> {
    let refused = Stopped::Interrupted(Interrupted(Reason::Memory));
    let asked = i64::try_from(bytes).unwrap_or(i64::MAX);
    let Some(room) = room().filter(|_| asked >= LEASE) else {
        ask(bytes).map_err(Stopped::Interrupted)?;
        return Ok(Reservation { before: None, here: PhantomData });
    };
    if asked > room.own || asked > limit() {
        return Err(refused);
    }
    let (sum, reserved) = CELLS.with(|cells| (cells.sum.get(), cells.reserved.get()));
    let wanted = asked - reserved.saturating_sub(sum).max(0);
    if wanted <= 0 {
        return Ok(Reservation { before: None, here: PhantomData });
    }
    let is_small = !is_large(room.held.saturating_add(asked));
    let may = is_small || reserved != NONE_RESERVED || !is_waited_for();
    match if may { attempt(wanted, is_small) } else { Attempt::Later } {
        Attempt::Granted => return Ok(hold(wanted)),
        Attempt::Refused => return Err(refused),
        Attempt::Later => {}
    }
    if work::has_budget() {
        work::use_up();
        return Err(Stopped::Budget);
    }
    let Some(progress) = CALL.get() else { return Err(refused) };
    let needs = (sum - progress.begun).saturating_add(asked);
    CALL.set(Some(Progress { needs: Some(needs), ..progress }));
    Err(Stopped::Budget)
}

/// Counts so many bytes for the process, where they fit or are those of a session that holds little.
fn attempt(bytes: i64, is_small: bool) -> Attempt {
    // Relaxed, here and below: a sum, which orders nothing.
    let longer = |taken: i64| (is_small || taken.saturating_add(bytes) <= limit()).then_some(taken + bytes);
    if longer(TAKEN.load(Ordering::Relaxed)).is_none() {
        release::empty();
    }
    let mut held = HELD.lock();
    let fits = (is_small || held.count < AT_ONCE)
        && TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, longer).is_ok();
    if fits {
        held.count += 1;
        Attempt::Granted
    } else if held.count == 0 {
        Attempt::Refused
    } else {
        Attempt::Later
    }
}

/// Gives the running thread what has been counted for the process.
fn hold(bytes: i64) -> Reservation {
    let before = CELLS.with(|cells| {
        cells.limit.set(cells.limit.get() + bytes);
        let until = cells.sum.get().max(cells.reserved.get()) + bytes;
        cells.reserved.replace(until)
    });
    Reservation { before: Some(before), here: PhantomData }
}

/// So many reservations are held no longer.
fn end(count: usize) {
    HELD.lock().count -= count;
    ENDS.wake_one();
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        let trimmed = aside::is_call() && watch::is_watched();
        let bytes = CELLS.with(|cells| {
            cells.reserved.set(before);
            let lasts = (cells.limit.get() - cells.sum.get().max(before) - LEASE).max(0);
            if trimmed {
                cells.limit.set(cells.limit.get() - lasts);
            }
            lease(cells);
            lasts
        });
        if trimmed {
            let mut held = HELD.lock();
            held.ended.count += 1;
            held.ended.bytes += bytes;
            drop(held);
            watch::freed();
        } else {
            end(1);
        }
    }
}

/// Memory reserved for a call that has not begun.
#[derive(Debug)]
struct Grant(i64);

impl Grant {
    /// The running thread's from now on.
    fn hold(self) -> Reservation {
        let reservation = hold(self.0);
        std::mem::forget(self);
        reservation
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        // Relaxed: a sum, which orders nothing.
        TAKEN.fetch_sub(self.0, Ordering::Relaxed);
        end(1);
    }
}

/// A call beside the cores that can begin anew, for its fiber: how much memory it needs.
#[derive(Debug, Default)]
pub(crate) struct Call {
    bytes: i64,
    grant: Option<Grant>,
}

/// Bytes that a call needs from its beginning on, and that it can't have at once.
pub(crate) struct Lacks(i64);

impl Call {
    /// Makes a call of `body`, which has the memory that is known to be needed.
    pub(crate) fn of<R, F: FnOnce() -> R>(
        &mut self,
        body: F,
    ) -> impl FnOnce() -> Result<R, Lacks> + use<R, F> {
        let grant = self.grant.take();
        move || {
            let _reservation = grant.map(Grant::hold);
            if !aside::is_call() {
                return Ok(body());
            }
            let begun = CELLS.with(|cells| cells.sum.get());
            let _over = Over(CALL.replace(Some(Progress { begun, needs: None })));
            let done = body();
            match CALL.get().and_then(|progress| progress.needs) {
                Some(bytes) => Err(Lacks(bytes)),
                None => Ok(done),
            }
        }
    }

    /// Waits until the call's memory can be reserved. A call that began anew before gets half as much
    /// more, so that it does so a few times only.
    ///
    /// # Errors
    /// [`Reason::Memory`] where the process can't have so much. The running fiber's interrupt.
    pub(crate) fn wait(&mut self, Lacks(bytes): Lacks) -> Result<(), Interrupted> {
        let wanted = bytes.saturating_add(LEASE).max(self.bytes.saturating_add(self.bytes / 2));
        self.bytes = wanted.min(limit()).max(bytes);
        self.grant = Some(wait(self.bytes)?);
        Ok(())
    }
}

/// Ends a thread's [`Progress`], however its call ends.
struct Over(Option<Progress>);

impl Drop for Over {
    fn drop(&mut self) {
        CALL.set(self.0);
    }
}

/// Waits as a fiber until so much is reserved.
fn wait(bytes: i64) -> Result<Grant, Interrupted> {
    if bytes > limit() {
        return Err(Interrupted(Reason::Memory));
    }
    let mut is_last = OTHERS.has_waiters();
    // AcqRel: one takes the place after the other.
    let comes_first = || !std::mem::take(&mut is_last) && !FIRST.swap(true, Ordering::AcqRel);
    OTHERS.wait_until_with(comes_first, interrupt::park)?;
    let _first = First;
    let mut granted = Err(Interrupted(Reason::Memory));
    let ended = || match attempt(bytes, false) {
        Attempt::Granted => {
            granted = Ok(Grant(bytes));
            true
        }
        Attempt::Refused => true,
        Attempt::Later => false,
    };
    ENDS.wait_until_with(ended, interrupt::park)?;
    granted
}

/// The place of the first one that waits.
struct First;

impl Drop for First {
    fn drop(&mut self) {
        // Release: pairs with the swap.
        FIRST.store(false, Ordering::Release);
        OTHERS.wake_one();
    }
}

/// Whether a fiber waits for reserved memory.
fn is_waited_for() -> bool {
    // Relaxed: a moment later it may be otherwise.
    FIRST.load(Ordering::Relaxed)
}

/// Whether reservations that have ended last until the heaps are trimmed.
pub(super) fn is_owed() -> bool {
    HELD.lock().ended.count > 0
}

/// Runs `trim`, which gives the free pages of all heaps back to the system, and what has been
/// reserved in them before.
pub(super) fn with_trim(trim: impl FnOnce()) {
    let ended = std::mem::replace(&mut HELD.lock().ended, Ended::NONE);
    trim();
    if ended.count > 0 {
        // Relaxed: a sum, which orders nothing.
        TAKEN.fetch_sub(ended.bytes, Ordering::Relaxed);
        end(ended.count);
    }
}
