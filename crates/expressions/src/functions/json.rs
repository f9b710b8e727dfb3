//! json_build_object(), with which schema tools read the catalog's columns. No other JSON function
//! is built.

use super::CastContext;
use super::arguments::{give_text, text};
use super::build::call_named;
use super::casts::cast;
use crate::expr::Expr;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::{self, Datum, Type, Value, oid};

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

/// A key of an object; no name that SQL could call.
const KEY: &str = "json object key";

/// A string of JSON.
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

/// The object of these keys and values, taken in turns.
pub(super) fn build_object(arguments: Vec<Expr>) -> Result<Expr, SqlError> {
    if !arguments.len().is_multiple_of(2) {
        let message = "argument list must have even number of elements";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .with_hint("The arguments of json_build_object() must consist of alternating keys and values."));
    }
    let constant = |text: &str| Expr::constant(Value::Text(text.into()), Type::TEXT);
    let mut pieces = vec![constant("{")];
    for (at, argument) in arguments.into_iter().enumerate() {
        if at > 0 {
            pieces.push(constant(if at % 2 == 0 { ", " } else { " : " }));
        }
        let type_ = argument.type_();
        if types::is_array(type_.oid) || type_.oid == oid::RECORD {
            if at % 2 == 0 {
                let message = "key value must be scalar, not array, composite, or json";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            return Err(SqlError::unsupported("JSON of an array or of a row"));
        }
        let bare = matches!(
            type_.oid,
            oid::BOOL
                | oid::INT2
                | oid::INT4
                | oid::INT8
                | oid::FLOAT4
                | oid::FLOAT8
                | oid::NUMERIC
                | oid::JSON
        );
        let shown = cast(argument, Type::TEXT, CastContext::Explicit)?;
        if at % 2 == 0 {
            pieces.push(call_named(KEY, vec![shown], Type::TEXT)?);
            continue;
        }
        let shown = match bare {
            true => shown,
            false => call_named("to_json", vec![shown], Type::TEXT)?,
        };
        pieces.push(Expr::Coalesce(vec![shown, constant("null")], Type::TEXT));
    }
    pieces.push(constant("}"));
    call_named("concat", pieces, Type::new(oid::JSON))
}
