//! A parent goes, moves or comes again within one transaction, with savepoints, while a child
//! arrives. No child is left without a parent, and no child is refused whose parent stays.

use super::script::Stage;

/// A parent with the columns `a` and `x`, and a child that references `a`.
const TABLES: [(&str, &str); 4] = [
    ("create table p (a int primary key, x int)", "create table c (id int primary key, a int references p)"),
    (
        "create table p (k int primary key generated always as identity, a int unique, x int)",
        "create table c (id int primary key, a int references p (a) on delete cascade on update cascade)",
    ),
    ("create table p (a int unique, x int)", "create table c (id int primary key, a int references p (a))"),
    (
        "create table p (a int, b int default 7, x int, primary key (a, b))",
        "create table c (id int primary key, a int, b int default 7, foreign key (a, b) references p)",
    ),
];

/// A change of the parent before a savepoint and one behind it.
struct Change {
    first: &'static str,
    second: &'static str,
    /// The end of the child's INSERT when both are committed: the parent is still the same row, or
    /// it is not.
    committed: &'static str,
}

const CHANGES: [Change; 4] = [
    Change {
        first: "delete from p where a = 1",
        second: "insert into p (a, x) values (1, 2)",
        committed: "error 23503",
    },
    Change {
        first: "update p set a = 2 where a = 1",
        second: "update p set a = 1 where a = 2",
        committed: "count 1",
    },
    Change {
        first: "delete from p where a = 1",
        second: "update p set a = 1 where a = 9",
        committed: "error 23503",
    },
    Change {
        first: "delete from p where a = 1",
        second: "insert into p (a, x) values (1, 2); delete from p where a = 1",
        committed: "error 23503",
    },
];

/// The two transactions. COMMITTED is the outcome when both changes are committed, LOST when only
/// the first is.
const PARTS: [(&str, &str); 5] = [
    (
        "committed",
        "
a: FIRST
a: savepoint s
a: SECOND
b: insert into c (id, a) values (1, 1) => waits
a: release s
a: commit
b => COMMITTED
",
    ),
    (
        "the child waits from the first change",
        "
a: FIRST
b: insert into c (id, a) values (1, 1) => waits
a: savepoint s
a: SECOND
a: commit
b => COMMITTED
",
    ),
    (
        "back to the savepoint",
        "
a: FIRST
a: savepoint s
a: SECOND
b: insert into c (id, a) values (1, 1) => waits
a: rollback to s
a: commit
b => LOST
",
    ),
    (
        "back and again",
        "
a: FIRST
a: savepoint s
a: SECOND
b: insert into c (id, a) values (1, 1) => waits
a: rollback to s
a: SECOND
a: commit
b => COMMITTED
",
    ),
    (
        "all rolled back",
        "
a: FIRST
a: savepoint s
a: SECOND
b: insert into c (id, a) values (1, 1) => waits
a: rollback to s
a: rollback
b => count 1
",
    ),
];

/// The child's transaction: its beginning and its end.
const READ_COMMITTED: (&str, &str) = ("", "");
const BLOCK: (&str, &str) = ("b: begin\n", "b: rollback\n");
const REPEATABLE_READ: (&str, &str) =
    ("b: begin isolation level repeatable read\nb: select count(*) from c => (0)\n", "b: commit\n");

const ORPHANS: &str = "select count(*) from c where not exists (select from p where p.a = c.a)";

fn play((begin, end): (&str, &str), repeatable: bool) {
    let stage = Stage::open();
    for (parent, child) in TABLES {
        let mut scripts = Vec::new();
        for (part, text) in PARTS {
            for Change { first, second, committed } in CHANGES {
                let (committed, lost) = match repeatable {
                    false => (committed, "error 23503"),
                    true => ("error 40001", "error 40001"),
                };
                let text = text
                    .replace("FIRST", first)
                    .replace("SECOND", second)
                    .replace("COMMITTED", committed)
                    .replace("LOST", lost);
                let script = format!(
                    "s: {parent}\ns: {child}\ns: insert into p (a, x) values (1, 1), (9, 9)\n\
                     {begin}a: begin{text}{end}s: {ORPHANS} => (0)\n"
                );
                scripts.push((format!("{parent}, {part}: {first}; {second}"), script));
            }
        }
        let scripts: Vec<_> = scripts.iter().map(|(name, text)| (&name[..], &text[..])).collect();
        stage.play(&scripts);
    }
}

#[test]
fn a_child_finds_its_parent_as_the_other_transaction_leaves_it() {
    play(READ_COMMITTED, false);
}

#[test]
fn a_child_in_a_block_finds_its_parent_as_the_other_transaction_leaves_it() {
    play(BLOCK, false);
}

#[test]
fn a_child_in_repeatable_read_refuses_a_parent_whose_key_was_changed() {
    play(REPEATABLE_READ, true);
}

/// A parent that is found by another key than its primary one, which changes.
const MOVES: &str = "
s: create table p (k int primary key, a int unique); create table c (id int primary key, a int references p (a))
s: insert into p values (1, 1)
a: begin
a: update p set k = 5
b: insert into c values (1, 1) => waits
a: commit
b => count 1
b: begin isolation level repeatable read
b: select * from c => (1, 1)
a: update p set k = 6
b: insert into c values (2, 1) => error 40001
b: rollback
";

/// A parent that is locked, then deleted and inserted again, is another row.
const LOCKED_BEFORE: &str = "
s: create table p (a int primary key, x int); create table c (id int primary key, a int references p)
s: insert into p values (1, 1)
a: begin
a: select * from p for update => (1, 1)
b: insert into c values (1, 1) => waits
a: delete from p
a: insert into p values (1, 2)
a: commit
b => error 23503
";

#[test]
fn a_child_follows_its_parent() {
    Stage::open().play(&[("moves", MOVES), ("locked before", LOCKED_BEFORE)]);
}
