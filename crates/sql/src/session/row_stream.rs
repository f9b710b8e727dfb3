//! Streamed queries: those of cursors and of portals with a row limit, which make a row when a
//! client asks for it.
//!
//! A [`Producer`] runs the query on a stack of its own and waits behind each row. It outlives the
//! statement that began it, so it borrows nothing from its session. What must hold:
//!
//! 1. A producer stays on its core. The session, which may be dropped on any thread, has only its
//!    number.
//! 2. A query is dropped before its transaction ends, because the end may free its trees.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;

use runtime::hash::HashMap;
use runtime::interrupt;
use runtime::producer::{Demand, Producer};
use sync::core_local;
use txn::Folder;

use execution::from_txn;
use execution::spill::Rows;
use values::error::SqlError;

/// Streamed queries that a core may have at a time: half of its further stacks, so that deep plans
/// find some.
const MOST: usize = 1024;

/// A query that waits.
struct Waiting {
    producer: Producer<'static, Result<(), SqlError>>,
    /// The row it has made, packed.
    row: Rc<RefCell<Vec<u8>>>,
}

core_local! {
    /// The core's streamed queries by their numbers. They are not dropped with the thread, because
    /// its fibers have ended by then.
    static STREAMS: ManuallyDrop<RefCell<HashMap<u64, Waiting>>> = ManuallyDrop::default();
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// The rows of a query that makes each row on demand.
pub(super) struct RowStream {
    number: u64,
    home: usize,
    folder: Folder,
}

impl RowStream {
    /// Whether the core may have one more.
    pub fn may_begin() -> bool {
        STREAMS.with(|streams| streams.borrow().len()) < MOST
    }

    /// A query that begins when its reader asks for the first row. `None` if the core has no stack
    /// for it. `query` packs each row into the cell and then waits for demand.
    pub fn begin(
        folder: Folder,
        query: impl FnOnce(&RefCell<Vec<u8>>, &Demand<'_>) -> Result<(), SqlError> + 'static,
    ) -> Option<RowStream> {
        let row = Rc::new(RefCell::new(Vec::new()));
        let made = Rc::clone(&row);
        let producer = Producer::new(move |demand: &Demand<'_>| query(&made, demand)).ok()?;
        let number = NEXT.replace(NEXT.get() + 1);
        STREAMS.with(|streams| streams.borrow_mut().insert(number, Waiting { producer, row }));
        Some(RowStream { number, home: runtime::core(), folder })
    }

    /// Appends the next row to `rows`. Returns false once the query has ended.
    pub fn next(&mut self, rows: &mut Rows) -> Result<bool, SqlError> {
        let Some(mut waiting) = STREAMS.with(|streams| streams.borrow_mut().remove(&self.number)) else {
            return Ok(false);
        };
        if let Some(ended) = waiting.producer.resume() {
            return ended.map(|()| false);
        }
        // A value may be unfinished because memory ran out. The interrupt says so, and the row must
        // not count.
        interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        rows.push(&self.folder, |to| values::work::put(&waiting.row.borrow(), to))?;
        STREAMS.with(|streams| streams.borrow_mut().insert(self.number, waiting));
        Ok(true)
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        let number = self.number;
        let forget = move || drop(STREAMS.with(|streams| streams.borrow_mut().remove(&number)));
        match self.folder.runtime().core_here() == Some(self.home) {
            true => forget(),
            false => self.folder.runtime().spawn(self.home, forget),
        }
    }
}
