//! Advisory locks of a transaction, and of a session until it gives them up.
//!
//! 1. A session holds a key in a mode once in the lock table, however often it took it and for
//!    whom. [`Counts`] has the number of times. The lock table's hold goes when both counts are 0.
//! 2. Each hold of the transaction is an entry of `held`, among the row locks. The end of the
//!    transaction or of a savepoint gives it up like those. Between two savepoints a key needs one
//!    entry for each mode.
//! 3. The session's holds outlive transactions and go with the session.

use super::{Inner, Wait};
use crate::Error;
use crate::locks::{AdvisoryKey, Tag, TagRef};
use crate::session::wait::Acquired;

/// Modes of advisory locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AdvisoryLock {
    /// Any number of sessions may hold it.
    Share,
    /// One session holds it.
    Exclusive,
}

/// How often a session holds a key in a mode.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// For itself.
    session: u64,
    /// For its transaction: entries of `held`.
    transaction: u32,
    /// No entry of `held` for it lies beyond this index, and the newest one does not lie before it.
    newest: usize,
}

/// Approximate memory of one held advisory lock in bytes: its entries here and in the lock table.
const LOCK_BYTES: usize = 320;

impl Counts {
    fn is_held(&self) -> bool {
        self.session > 0 || self.transaction > 0
    }
}

impl Inner {
    /// Memory of the session's advisory locks, in bytes.
    pub(super) fn advisory_bytes(&self) -> usize {
        self.advisory.borrow().len() * LOCK_BYTES
    }

    /// Takes a lock for the transaction or for the session. False if it was not free and `wait`
    /// said not to queue.
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

    /// Gives up one of the session's holds. False if it has none.
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

    /// Gives up all of the session's holds; its transaction's stay.
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

    /// Called when an entry of `held` was taken out. Returns whether the lock table's hold goes
    /// with it; always true for row locks.
    pub(super) fn ends_hold(&self, tag: &Tag, mode: u8) -> bool {
        let Tag::Advisory(key) = tag else { return true };
        let lock =
            if mode == AdvisoryLock::Share as u8 { AdvisoryLock::Share } else { AdvisoryLock::Exclusive };
        let mut advisory = self.advisory.borrow_mut();
        let Some(counts) = advisory.get_mut(&(*key, lock)) else { return true };
        counts.transaction = counts.transaction.saturating_sub(1);
        // The place of the entry before it is not known. The next request adds one entry more than
        // it may need.
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
