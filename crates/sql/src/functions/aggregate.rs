//! Aggregates: descriptors and their running states.

use bumpalo::Bump;

use crate::error::SqlError;
use crate::types::{Datum, Type};

/// An aggregate function, bound to its argument types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub kind: AggregateKind,
    /// Its first argument's type (VOID for count(*)).
    pub argument: Type,
    /// The result's type.
    pub result: Type,
}

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// count(*)
    CountRows,
    /// count(x)
    Count,
    /// sum
    Sum,
    /// avg
    Avg,
    /// min
    Min,
    /// max
    Max,
    /// bool_and, every
    BoolAnd,
    /// bool_or
    BoolOr,
    /// string_agg
    StringAgg,
    /// array_agg
    ArrayAgg,
    /// stddev, stddev_samp
    StddevSamp,
    /// stddev_pop
    StddevPop,
    /// variance, var_samp
    VarSamp,
    /// var_pop
    VarPop,
    /// bit_and
    BitAnd,
    /// bit_or
    BitOr,
    /// bit_xor
    BitXor,
}

/// The running state of one aggregate over one group.
#[derive(Debug)]
pub struct Accumulator {}

impl Aggregate {
    /// An empty group's state.
    pub fn start(&self) -> Accumulator {
        todo!()
    }

    /// Whether rows whose first argument is NULL are skipped (add does so itself).
    pub fn strict(&self) -> bool {
        !matches!(self.kind, AggregateKind::CountRows | AggregateKind::ArrayAgg)
    }
}

impl Accumulator {
    /// Takes a row in.
    pub fn add(&mut self, _arguments: &[Datum<'_>]) -> Result<(), SqlError> {
        todo!()
    }

    /// The result of what was taken in so far.
    pub fn finish<'a>(&self, _arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
        todo!()
    }
}
