//! The building of calls: resolves names and arguments to bound expressions, with PostgreSQL's
//! errors where nothing fits.
//!
//! What must hold:
//!
//! 1. Each built call has its arguments cast to the types that the chosen function declares, and
//!    the result type that follows from them.
//! 2. [`equal_sides`] gives both sides one type. Equal values of one type have equal key bytes, on
//!    which joins by hash rest.
//! 3. A part that stands twice in the result is copied through [`Expr::copied`], which asks for its
//!    memory, or shared. Otherwise nested constructs would grow exponentially.
//! 4. [`in_list`] splits the items as PostgreSQL does, because the split decides on types and
//!    errors.

use super::call::{call_named, no_such_function, several_functions, types_of};
use super::casts::{as_output, cast, cast_argument, common_type, implicit_ok, unify};
use super::resolve::{Choice, choose, concrete, polymorphic};
use super::{Bound, CastContext, aggregate, json_object, registry, sets};
use crate::expr::{Call, Case, Expr, Quantified, QuantifiedOver, Sharing};
use crate::function::Function;
use values::error::{SqlError, SqlState};
use values::types::{self, Type, Value, oid};
use values::work::tick_part;

/// The field of a record at an index.
pub fn record_field(record: Expr, place: usize, type_: Type) -> Result<Expr, SqlError> {
    let place = Expr::constant(Value::Int4(i32::try_from(place).unwrap_or(i32::MAX)), Type::INT4);
    call_named("record_field", vec![record, place], type_)
}

/// A call of the chosen function, with its arguments cast.
fn call(function: &'static Function, arguments: Vec<Expr>) -> Result<Expr, SqlError> {
    let types = types_of(&arguments);
    let polymorphic: Vec<Type> = polymorphic(function, &types).collect();
    if !polymorphic.is_empty() {
        sets::settled(&polymorphic)?;
    }
    let (wanted, result) = concrete(function, &types);
    if matches!(function.name, "textanycat" | "anytextcat") {
        // The other side is cast to text, whatever its type.
        let arguments = arguments
            .into_iter()
            .map(|argument| cast(argument, Type::TEXT, CastContext::Explicit))
            .collect::<Result<Vec<_>, _>>()?;
        return Ok(Expr::Call(Box::new(Call { function, arguments, type_: result })));
    }
    let arguments = arguments
        .into_iter()
        .zip(wanted)
        .map(|(argument, ty)| cast_argument(function, argument, ty))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Expr::Call(Box::new(Call { function, arguments, type_: result })))
}

/// Resolves `name(arguments)`; `name` is lower case and unqualified (pg_catalog). With `variadic`
/// the last argument is an array given with VARIADIC. Fails with 42883 and PostgreSQL's hint when
/// no function fits, with 42725 when several fit equally well.
pub fn function(name: &str, mut arguments: Vec<Expr>, variadic: bool) -> Result<Bound, SqlError> {
    if variadic {
        return Err(SqlError::unsupported("VARIADIC"));
    }
    if let Some(bound) = sets::resolve(name, &arguments)? {
        return Ok(bound);
    }
    if let Some(bound) = aggregate::resolve(name, &arguments)? {
        return Ok(bound);
    }
    let types = types_of(&arguments);
    if name == "pg_typeof" && arguments.len() == 1 {
        // The type is known now, for every value.
        return Ok(Bound::Scalar(Expr::constant(Value::Oid(types[0].oid), Type::REGTYPE)));
    }
    if name == "to_json" && types.len() == 1 {
        sets::settled(&types)?;
    }
    if name == "json_build_object" {
        return json_object::build_object(arguments).map(Bound::Scalar);
    }
    match name {
        // These take the text of any value. A separator or a format is text itself.
        "concat" | "concat_ws" | "format" => {
            let own = usize::from(name != "concat").min(arguments.len());
            if types[..own]
                .iter()
                .any(|type_| type_.oid != oid::UNKNOWN && !implicit_ok(type_.oid, oid::TEXT))
            {
                return Err(no_such_function(name, &arguments));
            }
            let rest = arguments.split_off(own).into_iter().map(as_output);
            let rest = rest.collect::<Result<Vec<_>, _>>()?;
            arguments.extend(rest);
        }
        "quote_literal" | "quote_nullable"
            if types.iter().any(|type_| matches!(type_.oid, oid::BOOL | oid::BPCHAR)) =>
        {
            // The text is that of a cast, which differs from the type's output.
            let cast_one = |argument| cast(argument, Type::TEXT, CastContext::Explicit);
            arguments = arguments.into_iter().map(cast_one).collect::<Result<Vec<_>, _>>()?;
        }
        "quote_literal" | "quote_nullable" => {
            arguments = arguments.into_iter().map(as_output).collect::<Result<Vec<_>, _>>()?;
        }
        _ => {}
    }
    match choose(registry::functions(name), &types_of(&arguments), false) {
        Choice::One(function) => call(function, arguments).map(Bound::Scalar),
        Choice::Many => Err(several_functions(name, &arguments)),
        Choice::None => {
            // A type's name with one argument is a cast.
            if let ([_], Some(info)) = (types.as_slice(), types::by_name(name))
                && info.kind == types::TypeKind::Base
                && !(types[0].oid == oid::RECORD && info.category == b'S')
                && let Some(argument) = arguments.pop()
            {
                return cast(argument, Type::new(info.oid), CastContext::Explicit).map(Bound::Scalar);
            }
            Err(no_such_function(name, &arguments))
        }
    }
}

fn operator_function(name: &str, types: &[Type]) -> Result<&'static Function, SqlError> {
    let name = if name == "!=" { "<>" } else { name };
    let shown = |types: &[Type]| match types {
        [right] => format!("{name} {}", Type::new(right.oid)),
        _ => format!("{} {name} {}", Type::new(types[0].oid), Type::new(types[1].oid)),
    };
    match choose(&registry::operators(name, types.len()), types, true) {
        Choice::One(function) => Ok(function),
        Choice::None => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {}", shown(types)),
        )
        .with_hint("No operator matches the given name and argument types. You might need to add explicit type casts.")),
        Choice::Many => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("operator is not unique: {}", shown(types)),
        )
        .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
    }
}

/// Resolves `left op right`, or `op right` when left is None.
pub fn operator(name: &str, left: Option<Expr>, right: Expr) -> Result<Expr, SqlError> {
    let arguments: Vec<Expr> = left.into_iter().chain([right]).collect();
    let function = operator_function(name, &types_of(&arguments))?;
    call(function, arguments)
}

fn comparison_call(name: &str, left: Expr, right: Expr) -> Result<Box<Call>, SqlError> {
    match operator(name, Some(left), right)? {
        Expr::Call(call) => Ok(call),
        _ => Err(SqlError::internal("an operator is no call")),
    }
}

/// Resolves `left op ANY (right)` or `left op ALL (right)` over an array.
pub fn operator_any(name: &str, left: Expr, right: Expr, all: bool) -> Result<Expr, SqlError> {
    let array = right.type_();
    let element = match array.oid {
        oid::UNKNOWN => Type::UNKNOWN,
        _ => Type::new(types::element_of(array.oid).ok_or_else(|| {
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side")
        })?),
    };
    let types = [left.type_(), element];
    let function = operator_function(name, &types)?;
    if function.result != oid::BOOL {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            "op ANY/ALL (array) requires operator to yield boolean",
        ));
    }
    let (wanted, _) = concrete(function, &types);
    let wanted_array = types::array_of(wanted[1].oid).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("could not find array type for data type {}", wanted[1]),
        )
    })?;
    let left = cast_argument(function, left, wanted[0])?;
    let right = QuantifiedOver::Array(cast(right, Type::new(wanted_array), CastContext::Implicit)?);
    Ok(Expr::Quantified(Box::new(Quantified { function, left, right, all })))
}

/// Resolves `left IN (list)` as PostgreSQL does.
///
/// Items that read no column of their query are compared as a list of one common type, where at
/// least two of them have one. The other items are compared one by one. `list` holds the items, and
/// whether each reads a column.
pub fn in_list(left: &Expr, list: Vec<(Expr, bool)>, negated: bool) -> Result<Expr, SqlError> {
    let name = if negated { "<>" } else { "=" };
    let mut parts = Vec::new();
    let (count, mut alone) = (list.len(), list);
    let values = || alone.iter().filter(|(_, reads)| !reads).map(|(item, _)| item);
    if let Some((function, common)) = list_function(name, left, values()) {
        let (columns, values): (Vec<_>, Vec<_>) = alone.into_iter().partition(|(_, reads)| *reads);
        let (wanted, _) = concrete(function, &[left.type_(), common]);
        let values = values
            .into_iter()
            .map(|(item, _)| {
                // A literal has the list's type, which the operator may take as another one.
                let unknown = item.type_().oid == oid::UNKNOWN;
                let item = if unknown { cast(item, common, CastContext::Implicit)? } else { item };
                cast_argument(function, item, wanted[1])
            })
            .collect::<Result<Vec<_>, _>>()?;
        let left = cast_argument(function, left.copied()?, wanted[0])?;
        let right = QuantifiedOver::List(values);
        parts.push(Expr::Quantified(Box::new(Quantified { function, left, right, all: negated })));
        alone = columns;
    }
    for (item, _) in alone {
        tick_part(count)?;
        parts.push(operator(name, Some(left.copied()?), item)?);
    }
    match (parts.len(), negated) {
        (1, _) => Ok(parts.remove(0)),
        (_, true) => Ok(Expr::And(parts)),
        (_, false) => Ok(Expr::Or(parts)),
    }
}

/// The operator between a value and a list of these items, and their common type; None where the
/// items are compared one by one.
fn list_function<'e>(
    name: &str,
    left: &'e Expr,
    items: impl Iterator<Item = &'e Expr>,
) -> Option<(&'static Function, Type)> {
    let types: Vec<Type> = std::iter::once(left).chain(items).map(Expr::type_).collect();
    if types.len() < 3 || left.type_().oid == oid::RECORD {
        return None;
    }
    let common = common_type("IN", &types).ok()?;
    Some((operator_function(name, &[left.type_(), common]).ok()?, common))
}

/// Both sides of `left = right` in one type: the operator's, or the common one where the operator
/// compares two types. None where no such operator or type exists, or a side cannot be cast; the
/// comparison itself reports the error.
pub fn equal_sides(left: &Expr, right: &Expr) -> Option<(Expr, Expr)> {
    let types = [left.type_(), right.type_()];
    let function = operator_function("=", &types).ok()?;
    let (wanted, _) = concrete(function, &types);
    let left = cast_argument(function, left.copied().ok()?, wanted[0]).ok()?;
    let right = cast_argument(function, right.copied().ok()?, wanted[1]).ok()?;
    if wanted[0].oid == wanted[1].oid {
        return Some((left, right));
    }
    let [left, right] = <[Expr; 2]>::try_from(unify("=", vec![left, right]).ok()?.0).ok()?;
    Some((left, right))
}

/// `IS [NOT]` DISTINCT FROM.
pub fn distinct(left: Expr, right: Expr, negated: bool) -> Result<Expr, SqlError> {
    Ok(Expr::Distinct { equal: comparison_call("=", left, right)?, negated })
}

/// Types that compare with each other without a cast.
const INSTANTS: [u32; 3] = [oid::DATE, oid::TIMESTAMP, oid::TIMESTAMPTZ];

/// NULLIF(left, right).
pub fn null_if(left: Expr, right: Expr) -> Result<Expr, SqlError> {
    if left.type_().oid == oid::UNKNOWN && right.type_().oid == oid::UNKNOWN {
        let (mut both, _) = unify("NULLIF", vec![left, right])?;
        let (Some(right), Some(left)) = (both.pop(), both.pop()) else {
            return Err(SqlError::internal("NULLIF lost its arguments"));
        };
        return null_if(left, right);
    }
    let (type_, other) = (left.type_(), right.type_());
    if type_.oid != other.oid && [type_.oid, other.oid].iter().all(|oid| INSTANTS.contains(oid)) {
        // PostgreSQL compares the two without a cast: the result has the left type.
        let mut sharing = Sharing::default();
        let left = sharing.operand(left);
        let equal = Expr::Call(comparison_call("=", left.copied()?, right)?);
        let branches = vec![(equal, Expr::null(type_))];
        return Ok(sharing.around(Expr::Case(Box::new(Case { branches, otherwise: left, type_ }))));
    }
    Ok(Expr::NullIf(comparison_call("=", left, right)?))
}
