//! Unique keys other than the primary one. A change of such a key holds off FOR KEY SHARE, and a
//! statement waits for a conflicting row.

use super::script::Stage;

const TABLES: &str = "
s: create table p (a int primary key, u int, x int, y int)
s: create table c (id int primary key, a int references p)
s: INDEX
s: insert into p values (1, 10, 100, 1000), (2, 20, 200, 2000)
";

/// The row's key is shared when CHANGE or OTHER comes, and the other way round.
const EXCLUDED: &str = "
a: begin
a: select a from p where a = 1 for key share => (1)
b: begin
b: CHANGE => waits
a: commit
b => count 1
b: rollback
a: begin
a: insert into c values (1, 2)
b: begin
b: OTHER => waits
a: rollback
b => count 1
b: rollback
a: begin
a: CHANGE => count 1
b: select a from p where a = 1 for key share => waits
d: select a from p where a = 1 for key share nowait => error 55P03
d: select a from p where a = 1 for key share skip locked => no rows
a: rollback
b => (1)
a: begin
a: OTHER => count 1
a: savepoint s
a: update p set y = 5 where a = 2
b: insert into c values (3, 2) => waits
a: rollback to s
a: commit
b => count 1
";

/// Neither waits for the other.
const PASSED: &str = "
a: begin
a: select a from p where a = 1 for key share => (1)
b: CHANGE => count 1
a: commit
a: begin
a: CHANGE => count 1
b: select a from p where a = 1 for key share => (1)
b: insert into c values (1, 1) => count 1
a: commit
";

const EXCLUDE: [(&str, &str, &str); 5] = [
    ("alter table p add unique (u)", "update p set u = 50 where a = 1", "update p set u = 60 where a = 2"),
    (
        "create unique index on p (u desc)",
        "update p set u = null where a = 1",
        "update p set u = 60 where a = 2",
    ),
    (
        "create unique index on p (x, u)",
        "update p set u = 51 where a = 1",
        "update p set u = 60, x = 1 where a = 2",
    ),
    (
        "create unique index on p (u) nulls not distinct",
        "insert into p values (1) on conflict (a) do update set u = 52",
        "update p set u = 61 where a = 2; update p set u = 20 where a = 2",
    ),
    (
        "alter table p add unique (u), add unique (x)",
        "update p set x = 53 where a = 1",
        "update p set u = 62, x = 63 where a = 2",
    ),
];

const PASS: [(&str, &str); 4] = [
    ("alter table p add unique (u)", "update p set u = u, x = 50, y = 50 where a = 1"),
    ("create index on p (u)", "update p set u = 50 where a = 1"),
    ("create unique index on p (x)", "update p set u = 50 where a = 1"),
    ("create unique index on p (u)", "insert into p values (1) on conflict (a) do update set x = 5"),
];

#[test]
fn a_change_of_a_unique_key_excludes_key_share() {
    let text = |index: &str, change: &str, other: &str, text: &str| {
        format!("{TABLES}{text}").replace("INDEX", index).replace("CHANGE", change).replace("OTHER", other)
    };
    let excluded = EXCLUDE.map(|(index, change, other)| (change, text(index, change, other, EXCLUDED)));
    let passed = PASS.map(|(index, change)| (change, text(index, change, "", PASSED)));
    let scripts: Vec<_> = excluded.iter().chain(&passed).map(|(name, text)| (*name, &text[..])).collect();
    Stage::open().play(&scripts);
}

/// A transaction that shares the key changes the row while the other one waits to change a key: no
/// circle of waits.
const UPGRADE: &str = "
s: create table p (a int primary key, u int unique, x int); create table c (id int primary key, a int references p)
s: insert into p values (1, 1, 1)
a: begin
a: insert into c values (1, 1)
b: update p set u = 2 where a = 1 => waits
a: update p set x = x + 1 where a = 1 => count 1
a: commit
b => count 1
s: select * from p => (1, 2, 2)
a: begin
a: update p set x = 3 where a = 1
b: begin
b: insert into c values (2, 1)
a: update p set u = 3 where a = 1 => waits
b: commit
a => count 1
a: commit
";

/// In repeatable read a key that was changed, or changed and changed back, is refused, and other
/// columns are not.
const REPEATABLE: &str = "
s: create table p (a int primary key, u int unique, x int); create table c (id int primary key, a int references p)
s: insert into p values (1, 1, 1), (2, 2, 2), (3, 3, 3)
b: begin isolation level repeatable read
b: select count(*) from c => (0)
a: update p set u = 10 where a = 1; update p set u = 1 where a = 1
a: update p set x = 10 where a = 2; update p set x = 20 where a = 2
a: update p set u = 30 where a = 3
b: insert into c values (2, 2) => count 1
b: select * from p where a = 2 for key share => (2, 2, 2)
b: savepoint s
b: insert into c values (1, 1) => error 40001
b: rollback to s
b: insert into c values (3, 3) => error 40001
b: rollback to s
b: select * from p where a = 1 for key share => error 40001
b: rollback
";

/// The writer deletes the row, or changes its keys again, while a child waits for it to end.
const WRITER_GOES_ON: &str = "
s: create table p (a int primary key, u int unique, x int); create table c (id int primary key, a int references p)
s: insert into p values (1, 1, 1)
a: begin
a: update p set u = 2 where a = 1
b: insert into c values (1, 1) => waits
a: update p set u = 3 where a = 1
a: delete from p where a = 1
a: insert into p values (1, 4, 4)
a: delete from p where a = 1
a: rollback
b => count 1
";

/// A row whose key is in the way is being changed elsewhere, or deleted: the answer waits for that.
const IN_THE_WAY: &str = "
s: create table p (a int primary key, u int unique, x int)
s: insert into p values (1, 1, 1), (2, 2, 2)
a: begin
a: update p set x = 2 where a = 1
b: insert into p values (3, 1, 1) => waits
a: rollback
b => error 23505
a: begin
a: update p set x = 2 where a = 1
b: update p set u = 1 where a = 2 => waits
a: delete from p where a = 1
a: commit
b => count 1
b: begin isolation level repeatable read
b: select count(*) from p => (1)
a: begin
a: update p set x = 5
b: insert into p values (4, 1, 4) => waits
a: commit
b => error 23505
b: rollback
b: begin isolation level repeatable read
b: select count(*) from p => (1)
a: begin
a: update p set x = 5
b: insert into p values (4, 1, 4) => waits
a: delete from p
a: commit
b => error 40001 | PostgreSQL: count 1
b: rollback
";

#[test]
fn those_who_share_a_key_wait_for_its_change() {
    Stage::open().play(&[
        ("upgrade", UPGRADE),
        ("repeatable read", REPEATABLE),
        ("the writer goes on", WRITER_GOES_ON),
        ("in the way", IN_THE_WAY),
    ]);
}
