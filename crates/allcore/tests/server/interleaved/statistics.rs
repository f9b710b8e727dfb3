//! CREATE and DROP STATISTICS beside other sessions: readers and writers pass, ANALYZE and other
//! changes of the table's statistics wait.

use super::script::Stage;

const BESIDE_READERS: &str = "
s: create table t (a int, b int); insert into t values (1, 1); create statistics st on a, b from t; analyze t
a: begin
a: drop statistics st
b: select a from t where a = 1 and b = 1 => (1)
b: insert into t values (2, 2)
b: analyze t => waits
a: rollback
b => count 0
a: begin
a: create statistics on b, a from t
b: update t set b = 3 where a = 2 and b = 2 => count 1
b: create statistics on a, b from t => waits
a: commit
b => count 0
";

const DROPPED_TWICE: &str = "
s: create table t (a int, b int); create statistics st on a, b from t
a: begin
a: drop statistics st
b: drop statistics st => waits
a: rollback
b => count 0
a: drop statistics st => error 42704
s: create statistics st on a, b from t
a: begin
a: drop statistics st
b: drop statistics st => waits
a: commit
b => error 42704
";

const ONE_NAME: &str = "
s: create table t (a int, b int); create table u (a int, b int); create table st (a int)
a: begin
a: create statistics st on a, b from t
b: create statistics st on a, b from u => waits
a: rollback
b => count 0
s: drop statistics st
a: begin
a: create statistics st on a, b from t
b: create statistics st on a, b from u => waits
a: commit
b => error 23505
b: create statistics st on a, b from u => error 42710
";

const WITH_ITS_TABLE: &str = "
s: create table t (a int, b int)
a: begin
a: create statistics st on a, b from t
b: drop table t => waits
a: commit
b => count 0
b: select 1 from pg_statistic_ext where pg_statistics_obj_is_visible(oid) => no rows
";

#[test]
fn changes_of_statistics_wait_for_each_other() {
    Stage::open().play(&[
        ("beside readers", BESIDE_READERS),
        ("dropped twice", DROPPED_TWICE),
        ("one name", ONE_NAME),
        ("with its table", WITH_ITS_TABLE),
    ]);
}
