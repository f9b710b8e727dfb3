//! Conditions that OR hides: factors of all its arms, and what it says about one source alone.
//!
//! `(a AND b) OR (a AND c)` becomes `a AND (b OR c)`. From `(t.a = 1 AND u.b = 2) OR (t.a = 3 AND
//! u.b = 4)` follow `t.a = 1 OR t.a = 3` and `u.b = 2 OR u.b = 4`. They stand beside the OR. Both
//! kinds can then bound keys, and factors can join sources.
//!
//! What must hold:
//!
//! 1. The conditions are true for the same rows as before.
//! 2. No error comes that did not come before. A part is evaluated earlier only if it cannot fail,
//!    or if all parts before it in the first arm are evaluated before it too.
//! 3. No volatile part moves.
//! 4. The work of comparing parts ends with the first arm that shares none of them.

use std::collections::BTreeSet;

use runtime::hash::HashMap;

use super::safe::is_safe;
use crate::bind::SourceRegisters;
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, SourceId};
use crate::plan::Reg;
use crate::registers;
use expressions::expr::Expr;
use expressions::function::Volatility;

/// The most arms of an OR that is searched for conditions on one source.
const MOST: usize = 1000;
/// Work of splitting an arm into its parts, in ns: some hundred nanoseconds.
const SPLITTING: usize = 200;
/// Work of printing one byte, in ns: about ten nanoseconds.
const PRINTING: usize = 10;

/// The source of each register that holds a column.
type Columns = HashMap<Reg, SourceId>;

/// Takes the factors out of a statement's conditions, and adds those on one source.
pub(super) fn statement(bound: &mut Bound, sources: &[SourceRegisters]) {
    let mut columns: Option<Columns> = None;
    walk::statement(bound, &mut |part| {
        let Part::Conditions(conditions) = part else { return };
        if !conditions.iter().any(|condition| matches!(condition, Expr::Or(_))) {
            return;
        }
        let columns = columns.get_or_insert_with(|| columns_of(sources));
        let factors = std::mem::take(conditions).into_iter().flat_map(|each| factored(each, columns));
        *conditions = factors.collect();
        let on_sources: Vec<Expr> = conditions.iter().flat_map(|each| of_sources(each, columns)).collect();
        conditions.extend(on_sources);
    });
}

fn columns_of(sources: &[SourceRegisters]) -> Columns {
    let each = sources.iter().enumerate();
    each.flat_map(|(id, source)| source.columns.iter().flatten().map(move |register| (*register, id)))
        .collect()
}

/// The parts of a condition that must all hold.
fn parts_of(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::And(parts) => parts.into_iter().flat_map(parts_of).collect(),
        other => vec![other],
    }
}

/// The conditions of which one must hold.
fn arms_of(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::Or(arms) => arms.into_iter().flat_map(arms_of).collect(),
        other => vec![other],
    }
}

/// Any of these lists of parts.
fn any_of(arms: Vec<Vec<Expr>>) -> Expr {
    Expr::Or(arms.into_iter().map(Expr::and).collect())
}

/// The parts of a condition: those common to all its arms, and the OR of the others.
fn factored(condition: Expr, columns: &Columns) -> Vec<Expr> {
    if !matches!(condition, Expr::Or(_)) {
        return vec![condition];
    }
    let split = |arm: Expr| {
        runtime::work::yield_after(SPLITTING);
        parts_of(arm)
    };
    let mut arms: Vec<Vec<Expr>> = arms_of(condition).into_iter().map(split).collect();
    let common = common(&arms, columns);
    if common.is_empty() {
        return vec![any_of(arms)];
    }
    let (mut all, mut prints) = (Vec::with_capacity(common.len() + 1), Vec::with_capacity(common.len()));
    for at in common {
        all.push(arms[0][at].clone());
        prints.push(print(&arms[0][at]));
    }
    for arm in &mut arms {
        arm.retain(|part| !prints.contains(&print(part)));
    }
    // An arm without further parts is true.
    if arms.iter().all(|arm| !arm.is_empty()) {
        all.push(any_of(arms));
    }
    all
}

/// The places in the first arm of the parts that all arms have and that may come first.
fn common(arms: &[Vec<Expr>], columns: &Columns) -> Vec<usize> {
    let Some((first, others)) = arms.split_first() else { return Vec::new() };
    let places = (0..first.len()).filter(|&at| first[at].volatility() < Volatility::Volatile);
    let mut shared: Vec<(usize, String)> = places.map(|at| (at, print(&first[at]))).collect();
    for arm in others {
        if shared.is_empty() {
            break;
        }
        let prints: Vec<String> = arm.iter().map(print).collect();
        shared.retain(|(_, part)| prints.contains(part));
    }
    let mut leading = 0;
    let may_lead = |&(at, _): &(usize, String)| {
        let leads = at == leading;
        leading += usize::from(leads);
        leads || is_safe(&first[at], &|register| columns.contains_key(&register))
    };
    shared.into_iter().filter(may_lead).map(|(at, _)| at).collect()
}

/// A text that tells expressions apart.
fn print(expr: &Expr) -> String {
    let print = format!("{expr:?}");
    runtime::work::yield_after(print.len() * PRINTING);
    print
}

/// The conditions on one source each that follow from an OR over several.
fn of_sources(condition: &Expr, columns: &Columns) -> Vec<Expr> {
    let Expr::Or(arms) = condition else { return Vec::new() };
    if arms.len() > MOST {
        return Vec::new();
    }
    let source = |register: &Reg| columns.get(register).copied();
    let reads: BTreeSet<Option<SourceId>> = registers::reads(condition).iter().map(source).collect();
    if reads.len() < 2 {
        return Vec::new();
    }
    let conditions = reads.into_iter().flatten().map(|wanted| {
        let is_own = |part: &Expr| {
            let reads = registers::reads(part);
            !reads.is_empty() && reads.iter().all(|register| source(register) == Some(wanted))
        };
        let arm = |arm: &Expr| {
            runtime::work::yield_after(SPLITTING);
            let mut parts = parts_of(arm.clone());
            parts.retain(|part| is_own(part) && is_safe(part, &|register| columns.contains_key(&register)));
            (!parts.is_empty()).then_some(parts)
        };
        arms.iter().map(arm).collect::<Option<Vec<_>>>().map(any_of)
    });
    conditions.flatten().collect()
}

#[cfg(test)]
mod tests {
    use bumpalo::Bump;

    use super::*;
    use expressions::context::EvalContext;
    use expressions::functions::operator;
    use values::environment::NoSession;
    use values::types::{Datum, Type, Value};

    /// Registers 0 and 1 are columns of one source, 2 and 3 of another; 4 is no column.
    fn columns() -> Columns {
        (0..4).map(|register| (register, register as usize / 2)).collect()
    }

    fn bool(register: Reg) -> Expr {
        Expr::column(register, Type::BOOL)
    }

    /// Whether all conditions are true for these registers.
    fn holds(conditions: &[Expr], registers: &[Datum<'_>]) -> bool {
        let (arena, session) = (Bump::new(), NoSession::default());
        let mut context = EvalContext::new(registers, &[], &arena, &session);
        conditions.iter().all(|condition| matches!(condition.eval(&mut context), Ok(Datum::Bool(true))))
    }

    /// An OR of arms; the bits of an arm are the registers that it wants.
    fn either(arms: &[usize]) -> Expr {
        let arm = |bits: &usize| {
            let parts = (0..5).filter(|register| bits >> register & 1 == 1);
            Expr::and(parts.map(bool).collect())
        };
        Expr::Or(arms.iter().map(arm).collect())
    }

    #[test]
    fn conditions_without_factors_hold_for_the_same_rows() {
        let rows: Vec<[Datum<'_>; 5]> = (0..3_usize.pow(5))
            .map(|row| {
                let value = |register: u32| {
                    [Datum::Null, Datum::Bool(false), Datum::Bool(true)][row / 3_usize.pow(register) % 3]
                };
                [0, 1, 2, 3, 4].map(value)
            })
            .collect();
        let columns = columns();
        for number in 0..31_usize.pow(3) {
            let arms = [number % 31 + 1, number / 31 % 31 + 1, number / 31 / 31 + 1];
            let condition = either(&arms);
            let factors = factored(condition.clone(), &columns);
            let implied: Vec<Expr> = factors.iter().flat_map(|factor| of_sources(factor, &columns)).collect();
            let all: Vec<Expr> = factors.iter().chain(&implied).cloned().collect();
            let common = arms[0] & arms[1] & arms[2];
            assert!(factors.len() >= common.count_ones() as usize);
            for row in rows.iter().skip(number % 7).step_by(7) {
                let expected = holds(std::slice::from_ref(&condition), row);
                assert_eq!(holds(&all, row), expected, "{arms:?} {row:?}");
                assert!(!expected || holds(&implied, row), "{arms:?} {row:?}");
            }
        }
    }

    #[test]
    fn an_or_over_two_sources_gives_a_condition_on_each() {
        let columns = columns();
        let shown = |conditions: &[Expr]| {
            let mut reads: Vec<Vec<Reg>> = conditions
                .iter()
                .map(|condition| {
                    let mut read: Vec<Reg> = registers::reads(condition).into_iter().collect();
                    read.sort_unstable();
                    read
                })
                .collect();
            reads.sort();
            reads
        };
        assert_eq!(shown(&of_sources(&either(&[0b00101, 0b01010]), &columns)), [vec![0, 1], vec![2, 3]]);
        // One arm says nothing about the second source.
        assert_eq!(shown(&of_sources(&either(&[0b00101, 0b10010]), &columns)), [vec![0, 1]]);
        assert!(of_sources(&either(&[0b00001, 0b00010]), &columns).is_empty());
    }

    #[test]
    fn a_part_that_may_fail_moves_only_behind_the_parts_before_it() {
        let columns = columns();
        let int = |value: i32| Expr::constant(Value::Int4(value), Type::INT4);
        let divided = operator("/", Some(int(10)), Expr::column(0, Type::INT4)).unwrap();
        let fails = operator(">", Some(divided), int(1)).unwrap();
        let arm = |parts: &[&Expr]| Expr::And(parts.iter().map(|&part| part.clone()).collect());
        let count = |first: Expr, second: Expr| factored(Expr::Or(vec![first, second]), &columns).len();
        let (a, b, c) = (bool(1), bool(2), bool(3));
        assert_eq!(count(arm(&[&a, &fails]), arm(&[&b, &fails])), 1);
        assert_eq!(count(arm(&[&fails, &a]), arm(&[&b, &fails])), 2);
        assert_eq!(count(arm(&[&a, &fails, &b]), arm(&[&a, &c, &fails])), 3);
        // The result of a subquery may fail too.
        assert_eq!(count(arm(&[&a, &bool(4)]), arm(&[&b, &bool(4)])), 1);
        let or = Expr::Or(vec![arm(&[&a, &b, &fails]), arm(&[&a, &b, &fails])]);
        assert_eq!(factored(or, &columns).len(), 3);
    }
}
