//! Session slots: what others may ask about a session, each on cache lines of its own.
//!
//! 1. A slot is written by its session; others only read it, take fast-path table locks over, or queue for the end of
//!    its transaction.
//! 2. Slots are made in chunks and never given back to the system, so that a number read anywhere is safe to look up.
//! 3. Whoever waits for a transaction registers under the slot's lock and then looks at the transaction's outcome; the
//!    owner stores the outcome and then takes the same lock to wake them: nobody is missed.

use std::sync::OnceLock;
use std::task::Waker;

use storage::Lsn;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, SpinLock};

use crate::Error;
use crate::announce::SessionFloor;
use crate::locks::{Grants, Tag};

/// Slots made at a time.
const CHUNK: usize = 256;
/// Chunks there can be: 65536 sessions.
const CHUNKS: usize = 256;
/// Table locks a session holds without the lock table.
pub const FAST_LOCKS: usize = 16;

/// What a session waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lock, in a mode.
    Lock(Tag, u8),
    /// The end of a transaction that wrote a row: its slot and number, and the row.
    End(u32, u64, Tag),
}

/// A wait, with its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Differs between any two waits of a slot.
    pub number: u64,
    /// What for.
    pub target: Target,
}

/// Who waits for the transaction of a slot to end.
struct EndWaiter {
    slot: u32,
    waker: Waker,
}

#[derive(Default)]
struct Shared {
    waiting: Option<Waiting>,
    waits: u64,
    end_waiters: Vec<EndWaiter>,
}

/// One session's slot.
pub struct Slot {
    /// The snapshots it uses.
    pub floor: SessionFloor,
    /// Lower bound of the first log record of its transaction; `u64::MAX` while it has none.
    first_lsn: AtomicU64,
    /// When that was, by the runtime's clock.
    logging_since: AtomicU64,
    /// Its transaction's number; 0 while it has none.
    txid: AtomicU64,
    /// Set by whoever grants what it waits for.
    granted: AtomicBool,
    /// Weak table locks: table << 8 | modes, 0 when unused. Padded away from what the session writes per statement
    /// is not needed: only a strong locker reads them.
    pub fast: [AtomicU64; FAST_LOCKS],
    /// The session's process number as clients know it, for `pg_locks`; 0 when nobody said.
    pub label: AtomicU32,
    /// Its transaction is taken back beside the session, which has another slot by now.
    pub leaving: AtomicBool,
    shared: SpinLock<Shared>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            floor: SessionFloor::new(),
            first_lsn: AtomicU64::new(u64::MAX),
            logging_since: AtomicU64::new(0),
            txid: AtomicU64::new(0),
            granted: AtomicBool::new(false),
            fast: std::array::from_fn(|_| AtomicU64::new(0)),
            label: AtomicU32::new(0),
            leaving: AtomicBool::new(false),
            shared: SpinLock::new(Shared::default()),
        }
    }

    /// Announces where the first record of its transaction may be. Before the record is appended.
    pub fn begin_logging(&self, position: Lsn) {
        // SeqCst: before the append's reservation; a checkpoint moves the same word before it asks, so it either sees
        // this or its redo position is not after our record.
        self.first_lsn.store(position.0, Ordering::SeqCst);
        // Relaxed: information only.
        self.logging_since.store(runtime::time::now(), Ordering::Relaxed);
    }

    /// When its transaction began to log.
    pub fn logging_since(&self) -> u64 {
        // Relaxed: information only.
        self.logging_since.load(Ordering::Relaxed)
    }

    /// The transaction's last record is appended.
    pub fn end_logging(&self) {
        // Release: after the append.
        self.first_lsn.store(u64::MAX, Ordering::Release);
    }

    /// See [`Slot::begin_logging`].
    pub fn first_lsn(&self) -> u64 {
        // SeqCst: pairs with `begin_logging`.
        self.first_lsn.load(Ordering::SeqCst)
    }

    /// Says which transaction runs here; 0 for none. Only for those who list.
    pub fn set_txid(&self, txid: u64) {
        // Relaxed: information only.
        self.txid.store(txid, Ordering::Relaxed);
    }

    /// The transaction that runs here, 0 for none.
    pub fn txid(&self) -> u64 {
        // Relaxed: information only.
        self.txid.load(Ordering::Relaxed)
    }

    /// Before a wait: nothing is granted yet.
    pub fn expect_grant(&self) {
        // Relaxed: whoever grants takes a lock that this session takes after.
        self.granted.store(false, Ordering::Relaxed);
    }

    /// Whether the wait was granted.
    pub fn is_granted(&self) -> bool {
        // Acquire: what the granter did before is seen.
        self.granted.load(Ordering::Acquire)
    }

    /// Grants the wait.
    fn grant(&self) {
        // Release: pairs with `is_granted`.
        self.granted.store(true, Ordering::Release);
    }

    /// Publishes what the session waits for, so that deadlocks and listings see it.
    pub fn begin_wait(&self, target: Target) {
        let mut shared = self.shared.lock();
        shared.waits += 1;
        shared.waiting = Some(Waiting { number: shared.waits, target });
    }

    /// The wait is over.
    pub fn end_wait(&self) {
        let over = self.shared.lock().waiting.take();
        // Dropped after the lock is released: it may free memory.
        drop(over);
    }

    /// What the session waits for.
    pub fn waiting(&self) -> Option<Waiting> {
        self.shared.lock().waiting.clone()
    }

    /// Queues for the end of this slot's transaction, unless `finished` (asked under the lock).
    pub fn await_end(&self, waiter: u32, waker: Waker, finished: impl FnOnce() -> bool) -> bool {
        let mut shared = self.shared.lock();
        if finished() {
            return false;
        }
        shared.end_waiters.push(EndWaiter { slot: waiter, waker });
        true
    }

    /// Leaves the queue of [`Slot::await_end`].
    pub fn leave_end(&self, waiter: u32) {
        self.shared.lock().end_waiters.retain(|one| one.slot != waiter);
    }
}

type Chunk = Box<[CachePadded<Slot>]>;

/// All slots.
pub struct Slots {
    chunks: Box<[OnceLock<Chunk>]>,
    /// Slots that exist: chunks below are made.
    made: AtomicU32,
    free: SpinLock<Vec<u32>>,
}

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

impl Slots {
    /// No sessions.
    pub fn new() -> Slots {
        Slots {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            made: AtomicU32::new(0),
            free: SpinLock::new(Vec::new()),
        }
    }

    /// A slot for a new session.
    pub fn claim(&self) -> Result<u32, Error> {
        let mut free = self.free.lock();
        if let Some(slot) = free.pop() {
            return Ok(slot);
        }
        // Relaxed: changed under the lock of `free` only.
        let made = self.made.load(Ordering::Relaxed) as usize;
        let chunk = self.chunks.get(made / CHUNK).ok_or(Error::TooManySessions)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| CachePadded::new(Slot::new())).collect());
        free.extend((made as u32 + 1..(made + CHUNK) as u32).rev());
        // Release: who sees the count sees the chunk.
        self.made.store((made + CHUNK) as u32, Ordering::Release);
        Ok(made as u32)
    }

    /// Gives a slot back; nothing of its session may be left in it.
    pub fn free(&self, slot: u32) {
        self.get(slot).set_txid(0);
        // Relaxed: information only.
        self.get(slot).label.store(0, Ordering::Relaxed);
        self.get(slot).leaving.store(false, Ordering::Relaxed);
        self.free.lock().push(slot);
    }

    /// The slot with this number, which must have been claimed once.
    #[inline]
    pub fn get(&self, slot: u32) -> &Slot {
        let chunk =
            self.chunks[slot as usize / CHUNK].get().expect("slots are made before their numbers are known");
        &chunk[slot as usize % CHUNK]
    }

    /// All slots, used or not, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        // Acquire: pairs with `claim`.
        let made = self.made.load(Ordering::Acquire);
        (0..made).map(|slot| (slot, self.get(slot)))
    }

    /// Wakes all who wait for the end of this slot's transaction, in order of arrival.
    pub fn wake_end_waiters(&self, slot: u32) {
        let waiters = {
            let mut shared = self.get(slot).shared.lock();
            // Granted under the lock, which whoever leaves the queue takes too: a grant that came after that would be taken
            // for one of the waiter's next wait.
            shared.end_waiters.iter().for_each(|waiter| self.get(waiter.slot).grant());
            std::mem::take(&mut shared.end_waiters)
        };
        waiters.into_iter().for_each(|waiter| waiter.waker.wake());
    }
}

impl Grants for Slots {
    fn granted(&self, slot: u32) {
        self.get(slot).grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_numbered_densely() {
        let slots = Slots::new();
        let first: Vec<u32> = (0..300).map(|_| slots.claim().unwrap()).collect();
        assert_eq!(first, (0..300).collect::<Vec<_>>());
        slots.free(17);
        assert_eq!(slots.claim(), Ok(17));
        assert_eq!(slots.iter().count(), 2 * CHUNK);
    }

    #[test]
    fn end_waiters_are_granted_or_told_that_it_is_over() {
        let slots = Slots::new();
        let (owner, waiter) = (slots.claim().unwrap(), slots.claim().unwrap());
        slots.get(waiter).expect_grant();
        assert!(slots.get(owner).await_end(waiter, Waker::noop().clone(), || false));
        assert!(!slots.get(waiter).is_granted());
        slots.wake_end_waiters(owner);
        assert!(slots.get(waiter).is_granted());
        assert!(!slots.get(owner).await_end(waiter, Waker::noop().clone(), || true));
    }
}
