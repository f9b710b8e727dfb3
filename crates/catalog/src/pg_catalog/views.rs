//! Rows of the views of `pg_catalog`: readable definitions, and the running system.

use sync::profile;
use txn::AdvisoryKey;

use super::super::{Catalog, SampledValue};
use super::indexes::indexes_of;
use super::{Locked, Result, Rows, System, array, int2, oid, text, yes};
use values::types::{Value, oid as types};

pub(super) fn tables(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    let owner = catalog.roles.first().map_or("", |role| &role.name);
    let system = super::all().filter(|(_, view)| !view).map(|(table, _)| table);
    for table in system.chain(catalog.tables()) {
        rows.add(vec![
            ("schemaname", text(catalog.schema_name(table.schema))),
            ("tablename", text(&table.name)),
            ("tableowner", text(owner)),
            ("hasindexes", yes(table.primary_key.is_some() || !table.indexes.is_empty())),
            ("hasrules", yes(false)),
            ("hastriggers", yes(!table.foreign_keys.is_empty())),
            ("rowsecurity", yes(false)),
        ])?;
    }
    Ok(())
}

/// The statistics of each column, values as text.
pub(super) fn statistics(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    let list = |values: &[&SampledValue]| array(types::TEXT, values.iter().map(|value| text(&*value.text)));
    for table in catalog.tables() {
        let Some(found) = catalog.statistics(table.oid) else { continue };
        for (column, statistics) in table.columns.iter().zip(&found.columns) {
            let mut common: Vec<_> = statistics.common.iter().collect();
            common.sort_by(|one, other| other.frequency.total_cmp(&one.frequency));
            let real = |number: f64| Value::Float4(number as f32);
            let mut row = vec![
                ("schemaname", text(catalog.schema_name(table.schema))),
                ("tablename", text(&table.name)),
                ("attname", text(&column.name)),
                ("inherited", yes(false)),
                ("null_frac", real(statistics.null_fraction)),
                ("avg_width", Value::Int4(statistics.width.round() as i32)),
                ("n_distinct", real(statistics.distinct)),
                ("correlation", real(statistics.correlation)),
            ];
            if !common.is_empty() {
                let frequencies = common.iter().map(|common| real(common.frequency));
                row.push(("most_common_freqs", array(types::FLOAT4, frequencies)));
                let values: Vec<_> = common.iter().map(|common| &common.value).collect();
                row.push(("most_common_vals", list(&values)));
            }
            if !statistics.histogram.is_empty() {
                row.push(("histogram_bounds", list(&statistics.histogram.iter().collect::<Vec<_>>())));
            }
            rows.add(row)?;
        }
    }
    Ok(())
}

pub(super) fn index_definitions(catalog: &Catalog, rows: &mut Rows<'_>) -> Result<()> {
    for table in catalog.tables() {
        for index in indexes_of(table) {
            let definition = super::text::index(catalog, table, index.oid, false);
            rows.add(vec![
                ("schemaname", text(catalog.schema_name(table.schema))),
                ("tablename", text(&table.name)),
                ("indexname", text(index.name)),
                ("indexdef", definition.map_or(Value::Null, text)),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn settings(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for setting in system.settings() {
        let mut row = vec![
            ("name", text(setting.name)),
            ("setting", text(setting.value)),
            ("unit", setting.unit.map_or(Value::Null, text)),
            ("short_desc", text("")),
            ("vartype", text(setting.kind)),
            ("context", text(setting.context)),
            ("source", text(setting.source)),
            ("boot_val", text(setting.boot)),
            ("reset_val", text(setting.reset)),
            ("pending_restart", yes(false)),
        ];
        if let Some((least, most)) = setting.range {
            row.extend([("min_val", text(least)), ("max_val", text(most))]);
        }
        if let Some(words) = setting.words {
            row.push(("enumvals", array(types::TEXT, words.into_iter().map(text))));
        }
        rows.add(row)?;
    }
    Ok(())
}

pub(super) fn activity(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let time = |at: Option<i64>| at.map_or(Value::Null, Value::Timestamptz);
    for session in system.activity() {
        let (started, transaction, statement) = session.started;
        rows.add(vec![
            ("datid", oid(session.database.0)),
            ("datname", text(session.database.1)),
            ("pid", Value::Int4(session.pid)),
            ("usesysid", session.user.0.map_or(Value::Null, oid)),
            ("usename", text(session.user.1)),
            ("application_name", text(session.application)),
            ("backend_start", Value::Timestamptz(started)),
            ("xact_start", time(transaction)),
            ("query_start", time(statement)),
            ("state_change", Value::Timestamptz(session.changed)),
            ("wait_event_type", session.waits.map_or(Value::Null, |(kind, _)| text(kind))),
            ("wait_event", session.waits.map_or(Value::Null, |(_, name)| text(name))),
            ("state", text(session.state)),
            ("query", text(session.query)),
            ("backend_type", text("client backend")),
        ])?;
    }
    Ok(())
}

pub(super) fn page_faults(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for faults in system.page_faults() {
        rows.add(vec![
            ("thread", text(faults.thread)),
            ("core", faults.worker.map_or(Value::Null, |core| Value::Int4(core as i32))),
            ("minor", Value::Int8(faults.minor as i64)),
            ("major", Value::Int8(faults.major as i64)),
        ])?;
    }
    Ok(())
}

pub(super) fn lock_profile(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for profile::Row { class, site, kind, counts } in system.lock_profile() {
        let micros = |nanos: u64| Value::Float8(nanos as f64 / 1000.0);
        let average = |total: u64| match counts.count {
            0 => Value::Null,
            count => Value::Float8(total as f64 / 1000.0 / count as f64),
        };
        let number = |count: u64| Value::Int8(i64::try_from(count).unwrap_or(i64::MAX));
        rows.add(vec![
            ("class", text(class)),
            ("site", text(site)),
            ("kind", text(kind.as_str())),
            ("hold_max", micros(counts.hold_max)),
            ("wait_max", micros(counts.wait_max)),
            ("hold_total", micros(counts.hold_total)),
            ("wait_total", micros(counts.wait_total)),
            ("count", number(counts.count)),
            ("hold_avg", average(counts.hold_total)),
            ("wait_avg", average(counts.wait_total)),
            ("contended_hold", number(counts.contended_hold)),
            ("contended_wait", number(counts.contended_wait)),
        ])?;
    }
    Ok(())
}

pub(super) fn memory(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for region in system.memory() {
        let bytes = |bytes: usize| Value::Int8(bytes as i64);
        rows.add(vec![
            ("region", text(region.name)),
            ("pages", text(region.kind.name())),
            ("locked", yes(region.locked)),
            ("policy", text(region.policy.name())),
            ("reserved", bytes(region.reserved)),
            ("used", bytes(region.used)),
            ("present", bytes(region.present)),
        ])?;
    }
    Ok(())
}

pub(super) fn wait_history(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    system.wait_history(&mut |sample| {
        rows.add(vec![
            ("time", Value::Timestamptz(sample.time)),
            ("pid", Value::Int4(sample.pid)),
            ("wait_event_type", sample.waits.map_or(Value::Null, |(kind, _)| text(kind))),
            ("wait_event", sample.waits.map_or(Value::Null, |(_, name)| text(name))),
            ("state", text(sample.state)),
            ("query_start", sample.statement.map_or(Value::Null, Value::Timestamptz)),
            ("query", text(sample.query.clone())),
        ])
    })
}

pub(super) fn cursors(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for cursor in system.cursors() {
        rows.add(vec![
            ("name", text(cursor.name)),
            ("statement", text(cursor.statement)),
            ("is_holdable", yes(cursor.holdable)),
            ("is_binary", yes(false)),
            ("is_scrollable", yes(cursor.scrollable)),
            ("creation_time", Value::Timestamptz(cursor.created)),
        ])?;
    }
    Ok(())
}

pub(super) fn prepared_statements(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let types_of = |list: Vec<u32>| array(types::REGTYPE, list.into_iter().map(oid));
    for prepared in system.prepared() {
        rows.add(vec![
            ("name", text(prepared.name)),
            ("statement", text(prepared.statement)),
            ("prepare_time", Value::Timestamptz(prepared.created)),
            ("parameter_types", types_of(prepared.parameters)),
            ("result_types", prepared.results.map_or(Value::Null, types_of)),
            ("from_sql", yes(prepared.by_command)),
            ("generic_plans", Value::Int8(0)),
            ("custom_plans", Value::Int8(0)),
        ])?;
    }
    Ok(())
}

pub(super) fn locks(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for lock in system.locks() {
        let own = lock.database.map_or(Value::Null, oid);
        let (kind, database, rest) = match lock.on {
            Locked::Relation(relation) => ("relation", own, vec![("relation", oid(relation))]),
            Locked::Row(relation) => {
                ("tuple", own, vec![("relation", if relation == 0 { Value::Null } else { oid(relation) })])
            }
            Locked::Object(class, object) => {
                ("object", own, vec![("classid", oid(class)), ("objid", oid(object)), ("objsubid", int2(0))])
            }
            Locked::Transaction(txid) => {
                ("transactionid", Value::Null, vec![("transactionid", oid(txid as u32))])
            }
            Locked::Advisory(AdvisoryKey { database, key, class }) => {
                let (high, low) = (oid((key >> 32) as u32), oid(key as u32));
                let keys = vec![("classid", high), ("objid", low), ("objsubid", int2(usize::from(class)))];
                ("advisory", oid(database), keys)
            }
        };
        let mut row = vec![
            ("locktype", text(kind)),
            ("database", database),
            ("pid", lock.pid.map_or(Value::Null, Value::Int4)),
            ("mode", text(lock.mode)),
            ("granted", yes(lock.granted)),
            ("fastpath", yes(lock.fast_path)),
        ];
        row.extend(rest);
        rows.add(row)?;
    }
    Ok(())
}
