//! The expressions of plans, and the folding of constant ones.

use bumpalo::Bump;

use crate::bind::Bound;
use crate::bind::walk;
use crate::plan::{
    AccessPath, Again, AggregateCall, Assignment, Check, KeyRange, Plan, Scan, SortKey, SubqueryKind,
};
use expressions::context::EvalContext;
use expressions::expr::{Expr, QuantifiedOver};
use expressions::function::Volatility;
use values::environment::NoSession;
use values::types::{Type, Value, oid};

/// Work of looking at one expression: about a tenth of a microsecond.
const FOLDING: usize = 100;

/// Replaces the constant parts of an expression by their values. What fails keeps failing when it runs.
pub(crate) fn expr(target: &mut Expr) {
    within(target, &[]);
}

/// The same for a part of an expression that shares operands.
fn within(target: &mut Expr, operands: &[Expr]) {
    if matches!(target, Expr::Const(..) | Expr::Column { .. } | Expr::Param { .. } | Expr::Operand { .. }) {
        return;
    }
    runtime::work::give_way(FOLDING);
    if target.type_().oid != oid::RECORD && target.is_constant() {
        let arena = Bump::new();
        let session = NoSession::default();
        let mut context = EvalContext::new(&[], &[], &arena, &session);
        // An expression that exceeds the budget is evaluated when the statement runs, with safe points.
        let folded = runtime::work::within(values::work::FOLDING_BUDGET, || {
            target.eval(&mut context).and_then(|value| value.to_value()).ok()
        });
        if let Some(value) = folded {
            *target = Expr::Const(value, target.type_());
        }
        return;
    }
    if let Expr::Shared(shared) = target {
        shared.operands.iter_mut().for_each(expr);
        simplify(target);
        match target {
            Expr::Shared(shared) => within(&mut shared.body, &shared.operands),
            _ => expr(target),
        }
        simplify(target);
        return;
    }
    target.for_each_child_mut(&mut |child| within(child, operands));
    if is_null(target, operands) && target.type_().oid != oid::RECORD {
        *target = Expr::null(target.type_());
    } else if let Some(value) = decided(target, operands) {
        *target = Expr::boolean(value);
    }
}

/// Takes out shared operands that have become constants, or that nothing reads any more.
fn simplify(target: &mut Expr) {
    if let Expr::Shared(_) = target
        && let Expr::Shared(shared) = std::mem::replace(target, Expr::null(Type::UNKNOWN))
    {
        *target = shared.simplified();
    }
}

/// Whether it looks for NULL in a list.
fn is_null_in_list(target: &Expr) -> bool {
    let Expr::Quantified(quantified) = target else { return false };
    let QuantifiedOver::List(list) = &quantified.right else { return false };
    matches!(quantified.left, Expr::Const(Value::Null, _))
        && quantified.function.strict
        && !list.iter().any(Expr::computes_ahead)
}

/// The value of an AND or OR that a constant decides whatever the row. Constant parts ahead of it keep failing.
fn decided(target: &Expr, operands: &[Expr]) -> Option<bool> {
    let (parts, value) = match target {
        Expr::And(parts) => (parts, false),
        Expr::Or(parts) => (parts, true),
        _ => return None,
    };
    let decides = |part: &Expr| matches!(part, Expr::Const(Value::Bool(found), _) if *found == value);
    let at = parts.iter().position(decides)?;
    let ahead = |part: &Expr| part.computes_ahead() || reads_early(part, operands);
    (!parts[..at].iter().any(ahead)).then_some(value)
}

/// Whether a NULL constant makes it NULL: the other arguments of a strict function, and the subqueries in them, are not
/// evaluated. An argument that PostgreSQL computes ahead keeps failing.
fn is_null(target: &Expr, operands: &[Expr]) -> bool {
    let late = |argument: &Expr| is_computed_late(argument) && !reads_early(argument, operands);
    let null = |argument: &Expr| matches!(argument, Expr::Const(Value::Null, _));
    match target {
        Expr::Call(call) => {
            call.function.strict && call.arguments.iter().any(null) && call.arguments.iter().all(late)
        }
        Expr::Subscript { array, indexes, .. } => null(array) && indexes.iter().all(late),
        // NULL equals nothing.
        Expr::NullIf(equal) => equal.arguments.first().is_some_and(null) && equal.arguments.iter().all(late),
        _ => is_null_in_list(target),
    }
}

/// Whether PostgreSQL computes it for each row, or it is known already.
fn is_computed_late(argument: &Expr) -> bool {
    !argument.is_row_free()
        || matches!(argument, Expr::Const(..) | Expr::Param { .. })
        || argument.volatility() == Volatility::Volatile
}

/// Whether it reads a shared operand that PostgreSQL computes ahead.
fn reads_early(argument: &Expr, operands: &[Expr]) -> bool {
    let mut early = false;
    argument.each_operand(&mut |index| early |= !is_computed_late(&operands[index as usize]));
    early
}

/// Folds the expressions of a bound statement that have a NULL constant, before its subqueries are planned: those that a
/// NULL spares are not run. The binder leaves expressions as they are written, for its checks need what a NULL hides.
pub(super) fn nulls(bound: &mut Bound) {
    walk::statement(bound, &mut |part| {
        let walk::Part::Expr(target) = part else { return };
        let mut null = false;
        target.walk(&mut |part| null |= matches!(part, Expr::Const(Value::Null, _)));
        if null {
            expr(target);
        }
    });
}

/// Folds every expression of a plan.
pub(super) fn plan(root: &mut Plan) {
    exprs_mut(root, &mut expr);
    children_mut(root, &mut plan);
}

fn children_mut(root: &mut Plan, visit: &mut dyn FnMut(&mut Plan)) {
    match root {
        Plan::OneRow
        | Plan::Nothing
        | Plan::Values { .. }
        | Plan::Scan(_)
        | Plan::Virtual { .. }
        | Plan::Function { .. }
        | Plan::CommonScan { .. }
        | Plan::Joined { .. } => {}
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Aggregate { input, .. }
        | Plan::Window { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Limit { input, .. }
        | Plan::Distinct { input, .. } => visit(input),
        Plan::LockRows { input, again, .. } => {
            visit(input);
            again_mut(again.as_deref_mut(), visit);
        }
        Plan::NestedLoop { left, right, .. } => {
            visit(left);
            visit(right);
        }
        Plan::HashJoin { left, right, test, .. } => {
            visit(left);
            visit(right);
            test.iter_mut().for_each(|test| visit(test));
        }
        Plan::SetOperation { first, stages, .. } => {
            let others = stages.iter_mut().flat_map(|stage| &mut stage.sides);
            std::iter::once(&mut **first).chain(others).for_each(|(side, _)| visit(side));
        }
        Plan::Subquery { input, subquery, .. } => {
            visit(input);
            visit(subquery);
        }
        Plan::With { tables, body } => {
            for table in tables {
                visit(&mut table.plan);
                if let Some(recursive) = &mut table.recursive {
                    visit(&mut recursive.plan);
                }
            }
            visit(body);
        }
        Plan::Insert(insert) => visit(&mut insert.input),
        Plan::Update(update) => {
            visit(&mut update.input);
            again_mut(update.again.as_deref_mut(), visit);
        }
        Plan::Delete(delete) => {
            visit(&mut delete.input);
            again_mut(delete.again.as_deref_mut(), visit);
        }
        Plan::Append(inputs) => inputs.iter_mut().for_each(visit),
    }
}

fn again_mut(again: Option<&mut Again>, visit: &mut dyn FnMut(&mut Plan)) {
    let Some(again) = again else { return };
    for part in &mut again.matches {
        part.comparison.iter_mut().for_each(expr);
        visit(&mut part.subquery);
        part.plan.iter_mut().for_each(&mut *visit);
    }
    again.plan.iter_mut().for_each(visit);
}

/// One walk over a node's own expressions, by shared or mutable reference.
macro_rules! node_exprs {
    ($plan:expr, $visit:ident, $iter:ident, $sort:ident, $calls:ident, $scan:ident, $kind:ident,
     $checks:ident, $assign:ident) => {
        match $plan {
            Plan::OneRow
            | Plan::Nothing
            | Plan::SetOperation { .. }
            | Plan::With { .. }
            | Plan::CommonScan { .. }
            | Plan::LockRows { .. }
            | Plan::Joined { .. }
            | Plan::Delete(_)
            | Plan::Append(_) => {}
            Plan::Values { rows, .. } => rows.$iter().for_each(|row| row.$iter().for_each(&mut *$visit)),
            Plan::Scan(scan) => $scan(scan, $visit),
            Plan::Virtual { filter, .. } => filter.$iter().for_each($visit),
            Plan::Function { calls, .. } => {
                calls.$iter().for_each(|call| call.arguments.$iter().for_each(&mut *$visit));
            }
            Plan::Filter { condition, .. } => $visit(condition),
            Plan::Project { expressions, .. } => expressions.$iter().for_each(|pair| {
                let (expr, _) = pair;
                $visit(expr)
            }),
            Plan::NestedLoop { condition, .. } => condition.$iter().for_each($visit),
            Plan::HashJoin { keys, condition, .. } => {
                keys.$iter().for_each(|pair| {
                    let (left, right) = pair;
                    $visit(left);
                    $visit(right);
                });
                condition.$iter().for_each($visit);
            }
            Plan::Subquery { kind, guard, .. } => {
                $kind(kind, $visit);
                guard.$iter().for_each(|guard| {
                    guard.flags.$iter().for_each(|pair| {
                        let (expr, _) = pair;
                        $visit(expr)
                    });
                    guard.conditions.$iter().for_each(&mut *$visit);
                });
            }
            Plan::Aggregate { groups, calls, .. } => {
                groups.$iter().for_each(|pair| {
                    let (expr, _) = pair;
                    $visit(expr)
                });
                $calls(calls, $visit);
            }
            Plan::Window { partition, order, calls, .. } => {
                partition.$iter().for_each(&mut *$visit);
                $sort(order, $visit);
                calls.$iter().for_each(|call| call.arguments.$iter().for_each(&mut *$visit));
            }
            Plan::Sort { keys, limit, .. } => {
                $sort(keys, $visit);
                limit.$iter().for_each($visit);
            }
            Plan::Limit { limit, offset, ties, .. } => {
                limit.$iter().for_each(&mut *$visit);
                offset.$iter().for_each(&mut *$visit);
                ties.$iter().for_each($visit);
            }
            Plan::Distinct { keys, .. } => keys.$iter().for_each($visit),
            Plan::Insert(insert) => {
                insert.values.$iter().for_each(&mut *$visit);
                $checks!(insert.checks, $visit);
                insert.conflict.$iter().for_each(|conflict| {
                    conflict.update.$iter().for_each(|update| {
                        update.condition.$iter().for_each(&mut *$visit);
                        $assign!(update.assignments, $visit);
                        $checks!(update.checks, $visit);
                    });
                });
            }
            Plan::Update(update) => {
                $assign!(update.assignments, $visit);
                $checks!(update.checks, $visit);
            }
        }
    };
}

macro_rules! each_shared {
    ($list:expr, $visit:ident) => {
        each_part(&$list, $visit)
    };
}
macro_rules! each_mutable {
    ($list:expr, $visit:ident) => {
        each_part_mut(&mut $list, $visit)
    };
}

/// Something that holds one expression, or none.
trait Part {
    fn part(&self) -> Option<&Expr>;
    fn part_mut(&mut self) -> Option<&mut Expr>;
}

impl Part for Check {
    fn part(&self) -> Option<&Expr> {
        Some(&self.expr)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.expr)
    }
}

impl Part for Assignment {
    fn part(&self) -> Option<&Expr> {
        Some(&self.value)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.value)
    }
}

impl Part for SortKey {
    fn part(&self) -> Option<&Expr> {
        Some(&self.expr)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.expr)
    }
}

/// A list of parts, or a single one.
trait Parts {
    type Item: Part;
    fn parts(&self) -> &[Self::Item];
    fn parts_mut(&mut self) -> &mut [Self::Item];
}

impl<P: Part> Parts for Vec<P> {
    type Item = P;
    fn parts(&self) -> &[P] {
        self
    }
    fn parts_mut(&mut self) -> &mut [P] {
        self
    }
}

fn each_part<'p, P: Parts>(list: &'p P, visit: &mut dyn FnMut(&'p Expr))
where
    P::Item: 'p,
{
    list.parts().iter().filter_map(Part::part).for_each(visit);
}

fn each_part_mut<P: Parts>(list: &mut P, visit: &mut dyn FnMut(&mut Expr)) {
    list.parts_mut().iter_mut().filter_map(Part::part_mut).for_each(visit);
}

fn call_exprs<'p>(calls: &'p [AggregateCall], visit: &mut dyn FnMut(&'p Expr)) {
    for call in calls {
        call.arguments.iter().for_each(&mut *visit);
        each_part(&call.order, visit);
        call.filter.iter().for_each(&mut *visit);
    }
}

fn call_exprs_mut(calls: &mut [AggregateCall], visit: &mut dyn FnMut(&mut Expr)) {
    for call in calls {
        call.arguments.iter_mut().for_each(&mut *visit);
        each_part_mut(&mut call.order, visit);
        call.filter.iter_mut().for_each(&mut *visit);
    }
}

/// Calls `visit` for the expressions of what is made of a subquery.
pub(super) fn kind_exprs<'p>(kind: &'p SubqueryKind, visit: &mut dyn FnMut(&'p Expr)) {
    match kind {
        SubqueryKind::Scalar { value } | SubqueryKind::Array { value, .. } => visit(value),
        SubqueryKind::Exists => {}
        SubqueryKind::Quantified { comparison, hash, .. } => {
            visit(comparison);
            for (left, right) in hash.iter().flatten() {
                visit(left);
                visit(right);
            }
        }
    }
}

fn kind_exprs_mut(kind: &mut SubqueryKind, visit: &mut dyn FnMut(&mut Expr)) {
    match kind {
        SubqueryKind::Scalar { value } | SubqueryKind::Array { value, .. } => visit(value),
        SubqueryKind::Exists => {}
        SubqueryKind::Quantified { comparison, hash, .. } => {
            visit(comparison);
            for (left, right) in hash.iter_mut().flatten() {
                visit(left);
                visit(right);
            }
        }
    }
}

fn scan_exprs_mut(scan: &mut Scan, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut scan.path {
        AccessPath::Point { key } | AccessPath::UniquePoint { key, .. } => {
            key.iter_mut().for_each(&mut *visit)
        }
        AccessPath::Table { range, .. } | AccessPath::Index { range, .. } => range_exprs_mut(range, visit),
    }
    scan.filter.iter_mut().for_each(visit);
}

fn range_exprs_mut(range: &mut KeyRange, visit: &mut dyn FnMut(&mut Expr)) {
    range.equal.iter_mut().for_each(&mut *visit);
    range.low.iter_mut().chain(&mut range.high).for_each(|bound| visit(&mut bound.value));
}

/// Calls `visit` for a node's own expressions.
pub(super) fn exprs<'p>(node: &'p Plan, visit: &mut dyn FnMut(&'p Expr)) {
    use super::registers::scan_exprs;
    node_exprs!(node, visit, iter, each_part, call_exprs, scan_exprs, kind_exprs, each_shared, each_shared);
}

fn exprs_mut(node: &mut Plan, visit: &mut dyn FnMut(&mut Expr)) {
    node_exprs!(
        node,
        visit,
        iter_mut,
        each_part_mut,
        call_exprs_mut,
        scan_exprs_mut,
        kind_exprs_mut,
        each_mutable,
        each_mutable
    );
}
