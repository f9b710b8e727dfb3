//! Tables that are filled row by row from their numbers: pgbench's, sysbench's and YCSB's.
//!
//! A row follows from the seed, its table and its number alone, so that any number of threads loads the same data, in
//! parts side by side.

use crate::arm::control::{Control, Fault, Progress, in_parallel};
use crate::arm::{Dialect, Target};
use crate::client::{Params, Random};

use super::Found;

/// Rows of one part: enough that a connection's round trips are nothing, few enough that threads end together.
const PART: u64 = 50_000;

/// A table to be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The statement that makes it.
    pub create: String,
    /// Those that rows have values for, in order.
    pub columns: Vec<String>,
    /// How many there will be.
    pub rows: u64,
}

/// What a workload's tables are made of.
pub trait Tables: Sync {
    /// All tables, in the order in which they are made.
    fn tables(&self, dialect: Dialect) -> Vec<Table>;

    /// Fills row `number` (from 0) of table `table` (its place in `tables`).
    fn row(&self, table: usize, number: u64, random: &mut Random, row: &mut Params);

    /// Statements that are run when all rows are there, one after the other: indexes, statistics.
    fn after_load(&self, dialect: Dialect) -> Vec<String>;
}

/// Makes the tables, in place of those of an earlier load, and fills them with so many threads.
pub fn load(
    tables: &dyn Tables,
    to: &Target,
    seed: u64,
    threads: usize,
    progress: &Progress,
) -> Result<(), Fault> {
    let all = tables.tables(to.dialect);
    progress.set_total(all.iter().map(|table| table.rows).sum());
    let mut control = Control::connect(to)?;
    let names: Vec<_> = all.iter().map(|table| table.name.as_str()).collect();
    control.execute(&format!("drop table if exists {}", names.join(", ")))?;
    for table in &all {
        control.execute(&table.create)?;
    }
    let parts: Vec<(usize, u64)> = all
        .iter()
        .enumerate()
        .flat_map(|(at, table)| (0..table.rows.div_ceil(PART)).map(move |part| (at, part * PART)))
        .collect();
    in_parallel(to, threads, parts.len(), progress, |control, part| {
        let (at, first) = parts[part];
        let table = &all[at];
        let columns: Vec<_> = table.columns.iter().map(String::as_str).collect();
        let mut numbers = first..(first + PART).min(table.rows);
        let fill = |row: &mut Params| {
            numbers.next().is_some_and(|number| {
                // A table's rows are a stream of their own each.
                let stream = ((at as u64) << 48) + number;
                tables.row(at, number, &mut Random::new(seed, stream), row);
                true
            })
        };
        control.load(&table.name, &columns, progress, fill).map(drop)
    })?;
    tables.after_load(to.dialect).iter().try_for_each(|statement| control.execute(statement).map(drop))
}

/// Whether all tables are there with all their rows.
pub fn found(tables: &dyn Tables, control: &mut Control) -> Result<Found, Fault> {
    let all = tables.tables(control.dialect());
    let mut missing = Vec::new();
    for table in all.iter().filter(|table| table.rows > 0) {
        match rows(control, &table.name)? {
            Some(rows) if rows == table.rows => {}
            Some(rows) => {
                return Ok(Found::Other(format!("{} has {rows} rows instead of {}", table.name, table.rows)));
            }
            None => missing.push(table.name.as_str()),
        }
    }
    Ok(match missing.len() {
        0 => Found::Loaded,
        count if count == all.iter().filter(|table| table.rows > 0).count() => Found::Nothing,
        _ => Found::Other(format!("there is no {}", missing.join(", "))),
    })
}

/// How many rows a table has; `None` if there is none of this name.
pub fn rows(control: &mut Control, table: &str) -> Result<Option<u64>, Fault> {
    match control.value(&format!("select count(*) from {table}")) {
        Ok(count) => Ok(count.and_then(|count| count.parse().ok())),
        // Undefined table, in PostgreSQL's words and in MySQL's.
        Err(Fault::Statement { code, .. }) if code == "42P01" || code == "1146" => Ok(None),
        Err(fault) => Err(fault),
    }
}
