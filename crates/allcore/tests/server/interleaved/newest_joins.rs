//! A statement that waited for a row goes on with the row's newest version (PostgreSQL's
//! EvalPlanQual). The rows joined with it stay as they were read, and the statement looks for no
//! others.

use super::script::Stage;

/// Rows of other tables, of subqueries in FROM and of functions.
const JOINS: &[(&str, &str)] = &[
    (
        "update from, join condition no longer holds",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = 2 where id = 1 => count 1
a: update t set n = 7 where id = 2 => count 1
b: update t set n = t.n + u.w from u where u.g = t.g returning t.*, u.* => waits
a: commit
b => (2, 1, 17, 1, 10) (3, 2, 20, 2, 20)
c: select * from t order by id => (1, 2, 0) (2, 1, 17) (3, 2, 20)
",
    ),
    (
        "update from, joined row changed too",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 7 where id = 2 => count 1
a: update u set w = 100 => count 2
b: update t set n = t.n + u.w from u where u.g = t.g returning t.*, u.* => waits
a: commit
b => (1, 1, 10, 1, 10) (2, 1, 17, 1, 10) (3, 2, 20, 2, 20)
c: select * from t order by id => (1, 1, 10) (2, 1, 17) (3, 2, 20)
",
    ),
    (
        "update from an aggregate",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (1, 11), (2, 20)
a: begin
a: update t set g = 2, n = 1 where id = 1 => count 1
a: update t set n = 5 where id = 2 => count 1
b: update t set n = t.n + s.w from (select g, sum(w) w from u group by g) s where s.g = t.g =>
  waits
a: commit
b => count 2
c: select * from t order by id => (1, 2, 1) (2, 1, 26) (3, 2, 20)
",
    ),
    (
        "delete using",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = 2 where id = 1 => count 1
a: update t set n = 7 where id = 2 => count 1
b: delete from t using u where u.g = t.g and u.w < 15 returning t.*, u.*, (select count(*) from
  u u2 where u2.w > t.n) => waits
a: commit
b => (2, 1, 7, 1, 10, 2)
c: select * from t order by id => (1, 2, 0) (3, 2, 0)
",
    ),
    (
        "self join on the target",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 10), (2, 20)
a: begin
a: update t set n = n + 1 => count 2
b: update t set n = t.n + t2.n from t t2 where t2.id <> t.id => waits
a: commit
b => count 2
c: select * from t order by id => (1, 31) (2, 31)
",
    ),
    (
        "for update of one of two",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = 2 where id = 1 => count 1
a: update u set w = 11 where g = 1 => count 1
b: select t.*, u.*, t.n + u.w from t join u on u.g = t.g order by t.id for update of t => waits
a: commit
b => (2, 1, 0, 1, 10, 10) (3, 2, 0, 2, 20, 20)
",
    ),
    (
        "for update of both",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 2 where id = 1 => count 1
a: update u set w = 11 where g = 1 => count 1
b: select t.*, u.*, t.n + u.w from t join u on u.g = t.g and u.w + t.n < 13 order by t.id for
  update => waits
a: commit
b => (2, 1, 0, 1, 11, 11)
",
    ),
    (
        "for update of the left side of an outer join",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 9, 0), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = g + 1 => count 3
b: select t.*, u.*, coalesce(u.w, -1) + t.g from t left join u on u.g = t.g order by t.id for
  update of t => waits
a: commit
b => (1, 2, 0, null, null, 1) (2, 10, 0, null, null, 9) (3, 3, 0, null, null, 2)
",
    ),
    (
        "outer join, other conditions in on",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 1), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = 1 - n => count 3
b: select t.*, u.* from t left join u on u.g = t.g and t.n = 0 order by t.id for update of t =>
  waits
a: commit
b => (1, 1, 1, null, null) (2, 1, 0, null, null) (3, 2, 1, null, null)
",
    ),
    (
        "outer join with computed columns on the empty side",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 7, 1), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = n + 5 => count 3
b: select t.*, s.* from t left join lateral (select u.w, coalesce(u.w, 0) + t.n as m from u
  where u.g = t.g) s on true order by t.id for update of t => waits
a: commit
b => (1, 1, 5, 10, 15) (2, 7, 6, null, null) (3, 2, 5, 20, 25)
",
    ),
    (
        "lateral subquery that is merged",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1, 0), (2, 1, 1), (3, 2, 0)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set n = n + 5, g = 2 where id < 3 => count 2
a: update t set n = n + 5 where id = 3 => count 1
b: select * from t, u, lateral (select u.w + t.n as m) s where u.g = t.g order by t.id for
  update of t => waits
a: commit
b => (3, 2, 5, 2, 20, 25)
",
    ),
    (
        "lateral subquery with an outer join by the query around",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, g int)
s: create table v (id int primary key, g int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 1), (2, 2)
s: insert into v values (10, 1), (20, 2)
a: begin
a: update t set g = 77 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select t.id, s.* from t, lateral (select u.id u, v.id v from u left join v on v.g = t.g where
  u.id = t.id) s order by 1 for share of t => waits
c: select t.id, s.* from t, lateral (select u.id u, v.id v from u left join (v join u x on x.g =
  t.g) on v.g = u.g where u.id = t.id) s order by 1 for share of t => waits
d: select t.id, s.* from t, lateral (select u.id u, v.id v from u left join v on v.g = u.g where
  u.g = t.g) s order by 1 for share of t => waits
e: select t.id, s.* from t, lateral (select u.id u, v.id v, t.g + 0 m from u left join v on v.g =
  u.g where u.id = t.id) s order by 1 for share of t => waits
a: commit
b => (1, 1, 10) (2, 2, 20)
c => (1, 1, 10) (2, 2, 20)
d => (2, 2, 20)
e => (1, 1, 10, 77) (2, 2, 20, 2)
",
    ),
    (
        "lateral subquery that is not merged",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int, w int)
s: insert into t values (1, 1, 0), (2, 1, 1), (3, 2, 0)
s: insert into u values (1, 10), (2, 20), (2, 21)
a: begin
a: update t set n = n + 5 => count 3
b: select t.*, s.* from t, lateral (select u.w, u.w + t.n as m from u where u.g = t.g order by
  w limit 1) s order by t.id for update of t => waits
a: commit
b => (1, 1, 5, 10, 10) (2, 1, 6, 10, 11) (3, 2, 5, 20, 20)
",
    ),
    (
        "update from a left join",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (g int primary key, w int)
s: create table v (g int primary key, x int)
s: insert into t values (1, 1, 0), (2, 2, 0)
s: insert into u values (1, 10), (2, 20)
s: insert into v values (1, 100)
a: begin
a: update t set n = n + 1 => count 2
b: update t set n = t.n + u.w + coalesce(v.x, 7) from u left join v on v.g = u.g where u.g =
  t.g => waits
a: commit
b => count 2
c: select * from t order by id => (1, 1, 111) (2, 2, 28)
",
    ),
    (
        "rows of a set operation joined with a locked row",
        "
s: create table t (id int primary key, n int)
s: create table u (k int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1), (2), (3)
a: begin
a: update t set n = n + 1 => count 2
b: select * from t join (select k from u union select k + 1 from u) s on s.k >= t.n and s.k <
  t.n + 2 order by t.id, s.k for update of t => waits
a: commit
b => (1, 2, 2) (2, 3, 3)
",
    ),
    (
        "a window and a group in from",
        "
s: create table t (id int primary key, n int)
s: create table u (k int, x int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 5), (2, 6), (2, 7)
a: begin
a: update t set n = n + 1 => count 2
b: update t set n = t.n + s.r from (select k, x, row_number() over (partition by k order by x)
  r from u) s where s.k = t.id and s.r = 1 and s.x > t.n returning * => waits
a: commit
b => (1, 3, 1, 5, 1) (2, 4, 2, 6, 1)
",
    ),
    (
        "a function in from",
        "
s: create table t (id int primary key, a int[])
s: insert into t values (1, '{1,2}'), (2, '{3}')
a: begin
a: update t set a = a || 9 => count 2
b: select t.id, t.a, x from t, unnest(t.a) x order by 1, 3 for update of t => waits
a: commit
b => (1, {1,2,9}, 1) (1, {1,2,9}, 2) (2, {3,9}, 3)
",
    ),
    (
        "update from values",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = n + 10 => count 2
b: update t set n = t.n + v.x from (values (1, 100), (2, 200)) v(id, x) where v.id = t.id and
  t.n < v.x returning * => waits
a: commit
b => (1, 111, 1, 100) (2, 212, 2, 200)
",
    ),
    (
        "update from unnest",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = n + 10 where id = 1 => count 1
b: update t set n = t.n + v from unnest('{1,2}'::int[]) v where v = t.n returning * => waits
a: commit
b => (2, 4, 2)
",
    ),
    (
        "three tables",
        "
s: create table t (id int primary key, g int, n int)
s: create table u (id int primary key, g int)
s: create table v (g int primary key, x int)
s: insert into t select i, i % 10, 0 from generate_series(1, 100) i
s: insert into u select i, i % 10 from generate_series(1, 100) i
s: insert into v select i, i from generate_series(0, 9) i
s: analyze
a: begin
a: update t set g = g + 1 where id = 5 => count 1
a: update t set n = 5 where id = 15 => count 1
b: update t set n = t.n + v.x + u.id from u join v on v.g = u.g where u.id = t.id and t.g = u.g
  and t.id % 10 = 5 => waits
a: commit
b => count 9
c: select * from t where id % 10 = 5 order by id => (5, 6, 0) (15, 5, 25) (25, 5, 30) (35, 5,
  40) (45, 5, 50) (55, 5, 60) (65, 5, 70) (75, 5, 80) (85, 5, 90) (95, 5, 100)
",
    ),
    (
        "right join and using",
        "
s: create table t (id int primary key, g int)
s: create table u (id int primary key, w int)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = 2 where id = 2 => count 1
a: update t set g = 5 where id = 1 => count 1
b: select t.*, u.*, t.g * 10 = u.w from u right join t on u.id = t.id and u.w = t.g * 10 order
  by t.id for update of t => waits
a: commit
b => (1, 5, null, null, null) (2, 2, 2, 20, t) (3, 3, null, null, null)
",
    ),
    (
        "natural join",
        "
s: create table t (id int primary key, g int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1), (2, 2), (3, 2)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set g = 2 where id = 1 => count 1
a: update t set g = g where id = 2 => count 1
b: select * from t natural join u order by id for update of t => waits
a: commit
b => (2, 2, 20) (2, 3, 20)
",
    ),
    (
        "self join, both locked, same row",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = n + 10 where id = 1 => count 1
b: select x.n, y.n, x.n + y.n from t x, t y where x.id = y.id order by x.id for update => waits
a: commit
b => (11, 11, 22) (2, 2, 4)
",
    ),
    (
        "update from itself by key",
        "
s: create table t (id int primary key, parent int, n int)
s: insert into t values (1, null, 1), (2, 1, 2), (3, 1, 3)
a: begin
a: update t set n = n + 10 => count 3
b: update t set n = t.n + p.n from t p where p.id = t.parent returning t.* => waits
a: commit
b => (2, 1, 13) (3, 1, 14)
",
    ),
];

#[test]
fn a_joined_row_stays_as_it_was_read() {
    Stage::open().play(JOINS);
}
