//! Folding: replaces constant parts of expressions by their values.
//!
//! What must hold: folding changes no result. A part that fails stays, and fails when the statement
//! reaches it.

use bumpalo::Bump;

use crate::bound::Bound;
use crate::bound::walk;
use crate::plan::{self, Plan};
use expressions::context::EvalContext;
use expressions::expr::{Expr, QuantifiedOver};
use expressions::function::Volatility;
use values::environment::NoSession;
use values::types::{Type, Value, oid};

/// Work of inspecting one expression, in ns: about a tenth of a microsecond.
const FOLDING: usize = 100;

/// Replaces the constant parts of an expression by their values. A part that fails stays, and fails
/// when the statement runs.
pub(crate) fn expr(target: &mut Expr) {
    within(target, &[]);
}

/// Does the same for a part of an expression that shares operands.
fn within(target: &mut Expr, operands: &[Expr]) {
    if matches!(target, Expr::Const(..) | Expr::Column { .. } | Expr::Param { .. } | Expr::Operand { .. }) {
        return;
    }
    runtime::work::yield_after(FOLDING);
    if target.type_().oid != oid::RECORD && target.is_constant() {
        let arena = Bump::new();
        let session = NoSession::default();
        let mut context = EvalContext::new(&[], &[], &arena, &session);
        // An expression that exceeds the budget stays. The statement evaluates it when it runs,
        // with safe points.
        let folded = runtime::budget::within(values::work::FOLDING_BUDGET, || {
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

/// Removes shared operands that are now constant or that nothing reads.
fn simplify(target: &mut Expr) {
    if let Expr::Shared(_) = target
        && let Expr::Shared(shared) = std::mem::replace(target, Expr::null(Type::UNKNOWN))
    {
        *target = shared.simplified();
    }
}

/// Whether it searches a list for NULL.
fn is_null_in_list(target: &Expr) -> bool {
    let Expr::Quantified(quantified) = target else { return false };
    let QuantifiedOver::List(list) = &quantified.right else { return false };
    matches!(quantified.left, Expr::Const(Value::Null, _))
        && quantified.function.strict
        && !list.iter().any(Expr::computes_ahead)
}

/// The value of an AND or OR that a constant decides for every row. Constant parts before the
/// constant still fail.
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

/// Whether a NULL constant makes the expression NULL. The other arguments of a strict function and
/// their subqueries are then not evaluated. An argument that PostgreSQL computes ahead of time
/// still fails.
fn is_null(target: &Expr, operands: &[Expr]) -> bool {
    let late = |argument: &Expr| is_computed_late(argument) && !reads_early(argument, operands);
    let null = |argument: &Expr| matches!(argument, Expr::Const(Value::Null, _));
    match target {
        Expr::Call(call) => {
            call.function.strict && call.arguments.iter().any(null) && call.arguments.iter().all(late)
        }
        Expr::Subscript { array, indexes, .. } => null(array) && indexes.iter().all(late),
        // NULL equals no value.
        Expr::NullIf(equal) => equal.arguments.first().is_some_and(null) && equal.arguments.iter().all(late),
        _ => is_null_in_list(target),
    }
}

/// Whether PostgreSQL computes it for each row, or its value is already known.
fn is_computed_late(argument: &Expr) -> bool {
    !argument.is_row_free()
        || matches!(argument, Expr::Const(..) | Expr::Param { .. })
        || argument.volatility() == Volatility::Volatile
}

/// Whether it reads a shared operand that PostgreSQL computes ahead of time.
fn reads_early(argument: &Expr, operands: &[Expr]) -> bool {
    let mut early = false;
    argument.each_operand(&mut |index| early |= !is_computed_late(&operands[index as usize]));
    early
}

/// Folds expressions of a bound statement that have a NULL constant, before the subqueries are
/// planned. Subqueries that NULL makes unnecessary then do not run. The binder keeps expressions as
/// written, because its checks need the parts that a NULL hides.
pub(crate) fn nulls(bound: &mut Bound) {
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
pub(crate) fn plan(root: &mut Plan) {
    plan::walk::exprs_mut(root, &mut expr);
    plan::walk::comparisons_mut(root, &mut expr);
    plan::walk::children_mut(root, &mut self::plan);
}
