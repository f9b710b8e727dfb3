//! Walking and rewriting expressions.
//!
//! What must hold:
//!
//! 1. `children!` names every part of every kind of expression. A part that it leaves out is
//!    neither checked, rewritten nor counted.
//! 2. The operands of a [`Expr::Shared`] are visited before its body, which reads them.
//! 3. [`Expr::volatility`] is the worst of all parts. A kind of expression that calls a function is
//!    listed there, or the compiler folds it.
//! 4. Copies are made through [`Expr::copied`], because copies of copies grow exponentially.

use super::{Expr, QuantifiedOver};
use crate::function::Volatility;
use values::error::SqlError;
use values::memory;
use values::types::Type;
use values::work::tick_parts;

/// Approximate bytes of a part of an expression.
const PART_BYTES: usize = 2 * size_of::<Expr>();

/// The direct parts of an expression, by shared or mutable reference.
macro_rules! children {
    ($self:expr, $visit:expr, $iter:ident $(, $mutable:tt)?) => {
        match $self {
            Expr::Const(..) | Expr::Column { .. } | Expr::Param { .. } | Expr::Operand { .. } => {}
            Expr::Shared(shared) => {
                shared.operands.$iter().for_each(&mut *$visit);
                $visit(&$($mutable)? shared.body);
            }
            Expr::Call(call) | Expr::NullIf(call) | Expr::Distinct { equal: call, .. } => call.arguments.$iter().for_each($visit),
            Expr::And(parts) | Expr::Or(parts) | Expr::Row { fields: parts, .. } | Expr::Coalesce(parts, _) | Expr::Array { elements: parts, .. } => {
                parts.$iter().for_each($visit)
            }
            Expr::Not(input)
            | Expr::NullTest { input, .. }
            | Expr::BoolTest { input, .. }
            | Expr::Field { record: input, .. } => $visit(input),
            Expr::Cast(cast) => $visit(&$($mutable)? cast.input),
            Expr::Case(case) => {
                for (condition, result) in case.branches.$iter() {
                    $visit(condition);
                    $visit(result);
                }
                $visit(&$($mutable)? case.otherwise);
            }
            Expr::Extreme(extreme) => extreme.arguments.$iter().for_each($visit),
            Expr::Quantified(quantified) => {
                let quantified = &$($mutable)? **quantified;
                $visit(&$($mutable)? quantified.left);
                match &$($mutable)? quantified.right {
                    QuantifiedOver::Array(array) => $visit(array),
                    QuantifiedOver::List(list) => list.$iter().for_each($visit),
                }
            }
            Expr::Subscript { array, indexes, .. } => {
                $visit(array);
                indexes.$iter().for_each($visit);
            }
        }
    };
}

impl Expr {
    /// Calls `visit` for each direct part.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        children!(self, &mut *visit, iter);
    }

    /// Calls `visit` for each direct part, to change it.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        children!(self, &mut *visit, iter_mut, mut);
    }

    /// Calls `visit` for the expression and all its parts, parents first.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// A copy. Copies of copies grow exponentially with their depth, so the copy asks for its
    /// memory, and a large one is a safe point.
    ///
    /// # Errors
    /// The interrupt of a statement that was stopped or may not have the memory.
    pub fn copied(&self) -> Result<Expr, SqlError> {
        let mut parts = 0;
        self.walk(&mut |_| parts += 1);
        tick_parts(parts)?;
        memory::ask(parts.saturating_mul(PART_BYTES))?;
        Ok(self.clone())
    }

    /// How much the value may change between evaluations with the same registers and parameters.
    pub fn volatility(&self) -> Volatility {
        let mut worst = Volatility::Immutable;
        self.walk(&mut |part| {
            let own = match part {
                Expr::Call(call) => call.function.volatility,
                Expr::Cast(cast) => cast.volatility(),
                Expr::Quantified(quantified) => quantified.function.volatility,
                _ => Volatility::Immutable,
            };
            worst = worst.max(own);
        });
        worst
    }

    /// Whether the value depends on the expression's text alone: on no register, parameter,
    /// session, time or randomness.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |part| constant &= !matches!(part, Expr::Column { .. } | Expr::Param { .. }));
        constant && !self.reads_operand() && self.volatility() == Volatility::Immutable
    }

    /// Whether the expression reads no register. An operand may read one.
    pub fn is_row_free(&self) -> bool {
        let mut free = true;
        self.walk(&mut |part| free &= !matches!(part, Expr::Column { .. }));
        free && !self.reads_operand()
    }

    /// Whether a part computes something from constants and parameters alone. PostgreSQL computes
    /// such a part before it reads any row, and its errors end the statement.
    pub fn computes_ahead(&self) -> bool {
        let mut found = false;
        self.walk(&mut |part| {
            found |= matches!(part, Expr::Call(_) | Expr::Cast(_))
                && part.is_row_free()
                && part.volatility() == Volatility::Immutable;
        });
        found
    }

    /// The parameters in the expression, with their types.
    pub fn params(&self) -> Vec<(u32, Type)> {
        let mut params = Vec::new();
        self.walk(&mut |part| {
            if let Expr::Param { index, type_ } = part {
                params.push((*index, *type_));
            }
        });
        params
    }
}
