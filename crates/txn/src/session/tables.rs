//! Table locks.
//!
//! A session takes the three weak modes in its own slot, and the others in the lock table. The
//! module [`weak`](crate::weak) says how the two see each other.

use runtime::interrupt;
use sync::profile::{Hold, Kind, Site};

use super::wait::Acquired;
use super::{Inner, Savepoint, TableGrant, TableLock, Wait};
use crate::Error;
use crate::locks::TagRef;
use crate::weak::{Taken, Word};

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
    fast: Option<(usize, Word)>,
    /// Whether the lock table may have an entry.
    listed: bool,
    /// Number of strong modes, as counted.
    strong: u32,
    /// The hold of the weak modes in the slot, for the profiler. It goes on if another session
    /// moves them to the lock table. It ends when this session takes a mode there: the lock table
    /// counts that hold.
    hold: Hold,
}

impl Inner {
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
        let weak = &self.slot().weak;
        let before = held.fast.map(|(_, word)| word);
        let Some(place) = held.fast.map(|(place, _)| place).or_else(|| weak.free_place()) else {
            return false;
        };
        let after = Word::new(held.table, before.map_or(0, Word::modes) | 1 << mode);
        let give_up = || {
            let (tag, own) = (TagRef::Table(held.table), (self.number.get(), 1 << mode));
            self.engine.locks.release_modes(tag, own, self.known(), &self.engine.slots);
        };
        let taken = weak.take(place, before, after, &self.engine.strong, give_up);
        match taken {
            Taken::Held => held.fast = Some((place, after)),
            Taken::Refused => {}
            Taken::Moved => (held.fast, held.listed) = (None, true),
        }
        taken == Taken::Held
    }

    fn lock_listed(&self, held: &mut HeldTable, lock: TableLock, wait: Wait) -> Result<TableGrant, Error> {
        interrupt::check()?;
        let strong = lock > NEUTRAL;
        if strong {
            self.engine.strong.begin(held.table);
            self.move_weak_locks(held.table, lock);
        }
        let acquired = self.lock_tag_unlisted(TagRef::Table(held.table), lock as u8, wait);
        match acquired {
            Ok(Acquired::New | Acquired::Before) => {
                let is_there = |(place, word): (usize, Word)| self.slot().weak.has(place, word);
                self.end_hold(held, held.listed || !held.fast.is_some_and(is_there));
                held.listed = true;
                held.hold = Hold::NONE;
                held.strong += u32::from(strong);
                return Ok(TableGrant::New);
            }
            Ok(Acquired::Refused) | Err(_) if strong => {
                self.engine.strong.end(held.table, 1);
            }
            Ok(Acquired::Refused) | Err(_) => {}
        }
        match acquired {
            Ok(_) if wait == Wait::Skip => Ok(TableGrant::Refused),
            Ok(_) => Err(Error::LockNotAvailable),
            Err(error) => Err(error),
        }
    }

    /// Moves others' weak locks that conflict with `lock` into the lock table.
    fn move_weak_locks(&self, table: u32, lock: TableLock) {
        for (number, slot) in self.engine.slots.iter().filter(|&(number, _)| number != self.number.get()) {
            slot.weak.move_away(&self.engine.locks, number, table, lock as u8);
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
        if let Some((place, word)) = held.fast.filter(|(_, word)| word.modes() & mode != 0) {
            let left = Word::new(table, word.modes() & !mode);
            listed = !self.slot().weak.replace(place, word, left);
            held.fast = (!listed && left.modes() != 0).then_some((place, left));
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
            self.engine.strong.end(table, 1);
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
            listed |= !self.slot().weak.give_up(place, word);
        }
        self.end_hold(held, listed);
        if listed {
            let tag = TagRef::Table(held.table);
            self.engine.locks.release(tag, self.number.get(), self.known(), &self.engine.slots);
        }
        if held.strong > 0 {
            self.engine.strong.end(held.table, held.strong);
        }
    }
}
