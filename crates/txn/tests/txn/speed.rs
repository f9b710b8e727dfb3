//! Times of the hot paths, on demand:
//! `cargo test --release -p txn --test txn speed:: -- --ignored --nocapture`.

use crate::common::{Bench, table};
use runtime::{fiber, random, time};
use txn::{Direction, InsertOutcome, Isolation, Outcome, Range, TxnSession};

const ROWS: u64 = 100_000;

/// Prints the best of many short rounds, because others may use the machine too.
fn timed(what: &str, times: u64, mut body: impl FnMut(u64)) {
    let round = times / 100;
    let mut best = f64::MAX;
    for first in (0..times).step_by(round as usize) {
        let start = time::precise();
        (first..first + round).for_each(&mut body);
        best = best.min((time::precise() - start) as f64 / round as f64);
        fiber::yield_now();
    }
    println!("{what:40} {best:7.0} ns");
}

fn statement<R>(session: &TxnSession, body: impl FnOnce() -> R) -> R {
    session.begin(Isolation::ReadCommitted, false);
    session.statement_start().unwrap();
    let result = body();
    session.statement_end();
    session.commit(false).unwrap();
    result
}

fn key() -> [u8; 8] {
    (random::u64() % ROWS).to_be_bytes()
}

fn update(session: &TxnSession, row: &mut Vec<u8>, number: u64) {
    let key = key();
    let seen = session.get(&table(), &key, row).unwrap().unwrap();
    row[20] = number as u8;
    assert_eq!(session.update(&table(), &key, seen, row), Ok(Outcome::Done));
}

#[test]
#[ignore = "measures; takes seconds"]
fn the_hot_paths_are_timed() {
    Bench::with_frames("speed", 8192).run(|engine| {
        let session = engine.session().unwrap();
        let mut row = Vec::new();
        timed("insert in key order, alone", ROWS, |number| {
            let insert = || session.insert(&table(), &number.to_be_bytes(), &[number as u8; 100]).unwrap();
            assert_eq!(statement(&session, insert), InsertOutcome::Done);
        });
        fiber::sleep(std::time::Duration::from_millis(200));
        timed("an empty statement", 1_000_000, |_| statement(&session, || ()));
        timed("get, alone", 1_000_000, |_| {
            assert!(statement(&session, || session.get(&table(), &key(), &mut row).unwrap()).is_some());
        });
        session.begin(Isolation::ReadCommitted, false);
        session.statement_start().unwrap();
        timed("get", 1_000_000, |_| assert!(session.get(&table(), &key(), &mut row).unwrap().is_some()));
        let mut scan = session.scan(&table(), Range::ALL, Direction::Forward);
        timed("next of a scan", ROWS, |_| assert!(scan.next(&session).unwrap().is_some()));
        session.commit(false).unwrap();
        timed("get and update, alone", 300_000, |number| {
            statement(&session, || update(&session, &mut row, number))
        });
        timed("get and update, ten in a transaction", 30_000, |number| {
            statement(&session, || {
                (0..10).for_each(|_| {
                    session.statement_start().unwrap();
                    update(&session, &mut row, number);
                });
            });
        });
    });
}
