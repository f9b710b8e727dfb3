//! sysbench's OLTP workloads, with the statements and tables of the scripts that come with sysbench
//! 1.0.
//!
//! Not supported: their options except those of [`Options`], and the scripts that insert or delete
//! only.

use std::sync::Arc;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::random::Repeatable;
use crate::client::random::sysbench::Distribution;
use crate::client::{Client, Params, Prepare, Random, Statement, StatementId, Step, Turn, Wanted};
use crate::record::Check;

use super::tables::{self, Table, Tables};
use super::{Before, Found, Workload};

/// The scripts: the queries of a transaction in order.
const SCRIPTS: [(&str, &[&[Query]]); 6] = [
    ("oltp_point_select", &[&[Query::Point]]),
    ("oltp_read_only", &[BEGIN, POINTS, RANGES, COMMIT]),
    ("oltp_read_write", &[BEGIN, POINTS, RANGES, WRITES, COMMIT]),
    ("oltp_write_only", &[BEGIN, WRITES, COMMIT]),
    ("oltp_update_index", &[&[Query::IndexUpdate]]),
    ("oltp_update_non_index", &[&[Query::NonIndexUpdate]]),
];
const BEGIN: &[Query] = &[Query::Begin];
/// The single-row reads of a transaction (`point_selects`), all from the same table.
const POINTS: &[Query] = &[Query::Point; 10];
const RANGES: &[Query] = &[Query::Simple, Query::Sum, Query::Order, Query::Distinct];
/// A transaction inserts a deleted row again.
const WRITES: &[Query] = &[Query::IndexUpdate, Query::NonIndexUpdate, Query::Delete, Query::Insert];
const COMMIT: &[Query] = &[Query::Commit];

/// Options of these scripts, by sysbench's names; all others have sysbench's defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    pub tables: u32,
    pub table_size: u32,
    pub rand_type: Distribution,
}

/// Rows that a range query reads (`range_size`).
const RANGE_SIZE: i64 = 100;

/// A statement: its place in [`QUERIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    Begin,
    Commit,
    Point,
    Simple,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

/// Their texts; T is the table's number, ? a parameter.
const QUERIES: [&str; 11] = [
    "BEGIN",
    "COMMIT",
    "SELECT c FROM sbtestT WHERE id=?",
    "SELECT c FROM sbtestT WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM sbtestT WHERE id BETWEEN ? AND ?",
    "SELECT c FROM sbtestT WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM sbtestT WHERE id BETWEEN ? AND ? ORDER BY c",
    "UPDATE sbtestT SET k=k+1 WHERE id=?",
    "UPDATE sbtestT SET c=? WHERE id=?",
    "DELETE FROM sbtestT WHERE id=?",
    "INSERT INTO sbtestT (id, k, c, pad) VALUES (?, ?, ?, ?)",
];

/// Most tables whose statements have numbers, for any script.
const TABLES_MAX: u32 = (u16::MAX - 2) as u32 / (QUERIES.len() as u32 - 2);

/// Groups of 11 digits in column c, and in column pad.
const GROUPS: [usize; 2] = [10, 5];

#[derive(Debug)]
pub struct Sysbench {
    kinds: [String; 1],
    seed: u64,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    queries: Vec<Query>,
    /// The queries on a table, in the order of their statements: sysbench prepares no others.
    used: Vec<Query>,
    /// Whether BEGIN and COMMIT enclose the queries.
    transaction: bool,
    options: Options,
}

impl Sysbench {
    /// The script of this name. The error names the option that is out of range.
    pub fn new(name: &str, options: Options, seed: u64) -> Result<Self, String> {
        if !(1..=TABLES_MAX).contains(&options.tables) {
            return Err(format!("tables {} is out of range: use 1 to {TABLES_MAX}", options.tables));
        }
        if options.table_size == 0 || options.table_size > i32::MAX as u32 {
            return Err(format!("table_size {} is out of range: use 1 to {}", options.table_size, i32::MAX));
        }
        let script = SCRIPTS.into_iter().find(|(known, ..)| *known == name);
        let (_, parts) = script.ok_or_else(|| format!("sysbench has no script '{name}'"))?;
        let queries = parts.concat();
        let transaction = queries[0] == Query::Begin;
        let mut used: Vec<Query> = queries.clone();
        used.retain(|query| !matches!(query, Query::Begin | Query::Commit));
        used.dedup();
        let plan = Plan { queries, used, transaction, options };
        Ok(Self { kinds: [name.into()], seed, plan: Arc::new(plan) })
    }
}

impl Plan {
    fn draw(&self, random: &mut Random) -> i64 {
        self.options.rand_type.draw(1, self.options.table_size.into(), random)
    }

    /// The statement of a query on a table, counted from 0.
    fn statement(&self, table: u16, query: Query) -> StatementId {
        if matches!(query, Query::Begin | Query::Commit) {
            return StatementId(query as u16);
        }
        let first = if self.transaction { Query::Commit as u16 + 1 } else { 0 };
        let place = self.used.iter().position(|used| *used == query).expect("a query of the script");
        StatementId(first + table * self.used.len() as u16 + place as u16)
    }
}

impl Tables for Sysbench {
    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let (id, engine) = match dialect {
            Dialect::Postgres => ("SERIAL", ""),
            Dialect::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", " /*! ENGINE = innodb */"),
        };
        let table = |number: u32| Table {
            name: format!("sbtest{number}"),
            create: format!(
                "CREATE TABLE sbtest{number}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                 c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n){engine}"
            ),
            rows: self.plan.options.table_size.into(),
        };
        (1..=self.plan.options.tables).map(table).collect()
    }

    fn row(&self, _: usize, number: u64, random: &mut Random, row: &mut Params) {
        row.int(number as i64 + 1);
        row.int(self.plan.draw(random));
        GROUPS.iter().for_each(|groups| digits(*groups, random, row));
    }

    fn after_load(&self, dialect: Dialect) -> Vec<String> {
        let mut statements = Vec::new();
        for number in 1..=self.plan.options.tables {
            if dialect == Dialect::Postgres {
                // The loaded rows have ids: the sequence continues after them, as if it had
                // generated them.
                statements.push(format!(
                    "SELECT setval('sbtest{number}_id_seq', {})",
                    self.plan.options.table_size
                ));
            }
            statements.push(format!("CREATE INDEX k_{number} ON sbtest{number}(k)"));
            // sysbench lacks this step: the server would do it at some time in the middle of a
            // round.
            statements.push(match dialect {
                Dialect::Postgres => format!("VACUUM ANALYZE sbtest{number}"),
                Dialect::Mysql => format!("ANALYZE TABLE sbtest{number}"),
            });
        }
        statements
    }
}

impl Workload for Sysbench {
    fn name(&self) -> &str {
        &self.kinds[0]
    }

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn load(&self, to: &Target, threads: usize, progress: &Progress) -> Result<(), Fault> {
        tables::load(self, to, self.seed, threads, progress)
    }

    fn found(&self, control: &mut Control) -> Result<Found, Fault> {
        tables::found(self, control)
    }

    fn check(&self, control: &mut Control, _: &Before) -> Result<Vec<Check>, Fault> {
        // Without transactions, a client that ends between DELETE and INSERT leaves a row missing.
        if !self.plan.transaction {
            return Ok(Vec::new());
        }
        let size = u64::from(self.plan.options.table_size);
        let check = |number: u32| {
            let rows = tables::rows(control, &format!("sbtest{number}"))?;
            Ok(Check {
                claim: format!("sbtest{number} has as many rows as before"),
                fault: (rows != Some(size)).then(|| format!("{} instead of {size}", rows.unwrap_or(0))),
            })
        };
        (1..=self.plan.options.tables).map(check).collect()
    }

    fn tolerated(&self, dialect: Dialect) -> &'static [&'static str] {
        match dialect {
            // Deadlock, serialization failure, and a duplicate key: two clients insert the same
            // deleted row at the same time.
            Dialect::Postgres => &["40P01", "40001", "23505"],
            // The default of --mysql-ignore-errors: deadlock, a row changed since it was read, lock
            // wait timeout.
            Dialect::Mysql => &["1213", "1020", "1205"],
        }
    }

    fn pipelines(&self) -> Result<(), String> {
        match self.plan.transaction {
            true => Ok(()),
            false => Err(format!("each statement of {} is a transaction of its own", self.name())),
        }
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let statement = |query: Query, table: u32| {
            let text = QUERIES[query as usize].replace("sbtestT", &format!("sbtest{table}"));
            // MySQL prepares no BEGIN.
            let never = query == Query::Begin && dialect == Dialect::Mysql;
            let prepare = if never { Prepare::Never } else { Prepare::AtConnect };
            Statement::new(&text, prepare, Wanted::Nothing)
        };
        let ends = [Query::Begin, Query::Commit].into_iter().filter(|_| self.plan.transaction);
        let of_table = |table: u32| self.plan.used.iter().map(move |query| statement(*query, table));
        ends.map(|query| statement(query, 0))
            .chain((1..=self.plan.options.tables).flat_map(of_table))
            .collect()
    }

    fn client(&self, _: usize, _: usize) -> Box<dyn Client> {
        let plan = Arc::clone(&self.plan);
        let random = Repeatable::default();
        Box::new(SysbenchClient { plan, random, again: false, at: 0, table: 0, deleted: (0, 0) })
    }
}

/// A client, and its position in its transaction.
#[derive(Debug)]
struct SysbenchClient {
    plan: Arc<Plan>,
    random: Repeatable,
    /// Whether the transaction begins again with the same random numbers.
    again: bool,
    at: usize,
    /// The query's table, from 0.
    table: u16,
    /// Id and k of the row that was deleted last.
    deleted: (i64, i64),
}

impl Client for SysbenchClient {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        let Self { plan, again, at, .. } = self;
        let Some(&query) = plan.queries.get(*at) else {
            *at = 0;
            return Step::Done(0);
        };
        let random = match *at {
            0 => self.random.begin(turn.random, std::mem::take(again)),
            _ => self.random.get(),
        };
        let before = at.checked_sub(1).map(|before| plan.queries[before]);
        *at += 1;
        match (before, query) {
            (_, Query::Begin | Query::Commit | Query::Insert) | (Some(Query::Point), Query::Point) => {}
            _ => self.table = random.between(0, i64::from(plan.options.tables) - 1) as u16,
        }
        fill(query, plan, random, &mut self.deleted, turn.params);
        Step::Run(plan.statement(self.table, query))
    }

    fn failed(&mut self, again: bool) -> u8 {
        (self.at, self.again) = (0, again);
        0
    }
}

/// Fills in the parameters of a query. A DELETE stores the row for the INSERT that follows it.
fn fill(query: Query, plan: &Plan, random: &mut Random, deleted: &mut (i64, i64), params: &mut Params) {
    match query {
        Query::Begin | Query::Commit => {}
        Query::Point | Query::IndexUpdate => params.int(plan.draw(random)),
        Query::Simple | Query::Sum | Query::Order | Query::Distinct => {
            let id = plan.draw(random);
            params.int(id);
            params.int(id + RANGE_SIZE - 1);
        }
        Query::NonIndexUpdate => {
            digits(GROUPS[0], random, params);
            params.int(plan.draw(random));
        }
        Query::Delete => {
            *deleted = (plan.draw(random), plan.draw(random));
            params.int(deleted.0);
        }
        Query::Insert => {
            params.ints(&[deleted.0, deleted.1]);
            GROUPS.iter().for_each(|groups| digits(*groups, random, params));
        }
    }
}

/// Groups of 11 random digits with dashes between them.
fn digits(groups: usize, random: &mut Random, params: &mut Params) {
    params.text_by(|text| {
        for group in 0..groups {
            if group > 0 {
                text.push('-');
            }
            // 11 digits come from one number: the remainder of 64 bits is uniform to a part in
            // 10^8.
            let mut number = random.bits();
            for _ in 0..11 {
                text.push(char::from(b'0' + (number % 10) as u8));
                number /= 10;
            }
        }
    });
}

#[cfg(test)]
mod tests;
