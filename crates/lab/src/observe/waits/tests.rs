//! Sampling against scripted servers, and against real ones where the environment names them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::*;
use crate::client::Reply;

/// Gives the scripted answers in turn, the last for ever.
struct Scripted(Arc<Mutex<VecDeque<Result<Reply, String>>>>);

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

fn scripted(answers: Vec<Result<Reply, String>>) -> Connect {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    Box::new(move || Ok(Box::new(Scripted(Arc::clone(&answers)))))
}

#[test]
fn samples_of_a_round_are_added_up() {
    let answers =
        vec![rows(&[(RUNNING, 3), ("LWLock:WALWrite", 1)]), rows(&[("LWLock:WALWrite", 12)]), rows(&[])];
    let mut waits = Waits::new(Dialect::Postgres, scripted(answers));
    waits.begin();
    std::thread::sleep(3 * INTERVAL);
    waits.end();
    let seen = waits.samples().unwrap();
    assert_eq!(seen[0], Share { name: "LWLock:WALWrite".into(), share: 13.0 / 16.0 });
    assert_eq!(seen[1], Share { name: RUNNING.into(), share: 3.0 / 16.0 });
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_lost_connection_is_said_and_made_anew() {
    let answers = vec![Err("the connection is gone".into()), rows(&[(RUNNING, 1)])];
    let mut waits = Waits::new(Dialect::Postgres, scripted(answers));
    waits.begin();
    std::thread::sleep(Duration::from_millis(50));
    waits.end();
    assert_eq!(waits.samples(), Err("the connection is gone".into()));
    waits.begin();
    waits.end();
    assert_eq!(waits.samples().unwrap()[0].name, RUNNING);
}

#[test]
fn a_server_that_refuses_says_why_each_time() {
    let refusing: Connect = Box::new(|| Err("no such user".into()));
    let mut waits = Waits::new(Dialect::Postgres, refusing);
    for _ in 0..2 {
        waits.begin();
        waits.end();
        assert_eq!(waits.samples(), Err("no such user".into()));
    }
}

#[test]
fn mysql_servers_are_asked_by_what_they_have() {
    let mut maria =
        Scripted(Arc::new(Mutex::new(VecDeque::from([rows(&[]), Err("no table".into()), rows(&[])]))));
    assert!(statement(Dialect::Mysql, &mut maria).unwrap().contains("information_schema.processlist"));
    let mut mysql = Scripted(Arc::new(Mutex::new(VecDeque::from([rows(&[])]))));
    assert!(statement(Dialect::Mysql, &mut mysql).unwrap().contains("performance_schema.processlist"));
    let mut watched = Scripted(Arc::new(Mutex::new(VecDeque::from([rows(&[("YES", 1)])]))));
    assert!(statement(Dialect::Mysql, &mut watched).unwrap().contains("events_waits_current"));
}

/// A session that sleeps in the server is seen as what it is, under the server's own name for it.
fn seen_asleep(dialect: Dialect, sleep: &'static str, expected: &str) {
    let Some(target) = crate::tests::target(dialect) else { return };
    let mut waits = Waits::new(dialect, connect_to(&target));
    let sleeper =
        std::thread::spawn(move || Control::connect(&target).unwrap().query(sleep).map(|_| ()).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    waits.begin();
    std::thread::sleep(Duration::from_millis(600));
    waits.end();
    let seen = waits.samples().unwrap();
    sleeper.join().unwrap();
    assert!(seen.iter().any(|one| one.name == expected), "{seen:?}");
}

#[test]
fn a_sleeping_session_of_postgres_is_seen() {
    seen_asleep(Dialect::Postgres, "SELECT pg_sleep(2)", "Timeout:PgSleep");
}

#[test]
fn a_sleeping_session_of_mysql_is_seen() {
    seen_asleep(Dialect::Mysql, "SELECT sleep(2)", "User sleep");
}

#[test]
fn of_waits_in_one_another_the_innermost_counts() {
    // As the server has them: a thread that waits for a file's write within a handler's work, one whose last wait is over,
    // one that has none, and one whose client has nothing to ask.
    let Some(target) = crate::tests::target(Dialect::Mysql) else { return };
    let mut control = Control::connect(&target).unwrap();
    control
        .execute(
            "CREATE TEMPORARY TABLE lab_threads (thread_id bigint, processlist_command char(9), \
                     processlist_db char(64), processlist_id bigint)",
        )
        .unwrap();
    control
        .execute(
            "CREATE TEMPORARY TABLE lab_waits (thread_id bigint, event_id bigint unsigned, \
                     end_event_id bigint unsigned, event_name char(64))",
        )
        .unwrap();
    control
        .execute(
            "INSERT INTO lab_threads VALUES (1, 'Query', database(), -1), (2, 'Query', database(), -2), \
                     (3, 'Query', database(), -3), (4, 'Sleep', database(), -4)",
        )
        .unwrap();
    control.execute("INSERT INTO lab_waits VALUES (1, 9, NULL, 'wait/io/table/sql/handler'), \
                     (1, 10, NULL, 'wait/io/file/innodb/innodb_log_file'), (2, 7, 8, 'wait/io/file/sql/binlog'), \
                     (4, 1, NULL, 'idle')").unwrap();
    let mut watched = Scripted(Arc::new(Mutex::new(VecDeque::from([rows(&[("YES", 1)])]))));
    let sql = statement(Dialect::Mysql, &mut watched).unwrap();
    let sql = sql.replace("performance_schema.threads", "lab_threads");
    let reply =
        arm::Ask::ask(&mut control, &sql.replace("performance_schema.events_waits_current", "lab_waits"))
            .unwrap();
    let mut seen: Vec<(String, i64)> = (0..reply.rows())
        .map(|row| (reply.text(row, 0).unwrap().into(), reply.int(row, 1).unwrap()))
        .collect();
    seen.sort();
    let expected = [(CLIENT, 1), (RUNNING, 2), ("wait/io/file/innodb/innodb_log_file", 1)];
    assert_eq!(seen, expected.map(|(name, count)| (name.to_string(), count)));
}
