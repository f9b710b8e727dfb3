//! A statement that waited for a row goes on with the row's newest version. Here its conditions
//! have subqueries, as in queues: an UPDATE of the rows that a subquery picks and locks.

use super::script::Stage;

const CONDITIONS: &[(&str, &str)] = &[
    (
        "queue by in with skip locked",
        "
s: create table t (id int primary key, state text, n int default 0)
s: insert into t values (1, 'new'), (2, 'new'), (3, 'new')
a: begin
a: update t set state = 'run' where id in (select id from t where state = 'new' order by id
  limit 1 for update skip locked) returning id => (1)
b: begin
b: update t set state = 'run' where id in (select id from t where state = 'new' order by id
  limit 1 for update skip locked) returning id => (2)
c: update t set state = 'run' where id = (select id from t where state = 'new' order by id
  limit 1 for update skip locked) returning id => (3)
a: commit
b: commit
c: select * from t order by id => (1, run, 0) (2, run, 0) (3, run, 0)
",
    ),
    (
        "queue without skip locked",
        "
s: create table t (id int primary key, state text, n int default 0)
s: insert into t values (1, 'new'), (2, 'new'), (3, 'new')
a: begin
a: update t set state = 'run' where id in (select id from t where state = 'new' order by id
  limit 1 for update) returning id => (1)
b: update t set state = 'run' where id in (select id from t where state = 'new' order by id
  limit 1 for update) returning id, n => waits
a: commit
b => (2, 0)
c: select * from t order by id => (1, run, 0) (2, run, 0) (3, new, 0)
",
    ),
    (
        "queue by a scalar subquery",
        "
s: create table t (id int primary key, state text, n int default 0)
s: insert into t values (1, 'new'), (2, 'new'), (3, 'new')
a: begin
a: update t set n = n + 1 where id = 1 => count 1
b: update t set state = 'run', n = n + 10 where id = (select id from t where state = 'new'
  order by id limit 1 for update) returning * => waits
a: commit
b => (1, run, 11)
c: select * from t order by id => (1, run, 11) (2, new, 0) (3, new, 0)
",
    ),
    (
        "queue by a common table expression",
        "
s: create table t (id int primary key, state text, n int default 0)
s: insert into t values (1, 'new'), (2, 'new'), (3, 'new')
a: begin
a: update t set n = n + 1 where id = 1 => count 1
b: with j as (select id, n from t where state = 'new' order by id limit 2 for update) update t
  set n = t.n + j.n + 100 from j where j.id = t.id returning t.* => waits
a: commit
b => (1, new, 102) (2, new, 100)
c: select * from t order by id => (1, new, 102) (2, new, 100) (3, new, 0)
",
    ),
    (
        "array of a subquery and a limit in one",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, w int)
s: insert into t values (1, 1)
s: insert into u values (1, 10), (1, 11), (2, 20), (2, 21)
a: begin
a: update t set n = 2 => count 1
b: update t set n = n + 1 where array(select w from u where k = t.n order by w) = '{20,21}' or
  (select w from u where k = t.n order by w limit 1) = 10 returning array(select w from u where
  k = t.n - 1 order by w), (select w from u where k = t.n - 1 order by w desc limit 1) => waits
a: commit
b => ({20,21}, 21)
",
    ),
    (
        "not exists with a join and negated in",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, m int)
s: create table v (m int)
s: insert into t values (1, 5), (2, 6)
s: insert into u values (1, 1), (7, 2)
s: insert into v values (1), (2)
a: begin
a: update t set n = 7 where id = 1 => count 1
a: update t set n = 1 where id = 2 => count 1
b: update t set n = n + 100 where not exists (select from u, v where u.m = v.m and u.k = t.n)
  and not (n in (select m + 100 from v)) and n <> all (select m + 2 from v) returning * => waits
a: commit
b => (1, 107) (2, 101)
",
    ),
    (
        "exists in set and case",
        "
s: create table t (id int primary key, n int, b bool)
s: create table u (k int)
s: insert into t values (1, 1, null), (2, 2, null)
s: insert into u values (2)
a: begin
a: update t set n = 3 - n => count 2
b: update t set b = exists (select from u where k = t.n), n = case when t.n in (select k from
  u) then 100 else 200 end returning * => waits
a: commit
b => (1, 100, t) (2, 200, f)
",
    ),
    (
        "null comparisons",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 2), (3, null)
s: insert into u values (1), (2), (null)
a: begin
a: update t set n = null where id = 1 => count 1
a: update t set n = 2 where id = 3 => count 1
b: update t set n = 50 where n in (select k from u) or (n in (select k from u)) is null
  returning id => waits
a: commit
b => (1) (2) (3)
",
    ),
    (
        "in beside in",
        "
s: create table t (id int primary key, a int, b int)
s: create table u (a int, b int)
s: insert into t values (1, 1, 1), (2, 2, 2), (3, 1, 2)
s: insert into u values (1, 1), (2, 2)
a: begin
a: update t set b = 2 where id = 1 => count 1
a: update t set a = a where id = 2 => count 1
b: delete from t where (a, b) in (select a, b from u) or (a, b) in (select b, a + 1 from u)
  returning * => waits
a: commit
b => (1, 1, 2) (2, 2, 2) (3, 1, 2)
",
    ),
    (
        "row in",
        "
s: create table t (id int primary key, a int, b int)
s: create table u (a int, b int)
s: insert into t values (1, 1, 1), (2, 2, 2), (3, 1, 2)
s: insert into u values (1, 1), (2, 2), (1, 2)
a: begin
a: update t set b = 2 where id = 1 => count 1
a: update t set a = a where id = 2 => count 1
b: delete from t where (a, b) in (select a, b from u) returning * => waits
a: commit
b => (2, 2, 2) (3, 1, 2)
",
    ),
    (
        "in below a sort",
        "
s: create table t (id int primary key, a int, b int)
s: create table u (id int primary key, k int, w int)
s: insert into t values (1, 1, 4), (2, 0, 1), (3, 1, 1)
s: insert into u values (1, 1, 1), (2, 1, 1), (3, 0, 3), (4, 1, 0)
a: begin
a: update t set b = 7 where id = 2 => count 1
b: select t.* from t where t.a in (select k from u) order by id for no key update => waits
a: commit
b => (1, 1, 4) (2, 0, 7) (3, 1, 1)
",
    ),
];

#[test]
fn a_condition_is_decided_anew_on_the_newest_version() {
    Stage::open().play(CONDITIONS);
}
