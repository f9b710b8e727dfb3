//! Set-returning and window functions: the plan node that a call becomes.
//!
//! What must hold:
//!
//! 1. The arguments are cast to the types that the executor's node takes, so it converts nothing.
//! 2. `columns` has the types of the values that the node gives, in their order.

use super::call::{call_named, no_such_function, several_functions};
use super::casts::{cast, common_type, implicit_ok};
use super::{Bound, CastContext};
use crate::expr::Expr;
use crate::function::{SetFunction, WindowFunction};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid, registry};

/// The set-returning or window function that a call names; None when no such function has the name.
pub(super) fn resolve(name: &str, arguments: &[Expr]) -> Result<Option<Bound>, SqlError> {
    match name {
        "generate_series" => generate_series(arguments),
        "unnest" if !arguments.is_empty() => unnest(arguments).map(Some),
        "generate_subscripts" if arguments.len() == 2 => subscripts(arguments).map(Some),
        "_pg_expandarray" if arguments.len() == 1 => expanded(arguments).map(Some),
        "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" if arguments.is_empty() => {
            let (function, type_) = match name {
                "rank" => (WindowFunction::Rank, Type::INT8),
                "dense_rank" => (WindowFunction::DenseRank, Type::INT8),
                "percent_rank" => (WindowFunction::PercentRank, Type::FLOAT8),
                "cume_dist" => (WindowFunction::CumeDist, Type::FLOAT8),
                _ => (WindowFunction::RowNumber, Type::INT8),
            };
            Ok(Some(Bound::Window { function, arguments: Vec::new(), type_ }))
        }
        "ntile" if arguments.len() == 1 => {
            let Ok(count) = cast(arguments[0].clone(), Type::INT4, CastContext::Implicit) else {
                return Ok(None);
            };
            let function = WindowFunction::Ntile;
            Ok(Some(Bound::Window { function, arguments: vec![count], type_: Type::INT4 }))
        }
        "nth_value" if arguments.len() == 2 => {
            let type_ = arguments[0].type_();
            let Ok(number) = cast(arguments[1].clone(), Type::INT4, CastContext::Implicit) else {
                return Ok(None);
            };
            settled(&[type_])?;
            let arguments = vec![arguments[0].clone(), number];
            Ok(Some(Bound::Window { function: WindowFunction::NthValue, arguments, type_ }))
        }
        "lag" | "lead" if (1..=3).contains(&arguments.len()) => offset_function(name, arguments),
        "first_value" | "last_value" if arguments.len() == 1 => {
            let function =
                if name == "first_value" { WindowFunction::FirstValue } else { WindowFunction::LastValue };
            let type_ = arguments[0].type_();
            settled(&[type_])?;
            Ok(Some(Bound::Window { function, arguments: arguments.to_vec(), type_ }))
        }
        _ => Ok(None),
    }
}

/// Fails with 42804 when all types are unknown: literals determine no result type.
pub(super) fn settled(types: &[Type]) -> Result<(), SqlError> {
    if types.iter().any(|type_| type_.oid != oid::UNKNOWN) {
        return Ok(());
    }
    let message = "could not determine polymorphic type because input has type unknown";
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}

fn offset_function(name: &str, arguments: &[Expr]) -> Result<Option<Bound>, SqlError> {
    let mut types = vec![arguments[0].type_()];
    types.extend(arguments.get(2).map(Expr::type_));
    if types.len() == 1 {
        // Beside a default, literals are text.
        settled(&types)?;
    }
    let Ok(type_) = common_type(name, &types) else { return Ok(None) };
    let mut bound = vec![cast(arguments[0].clone(), type_, CastContext::Implicit)?];
    if let Some(offset) = arguments.get(1) {
        let offset_type = offset.type_().oid;
        if offset_type != oid::UNKNOWN && !implicit_ok(offset_type, oid::INT4) {
            return Ok(None);
        }
        bound.push(cast(offset.clone(), Type::INT4, CastContext::Implicit)?);
    }
    if let Some(default) = arguments.get(2) {
        bound.push(cast(default.clone(), type_, CastContext::Implicit)?);
    }
    let function = if name == "lag" { WindowFunction::Lag } else { WindowFunction::Lead };
    Ok(Some(Bound::Window { function, arguments: bound, type_ }))
}

/// unnest(): one or more arrays side by side, the shorter ones padded with NULL.
fn unnest(arguments: &[Expr]) -> Result<Bound, SqlError> {
    let elements = arguments.iter().map(|argument| registry::element_of(argument.type_().oid));
    let Some(elements) = elements.collect::<Option<Vec<u32>>>() else {
        return Err(match arguments {
            // PostgreSQL's unnest() also takes text search vectors and ranges.
            [argument] if argument.type_().oid == oid::UNKNOWN => several_functions("unnest", arguments),
            _ => no_such_function("unnest", arguments),
        });
    };
    let columns = elements.into_iter().map(|element| ("unnest", Type::new(element))).collect();
    Ok(Bound::Set { function: SetFunction::Unnest, arguments: arguments.to_vec(), columns })
}

/// generate_subscripts(array, dimension), as the elements of an array of subscripts.
fn subscripts(arguments: &[Expr]) -> Result<Bound, SqlError> {
    let array = arguments[0].type_().oid;
    if registry::element_of(array).is_none() {
        return Err(no_such_function("generate_subscripts", arguments));
    }
    let dimension = cast(arguments[1].clone(), Type::INT4, CastContext::Implicit)?;
    let passed = vec![arguments[0].clone(), dimension];
    let numbers = call_named("generate_subscripts", passed, Type::new(oid::INT4_ARRAY))?;
    let columns = vec![("generate_subscripts", Type::INT4)];
    Ok(Bound::Set { function: SetFunction::Unnest, arguments: vec![numbers], columns })
}

/// information_schema._pg_expandarray(array): the elements beside their numbers from 1.
fn expanded(arguments: &[Expr]) -> Result<Bound, SqlError> {
    let array = &arguments[0];
    let Some(element) = registry::element_of(array.type_().oid) else {
        return Err(no_such_function("information_schema._pg_expandarray", arguments));
    };
    let numbers = call_named("element numbers", vec![array.clone()], Type::new(oid::INT4_ARRAY))?;
    let columns = vec![("x", Type::new(element)), ("n", Type::INT4)];
    Ok(Bound::Set { function: SetFunction::Unnest, arguments: vec![array.clone(), numbers], columns })
}

fn generate_series(arguments: &[Expr]) -> Result<Option<Bound>, SqlError> {
    if !(2..=3).contains(&arguments.len()) {
        return Ok(None);
    }
    let argument_types: Vec<u32> = arguments.iter().map(|argument| argument.type_().oid).collect();
    if argument_types.iter().all(|ty| *ty == oid::UNKNOWN) {
        return Err(several_functions("generate_series", arguments));
    }
    let fits = |wanted: u32| {
        argument_types.iter().take(2).all(|ty| *ty == oid::UNKNOWN || implicit_ok(*ty, wanted))
            && argument_types.iter().take(2).any(|ty| *ty != oid::UNKNOWN)
    };
    let integer_step =
        |wanted: u32| argument_types.get(2).is_none_or(|ty| *ty == oid::UNKNOWN || implicit_ok(*ty, wanted));
    let choices = [
        (oid::INT4, SetFunction::SeriesInt4),
        (oid::INT8, SetFunction::SeriesInt8),
        (oid::NUMERIC, SetFunction::SeriesNumeric),
        (oid::TIMESTAMP, SetFunction::SeriesTimestamp),
        (oid::TIMESTAMPTZ, SetFunction::SeriesTimestamptz),
    ];
    for (wanted, function) in choices {
        let step = match wanted {
            oid::TIMESTAMP | oid::TIMESTAMPTZ => oid::INTERVAL,
            _ => wanted,
        };
        // A date becomes a timestamptz, which its category prefers.
        let prefers_zone = wanted == oid::TIMESTAMP && !argument_types.contains(&oid::TIMESTAMP);
        if !fits(wanted)
            || !integer_step(step)
            || prefers_zone
            || (step == oid::INTERVAL && argument_types.len() < 3)
        {
            continue;
        }
        let wanted_types = [wanted, wanted, step];
        let arguments = arguments
            .iter()
            .zip(wanted_types)
            .map(|(argument, ty)| cast(argument.clone(), Type::new(ty), CastContext::Implicit))
            .collect::<Result<Vec<_>, _>>()?;
        let columns = vec![("generate_series", Type::new(wanted))];
        return Ok(Some(Bound::Set { function, arguments, columns }));
    }
    Ok(None)
}
