//! Walking and rewriting expressions.

use super::Expr;

impl Expr {
    /// Calls `visit` for each direct part.
    pub fn for_each_child<'e>(&'e self, _visit: &mut dyn FnMut(&'e Expr)) {
        todo!()
    }

    /// Calls `visit` for each direct part, to change it.
    pub fn for_each_child_mut(&mut self, _visit: &mut dyn FnMut(&mut Expr)) {
        todo!()
    }

    /// Calls `visit` for itself and every part, parents first.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// Whether its value depends on nothing but its text: no registers, parameters, session, time, randomness.
    pub fn is_constant(&self) -> bool {
        todo!()
    }
}
