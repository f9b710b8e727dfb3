//! Definitions written back as SQL, in PostgreSQL's wording.

use super::super::{Catalog, ForeignKey, Index, Table};
use crate::plan::ReferentialAction;

/// An identifier, quoted when it has to be.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !KEYWORDS.split(' ').any(|word| word == name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The words of the grammar that are no plain names, by which a name has to be quoted.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both \
    case cast char character check coalesce collate collation column concurrently constraint create cross \
    current_catalog current_date current_role current_schema current_time current_timestamp current_user dec \
    decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign \
    freeze from full grant greatest group grouping having ilike in initially inner inout int integer \
    intersect interval into is isnull join json json_array json_arrayagg json_exists json_object \
    json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least left \
    like limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null \
    nullif numeric offset on only or order out outer overlaps overlay placing position precision primary \
    real references returning right row select session_user setof similar smallint some substring symmetric \
    system_user table tablesample then time timestamp to trailing treat trim true union unique user using \
    values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists \
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

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

/// A constraint of a table as ALTER TABLE ADD would write it; `pretty` without the parentheses it can do without. A
/// referenced table that is not `visible` by its bare name is named with its schema.
pub(super) fn constraint(
    catalog: &Catalog,
    table: &Table,
    oid: u32,
    pretty: bool,
    visible: &dyn Fn(u32) -> bool,
) -> Option<String> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.constraint == oid) {
        return Some(format!("PRIMARY KEY ({})", columns(table, &key.columns)));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.constraint == oid) {
        let positions: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
        let nulls = if index.nulls_not_distinct { "NULLS NOT DISTINCT " } else { "" };
        return Some(format!("UNIQUE {nulls}({})", columns(table, &positions)));
    }
    if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
        let text = match pretty {
            true => format!("CHECK ({})", check.text),
            false => format!("CHECK (({}))", check.text),
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
        if !visible(parent.oid) {
            text += &format!("{}.", quoted(catalog.schema_name(parent.schema)));
        }
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
