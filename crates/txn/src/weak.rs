//! Weak table locks in the slots of sessions, against strong ones.
//!
//! Every statement takes one of the three weak modes, which do not conflict with each other. So a
//! weak lock is a word in its session's slot, and usually only that session touches it. A strong
//! lock conflicts with a weak one. Its session looks at all slots.
//!
//! - A session that takes a weak lock stores its word, then loads the count of strong locks. It
//!   keeps the word only if the count is zero ([`WeakLocks::take`]).
//! - A session that wants a strong lock raises the count, then loads the words of all slots. It
//!   moves the words that conflict into the lock table, and queues there
//!   ([`WeakLocks::move_away`]).
//!
//! Invariant: a session that gets a strong lock on a table has moved all weak locks of others that
//! conflict with it. No session gets another one in its slot meanwhile.
//!
//! Proof: all four steps are sequentially consistent, so they have one order. If the load of the
//! count comes before its raise, so does the store of the word. Then the load of the word comes
//! after that store, and the mover sees it. If the load comes after the raise, the session takes
//! its word back, or finds that another mover has it. In both cases it asks the lock table.
//!
//! A word changes by compare-and-swap only, so its owner and a mover agree on who has it. A mover
//! swaps under the lock of the lock table's partition. So an owner whose swap fails finds the entry
//! in the lock table.
//!
//! This file knows atomics and the lock table only; `tests/loom_weak.rs` runs it under loom.

use sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::locks::{LockTable, TagRef};

/// Most weak table locks that a session holds without the lock table. Loom's models have one table.
const PLACES: usize = if cfg!(loom) { 1 } else { 16 };
/// Counts of strong locks, each for the tables of some hashes.
const COUNTS: usize = if cfg!(loom) { 1 } else { 1024 };

/// A weak lock as its word: table << 8 | modes; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(u64);

impl Word {
    /// No lock.
    const NONE: Word = Word(0);

    /// The word of these modes, a mask.
    pub fn new(table: u32, modes: u8) -> Word {
        match modes {
            0 => Word::NONE,
            _ => Word(u64::from(table) << 8 | u64::from(modes)),
        }
    }

    /// The locked table.
    pub fn table(self) -> u32 {
        (self.0 >> 8) as u32
    }

    /// The modes held, as a mask.
    pub fn modes(self) -> u8 {
        self.0 as u8
    }
}

/// The numbers of sessions that hold or want strong locks, by the tables' hashes.
pub struct StrongCounts(Box<[AtomicU32]>);

impl StrongCounts {
    /// Counts of no session.
    pub fn new() -> StrongCounts {
        StrongCounts((0..COUNTS).map(|_| AtomicU32::new(0)).collect())
    }

    /// Stores the first counts anew. Loom holds a sequentially consistent load to such stores only,
    /// and the value that an atomic begins with is none.
    #[cfg(loom)]
    pub fn settle(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::SeqCst));
    }

    fn of(&self, table: u32) -> &AtomicU32 {
        &self.0[TagRef::Table(table).hash() as usize % COUNTS]
    }

    /// Counts a strong lock that a session wants. Call it before [`WeakLocks::move_away`].
    pub fn begin(&self, table: u32) {
        // SeqCst: before the look at the words (see the module).
        self.of(table).fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the count of `locks` strong locks, which the session has given up.
    pub fn end(&self, table: u32, locks: u32) {
        // Release: the locks are given up before.
        self.of(table).fetch_sub(locks, Ordering::Release);
    }

    /// Whether a session may hold or want a strong lock on the table.
    fn is_any(&self, table: u32) -> bool {
        // SeqCst: after the store of the word (see the module).
        self.of(table).load(Ordering::SeqCst) != 0
    }
}

/// Outcome of [`WeakLocks::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The place holds the new word.
    Held,
    /// The place holds the former word. The session must ask the lock table.
    Refused,
    /// Another session has moved the former word. The session must ask the lock table.
    Moved,
}

/// The weak locks of one slot.
pub struct WeakLocks([AtomicU64; PLACES]);

impl WeakLocks {
    /// A slot without locks.
    pub fn new() -> WeakLocks {
        WeakLocks(std::array::from_fn(|_| AtomicU64::new(Word::NONE.0)))
    }

    /// Stores the first words anew, as [`StrongCounts::settle`] does.
    #[cfg(loom)]
    pub fn settle(&self) {
        self.0.iter().for_each(|place| place.store(Word::NONE.0, Ordering::SeqCst));
    }

    /// A place without a lock. Only the slot's session may ask.
    pub fn free_place(&self) -> Option<usize> {
        // Relaxed: only the slot's session uses a free place.
        (0..PLACES).find(|&place| self.0[place].load(Ordering::Relaxed) == Word::NONE.0)
    }

    /// Whether the word is still in its place. Only the slot's session may ask.
    pub fn has(&self, place: usize, word: Word) -> bool {
        // Relaxed: only the slot's session stores a lock there; a mover takes it away.
        self.0[place].load(Ordering::Relaxed) == word.0
    }

    /// Replaces the session's word `before`, or an empty one, by `after`, which has more modes.
    ///
    /// Another session may move `after` into the lock table meanwhile. It does not ask whether the
    /// new modes conflict with a strong lock that a third session holds. `give_up` gives these
    /// modes up there.
    pub fn take(
        &self,
        place: usize,
        before: Option<Word>,
        after: Word,
        strong: &StrongCounts,
        give_up: impl FnOnce(),
    ) -> Taken {
        let (word, before) = (&self.0[place], before.unwrap_or(Word::NONE));
        // SeqCst: before the look at the count (see the module). Fails if a mover has the word.
        if word.compare_exchange(before.0, after.0, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Taken::Moved;
        }
        if !strong.is_any(after.table()) {
            return Taken::Held;
        }
        // A strong locker is active. Relaxed: the session did nothing under the new word, and the
        // exchange above has published what it did before.
        match word.compare_exchange(after.0, before.0, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Taken::Refused,
            Err(_) => {
                give_up();
                Taken::Moved
            }
        }
    }

    /// Replaces a word of the session by `left`, which has fewer modes or none. False if another
    /// session has moved the word, so the lock table holds its modes.
    pub fn replace(&self, place: usize, word: Word, left: Word) -> bool {
        // Release: a mover that finds the lock given up sees the session's work under it. Relaxed
        // on failure: the lock of the lock table's partition orders the session after the mover.
        self.0[place].compare_exchange(word.0, left.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Gives a word of the session up. False as for [`WeakLocks::replace`].
    pub fn give_up(&self, place: usize, word: Word) -> bool {
        self.replace(place, word, Word::NONE)
    }

    /// Moves the locks of slot `owner` on the table that conflict with `mode` into the lock table,
    /// where their session will release them. The locker has called [`StrongCounts::begin`].
    pub fn move_away(&self, locks: &LockTable, owner: u32, table: u32, mode: u8) {
        let tag = TagRef::Table(table);
        let conflicts = tag.conflicts(mode);
        for place in &self.0 {
            // SeqCst: after the count was raised (see the module). It acquires what the session did
            // under a lock that it has given up.
            let mut found = Word(place.load(Ordering::SeqCst));
            while found.table() == table && found.modes() & conflicts != 0 {
                let mut moved = Ok(0);
                locks.adopt(tag, owner, found.modes(), || {
                    // Relaxed: the owner comes to the entry by the partition's lock. Acquire on
                    // failure: as the load above.
                    let none = Word::NONE.0;
                    moved = place.compare_exchange(found.0, none, Ordering::Relaxed, Ordering::Acquire);
                    moved.is_ok()
                });
                match moved {
                    Ok(_) => break,
                    Err(changed) => found = Word(changed),
                }
            }
        }
    }

    /// The locks in the slot, for lists.
    pub fn iter(&self) -> impl Iterator<Item = Word> {
        // Relaxed: information only.
        self.0.iter().map(|place| Word(place.load(Ordering::Relaxed))).filter(|word| *word != Word::NONE)
    }
}
