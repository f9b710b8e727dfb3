//! When a statement takes its snapshot, and which tables that snapshot cannot show.
//!
//! What must hold: the snapshot includes the commits of all definitions that the statement runs
//! with.

use std::sync::Arc;
use std::time::Duration;

use runtime::{fiber, interrupt};
use txn::TableLock;

use super::Session;
use execution::from_txn;
use query::plan::Isolation;
use values::error::{SqlError, SqlState};

/// The pause between two checks whether a commit of definitions is visible. The log is writing that
/// commit.
const PUBLICATION_PAUSE: Duration = Duration::from_micros(200);

impl Session {
    /// In repeatable read, the first query of a transaction takes its snapshot before it waits for
    /// a lock, even if the query is then refused.
    #[inline]
    pub(super) fn take_first_snapshot(&mut self) -> Result<(), SqlError> {
        if self.is_before_snapshot() { self.take_snapshot_of_now() } else { Ok(()) }
    }

    #[cold]
    fn take_snapshot_of_now(&mut self) -> Result<(), SqlError> {
        self.refresh_catalog();
        self.take_snapshot(&[])
    }

    /// Waits until the snapshot includes the commits of the statement's definitions, then takes it.
    pub(super) fn take_snapshot(&mut self, locks: &[(u32, TableLock)]) -> Result<(), SqlError> {
        self.note_query();
        let generation = self.block.base().unwrap_or(&self.environment.catalog).generation;
        while !self.environment.definitions.is_visible(generation) {
            interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
            fiber::sleep(PUBLICATION_PAUSE);
        }
        self.check_age(locks)?;
        self.environment.txn.statement_start().map_err(from_txn)
    }

    /// In repeatable read: refuses tables that were rewritten, or got an index, after the snapshot.
    /// The entries of their new trees are newer than the snapshot, so it would see none of them.
    fn check_age(&mut self, locks: &[(u32, TableLock)]) -> Result<(), SqlError> {
        if self.environment.characteristics.isolation != Isolation::RepeatableRead {
            return Ok(());
        }
        let now = self.block.base().unwrap_or(&self.environment.catalog);
        let Some(then) = &self.block.seen else {
            self.block.seen = Some(Arc::clone(now));
            return Ok(());
        };
        if then.generation == now.generation {
            return Ok(());
        }
        let changed = locks.iter().find_map(|(oid, _)| {
            let (then, now) = then.table(*oid).zip(now.table(*oid))?;
            now.has_trees_beyond(then).then_some(now)
        });
        match changed {
            None => Ok(()),
            Some(table) => Err(SqlError::new(
                SqlState::SERIALIZATION_FAILURE,
                format!(
                    "could not serialize access due to concurrent change of the definition of \"{}\"",
                    table.name
                ),
            )),
        }
    }

    /// Whether it is in a transaction of one snapshot that is not taken yet.
    #[inline]
    fn is_before_snapshot(&self) -> bool {
        self.environment.characteristics.isolation == Isolation::RepeatableRead && self.block.seen.is_none()
    }
}
