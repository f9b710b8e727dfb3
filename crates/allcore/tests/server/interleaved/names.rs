//! Two transactions give one name to two objects: the second waits for the first, and fails if that
//! one commits.

use super::script::Stage;

/// FIRST and SECOND give one name.
const CLASH: &str = "
s: create table one (a int); create table two (a int); create sequence three
a: begin
a: FIRST
b: SECOND => waits
a: rollback
b => count 0
";
const CLASH_COMMITTED: &str = "
s: create table one (a int); create table two (a int); create sequence three
a: begin
a: FIRST
b: begin
b: savepoint s
b: SECOND => waits
a: commit
b => error 23505
b: rollback to s
b: SECOND => error 42P07
b: rollback
";
const BACK_TO_SAVEPOINT: &str = "
s: create table one (a int); create table two (a int); create sequence three
a: begin
a: savepoint s
a: FIRST
b: SECOND => waits
a: rollback to s
b => count 0
a: FIRST => error 42P07
a: rollback
";

const NAMES: [(&str, &str); 6] = [
    ("create table name (a int)", "create table name (b int)"),
    ("create table name (a int primary key)", "create sequence name"),
    ("create index name on one (a)", "create index name on two (a)"),
    ("alter table one rename to name", "alter table two rename to name"),
    ("alter table one add constraint name primary key (a)", "create table name (a int)"),
    ("alter sequence three rename to name", "alter table two rename to name"),
];

#[test]
fn a_name_is_waited_for() {
    let parts = [CLASH, CLASH_COMMITTED, BACK_TO_SAVEPOINT];
    let scripts: Vec<(String, String)> = NAMES
        .iter()
        .flat_map(|(first, second)| {
            let script = move |part: &str| part.replace("FIRST", first).replace("SECOND", second);
            parts.map(|part| (format!("{first}, {second}"), script(part)))
        })
        .collect();
    let scripts: Vec<_> = scripts.iter().map(|(name, text)| (&name[..], &text[..])).collect();
    Stage::open().play(&scripts);
}

/// A name that a running transaction gives up is not free yet; one that nobody has claimed is.
const GIVEN_UP: &str = "
s: create table name (a int)
a: begin
a: drop table name
a: create table name (b int)
a: alter table name rename to other
a: alter table other rename to name
b: create table third (a int)
b: create table if not exists third (a int) => count 0
a: commit
b: select b from name => no rows
a: begin
a: create table fourth (a int)
b: create table if not exists fourth (a int) => waits
a: commit
b => error 23505
";

#[test]
fn a_name_changes_hands_when_its_transaction_ends() {
    Stage::open().play(&[("given up", GIVEN_UP)]);
}
