//! Advisory locks: those that a transaction holds, and those that the session holds until it gives them up.
//!
//! 1. A session holds a key in a mode once in the lock table, however often it took it and for whom. [`Counts`] says how often;
//!    the lock table's hold goes when both counts are 0.
//! 2. Each of the transaction's is an entry of `held`, among the row locks: the end of the transaction or of a savepoint gives
//!    it up like those. Between two savepoints a key needs one entry for each mode.
//! 3. The session's outlive transactions and go with the session.

use super::{Inner, Wait};
use crate::Error;
use crate::locks::{AdvisoryKey, Tag, TagRef};
use crate::session::wait::Acquired;

/// Modes of advisory locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AdvisoryLock {
    /// Held by any number of sessions.
    Share,
    /// Held by one session.
    Exclusive,
}

/// Number of times a session holds a key in a mode.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// For itself.
    session: u64,
    /// For its transaction: entries of `held`.
    transaction: u32,
    /// No entry of `held` for it lies beyond this index, and the newest one does not lie before it.
    newest: usize,
}

/// Memory of one advisory lock that is held, in bytes, about: its entries here and in the lock table.
const LOCK_BYTES: usize = 320;

impl Counts {
    fn is_held(&self) -> bool {
        self.session > 0 || self.transaction > 0
    }
}

impl Inner {
    /// Memory that the session's advisory locks take, in bytes.
    pub(super) fn advisory_bytes(&self) -> usize {
        self.advisory.borrow().len() * LOCK_BYTES
    }

    /// Takes a lock for the transaction or for the session. False when it was refused and `wait` said to go on.
    pub(super) fn lock_advisory(
        &self,
        key: AdvisoryKey,
        lock: AdvisoryLock,
        for_session: bool,
        wait: Wait,
    ) -> Result<bool, Error> {
        let tag = TagRef::Advisory(key);
        let before = self.advisory.borrow().get(&(key, lock)).is_some_and(Counts::is_held);
        if !before && self.lock_tag_unlisted(tag, lock as u8, wait)? == Acquired::Refused {
            return Ok(false);
        }
        let mut advisory = self.advisory.borrow_mut();
        let counts = advisory.entry((key, lock)).or_default();
        if for_session {
            counts.session += 1;
            return Ok(true);
        }
        let mut held = self.held.borrow_mut();
        let since = self.savepoints.borrow().last().map_or(0, |savepoint| savepoint.rows);
        if counts.transaction == 0 || counts.newest < since {
            counts.transaction += 1;
            counts.newest = held.len();
            held.push((tag.to_tag(), lock as u8));
        }
        Ok(true)
    }

    /// Takes one of the session's holds back; false when it has none.
    pub(super) fn unlock_advisory(&self, key: AdvisoryKey, lock: AdvisoryLock) -> bool {
        let mut advisory = self.advisory.borrow_mut();
        let Some(counts) = advisory.get_mut(&(key, lock)).filter(|counts| counts.session > 0) else {
            return false;
        };
        counts.session -= 1;
        if !counts.is_held() {
            advisory.remove(&(key, lock));
            drop(advisory);
            self.give_advisory_up(key, lock);
        }
        true
    }

    /// Takes all of the session's holds back; its transaction's stay.
    pub(super) fn unlock_all_advisory(&self) {
        let mut free = Vec::new();
        self.advisory.borrow_mut().retain(|&(key, lock), counts| {
            counts.session = 0;
            if !counts.is_held() {
                free.push((key, lock));
            }
            counts.is_held()
        });
        free.into_iter().for_each(|(key, lock)| self.give_advisory_up(key, lock));
    }

    /// An entry of `held` was taken out; whether the lock table's hold goes with it. Always so for locks of rows.
    pub(super) fn ends_hold(&self, tag: &Tag, mode: u8) -> bool {
        let Tag::Advisory(key) = tag else { return true };
        let lock =
            if mode == AdvisoryLock::Share as u8 { AdvisoryLock::Share } else { AdvisoryLock::Exclusive };
        let mut advisory = self.advisory.borrow_mut();
        let Some(counts) = advisory.get_mut(&(*key, lock)) else { return true };
        counts.transaction = counts.transaction.saturating_sub(1);
        // Where the entry before it lies is not known: the next request adds one more than it may need.
        counts.newest = 0;
        let goes = !counts.is_held();
        if goes {
            advisory.remove(&(*key, lock));
        }
        goes
    }

    fn give_advisory_up(&self, key: AdvisoryKey, lock: AdvisoryLock) {
        let modes = (self.number.get(), 1 << lock as u8);
        self.engine.locks.release_modes(TagRef::Advisory(key), modes, self.known(), &self.engine.slots);
    }
}
