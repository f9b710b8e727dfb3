//! A statement that waited for a row goes on with the row's newest version (PostgreSQL's
//! EvalPlanQual). If an outer join's condition no longer holds for it, everything that reads the
//! other side sees NULL.

use super::script::Stage;

/// Expressions that read the side whose row went.
const READERS: &[(&str, &str)] = &[
    (
        "where on the side of a left join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (10, 1), (20, 2), (30, 3)
a: begin
a: update t set g = 77 where id < 3 => count 2
a: update t set g = g where id = 3 => count 1
b: select t.id, u.id from t left join u on u.g = t.g where u.id > 0 order by 1 for update of t =>
  waits
a: commit
b => (3, 30)
",
    ),
    (
        "is null, is not null and coalesce",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 9)
s: insert into u values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id from t left join u on u.g = t.g where u.id is not null order by 1 for share
  of t => waits
c: select t.id, u.id from t left join u on u.g = t.g where coalesce(u.id, 0) > 0 order by 1 for
  share of t => waits
d: select t.id, u.id, coalesce(u.id, -1) from t left join u on u.g = t.g where u.id is null or
  u.id < 15 order by 1 for share of t => waits
a: commit
b => (2, 20)
c => (2, 20)
d => (1, null, -1) (3, null, -1)
",
    ),
    (
        "right join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, u.id, u.id + 1 from u right join t on u.g = t.g where u.id > 0 order by 1 for
  update of t => waits
a: commit
b => (2, 20, 21)
",
    ),
    (
        "full join that conditions make an inner one",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (10, 1), (20, 2), (40, 4)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id from t full join u on u.g = t.g where t.id > 0 and u.id > 0 order by 1 for
  share of t => waits
c: select t.id, u.id from u full join t on u.g = t.g where t.id > 0 and u.id > 0 order by 1 for
  share of t => waits
d: select t.id, u.id from u full join t on u.g = t.g where t.id > 0 and u.id > 0 order by 1 for
  share => waits
a: commit
b => (2, 20)
c => (2, 20)
d => (2, 20)
",
    ),
    (
        "full join that a condition makes an outer one",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (10, 1), (20, 2), (40, 4)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id from t full join u on u.g = t.g where t.id > 0 order by 1 for share of t =>
  waits
c: select t.id, u.id, coalesce(u.id, 0) from u full join t using (g) where t.id > 0 order by 1
  for share of t => waits
a: commit
b => (1, null) (2, 20) (3, null)
c => (1, null, 0) (2, 20, 20) (3, null, 0)
",
    ),
    (
        "full join of a full join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 9)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (100, 1), (200, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id, v.id from t full join u on u.g = t.g full join v on v.g = t.g where t.id > 0
  order by 1 for share of t => waits
c: select t.id, s.n, v.id from t full join (select g, count(*) n from u group by g) s on s.g = t.g
  full join v on v.g = t.g where t.id > 0 order by 1 for share of t => waits
a: commit
b => (1, null, null) (2, 20, 200) (3, null, null)
c => (1, null, null) (2, 1, 200) (3, null, null)
",
    ),
    (
        "left join in a left join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, u int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (10, 1), (20, 2), (30, 3)
s: insert into v values (100, 10), (200, 20)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id, v.id from t left join u on u.g = t.g left join v on v.u = u.id order by 1
  for share of t => waits
c: select t.id, u.id, v.id from t left join (u left join v on v.u = u.id) on u.g = t.g order by 1
  for share of t => waits
d: select t.id, v.id from t left join u on u.g = t.g left join v on v.u = u.id where v.id > 0
  order by 1 for share of t => waits
a: commit
b => (1, null, null) (2, 20, 200) (3, 30, null)
c => (1, null, null) (2, 20, 200) (3, 30, null)
d => (2, 200)
",
    ),
    (
        "left join of an inner join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, u int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (10, 1), (20, 2), (30, 3)
s: insert into v values (100, 10), (200, 20)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, u.id, v.id from t left join (u join v on v.u = u.id) on u.g = t.g where v.id is
  null or v.id = 200 order by 1 for share of t => waits
c: select t.id, v.id from t left join (u join v on v.u = u.id) on u.g = t.g where v.id > 0 order
  by 1 for share of t => waits
a: commit
b => (2, 20, 200) (3, null, null)
c => (2, 200)
",
    ),
    (
        "lateral subquery",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: insert into t values (1, 1), (2, 2), (3, 9)
s: insert into u values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, s.id from t left join lateral (select u.id from u where u.g = t.g) s on true where
  s.id > 0 order by 1 for share of t => waits
c: select t.id, s.one, s.m from t left join lateral (select 1 as one, coalesce(u.id, 5) as m from
  u where u.g = t.g) s on true order by 1 for share of t => waits
d: select t.id, s.one from t left join lateral (select 1 as one from u where u.g = t.g) s on true
  where s.one = 1 order by 1 for share of t => waits
a: commit
b => (2, 20)
c => (1, null, null) (2, 1, 20) (3, null, null)
d => (2, 1)
",
    ),
    (
        "lateral subquery that joins",
        "
s: create table t (id int primary key, n int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, g int)
s: insert into t values (1, 0), (2, 0)
s: insert into u values (1, 1), (2, 2)
s: insert into v values (10, 1), (20, 2)
a: begin
a: update t set n = 5 where id = 1 => count 1
a: update t set n = n where id = 2 => count 1
b: select t.id, s.* from t left join lateral (select u.g, v.id as v from u join v on v.g = u.g +
  t.n) s on s.g = t.id where s.v > 0 order by 1 for share of t => waits
c: select t.id, s.* from t left join lateral (select u.g, v.id as v from u join v on v.g = u.g +
  t.n) s on s.g = t.id order by 1 for share of t => waits
a: commit
b => (2, 2, 20)
c => (1, null, null) (2, 2, 20)
",
    ),
    (
        "a subquery that is not merged",
        "
s: create table t (id int primary key, g int)
s: create table u (g int, w int)
s: insert into t values (1, 1), (2, 2), (3, 9)
s: insert into u values (1, 10), (1, 11), (2, 20)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: select t.id, s.w from t left join (select g, sum(w) w from u group by g) s on s.g = t.g where
  s.w > 0 order by 1 for share of t => waits
c: select t.id, coalesce(s.w, -1) from t left join (select g, sum(w) w from u group by g) s on s.g
  = t.g order by 1 for share of t => waits
a: commit
b => (2, 20)
c => (1, -1) (2, 20) (3, -1)
",
    ),
    (
        "subqueries that are merged",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, u int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (100, 10), (200, 20)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, s.x from t left join (select w.g, w.x from (select u.g, v.id + u.id as x from u
  left join v on v.u = u.id) w) s on s.g = t.g where s.x > 0 order by 1 for share of t => waits
a: commit
b => (2, 220)
",
    ),
    (
        "later inner join",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (10), (20)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, u.id, v.id from t left join u on u.g = t.g join v on v.id = u.id order by 1 for
  share of t => waits
c: select t.id, u.id, v.id from t left join u on u.g = t.g, v where v.id = coalesce(u.id, 10)
  order by 1 for share of t => waits
a: commit
b => (2, 20, 20)
c => (1, null, 10) (2, 20, 20)
",
    ),
];

/// Subqueries that read the side whose row went, or decide about it.
const SUBQUERIES: &[(&str, &str)] = &[
    (
        "exists and in",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, k int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (10, 5), (20, 5), (30, 7)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, u.id from t left join u on u.g = t.g where exists (select from v where v.id = u.id)
  order by 1 for share of t => waits
c: select t.id, u.id from t left join u on u.g = t.g where u.id in (select id from v) order by 1 for
  share of t => waits
d: select t.id, u.id from t left join u on u.g = t.g where exists (select from v where v.id =
  coalesce(u.id, 30)) order by 1 for share of t => waits
e: select t.id, u.id from t left join u on u.g = t.g where exists (select from v where v.id = u.id
  and t.g > 0) order by 1 for share of t => waits
f: select t.id, u.id from t left join u on u.g = t.g where not exists (select from v where v.id =
  coalesce(u.id, 30) + 1) order by 1 for share of t => waits
g: select t.id, u.id from t left join u on u.g = t.g where u.id = any (select id from v where k <
  6 and t.g > 0) order by 1 for share of t => waits
a: commit
b => (2, 20)
c => (2, 20)
d => (2, 20)
e => (2, 20)
f => (1, null) (2, 20)
g => (2, 20)
",
    ),
    (
        "exists and not exists beneath an outer join",
        "
s: create table t (id int primary key, n int)
s: create table u (id int primary key)
s: create table v (id int primary key)
s: insert into t values (1, null), (2, null)
s: insert into u values (1), (2)
s: insert into v values (1)
a: begin
a: update t set n = 1 => count 2
b: select t.id, u.id, v.id from t join u on u.id = t.id and not exists (select from v where v.id =
  t.n) left join v on v.id = t.n or v.id = t.id order by 1 for share of t => waits
c: select t.id, u.id, v.id from v right join (t join u on u.id = t.id and exists (select from v
  where v.id = coalesce(t.n, 1))) on v.id = t.id order by 1 for share of t => waits
a: commit
b => (1, 1, 1) (2, 2, null)
c => (1, 1, 1) (2, 2, null)
",
    ),
    (
        "exists over a computed column",
        "
s: create table t (id int primary key, n int)
s: create table u (id int primary key, w int)
s: create table v (id int primary key)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 10), (2, 20)
s: insert into v values (11), (16), (22)
a: begin
a: update t set n = n + 5 where id = 1 => count 1
a: update t set n = n where id = 2 => count 1
b: select t.id, s.m from t join lateral (select u.id, u.w + t.n as m from u) s on s.id = t.id where
  exists (select from v where v.id = s.m and t.n > 0) order by 1 for share of t => waits
a: commit
b => (2, 22)
",
    ),
    (
        "scalar subqueries, and case",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, k int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (10, 5), (20, 6), (0, 7)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, (select k from v where v.id = u.id) from t left join u on u.g = t.g order by 1 for
  share of t => waits
c: select t.id from t left join u on u.g = t.g where (select k from v where v.id = coalesce(u.id,
  0)) = 7 or (select k from v where v.id = u.id) = 6 order by 1 for share of t => waits
d: select t.id, case when u.id is null then (select max(k) from v) else 0 end from t left join u on
  u.g = t.g order by 1 for share of t => waits
a: commit
b => (1, null) (2, 6)
c => (2)
d => (1, 7) (2, 0)
",
    ),
    (
        "subquery in on",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, k int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (10, 1), (20, 2)
s: insert into v values (1, 10), (2, 20), (77, 99)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, u.id from t left join u on u.id = (select k from v where v.id = t.g) where u.g > 0
  order by 1 for share of t => waits
c: select t.id, u.id from t left join u on u.id = (select k from v where v.id = t.g) left join v on
  v.k = (select v2.k from v v2 where v2.k = u.id) where exists (select from u u2 where u2.id = v.k)
  order by 1 for share of t => waits
a: commit
b => (2, 20)
c => (2, 20)
",
    ),
];

/// Statements that change rows.
const CHANGES: &[(&str, &str)] = &[
    (
        "update from a left join",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, x int)
s: insert into t values (1, 1, 0), (2, 2, 0), (3, 3, 0)
s: insert into u values (1, 1), (2, 2), (3, 3)
s: insert into v values (10, 1), (20, 2)
a: begin
a: update t set g = 77, n = 5 where id = 1 => count 1
a: update t set n = 6 where id > 1 => count 2
b: update t set n = t.n + coalesce(s.v, 100) from u left join lateral (select v.id as v from v
  where v.x = u.g) s on true where u.id = t.id and s.v > 0 and t.g = u.g returning t.*, s.v =>
  waits
a: commit
b => (2, 2, 26, 20)
",
    ),
    (
        "update from a lateral left join on the row itself",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (id int primary key)
s: create table v (id int primary key, x int)
s: insert into t values (1, 1, 0), (2, 2, 0), (3, 9, 0)
s: insert into u values (1), (2), (3)
s: insert into v values (10, 1), (20, 2)
a: begin
a: update t set g = 77, n = 5 where id = 1 => count 1
a: update t set n = 6 where id = 2 => count 1
b: update t set n = coalesce(v.id, -1) from t t2 left join v on v.x = t2.g where t2.id = t.id
  returning t.id, t.n, v.id, v.x => waits
a: commit
b => (1, 10, 10, 1) (2, 20, 20, 2) (3, -1, null, null)
",
    ),
    (
        "delete using",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, x int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (1, 1), (2, 2), (3, 3)
s: insert into v values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: delete from t using u left join v on v.x = u.g where u.g = t.g and coalesce(v.id, 1) < 20
  returning t.id, v.id => waits
a: commit
b => (3, null)
c: select id from t order by 1 => (1) (2)
",
    ),
    (
        "insert of locked rows",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table w (t int, u int)
s: insert into t values (1, 1), (2, 2), (3, 9)
s: insert into u values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id > 1 => count 2
b: insert into w select t.id, u.id from t left join u on u.g = t.g where u.id > 0 for update of t
  returning * => waits
a: commit
b => (2, 20)
b: begin
b: update t set g = 1 - g where id = 2 => count 1
c: insert into w select t.id, coalesce(u.id, -1) from t left join u on u.g = t.g order by t.id for
  update of t returning * => waits
b: commit
c => (1, -1) (2, -1) (3, -1)
",
    ),
];

#[test]
fn a_side_that_lost_its_row_reads_as_null() {
    Stage::open().play(READERS);
}

#[test]
fn a_subquery_sees_that_a_side_lost_its_row() {
    Stage::open().play(SUBQUERIES);
}

#[test]
fn a_change_sees_that_a_side_lost_its_row() {
    Stage::open().play(CHANGES);
}
