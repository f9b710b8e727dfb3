//! Putting one entry back. Rollback and recovery do this for each change, as a logged compensation.
//!
//! What must hold:
//!
//! 1. An entry is put back only while it carries a version of the transaction. So a change that has
//!    been taken back already is not taken back twice.
//! 2. The compensation names the record before the undone one. A crash in between goes on from
//!    there.
//! 3. Recovery waits for disk space and goes on. It gives up only if the undo information cannot be
//!    read.

use std::sync::Arc;

use storage::btree::{Action, EntryChange, Tree};
use storage::log::TxnLink;
use storage::recovery::UndoHandler;
use storage::retry::Backoff;
use storage::{Lsn, Store};

use crate::log_undo::{self, Before};
use crate::version::Stamp;

/// The change that undoes one change of one entry.
struct Restore<'a> {
    txid: u64,
    before: Before<'a>,
    link: TxnLink,
    value: &'a mut Vec<u8>,
    logged: Option<Lsn>,
}

impl EntryChange for Restore<'_> {
    fn decide(&mut self, present: Option<&[u8]>) -> Action {
        // An entry of another transaction has been put back already.
        let Some(present) = present else { return Action::None };
        if Stamp::decode(present).is_none_or(|stamp| stamp.txid != self.txid) {
            return Action::None;
        }
        match self.before {
            Before::Nothing => Action::Remove,
            before if before.build(present, self.value) => Action::Put,
            _ => Action::None,
        }
    }

    fn value_len(&self) -> usize {
        self.value.len()
    }

    fn apply(&mut self, _present: Option<&[u8]>, value: &mut [u8], _undo: &mut Vec<u8>) -> TxnLink {
        if !value.is_empty() {
            value.copy_from_slice(self.value);
        }
        self.link
    }

    fn logged(&mut self, lsn: Lsn) {
        self.logged = Some(lsn);
    }

    fn compensates(&self) -> bool {
        true
    }
}

/// Puts `key` back to `before`, for transaction `txid`, whose last log record ends at `last`.
/// `undo_next` is the record before the undone one. `value` is scratch space. Returns the end of
/// the transaction's new last record.
pub fn restore(
    store: &Store,
    tree: &Tree,
    key: &[u8],
    before: Before<'_>,
    txid: u64,
    (last, undo_next): (Lsn, Lsn),
    value: &mut Vec<u8>,
) -> Result<Lsn, storage::Error> {
    let link = TxnLink { txn: txid, prev: last, compensation: Some(undo_next) };
    let mut change = Restore { txid, before, link, value, logged: None };
    tree.change(store, key, &mut change)?;
    Ok(change.logged.unwrap_or(last))
}

/// Undo of transactions that a crash left unfinished; [`storage::recovery`] calls it.
pub struct Undo {
    store: Arc<Store>,
    value: Vec<u8>,
}

impl Undo {
    /// Undo for a store whose log has been redone.
    pub fn new(store: Arc<Store>) -> Undo {
        Undo { store, value: Vec::new() }
    }
}

impl UndoHandler for Undo {
    fn undo(
        &mut self,
        txn: u64,
        _lsn: Lsn,
        undo: &[u8],
        prev: Lsn,
        last: Lsn,
    ) -> Result<Lsn, storage::Error> {
        let Some((tree, key, before)) = log_undo::decode(undo) else {
            let what = "a record of the log has undo information that can't be read".to_owned();
            let what = storage::error::FormatProblem::Unfit(what);
            return Err(storage::Error::Format(what));
        };
        let mut backoff = Backoff::new("disk space to take back what a crash left unfinished");
        loop {
            match restore(&self.store, &tree, key, before, txn, (last, prev), &mut self.value) {
                Err(error @ storage::Error::DiskFull(_)) => backoff.pause(&error),
                done => return done,
            }
        }
    }
}
