//! Reserving log space, and computing up to where it is filled.
//!
//! One word holds the position (low 56 bits) and the checkpoint epoch (high 8). To append, a core
//!
//! 1. announces in its own slot a lower bound of where it will write (the end of its previous
//!    record),
//! 2. reserves by one add to the word, which returns its position and the epoch,
//! 3. raises its slot to that position, fills, and clears the slot.
//!
//! A reader of the filled point reads the word first and the slots after it. The filled point is
//! the least of them.
//!
//! *Why nothing is missed:* suppose the word that was read includes a reservation. That add is a
//! release, and each later add continues its release sequence. The read is an acquire. So the add
//! happened before the read, and so did the announcement before the add. The slot therefore shows
//! the announcement or something later: the raised position, or cleared. The store that cleared it
//! (a release) came after the bytes. The position word itself carries the order: no fence is needed
//! beside the add. `tests/loom_log.rs` runs this file under loom.
//!
//! The bound of step 1 may be old (an idle core's last record). So for the length of one add the
//! filled point may read too low. [`Fill::filled`] is a lower bound that may step back, and its
//! users take maxima.

use sync::atomic::{AtomicU64, Ordering, spin_loop};
use sync::{CachePadded, assert_apart};

const POSITION_BITS: u32 = 56;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
/// A slot whose core is not appending.
const IDLE: u64 = u64::MAX;

/// The number of a checkpoint (modulo 256) and its redo position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// Low 8 bits of the count of checkpoints begun.
    pub number: u8,
    /// The position from which recovery would redo.
    pub redo: u64,
}

impl Epoch {
    fn word(self) -> u64 {
        u64::from(self.number) << POSITION_BITS | self.redo
    }

    fn of(word: u64) -> Epoch {
        Epoch { number: (word >> POSITION_BITS) as u8, redo: word & POSITION }
    }
}

/// The place of a record.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    /// Its first byte's position.
    pub start: u64,
    /// The epoch of the reservation. Its redo position is right until the reservation is completed.
    pub epoch: Epoch,
}

/// The reservation word and the cores' slots.
#[derive(Debug)]
pub struct Fill {
    word: CachePadded<AtomicU64>,
    /// The present epoch as one word, on a cache line that only a checkpoint writes. Raised just
    /// after `word`.
    current: CachePadded<AtomicU64>,
    /// Redo positions by the epoch's lowest bit, set before the epoch can be seen in `word`. An
    /// entry is overwritten two checkpoints later, and a checkpoint waits for the reservations of
    /// the one before ([`Fill::begin_epoch`]).
    redo: [AtomicU64; 2],
    slots: Box<[CachePadded<AtomicU64>]>,
}

assert_apart!(Fill: word from current, redo, slots);
assert_apart!(Fill: current from redo, slots);

impl Fill {
    /// A log that ends at `start`. A page whose LSN is at most `start` needs an image at its next
    /// change.
    pub fn new(cores: usize, start: u64) -> Fill {
        let epoch = Epoch { number: 0, redo: start };
        Fill {
            word: CachePadded::new(AtomicU64::new(epoch.word())),
            current: CachePadded::new(AtomicU64::new(epoch.word())),
            redo: [AtomicU64::new(start), AtomicU64::new(start)],
            slots: (0..cores).map(|_| CachePadded::new(AtomicU64::new(IDLE))).collect(),
        }
    }

    /// Reserves `length` bytes for `core`, whose previous record ended at `bound` or later. The
    /// core's fiber must not park until [`Fill::complete`]. A core has one reservation at a time.
    #[inline]
    pub fn reserve(&self, core: usize, bound: u64, length: u64) -> Reservation {
        let slot = &self.slots[core];
        // Release, as each store to a slot: a reader of it or of a later one also sees what this
        // core filled before.
        slot.store(bound, Ordering::Release);
        // AcqRel: publishes the announcement with the reservation, and acquires the redo position
        // of the epoch it sees.
        let word = self.word.fetch_add(length, Ordering::AcqRel);
        slot.store(word & POSITION, Ordering::Release);
        self.reservation(word)
    }

    /// Reserves, as [`Fill::reserve`], up to the next multiple of `unit` that is at least
    /// `shortest` bytes away. Returns the length too. Where the reserved space ends at a multiple
    /// of `unit`, it reserves nothing and returns that end as the error.
    pub fn reserve_rest(
        &self,
        core: usize,
        bound: u64,
        unit: u64,
        shortest: u64,
    ) -> Result<(Reservation, u64), u64> {
        let slot = &self.slots[core];
        // Release: as in `reserve`.
        slot.store(bound, Ordering::Release);
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let start = word & POSITION;
            if start.is_multiple_of(unit) {
                self.complete(core);
                return Err(start);
            }
            let length = (start + shortest).next_multiple_of(unit) - start;
            // AcqRel: as the add in `reserve`, whose place this exchange takes.
            match self.word.compare_exchange_weak(word, word + length, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    slot.store(start, Ordering::Release);
                    return Ok((self.reservation(word), length));
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// The reservation that begins at the position in `word`, which the caller has acquired.
    #[inline]
    fn reservation(&self, word: u64) -> Reservation {
        let number = (word >> POSITION_BITS) as u8;
        // Relaxed: stored before the epoch was put in the word, which was acquired.
        let redo = self.redo[usize::from(number & 1)].load(Ordering::Relaxed);
        Reservation { start: word & POSITION, epoch: Epoch { number, redo } }
    }

    /// Marks the reservation of `core` as filled.
    #[inline]
    pub fn complete(&self, core: usize) {
        // Release: a reader that sees the slot idle sees the bytes.
        self.slots[core].store(IDLE, Ordering::Release);
    }

    /// End of the reserved space.
    #[inline]
    pub fn position(&self) -> u64 {
        // Acquire: see the module's head.
        self.word.load(Ordering::Acquire) & POSITION
    }

    /// Everything before this is filled. A lower bound that may step back.
    pub fn filled(&self) -> u64 {
        // The word first, the slots after it: see the module's head.
        let end = self.position();
        // Acquire: the reader sees an idle slot's bytes.
        self.slots.iter().map(|slot| slot.load(Ordering::Acquire)).fold(end, u64::min)
    }

    /// The filled point. At a core that lags behind `from` this waits, for at most `looks` looks in
    /// all. It is [`Fill::filled`] in slow motion: the position first, each slot once after it.
    pub fn wait_filled_past(&self, from: u64, mut looks: u32) -> u64 {
        let mut filled = self.position();
        for slot in &self.slots {
            // Acquire: as in `filled`.
            let mut at = slot.load(Ordering::Acquire);
            while at <= from && looks > 0 {
                spin_loop();
                looks -= 1;
                at = slot.load(Ordering::Acquire); // Acquire: as above
            }
            filled = filled.min(at);
        }
        filled
    }

    /// The present epoch. It may lag behind the word for a moment. A record built for the old one
    /// is then void and built again.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        // Acquire: pairs with `begin_epoch`. A redo position is never newer than what else this
        // core sees of that checkpoint.
        Epoch::of(self.current.load(Ordering::Acquire))
    }

    /// Begins the next epoch. One caller at a time, and not again before `filled()` has reached the
    /// returned redo position.
    pub fn begin_epoch(&self) -> Epoch {
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let now = Epoch::of(word);
            let next = Epoch { number: now.number.wrapping_add(1), redo: now.redo };
            // Relaxed: published by the exchange.
            self.redo[usize::from(next.number & 1)].store(next.redo, Ordering::Relaxed);
            // AcqRel: publishes the redo position with the epoch, and goes on with the adds'
            // release sequence.
            match self.word.compare_exchange_weak(word, next.word(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    // Release: pairs with `epoch`.
                    self.current.store(next.word(), Ordering::Release);
                    return next;
                }
                Err(seen) => word = seen,
            }
        }
    }
}
