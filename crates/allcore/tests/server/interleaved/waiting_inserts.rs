//! An insert at a key that a running transaction has written waits for that transaction's end. It
//! does not wait for sessions that want to lock the row there.

use super::script::Stage;

const TABLE: &str = "
s: create table t (id int primary key, v int)
s: insert into t values (1, 1), (2, 2)
";

/// Session `a` writes row 1 and ends its transaction. LOCKER came before the INSERT, and stays.
const BEHIND_A_LOCKER: &str = "
a: begin
a: WRITE
b: begin
b: LOCKER
c: INSERT => waits
a: commit
c => OUTCOME
b: rollback
";

/// Each insert that meets the row at last, however it waits.
const INSERTS: [&str; 4] = [
    "insert into t values (1, 5)",
    "update t set id = 1 where id = 2",
    "insert into t select id, 5 from generate_series(1, 2) id",
    "insert into t values (3, 5), (1, 5)",
];

#[test]
fn an_insert_passes_those_that_wait_for_the_row() {
    let script = |write: &str, locker: &str, insert: &str, outcome: &str| {
        format!("{TABLE}{BEHIND_A_LOCKER}")
            .replace("WRITE", write)
            .replace("LOCKER", locker)
            .replace("INSERT", insert)
            .replace("OUTCOME", outcome)
    };
    let update = "update t set v = 9 where id = 1";
    let mut scripts: Vec<_> = INSERTS
        .iter()
        .map(|insert| {
            let locker = "select v from t where id = 1 for key share => (1)";
            (*insert, script(update, locker, insert, "error 23505"))
        })
        .collect();
    for strength in ["update", "no key update", "share"] {
        let text = format!(
            "{TABLE}
a: begin
a: WRITE
b: begin
b: select id, v from t where id = 1 for {strength} => waits
c: insert into t values (1, 5) => waits
d: insert into t values (1, 6) on conflict do nothing => waits
a: rollback
b => (1, 1)
c => error 23505
d => count 0
b: rollback
"
        );
        let writes = [update, "delete from t where id = 1", "update t set id = 3 where id = 1"];
        scripts.extend(writes.map(|write| (write, text.replace("WRITE", write))));
    }
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, &text[..])).collect();
    Stage::open().play(&scripts);
}

const ORDERS: [(&str, &str); 6] = [
    (
        "no circle through a lock that an insert does not want",
        "
a: begin
a: update t set v = 9 where id = 1
b: begin
b: select id from t where id <= 2 order by id for update => waits
c: begin
c: update t set id = 1 where id = 2 => waits
a: rollback
c => error 23505
c: rollback
b => (1) (2)
b: rollback
",
    ),
    (
        "the row goes while others wait for it",
        "
a: begin
a: delete from t where id = 1
b: begin
b: update t set v = 7 where id = 1 => waits
c: insert into t values (1, 5) => waits
a: commit
b => count 0
c => count 1
s: select v from t where id = 1 => (5)
b: rollback
",
    ),
    (
        "an insert by the one that deleted it",
        "
a: begin
a: delete from t where id = 1
b: select v from t where id = 1 for update => waits
c: insert into t values (1, 5) => waits
a: insert into t values (1, 6)
a: commit
b => no rows
c => error 23505
s: select v from t where id = 1 => (6)
",
    ),
    (
        "inserts at a new key, the first of which goes back to a savepoint",
        "
a: begin
a: savepoint s
a: insert into t values (3, 1)
b: begin
b: insert into t values (3, 2) => waits
a: rollback to s
b => count 1
c: insert into t values (3, 3) => waits
a: commit
b: rollback
c => count 1
s: select v from t where id = 3 => (3)
",
    ),
    (
        "a failed transaction holds nothing",
        "
a: begin
a: update t set v = 9 where id = 1
a: insert into t values (2, 5) => error 23505
b: update t set v = 3 where id = 1 => count 1
a: rollback
",
    ),
    (
        "an insert that gave up is in nobody's way",
        "
a: begin
a: update t set v = 9 where id = 1
b: set lock_timeout = '50ms'
b: insert into t values (1, 5) => error 55P03
c: select id from t where id = 1 for update => waits
a: rollback
c => (1)
",
    ),
];

#[test]
fn rows_and_keys_go_to_whom_they_would_without_the_insert() {
    let scripts: Vec<_> = ORDERS.iter().map(|(name, text)| (*name, format!("{TABLE}{text}"))).collect();
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, &text[..])).collect();
    Stage::open().play(&scripts);
}
