//! Memory reserved ahead, for work that can't be counted or stopped while it runs: PostgreSQL's
//! parser is C code.
//!
//! A reservation counts for the process at once. It lengthens the lease of its thread, and the
//! thread's own allocations then use it up, so that nothing is counted twice. What must hold:
//!
//! 1. Reservations fit the process's limit, but for those of sessions that hold little.
//! 2. A call beside the cores that finds memory reserved by others waits, in order, until they end.
//!    It is refused where it would not fit an idle server, and where no reservation is left whose
//!    end could make room.
//! 3. A core never waits: work with a budget ends, and begins anew beside the core.
//! 4. A thread that waits holds no reservation, so the others come to their end. One that holds a
//!    reservation and asks for another (an expression of the catalog is parsed for a statement) uses
//!    up its own, and gets or is refused the rest at once, whoever waits.
//! 5. A call's reservation lasts until the heaps have been trimmed: each of some threads would
//!    otherwise keep, in a heap of its own, what it has freed and nobody counts.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sync::atomic::Ordering;

use super::{CELLS, LEASE, NONE_RESERVED, TAKEN, ask, is_large, lease, limit, release, room, watch};
use crate::aside;
use crate::interrupt::{Interrupted, Reason};
use crate::work::{self, Stopped};

/// Between two looks of a thread that waits at its interrupt.
const LOOK: Duration = Duration::from_millis(20);

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

/// The reservations that are held, and the threads that wait for one.
struct Queue {
    /// Reservations, with those that have ended and last until the heaps are trimmed.
    held: usize,
    ended: Ended,
    /// Tickets, the first in front.
    waiting: VecDeque<u64>,
    tickets: u64,
}

/// Reservations that have ended: how many, and the bytes that still count for them.
struct Ended {
    count: usize,
    bytes: i64,
}

impl Ended {
    const NONE: Ended = Ended { count: 0, bytes: 0 };
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { held: 0, ended: Ended::NONE, waiting: VecDeque::new(), tickets: 0 });
/// A reservation has ended, or a thread waits no longer.
static CHANGED: Condvar = Condvar::new();

/// Reserves so many bytes for what the running thread does next for its session. Less than 1 MiB is
/// asked for, as by [`ask`], and not reserved.
///
/// # Errors
/// [`Reason::Memory`] where the session or the process can't have so much. [`Stopped::Budget`]
/// where the work has a budget and would have to wait. The interrupt of a call beside the cores
/// that comes while it waits.
pub fn reserve(bytes: usize) -> Result<Reservation, Stopped> {
    let refused = Stopped::Interrupted(Interrupted(Reason::Memory));
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX);
    let Some(room) = room().filter(|_| wanted >= LEASE) else {
        ask(bytes).map_err(Stopped::Interrupted)?;
        return Ok(Reservation { before: None, here: PhantomData });
    };
    let is_small = !is_large(room.held.saturating_add(wanted));
    if wanted > room.own || wanted > limit() {
        return Err(refused);
    }
    let (holds, unused) = CELLS.with(|cells| {
        let (reserved, sum) = (cells.reserved.get(), cells.sum.get());
        (reserved != NONE_RESERVED, reserved.saturating_sub(sum).max(0))
    });
    let wanted = wanted - unused;
    if wanted <= 0 {
        return Ok(Reservation { before: None, here: PhantomData });
    }
    if wanted > room.whole {
        release::empty();
    }
    let mut queue = lock();
    if holds || queue.waiting.is_empty() {
        if let Some(granted) = queue.grant(wanted, is_small) {
            return Ok(granted);
        }
        if queue.held == 0 {
            return Err(refused);
        }
    }
    if work::has_budget() {
        work::use_up();
        return Err(Stopped::Budget);
    }
    if holds || !aside::is_call() {
        return Err(refused);
    }
    let ticket = queue.tickets;
    queue.tickets += 1;
    queue.waiting.push_back(ticket);
    let ended = loop {
        queue = CHANGED.wait_timeout(queue, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        if let Err(stopped) = aside::check() {
            break Err(stopped);
        }
        if queue.waiting.front() == Some(&ticket) {
            if let Some(granted) = queue.grant(wanted, is_small) {
                break Ok(granted);
            }
            if queue.held == 0 {
                break Err(refused);
            }
        }
    };
    queue.waiting.retain(|other| *other != ticket);
    // The next one may fit, too.
    CHANGED.notify_all();
    ended
}

impl Queue {
    /// Reserves so many bytes for the running thread, if they fit or its session holds little.
    fn grant(&mut self, bytes: i64, is_small: bool) -> Option<Reservation> {
        let longer =
            |taken: i64| (is_small || taken.saturating_add(bytes) <= limit()).then_some(taken + bytes);
        // Relaxed: a sum, which orders nothing.
        TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, longer).ok()?;
        self.held += 1;
        let before = CELLS.with(|cells| {
            cells.limit.set(cells.limit.get() + bytes);
            let until = cells.sum.get().max(cells.reserved.get()) + bytes;
            cells.reserved.replace(until)
        });
        Some(Reservation { before: Some(before), here: PhantomData })
    }
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
        let mut queue = lock();
        if trimmed {
            queue.ended.count += 1;
            queue.ended.bytes += bytes;
            drop(queue);
            watch::freed();
        } else {
            queue.held -= 1;
            CHANGED.notify_all();
        }
    }
}

/// Whether reservations that have ended last until the heaps are trimmed.
pub(super) fn is_owed() -> bool {
    lock().ended.count > 0
}

/// Runs `trim`, which gives the free pages of all heaps back to the system, and what has been
/// reserved in them before.
pub(super) fn with_trim(trim: impl FnOnce()) {
    let ended = std::mem::replace(&mut lock().ended, Ended::NONE);
    trim();
    if ended.count > 0 {
        // Relaxed: a sum, which orders nothing.
        TAKEN.fetch_sub(ended.bytes, Ordering::Relaxed);
        lock().held -= ended.count;
        CHANGED.notify_all();
    }
}

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}
