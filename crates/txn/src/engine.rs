//! The engine: the state that all sessions share.

use std::sync::Arc;

use runtime::{fiber, time};
use storage::{Lsn, Store};
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Error;
use crate::announce::CoreFloors;
use crate::deadlock::{Graph, Node, Searches};
use crate::folder::Folder;
use crate::locks::{AdvisoryKey, LockTable, Tag};
use crate::retained::RetainedLimit;
use crate::slots::{Slots, Target};
use crate::status::{Status, StatusTable};
use crate::txid::Txids;
use crate::undo::UndoSpace;
use crate::weak::StrongCounts;

/// Yields for the look of another core. The kernel may have taken that one's processor away.
const YIELDS: u32 = 64;

/// Transactions on one store. Each runtime has one engine.
pub struct Engine {
    folder: Folder,
    pub(crate) status: StatusTable,
    pub(crate) txids: Txids,
    pub(crate) slots: Slots,
    pub(crate) floors: CoreFloors,
    pub(crate) locks: LockTable,
    pub(crate) undo: UndoSpace,
    /// Every transaction with a lower number has ended, and everybody sees its outcome.
    pub(crate) horizon: CachePadded<AtomicU64>,
    /// New snapshots include commits up to here.
    pub(crate) published: Arc<CachePadded<AtomicU64>>,
    /// Whether a core looks at all cores' places in the log, to publish what is filled.
    looking: CachePadded<AtomicBool>,
    /// Strong table locks held or asked for. Weak ones bypass the lock table where there is none.
    pub(crate) strong: StrongCounts,
    deadlocks: CachePadded<Searches>,
    closed: AtomicBool,
    pub(crate) retained: RetainedLimit,
}

/// The object of a listed lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockedObject {
    /// A table.
    Table(u32),
    /// A row: tree and key.
    Row(u32, Arc<[u8]>),
    /// A transaction, whose end the waiter wants.
    Transaction(u64),
    /// An advisory lock.
    Advisory(AdvisoryKey),
}

/// A lock that is held or waited for, as `pg_locks` lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// The session, as [`crate::TxnSession::set_label`] named it.
    pub session: u32,
    /// Its transaction's number; 0 without one.
    pub txid: u64,
    /// The locked object.
    pub object: LockedObject,
    /// The modes, as a mask in the order of [`crate::TableLock`] or [`crate::RowLock`]. A row has a
    /// fifth mode, for deleting a version that the transaction itself wrote.
    pub modes: u8,
    /// Whether the lock is held; false means that the session waits for it.
    pub granted: bool,
    /// Whether the lock is held without an entry in the lock table.
    pub fast_path: bool,
}

impl Engine {
    /// An engine over a store that is not recovered yet, without background work.
    pub(crate) fn new(folder: Folder, first_txid: u64) -> Result<Arc<Engine>, Error> {
        // The reserve worker serves sessions, and the service worker runs short tasks.
        let workers = folder.runtime().worker_count();
        let txids = Txids::new(first_txid, workers);
        let published = Arc::new(CachePadded::new(AtomicU64::new(folder.0.wal().durable().0)));
        let engine = Engine {
            status: StatusTable::new()?,
            slots: Slots::new(),
            floors: CoreFloors::new(workers),
            locks: LockTable::new(),
            undo: UndoSpace::new(workers),
            horizon: CachePadded::new(AtomicU64::new(txids.end())),
            txids,
            published,
            looking: CachePadded::new(AtomicBool::new(false)),
            strong: StrongCounts::new(),
            deadlocks: CachePadded::new(Searches::new()),
            closed: AtomicBool::new(false),
            retained: RetainedLimit::default(),
            folder,
        };
        Ok(Arc::new(engine))
    }

    /// Gives the log its callbacks into the transactions.
    pub(crate) fn attach(self: &Arc<Self>) {
        let wal = self.store().wal();
        let published = Arc::clone(&self.published);
        wal.on_durable(move |durable| raise(&published, durable));
        // Weak: the log must not keep the engine alive, because the engine keeps the log.
        let engine = Arc::downgrade(self);
        wal.set_floor_source(move || {
            let engine = engine.upgrade();
            let first = engine.and_then(|engine| engine.slots.iter().map(|(_, slot)| slot.first_lsn()).min());
            Lsn(first.unwrap_or(u64::MAX))
        });
        let engine = Arc::downgrade(self);
        wal.set_checkpoint_info(move || {
            engine.upgrade().map_or_else(Vec::new, |engine| engine.txids.end().to_le_bytes().to_vec())
        });
    }

    /// The folder under the engine.
    #[inline]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The folder's store.
    #[inline]
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.folder.0
    }

    /// Ends the background work and closes the store. No session may be left. Must run in a fiber.
    pub fn close(&self) -> Result<(), Error> {
        // Relaxed: background work reads the flag now and then.
        self.closed.store(true, Ordering::Relaxed);
        Ok(self.store().close()?)
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: see `close`.
        self.closed.load(Ordering::Relaxed)
    }

    /// The number below which every transaction has ended and everybody sees its outcome.
    #[inline]
    pub fn horizon(&self) -> u64 {
        // Acquire: pairs with the store of the horizon's keeper.
        self.horizon.load(Ordering::Acquire)
    }

    /// New snapshots include commits up to here.
    #[inline]
    pub fn published(&self) -> Lsn {
        // Acquire: the publisher saw the outcomes of all commits below this position stored.
        Lsn(self.published.load(Ordering::Acquire))
    }

    pub(crate) fn publish(&self, lsn: Lsn) {
        raise(&self.published, lsn);
    }

    /// Publishes filled parts of the log until they reach `lsn`. This takes as long as other cores'
    /// unfinished copies into the log. It publishes commits behind `lsn` too, so that their
    /// sessions need no look. Readers wait for those that are not on disk yet.
    #[inline]
    pub(crate) fn publish_filled(&self, lsn: Lsn) {
        if self.published() < lsn {
            self.look_until_filled(lsn);
        }
    }

    /// A look takes a cache line from each core. So one core at a time looks, for all that wait.
    #[cold]
    fn look_until_filled(&self, lsn: Lsn) {
        let mut yields = YIELDS;
        while self.published() < lsn {
            if yields > 0 && self.is_looked_at() {
                yields -= 1;
            } else {
                self.publish(self.store().wal().filled());
                // Relaxed: as in `is_looked_at`. After the yields this may end another core's turn.
                self.looking.store(false, Ordering::Relaxed);
                if self.published() >= lsn {
                    return;
                }
            }
            fiber::yield_now();
        }
    }

    /// Whether another core looks. If none does, the caller's turn begins.
    fn is_looked_at(&self) -> bool {
        // Relaxed: the flag spares looks, and orders nothing. Anybody may look at any time.
        self.looking.load(Ordering::Relaxed) || self.looking.swap(true, Ordering::Relaxed)
    }

    /// A bound above all transaction numbers handed out so far.
    pub fn next_txid(&self) -> u64 {
        self.txids.end()
    }

    /// Pages of undo in use.
    pub fn undo_pages(&self) -> usize {
        self.undo.pages()
    }

    /// Whether a wait that begins now searches for a deadlock before it parks.
    pub(crate) fn expects_deadlock(&self) -> bool {
        self.deadlocks.expected(time::now())
    }

    /// Searches for a deadlock of `slot`. If there is one, `leave` takes the slot out of its queue
    /// before others search. `None`: another search is running; try again soon.
    pub(crate) fn search_deadlock(&self, slot: u32, leave: impl FnOnce()) -> Option<bool> {
        self.deadlocks.search(self, slot, time::now(), leave)
    }

    /// All locks that are held or waited for.
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut list = Vec::new();
        let info = |slot: u32, object, modes, granted, fast_path| {
            let slot = self.slots.get(slot);
            // Relaxed: information only.
            let session = slot.label.load(Ordering::Relaxed);
            LockInfo { session, txid: slot.txid(), object, modes, granted, fast_path }
        };
        self.locks
            .for_each(|tag, slot, modes, granted| list.push(info(slot, object(tag), modes, granted, false)));
        for (number, slot) in self.slots.iter() {
            for word in slot.weak.iter() {
                list.push(info(number, LockedObject::Table(word.table()), word.modes(), true, true));
            }
            if slot.txid() != 0 {
                list.push(info(number, LockedObject::Transaction(slot.txid()), 1 << 6, true, false));
            }
            if let Some(Target::End(_, txid, _)) = slot.waiting().map(|waiting| waiting.target) {
                list.push(info(number, LockedObject::Transaction(txid), 1 << 4, false, false));
            }
        }
        list
    }
}

fn object(tag: &Tag) -> LockedObject {
    match tag {
        Tag::Row(tree, key) => LockedObject::Row(*tree, Arc::clone(key)),
        Tag::Table(table) => LockedObject::Table(*table),
        Tag::Advisory(key) => LockedObject::Advisory(*key),
    }
}

/// Raises a published position. Loads it first, so the cache line is written only when the value
/// changes.
fn raise(published: &AtomicU64, lsn: Lsn) {
    // Relaxed: only saves the write. Release: readers of the position see the outcomes stored
    // before.
    if published.load(Ordering::Relaxed) < lsn.0 {
        published.fetch_max(lsn.0, Ordering::AcqRel);
    }
}

impl Graph for Engine {
    fn waiting(&self, slot: u32) -> Option<Node> {
        let slot_of = self.slots.get(slot);
        // One whose wait was granted is about to go on.
        let waiting = slot_of.waiting().filter(|_| !slot_of.is_granted());
        waiting.map(|waiting| Node { slot, wait: waiting.number })
    }

    fn blockers(&self, slot: u32, blockers: &mut Vec<u32>) {
        match self.slots.get(slot).waiting().map(|waiting| waiting.target) {
            None => {}
            Some(Target::Lock(tag, mode)) => self.locks.blockers(tag.as_ref(), slot, mode, blockers),
            Some(Target::End(owner, txid, _)) if self.status.get(txid) == Status::Running(owner) => {
                blockers.push(owner);
            }
            Some(Target::End(..)) => {}
        }
    }

    fn stands_behind(&self, slot: u32, blocker: u32) -> bool {
        match self.slots.get(slot).waiting().map(|waiting| waiting.target) {
            Some(Target::Lock(tag, mode)) => self.locks.stands_behind(tag.as_ref(), slot, mode, blocker),
            _ => false,
        }
    }

    fn pass(&self, slot: u32) {
        if let Some(Target::Lock(tag, _)) = self.slots.get(slot).waiting().map(|waiting| waiting.target) {
            self.locks.pass(tag.as_ref(), slot, &self.slots);
        }
    }
}
