//! Foreign keys beside other changes at the same time: rows that move, keys of several columns,
//! many rows, self references.

use super::script::Stage;

/// A child that waits for its parent's deletion or change of key.
const CHILD_WAITS: &str = "
s: create table parent (i int primary key, n int); create table child (p int references parent)
s: insert into parent values (1, 0), (2, 0), (3, 0), (5, 0)
a: begin
a: delete from parent where i = 1
b: insert into child values (1) => waits
a: commit
b => error 23503
a: begin
a: delete from parent where i = 2
b: insert into child values (2) => waits
a: rollback
b => count 1
a: begin
a: update parent set i = 30 where i = 3
b: insert into child values (3) => waits
a: commit
b => error 23503
a: begin
a: update parent set n = 1 where i = 5
b: insert into child values (5) => count 1
a: commit
c: select * from child order by p => (2) (5)
";

/// A child that waits while its parent goes and comes again: only the same row will do, which may
/// have moved.
const PARENT_COMES_AGAIN: &str = "
s: create table parent (i int primary key, n int); create table child (p int references parent)
s: insert into parent values (1, 0), (2, 0)
a: begin
a: delete from parent where i = 1
b: insert into child values (1) => waits
a: insert into parent values (1, 1)
a: commit
b => error 23503
a: begin
a: delete from parent where i = 1
a: insert into parent values (1, 2)
b: insert into child values (1) => waits
a: commit
b => error 23503
b: insert into child values (1) => count 1
a: begin
a: update parent set i = 3 where i = 2
b: insert into child values (2) => waits
a: update parent set i = 2 where i = 3
a: commit
b => count 1
a: begin
a: delete from child where p = 2
a: update parent set i = 3 where i = 2
a: update parent set i = 2 where i = 3
b: insert into child values (2) => waits
a: commit
b => count 1
b: begin isolation level repeatable read
b: select count(*) from child => (2)
a: begin
a: delete from child where p = 1
a: delete from parent where i = 1
a: insert into parent values (1, 3)
b: insert into child values (1) => waits
a: commit
b => error 40001
b: rollback
a: begin
a: delete from parent where i = 1
a: insert into parent values (1, 4)
b: insert into child values (1) => waits
a: rollback
b => count 1
a: begin
a: insert into parent values (9, 0)
a: delete from parent where i = 9
b: insert into child values (9) => error 23503
a: insert into parent values (9, 1)
b: insert into child values (9) => error 23503
a: commit
b: insert into child values (9) => count 1
";

/// The same in repeatable read.
const CHILD_WAITS_REPEATABLE: &str = "
s: create table parent (i int primary key, n int); create table child (p int references parent)
s: insert into parent values (1, 0), (2, 0), (3, 0)
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: begin
a: delete from parent where i = 1
b: insert into child values (1) => waits
a: commit
b => error 40001
b: rollback
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: delete from parent where i = 2
b: insert into child values (2) => error 40001
b: rollback
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: update parent set n = 1 where i = 3
b: insert into child values (3) => count 1
b: rollback
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: insert into parent values (4, 0)
b: insert into child values (4) => error 23503
b: rollback
";

/// A child that another transaction gives another parent.
const CHILD_GOES_ELSEWHERE: &str = "
s: create table parent (i int primary key)
s: create table child (id int primary key, p int references parent on delete cascade)
s: create table other (id int primary key, p int references parent on delete set null)
s: insert into parent values (1), (2)
s: insert into child values (1, 1), (2, 1)
s: insert into other values (1, 1), (2, 1)
a: begin
a: update child set p = 2 where id = 1
a: update other set p = 2 where id = 1
b: delete from parent where i = 1 => waits
a: commit
b => count 1
c: select * from child order by id => (1, 2)
c: select * from other order by id => (1, 2) (2, null)
";

/// A child whose own key is changed meanwhile stays a child.
const CHILD_MOVES: &str = "
s: create table parent (i int primary key)
s: create table child (id int primary key, p int references parent on delete cascade)
s: create table other (id int primary key, p int references parent)
s: insert into parent values (1), (2)
s: insert into child values (1, 1)
s: insert into other values (2, 2)
a: begin
a: update child set id = 11 where id = 1
b: delete from parent where i = 1 => waits
a: commit
b => count 1
c: select * from child => no rows
a: begin
a: update other set id = 12 where id = 2
b: delete from parent where i = 2 => waits
a: commit
b => error 23503
c: select * from parent => (2)
";

/// A parent that a new row replaces within the transaction is none that is gone.
const PARENT_IS_REPLACED: &str = "
s: create table parent (i int primary key, n int); create table child (p int references parent)
s: insert into parent values (1, 0), (2, 0)
a: begin
a: insert into child values (1)
b: begin
b: delete from parent where i = 2 => count 1
b: update parent set i = 2 where i = 1 => waits
a: commit
b => error 23503
b: rollback
c: select * from parent order by i => (1, 0) (2, 0)
";

/// Keys of several columns, in an order of their own, to a unique constraint.
const SEVERAL_COLUMNS: &str = "
s: create table parent (id int primary key, a int, b text, unique (b, a))
s: create table child (x int, y text, foreign key (x, y) references parent (a, b))
s: insert into parent values (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')
a: begin
a: insert into child values (1, 'one'), (2, null), (null, 'three')
b: delete from parent where id = 1 => waits
a: commit
b => error 23503
a: begin
a: insert into child values (2, 'two')
b: update parent set b = 'zwei' where id = 2 => waits
a: commit
b => error 23503
a: begin
a: insert into child values (3, 'three')
b: update parent set id = 30 where id = 3 => waits
a: commit
b => count 1
a: begin
a: delete from child where x = 3
b: delete from parent where id = 30 => waits
a: commit
b => count 1
c: select id from parent order by id => (1) (2)
";

/// One statement over many parents, one of which has a child of another transaction.
const MANY_PARENTS: &str = "
s: create table parent (i int primary key); create table child (p int references parent)
s: insert into parent select g from generate_series(1, 500) g
a: begin
a: insert into child values (250)
b: delete from parent => waits
a: commit
b => error 23503
c: select count(*) from parent => (500)
a: begin
a: delete from child
b: delete from parent => waits
a: commit
b => count 500
c: select count(*) from parent => (0)
";

/// A table that references itself.
const SELF_REFERENCE: &str = "
s: create table node (i int primary key, up int references node)
s: create table tree (i int primary key, up int references tree on delete cascade)
s: insert into node values (1, null), (2, 1); insert into tree values (1, null), (2, 1), (3, 2)
a: begin
a: insert into node values (3, 2)
b: delete from node => waits
a: commit
b => error 23503
a: begin
a: insert into tree values (4, 3)
b: delete from tree where i = 1 => waits
a: commit
b => count 1
c: select count(*) from node => (3)
c: select count(*) from tree => (0)
";

/// A chain of actions meets the other transaction at its end.
const CHAIN: &str = "
s: create table top (i int primary key)
s: create table middle (i int primary key references top on delete cascade on update cascade)
s: create table leaf (i int primary key, m int references middle on delete cascade on update cascade)
s: create table held (m int references middle)
s: insert into top values (1), (2); insert into middle values (1), (2); insert into leaf values (1, 1)
a: begin
a: insert into leaf values (2, 1)
b: delete from top where i = 1 => waits
a: commit
b => count 1
c: select * from leaf => no rows
a: begin
a: insert into held values (2)
b: update top set i = 20 where i = 2 => waits
a: commit
b => error 23503
c: select * from top => (2)
";

/// A transaction that goes back to before its child gives the parent free at its end, or at once.
const SAVEPOINTS: &str = "
s: create table parent (i int primary key); create table child (p int references parent)
s: insert into parent values (1), (2)
a: begin
a: savepoint s
a: insert into child values (1)
b: delete from parent where i = 1 => waits
a: rollback to s
b => count 1
a: insert into child values (2)
b: delete from parent where i = 2 => waits
a: commit
b => error 23503
c: select * from child => (2)
";

/// Truncating the child waits for its rows; the parent may go then.
const TRUNCATED: &str = "
s: create table parent (i int primary key); create table child (p int references parent)
s: insert into parent values (1), (2); insert into child values (1)
a: begin
a: truncate child
b: delete from parent where i = 1 => waits
a: commit
b => count 1
a: begin
a: insert into child values (2)
b: truncate parent, child => waits
a: commit
b => count 0
c: select count(*) from child => (0)
";

/// Actions in repeatable read: a child that has gone since the snapshot is none, one that has come
/// or changed is refused.
const ACTIONS_REPEATABLE: &str = "
s: create table parent (i int primary key)
s: create table child (id int primary key, p int references parent on delete cascade on update cascade, n int)
s: create table other (id int primary key, p int references parent on delete set null on update cascade)
s: insert into parent values (1), (2), (3), (4), (5)
s: insert into child values (1, 1, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0); insert into other values (1, 1), (2, 1)
b: begin isolation level repeatable read
b: select count(*) from child => (4)
a: delete from child where id = 1
a: update other set p = null where id = 1
b: delete from parent where i = 1 => count 1
b: commit
b: begin isolation level repeatable read
b: select count(*) from child => (2)
a: delete from child where id = 3
b: update parent set i = 20 where i = 2 => count 1
b: commit
b: begin isolation level repeatable read
b: select count(*) from child => (1)
a: update child set n = 1 where id = 4
b: delete from parent where i = 3 => error 40001
b: rollback
b: begin isolation level repeatable read
b: select count(*) from child => (1)
a: insert into child values (5, 4, 0)
b: update parent set i = 40 where i = 4 => error 40001
b: rollback
b: begin isolation level repeatable read
b: insert into child values (6, 5, 0)
a: begin
a: delete from child where id = 5
b: delete from parent where i = 4 => waits
a: commit
b => error 40001
b: rollback
c: select * from child => (4, 3, 1)
c: select * from other order by id => (1, null) (2, null)
c: select * from parent order by i => (3) (4) (5) (20)
";

/// Keys to one row act and are checked in the order of their creation; what an action brings about
/// comes behind them.
const ORDER: &str = "
s: create table parent (i int primary key, k int unique, up int references parent)
s: create table later (k int)
s: create table held (k int references parent (k) on delete restrict)
s: insert into parent values (1, 1, null), (2, 2, 1), (3, 3, null); insert into held values (1), (3)
s: insert into later values (3)
s: delete from parent where i = 1 => error 23503
s: alter table later add foreign key (k) references parent (k)
s: delete from parent where i = 3 => error 23001
s: alter table held drop constraint held_k_fkey
s: alter table held add foreign key (k) references parent (k) on delete restrict
s: delete from parent where i = 3 => error 23503
s: create table top (i int primary key)
s: create table middle (i int primary key references top on delete cascade)
s: create table leaf (t int references top, m int references middle on delete cascade)
s: insert into top values (1); insert into middle values (1); insert into leaf values (1, 1)
s: delete from top => error 23503
s: alter table leaf drop constraint leaf_t_fkey
s: delete from top => count 1
s: select count(*) from leaf => (0)
";

#[test]
fn children_wait_for_their_parent() {
    Stage::open().play(&[
        ("read committed", CHILD_WAITS),
        ("comes again", PARENT_COMES_AGAIN),
        ("repeatable read", CHILD_WAITS_REPEATABLE),
        ("replaced", PARENT_IS_REPLACED),
        ("savepoints", SAVEPOINTS),
        ("truncated", TRUNCATED),
    ]);
}

#[test]
fn a_parents_change_follows_its_children() {
    Stage::open().play(&[
        ("elsewhere", CHILD_GOES_ELSEWHERE),
        ("moved", CHILD_MOVES),
        ("columns", SEVERAL_COLUMNS),
        ("many", MANY_PARENTS),
        ("self", SELF_REFERENCE),
        ("chain", CHAIN),
        ("repeatable read", ACTIONS_REPEATABLE),
        ("order", ORDER),
    ]);
}
