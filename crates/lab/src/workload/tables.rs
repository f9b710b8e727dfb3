//! Tables whose rows follow from their numbers: pgbench's, sysbench's and YCSB's.
//!
//! A row depends only on the seed, its table and its number. So any number of threads loads the
//! same data, each thread some parts.

use std::ops::Range;

use crate::arm::control::{Control, Fault, Progress, in_parallel};
use crate::arm::{Dialect, Target};
use crate::client::{Params, Random};

use super::Found;

/// Rows of one part: enough to make a connection's round trips negligible, few enough that threads
/// end together.
const PART: u64 = 50_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub create: String,
    /// The number of rows; each has a value for each column.
    pub rows: u64,
}

/// The contents of a workload's tables.
pub trait Tables: Sync {
    /// All tables, in the order of their creation.
    fn tables(&self, dialect: Dialect) -> Vec<Table>;

    /// Fills row `number` (from 0) of table `table` (its index in `tables`).
    fn row(&self, table: usize, number: u64, random: &mut Random, row: &mut Params);

    /// Statements that run, one after the other, after all rows but the last: indexes, statistics.
    fn after_load(&self, dialect: Dialect) -> Vec<String>;
}

/// Creates the tables, in place of those of an earlier load, and fills them with this many threads.
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
    // The last table's last row comes at the very end. Its absence marks a load that was cut short,
    // even during the creation of keys.
    let last = all.iter().rposition(|table| table.rows > 0);
    let early = |at: usize| all[at].rows - u64::from(Some(at) == last);
    let fill = |control: &mut Control, at: usize, mut numbers: Range<u64>| {
        let table = &all[at];
        let next = |row: &mut Params| {
            numbers.next().is_some_and(|number| {
                // Each row of a table has a random stream of its own.
                let stream = ((at as u64) << 48) + number;
                tables.row(at, number, &mut Random::new(seed, stream), row);
                true
            })
        };
        control.load(&table.name, progress, next).map(drop)
    };
    let parts_of = |at: usize| (0..early(at).div_ceil(PART)).map(move |part| (at, part * PART));
    let parts: Vec<(usize, u64)> = (0..all.len()).flat_map(parts_of).collect();
    in_parallel(to, threads, parts.len(), progress, |control, part| {
        let (at, first) = parts[part];
        fill(control, at, first..(first + PART).min(early(at)))
    })?;
    for statement in tables.after_load(to.dialect) {
        progress.go_on()?;
        control.execute(&statement)?;
    }
    last.map_or(Ok(()), |at| fill(&mut control, at, early(at)..all[at].rows))
}

/// Whether all tables have all their rows; the last row marks a complete load.
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

/// The number of rows of a table; `None` if there is none of this name.
pub fn rows(control: &mut Control, table: &str) -> Result<Option<u64>, Fault> {
    match control.value(&format!("select count(*) from {table}")) {
        Ok(count) => Ok(count.and_then(|count| count.parse().ok())),
        Err(fault) if fault.is_unknown_table() => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::Scratch;

    /// A table of 10 rows, and a statement that follows them.
    struct Ten(&'static str);

    impl Tables for Ten {
        fn tables(&self, _: Dialect) -> Vec<Table> {
            let table = |name: &str, rows| Table {
                name: name.into(),
                create: format!("create table {name}(id int)"),
                rows,
            };
            vec![table("ten", 10), table("none", 0)]
        }

        fn row(&self, _: usize, number: u64, _: &mut Random, row: &mut Params) {
            row.int(number as i64);
        }

        fn after_load(&self, _: Dialect) -> Vec<String> {
            vec![self.0.into()]
        }
    }

    #[test]
    fn a_load_cut_short_while_keys_are_made_is_found_incomplete() {
        for dialect in [Dialect::Postgres, Dialect::Mysql] {
            let Some(scratch) = Scratch::new(dialect, "tables") else { continue };
            let load = |tables: &Ten| load(tables, &scratch.target, 1, 2, &Progress::new(0));
            let mut control = scratch.control();
            assert_eq!(found(&Ten(""), &mut control), Ok(Found::Nothing));
            let cut = Ten("create index on nothing");
            assert!(load(&cut).unwrap_err().code().is_some());
            assert_eq!(found(&cut, &mut control), Ok(Found::Other("ten has 9 rows instead of 10".into())));
            let whole = Ten("create index ten_id on ten(id)");
            assert_eq!(load(&whole), Ok(()));
            assert_eq!(found(&whole, &mut control), Ok(Found::Loaded));
            assert_eq!(control.value("select sum(id) from ten"), Ok(Some("45".into())));
        }
    }
}
