//! The lock table: row, table and advisory locks that are held explicitly or waited for.
//!
//! A row that is merely being written has no entry here: its version header names the writer. An entry appears when a
//! lock is asked for explicitly or when somebody has to wait, and goes when nobody holds or awaits it.
//!
//! 1. Entries lie in partitions by hash; a partition's lock is held for a few dozen instructions and counts as a latch.
//! 2. Waiters queue first in, first out. A request waits when it conflicts with another holder. A table or advisory lock
//!    also stands back for those who wait already and conflict; a row lock does not, as in PostgreSQL. A holder that wants
//!    more goes to the front, and so does a waiter whose standing back closes a circle of waits ([`LockTable::pass`]). A
//!    release grants from the front until one can't be granted, so handing an exclusive lock over costs the same whatever
//!    the queue's length.
//!    A row lock that waits for the row's writer only is a claim ([`LockTable::claim`]): FOR KEY SHARE passes it, and so does
//!    the writer itself, which deletes the row or changes its keys.
//! 3. A grant is written into the entry before the waiter is woken: nobody can come between.
//! 4. Locks never touch rows or undo.
//! 5. Hand-over: a commit gives its locks up before its number is published. Each partition therefore keeps the highest
//!    commit that a session knew when it gave a lock up there, and a session that gets a lock hears of it
//!    ([`LockTable::released`]). Its next snapshot waits until that commit is published.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;
use storage::Lsn;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, SpinLock};

/// Target of an advisory lock: a number that sessions of one database agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AdvisoryKey {
    /// The database's OID.
    pub database: u32,
    /// The number.
    pub key: u64,
    /// Numbers of different classes differ: 1 for one number of 64 bits, 2 for two of 32 bits.
    pub class: u16,
}

/// What a lock is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tag {
    /// A row: tree and key.
    Row(u32, Arc<[u8]>),
    /// A table.
    Table(u32),
    /// Whatever two sessions agree on.
    Advisory(AdvisoryKey),
}

/// A tag whose key is borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagRef<'a> {
    /// See [`Tag::Row`].
    Row(u32, &'a [u8]),
    /// See [`Tag::Table`].
    Table(u32),
    /// See [`Tag::Advisory`].
    Advisory(AdvisoryKey),
}

/// Modes that exclude each other, as a mask by mode. Rows: key share, share, no key update, update, own delete.
const ROW_CONFLICTS: [u8; 5] = [0b1_1000, 0b1100, 0b1110, 0b1111, 0b0_0001];
/// Row mode of FOR KEY SHARE.
const KEY_SHARE: u8 = 0;
/// Row mode of a transaction that deletes a version of its own, or locks it FOR UPDATE: it waits for those who hold the row
/// FOR KEY SHARE, which an update allows, and for nobody else: who holds more is waiting for this transaction to end.
pub const OWN_DELETE: u8 = 4;
/// PostgreSQL's table of table locks, in the order of [`crate::TableLock`].
const TABLE_CONFLICTS: [u8; 8] =
    [0b1000_0000, 0b1100_0000, 0b1111_0000, 0b1111_1000, 0b1110_1100, 0b1111_1100, 0b1111_1110, 0b1111_1111];
/// Advisory: share, exclusive.
const ADVISORY_CONFLICTS: [u8; 2] = [0b10, 0b11];

impl TagRef<'_> {
    /// The modes that `mode` conflicts with.
    #[inline]
    pub fn conflicts(&self, mode: u8) -> u8 {
        match self {
            TagRef::Row(..) => ROW_CONFLICTS[usize::from(mode)],
            TagRef::Table(_) => TABLE_CONFLICTS[usize::from(mode)],
            TagRef::Advisory(_) => ADVISORY_CONFLICTS[usize::from(mode)],
        }
    }

    /// Whether a newcomer waits for those who wait already and conflict with it.
    fn stands_back(&self) -> bool {
        !matches!(self, TagRef::Row(..))
    }

    /// Whether those who wait already wait for the one who asks: it must not queue behind them.
    fn goes_first(&self, mode: u8) -> bool {
        matches!(self, TagRef::Row(..)) && mode == OWN_DELETE
    }

    /// A well-mixed number: its low bits choose the partition.
    #[inline]
    pub fn hash(&self) -> u64 {
        match *self {
            TagRef::Row(tree, key) => hash_bytes(u64::from(tree), key),
            TagRef::Table(table) => mix(u64::from(table), 0x2545_f491_4f6c_dd1d),
            TagRef::Advisory(AdvisoryKey { database, key, class }) => {
                mix(key, 0x9e6c_63d0_876a_9a35 ^ u64::from(database) << 16 ^ u64::from(class))
            }
        }
    }

    /// With a key of its own.
    pub fn to_tag(self) -> Tag {
        match self {
            TagRef::Row(tree, key) => Tag::Row(tree, key.into()),
            TagRef::Table(table) => Tag::Table(table),
            TagRef::Advisory(key) => Tag::Advisory(key),
        }
    }
}

impl Tag {
    /// Without ownership of the key.
    #[inline]
    pub fn as_ref(&self) -> TagRef<'_> {
        match self {
            Tag::Row(tree, key) => TagRef::Row(*tree, key),
            Tag::Table(table) => TagRef::Table(*table),
            Tag::Advisory(key) => TagRef::Advisory(*key),
        }
    }
}

/// Multiplies to 128 bits and folds: every input bit reaches every output bit.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0xa076_1d64_78bd_642f) * u128::from(b ^ 0xe703_7ed1_a0b4_28db);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed, bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = mix(hash, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    let mut tail = [0; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(hash, u64::from_le_bytes(tail))
}

/// A session that holds a lock, and in which modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    slot: u32,
    /// Its modes, as a mask.
    modes: u8,
    /// Modes it will hold when the row's writer has ended, as a mask. They hold off what the writer's update holds off.
    claims: u8,
}

impl Holder {
    /// Whether it is in the way of a request for `mode`.
    fn holds_off(&self, tag: TagRef<'_>, mode: u8) -> bool {
        let passes_claims = matches!(tag, TagRef::Row(..)) && matches!(mode, KEY_SHARE | OWN_DELETE);
        let modes = if passes_claims { self.modes } else { self.modes | self.claims };
        modes & tag.conflicts(mode) != 0
    }
}

struct Waiting {
    slot: u32,
    mode: u8,
    waker: Waker,
}

struct Entry {
    tag: Tag,
    holders: Vec<Holder>,
    queue: VecDeque<Waiting>,
}

impl Entry {
    fn conflicts_with_holders(&self, slot: u32, mode: u8) -> bool {
        let tag = self.tag.as_ref();
        self.holders.iter().any(|holder| holder.slot != slot && holder.holds_off(tag, mode))
    }

    fn is_queued(&self, slot: u32) -> bool {
        self.queue.iter().any(|waiting| waiting.slot == slot)
    }

    fn conflicts_with_waiters(&self, mask: u8) -> bool {
        self.queue.iter().any(|waiting| mask & 1 << waiting.mode != 0)
    }

    fn hold(&mut self, slot: u32, mode: u8) {
        match self.holders.iter_mut().find(|holder| holder.slot == slot) {
            Some(holder) => {
                holder.modes |= 1 << mode;
                holder.claims &= !(1 << mode);
            }
            None => self.holders.push(Holder { slot, modes: 1 << mode, claims: 0 }),
        }
    }

    fn holds(&self, slot: u32) -> Option<u8> {
        self.holders.iter().find(|holder| holder.slot == slot).map(|holder| holder.modes)
    }
}

/// What a request came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Held now, for the first time by this session: it must release this tag.
    Granted(Tag),
    /// Held now in this mode too; the session held the lock already in another one.
    Added(Tag),
    /// The session held it already in this mode.
    Held,
    /// Queued: the waker will be called once it is granted.
    Queued {
        /// What it waits for.
        tag: Tag,
        /// Whether the session holds the lock in no mode yet.
        first: bool,
    },
    /// Refused, since it would have had to wait and gave no waker.
    Refused,
}

/// Tells a slot that it was granted what it waits for; called under the partition's lock, before its waker.
pub trait Grants {
    /// Marks `slot`'s wait as granted.
    fn granted(&self, slot: u32);
}

/// Partitions: enough that unrelated rows seldom share one.
const PARTITIONS: usize = 1024;
/// A partition without locks keeps room for so many: a transaction that locks a million rows leaves no memory behind.
const KEPT_ENTRIES: usize = 32;

struct Partition {
    /// Entries, readable without the lock: whether a writer has to look at all.
    entries: AtomicU32,
    /// The highest commit known to a session that gave a lock up here. Raised under the lock, before `entries` falls.
    released: AtomicU64,
    table: SpinLock<HashTable<Entry>>,
}

impl Partition {
    /// Publishes how many entries there are. Under the partition's lock.
    fn count(&self, table: &HashTable<Entry>) {
        // Release: whoever reads that an entry is gone also reads what its last holder released.
        self.entries.store(table.len() as u32, Ordering::Release);
    }
}

/// The lock table.
pub struct LockTable {
    partitions: Box<[CachePadded<Partition>]>,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl LockTable {
    /// No locks.
    pub fn new() -> LockTable {
        let partition = || Partition {
            entries: AtomicU32::new(0),
            released: AtomicU64::new(0),
            table: SpinLock::new(HashTable::new()),
        };
        LockTable { partitions: (0..PARTITIONS).map(|_| CachePadded::new(partition())).collect() }
    }

    #[inline]
    fn partition(&self, hash: u64) -> &Partition {
        &self.partitions[hash as usize % PARTITIONS]
    }

    /// Whether a lock on this or a neighbouring tag exists. A writer asks under the leaf's latch; whoever locks the row
    /// looks at it under the same latch after its entry is made, so one of the two sees the other.
    #[inline]
    pub fn may_be_locked(&self, hash: u64) -> bool {
        // The leaf's latch orders this against the locker's look at the row. Acquire: pairs with `Partition::count`.
        self.partition(hash).entries.load(Ordering::Acquire) != 0
    }

    /// The highest commit that a former holder of this or a neighbouring tag knew when it gave its lock up. Asked after the
    /// lock was granted, or after [`LockTable::may_be_locked`] or [`LockTable::must_wait`] said that nobody holds it.
    #[inline]
    pub fn released(&self, hash: u64) -> Lsn {
        // Relaxed: the question before was answered under the partition's lock, or by an acquiring load of `entries`.
        Lsn(self.partition(hash).released.load(Ordering::Relaxed))
    }

    /// Whether `slot` would have to wait for `mode`.
    pub fn must_wait(&self, tag: TagRef<'_>, hash: u64, slot: u32, mode: u8) -> bool {
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return false };
        let mask = tag.conflicts(mode);
        let stands_back = entry.holds(slot).is_none() && tag.stands_back();
        entry.conflicts_with_holders(slot, mode) || stands_back && entry.conflicts_with_waiters(mask)
    }

    /// Whether `slot` holds a lock in this very mode.
    pub fn holds(&self, tag: TagRef<'_>, hash: u64, slot: u32, mode: u8) -> bool {
        let table = self.partition(hash).table.lock();
        let entry = table.find(hash, |entry| entry.tag.as_ref() == tag);
        entry.and_then(|entry| entry.holds(slot)).is_some_and(|modes| modes >> mode & 1 != 0)
    }

    /// Asks for a lock. With a waker it queues if it must wait; without one it is refused.
    pub fn request(&self, tag: TagRef<'_>, hash: u64, slot: u32, mode: u8, waker: Option<Waker>) -> Request {
        let partition = self.partition(hash);
        let mut table = partition.table.lock();
        let mask = tag.conflicts(mode);
        let place = table.entry(hash, |entry| entry.tag.as_ref() == tag, |entry| entry.tag.as_ref().hash());
        match place {
            Place::Vacant(place) => {
                let own = tag.to_tag();
                let holders = vec![Holder { slot, modes: 1 << mode, claims: 0 }];
                place.insert(Entry { tag: own.clone(), holders, queue: VecDeque::new() });
                partition.count(&table);
                Request::Granted(own)
            }
            Place::Occupied(mut place) => {
                let entry = place.get_mut();
                let first = entry.holds(slot).is_none();
                if entry.conflicts_with_holders(slot, mode)
                    || first && tag.stands_back() && entry.conflicts_with_waiters(mask)
                {
                    let Some(waker) = waker else { return Request::Refused };
                    let waiting = Waiting { slot, mode, waker };
                    match first && !tag.goes_first(mode) {
                        true => entry.queue.push_back(waiting),
                        false => entry.queue.push_front(waiting),
                    }
                    return Request::Queued { tag: entry.tag.clone(), first };
                }
                let before = entry.holds(slot);
                entry.hold(slot, mode);
                match before {
                    None => Request::Granted(entry.tag.clone()),
                    Some(modes) if modes >> mode & 1 == 0 => Request::Added(entry.tag.clone()),
                    Some(_) => Request::Held,
                }
            }
        }
    }

    /// Gives all of `slot`'s modes up and hands over. `known` is the highest commit that the session knows of.
    pub fn release(&self, tag: TagRef<'_>, slot: u32, known: Lsn, grants: &impl Grants) {
        self.release_modes(tag, (slot, u8::MAX), known, grants);
    }

    /// Gives these modes of the slot up and hands over what that makes free. `known` as for [`LockTable::release`].
    pub fn release_modes(&self, tag: TagRef<'_>, (slot, modes): (u32, u8), known: Lsn, grants: &impl Grants) {
        self.change(tag, known, grants, |entry| {
            for holder in entry.holders.iter_mut().filter(|holder| holder.slot == slot) {
                holder.modes &= !modes;
                holder.claims &= !modes;
            }
            entry.holders.retain(|holder| holder.modes | holder.claims != 0);
        });
    }

    /// Makes a mode that the slot holds a claim: it waits for the row's writer. The slot asks for the mode again when the
    /// writer has ended.
    pub fn claim(&self, tag: TagRef<'_>, slot: u32, mode: u8, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| {
            for holder in entry.holders.iter_mut().filter(|holder| holder.slot == slot) {
                holder.claims |= holder.modes & 1 << mode;
                holder.modes &= !(1 << mode);
            }
        });
    }

    /// Leaves the queue, if it is still there; what was granted meanwhile stays granted.
    pub fn leave(&self, tag: TagRef<'_>, slot: u32, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| entry.queue.retain(|waiting| waiting.slot != slot));
    }

    /// Lets `slot` go before all others in the queue, and grants what that makes free.
    pub fn pass(&self, tag: TagRef<'_>, slot: u32, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| {
            let at = entry.queue.iter().position(|waiting| waiting.slot == slot);
            if let Some(waiting) = at.and_then(|at| entry.queue.remove(at)) {
                entry.queue.push_front(waiting);
            }
        });
    }

    /// Whether `slot`, queued for `mode`, waits for `blocker` only because it stands behind others in the queue.
    pub fn stands_behind(&self, tag: TagRef<'_>, slot: u32, mode: u8, blocker: u32) -> bool {
        let hash = tag.hash();
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return false };
        let holds_off = |holder: &Holder| holder.slot == blocker && holder.holds_off(tag, mode);
        entry.is_queued(slot) && !entry.holders.iter().any(holds_off)
    }

    /// Adds a holder without asking: moves a lock here that is held already (a table lock of the fast path). `held` is
    /// asked under the partition's lock whether it still is.
    pub fn adopt(&self, tag: TagRef<'_>, slot: u32, modes: u8, held: impl FnOnce() -> bool) {
        let hash = tag.hash();
        let partition = self.partition(hash);
        let mut table = partition.table.lock();
        if !held() {
            return;
        }
        let mut entry = table
            .entry(hash, |entry| entry.tag.as_ref() == tag, |entry| entry.tag.as_ref().hash())
            .or_insert_with(|| Entry { tag: tag.to_tag(), holders: Vec::new(), queue: VecDeque::new() });
        match entry.get_mut().holders.iter_mut().find(|holder| holder.slot == slot) {
            Some(holder) => holder.modes |= modes,
            None => entry.get_mut().holders.push(Holder { slot, modes, claims: 0 }),
        }
        partition.count(&table);
    }

    /// Changes an entry, grants what can be granted, and drops it when it is empty.
    fn change(&self, tag: TagRef<'_>, known: Lsn, grants: &impl Grants, change: impl FnOnce(&mut Entry)) {
        let hash = tag.hash();
        let partition = self.partition(hash);
        // One waiter is the usual case; the vector allocates only for more.
        let (mut first, mut more) = (None, Vec::new());
        let mut large = HashTable::new();
        {
            let mut table = partition.table.lock();
            let Ok(mut place) = table.find_entry(hash, |entry| entry.tag.as_ref() == tag) else { return };
            let entry = place.get_mut();
            change(entry);
            // Relaxed, both: changed under the lock only; for readers see `released`.
            if partition.released.load(Ordering::Relaxed) < known.0 {
                partition.released.store(known.0, Ordering::Relaxed);
            }
            while let Some(waiting) = entry.queue.front() {
                if entry.conflicts_with_holders(waiting.slot, waiting.mode) {
                    break;
                }
                let Some(waiting) = entry.queue.pop_front() else { break };
                entry.hold(waiting.slot, waiting.mode);
                grants.granted(waiting.slot);
                match first {
                    None => first = Some(waiting.waker),
                    Some(_) => more.push(waiting.waker),
                }
            }
            if entry.holders.is_empty() && entry.queue.is_empty() {
                place.remove();
                partition.count(&table);
                if table.is_empty() && table.capacity() > KEPT_ENTRIES {
                    large = std::mem::take(&mut *table);
                }
            }
        }
        // Its memory is given back without the lock.
        drop(large);
        first.into_iter().chain(more).for_each(Waker::wake);
    }

    /// Whom `slot`, queued for `mode`, waits for: holders that conflict with it or with somebody before it in the queue.
    /// Who is before it and holds nothing waits for those holders itself, so that a long queue is no long way.
    pub fn blockers(&self, tag: TagRef<'_>, slot: u32, mode: u8, blockers: &mut Vec<u32>) {
        let hash = tag.hash();
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return };
        if !entry.is_queued(slot) {
            // Granted, and on its way.
            return;
        }
        let before = || entry.queue.iter().take_while(|waiting| waiting.slot != slot);
        let modes = || before().map(|waiting| waiting.mode).chain([mode]);
        let in_the_way = |holder: &&Holder| modes().any(|mode| holder.holds_off(tag, mode));
        let holding = entry.holders.iter().filter(|holder| holder.slot != slot).filter(in_the_way);
        blockers.extend(holding.map(|holder| holder.slot));
        // Holders that want more are the first in the queue.
        let upgrading = before().map_while(|waiting| entry.holds(waiting.slot).map(|_| waiting.slot));
        blockers.extend(upgrading);
    }

    /// Calls `each(tag, slot, modes, granted)` for everything held and awaited.
    pub fn for_each(&self, mut each: impl FnMut(&Tag, u32, u8, bool)) {
        for partition in &self.partitions {
            // Copied out first: the caller's work is not done under the lock.
            let mut copy = Vec::new();
            for entry in partition.table.lock().iter() {
                let held =
                    entry.holders.iter().map(|holder| (holder.slot, holder.modes | holder.claims, true));
                let awaited = entry.queue.iter().map(|waiting| (waiting.slot, 1 << waiting.mode, false));
                copy.extend(
                    held.chain(awaited)
                        .map(|(slot, modes, granted)| (entry.tag.clone(), slot, modes, granted)),
                );
            }
            for (tag, slot, modes, granted) in copy {
                each(&tag, slot, modes, granted);
            }
        }
    }
}

#[cfg(test)]
mod tests;
