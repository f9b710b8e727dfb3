//! A connection storm: each transaction sets up a connection, runs one query and ends the
//! connection, as pgbench does with its option -C. The query reads no tables, so the workload
//! measures the cost of a connection.
//!
//! A transaction begins with the first byte of its connection. (pgbench leaves the connecting out
//! of its latencies, but not out of its throughput.) Its statement goes as text: preparing it for
//! one use would count it twice.

use crate::arm::Dialect;
use crate::client::{Client, Prepare, Statement, StatementId, Step, Turn, Wanted};

use super::{Original, Workload};

/// Its name on the command line, and the name of its only kind of transactions.
pub const NAME: &str = "connect";

const ASKED: &str = "SELECT 1;";

#[derive(Debug)]
pub struct Connect {
    kinds: [String; 1],
}

impl Default for Connect {
    fn default() -> Self {
        Self { kinds: [NAME.into()] }
    }
}

impl Workload for Connect {
    fn name(&self) -> &str {
        NAME
    }

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn original(&self) -> Option<Original> {
        Some(Original { scripts: vec![(ASKED.into(), 1)], scale: 1, variables: Vec::new(), reconnect: true })
    }

    fn pipelines(&self) -> Result<(), String> {
        Err("a transaction of connect is one statement on a connection of its own".into())
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        vec![Statement::new(ASKED, Prepare::Never, Wanted::Nothing)]
    }

    fn client(&self, _: usize, _: usize) -> Box<dyn Client> {
        Box::new(Caller(0))
    }
}

const STEPS: [Step; 4] = [Step::Connect, Step::Run(StatementId(0)), Step::Leave, Step::Done(0)];

struct Caller(usize);

impl Client for Caller {
    fn next(&mut self, _: Turn<'_>) -> Step {
        let step = STEPS[self.0].clone();
        self.0 = (self.0 + 1) % STEPS.len();
        step
    }

    fn failed(&mut self, _: bool) -> u8 {
        self.0 = 0;
        0
    }
}

#[cfg(test)]
mod tests;
