//! In repeatable read, a new row under the key of one that the snapshot sees and another session
//! has deleted or moved since. PostgreSQL shows both rows. Allcore refuses the new one, whichever
//! statement inserts it.

use std::io::Write;

use super::script::Stage;

const TABLES: &str = "
s: create table t (id int primary key, k int unique, n int); create table source (id int, k int, n int)
s: insert into t values (1, 10, 100), (2, 20, 200), (3, 30, 300)
s: insert into source values (1, 11, 1)
b: begin isolation level repeatable read
b: select count(*) from t => (3)
";

/// Session b sees the rows as they were before OTHER; its WRITE is refused.
const REFUSED: &str = "
a: OTHER
b: savepoint s
b: WRITE => error 40001 | PostgreSQL: count 1
b: rollback to s
b: select * from t where id = 1 => (1, 10, 100)
b: select * from t where k = 10 => (1, 10, 100)
b: WRITE => error 40001 | PostgreSQL: count 1
b: rollback
b: begin isolation level repeatable read
b: WRITE => count 1
b: commit
";

const DELETES: &str = "delete from t where id = 1";
const MOVES: &str = "update t set id = 101, k = 110 where id = 1";

const WAYS: [(&str, &str); 11] = [
    (DELETES, "insert into t values (1, 11, 1)"),
    (DELETES, "insert into t values (4, 10, 1)"),
    (DELETES, "insert into t select * from source"),
    (DELETES, "insert into t values (1, 11, 1) on conflict do nothing"),
    (DELETES, "insert into t values (4, 10, 1) on conflict (k) do nothing"),
    (DELETES, "insert into t values (1, 11, 1) on conflict (id) do update set n = 7"),
    (DELETES, "insert into t values (2, 11, 1) on conflict (id) do update set k = 10"),
    (DELETES, "update t set id = 1 where id = 2"),
    (DELETES, "update t set k = 10 where id = 2"),
    (MOVES, "insert into t values (1, 11, 1)"),
    (MOVES, "update t set k = 10 where id = 2"),
];

#[test]
fn a_new_row_never_hides_one_that_the_snapshot_sees() {
    let scripts = WAYS.map(|(other, write)| {
        (write, format!("{TABLES}{REFUSED}").replace("OTHER", other).replace("WRITE", write))
    });
    Stage::open().play(&scripts.each_ref().map(|(name, text)| (*name, &text[..])));
}

/// The row goes while the insert waits for it; it went and another came and went; the place is
/// taken again.
const WAITED: &str = "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
b: begin isolation level repeatable read
b: select count(*) from t => (3)
a: begin
a: delete from t where id = 1
b: insert into t values (1, 5) => waits
a: commit
b => error 40001 | PostgreSQL: count 1
b: rollback
c: insert into t values (1, 6) => count 1
b: begin isolation level repeatable read
b: select count(*) from t => (3)
a: delete from t where id = 2
a: insert into t values (2, 7)
b: insert into t values (2, 5) => error 23505
b: rollback
b: begin isolation level repeatable read
b: select count(*) from t => (3)
a: delete from t where id = 2
a: insert into t values (2, 8)
a: delete from t where id = 2
b: insert into t values (2, 5) => error 40001 | PostgreSQL: count 1
b: rollback
";

/// Referential actions move rows to keys, NULL among them, that others have left.
const ACTIONS: &str = "
s: create table p (a int, b int, primary key (a, b)); insert into p values (1, 1)
s: create table c (a int, b int unique, foreign key (a, b) references p on update cascade)
s: insert into c values (1, 1), (null, 2)
b: begin isolation level repeatable read
b: select count(*) from c => (2)
a: delete from c where b = 2
b: update p set b = 2 => error 40001 | PostgreSQL: count 1
b: rollback
b: update p set b = 2 => count 1
s: create table q (id int primary key); insert into q values (1), (9)
s: create table d (id int primary key, k int unique default 9 references q on delete set default)
s: insert into d values (1, 1), (2, 9)
b: begin isolation level repeatable read
b: select count(*) from d => (2)
a: delete from d where id = 2
b: delete from q where id = 1 => error 40001 | PostgreSQL: count 1
b: rollback
s: create table e (id int primary key, k int unique nulls not distinct references q on delete set null)
s: insert into e values (1, 1), (2, null)
b: begin isolation level repeatable read
b: select count(*) from e => (2)
a: delete from e where id = 2
b: delete from q where id = 1 => error 40001 | PostgreSQL: count 1
b: rollback
";

/// The snapshot sees no row there that the new one could hide, or this transaction deleted it.
const ACCEPTED: &str = "
s: create table t (id int primary key, k int unique, n int); create index on t (n)
s: insert into t values (1, 10, 100), (2, 20, 200), (3, null, 300), (4, 40, 400)
a: delete from t where id = 1
b: begin isolation level repeatable read
b: select count(*) from t => (3)
b: insert into t values (1, 10, 101) => count 1
a: insert into t values (5, 50, 500)
a: delete from t where id = 5
b: insert into t values (5, 50, 501) => count 1
b: delete from t where id = 2 => count 1
b: insert into t values (2, 20, 201) => count 1
b: update t set id = 6, k = 60 where id = 2 => count 1
b: insert into t values (2, 20, 202) => count 1
a: delete from t where id in (3, 4)
b: insert into t values (7, null, 300) on conflict do nothing => count 1
b: insert into t values (8, 80, 400) => count 1
b: savepoint s
b: delete from t where id = 1 => count 1
b: rollback to s
b: insert into t values (1, 11, 1) => error 23505
b: rollback to s
b: select * from t order by id, n => (1, 10, 101) (2, 20, 202) (3, null, 300) (4, 40, 400) (5, 50, 501)
 (6, 60, 201) (7, null, 300) (8, 80, 400)
b: commit
b: begin
b: select count(*) from t => (6)
a: delete from t where id in (1, 2)
b: insert into t values (1, 20, 7) => count 1
b: insert into t values (2, 10, 7) on conflict (k) do nothing => count 1
b: commit
c: select * from t where n = 7 order by id => (1, 20, 7) (2, 10, 7)
c: begin isolation level repeatable read
c: select count(*) from t => (6)
a: begin
a: delete from t where id = 1
c: insert into t values (1, 12, 1) on conflict do nothing => waits
a: rollback
c => count 0
c: commit
";

/// A move that its savepoint takes back leaves the row's place as it was.
const SAVEPOINTS: &str = "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
b: begin isolation level repeatable read
b: select count(*) from t => (2)
b: savepoint s
b: delete from t where id = 1
b: insert into t values (1, 5)
b: rollback to s
a: delete from t where id = 1 => count 1
b: insert into t values (1, 6) => error 40001 | PostgreSQL: count 1
b: rollback to s
b: update t set id = 1 where id = 2 => error 40001 | PostgreSQL: count 1
b: rollback to s
b: insert into t values (3, 3) => count 1
b: select * from t order by id => (1, 1) (2, 2) (3, 3)
b: commit
c: select * from t order by id => (2, 2) (3, 3)
";

#[test]
fn a_key_that_others_have_left_is_refused_only_while_the_snapshot_sees_its_row() {
    Stage::open().play(&[
        ("waited", WAITED),
        ("referential actions", ACTIONS),
        ("accepted", ACCEPTED),
        ("savepoints", SAVEPOINTS),
    ]);
}

#[test]
fn copy_never_hides_a_row_that_the_snapshot_sees() {
    let stage = Stage::open();
    let (mut copier, mut other) = (stage.connect(), stage.connect());
    let table = format!("copied_{}", std::process::id());
    other
        .batch_execute(&format!("create table {table} (id int primary key); insert into {table} values (1)"))
        .unwrap();
    copier.batch_execute(&format!("begin isolation level repeatable read; table {table}")).unwrap();
    other.batch_execute(&format!("delete from {table}")).unwrap();
    let mut copy = copier.copy_in(&format!("copy {table} from stdin")).unwrap();
    copy.write_all(b"2\n1\n").unwrap();
    let copied = copy.finish();
    match stage.is_allcore() {
        true => assert_eq!(copied.unwrap_err().code().map(|code| code.code()), Some("40001")),
        false => assert_eq!(copied.unwrap(), 2),
    }
    copier.batch_execute("rollback").unwrap();
    other.batch_execute(&format!("drop table {table}")).unwrap();
}
