//! DROP and TRUNCATE.
//!
//! What must hold:
//!
//! 1. A DROP resolves and locks all its names before it drops anything. Then [`dependents::settle`]
//!    locks and judges the dependents. So a refused DROP has changed nothing.
//! 2. A drop only lists trees as dropped. Garbage collection frees them after the commit, so a
//!    rollback finds them whole.
//! 3. A table that loses a foreign key has the referenced tables locked first, in the order of
//!    their OIDs. A command that the key would make fail waits for this transaction's outcome.
//! 4. DROP DATABASE closes the database before it counts its sessions. A new session takes its slot
//!    before it looks whether the database is closed. So one of the two sees the other.
//! 5. DROP DATABASE commits a transaction of its own, which is on disk before the client hears of
//!    it, whatever `synchronous_commit` says. A failure before the commit opens the
//!    database again, and nothing that follows the commit may fail.
//! 6. Autovacuum is held off until a dropped database has left the list. It must not touch trees
//!    that garbage collection may free.
//! 7. TRUNCATE gives a table new trees and leaves the rows of the old ones alone.

use std::sync::Arc;

use runtime::hash::HashSet;
use txn::{TableLock, Wait};

use super::super::Session;
use super::dependents::{self, Object};
use super::{sequence, skipping, statistics};
use crate::shared::system;
use catalog::{Change, ForeignKey, Relation, Table, pg_catalog};
use execution::client::Client;
use execution::from_txn;
use query::plan::{ObjectKind, QualifiedName};
use values::error::{SqlError, SqlState};

/// DROP DATABASE.
pub(super) fn database(
    session: &mut Session,
    name: &str,
    if_exists: bool,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    session.refuse_block("DROP DATABASE")?;
    session.lock_databases()?;
    let shared = Arc::clone(&session.shared);
    let Some(gone) = shared.database(name) else {
        let message = format!("database \"{name}\" does not exist");
        if if_exists {
            skipping(session, client, format!("{message}, skipping"));
            return Ok("DROP DATABASE");
        }
        return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
    };
    if gone.oid == catalog::TEMPLATE_DATABASE {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot drop a template database"));
    }
    if gone.oid == session.environment.definitions.oid {
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"));
    }
    // From here on the database refuses new sessions. A failure opens it again.
    let closing = gone.close();
    // Autovacuum finds its tables until it leaves the list of databases, and must not touch them
    // any more. Autoanalyze may have a session there.
    let _held_off = shared.autovacuum.hold_off();
    let others = shared.activity.databases().iter().filter(|database| **database == gone.oid).count();
    if others > 0 {
        let message = format!("database \"{name}\" is being accessed by other users");
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, message)
            .with_detail(format!("There are {others} other sessions using the database.")));
    }
    // The rollback of ended sessions may still be running.
    let catalog = gone.catalog();
    for table in catalog.tables().filter(|table| !table.is_virtual()) {
        session
            .environment
            .txn
            .lock_table(table.oid, TableLock::AccessExclusive, Wait::Block)
            .map_err(from_txn)?;
    }
    shared.internal_durable(|txn| {
        for table in catalog.tables() {
            for tree in table.trees() {
                shared.drop_tree(txn, tree)?;
            }
        }
        for sequence in gone.catalog().sequences() {
            system::put(txn, system::SEQUENCES, &sequence.counter.to_be_bytes(), None)?;
        }
        for (key, _) in system::list(txn, system::OBJECTS, &gone.oid.to_be_bytes())? {
            system::put(txn, system::OBJECTS, &key, None)?;
        }
        system::put(txn, system::DATABASES, &gone.oid.to_be_bytes(), None)
    })?;
    closing.for_good();
    shared.remove_database(gone.oid);
    shared.trees_settled(&[]);
    Ok("DROP DATABASE")
}

/// DROP TABLE, INDEX, SEQUENCE, VIEW, SCHEMA, STATISTICS. All names are resolved and locked before
/// anything is dropped.
pub(super) fn objects(
    session: &mut Session,
    kind: ObjectKind,
    names: &[QualifiedName],
    (if_exists, cascade): (bool, bool),
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    let (word, missing, tag) = match kind {
        ObjectKind::Table => ("table", SqlState::UNDEFINED_TABLE, "DROP TABLE"),
        ObjectKind::Index => ("index", SqlState::UNDEFINED_OBJECT, "DROP INDEX"),
        ObjectKind::Sequence => ("sequence", SqlState::UNDEFINED_TABLE, "DROP SEQUENCE"),
        ObjectKind::View => ("view", SqlState::UNDEFINED_TABLE, "DROP VIEW"),
        ObjectKind::Schema => ("schema", SqlState::INVALID_SCHEMA_NAME, "DROP SCHEMA"),
        ObjectKind::Statistics => ("statistics object", SqlState::UNDEFINED_OBJECT, "DROP STATISTICS"),
    };
    let mut found = Vec::with_capacity(names.len());
    let mut known = HashSet::with_capacity_and_hasher(names.len(), Default::default());
    for name in names {
        match locked(session, kind, name).map_err(|error| hinted(session, name, error))? {
            Some(object) if !known.insert(object) => {}
            Some(object) => found.push(object),
            None => {
                let catalog = &session.environment.catalog;
                let schema = name.schema.as_deref().filter(|schema| catalog.schema(schema).is_none());
                let (code, message) = match schema {
                    Some(schema) => {
                        (SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
                    }
                    None if kind == ObjectKind::Statistics => {
                        (missing, format!("{word} \"{}\" does not exist", name.shown()))
                    }
                    None => (missing, format!("{word} \"{}\" does not exist", name.name)),
                };
                if !if_exists {
                    return Err(SqlError::new(code, message));
                }
                skipping(session, client, format!("{message}, skipping"));
            }
        }
    }
    for object in &found {
        match *object {
            Object::Sequence(oid) => refuse_required(session, oid)?,
            Object::Index(table, index) => refuse_constraints(session, table, index)?,
            _ => {}
        }
    }
    dependents::settle(session, &found, cascade, client)?;
    for object in found {
        match object {
            Object::Table(oid) => {
                let table = session.definition(oid)?;
                drop_table(session, &table)?;
            }
            Object::Sequence(oid) => sequence::forget(session, oid)?,
            Object::Index(table, index) => drop_index(session, table, index)?,
            Object::Schema(oid) => schema(session, oid)?,
            Object::Statistics(table, oid) => statistics::forget(session, table, oid)?,
            // No name of DROP stands for such a part of a table.
            Object::Column(..) | Object::Default(..) | Object::Constraint(..) => {}
        }
    }
    Ok(tag)
}

/// Adds to the error for a wrong kind of object which DROP is the right one.
fn hinted(session: &Session, name: &QualifiedName, error: SqlError) -> SqlError {
    let found = session.find_relation(name).filter(|_| error.code == SqlState::WRONG_OBJECT_TYPE);
    match found {
        None => error,
        Some(found) if is_view(&found) => error.with_hint("Use DROP VIEW to remove a view."),
        Some(Relation::Table(_)) => error.with_hint("Use DROP TABLE to remove a table."),
        Some(Relation::Sequence(_)) => error.with_hint("Use DROP SEQUENCE to remove a sequence."),
        Some(Relation::Index(..)) => error.with_hint("Use DROP INDEX to remove an index."),
    }
}

/// Whether a relation is a view. Only the system has views.
fn is_view(relation: &Relation) -> bool {
    matches!(relation, Relation::Table(table) if pg_catalog::is_view(table.oid))
}

/// Resolves a name of DROP and locks the object; None when there is none.
fn locked(session: &mut Session, kind: ObjectKind, name: &QualifiedName) -> Result<Option<Object>, SqlError> {
    let lock = TableLock::AccessExclusive;
    let not_a = |kind: &str| {
        let message = format!("\"{}\" is not a {kind}", name.name);
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
    };
    Ok(match kind {
        ObjectKind::Table if session.find_relation(name).is_some_and(|found| is_view(&found)) => {
            return Err(not_a("table"));
        }
        ObjectKind::Table => session.locked_table(name, lock)?.map(|table| Object::Table(table.oid)),
        ObjectKind::Sequence => {
            sequence::locked_named(session, name, lock)?.map(|sequence| Object::Sequence(sequence.oid))
        }
        ObjectKind::Statistics => {
            statistics::locked(session, name)?.map(|(table, oid)| Object::Statistics(table, oid))
        }
        ObjectKind::Index => {
            session.locked_index(name, lock)?.map(|(table, index)| Object::Index(table, index))
        }
        ObjectKind::View => match session.find_relation(name) {
            // The system's relations are refused before they are locked.
            Some(found) if is_view(&found) => {
                return Err(session.locked_table(name, lock).err().unwrap_or_else(|| not_a("view")));
            }
            Some(_) => return Err(not_a("view")),
            None => None,
        },
        ObjectKind::Schema => {
            let name = &name.name;
            if matches!(&name[..], "pg_catalog" | "pg_toast" | "information_schema") {
                let message =
                    format!("cannot drop schema {name} because it is required by the database system");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            session.lock_found(lock, Wait::Block, |session| {
                let found = session.environment.catalog.schema(name);
                Ok(found.map(|schema| (schema.oid, Object::Schema(schema.oid))))
            })?
        }
    })
}

/// Refuses what DROP INDEX CONCURRENTLY does not do.
pub(super) fn check_concurrent(
    session: &mut Session,
    names: &[QualifiedName],
    cascade: bool,
) -> Result<(), SqlError> {
    session.refuse_block("DROP INDEX CONCURRENTLY")?;
    let refused = match (names.len() > 1, cascade) {
        (true, _) => "dropping multiple objects",
        (false, true) => "CASCADE",
        (false, false) => return Ok(()),
    };
    let message = format!("DROP INDEX CONCURRENTLY does not support {refused}");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// Refuses to drop the sequence of an identity column.
fn refuse_required(session: &Session, sequence: u32) -> Result<(), SqlError> {
    let catalog = &session.environment.catalog;
    let Some(sequence) = catalog.sequence(sequence) else { return Ok(()) };
    let Some((table, column)) = sequence.owner else { return Ok(()) };
    let Some(table) = catalog.table(table) else { return Ok(()) };
    let column = table.columns.get(column as usize).filter(|column| column.identity.is_some());
    let Some(column) = column else { return Ok(()) };
    let what = format!("column {} of table {}", column.name, table.name);
    let message = format!("cannot drop sequence {} because {what} requires it", sequence.name);
    Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop {what} instead.")))
}

/// Error 2BP01 for the index of a constraint.
fn refuse_constraints(session: &Session, table: u32, index: u32) -> Result<(), SqlError> {
    let Some(table) = session.environment.catalog.table(table) else { return Ok(()) };
    let primary = table.primary_key.iter().map(|key| (key.oid, &key.name));
    let unique = table.indexes.iter().filter(|index| index.constraint != 0);
    let mut of_constraints = primary.chain(unique.map(|index| (index.oid, &index.name)));
    let Some((_, name)) = of_constraints.find(|(oid, _)| *oid == index) else { return Ok(()) };
    let table = &table.name;
    let message = format!("cannot drop index {name} because constraint {name} on table {table} requires it");
    Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop constraint {name} on table {table} instead.")))
}

/// Drops an index of a locked table, on which nothing depends any more.
fn drop_index(session: &mut Session, table: u32, index: u32) -> Result<(), SqlError> {
    let mut table = session.definition(table)?;
    let Some(at) = table.indexes.iter().position(|other| other.oid == index) else { return Ok(()) };
    let index = table.indexes.remove(at);
    session.discard_tree(index.tree)?;
    session.define(Change::PutTable(Arc::new(table)))
}

/// Drops a table that is locked, on which nothing depends any more.
fn drop_table(session: &mut Session, table: &Table) -> Result<(), SqlError> {
    lock_parents(session, table, |_| true)?;
    for tree in table.trees() {
        session.discard_tree(tree)?;
    }
    let catalog = Arc::clone(&session.environment.catalog);
    for owned in catalog.owned_sequences(table.oid) {
        sequence::forget(session, owned.oid)?;
    }
    if catalog.statistics(table.oid).is_some() {
        session.define(Change::DropStatistics(table.oid))?;
    }
    session.define(Change::DropTable(table.oid))
}

/// Locks the tables that a table's foreign keys reference, before these keys are dropped. The lock
/// lets readers and writers pass. A command that the key would make fail needs a stronger lock, so
/// it waits for the outcome of this transaction.
pub(super) fn lock_parents(
    session: &mut Session,
    table: &Table,
    goes: impl Fn(&ForeignKey) -> bool,
) -> Result<(), SqlError> {
    let keys = table.foreign_keys.iter().filter(|key| key.parent != table.oid && goes(key));
    let mut parents: Vec<u32> = keys.map(|key| key.parent).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.into_iter().try_for_each(|parent| session.lock_definition(parent, TableLock::AccessShare))
}

/// Drops a locked schema with all that is in it, which is locked too.
fn schema(session: &mut Session, schema: u32) -> Result<(), SqlError> {
    let catalog = Arc::clone(&session.environment.catalog);
    let mut tables: Vec<&Arc<Table>> = catalog.tables().filter(|table| table.schema == schema).collect();
    tables.sort_by_key(|table| table.oid);
    // One of these tables may reference another.
    for table in tables {
        drop_table(session, table)?;
    }
    for sequence in catalog.sequences().filter(|sequence| sequence.schema == schema) {
        sequence::forget(session, sequence.oid)?;
    }
    session.define(Change::DropSchema(schema))
}

/// TRUNCATE: the tables get new, empty trees.
pub(super) fn truncate(
    session: &mut Session,
    names: &[QualifiedName],
    restart_identity: bool,
    cascade: bool,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    let mut all: Vec<u32> = Vec::with_capacity(names.len());
    let mut known = HashSet::with_capacity_and_hasher(names.len(), Default::default());
    for name in names {
        let table = session.locked_table(name, TableLock::AccessExclusive)?;
        let oid = table.ok_or_else(|| session.missing(name))?.oid;
        if known.insert(oid) {
            all.push(oid);
        }
    }
    let mut at = 0;
    while at < all.len() {
        let catalog = Arc::clone(&session.environment.catalog);
        for reference in catalog.references(all[at]) {
            if known.contains(&reference.child) {
                continue;
            }
            let name = |oid: u32| catalog.table(oid).map_or_else(String::new, |table| table.name.clone());
            if !cascade {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .with_detail(format!("Table \"{}\" references \"{}\".", name(reference.child), name(all[at])))
                .with_hint(format!(
                    "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                    name(reference.child)
                )));
            }
            session.lock_definition(reference.child, TableLock::AccessExclusive)?;
            // The table, or its foreign key, may have been dropped before the lock.
            let now = Arc::clone(&session.environment.catalog);
            if let Some(child) = now.table(reference.child)
                && now.references(all[at]).iter().any(|now| now.child == child.oid)
            {
                skipping(session, client, format!("truncate cascades to table \"{}\"", child.name));
                known.insert(child.oid);
                all.push(child.oid);
            }
        }
        at += 1;
    }
    for oid in all {
        let mut table = session.definition(oid)?;
        for tree in table.trees() {
            session.discard_tree(tree)?;
        }
        table.tree = session.make_tree()?;
        session.make_out_of_line_tree(&mut table)?;
        for index in &mut table.indexes {
            index.tree = session.make_tree()?;
        }
        let columns = table.columns.len() as u32;
        session.define(Change::PutTable(Arc::new(table)))?;
        if restart_identity {
            for column in 0..columns {
                for owned in sequence::owned_by(&Arc::clone(&session.environment.catalog), oid, column) {
                    sequence::restart(session, &owned)?;
                }
            }
        }
    }
    Ok("TRUNCATE TABLE")
}
