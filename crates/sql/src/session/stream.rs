//! Begins streamed queries ([`RowStream`]) in a session.
//!
//! What must hold: a streamed query only reads, and neither depends on the session's own state nor
//! changes it (`query::plan::may_be_live`). So it has an environment of its own.

use std::cell::RefCell;
use std::sync::Arc;

use bumpalo::Bump;
use runtime::producer::Demand;

use super::Session;
use super::environment::SessionEnvironment;
use super::row_stream::RowStream;
use execution::RunningSession as _;
use execution::spill::{pack, unpack};
use execution::{Executor, Flow};
use query::plan::{Body, QueryTag, Statement};
use values::error::SqlError;
use values::types::Datum;

impl Session {
    /// Begins a query as a streamed one, if it may be one. The caller has locked its tables.
    pub(super) fn begin_stream(
        &mut self,
        statement: &Arc<Statement>,
        values: &[Datum<'_>],
    ) -> Result<Option<RowStream>, SqlError> {
        match &statement.body {
            Body::Query { root, tag: QueryTag::Select } if query::plan::may_be_live(root) => {}
            _ => return Ok(None),
        }
        self.begin_statement(statement)?;
        let begun = self.environment.for_query().and_then(|own| begin(own, statement, values));
        self.environment.txn.statement_end();
        begun
    }
}

/// A streamed query with an environment of its own; None when the core has no stack for it.
fn begin(
    environment: SessionEnvironment,
    statement: &Arc<Statement>,
    values: &[Datum<'_>],
) -> Result<Option<RowStream>, SqlError> {
    if !RowStream::may_begin() {
        return Ok(None);
    }
    // Boxed, so that only a small value moves to the other stack.
    let (environment, statement) = (Box::new(environment), Arc::clone(statement));
    let folder = environment.shared.engine.folder().clone();
    let mut packed = Vec::new();
    pack(values.iter().copied(), &mut packed)?;
    Ok(RowStream::begin(folder, move |made, demand| run(&environment, &statement, &packed, (made, demand))))
}

/// Runs a query. After each row it suspends until the reader asks for the next one.
fn run(
    environment: &SessionEnvironment,
    statement: &Statement,
    packed: &[u8],
    (made, demand): (&RefCell<Vec<u8>>, &Demand<'_>),
) -> Result<(), SqlError> {
    let Body::Query { root, .. } = &statement.body else { return Ok(()) };
    let arena = Bump::new();
    let mut packed = packed;
    let mut values = Vec::new();
    while !packed.is_empty() {
        values.push(unpack(&mut packed, &arena)?);
    }
    let SessionEnvironment { txn, shared, catalog, .. } = environment;
    let mut cx = Executor::new(txn, &shared.row_numbers, catalog, &values, environment);
    cx.query(root, statement.registers, &statement.output, &mut |row| {
        environment.before_showing()?;
        let mut made = made.borrow_mut();
        made.clear();
        pack(row.iter().copied(), &mut made)?;
        drop(made);
        Ok(if demand.wait() { Flow::More } else { Flow::Stop })
    })?;
    environment.before_showing()
}
