//! A statement that waited for a row goes on with the row's newest version (PostgreSQL's
//! EvalPlanQual). It evaluates its subqueries again over that version, under the statement's
//! snapshot.

use super::script::Stage;

/// Subqueries in WHERE, SET and RETURNING.
const SUBQUERIES: &[(&str, &str)] = &[
    (
        "lost update through a scalar subquery",
        "
s: create table ta (id int primary key, n int)
s: insert into ta values (1, 10), (2, 1)
a: begin
a: update ta set n = n + 100 where id = 1 => count 1
b: update ta set n = (select t2.n + ta.n from ta t2 where t2.id = 2) where id = 1 => waits
a: commit
b => count 1
c: select * from ta order by id => (1, 111) (2, 1)
",
    ),
    (
        "coalesce of a subquery after a concurrent null",
        "
s: create table t (id int primary key, v text)
s: insert into t values (1, 'old')
a: begin
a: update t set v = null where id = 1 => count 1
b: update t set v = coalesce(v, (select 'new')) where id = 1 => waits
a: commit
b => count 1
c: select * from t => (1, new)
",
    ),
    (
        "a subquery in the operand of one that is wanted now",
        "
s: create table t (id int primary key, n int, m int)
s: create table u (id int primary key, n int)
s: insert into t values (1, 0, 0), (2, 0, 0)
s: insert into u values (5, 1), (6, 0)
a: begin
a: update t set n = 1 where id = 1 => count 1
a: update t set n = 0 where id = 2 => count 1
b: update t set m = case when n > 0 then case when (select u.n from u where u.id = t.n + 4) in
  (select x.n from u x) then 100 else 200 end else 300 end => waits
a: commit
b => count 2
c: select id, m from t order by id => (1, 100) (2, 300)
",
    ),
    (
        "correlated subquery in where",
        "
s: create table t (id int primary key, n int)
s: create table u (k int primary key, lim int)
s: insert into t values (1, 5), (2, 5)
s: insert into u values (5, 5), (6, 0), (7, 100)
a: begin
a: update t set n = n + id where true => count 2
b: update t set n = n + 1000 where n <= (select lim from u where k = t.n) => waits
a: commit
b => count 1
c: select * from t order by id => (1, 6) (2, 1007)
",
    ),
    (
        "uncorrelated subquery keeps the statement's snapshot",
        "
s: create table t (id int primary key, n int)
s: create table u (k int primary key, lim int)
s: insert into t values (1, 5)
s: insert into u values (1, 5)
a: begin
a: update t set n = 6 => count 1
a: update u set lim = 50 => count 1
b: update t set n = n + 1000 where n < (select max(lim) + 2 from u) returning n, (select lim
  from u) => waits
a: commit
b => (1006, 5)
c: select * from t order by id => (1, 1006)
",
    ),
    (
        "exists over the changed column",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 1), (3, 2)
s: insert into u values (1), (2)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 9 where id = 2 => count 1
a: update t set n = 1 where id = 3 => count 1
b: update t set n = n + 100 where exists (select from u where k = t.n) => waits
a: commit
b => count 0
c: select * from t order by id => (1, 2) (2, 9) (3, 1)
",
    ),
    (
        "exists that reads another column",
        "
s: create table t (id int primary key, n int, g int)
s: create table u (k int, w int)
s: insert into t values (1, 1, 1), (2, 1, 2), (3, 1, 3)
s: insert into u values (1, 10), (2, 30)
a: begin
a: update t set g = 5 where id = 1 => count 1
a: update t set g = 25 where id = 2 => count 1
b: update t set n = n + 100 where exists (select from u where k = t.n and w > t.g) => waits
a: commit
b => count 2
c: select * from t order by id => (1, 101, 5) (2, 1, 25) (3, 101, 3)
",
    ),
    (
        "not exists over the changed column",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 7), (2, 8), (3, 9)
s: insert into u values (1), (2)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 10 where id = 2 => count 1
b: update t set n = n + 100 where not exists (select from u where k = t.n) => waits
a: commit
b => count 3
c: select * from t order by id => (1, 102) (2, 110) (3, 109)
",
    ),
    (
        "in over the changed column",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 1), (3, 2)
s: insert into u values (1), (2)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 9 where id = 2 => count 1
a: update t set n = n + 0 where id = 3 => count 1
b: update t set n = n + 100 where n in (select k from u) => waits
a: commit
b => count 1
c: select * from t order by id => (1, 2) (2, 9) (3, 102)
",
    ),
    (
        "not in over the changed column",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 7), (2, 8), (3, 9)
s: insert into u values (1), (2)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 10 where id = 2 => count 1
b: update t set n = n + 100 where n not in (select k from u) => waits
a: commit
b => count 2
c: select * from t order by id => (1, 2) (2, 110) (3, 109)
",
    ),
    (
        "correlated in",
        "
s: create table t (id int primary key, n int, g int)
s: create table u (k int, w int)
s: insert into t values (1, 1, 1), (2, 1, 2), (3, 1, 3)
s: insert into u values (1, 1), (1, 2), (2, 3), (2, 1)
a: begin
a: update t set n = 2 => count 3
b: update t set n = n + 100 where n in (select k from u where w = t.g) => waits
a: commit
b => count 0
c: select * from t order by id => (1, 2, 1) (2, 2, 2) (3, 2, 3)
",
    ),
    (
        "any with another operator",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 1), (3, 2)
s: insert into u values (1), (3)
a: begin
a: update t set n = n + 1 => count 3
b: update t set n = n + 100 where n < any (select k from u) => waits
a: commit
b => count 2
c: select * from t order by id => (1, 102) (2, 102) (3, 3)
",
    ),
    (
        "all",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 5), (3, 7)
s: insert into u values (2), (4)
a: begin
a: update t set n = n - 2 => count 3
b: update t set n = n + 100 where n > all (select k from u) => waits
a: commit
b => count 1
c: select * from t order by id => (1, -1) (2, 3) (3, 105)
",
    ),
    (
        "exists or else",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 5), (3, 7)
s: insert into u values (2), (4)
a: begin
a: update t set n = n + 1 => count 3
b: update t set n = n + 100 where exists (select from u where k = t.n) or n = 5 => waits
a: commit
b => count 0
c: select * from t order by id => (1, 2) (2, 6) (3, 8)
",
    ),
    (
        "common table expression",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1), (2, 1)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update u set w = w + 1 => count 2
b: with x as materialized (select k, w from u) update t set n = n + (select w from x where x.k
  = t.n) + (select sum(w) from x) => waits
a: commit
b => count 2
c: select * from t order by id => (1, 52) (2, 41)
",
    ),
    (
        "deleted meanwhile",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: delete from t where id = 1 => count 1
b: update t set n = n + 1 where n = (select min(n) from t) returning * => waits
a: commit
b => (2, 2)
c: select * from t order by id => (2, 2)
",
    ),
    (
        "returning with subqueries",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1)
s: insert into u values (1, 10), (2, 20), (3, 30)
a: begin
a: update t set n = 2 => count 1
b: update t set n = n + 1 returning n, (select w from u where k = t.n), exists (select from u
  where k = t.n + 1) => waits
a: commit
b => (3, 30, f)
",
    ),
    (
        "delete returning with subqueries",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1)
s: insert into u values (1, 10), (2, 20), (3, 30)
a: begin
a: update t set n = 2 => count 1
b: delete from t where (select w from u where k = t.n) > 5 returning n, (select w from u where
  k = t.n) => waits
a: commit
b => (2, 20)
",
    ),
    (
        "or conditions and case",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = 0 => count 2
b: update t set n = case when n = 0 then (select -1) else (select 1 / n) end where n = 0 or
  (select count(*) from t) > 0 => waits
a: commit
b => count 2
c: select * from t order by id => (1, -1) (2, -1)
",
    ),
    (
        "division error on the new version",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1)
a: begin
a: update t set n = 0 => count 1
b: update t set n = (select 10 / t.n) => waits
a: commit
b => error 22012
c: select * from t order by id => (1, 0)
",
    ),
    (
        "exists with a join inside",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, m int)
s: create table v (m int, x int)
s: insert into t values (1, 1), (2, 1)
s: insert into u values (1, 1), (2, 2)
s: insert into v values (1, 5), (2, 6)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = n where id = 2 => count 1
b: delete from t where exists (select from u join v on v.m = u.m where u.k = t.n and v.x > 4)
  returning * => waits
a: commit
b => (2, 1)
",
    ),
    (
        "exists over a group",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, m int)
s: insert into t values (1, 1), (2, 1)
s: insert into u values (1, 1), (2, 2)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 3 where id = 2 => count 1
b: delete from t where exists (select k from u where u.k = t.n group by k having count(*) > 0)
  returning * => waits
a: commit
b => (1, 2)
",
    ),
    (
        "exists whose row was joined, several match",
        "
s: create table t (id int primary key, n int, g int)
s: create table u (k int, w int)
s: insert into t values (1, 1, 1)
s: insert into u values (1, 10), (1, 20)
a: begin
a: update t set g = 5 => count 1
b: update t set n = n + 100 where exists (select from u where k = t.n and w > t.g) returning *
  => waits
a: commit
b => (1, 101, 5)
",
    ),
    (
        "exists beside other conditions, and in a join condition",
        "
s: create table t (id int primary key, n int, g int)
s: create table v (id int primary key, x int)
s: create table u (k int, w int)
s: insert into t values (1, 1, 1), (2, 1, 1), (3, 1, 1)
s: insert into v values (1, 1), (2, 1), (3, 1)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set g = 9 where id = 2 => count 1
b: select t.*, v.* from t join v on v.id = t.id and exists (select from u where u.k = t.n)
  where v.x < 5 and t.g < 10 order by t.id for update of t => waits
a: commit
b => (2, 1, 9, 2, 1) (3, 1, 1, 3, 1)
",
    ),
    (
        "nested exists",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, m int)
s: create table w (m int, n int)
s: insert into t values (1, 1), (2, 1)
s: insert into u values (1, 1)
s: insert into w values (1, 1)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = 1 where id = 2 => count 1
b: delete from t where exists (select from u where exists (select from w where w.m = u.m and
  w.n = t.n)) returning * => waits
a: commit
b => (2, 1)
",
    ),
    (
        "any over a group",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, m int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (1, 1), (2, 2), (2, 2), (3, 3)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update t set n = n where id > 1 => count 2
b: update t set n = n * 100 where n in (select sum(m) / count(*) from u where u.k = t.id group
  by k) returning * => waits
a: commit
b => (2, 200) (3, 300)
",
    ),
    (
        "update of a column that stays out of line",
        "
s: create table t (id int primary key, n int, v text)
s: insert into t values (1, 1, repeat('x', 20000))
a: begin
a: update t set v = repeat('y', 30000) => count 1
b: update t set n = (select length(t.v)) where (select left(t.v, 1)) in ('x', 'y') returning n,
  length(v) => waits
a: commit
b => (30000, 30000)
c: select n, length(v), left(v, 1) from t => (30000, 30000, y)
",
    ),
    (
        "subqueries of a join's condition that the newest row wants",
        "
s: create table a (id int primary key, x int)
s: create table b (id int primary key)
s: create table u (v bool)
s: insert into a values (1, 0)
s: insert into b values (1)
s: insert into u values (true)
a: begin
a: update a set x = 1 => count 1
b: select a.x, b.id from a join b on case when a.x > 0 then (select v from u) else a.x = 0 end
  for update of a => waits
a: commit
b => (1, 1)
a: begin
a: update a set x = 0 => count 1
b: select a.x, b.id from a left join b on case when a.x = 0 then (select v from u) else true end
  for update of a => waits
a: commit
b => (0, 1)
",
    ),
    (
        "delete of a locked and changed row with returning of a joined one",
        "
s: create table t (id int primary key, n int)
s: create table u (id int primary key, w int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 20 where id = 1 => count 1
b: delete from t using u left join u u2 on u2.w = u.w + 10 where u.id = t.id and (t.n > 10 or
  u2.w is null or t.n = 1) returning t.*, u.*, u2.* => waits
a: commit
b => (1, 20, 1, 10, 2, 20) (2, 2, 2, 20, null, null)
",
    ),
];

#[test]
fn a_subquery_is_evaluated_anew_on_the_newest_version() {
    Stage::open().play(SUBQUERIES);
}
