//! Snapshots beside the making of indexes and the rewriting of tables.

mod common;

use std::sync::Mutex;

use crate::common::{Folder, close_sound, fails, rows, run, until_used, used};
use runtime::stop;

/// Stop points belong to the process, so one test runs at a time.
static STOP_POINTS: Mutex<()> = Mutex::new(());

const FIVES: &str = "SELECT count(*) FROM t WHERE x = 5";

#[test]
fn an_old_snapshot_reads_no_newer_tree() {
    let folder = Folder::new("age");
    let database = folder.open();
    let mut old = database.session("postgres", 0).expect("a session");
    let mut s = database.session("postgres", 1).expect("a session");
    run(&mut s, "CREATE TABLE t (id int NOT NULL, x int); CREATE TABLE other (a int)");
    run(&mut s, "INSERT INTO t SELECT g, g % 20 FROM generate_series(1, 1000) g");
    run(&mut s, "INSERT INTO other VALUES (1)");
    for change in
        ["CREATE INDEX ON t (x)", "ALTER TABLE t ADD PRIMARY KEY (id)", "ALTER TABLE t ADD COLUMN y text"]
    {
        run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(&mut old, FIVES), ["50"]);
        // The reader's lock would keep a rewrite waiting.
        run(&mut old, "COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(rows(&mut old, "SELECT * FROM other"), ["1"]);
        run(&mut s, change);
        assert_eq!(rows(&mut s, FIVES), ["50"]);
        assert_eq!(rows(&mut old, "SELECT * FROM other"), ["1"], "other tables are no concern");
        if change.contains("COLUMN") {
            assert_eq!(rows(&mut old, "SELECT count(*) FROM t WHERE id <= 1000"), ["1000"]);
        } else {
            fails(&mut old, FIVES, "40001");
        }
        run(&mut old, "ROLLBACK");
        assert_eq!(rows(&mut old, FIVES), ["50"]);
    }
    // Its own index serves a transaction.
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(rows(&mut old, FIVES), ["50"]);
    run(&mut old, "CREATE INDEX mine ON t (x, id)");
    assert_eq!(rows(&mut old, FIVES), ["50"]);
    run(&mut old, "COMMIT");
    drop((old, s));
    database.shutdown().expect("closes");
}

#[test]
fn an_index_serves_nobody_before_its_commit_is_seen() {
    let _alone = STOP_POINTS.lock().expect("no other test failed");
    let folder = Folder::new("age-commit");
    let database = folder.open();
    let mut reader = database.session("postgres", 0).expect("a session");
    let mut s = database.session("postgres", 1).expect("a session");
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut s, "INSERT INTO t SELECT g, g % 20 FROM generate_series(1, 1000) g");
    stop::arm_all("txn.commit.before_publish=sleep:300").expect("armed");
    std::thread::scope(|scope| {
        let made = scope.spawn(|| run(&mut s, "CREATE INDEX ON t (x)"));
        let mut asked = 0;
        while !made.is_finished() {
            assert_eq!(rows(&mut reader, FIVES), ["50"]);
            asked += 1;
        }
        assert!(asked > 0, "asked while the index was made");
        assert!(stop::hits("txn.commit.before_publish") > 0, "its commits were held up");
    });
    stop::clear();
    drop((reader, s));
    database.shutdown().expect("closes");
}

#[test]
fn a_tree_dropped_while_its_creation_is_settled_leaves_no_page_behind() {
    const POINT: &str = "sql.tree.maintenance";
    let _alone = STOP_POINTS.lock().expect("no other test failed");
    let folder = Folder::new("age-dropped");
    let database = folder.open();
    let mut one = database.session("postgres", 0).expect("a session");
    let mut two = database.session("postgres", 1).expect("a session");
    let before = used(&database);
    stop::arm(POINT, stop::Action::Park, Some(1));
    run(&mut one, "CREATE TABLE t (a int PRIMARY KEY)");
    while stop::hits(POINT) == 0 {
        std::thread::yield_now();
    }
    run(&mut two, "DROP TABLE t");
    stop::release(POINT);
    until_used(&database, before);
    stop::clear();
    drop((one, two));
    close_sound(&folder, database);
}
