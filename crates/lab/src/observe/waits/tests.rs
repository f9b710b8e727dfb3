//! Sampling against scripted servers, and against real ones.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use super::*;
use crate::report::samples::shares;
use crate::tests::wait_until;

type Answer = Result<Vec<Row>, String>;

/// The answers that are left; the last one is given for ever.
type Answers = Arc<Mutex<VecDeque<Answer>>>;

fn rows(rows: &[(&str, u64)]) -> Answer {
    Ok(rows.iter().map(|(name, count)| vec![Some((*name).into()), Some(count.to_string())]).collect())
}

fn giving(answers: &Answers) -> Ask {
    let answers = Arc::clone(answers);
    Box::new(move |_| {
        let mut answers = answers.lock().unwrap();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
    })
}

/// A PostgreSQL server that gives these answers; the second value holds the remaining ones.
fn scripted<const N: usize>(answers: [Answer; N]) -> (Connect, Answers) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let left = Arc::clone(&answers);
    (Arc::new(move || Ok(giving(&answers))), left)
}

/// The samples of a round that asks until one answer remains.
fn round(connect: &Connect, left: &Answers) -> Samples {
    let mut waits = Waits::begin(Dialect::Postgres, connect, None);
    wait_until(|| left.lock().unwrap().len() == 1);
    waits.end();
    waits.samples()
}

#[test]
fn samples_of_a_round_are_added_up() {
    let first = rows(&[(RUNNING, 3), ("LWLock:WALWrite", 1)]);
    let (connect, left) = scripted([first, rows(&[("LWLock:WALWrite", 12)]), rows(&[])]);
    let shares = shares(&[("LWLock:WALWrite", 13.0 / 16.0), (RUNNING, 3.0 / 16.0)]);
    let seen = round(&connect, &left);
    assert_eq!(seen, Ok(Profile { samples: 2, shares }), "samples in which there were sessions");
}

#[test]
fn waits_are_asked_for_only_after_perf_has_sampled() {
    let (connect, left) = scripted([rows(&[(RUNNING, 3)]), rows(&[])]);
    let folder = tempfile::tempdir().unwrap();
    let begin = || Waits::begin(Dialect::Postgres, &connect, Some(folder.path().join("sampled")));
    let mut early = begin();
    // Long enough for a question, if there were one.
    std::thread::sleep(2 * INTERVAL);
    early.end();
    assert_eq!(early.samples(), Err(NOT_ASKED.into()));
    let mut waits = begin();
    assert_eq!(left.lock().unwrap().len(), 2);
    std::fs::write(folder.path().join("sampled"), "").unwrap();
    wait_until(|| left.lock().unwrap().len() == 1);
    waits.end();
    assert_eq!(waits.samples().unwrap().samples, 1);
}

#[test]
fn a_lost_or_refused_connection_is_reported_and_replaced() {
    let (connect, left) = scripted([Err("the connection is gone".into()), rows(&[(RUNNING, 1)])]);
    assert_eq!(round(&connect, &left), Err("the connection is gone".into()));
    assert_eq!(round(&connect, &left).unwrap().shares[0].name, RUNNING);
    let refusing: Connect = Arc::new(|| Err("no such user".into()));
    assert_eq!(round(&refusing, &left), Err("no such user".into()));
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
    let mut waits = Waits::begin(target.dialect, &connect_to(target), None);
    asking("1");
    waits.end();
    waits.samples().unwrap();
    asking("0");
}

#[test]
fn row_locks_of_mysql_are_told_apart_where_the_user_may_see_them() {
    for (answer, may) in [(rows(&[]), true), (Err("you need the PROCESS privilege".into()), false)] {
        let sql = statement(Dialect::Mysql, &mut giving(&Arc::new(Mutex::new([answer].into()))));
        assert!(sql.contains("information_schema.processlist") && sql.contains("innodb_trx") == may, "{sql}");
    }
}

/// Pause between two samples. MariaDB renews `innodb_trx` only if no client has read it for 0.1 s.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A session that does this shows under `expected`, the server's own name for it. Then it is ended.
fn is_seen(target: &Target, does: &'static str, expected: &str) {
    let (own, kill) = match target.dialect {
        Dialect::Postgres => ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend(NUMBER)"),
        Dialect::Mysql => ("SELECT connection_id()", "KILL NUMBER"),
    };
    let (told, number) = channel();
    let to = target.clone();
    let session = std::thread::spawn(move || {
        let mut control = Control::connect(&to).unwrap();
        told.send(control.value(own).unwrap().unwrap()).unwrap();
        // The caller ends it while it waits.
        control.execute(does).unwrap_err();
    });
    let number = number.recv().unwrap();
    let (mut seen, until) = (Vec::new(), Instant::now() + Duration::from_secs(30));
    while !seen.iter().any(|one: &Share| one.name == expected) && Instant::now() < until {
        let mut waits = Waits::begin(target.dialect, &connect_to(target), None);
        std::thread::sleep(BETWEEN_LOOKS);
        waits.end();
        seen = waits.samples().unwrap().shares;
    }
    Control::connect(target).unwrap().execute(&kill.replace("NUMBER", &number)).unwrap();
    session.join().unwrap();
    assert!(seen.iter().any(|one| one.name == expected), "{expected}: {seen:?}");
}

#[test]
fn a_sleeping_session_of_postgres_is_seen() {
    let Some(target) = crate::tests::target(Dialect::Postgres) else { return };
    is_seen(&target, "SELECT pg_sleep(60)", "Timeout:PgSleep");
}

/// A sleep, and waits for a row, for a table and for a user's lock that another session holds.
#[test]
fn sessions_of_mariadb_are_seen_by_their_states() {
    let Some(target) = crate::tests::target(Dialect::Mysql) else { return };
    is_seen(&target, "DO sleep(60)", "User sleep");
    let mut holder = Control::connect(&target).unwrap();
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
    is_seen(&target, "UPDATE lab_locks SET b = 3", ROW_LOCK);
    is_seen(&target, "ALTER TABLE lab_locks COMMENT = 'x'", "Waiting for table metadata lock");
    is_seen(&target, "DO get_lock('lab', 60)", "User lock");
    for sql in ["ROLLBACK", "DO release_lock('lab')", "DROP TABLE lab_locks"] {
        holder.execute(sql).unwrap();
    }
}
