//! json_build_object(), by which schema tools ask for the catalog's columns. Beside it only
//! to_json() of a text exists.

use super::CastContext;
use super::call::call_named;
use super::casts::cast;
use super::json::KEY;
use crate::expr::Expr;
use values::error::{SqlError, SqlState};
use values::types::{self, Type, Value, oid};

/// The object of alternating keys and values.
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
