//! REINDEX: builds indexes again, in new trees that replace the old ones when the transaction
//! commits.
//!
//! What must hold:
//!
//! 1. The table is locked against readers and writers before its definition is read. A table that
//!    was dropped before the lock is left out.
//! 2. The primary key orders the table's rows. Rebuilding it rewrites the table and all indexes.
//! 3. An index is built from the newest rows, or the command fails.
//! 4. REINDEX of a schema or database locks one table after the other and refuses a transaction
//!    block. A table keeps its lock until the end.

use std::sync::Arc;

use txn::TableLock;

use super::super::Session;
use super::rewrite::rewrite;
use catalog::{Change, Relation};
use execution;
use query::plan::Reindex;
use values::error::{SqlError, SqlState};

/// REINDEX.
pub(super) fn run(
    session: &mut Session,
    what: &Reindex,
    concurrently: bool,
) -> Result<&'static str, SqlError> {
    session.refresh_catalog();
    match what {
        Reindex::Index(name) => {
            let found = session.locked_index(name, TableLock::AccessExclusive)?;
            let (table, index) = found.ok_or_else(|| session.missing(name))?;
            rebuild(session, table, Some(index))?;
        }
        Reindex::Table(name) => {
            // A relation of the catalog is computed and has no index to build.
            if let Some(Relation::Table(table)) = session.find_relation(name)
                && table.is_virtual()
            {
                if concurrently {
                    let message = "cannot reindex system catalogs concurrently";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                return Ok("REINDEX");
            }
            let found = session.locked_table(name, TableLock::AccessExclusive)?;
            rebuild(session, found.ok_or_else(|| session.missing(name))?.oid, None)?;
        }
        Reindex::Schema(name) => {
            session.refuse_block("REINDEX SCHEMA")?;
            let schema =
                session.environment.catalog.schema(name).map(|schema| schema.oid).ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
                })?;
            rebuild_all(session, Some(schema))?;
        }
        Reindex::Database(name) => {
            session.refuse_block("REINDEX DATABASE")?;
            if !name.is_empty() && *name != session.environment.catalog.database.name {
                let message = "can only reindex the currently open database";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            rebuild_all(session, None)?;
        }
    }
    Ok("REINDEX")
}

/// All indexes of the tables of one schema, or of all.
fn rebuild_all(session: &mut Session, schema: Option<u32>) -> Result<(), SqlError> {
    let catalog = Arc::clone(&session.environment.catalog);
    let tables = catalog.tables().filter(|table| !table.is_virtual());
    for table in tables.filter(|table| schema.is_none_or(|schema| schema == table.schema)) {
        rebuild(session, table.oid, None)?;
    }
    Ok(())
}

/// Builds one index of a table, or all. The primary key orders the table's rows, so rebuilding it
/// rebuilds the table and all indexes.
fn rebuild(session: &mut Session, table: u32, index: Option<u32>) -> Result<(), SqlError> {
    session.lock_definition(table, TableLock::AccessExclusive)?;
    // The table may have been dropped before the lock.
    let Some(mut table) = session.environment.catalog.table(table).map(|table| table.as_ref().clone()) else {
        return Ok(());
    };
    let old = table.clone();
    if old.primary_key.as_ref().is_some_and(|key| index.is_none_or(|index| index == key.oid)) {
        rewrite(session, &old, &mut table, None)?;
    } else {
        for at in 0..table.indexes.len() {
            if index.is_some_and(|index| index != table.indexes[at].oid) {
                continue;
            }
            session.discard_tree(table.indexes[at].tree)?;
            table.indexes[at].tree = session.make_tree()?;
            session.see_rows_of(&table)?;
            session.executing(|cx| execution::ddl::build_index(cx, &table, &table.indexes[at]))?;
        }
    }
    session.define(Change::PutTable(Arc::new(table)))
}
