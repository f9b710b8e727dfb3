//! Statements that fail, alone and in a pipeline.

use super::*;

const NAMED: &str = "SELECT v FROM lab_native WHERE k = $1";

#[test]
fn a_failed_transaction_is_rolled_back_and_tried_again_or_given_up() {
    /// The connection's statements that fail; a transaction has BEGIN, SELECT and COMMIT.
    type Which = fn(usize) -> bool;
    let cases: [(&str, bool, &[u8; 5], Which); 6] = [
        ("a deadlock", false, b"40001", |executed| executed == 1),
        ("three deadlocks", false, b"40P01", |executed| [1, 3, 5].contains(&executed)),
        ("a duplicate key", false, b"23505", |executed| executed == 1),
        ("a deadlock in a pipeline", true, b"40001", |executed| executed == 1),
        ("a duplicate key at a pipeline's end", true, b"23505", |executed| executed == 2),
        ("nothing to roll back: a pipeline's BEGIN fails", true, b"53200", |executed| executed == 0),
    ];
    let ends = cases.map(|(case, pipeline, code, which)| {
        let fake = Fake::failing(code, which);
        // In a pipeline the client learns of the failure at the end, and counts the transaction.
        let workload = Steps { most: 5 + usize::from(pipeline), ..transaction(pipeline) };
        let measured = run(&fake.target, &workload, &Load { pipeline, ..load(1, 1, 20_000) }).unwrap();
        let (only, error) = (&measured.kinds[0], &measured.errors[0]);
        let again = workload.failures.lock().unwrap().clone();
        let counts = [
            format!("done {}, retried {}, failed {}", only.done, only.retried, only.failed),
            format!("the client begins again: {again:?}; rollbacks: {}", fake.count("ROLLBACK")),
            format!("{} of {}: {}", error.count, error.code, error.message),
        ];
        (case, counts.to_vec())
    });
    golden_cases("native_failures", ends);
}

#[test]
fn tolerated_errors_begin_another_transaction_without_limit_and_fail_none() {
    let fake = Fake::new(|asked| match (asked.tag, asked.executed) {
        (b'E', 0..=16) if asked.executed % 2 == 1 => Act::Error(b"23505"),
        // The row takes 30 ms. No statement follows it in the transaction's time, and its latency
        // goes on.
        (b'E', 17) => Act::After(Duration::from_millis(30)),
        _ => Act::Row,
    });
    let workload = Steps { most: 3, tolerated: &["40P01", "23505"], ..transaction(false) };
    let measured = run(&fake.target, &workload, &Load { tries: 1, ..load(1, 1, 5_000) }).unwrap();
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (3, 8, 0));
    assert_eq!(*workload.failures.lock().unwrap(), [false; 8]);
    assert!(only.latency.max() >= 30_000_000, "{}", only.latency.max());
    let errors = &measured.errors[0];
    assert_eq!((errors.code.as_str(), errors.count, errors.tolerated), ("23505", 8, true));
}

#[test]
fn an_error_that_comes_again_and_a_transaction_left_open_end_the_client() {
    let open = Steps::new(&[Step::Run(BEGIN), Step::Run(SELECT), Step::Done(0)]);
    let advice = "load the workload's tables first";
    for pipeline in [false, true] {
        for (fake, workload, done, wanted) in [
            (
                Fake::failing(b"42P01", |executed| executed == 4),
                transaction(pipeline),
                1,
                format!("steps: 42P01: no luck (running `{NAMED}`); {advice}"),
            ),
            (
                Fake::rows(),
                Steps { row: (!pipeline).then_some(42), ..open.clone() },
                0,
                "end of script reached without completing the last transaction".to_owned(),
            ),
        ] {
            let measured = run(&fake.target, &workload, &Load { pipeline, ..load(1, 1, 20_000) }).unwrap();
            assert_eq!((measured.kinds[0].done, measured.lost_clients), (done, Some((1, wanted))));
        }
    }
}

#[test]
fn measurements_before_the_servers_death_are_kept() {
    let fake = Fake::new(|asked| match (asked.tag, asked.executed) {
        (b'E', 100) if asked.connection == 0 => Act::Close,
        (b'E', 100) => Act::Fatal(b"57P01"),
        _ => Act::Row,
    });
    let measured = run(&fake.target, &point(), &load(4, 2, 60_000)).unwrap();
    assert_eq!(measured.kinds[0].done, 400);
    let (lost, why) = measured.lost_clients.unwrap();
    assert_eq!(lost, 4);
    assert!(why == "57P01: no luck" || why == "the server closed the connection", "{why}");
    assert!(measured.elapsed < Duration::from_secs(20), "{:?}", measured.elapsed);
    assert_eq!(measured.errors[0].count, 3);
}

#[test]
fn a_thread_that_panics_ends_the_round_with_an_error_and_nothing_else() {
    // The workload has no such statement.
    let broken = Steps::new(&[Step::Run(SELECT), Step::Run(StatementId(9)), Step::Done(0)]);
    let error = run(&Fake::rows().target, &broken, &load(4, 2, 300)).unwrap_err();
    assert!(error.starts_with("a fault of the driver ended one of its threads: index out of"), "{error}");
}
