//! Type names, and the types they stand for.
//!
//! PostgreSQL's types that Allcore does not have raise 0A000, unknown names 42704.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, TypeName, a_const};

use super::Binder;
use crate::parse::strings;
use values::error::{SqlError, SqlState};
use values::types::{self, Type, oid, registry};

/// PostgreSQL's limits of precision and length.
const MAX_TEXT_LENGTH: i32 = 10_485_760;
const MAX_NUMERIC_PRECISION: i32 = 1000;
const MAX_TIME_PRECISION: i32 = 6;

/// PostgreSQL's types that Allcore does not have.
const NOT_BUILT: &[&str] = &[
    "json",
    "jsonb",
    "jsonpath",
    "xml",
    "money",
    "bit",
    "varbit",
    "timetz",
    "inet",
    "cidr",
    "macaddr",
    "macaddr8",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "tsvector",
    "tsquery",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "tsmultirange",
    "tstzmultirange",
    "datemultirange",
    "pg_lsn",
    "xid8",
    "tid",
    "txid_snapshot",
    "pg_snapshot",
];

impl Binder<'_> {
    /// Refuses a collation that does not order text by its bytes. Without a name, the only
    /// collation applies.
    pub(crate) fn collation(&self, name: &[Node], location: i32) -> Result<(), SqlError> {
        match strings(name).last().copied() {
            None | Some("C" | "POSIX" | "default" | "ucs_basic" | "C.utf8" | "pg_c_utf8") => Ok(()),
            Some(name) => Err(self.error(
                SqlState::UNDEFINED_OBJECT,
                format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
                location,
            )),
        }
    }

    /// Raises 42804 for a type that a collation does not apply to.
    pub(crate) fn collatable(&self, type_: Type, location: i32) -> Result<(), SqlError> {
        let element = types::element_of(type_.oid).unwrap_or(type_.oid);
        if matches!(element, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN) {
            return Ok(());
        }
        let message = format!("collations are not supported by type {}", Type::new(type_.oid));
        Err(self.error(SqlState::DATATYPE_MISMATCH, message, location))
    }

    /// The type that a type name stands for.
    pub(crate) fn type_name(&self, name: &TypeName) -> Result<Type, SqlError> {
        named(name).map_err(|(error, location)| error.at(self.position(location)))
    }
}

/// An error and its location.
type Misnamed = (SqlError, i32);

/// The type that a type name stands for.
pub(super) fn named(name: &TypeName) -> Result<Type, Misnamed> {
    let names = strings(&name.names);
    let location = name.location;
    let unsupported = |what: &str| (SqlError::unsupported(what), location);
    if name.setof {
        return Err(unsupported("SETOF"));
    }
    if name.pct_type {
        return Err(unsupported("%TYPE"));
    }
    let known = match *names.as_slice() {
        [plain] | ["pg_catalog", plain] if NOT_BUILT.contains(&plain) => {
            return Err(unsupported(&format!("type {plain}")));
        }
        [plain] | ["pg_catalog", plain] => types::by_name(plain),
        _ => None,
    };
    let Some(info) = known else {
        let array = if name.array_bounds.is_empty() { "" } else { "[]" };
        let message = format!("type \"{}{array}\" does not exist", names.join("."));
        return Err((SqlError::new(SqlState::UNDEFINED_OBJECT, message), location));
    };
    let modifiers = modifiers(&name.typmods)?;
    let modifier = modifier(info.oid, &modifiers).map_err(|error| (error, location))?;
    let element = Type::with_modifier(info.oid, modifier);
    if name.array_bounds.is_empty() {
        return Ok(element);
    }
    let array = types::array_of(info.oid).ok_or_else(|| {
        let message = format!("could not find array type for data type {}", info.name);
        (SqlError::new(SqlState::UNDEFINED_OBJECT, message), location)
    })?;
    Ok(Type::with_modifier(array, element.modifier))
}

fn modifiers(nodes: &[Node]) -> Result<Vec<i32>, Misnamed> {
    let mut values = Vec::with_capacity(nodes.len());
    for node in nodes {
        match &node.node {
            Some(NodeEnum::AConst(constant)) => match &constant.val {
                Some(a_const::Val::Ival(value)) => values.push(value.ival),
                _ => {
                    let message = "type modifiers must be simple constants or identifiers";
                    return Err((SqlError::new(SqlState::SYNTAX_ERROR, message), constant.location));
                }
            },
            _ => return Err((SqlError::unsupported("this type modifier"), -1)),
        }
    }
    Ok(values)
}

fn modifier(type_: u32, parts: &[i32]) -> Result<i32, SqlError> {
    let wrong = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    match (type_, parts) {
        (_, []) => Ok(-1),
        (oid::VARCHAR | oid::BPCHAR, &[length]) => {
            let name = if type_ == oid::VARCHAR { "varchar" } else { "char" };
            if length < 1 {
                return wrong(format!("length for type {name} must be at least 1"));
            }
            if length > MAX_TEXT_LENGTH {
                return wrong(format!("length for type {name} cannot exceed {MAX_TEXT_LENGTH}"));
            }
            Ok(length + 4)
        }
        (oid::NUMERIC, &[precision, ref rest @ ..]) if rest.len() <= 1 => {
            let scale = rest.first().copied().unwrap_or(0);
            if !(1..=MAX_NUMERIC_PRECISION).contains(&precision) {
                return wrong(format!("NUMERIC precision {precision} must be between 1 and 1000"));
            }
            if !(-MAX_NUMERIC_PRECISION..=MAX_NUMERIC_PRECISION).contains(&scale) {
                return wrong(format!("NUMERIC scale {scale} must be between -1000 and 1000"));
            }
            Ok(registry::numeric_modifier_of(precision, scale))
        }
        (oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ, &[precision]) => {
            if precision < 0 {
                return wrong(format!("{}({precision}) precision must not be negative", types::name(type_)));
            }
            Ok(precision.min(MAX_TIME_PRECISION))
        }
        // The mask of the fields, then the precision (all ones = none), packed as PostgreSQL packs
        // them.
        (oid::INTERVAL, &[mask]) => Ok(((mask & 0x7fff) << 16) | 0xffff),
        (oid::INTERVAL, &[mask, precision]) => {
            Ok(((mask & 0x7fff) << 16) | precision.clamp(0, MAX_TIME_PRECISION))
        }
        (oid::VARCHAR | oid::BPCHAR | oid::NUMERIC | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ, _) => {
            wrong("invalid type modifier".to_owned())
        }
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("type modifier is not allowed for type \"{}\"", types::name(type_)),
        )),
    }
}
