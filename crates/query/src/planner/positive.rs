//! NOT moves down to comparisons and tests, which turn round: `NOT (a < 3 OR b IS NULL)` becomes
//! `a >= 3 AND b IS NOT NULL`. A test of a truth becomes the condition itself: `(a = 7) IS TRUE`
//! and `(a = 7) = true` become `a = 7`. Indexes and estimates then serve such conditions.
//!
//! What must hold:
//!
//! 1. The conditions are true for the same rows: NOT of a NULL is NULL, and so is a comparison with
//!    NULL. IS TRUE and IS FALSE are false for a NULL. A condition that must hold counts both
//!    alike, but below NOT it does not.
//! 2. Parts keep their order. AND stops where the OR that it becomes stops, so the same parts are
//!    evaluated.

use crate::bound::Bound;
use crate::bound::walk::{self, Part};
use expressions::expr::{Call, Expr};
use expressions::function::Comparison;
use expressions::functions;
use values::types::{Value, oid};

/// Moves NOT down in all conditions of a statement.
pub(super) fn statement(bound: &mut Bound) {
    walk::statement(bound, &mut |part| {
        let Part::Conditions(conditions) = part else { return };
        if conditions.iter().any(is_indirect) {
            *conditions = std::mem::take(conditions).into_iter().flat_map(parts).collect();
        }
    });
}

/// Whether a condition, or a part of its AND or OR, is NOT or a test of another one.
fn is_indirect(condition: &Expr) -> bool {
    match condition {
        Expr::Not(_) | Expr::BoolTest { expected: Some(_), negated: false, .. } => true,
        Expr::Call(call) => tested(call).is_some(),
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(is_indirect),
        _ => false,
    }
}

/// The conditions that a condition consists of.
fn parts(condition: Expr) -> Vec<Expr> {
    match positive(condition) {
        Expr::And(parts) => parts,
        other => vec![other],
    }
}

fn positive(condition: Expr) -> Expr {
    match condition {
        Expr::And(parts) => Expr::And(parts.into_iter().flat_map(self::parts).collect()),
        Expr::Or(arms) => Expr::Or(arms.into_iter().map(positive).collect()),
        Expr::Not(input) => negated(*input),
        Expr::BoolTest { input, expected: Some(true), negated: false } => positive(*input),
        Expr::BoolTest { input, expected: Some(false), negated: false } => negated(*input),
        Expr::Call(call) => match tested(&call) {
            Some((tested, true)) => positive(tested.clone()),
            Some((tested, false)) => negated(tested.clone()),
            None => Expr::Call(call),
        },
        other => other,
    }
}

/// The condition that a comparison with a constant truth tests, and whether it has to be true.
fn tested(call: &Call) -> Option<(&Expr, bool)> {
    let is_equal = match call.function.comparison? {
        Comparison::Equal => true,
        Comparison::NotEqual => false,
        _ => return None,
    };
    let truth = |expr: &Expr| match expr {
        Expr::Const(Value::Bool(truth), _) => Some(*truth),
        _ => None,
    };
    let [left, right] = call.arguments.as_slice() else { return None };
    let (input, truth) = match (truth(left), truth(right)) {
        (None, Some(truth)) => (left, truth),
        (Some(truth), None) => (right, truth),
        _ => return None,
    };
    Some((input, truth == is_equal))
}

/// NOT of a condition.
fn negated(condition: Expr) -> Expr {
    match condition {
        Expr::Not(input) => positive(*input),
        Expr::And(parts) => Expr::Or(parts.into_iter().map(negated).collect()),
        Expr::Or(arms) => {
            let split = |arm| match negated(arm) {
                Expr::And(parts) => parts,
                other => vec![other],
            };
            Expr::And(arms.into_iter().flat_map(split).collect())
        }
        // Over a record the two tests are no opposites.
        Expr::NullTest { input, negated } if input.type_().oid != oid::RECORD => {
            Expr::NullTest { input, negated: !negated }
        }
        Expr::BoolTest { input, expected, negated } => Expr::BoolTest { input, expected, negated: !negated },
        Expr::Distinct { equal, negated } => Expr::Distinct { equal, negated: !negated },
        Expr::Call(call) => match tested(&call) {
            Some((tested, true)) => negated(tested.clone()),
            Some((tested, false)) => positive(tested.clone()),
            None => turned(&call).unwrap_or_else(|| Expr::Not(Box::new(Expr::Call(call)))),
        },
        other => Expr::Not(Box::new(other)),
    }
}

/// The comparison that is true where this one is false.
fn turned(call: &Call) -> Option<Expr> {
    let name = match call.function.comparison? {
        Comparison::Equal => "<>",
        Comparison::NotEqual => "=",
        Comparison::Less => ">=",
        Comparison::LessEqual => ">",
        Comparison::Greater => "<=",
        Comparison::GreaterEqual => "<",
    };
    let [left, right] = call.arguments.as_slice() else { return None };
    let turned = functions::operator(name, Some(left.clone()), right.clone()).ok()?;
    let is_same = matches!(&turned, Expr::Call(other) if other.function.arguments == call.function.arguments);
    (is_same && left.type_().oid != oid::RECORD).then_some(turned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::types::Type;

    fn less(register: u32) -> Expr {
        let three = Expr::Const(Value::Int4(3), Type::INT4);
        functions::operator("<", Some(Expr::column(register, Type::INT4)), three).unwrap()
    }

    fn not(condition: Expr) -> Expr {
        Expr::Not(Box::new(condition))
    }

    fn operators(conditions: &[Expr]) -> Vec<&str> {
        let of = |condition: &Expr| match condition {
            Expr::Call(call) => call.function.operator,
            Expr::Or(_) => "or",
            Expr::Not(_) => "not",
            _ => "?",
        };
        conditions.iter().map(of).collect()
    }

    #[test]
    fn not_of_an_or_is_a_list_of_comparisons() {
        let condition = not(Expr::Or(vec![less(1), not(less(2)), Expr::And(vec![less(3), less(4)])]));
        assert_eq!(operators(&parts(condition)), [">=", "<", "or"]);
    }

    #[test]
    fn two_nots_cancel_each_other() {
        assert_eq!(operators(&parts(not(not(less(1))))), ["<"]);
    }

    fn is(truth: bool, input: Expr) -> Expr {
        Expr::BoolTest { input: Box::new(input), expected: Some(truth), negated: false }
    }

    #[test]
    fn a_test_of_a_truth_is_the_condition() {
        assert_eq!(operators(&parts(is(true, less(1)))), ["<"]);
        assert_eq!(operators(&parts(is(false, less(1)))), [">="]);
        let equal = |truth| functions::operator("=", Some(less(1)), Expr::boolean(truth)).unwrap();
        assert_eq!(operators(&parts(equal(true))), ["<"]);
        assert_eq!(operators(&parts(equal(false))), [">="]);
        assert_eq!(operators(&parts(not(equal(false)))), ["<"]);
    }

    #[test]
    fn a_test_that_a_null_meets_stays() {
        assert_eq!(operators(&parts(not(is(true, less(1))))), ["?"]);
    }

    #[test]
    fn not_of_another_condition_stays() {
        assert_eq!(operators(&parts(not(Expr::column(1, Type::BOOL)))), ["not"]);
    }
}
