//! Appending: room, reservation, filling.
//!
//! Room is credit. A core draws it in portions of [`PORTION`] from `granted`, a running total that
//! never passes the capacity of the ring and the segments. So a core touches shared memory for room
//! once in many records. It pays from its credit for the space that it reserves. So always:
//! position + credit of all cores = granted, and no reservation can overrun the ring or the
//! segments.

use std::cell::UnsafeCell;

use runtime::{Cause, Critical, fail_stop};
use sync::atomic::Ordering;
use sync::profile::{self, Hold, Kind as Way, Site};

use super::fill::Reservation;
use super::record::{self, Head, Kind, LONGEST, MAX_PAYLOAD, Sealed};
use super::{BLOCK, TxnLink, Wal};
use crate::Error;
use crate::control::MOST_INFO;
use crate::page::Lsn;
use crate::retry::Backoff;

/// Room that [`Wal::ensure`] adds to the payload: the record as it is, and once more with all
/// images if a checkpoint begins in between.
const SLACK: u64 = 2 * LONGEST as u64;
/// Bytes that a core draws beyond its need.
const PORTION: u64 = 128 << 10;
/// Bytes of the last segment that only checkpoints use: some dozens of their records, since not
/// each of them makes room.
const LAST_ROOM: u64 = 64 << 10;
/// The longest record of a checkpoint.
const CHECKPOINT_RECORD: u64 = (record::HEADER + MOST_INFO + record::TRAILER + record::ALIGNMENT) as u64;
/// The most credit that a core can hold.
pub(super) const MOST_CREDIT: u64 = SLACK + 2 * MAX_PAYLOAD as u64 + PORTION;

/// The state that one core needs to append.
#[derive(Debug)]
pub(super) struct CoreState {
    /// The record being built. A `Change` takes it out and puts it back when it is done.
    pub buffer: Vec<u8>,
    /// Bytes granted and not reserved.
    pub credit: u64,
    /// The end of this core's last record.
    pub last_end: u64,
}

/// A [`CoreState`], reachable only by its core's worker.
#[derive(Debug)]
pub(super) struct CoreCell(UnsafeCell<CoreState>);

// SAFETY: `Wal::with_core` hands the state of a core to that core's only thread, see there.
unsafe impl Sync for CoreCell {}

impl CoreCell {
    pub(super) fn new(start: u64) -> CoreCell {
        CoreCell(UnsafeCell::new(CoreState {
            buffer: Vec::with_capacity(16 << 10),
            credit: 0,
            last_end: start,
        }))
    }
}

/// The kind of work that asks for room in the log or on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// New work, which leaves the reserve alone.
    Ordinary,
    /// Rollbacks and ends of transactions, which may use the reserve up to [`LAST_ROOM`].
    Reserved,
    /// A checkpoint's own record, or the last one before a start's checkpoint. It may use all room
    /// and takes no more than it needs. Checkpoints make room.
    Checkpoint,
}

impl Share {
    /// Bytes that a core draws beyond its need.
    fn portion(self) -> u64 {
        if self == Share::Checkpoint { 0 } else { PORTION }
    }
}

impl Wal {
    /// Runs `body` with this core's state. `body` must not park and must not call this again.
    #[inline]
    pub(super) fn with_core<R>(&self, body: impl FnOnce(usize, &mut CoreState) -> R) -> R {
        let core = super::this_core();
        let cell = self.cores.get(core);
        // SAFETY: a core has one worker thread, so only this thread gets here with this number.
        // `body` runs to its end without switching fibers and does not call back, so this is the
        // only reference.
        body(core, unsafe { &mut *cell.0.get() })
    }

    /// Parks until a change with `bytes` of payload can be appended. The payload is ops and undo
    /// information, at most 64 KiB; room for images is added. Call it after the last possible park
    /// before the first latch.
    #[inline]
    pub fn ensure(&self, bytes: usize) -> Result<(), Error> {
        self.ensure_for(Share::Ordinary, bytes)
    }

    /// As [`Wal::ensure`] for compensation records and ends of transactions. They may use the
    /// reserve kept for them when the disk is full, and wait for space when that is used up too.
    /// The room is this core's: a change that needs no more gets it by [`Wal::ensure`], if nothing
    /// parks in between. A change that may park tries again from here when it meets `DiskFull`.
    pub fn ensure_reserved(&self, bytes: usize) -> Result<(), Error> {
        self.ensure_for(Share::Reserved, bytes)
    }

    /// As [`Wal::ensure`] or [`Wal::ensure_reserved`], by the kind of work.
    #[inline]
    pub(crate) fn ensure_for(&self, share: Share, bytes: usize) -> Result<(), Error> {
        let need = Self::need(bytes);
        if self.with_core(|_, state| state.credit >= need) { Ok(()) } else { self.draw(need, share) }
    }

    /// Parks until a checkpoint's record, or one that is no longer, can be appended. Fails when
    /// there is no room for it.
    pub(crate) fn ensure_checkpoint(&self) -> Result<(), Error> {
        let enough = self.with_core(|_, state| state.credit >= CHECKPOINT_RECORD);
        if enough { Ok(()) } else { self.draw(CHECKPOINT_RECORD, Share::Checkpoint) }
    }

    fn need(bytes: usize) -> u64 {
        assert!(bytes <= MAX_PAYLOAD, "a change of {bytes} bytes is no single record");
        SLACK + 2 * bytes as u64
    }

    #[cold]
    fn draw(&self, need: u64, share: Share) -> Result<(), Error> {
        let mut backoff = Backoff::new("room in the log to take changes back");
        loop {
            match self.try_draw(need, share) {
                Drawn::Enough => {
                    // Relaxed: a bound that moves on anyway.
                    self.prepare_segments(self.granted.load(Ordering::Relaxed));
                    return Ok(());
                }
                Drawn::RingFull { durable_needed } => {
                    let needed = Lsn(durable_needed.min(self.position().0));
                    profile::wait(&"log ring", || self.wait_durable(needed))?
                }
                Drawn::NoSegment { end } => {
                    match profile::wait(&"log room", || self.wait_for_segments(end)) {
                        Ok(()) => {}
                        Err(error) if share != Share::Reserved => return Err(error),
                        Err(error) => backoff.pause(&error),
                    }
                }
            }
        }
    }

    /// Raises this core's credit to `need` and a portion more if the limits allow.
    fn try_draw(&self, need: u64, share: Share) -> Drawn {
        self.with_core(|_, state| {
            // Relaxed: the total is only compared with limits and exchanged. It publishes nothing.
            let mut granted = self.granted.load(Ordering::Relaxed);
            loop {
                if state.credit >= need {
                    return Drawn::Enough;
                }
                let end = granted + (need - state.credit) + share.portion();
                let ring = self.ring.size() - if share == Share::Ordinary { self.ring.size() / 8 } else { 0 };
                if end > self.durable_block() + ring {
                    return Drawn::RingFull { durable_needed: (end - ring).next_multiple_of(BLOCK) };
                }
                let reserve = match share {
                    Share::Ordinary => self.segments.size(),
                    Share::Reserved => LAST_ROOM,
                    Share::Checkpoint => 0,
                };
                if end + reserve > self.segments.ready_end() {
                    return Drawn::NoSegment { end: end + reserve };
                }
                // Relaxed: as above.
                match self.granted.compare_exchange_weak(granted, end, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => state.credit += end - granted,
                    Err(seen) => granted = seen,
                }
            }
        })
    }

    /// Start of the block with which the next flush begins. The ring must keep everything from
    /// there on.
    fn durable_block(&self) -> u64 {
        self.durable().0 & !(BLOCK - 1)
    }

    /// Reserves space, fills it and completes the reservation.
    ///
    /// `built_for` is the epoch that the record was built for, if that matters. When that epoch is
    /// over, a void record fills the space, and the present epoch is returned. `filled` runs with
    /// the LSN before the completion, so before `filled()` can pass the record.
    #[inline]
    pub(super) fn append(
        &self,
        buffer: &mut [u8],
        sealed: &Sealed,
        kind: Kind,
        built_for: Option<u8>,
        filled: impl FnOnce(Lsn),
    ) -> Result<Lsn, super::Epoch> {
        let length = buffer.len() as u64;
        let (core, bound) = self.with_core(|core, state| {
            if state.credit < length {
                self.draw_unprepared(state, length);
            }
            state.credit -= length;
            (core, state.last_end)
        });
        let critical = Critical::begin("panic between reserving and filling log space");
        // Nobody waits to reserve: one add does it. A session that writes the log waits for the
        // end.
        let hold = Hold::begin_unmarked(|| Site::here(&"log space", Way::Acquire));
        let Reservation { start, epoch } = self.fill.reserve(core, bound, length);
        let stands = built_for.is_none_or(|number| number == epoch.number);
        record::place(buffer, sealed, start, if stands { kind } else { Kind::Void });
        // SAFETY: this core reserved the range and has not completed it. The credit that paid for
        // it was granted only as far as the ring is free.
        unsafe { self.ring.write(start, buffer) };
        let lsn = Lsn(start + length);
        // Runs outside `with_core`, because `filled` is the caller's code and may use this core's
        // state again.
        if stands {
            filled(lsn);
        }
        self.fill.complete(core);
        hold.end_unmarked(|| false);
        critical.end();
        self.with_core(|_, state| state.last_end = lsn.0);
        if stands { Ok(lsn) } else { Err(epoch.into()) }
    }

    /// Draws room for a record without [`Wal::ensure`]: a fiber parked in between, and others used
    /// the credit up. It comes from the reserve, without a park, since latches are held.
    #[cold]
    fn draw_unprepared(&self, state: &mut CoreState, length: u64) {
        // Relaxed: as in `try_draw`.
        let mut granted = self.granted.load(Ordering::Relaxed);
        while state.credit < length {
            let end = granted + (length - state.credit);
            if end > self.durable_block() + self.ring.size() || end > self.segments.ready_end() {
                let why = "the log's reserve is used up by changes that did not ask for room";
                fail_stop(Cause::Engine, format_args!("{why}"));
            }
            // Relaxed: as in `try_draw`.
            match self.granted.compare_exchange_weak(granted, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => state.credit += end - granted,
                Err(seen) => granted = seen,
            }
        }
    }

    /// Appends a commit record. `committed(lsn)` runs once the record is filled and before
    /// `filled()` can pass it. So a session that takes a snapshot at or after `lsn` finds what
    /// `committed` stored. Room: [`Wal::ensure_reserved`].
    pub fn append_commit(&self, txn: u64, prev: Lsn, committed: impl FnOnce(Lsn)) -> Lsn {
        // A start needs the mark when it finds the commit behind a gap.
        let mark = self.durable.mark().to_le_bytes();
        self.append_plain(Kind::Commit, TxnLink { txn, prev, compensation: None }, &mark, committed)
    }

    /// Appends the record that ends a rolled-back transaction. Room: [`Wal::ensure_reserved`].
    pub fn append_abort(&self, txn: u64, prev: Lsn) -> Lsn {
        self.append_plain(Kind::Abort, TxnLink { txn, prev, compensation: None }, &[], |_| {})
    }

    /// Appends a checkpoint's record with the info that the control file will hold.
    pub(crate) fn append_checkpoint(&self, info: &[u8]) -> Lsn {
        self.append_plain(Kind::Checkpoint, TxnLink::NONE, info, |_| {})
    }

    /// Appends a record without meaning.
    pub(crate) fn append_void(&self) -> Lsn {
        self.append_plain(Kind::Void, TxnLink::NONE, &[], |_| {})
    }

    /// Fills the block in which the log ends with a void record, so that the next write begins with
    /// a block of its own. Returns the block's end. `None` where there is no room, and on a thread
    /// that is no worker.
    pub(super) fn fill_block(&self) -> Option<u64> {
        const MOST: u64 = BLOCK + record::SHORTEST as u64;
        super::try_this_core()?;
        if self.segments.is_short() {
            return None;
        }
        if self.with_core(|_, state| state.credit) < MOST
            && !matches!(self.try_draw(MOST, Share::Ordinary), Drawn::Enough)
        {
            return None;
        }
        let mut buffer = self.take_buffer();
        let (core, bound) = self.with_core(|core, state| (core, state.last_end));
        let critical = Critical::begin("panic between reserving and filling log space");
        let reserved = self.fill.reserve_rest(core, bound, BLOCK, record::SHORTEST as u64);
        if let Ok((Reservation { start, .. }, length)) = reserved {
            record::begin(&mut buffer);
            buffer.resize(length as usize - record::TRAILER, 0);
            let head = Head { kind: Kind::Void, pages: 0, undo_length: 0, link: TxnLink::NONE };
            let sealed = record::seal(&mut buffer, head, self.salt);
            record::place(&mut buffer, &sealed, start, Kind::Void);
            // SAFETY: as in `append`; the credit was there.
            unsafe { self.ring.write(start, &buffer) };
            self.fill.complete(core);
            self.with_core(|_, state| {
                state.credit -= length;
                state.last_end = start + length;
            });
            // Relaxed: a count.
            self.padding.fetch_add(length, Ordering::Relaxed);
        }
        critical.end();
        self.put_buffer(buffer);
        Some(reserved.map_or_else(|end| end, |(space, length)| space.start + length))
    }

    /// Appends a record without pages.
    fn append_plain(&self, kind: Kind, link: TxnLink, bytes: &[u8], filled: impl FnOnce(Lsn)) -> Lsn {
        let mut buffer = self.take_buffer();
        record::begin(&mut buffer);
        buffer.extend_from_slice(bytes);
        let sealed = record::seal(
            &mut buffer,
            Head { kind, pages: 0, undo_length: bytes.len() as u32, link },
            self.salt,
        );
        let lsn = self.append(&mut buffer, &sealed, kind, None, filled).expect("no epoch to miss");
        self.put_buffer(buffer);
        lsn
    }

    /// This core's record buffer; empty and without memory if another fiber has it.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        self.with_core(|_, state| std::mem::take(&mut state.buffer))
    }

    pub(super) fn put_buffer(&self, buffer: Vec<u8>) {
        self.with_core(|_, state| state.buffer = buffer);
    }
}

enum Drawn {
    Enough,
    /// The ring has room once this position is durable.
    RingFull {
        durable_needed: u64,
    },
    /// There is room once segments reach this position.
    NoSegment {
        end: u64,
    },
}
