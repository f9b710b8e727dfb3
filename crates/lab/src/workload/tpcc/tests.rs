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

/// Loads two warehouses, runs terminals side by side, and checks before and after. Then it makes a
/// violation of each condition in rows of its own, and one check counts the places of each.
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

    for broken in [
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2",
        "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 3000",
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 2900",
        "UPDATE customer SET c_balance = 7 WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 1",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 6 AND ol_o_id = 1 \
         AND ol_number = 1",
        "UPDATE district SET d_next_o_id = 1, d_ytd = 0 WHERE d_w_id = 1 AND d_id = 7",
        "UPDATE customer SET c_delivery_cnt = 9 WHERE c_w_id = 1 AND c_d_id = 8 AND c_id = 1",
    ] {
        assert_eq!(control.execute(broken).map(|changed| changed > 0), Ok(true), "{broken}");
    }
    let seen = faults(&tpcc, &mut control);
    // Both warehouses break the first condition. The missing new order also breaks the eleventh.
    let places = [2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1];
    assert_eq!(seen.len(), places.len(), "{seen:?}");
    for (condition, (fault, places)) in (1..).zip(seen.iter().zip(places)) {
        let is_so = fault.starts_with(&format!("3.3.2.{condition}:"))
            && fault.ends_with(&format!(" does not hold in {places} places"));
        assert!(is_so, "{places} places: {fault}");
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
