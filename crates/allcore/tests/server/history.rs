//! Clients read and change lists and registers at each isolation level. Meanwhile the server is
//! killed, its pool is tiny, tables change their shape, and COPY loads beside them. The checker of
//! crate `history` finds no anomaly that the level forbids.
//!
//! `ALLCORE_HISTORY_SECONDS` sets how long each level runs; without it a few seconds run.

use crate::common::Server;
use history::{Level, Operation, Outcome, Transaction, check};
use postgres::error::SqlState;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 8;
/// Keys that clients use at a time, of each kind; the next ones follow, so that lists stay short.
const KEYS: u64 = 6;
/// Transactions after which the clients go on to the next keys.
const STRETCH: u64 = 300;
/// Transactions of one history; the checker sees no further back than its beginning.
const HISTORY: u64 = 20_000;

fn seconds() -> u64 {
    std::env::var("ALLCORE_HISTORY_SECONDS").map_or(3, |text| text.parse().unwrap())
}

/// The state that all clients share.
struct Shared<'a> {
    server: &'a RwLock<Server>,
    level: Level,
    begun: Instant,
    values: AtomicU64,
    transactions: AtomicU64,
    stop: AtomicBool,
}

impl Shared<'_> {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// A connection, as soon as there is a server; `None` at the end.
    fn connect(&self) -> Option<postgres::Client> {
        while !self.stop.load(Ordering::Relaxed) {
            let server = self.server.read().unwrap();
            if let Ok(client) = server.try_connect() {
                return Some(client);
            }
            drop(server);
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

/// Numbers that look random: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// One operation on the server. Lists are text, `1,2,3`; registers are numbers.
fn operate(
    client: &mut postgres::Client,
    shared: &Shared<'_>,
    random: &mut Random,
    keys: u64,
) -> Result<Operation, postgres::Error> {
    let key = keys + random.below(KEYS);
    match random.below(5) {
        0 | 1 => {
            let row = client.query_opt("select v from lists where k = $1", &[&(key as i64)])?;
            let text: String = row.map_or(String::new(), |row| row.get(0));
            let values = text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap());
            Ok(Operation::ReadList(key, values.collect()))
        }
        2 => {
            let value = shared.values.fetch_add(1, Ordering::Relaxed);
            let upsert = "insert into lists values ($1, $2) on conflict (k) do update set v = lists.v || ',' || excluded.v";
            let update = "update lists set v = v || ',' || $2 where k = $1";
            let arguments: [&(dyn postgres::types::ToSql + Sync); 2] = [&(key as i64), &value.to_string()];
            let changed = if random.below(2) == 0 { client.execute(update, &arguments)? } else { 0 };
            if changed == 0 {
                client.execute(upsert, &arguments)?;
            }
            Ok(Operation::Append(key, value))
        }
        3 => {
            // Under READ COMMITTED a plain write without a read is no update of a version: the
            // checker knows no order of it.
            let value = shared.values.fetch_add(1, Ordering::Relaxed);
            let upsert = "insert into registers values ($1, $2) on conflict (k) do update set v = excluded.v";
            client.execute(upsert, &[&((key + 1_000_000_000) as i64), &(value as i64)])?;
            Ok(Operation::Write(key + 1_000_000_000, value))
        }
        _ => {
            let key = key + 1_000_000_000;
            let row = client.query_opt("select v from registers where k = $1", &[&(key as i64)])?;
            Ok(Operation::Read(key, row.map(|row| row.get::<_, i64>(0) as u64)))
        }
    }
}

/// A transaction and whether the connection is still good.
fn transact(client: &mut postgres::Client, shared: &Shared<'_>, random: &mut Random) -> (Transaction, bool) {
    let number = shared.transactions.fetch_add(1, Ordering::Relaxed);
    let keys = number / STRETCH * KEYS;
    let begin = match shared.level {
        Level::ReadCommitted => "begin isolation level read committed",
        Level::SnapshotIsolation => "begin isolation level repeatable read",
        Level::Serializable => unreachable!("no test runs it"),
    };
    let began = shared.now();
    let mut operations = Vec::new();
    let mut run = || -> Result<bool, postgres::Error> {
        client.batch_execute(begin)?;
        for _ in 0..1 + random.below(4) {
            operations.push(operate(client, shared, random, keys)?);
        }
        let rolls_back = random.below(10) == 0;
        client.batch_execute(if rolls_back { "rollback" } else { "commit" })?;
        Ok(!rolls_back)
    };
    let result = run();
    let (outcome, good) = match result {
        Ok(true) => (Outcome::Committed, true),
        Ok(false) => (Outcome::Aborted, true),
        Err(fault) => match fault.code() {
            Some(code) if refused(code) => (Outcome::Aborted, client.batch_execute("rollback").is_ok()),
            Some(code) if code.code().starts_with("57P") => (Outcome::Unknown, false),
            Some(_) => panic!("{fault}: {:?}", fault.as_db_error()),
            None => (Outcome::Unknown, false),
        },
    };
    let ended = if outcome == Outcome::Unknown { u64::MAX } else { shared.now() };
    (Transaction { operations, outcome, began, ended }, good)
}

fn refused(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
}

fn client(shared: &Shared<'_>, seed: u64) -> Vec<Transaction> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut history = Vec::new();
    while let Some(mut connection) = shared.connect() {
        while !shared.stop.load(Ordering::Relaxed) {
            let (transaction, good) = transact(&mut connection, shared, &mut random);
            history.push(transaction);
            if !good {
                break;
            }
        }
    }
    history
}

/// Changes the shape of the tables, loads rows by COPY and drops them.
fn disturb(shared: &Shared<'_>) {
    let mut random = Random(77);
    while let Some(mut connection) = shared.connect() {
        let mut number = 0;
        while !shared.stop.load(Ordering::Relaxed) {
            number += 1;
            let name = random.below(1_000_000_000);
            let done = match number % 4 {
                0 => connection
                    .batch_execute(&format!("create index i{name} on lists (k, v); drop index i{name}")),
                1 => {
                    // A volatile default rewrites the rows; another one does not.
                    let default = if number % 8 == 1 { "random()" } else { "7" };
                    connection.batch_execute(&format!(
                        "alter table lists add column c{name} float8 default {default}; \
                         alter table lists drop column c{name}"
                    ))
                }
                2 => load(&mut connection),
                // One by one: VACUUM runs in no transaction.
                _ => ["vacuum lists", "vacuum registers", "analyze lists"]
                    .iter()
                    .try_for_each(|statement| connection.batch_execute(statement)),
            };
            match done {
                Ok(()) => {}
                Err(fault) if fault.code().is_some_and(refused) => {}
                Err(fault) if fault.code().is_none_or(|code| code.code().starts_with("57P")) => break,
                Err(fault) => panic!("{fault}: {:?}", fault.as_db_error()),
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

fn load(connection: &mut postgres::Client) -> Result<(), postgres::Error> {
    use std::io::Write as _;
    let mut transaction = connection.transaction()?;
    let mut writer = transaction.copy_in("copy loaded from stdin")?;
    for number in 0..2_000 {
        writeln!(writer, "{number}\t{}", "x".repeat(200)).unwrap_or_default();
    }
    writer.finish()?;
    transaction.batch_execute("delete from loaded where k % 3 = 0; truncate loaded")?;
    transaction.commit()
}

/// Runs clients at a level for a while; every so often the server is killed and started again.
fn run(level: Level, extra: &[&str], kills: bool, disturbed: bool) {
    let server = Server::start(extra);
    server.psql(
        "create table lists (k bigint primary key, v text not null);
         create table registers (k bigint primary key, v bigint not null);
         create table loaded (k int, v text)",
    );
    let server = RwLock::new(server);
    let until = Instant::now() + Duration::from_secs(seconds());
    let (mut rounds, mut total, mut committed) = (0, 0, 0);
    let mut first_key = 0;
    while rounds == 0 || Instant::now() < until {
        rounds += 1;
        let shared = Shared {
            server: &server,
            level,
            begun: Instant::now(),
            values: AtomicU64::new(first_key + 1),
            transactions: AtomicU64::new(first_key),
            stop: AtomicBool::new(false),
        };
        let history = std::thread::scope(|scope| {
            let clients: Vec<_> = (1..=CLIENTS)
                .map(|seed| {
                    let shared = &shared;
                    scope.spawn(move || client(shared, seed + rounds * 100))
                })
                .collect();
            if disturbed {
                scope.spawn(|| disturb(&shared));
            }
            while Instant::now() < until && shared.transactions.load(Ordering::Relaxed) < first_key + HISTORY
            {
                std::thread::sleep(Duration::from_millis(700));
                if kills {
                    let mut server = server.write().unwrap();
                    server.crash();
                    server.launch();
                }
            }
            shared.stop.store(true, Ordering::Relaxed);
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        first_key = (shared.transactions.load(Ordering::Relaxed) / STRETCH + 1) * STRETCH;
        first_key = first_key.max(shared.values.load(Ordering::Relaxed));
        total += history.len();
        committed += history.iter().filter(|t| t.outcome == Outcome::Committed).count();
        let found = check(&history, level);
        assert!(found.is_empty(), "{level:?}, {} transactions:\n{}", history.len(), shown(&history, &found));
    }
    assert!(committed > 20, "the clients did next to nothing: {committed} of {total} committed");
    println!("{level:?} {extra:?}: {total} transactions, {committed} committed, no anomaly");
}

/// The first anomalies, with what their transactions did.
fn shown(history: &[Transaction], found: &[history::Anomaly]) -> String {
    let mut text = String::new();
    for anomaly in found.iter().take(5) {
        text += &format!("{anomaly}\n");
        for number in &anomaly.transactions {
            text += &format!("  T{number}: {:?}\n", history[*number]);
        }
    }
    text
}

#[test]
fn read_committed_keeps_its_level_while_tables_change() {
    run(Level::ReadCommitted, &[], false, true);
}

#[test]
fn repeatable_read_is_snapshot_isolation_in_a_tiny_pool() {
    run(Level::SnapshotIsolation, &["--buffers", "16MiB"], false, true);
}

#[test]
fn every_level_holds_over_kills_while_tables_change() {
    for level in [Level::ReadCommitted, Level::SnapshotIsolation] {
        run(level, &["--buffers", "16MiB"], true, true);
    }
}
