//! Session slots: the state of a session that others may read, each slot on cache lines of its own.
//!
//! 1. A session writes its own slot. Others only read it, move its weak table locks, or queue
//!    for the end of its transaction.
//! 2. Slots are made in chunks and never given back to the system. So looking up a slot number is
//!    safe wherever it was read.
//! 3. A session that waits for a transaction registers under the slot's lock, then looks at the
//!    transaction's outcome. The owner stores the outcome, then takes the same lock to wake the
//!    waiters. So no waiter is missed.

use std::task::Waker;

use storage::Lsn;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, OnceLock, SpinLock, assert_apart};

use crate::Error;
use crate::announce::SessionFloor;
use crate::locks::{Grants, Tag};
use crate::weak::WeakLocks;

/// Number of slots made at once.
const CHUNK: usize = 256;
/// Most chunks that can exist: 65536 sessions.
const CHUNKS: usize = 256;

/// The object of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lock, in a mode.
    Lock(Tag, u8),
    /// The end of a transaction that wrote a row: its slot, its number, and the row.
    End(u32, u64, Tag),
}

/// A wait of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Differs between any two waits of a slot.
    pub number: u64,
    /// Its object.
    pub target: Target,
}

/// A session that waits for the end of a slot's transaction.
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
    /// The snapshots that the session uses.
    pub floor: SessionFloor,
    /// Lower bound of the first log record of its transaction; `u64::MAX` before that record.
    first_lsn: AtomicU64,
    /// Time of the first log record, by the runtime's clock.
    logging_since: AtomicU64,
    /// Its transaction's number; 0 without one.
    txid: AtomicU64,
    /// Set by the session that grants the wait.
    granted: AtomicBool,
    /// Weak table locks. They need no padding from what the session writes in each statement,
    /// because only a strong locker reads them.
    pub weak: WeakLocks,
    /// The session's process number as clients know it, for `pg_locks`; 0 if not set.
    pub label: AtomicU32,
    /// Whether its transaction's rollback has left the session, which has another slot by now.
    pub(crate) leaving: AtomicBool,
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
            weak: WeakLocks::new(),
            label: AtomicU32::new(0),
            leaving: AtomicBool::new(false),
            shared: SpinLock::new(&"transaction slot", Shared::default()),
        }
    }

    /// Announces a lower bound of the transaction's first record. Call it before the record is
    /// appended.
    pub fn begin_logging(&self, position: Lsn) {
        // SeqCst: before the append's reservation. A checkpoint moves the same word before it asks.
        // So either it sees this store, or its redo position is not after our record.
        self.first_lsn.store(position.0, Ordering::SeqCst);
        // Relaxed: information only.
        self.logging_since.store(runtime::time::now(), Ordering::Relaxed);
    }

    /// Time at which its transaction began to log.
    pub(crate) fn logging_since(&self) -> u64 {
        // Relaxed: information only.
        self.logging_since.load(Ordering::Relaxed)
    }

    /// Ends the announcement, once the transaction's last record is appended.
    pub(crate) fn end_logging(&self) {
        // Release: after the append.
        self.first_lsn.store(u64::MAX, Ordering::Release);
    }

    /// See [`Slot::begin_logging`].
    pub(crate) fn first_lsn(&self) -> u64 {
        // SeqCst: pairs with `begin_logging`.
        self.first_lsn.load(Ordering::SeqCst)
    }

    /// Sets the transaction that runs here; 0 for none. Only lists read it.
    pub(crate) fn set_txid(&self, txid: u64) {
        // Relaxed: information only.
        self.txid.store(txid, Ordering::Relaxed);
    }

    /// The transaction that runs here; 0 for none.
    pub fn txid(&self) -> u64 {
        // Relaxed: information only.
        self.txid.load(Ordering::Relaxed)
    }

    /// Clears the grant before a wait.
    pub(crate) fn expect_grant(&self) {
        // Relaxed: the granter takes a lock that this session takes after this store.
        self.granted.store(false, Ordering::Relaxed);
    }

    /// Whether the wait was granted.
    pub(crate) fn is_granted(&self) -> bool {
        // Acquire: sees what the granter did before.
        self.granted.load(Ordering::Acquire)
    }

    /// Grants the wait.
    fn grant(&self) {
        // Release: pairs with `is_granted`.
        self.granted.store(true, Ordering::Release);
    }

    /// Publishes the object of the session's wait, for deadlock searches and lists.
    pub(crate) fn begin_wait(&self, target: Target) {
        let mut shared = self.shared.lock();
        shared.waits += 1;
        shared.waiting = Some(Waiting { number: shared.waits, target });
    }

    /// Ends the wait.
    pub(crate) fn end_wait(&self) {
        let over = self.shared.lock().waiting.take();
        // Dropped outside the lock, because it may free memory.
        drop(over);
    }

    /// The session's present wait.
    pub fn waiting(&self) -> Option<Waiting> {
        self.shared.lock().waiting.clone()
    }

    /// Queues for the end of this slot's transaction. False if `finished`, asked under the lock,
    /// says that it has ended.
    pub(crate) fn await_end(&self, waiter: u32, waker: Waker, finished: impl FnOnce() -> bool) -> bool {
        let mut shared = self.shared.lock();
        if finished() {
            return false;
        }
        shared.end_waiters.push(EndWaiter { slot: waiter, waker });
        true
    }

    /// Leaves the queue of [`Slot::await_end`].
    pub(crate) fn leave_end(&self, waiter: u32) {
        self.shared.lock().end_waiters.retain(|one| one.slot != waiter);
    }
}

type Chunk = Box<[CachePadded<Slot>]>;

/// All session slots of an engine.
pub struct Slots {
    chunks: Box<[OnceLock<Chunk>]>,
    /// Number of existing slots; the chunks below it are made.
    made: AtomicU32,
    /// Each connect and disconnect writes it. So it lies apart from `chunks`, which statements
    /// read.
    free: CachePadded<SpinLock<Vec<u32>>>,
    #[cfg(variants)]
    pub(crate) listed: crate::listed::Listed,
}

assert_apart!(Slots: free from chunks, made);

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

impl Slots {
    /// A table without slots.
    pub fn new() -> Slots {
        Slots {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            made: AtomicU32::new(0),
            free: CachePadded::new(SpinLock::new(&"transaction slots", Vec::new())),
            #[cfg(variants)]
            listed: crate::listed::Listed::new(CHUNK * CHUNKS),
        }
    }

    /// Claims a slot for a new session.
    pub fn claim(&self) -> Result<u32, Error> {
        let mut free = self.free.lock();
        if let Some(slot) = free.pop() {
            return Ok(slot);
        }
        // Relaxed: changed only under the lock of `free`.
        let made = self.made.load(Ordering::Relaxed) as usize;
        let chunk = self.chunks.get(made / CHUNK).ok_or(Error::TooManySessions)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| CachePadded::new(Slot::new())).collect());
        free.extend((made as u32 + 1..(made + CHUNK) as u32).rev());
        // Release: a reader of the count sees the chunk.
        self.made.store((made + CHUNK) as u32, Ordering::Release);
        Ok(made as u32)
    }

    /// Frees a slot, in which nothing of its session may be left.
    pub fn free(&self, slot: u32) {
        self.get(slot).set_txid(0);
        // Relaxed: information only.
        self.get(slot).label.store(0, Ordering::Relaxed);
        self.get(slot).leaving.store(false, Ordering::Relaxed);
        self.free.lock().push(slot);
    }

    /// The slot with this number. The number must have been claimed once.
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

    /// Wakes all waiters for the end of this slot's transaction, in order of arrival.
    pub(crate) fn wake_end_waiters(&self, slot: u32) {
        let waiters = {
            let mut shared = self.get(slot).shared.lock();
            // The grant happens under the lock, and so does leaving the queue. A grant after that
            // could reach a waiter that has left and waits for something else; it would take the
            // grant for its new wait.
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
