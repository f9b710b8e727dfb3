//! The average size of the rows that each node gives.
//!
//! A row has the columns that a node above reads, or the client. What must hold: a width only
//! informs. No plan depends on it.

use runtime::hash::HashMap;

use super::{Result, SHOWING};
use crate::plan::walk::{self, children};
use crate::plan::{Operator, Plan, Reg, Statement};
use crate::planner::{free, node_reads, written};
use crate::registers::Registers;
use catalog::Catalog;
use expressions::expr::Expr;
use values::types::{Type, oid, registry};
use values::work;

/// The width of each node's rows in bytes, by the node's number.
pub(super) fn widths(statement: &Statement, root: &Plan, catalog: &Catalog) -> Result<HashMap<u32, u64>> {
    let mut columns = HashMap::default();
    for (register, column) in statement.output.iter().zip(statement.columns.iter()) {
        columns.insert(*register, average(column.type_));
    }
    collect(root, catalog, &mut columns)?;
    let mut widths = Widths { columns, nodes: HashMap::default() };
    widths.node(root, &statement.output.iter().copied().collect())?;
    Ok(widths.nodes)
}

/// Finds the width of each register: from statistics for a column, else by the type with which
/// expressions read it.
fn collect(plan: &Plan, catalog: &Catalog, columns: &mut HashMap<Reg, f64>) -> Result<()> {
    work::tick(SHOWING)?;
    walk::exprs(plan, &mut |expr| {
        expr.walk(&mut |part| {
            if let Expr::Column { register, type_ } = part {
                columns.entry(*register).or_insert_with(|| average(*type_));
            }
        });
    });
    if let Operator::Scan(scan) = &plan.operator {
        let statistics = catalog.statistics(scan.table.oid);
        for read in &scan.columns {
            let column = read.column as usize;
            let known = statistics.and_then(|statistics| statistics.columns.get(column));
            let width = match known.filter(|known| known.width > 0.0) {
                Some(known) => known.width,
                None => average(scan.table.columns[column].type_),
            };
            columns.insert(read.register, width);
        }
    }
    let mut result = Ok(());
    children(plan, &mut |child| {
        if result.is_ok() {
            result = collect(child, catalog, columns);
        }
    });
    result?;
    if let Operator::Project { expressions, .. } = &plan.operator {
        for (expr, register) in expressions {
            let known = match expr {
                Expr::Column { register, .. } => columns.get(register).copied(),
                _ => None,
            };
            columns.insert(*register, known.unwrap_or_else(|| average(expr.type_())));
        }
    }
    Ok(())
}

struct Widths {
    columns: HashMap<Reg, f64>,
    nodes: HashMap<u32, u64>,
}

impl Widths {
    /// Notes the width of a node's rows and of those below. `read`: the registers read above.
    fn node(&mut self, plan: &Plan, read: &Registers) -> Result<()> {
        let own = written(plan);
        work::tick(SHOWING + own.len() + read.len())?;
        let width = |register: &Reg| self.columns.get(register).copied().unwrap_or(0.0);
        let width: f64 = own.iter().filter(|register| read.contains(register)).map(width).sum();
        self.nodes.insert(plan.node, width.round() as u64);
        let mut below = match &plan.operator {
            // These give new rows, so nothing else below them is read above.
            Operator::Aggregate { .. } | Operator::SetOperation { .. } => Registers::default(),
            _ => read.clone(),
        };
        node_reads(plan, &mut below);
        let mut inputs = Vec::new();
        children(plan, &mut |child| inputs.push(child));
        // The right side of a join, and a subquery, may read what the left side fills.
        for other in inputs.iter().skip(1) {
            below.extend(free(other));
        }
        inputs.into_iter().try_for_each(|child| self.node(child, &below))
    }
}

/// PostgreSQL's average width of a type's values, without statistics.
fn average(type_: Type) -> f64 {
    let known = registry::info(type_.oid);
    match known.map_or(-1, |info| info.length) {
        length @ 0.. => f64::from(length),
        _ => limited(type_).map_or(32.0, |most| match type_.oid {
            oid::BPCHAR => most,
            _ if most <= 32.0 => most,
            _ => 32.0 + (most.min(1000.0) - 32.0) / 2.0,
        }),
    }
}

/// PostgreSQL's bound on the bytes of a type's values, by the type's modifier.
fn limited(type_: Type) -> Option<f64> {
    let modifier = type_.modifier.checked_sub(4).filter(|modifier| *modifier >= 0)?;
    match type_.oid {
        // A character of UTF-8 has 4 bytes at most, the length before it also has 4.
        oid::BPCHAR | oid::VARCHAR => Some(f64::from(modifier) * 4.0 + 4.0),
        // Digits in groups of four, of 2 bytes each, behind 8 bytes.
        oid::NUMERIC => Some(f64::from(((modifier >> 16) + 6) / 4) * 2.0 + 8.0),
        _ => None,
    }
}
