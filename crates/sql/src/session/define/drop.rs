//! DROP and TRUNCATE.

use std::sync::Arc;

use txn::{TableLock, Wait};

use super::super::Session;
use super::super::client::Client;
use super::{alter, sequence, skipping};
use crate::catalog::{Change, Column, ForeignKey, Relation, Sequence, Table};
use crate::database::system;
use crate::error::{SqlError, SqlState};
use crate::exec::from_txn;
use crate::plan::{ObjectKind, QualifiedName};

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
    if gone.oid == crate::database::TEMPLATE_DATABASE {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot drop a template database"));
    }
    if gone.oid == session.environment.definitions.oid {
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"));
    }
    // From here on nobody gets in, unless this fails.
    let closing = gone.close();
    let others = shared.board.list().iter().filter(|seen| seen.database == gone.oid).count();
    if others > 0 {
        let message = format!("database \"{name}\" is being accessed by other users");
        return Err(SqlError::new(SqlState::OBJECT_IN_USE, message)
            .with_detail(format!("There are {others} other sessions using the database.")));
    }
    // Sessions that are gone may have changes that are still being taken back.
    let catalog = gone.catalog();
    for table in catalog.tables().filter(|table| !table.is_virtual()) {
        session
            .environment
            .txn
            .lock_table(table.oid, TableLock::AccessExclusive, Wait::Block)
            .map_err(from_txn)?;
    }
    // Its tables are found until it is off the list, and must not be vacuumed any more.
    let _held_off = shared.autovacuum.hold_off();
    shared.internal(|txn| {
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

/// DROP TABLE, INDEX, SEQUENCE, VIEW, SCHEMA.
pub(super) fn objects(
    session: &mut Session,
    kind: ObjectKind,
    names: &[QualifiedName],
    (if_exists, cascade): (bool, bool),
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    // What depends on one of them and goes with the statement too is no obstacle, whatever the order of the names.
    let together: Vec<u32> = match kind {
        ObjectKind::Table => names.iter().filter_map(|name| table_named(session, name)).collect(),
        _ => Vec::new(),
    };
    for name in names {
        if !object(session, kind, name, cascade, &together)? {
            let word = match kind {
                ObjectKind::Table => "table",
                ObjectKind::Index => "index",
                ObjectKind::Sequence => "sequence",
                ObjectKind::View => "view",
                ObjectKind::Schema => "schema",
            };
            let message = format!("{word} \"{}\" does not exist", name.name);
            if !if_exists {
                let code = match kind {
                    ObjectKind::Table | ObjectKind::Sequence | ObjectKind::View => SqlState::UNDEFINED_TABLE,
                    ObjectKind::Index => SqlState::UNDEFINED_OBJECT,
                    ObjectKind::Schema => SqlState::INVALID_SCHEMA_NAME,
                };
                return Err(SqlError::new(code, message));
            }
            skipping(session, client, format!("{message}, skipping"));
        }
    }
    Ok(match kind {
        ObjectKind::Table => "DROP TABLE",
        ObjectKind::Index => "DROP INDEX",
        ObjectKind::Sequence => "DROP SEQUENCE",
        ObjectKind::View => "DROP VIEW",
        ObjectKind::Schema => "DROP SCHEMA",
    })
}

/// Refuses what DROP INDEX CONCURRENTLY does not do.
pub(super) fn check_concurrent(
    session: &Session,
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

/// The OID of the table of this name.
fn table_named(session: &Session, name: &QualifiedName) -> Option<u32> {
    match session.find_relation(name) {
        Some(Relation::Table(table)) => Some(table.oid),
        _ => None,
    }
}

/// Drops one object; false when there is none of that name. The tables of `together` are dropped by the same statement.
fn object(
    session: &mut Session,
    kind: ObjectKind,
    name: &QualifiedName,
    cascade: bool,
    together: &[u32],
) -> Result<bool, SqlError> {
    session.refresh_catalog();
    if kind == ObjectKind::Schema {
        return schema(session, &name.name, cascade);
    }
    let wrong = |what: &str| {
        let message = format!("\"{}\" is not {what}", name.name);
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
    };
    match (session.find_relation(name), kind) {
        (None, _) => Ok(false),
        (Some(Relation::Table(_)), ObjectKind::Table) => {
            match session.locked_table(name, TableLock::AccessExclusive)? {
                Some(found) => drop_table(session, &found, cascade, together).map(|()| true),
                None => Ok(false),
            }
        }
        (Some(Relation::Sequence(found)), ObjectKind::Sequence) => {
            forget_defaults(session, &found, cascade)?;
            sequence::forget(session, &found)
        }
        (Some(Relation::Index(table, index)), ObjectKind::Index) => drop_index(session, table.oid, index),
        (Some(_), ObjectKind::Table) => Err(wrong("a table")),
        (Some(_), ObjectKind::Sequence) => Err(wrong("a sequence")),
        (Some(_), ObjectKind::Index) => Err(wrong("an index")),
        (Some(_), _) => Err(wrong("a view")),
    }
}

/// Takes a sequence out of the defaults that read it; an error without `cascade` when there are any.
fn forget_defaults(session: &mut Session, sequence: &Sequence, cascade: bool) -> Result<(), SqlError> {
    let reads = format!("val('{}'::regclass", sequence.oid);
    let reading = |column: &Column| column.default.as_ref().is_some_and(|default| default.contains(&reads));
    let catalog = Arc::clone(&session.environment.catalog);
    if let Some((table, column)) = sequence.owner
        && let Some(table) = catalog.table(table)
        && let Some(column) = table.columns.get(column as usize).filter(|column| column.identity.is_some())
    {
        let what = format!("column {} of table {}", column.name, table.name);
        let message = format!("cannot drop sequence {} because {what} requires it", sequence.name);
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_hint(format!("You can drop {what} instead.")));
    }
    let mut readers: Vec<_> =
        catalog.tables().filter(|table| table.columns.iter().any(reading)).cloned().collect();
    readers.sort_by_key(|table| table.oid);
    if !cascade && !readers.is_empty() {
        let detail = readers.iter().flat_map(|table| {
            table.columns.iter().filter(|column| reading(column)).map(|column| {
                format!(
                    "default value for column {} of table {} depends on sequence {}",
                    column.name, table.name, sequence.name
                )
            })
        });
        let detail: Vec<String> = detail.collect();
        let message = format!("cannot drop sequence {} because other objects depend on it", sequence.name);
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_detail(detail.join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for reader in readers {
        session.lock_definition(reader.oid, TableLock::AccessExclusive)?;
        let mut table = session.definition(reader.oid)?;
        for column in table.columns.iter_mut().filter(|column| reading(column)) {
            column.default = None;
        }
        session.define(Change::PutTable(Arc::new(table)))?;
    }
    Ok(())
}

/// Drops an index; false when somebody else has, or its table.
fn drop_index(session: &mut Session, table: u32, index: u32) -> Result<bool, SqlError> {
    session.lock_definition(table, TableLock::AccessExclusive)?;
    let Some(table) = session.environment.catalog.table(table) else { return Ok(false) };
    let mut table = Table::clone(table);
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.oid == index) {
        return Err(needed(&key.name, &table.name));
    }
    let Some(at) = table.indexes.iter().position(|other| other.oid == index) else { return Ok(false) };
    if table.indexes[at].constraint != 0 {
        return Err(needed(&table.indexes[at].name, &table.name));
    }
    let index = table.indexes.remove(at);
    session.discard_tree(index.tree)?;
    session.define(Change::PutTable(Arc::new(table)))?;
    Ok(true)
}

fn needed(name: &str, table: &str) -> SqlError {
    let message = format!("cannot drop index {name} because constraint {name} on table {table} requires it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop constraint {name} on table {table} instead."))
}

/// Drops a table that is locked, and the foreign keys that reference it where `cascade` says so or their tables go
/// with it.
fn drop_table(session: &mut Session, table: &Table, cascade: bool, together: &[u32]) -> Result<(), SqlError> {
    let catalog = Arc::clone(&session.environment.catalog);
    let mut references =
        catalog.references(table.oid).iter().filter(|reference| reference.child != table.oid);
    if let Some(first) = references.next() {
        let obstacle =
            std::iter::once(first).chain(references).find(|other| !together.contains(&other.child));
        if let Some(reference) = obstacle.filter(|_| !cascade) {
            let child = catalog.table(reference.child);
            let detail = child.map_or_else(String::new, |child| {
                let key = &child.foreign_keys[reference.key];
                format!("constraint {} on table {} depends on table {}", key.name, child.name, table.name)
            });
            let message = format!("cannot drop table {} because other objects depend on it", table.name);
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(detail)
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        forget_references(session, table.oid, |_| true)?;
    }
    for tree in table.trees() {
        session.discard_tree(tree)?;
    }
    let owned: Vec<_> = catalog
        .sequences()
        .filter(|sequence| sequence.owner.is_some_and(|(owner, _)| owner == table.oid))
        .cloned()
        .collect();
    for sequence in owned {
        sequence::forget(session, &sequence)?;
    }
    if catalog.statistics(table.oid).is_some() {
        session.define(Change::DropStatistics(table.oid))?;
    }
    session.define(Change::DropTable(table.oid))
}

/// Drops other tables' foreign keys to a table.
pub(super) fn forget_references(
    session: &mut Session,
    parent: u32,
    which: impl Fn(&ForeignKey) -> bool,
) -> Result<(), SqlError> {
    let catalog = Arc::clone(&session.environment.catalog);
    let mut children: Vec<u32> = catalog.references(parent).iter().map(|reference| reference.child).collect();
    children.sort_unstable();
    children.dedup();
    for child in children.into_iter().filter(|child| *child != parent) {
        session.lock_definition(child, TableLock::AccessExclusive)?;
        let Some(child) = session.environment.catalog.table(child) else { continue };
        let mut child = Table::clone(child);
        child.foreign_keys.retain(|key| key.parent != parent || !which(key));
        session.define(Change::PutTable(Arc::new(child)))?;
    }
    Ok(())
}

/// Drops a schema. Once it is locked nothing is put into it, and what others have put there is committed; what is in it
/// may still be moved elsewhere, until it is locked too.
fn schema(session: &mut Session, name: &str, cascade: bool) -> Result<bool, SqlError> {
    if matches!(name, "pg_catalog" | "pg_toast" | "information_schema") {
        let message = format!("cannot drop schema {name} because it is required by the database system");
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
    }
    let named = |session: &Session| session.environment.catalog.schema(name).map(|schema| schema.oid);
    let schema = loop {
        let Some(schema) = named(session) else { return Ok(false) };
        session.lock_definition(schema, TableLock::AccessExclusive)?;
        if named(session) == Some(schema) {
            break schema;
        }
    };
    let catalog = Arc::clone(&session.environment.catalog);
    let tables: Vec<u32> = catalog.tables().filter(|t| t.schema == schema).map(|t| t.oid).collect();
    let sequences = |session: &Session| -> Vec<_> {
        let catalog = &session.environment.catalog;
        catalog.sequences().filter(|sequence| sequence.schema == schema).cloned().collect()
    };
    if !cascade && (!tables.is_empty() || !sequences(session).is_empty()) {
        let message = format!("cannot drop schema {name} because other objects depend on it");
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for table in tables {
        session.lock_definition(table, TableLock::AccessExclusive)?;
        let table = session.environment.catalog.table(table).filter(|table| table.schema == schema);
        let Some(table) = table.cloned() else { continue };
        drop_table(session, &table, true, &[])?;
    }
    for left in sequences(session) {
        if sequence::locked(session, left.oid)?.is_some_and(|locked| locked.schema == schema) {
            sequence::forget(session, &left)?;
        }
    }
    session.define(Change::DropSchema(schema))?;
    Ok(true)
}

/// TRUNCATE: the tables get new, empty trees.
pub(super) fn truncate(
    session: &mut Session,
    tables: &[u32],
    restart_identity: bool,
    cascade: bool,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    let mut all = tables.to_vec();
    let mut at = 0;
    while at < all.len() {
        session.lock_definition(all[at], TableLock::AccessExclusive)?;
        let catalog = Arc::clone(&session.environment.catalog);
        for reference in catalog.references(all[at]) {
            if all.contains(&reference.child) {
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
            skipping(session, client, format!("truncate cascades to table \"{}\"", name(reference.child)));
            all.push(reference.child);
        }
        at += 1;
    }
    for oid in all {
        let mut table = session.definition(oid)?;
        for tree in table.trees() {
            session.discard_tree(tree)?;
        }
        table.tree = session.make_tree()?;
        session.make_wide(&mut table)?;
        for index in &mut table.indexes {
            index.tree = session.make_tree()?;
        }
        let columns = table.columns.len() as u32;
        session.define(Change::PutTable(Arc::new(table)))?;
        if restart_identity {
            for column in 0..columns {
                for owned in alter::owned_by(&Arc::clone(&session.environment.catalog), oid, column) {
                    sequence::restart(session, &owned)?;
                }
            }
        }
    }
    Ok("TRUNCATE TABLE")
}
