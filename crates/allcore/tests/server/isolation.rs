//! Isolation between real concurrent sessions: forbidden effects do not show, and effects that
//! PostgreSQL allows do.

use crate::common::{Server, pid};
use postgres::error::SqlState;

fn fixture() -> Server {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key, v int not null); insert into t values (1, 10), (2, 20)");
    server
}

fn value(client: &mut postgres::Client, id: i32) -> i32 {
    client.query_one("select v from t where id = $1", &[&id]).unwrap().get(0)
}

fn sum(client: &mut impl postgres::GenericClient) -> i64 {
    client.query_one("select sum(v) from t", &[]).unwrap().get(0)
}

#[test]
fn a_reader_sees_no_uncommitted_change() {
    let server = fixture();
    let (mut writer, mut reader) = (server.connect(), server.connect());
    writer.batch_execute("begin; update t set v = 11 where id = 1; insert into t values (3, 30)").unwrap();
    assert_eq!(value(&mut reader, 1), 10);
    assert_eq!(sum(&mut reader), 30);
    writer.batch_execute("rollback").unwrap();
    assert_eq!(sum(&mut reader), 30);
}

#[test]
fn read_committed_sees_each_commit_and_rechecks_a_changed_row() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.batch_execute("begin").unwrap();
    assert_eq!(value(&mut one, 1), 10);
    two.batch_execute("update t set v = 11 where id = 1").unwrap();
    assert_eq!(value(&mut one, 1), 11);
    // A lost update cannot happen: the second writer waits and adds to what the first one left.
    one.batch_execute("update t set v = v + 100 where id = 1").unwrap();
    let number = pid(&mut two);
    let waiter = std::thread::spawn(move || {
        two.execute("update t set v = v + 1000 where id = 1 and v < 500", &[]).unwrap()
    });
    server.wait_standing(number);
    assert!(!waiter.is_finished(), "the second writer must wait");
    one.batch_execute("commit").unwrap();
    assert_eq!(waiter.join().unwrap(), 1);
    assert_eq!(value(&mut one, 1), 1111);
    // A row that no longer qualifies after the wait is left alone.
    let mut two = server.connect();
    one.batch_execute("begin; update t set v = 0 where id = 2").unwrap();
    let number = pid(&mut two);
    let waiter = std::thread::spawn(move || two.execute("update t set v = 7 where v = 20", &[]).unwrap());
    server.wait_standing(number);
    assert!(!waiter.is_finished(), "the second writer must wait");
    one.batch_execute("commit").unwrap();
    assert_eq!(waiter.join().unwrap(), 0);
    assert_eq!(value(&mut one, 2), 0);
}

/// After a wait, the condition of the path that led to a row is checked again on the row's newest
/// version.
#[test]
fn a_row_found_by_null_in_an_index_is_rechecked() {
    let server = Server::start(&[]);
    server
        .psql("create table t (id int primary key, v int, w int, n int default 0); create index on t (v, w)");
    let mut one = server.connect();
    for (change, statement, expected) in [
        ("v = 5", "update t set n = n + 1 where v is null", "1:5:1:0 3::3:1"),
        ("v = 5", "delete from t where v is null", "1:5:1:0"),
        (
            "v = 5",
            "with l as (select id from t where v is null for update) select * from l",
            "1:5:1:0 3::3:0",
        ),
        ("w = 9", "update t set n = n + 1 where v is null and w = 1", "1::9:0 3::3:0"),
        ("w = 9", "update t set n = n + 1 where v is null and w > 0", "1::9:1 3::3:1"),
        ("w = -9", "update t set n = n + 1 where v is null and w > 0", "1::-9:0 3::3:1"),
    ] {
        // Enough rows that the plan uses the index.
        one.batch_execute(
            "truncate t; insert into t select i, i, i from generate_series(100, 3000) i; analyze t;
             insert into t values (1, null, 1), (3, null, 3)",
        )
        .unwrap();
        one.batch_execute(&format!("begin; update t set {change} where id = 1")).unwrap();
        let mut two = server.connect();
        let explained = two.query(&format!("explain {statement}"), &[]).unwrap();
        let explained: Vec<String> = explained.iter().map(|row| row.get(0)).collect();
        assert!(explained.iter().any(|line| line.contains("t_v_w_idx")), "{statement}: {explained:?}");
        let (text, number) = (statement.to_owned(), pid(&mut two));
        let waiter = std::thread::spawn(move || two.batch_execute(&text).unwrap());
        server.wait_standing(number);
        assert!(!waiter.is_finished(), "{statement} must wait");
        one.batch_execute("commit").unwrap();
        waiter.join().unwrap();
        let show =
            "select string_agg(concat(id, ':', v, ':', w, ':', n), ' ' order by id) from t where id < 100";
        assert_eq!(one.query_one(show, &[]).unwrap().get::<_, String>(0), expected, "{statement}");
    }
}

#[test]
fn repeatable_read_keeps_its_snapshot() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.batch_execute("begin isolation level repeatable read").unwrap();
    assert_eq!(value(&mut one, 1), 10);
    // Read skew and phantoms: neither the other half of a change nor a new row shows.
    two.batch_execute(
        "begin; update t set v = v + 5 where id = 1; update t set v = v - 5 where id = 2; commit",
    )
    .unwrap();
    two.batch_execute("insert into t values (3, 30)").unwrap();
    two.batch_execute("delete from t where id = 2").unwrap();
    assert_eq!((value(&mut one, 1), value(&mut one, 2), sum(&mut one)), (10, 20, 30));
    // A lost update is refused.
    let fault = one.batch_execute("update t set v = v + 1 where id = 1").unwrap_err();
    assert_eq!(fault.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    one.batch_execute("rollback").unwrap();
    assert_eq!(sum(&mut one), 45);
}

#[test]
fn snapshot_isolation_allows_write_skew() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    for client in [&mut one, &mut two] {
        client.batch_execute("begin isolation level repeatable read").unwrap();
        assert_eq!(sum(client), 30);
    }
    one.batch_execute("update t set v = 0 where id = 1").unwrap();
    two.batch_execute("update t set v = 0 where id = 2").unwrap();
    one.batch_execute("commit").unwrap();
    two.batch_execute("commit").unwrap();
    assert_eq!(sum(&mut one), 0);
}

#[test]
fn a_deadlock_has_one_victim() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.batch_execute("begin; update t set v = v + 1 where id = 1").unwrap();
    two.batch_execute("begin; update t set v = v + 1 where id = 2").unwrap();
    let number = pid(&mut two);
    let other = std::thread::spawn(move || {
        let outcome = two.batch_execute("update t set v = v + 1 where id = 1");
        let _ = two.batch_execute("commit");
        outcome
    });
    server.wait_standing(number);
    let mine = one.batch_execute("update t set v = v + 1 where id = 2");
    let _ = one.batch_execute("commit");
    let outcomes = [mine, other.join().unwrap()];
    let victims: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    assert_eq!(victims.len(), 1, "{outcomes:?}");
    assert_eq!(victims[0].code(), Some(&SqlState::T_R_DEADLOCK_DETECTED));
}

#[test]
fn locked_rows_wait_fail_or_are_skipped() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.batch_execute("begin; select * from t where id = 1 for update").unwrap();
    let fault = two.query("select * from t where id = 1 for update nowait", &[]).unwrap_err();
    assert_eq!(fault.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
    let rows = two.query("select id from t order by id for update skip locked", &[]).unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [2]);
    two.batch_execute("set lock_timeout = '100ms'").unwrap();
    let fault = two.query("select * from t where id = 1 for share", &[]).unwrap_err();
    assert_eq!(fault.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
    two.batch_execute("reset lock_timeout; set statement_timeout = '100ms'").unwrap();
    let fault = two.query("select * from t where id = 1 for update", &[]).unwrap_err();
    assert_eq!(fault.code(), Some(&SqlState::QUERY_CANCELED));
    assert_eq!(value(&mut two, 1), 10, "readers do not wait for locks");
    one.batch_execute("commit").unwrap();
    assert_eq!(two.query("select * from t where id = 1 for update", &[]).unwrap().len(), 1);
}

#[test]
fn a_waiting_statement_can_be_cancelled() {
    let server = fixture();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.batch_execute("begin; update t set v = 1 where id = 1").unwrap();
    let (token, number) = (two.cancel_token(), pid(&mut two));
    let waiter = std::thread::spawn(move || {
        let outcome = two.batch_execute("update t set v = 2 where id = 1");
        (outcome, two)
    });
    server.wait_active(number);
    token.cancel_query(postgres::NoTls).unwrap();
    let (outcome, mut two) = waiter.join().unwrap();
    assert_eq!(outcome.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
    one.batch_execute("commit").unwrap();
    assert_eq!(value(&mut two, 1), 1);
}
