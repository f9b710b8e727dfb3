//! Rows whose keys another session shifted, swapped or rotated: each row is changed once, whatever
//! row has its key now.

use super::script::Stage;

const SHIFTED: &[(&str, &str)] = &[
    (
        "update after a shift",
        "
s: create table t (a int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set a = 4 where a = 3 => count 1
a: update t set a = 3 where a = 2 => count 1
a: update t set a = 2 where a = 1 => count 1
b: update t set n = n + 10 => waits
a: commit
b => count 3
c: select * from t order by a => (2, 11) (3, 12) (4, 13)
",
    ),
    (
        "update and delete after a swap",
        "
s: create table t (a int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set a = 10 where a = 1 => count 1
a: update t set a = 1 where a = 2 => count 1
a: update t set a = 2 where a = 10 => count 1
b: update t set n = n + 10 => waits
a: commit
b => count 2
c: select * from t order by a => (1, 12) (2, 11)
a: begin
a: update t set a = 10 where a = 1 => count 1
a: update t set a = 1 where a = 2 => count 1
a: update t set a = 2 where a = 10 => count 1
b: delete from t => waits
a: commit
b => count 2
c: select * from t => no rows
",
    ),
    (
        "a list is put into a new order",
        "
s: create table t (list int, pos int, n int, primary key (list, pos))
s: insert into t values (1, 1, 1), (1, 2, 2), (1, 3, 3)
a: begin
a: update t set pos = pos + 100 => count 3
a: update t set pos = pos - 99 => count 3
b: update t set n = n + 10 where list = 1 => waits
a: commit
b => count 3
c: select pos, n from t order by pos => (2, 11) (3, 12) (4, 13)
",
    ),
    (
        "the parents of a cascade are shifted",
        "
s: create table p (a int primary key)
s: create table k (a int references p on delete cascade on update cascade, n int)
s: insert into p values (1), (2), (3)
s: insert into k values (1, 1), (2, 2), (3, 3)
a: begin
a: update p set a = 4 where a = 3 => count 1
a: update p set a = 3 where a = 2 => count 1
a: update p set a = 2 where a = 1 => count 1
b: delete from p => waits
a: commit
b => count 3
c: select * from p => no rows
c: select * from k => no rows
",
    ),
    (
        "a row joined twice is changed once",
        "
s: create table t (a int primary key, n int)
s: create table u (w int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10), (20)
a: begin
a: update t set a = 3 where a = 2 => count 1
a: update t set a = 2 where a = 1 => count 1
b: update t set n = n + 100 from u => waits
a: commit
b => count 2
c: select * from t order by a => (2, 101) (3, 102)
",
    ),
    (
        "a shift after the snapshot of repeatable read",
        "
s: create table t (a int primary key, n int)
s: insert into t values (1, 1), (2, 2)
b: begin isolation level repeatable read
b: select count(*) from t => (2)
a: begin
a: update t set a = 3 where a = 2 => count 1
a: update t set a = 2 where a = 1 => count 1
a: commit
b: update t set n = n + 10 => error 40001
b: rollback
",
    ),
    (
        "select for update after a shift, and the update behind it",
        "
s: create table t (a int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set a = 3 where a = 2 => count 1
a: update t set a = 2 where a = 1 => count 1
b: begin
b: select * from t order by n for update => waits
a: commit
b => (2, 1) (3, 2)
b: update t set n = n + 10 => count 2
b: commit
c: select * from t order by a => (2, 11) (3, 12)
",
    ),
];

#[test]
fn each_row_is_changed_once_where_keys_were_shifted() {
    Stage::open().play(SHIFTED);
}
