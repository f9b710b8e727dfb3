//! Values in PostgreSQL's binary format, in and out (without the length word).

use bumpalo::Bump;

use super::{Datum, Type};
use crate::error::SqlError;

/// Appends the value's bytes.
pub fn write(_value: Datum<'_>, _type: Type, _out: &mut Vec<u8>) {
    todo!()
}

/// Reads a value of a type.
pub fn parse<'a>(_bytes: &'a [u8], _type: Type, _arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    todo!()
}
