//! Statements that change rows, and the rows that nodes change or lock.

use std::sync::Arc;

use super::join::{Part, Wanted};
use super::query::{Planned, Planner, with_tables};
use super::registers::{self, Registers};
use crate::bind::{Change, Insert, Returning, SourceId};
use crate::catalog::Table;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::functions;
use crate::plan::{
    ColumnRead, CommonTable, Delete, OnConflict, Plan, QueryTag, RowIdentity, RowTarget, Update,
};

impl Planner<'_, '_> {
    pub(super) fn insert(&mut self, insert: Insert) -> Result<Planned, SqlError> {
        let none = Registers::new();
        let tables = self.common_tables(insert.tables, &none)?;
        let before = self.with_sublinks(insert.sublinks, &none)?;
        let input = match insert.input {
            Some(query) => {
                let links = std::mem::take(&mut self.pending);
                let part = self.query(query, &none)?;
                self.pending = links;
                part
            }
            None => Part { plan: Plan::OneRow, rows: 1.0, cost: 0.0, ordered: false },
        };
        let input = self.attached(input, insert.values.iter());
        self.pending = before;
        let conflict =
            insert.conflict.map(|conflict| OnConflict { arbiter: conflict.arbiter, update: conflict.update });
        let plan = Plan::Insert(Box::new(crate::plan::Insert {
            input: input.plan,
            table: insert.table,
            values: insert.values,
            new_row: insert.new_row,
            checks: insert.checks,
            conflict,
            returned: Vec::new(),
        }));
        self.returned(plan, tables, insert.returning, QueryTag::Insert)
    }

    pub(super) fn change(&mut self, change: Change, update: bool) -> Result<Planned, SqlError> {
        let none = Registers::new();
        let tables = self.common_tables(change.tables, &none)?;
        let from = change.select.from.ok_or_else(|| SqlError::internal("a change of no table"))?;
        let around = self.item_writes(&from);
        let before = self.with_sublinks(change.select.sublinks, &around)?;
        let part = self.join_tree(from, change.select.conditions, &none, Wanted::default())?;
        let part = self.attached(part, change.assignments.iter().map(|assignment| &assignment.value));
        self.pending = before;
        let target = self.row_target(change.target, &part.plan)?;
        let plan = if update {
            Plan::Update(Box::new(Update {
                input: part.plan,
                target,
                assignments: change.assignments,
                new_row: change.new_row,
                checks: change.checks,
                returned: Vec::new(),
            }))
        } else {
            Plan::Delete(Box::new(Delete { input: part.plan, target }))
        };
        let tag = if update { QueryTag::Update } else { QueryTag::Delete };
        self.returned(plan, tables, change.returning, tag)
    }

    fn returned(
        &mut self,
        plan: Plan,
        tables: Vec<CommonTable>,
        returning: Returning,
        tag: QueryTag,
    ) -> Result<Planned, SqlError> {
        let written = registers::written(&plan);
        let before = self.with_sublinks(returning.sublinks, &written)?;
        let part = Part { plan, rows: 1.0, cost: 0.0, ordered: false };
        let part = self.attach_bare(part, &returning.targets);
        let part = self.projected(part, returning.targets);
        self.pending = before;
        Ok(Planned { root: with_tables(tables, part.plan), tag, columns: returning.output })
    }

    /// The row a node locks or changes, found among the scans below it, with every condition on it to check again.
    pub(super) fn row_target(&self, source: SourceId, below: &Plan) -> Result<RowTarget, SqlError> {
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
        let own: Registers = columns.iter().map(|column| column.register).collect();
        let mut conditions = Vec::new();
        let table = find_scan(below, identity, &own, &mut conditions)
            .ok_or_else(|| SqlError::internal("a locked row without a scan"))?;
        let recheck = (!conditions.is_empty()).then(|| Expr::and(conditions));
        Ok(RowTarget { table, identity, columns, recheck })
    }
}

/// The scan with this identity, and the conditions on the way to it that read its columns.
fn find_scan(
    plan: &Plan,
    identity: RowIdentity,
    own: &Registers,
    conditions: &mut Vec<Expr>,
) -> Option<Arc<Table>> {
    let mut keep = |expr: &Expr| {
        if !registers::reads(expr).is_disjoint(own) {
            conditions.push(expr.clone());
        }
    };
    match plan {
        Plan::Scan(scan) if scan.identity == Some(identity) => {
            scan.filter.iter().for_each(&mut keep);
            super::access::path_conditions(scan, &mut keep);
            return Some(Arc::clone(&scan.table));
        }
        Plan::Filter { condition, .. } => keep(condition),
        Plan::NestedLoop { condition, .. } | Plan::HashJoin { condition, .. } => {
            condition.iter().for_each(&mut keep);
            if let Plan::HashJoin { keys, .. } = plan {
                for (left, right) in keys {
                    if let Ok(equal) = functions::operator("=", Some(left.clone()), right.clone()) {
                        keep(&equal);
                    }
                }
            }
        }
        _ => {}
    }
    let mut found = None;
    registers::children(plan, &mut |child| {
        if found.is_none() {
            found = find_scan(child, identity, own, conditions);
        }
    });
    found
}
