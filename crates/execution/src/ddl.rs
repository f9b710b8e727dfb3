//! Fills the trees of new definitions: those of a rewritten table, and that of a new index.

use txn::trees::{MAX_ENTRY, MAX_KEY};
use txn::{Direction, Range};

use super::constraint::{in_table, shown_key};
use super::fill::{Broken, TreeFill};
use super::keys::{
    Part, index_entry, index_parts, primary_key_of_entry, primary_parts, row_key, table_tree, tree,
};
use super::modify::old_row;
use super::{Arena, Executor, Flow, from_txn, out_of_line, run};
use catalog::{Index, Table};
use query::plan::{Body, Statement};
use values::error::{SqlError, SqlState};
use values::row::RowView;
use values::types::Datum;

/// Stores the rows of a query in a new table and its indexes. Returns their number. Output column i
/// goes to the table's column `positions[i]`, or to column i without positions.
pub fn fill<'s>(
    cx: &mut Executor<'s>,
    query: &'s Statement,
    table: &Table,
    positions: Option<&[usize]>,
) -> Result<u64, SqlError> {
    let Body::Query { root, .. } = &query.body else {
        return Err(SqlError::internal("rows of what is no query"));
    };
    let mut rows = 0;
    let mut target = TreeFill::new(cx, table_tree(table));
    let (mut key, mut bytes) = (Vec::new(), Vec::new());
    let arena = cx.take_arena();
    let file = arena.bump.alloc_slice_fill_copy(query.registers as usize, Datum::Null);
    let done = run(cx, root, file, &arena, &mut |cx, file, arena| {
        let row = arena.bump.alloc_slice_fill_copy(table.columns.len(), Datum::Null);
        for (at, register) in query.output.iter().enumerate() {
            row[positions.map_or(at, |positions| positions[at])] = file[*register as usize];
        }
        no_nulls(cx, table, row)?;
        rows += 1;
        bytes.clear();
        new_key(cx, table, row, &mut key)?;
        out_of_line::encode(cx, table, row, &key, &mut bytes)?;
        target.add(cx, &key, &bytes).map_err(|broken| primary_broken(cx, table, broken))?;
        Ok(Flow::More)
    });
    cx.give_arena(arena);
    done?;
    finish(cx, table, target)?;
    Ok(rows)
}

/// Stores the rows of `old` as they are in a new table with the same columns and another key, and
/// in its indexes.
pub fn move_rows(cx: &mut Executor<'_>, old: &Table, table: &Table) -> Result<(), SqlError> {
    let mut scan = cx.txn.scan(&table_tree(old), Range::ALL, Direction::Forward);
    let mut target = TreeFill::new(cx, table_tree(table));
    let (mut key, mut packed) = (Vec::new(), Vec::new());
    let columns: Vec<u32> = primary_parts(table).map(|part| part.column).collect();
    cx.scoped(|cx, own| {
        while let Some((_, row, _)) = scan.next(cx.txn).map_err(from_txn)? {
            cx.check()?;
            {
                let values = some_columns(cx, table, row, columns.iter().copied(), own)?;
                if let Some(column) = columns.iter().find(|column| values[**column as usize].is_null()) {
                    return Err(contains_nulls(cx, table, *column as usize));
                }
                new_key(cx, table, values, &mut key)?;
                packed.clear();
                if key.len() + txn::version::HEADER + row.len() > MAX_ENTRY {
                    // The new key is longer, so the entry exceeds its limit: values move out of
                    // line.
                    out_of_line::encode(cx, table, old_row(table, row, own)?, &key, &mut packed)?;
                }
            }
            own.bump.reset();
            let row = if packed.is_empty() { row } else { &packed[..] };
            target.add(cx, &key, row).map_err(|broken| primary_broken(cx, table, broken))?;
        }
        Ok(())
    })?;
    finish(cx, table, target)
}

/// Finishes the table's own tree, then builds the table's indexes from its rows.
fn finish<'s>(cx: &mut Executor<'s>, table: &Table, target: TreeFill<'s>) -> Result<(), SqlError> {
    target.finish(cx).map_err(|broken| primary_broken(cx, table, broken))?;
    if !table.indexes.is_empty() {
        cx.txn.next_command();
    }
    table.indexes.iter().try_for_each(|index| build_index(cx, table, index))
}

/// The key under which a row goes into its table.
fn new_key(
    cx: &mut Executor<'_>,
    table: &Table,
    row: &[Datum<'_>],
    key: &mut Vec<u8>,
) -> Result<(), SqlError> {
    if table.primary_key.is_some() {
        return row_key(table, row, key);
    }
    key.clear();
    key.extend_from_slice(&cx.numbers.take(cx.folder(), table.tree)?.to_be_bytes());
    Ok(())
}

/// A row of which only these columns are read; the others are NULL.
fn some_columns<'x>(
    cx: &Executor<'_>,
    table: &'x Table,
    bytes: &'x [u8],
    columns: impl Iterator<Item = u32>,
    arena: &'x Arena<'_>,
) -> Result<&'x [Datum<'x>], SqlError> {
    let view = RowView::new(bytes, table.shape());
    let row = arena.bump.alloc_slice_fill_copy(table.columns.len(), Datum::Null);
    for column in columns {
        row[column as usize] = view.get(column as usize)?;
    }
    out_of_line::fetched(cx.txn, table, row, |_| true, &arena.bump)
}

/// Fails if a NOT NULL column holds NULL.
fn no_nulls(cx: &Executor<'_>, table: &Table, row: &[Datum<'_>]) -> Result<(), SqlError> {
    let mut columns = table.columns.iter().zip(row);
    match columns.position(|(column, value)| column.not_null && value.is_null() && !column.dropped) {
        Some(column) => Err(contains_nulls(cx, table, column)),
        None => Ok(()),
    }
}

#[cold]
fn contains_nulls(cx: &Executor<'_>, table: &Table, column: usize) -> SqlError {
    let name = &table.columns[column].name;
    let message = format!("column \"{name}\" of relation \"{}\" contains null values", table.name);
    in_table(cx, table, SqlError::new(SqlState::NOT_NULL_VIOLATION, message)).with_column(name)
}

/// Fills a new index with the table's rows.
pub fn build_index(cx: &mut Executor<'_>, table: &Table, index: &Index) -> Result<(), SqlError> {
    let mut scan = cx.txn.scan(&table_tree(table), Range::ALL, Direction::Forward);
    let mut target = TreeFill::new(cx, tree(index.tree));
    let (mut entry, mut payload) = (Vec::new(), Vec::new());
    cx.scoped(|cx, own| {
        while let Some((key, bytes, _)) = scan.next(cx.txn).map_err(from_txn)? {
            cx.check()?;
            {
                let columns = index_parts(index).map(|part| part.column);
                let row = some_columns(cx, table, bytes, columns, own)?;
                index_entry(index, row, key, &mut entry, &mut payload)?;
                if entry.len() > MAX_KEY {
                    return Err(out_of_line::key_too_long(entry.len(), &index.name));
                }
            }
            own.bump.reset();
            target.add(cx, &entry, &payload).map_err(|broken| index_broken(cx, table, index, broken))?;
        }
        target.finish(cx).map_err(|broken| index_broken(cx, table, index, broken))
    })
}

/// The error for two rows with the same primary key. The payload is one of the rows.
#[cold]
fn primary_broken(cx: &mut Executor<'_>, table: &Table, broken: Broken) -> SqlError {
    let name = table.primary_key.as_ref().map_or("", |key| &key.name);
    match broken {
        Broken::Duplicate(row) => duplicated(cx, table, name, primary_parts(table), &row),
        Broken::Error(error) => error,
    }
}

/// The error for two rows with the same key of a unique index. The payload names one of the rows.
#[cold]
fn index_broken(cx: &mut Executor<'_>, table: &Table, index: &Index, broken: Broken) -> SqlError {
    let payload = match broken {
        Broken::Duplicate(payload) => payload,
        Broken::Error(error) => return error,
    };
    let mut row = Vec::new();
    // Only entries of a unique index can conflict. Their payload is the row's key.
    let found = primary_key_of_entry(index, &[], &payload)
        .and_then(|key| cx.txn.get(&table_tree(table), key, &mut row).map_err(from_txn));
    match found {
        Ok(Some(_)) => duplicated(cx, table, &index.name, index_parts(index), &row),
        Ok(None) => SqlError::internal("an index entry of no row"),
        Err(error) => error,
    }
}

/// Error 23505 with PostgreSQL's words for an index that is being built.
fn duplicated(
    cx: &mut Executor<'_>,
    table: &Table,
    name: &str,
    parts: impl Iterator<Item = Part>,
    row: &[u8],
) -> SqlError {
    let told = cx.scoped(|cx, own| {
        let columns: Vec<u32> = parts.map(|part| part.column).collect();
        let row = some_columns(cx, table, row, columns.iter().copied(), own)?;
        let shown = shown_key(cx, table, (columns.iter().copied(), true), row)?;
        let message = format!("could not create unique index \"{name}\"");
        Ok(in_table(cx, table, SqlError::new(SqlState::UNIQUE_VIOLATION, message))
            .with_detail(format!("{shown} is duplicated."))
            .with_constraint(name))
    });
    told.unwrap_or_else(|error| error)
}
