//! Rows of the tables of `pg_catalog`.
//!
//! [`fill`] adds the rows of one relation and names each column it sets. What must hold: it shows
//! every object of the catalog, with the OIDs that other relations refer to.

use super::super::{BOOTSTRAP_ROLE, Catalog, ForeignKey, PG_CATALOG, Table};
use super::engine;
use super::extended;
use super::indexes::indexes_of;
use super::{Result, Rows, System, array, int2, letter, oid, text, vector, views, yes};
use crate::{Identity, ReferentialAction};
use values::environment::NoSession;
use values::types::{Type, TypeKind, Value, oid as types, registry};

/// OIDs of access methods and other built-in objects.
const HEAP: u32 = 2;
const BTREE: u32 = 403;
const DEFAULT_COLLATION: u32 = 100;
const DEFAULT_TABLESPACE: u32 = 1663;
const UTF8: i32 = 6;
/// Column defaults have no stored OID here. This bit, the table's number and the column's number
/// make one.
const DEFAULT_OIDS: u32 = 1 << 31;

pub(super) fn fill(
    catalog: &Catalog,
    system: &dyn System,
    relation: &str,
    rows: &mut Rows<'_>,
) -> Result<()> {
    match relation {
        "pg_class" => classes(catalog, system, rows)?,
        "pg_attribute" => attributes(catalog, rows)?,
        "pg_attrdef" => defaults(catalog, rows)?,
        "pg_index" => indexes(catalog, rows)?,
        "pg_constraint" => constraints(catalog, rows)?,
        "pg_type" => every_type(rows)?,
        "pg_namespace" => {
            for schema in catalog.schemas() {
                rows.add(vec![
                    ("oid", oid(schema.oid)),
                    ("nspname", text(&schema.name)),
                    ("nspowner", oid(BOOTSTRAP_ROLE)),
                ])?;
            }
        }
        "pg_database" => databases(catalog, rows)?,
        "pg_authid" | "pg_roles" | "pg_user" | "pg_shadow" => roles(catalog, relation, rows)?,
        "pg_am" => {
            rows.add(vec![("oid", oid(HEAP)), ("amname", text("heap")), ("amtype", letter(b't'))])?;
            rows.add(vec![("oid", oid(BTREE)), ("amname", text("btree")), ("amtype", letter(b'i'))])?;
        }
        "pg_collation" => collations(rows)?,
        "pg_tablespace" => rows.add(vec![
            ("oid", oid(DEFAULT_TABLESPACE)),
            ("spcname", text("pg_default")),
            ("spcowner", oid(BOOTSTRAP_ROLE)),
        ])?,
        "pg_language" => rows.add(vec![
            ("oid", oid(12)),
            ("lanname", text("internal")),
            ("lanowner", oid(BOOTSTRAP_ROLE)),
            ("lanispl", yes(false)),
            ("lanpltrusted", yes(false)),
        ])?,
        "pg_sequence" | "pg_sequences" => sequences(catalog, system, relation, rows)?,
        "pg_depend" => owned_sequences(catalog, rows)?,
        "pg_stats" => views::statistics(catalog, rows)?,
        "pg_statistic_ext" => extended::definitions(catalog, rows)?,
        "pg_statistic_ext_data" => extended::contents(catalog, rows)?,
        "pg_stats_ext" => extended::view(catalog, rows)?,
        "pg_tables" => views::tables(catalog, rows)?,
        "pg_indexes" => views::index_definitions(catalog, rows)?,
        "pg_settings" => views::settings(system, rows)?,
        "pg_stat_activity" => views::activity(system, rows)?,
        "pg_locks" => views::locks(system, rows)?,
        "pg_cursors" => views::cursors(system, rows)?,
        "pg_prepared_statements" => views::prepared_statements(system, rows)?,
        "pg_stat_user_tables" => {
            for table in catalog.tables() {
                rows.add(vec![
                    ("relid", oid(table.oid)),
                    ("schemaname", text(catalog.schema_name(table.schema))),
                    ("relname", text(&table.name)),
                    ("n_live_tup", Value::Int8(system.table_rows(table.oid).max(0.0) as i64)),
                ])?;
            }
        }
        _ => engine::fill(system, relation, rows)?,
    }
    Ok(())
}

fn class(oid_: u32, name: &str, schema: u32, kind: u8, columns: usize) -> Vec<(&'static str, Value)> {
    let access = match kind {
        b'r' => HEAP,
        b'i' => BTREE,
        _ => 0,
    };
    vec![
        ("oid", oid(oid_)),
        ("relname", text(name)),
        ("relnamespace", oid(schema)),
        ("reltype", oid(0)),
        ("reloftype", oid(0)),
        ("relowner", oid(BOOTSTRAP_ROLE)),
        ("relam", oid(access)),
        ("relfilenode", oid(oid_)),
        ("reltablespace", oid(0)),
        ("relpages", Value::Int4(0)),
        ("reltuples", Value::Float4(-1.0)),
        ("relallvisible", Value::Int4(0)),
        ("relallfrozen", Value::Int4(0)),
        ("reltoastrelid", oid(0)),
        ("relhasindex", yes(false)),
        ("relisshared", yes(false)),
        ("relpersistence", letter(b'p')),
        ("relkind", letter(kind)),
        ("relnatts", int2(columns)),
        ("relchecks", int2(0)),
        ("relhasrules", yes(false)),
        ("relhastriggers", yes(false)),
        ("relhassubclass", yes(false)),
        ("relrowsecurity", yes(false)),
        ("relforcerowsecurity", yes(false)),
        ("relispopulated", yes(true)),
        ("relreplident", letter(b'd')),
        ("relispartition", yes(false)),
        ("relrewrite", oid(0)),
        ("relfrozenxid", oid(0)),
        ("relminmxid", oid(0)),
    ]
}

fn classes(catalog: &Catalog, system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let replace = |row: &mut Vec<(&'static str, Value)>, name: &str, value: Value| {
        if let Some(place) = row.iter_mut().find(|(column, _)| *column == name) {
            place.1 = value;
        }
    };
    for (table, view) in super::all() {
        let kind = if view { b'v' } else { b'r' };
        let mut row = class(table.oid, &table.name, table.schema, kind, table.columns.len());
        replace(&mut row, "relreplident", letter(b'n'));
        rows.add(row)?;
    }
    for table in catalog.tables() {
        let mut row = class(table.oid, &table.name, table.schema, b'r', table.columns.len());
        let indexed = table.primary_key.is_some() || !table.indexes.is_empty();
        replace(&mut row, "relhasindex", yes(indexed));
        replace(&mut row, "relchecks", int2(table.checks.len()));
        let referenced = !table.foreign_keys.is_empty() || !catalog.references(table.oid).is_empty();
        replace(&mut row, "relhastriggers", yes(referenced));
        replace(&mut row, "reltuples", Value::Float4(system.table_rows(table.oid) as f32));
        replace(&mut row, "relpages", Value::Int4(system.tree_pages(table.tree.id)));
        rows.add(row)?;
        for index in indexes_of(table) {
            let mut row = class(index.oid, index.name, table.schema, b'i', index.columns.len());
            let tree = index.index.map_or(table.tree, |index| index.tree);
            replace(&mut row, "relpages", Value::Int4(system.tree_pages(tree.id)));
            replace(&mut row, "relreplident", letter(b'n'));
            rows.add(row)?;
        }
    }
    for sequence in catalog.sequences() {
        let mut row = class(sequence.oid, &sequence.name, sequence.schema, b'S', 3);
        replace(&mut row, "relreplident", letter(b'n'));
        rows.add(row)?;
    }
    Ok(())
}

fn by_value(type_: u32) -> bool {
    registry::info(type_).is_some_and(|info| matches!(info.length, 1 | 2 | 4 | 8))
}

fn align(type_: u32) -> u8 {
    match registry::info(type_).map_or(-1, |info| info.length) {
        1 => b'c',
        2 => b's',
        8 | 16 => b'd',
        64 => b'c',
        _ => b'i',
    }
}

fn storage(type_: u32) -> u8 {
    match (type_, registry::info(type_).map_or(-1, |info| info.length)) {
        (types::NUMERIC, _) => b'm',
        (_, -1) => b'x',
        _ => b'p',
    }
}

fn collation(type_: u32) -> u32 {
    let element = registry::element_of(type_).unwrap_or(type_);
    if matches!(element, types::TEXT | types::VARCHAR | types::BPCHAR) { DEFAULT_COLLATION } else { 0 }
}

/// The columns that all kinds of attribute rows share.
fn attribute(relation: u32, name: &str, number: usize, type_: Type) -> Vec<(&'static str, Value)> {
    vec![
        ("attrelid", oid(relation)),
        ("attname", text(name)),
        ("atttypid", oid(type_.oid)),
        ("attlen", Value::Int2(registry::info(type_.oid).map_or(-1, |info| info.length))),
        ("attnum", int2(number)),
        ("atttypmod", Value::Int4(type_.modifier)),
        ("attndims", int2(usize::from(registry::is_array(type_.oid)))),
        ("attbyval", yes(by_value(type_.oid))),
        ("attalign", letter(align(type_.oid))),
        ("attstorage", letter(storage(type_.oid))),
        ("attcompression", letter(0)),
        ("attgenerated", letter(0)),
        ("attislocal", yes(true)),
        ("attinhcount", int2(0)),
        ("attcollation", oid(collation(type_.oid))),
    ]
}

fn attributes(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    let system = super::all().map(|(table, _)| table);
    for table in system.chain(catalog.tables()) {
        for (position, column) in table.columns.iter().enumerate() {
            let identity = match column.identity {
                None => 0,
                Some(Identity::Always) => b'a',
                Some(Identity::ByDefault) => b'd',
            };
            let dropped = format!("........pg.dropped.{}........", position + 1);
            let name = if column.dropped { &dropped } else { &column.name };
            let mut row = attribute(table.oid, name, position + 1, column.type_);
            row.push(("attnotnull", yes(column.not_null && !column.dropped)));
            row.push((
                "atthasdef",
                yes(column.default.is_some() && column.identity.is_none() && !column.dropped),
            ));
            row.push(("attidentity", letter(identity)));
            row.push(("attisdropped", yes(column.dropped)));
            row.extend(missing_value(table, position)?);
            rows.add(row)?;
        }
        for index in indexes_of(table) {
            for (position, column) in index.all_columns().enumerate() {
                let column = &table.columns[column as usize];
                let mut row = attribute(index.oid, &column.name, position + 1, column.type_);
                row.push(("attnotnull", yes(false)));
                row.push(("atthasdef", yes(false)));
                row.push(("attidentity", letter(0)));
                row.push(("attisdropped", yes(false)));
                row.push(("atthasmissing", yes(false)));
                rows.add(row)?;
            }
        }
    }
    Ok(())
}

/// The value of rows written before the column existed. `attmissingval` is an array of it, whose
/// type is text[] here and anyarray in PostgreSQL.
fn missing_value(table: &Table, column: usize) -> Result<Vec<(&'static str, Value)>> {
    let value = table.shape().missing(column)?;
    let mut row = vec![("atthasmissing", yes(!value.is_null()))];
    if !value.is_null() {
        let mut written = Vec::new();
        values::text::write(value, table.columns[column].type_, &NoSession::default(), &mut written)?;
        let written = String::from_utf8_lossy(&written);
        row.push(("attmissingval", array(types::TEXT, std::iter::once(text(written)))));
    }
    Ok(row)
}

fn defaults(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for table in catalog.tables() {
        for (position, column) in table.live_columns().filter(|(_, column)| column.identity.is_none()) {
            let Some(default) = &column.default else { continue };
            let number =
                DEFAULT_OIDS | (table.oid.wrapping_shl(10)) | u32::try_from(position + 1).unwrap_or(0);
            rows.add(vec![
                ("oid", oid(number)),
                ("adrelid", oid(table.oid)),
                ("adnum", int2(position + 1)),
                ("adbin", text(super::text::shown_default(catalog, default))),
            ])?;
        }
    }
    Ok(())
}

fn attribute_numbers(columns: &[u32]) -> impl Iterator<Item = Value> + '_ {
    columns.iter().map(|column| int2(*column as usize + 1))
}

fn indexes(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for table in catalog.tables() {
        for index in indexes_of(table) {
            let keys = index.index.map_or(&[][..], |index| &index.columns);
            // Bit 0: descending; bit 1: NULLs first.
            let options = (0..index.columns.len()).map(|position| {
                let key = keys.get(position);
                int2(key.map_or(0, |key| usize::from(key.descending) | (usize::from(key.nulls_first) << 1)))
            });
            let collations =
                index.columns.iter().map(|&c| oid(collation(table.columns[c as usize].type_.oid)));
            rows.add(vec![
                ("indexrelid", oid(index.oid)),
                ("indrelid", oid(table.oid)),
                ("indnatts", int2(index.all_columns().count())),
                ("indnkeyatts", int2(index.columns.len())),
                ("indisunique", yes(index.unique)),
                ("indnullsnotdistinct", yes(index.index.is_some_and(|index| index.nulls_not_distinct))),
                ("indisprimary", yes(index.primary)),
                ("indisexclusion", yes(false)),
                ("indimmediate", yes(true)),
                ("indisclustered", yes(false)),
                ("indisvalid", yes(true)),
                ("indcheckxmin", yes(false)),
                ("indisready", yes(true)),
                ("indislive", yes(true)),
                ("indisreplident", yes(false)),
                ("indkey", vector(types::INT2, index.all_columns().map(|column| int2(column as usize + 1)))),
                ("indcollation", vector(types::OID, collations)),
                ("indclass", vector(types::OID, index.columns.iter().map(|_| oid(0)))),
                ("indoption", vector(types::INT2, options)),
            ])?;
        }
    }
    Ok(())
}

fn constraint(
    table: &Table,
    number: u32,
    name: &str,
    (kind, valid): (u8, bool),
    columns: &[u32],
) -> Vec<(&'static str, Value)> {
    vec![
        ("oid", oid(number)),
        ("conname", text(name)),
        ("connamespace", oid(table.schema)),
        ("contype", letter(kind)),
        ("condeferrable", yes(false)),
        ("condeferred", yes(false)),
        ("conenforced", yes(true)),
        ("convalidated", yes(valid)),
        ("conrelid", oid(table.oid)),
        ("contypid", oid(0)),
        ("conparentid", oid(0)),
        ("conislocal", yes(true)),
        ("coninhcount", int2(0)),
        ("connoinherit", yes(true)),
        ("conperiod", yes(false)),
        ("conkey", array(types::INT2, attribute_numbers(columns))),
    ]
}

fn constraints(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for table in catalog.tables() {
        for index in indexes_of(table).into_iter().filter(|index| index.constraint != 0) {
            let kind = if index.primary { b'p' } else { b'u' };
            let mut row = constraint(table, index.constraint, index.name, (kind, true), &index.columns);
            row.push(("conindid", oid(index.oid)));
            row.push(("confrelid", oid(0)));
            rows.add(row)?;
        }
        for check in &table.checks {
            let mut row = constraint(table, check.oid, &check.name, (b'c', check.valid), &[]);
            row.push(("conindid", oid(0)));
            row.push(("confrelid", oid(0)));
            row.push(("conbin", text(super::text::shown_relations(catalog, &check.text))));
            rows.add(row)?;
        }
        for key in &table.foreign_keys {
            rows.add(foreign_key(catalog, table, key))?;
        }
    }
    Ok(())
}

fn foreign_key(catalog: &Catalog, table: &Table, key: &ForeignKey) -> Vec<(&'static str, Value)> {
    let action = |action: ReferentialAction| {
        letter(match action {
            ReferentialAction::NoAction => b'a',
            ReferentialAction::Restrict => b'r',
            ReferentialAction::Cascade => b'c',
            ReferentialAction::SetNull => b'n',
            ReferentialAction::SetDefault => b'd',
        })
    };
    let index = catalog.table(key.parent).and_then(|parent| parent.unique_key(&key.parent_columns));
    let mut row = constraint(table, key.oid, &key.name, (b'f', key.valid), &key.columns);
    row.push(("conindid", oid(index.unwrap_or(0))));
    row.push(("confrelid", oid(key.parent)));
    row.push(("confupdtype", action(key.on_update)));
    row.push(("confdeltype", action(key.on_delete)));
    row.push(("confmatchtype", letter(b's')));
    row.push(("confkey", array(types::INT2, attribute_numbers(&key.parent_columns))));
    row
}

fn every_type(rows: &mut Rows<'_>) -> Result<()> {
    for info in registry::TYPES {
        rows.add(vec![
            ("oid", oid(info.oid)),
            ("typname", text(info.name)),
            ("typnamespace", oid(PG_CATALOG)),
            ("typowner", oid(BOOTSTRAP_ROLE)),
            ("typlen", Value::Int2(info.length)),
            ("typbyval", yes(by_value(info.oid))),
            ("typtype", letter(if info.kind == TypeKind::Pseudo { b'p' } else { b'b' })),
            ("typcategory", letter(info.category)),
            ("typispreferred", yes(info.preferred)),
            ("typisdefined", yes(true)),
            ("typdelim", letter(b',')),
            ("typrelid", oid(0)),
            ("typsubscript", oid(0)),
            ("typelem", oid(info.element)),
            ("typarray", oid(info.array)),
            ("typinput", oid(if info.name.starts_with('_') { expressions::functions::ARRAY_IN } else { 0 })),
            ("typoutput", oid(0)),
            ("typreceive", oid(0)),
            ("typsend", oid(0)),
            ("typmodin", oid(0)),
            ("typmodout", oid(0)),
            ("typanalyze", oid(0)),
            ("typalign", letter(align(info.oid))),
            ("typstorage", letter(storage(info.oid))),
            ("typnotnull", yes(false)),
            ("typbasetype", oid(0)),
            ("typtypmod", Value::Int4(-1)),
            ("typndims", Value::Int4(0)),
            ("typcollation", oid(collation(info.oid))),
        ])?;
    }
    Ok(())
}

fn databases(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for database in catalog.databases.iter() {
        rows.add(vec![
            ("oid", oid(database.oid)),
            ("datname", text(&database.name)),
            ("datdba", oid(BOOTSTRAP_ROLE)),
            ("encoding", Value::Int4(UTF8)),
            ("datlocprovider", letter(b'c')),
            ("datistemplate", yes(database.oid == crate::TEMPLATE_DATABASE)),
            ("datallowconn", yes(true)),
            ("dathasloginevt", yes(false)),
            ("datconnlimit", Value::Int4(-1)),
            ("datfrozenxid", oid(0)),
            ("datminmxid", oid(0)),
            ("dattablespace", oid(DEFAULT_TABLESPACE)),
            ("datcollate", text("C")),
            ("datctype", text("C")),
        ])?;
    }
    Ok(())
}

fn roles(catalog: &Catalog, relation: &str, rows: &mut Rows<'_>) -> Result<()> {
    for role in catalog.roles.iter() {
        let shown = yes(role.superuser);
        if matches!(relation, "pg_user" | "pg_shadow") {
            rows.add(vec![
                ("usename", text(&role.name)),
                ("usesysid", oid(role.oid)),
                ("usecreatedb", shown.clone()),
                ("usesuper", shown.clone()),
                ("userepl", yes(false)),
                ("usebypassrls", shown),
                ("passwd", if relation == "pg_user" { text("********") } else { Value::Null }),
            ])?;
            continue;
        }
        rows.add(vec![
            ("oid", oid(role.oid)),
            ("rolname", text(&role.name)),
            ("rolsuper", shown.clone()),
            ("rolinherit", yes(true)),
            ("rolcreaterole", shown.clone()),
            ("rolcreatedb", shown.clone()),
            ("rolcanlogin", yes(role.login)),
            ("rolreplication", yes(false)),
            ("rolbypassrls", shown),
            ("rolconnlimit", Value::Int4(-1)),
            ("rolpassword", if relation == "pg_roles" { text("********") } else { Value::Null }),
        ])?;
    }
    Ok(())
}

fn collations(rows: &mut Rows<'_>) -> Result<()> {
    for (number, name, provider) in
        [(DEFAULT_COLLATION, "default", b'd'), (950, "C", b'c'), (951, "POSIX", b'c')]
    {
        rows.add(vec![
            ("oid", oid(number)),
            ("collname", text(name)),
            ("collnamespace", oid(PG_CATALOG)),
            ("collowner", oid(BOOTSTRAP_ROLE)),
            ("collprovider", letter(provider)),
            ("collisdeterministic", yes(true)),
            ("collencoding", Value::Int4(-1)),
        ])?;
    }
    Ok(())
}

fn sequences(catalog: &Catalog, system: &dyn System, relation: &str, rows: &mut Rows<'_>) -> Result<()> {
    for sequence in catalog.sequences() {
        if relation == "pg_sequence" {
            rows.add(vec![
                ("seqrelid", oid(sequence.oid)),
                ("seqtypid", oid(sequence.type_.oid)),
                ("seqstart", Value::Int8(sequence.start)),
                ("seqincrement", Value::Int8(sequence.increment)),
                ("seqmax", Value::Int8(sequence.maximum)),
                ("seqmin", Value::Int8(sequence.minimum)),
                ("seqcache", Value::Int8(sequence.cache)),
                ("seqcycle", yes(sequence.cycle)),
            ])?;
            continue;
        }
        rows.add(vec![
            ("schemaname", text(catalog.schema_name(sequence.schema))),
            ("sequencename", text(&sequence.name)),
            ("sequenceowner", text(catalog.roles.first().map_or("", |role| &role.name))),
            ("data_type", oid(sequence.type_.oid)),
            ("start_value", Value::Int8(sequence.start)),
            ("min_value", Value::Int8(sequence.minimum)),
            ("max_value", Value::Int8(sequence.maximum)),
            ("increment_by", Value::Int8(sequence.increment)),
            ("cycle", yes(sequence.cycle)),
            ("cache_size", Value::Int8(sequence.cache)),
            ("last_value", system.sequence_value(sequence.oid).map_or(Value::Null, Value::Int8)),
        ])?;
    }
    Ok(())
}

/// The only kind of dependency that clients ask for: sequences and the columns that own them.
fn owned_sequences(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    const PG_CLASS: u32 = 1259;
    for sequence in catalog.sequences() {
        let Some((table, column)) = sequence.owner else { continue };
        let identity = catalog
            .table(table)
            .and_then(|table| table.columns.get(column as usize))
            .is_some_and(|column| column.identity.is_some());
        rows.add(vec![
            ("classid", oid(PG_CLASS)),
            ("objid", oid(sequence.oid)),
            ("objsubid", Value::Int4(0)),
            ("refclassid", oid(PG_CLASS)),
            ("refobjid", oid(table)),
            ("refobjsubid", Value::Int4(i32::try_from(column + 1).unwrap_or(0))),
            ("deptype", letter(if identity { b'i' } else { b'a' })),
        ])?;
    }
    Ok(())
}
