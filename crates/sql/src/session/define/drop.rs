//! DROP and TRUNCATE.

use std::collections::HashSet;
use std::sync::Arc;

use txn::{TableLock, Wait};

use super::super::Session;
use super::super::client::Client;
use super::{alter, sequence, skipping};
use crate::catalog::{Change, Column, ForeignKey, Sequence, Table};
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

/// DROP TABLE, INDEX, SEQUENCE, VIEW, SCHEMA. All names are resolved and locked before anything is dropped.
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
    };
    let mut found = Vec::with_capacity(names.len());
    let mut known = HashSet::with_capacity(names.len());
    for name in names {
        match locked(session, kind, name)? {
            Some(object) if !known.insert(object) => {}
            Some(object) => found.push(object),
            None => {
                let message = format!("{word} \"{}\" does not exist", name.name);
                if !if_exists {
                    return Err(SqlError::new(missing, message));
                }
                skipping(session, client, format!("{message}, skipping"));
            }
        }
    }
    // What depends on one of them and goes with the statement too is no obstacle, whatever the order of the names.
    let together: HashSet<u32> = found
        .iter()
        .filter_map(|object| if let Object::Table(oid) = object { Some(*oid) } else { None })
        .collect();
    for object in found {
        match object {
            Object::Table(oid) => {
                let table = session.definition(oid)?;
                drop_table(session, &table, cascade, &together)?;
            }
            Object::Sequence(oid) => {
                if let Some(sequence) = sequence::locked(session, oid)? {
                    refuse_required(session, &sequence)?;
                    let what = format!("sequence {}", sequence.name);
                    forget_readers(session, &sequence, &what, |_, _| false, None, cascade)?;
                    sequence::forget(session, &sequence)?;
                }
            }
            Object::Index(table, index) => drop_index(session, table, index, cascade)?,
            Object::Schema(oid) => schema(session, oid, cascade)?,
        }
    }
    Ok(tag)
}

/// An object that is to be dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Object {
    /// A table's OID.
    Table(u32),
    /// A sequence's OID.
    Sequence(u32),
    /// The OIDs of an index's table and of the index.
    Index(u32, u32),
    /// A schema's OID.
    Schema(u32),
}

/// Resolves a name of DROP and locks the object; None when there is none.
fn locked(session: &mut Session, kind: ObjectKind, name: &QualifiedName) -> Result<Option<Object>, SqlError> {
    let lock = TableLock::AccessExclusive;
    Ok(match kind {
        ObjectKind::Table => session.locked_table(name, lock)?.map(|table| Object::Table(table.oid)),
        ObjectKind::Sequence => {
            sequence::locked_named(session, name)?.map(|sequence| Object::Sequence(sequence.oid))
        }
        ObjectKind::Index => {
            session.locked_index(name, lock)?.map(|(table, index)| Object::Index(table, index))
        }
        ObjectKind::View => match session.find_relation(name) {
            Some(_) => {
                let message = format!("\"{}\" is not a view", name.name);
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
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
fn refuse_required(session: &Session, sequence: &Sequence) -> Result<(), SqlError> {
    let catalog = &session.environment.catalog;
    let Some((table, column)) = sequence.owner else { return Ok(()) };
    let Some(table) = catalog.table(table) else { return Ok(()) };
    let column = table.columns.get(column as usize).filter(|column| column.identity.is_some());
    let Some(column) = column else { return Ok(()) };
    let what = format!("column {} of table {}", column.name, table.name);
    let message = format!("cannot drop sequence {} because {what} requires it", sequence.name);
    Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop {what} instead.")))
}

/// Takes a sequence out of the defaults that read it; an error without `cascade` when there are any. The sequence goes
/// with `what`, as do the columns, by table and place, for which `goes` is true. `own`: the locked table that is being
/// changed, which is not defined yet.
pub(super) fn forget_readers(
    session: &mut Session,
    sequence: &Sequence,
    what: &str,
    goes: impl Fn(u32, usize) -> bool,
    own: Option<&mut Table>,
    cascade: bool,
) -> Result<(), SqlError> {
    let text = format!("val('{}'::regclass", sequence.oid);
    let reads = |column: &Column| column.default.as_ref().is_some_and(|default| default.contains(&text));
    let reading = |table: &Table| -> Vec<usize> {
        let columns = table.columns.iter().enumerate();
        columns.filter(|(at, column)| reads(column) && !goes(table.oid, *at)).map(|(at, _)| at).collect()
    };
    let changed = own.as_ref().map(|own| own.oid);
    let readers = |session: &Session| {
        let tables = session.environment.catalog.tables();
        let others = tables.filter(|table| Some(table.oid) != changed && !reading(table).is_empty());
        let mut readers: Vec<Arc<Table>> = others.cloned().collect();
        readers.sort_by_key(|table| table.oid);
        readers
    };
    // Another transaction may be about to drop one, or its default.
    let lock = if cascade { TableLock::AccessExclusive } else { TableLock::AccessShare };
    for reader in readers(session) {
        session.lock_definition(reader.oid, lock)?;
    }
    let readers = readers(session);
    let own = own.map(|own| (reading(own), own));
    if !cascade {
        let changed = own.iter().map(|(_, own)| &**own);
        let detail = readers.iter().map(|reader| &**reader).chain(changed).flat_map(|table| {
            reading(table).into_iter().map(|at| {
                format!(
                    "default value for column {} of table {} depends on sequence {}",
                    table.columns[at].name, table.name, sequence.name
                )
            })
        });
        let detail: Vec<String> = detail.collect();
        if detail.is_empty() {
            return Ok(());
        }
        return Err(still_needed(what, &detail));
    }
    if let Some((columns, own)) = own {
        columns.into_iter().for_each(|at| own.columns[at].default = None);
    }
    for reader in readers {
        // It may have come to read the sequence while others were waited for.
        session.lock_definition(reader.oid, TableLock::AccessExclusive)?;
        let mut table = session.definition(reader.oid)?;
        for at in reading(&table) {
            table.columns[at].default = None;
        }
        session.define(Change::PutTable(Arc::new(table)))?;
    }
    Ok(())
}

/// Refuses to drop an object. `details`: a line for each one that depends on it.
fn still_needed(what: &str, details: &[String]) -> SqlError {
    let message = format!("cannot drop {what} because other objects depend on it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(details.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// Drops an index of a locked table, and the foreign keys that need it where `cascade` says so.
fn drop_index(session: &mut Session, table: u32, index: u32, cascade: bool) -> Result<(), SqlError> {
    let mut table = session.definition(table)?;
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.oid == index) {
        return Err(needed(&key.name, &table.name));
    }
    let Some(at) = table.indexes.iter().position(|other| other.oid == index) else { return Ok(()) };
    if table.indexes[at].constraint != 0 {
        return Err(needed(&table.indexes[at].name, &table.name));
    }
    let what = format!("index {}", table.indexes[at].name);
    let needs = needing(&table, &[index]);
    release(session, &mut table, needs, (&what, &what), cascade)?;
    let index = table.indexes.remove(at);
    session.discard_tree(index.tree)?;
    session.define(Change::PutTable(Arc::new(table)))
}

/// Drops the foreign keys to a locked table that need something of it, or refuses to without `cascade`. `what`: what is
/// dropped, and what of it they depend on, as messages name it.
pub(super) fn release(
    session: &mut Session,
    table: &mut Table,
    needs: impl Fn(&ForeignKey) -> bool,
    (what, part): (&str, &str),
    cascade: bool,
) -> Result<(), SqlError> {
    let (parent, catalog) = (table.oid, Arc::clone(&session.environment.catalog));
    let own = table.foreign_keys.iter().filter(|key| key.parent == parent).map(|key| (key, &table.name));
    let others = catalog.references(parent).iter().filter(|reference| reference.child != parent);
    let others = others.filter_map(|reference| {
        let child = catalog.table(reference.child)?;
        Some((&child.foreign_keys[reference.key], &child.name))
    });
    let bound = own.chain(others).filter(|(key, _)| needs(key));
    let details: Vec<String> = bound
        .map(|(key, child)| format!("constraint {} on table {child} depends on {part}", key.name))
        .collect();
    if details.is_empty() {
        return Ok(());
    }
    if !cascade {
        return Err(still_needed(what, &details));
    }
    table.foreign_keys.retain(|key| key.parent != parent || !needs(key));
    forget_references(session, parent, needs)
}

/// Tells whether a foreign key needs one of these unique keys of its parent.
pub(super) fn needing(parent: &Table, gone: &[u32]) -> impl Fn(&ForeignKey) -> bool + use<> {
    let (parent, gone) = (parent.clone(), gone.to_vec());
    move |key| parent.unique_key(&key.parent_columns).is_some_and(|bound| gone.contains(&bound))
}

fn needed(name: &str, table: &str) -> SqlError {
    let message = format!("cannot drop index {name} because constraint {name} on table {table} requires it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop constraint {name} on table {table} instead."))
}

/// Drops a table that is locked, and the foreign keys that reference it where `cascade` says so or their tables go
/// with it.
fn drop_table(
    session: &mut Session,
    table: &Table,
    cascade: bool,
    together: &HashSet<u32>,
) -> Result<(), SqlError> {
    lock_parents(session, table, |_| true)?;
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
            return Err(still_needed(&format!("table {}", table.name), &[detail]));
        }
        forget_references(session, table.oid, |_| true)?;
    }
    for tree in table.trees() {
        session.discard_tree(tree)?;
    }
    let goes = |other: u32, _| other == table.oid || together.contains(&other);
    for owned in catalog.owned_sequences(table.oid) {
        forget_readers(session, owned, &format!("table {}", table.name), goes, None, cascade)?;
        sequence::forget(session, owned)?;
    }
    if catalog.statistics(table.oid).is_some() {
        session.define(Change::DropStatistics(table.oid))?;
    }
    session.define(Change::DropTable(table.oid))
}

/// Locks the tables that a table's foreign keys reference before these keys go. Readers and writers pass; a statement that
/// is refused where the key is still there waits until it is known whether it is.
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

/// Drops a locked schema. Nothing is put into it any more, and what others have put there is committed; what is in it may
/// still be moved elsewhere, until it is locked too.
fn schema(session: &mut Session, schema: u32, cascade: bool) -> Result<(), SqlError> {
    let name = session.environment.catalog.schema_name(schema).to_owned();
    let tables = |session: &Session| -> Vec<u32> {
        let tables = session.environment.catalog.tables();
        tables.filter(|table| table.schema == schema).map(|table| table.oid).collect()
    };
    let sequences = |session: &Session| -> Vec<_> {
        let catalog = &session.environment.catalog;
        catalog.sequences().filter(|sequence| sequence.schema == schema).cloned().collect()
    };
    if !cascade {
        // Another transaction may be about to drop them, or to move them elsewhere.
        for table in tables(session) {
            session.lock_definition(table, TableLock::AccessShare)?;
        }
        for left in sequences(session) {
            session.lock_definition(left.oid, TableLock::RowExclusive)?;
        }
    }
    if !cascade && (!tables(session).is_empty() || !sequences(session).is_empty()) {
        let message = format!("cannot drop schema {name} because other objects depend on it");
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for table in tables(session) {
        session.lock_definition(table, TableLock::AccessExclusive)?;
        let table = session.environment.catalog.table(table).filter(|table| table.schema == schema);
        let Some(table) = table.cloned() else { continue };
        drop_table(session, &table, true, &HashSet::new())?;
    }
    for left in sequences(session) {
        if sequence::locked(session, left.oid)?.is_some_and(|locked| locked.schema == schema) {
            forget_readers(session, &left, &format!("schema {name}"), |_, _| false, None, true)?;
            sequence::forget(session, &left)?;
        }
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
    let mut known = HashSet::with_capacity(names.len());
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
            // It may have been dropped before it was locked, or its foreign key.
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
