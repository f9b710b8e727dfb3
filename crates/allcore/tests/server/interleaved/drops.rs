//! DROP beside an uncommitted DROP of what depends on the same object: it waits, and is refused
//! only where that stays.

use super::script::Stage;

/// A parent's DROP, in the forms that a foreign key forbids, beside the DROP of that key in another
/// form.
const A_KEY_GOES: &str = "
s: create table parent (i int primary key); create table child (i int, p int references parent)
a: begin
a: KEY
b: PARENT => waits
a: commit
b => count 0
";
const A_KEY_STAYS: &str = "
s: create table parent (i int primary key); create table child (i int, p int references parent)
a: begin
a: KEY
b: PARENT => waits
a: rollback
b => error 2BP01
";

const KEYS: [&str; 3] =
    ["drop table child", "alter table child drop constraint child_p_fkey", "alter table child drop column p"];
const PARENTS: [&str; 3] = [
    "drop table parent",
    "alter table parent drop constraint parent_pkey",
    "alter table parent drop column i",
];

/// Others write the parent meanwhile. The session that dropped the key drops the parent before the
/// session that waits for it.
const THE_PARENT_IS_USED: &str = "
s: create table parent (i int primary key); create table child (p int references parent)
a: begin
a: drop table child
b: drop table parent => waits
a: drop table parent
a: commit
b => error 42P01
";

const A_SEQUENCE: &str = "
s: create sequence q; create table t (i int default nextval('q'), j int default nextval('q'))
a: begin
a: alter table t alter i drop default, alter j drop default
b: drop sequence q => waits
a: rollback
b => error 2BP01
a: begin
a: alter table t alter i drop default, alter j drop default
b: drop sequence q => waits
a: commit
b => count 0
s: create sequence q; alter table t alter i set default nextval('q')
a: begin
a: drop table t
b: drop sequence q => waits
a: commit
b => count 0
";

const A_SCHEMA: &str = "
s: create schema s; create table s.t (i int); create sequence s.q
a: begin
a: drop table s.t
a: drop sequence s.q
b: drop schema s => waits
a: rollback
b => error 2BP01
a: begin
a: drop table s.t
b: drop schema s => waits
a: commit
b => error 2BP01
a: begin
a: drop sequence s.q
b: drop schema s => waits
a: commit
b => count 0
";

#[test]
fn a_drop_waits_for_the_drop_of_what_depends_on_it() {
    let mut scripts = Vec::new();
    for (at, key) in KEYS.iter().enumerate() {
        for (parent_at, parent) in PARENTS.iter().enumerate() {
            for (end, script) in [("goes", A_KEY_GOES), ("stays", A_KEY_STAYS)] {
                let script = script.replace("KEY", key).replace("PARENT", parent);
                scripts.push((format!("key {at} {parent_at} {end}"), script));
            }
        }
    }
    let stage = Stage::open();
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(name, script)| (&name[..], &script[..])).collect();
    stage.play(&scripts);
    stage.play(&[("used", THE_PARENT_IS_USED), ("sequence", A_SEQUENCE), ("schema", A_SCHEMA)]);
}
