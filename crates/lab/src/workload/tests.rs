//! Shared parts of the workloads' tests: clients stepped without a server, and test databases on a
//! real one.

mod driven;

pub use driven::assert_works;

use crate::arm::Dialect;
use crate::arm::Target;
use crate::arm::control::Control;
use crate::client::stepped::Stepped;
use crate::client::{Client, Reply, Step};

use super::Workload;
use super::connect::Connect;
use super::pgbench::{self, PgBench};
use super::sysbench::{self, Sysbench};
use super::tpcc::Tpcc;
use super::ycsb::Ycsb;
use crate::client::random::sysbench::Distribution;
use crate::options::NAMES;
use crate::script::{Settings, Source};

/// A client of a workload.
pub(crate) type Driver = Stepped<dyn Client>;

impl Driver {
    /// Client `index` of `of`.
    pub fn new(workload: &dyn Workload, index: usize, of: usize) -> Self {
        let statements = workload.statements(Dialect::Postgres);
        Self::with(statements, workload.client(index, of), index as u64)
    }
}

/// pgbench's builtin scripts of these names, on tables of this scale.
pub fn builtins(names: &[&str], scale: i64) -> PgBench {
    let sources: Vec<_> = names.iter().map(|name| pgbench::builtin(name).unwrap()).collect();
    PgBench::new(&sources, &Settings { defines: Vec::new(), scale, seed: 5 }).unwrap()
}

/// Every workload that the lab has, and a mix.
fn all() -> Vec<Box<dyn Workload>> {
    let text = "\\set n :n + 1\n\\set aid random_zipfian(1, 100000 * :scale, 1.2)\n\\set d 0.5\n\
                SELECT :n, :aid \\gset t_\n\\if :aid % 2 = 0\nUPDATE t SET x = x + :d, n = ':t_name';\n\\endif\n\
                \\set p 1 + :aid\nSELECT :n, :p;";
    let script = Source { name: "script".into(), text: text.into(), weight: 1 };
    let settings = Settings { defines: vec![("n".into(), "0".into())], scale: 1, seed: 5 };
    let mut all: Vec<Box<dyn Workload>> = vec![
        Box::new(PgBench::new(&[script], &settings).unwrap()),
        Box::new(builtins(&["tpcb-like"], 100)),
        Box::new(builtins(&["select-only", "simple-update"], 100)),
        Box::new(Tpcc::new(2, 1)),
        Box::new(Connect::default()),
    ];
    let options = sysbench::Options { tables: 3, table_size: 10_000, rand_type: Distribution::Special };
    for name in NAMES.split(' ').filter(|name| name.starts_with("oltp_")) {
        all.push(Box::new(Sysbench::new(name, options, 3).unwrap()));
    }
    for letter in 'a'..='f' {
        all.push(Box::new(Ycsb::new(letter, 200, 3).unwrap()));
    }
    all
}

/// A row of these values, or a reply without rows.
pub fn reply(values: &[Option<&[u8]>]) -> Reply {
    let mut reply = Reply::default();
    reply.set_columns(values.len().max(3));
    values.iter().for_each(|value| reply.push(*value));
    reply
}

/// A row that serves as any statement's reply.
pub fn ones() -> Reply {
    let mut reply = reply(&[Some(&b"1"[..]); 15]);
    reply.name("name");
    reply
}

#[test]
fn clients_allocate_nothing_once_they_are_warm() {
    for workload in all() {
        let mut driver = Driver::new(&*workload, 0, 2);
        driver.reply = ones();
        let mut work = || {
            let mut done = 0;
            while done < 300 {
                done += usize::from(matches!(driver.next(), Step::Done(_)));
            }
        };
        work();
        let counted = allocation_counter::measure(work);
        assert_eq!(counted.count_total, 0, "{}", workload.name());
    }
}

/// A transaction that failed after any of its statements sends the same ones when it begins again,
/// and others when it was given up.
#[test]
fn a_repeated_transaction_makes_the_same_choices() {
    for workload in all().into_iter().filter(|workload| workload.name() != "connect") {
        let mut driver = Driver::new(&*workload, 0, 1);
        driver.reply = ones();
        let length = driver.transaction().0.len();
        let (mut repeated, mut given_up) = (0, 0);
        for round in 0..300 {
            let most = round % length + 1;
            let begun = driver.begin(most);
            // Transactions of a mix have different lengths.
            if begun.len() < most {
                continue;
            }
            let kind = driver.failed(true);
            let (again, done) = driver.transaction();
            assert_eq!((kind, &begun[..]), (done, &again[..most]), "{}", workload.name());
            driver.begin(1);
            driver.failed(false);
            given_up += usize::from(driver.begin(2) != again[..again.len().min(2)]);
            driver.failed(false);
            repeated += 1;
        }
        assert!(repeated > 100 && given_up > 90, "{}: {repeated}, {given_up}", workload.name());
    }
}

/// An empty database for one test on a real server; dropping this value drops it.
pub struct Scratch {
    pub target: Target,
    admin: Target,
}

impl Scratch {
    /// The database has this name and the process's number.
    pub fn new(dialect: Dialect, name: &str) -> Option<Self> {
        let admin = crate::tests::target(dialect)?;
        let target = Target { database: format!("lab_{name}_{}", std::process::id()), ..admin.clone() };
        let mut control = Control::connect(&admin).unwrap();
        control.execute(&format!("create database {}", target.database)).unwrap();
        Some(Self { target, admin })
    }

    pub fn control(&self) -> Control {
        Control::connect(&self.target).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let dropped = Control::connect(&self.admin)
            .and_then(|mut control| control.execute(&format!("drop database {}", self.target.database)));
        if let Err(fault) = dropped {
            eprintln!("{fault}");
        }
    }
}
