//! Premises: conditions on parameters alone, within the conditions on rows.
//!
//! `$1 IS NULL OR customer = $1` reads the whole table for one value and an index for another. So a
//! statement names its premises, and each run looks which of them are true. A plan made for these
//! truths has them as constants.
//!
//! What must hold: a plan made for some truths runs only with parameters that have the same ones. A
//! premise is immutable, so its truth is a function of the parameters.

use bumpalo::Bump;

use expressions::context::EvalContext;
use expressions::expr::Expr;
use values::environment::NoSession;
use values::types::{Datum, Type, Value};

/// The most premises of a statement. Further ones stay conditions.
pub(crate) const MOST_PREMISES: usize = 16;

/// The truths of a statement's premises, two bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truths(u32);

const FALSE: u32 = 0;
const TRUE: u32 = 1;
const NULL: u32 = 2;
/// Its evaluation fails. The statement may never reach it.
const UNKNOWN: u32 = 3;

/// The truths of premises for these parameters.
#[must_use]
pub fn truths(premises: &[Expr], parameters: &[Datum<'_>]) -> Truths {
    let (arena, session) = (Bump::new(), NoSession::default());
    let truth = |premise: &Expr| match premise.eval(&mut EvalContext::new(&[], parameters, &arena, &session))
    {
        Ok(Datum::Bool(value)) => u32::from(value),
        Ok(_) => NULL,
        Err(_) => UNKNOWN,
    };
    Truths(premises.iter().take(MOST_PREMISES).rev().fold(0, |truths, premise| truths << 2 | truth(premise)))
}

impl Truths {
    /// The value of a premise, if it has one.
    pub(crate) fn value(self, premise: usize) -> Option<Expr> {
        match self.0 >> (2 * premise) & 3 {
            FALSE => Some(Expr::boolean(false)),
            TRUE => Some(Expr::boolean(true)),
            NULL => Some(Expr::Const(Value::Null, Type::BOOL)),
            _ => None,
        }
    }
}
