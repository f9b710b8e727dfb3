//! Definitions as SQL text, in PostgreSQL's wording.
//!
//! Clients compare these texts or run them again (pg_dump), so they must be what PostgreSQL prints.

use super::super::{Catalog, ForeignKey, Index, Table};
use crate::ReferentialAction;
use values::identifier::{qualified, quoted};

fn columns(table: &Table, positions: &[u32]) -> String {
    let names: Vec<String> = positions
        .iter()
        .filter_map(|&position| table.columns.get(position as usize))
        .map(|column| quoted(&column.name))
        .collect();
    names.join(", ")
}

/// The parts of a table's index; the primary key's index has them too.
struct Parts<'t> {
    name: &'t str,
    /// Its definition; None for the primary key's.
    index: Option<&'t Index>,
    keys: Vec<u32>,
    included: &'t [u32],
}

fn parts(table: &Table, oid: u32) -> Option<Parts<'_>> {
    if let Some(index) = table.indexes.iter().find(|index| index.oid == oid) {
        let keys = index.columns.iter().map(|key| key.column).collect();
        return Some(Parts { name: &index.name, index: Some(index), keys, included: &index.included });
    }
    let key = table.primary_key.as_ref().filter(|key| key.oid == oid)?;
    Some(Parts { name: &key.name, index: None, keys: key.columns.clone(), included: &key.included })
}

/// CREATE INDEX for an index of a table, also for the primary key's. With `bare` the text names the
/// table without its schema.
pub(super) fn index(catalog: &Catalog, table: &Table, oid: u32, bare: bool) -> Option<String> {
    let Parts { name, index, keys, included } = parts(table, oid)?;
    let shown = match bare {
        true => quoted(&table.name),
        false => qualified(catalog.schema_name(table.schema), &table.name),
    };
    Some(format!(
        "CREATE {}INDEX {} ON {shown} USING btree ({}){}{}",
        if index.is_none_or(|index| index.unique) { "UNIQUE " } else { "" },
        quoted(name),
        index.map_or_else(|| columns(table, &keys), |index| index_keys(table, index)),
        including(table, included),
        if index.is_some_and(|index| index.nulls_not_distinct) { " NULLS NOT DISTINCT" } else { "" }
    ))
}

/// The column of an index by its number, counted from 1; None if there is no such number.
pub(super) fn index_column(table: &Table, oid: u32, number: i32) -> Option<String> {
    let Parts { keys, included, .. } = parts(table, oid)?;
    let at = usize::try_from(number)
        .ok()
        .and_then(|number| keys.iter().chain(included).nth(number.checked_sub(1)?));
    Some(at.map_or_else(String::new, |at| columns(table, &[*at])))
}

/// The INCLUDE part of an index's text; empty without included columns.
fn including(table: &Table, included: &[u32]) -> String {
    if included.is_empty() { String::new() } else { format!(" INCLUDE ({})", columns(table, included)) }
}

fn index_keys(table: &Table, index: &Index) -> String {
    let key = |key: &super::super::IndexKey| {
        let direction = match (key.descending, key.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        columns(table, &[key.column]) + direction
    };
    index.columns.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// A constraint of a table as ALTER TABLE ADD would write it. `pretty` leaves out parentheses that
/// are not needed. The text names a referenced table with its schema unless the table is `visible`
/// by its bare name.
pub(super) fn constraint(
    catalog: &Catalog,
    table: &Table,
    oid: u32,
    pretty: bool,
    visible: &dyn Fn(u32) -> bool,
) -> Option<String> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.constraint == oid) {
        let included = including(table, &key.included);
        return Some(format!("PRIMARY KEY ({}){included}", columns(table, &key.columns)));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.constraint == oid) {
        let positions: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
        let nulls = if index.nulls_not_distinct { "NULLS NOT DISTINCT " } else { "" };
        let included = including(table, &index.included);
        return Some(format!("UNIQUE {nulls}({}){included}", columns(table, &positions)));
    }
    if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
        let condition = shown_relations(catalog, &check.text);
        let text = match pretty {
            true => format!("CHECK ({condition})"),
            false => format!("CHECK (({condition}))"),
        };
        return Some(text + not_valid(check.valid));
    }
    let key = table.foreign_keys.iter().find(|key| key.oid == oid)?;
    Some(foreign_key(catalog, table, key, visible) + not_valid(key.valid))
}

fn not_valid(valid: bool) -> &'static str {
    if valid { "" } else { " NOT VALID" }
}

fn foreign_key(catalog: &Catalog, table: &Table, key: &ForeignKey, visible: &dyn Fn(u32) -> bool) -> String {
    let mut text = format!("FOREIGN KEY ({}) REFERENCES ", columns(table, &key.columns));
    if let Some(parent) = catalog.table(key.parent) {
        text += &match visible(parent.oid) {
            true => quoted(&parent.name),
            false => qualified(catalog.schema_name(parent.schema), &parent.name),
        };
        text += &format!("({})", columns(parent, &key.parent_columns));
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        let action = match action {
            ReferentialAction::NoAction => continue,
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        };
        text += &format!(" ON {event} {action}");
    }
    text
}

/// A default as PostgreSQL prints it: value functions in capitals, sequences by name. Sequences of
/// schema public have their bare name.
pub(super) fn shown_default(catalog: &Catalog, default: &str) -> String {
    match default {
        "current_date" | "current_timestamp" | "localtime" | "localtimestamp" | "current_user"
        | "session_user" => default.to_ascii_uppercase(),
        other => shown_relations(catalog, other),
    }
}

/// A stored text with relations by name; relations of schema public have their bare name.
pub(super) fn shown_relations(catalog: &Catalog, text: &str) -> String {
    crate::stored::named_relations(text, &|oid| {
        let (schema, name) = catalog.relation_name(oid)?;
        Some(match catalog.schema_name(schema) {
            "public" | "pg_catalog" => quoted(name),
            schema => qualified(schema, name),
        })
    })
}
