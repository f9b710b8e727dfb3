//! The lock table: row, table and advisory locks that are held explicitly or waited for.
//!
//! A row that is merely being written has no entry here: its version header names the writer. An
//! entry appears when a session asks for a lock explicitly or has to wait. It goes when no session
//! holds the lock or waits for it.
//!
//! 1. Entries lie in partitions by hash. A partition's spin lock is held for a few dozen
//!    instructions and counts as a latch.
//! 2. Waiters queue first in, first out. A request waits when it conflicts with another holder. A
//!    request for a table or advisory lock also waits behind earlier waiters with which it
//!    conflicts; a row lock does not, as in PostgreSQL. A holder that wants more goes to the front.
//!    So does a waiter whose place in the queue closes a circle of waits ([`LockTable::pass`]). A
//!    release grants from the front until a request cannot be granted. So handing over an exclusive
//!    lock costs the same whatever the queue's length.
//! 3. A row lock that waits only for the row's writer is a claim ([`LockTable::claim`]). FOR KEY
//!    SHARE passes it. So does the writer itself, when it deletes the row or changes its keys.
//! 4. A grant is written into the entry before the waiter is woken, so no session comes between.
//! 5. Locks never touch rows or undo.
//! 6. The profiler counts a hold in the holder's entry, and a wait in the waiter's: both end under
//!    the partition's lock.
//! 7. Hand-over: a commit gives its locks up before its number is published. So each partition
//!    keeps the highest commit known to a session that gave a lock up there. A session that gets a
//!    lock reads it ([`LockTable::released`]), and its next snapshot waits until that commit is
//!    published.
//!
//! `tests/loom_locks.rs` runs this file under loom.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::profile::{Class, Hold, Kind, Site, Waiting as Waited};
use sync::{CachePadded, SpinLock};

use crate::Lsn;

/// Object of an advisory lock: a number that sessions of one database agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AdvisoryKey {
    /// The database's OID.
    pub database: u32,
    /// The number.
    pub key: u64,
    /// 1 for one number of 64 bits, 2 for two of 32 bits. Numbers of different classes differ.
    pub class: u16,
}

/// The object of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tag {
    /// A row: tree and key.
    Row(u32, Arc<[u8]>),
    /// A table.
    Table(u32),
    /// A number that sessions agree on.
    Advisory(AdvisoryKey),
}

/// A [`Tag`] whose key is borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagRef<'a> {
    /// See [`Tag::Row`].
    Row(u32, &'a [u8]),
    /// See [`Tag::Table`].
    Table(u32),
    /// See [`Tag::Advisory`].
    Advisory(AdvisoryKey),
}

/// For each row mode, a mask of the modes that it excludes. Modes: key share, share, no key update,
/// update, own delete.
const ROW_CONFLICTS: [u8; 5] = [0b1_1000, 0b1100, 0b1110, 0b1111, 0b0_0001];
/// Row mode of FOR KEY SHARE.
const KEY_SHARE: u8 = 0;
/// Row mode of a transaction that deletes a version of its own, or locks it FOR UPDATE. It waits
/// only for holders of FOR KEY SHARE, which an update allows. A session that holds more waits for
/// this transaction to end.
pub(crate) const OWN_DELETE: u8 = 4;
/// PostgreSQL's conflict table of table locks, in the order of [`crate::TableLock`].
const TABLE_CONFLICTS: [u8; 8] =
    [0b1000_0000, 0b1100_0000, 0b1111_0000, 0b1111_1000, 0b1110_1100, 0b1111_1100, 0b1111_1110, 0b1111_1111];
/// Advisory modes: share, exclusive.
const ADVISORY_CONFLICTS: [u8; 2] = [0b10, 0b11];

impl TagRef<'_> {
    /// The modes that conflict with `mode`.
    #[inline]
    pub fn conflicts(&self, mode: u8) -> u8 {
        match self {
            TagRef::Row(..) => ROW_CONFLICTS[usize::from(mode)],
            TagRef::Table(_) => TABLE_CONFLICTS[usize::from(mode)],
            TagRef::Advisory(_) => ADVISORY_CONFLICTS[usize::from(mode)],
        }
    }

    /// The lock's class in the profile.
    pub(crate) fn class(&self) -> Class {
        match self {
            TagRef::Row(..) => &"row lock",
            TagRef::Table(_) => &"table lock",
            TagRef::Advisory(_) => &"advisory lock",
        }
    }

    /// Whether a new request waits behind earlier waiters with which it conflicts.
    fn stands_back(&self) -> bool {
        !matches!(self, TagRef::Row(..))
    }

    /// Whether the earlier waiters wait for the requester itself, which must not queue behind them.
    fn goes_first(&self, mode: u8) -> bool {
        matches!(self, TagRef::Row(..)) && mode == OWN_DELETE
    }

    /// A well-mixed hash; its low bits choose the partition.
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

    /// The tag with a key of its own.
    pub(crate) fn to_tag(self) -> Tag {
        match self {
            TagRef::Row(tree, key) => Tag::Row(tree, key.into()),
            TagRef::Table(table) => Tag::Table(table),
            TagRef::Advisory(key) => Tag::Advisory(key),
        }
    }
}

impl Tag {
    /// The tag with a borrowed key.
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

/// A session that holds a lock, with its modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holder {
    slot: u32,
    /// Modes that it holds, as a mask.
    modes: u8,
    /// Modes that it will hold once the row's writer has ended, as a mask. They exclude what the
    /// writer's update excludes.
    claims: u8,
    /// Its hold since it got its first mode, for the profiler.
    hold: Hold,
}

impl Holder {
    /// Whether the holder excludes a request for `mode`.
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
    /// The wait, and the place that asked, for the profiler.
    waited: Option<(Waited, Site)>,
}

impl Waiting {
    /// The wait is over. Returns the hold that begins.
    fn granted(&self) -> Hold {
        self.waited.as_ref().map_or(Hold::NONE, |(waited, site)| waited.hold_unmarked(site))
    }

    /// The waiter has given up.
    fn gave_up(&self) {
        if let Some((waited, site)) = &self.waited {
            waited.end(&Site { kind: Kind::Wait, ..*site });
        }
    }
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

    /// Adds a mode to the slot's. `hold` begins with it: the profiler counts what the slot held
    /// before up to here.
    fn hold(&mut self, slot: u32, mode: u8, hold: Hold) {
        let is_wanted = !self.queue.is_empty();
        match self.holders.iter_mut().find(|holder| holder.slot == slot) {
            Some(holder) => {
                holder.modes |= 1 << mode;
                holder.claims &= !(1 << mode);
                std::mem::replace(&mut holder.hold, hold).end_unmarked(|| is_wanted);
            }
            None => self.holders.push(Holder { slot, modes: 1 << mode, claims: 0, hold }),
        }
    }

    fn holds(&self, slot: u32) -> Option<u8> {
        self.holders.iter().find(|holder| holder.slot == slot).map(|holder| holder.modes)
    }
}

/// Outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Granted. The session did not hold the lock in this mode and must release this tag.
    Granted(Tag),
    /// The session held the lock in this mode already.
    Held,
    /// Queued for this lock. The waker is called once the mode is granted.
    Queued(Tag),
    /// Refused: the request would have had to wait and gave no waker.
    Refused,
}

/// Marks a slot's wait as granted. Called under the partition's lock, before the slot's waker.
pub trait Grants {
    /// Marks `slot`'s wait as granted.
    fn granted(&self, slot: u32);
}

/// Number of partitions: enough that unrelated rows seldom share one. Loom's models have one row.
const PARTITIONS: usize = if cfg!(loom) { 1 } else { 1024 };
/// Entries for which an empty partition keeps memory. A transaction that locks a million rows
/// leaves no more behind.
const KEPT_ENTRIES: usize = 32;

struct Partition {
    /// Number of entries, readable without the lock: tells a writer whether it has to look at all.
    entries: AtomicU32,
    /// The highest commit known to a session that gave a lock up here. Raised under the lock,
    /// before `entries` falls.
    released: AtomicU64,
    table: SpinLock<HashTable<Entry>>,
}

impl Partition {
    /// Publishes the number of entries. Called under the partition's lock.
    fn count(&self, table: &HashTable<Entry>) {
        // Release: a reader that finds an entry gone also reads what its last holder released.
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
    /// An empty table.
    pub fn new() -> LockTable {
        let partition = || Partition {
            entries: AtomicU32::new(0),
            released: AtomicU64::new(0),
            table: SpinLock::new(&"lock table", HashTable::new()),
        };
        LockTable { partitions: (0..PARTITIONS).map(|_| CachePadded::new(partition())).collect() }
    }

    #[inline]
    fn partition(&self, hash: u64) -> &Partition {
        &self.partitions[hash as usize % PARTITIONS]
    }

    /// Whether a lock on this tag, or on one of the same partition, exists. A writer asks under the
    /// leaf's latch. A session that locks the row looks at the row under the same latch after it
    /// has made its entry. So one of the two sees the other.
    #[inline]
    pub(crate) fn may_be_locked(&self, hash: u64) -> bool {
        // The leaf's latch orders this against the locker's look at the row. Acquire: pairs with
        // `Partition::count`.
        self.partition(hash).entries.load(Ordering::Acquire) != 0
    }

    /// The highest commit that a former holder of this tag, or of one of the same partition, knew
    /// when it gave its lock up. Call it after the lock was granted, or after
    /// [`LockTable::may_be_locked`] or [`LockTable::must_wait`] has found no holder.
    #[inline]
    pub fn released(&self, hash: u64) -> Lsn {
        // Relaxed: the partition's lock, or an acquiring load of `entries`, answered the question
        // before.
        Lsn(self.partition(hash).released.load(Ordering::Relaxed))
    }

    /// Whether `slot` would have to wait for `mode`.
    pub(crate) fn must_wait(&self, tag: TagRef<'_>, hash: u64, slot: u32, mode: u8) -> bool {
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return false };
        let mask = tag.conflicts(mode);
        let stands_back = entry.holds(slot).is_none() && tag.stands_back();
        entry.conflicts_with_holders(slot, mode) || stands_back && entry.conflicts_with_waiters(mask)
    }

    /// Whether a slot waits for the lock.
    pub(crate) fn is_wanted(&self, tag: TagRef<'_>) -> bool {
        let hash = tag.hash();
        let table = self.partition(hash).table.lock();
        table.find(hash, |entry| entry.tag.as_ref() == tag).is_some_and(|entry| !entry.queue.is_empty())
    }

    /// Whether `slot` holds a lock in this very mode.
    pub fn holds(&self, tag: TagRef<'_>, hash: u64, slot: u32, mode: u8) -> bool {
        let table = self.partition(hash).table.lock();
        let entry = table.find(hash, |entry| entry.tag.as_ref() == tag);
        entry.and_then(|entry| entry.holds(slot)).is_some_and(|modes| modes >> mode & 1 != 0)
    }

    /// Asks for a lock. If the request must wait, it queues with a waker and is refused without
    /// one. `site` is the place that the profiler names.
    pub fn request(
        &self,
        site: Site,
        (tag, hash): (TagRef<'_>, u64),
        slot: u32,
        mode: u8,
        waker: Option<Waker>,
    ) -> Request {
        let partition = self.partition(hash);
        let mut table = partition.table.lock();
        let mask = tag.conflicts(mode);
        let place = table.entry(hash, |entry| entry.tag.as_ref() == tag, |entry| entry.tag.as_ref().hash());
        match place {
            Place::Vacant(place) => {
                let own = tag.to_tag();
                let hold = Hold::begin_unmarked(|| site);
                let holders = vec![Holder { slot, modes: 1 << mode, claims: 0, hold }];
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
                    let waited = Waited::begin_unmarked().map(|waited| (waited, site));
                    let waiting = Waiting { slot, mode, waker, waited };
                    match first && !tag.goes_first(mode) {
                        true => entry.queue.push_back(waiting),
                        false => entry.queue.push_front(waiting),
                    }
                    return Request::Queued(entry.tag.clone());
                }
                if entry.holds(slot).is_some_and(|modes| modes >> mode & 1 != 0) {
                    return Request::Held;
                }
                entry.hold(slot, mode, Hold::begin_unmarked(|| site));
                Request::Granted(entry.tag.clone())
            }
        }
    }

    /// Gives up all modes of `slot` and hands the lock over. `known` is the highest commit that the
    /// session knows.
    pub fn release(&self, tag: TagRef<'_>, slot: u32, known: Lsn, grants: &impl Grants) {
        self.release_modes(tag, (slot, u8::MAX), known, grants);
    }

    /// Gives up these modes of the slot and hands over what becomes free. `known` as for
    /// [`LockTable::release`].
    pub(crate) fn release_modes(
        &self,
        tag: TagRef<'_>,
        (slot, modes): (u32, u8),
        known: Lsn,
        grants: &impl Grants,
    ) {
        self.change(tag, known, grants, |entry| {
            let is_wanted = !entry.queue.is_empty();
            for holder in entry.holders.iter_mut().filter(|holder| holder.slot == slot) {
                holder.modes &= !modes;
                holder.claims &= !modes;
                if holder.modes | holder.claims == 0 {
                    holder.hold.end_unmarked(|| is_wanted);
                }
            }
            entry.holders.retain(|holder| holder.modes | holder.claims != 0);
        });
    }

    /// Turns a mode that the slot holds into a claim, which waits for the row's writer. The slot
    /// asks for the mode again when the writer has ended.
    pub fn claim(&self, tag: TagRef<'_>, slot: u32, mode: u8, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| {
            for holder in entry.holders.iter_mut().filter(|holder| holder.slot == slot) {
                holder.claims |= holder.modes & 1 << mode;
                holder.modes &= !(1 << mode);
            }
        });
    }

    /// Takes the slot out of the queue, if it is still there. A grant that came meanwhile stays.
    pub fn leave(&self, tag: TagRef<'_>, slot: u32, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| {
            entry.queue.iter().filter(|waiting| waiting.slot == slot).for_each(Waiting::gave_up);
            entry.queue.retain(|waiting| waiting.slot != slot);
        });
    }

    /// Moves `slot` to the front of the queue, and grants what becomes free.
    pub fn pass(&self, tag: TagRef<'_>, slot: u32, grants: &impl Grants) {
        self.change(tag, Lsn::ZERO, grants, |entry| {
            let at = entry.queue.iter().position(|waiting| waiting.slot == slot);
            if let Some(waiting) = at.and_then(|at| entry.queue.remove(at)) {
                entry.queue.push_front(waiting);
            }
        });
    }

    /// Whether the wait of `slot` for `mode` depends on `blocker` only because `blocker` stands
    /// before it in the queue.
    pub fn stands_behind(&self, tag: TagRef<'_>, slot: u32, mode: u8, blocker: u32) -> bool {
        let hash = tag.hash();
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return false };
        let holds_off = |holder: &Holder| holder.slot == blocker && holder.holds_off(tag, mode);
        entry.is_queued(slot) && !entry.holders.iter().any(holds_off)
    }

    /// Adds a holder without a request: moves a table lock of the fast path here. `held` says,
    /// under the partition's lock, whether the session still holds it.
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
            // The session itself counts the hold of a lock that it took on the fast path.
            None => entry.get_mut().holders.push(Holder { slot, modes, claims: 0, hold: Hold::NONE }),
        }
        partition.count(&table);
    }

    /// Changes an entry, grants what can be granted, and drops the entry if it is empty.
    fn change(&self, tag: TagRef<'_>, known: Lsn, grants: &impl Grants, change: impl FnOnce(&mut Entry)) {
        let hash = tag.hash();
        let partition = self.partition(hash);
        // Usually one waiter is woken; the vector allocates only for more.
        let (mut first, mut more) = (None, Vec::new());
        let mut large = HashTable::new();
        {
            let mut table = partition.table.lock();
            let Ok(mut place) = table.find_entry(hash, |entry| entry.tag.as_ref() == tag) else { return };
            let entry = place.get_mut();
            change(entry);
            // Relaxed, both: only changed under the lock; for readers see `released`.
            if partition.released.load(Ordering::Relaxed) < known.0 {
                partition.released.store(known.0, Ordering::Relaxed);
            }
            while let Some(waiting) = entry.queue.front() {
                if entry.conflicts_with_holders(waiting.slot, waiting.mode) {
                    break;
                }
                let Some(waiting) = entry.queue.pop_front() else { break };
                entry.hold(waiting.slot, waiting.mode, waiting.granted());
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
        // Its memory is freed outside the lock.
        drop(large);
        first.into_iter().chain(more).for_each(Waker::wake);
    }

    /// Adds the slots for which `slot`, queued for `mode`, waits: holders that conflict with it or
    /// with a request before it in the queue. A session before it that holds nothing waits for
    /// those holders itself, so a long queue makes no long path. If one of these holders is `slot`,
    /// it waits for that session.
    pub fn blockers(&self, tag: TagRef<'_>, slot: u32, mode: u8, blockers: &mut Vec<u32>) {
        let hash = tag.hash();
        let table = self.partition(hash).table.lock();
        let Some(entry) = table.find(hash, |entry| entry.tag.as_ref() == tag) else { return };
        if !entry.is_queued(slot) {
            // Granted already, and about to wake.
            return;
        }
        let before = || entry.queue.iter().take_while(|waiting| waiting.slot != slot);
        let modes = || before().map(|waiting| waiting.mode).chain([mode]);
        let in_the_way = |holder: &&Holder| modes().any(|mode| holder.holds_off(tag, mode));
        let holding = entry.holders.iter().filter(|holder| holder.slot != slot).filter(in_the_way);
        blockers.extend(holding.map(|holder| holder.slot));
        // Holders that want more stand first in the queue.
        let upgrading = before().map_while(|waiting| entry.holds(waiting.slot).map(|_| waiting.slot));
        blockers.extend(upgrading);
        // One before it may wait for what this session itself holds, and for nobody else.
        let own = entry.holders.iter().find(|holder| holder.slot == slot);
        let held_off = before().filter(|waiting| own.is_some_and(|own| own.holds_off(tag, waiting.mode)));
        blockers.extend(held_off.map(|waiting| waiting.slot));
    }

    /// Calls `each(tag, slot, modes, granted)` for every lock that is held or waited for.
    pub fn for_each(&self, mut each: impl FnMut(&Tag, u32, u8, bool)) {
        for partition in &self.partitions {
            // Copied first, so the caller's work runs outside the lock.
            let mut copy = Vec::new();
            for entry in partition.table.lock().iter() {
                let held =
                    entry.holders.iter().map(|holder| (holder.slot, holder.modes | holder.claims, true));
                let queued = entry.queue.iter().map(|waiting| (waiting.slot, 1 << waiting.mode, false));
                copy.extend(
                    held.chain(queued)
                        .map(|(slot, modes, granted)| (entry.tag.clone(), slot, modes, granted)),
                );
            }
            for (tag, slot, modes, granted) in copy {
                each(&tag, slot, modes, granted);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "locks/tests.rs"] // also where a loom model includes this file
mod tests;
