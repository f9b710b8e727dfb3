//! Table locks.
//!
//! Every statement takes one of the three weak modes, which do not conflict with each other. A
//! session takes a weak lock in its own slot. It stores the lock (sequentially consistent), then
//! tests whether a session holds or wants a strong lock on a table of that hash.
//!
//! A strong locker raises that counter first. Then it looks at all slots (both sequentially
//! consistent) and moves what conflicts into the lock table. So one of the two always sees the
//! other. A weak lock is given up by a compare-and-swap, which fails if the lock has been moved.

use runtime::interrupt;
use sync::atomic::{AtomicU32, Ordering};
use sync::profile::{Hold, Kind, Site};

use super::wait::Acquired;
use super::{Inner, Savepoint, TableGrant, TableLock, Wait};
use crate::Error;
use crate::engine::STRONG_COUNTERS;
use crate::locks::TagRef;
use crate::slots::FAST_LOCKS;

/// The strongest mode that conflicts with no weak one.
const NEUTRAL: TableLock = TableLock::ShareUpdateExclusive;

/// A table lock that this session holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTable {
    pub(super) table: u32,
    /// Modes held, as a mask.
    modes: u8,
    /// Place of the weak modes in the slot, and the word stored there; `None` if they are in the
    /// lock table.
    fast: Option<(usize, u64)>,
    /// Whether the lock table may have an entry.
    listed: bool,
    /// Number of strong modes, as counted.
    strong: u32,
    /// The hold of the weak modes in the slot, for the profiler. It goes on if another session
    /// moves them to the lock table. It ends when this session takes a mode there: the lock table
    /// counts that hold.
    hold: Hold,
}

fn word(table: u32, modes: u8) -> u64 {
    u64::from(table) << 8 | u64::from(modes)
}

impl Inner {
    fn strong_counter(&self, table: u32) -> &AtomicU32 {
        &self.engine.strong[TagRef::Table(table).hash() as usize % STRONG_COUNTERS]
    }

    pub(super) fn lock_table(&self, table: u32, lock: TableLock, wait: Wait) -> Result<TableGrant, Error> {
        let mode = lock as u8;
        let at = self.tables.borrow().iter().position(|held| held.table == table);
        if let Some(at) = at
            && self.tables.borrow()[at].modes >> mode & 1 != 0
        {
            return Ok(TableGrant::Held);
        }
        let mut held = at.map_or(
            HeldTable { table, modes: 0, fast: None, listed: false, strong: 0, hold: Hold::NONE },
            |at| self.tables.borrow()[at],
        );
        let locked = if lock < NEUTRAL && self.lock_fast(&mut held, mode) {
            if held.modes == 0 {
                held.hold = Hold::begin_unmarked(|| Site::here(&"table lock", Kind::Acquire));
            }
            Ok(TableGrant::New)
        } else {
            self.lock_listed(&mut held, lock, wait)
        };
        if locked == Ok(TableGrant::New) {
            held.modes |= 1 << mode;
        }
        // Written back in any case: another session may have moved the fast word to the lock table.
        let mut tables = self.tables.borrow_mut();
        match at {
            Some(at) => {
                let is_older = |savepoint: &Savepoint| at < savepoint.tables;
                if locked == Ok(TableGrant::New) && self.savepoints.borrow().last().is_some_and(is_older) {
                    self.raised.borrow_mut().push((table, lock));
                }
                tables[at] = held;
            }
            None if held.modes != 0 => tables.push(held),
            None => {}
        }
        locked
    }

    pub(super) fn holds_table(&self, table: u32, lock: TableLock) -> bool {
        self.tables.borrow().iter().any(|held| held.table == table && held.modes >> lock as u8 != 0)
    }

    /// Takes a weak mode in the session's slot. False if that is not possible now.
    fn lock_fast(&self, held: &mut HeldTable, mode: u8) -> bool {
        let slot = self.slot();
        let (place, before) = match held.fast {
            Some((place, before)) => (place, before),
            // Relaxed: only this session uses a free place.
            None => match (0..FAST_LOCKS).find(|&place| slot.fast[place].load(Ordering::Relaxed) == 0) {
                Some(place) => (place, 0),
                None => return false,
            },
        };
        let after = word(held.table, before as u8 | 1 << mode);
        // SeqCst: before the look at the counter (see the module). Fails if a strong locker has
        // moved the word away.
        if slot.fast[place].compare_exchange(before, after, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            (held.fast, held.listed) = (None, true);
            return false;
        }
        // SeqCst: after the store (see the module).
        if self.strong_counter(held.table).load(Ordering::SeqCst) == 0 {
            held.fast = Some((place, after));
            return true;
        }
        // A strong locker is active. Take the lock back, unless it has been moved already: then it
        // is held. AcqRel: pairs with the mover's exchange.
        match slot.fast[place].compare_exchange(after, before, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                held.fast = (before != 0).then_some((place, before));
                false
            }
            Err(_) => {
                (held.fast, held.listed) = (None, true);
                true
            }
        }
    }

    fn lock_listed(&self, held: &mut HeldTable, lock: TableLock, wait: Wait) -> Result<TableGrant, Error> {
        interrupt::check()?;
        let strong = lock > NEUTRAL;
        if strong {
            // SeqCst: before the look at the slots (see the module).
            self.strong_counter(held.table).fetch_add(1, Ordering::SeqCst);
            self.move_weak_locks(held.table, lock);
        }
        let acquired = self.lock_tag_unlisted(TagRef::Table(held.table), lock as u8, wait);
        match acquired {
            Ok(Acquired::New | Acquired::Before) => {
                // Relaxed: only this session stores a lock there; a mover takes it away.
                let is_there =
                    |(place, word): (usize, u64)| self.slot().fast[place].load(Ordering::Relaxed) == word;
                self.end_hold(held, held.listed || !held.fast.is_some_and(is_there));
                held.listed = true;
                held.hold = Hold::NONE;
                held.strong += u32::from(strong);
                return Ok(TableGrant::New);
            }
            Ok(Acquired::Refused) | Err(_) if strong => {
                // Release: publishes nothing but the count itself.
                self.strong_counter(held.table).fetch_sub(1, Ordering::Release);
            }
            Ok(Acquired::Refused) | Err(_) => {}
        }
        match acquired {
            Ok(_) if wait == Wait::Skip => Ok(TableGrant::Refused),
            Ok(_) => Err(Error::LockNotAvailable),
            Err(error) => Err(error),
        }
    }

    /// Moves others' weak locks that conflict with `lock` into the lock table, where their owners
    /// will release them.
    fn move_weak_locks(&self, table: u32, lock: TableLock) {
        let tag = TagRef::Table(table);
        let conflicts = tag.conflicts(lock as u8);
        for (number, slot) in self.engine.slots.iter().filter(|&(number, _)| number != self.number.get()) {
            for place in &slot.fast {
                // SeqCst: after the counter was raised (see the module).
                let mut found = place.load(Ordering::SeqCst);
                while found >> 8 == u64::from(table) && found as u8 & conflicts != 0 {
                    let mut now = Ok(0);
                    self.engine.locks.adopt(tag, number, found as u8, || {
                        // AcqRel: pairs with the owner's exchange when it releases the lock or
                        // takes more.
                        now = place.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Acquire);
                        now.is_ok()
                    });
                    match now {
                        Ok(_) => break,
                        Err(changed) => found = changed,
                    }
                }
            }
        }
    }

    /// Gives up one mode of a table's lock. The transaction must have taken it after its last
    /// savepoint.
    pub(super) fn unlock_mode(&self, table: u32, lock: TableLock) {
        let mut tables = self.tables.borrow_mut();
        let Some(at) = tables.iter().position(|held| held.table == table) else { return };
        let held = &mut tables[at];
        let mode = 1 << lock as u8;
        if held.modes & mode == 0 {
            return;
        }
        held.modes &= !mode;
        let mut listed = true;
        if let Some((place, before)) = held.fast.filter(|(_, word)| *word as u8 & mode != 0) {
            let left = before as u8 & !mode;
            let after = if left == 0 { 0 } else { word(table, left) };
            // AcqRel: as in `unlock_table`.
            let fast = &self.slot().fast[place];
            listed = fast.compare_exchange(before, after, Ordering::AcqRel, Ordering::Relaxed).is_err();
            held.fast = (!listed && left != 0).then_some((place, after));
            held.listed |= listed;
        }
        if held.modes == 0 {
            self.end_hold(held, listed);
        }
        if listed {
            let modes = (self.number.get(), mode);
            self.engine.locks.release_modes(TagRef::Table(table), modes, self.known(), &self.engine.slots);
        }
        if lock > NEUTRAL {
            held.strong -= 1;
            // Release: the mode is given up before.
            self.strong_counter(table).fetch_sub(1, Ordering::Release);
        }
        if held.modes == 0 {
            tables.remove(at);
        }
    }

    /// Gives up all table locks.
    pub(super) fn unlock_tables(&self) {
        while let Some(held) = self.tables.borrow_mut().pop() {
            self.unlock_table(&held);
        }
    }

    /// Gives up the table locks that were taken after the first `keep`.
    pub(super) fn unlock_tables_after(&self, keep: usize) {
        while self.tables.borrow().len() > keep {
            let held = self.tables.borrow_mut().pop();
            held.iter().for_each(|held| self.unlock_table(held));
        }
    }

    /// Ends the hold of the weak modes. A session that waits for them has `moved` them to the lock
    /// table. So this comes before they are given up there.
    fn end_hold(&self, held: &HeldTable, moved: bool) {
        held.hold.end_unmarked(|| moved && self.engine.locks.is_wanted(TagRef::Table(held.table)));
    }

    fn unlock_table(&self, held: &HeldTable) {
        let mut listed = held.listed;
        if let Some((place, word)) = held.fast {
            // AcqRel: pairs with the mover's exchange; what was done under the lock comes before.
            let freed =
                self.slot().fast[place].compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed);
            listed |= freed.is_err();
        }
        self.end_hold(held, listed);
        if listed {
            let tag = TagRef::Table(held.table);
            self.engine.locks.release(tag, self.number.get(), self.known(), &self.engine.slots);
        }
        if held.strong > 0 {
            // Release: the lock is given up before.
            self.strong_counter(held.table).fetch_sub(held.strong, Ordering::Release);
        }
    }
}
