//! INSERT: its columns, its rows of VALUES, and rows from a query.
//!
//! What must hold:
//!
//! 1. A row has a value for each column of the table, dropped ones included: the statement's, the
//!    default or NULL.
//! 2. Values are assigned, so they are cast as an assignment casts them.
//! 3. A value of an identity column that is GENERATED ALWAYS is refused without OVERRIDING. An
//!    overridden value is computed and not stored.
//! 4. The rows of several VALUES lists have one width and the types of the columns.
//! 5. The statement takes the locks of its foreign keys too, before a row is read.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{InsertStmt, Node, OverridingKind, SelectStmt};
use txn::TableLock;

use super::location::location;
use super::modify::relation;
use super::references::Rows;
use super::{Binder, Clause, Entry, inner};
use crate::bound::{Bound, Insert, OutputColumn, Query, QueryBody};
use catalog::Identity;
use catalog::{Column, Table};
use expressions::expr::Expr;
use expressions::functions::CastContext;
use values::error::{SqlError, SqlState};
use values::types::oid;

impl Binder<'_> {
    /// INSERT.
    pub(crate) fn insert(&mut self, insert: &InsertStmt) -> Result<Bound, SqlError> {
        self.scoped(|binder| binder.insert_here(insert))
    }

    fn insert_here(&mut self, insert: &InsertStmt) -> Result<Bound, SqlError> {
        let range = relation(insert.relation.as_ref())?;
        let tables = self.with_clause(insert.with_clause.as_ref())?;
        let table = self.stored_table(range)?;
        self.writes = true;
        self.lock(table.oid, TableLock::RowExclusive);
        self.lock_references(&table, Rows::New);
        let columns = self.insert_columns(&insert.cols, &table)?;
        let overriding =
            OverridingKind::try_from(insert.r#override).unwrap_or(OverridingKind::OverridingNotSet);
        let mut exprs: Vec<Option<Expr>> = vec![None; table.columns.len()];
        let mut input = None;
        match insert.select_stmt.as_deref().map(inner).transpose()? {
            None => {}
            Some(NodeEnum::SelectStmt(select)) if is_plain_values(select) => {
                if let [row] = select.values_lists.as_slice() {
                    let row = list_items(row)?;
                    self.check_width(row, &columns, insert)?;
                    for (node, &column) in row.iter().zip(&columns) {
                        let value =
                            self.inserted_value(node, &table, column, (Clause::InsertedRow, overriding))?;
                        exprs[column] = value.filter(|_| !overridden(&table.columns[column], overriding));
                    }
                    input = self.inserted_sets(&mut exprs);
                } else {
                    input =
                        Some(self.inserted_rows(select, insert, &table, &columns, overriding, &mut exprs)?);
                }
            }
            Some(NodeEnum::SelectStmt(select)) => {
                input = Some(self.inserted_query(select, insert, &table, &columns, overriding, &mut exprs)?);
            }
            Some(_) => return Err(self.unsupported("this source of INSERT", range.location)),
        }
        let values = self.complete_row(exprs, &table)?;
        let sublinks = std::mem::take(&mut self.level().sublinks);
        let new_row = self.register_block(table.columns.len());
        let checks = self.checks(&table, new_row)?;
        let name = range.alias.as_ref().map_or(&table.name, |alias| &alias.aliasname).clone();
        let schema = range.alias.is_none().then(|| self.catalog().schema_name(table.schema).to_owned());
        let conflict = match &insert.on_conflict_clause {
            Some(clause) => Some(self.on_conflict(clause, &table, (&name, schema.as_deref()), new_row)?),
            None => None,
        };
        if let Some(update) = conflict.iter().find_map(|conflict| conflict.update.as_ref()) {
            self.lock_references(&table, Rows::assigned(&update.assignments));
        }
        self.level().entries = vec![Entry { schema, ..self.row_entry(&name, &table, new_row) }];
        let returning = self.returning(insert.returning_clause.as_ref())?;
        Ok(Bound::Insert(Box::new(Insert {
            tables,
            table,
            input,
            values,
            sublinks,
            new_row,
            checks,
            conflict,
            returning,
        })))
    }

    /// The query whose rows are inserted. Puts its columns into `exprs`, as the table's columns
    /// take them.
    fn inserted_query(
        &mut self,
        select: &SelectStmt,
        insert: &InsertStmt,
        table: &Table,
        columns: &[usize],
        overriding: OverridingKind,
        exprs: &mut [Option<Expr>],
    ) -> Result<Query, SqlError> {
        let mut query = self.query(select, Some(false))?;
        let width = query.output.len();
        if width != columns.len() && (width > columns.len() || !insert.cols.is_empty()) {
            return Err(self.wrong_width(width, columns.len(), &select.target_list, insert));
        }
        for (index, &column) in columns.iter().enumerate().take(width) {
            let definition = &table.columns[column];
            self.check_identity(definition, overriding)?;
            if query.output[index].type_.oid == oid::UNKNOWN {
                self.coerce_output(&mut query, index, definition.type_, CastContext::Assignment)?;
            }
            let output = &query.output[index];
            let value = Expr::column(output.register, output.type_);
            let start = select.target_list.get(index).map_or(-1, location);
            let value = self.assigned(value, definition, start)?;
            exprs[column] = (!overridden(definition, overriding)).then_some(value);
        }
        Ok(query)
    }

    /// The positions of an INSERT's listed columns; all columns without a list.
    pub(crate) fn insert_columns(&self, nodes: &[Node], table: &Table) -> Result<Vec<usize>, SqlError> {
        if nodes.is_empty() {
            return Ok(table.live_columns().map(|(position, _)| position).collect());
        }
        let mut columns = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (name, start) = match inner(node)? {
                NodeEnum::ResTarget(target) if target.indirection.is_empty() => {
                    (target.name.as_str(), target.location)
                }
                NodeEnum::ResTarget(target) => {
                    return Err(self.unsupported("assigning to a part of a column", target.location));
                }
                NodeEnum::String(name) => (name.sval.as_str(), -1),
                _ => return Err(SqlError::internal("column list without names")),
            };
            let position = self.named_column(table, name, start)?;
            if columns.contains(&position) {
                return Err(self.error(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                    start,
                ));
            }
            columns.push(position);
        }
        Ok(columns)
    }

    fn check_width(&self, row: &[Node], columns: &[usize], insert: &InsertStmt) -> Result<(), SqlError> {
        if row.len() > columns.len() || (row.len() < columns.len() && !insert.cols.is_empty()) {
            return Err(self.wrong_width(row.len(), columns.len(), row, insert));
        }
        Ok(())
    }

    fn wrong_width(&self, found: usize, wanted: usize, row: &[Node], insert: &InsertStmt) -> SqlError {
        if found > wanted {
            let start = row.get(wanted).map_or(-1, location);
            return self.error(
                SqlState::SYNTAX_ERROR,
                "INSERT has more expressions than target columns",
                start,
            );
        }
        let start = insert.cols.get(found).map_or(-1, location);
        self.error(SqlState::SYNTAX_ERROR, "INSERT has more target columns than expressions", start)
    }

    /// A value of a VALUES row, cast to its column; None for DEFAULT.
    fn inserted_value(
        &mut self,
        node: &Node,
        table: &Table,
        column: usize,
        (clause, overriding): (Clause, OverridingKind),
    ) -> Result<Option<Expr>, SqlError> {
        if matches!(inner(node)?, NodeEnum::SetToDefault(_)) {
            return Ok(None);
        }
        let definition = &table.columns[column];
        self.check_identity(definition, overriding)?;
        let expr = self.in_clause(clause, |binder| binder.expr(node))?;
        self.assigned(expr, definition, location(node)).map(Some)
    }

    /// Several VALUES rows: a query whose columns have the table's types.
    fn inserted_rows(
        &mut self,
        select: &SelectStmt,
        insert: &InsertStmt,
        table: &Arc<Table>,
        columns: &[usize],
        overriding: OverridingKind,
        exprs: &mut [Option<Expr>],
    ) -> Result<Query, SqlError> {
        let width = list_items(&select.values_lists[0])?.len();
        let mut rows = Vec::with_capacity(select.values_lists.len());
        for list in &select.values_lists {
            let items = list_items(list)?;
            if items.len() != width {
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                    items.first().map_or(-1, location),
                ));
            }
            self.check_width(items, columns, insert)?;
            let mut row = Vec::with_capacity(width);
            for (node, &column) in items.iter().zip(columns) {
                let definition = &table.columns[column];
                row.push(match self.inserted_value(node, table, column, (Clause::Values, overriding))? {
                    Some(value) => value,
                    None if overridden(definition, overriding) => Expr::null(definition.type_),
                    None => self.default_value(table, column)?,
                });
            }
            rows.push(row);
        }
        let mut registers = Vec::with_capacity(width);
        let mut output = Vec::with_capacity(width);
        for &column in columns.iter().take(width) {
            let register = self.register();
            let definition = &table.columns[column];
            // An overridden value is computed although it is not stored.
            exprs[column] =
                (!overridden(definition, overriding)).then(|| Expr::column(register, definition.type_));
            registers.push(register);
            output.push(OutputColumn {
                name: definition.name.clone(),
                type_: definition.type_,
                register,
                origin: None,
            });
        }
        let sublinks = std::mem::take(&mut self.level().sublinks);
        Ok(Query::of(QueryBody::Values { rows, output: registers, sublinks }, output))
    }

    fn check_identity(&self, column: &Column, overriding: OverridingKind) -> Result<(), SqlError> {
        if column.identity == Some(Identity::Always) && overriding == OverridingKind::OverridingNotSet {
            return Err(self
                .error(
                    SqlState::GENERATED_ALWAYS,
                    format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
                    -1,
                )
                .with_detail(format!(
                    "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                    column.name
                ))
                .with_hint("Use OVERRIDING SYSTEM VALUE to override."));
        }
        Ok(())
    }
}

/// Whether OVERRIDING USER VALUE replaces the column's value by the sequence's next number.
fn overridden(column: &Column, overriding: OverridingKind) -> bool {
    overriding == OverridingKind::OverridingUserValue && column.identity.is_some()
}

/// VALUES without ORDER BY, LIMIT or WITH.
fn is_plain_values(select: &SelectStmt) -> bool {
    !select.values_lists.is_empty()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.with_clause.is_none()
}

fn list_items(node: &Node) -> Result<&[Node], SqlError> {
    match inner(node)? {
        NodeEnum::List(list) => Ok(&list.items),
        _ => Err(SqlError::internal("VALUES without a list")),
    }
}
