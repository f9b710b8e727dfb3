//! YCSB's core workloads A to F over its table for SQL databases: `usertable` with `ycsb_key` and
//! ten fields.
//!
//! Each client ever made in this process has a block of key numbers of its own for its inserts. So
//! clients share nothing while a round runs, and arms whose rounds take turns on one database
//! insert different keys. The latest keys of a client are its own inserts and the loaded ones, in
//! YCSB's proportion: a client assumes that the others have inserted as many as it has.

use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::random::Repeatable;
use crate::client::random::ycsb::{hash, scrambled, zipfian};
use crate::client::{Client, Params, Prepare, Random, Statement, StatementId, Step, Turn, Wanted};
use crate::record::Check;

use super::tables::{self, Table, Tables};
use super::{Before, Found, Workload};

/// `fieldcount`.
const FIELD_COUNT: u16 = 10;

/// Characters of a field (`fieldlength`).
const FIELD_LENGTH: usize = 100;

/// Records of the longest scan (`maxscanlength`, as in workloade).
const MAX_SCAN_LENGTH: i64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// Operations with their names and their shares in percent.
type Mix = &'static [(Operation, &'static str, i64)];

const READ_HALF: (Operation, &str, i64) = (Operation::Read, "read", 50);
const READ_MOST: (Operation, &str, i64) = (Operation::Read, "read", 95);
const INSERT_FEW: (Operation, &str, i64) = (Operation::Insert, "insert", 5);

/// The workloads, as in YCSB's files workloada to workloadf. The flag is for
/// `requestdistribution=latest`: clients choose the latest inserted keys most often. Elsewhere they
/// choose a few keys, which lie anywhere, much more often than the others (`zipfian`).
const MIXES: [(char, Mix, bool); 6] = [
    ('a', &[READ_HALF, (Operation::Update, "update", 50)], false),
    ('b', &[READ_MOST, (Operation::Update, "update", 5)], false),
    ('c', &[(Operation::Read, "read", 100)], false),
    ('d', &[READ_MOST, INSERT_FEW], true),
    ('e', &[(Operation::Scan, "scan", 95), INSERT_FEW], false),
    ('f', &[READ_HALF, (Operation::ReadModifyWrite, "read-modify-write", 50)], false),
];

const READ: StatementId = StatementId(0);
const SCAN: StatementId = StatementId(1);
const INSERT: StatementId = StatementId(2);
/// Updates the first field.
const UPDATE: u16 = 3;

/// Numbers in a client's block of keys.
const BLOCK: u64 = 1 << 32;

/// Number of blocks in use, by clients of all arms: several arms may share a database. The first
/// block has the loaded records.
static BLOCKS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub struct Ycsb {
    name: String,
    kinds: Vec<String>,
    seed: u64,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    mix: Mix,
    /// Whether clients choose the latest keys most often.
    latest_keys: bool,
    records: u64,
}

impl Ycsb {
    /// Workload `letter`, a to f, over this many records (`recordcount`). The error names the value
    /// that is out of range.
    pub fn new(letter: char, records: u64, seed: u64) -> Result<Self, String> {
        let letter = letter.to_ascii_lowercase();
        let (_, mix, latest_keys) = MIXES
            .into_iter()
            .find(|(name, ..)| *name == letter)
            .ok_or_else(|| format!("there is no YCSB workload '{letter}': use a to f"))?;
        if records == 0 || records >= BLOCK {
            return Err(format!("records {records} is out of range: use 1 to {}", BLOCK - 1));
        }
        let plan = Plan { mix, latest_keys, records };
        Ok(Self {
            name: format!("ycsb-{letter}"),
            kinds: mix.iter().map(|(_, name, _)| (*name).to_owned()).collect(),
            seed,
            plan: Arc::new(plan),
        })
    }
}

fn fields() -> impl Iterator<Item = String> {
    (0..FIELD_COUNT).map(|field| format!("FIELD{field}"))
}

impl Tables for Ycsb {
    fn tables(&self, _: Dialect) -> Vec<Table> {
        let definitions: String = fields().map(|field| format!(", {field} TEXT")).collect();
        vec![Table {
            name: "usertable".into(),
            create: format!("CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY{definitions})"),
            rows: self.plan.records,
        }]
    }

    fn row(&self, _: usize, number: u64, random: &mut Random, row: &mut Params) {
        let mut scratch = String::new();
        write_record(number, random, row, &mut scratch);
    }

    fn after_load(&self, dialect: Dialect) -> Vec<String> {
        vec![match dialect {
            Dialect::Postgres => "VACUUM ANALYZE usertable".into(),
            Dialect::Mysql => "ANALYZE TABLE usertable".into(),
        }]
    }
}

impl Workload for Ycsb {
    fn name(&self) -> &str {
        &self.name
    }

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn load(&self, to: &Target, threads: usize, progress: &Progress) -> Result<(), Fault> {
        tables::load(self, to, self.seed, threads, progress)
    }

    /// A table with inserts of an earlier run counts as another content: clients would insert its
    /// keys again.
    fn found(&self, control: &mut Control) -> Result<Found, Fault> {
        tables::found(self, control)
    }

    fn check(&self, control: &mut Control, _: &Before) -> Result<Vec<Check>, Fault> {
        let (records, inserts) =
            (self.plan.records, self.plan.mix.iter().any(|(kind, ..)| *kind == Operation::Insert));
        let rows = tables::rows(control, "usertable")?.unwrap_or(0);
        let holds = if inserts { rows >= records } else { rows == records };
        let claim =
            if inserts { "usertable has lost no record" } else { "usertable has as many records as before" };
        Ok(vec![Check {
            claim: claim.into(),
            fault: (!holds).then(|| format!("{rows} instead of {records}")),
        }])
    }

    fn pipelines(&self) -> Result<(), String> {
        Err(format!("a transaction of {} is one statement, or a record read and then written", self.name()))
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        let statement = |text: &str| Statement::new(text, Prepare::AtConnect, Wanted::Nothing);
        let columns: Vec<_> = fields().collect();
        let places = ",?".repeat(columns.len());
        let mut all = vec![
            statement("SELECT * FROM usertable WHERE YCSB_KEY = ?"),
            statement("SELECT * FROM usertable WHERE YCSB_KEY >= ? ORDER BY YCSB_KEY LIMIT ?"),
            statement(&format!("INSERT INTO usertable (YCSB_KEY,{}) VALUES(?{places})", columns.join(","))),
        ];
        all.extend(
            columns
                .iter()
                .map(|field| statement(&format!("UPDATE usertable SET {field}=? WHERE YCSB_KEY = ?"))),
        );
        all
    }

    fn client(&self, _: usize, of: usize) -> Box<dyn Client> {
        // Relaxed: the counter hands out numbers and nothing else.
        let block = BLOCKS.fetch_add(1, Ordering::Relaxed);
        Box::new(YcsbClient {
            plan: Arc::clone(&self.plan),
            random: Repeatable::default(),
            inserted: 0,
            clients: of.max(1) as u64,
            block: block * BLOCK,
            state: State::Begin,
            kind: 0,
            key: 0,
            scratch: String::new(),
        })
    }
}

#[derive(Debug)]
struct YcsbClient {
    plan: Arc<Plan>,
    random: Repeatable,
    inserted: u64,
    clients: u64,
    /// The first number of its block.
    block: u64,
    state: State,
    kind: u8,
    /// The record that the client reads and then writes.
    key: u64,
    scratch: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    /// The operation begins again with the same random numbers.
    Again,
    /// The client has read the record and writes it next.
    Write,
    /// The insert has its answer.
    Inserted,
    Done,
}

impl YcsbClient {
    /// Chooses an operation, or goes back to the beginning of the last one.
    fn begin(&mut self, turn: Turn<'_>) -> Step {
        let random = self.random.begin(turn.random, self.state == State::Again);
        let mut drawn = random.between(0, 99);
        let chosen = self.plan.mix.iter().position(|(.., share)| {
            drawn -= share;
            drawn < 0
        });
        let kind = chosen.unwrap_or(0);
        self.kind = kind as u8;
        self.state = State::Done;
        match self.plan.mix[kind].0 {
            Operation::Insert => {
                self.state = State::Inserted;
                let number = self.block + self.inserted;
                write_record(number, random, turn.params, &mut self.scratch);
                Step::Run(INSERT)
            }
            Operation::Scan => {
                self.choose_key();
                write_key(self.key, turn.params, &mut self.scratch);
                turn.params.int(self.random.get().between(1, MAX_SCAN_LENGTH));
                Step::Run(SCAN)
            }
            Operation::Update => {
                self.choose_key();
                self.update(turn.params)
            }
            operation => {
                if operation == Operation::ReadModifyWrite {
                    self.state = State::Write;
                }
                self.choose_key();
                write_key(self.key, turn.params, &mut self.scratch);
                Step::Run(READ)
            }
        }
    }

    /// Draws a record's number.
    fn choose_key(&mut self) {
        let (random, records) = (self.random.get(), self.plan.records);
        if !self.plan.latest_keys {
            self.key = scrambled(records, random);
            return;
        }
        // All clients' inserts stand for its own, which it knows to exist.
        let inserts = self.inserted * self.clients;
        let age = zipfian(records + inserts, random);
        self.key = match age < inserts {
            true => self.block + self.inserted - 1 - age / self.clients,
            false => records - 1 - (age - inserts),
        };
    }

    /// Writes one field of the chosen record.
    fn update(&mut self, params: &mut Params) -> Step {
        let random = self.random.get();
        let field = random.between(0, i64::from(FIELD_COUNT) - 1) as u16;
        write_field(random, params, &mut self.scratch);
        write_key(self.key, params, &mut self.scratch);
        Step::Run(StatementId(UPDATE + field))
    }

    /// Counts an insert. A failed one has used its number all the same: the client can't know
    /// whether the row exists.
    fn inserted(&mut self) {
        self.inserted += 1;
    }
}

impl Client for YcsbClient {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        match self.state {
            State::Begin | State::Again => self.begin(turn),
            State::Write => {
                self.state = State::Done;
                self.update(turn.params)
            }
            State::Inserted | State::Done => {
                if self.state == State::Inserted {
                    self.inserted();
                }
                self.state = State::Begin;
                Step::Done(self.kind)
            }
        }
    }

    fn failed(&mut self, again: bool) -> u8 {
        if self.state == State::Inserted && !again {
            self.inserted();
        }
        self.state = if again { State::Again } else { State::Begin };
        self.kind
    }
}

fn write_record(number: u64, random: &mut Random, row: &mut Params, scratch: &mut String) {
    write_key(number, row, scratch);
    (0..FIELD_COUNT).for_each(|_| write_field(random, row, scratch));
}

/// A record's key: its number's hash, so that adjacent numbers have distant keys
/// (`insertorder=hashed`).
fn write_key(number: u64, to: &mut Params, scratch: &mut String) {
    scratch.clear();
    scratch.push_str("user");
    scratch.push_str(itoa::Buffer::new().format(hash(number)));
    to.text(scratch);
}

/// Random characters, ten from each 64 bits.
fn write_field(random: &mut Random, to: &mut Params, scratch: &mut String) {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    scratch.clear();
    while scratch.len() < FIELD_LENGTH {
        let mut bits = random.bits();
        for _ in 0..10.min(FIELD_LENGTH - scratch.len()) {
            scratch.push(CHARACTERS[(bits % 64) as usize].into());
            bits /= 64;
        }
    }
    to.text(scratch);
}

#[cfg(test)]
mod tests;
