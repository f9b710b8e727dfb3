//! Sampling against scripted servers, and against real ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::*;
use crate::client::Reply;
use crate::tests::wait_until;

/// Gives the scripted answers in turn, the last one for ever.
struct Scripted(Answers);

impl arm::Ask for Scripted {
    fn ask(&mut self, _: &str) -> Result<Reply, String> {
        let mut answers = self.0.lock().unwrap();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
    }
}

fn rows(rows: &[(&str, u64)]) -> Result<Reply, String> {
    let mut reply = Reply::default();
    reply.set_columns(2);
    for (name, count) in rows {
        reply.push(Some(name.as_bytes()));
        reply.push(Some(count.to_string().as_bytes()));
    }
    Ok(reply)
}

/// A PostgreSQL server that gives these answers; the second value holds the remaining ones.
fn scripted(answers: Vec<Result<Reply, String>>) -> (Connect, Answers) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let left = Arc::clone(&answers);
    (Arc::new(move || Ok(Box::new(Scripted(Arc::clone(&answers))))), left)
}

type Answers = Arc<Mutex<VecDeque<Result<Reply, String>>>>;

/// The samples of a round that asks from the beginning, until `until` answers remain.
fn round(waits: &mut Waits, left: &Answers, until: usize) -> Samples {
    waits.begin();
    waits.ask();
    wait_until(|| left.lock().unwrap().len() == until);
    waits.end();
    waits.samples()
}

#[test]
fn samples_of_a_round_are_added_up() {
    let answers =
        vec![rows(&[(RUNNING, 3), ("LWLock:WALWrite", 1)]), rows(&[("LWLock:WALWrite", 12)]), rows(&[])];
    let (connect, left) = scripted(answers);
    let mut waits = Waits::new(Dialect::Postgres, connect);
    let seen = round(&mut waits, &left, 1).unwrap();
    assert_eq!(seen.shares[0], Share { name: "LWLock:WALWrite".into(), share: 13.0 / 16.0 });
    assert_eq!(seen.shares[1], Share { name: RUNNING.into(), share: 3.0 / 16.0 });
    assert_eq!((seen.shares.len(), seen.samples), (2, 2), "looks that saw somebody");
}

#[test]
fn waits_are_asked_for_only_on_demand() {
    let (connect, left) = scripted(vec![rows(&[(RUNNING, 3)]), rows(&[])]);
    let mut waits = Waits::new(Dialect::Postgres, connect);
    waits.begin();
    // Long enough for a question, if there were one.
    std::thread::sleep(2 * INTERVAL);
    assert_eq!(left.lock().unwrap().len(), 2);
    waits.ask();
    waits.ask();
    wait_until(|| left.lock().unwrap().len() == 1);
    waits.end();
    assert_eq!(waits.samples().unwrap().samples, 1);
    waits.begin();
    waits.end();
    assert_eq!(waits.samples(), Err(NOT_ASKED.into()));
}

#[test]
fn a_round_without_an_end_does_not_replace_the_next_one() {
    let (connect, left) = scripted(vec![rows(&[(RUNNING, 3)]), rows(&[(RUNNING, 1)])]);
    let mut waits = Waits::new(Dialect::Postgres, connect);
    waits.begin();
    waits.ask();
    wait_until(|| left.lock().unwrap().len() == 1);
    assert_eq!(round(&mut waits, &left, 1).unwrap().shares[0].name, RUNNING);
}

#[test]
fn a_lost_connection_is_reported_and_replaced() {
    let (connect, left) = scripted(vec![Err("the connection is gone".into()), rows(&[(RUNNING, 1)])]);
    let mut waits = Waits::new(Dialect::Postgres, connect);
    assert_eq!(round(&mut waits, &left, 1), Err("the connection is gone".into()));
    assert_eq!(round(&mut waits, &left, 1).unwrap().shares[0].name, RUNNING);
}

#[test]
fn a_session_that_asks_ends_with_its_round() {
    let Some(scratch) = crate::workload::tests::Scratch::new(Dialect::Postgres, "waits") else { return };
    let (target, mut control) = (&scratch.target, scratch.control());
    let asks = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT CASE WHEN wait_event IS NULL%' \
                AND datname = current_database()";
    let mut asking = |expected: &str| {
        wait_until(|| control.value(asks).unwrap().as_deref() == Some(expected));
        assert_eq!(control.value(asks).unwrap().as_deref(), Some(expected));
    };
    let mut waits = Waits::new(target.dialect, connect_to(target));
    waits.begin();
    waits.ask();
    asking("1");
    waits.end();
    waits.samples().unwrap();
    asking("0");
}

#[test]
fn a_server_that_refuses_says_why_each_time() {
    let refusing: Connect = Arc::new(|| Err("no such user".into()));
    let mut waits = Waits::new(Dialect::Postgres, refusing);
    for _ in 0..2 {
        waits.begin();
        waits.ask();
        waits.end();
        assert_eq!(waits.samples(), Err("no such user".into()));
    }
}

#[test]
fn mysql_servers_get_the_query_that_they_support() {
    let no = |why: &str| Err(why.to_string());
    let asked = |answers: Vec<Result<Reply, String>>| -> String {
        statement(Dialect::Mysql, &mut Scripted(Arc::new(Mutex::new(answers.into())))).unwrap()
    };
    let maria = asked(vec![rows(&[]), no("no such table"), rows(&[])]);
    assert!(maria.contains("information_schema.processlist") && maria.contains("innodb_trx"), "{maria}");
    let mysql = asked(vec![rows(&[]), rows(&[])]);
    assert!(mysql.contains("performance_schema.processlist"), "{mysql}");
    let humble = asked(vec![no("you need the PROCESS privilege"), rows(&[])]);
    assert!(!humble.contains("innodb_trx"), "{humble}");
}

/// Pause between two samples. MariaDB renews `innodb_trx` only if no client has read it for 0.1 s.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Samples this server's sessions until one is in `expected`; returns the last sample.
fn seen_until(target: &Target, expected: &str) -> Vec<Share> {
    let mut waits = Waits::new(target.dialect, connect_to(target));
    let (mut seen, until) = (Vec::new(), Instant::now() + Duration::from_secs(30));
    while !seen.iter().any(|one: &Share| one.name == expected) && Instant::now() < until {
        waits.begin();
        waits.ask();
        std::thread::sleep(BETWEEN_LOOKS);
        waits.end();
        seen = waits.samples().unwrap().shares;
    }
    seen
}

/// A session that does this shows under `expected`, the server's own name for it. The test does not
/// wait for its end.
fn is_seen(target: &Target, does: &'static str, expected: &str) {
    let to = target.clone();
    std::thread::spawn(move || Control::connect(&to).unwrap().query(does).map(|_| ()).map_err(|_| ()));
    let seen = seen_until(target, expected);
    assert!(seen.iter().any(|one| one.name == expected), "{expected}: {seen:?}");
}

#[test]
fn a_sleeping_session_of_postgres_is_seen() {
    let Some(target) = crate::tests::target(Dialect::Postgres) else { return };
    is_seen(&target, "SELECT pg_sleep(60)", "Timeout:PgSleep");
}

#[test]
fn a_sleeping_session_of_mysql_is_seen() {
    let Some(target) = crate::tests::target(Dialect::Mysql) else { return };
    is_seen(&target, "SELECT sleep(60)", "User sleep");
}

/// Waits for a row, for a table and for a user's lock, each held by another session, show as waits.
fn locks_are_seen(target: &Target) {
    let connect = || Control::connect(target).unwrap();
    let mut holder = connect();
    for sql in [
        "DROP TABLE IF EXISTS lab_locks",
        "CREATE TABLE lab_locks (a int PRIMARY KEY, b int) ENGINE = InnoDB",
        "INSERT INTO lab_locks VALUES (1, 1)",
        "SET autocommit = 0",
        "UPDATE lab_locks SET b = 2",
        "DO get_lock('lab', 1)",
    ] {
        holder.execute(sql).unwrap();
    }
    is_seen_while(target, "UPDATE lab_locks SET b = 3", ROW_LOCK);
    is_seen_while(target, "ALTER TABLE lab_locks COMMENT = 'x'", "Waiting for table metadata lock");
    is_seen_while(target, "DO get_lock('lab', 60)", "User lock");
    holder.execute("ROLLBACK").unwrap();
    holder.execute("DO release_lock('lab')").unwrap();
    holder.execute("DROP TABLE lab_locks").unwrap();
}

/// As [`is_seen`], for a session that waits for a lock of the caller's. The caller then ends it.
fn is_seen_while(target: &Target, does: &'static str, expected: &str) {
    let (told, number) = channel();
    let to = target.clone();
    let session = std::thread::spawn(move || {
        let mut control = Control::connect(&to).unwrap();
        told.send(control.value("SELECT connection_id()").unwrap().unwrap()).unwrap();
        // The caller ends it while it waits.
        control.execute(does).unwrap_err();
    });
    let number = number.recv().unwrap();
    let seen = seen_until(target, expected);
    Control::connect(target).unwrap().execute(&format!("KILL {number}")).unwrap();
    session.join().unwrap();
    assert!(seen.iter().any(|one| one.name == expected), "{expected}: {seen:?}");
}

#[test]
fn locks_are_seen_by_mariadbs_states() {
    if let Some(target) = crate::tests::target(Dialect::Mysql) {
        locks_are_seen(&target);
    }
}
