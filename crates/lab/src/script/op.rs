//! The ops of a script, which a client steps through.

use crate::client::StatementId;

use super::expression::Expression;
use super::variables::VariableId;

#[derive(Debug)]
pub(super) struct Script {
    pub ops: Vec<Op>,
    pub places: Vec<Place>,
    /// The variables that it may set.
    pub assigned: Vec<VariableId>,
    pub weight: i64,
}

/// The place of an op; all from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
}

/// The prefix of the variables in which `\gset` keeps a row; the column names complete them.
#[derive(Debug)]
pub(super) struct Keep(pub String);

#[derive(Debug)]
pub(super) enum Op {
    Set(VariableId, Expression),
    /// The variables are the statement's parameters, in order.
    Run {
        statement: StatementId,
        variables: Box<[VariableId]>,
        keep: Option<Keep>,
    },
    /// Jumps unless the condition holds.
    Unless(Expression, usize),
    Jump(usize),
    /// Units, and microseconds of each.
    Sleep(Amount, u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    Constant(i64),
    Variable(VariableId),
}
