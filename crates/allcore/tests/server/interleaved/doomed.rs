//! Repeatable read fails at once at a row that was changed after its snapshot. It does not wait for
//! the row's next writer or locker, and does not skip the row.

use super::script::Stage;

const TABLE: &str = "
s: create table t (id int primary key, v int)
s: insert into t values (1, 1), (2, 2)
";

/// Row 1 changes after the snapshot of `a`. Then NEXT holds it.
const CHANGED: &str = "
a: begin isolation level repeatable read
a: select v from t where id = 2 => (2)
s: CHANGE
b: begin
b: NEXT
a: STATEMENT => error 40001
a: rollback
b: rollback
";

const CHANGES: [&str; 2] = ["update t set v = 5 where id = 1", "update t set v = 5"];
const NEXTS: [&str; 4] = [
    "update t set v = 6 where id = 1",
    "delete from t where id = 1",
    "select v from t where id = 1 for update => (5)",
    "select v from t where id = 1 for key share => (5)",
];
const STATEMENTS: [&str; 7] = [
    "select v from t where id = 1 for update skip locked",
    "select v from t where id = 1 for update nowait",
    "select v from t where id = 1 for update",
    "select v from t where id = 1 for no key update skip locked",
    "select v from t where id = 1 for share",
    "update t set v = 7 where id = 1",
    "delete from t where id = 1",
];

#[test]
fn a_row_changed_after_the_snapshot_is_not_waited_for() {
    let mut scripts = Vec::new();
    for (change, next) in CHANGES.iter().flat_map(|change| NEXTS.map(|next| (change, next))) {
        for statement in STATEMENTS {
            let text = CHANGED.replace("CHANGE", change).replace("NEXT", next);
            scripts.push((statement, format!("{TABLE}{}", text.replace("STATEMENT", statement))));
        }
    }
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, &text[..])).collect();
    Stage::open().play(&scripts);
}

const NEIGHBOURS: [(&str, &str); 4] = [
    (
        "a row as the snapshot has it is waited for and skipped",
        "
a: begin isolation level repeatable read
a: select v from t where id = 2 => (2)
b: begin
b: update t set v = 6 where id = 1
a: select id from t order by id for update skip locked => (2)
a: savepoint s
a: select id from t where id = 1 for update nowait => error 55P03
a: rollback to s
a: select id, v from t where id = 1 for update => waits
b: rollback
a => (1, 1)
a: rollback
",
    ),
    (
        "a key that stays may be shared",
        "
a: begin isolation level repeatable read
a: select v from t where id = 2 => (2)
s: update t set v = 5 where id = 1
b: begin
b: update t set v = 6 where id = 1
a: select id from t where id = 1 for key share => (1)
a: rollback
b: rollback
",
    ),
    (
        "a change of the session's own is not later than its snapshot",
        "
a: begin isolation level repeatable read
a: update t set v = 4 where id = 1
b: begin
b: update t set v = 6 where id = 1 => waits
a: select v from t where id = 1 for update nowait => (4)
a: commit
b => count 1
b: rollback
",
    ),
    (
        "a row that is gone",
        "
a: begin isolation level repeatable read
a: select v from t where id = 2 => (2)
s: delete from t where id = 1
b: begin
b: insert into t values (1, 8)
a: select v from t where id = 1 for update skip locked => error 40001
a: rollback
b: rollback
",
    ),
];

#[test]
fn neighbours_of_a_changed_row_wait_as_ever() {
    let scripts: Vec<_> = NEIGHBOURS.iter().map(|(name, text)| (*name, format!("{TABLE}{text}"))).collect();
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (*name, &text[..])).collect();
    Stage::open().play(&scripts);
}
