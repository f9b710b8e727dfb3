//! When a subquery is wanted: CASE, COALESCE, AND and OR do not evaluate all their parts, and what is in a part that is
//! not reached must not run, for it may fail.
//!
//! A subquery's result is computed into a register before the expression that reads it is evaluated. The guard says for
//! which rows that evaluation gets as far as the register.

use crate::expr::Expr;
use crate::functions::Volatility;
use crate::plan::Reg;
use crate::planner::registers;

/// The condition under which one of the expressions reads the register; None: always, or it can't be told beforehand.
pub(super) fn of(exprs: &[&Expr], register: Reg) -> Option<Expr> {
    let mut ways = Vec::new();
    for expr in exprs.iter().filter(|expr| registers::reads(expr).contains(&register)) {
        collect(expr, register, &mut Vec::new(), &mut ways)?;
    }
    let usable = |guard: &Expr| {
        guard.volatility() < Volatility::Volatile && !registers::reads(guard).contains(&register)
    };
    let mut ways: Vec<Expr> = ways.into_iter().map(Expr::and).collect();
    let guard = if ways.len() > 1 { Expr::Or(ways) } else { ways.pop()? };
    usable(&guard).then_some(guard)
}

/// Notes the conditions on the way to each place that reads the register; None when there are none on one of them.
fn collect(expr: &Expr, register: Reg, way: &mut Vec<Expr>, ways: &mut Vec<Vec<Expr>>) -> Option<()> {
    if !registers::reads(expr).contains(&register) {
        return Some(());
    }
    let entered = way.len();
    match expr {
        Expr::Column { .. } => {
            if way.is_empty() {
                return None;
            }
            ways.push(way.clone());
        }
        Expr::And(parts) => in_turn(parts, register, way, ways, |part| is_not(part, false))?,
        Expr::Or(parts) => in_turn(parts, register, way, ways, |part| is_not(part, true))?,
        Expr::Coalesce(parts, _) => in_turn(parts, register, way, ways, |part| Expr::NullTest {
            input: Box::new(part.clone()),
            negated: false,
        })?,
        Expr::Case(case) => {
            for (condition, result) in &case.branches {
                collect(condition, register, way, ways)?;
                way.push(condition.clone());
                collect(result, register, way, ways)?;
                way.pop();
                way.push(is_not(condition, true));
            }
            collect(&case.otherwise, register, way, ways)?;
        }
        _ => {
            let mut told = Some(());
            expr.for_each_child(&mut |child| {
                if told.is_some() {
                    told = collect(child, register, way, ways);
                }
            });
            told?;
        }
    }
    way.truncate(entered);
    Some(())
}

/// Parts of which each is reached when those before it do not decide.
fn in_turn(
    parts: &[Expr],
    register: Reg,
    way: &mut Vec<Expr>,
    ways: &mut Vec<Vec<Expr>>,
    undecided: impl Fn(&Expr) -> Expr,
) -> Option<()> {
    for part in parts {
        collect(part, register, way, ways)?;
        way.push(undecided(part));
    }
    Some(())
}

fn is_not(part: &Expr, value: bool) -> Expr {
    Expr::BoolTest { input: Box::new(part.clone()), expected: Some(value), negated: true }
}
