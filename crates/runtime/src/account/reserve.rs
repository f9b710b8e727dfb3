//! Reserves memory ahead for work that cannot be counted or stopped while it runs. PostgreSQL's
//! parser is C code.
//!
//! A reservation counts for the process at once. It lengthens the lease of its thread, and the
//! thread's own allocations then use it up, so that nothing is counted twice. What must hold:
//!
//! 1. Reservations fit the process's limit, and at most [`AT_ONCE`] are held at a time: half of the
//!    threads beside the cores stay free of them. Neither binds a session that holds little.
//! 2. No thread waits for memory. Work with a budget ends, and begins again beside the core. A call
//!    beside the cores ends ([`Call`]), its fiber waits, and the call begins again with all the
//!    memory that it lacked. So a waiting fiber holds no reservation, and the others come to their
//!    end.
//! 3. A call that does not fit waits while large reservations are held: those end, and no new ones
//!    come before it. Small ones come at all times. While only they are held, a call is refused
//!    that would not fit if they ended.
//! 4. A call that holds a reservation may ask for another, as when a statement parses an expression
//!    of the catalog. It uses up its own, and gets the rest at once if that fits, even while others
//!    wait.
//! 5. A call's reservation lasts until the heaps have been trimmed. Each thread keeps freed memory
//!    in a heap of its own, which nobody counts.
//! 6. Fibers get their reservations in the order in which they began to wait. Only the first one
//!    tries ([`FairQueue`]), and newcomers join the queue while a fiber waits in it.
//! 7. A fiber waits only while a reservation is held, and its end wakes the first fiber. A fiber
//!    tries under the lock of [`HELD`], and [`end`] takes that lock before it wakes. So either the
//!    try sees the end, or the wake-up comes after the try. A reservation ends with its call, or
//!    with the trim that follows. Each one that waits for a trim tells the watch; without a watch
//!    none waits for a trim.
//! 8. Memory that others free may make room earlier. The watch wakes the first fiber after it has
//!    given back large blocks, after each trim, and when memory is no longer short. Smaller blocks
//!    wake no fiber; the next end of a reservation does.

use std::cell::Cell;
use std::marker::PhantomData;

use sync::atomic::Ordering;
use sync::{FairQueue, SpinLock, core_local};

use super::{
    CALLS_MAX, CELLS, LEASE, NONE_RESERVED, TAKEN, ask, is_large, lease, limit, release, room, signal,
};
use crate::budget::{self, Stopped};
use crate::interrupt::{self, Interrupted, Reason};
use crate::wait_event::{self, WaitEvent};

/// The most reservations held at a time, not counting those of sessions that hold little.
const AT_ONCE: usize = CALLS_MAX / 2;

/// Memory that is the running thread's until this is dropped. A thread drops its reservations in
/// the reverse of their order.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    /// None where nothing is reserved.
    reserved: Option<Reserved>,
    /// It stays on its thread.
    here: PhantomData<*const ()>,
}

impl Reservation {
    const NOTHING: Reservation = Reservation { reserved: None, here: PhantomData };
}

#[derive(Debug)]
struct Reserved {
    part: Part,
    /// The sum up to which the thread had reserved memory before.
    before: i64,
}

/// The memory of one reservation or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    bytes: i64,
    /// Number of reservations, without those of sessions that hold little.
    large: usize,
}

impl Part {
    const NONE: Part = Part { bytes: 0, large: 0 };

    fn add(&mut self, other: Part) {
        self.bytes += other.bytes;
        self.large += other.large;
    }

    fn take(&mut self, other: Part) {
        self.bytes -= other.bytes;
        self.large -= other.large;
    }
}

/// The reservations that are held.
struct Held {
    /// All of them, with those in `ended`. [`TAKEN`] has their bytes for as long as they are here.
    all: Part,
    /// Those that have ended and last until the heaps are trimmed.
    ended: Part,
}

static HELD: SpinLock<Held> = SpinLock::new(&"memory", Held { all: Part::NONE, ended: Part::NONE });
/// The fibers that wait for a reservation.
static WAITING: FairQueue = FairQueue::new(&"memory");

core_local! {
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

/// The answer to a request for a reservation.
enum Attempt {
    Granted(Part),
    Refused,
    /// It may fit when a reservation has ended.
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
        return Ok(Reservation::NOTHING);
    };
    if asked > room.own || asked > limit() {
        return Err(refused);
    }
    let (sum, reserved) = CELLS.with(|cells| (cells.sum.get(), cells.reserved.get()));
    let wanted = asked - reserved.saturating_sub(sum).max(0);
    if wanted <= 0 {
        return Ok(Reservation::NOTHING);
    }
    let is_small = !is_large(room.held.saturating_add(asked));
    let may = is_small || reserved != NONE_RESERVED || !is_waited_for();
    match if may { attempt(wanted, is_small) } else { Attempt::Later } {
        Attempt::Granted(part) => return Ok(hold(part)),
        Attempt::Refused => return Err(refused),
        Attempt::Later => {}
    }
    if budget::has_budget() {
        budget::use_up();
        return Err(Stopped::Budget);
    }
    let Some(progress) = CALL.get() else { return Err(refused) };
    let needs = (sum - progress.begun).saturating_add(asked);
    CALL.set(Some(Progress { needs: Some(needs), ..progress }));
    Err(Stopped::Budget)
}

/// Counts so many bytes for the process, where they fit or are those of a session that holds
/// little.
fn attempt(bytes: i64, is_small: bool) -> Attempt {
    // Relaxed, here and below: a sum, which orders nothing.
    let longer = |taken: i64| (is_small || taken.saturating_add(bytes) <= limit()).then(|| taken + bytes);
    if longer(TAKEN.load(Ordering::Relaxed)).is_none() {
        release::empty();
    }
    let part = Part { bytes, large: usize::from(!is_small) };
    let mut held = HELD.lock();
    if held.all.large + part.large > AT_ONCE {
        return Attempt::Later;
    }
    match TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, longer) {
        Ok(_) => {
            held.all.add(part);
            Attempt::Granted(part)
        }
        Err(_) if held.all.large > 0 => Attempt::Later,
        // It would fit if all reservations ended, so at least one is held.
        Err(taken) if longer(taken - held.all.bytes).is_some() => Attempt::Later,
        Err(_) => Attempt::Refused,
    }
}

/// Gives the running thread what has been counted for the process.
fn hold(part: Part) -> Reservation {
    let before = CELLS.with(|cells| {
        cells.limit.set(cells.limit.get() + part.bytes);
        let until = cells.sum.get().max(cells.reserved.get()) + part.bytes;
        cells.reserved.replace(until)
    });
    Reservation { reserved: Some(Reserved { part, before }), here: PhantomData }
}

/// Ends reservations whose bytes have been taken from the process's sum.
fn end(part: Part) {
    HELD.lock().all.take(part);
    WAITING.wake_first();
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(Reserved { part, before }) = self.reserved else { return };
        let trimmed = interrupt::is_call() && signal::is_watched();
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
            let lasts = Part { bytes, ..part };
            let mut held = HELD.lock();
            held.all.take(part);
            held.all.add(lasts);
            held.ended.add(lasts);
            drop(held);
            signal::freed();
        } else {
            end(part);
        }
    }
}

/// Memory reserved for a call that has not begun.
#[derive(Debug)]
struct Grant(Part);

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
        TAKEN.fetch_sub(self.0.bytes, Ordering::Relaxed);
        end(self.0);
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
            if !interrupt::is_call() {
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

    /// Waits until the call's memory can be reserved. A call that began anew before gets half as
    /// much more where it can, so that it does so a few times only.
    ///
    /// # Errors
    /// [`Reason::Memory`] where the process can't have so much. The running fiber's interrupt.
    pub(crate) fn wait(&mut self, Lacks(bytes): Lacks) -> Result<(), Interrupted> {
        let wanted = bytes.saturating_add(LEASE).max(self.bytes.saturating_add(self.bytes / 2));
        let grant = wait([wanted, bytes])?;
        self.bytes = grant.0.bytes;
        self.grant = Some(grant);
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

/// Waits as a fiber until memory is reserved: the first of these sizes that is not refused.
fn wait(sizes: [i64; 2]) -> Result<Grant, Interrupted> {
    let mut granted = Err(Interrupted(Reason::Memory));
    let tried = || {
        for bytes in sizes {
            match attempt(bytes, false) {
                Attempt::Granted(part) => {
                    granted = Ok(Grant(part));
                    return true;
                }
                Attempt::Refused => {}
                Attempt::Later => return false,
            }
        }
        true
    };
    wait_event::during(WaitEvent::Memory, || WAITING.wait_until_with(tried, interrupt::park))?;
    granted
}

/// Whether a fiber waits for a reservation; for tools that look inside.
pub fn is_waited_for() -> bool {
    WAITING.has_waiters()
}

/// Whether reservations that have ended last until the heaps are trimmed.
pub(super) fn is_owed() -> bool {
    HELD.lock().ended != Part::NONE
}

/// Runs `trim`, which gives the free pages of all heaps back to the system, and what has been
/// reserved in them before.
pub(super) fn with_trim(trim: impl FnOnce()) {
    let ended = std::mem::replace(&mut HELD.lock().ended, Part::NONE);
    trim();
    // Relaxed: a sum, which orders nothing.
    TAKEN.fetch_sub(ended.bytes, Ordering::Relaxed);
    end(ended);
}

/// Lets the first fiber try again: others have freed memory.
pub(super) fn freed() {
    WAITING.wake_first();
}
