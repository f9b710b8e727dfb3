//! Conditions on a single row: NOT NULL and CHECK; and the messages of broken keys.

use super::{Arena, Executor, File, keys::Part, out_of_line};
use catalog::Table;
use query::plan::{Check, Reg};
use values::error::{SqlError, SqlState, for_message};
use values::identifier::quoted;
use values::types::Datum;
use values::work::tick_parts;
use values::{encoding, text};

/// Checks the complete new row in the registers from `first` on.
pub(super) fn check_row<'s, 'x>(
    cx: &mut Executor<'s>,
    table: &Table,
    (first, checks): (Reg, &'s [Check]),
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<(), SqlError> {
    let row = &file[first as usize..first as usize + table.columns.len()];
    for (column, value) in table.columns.iter().zip(row) {
        if column.not_null && value.is_null() && !column.dropped {
            return Err(null_violation(cx, table, &column.name, row)?);
        }
    }
    tick_parts(checks.len())?;
    for check in checks {
        if matches!(cx.eval(&check.expr, file, arena)?, Datum::Bool(false)) {
            return Err(check_violation(cx, table, &check.name, row)?);
        }
    }
    Ok(())
}

/// [`check_row`] for a new row whose unchanged columns may be pointers. It fetches the values that
/// the checks read, and puts the pointers back into the registers afterwards.
#[cold]
pub(super) fn check_row_of_pointers<'s, 'x>(
    cx: &mut Executor<'s>,
    table: &Table,
    (first, checks): (Reg, &'s [Check]),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<(), SqlError> {
    let row = first as usize..first as usize + table.columns.len();
    let pointers = arena.bump.alloc_slice_copy(&file[row.clone()]);
    for (column, register) in row.clone().enumerate() {
        if checks.iter().any(|check| out_of_line::reads(&check.expr, register as Reg)) {
            file[register] = out_of_line::fetch(cx.txn, table, (column, file[register]), &arena.bump)?;
        }
    }
    check_row(cx, table, (first, checks), file, arena)?;
    file[row].copy_from_slice(pointers);
    Ok(())
}

/// Adds the table's name to an error.
pub(super) fn in_table(cx: &Executor<'_>, table: &Table, error: SqlError) -> SqlError {
    error.with_table(cx.catalog.schema_name(table.schema), &table.name)
}

#[cold]
pub(super) fn check_violation(
    cx: &Executor<'_>,
    table: &Table,
    check: &str,
    row: &[Datum<'_>],
) -> Result<SqlError, SqlError> {
    let message = format!("new row for relation \"{}\" violates check constraint \"{check}\"", table.name);
    Ok(in_table(cx, table, SqlError::new(SqlState::CHECK_VIOLATION, message))
        .with_detail(failing_row(cx, table, row)?)
        .with_constraint(check))
}

#[cold]
pub(super) fn null_violation(
    cx: &Executor<'_>,
    table: &Table,
    column: &str,
    row: &[Datum<'_>],
) -> Result<SqlError, SqlError> {
    let message = format!(
        "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
        table.name
    );
    Ok(in_table(cx, table, SqlError::new(SqlState::NOT_NULL_VIOLATION, message))
        .with_detail(failing_row(cx, table, row)?)
        .with_column(column))
}

/// "Failing row contains (1, null)."
fn failing_row(cx: &Executor<'_>, table: &Table, row: &[Datum<'_>]) -> Result<String, SqlError> {
    const LONGEST: usize = 64;
    let mut line = String::from("Failing row contains (");
    let mut first = true;
    for (at, (column, value)) in table.columns.iter().zip(row).enumerate() {
        if column.dropped {
            continue;
        }
        if !first {
            line.push_str(", ");
        }
        first = false;
        if value.is_null() {
            line.push_str("null");
            continue;
        }
        let bump = bumpalo::Bump::new();
        let shown = shown(cx, out_of_line::fetch(cx.txn, table, (at, *value), &bump)?, column.type_)?;
        match shown.char_indices().nth(LONGEST) {
            Some((end, _)) => {
                line.push_str(&shown[..end]);
                line.push_str("...");
            }
            None => line.push_str(&shown),
        }
    }
    line.push_str(").");
    Ok(line)
}

/// A value as text, for messages.
pub(super) fn shown(
    cx: &Executor<'_>,
    value: Datum<'_>,
    type_: values::types::Type,
) -> Result<String, SqlError> {
    let bytes = text::to_bytes(value, type_, cx.environment)?;
    Ok(for_message(encoding::utf8(&bytes)?).to_owned())
}

/// "Key (a, b)=(1, 2)", for messages. PostgreSQL quotes the names of a unique key's columns where
/// SQL would have to, but not those of a foreign key's.
pub(super) fn shown_key(
    cx: &Executor<'_>,
    table: &Table,
    (columns, unique): (impl Iterator<Item = u32>, bool),
    row: &[Datum<'_>],
) -> Result<String, SqlError> {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns {
        let definition = &table.columns[column as usize];
        names.push(if unique { quoted(&definition.name) } else { definition.name.clone() });
        let value = row[column as usize];
        values.push(if value.is_null() { "null".to_owned() } else { shown(cx, value, definition.type_)? });
    }
    Ok(format!("Key ({})=({})", names.join(", "), values.join(", ")))
}

/// 23505 with PostgreSQL's words.
#[cold]
pub(super) fn unique_violation(
    cx: &Executor<'_>,
    table: &Table,
    name: &str,
    parts: impl Iterator<Item = Part>,
    row: &[Datum<'_>],
) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    let key = match shown_key(cx, table, (parts.map(|part| part.column), true), row) {
        Ok(key) => key,
        Err(error) => return error,
    };
    in_table(cx, table, SqlError::new(SqlState::UNIQUE_VIOLATION, message))
        .with_detail(format!("{key} already exists."))
        .with_constraint(name)
}
