//! UPDATE and DELETE, and the parts they share with INSERT: a row's values, defaults and checks,
//! and RETURNING.
//!
//! What must hold:
//!
//! 1. The new row lies in consecutive registers, one for each column, dropped ones included. Checks
//!    and RETURNING read it there.
//! 2. Checks are evaluated in the order of their names. The first one that fails gives the error.
//! 3. A stored expression is bound anew from its text, without lifted literals. Its errors have no
//!    position, since they do not lie in the statement.
//! 4. Items of FROM and USING cannot read the changed table.
//! 5. A column is assigned once, and with the type of the column.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{DeleteStmt, Node, RangeVar, ResTarget, ReturningClause, SelectStmt, UpdateStmt};
use txn::TableLock;

use super::location::location;
use super::references::Rows;
use super::{Barred, Binder, Clause, ColumnValue, Entry, EntryColumn, Level, inner};
use crate::bound::{Bound, Change, FromItem, Query, Returning, Select, Source};
use crate::plan::{Assignment, Check, JoinKind, Reg};
use crate::request::Assigned;
use catalog::Identity;
use catalog::system_columns;
use catalog::{Column, Table};
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

impl Binder<'_> {
    /// Runs `bind` in a name space of its own.
    pub(crate) fn scoped<R>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        self.levels.push(Level::default());
        let mark = self.common_mark();
        let result = bind(self);
        self.forget_common(mark);
        self.levels.pop();
        result
    }

    /// A column of the table by name; 42703 that names the table otherwise.
    pub(crate) fn named_column(&self, table: &Table, name: &str, start: i32) -> Result<usize, SqlError> {
        table.column(name).ok_or_else(|| {
            self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
                start,
            )
        })
    }

    /// Casts a value to the column that stores it.
    pub(crate) fn assigned(&mut self, expr: Expr, column: &Column, start: i32) -> Result<Expr, SqlError> {
        let from = expr.type_();
        if from.oid != oid::UNKNOWN && !functions::can_cast(from, column.type_, CastContext::Assignment) {
            return Err(self
                .error(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "column \"{}\" is of type {} but expression is of type {}",
                        column.name,
                        Type::new(column.type_.oid),
                        Type::new(from.oid)
                    ),
                    start,
                )
                .with_hint("You will need to rewrite or cast the expression."));
        }
        self.built(functions::cast(expr, column.type_, CastContext::Assignment), start)
    }

    /// Binds a query whose rows a rewritten table takes.
    pub(super) fn assigned_query(
        &mut self,
        select: &SelectStmt,
        Assigned { output, column }: Assigned<'_>,
    ) -> Result<Query, SqlError> {
        let mut query = self.query(select, Some(false))?;
        let source = query.output[output].type_;
        let to = column.type_;
        if source.oid != oid::UNKNOWN && !functions::can_cast(source, to, CastContext::Assignment) {
            let message = format!(
                "result of USING clause for column \"{}\" cannot be cast automatically to type {to}",
                column.name
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You might need to add an explicit cast."));
        }
        self.coerce_output(&mut query, output, to, CastContext::Assignment)?;
        Ok(query)
    }

    /// A value for every column: the statement's, the default or NULL.
    pub(crate) fn complete_row(
        &mut self,
        exprs: Vec<Option<Expr>>,
        table: &Table,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut values = Vec::with_capacity(exprs.len());
        for (column, value) in exprs.into_iter().enumerate() {
            values.push(match value {
                Some(value) => value,
                None => self.default_value(table, column)?,
            });
        }
        Ok(values)
    }

    /// A column's default.
    pub(crate) fn default_value(&mut self, table: &Table, column: usize) -> Result<Expr, SqlError> {
        let definition = &table.columns[column];
        match &definition.default {
            Some(text) if !definition.dropped => {
                self.stored_expression(text, Some(definition), Clause::Default)
            }
            _ => Ok(Expr::null(definition.type_)),
        }
    }

    /// Binds an expression that the catalog keeps as text: a default (cast to its column) or a
    /// check (a condition).
    fn stored_expression(
        &mut self,
        text: &str,
        column: Option<&Column>,
        clause: Clause,
    ) -> Result<Expr, SqlError> {
        let source = format!("SELECT {text}");
        let parsed = crate::parse::parse(&source)?;
        let Some(NodeEnum::SelectStmt(select)) = parsed.statements.first().map(|statement| &statement.node)
        else {
            return Err(SqlError::internal("a stored expression is no expression"));
        };
        let value = match select.target_list.first().map(inner).transpose()? {
            Some(NodeEnum::ResTarget(target)) => target.val.as_deref(),
            _ => None,
        };
        // Its locations do not refer to the statement's text.
        let bound = self.without_lifting(|binder| {
            binder.in_clause(clause, |binder| match column {
                Some(column) => {
                    let expr = binder.expr_of(value)?;
                    binder.assigned(expr, column, -1)
                }
                None => binder.condition(value, "CHECK"),
            })
        });
        bound.map_err(|mut error| {
            error.position = None;
            error
        })
    }

    /// The CHECK constraints of a table over a new row's registers.
    pub(crate) fn checks(&mut self, table: &Arc<Table>, new_row: Reg) -> Result<Vec<Check>, SqlError> {
        let mut checks = Vec::with_capacity(table.checks.len());
        // Ordered by name. The order decides which error a row raises that breaks several.
        let mut ordered: Vec<_> = table.checks.iter().collect();
        ordered.sort_by(|a, b| a.name.cmp(&b.name));
        for check in ordered {
            let entry = self.row_entry(&table.name, table, new_row);
            let expr = self.scoped(|binder| {
                binder.level().entries.push(entry);
                binder.stored_expression(&check.text, None, Clause::Check)
            })?;
            checks.push(Check { name: check.name.clone(), expr });
        }
        Ok(checks)
    }

    /// The entry of a row that occupies consecutive registers.
    pub(crate) fn row_entry(&mut self, name: &str, table: &Arc<Table>, first: Reg) -> Entry {
        let mut columns = Vec::new();
        for (position, column) in table.live_columns() {
            let register = first + position as Reg;
            self.origins.insert(register, (table.oid, i16::try_from(position + 1).unwrap_or(0)));
            columns.push(EntryColumn {
                name: column.name.clone(),
                value: ColumnValue::Value(Expr::column(register, column.type_)),
                hidden: false,
            });
        }
        Entry {
            name: Some(name.to_owned()),
            schema: None,
            columns,
            source: None,
            table: Some(Arc::clone(table)),
            scalar: false,
            nullable: false,
        }
    }

    /// Binds RETURNING over the visible names.
    pub(crate) fn returning(&mut self, clause: Option<&ReturningClause>) -> Result<Returning, SqlError> {
        let Some(clause) = clause else { return Ok(Returning::default()) };
        if !clause.options.is_empty() {
            return Err(self.unsupported("RETURNING WITH", -1));
        }
        let mut targets = self.in_clause(Clause::Returning, |binder| binder.target_list(&clause.exprs))?;
        for target in &mut targets {
            if target.expr.type_().oid == oid::UNKNOWN {
                let expr = std::mem::replace(&mut target.expr, Expr::null(Type::TEXT));
                target.expr =
                    self.built(functions::cast(expr, Type::TEXT, CastContext::Implicit), target.location)?;
            }
        }
        let mut computed = Vec::new();
        let registers = self.project(&targets, &mut computed);
        let output = self.outputs(&targets, &registers);
        let sublinks = std::mem::take(&mut self.level().sublinks);
        Ok(Returning { output, targets: computed, sublinks })
    }

    /// UPDATE.
    pub(crate) fn update(&mut self, update: &UpdateStmt) -> Result<Bound, SqlError> {
        self.scoped(|binder| {
            let tables = binder.with_clause(update.with_clause.as_ref())?;
            let range = relation(update.relation.as_ref())?;
            let (table, target, entry) = binder.changed_table(range)?;
            let name = entry.name.clone().unwrap_or_default();
            let from = binder.joined_with(target, &table, entry, &update.from_clause)?;
            let assignments =
                binder.in_clause(Clause::Set, |b| b.assignments(&update.target_list, &table))?;
            binder.lock_references(&table, Rows::assigned(&assignments));
            let mut conditions =
                binder.in_clause(Clause::Where, |b| b.conjuncts(update.where_clause.as_deref(), "WHERE"))?;
            binder.drop_decided(&mut conditions);
            let identity = binder.identify(target);
            let sublinks = std::mem::take(&mut binder.level().sublinks);
            let new_row = binder.register_block(table.columns.len());
            let checks = binder.checks(&table, new_row)?;
            // RETURNING reads the new row under the table's name.
            let row = binder.row_entry(&name, &table, new_row);
            binder.level().entries[0] = row;
            let returning = binder.returning(update.returning_clause.as_ref())?;
            let select = Select { from: Some(from), conditions, sublinks, ..Select::default() };
            Ok(Bound::Update(Box::new(Change {
                tables,
                table,
                target,
                identity,
                select,
                assignments,
                new_row,
                checks,
                returning,
            })))
        })
    }

    /// DELETE.
    pub(crate) fn delete(&mut self, delete: &DeleteStmt) -> Result<Bound, SqlError> {
        self.scoped(|binder| {
            let tables = binder.with_clause(delete.with_clause.as_ref())?;
            let range = relation(delete.relation.as_ref())?;
            let (table, target, entry) = binder.changed_table(range)?;
            let from = binder.joined_with(target, &table, entry, &delete.using_clause)?;
            binder.lock_references(&table, Rows::Gone);
            let mut conditions =
                binder.in_clause(Clause::Where, |b| b.conjuncts(delete.where_clause.as_deref(), "WHERE"))?;
            binder.drop_decided(&mut conditions);
            let identity = binder.identify(target);
            let sublinks = std::mem::take(&mut binder.level().sublinks);
            let returning = binder.returning(delete.returning_clause.as_ref())?;
            let select = Select { from: Some(from), conditions, sublinks, ..Select::default() };
            Ok(Bound::Delete(Box::new(Change {
                tables,
                table,
                target,
                identity,
                select,
                assignments: Vec::new(),
                new_row: 0,
                checks: Vec::new(),
                returning,
            })))
        })
    }

    fn changed_table(
        &mut self,
        range: &RangeVar,
    ) -> Result<(Arc<Table>, crate::bound::SourceId, Entry), SqlError> {
        let table = self.stored_table(range)?;
        self.writes = true;
        self.lock(table.oid, TableLock::RowExclusive);
        let target = self.source();
        let entry = self.table_entry(target, &table, range)?;
        Ok((table, target, entry))
    }

    /// Inner-joins the changed table with the other items, which may not read it.
    fn joined_with(
        &mut self,
        target: crate::bound::SourceId,
        table: &Arc<Table>,
        entry: Entry,
        others: &[Node],
    ) -> Result<FromItem, SqlError> {
        self.add_entries(vec![entry])?;
        let level = self.level();
        level.barred.push((0..level.entries.len(), Barred::Changed));
        let others = self.sources_of(others);
        self.level().barred.pop();
        let own = FromItem::Source(target, Source::Table(Arc::clone(table)));
        Ok(match others? {
            None => own,
            Some(others) => FromItem::Join {
                kind: JoinKind::Inner,
                left: Box::new(own),
                right: Box::new(others),
                condition: Vec::new(),
                listed: true,
                items: Some(0),
            },
        })
    }

    /// SET.
    pub(crate) fn assignments(
        &mut self,
        nodes: &[Node],
        table: &Arc<Table>,
    ) -> Result<Vec<Assignment>, SqlError> {
        let called = self.level().entries.first().and_then(|entry| entry.name.clone()).unwrap_or_default();
        let mut assignments: Vec<Assignment> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let NodeEnum::ResTarget(target) = inner(node)? else {
                return Err(SqlError::internal("SET without a target"));
            };
            if let Some(refused) = system_columns::unchangeable("assign to", &target.name) {
                return Err(refused.at(self.position(target.location)));
            }
            let position = self.named_column(table, &target.name, target.location).map_err(|error| {
                match !target.indirection.is_empty() && target.name == called {
                    true => error.with_hint("SET target columns cannot be qualified with the relation name."),
                    false => error,
                }
            })?;
            if !target.indirection.is_empty() {
                return Err(self.unsupported("assigning to a part of a column", target.location));
            }
            if assignments.iter().any(|other| other.column as usize == position) {
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    format!("multiple assignments to same column \"{}\"", target.name),
                    -1,
                ));
            }
            let definition = &table.columns[position];
            if let Some(value) = self.assigned_field(target)? {
                let value = self.assigned(value, definition, target.location)?;
                assignments.push(Assignment { column: position as u32, value });
                continue;
            }
            let value = self.assigned_node(target)?;
            let value = if matches!(inner(value)?, NodeEnum::SetToDefault(_)) {
                self.default_value(table, position)?
            } else {
                if definition.identity == Some(Identity::Always) {
                    return Err(self
                        .error(
                            SqlState::GENERATED_ALWAYS,
                            format!("column \"{}\" can only be updated to DEFAULT", definition.name),
                            -1,
                        )
                        .with_detail(format!(
                            "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                            definition.name
                        )));
                }
                let expr = self.expr(value)?;
                self.assigned(expr, definition, location(value))?
            };
            assignments.push(Assignment { column: position as u32, value });
        }
        Ok(assignments)
    }

    /// The value of a SET item whose row names fields by a star: `(a, b) = ROW(v.*)`.
    fn assigned_field(&mut self, target: &ResTarget) -> Result<Option<Expr>, SqlError> {
        let value = target.val.as_deref().map(inner).transpose()?;
        let Some(NodeEnum::MultiAssignRef(multiple)) = value else { return Ok(None) };
        let Some(NodeEnum::RowExpr(row)) = multiple.source.as_deref().map(inner).transpose()? else {
            return Ok(None);
        };
        if !row.args.iter().any(super::fields::has_star) {
            return Ok(None);
        }
        let mut fields = self.expanded(&row.args)?;
        if fields.len() != multiple.ncolumns as usize {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "number of columns does not match number of values",
                row.location,
            ));
        }
        Ok(Some(fields.swap_remove(multiple.colno as usize - 1)))
    }

    /// The value of a SET item. `(a, b) = (x, y)` has one value for each column.
    fn assigned_node<'n>(&self, target: &'n ResTarget) -> Result<&'n Node, SqlError> {
        let value = target.val.as_deref().ok_or_else(|| SqlError::internal("SET without a value"))?;
        let NodeEnum::MultiAssignRef(multiple) = inner(value)? else { return Ok(value) };
        let source =
            multiple.source.as_deref().ok_or_else(|| SqlError::internal("row assignment without source"))?;
        let NodeEnum::RowExpr(row) = inner(source)? else {
            return Err(self.unsupported("assigning a subquery's row", target.location));
        };
        if row.args.len() != multiple.ncolumns as usize {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "number of columns does not match number of values",
                row.location,
            ));
        }
        row.args
            .get(multiple.colno as usize - 1)
            .ok_or_else(|| SqlError::internal("row assignment out of range"))
    }
}

/// The relation of a statement that changes rows.
pub(crate) fn relation(range: Option<&RangeVar>) -> Result<&RangeVar, SqlError> {
    range.ok_or_else(|| SqlError::internal("statement without relation"))
}
