//! The surroundings of an evaluation: registers, parameters, the arena and the session.

use bumpalo::Bump;

use crate::lists::Lists;
use values::environment::Environment;
use values::types::Datum;

/// The surroundings of one evaluation. `'a` is the lifetime of values: the arena, the registers'
/// contents, the plan.
pub struct EvalContext<'a, 'r> {
    /// The registers.
    pub registers: &'r [Datum<'a>],
    /// The parameters.
    pub params: &'r [Datum<'a>],
    /// The memory of results.
    pub arena: &'a Bump,
    /// The session.
    pub session: &'r dyn Environment,
    /// The values of the operands that several parts of the expression read.
    pub(crate) operands: &'r [Datum<'a>],
    /// The long lists that the run has tested; None where each list is searched.
    pub(crate) lists: Option<&'r Lists>,
}

impl<'a, 'r> EvalContext<'a, 'r> {
    /// A context without operands.
    #[inline]
    pub fn new(
        registers: &'r [Datum<'a>],
        params: &'r [Datum<'a>],
        arena: &'a Bump,
        session: &'r dyn Environment,
    ) -> EvalContext<'a, 'r> {
        EvalContext { registers, params, arena, session, operands: &[], lists: None }
    }

    /// The context with the long lists of a run. Every expression that is evaluated with them must
    /// outlive them, because its address names its list.
    #[inline]
    pub fn with_lists(self, lists: &'r Lists) -> EvalContext<'a, 'r> {
        EvalContext { lists: Some(lists), ..self }
    }
}
