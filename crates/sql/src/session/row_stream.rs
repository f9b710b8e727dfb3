//! Live queries: those of cursors and of portals with a row limit, which make a row when a client
//! asks for it.
//!
//! A [`Producer`] runs the query on a stack of its own and waits behind each row. It outlives the
//! statement that began it, so it borrows nothing from its session: it has an environment of its
//! own. What must hold:
//!
//! 1. The query only reads, and nothing in it depends on or changes the session's own state
//!    (`query::plan::may_be_live`).
//! 2. A producer stays on its core. The session, which may be dropped anywhere, has its number
//!    only.
//! 3. A query is dropped before its transaction ends, since its trees may go then.

use execution::RunningSession as _;
use runtime::hash::HashMap;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

use bumpalo::Bump;
use runtime::interrupt;
use runtime::producer::{Demand, Producer};
use sync::core_local;
use txn::Store;

use super::Session;
use super::environment::SessionEnvironment;
use execution::spill::{Rows, pack, unpack};
use execution::{Executor, Flow, from_txn};
use query::plan::{Body, QueryTag, Statement};
use values::error::SqlError;
use values::types::Datum;

/// Live queries that a core may have at a time: half of its further stacks, so that deep plans find
/// some.
const MOST: usize = 1024;

/// A query that waits.
struct Waiting {
    producer: Producer<'static, Result<(), SqlError>>,
    /// The row it has made, packed.
    row: Rc<RefCell<Vec<u8>>>,
}

core_local! {
    /// The core's live queries by their numbers. Not dropped with the thread, which has no fibers
    /// any more by then.
    static LIVE: ManuallyDrop<RefCell<HashMap<u64, Waiting>>> = ManuallyDrop::default();
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A live query.
pub(super) struct LiveQuery {
    number: u64,
    home: usize,
    store: Arc<Store>,
}

impl LiveQuery {
    /// A query that begins when its first row is asked for; None when the core has no stack for it.
    fn begin(
        environment: Box<SessionEnvironment>,
        statement: &Arc<Statement>,
        values: &[Datum<'_>],
    ) -> Result<Option<LiveQuery>, SqlError> {
        if LIVE.with(|live| live.borrow().len()) >= MOST {
            return Ok(None);
        }
        let store = Arc::clone(environment.shared.engine.store());
        let row = Rc::new(RefCell::new(Vec::new()));
        let (made, statement) = (Rc::clone(&row), Arc::clone(statement));
        let mut packed = Vec::new();
        pack(values.iter().copied(), &mut packed)?;
        let body = move |demand: &Demand<'_>| run(&environment, &statement, &packed, (&made, demand));
        let Ok(producer) = Producer::new(body) else { return Ok(None) };
        let number = NEXT.replace(NEXT.get() + 1);
        LIVE.with(|live| live.borrow_mut().insert(number, Waiting { producer, row }));
        Ok(Some(LiveQuery { number, home: runtime::core(), store }))
    }

    /// Appends the next row to `rows`; false: there is none, now or later.
    pub fn next(&mut self, rows: &mut Rows) -> Result<bool, SqlError> {
        let Some(mut waiting) = LIVE.with(|live| live.borrow_mut().remove(&self.number)) else {
            return Ok(false);
        };
        if let Some(ended) = waiting.producer.resume() {
            return ended.map(|()| false);
        }
        // A value that was left unfinished, since there was no memory for it, must not count.
        interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        rows.push(&self.store, |to| values::work::put(&waiting.row.borrow(), to))?;
        LIVE.with(|live| live.borrow_mut().insert(self.number, waiting));
        Ok(true)
    }
}

impl Drop for LiveQuery {
    fn drop(&mut self) {
        let number = self.number;
        let forget = move || drop(LIVE.with(|live| live.borrow_mut().remove(&number)));
        match self.store.runtime().core_here() == Some(self.home) {
            true => forget(),
            false => self.store.runtime().spawn(self.home, forget),
        }
    }
}

/// Runs a query and waits behind each of its rows.
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

impl Session {
    /// Begins a query whose tables are locked as a live one, where it may be one.
    pub(super) fn begin_live(
        &mut self,
        statement: &Arc<Statement>,
        values: &[Datum<'_>],
    ) -> Result<Option<LiveQuery>, SqlError> {
        match &statement.body {
            Body::Query { root, tag: QueryTag::Select } if query::plan::may_be_live(root) => {}
            _ => return Ok(None),
        }
        self.begin_statement(statement)?;
        let begun = self.environment.for_query().and_then(|own| {
            // The value that goes to another stack is small.
            LiveQuery::begin(Box::new(own), statement, values)
        });
        self.environment.txn.statement_end();
        begun
    }
}
