//! The system relations: definitions that are the same for all databases, and rows computed from a
//! catalog.
//!
//! [`rows`] returns the rows of one relation in the order of its columns. A relation with nothing
//! to show is empty. [`function`] holds the functions that clients' catalog queries call.

mod definitions;
mod engine;
mod extended;
mod functions;
mod indexes;
mod privileges;
mod relations;
mod schema;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod views;

use std::sync::Arc;

use runtime::hash::HashMap;
use sync::LazyLock;

pub use functions::function;
pub use state::{
    Activity, Cursor, DatabaseCounts, Lock, Locked, Prepared, Setting, Show, System, WaitSample,
};

use super::{Catalog, Column, INFORMATION_SCHEMA, PG_CATALOG, Table, TreeAddress};
use values::error::SqlError;
use values::types::{Type, Value};
use values::work::Pace;

type Result<T> = std::result::Result<T, SqlError>;

struct SystemRelations {
    by_oid: HashMap<u32, Arc<Table>>,
    by_name: HashMap<u32, HashMap<&'static str, Arc<Table>>>,
}

static RELATIONS: LazyLock<SystemRelations> = LazyLock::new(|| {
    let mut relations = SystemRelations { by_oid: HashMap::default(), by_name: HashMap::default() };
    let lists =
        [(PG_CATALOG, definitions::PG_CATALOG), (INFORMATION_SCHEMA, definitions::INFORMATION_SCHEMA)];
    for (schema, list) in lists {
        for definition in list {
            let table = Arc::new(relation(schema, definition));
            relations.by_oid.insert(definition.oid, Arc::clone(&table));
            relations.by_name.entry(schema).or_default().insert(definition.name, table);
        }
    }
    relations
});

fn relation(schema: u32, definition: &definitions::Definition) -> Table {
    let column = |text: &str| {
        let (name, type_) = text.split_once(':').unwrap_or((text, "25"));
        let type_ = Type::new(type_.parse().unwrap_or(values::types::oid::TEXT));
        Column {
            name: name.to_owned(),
            type_,
            not_null: false,
            default: None,
            identity: None,
            dropped: false,
        }
    };
    Table {
        oid: definition.oid,
        schema,
        name: definition.name.to_owned(),
        tree: TreeAddress::NONE,
        out_of_line: TreeAddress::NONE,
        columns: definition.columns.split_whitespace().map(column).collect(),
        primary_key: None,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        missing: Default::default(),
        extended: Vec::new(),
        layout: super::Layout::default(),
    }
}

/// The system relation of this OID.
#[must_use]
pub fn table_by_oid(oid: u32) -> Option<&'static Arc<Table>> {
    RELATIONS.by_oid.get(&oid)
}

/// The system relation of this name in `pg_catalog` or `information_schema` (the schema's OID).
#[must_use]
pub(crate) fn table_by_name(schema: u32, name: &str) -> Option<&'static Arc<Table>> {
    RELATIONS.by_name.get(&schema)?.get(name)
}

/// Whether a system relation is a view.
#[must_use]
pub fn is_view(oid: u32) -> bool {
    let lists = definitions::PG_CATALOG.iter().chain(definitions::INFORMATION_SCHEMA);
    lists.into_iter().any(|definition| definition.view && definition.oid == oid)
}

/// The system relations, and whether each is a view.
fn all() -> impl Iterator<Item = (&'static Arc<Table>, bool)> {
    let lists = definitions::PG_CATALOG.iter().chain(definitions::INFORMATION_SCHEMA);
    lists.filter_map(|definition| Some((RELATIONS.by_oid.get(&definition.oid)?, definition.view)))
}

/// The rows of a system relation, each with one value a column.
///
/// # Errors
/// The error of an interrupt.
pub fn rows(catalog: &Catalog, system: &dyn System, relation: u32) -> Result<Vec<Vec<Value>>> {
    let Some(table) = table_by_oid(relation) else { return Ok(Vec::new()) };
    let mut rows = Rows { table, rows: Vec::new(), pace: Pace::new() };
    if table.schema == INFORMATION_SCHEMA {
        schema::fill(catalog, &table.name, &mut rows)?;
    } else {
        relations::fill(catalog, system, &table.name, &mut rows)?;
    }
    Ok(rows.rows)
}

/// Rows under construction. The caller names the columns it sets; the others are NULL.
struct Rows<'t> {
    table: &'t Table,
    rows: Vec<Vec<Value>>,
    pace: Pace,
}

impl Rows<'_> {
    /// Adds a row, and passes a safe point now and then. Ignores names of columns the relation does
    /// not have.
    fn add(&mut self, values: Vec<(&str, Value)>) -> Result<()> {
        let mut row = vec![Value::Null; self.table.columns.len()];
        for (name, value) in values {
            if let Some(position) = self.table.columns.iter().position(|column| column.name == name) {
                row[position] = value;
            }
        }
        self.rows.push(row);
        self.pace.step()
    }
}

/// Shorthand constructors of values follow.
fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into().into_boxed_str())
}

fn oid(value: u32) -> Value {
    Value::Oid(value)
}

fn int2(value: usize) -> Value {
    Value::Int2(i16::try_from(value).unwrap_or(i16::MAX))
}

fn yes(value: bool) -> Value {
    Value::Bool(value)
}

fn letter(value: u8) -> Value {
    Value::Char(value)
}

/// An int2vector or oidvector. Their subscripts begin at 0.
fn vector(element: u32, values: impl Iterator<Item = Value>) -> Value {
    Value::Array(values::types::ArrayBuilder::list_of(element, values, 0).into())
}

/// An array. Its subscripts begin at 1.
fn array(element: u32, values: impl Iterator<Item = Value>) -> Value {
    Value::Array(values::types::ArrayBuilder::list_of(element, values, 1).into())
}
