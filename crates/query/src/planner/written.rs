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

use crate::plan::{Operator, Plan, Reg, SubqueryKind};
use crate::registers::Registers;

/// The registers that a plan writes for the nodes above it. A node that keeps rows counts as
/// writing all registers written below it. Later, [`super::keep`] makes it keep each one that is
/// read above it.
pub(crate) fn written(plan: &Plan) -> Registers {
    let mut registers = Registers::default();
    add(plan, &mut registers);
    registers
}

fn add(plan: &Plan, registers: &mut Registers) {
    add_own(plan, registers);
    match &plan.operator {
        Operator::Filter { input, .. }
        | Operator::Limit { input, .. }
        | Operator::Distinct { input, .. }
        | Operator::Sort { input, .. }
        | Operator::LockRows { input, .. }
        | Operator::Project { input, .. }
        | Operator::Window { input, .. } => add(input, registers),
        Operator::NestedLoop { left, right, .. } | Operator::EquiJoin { left, right, .. } => {
            add(left, registers);
            add(right, registers);
        }
        Operator::Subquery { input, subquery, kind, .. } => {
            add(input, registers);
            if let SubqueryKind::Quantified { .. } = kind {
                add(subquery, registers);
            }
        }
        Operator::With { body, .. } => add(body, registers),
        Operator::Insert(insert) => add(&insert.input, registers),
        Operator::Update(update) => add(&update.input, registers),
        Operator::Delete(delete) => add(&delete.input, registers),
        Operator::OneRow
        | Operator::Nothing
        | Operator::Values { .. }
        | Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Function { .. }
        | Operator::Aggregate { .. }
        | Operator::SetOperation { .. }
        | Operator::Joined { .. }
        | Operator::CommonScan { .. } => {}
    }
}

/// Adds the registers that a node itself writes, without those of the nodes below it.
pub(super) fn add_own(plan: &Plan, registers: &mut Registers) {
    match &plan.operator {
        Operator::OneRow
        | Operator::Nothing
        | Operator::Filter { .. }
        | Operator::Limit { .. }
        | Operator::Distinct { .. }
        | Operator::Sort { .. }
        | Operator::LockRows { .. }
        | Operator::NestedLoop { .. }
        | Operator::EquiJoin { .. }
        | Operator::With { .. }
        | Operator::Delete(_) => {}
        Operator::Values { output, .. } => registers.extend(output),
        Operator::Scan(scan) => {
            registers.extend(scan.columns.iter().map(|column| column.register));
            if let Some(identity) = scan.identity {
                registers.extend([identity.key, identity.stamp, identity.row]);
            }
        }
        Operator::Virtual { columns, .. } => registers.extend(columns.iter().map(|column| column.register)),
        Operator::Function { calls, ordinality } => {
            registers.extend(calls.iter().flat_map(|call| &call.output));
            registers.extend(ordinality);
        }
        Operator::Project { expressions, .. } => {
            registers.extend(expressions.iter().map(|(_, register)| register));
        }
        Operator::Subquery { output, guard, .. } => {
            registers.extend(guard.iter().flat_map(|guard| &guard.flags).map(|(_, flag)| flag));
            registers.insert(*output);
        }
        Operator::Aggregate { groups, calls, .. } => {
            registers.extend(groups.iter().map(|(_, register)| register));
            registers.extend(calls.iter().map(|call| call.output));
        }
        Operator::Window { calls, .. } => registers.extend(calls.iter().map(|call| call.output)),
        Operator::SetOperation { output, .. } => registers.extend(output),
        Operator::Joined { registers: joined, .. } => registers.extend(joined),
        Operator::CommonScan { output, .. } => registers.extend(output.iter().flatten()),
        Operator::Insert(insert) => {
            registers.extend(row_registers(insert.new_row, insert.table.columns.len()));
        }
        Operator::Update(update) => {
            registers.extend(row_registers(update.new_row, update.target.table.columns.len()));
        }
    }
}

fn row_registers(first: Reg, columns: usize) -> impl Iterator<Item = Reg> {
    (first..).take(columns)
}
