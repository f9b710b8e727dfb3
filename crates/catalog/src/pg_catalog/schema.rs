//! Rows of `information_schema`.
//!
//! [`fill`] adds the rows of one relation and names each column it sets.

use super::super::{Catalog, Sequence, Table};
use super::{Result, Rows, text};
use crate::{Identity, ReferentialAction};
use values::types::{Value, oid as types, registry};

pub(super) fn fill(catalog: &Catalog, relation: &str, rows: &mut Rows<'_>) -> Result<()> {
    match relation {
        "tables" => tables(catalog, rows)?,
        "columns" => columns(catalog, rows)?,
        "schemata" => {
            for schema in catalog.schemas() {
                rows.add(vec![
                    ("catalog_name", text(&catalog.database.name)),
                    ("schema_name", text(&schema.name)),
                    ("schema_owner", text(owner(catalog))),
                ])?;
            }
        }
        "table_constraints" => table_constraints(catalog, rows)?,
        "key_column_usage" => key_columns(catalog, rows)?,
        "constraint_column_usage" => constraint_columns(catalog, rows)?,
        "referential_constraints" => referential(catalog, rows)?,
        "sequences" => {
            // The sequences of identity columns belong to the columns and are not shown.
            let own = |owner: Option<(u32, u32)>| {
                let (table, column) = owner?;
                catalog.table(table)?.columns.get(column as usize)?.identity
            };
            for sequence in catalog.sequences().filter(|sequence| own(sequence.owner).is_none()) {
                let precision = match sequence.type_.oid {
                    types::INT2 => 16,
                    types::INT4 => 32,
                    _ => 64,
                };
                rows.add(vec![
                    ("sequence_catalog", text(&catalog.database.name)),
                    ("sequence_schema", text(catalog.schema_name(sequence.schema))),
                    ("sequence_name", text(&sequence.name)),
                    ("data_type", text(sequence.type_.to_string())),
                    ("numeric_precision", Value::Int4(precision)),
                    ("numeric_precision_radix", Value::Int4(2)),
                    ("numeric_scale", Value::Int4(0)),
                    ("start_value", text(sequence.start.to_string())),
                    ("minimum_value", text(sequence.minimum.to_string())),
                    ("maximum_value", text(sequence.maximum.to_string())),
                    ("increment", text(sequence.increment.to_string())),
                    ("cycle_option", text(yes_no(sequence.cycle))),
                ])?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// A numeric type's precision and scale.
fn precision_of(type_: values::types::Type) -> (Value, Value) {
    match type_.oid {
        types::INT2 => (Value::Int4(16), Value::Int4(0)),
        types::INT4 => (Value::Int4(32), Value::Int4(0)),
        types::INT8 => (Value::Int4(64), Value::Int4(0)),
        types::FLOAT4 => (Value::Int4(24), Value::Null),
        types::FLOAT8 => (Value::Int4(53), Value::Null),
        types::NUMERIC if type_.modifier >= 4 => {
            let (precision, scale) = registry::numeric_modifier(type_.modifier);
            (Value::Int4(precision), Value::Int4(scale))
        }
        _ => (Value::Null, Value::Null),
    }
}

fn owner(catalog: &Catalog) -> &str {
    catalog.roles.first().map_or("", |role| &role.name)
}

fn yes_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

/// Stored tables and system relations, and whether each is a system relation.
fn every_table(catalog: &Catalog) -> impl Iterator<Item = (&Table, bool)> {
    let stored = catalog.tables().map(|table| (&**table, false));
    stored.chain(super::all().map(|(table, view)| (&**table, view)))
}

fn tables(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for (table, view) in every_table(catalog) {
        rows.add(vec![
            ("table_catalog", text(&catalog.database.name)),
            ("table_schema", text(catalog.schema_name(table.schema))),
            ("table_name", text(&table.name)),
            ("table_type", text(if view { "VIEW" } else { "BASE TABLE" })),
            ("is_insertable_into", text(yes_no(!view))),
            ("is_typed", text("NO")),
        ])?;
    }
    Ok(())
}

fn columns(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for (table, view) in every_table(catalog) {
        for (position, column) in table.live_columns() {
            let type_ = column.type_;
            let is_array = values::types::is_array(type_.oid);
            let shown = if is_array { "ARRAY".to_owned() } else { plain_name(type_) };
            let length = match type_.oid {
                types::VARCHAR | types::BPCHAR if type_.modifier >= 4 => Value::Int4(type_.modifier - 4),
                _ => Value::Null,
            };
            let (precision, scale) = precision_of(type_);
            let radix = match type_.oid {
                types::NUMERIC => Value::Int4(10),
                types::INT2 | types::INT4 | types::INT8 | types::FLOAT4 | types::FLOAT8 => Value::Int4(2),
                _ => Value::Null,
            };
            let octets = match (type_.oid, &length) {
                (types::VARCHAR | types::BPCHAR, Value::Int4(length)) => {
                    Value::Int4(length.saturating_mul(4))
                }
                (types::TEXT | types::VARCHAR | types::BPCHAR, _) => Value::Int4(1 << 30),
                _ => Value::Null,
            };
            let identity = column.identity.map_or(Value::Null, |identity| {
                text(if identity == Identity::Always { "ALWAYS" } else { "BY DEFAULT" })
            });
            let default = column.default.as_deref().filter(|_| column.identity.is_none());
            let default = default.map(|default| super::text::shown_default(catalog, default));
            let place = (table.oid, u32::try_from(position).unwrap_or(u32::MAX));
            let own = column
                .identity
                .and_then(|_| catalog.owned_sequences(place.0).find(|own| own.owner == Some(place)));
            let number = |value: i64| text(value.to_string());
            let numbers = |of: fn(&Sequence) -> i64| own.map_or(Value::Null, |own| number(of(own)));
            rows.add(vec![
                ("table_catalog", text(&catalog.database.name)),
                ("table_schema", text(catalog.schema_name(table.schema))),
                ("table_name", text(&table.name)),
                ("column_name", text(&column.name)),
                ("ordinal_position", Value::Int4(i32::try_from(position + 1).unwrap_or(0))),
                ("column_default", default.map_or(Value::Null, text)),
                ("is_nullable", text(yes_no(!column.not_null))),
                ("data_type", text(shown)),
                ("character_maximum_length", length),
                ("character_octet_length", octets),
                ("numeric_precision", precision),
                ("numeric_precision_radix", radix),
                ("numeric_scale", scale),
                ("datetime_precision", fraction_digits(type_)),
                ("dtd_identifier", text((position + 1).to_string())),
                ("is_self_referencing", text("NO")),
                ("udt_catalog", text(&catalog.database.name)),
                ("udt_schema", text("pg_catalog")),
                ("udt_name", text(values::types::name(type_.oid))),
                ("is_identity", text(yes_no(column.identity.is_some()))),
                ("identity_generation", identity),
                ("identity_start", numbers(|own| own.start)),
                ("identity_increment", numbers(|own| own.increment)),
                ("identity_maximum", numbers(|own| own.maximum)),
                ("identity_minimum", numbers(|own| own.minimum)),
                ("identity_cycle", text(yes_no(own.is_some_and(|own| own.cycle)))),
                ("is_generated", text("NEVER")),
                ("is_updatable", text(yes_no(!view))),
            ])?;
        }
    }
    Ok(())
}

/// The digits of a type's fraction of a second; NULL for a type without one.
fn fraction_digits(type_: values::types::Type) -> Value {
    match type_.oid {
        types::DATE => Value::Int4(0),
        types::TIME | types::TIMESTAMP | types::TIMESTAMPTZ if type_.modifier >= 0 => {
            Value::Int4(type_.modifier)
        }
        types::INTERVAL if type_.modifier >= 0 && type_.modifier & 0xffff != 0xffff => {
            Value::Int4(type_.modifier & 0xffff)
        }
        types::TIME | types::TIMESTAMP | types::TIMESTAMPTZ | types::INTERVAL => Value::Int4(6),
        _ => Value::Null,
    }
}

fn plain_name(type_: values::types::Type) -> String {
    values::types::Type::new(type_.oid).to_string()
}

/// A constraint: its name, kind and columns; for a foreign key also the columns it references.
struct Shown<'c> {
    table: &'c Table,
    name: &'c str,
    kind: &'static str,
    columns: Vec<u32>,
    parent: Option<&'c super::super::ForeignKey>,
}

fn constraints(catalog: &Catalog) -> Vec<Shown<'_>> {
    let mut list = Vec::new();
    for table in catalog.tables() {
        if let Some(key) = &table.primary_key {
            let columns = key.columns.clone();
            list.push(Shown { table, name: &key.name, kind: "PRIMARY KEY", columns, parent: None });
        }
        for index in table.indexes.iter().filter(|index| index.constraint != 0) {
            let columns = index.columns.iter().map(|key| key.column).collect();
            list.push(Shown { table, name: &index.name, kind: "UNIQUE", columns, parent: None });
        }
        for check in &table.checks {
            list.push(Shown { table, name: &check.name, kind: "CHECK", columns: Vec::new(), parent: None });
        }
        for key in &table.foreign_keys {
            let columns = key.columns.clone();
            list.push(Shown { table, name: &key.name, kind: "FOREIGN KEY", columns, parent: Some(key) });
        }
    }
    list
}

fn table_constraints(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for shown in constraints(catalog) {
        let schema = catalog.schema_name(shown.table.schema);
        rows.add(vec![
            ("constraint_catalog", text(&catalog.database.name)),
            ("constraint_schema", text(schema)),
            ("constraint_name", text(shown.name)),
            ("table_catalog", text(&catalog.database.name)),
            ("table_schema", text(schema)),
            ("table_name", text(&shown.table.name)),
            ("constraint_type", text(shown.kind)),
            ("is_deferrable", text("NO")),
            ("initially_deferred", text("NO")),
            ("enforced", text("YES")),
        ])?;
    }
    Ok(())
}

fn key_columns(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for shown in constraints(catalog) {
        let schema = catalog.schema_name(shown.table.schema);
        for (number, &column) in shown.columns.iter().enumerate() {
            let number = Value::Int4(i32::try_from(number + 1).unwrap_or(0));
            rows.add(vec![
                ("constraint_catalog", text(&catalog.database.name)),
                ("constraint_schema", text(schema)),
                ("constraint_name", text(shown.name)),
                ("table_catalog", text(&catalog.database.name)),
                ("table_schema", text(schema)),
                ("table_name", text(&shown.table.name)),
                ("column_name", text(&shown.table.columns[column as usize].name)),
                ("ordinal_position", number.clone()),
                ("position_in_unique_constraint", if shown.parent.is_some() { number } else { Value::Null }),
            ])?;
        }
    }
    Ok(())
}

fn constraint_columns(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for shown in constraints(catalog) {
        let (table, columns) = match shown.parent {
            None => (shown.table, shown.columns),
            Some(key) => match catalog.table(key.parent) {
                Some(parent) => (&**parent, key.parent_columns.clone()),
                None => continue,
            },
        };
        for column in columns {
            rows.add(vec![
                ("table_catalog", text(&catalog.database.name)),
                ("table_schema", text(catalog.schema_name(table.schema))),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.columns[column as usize].name)),
                ("constraint_catalog", text(&catalog.database.name)),
                ("constraint_schema", text(catalog.schema_name(shown.table.schema))),
                ("constraint_name", text(shown.name)),
            ])?;
        }
    }
    Ok(())
}

fn referential(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    let rule = |action: ReferentialAction| {
        text(match action {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        })
    };
    for shown in constraints(catalog) {
        let Some(key) = shown.parent else { continue };
        let Some(parent) = catalog.table(key.parent) else { continue };
        let unique = constraints_of(parent, &key.parent_columns);
        rows.add(vec![
            ("constraint_catalog", text(&catalog.database.name)),
            ("constraint_schema", text(catalog.schema_name(shown.table.schema))),
            ("constraint_name", text(shown.name)),
            ("unique_constraint_catalog", text(&catalog.database.name)),
            ("unique_constraint_schema", text(catalog.schema_name(parent.schema))),
            ("unique_constraint_name", unique.map_or(Value::Null, text)),
            ("match_option", text("NONE")),
            ("update_rule", rule(key.on_update)),
            ("delete_rule", rule(key.on_delete)),
        ])?;
    }
    Ok(())
}

/// The name of the unique key over these columns.
fn constraints_of<'t>(table: &'t Table, columns: &[u32]) -> Option<&'t str> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.columns == columns) {
        return Some(&key.name);
    }
    let matches = |index: &&super::super::Index| {
        index.unique && index.columns.iter().map(|key| key.column).eq(columns.iter().copied())
    };
    table.indexes.iter().find(matches).map(|index| index.name.as_str())
}
