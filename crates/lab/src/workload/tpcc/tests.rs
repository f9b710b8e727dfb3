//! Terminals run against servers (a test is skipped where there is none). The conditions hold, and
//! the checks find violations.

use std::thread;

use super::*;
use crate::client::{Reply, Step};
use crate::tests::target;
use crate::workload::tests::{Driver, assert_allocates_nothing};

/// Steps a client over a control connection until it has done this many transactions; returns the
/// number of each kind.
fn run(control: &mut Control, mut driver: Driver, count: usize) -> [u64; 5] {
    let mut done = [0; 5];
    while done.iter().sum::<u64>() < count as u64 {
        match driver.next() {
            Step::Run(id) => match control.query(&driver.written(id.0)) {
                Ok(rows) => {
                    driver.reply.clear();
                    driver.reply.set_columns(rows.first().map_or(0, Vec::len));
                    for value in rows.iter().flatten() {
                        driver.reply.push(value.as_deref().map(str::as_bytes));
                    }
                }
                // A deadlock, or MariaDB's "record has changed": the client begins again, as
                // drivers do.
                Err(fault) if matches!(fault.code(), Some("40P01" | "40001" | "1213" | "1020")) => {
                    control.execute("ROLLBACK").unwrap();
                    driver.failed(true);
                    driver.reply.clear();
                }
                Err(error) => panic!("{error}"),
            },
            Step::Done(kind) => done[usize::from(kind)] += 1,
            other => panic!("{other:?}"),
        }
    }
    done
}

fn faults(tpcc: &Tpcc, control: &mut Control) -> Vec<String> {
    let checks = tpcc.check(control, &Before::default()).unwrap();
    assert_eq!(checks.len(), 12);
    checks.into_iter().filter_map(|check| Some(format!("{} {}", check.claim, check.fault?))).collect()
}

/// Loads two warehouses, runs terminals side by side, and checks before and after.
fn holds(dialect: Dialect) {
    let Some(target) = target(dialect) else { return };
    let tpcc = Tpcc::new(2, 1);
    let mut control = Control::connect(&target).unwrap();
    assert_eq!(tpcc.found(&mut control).unwrap(), Found::Nothing);
    let progress = Progress::new(0);
    tpcc.load(&target, 4, &progress).unwrap();
    // The total is an expected value, as the number of lines in an order is random.
    assert!(progress.rows().abs_diff(progress.total()) < progress.total() / 100, "{progress:?}");
    assert_eq!(tpcc.found(&mut control).unwrap(), Found::Loaded);
    assert!(matches!(Tpcc::new(3, 1).found(&mut control).unwrap(), Found::Other(_)));
    assert_eq!(faults(&tpcc, &mut control), Vec::<String>::new());
    for (table, rows) in [("item", 100_000), ("stock", 200_000), ("customer", 60_000), ("new_order", 18_000)]
    {
        let found = control.value(&format!("SELECT count(*) FROM {table}")).unwrap();
        assert_eq!(found, Some(rows.to_string()), "{table}");
    }

    let done: Vec<[u64; 5]> = thread::scope(|scope| {
        let terminal = |index| {
            let (target, tpcc) = (&target, &tpcc);
            scope.spawn(move || {
                let mut control = Control::connect(target).unwrap();
                // Ten decks: the mix is exact.
                run(&mut control, Driver::new(tpcc, index, 4), 230)
            })
        };
        let running: Vec<_> = (0..4).map(terminal).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done, [[100, 100, 10, 10, 10]; 4]);
    assert_eq!(faults(&tpcc, &mut control), Vec::<String>::new());
    let delivered = control.value("SELECT sum(c_delivery_cnt) FROM customer").unwrap();
    assert_eq!(delivered.as_deref(), Some("400"));

    // The checks find each violation.
    for (broken, conditions) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", &["3.3.2.1:", "3.3.2.8:"][..]),
        (
            "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 3000",
            &["3.3.2.4:", "3.3.2.6:"],
        ),
        (
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 2900",
            &["3.3.2.3:", "3.3.2.5:"],
        ),
        (
            "UPDATE customer SET c_balance = 7 WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 1",
            &["3.3.2.10:", "3.3.2.12:"],
        ),
        (
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 6 AND ol_o_id = 1",
            &["3.3.2.7:"],
        ),
        ("UPDATE district SET d_next_o_id = 1, d_ytd = 0 WHERE d_id = 7", &["3.3.2.2:", "3.3.2.9:"]),
        (
            "UPDATE customer SET c_delivery_cnt = 9 WHERE c_w_id = 1 AND c_d_id = 8 AND c_id = 1",
            &["3.3.2.11:"],
        ),
    ] {
        control.execute(broken).unwrap();
        let seen = faults(&tpcc, &mut control);
        for condition in conditions {
            assert!(seen.iter().any(|fault| fault.starts_with(condition)), "{broken}: {seen:?}");
        }
    }
    for table in schema::NAMES {
        control.execute(&format!("DROP TABLE {table}")).unwrap();
    }
}

#[test]
fn conditions_hold_on_postgres() {
    holds(Dialect::Postgres);
}

#[test]
fn conditions_hold_on_mysql() {
    holds(Dialect::Mysql);
}

#[test]
fn a_repetition_keeps_its_inputs() {
    let mut driver = Driver::new(&Tpcc::new(1, 1), 0, 1);
    // The first two statements of a transaction with their parameters.
    let begin = |driver: &mut Driver| [driver.statement(), driver.statement()];
    let first = begin(&mut driver);
    let kind = driver.failed(true);
    assert_eq!(begin(&mut driver), first);
    assert_eq!(driver.failed(false), kind);
    let others: Vec<_> = (0..5)
        .map(|_| {
            let other = begin(&mut driver);
            driver.failed(false);
            other
        })
        .collect();
    assert!(others.iter().any(|other| *other != first), "{others:?}");
}

/// A row with this many columns that serves as any statement's reply.
fn reply(values: &[Option<&[u8]>]) -> Reply {
    let mut reply = Reply::default();
    reply.set_columns(values.len().max(3));
    values.iter().for_each(|value| reply.push(*value));
    reply
}

/// Only the nonexistent item rolls an order back (2.4.1.5): incomplete data is no part of the mix.
#[test]
fn an_item_that_is_missing_or_has_no_price_ends_the_terminal() {
    let orders = |items: &Reply, item: fn(&str) -> bool| {
        let (mut driver, mut asked, mut ends) = (Driver::new(&Tpcc::new(1, 1), 0, 1), false, Vec::new());
        for _ in 0..60_000 {
            driver.reply = if asked { items.clone() } else { reply(&[Some(&b"1"[..]); 15]) };
            match driver.next() {
                Step::Run(id) => {
                    let sql = driver.written(id.0);
                    asked = sql.contains("FROM item") && item(&sql);
                    if sql == "ROLLBACK" {
                        ends.push(sql);
                    }
                }
                Step::Abort(why) => {
                    ends.push(why.into_owned());
                    break;
                }
                _ => {}
            }
        }
        ends
    };
    let rolled_back = orders(&reply(&[]), |sql| sql.ends_with("100001"));
    assert!(rolled_back.len() > 3 && rolled_back.iter().all(|end| end == "ROLLBACK"), "{rolled_back:?}");
    let missing = "TPC-C's data lacks an item or its price: load it again (--reload)";
    for items in [reply(&[]), reply(&[None, Some(b"x"), Some(b"x")])] {
        assert_eq!(orders(&items, |sql| !sql.ends_with("100001")), [missing]);
    }
}

#[test]
fn a_terminal_allocates_nothing() {
    assert_allocates_nothing(&Tpcc::new(2, 1), &reply(&[Some(&b"1"[..]); 15]));
}
