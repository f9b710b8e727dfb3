//! Finds the premises of a statement's conditions, and puts their truths in their places.
//!
//! What must hold: the premises of a bound statement and their order depend on its text and on the
//! definitions alone. So truths found with one plan's premises serve another plan of the text.

use std::mem::{replace, take};

use crate::bound::Bound;
use crate::bound::walk::{self, Part};
use crate::plan::{MOST_PREMISES, Truths};
use expressions::expr::Expr;
use expressions::function::Volatility;
use values::types::{Type, Value, oid};

/// Work of looking at a part of a condition, in ns.
const LOOKING: usize = 50;

/// The place of a part in its condition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the condition.
    Whole,
    /// Within AND and OR. A condition that is NULL keeps a row as little as a false one.
    Kept,
    /// Within NOT, where NULL and false differ.
    Negated,
}

/// The premises found so far, and the truths that take their places.
struct Premises {
    found: Vec<Expr>,
    /// Texts that tell them apart.
    prints: Vec<String>,
    truths: Option<Truths>,
}

/// Finds the premises of a statement. With their truths it puts these into the conditions, and none
/// is left. Constant parts of a condition get their values either way.
pub(super) fn statement(bound: &mut Bound, truths: Option<Truths>) -> Vec<Expr> {
    let mut premises = Premises { found: Vec::new(), prints: Vec::new(), truths };
    walk::statement(bound, &mut |part| {
        if let Part::Conditions(conditions) = part {
            conditions.iter_mut().for_each(|condition| premises.within(condition, Place::Whole));
            conditions.retain(|condition| truth(condition) != Some(true));
        }
    });
    if truths.is_some() { Vec::new() } else { premises.found }
}

impl Premises {
    /// Looks for premises in a condition or a part of one.
    fn within(&mut self, condition: &mut Expr, place: Place) {
        runtime::work::yield_after(LOOKING);
        if place != Place::Whole && is_decidable(condition) {
            match condition.is_constant() {
                true => crate::fold::expr(condition),
                false => self.premise(condition),
            }
            if place == Place::Kept && matches!(condition, Expr::Const(Value::Null, _)) {
                *condition = Expr::boolean(false);
            }
            return;
        }
        let inner = if place == Place::Negated { place } else { Place::Kept };
        match condition {
            Expr::And(parts) => {
                parts.iter_mut().for_each(|part| self.within(part, inner));
                *condition = without(take(parts), true);
            }
            Expr::Or(parts) => {
                parts.iter_mut().for_each(|part| self.within(part, inner));
                *condition = without(take(parts), false);
            }
            Expr::Not(part) => {
                self.within(part, Place::Negated);
                if truth(part).is_some() {
                    crate::fold::expr(condition);
                }
            }
            Expr::Coalesce(..) => self.coalesce(condition),
            _ => condition.for_each_child_mut(&mut |child| {
                if matches!(child, Expr::Coalesce(..)) {
                    self.coalesce(child);
                }
            }),
        }
    }

    /// Puts the truth of a premise in its place, if it is known.
    fn premise(&mut self, condition: &mut Expr) {
        if let Some(value) = self.value(condition) {
            *condition = value;
        }
    }

    /// The value of a premise, if it is known. Adds it to the premises.
    fn value(&mut self, premise: &Expr) -> Option<Expr> {
        let print = format!("{premise:?}");
        let at = self.prints.iter().position(|other| *other == print).unwrap_or(self.prints.len());
        if at == self.prints.len() {
            if at == MOST_PREMISES {
                return None;
            }
            self.prints.push(print);
            self.found.push(premise.clone());
        }
        self.truths.and_then(|truths| truths.value(at))
    }

    /// A COALESCE that begins with a parameter, as in `coalesce($1, a) = a`.
    fn coalesce(&mut self, expr: &mut Expr) {
        let Expr::Coalesce(parts, _) = expr else { return };
        let leading = parts.iter().take_while(|part| matches!(part, Expr::Param { .. })).count();
        let leading = leading.min(parts.len() - 1);
        let is_null = |part: &Expr| Expr::NullTest { input: Box::new(part.clone()), negated: false };
        // All are premises, whatever is known of the first ones.
        let known: Vec<Option<Expr>> =
            parts[..leading].iter().map(|part| self.value(&is_null(part))).collect();
        for known in known {
            match known.as_ref().and_then(truth) {
                None => return,
                Some(true) => drop(parts.remove(0)),
                Some(false) => {
                    parts.truncate(1);
                    break;
                }
            }
        }
        if let [_] = parts.as_slice()
            && let Some(only) = parts.pop()
        {
            *expr = only;
        }
    }
}

/// Whether a condition depends on parameters and constants alone.
fn is_decidable(condition: &Expr) -> bool {
    condition.type_().oid == oid::BOOL
        && !reads_row(condition)
        && condition.volatility() == Volatility::Immutable
}

/// Whether an expression reads a register, or may read one by a shared operand. It ends at the
/// first one, since conditions may lie deep in each other.
fn reads_row(expr: &Expr) -> bool {
    runtime::work::yield_after(LOOKING);
    let mut reads = matches!(expr, Expr::Column { .. } | Expr::Operand { .. } | Expr::Shared(_));
    expr.for_each_child(&mut |child| reads = reads || reads_row(child));
    reads
}

/// The truth that a condition is.
fn truth(condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Const(Value::Bool(value), _) => Some(*value),
        _ => None,
    }
}

/// An AND, or an OR, without the parts that decide nothing. `neutral`: their truth.
fn without(mut parts: Vec<Expr>, neutral: bool) -> Expr {
    parts.retain(|part| truth(part) != Some(neutral));
    if parts.iter().any(|part| truth(part) == Some(!neutral)) {
        return Expr::boolean(!neutral);
    }
    match parts.len() {
        0 => Expr::boolean(neutral),
        1 => replace(&mut parts[0], Expr::null(Type::BOOL)),
        _ if neutral => Expr::And(parts),
        _ => Expr::Or(parts),
    }
}
