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

/// The parts of an index of a table, be it that of its primary key.
struct Parts<'t> {
    name: &'t str,
    /// Its description, unless it is the primary key's.
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

/// CREATE INDEX for an index of a table (its primary key's too). With `bare` the table is named without its schema.
pub(super) fn index(catalog: &Catalog, table: &Table, oid: u32, bare: bool) -> Option<String> {
    let Parts { name, index, keys, included } = parts(table, oid)?;
    let schema = match bare {
        true => String::new(),
        false => quoted(catalog.schema_name(table.schema)) + ".",
    };
    Some(format!(
        "CREATE {}INDEX {} ON {schema}{} USING btree ({}){}{}",
        if index.is_none_or(|index| index.unique) { "UNIQUE " } else { "" },
        quoted(name),
        quoted(&table.name),
        index.map_or_else(|| columns(table, &keys), |index| index_keys(table, index)),
        including(table, included),
        if index.is_some_and(|index| index.nulls_not_distinct) { " NULLS NOT DISTINCT" } else { "" }
    ))
}

/// The column of an index with a number from 1, or nothing when it has none of that number.
pub(super) fn index_column(table: &Table, oid: u32, number: i32) -> Option<String> {
    let Parts { keys, included, .. } = parts(table, oid)?;
    let at = usize::try_from(number)
        .ok()
        .and_then(|number| keys.iter().chain(included).nth(number.checked_sub(1)?));
    Some(at.map_or_else(String::new, |at| columns(table, &[*at])))
}

/// INCLUDE of an index, or nothing.
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
