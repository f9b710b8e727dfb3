//! SQL functions that read the catalog, called by name from the registry of functions.

use bumpalo::Bump;

use super::super::{Catalog, Relation};
use super::{extended, text};
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::identifier;
use values::types::{Datum, Type};

/// Calls a function of the registry that reads the catalog, by name.
///
/// # Errors
/// 0A000 for an unknown function.
pub fn function<'a>(
    environment: &dyn Environment,
    catalog: &Catalog,
    name: &str,
    arguments: &[Datum<'a>],
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    let give =
        |found: Option<String>| found.map_or(Datum::Null, |found| Datum::Text(arena.alloc_str(&found)));
    let answer = super::privileges::function(environment, catalog, name, arguments, arena);
    if let Some(answer) = answer.or_else(|| statistics_object(environment, catalog, name, arguments, arena)) {
        return answer;
    }
    let oid = |index: usize| match arguments.get(index) {
        Some(Datum::Oid(oid)) => *oid,
        Some(Datum::Int4(number)) => u32::try_from(*number).unwrap_or(0),
        Some(Datum::Int8(number)) => u32::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    let text_argument = |index: usize| match arguments.get(index) {
        Some(Datum::Text(text)) => *text,
        _ => "",
    };
    Ok(match name {
        "pg_get_indexdef" => {
            let table = index_table(catalog, oid(0));
            let pretty = matches!(arguments.get(2), Some(Datum::Bool(true)));
            give(table.and_then(|table| match arguments.get(1) {
                Some(Datum::Int4(number)) if *number != 0 => text::index_column(&table, oid(0), *number),
                _ => {
                    let bare = pretty && visible(environment, catalog, table.oid);
                    text::index(catalog, &table, oid(0), bare)
                }
            }))
        }
        "pg_get_constraintdef" => {
            let wanted = oid(0);
            let pretty = matches!(arguments.get(1), Some(Datum::Bool(true)));
            let visible = |oid| visible(environment, catalog, oid);
            give(
                catalog.tables().find_map(|table| text::constraint(catalog, table, wanted, pretty, &visible)),
            )
        }
        "pg_get_userbyid" => {
            let role = catalog.roles.iter().find(|role| role.oid == oid(0));
            give(Some(role.map_or_else(|| format!("unknown (OID={})", oid(0)), |role| role.name.clone())))
        }
        "pg_get_serial_sequence" => {
            let (table, column) = (arguments[0], arguments[1]);
            give(serial_sequence(environment, catalog, table, column)?)
        }
        "pg_table_is_visible" => Datum::Bool(visible(environment, catalog, oid(0))),
        "pg_type_is_visible" => Datum::Bool(values::types::info(oid(0)).is_some()),
        "pg_function_is_visible"
        | "pg_operator_is_visible"
        | "pg_collation_is_visible"
        | "pg_opclass_is_visible" => Datum::Bool(true),
        "pg_encoding_to_char" => give(Some(if oid(0) == 6 { "UTF8" } else { "" }.to_owned())),
        "obj_description" | "col_description" | "shobj_description" => Datum::Null,
        "to_regclass" => match values::text::parse(text_argument(0), Type::REGCLASS, environment, arena) {
            Err(error) if is_absence(&error) => Datum::Null,
            found => found?,
        },
        "to_regtype" => match values::text::parse(text_argument(0), Type::REGTYPE, environment, arena) {
            Err(error) if is_absence(&error) || is_no_type(&error) => Datum::Null,
            found => found?,
        },
        "pg_is_in_recovery" | "pg_relation_is_publishable" => Datum::Bool(false),
        "pg_relation_is_updatable" => Datum::Int4(28),
        "pg_get_viewdef" if matches!(arguments.first(), Some(Datum::Text(_))) => {
            values::text::parse(text_argument(0), values::types::Type::REGCLASS, environment, arena)?;
            Datum::Null
        }
        "pg_get_partkeydef"
        | "pg_get_viewdef"
        | "pg_get_triggerdef"
        | "pg_get_ruledef"
        | "pg_get_functiondef"
        | "pg_get_function_result"
        | "pg_get_function_arguments"
        | "pg_get_function_identity_arguments"
        | "pg_tablespace_location" => Datum::Null,
        other => return Err(SqlError::unsupported(format_args!("function {other}"))),
    })
}

/// Calls a function over extended statistics; None if the name is another one's.
fn statistics_object<'a>(
    environment: &dyn Environment,
    catalog: &Catalog,
    name: &str,
    arguments: &[Datum<'a>],
    arena: &'a Bump,
) -> Option<Result<Datum<'a>, SqlError>> {
    let asked = name.starts_with("pg_get_statisticsobjdef") || name == "pg_statistics_obj_is_visible";
    let Some(Datum::Oid(oid)) = arguments.first().filter(|_| asked) else { return None };
    let Some((table, object)) = extended::object(catalog, *oid) else { return Some(Ok(Datum::Null)) };
    Some(Ok(match name {
        "pg_get_statisticsobjdef" => {
            let bare = visible(environment, catalog, table.oid);
            Datum::Text(arena.alloc_str(&extended::definition(catalog, table, object, bare)))
        }
        "pg_get_statisticsobjdef_columns" => Datum::Text(arena.alloc_str(&extended::columns(table, object))),
        "pg_statistics_obj_is_visible" => {
            let path = environment.current_schemas(true);
            let found = catalog.statistics_object(&path, None, &object.name);
            Datum::Bool(found.is_some_and(|(_, found)| found.oid == object.oid))
        }
        // No object has expressions.
        _ => Datum::Null,
    }))
}

/// Whether an error says that a text names no object.
fn is_absence(error: &SqlError) -> bool {
    matches!(
        error.code,
        SqlState::UNDEFINED_TABLE
            | SqlState::INVALID_NAME
            | SqlState::INVALID_TEXT_REPRESENTATION
            | SqlState::NUMERIC_VALUE_OUT_OF_RANGE
    )
}

/// Whether an error says that no type has this name, rather than that the text is no type name at
/// all.
fn is_no_type(error: &SqlError) -> bool {
    error.code == SqlState::UNDEFINED_OBJECT || error.message.starts_with("invalid type name")
}

fn index_table(catalog: &Catalog, index: u32) -> Option<std::sync::Arc<super::Table>> {
    let (schema, name) = catalog.relation_name(index)?;
    match catalog.relation_in(schema, name)? {
        Relation::Index(table, _) => Some(table),
        _ => None,
    }
}

/// Whether the search path finds a relation by its bare name.
fn visible(environment: &dyn Environment, catalog: &Catalog, oid: u32) -> bool {
    let Some((schema, name)) = catalog.relation_name(oid) else { return false };
    let mut path = environment.current_schemas(true);
    path.retain(|schema| catalog.schema(schema).is_some());
    let first = path.iter().find_map(|candidate| {
        let candidate = catalog.schema(candidate)?.oid;
        catalog.relation_in(candidate, name).map(|_| candidate)
    });
    first == Some(schema)
}

/// The sequence that a column owns. Errors if the table or the column does not exist.
fn serial_sequence(
    environment: &dyn Environment,
    catalog: &Catalog,
    table: Datum<'_>,
    column: Datum<'_>,
) -> Result<Option<String>, SqlError> {
    let Some(oid) = super::privileges::relation(environment, catalog, table)? else { return Ok(None) };
    super::privileges::column_is_there(catalog, oid, column)?;
    let (Some(table), Datum::Text(column)) = (catalog.table(oid), column) else { return Ok(None) };
    let position = table.column(column).and_then(|at| u32::try_from(at).ok());
    let owner = position.map(|position| (oid, position));
    let sequence = catalog.owned_sequences(oid).find(|owned| owner.is_some() && owned.owner == owner);
    Ok(sequence.map(|sequence| identifier::qualified(catalog.schema_name(sequence.schema), &sequence.name)))
}
