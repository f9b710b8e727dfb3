//! The check finds damage that the engine did not make.

use super::*;
use crate::database::Options;
use execution::out_of_line::chunk_key;

fn open(path: &std::path::Path) -> Database {
    let options = Options { cores: Some(1), pin: false, memory: Some(16 << 20), ..Options::default() };
    Database::open(path, options).expect("the folder opens")
}

/// The faults a check finds in a folder.
fn faults(path: &std::path::Path) -> Vec<String> {
    let database = open(path);
    let report = database.check(&mut |_| ()).expect("a check ends");
    database.shutdown().expect("closes");
    report.faults
}

/// Changes the tree of values of table w by the engine's own means.
fn change(path: &std::path::Path, body: impl Fn(&TxnSession, &Tree) + Sync) {
    let database = open(path);
    let shared = &database.shared;
    shared.runtime.call(0, || {
        let catalog = shared.database("postgres").expect("is there").catalog();
        let table = catalog.tables().find(|table| table.name == "w").expect("is there");
        let done = shared.internal(|txn| {
            body(txn, &tree(table.out_of_line));
            Ok(())
        });
        done.expect("commits");
    });
    database.shutdown().expect("closes");
}

#[test]
fn a_check_finds_missing_and_ownerless_chunks() {
    let path = std::env::temp_dir().join(format!("allcore-check-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let database = open(&path);
    let mut session = database.session("postgres", 0).expect("a session");
    session
        .run(
            "create table w (id int primary key, body text);
             insert into w select i, repeat('x', 10000 * i) from generate_series(1, 3) i",
        )
        .expect("runs");
    drop(session);
    database.shutdown().expect("closes");
    assert_eq!(faults(&path), Vec::<String>::new());
    let second = chunk_key(2, 1);
    change(&path, |txn, tree| {
        let mut bytes = Vec::new();
        let stamp = txn.get(tree, &second, &mut bytes).expect("reads").expect("is there");
        txn.delete(tree, &second, stamp).expect("deletes");
    });
    let found = faults(&path);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("table postgres.w: column body, value 2: chunk 1 is missing"), "{found:?}");
    assert!(found[1].ends_with("32 chunks of values, its rows call for 33"), "{found:?}");
    change(&path, |txn, tree| {
        txn.insert(tree, &second, &[b'x'; 1984]).expect("inserts");
        txn.insert(tree, &chunk_key(99, 0), b"nobody's").expect("inserts");
    });
    let found = faults(&path);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("34 chunks of values, its rows call for 33"), "{found:?}");
    let _ = std::fs::remove_dir_all(&path);
}
