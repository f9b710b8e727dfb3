//! Constraints of tables: their names as PostgreSQL gives them, their indexes, and the check of
//! rows that exist.
//!
//! What must hold: all rows satisfy a constraint once it counts as validated.

use std::sync::Arc;

use txn::{TableLock, Wait};

use super::super::Session;
use super::columns::no_column;
use super::kept;
use super::names::distinct;
use super::rewrite::{count, rewrite};
use catalog::ReferentialAction;
use catalog::system_columns;
use catalog::{CheckConstraint, ForeignKey, Index, IndexKey, PrimaryKey, Relation, Table};
use execution;
use query::plan::{ConstraintDefinition, ConstraintKind, QualifiedName};
use values::error::{SqlError, SqlState};
use values::identifier::{qualified, quoted};

/// Adds a constraint to a definition. It checks the rows of a table that is not `new`, unless the
/// constraint is added NOT VALID.
pub(super) fn add(
    session: &mut Session,
    table: &mut Table,
    definition: &ConstraintDefinition,
    new: bool,
) -> Result<(), SqlError> {
    super::safe_point()?;
    // PostgreSQL checks the index's name first.
    let indexed = match definition.kind {
        ConstraintKind::PrimaryKey { .. } => table.primary_key.is_none(),
        ConstraintKind::Unique { .. } => true,
        _ => false,
    };
    if indexed && let Some(name) = &definition.name {
        refuse_taken(session, table, name)?;
    }
    if let Some(name) = &definition.name
        && table.has_constraint(name)
    {
        let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    // A new table has no rows, so even NOT VALID leaves none unchecked.
    let checked = definition.checked || new;
    match &definition.kind {
        ConstraintKind::PrimaryKey { columns, included } => {
            primary_key(session, table, definition.name.as_deref(), (columns, included), new)
        }
        ConstraintKind::Unique { columns, included, nulls_not_distinct } => {
            let name = definition.name.as_deref();
            unique(session, table, name, (columns, included, *nulls_not_distinct), new)
        }
        ConstraintKind::Check { text, columns } => {
            check(session, table, definition.name.as_deref(), (text, columns), (new, checked))
        }
        ConstraintKind::ForeignKey { columns, parent, parent_columns, on_delete, on_update } => foreign_key(
            session,
            table,
            definition.name.as_deref(),
            (columns, parent, parent_columns),
            (*on_delete, *on_update),
            (new, checked),
        ),
    }
}

/// The position of a column that a constraint with an index names.
fn position(table: &Table, name: &String) -> Result<u32, SqlError> {
    table.column(name).map(|at| at as u32).ok_or_else(|| {
        system_columns::in_index(name).unwrap_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    })
}

/// Positions of the columns of a key of a kind, and of those of its INCLUDE.
fn positions(
    table: &Table,
    (columns, included): (&[String], &[String]),
    kind: &str,
) -> Result<(Vec<u32>, Vec<u32>), SqlError> {
    let mut found = Vec::with_capacity(columns.len());
    for name in columns {
        let at = position(table, name)?;
        if found.contains(&at) {
            let message = format!("column \"{name}\" appears twice in {kind} constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        found.push(at);
    }
    let included = included.iter().map(|name| position(table, name)).collect::<Result<_, _>>()?;
    Ok((found, included))
}

/// The name of a constraint that has an index: the one in the statement, or PostgreSQL's default.
fn index_name(
    session: &mut Session,
    table: &Table,
    name: Option<&str>,
    columns: &[String],
    label: &str,
) -> Result<String, SqlError> {
    match name {
        Some(name) => refuse_taken(session, table, name).map(|()| name.to_owned()),
        None => session.relation_name(table, columns, (label, true)),
    }
}

/// Error 42P07 if a relation has the name, or an index that is being made.
fn refuse_taken(session: &Session, table: &Table, name: &str) -> Result<(), SqlError> {
    let is_there = session.environment.catalog.relation_in(table.schema, name).is_some();
    if is_there || table.index_names().any(|(other, _)| other == name) {
        let message = format!("relation \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    Ok(())
}

/// A new table's constraints in the order in which PostgreSQL adds and names them: checks, the
/// primary key, unique keys, foreign keys. A unique key that repeats an earlier key is left out.
/// Its name goes to the earlier key if that has none.
pub(super) fn ordered(definitions: &[ConstraintDefinition]) -> Vec<ConstraintDefinition> {
    let place = |kind: &ConstraintKind| match kind {
        ConstraintKind::Check { .. } => 0,
        ConstraintKind::PrimaryKey { .. } => 1,
        ConstraintKind::Unique { .. } => 2,
        ConstraintKind::ForeignKey { .. } => 3,
    };
    let mut sorted = definitions.to_vec();
    sorted.sort_by_key(|constraint| place(&constraint.kind));
    let mut kept: Vec<ConstraintDefinition> = Vec::with_capacity(sorted.len());
    for constraint in sorted {
        let before = match &constraint.kind {
            ConstraintKind::Unique { columns, included, nulls_not_distinct } => {
                let key = Some((columns, included, *nulls_not_distinct));
                kept.iter_mut().find(|before| key_of(&before.kind) == key)
            }
            _ => None,
        };
        match before {
            Some(before) => before.name = before.name.take().or(constraint.name),
            None => kept.push(constraint),
        }
    }
    kept
}

/// A key's columns, those of its INCLUDE, and whether nulls are equal in it; None for another
/// constraint.
fn key_of(kind: &ConstraintKind) -> Option<(&Vec<String>, &Vec<String>, bool)> {
    match kind {
        ConstraintKind::PrimaryKey { columns, included } => Some((columns, included, false)),
        ConstraintKind::Unique { columns, included, nulls_not_distinct } => {
            Some((columns, included, *nulls_not_distinct))
        }
        _ => None,
    }
}

fn primary_key(
    session: &mut Session,
    table: &mut Table,
    name: Option<&str>,
    (columns, included): (&[String], &[String]),
    new: bool,
) -> Result<(), SqlError> {
    if table.primary_key.is_some() {
        let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let (columns, included) = positions(table, (columns, included), "primary key")?;
    let name = index_name(session, table, name, &[], "pkey")?;
    for column in &columns {
        table.columns[*column as usize].not_null = true;
    }
    let (oid, constraint) = (session.shared.new_oid(), session.shared.new_oid());
    let key = PrimaryKey { oid, constraint, name, columns, included };
    if new {
        table.primary_key = Some(key);
        return Ok(());
    }
    // The table's tree is ordered by its primary key: all rows move to a new one.
    let old = table.clone();
    table.primary_key = Some(key);
    rewrite(session, &old, table, None)
}

fn unique(
    session: &mut Session,
    table: &mut Table,
    name: Option<&str>,
    (columns, included, nulls_not_distinct): (&[String], &[String], bool),
    new: bool,
) -> Result<(), SqlError> {
    let shown = distinct(columns.iter().chain(included));
    let name = index_name(session, table, name, &shown, "key")?;
    let (columns, included) = positions(table, (columns, included), "unique")?;
    let key = |column: u32| IndexKey { column, descending: false, nulls_first: false };
    let index = Index {
        oid: session.shared.new_oid(),
        name,
        tree: session.make_tree()?,
        unique: true,
        nulls_not_distinct,
        constraint: session.shared.new_oid(),
        columns: columns.into_iter().map(key).collect(),
        included,
    };
    if !new {
        session.see_rows_of(table)?;
        session.executing(|cx| execution::ddl::build_index(cx, table, &index))?;
    }
    table.indexes.push(index);
    Ok(())
}

fn check(
    session: &mut Session,
    table: &mut Table,
    name: Option<&str>,
    (text, columns): (&str, &[String]),
    (new, valid): (bool, bool),
) -> Result<(), SqlError> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => {
            let column = if columns.len() == 1 { columns } else { &[] };
            session.constraint_name(table, column, "check")?
        }
    };
    if !new && valid {
        verify_check(session, table, &name, text)?;
    }
    // Bare column names keep the text valid when the table is renamed.
    let mut text = query::parse::rewrite::bare_columns(text, None)?;
    if !new {
        kept::number_relations(session, &mut text)?;
    }
    let oid = session.shared.new_oid();
    table.checks.push(CheckConstraint { oid, name, text, valid });
    Ok(())
}

/// Fails if a row breaks a check.
pub(super) fn verify_check(
    session: &mut Session,
    table: &Table,
    name: &str,
    text: &str,
) -> Result<(), SqlError> {
    let schema = session.environment.catalog.schema_name(table.schema).to_owned();
    let query = format!("SELECT 1 FROM {} WHERE NOT ({text}) LIMIT 1", qualified(&schema, &table.name));
    // The position in this query is not one in the client's text.
    let broken = count(session, &[table], &query).map_err(|mut error| {
        error.position = None;
        error
    })?;
    if broken > 0 {
        let message =
            format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name);
        return Err(SqlError::new(SqlState::CHECK_VIOLATION, message)
            .with_table(&schema, &table.name)
            .with_constraint(name));
    }
    Ok(())
}

/// VALIDATE CONSTRAINT: checks the rows that are older than the NOT VALID constraint.
pub(super) fn validate(session: &mut Session, table: &mut Table, name: &str) -> Result<(), SqlError> {
    if let Some(at) = table.checks.iter().position(|check| check.name == name) {
        if !table.checks[at].valid {
            let text = table.checks[at].text.clone();
            verify_check(session, table, name, &text)?;
            table.checks[at].valid = true;
        }
        return Ok(());
    }
    if let Some(at) = table.foreign_keys.iter().position(|key| key.name == name) {
        let key = table.foreign_keys[at].clone();
        if !key.valid {
            let parent = match key.parent == table.oid {
                true => table.clone(),
                false => {
                    session.lock_definition(key.parent, TableLock::RowShare)?;
                    session.definition(key.parent)?
                }
            };
            check_references(session, table, &parent, &key)?;
            table.foreign_keys[at].valid = true;
        }
        return Ok(());
    }
    if table.has_constraint(name) {
        let message = format!("cannot validate constraint \"{name}\" of relation \"{}\"", table.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail("This operation is not supported for this type of constraint."));
    }
    Err(no_constraint(table, name))
}

/// Fails if the types of a foreign key's columns do not fit. Fails as well if a row lacks its
/// parent, unless the key was added NOT VALID.
pub(super) fn verify_reference(
    session: &mut Session,
    child: &Table,
    parent: &Table,
    key: &ForeignKey,
) -> Result<(), SqlError> {
    same_types(child, parent, &key.name, (&key.columns, &key.parent_columns))?;
    if key.valid { check_references(session, child, parent, key) } else { Ok(()) }
}

fn foreign_key(
    session: &mut Session,
    table: &mut Table,
    name: Option<&str>,
    (columns, parent, parent_columns): (&[String], &QualifiedName, &[String]),
    (on_delete, on_update): (ReferentialAction, ReferentialAction),
    (new, valid): (bool, bool),
) -> Result<(), SqlError> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => session.constraint_name(table, columns, "fkey")?,
    };
    let referenced = referenced(session, table, parent)?;
    let own_positions = columns
        .iter()
        .map(|name| {
            table.column(name).map(|at| at as u32).ok_or_else(|| {
                system_columns::in_foreign_key(name).unwrap_or_else(|| {
                    let message =
                        format!("column \"{name}\" referenced in foreign key constraint does not exist");
                    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
                })
            })
        })
        .collect::<Result<Vec<u32>, _>>()?;
    let positions = match parent_columns {
        [] => referenced.primary_key.as_ref().map(|key| key.columns.clone()).ok_or_else(|| {
            let message = format!("there is no primary key for referenced table \"{}\"", referenced.name);
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })?,
        _ => parent_columns
            .iter()
            .map(|name| {
                let absent = || system_columns::in_foreign_key(name).unwrap_or_else(|| no_column(name));
                referenced.column(name).map(|at| at as u32).ok_or_else(absent)
            })
            .collect::<Result<_, _>>()?,
    };
    if positions.len() != own_positions.len() {
        return Err(SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
        ));
    }
    if referenced.unique_key(&positions).is_none() {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            referenced.name
        );
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
    }
    same_types(table, &referenced, &name, (&own_positions, &positions))?;
    let oid = session.shared.new_oid();
    let key = ForeignKey {
        oid,
        name,
        columns: own_positions,
        parent: referenced.oid,
        parent_columns: positions,
        on_delete,
        on_update,
        valid,
    };
    if !new && valid {
        check_references(session, table, &referenced, &key)?;
    }
    table.foreign_keys.push(key);
    Ok(())
}

/// Locks and returns the table that a foreign key of `child` references. A table may reference
/// itself, even in CREATE TABLE.
fn referenced(session: &mut Session, child: &Table, name: &QualifiedName) -> Result<Arc<Table>, SqlError> {
    let named_child = |session: &Session| {
        let catalog = &session.environment.catalog;
        // A table that is being made is not in the catalog yet. A table of that name in an earlier
        // schema of the search path takes precedence.
        let schema = catalog.schema_name(child.schema);
        let path = &session.environment.table.search_path;
        let is_sought = match &name.schema {
            Some(sought) => sought == schema,
            None => path.iter().any(|sought| sought == schema),
        };
        let before = path.iter().take_while(|sought| *sought != schema);
        name.name == child.name
            && is_sought
            && (name.schema.is_some()
                || before
                    .into_iter()
                    .all(|schema| catalog.relation(path, Some(schema), &name.name).is_none()))
    };
    let lock = TableLock::ShareRowExclusive;
    let found = session.lock_found(lock, Wait::Block, |session| match session.find_relation(name) {
        _ if named_child(session) => Ok(Some((child.oid, None))),
        Some(Relation::Table(table)) if !table.is_virtual() => Ok(Some((table.oid, Some(table)))),
        Some(_) => {
            let message = format!("referenced relation \"{}\" is not a table", name.name);
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        None => Ok(None),
    })?;
    session.environment.txn.statement_start().map_err(execution::from_txn)?;
    match found {
        Some(Some(table)) => Ok(table),
        Some(None) => Ok(Arc::new(child.clone())),
        None => Err(session.missing(name)),
    }
}

fn same_types(
    child: &Table,
    parent: &Table,
    name: &str,
    (columns, parent_columns): (&[u32], &[u32]),
) -> Result<(), SqlError> {
    use values::types::oid;
    let integer = |type_: u32| matches!(type_, oid::INT2 | oid::INT4 | oid::INT8);
    let text = |type_: u32| matches!(type_, oid::TEXT | oid::VARCHAR);
    for (column, other) in columns.iter().zip(parent_columns) {
        let (column, other) = (&child.columns[*column as usize], &parent.columns[*other as usize]);
        let (a, b) = (column.type_.oid, other.type_.oid);
        if a != b && !(integer(a) && integer(b)) && !(text(a) && text(b)) {
            if expressions::functions::can_cast(
                column.type_,
                other.type_,
                expressions::functions::CastContext::Implicit,
            ) {
                let types = format!("a foreign key from {} to {}", column.type_, other.type_);
                return Err(SqlError::unsupported(&types));
            }
            let message = format!("foreign key constraint \"{name}\" cannot be implemented");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(format!(
                "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table are of incompatible types: {} and {}.",
                column.name, other.name, column.type_, other.type_
            )));
        }
    }
    Ok(())
}

/// Fails if a row lacks its parent.
fn check_references(
    session: &mut Session,
    child: &Table,
    parent: &Table,
    key: &ForeignKey,
) -> Result<(), SqlError> {
    let catalog = &session.environment.catalog;
    let full = |table: &Table| qualified(catalog.schema_name(table.schema), &table.name);
    let pairs = key.columns.iter().zip(&key.parent_columns);
    let equal: Vec<String> = pairs
        .map(|(a, b)| {
            let (a, b) = (&child.columns[*a as usize].name, &parent.columns[*b as usize].name);
            format!("p.{} = c.{}", quoted(b), quoted(a))
        })
        .collect();
    let set: Vec<String> = key
        .columns
        .iter()
        .map(|column| format!("c.{} IS NOT NULL", quoted(&child.columns[*column as usize].name)))
        .collect();
    let query = format!(
        "SELECT 1 FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {}) LIMIT 1",
        full(child),
        set.join(" AND "),
        full(parent),
        equal.join(" AND ")
    );
    let schema = catalog.schema_name(child.schema).to_owned();
    if count(session, &[child, parent], &query)? > 0 {
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            child.name, key.name
        );
        return Err(SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .with_table(&schema, &child.name)
            .with_constraint(&key.name));
    }
    Ok(())
}

pub(super) fn no_constraint(table: &Table, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}
