//! The registers that a plan writes for the nodes above it.
//!
//! What must hold:
//!
//! 1. Each kind of node is listed in both functions: with the registers that it writes itself, and
//!    with the inputs whose registers it passes on.
//! 2. A node that starts new rows passes nothing on, such as a grouping or a set operation. A
//!    reader above it would find values of another row.
//! 3. A node that keeps rows counts as writing all registers below it. [`super::keep`] then makes
//!    it keep those that are read.

use crate::plan::{Plan, Reg, SubqueryKind};
use crate::registers::Registers;

/// The registers that a plan writes for the nodes above it. A node that keeps rows counts as
/// writing all registers written below it. Later, [`super::keep`] makes it keep each one that is
/// read above it.
pub(super) fn written(plan: &Plan) -> Registers {
    let mut registers = Registers::default();
    add(plan, &mut registers);
    registers
}

fn add(plan: &Plan, registers: &mut Registers) {
    add_own(plan, registers);
    match plan {
        Plan::Filter { input, .. }
        | Plan::Limit { input, .. }
        | Plan::Distinct { input, .. }
        | Plan::Sort { input, .. }
        | Plan::LockRows { input, .. }
        | Plan::Project { input, .. }
        | Plan::Window { input, .. } => add(input, registers),
        Plan::NestedLoop { left, right, .. } | Plan::HashJoin { left, right, .. } => {
            add(left, registers);
            add(right, registers);
        }
        Plan::Subquery { input, subquery, kind, .. } => {
            add(input, registers);
            if let SubqueryKind::Quantified { .. } = kind {
                add(subquery, registers);
            }
        }
        Plan::With { body, .. } => add(body, registers),
        Plan::Insert(insert) => add(&insert.input, registers),
        Plan::Update(update) => add(&update.input, registers),
        Plan::Delete(delete) => add(&delete.input, registers),
        Plan::OneRow
        | Plan::Nothing
        | Plan::Values { .. }
        | Plan::Scan(_)
        | Plan::Virtual { .. }
        | Plan::Function { .. }
        | Plan::Aggregate { .. }
        | Plan::SetOperation { .. }
        | Plan::Joined { .. }
        | Plan::CommonScan { .. } => {}
    }
}

/// Adds the registers that a node itself writes, without those of the nodes below it.
pub(super) fn add_own(plan: &Plan, registers: &mut Registers) {
    match plan {
        Plan::OneRow
        | Plan::Nothing
        | Plan::Filter { .. }
        | Plan::Limit { .. }
        | Plan::Distinct { .. }
        | Plan::Sort { .. }
        | Plan::LockRows { .. }
        | Plan::NestedLoop { .. }
        | Plan::HashJoin { .. }
        | Plan::With { .. }
        | Plan::Delete(_) => {}
        Plan::Values { output, .. } => registers.extend(output),
        Plan::Scan(scan) => {
            registers.extend(scan.columns.iter().map(|column| column.register));
            if let Some(identity) = scan.identity {
                registers.extend([identity.key, identity.stamp, identity.row]);
            }
        }
        Plan::Virtual { columns, .. } => registers.extend(columns.iter().map(|column| column.register)),
        Plan::Function { calls, ordinality } => {
            registers.extend(calls.iter().flat_map(|call| &call.output));
            registers.extend(ordinality);
        }
        Plan::Project { expressions, .. } => {
            registers.extend(expressions.iter().map(|(_, register)| register));
        }
        Plan::Subquery { output, guard, .. } => {
            registers.extend(guard.iter().flat_map(|guard| &guard.flags).map(|(_, flag)| flag));
            registers.insert(*output);
        }
        Plan::Aggregate { groups, calls, .. } => {
            registers.extend(groups.iter().map(|(_, register)| register));
            registers.extend(calls.iter().map(|call| call.output));
        }
        Plan::Window { calls, .. } => registers.extend(calls.iter().map(|call| call.output)),
        Plan::SetOperation { output, .. } => registers.extend(output),
        Plan::Joined { registers: joined, .. } => registers.extend(joined),
        Plan::CommonScan { output, .. } => registers.extend(output.iter().flatten()),
        Plan::Insert(insert) => {
            registers.extend(row_registers(insert.new_row, insert.table.columns.len()));
        }
        Plan::Update(update) => {
            registers.extend(row_registers(update.new_row, update.target.table.columns.len()));
        }
    }
}

fn row_registers(first: Reg, columns: usize) -> impl Iterator<Item = Reg> {
    (first..).take(columns)
}
