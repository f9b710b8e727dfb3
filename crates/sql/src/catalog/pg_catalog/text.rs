//! Definitions written back as SQL, in PostgreSQL's wording.

use super::super::{Catalog, ForeignKey, Index, Table};
use crate::plan::ReferentialAction;

/// An identifier, quoted when it has to be.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !RESERVED.contains(&name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The reserved words, which have to be quoted as names.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "system_user",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

fn columns(table: &Table, positions: &[u32]) -> String {
    let names: Vec<String> = positions
        .iter()
        .filter_map(|&position| table.columns.get(position as usize))
        .map(|column| quoted(&column.name))
        .collect();
    names.join(", ")
}

/// CREATE INDEX for an index of a table (its primary key's too), or of one of its columns.
pub(super) fn index(catalog: &Catalog, table: &Table, oid: u32, column: usize) -> Option<String> {
    let (name, unique, keys, nulls) = match table.indexes.iter().find(|index| index.oid == oid) {
        Some(index) => (&index.name, index.unique, index_keys(table, index), index.nulls_not_distinct),
        None => {
            let key = table.primary_key.as_ref().filter(|key| key.oid == oid)?;
            let keys = key.columns.iter().map(|position| columns(table, &[*position])).collect();
            (&key.name, true, keys, false)
        }
    };
    if column > 0 {
        return keys.get(column - 1).map(|key| key.split(' ').next().unwrap_or(key).to_owned());
    }
    Some(format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({}){}",
        if unique { "UNIQUE " } else { "" },
        quoted(name),
        quoted(catalog.schema_name(table.schema)),
        quoted(&table.name),
        keys.join(", "),
        if nulls { " NULLS NOT DISTINCT" } else { "" }
    ))
}

fn index_keys(table: &Table, index: &Index) -> Vec<String> {
    let key = |key: &super::super::IndexKey| {
        let direction = match (key.descending, key.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        columns(table, &[key.column]) + direction
    };
    index.columns.iter().map(key).collect()
}

/// A constraint of a table as ALTER TABLE ADD would write it; `pretty` without the parentheses it can do without.
pub(super) fn constraint(catalog: &Catalog, table: &Table, oid: u32, pretty: bool) -> Option<String> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.constraint == oid) {
        return Some(format!("PRIMARY KEY ({})", columns(table, &key.columns)));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.constraint == oid) {
        let positions: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
        let nulls = if index.nulls_not_distinct { "NULLS NOT DISTINCT " } else { "" };
        return Some(format!("UNIQUE {nulls}({})", columns(table, &positions)));
    }
    if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
        return Some(match pretty {
            true => format!("CHECK ({})", check.text),
            false => format!("CHECK (({}))", check.text),
        });
    }
    table.foreign_keys.iter().find(|key| key.oid == oid).map(|key| foreign_key(catalog, table, key))
}

fn foreign_key(catalog: &Catalog, table: &Table, key: &ForeignKey) -> String {
    let mut text = format!("FOREIGN KEY ({}) REFERENCES ", columns(table, &key.columns));
    if let Some(parent) = catalog.table(key.parent) {
        text += &format!("{}({})", quoted(&parent.name), columns(parent, &key.parent_columns));
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
