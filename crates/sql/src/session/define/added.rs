//! ADD COLUMN.
//!
//! What must hold:
//!
//! 1. Rows that were written before the column stay as they are, where one value fits all of them.
//!    That value is NULL, or the default's if no volatile function is in it. The default is
//!    evaluated once and stored in the definition as the column's missing value.
//! 2. Other rows are rewritten: those of a column with a sequence or a volatile default, because
//!    each row gets a value of its own.
//! 3. A rewrite leaves no missing values ([`rewrite`]), because all rows then have all columns.

use super::super::Session;
use super::columns::{self, at_most_columns};
use super::rewrite::{count, rewrite, rows};
use super::{kept, sequence};
use catalog::{Column, Table, TreeAddress};
use query::plan::ColumnDefinition;
use query::request::{Assigned, Request};
use values::error::{SqlError, SqlState};
use values::identifier::qualified;
use values::row::{encode_value, variable_bytes};

/// The longest missing value. Each change of the table's definition writes all of them, and 1,600
/// of this length fit into the pieces of one definition. A longer value is written to every row.
const LONGEST: usize = 64 << 10;

/// The value of a new column in the rows that are present.
enum Present {
    /// The same in all.
    Missing(Option<Box<[u8]>>),
    /// One for each row, or one that is too long for the definition.
    Written,
}

/// Adds a column whose name is free.
pub(super) fn column(
    session: &mut Session,
    table: &mut Table,
    definition: &ColumnDefinition,
) -> Result<(), SqlError> {
    let old = table.clone();
    let at = table.columns.len();
    at_most_columns(at + 1)?;
    table.columns.push(columns::column(definition));
    if let Some(owned) = &definition.sequence {
        let oid = session.shared.new_oid();
        sequence::own(session, table, at, (oid, owned))?;
        // The rows' numbers come from the new sequence, so statements must see it.
        session.refresh_catalog();
    }
    if let Some(default) = &mut table.columns[at].default {
        kept::number_relations(session, default)?;
    }
    let default = table.columns[at].default.as_ref().map(|default| format!("({default})"));
    let present = match &default {
        None => Present::Missing(None),
        Some(_) if definition.sequence.is_some() || definition.volatile_default => Present::Written,
        Some(default) => evaluated(session, &table.columns[at], default)?,
    };
    let Present::Missing(value) = present else {
        return rewrite(session, &old, table, default.map(|default| (at, default)));
    };
    if value.is_none() && definition.not_null {
        refuse_rows(session, &old, &definition.name, "")?;
    }
    table.missing.extend(value.map(|bytes| (at as u32, bytes)));
    match table.out_of_line {
        TreeAddress::NONE => session.make_out_of_line_tree(table),
        _ => Ok(()),
    }
}

/// Evaluates a column's default. Its value is cast as an assignment casts it.
fn evaluated(session: &mut Session, column: &Column, default: &str) -> Result<Present, SqlError> {
    let text = format!("SELECT {default}");
    let request = Request { assigned: Some(Assigned { output: 0, column }), ..Request::plain(&text) };
    let mut present = Present::Missing(None);
    rows(session, &request, &mut |row| {
        let Some(value) = row.first().filter(|value| !value.is_null()) else { return Ok(()) };
        present = match variable_bytes(*value) {
            Some(bytes) if bytes.len() > LONGEST => Present::Written,
            _ => Present::Missing(Some(encode_value(*value, column.type_)?)),
        };
        Ok(())
    })?;
    Ok(present)
}

/// Error 23502 for a NOT NULL column, if the table has rows that meet a condition.
pub(super) fn refuse_rows(
    session: &mut Session,
    table: &Table,
    column: &str,
    condition: &str,
) -> Result<(), SqlError> {
    let schema = session.environment.catalog.schema_name(table.schema).to_owned();
    let query = format!("SELECT 1 FROM {} {condition} LIMIT 1", qualified(&schema, &table.name));
    if count(session, &[table], &query)? == 0 {
        return Ok(());
    }
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
        .with_table(&schema, &table.name)
        .with_column(column))
}
