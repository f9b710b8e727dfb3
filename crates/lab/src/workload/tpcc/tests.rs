//! Terminals run against servers (skipped where there is none), and the conditions hold, or are seen not to.

use std::thread;

use super::*;
use crate::client::{Param, Params, Random, Reply, Step, Turn};
use crate::tests::target;

/// Steps a client over a control connection until it has done so many transactions; returns how many of each kind.
fn run(control: &mut Control, client: &mut dyn Client, statements: &[Statement], count: usize) -> [u64; 5] {
    let mut random = Random::new(5, count as u64);
    let (mut params, mut reply) = (Params::default(), Reply::default());
    let mut done = [0; 5];
    while done.iter().sum::<u64>() < count as u64 {
        params.clear();
        match client.next(Turn { random: &mut random, params: &mut params, reply: &reply }) {
            Step::Run(id) => {
                let sql = text(&statements[usize::from(id.0)], &params);
                match crate::arm::Ask::ask(control, &sql) {
                    Ok(told) => reply = told,
                    // A deadlock, or what MariaDB calls a record that has changed: begun again, as drivers do.
                    Err(error)
                        if ["40P01", "40001", "1213", "1020"].iter().any(|code| error.contains(code)) =>
                    {
                        control.execute("ROLLBACK").unwrap();
                        client.failed(true);
                        reply.clear();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Done(kind) => done[usize::from(kind)] += 1,
            other => panic!("{other:?}"),
        }
    }
    done
}

/// A statement with its parameters' values in it.
fn text(statement: &Statement, params: &Params) -> String {
    assert_eq!(statement.pieces.len(), params.len() + 1, "{statement:?}");
    let mut sql = statement.pieces[0].clone();
    for (param, piece) in params.iter().zip(&statement.pieces[1..]) {
        match param {
            Param::Null => sql.push_str("NULL"),
            Param::Verbatim(value) | Param::Unset(value) => {
                sql.push_str(std::str::from_utf8(value).unwrap());
            }
            Param::Text(value) => {
                sql.push_str(&format!("'{}'", std::str::from_utf8(value).unwrap().replace('\'', "''")));
            }
        }
        sql.push_str(piece);
    }
    sql
}

fn faults(tpcc: &Tpcc, control: &mut Control) -> Vec<String> {
    let checks = tpcc.check(control, &Before::default()).unwrap();
    assert_eq!(checks.len(), 12);
    checks.into_iter().filter_map(|check| Some(format!("{} {}", check.claim, check.fault?))).collect()
}

/// Loads two warehouses, runs terminals side by side, and checks before and after.
fn holds(dialect: Dialect) {
    let Some(target) = target(dialect) else { return };
    let tpcc = Tpcc::new(2, 1, false);
    let mut control = Control::connect(&target).unwrap();
    assert_eq!(tpcc.found(&mut control).unwrap(), Found::Nothing);
    let progress = Progress::new(0);
    tpcc.load(&target, 4, &progress).unwrap();
    // The total is what is expected, as the lines of orders are random.
    assert!(progress.rows().abs_diff(progress.total()) < progress.total() / 100, "{progress:?}");
    assert_eq!(tpcc.found(&mut control).unwrap(), Found::Loaded);
    assert!(matches!(Tpcc::new(3, 1, false).found(&mut control).unwrap(), Found::Other(_)));
    assert_eq!(faults(&tpcc, &mut control), Vec::<String>::new());
    for (table, rows) in [("item", 100_000), ("stock", 200_000), ("customer", 60_000), ("new_order", 18_000)]
    {
        let found = control.value(&format!("SELECT count(*) FROM {table}")).unwrap();
        assert_eq!(found, Some(rows.to_string()), "{table}");
    }

    let statements = tpcc.statements(dialect);
    let done: Vec<[u64; 5]> = thread::scope(|scope| {
        let terminal = |index| {
            let (target, tpcc, statements) = (&target, &tpcc, &statements);
            scope.spawn(move || {
                let mut control = Control::connect(target).unwrap();
                // Ten decks: the mix is exact.
                run(&mut control, &mut *tpcc.client(index, 4), statements, 230)
            })
        };
        let running: Vec<_> = (0..4).map(terminal).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done, [[100, 100, 10, 10, 10]; 4]);
    assert_eq!(faults(&tpcc, &mut control), Vec::<String>::new());
    let delivered = control.value("SELECT sum(c_delivery_cnt) FROM customer").unwrap();
    assert_eq!(delivered.as_deref(), Some("400"));

    // What breaks a condition is seen.
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
    let statements = statements::all();
    let mut terminal = terminal::Terminal::new(0, 1, false);
    let mut random = Random::new(3, 3);
    // The first two statements of a transaction with their parameters.
    let mut begin = |terminal: &mut terminal::Terminal| -> Vec<String> {
        let mut step = || {
            let (mut params, reply) = (Params::default(), Reply::default());
            match terminal.next(Turn { random: &mut random, params: &mut params, reply: &reply }) {
                Step::Run(id) => text(&statements[usize::from(id.0)], &params),
                other => panic!("{other:?}"),
            }
        };
        vec![step(), step()]
    };
    let first = begin(&mut terminal);
    let kind = terminal.failed(true);
    assert_eq!(begin(&mut terminal), first);
    assert_eq!(terminal.failed(false), kind);
    let others: Vec<Vec<String>> = (0..5)
        .map(|_| {
            let other = begin(&mut terminal);
            terminal.failed(false);
            other
        })
        .collect();
    assert!(others.iter().any(|other| *other != first), "{others:?}");
}

/// Only the item that is never there rolls an order back (2.4.1.5): data that is not whole is no part of the mix.
#[test]
fn an_item_that_is_missing_or_has_no_price_ends_the_terminal() {
    let statements = statements::all();
    let reply = |values: &[Option<&[u8]>], columns: usize| {
        let mut reply = Reply::default();
        reply.set_columns(columns);
        values.iter().for_each(|value| reply.push(*value));
        reply
    };
    let whole = reply(&[Some(&b"1"[..]); 15], 15);
    let orders = |items: &Reply, item: fn(&str) -> bool| {
        let mut terminal = terminal::Terminal::new(0, 1, false);
        let mut random = Random::new(6, 6);
        let (mut params, mut asked, mut ends) = (Params::default(), false, Vec::new());
        for _ in 0..60_000 {
            params.clear();
            let reply = if asked { items } else { &whole };
            match terminal.next(Turn { random: &mut random, params: &mut params, reply }) {
                Step::Run(id) => {
                    let sql = text(&statements[usize::from(id.0)], &params);
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
    let unused = |sql: &str| sql.ends_with("100001");
    let rolled_back = orders(&reply(&[], 3), unused);
    assert!(rolled_back.len() > 3 && rolled_back.iter().all(|end| end == "ROLLBACK"), "{rolled_back:?}");
    let missing = "an item of TPC-C's initial data is not there, or has no price; load it again";
    for items in [reply(&[], 3), reply(&[None, Some(b"x"), Some(b"x")], 3)] {
        assert_eq!(orders(&items, |sql| !sql.ends_with("100001")), [missing]);
    }
}

#[test]
fn a_terminal_allocates_nothing() {
    let mut terminal = terminal::Terminal::new(3, 2, false);
    let (mut random, mut params, mut reply) = (Random::new(4, 4), Params::default(), Reply::default());
    // A row that every statement's reply could be.
    reply.set_columns(15);
    (0..15).for_each(|_| reply.push(Some(b"1")));
    let mut steps = |count: usize| {
        let mut done = 0;
        while done < count {
            params.clear();
            match terminal.next(Turn { random: &mut random, params: &mut params, reply: &reply }) {
                Step::Run(_) => {}
                Step::Done(_) => done += 1,
                other => panic!("{other:?}"),
            }
        }
    };
    steps(230);
    let counted = allocation_counter::measure(|| steps(2300));
    assert_eq!(counted.count_total, 0);
}

#[test]
fn a_terminal_that_keys_does_so_before_each_transaction_and_thinks_after_it() {
    let mut terminal = terminal::Terminal::new(3, 2, true);
    let (mut random, mut params, mut reply) = (Random::new(4, 4), Params::default(), Reply::default());
    reply.set_columns(15);
    (0..15).for_each(|_| reply.push(Some(b"1")));
    // (keying, mean thinking) by kind, and the pauses seen: the first has no thinking in it.
    let times = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];
    let (mut before, mut pause, mut thought) = (None::<usize>, 0.0, [(0.0, 0u32); 5]);
    let mut done = 0;
    while done < 23_000 {
        params.clear();
        match terminal.next(Turn { random: &mut random, params: &mut params, reply: &reply }) {
            Step::Pause(time) => pause = time.as_secs_f64(),
            Step::Run(_) => {}
            Step::Done(kind) => {
                let kind = usize::from(kind);
                let thinking = pause - times[kind].0;
                if let Some(before) = before {
                    assert!((-1e-6..=10.0 * times[before].1 + 1e-6).contains(&thinking), "{thinking}");
                    thought[before] = (thought[before].0 + thinking, thought[before].1 + 1);
                } else {
                    assert!(thinking.abs() < 1e-6, "{thinking}");
                }
                before = Some(kind);
                pause = f64::NAN;
                done += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    for ((sum, count), (_, mean)) in thought.iter().zip(times) {
        let seen = sum / f64::from(*count);
        // Of the rarest there are 1,000, whose mean has a deviation of 3%.
        assert!((0.85..1.15).contains(&(seen / mean)), "{seen} instead of {mean}");
    }
    // A repetition is none of the user's: nothing is keyed.
    let mut next = |terminal: &mut terminal::Terminal| {
        terminal.next(Turn { random: &mut random, params: &mut params, reply: &reply })
    };
    assert!(matches!(next(&mut terminal), Step::Pause(_)));
    assert!(matches!(next(&mut terminal), Step::Run(_)));
    terminal.failed(true);
    assert!(matches!(next(&mut terminal), Step::Run(_)));
    terminal.failed(false);
    assert!(matches!(next(&mut terminal), Step::Pause(_)));
}
