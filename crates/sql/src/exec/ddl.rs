//! Filling trees that a definition made: of a rewritten table, of a new index.

use txn::{Direction, InsertOutcome, Range};

use super::constraint::{in_table, shown_key};
use super::insert::store_row;
use super::keys::{index_entry, index_parts, table_tree, tree};
use super::modify::old_row;
use super::{Executor, Flow, from_txn, run};
use crate::catalog::{Index, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Body, Statement};
use crate::types::Datum;

/// Stores the rows of a query in a table; their number. Output column i goes to the table's column `positions[i]`, or i.
pub(crate) fn fill<'s>(
    cx: &mut Executor<'s>,
    query: &'s Statement,
    table: &Table,
    positions: Option<&[usize]>,
) -> Result<u64, SqlError> {
    let Body::Query { root, .. } = &query.body else {
        return Err(SqlError::internal("rows of what is no query"));
    };
    let mut rows = 0;
    let arena = cx.take_arena();
    let file = arena.bump.alloc_slice_fill_copy(query.registers as usize, Datum::Null);
    let done = run(cx, root, file, &arena, &mut |cx, file, arena| {
        let row = arena.bump.alloc_slice_fill_copy(table.columns.len(), Datum::Null);
        for (at, register) in query.output.iter().enumerate() {
            row[positions.map_or(at, |positions| positions[at])] = file[*register as usize];
        }
        for (column, value) in table.columns.iter().zip(&*row) {
            if column.not_null && value.is_null() && !column.dropped {
                let message =
                    format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name);
                return Err(in_table(cx, table, SqlError::new(SqlState::NOT_NULL_VIOLATION, message))
                    .with_column(&column.name));
            }
        }
        rows += 1;
        store_row(cx, table, row).map_err(as_rewrite)?;
        Ok(Flow::More)
    });
    cx.give_arena(arena);
    done.map(|_| rows)
}

/// A broken unique key is the index's failure to be built, not the row's to be inserted.
fn as_rewrite(mut error: SqlError) -> SqlError {
    if error.code == SqlState::UNIQUE_VIOLATION {
        let name = error.constraint.clone().unwrap_or_default();
        error.message = format!("could not create unique index \"{name}\"");
        error.detail = error.detail.take().map(|detail| detail.replace("already exists", "is duplicated"));
    }
    error
}

/// Fills a new index with the table's rows.
pub(crate) fn build_index(cx: &mut Executor<'_>, table: &Table, index: &Index) -> Result<(), SqlError> {
    let range = Range { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Unbounded };
    let mut scan = cx.txn.scan(&table_tree(table), range, Direction::Forward);
    let target = tree(index.tree);
    let (mut entry, mut payload) = (Vec::new(), Vec::new());
    cx.scoped(|cx, own| {
        while let Some((key, bytes, _)) = scan.next(cx.txn).map_err(from_txn)? {
            cx.check()?;
            {
                let row = old_row(table, bytes, own)?;
                index_entry(index, row, key, &mut entry, &mut payload)?;
                if cx.txn.insert(&target, &entry, &payload).map_err(from_txn)? == InsertOutcome::Duplicate {
                    let shown = shown_key(cx, table, index_parts(index).map(|part| part.column), row);
                    let message = format!("could not create unique index \"{}\"", index.name);
                    return Err(in_table(cx, table, SqlError::new(SqlState::UNIQUE_VIOLATION, message))
                        .with_detail(format!("{shown} is duplicated."))
                        .with_constraint(&index.name));
                }
            }
            own.bump.reset();
        }
        Ok(())
    })
}
