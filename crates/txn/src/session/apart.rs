//! Long rollbacks that leave their session.
//!
//! A transaction of hundreds of megabytes takes as long to roll back as it took to make. After a
//! while a fiber of its own gets the transaction, with its slot, locks and undo. The session
//! continues in a new slot.
//!
//! For other sessions nothing changes: the transaction runs, and keeps its locks, until the last
//! change is taken back. The same holds for the session itself. Its next statements may have to
//! wait for a lock of what was its own transaction.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use runtime::{fiber, time};
use sync::atomic::Ordering;

use super::Inner;
use crate::Error;

/// Changes that the session takes back at least before it gives the rest away. So a small
/// transaction is over when its rollback returns.
const CHANGES: usize = 1000;
/// How long a session takes changes back itself, before it gives the rest away.
const OWN_SHARE: Duration = Duration::from_millis(20);

impl Inner {
    /// As [`Inner::rollback`], but a long rollback continues after the return. Not for a
    /// transaction whose trees are dropped with it.
    pub(super) fn rollback_apart(&self) -> Result<(), Error> {
        let (began, changes) = (time::precise(), Cell::new(0));
        let is_long = || {
            changes.set(changes.get() + 1);
            changes.get() > CHANGES && time::precise() - began > OWN_SHARE.as_nanos() as u64
        };
        if self.begin_rollback(is_long)? && self.give_away() {
            return Ok(());
        }
        self.rollback()
    }

    /// Gives the transaction to a fiber of its own. False if that is not possible.
    fn give_away(&self) -> bool {
        // Advisory locks belong to the session, and some outlive the transaction.
        if !self.advisory.borrow().is_empty() {
            return false;
        }
        let Ok(number) = self.engine.slots.claim() else { return false };
        let rest = Inner::new(Arc::clone(&self.engine), self.number.replace(number));
        rest.open.set(true);
        rest.txid.set(self.txid.get());
        #[cfg(variants)]
        {
            self.engine.slots.listed.enter(number);
            self.listed.give_to(&rest.listed);
        }
        rest.last_undo.set(self.last_undo.get());
        rest.last_lsn.set(self.last_lsn.get());
        rest.seen.set(self.seen.get());
        rest.heard.set(self.heard.get());
        rest.held.swap(&self.held);
        rest.tables.swap(&self.tables);
        // Relaxed: information only.
        self.slot().label.store(rest.slot().label.load(Ordering::Relaxed), Ordering::Relaxed);
        rest.slot().leaving.store(true, Ordering::Relaxed);
        self.reset();
        fiber::spawn_local(move || rest.leave());
        true
    }
}
