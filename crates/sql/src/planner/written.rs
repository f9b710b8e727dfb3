//! Which registers a plan writes for the nodes above it.

use super::registers::Registers;
use crate::plan::{Plan, Reg, SubqueryKind};

/// The registers a plan writes for the nodes above it. A node that keeps rows writes all that is written below it: filling
/// the lists of kept registers has it keep each one that is read above it.
pub(super) fn written(plan: &Plan) -> Registers {
    let mut registers = Registers::new();
    add(plan, &mut registers);
    registers
}

fn add(plan: &Plan, registers: &mut Registers) {
    match plan {
        Plan::OneRow | Plan::Nothing => {}
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
        Plan::Filter { input, .. }
        | Plan::Limit { input, .. }
        | Plan::Distinct { input, .. }
        | Plan::Sort { input, .. }
        | Plan::LockRows { input, .. } => add(input, registers),
        Plan::Project { input, expressions } => {
            add(input, registers);
            registers.extend(expressions.iter().map(|(_, register)| register));
        }
        Plan::NestedLoop { left, right, .. } | Plan::HashJoin { left, right, .. } => {
            add(left, registers);
            add(right, registers);
        }
        Plan::Subquery { input, subquery, kind, output, guard, .. } => {
            add(input, registers);
            registers.extend(guard.iter().flat_map(|guard| &guard.flags).map(|(_, flag)| flag));
            if let SubqueryKind::Quantified { .. } = kind {
                add(subquery, registers);
            }
            registers.insert(*output);
        }
        Plan::Aggregate { groups, calls, .. } => {
            registers.extend(groups.iter().map(|(_, register)| register));
            registers.extend(calls.iter().map(|call| call.output));
        }
        Plan::Window { input, calls, .. } => {
            add(input, registers);
            registers.extend(calls.iter().map(|call| call.output));
        }
        Plan::SetOperation { output, .. } => registers.extend(output),
        Plan::With { body, .. } => add(body, registers),
        Plan::Joined { registers: joined, .. } => registers.extend(joined),
        Plan::CommonScan { output, .. } => registers.extend(output.iter().flatten()),
        Plan::Insert(insert) => {
            add(&insert.input, registers);
            registers.extend(row_registers(insert.new_row, insert.table.columns.len()));
        }
        Plan::Update(update) => {
            add(&update.input, registers);
            registers.extend(row_registers(update.new_row, update.target.table.columns.len()));
        }
        Plan::Delete(delete) => add(&delete.input, registers),
        Plan::Append(inputs) => {
            for input in inputs {
                add(input, registers);
            }
        }
    }
}

fn row_registers(first: Reg, columns: usize) -> impl Iterator<Item = Reg> {
    (first..).take(columns)
}
