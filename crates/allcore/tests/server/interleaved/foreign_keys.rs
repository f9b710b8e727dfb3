//! A row and the rows that reference it, changed at the same time: neither is lost, in either
//! order.

use super::script::Stage;

/// The action of a foreign key, with the outcome of the parent's change and what is left of the
/// child.
struct Action {
    clause: &'static str,
    outcome: &'static str,
    child: &'static str,
    /// The outcome in repeatable read, where the child came after the snapshot.
    repeatable: &'static str,
}

const ON_DELETE: [Action; 5] = [
    Action { clause: "", outcome: "error 23503", child: "(1, 1)", repeatable: "error 23503" },
    Action {
        clause: "on delete restrict",
        outcome: "error 23001",
        child: "(1, 1)",
        repeatable: "error 23001",
    },
    Action { clause: "on delete cascade", outcome: "count 1", child: "no rows", repeatable: "error 40001" },
    Action {
        clause: "on delete set null",
        outcome: "count 1",
        child: "(1, null)",
        repeatable: "error 40001",
    },
    Action {
        clause: "on delete set default",
        outcome: "count 1",
        child: "(1, 0)",
        repeatable: "error 40001",
    },
];

const ON_UPDATE: [Action; 5] = [
    Action { clause: "", outcome: "error 23503", child: "(1, 1)", repeatable: "error 23503" },
    Action {
        clause: "on update restrict",
        outcome: "error 23001",
        child: "(1, 1)",
        repeatable: "error 23001",
    },
    Action { clause: "on update cascade", outcome: "count 1", child: "(1, 5)", repeatable: "error 40001" },
    Action {
        clause: "on update set null",
        outcome: "count 1",
        child: "(1, null)",
        repeatable: "error 40001",
    },
    Action {
        clause: "on update set default",
        outcome: "count 1",
        child: "(1, 0)",
        repeatable: "error 40001",
    },
];

const DELETE: &str = "delete from parent where i = 1";
const UPDATE: &str = "update parent set i = 5 where i = 1";

/// Tables for the scripts below: CLAUSE is the action, INDEX what else the child has.
const TABLES: &str = "
s: create table parent (i int primary key, n int)
s: create table child (id int primary key, p int default 0 references parent CLAUSE)
s: INDEX
s: insert into parent values (0, 0), (1, 0), (2, 0)
";

/// The child's row is inserted and not yet committed when the parent's row is changed: CHANGE.
const INSERTED_COMMITTED: &str = "
a: begin
a: insert into child values (1, 1)
b: CHANGE => waits
a: commit
b => OUTCOME
c: select * from child => CHILD
";
const INSERTED_ROLLED_BACK: &str = "
a: begin
a: insert into child values (1, 1)
b: CHANGE => waits
a: rollback
b => count 1
c: select * from child => no rows
";
const INSERTED_REPEATABLE: &str = "
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: begin
a: insert into child values (1, 1)
b: CHANGE => waits
a: commit
b => REPEATABLE
b: rollback
c: select * from child => (1, 1)
";
/// The same without a wait: the child is committed after the snapshot.
const INSERTED_BEFORE_REPEATABLE: &str = "
b: begin isolation level repeatable read
b: select count(*) from child => (0)
a: insert into child values (1, 1)
b: CHANGE => REPEATABLE
b: rollback
c: select * from child => (1, 1)
";
/// The child's row is deleted and not yet committed.
const DELETED_COMMITTED: &str = "
s: insert into child values (1, 1)
a: begin
a: delete from child
b: CHANGE => waits
a: commit
b => count 1
c: select * from child => no rows
";
const DELETED_ROLLED_BACK: &str = "
s: insert into child values (1, 1)
a: begin
a: delete from child
b: CHANGE => waits
a: rollback
b => OUTCOME
c: select * from child => CHILD
";
const DELETED_REPEATABLE: &str = "
s: insert into child values (1, 1)
b: begin isolation level repeatable read
b: select count(*) from child => (1)
a: begin
a: delete from child
b: CHANGE => waits
a: commit
b => error 40001
b: rollback
c: select * from parent where i = 1 => (1, 0)
";
/// The child's row is locked and changed, but not in the key.
const KEY_SHARED: &str = "
s: insert into child values (1, 1)
a: begin
a: select * from child for key share => (1, 1)
b: begin
b: CHANGE => waits
a: commit
b => OUTCOME
b: commit
c: select * from child => CHILD
";

fn scripts(parts: &[(&str, &str)], actions: &[Action], change: &str, index: &str) -> Vec<(String, String)> {
    let script = |(name, part): &(&str, &str), action: &Action| {
        let text = format!("{TABLES}{part}")
            .replace("CLAUSE", action.clause)
            .replace("INDEX", index)
            .replace("CHANGE", change)
            .replace("OUTCOME", action.outcome)
            .replace("REPEATABLE", action.repeatable)
            .replace("CHILD", action.child);
        (format!("{name}, {change} {} {index}", action.clause), text)
    };
    parts.iter().flat_map(|part| actions.iter().map(|action| script(part, action))).collect()
}

fn play(stage: &Stage, scripts: &[(String, String)]) {
    let borrowed: Vec<(&str, &str)> =
        scripts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    stage.play(&borrowed);
}

const INSERTED: [(&str, &str); 4] = [
    ("inserted, committed", INSERTED_COMMITTED),
    ("inserted, rolled back", INSERTED_ROLLED_BACK),
    ("inserted, repeatable read", INSERTED_REPEATABLE),
    ("inserted before, repeatable read", INSERTED_BEFORE_REPEATABLE),
];

const DELETED: [(&str, &str); 3] = [
    ("deleted, committed", DELETED_COMMITTED),
    ("deleted, rolled back", DELETED_ROLLED_BACK),
    ("deleted, repeatable read", DELETED_REPEATABLE),
];

#[test]
fn a_parents_change_waits_for_a_child_that_was_inserted() {
    let stage = Stage::open();
    for index in ["select 1", "create index on child (p)", "create unique index on child (p)"] {
        play(&stage, &scripts(&INSERTED, &ON_DELETE, DELETE, index));
        play(&stage, &scripts(&INSERTED, &ON_UPDATE, UPDATE, index));
    }
}

#[test]
fn a_parents_change_waits_for_a_child_that_was_deleted() {
    let stage = Stage::open();
    for index in ["select 1", "create index on child (p)", "create unique index on child (p)"] {
        play(&stage, &scripts(&DELETED, &ON_DELETE, DELETE, index));
        play(&stage, &scripts(&DELETED, &ON_UPDATE, UPDATE, index));
    }
}

#[test]
fn a_child_that_is_locked_holds_off_actions_and_no_checks() {
    let stage = Stage::open();
    let shared = [("locked", KEY_SHARED)];
    play(&stage, &scripts(&shared, &ON_DELETE[2..3], DELETE, "select 1"));
}

/// A table that no key makes a statement look into is not waited for.
const PASSED_BY: &str = "
s: create table p (id int primary key, k int unique, n int)
s: create table c (id int primary key, p int references p on delete cascade, k int references p (k)
  on update set null, n int)
s: create table d (c int references c on delete restrict)
s: insert into p values (1, 10, 0), (2, 20, 0), (3, 30, 0)
s: insert into c values (1, 1, 10, 0), (2, 2, null, 0)
a: begin
a: lock table c in access exclusive mode
b: update p set n = n + 1 where id = 1 => count 1
b: insert into p values (1, 10, 5) on conflict (id) do update set n = 5 => count 1
b: insert into p values (1, 10, 5) on conflict do nothing => count 0
b: insert into p values (4, 40, 0) => count 1
b: delete from p where id = 4 => waits
a: commit
b => count 1
a: begin
a: lock table p in access exclusive mode
b: update c set n = 1 where id = 1 => count 1
b: update d set c = 1 where false => count 0
b: delete from c where id = 2 => count 1
b: update c set p = 3 where id = 1 => waits
a: commit
b => count 1
a: begin
a: lock table d in access exclusive mode
b: update p set k = 11 where id = 1 => count 1
b: update c set p = 3 where id = 1 => count 1
b: delete from p where id = 3 => waits
a: commit
b => count 1
s: select id, p, k from c => no rows
";

#[test]
fn changes_that_no_key_reads_wait_for_no_other_table() {
    let stage = Stage::open();
    stage.play(&[("passed by", PASSED_BY)]);
}
