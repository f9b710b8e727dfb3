//! JSON strings: to_json(), and the keys of json_build_object().

use super::arguments::{give_text, text};
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::{Datum, oid};

pub(super) static FUNCTIONS: &[Function] = &[
    func("to_json", &[oid::TEXT], oid::JSON, |cx, a| give_text(&quoted(text(a[0])?)?, cx.arena)),
    func(KEY, &[oid::TEXT], oid::JSON, |cx, a| match a[0] {
        Datum::Null => {
            let message = "null value not allowed for object key";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
        key => give_text(&quoted(text(key)?)?, cx.arena),
    })
    .lax(),
];

/// The function of an object's key. SQL cannot call this name.
pub(super) const KEY: &str = "json object key";

/// The text as a JSON string.
fn quoted(text: &str) -> Result<String, SqlError> {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        values::work::tick(1)?;
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            // Writing to a string cannot fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(out)
}
