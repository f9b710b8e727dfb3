//! A statement that waited for a row follows the row itself: to its new key, and not to another row
//! that has its key now.

use super::script::Stage;

const KEYS: &[(&str, &str)] = &[
    (
        "key changed meanwhile, condition on another column",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10 where id = 1 => count 1
b: update t set n = n + 1 where n = 1 => waits
a: commit
b => count 2
c: select * from t order by id => (2, 2) (10, 2)
",
    ),
    (
        "key changed meanwhile, condition on the key",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10 where id = 1 => count 1
b: update t set n = n + 1 where id = 1 => waits
a: commit
b => count 0
c: select * from t order by id => (2, 1) (10, 1)
",
    ),
    (
        "key changed, for update",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10, n = 5 where id = 1 => count 1
b: select * from t where n > 0 order by id for update => waits
a: commit
b => (10, 5) (2, 1)
",
    ),
    // Nobody holds the new key for those who wait at the old one, so their order there is open.
    // These two can come in either.
    (
        "key changed, two who share it",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10, n = 5 where id = 1 => count 1
b: select * from t where n > 0 order by id for share => waits
d: select * from t where n > 0 order by id for share => waits
a: commit
b => (10, 5) (2, 1)
d => (10, 5) (2, 1)
",
    ),
    (
        "key changed, delete",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10, n = 5 where id = 1 => count 1
d: delete from t where n > 0 returning * => waits
a: commit
d => (10, 5) (2, 1)
c: select * from t order by id => no rows
",
    ),
    (
        "key changed there and back",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10, n = 5 where id = 1 => count 1
a: update t set id = 1, n = n + 1 where id = 10 => count 1
b: update t set n = n + 100 where n > 0 returning * => waits
a: commit
b => (1, 106) (2, 101)
c: select * from t order by id => (1, 106) (2, 101)
",
    ),
    (
        "key changed and deleted",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: update t set id = 10, n = 5 where id = 1 => count 1
a: delete from t where id = 10 => count 1
b: update t set n = n + 100 where n > 0 returning * => waits
a: commit
b => (2, 101)
c: select * from t order by id => (2, 101)
",
    ),
    (
        "two keys changed",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2), (3, 3)
a: begin
a: update t set id = id + 10 => count 3
a: insert into t values (1, 50) => count 1
b: update t set n = n + 100 where n > 0 returning * => waits
a: commit
b => (11, 101) (12, 102) (13, 103)
c: select * from t order by id => (1, 50) (11, 101) (12, 102) (13, 103)
",
    ),
    (
        "deleted and inserted again under the same key",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: delete from t where id = 1 => count 1
a: insert into t values (1, 1) => count 1
b: update t set n = n + 100 where n = 1 returning * => waits
a: commit
b => (2, 101)
c: select * from t order by id => (1, 1) (2, 101)
",
    ),
    (
        "deleted and inserted again, for update",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 1)
a: begin
a: delete from t where id = 1 => count 1
a: insert into t values (1, 1) => count 1
b: select * from t order by id for update => waits
a: commit
b => (2, 1)
",
    ),
    (
        "another row takes a moved row's key",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set id = 3 where id = 1 => count 1
a: update t set id = 1 where id = 2 => count 1
b: delete from t where n = 1 returning * => waits
a: commit
b => (3, 1)
c: select * from t order by id => (1, 2)
",
    ),
    (
        "a moved row is moved on by the one who waits",
        "
s: create table t (id int primary key, n int, u text unique)
s: create index on t (n)
s: insert into t values (1, 1, 'a'), (2, 2, 'b')
a: begin
a: update t set id = 3, u = 'c' where id = 1 => count 1
b: update t set id = id + 100, n = n + 1 where n = 1 returning * => waits
a: commit
b => (103, 2, c)
c: select * from t order by id => (2, 2, b) (103, 2, c)
c: select * from t where n = 2 order by id => (2, 2, b) (103, 2, c)
c: select * from t where u = 'c' => (103, 2, c)
",
    ),
    (
        "a moved row is deleted under its new key by another",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set id = 3 where id = 1 => count 1
b: begin
b: select * from t where n = 1 for update => waits
a: commit
b => (3, 1)
d: delete from t where id = 3 => waits
e: update t set n = 5 where n = 1 => waits
b: commit
d => count 1
e => count 0
c: select * from t order by id => (2, 2)
",
    ),
    (
        "moved in a savepoint that is rolled back",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: savepoint s
a: update t set id = 3 where id = 1 => count 1
a: rollback to s
a: update t set n = 7 where id = 1 => count 1
b: update t set n = n + 100 where id = 1 returning * => waits
a: commit
b => (1, 107)
c: select * from t order by id => (1, 107) (2, 2)
",
    ),
    (
        "moved and rolled back",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set id = 3 where id = 1 => count 1
b: update t set n = n + 100 where id = 1 returning * => waits
a: rollback
b => (1, 101)
c: select * from t order by id => (1, 101) (2, 2)
",
    ),
    (
        "moved, repeatable read",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
b: begin isolation level repeatable read
b: select count(*) from t => (2)
a: begin
a: update t set id = 3 where id = 1 => count 1
b: update t set n = n + 100 where n = 1 returning * => waits
a: commit
b => error 40001
b: rollback
",
    ),
    (
        "two rows of a join both locked, one moved",
        "
s: create table t (id int primary key, g int)
s: create table u (g int primary key, w int)
s: insert into t values (1, 1), (2, 2)
s: insert into u values (1, 10), (2, 20)
a: begin
a: update t set id = 7 where id = 1 => count 1
a: update u set w = 11 where g = 1 => count 1
b: select *, t.id + u.w from t, u where t.g = u.g order by t.g for no key update => waits
a: commit
b => (7, 1, 1, 11, 18) (2, 2, 2, 20, 22)
",
    ),
    (
        "key share of a moved row",
        "
s: create table t (id int primary key, n int)
s: insert into t values (1, 1), (2, 2)
a: begin
a: update t set id = 9, n = 7 where id = 1 => count 1
b: select *, n + 1 from t order by n for key share => waits
a: commit
b => (9, 7, 8) (2, 2, 3)
",
    ),
];

#[test]
fn a_row_is_followed_whatever_becomes_of_its_key() {
    Stage::open().play(KEYS);
}
