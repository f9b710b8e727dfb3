//! A statement that waited for a row goes on with the row's newest version: what it selects, sets,
//! checks and returns (PostgreSQL's EvalPlanQual).

use super::script::Stage;

/// Row locks, columns, constraints, isolation levels.
const ROWS: &[(&str, &str)] = &[
    (
        "select for update with computed columns",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 10), (2, 20)
a: begin
a: update t set n = n + 1 => count 2
b: select n + 1, n, (select max(t2.n) + t.n from t t2) from t order by id for update => waits
a: commit
b => (12, 11, 31) (22, 21, 41)
",
    ),
    (
        "select for update, limit and order",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 10), (2, 20), (3, 30)
a: begin
a: update t set n = 50 where id = 1 => count 1
b: select id, n, n + 1, (select count(*) from t t2 where t2.n < t.n) from t where n < 40 order
  by n limit 2 for update => waits
a: commit
b => (2, 20, 21, 1) (3, 30, 31, 2)
",
    ),
    (
        "for update of a deleted row",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: delete from t where id = 1 => count 1
b: select * from t where n = (select min(n) from t) for share => waits
a: commit
b => (2, 1)
",
    ),
    (
        "chain of two waits",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1)
s: insert into u values (1, 10), (2, 20), (3, 30)
a: begin
a: update t set n = 2 => count 1
b: begin
b: update t set n = n + 1 returning * => waits
d: update t set n = (select w from u where k = t.n) where (select w from u where k = t.n) < 35
  => waits
a: commit
b => (1, 3)
b: commit
d => count 1
c: select * from t => (1, 30)
",
    ),
    (
        "chain within one transaction, partial columns",
        "
s: create table t (id int primary key, n int, m text, o int default 5)
s: insert into t values (1, 1, 'x', 2)
a: begin
a: update t set n = 2 => count 1
a: update t set m = 'y' => count 1
a: update t set o = default => count 1
b: update t set m = m || n || o || (select count(*) from t t2 where t2.n = t.n) returning * =>
  waits
a: commit
b => (1, 2, y250, 5)
c: select * from t => (1, 2, y250, 5)
",
    ),
    (
        "check constraint on the new version",
        "
s: create table t (id int primary key, n int check (n >= 0))
s: insert into t values (1, 10)
a: begin
a: update t set n = n - 8 => count 1
b: update t set n = n - (select 5) => waits
a: commit
b => error 23514
c: select * from t => (1, 2)
",
    ),
    (
        "repeatable read",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1)
b: begin isolation level repeatable read
b: select count(*) from t => (1)
a: begin
a: update t set n = 2 => count 1
b: update t set n = (select t.n + 1) => waits
a: commit
b => error 40001
b: rollback
c: select * from t => (1, 2)
",
    ),
    (
        "repeatable read, on conflict",
        "
s: create table t (id int primary key, n int)
b: begin isolation level repeatable read
b: select count(*) from t => (0)
a: begin
a: insert into t values (1, 1) => count 1
b: insert into t values (1, 5) on conflict (id) do update set n = t.n + excluded.n => waits
a: commit
b => error 40001
b: rollback
c: select * from t => (1, 1)
",
    ),
    (
        "on conflict do update sees the newest row",
        "
s: create table t (id int primary key, n int, m int)
s: insert into t values (1, 1, 1)
a: begin
a: update t set n = 5, m = 9 => count 1
b: insert into t values (1, 100, 0) on conflict (id) do update set n = t.n + excluded.n where
  t.m = 9 returning * => waits
a: commit
b => (1, 105, 9)
c: select * from t => (1, 105, 9)
",
    ),
    (
        "on conflict, condition fails on the newest row",
        "
s: create table t (id int primary key, n int, m int)
s: insert into t values (1, 1, 1)
a: begin
a: update t set n = 5, m = 9 => count 1
b: insert into t values (1, 100, 0) on conflict (id) do update set n = t.n + excluded.n where
  t.m = 1 returning * => waits
a: commit
b => no rows
c: select * from t => (1, 5, 9)
",
    ),
    (
        "parameters",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1)
b: prepare p(int) as update t set n = n + $1 where n < (select $1 + t.id) returning n, $1
b: execute p(5) => (6, 5)
a: begin
a: update t set n = 2 => count 1
b: execute p(5) => no rows
a: commit
a: begin
a: update t set n = 3 => count 1
b: execute p(7) => waits
a: rollback
b => (9, 7)
c: select * from t => (1, 9)
",
    ),
    (
        "skip locked and nowait",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = 5 where id = 1 => count 1
b: select n + 1 from t order by id for update skip locked => (3)
b: select n + 1 from t order by id for update nowait => error 55P03
a: commit
",
    ),
    (
        "subquery with a lock in from",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 10), (2, 20), (3, 30)
a: begin
a: update t set n = n + 1 => count 2
b: select s.*, u.w from (select id, n, n * 2 m from t where n > 0 for update) s left join u on
  u.k = s.n order by s.id => waits
a: commit
b => (1, 2, 4, 20) (2, 3, 6, 30)
",
    ),
    (
        "update of a row found by an index on the changed column",
        "
s: create table t (id int primary key, n int)
s: create index on t (n)
s: insert into t select i, i from generate_series(1, 2000) i
s: analyze t
a: begin
a: update t set n = 0 where id = 5 => count 1
a: update t set n = n where id = 6 => count 1
b: update t set n = n + 10000 where n between 5 and 6 returning * => waits
a: commit
b => (6, 10006)
",
    ),
    (
        "order by a computed column with a limit",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set n = 100 where id = 3 => count 1
b: select id, n, -n as m, n * 2 as d from t order by m limit 2 for update => waits
a: commit
b => (3, 100, -100, 200) (2, 2, -2, 4)
",
    ),
    (
        "offset",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set n = 100 where id = 1 => count 1
b: select id, n from t where n < 50 order by id limit 1 offset 1 for update => waits
a: commit
b => (3, 3)
",
    ),
    (
        "nullable side locked",
        "
s: create table t (id int primary key, n int)
s: create table u (id int primary key, w int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 1)
a: begin
a: update u set w = 5 => count 1
b: select t.*, u.* from t join u on u.id = t.id and u.w < 3 for update => waits
a: commit
b => no rows
",
    ),
    (
        "lock strength and share",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = n + 10 where id = 1 => count 1
b: select n, (select count(*) from t x where x.n <= t.n) from t where n < 12 order by id for
  key share => (1, 1) (2, 2)
b: select n, (select count(*) from t x where x.n <= t.n) from t where n < 12 order by id for
  share => waits
a: commit
b => (11, 2) (2, 2)
",
    ),
];

#[test]
fn a_lock_and_a_change_take_the_newest_version() {
    Stage::open().play(ROWS);
}
