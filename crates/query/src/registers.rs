//! Sets of registers, and the registers that expressions read.

use runtime::hash::HashSet;

use expressions::expr::Expr;

use crate::plan::walk;
use crate::plan::{Reg, SubqueryKind};

/// A set of registers.
pub(crate) type Registers = HashSet<Reg>;

/// Adds the registers that an expression reads.
pub(crate) fn of_expr(expr: &Expr, into: &mut Registers) {
    expr.walk(&mut |part| {
        if let Expr::Column { register, .. } = part {
            into.insert(*register);
        }
    });
}

/// The registers that an expression reads.
pub(crate) fn reads(expr: &Expr) -> Registers {
    let mut registers = Registers::default();
    of_expr(expr, &mut registers);
    registers
}

/// Adds the registers that turning a subquery's rows into one result reads.
pub(crate) fn kind_reads(kind: &SubqueryKind, into: &mut Registers) {
    walk::kind_exprs(kind, &mut |expr| of_expr(expr, into));
}
