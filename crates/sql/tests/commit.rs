//! A commit that fails leaves nothing of its transaction: neither rows nor definitions.

mod common;

use crate::common::{Folder, fails, rows, run};
use runtime::stop;

#[test]
fn a_commit_that_fails_is_a_rollback() {
    let folder = Folder::new("commit-fails");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let mut other = database.session("postgres", 1).expect("a session");
    run(
        &mut s,
        "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE gone (a int); INSERT INTO t VALUES (1, 1)",
    );
    for failing in ["INSERT INTO t VALUES (2, 2)", "BEGIN; UPDATE t SET b = 2; COMMIT"] {
        stop::arm_all("txn.commit.room=fail:28").expect("armed");
        fails(&mut s, failing, "53100");
        stop::clear();
        assert_eq!(s.status(), b'I');
        run(&mut s, "INSERT INTO t VALUES (3, 3)");
        run(&mut other, "DELETE FROM t WHERE a = 3");
        assert_eq!(rows(&mut other, "SELECT * FROM t"), ["1|1"]);
    }
    run(&mut s, "BEGIN; CREATE TABLE made (a int); DROP TABLE gone; ALTER TABLE t DROP COLUMN b");
    stop::arm_all("txn.commit.room=fail:28").expect("armed");
    fails(&mut s, "COMMIT", "53100");
    stop::clear();
    for session in [&mut s, &mut other] {
        assert_eq!(rows(session, "SELECT a, b FROM t"), ["1|1"]);
        assert_eq!(rows(session, "SELECT count(*) FROM gone"), ["0"]);
        fails(session, "SELECT * FROM made", "42P01");
    }
    drop((s, other));
    database.shutdown().expect("closes");
}
