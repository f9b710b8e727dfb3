//! A connection storm on real servers, under the lab's own driver and under pgbench.

use std::time::Duration;

use super::*;
use crate::arm::control::Control;
use crate::drive::{Driver, Live, Native, Pgbench};
use crate::load::{Load, Protocol};
use crate::workload::tests::assert_allocates_nothing;

fn load() -> Load {
    let (protocol, warmup) = (Protocol::Simple, Duration::from_millis(100));
    Load { protocol, warmup, ..Load::closed(4, 2, Duration::from_secs(1)) }
}

#[test]
fn a_caller_allocates_nothing() {
    assert_allocates_nothing(&Connect::default(), &Default::default());
}

#[test]
fn real_servers_take_the_storm() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(target) = crate::tests::target(dialect) else { continue };
        let count = |control: &mut Control| -> Option<u64> {
            let sql = match dialect {
                Dialect::Postgres => {
                    "select sessions from pg_stat_database where datname = current_database()"
                }
                Dialect::Mysql => {
                    "select variable_value from information_schema.global_status where variable_name = 'CONNECTIONS'"
                }
            };
            // Not every server counts them.
            control.value(sql).ok()??.parse().ok()
        };
        let before = count(&mut Control::connect(&target).unwrap());
        let load = load();
        let measured = Native.run(&target, &Connect::default(), &load, &Live::new(2)).unwrap();
        assert_eq!((measured.lost_clients, measured.errors), (None, Vec::new()), "{dialect:?}");
        let done = measured.kinds[0].done;
        assert!(done > 0, "{dialect:?}");
        let Some(before) = before else { continue };
        // A server counts a session a while after it has begun.
        let mut sessions = 0;
        for _ in 0..50 {
            sessions = count(&mut Control::connect(&target).unwrap()).unwrap() - before;
            if sessions >= done {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(sessions >= done, "{dialect:?}: {sessions} sessions for {done} transactions");
    }
}

#[test]
fn pgbench_does_the_same() {
    let Some(target) = crate::tests::target(Dialect::Postgres) else { return };
    let second = Duration::from_secs(1);
    let load = Load { warmup: second, measured: second, ..load() };
    match Pgbench::default().run(&target, &Connect::default(), &load, &Live::new(2)) {
        Ok(measured) => assert!(measured.kinds[0].done > 0, "{measured:?}"),
        Err(why) if why.contains("is not installed") => crate::tests::skip(&why),
        Err(why) => panic!("{why}"),
    }
}
