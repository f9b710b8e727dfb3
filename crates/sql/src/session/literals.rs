//! The values of a text's literals for one run of its plan, which serves all texts that differ in
//! their literals only.

use std::borrow::Cow;

use super::SessionEnvironment;
use super::long::{LONG_TEXT, long_value};
use query::compile::Compiled;
use query::normalize::{LiteralClass, LiteralUse, Normalized};
use values::error::{SqlError, SqlState};
use values::text;
use values::types::{Datum, Type, oid};
use values::work;

/// The position that errors give for a place in the text: in characters, from 1.
fn position_of(whole: &str, start: u32) -> Option<u32> {
    let before = whole.get(..start as usize)?.chars().count();
    u32::try_from(before + 1).ok()
}

/// The values of the literals that were lifted out of a text.
pub(super) fn literal_values<'a>(
    compiled: &Compiled,
    literals: Option<(&'a str, &Normalized)>,
    session: &SessionEnvironment,
    arena: &'a bumpalo::Bump,
) -> Result<&'a [Datum<'a>], SqlError> {
    let types = &compiled.statement.parameters;
    let values = arena.alloc_slice_fill_copy(types.len(), Datum::Null);
    let Some((whole, read)) = literals else { return Ok(values) };
    for (literal, used) in read.literals.iter().zip(&compiled.uses) {
        let LiteralUse::Parameter { index, type_ } = used else { continue };
        let Some(value) = values.get_mut(compiled.declared + *index as usize) else { continue };
        *value = match (literal.class, type_.oid) {
            (LiteralClass::Int4, oid::INT4) => Datum::Int4(literal.number as i32),
            (LiteralClass::Int4 | LiteralClass::Int8, oid::INT8) => Datum::Int8(literal.number),
            _ => {
                let shown = match literal.text(whole).len() > LONG_TEXT {
                    true => long_value(literal, whole)?.map(Cow::Owned),
                    false => literal.value(whole),
                };
                let shown = shown.ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape sequence")
                })?;
                let shown: &'a str = match shown {
                    Cow::Borrowed(shown) => shown,
                    Cow::Owned(shown) => work::text_in(&shown, arena)?,
                };
                match *type_ {
                    Type::TEXT => Datum::Text(shown),
                    type_ => text::parse(shown, type_, session, arena).map_err(|error| {
                        let number = matches!(
                            literal.class,
                            LiteralClass::Int4 | LiteralClass::Int8 | LiteralClass::Decimal
                        );
                        if number || error.code.is_stop() {
                            return error;
                        }
                        // PostgreSQL gives no position when only the length or precision of the
                        // type refuses a value.
                        let bare = Type::new(type_.oid);
                        let fails = bare == type_ || text::parse(shown, bare, session, arena).is_err();
                        if fails { error.at(position_of(whole, literal.start)) } else { error }
                    })?,
                }
            }
        };
    }
    Ok(values)
}
