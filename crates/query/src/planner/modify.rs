//! Statements that change rows, and the rows that nodes change or lock.
//!
//! What must hold:
//!
//! 1. A locked or changed row has registers for its key, its version and its columns, which the
//!    scan below fills ([`RowTarget`]).
//! 2. The second look is planned from the bound statement, before its subqueries are attached to
//!    the plan.
//! 3. Subqueries are attached where their last operand is filled. Those of RETURNING see the new
//!    row, so they are attached above the change.
//! 4. Each function here leaves the planner's pending subqueries as it found them.

use super::written::written;
use std::sync::Arc;

use super::common::with_tables;
use super::part::{Part, Wanted};
use super::second_look::Parts;
use super::{Planned, Planner};
use crate::bound::{Change, Insert, Returning, SourceId};
use crate::plan::{
    ColumnRead, CommonTable, Delete, Estimate, OnConflict, Operator, Plan, QueryTag, RowTarget, Update,
};
use crate::registers::Registers;
use catalog::Table;
use values::error::SqlError;

impl Planner<'_, '_> {
    pub(super) fn insert(&mut self, insert: Insert) -> Result<Planned, SqlError> {
        let none = Registers::default();
        let tables = self.common_tables(insert.tables, &none)?;
        let before = self.with_sublinks(insert.sublinks, &none)?;
        let input = match insert.input {
            Some(query) => {
                let links = std::mem::take(&mut self.pending);
                let part = self.query(query, &none)?;
                self.pending = links;
                part
            }
            None => Part::one(),
        };
        let input = self.attached(input, insert.values.iter())?;
        self.pending = before;
        let conflict =
            insert.conflict.map(|conflict| OnConflict { arbiter: conflict.arbiter, update: conflict.update });
        let estimate = changed(&input, &insert.returning);
        let operator = Operator::Insert(Box::new(crate::plan::Insert {
            input: input.plan,
            table: insert.table,
            values: insert.values,
            new_row: insert.new_row,
            checks: insert.checks,
            conflict,
            returned: Vec::new(),
        }));
        self.returned(Plan::new(operator, estimate), tables, insert.returning, QueryTag::Insert)
    }

    pub(super) fn change(&mut self, change: Change, update: bool) -> Result<Planned, SqlError> {
        let none = Registers::default();
        let tables = self.common_tables(change.tables, &none)?;
        let mut select = change.select;
        let from = select.from.take().ok_or_else(|| SqlError::internal("a change of no table"))?;
        let around = self.item_writes(&from);
        let second_look = self.second_look(
            &Parts {
                targets: &[change.target],
                from: &from,
                conditions: &select.conditions,
                assigned: &change.assignments,
                computed: &[],
                sublinks: &select.sublinks,
            },
            &none,
        )?;
        let semis = self.semis_of(&from, &mut select);
        let before = self.with_sublinks(select.sublinks, &around)?;
        let part = self.join_tree(from, (select.conditions, semis), &none, Wanted::default())?;
        let part = self.attached(part, change.assignments.iter().map(|assignment| &assignment.value))?;
        self.pending = before;
        let target = self.row_target(change.target, change.table)?;
        let estimate = changed(&part, &change.returning);
        let operator = if update {
            Operator::Update(Box::new(Update {
                input: part.plan,
                target,
                second_look,
                assignments: change.assignments,
                new_row: change.new_row,
                checks: change.checks,
                returned: Vec::new(),
            }))
        } else {
            Operator::Delete(Box::new(Delete { input: part.plan, target, second_look }))
        };
        let tag = if update { QueryTag::Update } else { QueryTag::Delete };
        self.returned(Plan::new(operator, estimate), tables, change.returning, tag)
    }

    fn returned(
        &mut self,
        plan: Plan,
        tables: Vec<CommonTable>,
        returning: Returning,
        tag: QueryTag,
    ) -> Result<Planned, SqlError> {
        let written = written(&plan);
        let before = self.with_sublinks(returning.sublinks, &written)?;
        let part = self.attach_bare(Part::unordered(plan), &returning.targets, |_| true);
        let part = self.projected(part, returning.targets)?;
        self.pending = before;
        Ok(Planned { root: with_tables(tables, part.plan), tag, columns: returning.output })
    }

    /// The row that a node locks or changes.
    pub(super) fn row_target(&self, source: SourceId, table: Arc<Table>) -> Result<RowTarget, SqlError> {
        let registers = &self.binder.sources[source];
        let identity =
            registers.identity.ok_or_else(|| SqlError::internal("a locked row without identity"))?;
        let columns: Vec<ColumnRead> = registers
            .columns
            .iter()
            .enumerate()
            .filter_map(|(column, register)| {
                register.map(|register| ColumnRead { column: column as u32, register })
            })
            .collect();
        Ok(RowTarget { table, identity, columns })
    }
}

/// The estimate of a change of a part's rows. It gives rows only to RETURNING.
fn changed(input: &Part, returning: &Returning) -> Estimate {
    let rows = if returning.output.is_empty() { 0.0 } else { input.rows() };
    Estimate { rows, ..input.plan.estimate }
}
