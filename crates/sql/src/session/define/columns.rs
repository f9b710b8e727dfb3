//! Columns of tables that are made or altered: their definitions, names and types.

use catalog::system_columns::{self, SYSTEM_COLUMNS};
use catalog::{Column, Table};
use query::plan::ColumnDefinition;
use values::error::{SqlError, SqlState};
use values::types::{Type, TypeKind};

/// Columns of a table at most, as PostgreSQL's.
const MAX_COLUMNS: usize = 1600;

/// Error 54011 if a table would have more than 1,600 columns. Dropped columns count.
pub(super) fn at_most_columns(count: usize) -> Result<(), SqlError> {
    if count <= MAX_COLUMNS {
        return Ok(());
    }
    let message = format!("tables can have at most {MAX_COLUMNS} columns");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// 42701 for the name of a system column.
pub(super) fn check_column_name(name: &str) -> Result<(), SqlError> {
    if !SYSTEM_COLUMNS.contains(&name) {
        return Ok(());
    }
    let message = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
}

/// 42P16 for a type that no column can have.
pub(super) fn check_column_type(name: &str, type_: Type) -> Result<(), SqlError> {
    if !type_.info().is_some_and(|info| info.kind == TypeKind::Pseudo) {
        return Ok(());
    }
    let message = format!("column \"{name}\" has pseudo-type {type_}");
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}

/// A column from its definition.
pub(super) fn column(definition: &ColumnDefinition) -> Column {
    Column {
        name: definition.name.clone(),
        type_: definition.type_,
        not_null: definition.not_null,
        default: definition.default.clone(),
        identity: definition.sequence.as_ref().and_then(|owned| owned.identity),
        dropped: false,
    }
}

/// 42703.
pub(super) fn no_column(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
}

/// 42703, as ALTER COLUMN words it; 0A000 for a system column.
pub(super) fn missing(table: &Table, column: &str) -> SqlError {
    if let Some(refused) = system_columns::unchangeable("alter", column) {
        return refused;
    }
    let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}
