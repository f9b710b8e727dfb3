//! The matrix of casts: source, target, method and weakest context; and common types.
//!
//! What must hold:
//!
//! 1. `CastPath::Relabel` joins only types with one representation in `Datum`. bpchar has its own,
//!    so no cast from or to it is one.
//! 2. A target with a modifier is applied to every value, also after a relabelling.
//! 3. A literal is read at compile time only where no setting of a session decides its meaning.
//!    Other sessions use the same plan.
//! 4. A parameter without a type takes the first type that it is cast to, so the client's value is
//!    read as that type.
//! 5. An explicit cast cuts a text that is too long. Any other context refuses it, so `explicit`
//!    must say which one the statement asked for.

use bumpalo::Bump;

use super::{CastContext, convert};
use crate::expr::{Cast, CastPath, Expr};
use crate::function::Function;
use values::environment::NoSession;
use values::error::{SqlError, SqlState};
use values::text;
use values::types::{self, Type, Value, oid};

use CastContext::{Assignment, Explicit, Implicit};

const INTEGERS: [u32; 3] = [oid::INT2, oid::INT4, oid::INT8];

fn is_string(ty: u32) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME)
}

/// The rank of a number type: an implicit cast goes up in rank, an assignment down.
fn number_rank(ty: u32) -> Option<u8> {
    Some(match ty {
        oid::INT2 => 0,
        oid::INT4 => 1,
        oid::INT8 => 2,
        oid::NUMERIC => 3,
        oid::FLOAT4 => 4,
        oid::FLOAT8 => 5,
        _ => return None,
    })
}

fn number_cast(from: u32, to: u32) -> Option<(CastPath, CastContext)> {
    let (low, high) = (number_rank(from)?, number_rank(to)?);
    Some((CastPath::Function(convert::to_number(to)?), if high > low { Implicit } else { Assignment }))
}

fn time_cast(from: u32, to: u32) -> Option<(CastPath, CastContext)> {
    let context = match (from, to) {
        (oid::DATE, oid::TIMESTAMP | oid::TIMESTAMPTZ)
        | (oid::TIMESTAMP, oid::TIMESTAMPTZ)
        | (oid::TIME, oid::INTERVAL) => Implicit,
        (oid::TIMESTAMP, oid::DATE | oid::TIME)
        | (oid::TIMESTAMPTZ, oid::DATE | oid::TIME | oid::TIMESTAMP)
        | (oid::INTERVAL, oid::TIME) => Assignment,
        _ => return None,
    };
    Some((CastPath::Function(convert::to_time(from, to)?), context))
}

fn oid_cast(from: u32, to: u32) -> Option<(CastPath, CastContext)> {
    let (from_reg, to_reg) = (oid::REG_TYPES.contains(&from), oid::REG_TYPES.contains(&to));
    let function = |function: &'static Function, context| Some((CastPath::Function(function), context));
    match (from, to) {
        (oid::OID, _) if to_reg => Some((CastPath::Relabel, Implicit)),
        (_, oid::OID) if from_reg => Some((CastPath::Relabel, Implicit)),
        _ if INTEGERS.contains(&from) && (to_reg || to == oid::OID) => function(convert::to_oid(), Implicit),
        (_, oid::INT4 | oid::INT8) if from_reg || from == oid::OID => {
            function(convert::to_number(to)?, Assignment)
        }
        (oid::TEXT | oid::VARCHAR, oid::REGCLASS) => function(convert::text_to_class(), Implicit),
        _ => None,
    }
}

fn string_cast(from: u32, to: u32) -> Option<(CastPath, CastContext)> {
    match (from, to) {
        (oid::TEXT | oid::VARCHAR, oid::TEXT | oid::VARCHAR) => Some((CastPath::Relabel, Implicit)),
        (oid::TEXT | oid::VARCHAR, oid::BPCHAR) => Some((CastPath::Length, Implicit)),
        (oid::BPCHAR, oid::TEXT | oid::VARCHAR) => Some((CastPath::Function(convert::unpad()), Implicit)),
        (oid::TEXT | oid::VARCHAR | oid::BPCHAR, oid::NAME) => {
            Some((CastPath::Function(convert::to_name()), Implicit))
        }
        (oid::NAME, oid::TEXT) => Some((CastPath::Relabel, Implicit)),
        (oid::NAME, oid::VARCHAR) => Some((CastPath::Relabel, Assignment)),
        (oid::NAME, oid::BPCHAR) => Some((CastPath::Length, Assignment)),
        (oid::CHAR, oid::TEXT) => Some((CastPath::Output, Implicit)),
        (oid::CHAR, oid::VARCHAR | oid::BPCHAR) => Some((CastPath::Output, Assignment)),
        (oid::TEXT | oid::VARCHAR | oid::BPCHAR, oid::CHAR) => Some((CastPath::Input, Assignment)),
        _ => None,
    }
}

/// The method of a cast between different types, and the weakest context that allows it.
fn path(from: u32, to: u32) -> Option<(CastPath, CastContext)> {
    if from == oid::UNKNOWN {
        return Some((CastPath::Input, Implicit));
    }
    let known = number_cast(from, to)
        .or_else(|| time_cast(from, to))
        .or_else(|| oid_cast(from, to))
        .or_else(|| string_cast(from, to));
    if known.is_some() {
        return known;
    }
    match (from, to) {
        (oid::BOOL, oid::INT4) => return Some((CastPath::Function(convert::bool_to_int4()), Explicit)),
        (oid::BOOL, oid::TEXT | oid::VARCHAR | oid::BPCHAR) => {
            return Some((CastPath::Function(convert::bool_to_text()), Assignment));
        }
        (oid::CHAR, oid::INT4) => return Some((CastPath::Function(convert::char_to_int4()), Explicit)),
        (oid::INT4, oid::CHAR) => return Some((CastPath::Function(convert::int4_to_char()), Explicit)),
        (oid::INT4, oid::BOOL) => return Some((CastPath::Function(convert::int4_to_bool()), Explicit)),
        (oid::INT2 | oid::INT4 | oid::INT8, oid::BYTEA) => {
            return Some((CastPath::Function(convert::to_bytea()), Explicit));
        }
        (oid::BYTEA, _) if INTEGERS.contains(&to) => {
            return Some((CastPath::Function(convert::from_bytea(to)?), Explicit));
        }
        (oid::OIDVECTOR, _) if types::element_of(to) == Some(oid::OID) => {
            return Some((CastPath::Relabel, Implicit));
        }
        (oid::INT2VECTOR, _) if types::element_of(to) == Some(oid::INT2) => {
            return Some((CastPath::Relabel, Implicit));
        }
        _ => {}
    }
    // No type is cast to a vector: only the catalog has vectors, and it determines their elements.
    if matches!(to, oid::INT2VECTOR | oid::OIDVECTOR) {
        return if is_string(from) { Some((CastPath::Input, Explicit)) } else { None };
    }
    if let (Some(from), Some(to)) = (types::element_of(from), types::element_of(to)) {
        let (element, context) = if from == to { (CastPath::Relabel, Implicit) } else { path(from, to)? };
        return Some((CastPath::Elements(Box::new(element)), context));
    }
    // Casts through text: an assignment writes text, only an explicit cast reads it.
    if is_string(to) {
        return Some((CastPath::Output, Assignment));
    }
    if is_string(from) && to != oid::RECORD {
        return Some((CastPath::Input, Explicit));
    }
    None
}

/// Whether an implicit cast leads from one type to the other.
pub(super) fn implicit_ok(from: u32, to: u32) -> bool {
    from == to || path(from, to).is_some_and(|(_, context)| context == Implicit)
}

/// Whether a cast exists in this context.
pub fn can_cast(from: Type, to: Type, context: CastContext) -> bool {
    from.oid == to.oid || path(from.oid, to.oid).is_some_and(|(_, needed)| needed <= context)
}

/// Casts to a type with its modifier, or fails with 42846 "cannot cast type a to b".
///
/// The caller reports 42804 for an assignment without a cast, because it knows the column; see
/// [`can_cast`]. The type's input reads an UNKNOWN literal at once where the session's settings do
/// not matter. An UNKNOWN parameter takes the type; a walk over the result collects the types of
/// parameters.
pub fn cast(expr: Expr, to: Type, context: CastContext) -> Result<Expr, SqlError> {
    let from = expr.type_();
    if from.oid == oid::UNKNOWN && to.oid != oid::UNKNOWN {
        match expr {
            // The fields that the type names decide the meaning of a number, so the text is read
            // with them.
            Expr::Param { index, .. } if interval_fields(to) => {
                let text = Expr::Param { index, type_: Type::TEXT };
                return Ok(wrap(text, CastPath::Input, to, false));
            }
            Expr::Param { index, .. } => {
                let plain = Expr::Param { index, type_: Type::new(to.oid) };
                return cast(plain, to, context);
            }
            Expr::Const(Value::Null, _) => return Ok(Expr::Const(Value::Null, to)),
            Expr::Const(Value::Text(ref literal), _) => {
                if let Some(value) = read_literal(literal, to, context)? {
                    return Ok(Expr::Const(value, to));
                }
            }
            _ => {}
        }
    }
    let explicit = context == Explicit;
    if from.oid == to.oid {
        if to.modifier < 0 || to.modifier == from.modifier {
            return Ok(expr);
        }
        return Ok(wrap(expr, CastPath::Length, to, explicit));
    }
    match path(from.oid, to.oid) {
        Some((path, needed)) if needed <= context => {
            // A relabelled value must still be cut or padded.
            let path =
                if to.modifier >= 0 && matches!(path, CastPath::Relabel) { CastPath::Length } else { path };
            Ok(wrap(expr, path, to, explicit))
        }
        _ => Err(SqlError::new(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {} to {}", Type::new(from.oid), Type::new(to.oid)),
        )),
    }
}

/// Casts an argument to the type the function takes.
pub(super) fn cast_argument(function: &Function, argument: Expr, to: Type) -> Result<Expr, SqlError> {
    let from = argument.type_().oid;
    if function.comparison.is_some()
        && to.oid == oid::TIMESTAMPTZ
        && matches!(from, oid::DATE | oid::TIMESTAMP)
    {
        // A comparison of dates has no range.
        return Ok(wrap(argument, CastPath::Function(convert::comparable_instant()), to, false));
    }
    cast(argument, to, CastContext::Implicit)
}

/// Whether a type is an interval of some fields only, like `interval day to hour`.
pub fn interval_fields(ty: Type) -> bool {
    use values::types::interval::fields;
    ty.oid == oid::INTERVAL && fields::of(ty.modifier) != fields::ALL
}

/// The text of the type's output function. For bool it differs from that of a cast.
pub(super) fn as_output(expr: Expr) -> Result<Expr, SqlError> {
    match expr.type_().oid {
        oid::UNKNOWN | oid::TEXT | oid::VARCHAR => cast(expr, Type::TEXT, Explicit),
        _ => Ok(wrap(expr, CastPath::Output, Type::TEXT, true)),
    }
}

fn wrap(input: Expr, path: CastPath, to: Type, explicit: bool) -> Expr {
    Expr::Cast(Box::new(Cast { input, path, type_: to, explicit }))
}

/// Whether reading the type's text depends on the session.
fn input_is_stable(ty: u32, literal: &str) -> bool {
    let base = types::element_of(ty).unwrap_or(ty);
    match base {
        oid::TIMESTAMPTZ => true,
        // An ISO date is the same day in every session; words like 'now' and other orders are not.
        oid::DATE | oid::TIMESTAMP | oid::TIME => {
            let iso = literal.bytes().all(|byte| byte.is_ascii_digit() || b"-:. T".contains(&byte));
            let digits = literal.bytes().take_while(u8::is_ascii_digit).count();
            let order_free = match literal.as_bytes().get(digits) {
                Some(b':') => base == oid::TIME,
                Some(b'-') => digits >= 4,
                _ => false,
            };
            !(iso && order_free)
        }
        // In SQL's format the sign at the front may apply to every field.
        oid::INTERVAL => {
            let first = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
            literal.trim_start_matches(|c| !first(c)).starts_with('-')
        }
        _ => oid::REG_TYPES.contains(&base),
    }
}

fn read_literal(literal: &str, to: Type, context: CastContext) -> Result<Option<Value>, SqlError> {
    if to.oid == oid::UNKNOWN || input_is_stable(to.oid, literal) {
        return Ok(None);
    }
    let arena = Bump::new();
    let session = NoSession::default();
    let plain = if context == Explicit && !matches!(to.oid, oid::NUMERIC | oid::INTERVAL) {
        Type::new(to.oid)
    } else {
        to
    };
    let value = text::parse(literal, plain, &session, &arena)?;
    let value = types::modifier::apply(value, to, context == Explicit, &arena)?;
    value.to_value().map(Some)
}

/// The common type of CASE's results, COALESCE's arguments, a UNION's column, VALUES, ARRAY[] and
/// so on. `context` names the construct in the message ("CASE", "UNION"). UNKNOWN alone becomes
/// text.
pub fn common_type(context: &str, types: &[Type]) -> Result<Type, SqlError> {
    if let Some((first, rest)) = types.split_first()
        && first.oid != oid::UNKNOWN
        && rest.iter().all(|ty| ty.oid == first.oid)
    {
        let same = rest.iter().all(|ty| ty.modifier == first.modifier);
        return Ok(if same { *first } else { Type::new(first.oid) });
    }
    let mut known = types.iter().filter(|ty| ty.oid != oid::UNKNOWN);
    let Some(first) = known.next() else { return Ok(Type::TEXT) };
    let mut chosen = first.oid;
    for ty in known {
        if ty.oid == chosen {
            continue;
        }
        if types::category(ty.oid) != types::category(chosen) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("{context} types {} and {} cannot be matched", Type::new(chosen), Type::new(ty.oid)),
            ));
        }
        if !types::is_preferred(chosen) && implicit_ok(chosen, ty.oid) && !implicit_ok(ty.oid, chosen) {
            chosen = ty.oid;
        }
    }
    if let Some(ty) = types.iter().find(|ty| ty.oid != oid::UNKNOWN && !implicit_ok(ty.oid, chosen)) {
        return Err(SqlError::new(
            SqlState::CANNOT_COERCE,
            format!("{context} could not convert type {} to {}", Type::new(ty.oid), Type::new(chosen)),
        ));
    }
    Ok(Type::new(chosen))
}

/// Casts all expressions to their common type.
pub fn unify(context: &str, exprs: Vec<Expr>) -> Result<(Vec<Expr>, Type), SqlError> {
    let types: Vec<Type> = exprs.iter().map(Expr::type_).collect();
    let common = common_type(context, &types)?;
    let exprs = exprs
        .into_iter()
        .map(|expr| cast(expr, common, CastContext::Implicit))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((exprs, common))
}
