//! Sessions on both cores create, fill, alter, index, truncate and drop the same tables. They roll
//! back, go back to savepoints, are cancelled, time out and vanish in the middle, beside
//! autovacuum. In the end every page belongs to exactly one owner and every index agrees with its
//! table.
//!
//! `ALLCORE_STORM_SECONDS` sets its length, `ALLCORE_STORM_SEED` its random numbers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::Folder;
use sql::database::{Database, Options};
use sql::embedded::EmbeddedSession;
use sync::atomic::{AtomicBool, Ordering};

const SESSIONS: u64 = 6;
const TABLES: u64 = 4;

/// The errors that such statements may meet: objects that other sessions made or dropped,
/// concurrent rows, locks, cancels.
const EXPECTED: &[&str] = &[
    "0A000", "22003", "25001", "54000", "23502", "23503", "23505", "25P02", "2BP01", "3B001", "3D000",
    "40001", "40P01", "42701", "42703", "42704", "42830", "42P01", "42P04", "42P07", "42P16", "55006",
    "55P03", "57014", "3F000", "42P06",
];

/// Numbers that a seed determines.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// One statement of the storm.
fn statement(dice: &mut Dice) -> String {
    let (t, other, i) = (dice.roll(TABLES), dice.roll(TABLES), dice.roll(3));
    let (first, count) = (dice.roll(4000), 1 + dice.roll(700));
    match dice.roll(36) {
        0..4 => format!(
            "CREATE TABLE t{t} (id int PRIMARY KEY, n int, body text); CREATE INDEX i{t}_0 ON t{t} (n)"
        ),
        4 => format!(
            "CREATE TABLE t{t} (id serial PRIMARY KEY, n int UNIQUE, body text, p int REFERENCES t{other})"
        ),
        5 => format!(
            "CREATE TABLE t{t} AS SELECT g AS id, g % 7 AS n, repeat('y', g % 50) AS body \
                      FROM generate_series({first}, {first} + {count}) g"
        ),
        6..11 => format!(
            "INSERT INTO t{t} (id, n, body) SELECT g, g % 100, repeat('x', g % 60) \
             FROM generate_series({first}, {first} + {count}) g ON CONFLICT DO NOTHING"
        ),
        11 => format!(
            "INSERT INTO t{t} (id, n, body) SELECT g, g, repeat('w', 7000) \
                       FROM generate_series({first}, {first} + 15) g"
        ),
        12 => format!("UPDATE t{t} SET n = n + 1, body = repeat('z', 5000) WHERE id % 97 = {i}"),
        13..15 => format!("UPDATE t{t} SET n = n + {count} WHERE id > {first}"),
        15..19 => format!("DELETE FROM t{t} WHERE id >= {first} OR n % 3 = {i}"),
        19 => format!("TRUNCATE t{t}"),
        20 => format!("TRUNCATE t{t}, t{other} CASCADE"),
        21..23 => format!("CREATE INDEX i{t}_{i} ON t{t} (n, id)"),
        23 => format!("CREATE UNIQUE INDEX i{t}_{i} ON t{t} (body)"),
        24 => format!("DROP INDEX IF EXISTS i{t}_{i}"),
        25 => format!("ALTER TABLE t{t} ADD COLUMN c{i} int DEFAULT {i}"),
        26 => format!("ALTER TABLE t{t} DROP COLUMN IF EXISTS c{i}"),
        27 => format!("ALTER TABLE t{t} ALTER COLUMN n TYPE bigint"),
        28 => format!("ALTER TABLE t{t} DROP CONSTRAINT IF EXISTS t{t}_pkey CASCADE"),
        29 => format!("ALTER TABLE t{t} ADD PRIMARY KEY (id)"),
        30 => format!("ALTER TABLE t{t} RENAME TO t{other}"),
        31 => format!("DROP TABLE IF EXISTS t{t} CASCADE"),
        32 => format!("DROP TABLE IF EXISTS t{t}, t{other} CASCADE"),
        33 => format!("VACUUM t{t}"),
        34 => format!("SELECT count(*), sum(n), max(length(body)) FROM t{t}"),
        _ => format!("SELECT * FROM t{t} WHERE n = {i} AND id > {first} ORDER BY body LIMIT 10 FOR UPDATE"),
    }
}

/// Cancel functions of the running sessions, which another thread calls.
type Cancellers = Arc<Mutex<Vec<Box<dyn Fn() + Send + Sync>>>>;

struct Sailor {
    database: Database,
    core: usize,
    dice: Dice,
    place: usize,
    cancellers: Cancellers,
    strange: Vec<String>,
}

impl Sailor {
    fn open_session(&mut self) -> EmbeddedSession {
        let session = self.database.session("postgres", self.core).expect("a session");
        self.cancellers.lock().expect("not poisoned")[self.place] = Box::new(session.canceller());
        session
    }

    /// Runs `sql`; returns whether it succeeded.
    fn run(&mut self, session: &mut EmbeddedSession, sql: &str) -> bool {
        let Err(error) = session.run(sql) else { return true };
        if !EXPECTED.contains(&error.code.as_str()) {
            self.strange.push(format!("{sql}: {} {error}", error.code.as_str()));
        }
        false
    }

    /// Runs one transaction; returns whether the session goes on.
    fn transaction(&mut self, session: &mut EmbeddedSession) -> bool {
        let limit = [0, 0, 5, 20, 100][self.dice.roll(5) as usize];
        self.run(session, &format!("SET statement_timeout = {limit}; SET lock_timeout = {}", 50 + limit));
        if self.dice.one_in(3) {
            let sql = statement(&mut self.dice);
            self.run(session, &sql);
            return true;
        }
        let isolation = if self.dice.one_in(3) { "REPEATABLE READ" } else { "READ COMMITTED" };
        // A cancel or a timeout may end BEGIN itself, or may have ended the COMMIT before it.
        if !self.run(session, &format!("BEGIN ISOLATION LEVEL {isolation}")) {
            self.run(session, "ROLLBACK");
            return true;
        }
        let mut savepoints = 0;
        for _ in 0..=self.dice.roll(7) {
            let sql = match self.dice.roll(10) {
                0 | 1 => {
                    savepoints += 1;
                    format!("SAVEPOINT s{savepoints}")
                }
                2 if savepoints > 0 => format!("ROLLBACK TO s{}", 1 + self.dice.roll(savepoints)),
                3 if savepoints > 0 => format!("RELEASE s{}", 1 + self.dice.roll(savepoints)),
                _ => statement(&mut self.dice),
            };
            self.run(session, &sql);
        }
        match self.dice.roll(12) {
            0 => return false,
            1..4 => self.run(session, "ROLLBACK"),
            _ => self.run(session, "COMMIT"),
        };
        true
    }

    fn sail(mut self, until: Instant) -> Vec<String> {
        let mut session = self.open_session();
        while Instant::now() < until {
            if !self.transaction(&mut session) {
                drop(session);
                session = self.open_session();
            }
        }
        self.strange
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn definitions_change_under_everybody_and_no_page_is_lost() {
    let seconds = number("ALLCORE_STORM_SECONDS").unwrap_or(6);
    let seed = number("ALLCORE_STORM_SEED").unwrap_or(0x5eed);
    let folder = Folder::new("storm");
    let database =
        folder.open_with(Options { autovacuum_pause: Duration::from_millis(5), ..Options::default() });
    let cancellers: Cancellers = Arc::new(Mutex::new(Vec::new()));
    cancellers.lock().expect("not poisoned").extend((0..SESSIONS).map(|_| Box::new(|| ()) as Box<_>));
    let over = Arc::new(AtomicBool::new(false));
    let cancels = std::thread::spawn({
        let (cancellers, over) = (Arc::clone(&cancellers), Arc::clone(&over));
        let mut dice = Dice(seed ^ 0x00c0_ffee);
        move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(500 + dice.roll(30_000)));
                cancellers.lock().expect("not poisoned")[dice.roll(SESSIONS) as usize]();
            }
        }
    });
    let until = Instant::now() + Duration::from_secs(seconds);
    let sailors: Vec<_> = (0..SESSIONS)
        .map(|place| {
            let sailor = Sailor {
                database: database.clone(),
                core: place as usize % 2,
                dice: Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place * 7919) | 1),
                place: place as usize,
                cancellers: Arc::clone(&cancellers),
                strange: Vec::new(),
            };
            std::thread::spawn(move || sailor.sail(until))
        })
        .collect();
    let strange: Vec<String> =
        sailors.into_iter().flat_map(|sailor| sailor.join().expect("a sailor comes home")).collect();
    over.store(true, Ordering::Relaxed);
    cancels.join().expect("the canceller ends");
    drop(cancellers);
    database.shutdown().expect("closes");
    drop(database);
    let database = folder.open();
    let report = database.check(&mut |_| ()).expect("a check ends");
    database.shutdown().expect("closes");
    assert_eq!(report.faults, Vec::<String>::new(), "seed {seed}");
    assert_eq!(strange, Vec::<String>::new(), "seed {seed}");
}
