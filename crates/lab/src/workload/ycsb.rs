//! YCSB's core workloads A to F over its table for SQL databases: `usertable` with `ycsb_key` and
//! ten fields.
//!
//! Each client ever made in this process has a block of key numbers of its own for its inserts. So
//! clients share nothing while a round runs, and arms whose rounds take turns on one database
//! insert different keys. The latest keys of a client are its own inserts and the loaded ones, in
//! YCSB's proportion: a client assumes that the others have inserted as many as it has.

use std::convert::Infallible;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::random::ycsb::{hash, scrambled, zipfian};
use crate::client::{Client, Params, Prepare, Random, Statement, StatementId, Step, Wanted};
use crate::record::Check;

use super::tables::{self, Table, Tables};
use super::talk::{Ended, Talk, Talker};
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
        write_record(number, random, row);
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
        let (records, rows) = (self.plan.records, tables::rows(control, "usertable")?.unwrap_or(0));
        let fault = (rows < records).then(|| format!("{rows} instead of {records}"));
        Ok(vec![Check { claim: "usertable has lost no record".into(), fault }])
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
        let client = YcsbClient {
            plan: Arc::clone(&self.plan),
            inserted: 0,
            clients: of.max(1) as u64,
            block: block * BLOCK,
        };
        Talker::new(move |talk, random| Box::pin(client.work(talk, random)))
    }
}

#[derive(Debug)]
struct YcsbClient {
    plan: Arc<Plan>,
    inserted: u64,
    clients: u64,
    /// The first number of its block.
    block: u64,
}

impl YcsbClient {
    async fn work(mut self, talk: Talk, mut random: Random) -> Infallible {
        loop {
            let drawn = random.clone();
            while self.operation(&talk, &mut random).await == Err(Ended::Failed { again: true }) {
                random.clone_from(&drawn);
            }
        }
    }

    async fn operation(&mut self, talk: &Talk, random: &mut Random) -> Result<(), Ended> {
        let mut drawn = random.between(0, 99);
        let chosen = self.plan.mix.iter().position(|(.., share)| {
            drawn -= share;
            drawn < 0
        });
        let kind = chosen.unwrap_or(0);
        talk.begin(kind as u8);
        let operation = self.plan.mix[kind].0;
        if operation == Operation::Insert {
            self.insert(talk, random).await?;
            return talk.step(Step::Done(kind as u8)).await;
        }
        let key = self.choose_key(random);
        match operation {
            Operation::Scan => {
                let length = random.between(1, MAX_SCAN_LENGTH);
                let fill = |params: &mut Params| {
                    write_key(key, params);
                    params.int(length);
                };
                talk.run_with(SCAN, fill).await?;
            }
            Operation::Update => self.update(key, talk, random).await?,
            _ => {
                talk.run_with(READ, |params| write_key(key, params)).await?;
                if operation == Operation::ReadModifyWrite {
                    self.update(key, talk, random).await?;
                }
            }
        }
        talk.step(Step::Done(kind as u8)).await
    }

    /// A failed insert has used its number, unless it is tried again: the client can't know whether
    /// the row exists.
    async fn insert(&mut self, talk: &Talk, random: &mut Random) -> Result<(), Ended> {
        let number = self.block + self.inserted;
        let fill = |params: &mut Params| write_record(number, random, params);
        let ended = talk.run_with(INSERT, fill).await;
        self.inserted += u64::from(ended != Err(Ended::Failed { again: true }));
        ended
    }

    /// Draws a record's number.
    fn choose_key(&self, random: &mut Random) -> u64 {
        let records = self.plan.records;
        if !self.plan.latest_keys {
            return scrambled(records, random);
        }
        // All clients' inserts stand for its own, which it knows to exist.
        let inserts = self.inserted * self.clients;
        let age = zipfian(records + inserts, random);
        match age < inserts {
            true => self.block + self.inserted - 1 - age / self.clients,
            false => records - 1 - (age - inserts),
        }
    }

    /// Writes one field of a record.
    async fn update(&mut self, key: u64, talk: &Talk, random: &mut Random) -> Result<(), Ended> {
        let field = random.between(0, i64::from(FIELD_COUNT) - 1) as u16;
        let fill = |params: &mut Params| {
            write_field(random, params);
            write_key(key, params);
        };
        talk.run_with(StatementId(UPDATE + field), fill).await
    }
}

fn write_record(number: u64, random: &mut Random, row: &mut Params) {
    write_key(number, row);
    (0..FIELD_COUNT).for_each(|_| write_field(random, row));
}

/// A record's key: its number's hash, so that adjacent numbers have distant keys
/// (`insertorder=hashed`).
fn write_key(number: u64, to: &mut Params) {
    to.text_by(|key| {
        key.push_str("user");
        key.push_str(itoa::Buffer::new().format(hash(number)));
    });
}

/// Random characters, ten from each 64 bits.
fn write_field(random: &mut Random, to: &mut Params) {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const EACH: usize = 10;
    let mut bits = 0;
    let character = |at: usize| {
        bits = if at.is_multiple_of(EACH) { random.bits() } else { bits / 64 };
        char::from(CHARACTERS[(bits % 64) as usize])
    };
    to.text_by(|field| field.extend((0..FIELD_LENGTH).map(character)));
}

#[cfg(test)]
mod tests;
