//! INSERT ... ON CONFLICT beside sessions that delete or change the row in the way: its newest
//! version counts, once they have ended.

use super::script::Stage;

const UPSERTS: &[(&str, &str)] = &[
    (
        "do update, the row is deleted",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: delete from u => count 1
b: insert into u values (1, 1, 2) on conflict (id) do update set n = u.n + 10 => waits
a: commit
b => count 1
c: select * from u => (1, 1, 2)
",
    ),
    (
        "do update, the delete is taken back",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: delete from u => count 1
b: insert into u values (1, 1, 2) on conflict (id) do update set n = u.n + 10 => waits
a: rollback
b => count 1
c: select * from u => (1, 1, 11)
",
    ),
    (
        "do update, the row does not conflict any more",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: update u set k = 5 => count 1
b: insert into u values (2, 1, 2) on conflict (k) do update set n = u.n + 10 => waits
a: commit
b => count 1
c: select * from u order by id => (1, 5, 1) (2, 1, 2)
",
    ),
    (
        "do update, the row was changed",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: update u set n = 7 => count 1
b: insert into u values (2, 1, 2) on conflict (k) do update set n = u.n + 10 => waits
d: insert into u values (1, 3, 2) on conflict (id) do update set n = u.n + 100 => waits
a: commit
b => count 1
d => count 1
c: select * from u => (1, 1, 117)
",
    ),
    (
        "do update, the row has another key",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: update u set id = 9 => count 1
b: insert into u values (1, 2, 2) on conflict (id) do update set n = u.n + 10 => waits
d: insert into u values (3, 1, 2) on conflict (k) do update set n = u.n + 100 => waits
a: commit
b => count 1
d => count 1
c: select * from u order by id => (1, 2, 2) (9, 1, 101)
",
    ),
    (
        "do nothing, the row is deleted",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
a: begin
a: delete from u => count 1
b: insert into u values (2, 1, 2) on conflict do nothing => waits
a: commit
b => count 1
c: select * from u => (2, 1, 2)
",
    ),
    (
        "do nothing, the row has another key",
        "
s: create table u (id int primary key, n int)
s: insert into u values (1, 1)
a: begin
a: update u set id = id + 100 => count 1
b: insert into u values (1, 2) on conflict do nothing => waits
a: commit
b => count 1
c: select * from u order by id => (1, 2) (101, 1)
",
    ),
    (
        "do nothing, somebody inserts",
        "
s: create table u (id int primary key, n int)
a: begin
a: insert into u values (1, 1)
b: insert into u values (1, 2) on conflict do nothing => waits
a: commit
b => count 0
a: begin
a: insert into u values (2, 1)
b: insert into u values (2, 2) on conflict do nothing => waits
a: rollback
b => count 1
c: select * from u order by id => (1, 1) (2, 2)
",
    ),
    (
        "repeatable read refuses what its snapshot does not see",
        "
s: create table u (id int primary key, k int unique, n int)
s: insert into u values (1, 1, 1)
b: begin isolation level repeatable read
b: select * from u => (1, 1, 1)
a: update u set n = 5 => count 1
b: insert into u values (1, 2, 2) on conflict do nothing => error 40001
b: rollback
b: begin isolation level repeatable read
b: select * from u => (1, 1, 5)
a: update u set n = 6 => count 1
b: insert into u values (2, 1, 2) on conflict (k) do nothing => error 40001
b: rollback
b: begin isolation level repeatable read
b: select * from u => (1, 1, 6)
a: insert into u values (3, 3, 3)
b: insert into u values (3, 4, 2) on conflict (id) do update set n = 0 => error 40001
b: rollback
b: begin isolation level repeatable read
b: select count(*) from u => (2)
a: delete from u => count 2
b: insert into u values (1, 1, 2) on conflict do nothing => error 40001 | PostgreSQL: count 1
b: rollback
",
    ),
    (
        "two rows of one command",
        "
s: create table u (id int primary key, k int unique, n int)
b: insert into u values (1, 1, 1), (1, 2, 2) on conflict do nothing => count 1
b: insert into u values (5, 5, 1), (5, 6, 2) on conflict (id) do update set n = 9 => error 21000
c: select * from u => (1, 1, 1)
",
    ),
    (
        "the lock is that of the columns that are set",
        "
s: create table u (id int primary key, k int, j int, n int, unique (k, j))
s: insert into u values (1, 1, 1, 1)
a: begin
a: insert into u values (1, 5, 5, 3) on conflict (id) do update set k = excluded.k where false => count 0
b: select n from u for key share nowait => error 55P03
a: rollback
a: begin
a: insert into u values (1, 5, 5, 3) on conflict (id) do update set id = u.id => count 1
b: select n from u for key share nowait => error 55P03
a: rollback
a: begin
a: insert into u values (1, 5, 5, 3) on conflict (id) do update set n = excluded.n => count 1
b: select n from u for key share nowait => (1)
a: rollback
b: begin
b: select n from u for key share => (1)
a: insert into u values (1, 5, 5, 3) on conflict (id) do update set n = 7 => count 1
a: insert into u values (1, 5, 5, 3) on conflict (id) do update set j = u.j => waits
b: commit
a => count 1
",
    ),
];

#[test]
fn on_conflict_looks_at_the_newest_version() {
    Stage::open().play(UPSERTS);
}
