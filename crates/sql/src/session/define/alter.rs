//! ALTER TABLE, and its forms for indexes and sequences.
//!
//! An ALTER takes the strongest lock that one of its actions needs, then carries the actions out
//! one by one.
//!
//! What must hold:
//!
//! 1. Each lock that [`lock_of`] returns excludes every other change of the definition. A
//!    definition is replaced whole, so of two changes at a time one would be lost.
//! 2. Each action starts from the definition that the one before stored, and stores its own. So an
//!    action sees the columns and constraints that this command has made.
//! 3. [`dependents::settle`] may itself change the table. An action reads the definition again
//!    after it, and changes nothing before it.
//! 4. A dropped column keeps its position. Rows are not rewritten, and keys, indexes and foreign
//!    keys name columns by position.
//! 5. An action that removes a foreign key locks the table that it references.
//! 6. A check keeps its meaning when a column is renamed: it is compiled again under the new
//!    definition.

use std::sync::Arc;

use txn::TableLock;

use super::super::Session;
use super::columns::{self, no_column};
use super::dependents::{self, Object};
use super::rewrite::rewrite;
use super::{added, constraint, exists, identity, kept, owner, retype, sequence, skipping, statistics};
use catalog::system_columns;
use catalog::{Change, PG_CATALOG, Relation, Sequence, Table};
use execution::client::Client;
use query::plan::{AlterAction, ConstraintKind, QualifiedName};
use values::error::{SqlError, SqlState};
use values::identifier::quoted;

/// ALTER TABLE, ALTER INDEX and the forms of ALTER SEQUENCE that tables have too. `tag` says which
/// one the statement is.
pub(super) fn table(
    session: &mut Session,
    (name, if_exists, tag): (&QualifiedName, bool, &str),
    actions: &[AlterAction],
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let strongest = |lock: &dyn Fn(&AlterAction) -> TableLock| {
        actions.iter().map(lock).max().unwrap_or(TableLock::AccessExclusive)
    };
    let locks = (strongest(&lock_of), strongest(&|action| lock_of_index(action, tag)));
    let fits = |found: &Relation| check_kind(found, &name.name, actions, tag);
    let found = match session.locked_relation(name, locks, fits)? {
        Some(Relation::Sequence(found)) => return alter_sequence(session, Sequence::clone(&found), actions),
        Some(Relation::Index(table, index)) => return rename_index(session, &table, index, actions),
        Some(Relation::Table(table)) => Some(table),
        None => None,
    };
    let Some(found) = found else {
        if if_exists {
            skipping(session, client, format!("relation \"{}\" does not exist, skipping", name.name));
            return Ok(());
        }
        return Err(session.missing(name));
    };
    for action in actions {
        let mut table = session.definition(found.oid)?;
        let constraints = match action {
            AlterAction::AddColumn { column, constraints, .. } if table.column(&column.name).is_none() => {
                constraints.as_slice()
            }
            _ => &[],
        };
        act(session, &mut table, action, client)?;
        session.define(Change::PutTable(Arc::new(table)))?;
        for definition in constraints {
            let mut table = session.definition(found.oid)?;
            constraint::add(session, &mut table, definition, false)?;
            session.define(Change::PutTable(Arc::new(table)))?;
        }
    }
    Ok(())
}

/// Error 42809 if the statement does not fit the relation's kind. ALTER TABLE fits any kind; ALTER
/// INDEX may rename any.
fn check_kind(found: &Relation, name: &str, actions: &[AlterAction], tag: &str) -> Result<(), SqlError> {
    let renames = matches!(actions, [AlterAction::Rename(_)]);
    let is_catalog = matches!(found, Relation::Table(table) if table.is_virtual());
    let said = match (tag, found) {
        _ if is_catalog => return Ok(()),
        ("ALTER SEQUENCE", Relation::Table(_) | Relation::Index(..)) => "a sequence",
        ("ALTER INDEX", Relation::Table(_) | Relation::Sequence(_)) if !renames => "an index",
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {said}")))
}

/// An action as PostgreSQL names it in errors; None where it does not.
fn name_of(action: &AlterAction) -> Option<&'static str> {
    Some(match action {
        AlterAction::AddColumn { .. } => "ADD COLUMN",
        AlterAction::DropColumn { .. } => "DROP COLUMN",
        AlterAction::AddConstraint(_) => "ADD CONSTRAINT",
        AlterAction::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterAction::Validate(_) => "VALIDATE CONSTRAINT",
        AlterAction::SetDefault { .. } => "ALTER COLUMN ... SET DEFAULT",
        AlterAction::SetNotNull { not_null: true, .. } => "ALTER COLUMN ... SET NOT NULL",
        AlterAction::SetNotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        AlterAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterAction::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        AlterAction::SetIdentity { .. } => "ALTER COLUMN ... SET",
        AlterAction::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        _ => return None,
    })
}

/// The error for an action that this kind of relation does not have.
fn not_for(action: &AlterAction, name: &str, kind: &str) -> SqlError {
    if let AlterAction::RenameColumn { .. } | AlterAction::RenameConstraint { .. } = action
        && kind == "sequences"
    {
        let message = format!("cannot rename columns of relation \"{name}\"");
        return SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail(format!("This operation is not supported for {kind}."));
    }
    match name_of(action) {
        Some(action) => {
            let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail(format!("This operation is not supported for {kind}."))
        }
        None => SqlError::unsupported(format_args!("this form of ALTER for {kind}")),
    }
}

/// The lock that an action needs. Each of them excludes other changes of the definition. SHARE ROW
/// EXCLUSIVE lets readers of the table pass, and SHARE UPDATE EXCLUSIVE its writers too.
fn lock_of(action: &AlterAction) -> TableLock {
    match action {
        AlterAction::Validate(_) | AlterAction::NoEffect { lets_write: true } => {
            TableLock::ShareUpdateExclusive
        }
        AlterAction::AddConstraint(definition)
            if matches!(definition.kind, ConstraintKind::ForeignKey { .. }) =>
        {
            TableLock::ShareRowExclusive
        }
        _ => TableLock::AccessExclusive,
    }
}

/// As [`lock_of`], for an action on an index of the table. ALTER INDEX ... RENAME lets others write
/// the table.
fn lock_of_index(action: &AlterAction, tag: &str) -> TableLock {
    match action {
        AlterAction::Rename(_) if tag == "ALTER INDEX" => TableLock::ShareUpdateExclusive,
        _ => lock_of(action),
    }
}

fn act(
    session: &mut Session,
    table: &mut Table,
    action: &AlterAction,
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    super::safe_point()?;
    match action {
        AlterAction::AddColumn { column, if_not_exists, .. } => {
            if table.column(&column.name).is_some() {
                let message =
                    format!("column \"{}\" of relation \"{}\" already exists", column.name, table.name);
                if !if_not_exists {
                    return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
                }
                exists(session, client, SqlState::DUPLICATE_COLUMN, &message);
                return Ok(());
            }
            columns::check_column_name(&column.name)?;
            columns::check_column_type(&column.name, column.type_)?;
            added::column(session, table, column)
        }
        AlterAction::DropColumn { name, if_exists, cascade } => {
            drop_named_column(session, table, name, (*if_exists, *cascade), client)
        }
        AlterAction::AddConstraint(definition) => constraint::add(session, table, definition, false),
        AlterAction::DropConstraint { name, if_exists, cascade } => {
            drop_constraint(session, table, name, (*if_exists, *cascade), client)
        }
        AlterAction::SetDefault { column, default } => {
            let at = table.column(column).ok_or_else(|| columns::missing(table, column))?;
            identity::refuse_default(table, at, default.is_none())?;
            table.columns[at].default.clone_from(default);
            if let Some(default) = &mut table.columns[at].default {
                kept::number_relations(session, default)?;
            }
            Ok(())
        }
        AlterAction::AddIdentity { column, owned } => identity::add(session, table, column, owned),
        AlterAction::SetIdentity { column, identity, options } => {
            identity::set(session, table, column, *identity, options)
        }
        AlterAction::DropIdentity { column, if_exists } => {
            identity::remove(session, table, (column, *if_exists), client)
        }
        AlterAction::SetNotNull { column, not_null } => set_not_null(session, table, column, *not_null),
        AlterAction::SetType { column, type_, using } => {
            retype::set_type(session, table, column, *type_, using.as_deref())
        }
        AlterAction::Rename(name) => {
            free_name(session, table.schema, name)?;
            table.name.clone_from(name);
            Ok(())
        }
        AlterAction::RenameColumn { from, to } => rename_column(session, table, from, to),
        AlterAction::RenameConstraint { from, to } => rename_constraint(table, from, to),
        AlterAction::SetSchema(name) => set_schema(session, table, name),
        AlterAction::Validate(name) => constraint::validate(session, table, name),
        AlterAction::Owner(role) => owner::check(session, role.as_deref()),
        AlterAction::NoEffect { .. } => Ok(()),
    }
}

fn drop_named_column(
    session: &mut Session,
    table: &mut Table,
    name: &str,
    (if_exists, cascade): (bool, bool),
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let Some(at) = table.column(name) else {
        if let Some(refused) = system_columns::unchangeable("drop", name) {
            return Err(refused);
        }
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
        if !if_exists {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        }
        skipping(session, client, format!("{message}, skipping"));
        return Ok(());
    };
    drop_column(session, table, at, cascade, client)
}

fn rename_column(session: &Session, table: &mut Table, from: &str, to: &str) -> Result<(), SqlError> {
    let absent = || system_columns::unchangeable("rename", from).unwrap_or_else(|| no_column(from));
    let at = table.column(from).ok_or_else(absent)?;
    columns::check_column_name(to)?;
    if table.column(to).is_some() {
        let message = format!("column \"{to}\" of relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    to.clone_into(&mut table.columns[at].name);
    for check in &mut table.checks {
        check.text = query::parse::rewrite::bare_columns(&check.text, Some((from, to)))?;
    }
    // Each check must keep its meaning under the new definition.
    let catalog = Arc::clone(&session.environment.catalog);
    match query::compile::row_checks(&catalog, &Arc::new(table.clone())) {
        Err(stopped) if stopped.code.is_stop() => Err(stopped),
        Err(_) => Err(SqlError::unsupported("renaming a column of such a check constraint")),
        Ok(_) => Ok(()),
    }
}

fn drop_column(
    session: &mut Session,
    table: &mut Table,
    at: usize,
    cascade: bool,
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let position = at as u32;
    dependents::settle(session, &[Object::Column(table.oid, position)], cascade, client)?;
    *table = session.definition(table.oid)?;
    super::drop::lock_parents(session, table, |key| key.columns.contains(&position))?;
    // A reference of the column itself goes with it.
    table.foreign_keys.retain(|key| !key.columns.contains(&position));
    let names = |columns: &[u32]| columns.contains(&position);
    // A key goes with a column that it INCLUDEs.
    if table.primary_key.as_ref().is_some_and(|key| names(&key.columns) || names(&key.included)) {
        let old = table.clone();
        table.primary_key = None;
        rewrite(session, &old, table, None)?;
    }
    let (gone, kept) = std::mem::take(&mut table.indexes)
        .into_iter()
        .partition(|index| names(&index.included) || index.columns.iter().any(|key| key.column == position));
    table.indexes = kept;
    let gone: Vec<catalog::Index> = gone;
    for index in gone {
        session.discard_tree(index.tree)?;
    }
    // A check that reads the column goes with it.
    let catalog = Arc::clone(&session.environment.catalog);
    let (first, checks) = query::compile::row_checks(&catalog, &Arc::new(table.clone()))?;
    table.checks.retain(|check| {
        let bound = checks.iter().find(|bound| bound.name == check.name);
        !bound.is_some_and(|bound| execution::out_of_line::reads(&bound.expr, first + position))
    });
    for sequence in sequence::owned_by(&catalog, table.oid, position) {
        sequence::forget(session, sequence.oid)?;
    }
    table.extended.retain(|object| !names(&object.columns));
    statistics::forget_data(session, table.oid, |found| names(&found.columns))?;
    let column = &mut table.columns[at];
    column.dropped = true;
    column.not_null = false;
    column.default = None;
    column.identity = None;
    column.name = format!("........pg.dropped.{}........", at + 1);
    table.missing.remove(&position);
    Ok(())
}

fn drop_constraint(
    session: &mut Session,
    table: &mut Table,
    name: &str,
    (if_exists, cascade): (bool, bool),
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    if !table.has_constraint(name) {
        let missing = constraint::no_constraint(table, name);
        if !if_exists {
            return Err(missing);
        }
        skipping(session, client, format!("{}, skipping", missing.message));
        return Ok(());
    }
    let named = table.constraint_oid(name).map(|constraint| Object::Constraint(table.oid, constraint));
    dependents::settle(session, named.as_slice(), cascade, client)?;
    *table = session.definition(table.oid)?;
    super::drop::lock_parents(session, table, |key| key.name == name)?;
    table.checks.retain(|check| check.name != name);
    table.foreign_keys.retain(|key| key.name != name);
    if table.primary_key.as_ref().is_some_and(|key| key.name == name) {
        let old = table.clone();
        table.primary_key = None;
        return rewrite(session, &old, table, None);
    }
    let keys = |index: &catalog::Index| index.name == name && index.constraint != 0;
    if let Some(at) = table.indexes.iter().position(keys) {
        let index = table.indexes.remove(at);
        session.discard_tree(index.tree)?;
    }
    Ok(())
}

fn set_not_null(
    session: &mut Session,
    table: &mut Table,
    column: &str,
    not_null: bool,
) -> Result<(), SqlError> {
    let at = table.column(column).ok_or_else(|| columns::missing(table, column))?;
    let primary = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&(at as u32)));
    if !not_null && table.columns[at].identity.is_some() {
        return identity::refuse_default(table, at, false);
    }
    if !not_null && primary {
        let message = format!("column \"{column}\" is in a primary key");
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    if not_null {
        added::refuse_rows(session, table, column, &format!("WHERE {} IS NULL", quoted(column)))?;
    }
    table.columns[at].not_null = not_null;
    Ok(())
}

/// SET SCHEMA. The table's indexes lie in its schema, and the sequences that it owns move along.
fn set_schema(session: &mut Session, table: &mut Table, name: &str) -> Result<(), SqlError> {
    let (old, new) = (table.schema, session.lock_schema(Some(name))?);
    move_to(session, (&mut table.schema, new), &table.name)?;
    let primary = table.primary_key.iter().map(|key| &key.name);
    for index in primary.chain(table.indexes.iter().map(|index| &index.name)) {
        move_to(session, (&mut { old }, new), index)?;
    }
    let catalog = Arc::clone(&session.environment.catalog);
    for owned in catalog.owned_sequences(table.oid) {
        let Some(mut owned) = sequence::locked(session, owned.oid)? else { continue };
        move_to(session, (&mut owned.schema, new), &owned.name)?;
        session.define(Change::PutSequence(Arc::new(owned)))?;
    }
    Ok(())
}

/// Changes the schema of a relation. Fails if the new schema has a relation of that name.
fn move_to(session: &Session, (schema, new): (&mut u32, u32), name: &str) -> Result<(), SqlError> {
    if new == PG_CATALOG {
        return Err(SqlError::unsupported("an object of users in schema \"pg_catalog\""));
    }
    let catalog = &session.environment.catalog;
    if *schema != new && catalog.relation_in(new, name).is_some() {
        let message =
            format!("relation \"{name}\" already exists in schema \"{}\"", catalog.schema_name(new));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    *schema = new;
    Ok(())
}

fn free_name(session: &Session, schema: u32, name: &str) -> Result<(), SqlError> {
    if session.environment.catalog.relation_in(schema, name).is_none() {
        return Ok(());
    }
    Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
}

fn rename_constraint(table: &mut Table, from: &str, to: &str) -> Result<(), SqlError> {
    if table.has_constraint(to) {
        let message = format!("constraint \"{to}\" for relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    let primary = table.primary_key.iter_mut().map(|key| &mut key.name);
    let indexes = table.indexes.iter_mut().filter(|index| index.constraint != 0).map(|index| &mut index.name);
    let checks = table.checks.iter_mut().map(|check| &mut check.name);
    let foreign = table.foreign_keys.iter_mut().map(|key| &mut key.name);
    match primary.chain(indexes).chain(checks).chain(foreign).find(|name| *name == from) {
        Some(name) => {
            to.clone_into(name);
            Ok(())
        }
        None => {
            let message = format!("constraint \"{from}\" for table \"{}\" does not exist", table.name);
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

fn rename_index(
    session: &mut Session,
    table: &Table,
    index: u32,
    actions: &[AlterAction],
) -> Result<(), SqlError> {
    let mut table = table.clone();
    for action in actions {
        let name = match action {
            AlterAction::Rename(name) => name,
            AlterAction::NoEffect { .. } => continue,
            AlterAction::Owner(role) => {
                owner::check(session, role.as_deref())?;
                continue;
            }
            other => {
                let named = table.index_names().find(|(_, oid)| *oid == index).map_or("", |(name, _)| name);
                if let AlterAction::SetSchema(_) = other {
                    let message = format!("cannot change schema of index \"{named}\"");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                        .with_hint("Change the schema of the table instead."));
                }
                return Err(not_for(other, named, "indexes"));
            }
        };
        free_name(session, table.schema, name)?;
        let primary = table.primary_key.iter_mut().filter(|key| key.oid == index).map(|key| &mut key.name);
        let others = table.indexes.iter_mut().filter(|other| other.oid == index).map(|other| &mut other.name);
        for place in primary.chain(others) {
            place.clone_from(name);
        }
    }
    session.define(Change::PutTable(Arc::new(table)))
}

fn alter_sequence(
    session: &mut Session,
    mut sequence: Sequence,
    actions: &[AlterAction],
) -> Result<(), SqlError> {
    for action in actions {
        match action {
            AlterAction::Rename(name) => {
                free_name(session, sequence.schema, name)?;
                sequence.name.clone_from(name);
            }
            AlterAction::SetSchema(name) => {
                let schema = session.lock_schema(Some(name))?;
                if let Some(owner) =
                    sequence.owner.and_then(|(table, _)| session.environment.catalog.table(table))
                {
                    let detail =
                        format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, owner.name);
                    let message = "cannot move an owned sequence into another schema";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail));
                }
                move_to(session, (&mut sequence.schema, schema), &sequence.name)?;
            }
            AlterAction::Owner(role) => owner::check(session, role.as_deref())?,
            AlterAction::NoEffect { .. } => {}
            other => return Err(not_for(other, &sequence.name, "sequences")),
        }
    }
    session.define(Change::PutSequence(Arc::new(sequence)))
}
