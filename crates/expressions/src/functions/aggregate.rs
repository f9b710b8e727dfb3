//! The overloads of aggregates: the aggregate that a call names, and the types of its arguments.
//!
//! What must hold:
//!
//! 1. The argument type of `signature` is the one for which [`Aggregate::start`] chooses a state,
//!    and its result type is the one that the state gives.
//! 2. Arguments are cast here, so the executor passes them on unseen.
//! 3. Where no overload fits, the answer is that no aggregate was found. The caller then searches
//!    the functions and reports PostgreSQL's error.

use super::call::several_functions;
use super::casts::{cast, implicit_ok};
use super::{Bound, CastContext};
use crate::expr::Expr;
use crate::function::{Aggregate, AggregateKind as Kind};
use values::error::SqlError;
use values::types::{Type, oid, registry};

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "count" => Kind::Count,
        "sum" => Kind::Sum,
        "avg" => Kind::Avg,
        "min" => Kind::Min,
        "max" => Kind::Max,
        "bool_and" | "every" => Kind::BoolAnd,
        "bool_or" => Kind::BoolOr,
        "string_agg" => Kind::StringAgg,
        "array_agg" => Kind::ArrayAgg,
        "stddev" | "stddev_samp" => Kind::StddevSamp,
        "stddev_pop" => Kind::StddevPop,
        "variance" | "var_samp" => Kind::VarSamp,
        "var_pop" => Kind::VarPop,
        "bit_and" => Kind::BitAnd,
        "bit_or" => Kind::BitOr,
        "bit_xor" => Kind::BitXor,
        _ => return None,
    })
}

/// The type as which an aggregate takes its first argument, and its result's type.
fn signature(kind: Kind, argument: u32) -> Option<(u32, u32)> {
    let number =
        |ty: u32| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8);
    Some(match kind {
        Kind::CountRows | Kind::Count => (argument, oid::INT8),
        Kind::Sum => match argument {
            oid::INT2 | oid::INT4 => (argument, oid::INT8),
            oid::INT8 => (argument, oid::NUMERIC),
            oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8 | oid::INTERVAL => (argument, argument),
            oid::TIME => (oid::INTERVAL, oid::INTERVAL),
            _ => return None,
        },
        Kind::Avg => match argument {
            oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC => (argument, oid::NUMERIC),
            oid::FLOAT4 | oid::FLOAT8 => (argument, oid::FLOAT8),
            oid::INTERVAL | oid::TIME => (oid::INTERVAL, oid::INTERVAL),
            _ => return None,
        },
        Kind::Min | Kind::Max => match argument {
            oid::VARCHAR | oid::NAME | oid::CHAR | oid::UNKNOWN => (oid::TEXT, oid::TEXT),
            _ if oid::REG_TYPES.contains(&argument) => (oid::OID, oid::OID),
            oid::BOOL | oid::UUID | oid::RECORD | oid::XID | oid::CID => return None,
            _ => (argument, argument),
        },
        Kind::BoolAnd | Kind::BoolOr => (oid::BOOL, oid::BOOL),
        Kind::StringAgg if argument == oid::BYTEA => (oid::BYTEA, oid::BYTEA),
        Kind::StringAgg => (oid::TEXT, oid::TEXT),
        // The literal could be an array or an element.
        Kind::ArrayAgg if argument == oid::UNKNOWN => return None,
        Kind::ArrayAgg => {
            (argument, registry::array_of(argument).or(registry::is_array(argument).then_some(argument))?)
        }
        Kind::StddevSamp | Kind::StddevPop | Kind::VarSamp | Kind::VarPop => match argument {
            oid::FLOAT4 | oid::FLOAT8 => (argument, oid::FLOAT8),
            oid::UNKNOWN => (oid::FLOAT8, oid::FLOAT8),
            _ if number(argument) => (argument, oid::NUMERIC),
            _ => return None,
        },
        Kind::BitAnd | Kind::BitOr | Kind::BitXor => match argument {
            oid::INT2 | oid::INT4 | oid::INT8 => (argument, argument),
            _ => return None,
        },
    })
}

/// The aggregate that a call names; None when no aggregate has the name.
pub(super) fn resolve(name: &str, arguments: &[Expr]) -> Result<Option<Bound>, SqlError> {
    let Some(kind) = kind_of(name) else { return Ok(None) };
    if kind == Kind::Count && arguments.is_empty() {
        let function = Aggregate { kind: Kind::CountRows, argument: Type::VOID, result: Type::INT8 };
        return Ok(Some(Bound::Aggregate { function, arguments: Vec::new() }));
    }
    let wanted = if kind == Kind::StringAgg { 2 } else { 1 };
    let argument_type = arguments.first().map_or(Type::VOID, Expr::type_);
    let Some((argument, result)) = signature(kind, argument_type.oid).filter(|(argument, _)| {
        arguments.len() == wanted
            && (argument_type.oid == oid::UNKNOWN || implicit_ok(argument_type.oid, *argument))
    }) else {
        if arguments.len() == wanted && argument_type.oid == oid::UNKNOWN {
            return Err(several_functions(name, arguments));
        }
        // The caller searches on and fails with the error for functions.
        return Ok(None);
    };
    let argument = if argument == argument_type.oid { argument_type } else { Type::new(argument) };
    let mut cast_arguments = vec![cast(arguments[0].clone(), argument, CastContext::Implicit)?];
    if let Some(delimiter) = arguments.get(1) {
        cast_arguments.push(cast(delimiter.clone(), Type::new(argument.oid), CastContext::Implicit)?);
    }
    let function = Aggregate { kind, argument, result: Type::new(result) };
    Ok(Some(Bound::Aggregate { function, arguments: cast_arguments }))
}
