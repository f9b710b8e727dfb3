//! Definitions that change beside each other, and transactions with definitions that end in every
//! way. No tree is lost, none is freed twice, and indexes hold all rows.

use std::time::{Duration, Instant};

use crate::common::{Folder, LONG, close_sound, fails, rows, run, until_used, used};
use sql::database::{Database, Options};
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

#[test]
fn an_unfinished_transaction_goes_with_its_session() {
    let folder = Folder::new("definitions-gone");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE kept (id int PRIMARY KEY, body text)");
    run(&mut s, "INSERT INTO kept SELECT g, repeat('k', 100) FROM generate_series(1, 1000) g");
    let before = used(&database);
    for open in ["BEGIN", "BEGIN; SAVEPOINT a", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
        let mut gone = session(&database, 1);
        run(&mut gone, open);
        run(&mut gone, "CREATE TABLE t (id int PRIMARY KEY, body text); CREATE INDEX ON t (body)");
        run(&mut gone, "INSERT INTO t SELECT g, repeat('x', 100) || g FROM generate_series(1, 20000) g");
        run(&mut gone, "UPDATE t SET body = 'y' || id WHERE id % 10 = 0; TRUNCATE kept; DROP TABLE kept");
        assert!(used(&database) > before + 400);
        drop(gone);
        until_used(&database, before + 10);
        assert_eq!(rows(&mut s, "SELECT count(*), min(length(body)) FROM kept"), ["1000|100"]);
    }
    // One session failed; the failure of the other one reached no client.
    let mut gone = session(&database, 1);
    run(&mut gone, "BEGIN; CREATE TABLE t AS SELECT g FROM generate_series(1, 100000) g");
    fails(&mut gone, "SELECT 1/0", "22012");
    assert!(used(&database) > before + 100);
    drop(gone);
    until_used(&database, before + 10);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn indexes_made_at_the_same_time_are_all_there() {
    let folder = Folder::new("definitions-indexes");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, n int, m int)");
    run(&mut s, "INSERT INTO t SELECT g, g, g FROM generate_series(1, 2000) g");
    for round in 0..40 {
        let makers: Vec<_> = (0..4)
            .map(|maker| {
                let database = database.clone();
                std::thread::spawn(move || {
                    let mut s = session(&database, maker % 2);
                    run(&mut s, &format!("CREATE INDEX i{round}_{maker} ON t (n, m)"));
                })
            })
            .collect();
        makers.into_iter().for_each(|maker| maker.join().expect("an index"));
        let indexes = format!("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'i{round}\\_%'");
        assert_eq!(rows(&mut s, &indexes), ["4"]);
        for maker in 0..4 {
            run(&mut s, &format!("DROP INDEX i{round}_{maker}"));
        }
    }
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn an_old_snapshot_makes_no_trees_and_no_constraints() {
    let folder = Folder::new("definitions-snapshot");
    let database = folder.open();
    let (mut s, mut old) = (session(&database, 0), session(&database, 1));
    let changes = [
        "CREATE INDEX ON t (n)",
        "CREATE UNIQUE INDEX ON t (n)",
        "ALTER TABLE t ADD UNIQUE (n)",
        "ALTER TABLE t ADD COLUMN c float8 DEFAULT random()",
        "ALTER TABLE t ALTER COLUMN n TYPE int8",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t ADD CHECK (n < 50)",
        "ALTER TABLE t ALTER COLUMN n SET NOT NULL",
        "ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES p",
    ];
    for change in changes {
        run(
            &mut s,
            "CREATE TABLE p AS SELECT g AS id FROM generate_series(1, 10) g; ALTER TABLE p ADD PRIMARY KEY (id)",
        );
        run(
            &mut s,
            "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        );
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
        for other in
            ["INSERT INTO t VALUES (4, 4)", "UPDATE t SET n = 10 WHERE id = 1", "DELETE FROM t WHERE id = 2"]
        {
            run(&mut old, begin);
            rows(&mut old, "SELECT count(*) FROM t");
            run(&mut s, other);
            fails(&mut old, change, "40001");
            run(&mut old, "ROLLBACK");
        }
        run(&mut old, begin);
        assert_eq!(rows(&mut old, "SELECT count(*) FROM t"), ["3"]);
        run(&mut old, change);
        assert_eq!(rows(&mut old, "SELECT id, n FROM t ORDER BY id"), ["1|10", "3|3", "4|4"], "{change}");
        run(&mut old, "COMMIT");
        run(&mut s, "SET enable_seqscan = off");
        assert_eq!(rows(&mut s, "SELECT id FROM t WHERE n = 10"), ["1"], "{change}");
        run(&mut s, "DROP TABLE t, p");
    }
    drop((s, old));
    close_sound(&folder, database);
}

#[test]
fn a_table_of_a_query_by_an_old_snapshot_is_refused_new_trees() {
    let folder = Folder::new("definitions-query");
    let database = folder.open();
    let (mut s, mut old) = (session(&database, 0), session(&database, 1));
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)");
    run(&mut s, "CREATE TABLE other (id int)");
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM other");
    run(&mut s, "ALTER TABLE t ALTER COLUMN n TYPE int8");
    fails(&mut old, "CREATE TABLE u AS SELECT * FROM t", "40001");
    run(&mut old, "ROLLBACK; CREATE TABLE u AS SELECT * FROM t");
    assert_eq!(rows(&mut s, "SELECT * FROM u"), ["1|1"]);
    drop((s, old));
    close_sound(&folder, database);
}

#[test]
fn an_old_snapshot_drops_and_alters_what_came_after_it() {
    let folder = Folder::new("definitions-after");
    let database = folder.open();
    let (mut s, mut old) = (session(&database, 0), session(&database, 1));
    run(&mut s, "CREATE TABLE other (id int)");
    let before = used(&database);
    let make = "CREATE TABLE t (id serial PRIMARY KEY, n int); CREATE INDEX i ON t (n); CREATE SEQUENCE q";
    for change in
        ["DROP INDEX i", "DROP TABLE t", "TRUNCATE t", "ALTER TABLE t RENAME TO u", "DROP SEQUENCE q"]
    {
        run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM other");
        run(&mut s, make);
        run(&mut old, change);
        run(&mut old, "COMMIT");
        let gone = if change.starts_with("DROP") { &change[change.len() - 1..] } else { "none" };
        let left = "SELECT string_agg(relname, '' ORDER BY relname) FROM pg_class WHERE length(relname) = 1";
        let table = if change.contains("RENAME") { "u" } else { "t" };
        let all: String = ["i", "q", table].into_iter().filter(|name| *name != gone).collect();
        let expected = if gone == "t" { "q".to_owned() } else { all };
        assert_eq!(rows(&mut s, left), [expected], "{change}");
        run(&mut s, "DROP TABLE IF EXISTS t, u; DROP SEQUENCE IF EXISTS q");
        until_used(&database, before + 10);
    }
    drop((s, old));
    close_sound(&folder, database);
}

#[test]
fn tables_that_keys_lead_to_stay_as_they_are() {
    let folder = Folder::new("definitions-keys");
    let database = folder.open();
    let (mut s, mut other) = (session(&database, 0), session(&database, 1));
    run(
        &mut s,
        "CREATE TABLE top (id int PRIMARY KEY, n int UNIQUE);
         CREATE TABLE middle (id int PRIMARY KEY, t int REFERENCES top ON DELETE CASCADE);
         CREATE TABLE low (id int PRIMARY KEY, m int REFERENCES middle ON DELETE SET NULL);
         CREATE TABLE strict (id int PRIMARY KEY, m int REFERENCES middle);
         CREATE TABLE alone (id int PRIMARY KEY, n int);
         INSERT INTO top VALUES (1, 1), (2, 2); INSERT INTO middle VALUES (1, 1), (2, 2); INSERT INTO low VALUES (1, 1)",
    );
    run(&mut other, "SET lock_timeout = 20");
    let added = "ADD COLUMN c int DEFAULT 1";
    for (change, held) in [
        ("INSERT INTO middle VALUES (3, 2)", &["top", "middle"][..]),
        ("INSERT INTO low VALUES (2, 2) ON CONFLICT (id) DO UPDATE SET m = 1", &["middle", "low"]),
        ("DELETE FROM top WHERE id = 1", &["top", "middle", "low", "strict"]),
        ("UPDATE low SET m = 2", &["middle", "low"]),
        ("INSERT INTO alone VALUES (1, 1)", &["alone"]),
    ] {
        run(&mut s, "BEGIN");
        run(&mut s, change);
        for table in ["top", "middle", "low", "strict", "alone"] {
            run(&mut other, "BEGIN");
            let alter = format!("ALTER TABLE {table} {added}");
            match held.contains(&table) {
                true => drop(fails(&mut other, &alter, "55P03")),
                false => drop(run(&mut other, &alter)),
            }
            run(&mut other, "ROLLBACK");
        }
        run(&mut s, "ROLLBACK");
    }
    let copy = "COPY middle FROM STDIN";
    run(&mut s, "BEGIN");
    s.copy_in(copy, b"7\t2\n").expect("a row");
    fails(&mut other, &format!("ALTER TABLE top {added}"), "55P03");
    run(&mut s, "COMMIT");
    drop((s, other));
    close_sound(&folder, database);
}

#[test]
fn databases_made_and_dropped_at_the_same_time_are_kept_apart() {
    let folder = Folder::new("definitions-databases");
    let database = folder.open();
    let makers: Vec<_> = (0..4)
        .map(|maker| {
            let database = database.clone();
            std::thread::spawn(move || {
                let mut s = session(&database, maker % 2);
                for round in 0..10 {
                    run(&mut s, &format!("CREATE DATABASE d{maker}_{round}"));
                    // One of the sessions makes the database.
                    if let Err(error) = s.run(&format!("CREATE DATABASE all_{round}")) {
                        assert_eq!(error.code.as_str(), "42P04");
                    }
                    if round % 2 == 1 {
                        run(&mut s, &format!("DROP DATABASE d{maker}_{round}"));
                    }
                }
            })
        })
        .collect();
    makers.into_iter().for_each(|maker| maker.join().expect("databases"));
    let mut s = session(&database, 0);
    let counted = "SELECT count(*) FROM pg_database WHERE datname LIKE";
    assert_eq!(rows(&mut s, &format!("{counted} 'd%'")), ["20"]);
    assert_eq!(rows(&mut s, &format!("{counted} 'all%'")), ["10"]);
    for maker in 0..4 {
        for round in (0..10).step_by(2) {
            drop(database.session(&format!("d{maker}_{round}"), 0).expect("a session"));
        }
    }
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_database_goes_only_after_what_its_sessions_left_behind() {
    let folder = Folder::new("definitions-left");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE DATABASE d");
    run(&mut s, "DROP DATABASE d");
    let before = used(&database);
    for _ in 0..10 {
        run(&mut s, "CREATE DATABASE d");
        let mut other = database.session("d", 1).expect("a session");
        run(&mut other, "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE INDEX ON t (n)");
        run(&mut other, "INSERT INTO t SELECT g, g FROM generate_series(1, 20000) g");
        run(&mut other, "BEGIN; UPDATE t SET n = -n; CREATE TABLE u AS SELECT * FROM t");
        // The rollback of the UPDATE goes on after the session has left every list
        // (pg_stat_activity among them). Until it ends, DROP DATABASE must still be refused
        // (55006).
        drop(other);
        let start = Instant::now();
        while let Err(error) = s.run("DROP DATABASE d") {
            assert_eq!(error.code.as_str(), "55006", "{error:?}");
            assert!(start.elapsed() < LONG);
        }
        assert_eq!(
            database.session("d", 1).map(|_| ()).map_err(|error| error.code.as_str().to_owned()),
            Err("3D000".to_owned())
        );
        until_used(&database, before + 20);
    }
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_dropped_database_has_no_sessions() {
    let folder = Folder::new("definitions-connect");
    let database =
        folder.open_with(Options { autovacuum_pause: Duration::from_millis(5), ..Options::default() });
    let mut s = session(&database, 0);
    let until = Instant::now() + Duration::from_secs(2);
    let guests: Vec<_> = (0..3)
        .map(|_| {
            let database = database.clone();
            std::thread::spawn(move || {
                let mut visits = 0_u64;
                while Instant::now() < until {
                    let Ok(mut guest) = database.session("d", 1) else { continue };
                    // A guest that got in has a database until it leaves.
                    match guest.run("CREATE TABLE t AS SELECT g FROM generate_series(1, 300) g") {
                        Ok(_) => visits += 1,
                        // The table exists, or another guest took the name and committed meanwhile.
                        Err(error) => assert!(["42P07", "23505"].contains(&error.code.as_str()), "{error:?}"),
                    }
                    let counted = rows(&mut guest, "SELECT count(*) FROM t");
                    assert_eq!(counted, ["300"]);
                }
                visits
            })
        })
        .collect();
    let mut dropped = 0;
    while Instant::now() < until {
        run(&mut s, "CREATE DATABASE d");
        loop {
            match s.run("DROP DATABASE d") {
                Ok(_) => break,
                Err(error) => assert_eq!(error.code.as_str(), "55006", "{error:?}"),
            }
        }
        dropped += 1;
    }
    let visits: u64 = guests.into_iter().map(|guest| guest.join().expect("a guest")).sum();
    assert!(dropped > 0 && visits > 0, "{dropped} databases and {visits} tables");
    drop(s);
    close_sound(&folder, database);
}

/// A session with a cursor whose rows lie in temporary pages, and with trees that are neither
/// claimed nor dropped.
fn unsettled(database: &Database) -> EmbeddedSession {
    let mut s = session(database, 1);
    run(&mut s, "CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY); SET work_mem = '64kB'");
    run(
        &mut s,
        "BEGIN; DECLARE c CURSOR FOR SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g ORDER BY 2, 1;
         FETCH 5 FROM c",
    );
    run(&mut s, "CREATE TABLE u AS SELECT g FROM generate_series(1, 1000) g; TRUNCATE t");
    s
}

#[test]
fn a_session_may_outlive_its_database() {
    let folder = Folder::new("definitions-late");
    let database = folder.open();
    let s = unsettled(&database);
    database.shutdown().expect("closes");
    database.shutdown().expect("closes once");
    drop(s);
    drop(database);
    close_sound(&folder, folder.open());
}

#[test]
fn a_session_may_be_dropped_on_another_databases_worker() {
    let (folder, others) = (Folder::new("definitions-own"), Folder::new("definitions-others"));
    let options = Options { cores: Some(4), pin: false, memory: Some(32 << 20), ..Options::default() };
    let other = Database::open(others.path(), options).expect("the folder opens");
    let database = folder.open();
    let before = used(&database);
    // The session's own database has no core 3.
    for core in [1, 3] {
        let s = unsettled(&database);
        // The pages of the sort of the cursor's query, which waits. Undo keeps some more.
        let temporary = || {
            // The two numbers are read one after the other: while pages are returned, more may be
            // free than there were.
            let (pages, free) = database.folder().temporary_pages();
            pages.checked_sub(free)
        };
        assert!(used(&database) > before && temporary() > Some(1000), "{:?}", temporary());
        other.runtime().call(core, || drop(s));
        let start = Instant::now();
        while temporary().is_none_or(|pages| pages > 100) || !database.activity().is_empty() {
            assert!(start.elapsed() < LONG, "{:?} {:?}", temporary(), database.activity());
            std::thread::yield_now();
        }
        assert_eq!(rows(&mut session(&database, 0), "SELECT count(*) FROM t"), ["0"]);
    }
    let s = unsettled(&database);
    database.shutdown().expect("closes");
    other.runtime().call(3, || drop(s));
    drop(database);
    close_sound(&folder, folder.open());
    close_sound(&others, other);
}

#[test]
fn a_column_that_gets_a_shorter_type_keeps_its_values_or_its_type() {
    let folder = Folder::new("definitions-shorter");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (x text, n numeric, d text, i text)");
    run(&mut s, "INSERT INTO t VALUES ('abcdef', 1234.5, '2020-01-02', '5')");
    for to in ["varchar(3)", "char(3)"] {
        for using in ["", " USING x", " USING 'abcdef'", " USING x || 'g'", " USING x::varchar"] {
            fails(&mut s, &format!("ALTER TABLE t ALTER x TYPE {to}{using}"), "22001");
        }
    }
    fails(&mut s, "ALTER TABLE t ALTER n TYPE numeric(4,1)", "22003");
    // A column with a default is added as if each row were inserted with it.
    fails(&mut s, "ALTER TABLE t ADD y varchar(3) DEFAULT 'abcdef'", "22001");
    // USING needs a cast that an assignment may use.
    let error = fails(&mut s, "ALTER TABLE t ALTER i TYPE int USING i", "42804");
    assert_eq!(
        error.message,
        "result of USING clause for column \"i\" cannot be cast automatically to type integer"
    );
    assert_eq!(error.hint.as_deref(), Some("You might need to add an explicit cast."));
    assert_eq!(rows(&mut s, "SELECT * FROM t"), ["abcdef|1234.5|2020-01-02|5"]);
    // A cast that the statement writes cuts, and blanks at the end do not count.
    run(&mut s, "ALTER TABLE t ALTER n TYPE numeric(6,0), ALTER i TYPE int USING i::int");
    run(&mut s, "ALTER TABLE t ALTER d TYPE date USING '2021-03-04'");
    run(&mut s, "ALTER TABLE t ALTER x TYPE varchar(3) USING x::varchar(3)");
    assert_eq!(rows(&mut s, "SELECT * FROM t"), ["abc|1235|2021-03-04|5"]);
    run(&mut s, "UPDATE t SET x = 'ab'; ALTER TABLE t ALTER x TYPE text USING x || '   '");
    run(&mut s, "ALTER TABLE t ALTER x TYPE varchar(3)");
    assert_eq!(rows(&mut s, "SELECT x || '.' FROM t"), ["ab ."]);
    run(&mut s, "ALTER TABLE t ADD z varchar(3) DEFAULT 'abc   ', ADD e date DEFAULT '2022-01-01'");
    assert_eq!(rows(&mut s, "SELECT z, e FROM t"), ["abc|2022-01-01"]);
}

#[test]
fn references_to_an_altered_column_are_checked_again() {
    let folder = Folder::new("definitions-altered");
    let database = folder.open();
    let mut s = session(&database, 0);
    // A table that references itself is both sides of its key.
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES t, q int)");
    run(&mut s, "INSERT INTO t VALUES (1, NULL, 1), (2, 1, 2)");
    fails(&mut s, "ALTER TABLE t ALTER id TYPE bigint USING id + 10", "23503");
    fails(&mut s, "ALTER TABLE t ALTER id TYPE text USING id::text", "42804");
    fails(&mut s, "ALTER TABLE t ALTER p TYPE bigint USING p + 10", "23503");
    run(&mut s, "ALTER TABLE t ALTER id TYPE bigint USING 3 - id, ALTER q TYPE text USING q::text");
    assert_eq!(rows(&mut s, "SELECT * FROM t ORDER BY id"), ["1|1|2", "2|-|1"]);
    fails(&mut s, "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (5, 7)", "23503");
    // Checks follow the same changes, whatever the names of their columns.
    run(
        &mut s,
        "CREATE TABLE u (\"my col\" int CHECK (\"my col\" > 0), b int, note text, CHECK (note <> 'b'))",
    );
    run(&mut s, "INSERT INTO u VALUES (1, 2, 'x')");
    fails(&mut s, "ALTER TABLE u ALTER \"my col\" TYPE bigint USING -\"my col\"", "23514");
    fails(&mut s, "ALTER TABLE u ALTER \"my col\" TYPE text", "42883");
    run(&mut s, "ALTER TABLE u ALTER \"my col\" TYPE bigint USING \"my col\" + 1");
    fails(&mut s, "INSERT INTO u VALUES (0, 2, 'x')", "23514");
    // A check goes with the columns it reads, and with no others.
    run(&mut s, "ALTER TABLE u DROP b");
    fails(&mut s, "INSERT INTO u VALUES (1, 'b')", "23514");
    run(&mut s, "ALTER TABLE u DROP \"my col\"; INSERT INTO u VALUES ('y')");
    fails(&mut s, "INSERT INTO u VALUES ('b')", "23514");
    assert_eq!(rows(&mut s, "SELECT note FROM u ORDER BY 1"), ["x", "y"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn sizes_are_asked_beside_tables_that_come_and_go() {
    let folder = Folder::new("definitions-sizes");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, body text); CREATE INDEX i ON t (body)");
    let until = Instant::now() + Duration::from_secs(3);
    let handle = database.clone();
    let asking = std::thread::spawn(move || {
        let mut s = session(&handle, 1);
        let mut asked = 0;
        while Instant::now() < until {
            let sizes = "SELECT pg_total_relation_size('t') > 0, pg_relation_size('i') > 0, \
                         pg_database_size('postgres') > 0";
            assert_eq!(rows(&mut s, sizes), ["t|t|t"]);
            asked += 1;
        }
        asked
    });
    let mut filled = 0;
    while Instant::now() < until {
        run(
            &mut s,
            "INSERT INTO t SELECT g, repeat('x', 400) || g FROM generate_series(1, 2000) g; TRUNCATE t",
        );
        run(&mut s, "CREATE TABLE u AS SELECT g FROM generate_series(1, 2000) g; DROP TABLE u");
        filled += 1;
    }
    let asked = asking.join().expect("is answered");
    assert!(asked > 0 && filled > 0, "{asked} times beside {filled}");
    drop(s);
    close_sound(&folder, database);
}
