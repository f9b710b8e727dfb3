//! Operands that several parts of an expression read. `case x when a ... when b ...` compares one x
//! with a and with b; copies of x would double the expression at each level of nesting.
//!
//! What must hold:
//!
//! 1. The operands are computed before the body, once, in their order. So the binder shares only an
//!    operand that the body reads first, or reads in any case after those before it.
//! 2. An operand reads no operand of another [`Shared`] around it: it can stand anywhere.
//! 3. A part of a body is evaluated inside the body only. Code that needs the part elsewhere calls
//!    [`Shared::closed`].

use super::{CastPath, Expr};
use crate::context::EvalContext;
use crate::function::Volatility;
use values::error::SqlError;
use values::types::{Datum, Type, oid};

/// The most operands of an expression: BETWEEN SYMMETRIC has this many.
const MOST: usize = 3;

/// Operands and the expression that reads them.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The operands.
    pub operands: Vec<Expr>,
    /// The expression that reads the operands by [`Expr::Operand`].
    pub body: Expr,
}

/// Collects the operands of an expression while it is built.
#[derive(Default)]
pub struct Sharing(Vec<Expr>);

impl Sharing {
    /// The expression to read an operand by. An operand that costs nothing is copied.
    pub fn operand(&mut self, operand: Expr) -> Expr {
        if is_plain(&operand) || operand.type_().oid == oid::UNKNOWN || self.0.len() == MOST {
            return operand;
        }
        let (index, type_) = (self.0.len() as u32, operand.type_());
        self.0.push(operand);
        Expr::Operand { index, type_ }
    }

    /// As [`Sharing::operand`], for an operand that PostgreSQL copies: a volatile one is computed
    /// each time.
    pub fn copied_operand(&mut self, operand: Expr) -> Expr {
        if operand.volatility() == Volatility::Volatile { operand } else { self.operand(operand) }
    }

    /// The whole expression, with the operands around its body.
    pub fn around(self, body: Expr) -> Expr {
        match self.0.is_empty() {
            true => body,
            false => Shared { operands: self.0, body }.simplified(),
        }
    }
}

impl Shared {
    /// Moves operands that cost nothing, or are read once, to the place that reads them. Drops
    /// operands that nothing reads.
    pub fn simplified(self) -> Expr {
        let Shared { operands, mut body } = self;
        let mut reads = vec![0_usize; operands.len()];
        body.each_operand(&mut |index| reads[index as usize] += 1);
        let (mut kept, mut moved) = (Vec::new(), Vec::with_capacity(operands.len()));
        for (operand, reads) in operands.into_iter().zip(reads) {
            if reads < 2 || is_plain(&operand) {
                moved.push(operand);
            } else {
                let (index, type_) = (kept.len() as u32, operand.type_());
                moved.push(Expr::Operand { index, type_ });
                kept.push(operand);
            }
        }
        replace_operands(&mut body, &mut |index| match &mut moved[index as usize] {
            plain if is_plain(plain) => plain.clone(),
            once => std::mem::replace(once, Expr::null(Type::UNKNOWN)),
        });
        match kept.is_empty() {
            true => body,
            false => Expr::Shared(Box::new(Shared { operands: kept, body })),
        }
    }

    /// A copy of a part of the body, with copies of its operands.
    ///
    /// # Errors
    /// The interrupt of a statement that was stopped or may not have the memory.
    pub fn closed(&self, part: &Expr) -> Result<Expr, SqlError> {
        let mut result = Ok(());
        let mut part = part.copied()?;
        replace_operands(&mut part, &mut |index| {
            let operand = &self.operands[index as usize];
            match operand.copied() {
                Ok(copy) => copy,
                Err(error) => {
                    result = Err(error);
                    Expr::null(operand.type_())
                }
            }
        });
        result.map(|()| part)
    }

    pub(super) fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        let mut values = [Datum::Null; MOST];
        for (value, operand) in values.iter_mut().zip(&self.operands) {
            *value = operand.eval(context)?;
        }
        self.body.eval(&mut EvalContext { operands: &values, ..*context })
    }
}

/// Whether computing the operand again costs nothing.
fn is_plain(operand: &Expr) -> bool {
    match operand {
        Expr::Const(..) | Expr::Column { .. } | Expr::Param { .. } | Expr::Operand { .. } => true,
        Expr::Cast(cast) => matches!(cast.path, CastPath::Relabel) && is_plain(&cast.input),
        _ => false,
    }
}

impl Expr {
    /// Calls `visit` for each place that reads an operand of the [`Shared`] around the expression.
    pub fn each_operand(&self, visit: &mut dyn FnMut(u32)) {
        match self {
            Expr::Operand { index, .. } => visit(*index),
            Expr::Shared(_) => {}
            _ => self.for_each_child(&mut |child| child.each_operand(visit)),
        }
    }

    /// Whether the expression reads an operand of the [`Shared`] around it.
    pub(super) fn reads_operand(&self) -> bool {
        let mut reads = false;
        self.each_operand(&mut |_| reads = true);
        reads
    }
}

fn replace_operands(expr: &mut Expr, by: &mut dyn FnMut(u32) -> Expr) {
    match expr {
        Expr::Operand { index, .. } => *expr = by(*index),
        Expr::Shared(_) => {}
        _ => expr.for_each_child_mut(&mut |child| replace_operands(child, by)),
    }
}
