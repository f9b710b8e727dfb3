//! The OID alias types as text: regclass, regtype, regnamespace, regrole, regproc, and plain OIDs.
//!
//! The session looks up names; a number is the OID itself.
//!
//! What must hold:
//!
//! 1. An OID without an object of its kind is written as a number, which reads back as the same
//!    OID.
//! 2. A name is cut to the length of a message before it is looked up, because no name is longer.
//! 3. Reading depends on the session's catalog and search path, so it is never done at compile
//!    time.

use super::integer::write_i64;
use super::strtoul::parse_oid;
use crate::environment::Environment;
use crate::error::{SqlError, SqlState, for_message};
use crate::identifier;
use crate::types::{Type, oid, registry};

/// Appends an OID, or the name of its object where the type shows names.
pub(super) fn write_oid(value: u32, type_oid: u32, session: &dyn Environment, out: &mut Vec<u8>) {
    let name = match type_oid {
        oid::OID | oid::XID | oid::CID => None,
        _ if value == 0 => Some("-".to_owned()),
        oid::REGCLASS => session.class_name(value),
        oid::REGTYPE => registry::info(value).map(|_| registry::format_type(Type::new(value))),
        oid::REGNAMESPACE => session.schema_name(value),
        oid::REGROLE => session.role_name(value),
        oid::REGPROC => session.function_name(value).map(str::to_owned),
        _ => None,
    };
    match name {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write_i64(value.into(), out),
    }
}

/// Reads the text of an OID alias type: a number, `-` for 0, or a name.
pub(super) fn parse_reg(text: &str, type_oid: u32, session: &dyn Environment) -> Result<u32, SqlError> {
    let name = for_message(text);
    if name == "-" {
        return Ok(0);
    }
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
        return parse_oid(name, "oid");
    }
    let absent =
        |what: &str, code, name: &str| SqlError::new(code, format!("{what} \"{name}\" does not exist"));
    match type_oid {
        oid::REGCLASS => named_class(name, session),
        oid::REGNAMESPACE => {
            let name = bare_name(name)?;
            session.schema_oid(&name).ok_or_else(|| absent("schema", SqlState::INVALID_SCHEMA_NAME, &name))
        }
        oid::REGROLE => {
            let name = bare_name(name)?;
            session.role_oid(&name).ok_or_else(|| absent("role", SqlState::UNDEFINED_OBJECT, &name))
        }
        oid::REGPROC => {
            let plain = unquote(name.strip_prefix("pg_catalog.").unwrap_or(name));
            session.function_oid(&plain).ok_or_else(|| absent("function", SqlState::UNDEFINED_FUNCTION, name))
        }
        _ => session.type_oid(name),
    }
}

/// The OID of the relation a text names; a number counts as a name here.
pub fn named_class(text: &str, session: &dyn Environment) -> Result<u32, SqlError> {
    let names = qualified_name(text, session)?;
    session.class_oid(&names).ok_or_else(|| {
        let message = format!("relation \"{}\" does not exist", names.join("."));
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// The unquoted parts of a relation's name.
pub fn qualified_name(text: &str, session: &dyn Environment) -> Result<Vec<String>, SqlError> {
    let names = identifier::split(for_message(text), '.').filter(|names| !names.is_empty());
    let names = names.ok_or_else(invalid_name)?;
    let shown = || names.join(".");
    match names.as_slice() {
        [database, _, _] if *database != session.current_database() => {
            let message = format!("cross-database references are not implemented: \"{}\"", shown());
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        [_, _, _, _, ..] => {
            let message = format!("improper relation name (too many dotted names): {}", shown());
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        _ => Ok(names),
    }
}

/// The unquoted name of an object that belongs to no schema.
fn bare_name(text: &str) -> Result<String, SqlError> {
    match identifier::split(text, '.').map(<[String; 1]>::try_from) {
        Some(Ok([name])) => Ok(name),
        _ => Err(invalid_name()),
    }
}

#[cold]
fn invalid_name() -> SqlError {
    SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")
}

fn unquote(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}
