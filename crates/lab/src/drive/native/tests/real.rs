//! The driver against real servers (see [`crate::tests::target`]).

use super::{Steps, load, point, run, transaction};
use crate::arm::control::Control;
use crate::arm::{Dialect, Target};
use crate::load::{Load, Protocol};

/// The server, with 1,000 rows that all hold 42.
fn prepared(dialect: Dialect) -> Option<Target> {
    let target = crate::tests::target(dialect)?;
    let mut control = Control::connect(&target).unwrap();
    control.execute("DROP TABLE IF EXISTS lab_native").unwrap();
    control.execute("CREATE TABLE lab_native (k int PRIMARY KEY, v int NOT NULL)").unwrap();
    let rows: Vec<String> = (1..=1000).map(|k| format!("({k}, 42)")).collect();
    control.execute(&format!("INSERT INTO lab_native VALUES {}", rows.join(","))).unwrap();
    Some(target)
}

fn every_protocol_works(dialect: Dialect) {
    let Some(target) = prepared(dialect) else { return };
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        for workload in [point(), transaction(false)] {
            let workload = Steps { most: 20, ..workload };
            let measured = run(&target, &workload, &Load { protocol, ..load(8, 2, 60_000) }).unwrap();
            assert_eq!(measured.lost_clients, Some((8, "enough".to_owned())), "{protocol:?}");
            assert_eq!((measured.errors.len(), measured.kinds[0].done), (0, 160), "{protocol:?}");
        }
    }
    let mut wrong = target.clone();
    wrong.database = "lab_no_such_database".to_owned();
    let error = run(&wrong, &point(), &load(1, 1, 100)).unwrap_err();
    assert!(error.contains("create the database first"), "{error}");
    Control::connect(&target).unwrap().execute("DROP TABLE lab_native").unwrap();
    let error = run(&target, &point(), &load(1, 1, 100)).unwrap_err();
    assert!(error.contains("load the workload's tables first"), "{error}");
}

#[test]
fn real_servers_work_with_every_protocol() {
    every_protocol_works(Dialect::Postgres);
    every_protocol_works(Dialect::Mysql);
}
