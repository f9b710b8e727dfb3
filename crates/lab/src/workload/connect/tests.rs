//! A connection storm on real servers, under the lab's own driver and under pgbench.

use std::time::Duration;

use super::*;
use crate::drive::{Driver, Live, Native, Pgbench};
use crate::load::{Load, Protocol};

#[test]
fn each_transaction_has_a_connection_of_its_own() {
    let mut driver = crate::workload::tests::Driver::new(&Connect::default(), 0, 1);
    let steps = [0; 5].map(|_| driver.next());
    let [connect, run, leave, done] = STEPS;
    assert_eq!(steps, [connect.clone(), run, leave, done, connect]);
}

#[test]
fn real_servers_take_the_storm() {
    let second = Duration::from_secs(1);
    let load = Load { protocol: Protocol::Simple, warmup: second, ..Load::closed(4, 2, second) };
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(target) = crate::tests::target(dialect) else { continue };
        let measured = Native.run(&target, &Connect::default(), &load, &Live::new(2)).unwrap();
        assert_eq!((measured.lost_clients, measured.errors), (None, Vec::new()), "{dialect:?}");
        assert!(measured.kinds[0].done > 0, "{dialect:?}");
        if dialect == Dialect::Mysql {
            continue;
        }
        let run = Pgbench::default().run(&target, &Connect::default(), &load, &Live::new(2));
        if !run.as_ref().is_err_and(|why| crate::tests::is_absent(why)) {
            assert!(run.unwrap().kinds[0].done > 0);
        }
    }
}
