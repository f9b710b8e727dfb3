//! CREATE DATABASE, SCHEMA, TABLE, INDEX.
//!
//! What must hold:
//!
//! 1. The schema of a new object stays locked until the transaction ends, so DROP SCHEMA waits.
//! 2. A new table or sequence is locked under its new OID before its definition is stored. Another
//!    session that finds the definition then waits for the outcome.
//! 3. A table claims its name after its sequences have claimed theirs, as in PostgreSQL.
//! 4. A table's columns, keys and trees are complete before its definition is stored. Only the
//!    definitions of its sequences come before it.
//! 5. CREATE INDEX holds a lock that excludes writers and other changes of the definition. The
//!    index is built from the newest rows, or the command fails.
//! 6. CREATE DATABASE commits a transaction of its own, which is on disk before any session finds
//!    the database, whatever `synchronous_commit` says. The lock on the list of databases covers
//!    the look at the names and the change, and nothing that follows the commit may fail.

use std::sync::Arc;

use txn::TableLock;

use super::super::Session;
use super::columns::{at_most_columns, check_column_name, check_column_type, column, no_column};
use super::names::{distinct, not_in_the_catalog};
use super::{constraint, exists, kept, owner, sequence};
use crate::shared::system;
use catalog::system_columns;
use catalog::{Change, DatabaseEntry, Index, IndexKey, PG_CATALOG, Schema, Table, TreeAddress};
use execution;
use execution::client::Client;
use query::plan::{ColumnDefinition, CreateIndex, CreateTable, Statement};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// CREATE DATABASE.
pub(super) fn database(
    session: &mut Session,
    name: &str,
    owner: Option<&str>,
) -> Result<&'static str, SqlError> {
    session.refuse_block("CREATE DATABASE")?;
    owner::check(session, owner)?;
    let shared = Arc::clone(&session.shared);
    session.lock_databases()?;
    let mut entries = shared.databases().into_iter().map(|database| database.entry());
    if entries.any(|entry| entry.name == name) {
        let message = format!("database \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_DATABASE, message));
    }
    let entry = DatabaseEntry { oid: shared.new_oid(), name: name.to_owned() };
    shared.internal_durable(|txn| {
        system::put(txn, system::DATABASES, &entry.oid.to_be_bytes(), Some(name.as_bytes()))
    })?;
    shared.add_database(entry);
    Ok("CREATE DATABASE")
}

/// CREATE SCHEMA.
pub(super) fn schema(
    session: &mut Session,
    (name, owner): (&str, Option<&str>),
    if_not_exists: bool,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    session.refresh_catalog();
    owner::check(session, owner)?;
    if session.environment.catalog.schema(name).is_some() {
        let message = format!("schema \"{name}\" already exists");
        if !if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, message));
        }
        exists(session, client, SqlState::DUPLICATE_SCHEMA, &message);
        return Ok("CREATE SCHEMA");
    }
    if name.starts_with("pg_") {
        return Err(SqlError::new(SqlState::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    let oid = session.shared.new_oid();
    session.define(Change::PutSchema(Arc::new(Schema { oid, name: name.to_owned() })))?;
    Ok("CREATE SCHEMA")
}

/// CREATE TABLE.
pub(super) fn table(
    session: &mut Session,
    create: &CreateTable,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    make_table(session, create, client)?;
    Ok("CREATE TABLE")
}

/// CREATE TABLE AS. `create` has the names for the query's first columns. `tag_without_data` is the
/// tag for WITH NO DATA, if the statement says so. Returns the number of rows in the table.
pub(in super::super) fn table_as(
    session: &mut Session,
    (create, query, tag_without_data): (&CreateTable, &Arc<Statement>, Option<&str>),
    values: &[Datum<'_>],
    client: &mut dyn Client,
) -> Result<u64, SqlError> {
    let mut create = create.clone();
    let named: Vec<String> = create.columns.iter().map(|column| column.name.clone()).collect();
    create.columns = query
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| ColumnDefinition {
            name: named.get(at).unwrap_or(&column.name).clone(),
            type_: column.type_,
            not_null: false,
            default: None,
            volatile_default: false,
            sequence: None,
        })
        .collect();
    session.begin_statement(query)?;
    let Some(table) = make_table(session, &create, client)? else {
        client.complete("CREATE TABLE AS");
        return Ok(0);
    };
    if let Some(tag) = tag_without_data {
        client.complete(tag);
        return Ok(0);
    }
    session.environment.txn.statement_start().map_err(execution::from_txn)?;
    let environment = &session.environment;
    let catalog = &environment.catalog;
    let mut cx =
        execution::Executor::new(&environment.txn, &session.shared.row_numbers, catalog, values, environment);
    cx.measures = session.measures.as_ref();
    let rows = execution::ddl::fill(&mut cx, query, &table, None)?;
    client.complete(&format!("SELECT {rows}"));
    session.changes.note(table.oid, rows);
    Ok(rows)
}

/// The schema that a new table goes to; None when its name is taken and that is fine.
pub(in super::super) fn schema_for_table(
    session: &mut Session,
    create: &CreateTable,
    client: &mut dyn Client,
) -> Result<Option<u32>, SqlError> {
    let schema = session.lock_schema(create.name.schema.as_deref())?;
    let name = &create.name.name;
    if session.environment.catalog.relation_in(schema, name).is_none() {
        return Ok(Some(schema));
    }
    let message = format!("relation \"{name}\" already exists");
    if create.if_not_exists {
        exists(session, client, SqlState::DUPLICATE_TABLE, &message);
        return Ok(None);
    }
    Err(SqlError::new(SqlState::DUPLICATE_TABLE, message))
}

/// Makes a table with its sequences, constraints and indexes; None when it exists and that is fine.
fn make_table(
    session: &mut Session,
    create: &CreateTable,
    client: &mut dyn Client,
) -> Result<Option<Arc<Table>>, SqlError> {
    let Some(schema) = schema_for_table(session, create, client)? else { return Ok(None) };
    let name = &create.name.name;
    at_most_columns(create.columns.len())?;
    for column in &create.columns {
        check_column_name(&column.name)?;
    }
    for (at, column) in create.columns.iter().enumerate() {
        if create.columns[..at].iter().any(|other| other.name == column.name) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    for column in &create.columns {
        check_column_type(&column.name, column.type_)?;
    }
    if schema == PG_CATALOG {
        return Err(not_in_the_catalog(name));
    }
    // PostgreSQL makes the sequences before the table.
    let owned = create.columns.iter().enumerate();
    let owned = owned.filter_map(|(at, column)| Some((at, column.sequence.as_ref()?)));
    let owned: Vec<_> = owned.map(|(at, owned)| (at, (session.shared.new_oid(), owned))).collect();
    let oid = session.shared.new_oid();
    session.lock_definition(oid, TableLock::AccessExclusive)?;
    let columns = create.columns.iter().map(column).collect();
    let mut table = Table {
        oid,
        schema,
        name: name.clone(),
        tree: session.make_tree()?,
        out_of_line: TreeAddress::NONE,
        columns,
        primary_key: None,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        missing: Default::default(),
        extended: Vec::new(),
        layout: Default::default(),
    };
    session.make_out_of_line_tree(&mut table)?;
    let makes_sequences = !owned.is_empty();
    for (at, owned) in owned {
        sequence::own(session, &mut table, at, owned)?;
    }
    // The table's sequences have their names by now, as in PostgreSQL, so the table claims its name
    // after them.
    session.claim_relation(schema, name)?;
    for constraint in &constraint::ordered(&create.constraints) {
        constraint::add(session, &mut table, constraint, true)?;
    }
    if makes_sequences {
        session.refresh_catalog();
        let defaults = table.columns.iter_mut().filter_map(|column| column.default.as_mut());
        for text in defaults.chain(table.checks.iter_mut().map(|check| &mut check.text)) {
            kept::number_relations(session, text)?;
        }
    }
    let table = Arc::new(table);
    session.define(Change::PutTable(Arc::clone(&table)))?;
    Ok(Some(table))
}

/// CREATE INDEX.
pub(super) fn index(
    session: &mut Session,
    create: &CreateIndex,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    if create.concurrently {
        session.refuse_block("CREATE INDEX CONCURRENTLY")?;
    }
    // This lock is one level stronger than PostgreSQL's. A definition is replaced whole: of two
    // sessions that each add an index, the second would drop the first one's.
    let Some(found) = session.locked_table(&create.table, TableLock::ShareRowExclusive)? else {
        return Err(session.missing(&create.table));
    };
    let mut table = session.definition(found.oid)?;
    let position = |name: &String| {
        let absent = || system_columns::in_index(name).unwrap_or_else(|| no_column(name));
        table.column(name).map(|at| at as u32).ok_or_else(absent)
    };
    let mut columns = Vec::with_capacity(create.columns.len());
    for column in &create.columns {
        columns.push(IndexKey {
            column: position(&column.name)?,
            descending: column.descending,
            nulls_first: column.nulls_first,
        });
    }
    let included = create.included.iter().map(position).collect::<Result<_, _>>()?;
    let name = match &create.name {
        Some(name) => {
            if session.environment.catalog.relation_in(table.schema, name).is_some() {
                let message = format!("relation \"{name}\" already exists");
                if create.if_not_exists {
                    exists(session, client, SqlState::DUPLICATE_TABLE, &message);
                    return Ok("CREATE INDEX");
                }
                return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
            }
            name.clone()
        }
        None => {
            let keys = create.columns.iter().map(|column| &column.name);
            let shown = distinct(keys.chain(&create.included));
            session.relation_name(&table, &shown, ("idx", false))?
        }
    };
    let index = Index {
        oid: session.shared.new_oid(),
        name,
        tree: session.make_tree()?,
        unique: create.unique,
        nulls_not_distinct: create.nulls_not_distinct,
        constraint: 0,
        columns,
        included,
    };
    session.see_rows_of(&table)?;
    session.executing(|cx| execution::ddl::build_index(cx, &table, &index))?;
    table.indexes.push(index);
    session.define(Change::PutTable(Arc::new(table)))?;
    Ok("CREATE INDEX")
}
