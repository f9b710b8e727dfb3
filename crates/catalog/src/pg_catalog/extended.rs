//! Extended statistics as PostgreSQL shows them: `pg_statistic_ext`, `pg_statistic_ext_data`,
//! `pg_stats_ext`, and the texts of CREATE STATISTICS.
//!
//! Types that Allcore does not have (`pg_ndistinct`, `pg_dependencies`, `pg_mcv_list`) read as
//! their text.

use std::sync::Arc;

use super::super::{BOOTSTRAP_ROLE, Catalog, ExtendedStatistics, SampledValue, StatisticsObject, Table};
use super::{Result, Rows, array, int2, letter, oid, text, vector, yes};
use values::environment::NoSession;
use values::identifier::{qualified, quoted};
use values::types::{ArrayBuilder, Type, Value, oid as types};

/// The letters by which PostgreSQL's catalog names an object's kinds.
fn kinds(object: &StatisticsObject) -> Value {
    let kinds = object.kinds;
    let letters = [(kinds.distinct, b'd'), (kinds.dependencies, b'f'), (kinds.common, b'm')];
    let there = letters.into_iter().filter(|(is_there, _)| *is_there);
    array(types::CHAR, there.map(|(_, kind)| letter(kind)))
}

/// All objects with their tables, the oldest first.
fn objects(catalog: &Catalog) -> Vec<(&Arc<Table>, &StatisticsObject)> {
    let tables = catalog.tables().filter(|table| !table.extended.is_empty());
    let mut objects: Vec<_> =
        tables.flat_map(|table| table.extended.iter().map(move |object| (table, object))).collect();
    objects.sort_by_key(|(_, object)| object.oid);
    objects
}

/// The data that ANALYZE found for an object.
fn data<'c>(
    catalog: &'c Catalog,
    table: &Table,
    object: &StatisticsObject,
) -> Option<&'c ExtendedStatistics> {
    catalog.statistics(table.oid)?.extended.iter().find(|found| found.object == object.oid)
}

/// The rows of pg_statistic_ext.
pub(super) fn definitions(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for (table, object) in objects(catalog) {
        let keys = object.columns.iter().map(|column| int2(*column as usize + 1));
        rows.add(vec![
            ("oid", oid(object.oid)),
            ("stxrelid", oid(table.oid)),
            ("stxname", text(&object.name)),
            ("stxnamespace", oid(object.schema)),
            ("stxowner", oid(BOOTSTRAP_ROLE)),
            ("stxkeys", vector(types::INT2, keys)),
            ("stxstattarget", object.target.map_or(Value::Null, |target| int2(target.into()))),
            ("stxkind", kinds(object)),
        ])?;
    }
    Ok(())
}

/// The rows of pg_statistic_ext_data.
pub(super) fn contents(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for (table, object) in objects(catalog) {
        let Some(found) = data(catalog, table, object) else { continue };
        let mut common = Value::Null;
        if !found.common.is_empty() {
            let mut shown = Vec::new();
            let values = common_values(found)?;
            values::text::write(
                values.datum(),
                Type::new(types::TEXT_ARRAY),
                &NoSession::default(),
                &mut shown,
            )?;
            common = text(String::from_utf8_lossy(&shown));
        }
        rows.add(vec![
            ("stxoid", oid(object.oid)),
            ("stxdinherit", yes(false)),
            ("stxdndistinct", distinct(found).map_or(Value::Null, text)),
            ("stxddependencies", dependencies(found).map_or(Value::Null, text)),
            ("stxdmcv", common),
        ])?;
    }
    Ok(())
}

/// The rows of pg_stats_ext.
pub(super) fn view(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    let owner = catalog.roles.first().map_or("", |role| &role.name);
    for (table, object) in objects(catalog) {
        let Some(found) = data(catalog, table, object) else { continue };
        let name = |column: &u32| text(&table.columns[*column as usize].name);
        let mut row = vec![
            ("schemaname", text(catalog.schema_name(table.schema))),
            ("tablename", text(&table.name)),
            ("statistics_schemaname", text(catalog.schema_name(object.schema))),
            ("statistics_name", text(&object.name)),
            ("statistics_owner", text(owner)),
            ("attnames", array(types::NAME, object.columns.iter().map(name))),
            ("kinds", kinds(object)),
            ("inherited", yes(false)),
            ("n_distinct", distinct(found).map_or(Value::Null, text)),
            ("dependencies", dependencies(found).map_or(Value::Null, text)),
        ];
        if !found.common.is_empty() {
            let real = |number: f64| Value::Float8(number);
            let frequencies = found.common.iter().map(|common| real(common.frequency));
            let base = found.common.iter().map(|common| real(common.base));
            row.push(("most_common_vals", common_values(found)?));
            row.push((
                "most_common_val_nulls",
                combinations(found, types::BOOL, |value| yes(value.is_none()))?,
            ));
            row.push(("most_common_freqs", array(types::FLOAT8, frequencies)));
            row.push(("most_common_base_freqs", array(types::FLOAT8, base)));
        }
        rows.add(row)?;
    }
    Ok(())
}

/// The numbers of the columns in a set, as PostgreSQL counts them.
fn numbers(found: &ExtendedStatistics, set: u8) -> String {
    let columns = found.columns.iter().enumerate().filter(|(at, _)| set & 1 << at != 0);
    columns.map(|(_, column)| (column + 1).to_string()).collect::<Vec<_>>().join(", ")
}

fn distinct(found: &ExtendedStatistics) -> Option<String> {
    let sets = found.distinct.iter().map(|(set, count)| format!("\"{}\": {count}", numbers(found, *set)));
    (!found.distinct.is_empty()).then(|| format!("{{{}}}", sets.collect::<Vec<_>>().join(", ")))
}

fn dependencies(found: &ExtendedStatistics) -> Option<String> {
    let shown = found.dependencies.iter().map(|dependency| {
        let (from, to) = (numbers(found, dependency.from), numbers(found, 1 << dependency.to));
        format!("\"{from} => {to}\": {:.6}", dependency.degree)
    });
    (!found.dependencies.is_empty()).then(|| format!("{{{}}}", shown.collect::<Vec<_>>().join(", ")))
}

/// An array with a row for each common combination.
fn combinations(
    found: &ExtendedStatistics,
    element: u32,
    of: impl Fn(Option<&SampledValue>) -> Value,
) -> Result<Value> {
    let mut builder = ArrayBuilder::new(element);
    for common in &found.common {
        for value in &common.values {
            builder.push(of(value.as_ref()).datum())?;
        }
    }
    let dimensions = [(found.common.len() as i32, 1), (found.columns.len() as i32, 1)];
    Ok(Value::Array(builder.finish_with(&dimensions)?.into()))
}

/// The common combinations as text[].
fn common_values(found: &ExtendedStatistics) -> Result<Value> {
    combinations(found, types::TEXT, |value| value.map_or(Value::Null, |value| text(&*value.text)))
}

/// The columns of an object as CREATE STATISTICS lists them.
pub(super) fn columns(table: &Table, object: &StatisticsObject) -> String {
    let columns = object.columns.iter().filter_map(|column| table.columns.get(*column as usize));
    columns.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// The object of this OID, with its table.
pub(super) fn object(catalog: &Catalog, oid: u32) -> Option<(&Arc<Table>, &StatisticsObject)> {
    objects(catalog).into_iter().find(|(_, object)| object.oid == oid)
}

/// CREATE STATISTICS for an object. With `bare` the text names the table without its schema.
pub(super) fn definition(catalog: &Catalog, table: &Table, object: &StatisticsObject, bare: bool) -> String {
    let kinds = object.kinds;
    let named = [(kinds.distinct, "ndistinct"), (kinds.dependencies, "dependencies"), (kinds.common, "mcv")];
    let there: Vec<&str> = named.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| *name).collect();
    let listed = if there.len() == named.len() { String::new() } else { format!(" ({})", there.join(", ")) };
    let name = qualified(catalog.schema_name(object.schema), &object.name);
    let of = match bare {
        true => quoted(&table.name),
        false => qualified(catalog.schema_name(table.schema), &table.name),
    };
    format!("CREATE STATISTICS {name}{listed} ON {} FROM {of}", columns(table, object))
}
