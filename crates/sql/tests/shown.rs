//! A row that a client sees is on disk, within a transaction too. Alone in its process: a stop
//! point holds the log back.

mod common;

use std::time::{Duration, Instant};

use crate::common::{Folder, LONG, close_sound, ended, run, waits};
use runtime::stop::{self, Action};

/// The time within which a session would wrongly answer.
const SOON: Duration = Duration::from_millis(200);

#[test]
fn nothing_is_shown_that_a_crash_could_make_untrue() {
    const POINT: &str = "log.flush.before_write";
    let folder = Folder::new("shown");
    let database = folder.open();
    let mut a = database.session("postgres", 0).expect("a session");
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    for (change, asked, code, shows) in [
        ("UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1 RETURNING n", "00000", true),
        ("UPDATE t SET n = n + 1", "SELECT n FROM t FOR UPDATE", "00000", true),
        ("UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1; SELECT n FROM t", "00000", true),
        ("UPDATE t SET n = n + 1", "DECLARE c CURSOR FOR SELECT n FROM t FOR UPDATE; FETCH c", "00000", true),
        ("UPDATE t SET n = n + 1", "COPY (SELECT n FROM t FOR UPDATE) TO STDOUT", "00000", true),
        ("INSERT INTO t VALUES (2, 5)", "INSERT INTO t VALUES (2, 6)", "23505", true),
        ("DELETE FROM t WHERE id = 2", "SELECT n FROM t WHERE id = 2 FOR UPDATE", "00000", true),
        // The update returns nothing of the row and does not wait, so the next session that wants
        // the row need not wait either.
        ("UPDATE t SET n = n + 1", "UPDATE t SET n = n + 1", "00000", false),
        (
            "UPDATE t SET n = n + 1",
            "SET LOCAL synchronous_commit = off; SELECT n FROM t FOR UPDATE",
            "00000",
            false,
        ),
    ] {
        run(&mut a, &format!("BEGIN; {change}"));
        let waiter = waits(&database, &format!("BEGIN; {asked}"));
        stop::arm(POINT, Action::Park, None);
        let committer = std::thread::spawn(move || {
            run(&mut a, "COMMIT");
            a
        });
        let start = Instant::now();
        while stop::hits(POINT) == 0 || start.elapsed() < SOON {
            assert!(start.elapsed() < LONG, "the commit comes to the log");
            std::thread::sleep(Duration::from_millis(1));
        }
        let until = if shows { SOON } else { LONG };
        while !waiter.is_finished() && start.elapsed() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waiter.is_finished(), !shows, "{asked}");
        stop::release(POINT);
        assert_eq!(ended(waiter), code, "{asked}");
        a = committer.join().expect("the commit ends");
        stop::clear();
    }
    drop(a);
    close_sound(&folder, database);
}
