//! Group commit: writes that several sessions share, several of them in flight.
//!
//! One session of each core that waits for durability goes to gather a group. It waits for the end
//! of its core's turn: by then the core's other sessions have appended what they had, and park. It
//! counts them and itself. If another write may depart then, it writes the filled part of the log
//! that no write covers. A landed write publishes `durable` in the order of positions (`flights`)
//! and wakes the waiters it covers, or one that gathers next. There is no timer.
//!
//! A write covers whole 4 KiB blocks. There are two ways to end one:
//!
//! - While one client commits at a time, the last block is mostly partial. It is written with zeros
//!   after the filled point, and the next write writes it again, longer. Its durable bytes stay the
//!   same, so a torn rewrite loses nothing. The next write waits until this one has landed.
//! - While sessions had to wait for a write in flight before theirs, the gatherer fills the last
//!   block with a void record ([`Wal::fill_block`]). The next write then begins with a block of its
//!   own and need not wait.
//!
//! No waiter sleeps past its wake-up (`waiters`): it looks at `durable` and at whether it may
//! gather after it has entered its list. A publication of `durable` and a flight that departs or
//! lands are followed by a look at the lists.

use std::task::Waker;
use std::time::Duration;

use runtime::file::AlignedBuf;
use runtime::wait_event::{self, WaitEvent};
use runtime::{Cause, Critical, fail_stop};
use sync::atomic::{AtomicBool, AtomicU32, Ordering};
use sync::profile;
use sync::{CachePadded, SpinLock};

use super::flights::{Flight, FlightCounts, Flights};
use super::waiters::Waiters;
use super::{BLOCK, Wal};
use crate::Error;
use crate::page::Lsn;

/// Up to this many bytes, one write from a private copy includes the last partial block. A longer
/// write goes straight from the ring in whole blocks, and the next write takes the rest.
const COPIED: u64 = 256 << 10;
/// The most bytes in one write, so that `durable` moves on during a burst.
const MOST: u64 = 4 << 20;
/// An asynchronous commit is durable after about this time.
const DELAY: Duration = Duration::from_millis(5);
/// Looks at cores that lag before the gatherer yields.
const SPINS: u32 = 100;
/// Writes in a row without company after which blocks are not filled any more.
const CALM: u32 = 16;

/// The state of group commit.
#[derive(Debug)]
pub(super) struct Flush {
    waiters: Waiters,
    flights: Flights,
    /// Buffers of writes that are not in flight.
    tools: CachePadded<SpinLock<Vec<Tools>>>,
    /// Whether an asynchronous commit has asked for a flush that has not begun.
    requested: CachePadded<AtomicBool>,
    /// Writes that will still fill their last block. [`CALM`] when a session had to wait for a
    /// write before its own, or had company in flight.
    crowded: CachePadded<AtomicU32>,
}

/// The tools of one write.
#[derive(Debug)]
struct Tools {
    copy: Copied,
    woken: Vec<Waker>,
}

/// The range of a write: whole blocks within one segment.
struct Group {
    /// The first block's position.
    start: u64,
    flight: Flight,
}

/// The private copy of the bytes to write.
#[derive(Debug)]
struct Copied {
    bytes: AlignedBuf,
    /// `bytes` holds zeros from here on, so a longer group leaves nothing to clear.
    used: usize,
}

impl Tools {
    fn new() -> Tools {
        let copy = Copied { bytes: AlignedBuf::new((COPIED + BLOCK) as usize), used: 0 };
        Tools { copy, woken: Vec::new() }
    }
}

impl Flush {
    pub(super) fn new(cores: usize, end: u64) -> Flush {
        Flush {
            flights: Flights::new(end),
            // Made here and not by a session, whose memory they are not.
            tools: CachePadded::new(SpinLock::new(
                &"log buffers",
                (0..super::flights::MOST + 2).map(|_| Tools::new()).collect(),
            )),
            waiters: Waiters::new(cores),
            requested: CachePadded::new(AtomicBool::new(false)),
            crowded: CachePadded::new(AtomicU32::new(0)),
        }
    }

    fn take_tools(&self) -> Tools {
        let kept = self.tools.lock().pop();
        // None is left if many threads are preempted between a landing and giving theirs back.
        kept.unwrap_or_else(Tools::new)
    }

    /// The writes so far.
    pub(super) fn counts(&self) -> FlightCounts {
        self.flights.counts(self.waiters.served())
    }

    /// Whether somebody waits for a part of the log that no write covers.
    fn is_wanted(&self) -> bool {
        self.waiters.any_above(self.flights.departed())
    }
}

impl Wal {
    /// Parks until `durable() >= lsn`. Not interruptible: an appended record cannot be taken back.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        debug_assert!(lsn <= self.position(), "waiting for what nobody appended");
        let Flush { flights, waiters, .. } = &self.flush;
        if self.durable() >= lsn {
            return Ok(());
        }
        let core = runtime::try_core();
        let mut is_counted = false;
        while self.durable() < lsn {
            if flights.departed() < lsn.0 && waiters.claim(core) {
                // By then the core's other sessions have appended what they had.
                runtime::fiber::yield_to_turn_end();
                waiters.release(core);
                // Sessions of this core that have parked meanwhile count on this one.
                let departed = flights.departed();
                let is_counted_now = !is_counted && departed < lsn.0;
                flights.join(usize::from(is_counted_now) + waiters.take_arrived(core, departed));
                is_counted |= is_counted_now;
                if (departed < lsn.0 || self.flush.is_wanted()) && flights.begin() {
                    self.write_group(lsn.0);
                    continue;
                }
            }
            // A write that has departed serves it.
            let is_covered = flights.departed() >= lsn.0;
            waiters.enter(core, lsn.0, sync::park::current(), is_counted || is_covered);
            is_counted |= !is_covered;
            // The fences after a publication, a departure and a claim pair with that of `enter`.
            let is_served = flights.departed() >= lsn.0 || flights.is_busy() || waiters.is_claimed(core);
            if self.durable() < lsn && is_served {
                let park = || wait_event::during(WaitEvent::WalWrite, sync::park::park);
                profile::wait(&"log flush", park);
            } else {
                waiters.leave(core, &sync::park::current());
            }
        }
        waiters.note_served(core);
        Ok(())
    }

    /// Asks that the filled part become durable soon (within about 10 ms), for asynchronous
    /// commits.
    pub fn request_flush(&self) {
        // Relaxed: a flush that was asked for and has not begun covers all records appended before
        // (see below).
        if self.flush.requested.load(Ordering::Relaxed) || self.flush.requested.swap(true, Ordering::AcqRel) {
            return;
        }
        match (runtime::try_core(), self.this.upgrade()) {
            (Some(_), Some(wal)) => {
                runtime::timer::after(DELAY, move || {
                    runtime::fiber::spawn_local(move || wal.flush_requested())
                });
            }
            _ => self.flush_requested(),
        }
    }

    fn flush_requested(&self) {
        // AcqRel: a fiber that found the flag set has appended its record before this, and the
        // position read below covers that.
        self.flush.requested.swap(false, Ordering::AcqRel);
        self.wait_durable(self.position()).expect("waiting for the log doesn't fail");
    }

    /// Writes one group, as the gatherer, which has appended everything before `lsn`.
    fn write_group(&self, lsn: u64) {
        let critical = Critical::begin("panic while flushing the log");
        let mut tools = self.flush.take_tools();
        if let Some(group) = self.gather(lsn) {
            self.flush.flights.depart(group.flight);
            self.serve_others();
            self.write(&mut tools, &group);
            if self.flush.flights.land(group.flight.end) {
                self.publish(&mut tools);
            }
        }
        self.flush.tools.lock().push(tools);
        critical.end();
        if self.serve_others() {
            // Relaxed: as in `fills_blocks`.
            self.flush.crowded.store(CALM, Ordering::Relaxed);
        }
    }

    /// Fixes what the gatherer writes. `None` if there is nothing to write any more.
    fn gather(&self, lsn: u64) -> Option<Group> {
        let flights = &self.flush.flights;
        let from = flights.departed();
        if lsn <= from && !self.flush.is_wanted() {
            flights.abandon();
            return None;
        }
        let sessions = flights.take_joined();
        let filled_block = if self.fills_blocks(flights.has_company()) { self.fill_block() } else { None };
        let mut filled = self.wait_filled_past(filled_block.map_or(from, |end| end - 1));
        while filled <= from {
            // A core that reserved was preempted. Lets others run, and looks again.
            sync::park::yield_now();
            filled = self.wait_filled_past(from);
        }
        let start = from & !(BLOCK - 1);
        let mut end = filled;
        if filled_block.is_some() && filled & !(BLOCK - 1) > from {
            end = filled & !(BLOCK - 1);
        }
        let most = self.end_of_write(start, end);
        if most < end {
            // Some of them may wait for the rest, which the next write takes without delay.
            flights.join(sessions);
        }
        Some(Group { start, flight: Flight { end: most, filled, sessions } })
    }

    /// Whether the gatherer fills its last block, so that the next write need not wait for this
    /// one.
    fn fills_blocks(&self, company: bool) -> bool {
        // Relaxed: a guess of what the clients will do.
        let before = self.flush.crowded.load(Ordering::Relaxed);
        let crowded = if company { CALM } else { before.saturating_sub(1) };
        if crowded != before {
            self.flush.crowded.store(crowded, Ordering::Relaxed); // Relaxed: as its load
        }
        crowded > 0
    }

    /// Publishes landed flights, as the publisher, and wakes their waiters.
    fn publish(&self, tools: &mut Tools) {
        while let Some(flight) = self.flush.flights.next_landed() {
            self.durable.publish(flight);
            if let Some(callback) = self.on_durable.get() {
                callback(Lsn(flight.end));
            }
            self.wake_covered(tools, flight.end);
        }
    }

    /// Wakes a waiter whose LSN no write covers, if another write may depart: it gathers then.
    /// Returns whether there is such a waiter.
    fn serve_others(&self) -> bool {
        Waiters::fence();
        let flush = &self.flush;
        if !flush.is_wanted() {
            return false;
        }
        if !flush.flights.is_busy() {
            let next = flush.waiters.take_one_above(runtime::try_core(), flush.flights.departed());
            if let Some(waker) = next {
                waker.wake();
            }
        }
        true
    }

    /// The filled point, after a short wait for it to pass `from`.
    fn wait_filled_past(&self, from: u64) -> u64 {
        let filled = self.fill.filled();
        if filled > from {
            return filled;
        }
        profile::wait(&"log copies", || self.fill.wait_filled_past(from, SPINS))
    }

    /// The end of the write that begins at `start`, if it should end at `end`.
    fn end_of_write(&self, start: u64, end: u64) -> u64 {
        if self.segments.is_nowhere() {
            return end;
        }
        let segment = start / self.segments.size();
        let end = end.min((segment + 1) * self.segments.size()).min(start + MOST);
        if end - start <= COPIED {
            return end;
        }
        let whole = (end - start) & !(BLOCK - 1);
        start + self.ring.piece(start, whole as usize) as u64
    }

    /// Writes a group that has departed.
    fn write(&self, tools: &mut Tools, group: &Group) {
        if self.segments.is_nowhere() {
            return;
        }
        runtime::stop::point("log.flush.before_write");
        let (start, length) = (group.start, (group.flight.end - group.start) as usize);
        let segment = start / self.segments.size();
        let file = self.segments.file(segment);
        let bytes = if length as u64 <= COPIED {
            let blocks = self.copy_from_ring(&mut tools.copy, start, group.flight.end);
            &tools.copy.bytes[..blocks]
        } else {
            // SAFETY: below the filled point, and at or after the block of `durable`, which does
            // not pass a write in flight.
            unsafe { self.ring.read(start, length) }
        };
        let at = start - segment * self.segments.size();
        let fault = runtime::stop::fault("log.flush.write");
        let write = || fault.and_then(|()| file.write_at_durable(bytes, at));
        let written = profile::wait(&"log write", || wait_event::during(WaitEvent::WalSync, write));
        if let Err(error) = written {
            fail_stop(Cause::Disk, format_args!("writing log segment {segment:016x}: {error}"));
        }
        runtime::stop::point("log.flush.after_write");
    }

    /// Copies the ring's bytes into whole blocks with zeros after them; returns the blocks' length
    /// in bytes.
    fn copy_from_ring(&self, copy: &mut Copied, start: u64, end: u64) -> usize {
        let length = (end - start) as usize;
        let blocks = length.next_multiple_of(BLOCK as usize);
        // SAFETY: below the filled point, and at or after the block of `durable`, which does not
        // pass a write in flight.
        let first = unsafe { self.ring.read(start, length) };
        // SAFETY: as above.
        let second = unsafe { self.ring.read(start + first.len() as u64, length - first.len()) };
        copy.bytes[..first.len()].copy_from_slice(first);
        copy.bytes[first.len()..length].copy_from_slice(second);
        if length < copy.used {
            copy.bytes[length..copy.used].fill(0);
        }
        copy.used = length;
        blocks
    }

    /// Wakes all waiters whose LSN is at most `durable`.
    fn wake_covered(&self, tools: &mut Tools, durable: u64) {
        Waiters::fence();
        self.flush.waiters.take_up_to(durable, &mut tools.woken, |woken| {
            woken.drain(..).for_each(Waker::wake);
        });
    }
}
