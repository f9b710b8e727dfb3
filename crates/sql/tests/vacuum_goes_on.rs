//! A vacuum that another session blocks goes on where it was. Alone in its process: a stop point
//! counts steps.

mod common;

use std::time::{Duration, Instant};

use crate::common::{Folder, LONG, close_sound, rows, run, until_used, used};
use runtime::stop::{self, Action};
use sql::database::Options;

fn until(what: &str, condition: &mut dyn FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_vacuum_goes_on_where_it_was() {
    const STEPPED: &str = "sql.vacuum.stepped";
    const LOCKED: &str = "sql.vacuum.locked";
    let folder = Folder::new("vacuum-goes-on");
    let options = Options { autovacuum_pause: Duration::from_millis(5), ..Options::default() };
    let database = folder.open_with(options);
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, n int)");
    run(&mut s, "INSERT INTO t SELECT g, 0 FROM generate_series(1, 80000) g");
    let whole = used(&database);
    // The first vacuum runs to its end, so that the next one knows the tree's size.
    run(
        &mut s,
        "INSERT INTO t SELECT g, 0 FROM generate_series(80001, 120000) g; DELETE FROM t WHERE id > 80000",
    );
    until_used(&database, whole + 20);
    run(&mut s, "CREATE TABLE d (id int PRIMARY KEY); INSERT INTO d VALUES (1)");
    let full = used(&database);
    // The front half, ten steps, has no deleted rows. The vacuum begins only when the deletion is
    // committed.
    stop::arm(STEPPED, Action::Park, Some(10));
    stop::arm(LOCKED, Action::Yield, None);
    run(&mut s, "BEGIN; ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t");
    run(&mut s, "DELETE FROM t WHERE id > 40000");
    until("the vacuum comes to the locked table", &mut || stop::hits(LOCKED) > 0);
    run(&mut s, "COMMIT");
    until("the vacuum comes half way", &mut || stop::hits(STEPPED) == 10);
    // Once VACUUM removes this entry, no snapshot sees the rows deleted before it.
    run(&mut s, "DELETE FROM d");
    until("nobody sees what is deleted", &mut || {
        let told = run(&mut s, "VACUUM VERBOSE d").notices;
        told.iter().any(|notice| notice.message.ends_with(": 1 dead entries removed"))
    });
    // Another transaction holds the table until the vacuum, and one more round, have found it
    // locked.
    run(&mut s, "BEGIN; ALTER TABLE t RENAME TO u");
    let before = stop::hits(LOCKED);
    stop::release(STEPPED);
    until("another round comes to the locked table", &mut || stop::hits(LOCKED) > before + 1);
    assert_eq!(stop::hits(STEPPED), 10);
    run(&mut s, "ROLLBACK");
    until_used(&database, full - full / 4);
    let steps = stop::hits(STEPPED) - 10;
    assert!(steps <= 14, "{steps} steps for the half that was left");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM t"), ["40000"]);
    stop::clear();
    drop(s);
    close_sound(&folder, database);
}
