//! Group commit: one write for all sessions that wait.
//!
//! A session that waits for durability and finds no flusher becomes the flusher. It writes the
//! filled part of the log, publishes `durable`, and wakes the waiters it covers. If others wait by
//! then, it leaves the flushing to a fiber of its own and goes on with its own work. There is no
//! timer: while one write is under way the next group gathers.
//!
//! A write covers whole 4 KiB blocks from the one that holds `durable` on. The last block is mostly
//! partial. It is written from a private copy with zeros after the filled point, and the next flush
//! writes it again, longer. Its durable bytes stay the same, so a torn rewrite loses nothing.
//!
//! No waiter sleeps past its wake-up. A waiter enters the list, fences, and looks at `durable` and
//! `active`. The flusher publishes `durable` (or clears `active`), fences, and looks at the lists.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use runtime::file::{AlignedBuf, File};
use runtime::wait_event::{self, WaitEvent};
use runtime::{Cause, Critical, fail_stop};
use sync::atomic::{AtomicBool, Ordering, fence, spin_loop};
use sync::{CachePadded, PerCore, SpinLock};

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
/// Looks at the filled point before the flusher yields.
const SPINS: u32 = 100;

/// The state of group commit.
#[derive(Debug)]
pub(super) struct Flush {
    /// Whether there is a flusher.
    active: CachePadded<AtomicBool>,
    /// The flusher's buffers; here while there is no flusher.
    tools: SpinLock<Option<Tools>>,
    /// Waiters by the core they wait on, and one list for threads that are no workers.
    waiting: PerCore<Waiting>,
    /// Whether an asynchronous commit has asked for a flush that has not begun.
    requested: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    list: SpinLock<Vec<(u64, Waker)>>,
    /// Whether the list has entries. Changed under its lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct Tools {
    copy: Copied,
    woken: Vec<Waker>,
    segment: Option<(u64, Arc<File>)>,
    /// The end of a record that was filled and not yet durable after the last write
    /// (`Durable::publish`).
    boundary: u64,
}

/// The private copy of the bytes to write.
#[derive(Debug)]
struct Copied {
    bytes: AlignedBuf,
    /// `bytes` holds zeros from here on, so a longer group leaves nothing to clear.
    used: usize,
}

impl Flush {
    pub(super) fn new(cores: usize) -> Flush {
        let copy = Copied { bytes: AlignedBuf::new((COPIED + BLOCK) as usize), used: 0 };
        Flush {
            active: CachePadded::new(AtomicBool::new(false)),
            tools: SpinLock::new(Some(Tools { copy, woken: Vec::new(), segment: None, boundary: 0 })),
            waiting: PerCore::new(cores + 1, |_| Waiting::default()),
            requested: AtomicBool::new(false),
        }
    }
}

impl Wal {
    /// Parks until `durable() >= lsn`. Not interruptible: an appended record cannot be taken back.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        debug_assert!(lsn <= self.position(), "waiting for what nobody appended");
        while self.durable() < lsn {
            if self.try_lead() {
                self.lead(lsn);
                continue;
            }
            self.enter_list(lsn);
            // Relaxed: ordered by the fence in `enter_list`, which pairs with the one in
            // `stop_leading`.
            if self.durable() < lsn && self.flush.active.load(Ordering::Relaxed) {
                wait_event::during(WaitEvent::WalWrite, sync::park::park);
            }
        }
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

    fn enter_list(&self, lsn: Lsn) {
        let waker = sync::park::current();
        let waiting = self.flush.waiting.get(runtime::try_core().unwrap_or(self.flush.waiting.len() - 1));
        {
            let mut list = waiting.list.lock();
            list.push((lsn.0, waker));
            // Relaxed: ordered by the fence below.
            waiting.any.store(true, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Becomes the flusher if there is none; false if there is one.
    fn try_lead(&self) -> bool {
        // Relaxed: only spares the exchange while there is a flusher.
        !self.flush.active.load(Ordering::Relaxed)
            // Acquire: this flusher sees the last one's tools and `durable`.
            && !self.flush.active.swap(true, Ordering::Acquire)
    }

    /// Flushes until `lsn` is durable. A fiber serves the sessions that wait for more.
    fn lead(&self, lsn: Lsn) {
        let mut tools = self.take_tools();
        let critical = Critical::begin("panic while flushing the log");
        while self.durable() < lsn {
            self.write_group(&mut tools);
        }
        critical.end();
        match (runtime::try_core(), self.this.upgrade()) {
            (Some(_), Some(wal)) if self.anybody_waits() => {
                runtime::fiber::spawn_local(move || wal.serve_others(tools))
            }
            _ => self.serve_others(tools),
        }
    }

    /// Flushes while anybody waits, then stops being the flusher.
    fn serve_others(&self, mut tools: Tools) {
        loop {
            let critical = Critical::begin("panic while flushing the log");
            while self.anybody_waits() {
                self.write_group(&mut tools);
            }
            critical.end();
            *self.flush.tools.lock() = Some(tools);
            // Release: the next flusher sees the tools and `durable`.
            self.flush.active.store(false, Ordering::Release);
            // SeqCst fence: pairs with `enter_list`; a waiter that saw `active` is seen here.
            fence(Ordering::SeqCst);
            if !self.anybody_waits() || !self.try_lead() {
                return;
            }
            tools = self.take_tools();
        }
    }

    fn take_tools(&self) -> Tools {
        self.flush.tools.lock().take().expect("the flusher alone has the tools")
    }

    fn anybody_waits(&self) -> bool {
        // Relaxed: a waiter that enters now either finds no flusher, or is seen after the fence
        // that follows clearing `active`.
        self.flush.waiting.iter().any(|waiting| waiting.any.load(Ordering::Relaxed))
    }

    /// Writes the filled part, or some of it, publishes that and wakes its waiters.
    fn write_group(&self, tools: &mut Tools) {
        let from = self.durable().0;
        let filled = self.wait_filled_past(from);
        if filled <= from {
            // Nothing new is filled. Either a core that reserved was preempted, or the lists hold
            // only entries of waiters that found their LSN durable without parking. Take those out,
            // let others run, and look again.
            self.wake_covered(tools, from);
            sync::park::yield_now();
            return;
        }
        runtime::stop::point("log.flush.before_write");
        let end = wait_event::during(WaitEvent::WalSync, || self.write_blocks(tools, from, filled));
        runtime::stop::point("log.flush.after_write");
        self.durable.publish(end, filled, &mut tools.boundary);
        if let Some(callback) = self.on_durable.get() {
            callback(Lsn(end));
        }
        self.wake_covered(tools, end);
    }

    /// The filled point, after a short wait for it to pass `from`.
    fn wait_filled_past(&self, from: u64) -> u64 {
        let mut filled = self.fill.filled();
        for _ in 0..SPINS {
            if filled > from {
                break;
            }
            spin_loop();
            filled = self.fill.filled();
        }
        filled
    }

    /// Writes blocks from the one that holds `from`, within one segment; returns the end of the
    /// written part.
    fn write_blocks(&self, tools: &mut Tools, from: u64, filled: u64) -> u64 {
        if self.segments.is_nowhere() {
            return filled;
        }
        let block = from & !(BLOCK - 1);
        let segment = from / self.segments.size();
        let end = filled.min((segment + 1) * self.segments.size()).min(block + MOST);
        if tools.segment.as_ref().is_none_or(|(number, _)| *number != segment) {
            tools.segment = Some((segment, self.segments.file(segment)));
        }
        let file = &tools.segment.as_ref().expect("just set").1;
        let at = block - segment * self.segments.size();
        let (written, end) = if end - block <= COPIED {
            let length = self.copy_from_ring(&mut tools.copy, block, end);
            let fault = runtime::stop::fault("log.flush.write");
            (fault.and_then(|()| file.write_at_durable(&tools.copy.bytes[..length], at)), end)
        } else {
            let whole = end & !(BLOCK - 1);
            // SAFETY: below the filled point, and at or after the block of `durable`, which only
            // this flusher moves.
            let bytes = unsafe { self.ring.read(block, (whole - block) as usize) };
            let fault = runtime::stop::fault("log.flush.write");
            (fault.and_then(|()| file.write_at_durable(bytes, at)), block + bytes.len() as u64)
        };
        if let Err(error) = written {
            fail_stop(Cause::Disk, format_args!("writing log segment {segment:016x}: {error}"));
        }
        end
    }

    /// Copies the ring's bytes into whole blocks with zeros after them; returns the blocks' length
    /// in bytes.
    fn copy_from_ring(&self, copy: &mut Copied, start: u64, end: u64) -> usize {
        let length = (end - start) as usize;
        let blocks = length.next_multiple_of(BLOCK as usize);
        // SAFETY: below the filled point, and at or after the block of `durable`, which only this
        // flusher moves.
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

    /// Wakes all waiters whose LSN is at most `durable`, one core's after the other's.
    fn wake_covered(&self, tools: &mut Tools, durable: u64) {
        // SeqCst fence: pairs with `enter_list`; a waiter that did not see `durable` is seen here.
        fence(Ordering::SeqCst);
        for waiting in self.flush.waiting.iter() {
            // Relaxed: ordered by the fence.
            if !waiting.any.load(Ordering::Relaxed) {
                continue;
            }
            {
                let mut list = waiting.list.lock();
                tools.woken.extend(list.extract_if(.., |(lsn, _)| *lsn <= durable).map(|(_, waker)| waker));
                // Relaxed: changed under the lock.
                waiting.any.store(!list.is_empty(), Ordering::Relaxed);
            }
            tools.woken.drain(..).for_each(Waker::wake);
        }
    }
}
