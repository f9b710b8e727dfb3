//! ALTER COLUMN ... TYPE. It rewrites the rows. What must hold: everything else that names the
//! column fits the new type too, or the change is refused. That is its default, its sequence, the
//! table's checks, and the foreign keys on either side. Values that statistics list have keys of
//! the old type, so they go.

use std::sync::Arc;

use txn::TableLock;

use super::super::Session;
use super::columns::{check_column_type, missing};
use super::rewrite::rewrite;
use super::{constraint, sequence, statistics};
use catalog::{Change, ForeignKey, Table};
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use query::request::Request;
use values::error::{SqlError, SqlState};
use values::identifier::quoted;
use values::types::{Type, oid};

/// Gives a column another type.
pub(super) fn set_type(
    session: &mut Session,
    table: &mut Table,
    column: &str,
    type_: Type,
    using: Option<&str>,
) -> Result<(), SqlError> {
    let at = table.column(column).ok_or_else(|| missing(table, column))?;
    check_column_type(column, type_)?;
    let before = Expr::column(0, table.columns[at].type_);
    if using.is_none() && functions::cast(before, type_, CastContext::Assignment).is_err() {
        let message = format!("column \"{column}\" cannot be cast automatically to type {type_}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_hint(format!("You might need to specify \"USING {}::{type_}\".", quoted(column))));
    }
    let old = table.clone();
    table.columns[at].default = kept_default(session, &old, at, type_)?;
    if table.columns[at].identity.is_some() {
        for owned in sequence::owned_by(&Arc::clone(&session.environment.catalog), table.oid, at as u32) {
            sequence::retype(session, &owned, type_)?;
        }
    }
    table.columns[at].type_ = type_;
    let value = using.map_or_else(|| quoted(column), str::to_owned);
    rewrite(session, &old, table, Some((at, format!("({value})"))))?;
    statistics::forget_values(session, table.oid, at as u32)?;
    // From here on, the constraints see the new type.
    session.define(Change::PutTable(Arc::new(table.clone())))?;
    for check in table.checks.iter().filter(|check| check.valid) {
        constraint::verify_check(session, table, &check.name, &check.text)?;
    }
    verify_references(session, table, at as u32)
}

/// A column's default for another type. Fails if an assignment cannot cast the default to that
/// type.
fn kept_default(
    session: &Session,
    table: &Table,
    at: usize,
    type_: Type,
) -> Result<Option<String>, SqlError> {
    let column = &table.columns[at];
    let Some(text) = &column.default else { return Ok(None) };
    let planned = session.compile(&Request::plain(&format!("SELECT {text}")))?;
    let columns = planned.compiled.as_ref().map(|compiled| &compiled.statement.columns);
    let own = columns.and_then(|columns| columns.first()).map_or(Type::TEXT, |column| column.type_);
    // An expression without a type of its own, such as a quoted constant, took the column's old
    // type. Here it shows as text, which no other default of such a column has.
    let untyped = own.oid == oid::TEXT && column.type_.oid != oid::TEXT;
    let source = if untyped { Type::new(column.type_.oid) } else { own };
    if !functions::can_cast(source, type_, CastContext::Assignment) {
        let message =
            format!("default for column \"{}\" cannot be cast automatically to type {type_}", column.name);
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(Some(match untyped {
        true if text.starts_with('\'') && text.ends_with('\'') => format!("{text}::{source}"),
        true => format!("({text})::{source}"),
        false => text.clone(),
    }))
}

/// Checks the foreign keys that name a column: their types must be comparable, and every row must
/// have its parent.
fn verify_references(session: &mut Session, table: &Table, column: u32) -> Result<(), SqlError> {
    // A key from a table to itself is among its own keys, whichever side the column is on.
    let own = |key: &&ForeignKey| {
        key.columns.contains(&column) || key.parent == table.oid && key.parent_columns.contains(&column)
    };
    for key in table.foreign_keys.iter().filter(own) {
        let parent = session.definition(key.parent)?;
        constraint::verify_reference(session, table, &parent, key)?;
    }
    let catalog = Arc::clone(&session.environment.catalog);
    for reference in catalog.references(table.oid).iter().filter(|reference| reference.child != table.oid) {
        session.lock_definition(reference.child, TableLock::AccessExclusive)?;
        let child = session.definition(reference.child)?;
        for key in &child.foreign_keys {
            if key.parent == table.oid && key.parent_columns.contains(&column) {
                constraint::verify_reference(session, &child, table, key)?;
            }
        }
    }
    Ok(())
}
