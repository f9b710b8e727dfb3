//! The registers that row-keeping nodes of a plan must keep: those written below a node and read by
//! it or above it. Scans decode no other columns either. A condition that bounds a key reads none.
//!
//! What must hold: no such register is missing. A node above would read the value of another row.

use super::stable::is_stable_plan;
use super::written::written;
use crate::plan::walk::{self, children, set_sides};
use crate::plan::{EquiMethod, Match, Operator, Plan, Reg, RowTarget, SecondLook, SortKey, SubqueryKind};
use crate::registers::{Registers, kind_reads, of_expr};
use catalog::Table;
use expressions::function::Volatility;

/// The registers that a plan reads and does not write. If there are any, the plan is correlated.
pub(crate) fn free(plan: &Plan) -> Registers {
    let (mut read, mut own) = (Registers::default(), Registers::default());
    deep(plan, &mut read, &mut own);
    read.retain(|register| !own.contains(register));
    read
}

/// Adds all registers that a plan and its subplans read and write.
fn deep(plan: &Plan, read: &mut Registers, own: &mut Registers) {
    node_reads(plan, read);
    super::written::add_own(plan, own);
    children(plan, &mut |child| deep(child, read, own));
}

/// Adds the registers that a node itself reads.
pub(crate) fn node_reads(plan: &Plan, into: &mut Registers) {
    walk::exprs(plan, &mut |expr| of_expr(expr, into));
    match &plan.operator {
        Operator::SetOperation { first, stages, .. } => {
            set_sides(first, stages).for_each(|(_, registers)| into.extend(registers));
        }
        Operator::With { tables, .. } => {
            for table in tables {
                into.extend(&table.registers);
                if let Some(recursive) = &table.recursive {
                    into.extend(&recursive.registers);
                }
            }
        }
        Operator::LockRows { targets, second_look, .. } => {
            targets.iter().for_each(|lock| target_reads(&lock.target, into));
            second_look_reads(second_look.as_deref(), into);
        }
        Operator::Update(update) => {
            target_reads(&update.target, into);
            second_look_reads(update.second_look.as_deref(), into);
        }
        Operator::Delete(delete) => {
            target_reads(&delete.target, into);
            second_look_reads(delete.second_look.as_deref(), into);
        }
        Operator::Joined { present, .. } => into.extend(present),
        _ => {}
    }
}

fn target_reads(target: &RowTarget, into: &mut Registers) {
    into.extend([target.identity.key, target.identity.stamp, target.identity.row]);
    into.extend(target.columns.iter().map(|column| column.register));
}

/// Adds the registers of joined rows that the second look reads. The node must keep them.
fn second_look_reads(second_look: Option<&SecondLook>, into: &mut Registers) {
    let Some(second_look) = second_look else { return };
    for part in &second_look.matches {
        let (mut read, mut own) = (part_reads(part), Registers::default());
        deep(&part.subquery, &mut read, &mut own);
        into.extend(read.difference(&own));
    }
    second_look.plan.iter().for_each(|plan| joined_reads(plan, into));
}

/// The columns of a subquery's row, and of the rows around it, that matching with a newer version
/// reads.
fn part_reads(part: &Match) -> Registers {
    let mut read = Registers::default();
    part.comparison.iter().for_each(|expr| of_expr(expr, &mut read));
    part.plan.iter().for_each(|plan| joined_reads(plan, &mut read));
    read
}

/// Adds the registers of joined rows that a plan over them reads.
fn joined_reads(plan: &Plan, into: &mut Registers) {
    let (mut read, mut own, mut joined) = (Registers::default(), Registers::default(), Vec::new());
    deep(plan, &mut read, &mut own);
    joined_below(plan, &mut joined);
    into.extend(read.iter().filter(|register| !own.contains(register) || joined.contains(register)));
}

/// [`fill`] for the plan of a second look.
fn fill_second_look(second_look: Option<&mut SecondLook>, need: &Registers) {
    let Some(second_look) = second_look else { return };
    for part in &mut second_look.matches {
        let mut inner = part_reads(part);
        inner.extend(need);
        part.plan.iter_mut().for_each(|plan| fill(plan, inner.clone()));
        fill(&mut part.subquery, inner);
    }
    second_look.plan.iter_mut().for_each(|plan| fill(plan, need.clone()));
}

/// Adds the registers of the rows that a plan takes as already joined.
fn joined_below(plan: &Plan, into: &mut Vec<Reg>) {
    if let Operator::Joined { registers, .. } = &plan.operator {
        into.extend(registers);
    }
    children(plan, &mut |child| joined_below(child, into));
}

fn keys_read(keys: &[SortKey], into: &mut Registers) {
    keys.iter().for_each(|key| of_expr(&key.expr, into));
}

/// Fills the lists of kept registers: those written below a node and read by it or above it. Takes
/// the other columns from scans. `need` contains the registers read above the plan. Chains of
/// thousands of nodes pass this one set down.
pub(super) fn fill(plan: &mut Plan, mut need: Registers) {
    match &mut plan.operator {
        Operator::Distinct { input, keep, .. } => *keep = kept(input, &need),
        Operator::Insert(insert) => insert.returned = columns_read(&insert.table, insert.new_row, &need),
        Operator::Update(update) => {
            update.returned = columns_read(&update.target.table, update.new_row, &need);
        }
        _ => {}
    }
    node_reads(plan, &mut need);
    match &mut plan.operator {
        Operator::Sort { input, keep, .. } | Operator::Window { input, keep, .. } => {
            *keep = kept(input, &need);
            fill(input, need);
        }
        joined @ (Operator::EquiJoin { .. } | Operator::NestedLoop { .. }) => fill_join(joined, need),
        computed @ Operator::Subquery { .. } => fill_subquery(computed, need),
        Operator::Aggregate { input, groups, calls, keep, .. } => {
            let mut inner = Registers::default();
            groups.iter().for_each(|(expr, _)| of_expr(expr, &mut inner));
            for call in calls {
                call.arguments.iter().for_each(|expr| of_expr(expr, &mut inner));
                keys_read(&call.order, &mut inner);
                call.filter.iter().for_each(|expr| of_expr(expr, &mut inner));
            }
            *keep = kept(input, &inner);
            fill(input, inner);
        }
        Operator::SetOperation { first, stages, .. } => {
            let others = stages.iter_mut().flat_map(|stage| &mut stage.sides);
            for (side, registers) in std::iter::once(&mut **first).chain(others) {
                fill(side, registers.iter().copied().collect());
            }
        }
        Operator::With { tables, body } => {
            for table in tables {
                fill(&mut table.plan, table.registers.iter().copied().collect());
                if let Some(recursive) = &mut table.recursive {
                    fill(&mut recursive.plan, recursive.registers.iter().copied().collect());
                }
            }
            fill(body, need);
        }
        Operator::Filter { input, .. }
        | Operator::Project { input, .. }
        | Operator::Limit { input, .. }
        | Operator::Distinct { input, .. } => fill(input, need),
        Operator::LockRows { input, second_look, .. } => {
            fill_second_look(second_look.as_deref_mut(), &need);
            fill(input, need);
        }
        Operator::Insert(insert) => fill(&mut insert.input, need),
        Operator::Update(update) => {
            fill_second_look(update.second_look.as_deref_mut(), &need);
            fill(&mut update.input, need);
        }
        Operator::Delete(delete) => {
            fill_second_look(delete.second_look.as_deref_mut(), &need);
            fill(&mut delete.input, need);
        }
        // The second look at a row reads its columns.
        Operator::Scan(scan) if scan.identity.is_none() => {
            scan.columns.retain(|column| need.contains(&column.register));
            for register in scan.entry.iter_mut().flatten() {
                *register = register.filter(|register| need.contains(register));
            }
        }
        Operator::OneRow
        | Operator::Nothing
        | Operator::Values { .. }
        | Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Function { .. }
        | Operator::CommonScan { .. }
        | Operator::Joined { .. } => {}
    }
}

/// [`fill`] for a join.
fn fill_join(join: &mut Operator, mut need: Registers) {
    match join {
        Operator::EquiJoin { left, right, test, left_registers, right_registers, method, .. } => {
            if let Some(test) = test {
                fill(test, Registers::default());
                need.extend(free(test));
            }
            *left_registers = kept(left, &need);
            *right_registers = kept(right, &need);
            fill(right, need.clone());
            if let EquiMethod::Merge(order) = method {
                order.start = kept(left, &free(right));
                need.extend(&order.start);
            }
            fill(left, need);
        }
        Operator::NestedLoop { left, right, right_registers, memo, beyond, .. } => {
            *right_registers = kept(right, &need);
            fill(right, need.clone());
            let outer = free(right);
            if let Some(keys) = memo {
                *keys = kept(left, &outer);
            }
            need.extend(outer);
            if let Some(beyond) = beyond {
                fill(&mut beyond.join, need.clone());
                need.extend(free(&beyond.join));
            }
            fill(left, need);
        }
        _ => {}
    }
}

/// [`fill`] for a subquery's node.
fn fill_subquery(node: &mut Operator, mut need: Registers) {
    let Operator::Subquery { input, subquery, kind, keep, correlated, parameters, .. } = node else { return };
    let mut inner = Registers::default();
    kind_reads(kind, &mut inner);
    *keep = kept(subquery, &inner);
    if *correlated && is_stable(subquery, kind) {
        *parameters = parameters_of(subquery, &inner);
    }
    fill(subquery, inner);
    need.extend(free(subquery));
    fill(input, need);
}

/// Whether a subquery gives the same result for the same outer values.
fn is_stable(subquery: &Plan, kind: &SubqueryKind) -> bool {
    let mut stable = true;
    walk::kind_exprs(kind, &mut |expr| stable &= expr.volatility() < Volatility::Volatile);
    stable && is_stable_plan(subquery)
}

/// The registers of outer rows that a subquery or its result reads, given those that the result
/// reads.
fn parameters_of(subquery: &Plan, result: &Registers) -> Vec<Reg> {
    let (mut read, mut own) = (result.clone(), Registers::default());
    deep(subquery, &mut read, &mut own);
    let mut list: Vec<Reg> = read.difference(&own).copied().collect();
    list.sort_unstable();
    list
}

/// The columns of a row in consecutive registers that are needed.
fn columns_read(table: &Table, first: Reg, needed: &Registers) -> Vec<u32> {
    (0..table.columns.len() as u32).filter(|column| needed.contains(&(first + column))).collect()
}

fn kept(plan: &Plan, need: &Registers) -> Vec<Reg> {
    let mut list: Vec<Reg> = written(plan).into_iter().filter(|register| need.contains(register)).collect();
    list.sort_unstable();
    list
}
