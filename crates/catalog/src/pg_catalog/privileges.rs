//! The functions that ask for privileges: `has_*_privilege` and `pg_has_role`.
//!
//! Every role may do everything. So an answer depends only on whether the role, the object and the
//! privilege exist. A wrong object name is an error; a wrong number of a table or column gives
//! NULL.

use bumpalo::Bump;

use super::super::system_columns::SYSTEM_COLUMNS;
use super::super::{Catalog, Relation};
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::text::alias::qualified_name;
use values::types::{Datum, Type};

/// The lowest number of a system column (`tableoid` and the like).
const FIRST_SYSTEM_COLUMN: i16 = -6;

/// The privileges that exist on a kind of object; None for a function that is not about privileges.
fn privileges(function: &str) -> Option<&'static [&'static str]> {
    Some(match function {
        "has_table_privilege" => {
            &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"]
        }
        "has_column_privilege" | "has_any_column_privilege" => &["SELECT", "INSERT", "UPDATE", "REFERENCES"],
        "has_sequence_privilege" => &["USAGE", "SELECT", "UPDATE"],
        "has_database_privilege" => &["CREATE", "TEMPORARY", "TEMP", "CONNECT"],
        "has_function_privilege" => &["EXECUTE"],
        "has_schema_privilege" => &["CREATE", "USAGE"],
        "has_tablespace_privilege" => &["CREATE"],
        "has_type_privilege" => &["USAGE"],
        "pg_has_role" => &["USAGE", "MEMBER", "SET"],
        _ => return None,
    })
}

/// The answer of a privilege function; None for any other function.
///
/// # Errors
/// The SQLSTATE for a name that no object has; 22023 for a privilege that the kind of object does
/// not have.
pub(super) fn function<'a>(
    environment: &dyn Environment,
    catalog: &Catalog,
    name: &str,
    arguments: &[Datum<'a>],
    arena: &'a Bump,
) -> Option<Result<Datum<'a>, SqlError>> {
    let known = privileges(name)?;
    let columns = usize::from(name == "has_column_privilege");
    // The last argument names privileges, and those before it name the object. A role may precede
    // both.
    let (asked, rest) = arguments.split_last()?;
    let (roles, object) = rest.split_at(rest.len().checked_sub(columns + 1)?);
    Some((|| {
        if let Some(name_or_oid) = roles.first() {
            role(environment, *name_or_oid)?;
        }
        let found = match name {
            "pg_has_role" => role(environment, object[0]).map(|()| true),
            _ => object_is_there(environment, catalog, (name, object), arena),
        }?;
        if let Datum::Text(asked) = asked {
            for privilege in asked.split(',') {
                check(name, known, privilege.trim())?;
            }
        }
        Ok(if found { Datum::Bool(true) } else { Datum::Null })
    })())
}

/// Raises 22023 for a privilege that the kind of object does not have.
fn check(function: &str, known: &[&str], shown: &str) -> Result<(), SqlError> {
    let upper = shown.to_ascii_uppercase();
    let mut plain = upper.strip_suffix(" WITH GRANT OPTION").unwrap_or(&upper);
    if function == "pg_has_role" {
        plain = plain.strip_suffix(" WITH ADMIN OPTION").unwrap_or(plain);
    }
    if known.contains(&plain) {
        return Ok(());
    }
    let message = format!("unrecognized privilege type: \"{shown}\"");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

/// Checks that a role exists. A wrong name is an error. A wrong number raises 0A000, because
/// PostgreSQL then applies PUBLIC's privileges.
fn role(environment: &dyn Environment, name_or_oid: Datum<'_>) -> Result<(), SqlError> {
    let there = match name_or_oid {
        Datum::Text("public") => return Err(SqlError::unsupported("privileges of PUBLIC")),
        Datum::Text(name) if environment.role_oid(name).is_none() => {
            return Err(absent(SqlState::UNDEFINED_OBJECT, "role", name));
        }
        Datum::Oid(number) => environment.role_name(number).is_some(),
        _ => true,
    };
    if there { Ok(()) } else { Err(SqlError::unsupported("privileges of a role that is not there")) }
}

fn absent(code: SqlState, what: &str, name: &str) -> SqlError {
    SqlError::new(code, format!("{what} \"{name}\" does not exist"))
}

/// Whether the object that a function asks about exists.
fn object_is_there<'a>(
    environment: &dyn Environment,
    catalog: &Catalog,
    (function, object): (&str, &[Datum<'a>]),
    arena: &'a Bump,
) -> Result<bool, SqlError> {
    match (function, object[0]) {
        ("has_schema_privilege", Datum::Text(name)) => match environment.schema_oid(name) {
            Some(_) => Ok(true),
            None => Err(absent(SqlState::INVALID_SCHEMA_NAME, "schema", name)),
        },
        ("has_database_privilege", Datum::Text(name)) => {
            match catalog.databases.iter().any(|database| database.name == name) {
                true => Ok(true),
                false => Err(absent(SqlState::INVALID_CATALOG_NAME, "database", name)),
            }
        }
        ("has_tablespace_privilege", Datum::Text(name)) => match name {
            "pg_default" | "pg_global" => Ok(true),
            _ => Err(absent(SqlState::UNDEFINED_OBJECT, "tablespace", name)),
        },
        ("has_type_privilege", Datum::Text(name)) => {
            values::text::parse(name, Type::REGTYPE, environment, arena).map(|_| true)
        }
        ("has_sequence_privilege", name_or_oid) => {
            let Some(number) = relation(environment, catalog, name_or_oid)? else { return Ok(false) };
            let Some((schema, name)) = catalog.relation_name(number) else { return Ok(false) };
            match catalog.relation_in(schema, name) {
                Some(Relation::Sequence(_)) => Ok(true),
                _ => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence"))),
            }
        }
        ("has_table_privilege" | "has_any_column_privilege", name_or_oid) => {
            Ok(relation(environment, catalog, name_or_oid)?
                .is_some_and(|number| catalog.relation_name(number).is_some()))
        }
        ("has_column_privilege", name_or_oid) => {
            let Some(number) = relation(environment, catalog, name_or_oid)? else { return Ok(false) };
            column_is_there(catalog, number, object[1])
        }
        // For other kinds of objects, PostgreSQL lets a superuser do everything whether or not the
        // number exists.
        _ => Ok(true),
    }
}

/// The number of a relation given by name or number. Unlike regclass, these functions do not read a
/// text of digits as a number.
pub(super) fn relation(
    environment: &dyn Environment,
    catalog: &Catalog,
    name_or_oid: Datum<'_>,
) -> Result<Option<u32>, SqlError> {
    let text = match name_or_oid {
        Datum::Text(text) => text,
        Datum::Oid(number) => return Ok(Some(number)),
        _ => return Ok(None),
    };
    let names = qualified_name(text, environment)?;
    if let [.., schema, _] = names.as_slice()
        && catalog.schema(schema).is_none()
    {
        return Err(absent(SqlState::INVALID_SCHEMA_NAME, "schema", schema));
    }
    let found = environment.class_oid(&names);
    found.map(Some).ok_or_else(|| absent(SqlState::UNDEFINED_TABLE, "relation", &names.join(".")))
}

/// Whether a table has a column. A wrong column name is an error.
pub(super) fn column_is_there(catalog: &Catalog, table: u32, column: Datum<'_>) -> Result<bool, SqlError> {
    let Some((schema, name)) = catalog.relation_name(table) else { return Ok(false) };
    let Some(Relation::Table(table)) = catalog.relation_in(schema, name) else { return Ok(true) };
    match column {
        Datum::Text(column) if SYSTEM_COLUMNS.contains(&column) => Ok(true),
        Datum::Text(column) if table.column(column).is_none() => {
            let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
        Datum::Int2(at) if at < 0 => Ok(at >= FIRST_SYSTEM_COLUMN),
        Datum::Int2(at) => {
            let at = usize::try_from(at).ok().and_then(|at| at.checked_sub(1));
            Ok(at.and_then(|at| table.columns.get(at)).is_some_and(|column| !column.dropped))
        }
        _ => Ok(true),
    }
}
