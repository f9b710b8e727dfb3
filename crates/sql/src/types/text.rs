//! Values as text, in and out.

use bumpalo::Bump;

use super::{Datum, Type};
use crate::error::SqlError;
use crate::expr::Environment;

/// Appends the value's text (nothing for NULL).
pub fn write(_value: Datum<'_>, _type: Type, _session: &dyn Environment, _out: &mut Vec<u8>) {
    todo!()
}

/// Reads a value of a type; applies its modifier as an assignment does (too long text is an error).
pub fn parse<'a>(_text: &'a str, _type: Type, _session: &dyn Environment, _arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    todo!()
}
