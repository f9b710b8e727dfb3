//! The system tree keeps nothing of dropped objects, and loses no concurrent change.

use std::thread;

use crate::common::{Folder, fails, rows, run};

/// Several sessions make and drop databases at once: each change counts, before a restart as after
/// it.
#[test]
fn databases_come_and_go_at_the_same_time() {
    const EACH: usize = 12;
    let folder = Folder::new("databases");
    let database = folder.open();
    let listed = |database: &sql::database::Database| {
        let mut session = database.session("postgres", 0).unwrap();
        rows(&mut session, "select datname from pg_database order by 1")
    };
    thread::scope(|scope| {
        for core in 0..2 {
            let database = &database;
            scope.spawn(move || {
                let mut session = database.session("postgres", core).unwrap();
                for number in 0..EACH {
                    run(&mut session, &format!("create database d{core}_{number}"));
                    if number % 2 == 1 {
                        run(&mut session, &format!("drop database d{core}_{number}"));
                    }
                    // One of the two sessions gets the name; the other one is refused.
                    let shared = session.run(&format!("create database shared{number}"));
                    if let Err(error) = shared {
                        assert_eq!(error.code.as_str(), "42P04", "{error:?}");
                    }
                }
            });
        }
    });
    let mut expected: Vec<String> = (0..EACH).map(|number| format!("shared{number}")).collect();
    for core in 0..2 {
        expected.extend((0..EACH).step_by(2).map(|number| format!("d{core}_{number}")));
    }
    expected.extend(["postgres".to_owned(), "template1".to_owned()]);
    expected.sort();
    assert_eq!(listed(&database), expected);
    for name in &expected {
        database.session(name, 0).unwrap();
    }
    database.shutdown().unwrap();
    let database = folder.open();
    assert_eq!(listed(&database), expected);
    database.shutdown().unwrap();
}

/// Nothing stays of a table that was analysed and had sequences.
#[test]
fn a_dropped_table_leaves_nothing_behind() {
    let folder = Folder::new("leftovers");
    let database = folder.open();
    let mut session = database.session("postgres", 0).unwrap();
    let before = entries(&database);
    run(&mut session, "create table t (id serial primary key, v text)");
    run(&mut session, "insert into t (v) select 'v' || n from generate_series(1, 100) n");
    run(&mut session, "analyze t");
    run(&mut session, "truncate t restart identity");
    run(&mut session, "insert into t (v) values ('again')");
    assert_eq!(rows(&mut session, "select id from t"), ["1"]);
    assert!(entries(&database) > before);
    run(&mut session, "begin; drop table t; rollback");
    run(&mut session, "insert into t (v) values ('still there')");
    assert_eq!(rows(&mut session, "select max(id) from t"), ["2"]);
    run(&mut session, "drop table t");
    fails(&mut session, "select * from t", "42P01");
    assert_eq!(entries(&database), before);
    // The next start removes a counter that a rolled-back transaction made.
    run(&mut session, "begin; create sequence q; select nextval('q'); savepoint s");
    run(&mut session, "alter sequence q restart; select nextval('q'); rollback to s; rollback");
    drop(session);
    database.shutdown().unwrap();
    let database = folder.open();
    assert_eq!(entries(&database), before);
    database.shutdown().unwrap();
}

/// Keys of the system tree's areas of definitions and of sequences.
fn entries(database: &sql::database::Database) -> usize {
    let store = std::sync::Arc::<storage::Store>::from(database.folder());
    let tree = txn::trees::first(1);
    let count = |area: u8| {
        database.runtime().call(0, || {
            let mut cursor = storage::btree::Cursor::new(tree);
            cursor.seek(&store, &[area]).unwrap();
            let mut live = 0;
            while let Some((key, value)) = cursor.next(&store).unwrap() {
                if key[0] != area {
                    break;
                }
                // The lowest bit of the version's command marks a deletion.
                live += usize::from(value[12] & 1 == 0);
            }
            live
        })
    };
    count(2) + count(3)
}
