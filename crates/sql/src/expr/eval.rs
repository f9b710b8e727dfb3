//! The evaluator.

use super::{EvalContext, Expr};
use crate::error::SqlError;
use crate::types::Datum;

impl Expr {
    /// Its value.
    pub fn eval<'a>(&'a self, _context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        todo!()
    }
}
