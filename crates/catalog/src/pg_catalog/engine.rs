//! Rows of the views over what the engine counts. Counts are since the server started, but for two
//! views. The lock profiler has functions to reset its counts. Hardware counters count since the
//! first look.

use std::time::Duration;

use runtime::workers::WorkerCounts;
use values::types::{Value, oid as types};

use super::{Result, Rows, System, array, oid, text, views};

/// Adds the rows of a view, or none where the relation is not one of these.
pub(super) fn fill(system: &dyn System, relation: &str, rows: &mut Rows<'_>) -> Result<()> {
    match relation {
        "allcore_page_faults" => views::page_faults(system, rows),
        "allcore_memory" => views::memory(system, rows),
        "allcore_lock_profile" => views::lock_profile(system, rows),
        "allcore_wait_history" => views::wait_history(system, rows),
        "pg_stat_database" => databases(system, rows),
        "allcore_buffers" => buffers(system, rows),
        "allcore_log" => log(system, rows),
        "allcore_workers" => workers(system, rows),
        "allcore_counters" => counters(system, rows),
        _ => Ok(()),
    }
}

fn int8(count: u64) -> Value {
    Value::Int8(i64::try_from(count).unwrap_or(i64::MAX))
}

fn int4(count: usize) -> Value {
    Value::Int4(i32::try_from(count).unwrap_or(i32::MAX))
}

fn milliseconds(time: Duration) -> Value {
    Value::Float8(time.as_secs_f64() * 1000.0)
}

fn databases(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for counts in system.database_counts() {
        rows.add(vec![
            ("datid", oid(counts.database.0)),
            ("datname", text(counts.database.1)),
            ("numbackends", int4(counts.sessions)),
            ("xact_commit", int8(counts.committed)),
            ("xact_rollback", int8(counts.rolled_back)),
            ("sessions", int8(counts.begun)),
            // No statement runs on several workers.
            ("parallel_workers_to_launch", int8(0)),
            ("parallel_workers_launched", int8(0)),
        ])?;
    }
    Ok(())
}

fn buffers(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let Some(pool) = system.buffers() else { return Ok(()) };
    let counts = pool.statistics;
    rows.add(vec![
        ("frames", int8(pool.frames as u64)),
        ("in_use", int8(pool.in_use as u64)),
        ("free_by_node", array(types::INT8, pool.free.into_iter().map(int8))),
        ("pages", text(pool.kind.name())),
        ("hand", int8(pool.hand as u64)),
        ("passes", int8(counts.passes)),
        ("sweep_batch", int4(pool.sweep_batch)),
        ("allocations", int8(counts.allocations)),
        ("loads", int8(counts.loads)),
        ("reads", int8(counts.reads)),
        ("evictions", int8(counts.evictions)),
        ("writes", int8(counts.writes)),
        ("write_failures", int8(counts.write_failures)),
    ])
}

fn log(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let Some(log) = system.log() else { return Ok(()) };
    rows.add(vec![
        ("reserved", int8(log.position.0)),
        ("filled", int8(log.filled.0)),
        ("durable", int8(log.durable.0)),
        ("writes", int8(log.writes.departures)),
        ("bytes", int8(log.writes.bytes)),
        ("served", int8(log.writes.served)),
        ("in_flight", int4(log.writes.in_flight)),
        ("sessions_in_flight", int4(log.writes.sessions_in_flight)),
        ("segments", int4(log.segments)),
    ])
}

fn workers(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    let number = |number: Option<usize>| number.map_or(Value::Null, int4);
    for worker in system.workers() {
        let time = |of: fn(&runtime::workers::Times) -> Duration| {
            worker.times.as_ref().map_or(Value::Null, |times| milliseconds(of(times)))
        };
        rows.add(vec![
            ("core", number(worker.core)),
            ("node", number(worker.node)),
            ("processor", number(worker.times.map(|times| times.processor))),
            ("sessions", int8(worker.sessions as u64)),
            ("fibers", int8(worker.fibers as u64)),
            ("turns", int8(worker.turns)),
            ("sleeps", int8(worker.sleeps)),
            ("events", int8(worker.events)),
            ("served", int8(worker.served)),
            ("file_operations", int8(worker.file_operations)),
            ("moved_in", int8(worker.moved_in)),
            ("moved_out", int8(worker.moved_out)),
            ("user_time", time(|times| times.user)),
            ("system_time", time(|times| times.system)),
            ("worker", text(worker.name)),
        ])?;
    }
    Ok(())
}

fn counters(system: &dyn System, rows: &mut Rows<'_>) -> Result<()> {
    for WorkerCounts { name, core, counts } in system.worker_counts() {
        let events = counts.events.into_iter();
        let events = events.map(|(name, count)| (name, count.map_or(Value::Null, int8)));
        let about = [
            ("worker", text(name)),
            ("core", core.map_or(Value::Null, int4)),
            ("user_only", Value::Bool(counts.user_only)),
            ("refused", counts.refused.map_or(Value::Null, text)),
        ];
        rows.add(events.chain(about).collect())?;
    }
    Ok(())
}
