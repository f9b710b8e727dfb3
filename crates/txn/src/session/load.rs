//! Filling a tree in bulk: versions of this transaction, without undo and without a log record
//! each.
//!
//! The caller must make sure of these conditions:
//!
//! - This transaction made the tree, and no other session can find it before the commit.
//! - Whatever takes these versions back drops the tree: it was made after the last savepoint to
//!   which the transaction may go back.
//! - Nobody changes the tree until the load has finished.
//!
//! The versions carry the transaction's number and command like any others, so the same snapshots
//! see them.

use storage::btree::{Builder, Pushed, Tree};

use crate::version::{HEADER, UndoPointer};
use crate::{Error, Stamp, TxnSession};

/// A tree being filled.
pub struct Load {
    builder: Builder,
    header: [u8; HEADER],
}

/// Outcome of a row offered to a [`Load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The row was taken.
    Done,
    /// Not taken: the row before it has the same key.
    Duplicate,
    /// Not taken: its key is below that of the row before it.
    OutOfOrder,
}

impl TxnSession {
    /// Begins to fill a tree; `None` if the tree has rows.
    pub fn load(&self, tree: &Tree) -> Result<Option<Load>, Error> {
        let state = self.state();
        let txid = state.ensure_txid()?;
        let command = state.command.get();
        let stamp = Stamp { txid, undo: UndoPointer::NONE, command, keys: false, deleted: false };
        let builder = Builder::new(state.engine.store(), Tree { purge: None, ..*tree })?;
        Ok(builder.map(|builder| Load { builder, header: stamp.encode() }))
    }
}

impl Load {
    /// Adds a row whose key is above the last one's.
    #[inline]
    pub fn push(&mut self, session: &TxnSession, key: &[u8], row: &[u8]) -> Result<Loaded, Error> {
        Ok(match self.builder.push(session.state().engine.store(), key, &self.header, row)? {
            Pushed::Done => Loaded::Done,
            Pushed::Equal => Loaded::Duplicate,
            Pushed::Below => Loaded::OutOfOrder,
        })
    }

    /// Puts the rest into the tree. Without this call some rows are lost.
    pub fn finish(self, session: &TxnSession) -> Result<(), Error> {
        Ok(self.builder.finish(session.state().engine.store())?)
    }
}
