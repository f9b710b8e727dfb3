//! Terminals run against servers (a test is skipped where there is none). The conditions hold, and
//! the checks find violations.

use super::*;
use crate::client::{Reply, Step};
use crate::workload::tests::{Driver, Scratch, assert_works, ones, reply};

fn faults(tpcc: &Tpcc, control: &mut Control) -> Vec<String> {
    let checks = tpcc.check(control, &Before::default()).unwrap();
    assert_eq!(checks.len(), 12);
    checks.into_iter().filter_map(|check| Some(format!("{} {}", check.claim, check.fault?))).collect()
}

/// Loads two warehouses, runs terminals side by side, and checks before and after.
fn holds(dialect: Dialect) {
    let Some(scratch) = Scratch::new(dialect, "tpcc") else { return };
    let tpcc = Tpcc::new(2, 1);
    let mut control = scratch.control();
    assert_eq!(tpcc.found(&mut control).unwrap(), Found::Nothing);
    assert_works(&scratch, &tpcc, None);
    assert!(matches!(Tpcc::new(3, 1).found(&mut control).unwrap(), Found::Other(_)));
    for (table, rows) in [("item", 100_000), ("stock", 200_000), ("customer", 60_000)] {
        let found = control.value(&format!("SELECT count(*) FROM {table}")).unwrap();
        assert_eq!(found, Some(rows.to_string()), "{table}");
    }

    // Each violation, and the conditions of 3.3.2 that it breaks.
    for (broken, conditions) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", &[1, 8][..]),
        ("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 3000", &[4, 6]),
        ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 2900", &[3, 5]),
        ("UPDATE customer SET c_balance = 7 WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 1", &[10, 12]),
        (
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 6 AND ol_o_id = 1",
            &[7],
        ),
        ("UPDATE district SET d_next_o_id = 1, d_ytd = 0 WHERE d_id = 7", &[2, 9]),
        ("UPDATE customer SET c_delivery_cnt = 9 WHERE c_w_id = 1 AND c_d_id = 8 AND c_id = 1", &[11]),
    ] {
        control.execute(broken).unwrap();
        let seen = faults(&tpcc, &mut control);
        for condition in conditions {
            let claim = format!("3.3.2.{condition}:");
            assert!(seen.iter().any(|fault| fault.starts_with(&claim)), "{broken}: {seen:?}");
        }
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
fn the_cards_of_a_deck_make_the_mix() {
    let mut driver = Driver::new(&Tpcc::new(2, 1), 0, 1);
    driver.reply = ones();
    let mut done = [0; 5];
    (0..230).for_each(|_| done[usize::from(driver.transaction().1)] += 1);
    assert_eq!(done, [100, 100, 10, 10, 10]);
}

/// Only the nonexistent item rolls an order back (2.4.1.5): incomplete data is no part of the mix.
#[test]
fn an_item_that_is_missing_or_has_no_price_ends_the_terminal() {
    let orders = |items: &Reply, item: fn(&str) -> bool| {
        let (mut driver, mut asked, mut ends) = (Driver::new(&Tpcc::new(1, 1), 0, 1), false, Vec::new());
        for _ in 0..60_000 {
            driver.reply = if asked { items.clone() } else { ones() };
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
