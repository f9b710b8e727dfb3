//! Definitions that a transaction has not committed yet: a layer over the newest committed catalog,
//! and the trees that it makes and drops.
//!
//! What must hold:
//!
//! 1. A transaction changes definitions through [`Session::define`] alone. It writes the same
//!    change to the system tree and to the layer. So a commit publishes the definitions that a
//!    restart loads.
//! 2. The names of a definition are claimed before it is written. So another transaction that gives
//!    the same name waits.
//! 3. Statements see the layer over the newest committed catalog. When another session publishes,
//!    [`Session::refresh_catalog`] applies the changes again over the new catalog.
//! 4. A commit checks the names once more, against the catalog that it publishes over. Changes that
//!    were applied with pauses count only if nobody has published meanwhile.
//! 5. Every tree made is listed in the block, and every tree dropped marks it. Without that,
//!    garbage collection would not look after the transaction.

use std::sync::Arc;

use execution::from_txn;
use runtime::{account, fiber};

use super::Session;
use super::define::safe_point;
use crate::shared::system;
use catalog::{Change, Overlay, Table, TreeAddress};
use values::error::{SqlError, SqlState};

/// The definitions of all databases may take this fraction, 1/4, of the memory that sessions may
/// take.
const DEFINITIONS_SHARE: i64 = 4;

impl Session {
    /// Publishes a transaction's definitions, unless another transaction has taken their names
    /// meanwhile. Draws room for the transaction's commit first. The caller commits before it parks
    /// or logs anything, so the room is still there. So no statement sees definitions whose commit
    /// fails.
    pub(super) fn publish(&self, overlay: &Overlay) -> Result<(), SqlError> {
        let (definitions, changes) = (&self.environment.definitions, overlay.changes());
        let refused = |(what, name): (&str, String)| {
            let code = match what {
                "schema" => SqlState::DUPLICATE_SCHEMA,
                "relation" => SqlState::DUPLICATE_TABLE,
                _ => SqlState::DUPLICATE_OBJECT,
            };
            SqlError::new(code, format!("{what} \"{name}\" already exists"))
        };
        // Other fibers run while thousands of changes are applied, and may publish theirs first.
        // Then the changes are applied again under the lock, without a pause.
        let base = definitions.catalog();
        let next = base.with_named(changes, fiber::safe_point).map_err(refused)?;
        self.environment.txn.make_room_to_commit().map_err(from_txn)?;
        if definitions.replace(&base, next) {
            return Ok(());
        }
        definitions.try_publish(|catalog| catalog.with_named(changes, || {})).map_err(refused)
    }

    pub(super) fn forget_definitions(&mut self) {
        if let Some((base, overlay)) = self.block.overlay.take() {
            self.environment.catalog = self.environment.definitions.catalog();
            self.shared.forget_counters(&overlay.unused_counters(&base, false));
        }
    }

    /// Takes the catalog that statements see now: uncommitted definitions over the newest shared
    /// ones.
    pub(super) fn refresh_catalog(&mut self) {
        let definitions = &self.environment.definitions;
        match &mut self.block.overlay {
            None => {
                if !definitions.is_current(self.environment.catalog.generation) {
                    self.environment.catalog = definitions.catalog();
                }
            }
            Some((base, overlay)) if !definitions.is_current(base.generation) => {
                *base = definitions.catalog();
                overlay.roll_back_to(overlay.mark(), base);
                self.environment.catalog = Arc::clone(overlay.catalog());
            }
            Some(_) => {}
        }
    }

    /// Puts a definition into the transaction's catalog and into the system tree.
    pub(super) fn define(&mut self, change: Change) -> Result<(), SqlError> {
        safe_point()?;
        self.refuse_growth(&change)?;
        self.claim_names(&change)?;
        let (key, object) = change.stored();
        let mut full = self.environment.definitions.oid.to_be_bytes().to_vec();
        full.extend_from_slice(&key);
        let bytes = object.map(|object| object.encode());
        let there = system::replace(&self.environment.txn, system::OBJECTS, &full, bytes.as_deref())?;
        if !there && bytes.is_none() {
            // Another transaction has dropped the object, or made it since this statement's
            // snapshot.
            return Err(SqlError::new(SqlState::SERIALIZATION_FAILURE, "tuple concurrently deleted"));
        }
        let definitions = &self.environment.definitions;
        let (_, overlay) = self.block.overlay.get_or_insert_with(|| {
            let base = definitions.catalog();
            (Arc::clone(&base), Overlay::new(base))
        });
        overlay.apply(change);
        self.environment.catalog = Arc::clone(overlay.catalog());
        Ok(())
    }

    /// Refuses a definition that would make those of all databases exceed their share of the
    /// memory.
    fn refuse_growth(&self, change: &Change) -> Result<(), SqlError> {
        let own = &self.environment.catalog;
        let growth = own.growth(change);
        if growth == 0 {
            return Ok(());
        }
        let databases = self.shared.databases();
        let others = databases.iter().filter(|database| database.oid != own.database.oid);
        let all = own.bytes() + growth + others.map(|database| database.catalog().bytes()).sum::<usize>();
        let most = account::limit() / DEFINITIONS_SHARE;
        if i64::try_from(all).is_ok_and(|all| all <= most) {
            return Ok(());
        }
        let detail = format!(
            "The definitions of tables, indexes and sequences would take more than {} MiB, a quarter of --memory.",
            most >> 20
        );
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(detail)
            .with_hint("Drop some of them, or start the server with a larger --memory."))
    }

    /// Makes a tree. The transaction's end keeps or drops it.
    pub(super) fn make_tree(&mut self) -> Result<TreeAddress, SqlError> {
        let address = self.shared.create_tree(&self.environment.txn)?;
        self.block.created.push(address);
        Ok(address)
    }

    /// Makes the tree of a table's values out of line, where its rows may need one.
    pub(super) fn make_out_of_line_tree(&mut self, table: &mut Table) -> Result<(), SqlError> {
        table.out_of_line = if table.may_need_out_of_line() { self.make_tree()? } else { TreeAddress::NONE };
        Ok(())
    }

    /// Drops a tree with the transaction.
    pub(super) fn discard_tree(&mut self, address: TreeAddress) -> Result<(), SqlError> {
        self.block.dropped = true;
        self.shared.drop_tree(&self.environment.txn, address)
    }
}
