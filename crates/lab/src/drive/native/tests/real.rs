//! The driver against real servers (see [`crate::tests::target`]).

use std::time::Duration;

use super::{Steps, load, point, run, transaction};
use crate::arm::control::{Control, Progress};
use crate::arm::{Dialect, Target};
use crate::client::Step;
use crate::drive::{Driver, Live, Native};
use crate::load::{Load, Protocol};
use crate::workload::tpcc::Tpcc;
use crate::workload::{Before, Workload};

/// The server, with 1,000 rows that all have 42.
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
        for workload in [
            point(),
            transaction(),
            Steps::new(&[Step::Queue(super::SELECT), Step::Run(super::SELECT), Step::Done(0)]),
        ] {
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

/// Runs TPC-C in a database of its own, in every protocol, and checks what must hold.
fn tpcc_holds(dialect: Dialect) {
    let Some(mut target) = crate::tests::target(dialect) else { return };
    let mut control = Control::connect(&target).unwrap();
    control.execute("DROP DATABASE IF EXISTS lab_native_tpcc").unwrap();
    control.execute("CREATE DATABASE lab_native_tpcc").unwrap();
    target.database = "lab_native_tpcc".to_owned();
    let tpcc = Tpcc::new(1, 1, false);
    tpcc.load(&target, 2, &Progress::new(0)).unwrap();
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        // One warehouse and ten clients: rows are waited for, and deadlocks may come.
        let load = Load { protocol, tries: 10, ..load(10, 2, 60_000) };
        let live = Live::new(2);
        let measured = std::thread::scope(|scope| {
            let round = scope.spawn(|| Native.run(&target, &tpcc, &load, &live));
            while live.done() < 300 && !round.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
            }
            live.stop();
            round.join().unwrap().unwrap()
        });
        assert_eq!(measured.lost_clients, None, "{protocol:?}, {:?}", measured.errors);
        let done: Vec<u64> = measured.kinds.iter().map(|kind| kind.done).collect();
        assert!(done[0] > 0 && done[1] > 0, "{protocol:?}: {done:?}, {:?}", measured.errors);
    }
    let checks = tpcc.check(&mut Control::connect(&target).unwrap(), &Before::default()).unwrap();
    for check in checks {
        assert_eq!(check.fault, None, "{}", check.claim);
    }
    control.execute("DROP DATABASE lab_native_tpcc").unwrap();
}

#[test]
fn tpcc_keeps_its_conditions_on_postgres() {
    tpcc_holds(Dialect::Postgres);
}

#[test]
fn tpcc_keeps_its_conditions_on_mysql() {
    tpcc_holds(Dialect::Mysql);
}
