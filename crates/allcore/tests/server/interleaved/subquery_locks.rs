//! FOR UPDATE and its kin over subqueries in FROM: their rows are locked where they are read.

use super::script::Stage;

const LOCKS: &[(&str, &str)] = &[
    (
        "lock of a subquery in from",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set n = n + 1 => count 2
b: select s.*, s.n + 1 from (select id, n, n * 2 m from t where n > 0) s order by s.id for
  update => waits
a: commit
b => (1, 2, 4, 3) (2, 3, 6, 4)
",
    ),
    (
        "lock of a subquery, conditions outside",
        "
s: create table t (id int primary key, n int)
s: create table u (k int primary key)
s: insert into t values (1, 1), (2, 2), (3, 3)
s: insert into u values (2)
a: begin
a: update t set n = n + 1 where id = 1 => count 1
b: begin
b: select s.n from (select id, n from t) s where s.id > 1 order by 1 for update => (2) (3)
c: select id from t order by id for update skip locked => no rows
b: commit
a: rollback
",
    ),
    (
        "lock of a WITH query's rows as they are read",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set n = n + 10 where id = 2 => count 1
b: begin
b: with q as (select * from t order by id for update) select (select n from q limit 1) => (1)
c: select id from t order by id for update skip locked => (3)
b: with q as (select * from t order by id for update)
   select (select n from q limit 1), (select n from q offset 1 limit 1), (select n from q limit 1) => waits
a: commit
b => (1, 12, 1)
c: select id from t order by id for update skip locked => (3)
b: rollback
",
    ),
    (
        "lock of what is no table",
        "
s: create table t (id int primary key, n int)
b: with w as (select * from t) select * from w for update of w => error 0A000
b: select * from generate_series(1, 2) g for update of g => error 0A000
b: select * from generate_series(1, 2) g for update => (1) (2)
b: select * from (t join t t2 using (id)) j for update of j => error 0A000
b: select * from (values (1)) v for update of v => (1)
b: select * from (select distinct n from t) s for share => error 0A000
b: select * from (select n from t group by n) s for share => error 0A000
b: select * from (select count(*) from t) s for share => error 0A000
b: select * from (select rank() over (order by n) from t) s for share => error 0A000
b: select * from (select unnest('{1}'::int[]) from t) s for share => error 0A000
b: select * from (select id from t union all select n from t) s for no key update => error 0A000
b: select * from (select * from (select id from t except select n from t) s) s for update =>
  error 0A000
",
    ),
    (
        "lock of a subquery in a subquery",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set n = 7 where id = 2 => count 1
b: select * from (select n from (select * from t where n < 5) s) s for update => waits
a: commit
b => (1) (3)
",
    ),
];

#[test]
fn the_rows_of_a_subquery_in_from_are_locked() {
    Stage::open().play(LOCKS);
}
