//! Sessions on both cores insert, move and delete children while others delete their parents and
//! change the parents' keys. Every row's parent is there in the end, for each action of a foreign
//! key, with and without an index on the child.
//!
//! `ALLCORE_STORM_ROUNDS` sets its length, `ALLCORE_STORM_SEED` its random numbers.

use crate::common::{Folder, run};
use sql::database::{Database, Options};

const SESSIONS: u64 = 6;
const PARENTS: u64 = 8;

/// A foreign key's clause, and further definitions of the child.
const KINDS: [(&str, &str); 6] = [
    ("", "CREATE INDEX ON c0 (p)"),
    ("ON DELETE CASCADE ON UPDATE CASCADE", ""),
    ("ON DELETE SET NULL ON UPDATE CASCADE", "CREATE INDEX ON c2 (p, id)"),
    ("ON DELETE RESTRICT ON UPDATE RESTRICT", ""),
    ("ON DELETE SET DEFAULT ON UPDATE SET NULL", "CREATE INDEX ON c4 (p)"),
    ("ON DELETE CASCADE ON UPDATE SET DEFAULT", "CREATE UNIQUE INDEX ON c5 (p, id)"),
];

/// The expected errors: a key that is taken, referenced or has no parent, and sessions in each
/// other's way.
const EXPECTED: &[&str] = &["23505", "23503", "23001", "40001", "40P01", "25P02"];

/// Numbers that a seed determines.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

fn statement(dice: &mut Dice) -> String {
    let (kind, parent, other) =
        (dice.roll(KINDS.len() as u64), 1 + dice.roll(PARENTS), 1 + dice.roll(PARENTS));
    let id = dice.roll(1000);
    match dice.roll(10) {
        0..3 => format!("INSERT INTO c{kind} VALUES ({id}, {parent})"),
        3 => format!("UPDATE c{kind} SET p = {parent} WHERE p = {other}"),
        4 => format!("UPDATE c{kind} SET id = id + 1000 WHERE id < 1000 AND p = {parent}"),
        5 => format!("DELETE FROM c{kind} WHERE p = {parent}"),
        6 => format!("DELETE FROM p{kind} WHERE i = {parent}"),
        7 => format!("UPDATE p{kind} SET i = {other} WHERE i = {parent}"),
        8 => format!("SELECT * FROM p{kind} WHERE i = {parent} FOR UPDATE"),
        _ => format!("INSERT INTO p{kind} VALUES ({parent})"),
    }
}

/// Runs one session's statements; returns those that failed with an unexpected error.
fn sail(database: &Database, place: u64, seed: u64, rounds: u64) -> Vec<String> {
    let mut session = database.session("postgres", place as usize % 2).expect("a session");
    let mut dice = Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place * 7919) | 1);
    let mut strange = Vec::new();
    for _ in 0..rounds {
        let mut statements: Vec<String> = (0..1 + dice.roll(3)).map(|_| statement(&mut dice)).collect();
        if statements.len() > 1 {
            let level = if dice.roll(3) == 0 { "REPEATABLE READ" } else { "READ COMMITTED" };
            statements.insert(0, format!("BEGIN ISOLATION LEVEL {level}"));
            statements.push(if dice.roll(6) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
        }
        for sql in statements {
            if let Err(error) = session.run(&sql)
                && !EXPECTED.contains(&error.code.as_str())
            {
                strange.push(format!("{sql}: {} {error}", error.code.as_str()));
            }
        }
    }
    strange
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_child_is_left_without_its_parent() {
    let (rounds, seed) = (number("ALLCORE_STORM_ROUNDS", 400), number("ALLCORE_STORM_SEED", 0x5eed));
    let folder = Folder::new("storm-keys");
    let database = folder.open_with(Options::default());
    let mut session = database.session("postgres", 0).expect("a session");
    for (kind, (clause, index)) in KINDS.iter().enumerate() {
        run(&mut session, &format!("CREATE TABLE p{kind} (i int PRIMARY KEY)"));
        let references = format!("int DEFAULT 1 REFERENCES p{kind} {clause}");
        run(&mut session, &format!("CREATE TABLE c{kind} (id int PRIMARY KEY, p {references})"));
        if !index.is_empty() {
            run(&mut session, index);
        }
        run(&mut session, &format!("INSERT INTO p{kind} SELECT generate_series(1, {PARENTS})"));
    }
    let sailors: Vec<_> = (0..SESSIONS)
        .map(|place| {
            let database = database.clone();
            std::thread::spawn(move || sail(&database, place, seed, rounds))
        })
        .collect();
    let strange: Vec<String> =
        sailors.into_iter().flat_map(|sailor| sailor.join().expect("a sailor comes home")).collect();
    assert_eq!(strange, Vec::<String>::new(), "seed {seed}");
    for kind in 0..KINDS.len() {
        let orphans = format!(
            "SELECT c.id, c.p FROM c{kind} c LEFT JOIN p{kind} p ON p.i = c.p \
             WHERE c.p IS NOT NULL AND p.i IS NULL"
        );
        let answer = run(&mut session, &orphans);
        assert!(answer.rows.is_empty(), "kind {kind}, seed {seed}: {} orphans", answer.rows.len());
    }
    drop(session);
    database.shutdown().expect("closes");
}
