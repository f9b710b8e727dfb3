//! Which registers a plan writes: what a node that keeps whole rows must keep.

use super::{Plan, Reg, SubqueryKind};

impl Plan {
    /// Appends every register this plan writes for the nodes above it.
    pub fn written(&self, registers: &mut Vec<Reg>) {
        match self {
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
            | Plan::LockRows { input, .. } => input.written(registers),
            Plan::Project { input, expressions } => {
                input.written(registers);
                registers.extend(expressions.iter().map(|(_, register)| register));
            }
            Plan::NestedLoop { left, right, .. } | Plan::HashJoin { left, right, .. } => {
                left.written(registers);
                right.written(registers);
            }
            Plan::Subquery { input, subquery, kind, output, .. } => {
                input.written(registers);
                if let SubqueryKind::Quantified { .. } = kind {
                    subquery.written(registers);
                }
                registers.push(*output);
            }
            Plan::Aggregate { groups, calls, .. } => {
                registers.extend(groups.iter().map(|(_, register)| register));
                registers.extend(calls.iter().map(|call| call.output));
            }
            Plan::Window { calls, keep, .. } => {
                registers.extend(keep);
                registers.extend(calls.iter().map(|call| call.output));
            }
            Plan::Sort { keep, .. } => registers.extend(keep),
            Plan::SetOperation { output, .. } => registers.extend(output),
            Plan::With { body, .. } => body.written(registers),
            Plan::Joined { registers: joined, .. } => registers.extend(joined),
            Plan::CommonScan { output, .. } => registers.extend(output.iter().flatten()),
            Plan::Insert(insert) => {
                insert.input.written(registers);
                registers.extend(row_registers(insert.new_row, insert.table.columns.len()));
            }
            Plan::Update(update) => {
                update.input.written(registers);
                registers.extend(row_registers(update.new_row, update.target.table.columns.len()));
            }
            Plan::Delete(delete) => delete.input.written(registers),
            Plan::Append(inputs) => {
                for input in inputs {
                    input.written(registers);
                }
            }
        }
    }
}

fn row_registers(first: Reg, columns: usize) -> impl Iterator<Item = Reg> {
    (first..).take(columns)
}
