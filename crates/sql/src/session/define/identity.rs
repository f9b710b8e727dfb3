//! ALTER COLUMN of identity columns, whose values come from their own sequence.
//!
//! What must hold:
//!
//! 1. An identity column is NOT NULL, owns a sequence, and has that sequence's `nextval` as
//!    default. [`add`] checks that the column has no default, because the identity's replaces it.
//! 2. While the column is an identity column, its default and its sequence's owner do not change
//!    ([`refuse_default`], [`sequence::change`]).
//! 3. A sequence is locked before its options change or it is dropped.

use std::sync::Arc;

use super::super::Session;
use super::columns::missing;
use super::dependents::{self, Object};
use super::{sequence, skipping};
use catalog::Identity;
use catalog::Table;
use execution::client::Client;
use query::plan::{OwnedSequence, SequenceOptions};
use values::error::{SqlError, SqlState};
use values::types::oid;

/// ADD GENERATED ... AS IDENTITY. Existing rows keep their values.
pub(super) fn add(
    session: &mut Session,
    table: &mut Table,
    column: &str,
    owned: &OwnedSequence,
) -> Result<(), SqlError> {
    let at = table.column(column).ok_or_else(|| missing(table, column))?;
    let found = &table.columns[at];
    if !matches!(found.type_.oid, oid::INT2 | oid::INT4 | oid::INT8) {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if !found.not_null {
        let why = "must be declared NOT NULL before identity can be added";
        return Err(state(table, column, why));
    }
    if found.identity.is_some() {
        return Err(state(table, column, "is already an identity column"));
    }
    if found.default.is_some() {
        return Err(state(table, column, "already has a default value"));
    }
    let oid = session.shared.new_oid();
    sequence::own(session, table, at, (oid, owned))?;
    table.columns[at].identity = owned.identity;
    Ok(())
}

/// SET GENERATED and the options of its sequence.
pub(super) fn set(
    session: &mut Session,
    table: &mut Table,
    column: &str,
    identity: Option<Identity>,
    options: &SequenceOptions,
) -> Result<(), SqlError> {
    let at = table.column(column).ok_or_else(|| missing(table, column))?;
    if table.columns[at].identity.is_none() {
        return Err(state(table, column, "is not an identity column"));
    }
    let catalog = Arc::clone(&session.environment.catalog);
    for owned in sequence::owned_by(&catalog, table.oid, at as u32) {
        if let Some(locked) = sequence::locked(session, owned.oid)? {
            sequence::change(session, locked, options)?;
        }
    }
    table.columns[at].identity = identity.or(table.columns[at].identity);
    Ok(())
}

/// DROP IDENTITY: the sequence goes, the column stays NOT NULL.
pub(super) fn remove(
    session: &mut Session,
    table: &mut Table,
    (column, if_exists): (&str, bool),
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let at = table.column(column).ok_or_else(|| missing(table, column))?;
    if table.columns[at].identity.is_none() {
        let error = state(table, column, "is not an identity column");
        if !if_exists {
            return Err(error);
        }
        skipping(session, client, format!("{}, skipping", error.message));
        return Ok(());
    }
    let catalog = Arc::clone(&session.environment.catalog);
    for owned in sequence::owned_by(&catalog, table.oid, at as u32) {
        dependents::settle(session, &[Object::Sequence(owned.oid)], false, client)?;
        sequence::forget(session, owned.oid)?;
    }
    table.columns[at].identity = None;
    table.columns[at].default = None;
    Ok(())
}

/// Refuses SET and DROP DEFAULT for an identity column.
pub(super) fn refuse_default(table: &Table, at: usize, dropping: bool) -> Result<(), SqlError> {
    let column = &table.columns[at];
    if column.identity.is_none() {
        return Ok(());
    }
    let message = format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name);
    let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
    Err(if dropping {
        error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
    } else {
        error
    })
}

fn state(table: &Table, column: &str, why: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{}\" {why}", table.name);
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}
