//! Shared parts of the workloads' tests: clients stepped without a server, and test databases on a
//! real one.

mod driven;

use crate::arm::Dialect;
use crate::arm::Target;
use crate::arm::control::{Control, Progress};
use crate::client::{Client, Param, Params, Random, Reply, Step, Turn};

use super::{Found, Statement, Workload};

/// A client and its driver's state.
pub struct Driver {
    statements: Vec<Statement>,
    client: Box<dyn Client>,
    random: Random,
    params: Params,
    pub reply: Reply,
}

impl Driver {
    /// Client `index` of `of`.
    pub fn new(workload: &dyn Workload, index: usize, of: usize) -> Self {
        Self {
            statements: workload.statements(Dialect::Postgres),
            client: workload.client(index, of),
            random: Random::new(11, index as u64),
            params: Params::default(),
            reply: Reply::default(),
        }
    }

    pub fn next(&mut self) -> Step {
        self.params.clear();
        self.client.next(Turn { random: &mut self.random, params: &mut self.params, reply: &self.reply })
    }

    /// The statements up to the transaction's end, and its kind.
    pub fn transaction(&mut self) -> (Vec<String>, u8) {
        let mut sent = Vec::new();
        loop {
            match self.next() {
                Step::Run(id) => sent.push(self.written(id.0)),
                Step::Done(kind) => return (sent, kind),
                other => panic!("{other:?}"),
            }
        }
    }

    /// A statement with the last step's parameters in it, texts in quotes.
    pub fn written(&self, id: u16) -> String {
        let pieces = &self.statements[id as usize].pieces;
        assert_eq!(pieces.len(), self.params.len() + 1, "{pieces:?}");
        let mut text = pieces[0].clone();
        for (param, piece) in self.params.iter().zip(&pieces[1..]) {
            text += &match param {
                Param::Null => "NULL".into(),
                Param::Text(value) => format!("'{}'", String::from_utf8_lossy(value)),
                Param::Verbatim(value) | Param::Unset(value) => String::from_utf8_lossy(value).into_owned(),
            };
            text += piece;
        }
        text
    }

    pub fn statement(&mut self) -> String {
        match self.next() {
            Step::Run(id) => self.written(id.0),
            other => panic!("{other:?}"),
        }
    }

    /// A parameter of the last step.
    pub fn param(&self, at: usize) -> String {
        format!("{:?}", self.params.iter().nth(at))
    }

    /// Reports the running transaction as failed.
    pub fn failed(&mut self, again: bool) -> u8 {
        self.client.failed(again)
    }
}

/// Asserts that transactions, whose statements all get this reply, allocate nothing once as many
/// have run.
#[track_caller]
pub fn assert_allocates_nothing(workload: &dyn Workload, reply: &Reply) {
    let mut driver = Driver { reply: reply.clone(), ..Driver::new(workload, 0, 2) };
    let work = |driver: &mut Driver| {
        let mut done = 0;
        while done < 300 {
            done += usize::from(matches!(driver.next(), Step::Done(_)));
        }
    };
    work(&mut driver);
    let counted = allocation_counter::measure(|| work(&mut driver));
    assert_eq!(counted.count_total, 0, "{}", workload.name());
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

/// Loads the workload, finds it loaded, and runs transactions of two clients statement by
/// statement. The checks hold afterwards, and find a row that the test then spoils.
#[track_caller]
pub fn assert_works(scratch: &Scratch, workload: &dyn Workload, spoil: Option<&str>) {
    let mut control = scratch.control();
    let progress = Progress::new(0);
    workload.load(&scratch.target, 2, &progress).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(progress.rows(), progress.total());
    assert_eq!(workload.found(&mut control), Ok(Found::Loaded));
    let before = workload.prepare(&mut control).unwrap();
    let mut drivers = [0, 1].map(|index| Driver::new(workload, index, 2));
    let dialect = scratch.target.dialect;
    for driver in &mut drivers {
        driver.statements = workload.statements(dialect);
        for _ in 0..20 {
            for statement in driver.transaction().0 {
                control.execute(&statement).unwrap_or_else(|fault| panic!("{fault}"));
            }
        }
    }
    let checks = workload.check(&mut control, &before).unwrap();
    assert!(checks.iter().all(|check| check.fault.is_none()), "{checks:?}");
    if let Some(spoil) = spoil {
        control.execute(spoil).unwrap();
        let checks = workload.check(&mut control, &before).unwrap();
        assert!(checks.iter().any(|check| check.fault.is_some()), "{checks:?}");
    }
}
