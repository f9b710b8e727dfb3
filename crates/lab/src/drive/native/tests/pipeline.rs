//! Whole transactions sent at once.

use super::*;

/// Prepares all statements, as for a builtin script; the client ignores its rows.
fn prepared(mut workload: Steps) -> Steps {
    workload.statements.iter_mut().for_each(|statement| statement.prepare = Prepare::AtConnect);
    Steps { row: None, ..workload }
}

/// BEGIN, a SELECT and COMMIT.
pub fn prepared_transaction() -> Steps {
    prepared(transaction())
}

fn pipelined(fake: &Fake, workload: &Steps, load: &Load) -> Measured {
    run(&fake.target, workload, &Load { pipeline: true, ..load.clone() }).unwrap()
}

#[test]
fn a_transaction_goes_with_one_sync_and_is_answered_as_a_whole() {
    for (pipeline, each) in [(true, "BDEBDEBDES"), (false, "BDESBDESBDES")] {
        let fake = Fake::new(|asked| match asked.tag {
            b'E' => Act::After(Duration::from_millis(2)),
            _ => Act::Row,
        });
        let workload = Steps { most: 20, ..prepared_transaction() };
        let load = Load { pipeline, ..load(1, 1, 20_000) };
        let measured = run(&fake.target, &workload, &load).unwrap();
        assert_eq!(measured.lost_clients, Some((1, "enough".to_owned())));
        let only = &measured.kinds[0];
        assert_eq!((only.done, only.failed, measured.errors.len()), (20, 0, 0));
        // Its latency covers all three.
        assert!(only.latency.min() >= 6_000_000, "{}", only.latency.min());
        let seen = fake.seen.lock().unwrap().join("");
        assert_eq!(seen, format!("PPPS{}", each.repeat(20)));
    }
}

#[test]
fn an_error_in_a_pipeline_is_rolled_back_and_counted_once() {
    // The first transaction's SELECT fails. The client counts it among its six: it learns of the
    // failure at the end.
    let fake = failing(b"40001", |executed| executed == 1);
    let workload = Steps { most: 6, ..prepared_transaction() };
    let measured = pipelined(&fake, &workload, &load(1, 1, 20_000));
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (5, 1, 0));
    assert_eq!(*workload.failures.lock().unwrap(), [true]);
    assert_eq!((measured.errors[0].code.as_str(), measured.errors[0].count), ("40001", 1));
    assert_eq!(measured.errors[0].message, "no luck (steps, `SELECT v FROM lab_native WHERE k = $1`)");
    // Six pipelines, one of which the error cut short, and a ROLLBACK between it and the next.
    assert_eq!((fake.count("ROLLBACK"), fake.count("S")), (1, 1 + 6));
    let seen = fake.seen.lock().unwrap().join("");
    assert!(seen.starts_with("PPPSBDEBDEBDESROLLBACKBDEBDEBDES"), "{seen}");

    // COMMIT itself fails: the client gives the transaction up at once, and the next one is
    // another.
    let fake = failing(b"23505", |executed| executed == 2);
    let workload = Steps { most: 6, ..prepared_transaction() };
    let measured = pipelined(&fake, &workload, &load(1, 1, 20_000));
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (5, 0, 1));
    assert_eq!(*workload.failures.lock().unwrap(), [false]);
    assert_eq!(measured.errors[0].message, "no luck (steps, `COMMIT`)");
    assert_eq!(fake.count("ROLLBACK"), 1);

    // BEGIN itself fails: the client has nothing to roll back.
    let fake = failing(b"53200", |executed| executed == 0);
    let workload = Steps { most: 6, ..prepared_transaction() };
    let measured = pipelined(&fake, &workload, &load(1, 1, 20_000));
    assert_eq!((measured.kinds[0].done, measured.kinds[0].failed, fake.count("ROLLBACK")), (5, 1, 0));
    assert_eq!(measured.errors[0].message, "no luck (steps, `BEGIN`)");
}

#[test]
fn an_error_that_comes_again_ends_the_client_with_its_statement() {
    let fake = failing(b"42P01", |executed| executed == 4);
    let measured = pipelined(&fake, &prepared_transaction(), &load(1, 1, 20_000));
    let (lost, why) = measured.lost_clients.unwrap();
    assert_eq!((lost, measured.kinds[0].done), (1, 1));
    let running = "steps: 42P01: no luck (running `SELECT v FROM lab_native WHERE k = $1`)";
    assert_eq!(why, format!("{running}; load the workload's tables first"));
}

#[test]
fn a_transaction_left_open_ends_its_client_here_too() {
    let fake = Fake::new(|_| Act::Row);
    let open = prepared(Steps::new(&[Step::Run(BEGIN), Step::Run(SELECT), Step::Done(0)]));
    let measured = pipelined(&fake, &open, &load(2, 1, 20_000));
    let why = "end of script reached without completing the last transaction".to_owned();
    assert_eq!((measured.lost_clients, measured.kinds[0].done), (Some((2, why)), 0));
}
