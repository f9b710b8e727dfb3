//! Keys: values as bytes whose order is the order of the values, so that trees compare with memcmp.

use bumpalo::Bump;

use crate::error::SqlError;
use crate::types::{Datum, Type};

/// How one column of a key is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeyOrder {
    /// DESC.
    pub descending: bool,
    /// NULLs before the others.
    pub nulls_first: bool,
}

/// Appends one column's bytes.
pub fn encode(_value: Datum<'_>, _order: KeyOrder, _out: &mut Vec<u8>) -> Result<(), SqlError> {
    todo!()
}

/// Reads one column of this type off the front of `bytes`.
pub fn decode<'a>(_type: Type, _order: KeyOrder, _bytes: &mut &'a [u8], _arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    todo!()
}
