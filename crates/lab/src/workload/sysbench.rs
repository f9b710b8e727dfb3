//! sysbench's OLTP workloads, with the statements and tables of the scripts that come with sysbench
//! 1.0.
//!
//! Not supported: their options except those of [`Options`], and the scripts that insert or delete
//! only.

use std::sync::Arc;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::random::sysbench::Distribution;
use crate::client::{Client, Params, Prepare, Random, Statement, StatementId, Step, Turn, Wanted};
use crate::record::Check;

use super::tables::{self, Table, Tables};
use super::{Before, Found, Workload};

/// The scripts: the queries of a transaction in order, and whether BEGIN and COMMIT enclose them. A
/// transaction inserts a deleted row again.
const SCRIPTS: [(&str, &[Query], bool); 6] = [
    ("oltp_point_select", &[Query::Point], false),
    ("oltp_read_only", READS, true),
    (
        "oltp_read_write",
        &[READS[0], READS[1], READS[2], READS[3], READS[4], WRITES[0], WRITES[1], WRITES[2]],
        true,
    ),
    ("oltp_write_only", WRITES, true),
    ("oltp_update_index", &[Query::IndexUpdate], false),
    ("oltp_update_non_index", &[Query::NonIndexUpdate], false),
];
const READS: &[Query] = &[Query::Point, Query::Simple, Query::Sum, Query::Order, Query::Distinct];
const WRITES: &[Query] = &[Query::IndexUpdate, Query::NonIndexUpdate, Query::Delete];

/// Number of single-row reads in a transaction (`point_selects`), all from the same table.
const POINT_SELECTS: u32 = 10;

/// Options of these scripts, by sysbench's names; all others have sysbench's defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    pub tables: u32,
    pub table_size: u32,
    pub rand_type: Distribution,
}

/// Rows that a range query reads (`range_size`).
const RANGE_SIZE: i64 = 100;

/// A statement on a table: its place in [`QUERIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
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
const QUERIES: [&str; 9] = [
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

const BEGIN: StatementId = StatementId(0);
const COMMIT: StatementId = StatementId(1);

/// Most tables whose statements have numbers, for any script.
const TABLES_MAX: u32 = (u16::MAX - 2) as u32 / QUERIES.len() as u32;

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
    queries: &'static [Query],
    /// Queries that the script uses, in the order of their statements: sysbench prepares no others.
    used: Vec<Query>,
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
        let (_, queries, transaction) = script.ok_or_else(|| format!("sysbench has no script '{name}'"))?;
        let mut used = queries.to_vec();
        if used.contains(&Query::Delete) {
            used.push(Query::Insert);
        }
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
        let first = if self.transaction { COMMIT.0 + 1 } else { 0 };
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
        let statement = |text: &str, prepare: Prepare| Statement {
            pieces: text.split('?').map(String::from).collect(),
            prepare,
            wanted: Wanted::Nothing,
        };
        let mut all = Vec::new();
        if self.plan.transaction {
            // MySQL prepares no BEGIN.
            let begin = if dialect == Dialect::Mysql { Prepare::Never } else { Prepare::AtConnect };
            all = vec![statement("BEGIN", begin), statement("COMMIT", Prepare::AtConnect)];
        }
        for number in 1..=self.plan.options.tables {
            let text =
                |query: &Query| QUERIES[*query as usize].replace("sbtestT", &format!("sbtest{number}"));
            all.extend(self.plan.used.iter().map(|query| statement(&text(query), Prepare::AtConnect)));
        }
        all
    }

    fn client(&self, _: usize, _: usize) -> Box<dyn Client> {
        let plan = Arc::clone(&self.plan);
        Box::new(SysbenchClient {
            plan,
            random: None,
            saved: None,
            state: State::Begin,
            table: 0,
            deleted: None,
        })
    }
}

/// A client, and its position in its transaction.
#[derive(Debug)]
struct SysbenchClient {
    plan: Arc<Plan>,
    /// The client's own generator, so that a repeated transaction draws the same.
    random: Option<Random>,
    /// The generator at the transaction's beginning.
    saved: Option<Random>,
    state: State,
    /// The query's table, from 0.
    table: u16,
    /// Id and k of the row that has been deleted.
    deleted: Option<(i64, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    /// The transaction begins again with the same random numbers.
    Again,
    /// Query, and the number of its repetitions so far.
    Query(usize, u32),
    Done,
}

impl Client for SysbenchClient {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        let Self { plan, state, deleted, .. } = self;
        if matches!(state, State::Begin | State::Again) {
            let random = self.random.get_or_insert_with(|| turn.random.fork());
            match (&*state, &self.saved) {
                (State::Again, Some(saved)) => random.clone_from(saved),
                _ => self.saved = Some(random.clone()),
            }
            *deleted = None;
            *state = State::Query(0, 0);
            if plan.transaction {
                return Step::Run(BEGIN);
            }
        }
        let State::Query(at, times) = *state else {
            *state = State::Begin;
            return Step::Done(0);
        };
        let (Some(query), Some(random)) = (plan.queries.get(at), &mut self.random) else {
            *state = if plan.transaction { State::Done } else { State::Begin };
            return if plan.transaction { Step::Run(COMMIT) } else { Step::Done(0) };
        };
        if times == 0 && deleted.is_none() {
            self.table = random.between(0, i64::from(plan.options.tables) - 1) as u16;
        }
        let query = if deleted.is_some() { Query::Insert } else { *query };
        fill(query, plan, random, deleted, turn.params);
        // The client inserts a deleted row before the next query.
        if deleted.is_none() {
            let again = query == Query::Point && plan.transaction && times + 1 < POINT_SELECTS;
            *state = if again { State::Query(at, times + 1) } else { State::Query(at + 1, 0) };
        }
        Step::Run(plan.statement(self.table, query))
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.state = if again { State::Again } else { State::Begin };
        0
    }
}

/// Fills in the parameters of a query. A DELETE stores the row for the INSERT that follows it.
fn fill(
    query: Query,
    plan: &Plan,
    random: &mut Random,
    deleted: &mut Option<(i64, i64)>,
    params: &mut Params,
) {
    match query {
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
            let (id, k) = (plan.draw(random), plan.draw(random));
            params.int(id);
            *deleted = Some((id, k));
        }
        Query::Insert => {
            let (id, k) = deleted.take().unwrap_or_default();
            params.int(id);
            params.int(k);
            GROUPS.iter().for_each(|groups| digits(*groups, random, params));
        }
    }
}

/// Groups of 11 random digits with dashes between them.
fn digits(groups: usize, random: &mut Random, params: &mut Params) {
    let mut text = [b'-'; 12 * 10];
    for group in text[..12 * groups].chunks_exact_mut(12) {
        // 11 digits come from one number: the remainder of 64 bits is uniform to a part in 10^8.
        let mut number = random.bits();
        for digit in &mut group[..11] {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    let text = std::str::from_utf8(&text[..12 * groups - 1]).expect("digits and dashes are text");
    params.text(text);
}

#[cfg(test)]
mod tests;
