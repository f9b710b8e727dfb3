//! Moves the rows of a table whose definition changes into new trees, and runs queries for a
//! command.
//!
//! What must hold:
//!
//! 1. The caller holds a lock on the table that excludes readers and writers.
//! 2. Rows go into new trees, and the old ones are dropped with the transaction. So a rollback
//!    finds the old rows untouched.
//! 3. Rows that move as they are keep their pointers, and the table keeps the tree of its
//!    out-of-line values and its missing values. Rows that change get a new such tree, because
//!    their values are written again. They have all columns, so no missing value is left.
//! 4. The walk sees the newest rows, or the command fails: a row that it misses would be lost.
//! 5. Foreign keys are not checked. Moving a row changes no value that a key names; a retyped
//!    column has its keys checked by the caller.

use super::super::Session;
use catalog::{Table, TreeAddress};
use execution::{Executor, Flow};
use query::plan::{Body, Plan, Statement};
use query::request::{Assigned, Request};
use values::error::SqlError;
use values::identifier::{qualified, quoted};
use values::types::Datum;

/// Moves all rows of `old` into new trees of `table`, the same table with another definition.
/// Columns keep their values, except that `changed` gives one of them by an expression over the old
/// ones. Its value is cast as an assignment casts it, so one that is too long is an error.
pub(super) fn rewrite(
    session: &mut Session,
    old: &Table,
    table: &mut Table,
    changed: Option<(usize, String)>,
) -> Result<(), SqlError> {
    session.discard_tree(old.tree)?;
    table.tree = session.make_tree()?;
    // Rows that move as they are keep their pointers, and so the table its values. They may still
    // have fewer columns than the table.
    if changed.is_some() {
        table.missing.clear();
        if old.out_of_line != TreeAddress::NONE {
            session.discard_tree(old.out_of_line)?;
        }
        session.make_out_of_line_tree(table)?;
    }
    for index in &mut table.indexes {
        session.discard_tree(index.tree)?;
        index.tree = session.make_tree()?;
    }
    // References are checked when they are made, not when rows move.
    let target = Table { foreign_keys: Vec::new(), ..table.clone() };
    session.see_rows_of(old)?;
    if changed.is_none() {
        return session.executing(|cx| execution::ddl::move_rows(cx, old, &target));
    }
    let (mut positions, mut values) = (Vec::new(), Vec::new());
    let mut assigned = None;
    for (at, column) in table.columns.iter().enumerate().filter(|(_, column)| !column.dropped) {
        match &changed {
            Some((other, value)) if *other == at => {
                assigned = Some(Assigned { output: values.len(), column });
                values.push(value.clone());
            }
            _ if at < old.columns.len() => values.push(quoted(&column.name)),
            _ => continue,
        }
        positions.push(at);
    }
    let schema = session.environment.catalog.schema_name(old.schema);
    let text = format!("SELECT {} FROM {}", values.join(", "), qualified(schema, &old.name));
    let planned = session.compile(&Request { assigned, ..Request::plain(&text) })?;
    let Some(compiled) = &planned.compiled else { return Err(SqlError::internal("an empty query")) };
    session.executing(|cx| execution::ddl::fill(cx, &compiled.statement, &target, Some(&positions)))?;
    Ok(())
}

/// The number of rows that a query over locked tables gives.
pub(super) fn count(session: &mut Session, tables: &[&Table], text: &str) -> Result<u64, SqlError> {
    tables.iter().try_for_each(|table| session.see_rows_of(table))?;
    let mut count = 0;
    rows(session, &Request::plain(text), &mut |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Runs a query. Each row's output columns go to `row`.
pub(super) fn rows(
    session: &mut Session,
    request: &Request<'_>,
    row: &mut dyn FnMut(&[Datum<'_>]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let planned = session.compile(request)?;
    let Some(compiled) = &planned.compiled else { return Err(SqlError::internal("an empty query")) };
    let statement = &compiled.statement;
    let Body::Query { root, .. } = &statement.body else { return Err(SqlError::internal("no query")) };
    session.executing(|cx: &mut Executor<'_>| run(cx, root, statement, row))
}

fn run<'s>(
    cx: &mut Executor<'s>,
    root: &'s Plan,
    statement: &'s Statement,
    row: &mut dyn FnMut(&[Datum<'_>]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    cx.query(root, statement.registers, &statement.output, &mut |values| row(values).map(|()| Flow::More))
}
