//! WITH: common table expressions.
//!
//! A table's rows are made one by one as its readers ask for them, so that a recursion without end
//! serves a LIMIT. The planner leaves out tables that no plan reads. What must hold:
//!
//! 1. A table that is read once (`single`) hands its rows on while they are made, as long as the
//!    stack is nearly empty. Its reader is the only one, so nothing else reads its state meanwhile.
//! 2. Any other table is made by a [`Producer`], on a stack of its own. Its rows are kept for all
//!    readers. A reader that has read them all resumes the producer, which makes one row and waits.
//!    So no row is made twice or before a reader needs it, whatever the query contains.
//! 3. A producer has an executor of its own. It reads the registers of the queries around it from a
//!    copy.
//! 4. The producers have ended when the statement's body has.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::fiber;
use runtime::producer::{Demand, Producer};

use super::memory::{encode_key, give, pack_registers, unpack_registers};
use super::stack::too_deep;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{RowPlace, Rows, RowsReader, pack, unpack};
use query::plan::{CommonTable, Plan, Reg};
use values::error::SqlError;
use values::key_table::KeyTable;
use values::work;

/// Keys that are dropped at once.
const MANY: usize = 10_000;

/// A common table in execution.
pub(super) struct Common<'s> {
    table: &'s CommonTable,
    made: RefCell<Made>,
    /// None before the first reader and while the producer runs.
    producer: Cell<Option<Producer<'s, Result<(), SqlError>>>>,
}

/// A common table's state and rows.
struct Made {
    rows: Rows,
    /// The last round's rows, which the recursive term reads: the place of the first, and the place
    /// behind the last.
    round: (RowPlace, RowPlace),
    /// The non-recursive term has run.
    begun: bool,
    /// No further round gives rows.
    ended: bool,
    /// The keys of all rows of a UNION. Every round asks for them, so these stay in memory.
    seen: KeyTable<Box<[u8]>, ()>,
    /// Bytes of these keys.
    seen_bytes: usize,
}

impl Drop for Made {
    /// Each key is a piece of memory of its own: a million take a tenth of a second.
    fn drop(&mut self) {
        if self.seen.len() > MANY {
            runtime::aside::discard(self.seen_bytes, std::mem::take(&mut self.seen));
        }
    }
}

/// The receiver of a round's rows, which lie in these registers.
type Receive<'s, 'k> = dyn for<'x> FnMut(&mut Executor<'s>, &'s [Reg], &mut File<'x>, &'x Arena<'s>) -> Result<Flow, SqlError>
    + 'k;

/// Common tables whose producers end before it goes.
struct Tables<'s>(Vec<Rc<Common<'s>>>);

impl Drop for Tables<'_> {
    fn drop(&mut self) {
        // Backwards: a table reads earlier ones only.
        for common in self.0.iter().rev() {
            common.producer.take();
        }
    }
}

/// Runs a body that reads common tables.
pub(super) fn with<'s, 'x>(
    cx: &mut Executor<'s>,
    (tables, body): (&'s [CommonTable], &'s Plan),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let before = cx.common.len();
    let own = Tables(tables.iter().map(|table| Rc::new(Common::new(cx, table))).collect());
    cx.common.extend_from_slice(&own.0);
    let result = run(cx, body, file, arena, sink);
    drop(own);
    cx.common.truncate(before);
    result
}

impl<'s> Common<'s> {
    fn new(cx: &Executor<'s>, table: &'s CommonTable) -> Common<'s> {
        let (rows, seen) = (Rows::new(cx.work_mem()), KeyTable::default());
        let round = Default::default();
        let made = RefCell::new(Made { rows, round, begun: false, ended: false, seen, seen_bytes: 0 });
        Common { table, made, producer: Cell::new(None) }
    }

    /// The plan of the next round and its columns.
    fn term(&self) -> (&'s Plan, &'s [Reg]) {
        match &self.table.recursive {
            Some(term) if self.made.borrow().begun => (&term.plan, &term.registers),
            _ => (&self.table.plan, &self.table.registers),
        }
    }

    /// Notes that a round has run to its end.
    fn round_done(&self) {
        let made = &mut *self.made.borrow_mut();
        made.round = (made.round.1, made.rows.end());
        made.begun = true;
        made.ended = self.table.recursive.is_none() || made.round.0 == made.round.1;
    }

    /// Takes a row of the present round. Returns false if UNION has the row already.
    fn take(&self, cx: &Executor<'s>, registers: &[Reg], file: &File<'_>) -> Result<bool, SqlError> {
        let made = &mut *self.made.borrow_mut();
        if self.table.recursive.as_ref().is_some_and(|term| !term.all) {
            let mut key = Vec::new();
            for register in registers {
                encode_key(file[*register as usize], &mut key)?;
            }
            let bytes = key.len();
            if !made.seen.insert_new(&key, (), || work::owned_bytes(&key))? {
                return Ok(false);
            }
            made.seen_bytes += bytes;
        }
        let values = registers.iter().map(|register| file[*register as usize]);
        made.rows.push(cx.folder(), |to| pack(values, to))?;
        Ok(true)
    }

    /// Makes all rows and hands them on at once.
    fn make<'x>(
        &self,
        cx: &mut Executor<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        receive: &mut Receive<'s, '_>,
    ) -> Result<Flow, SqlError> {
        while !self.made.borrow().ended {
            let (plan, registers) = self.term();
            cx.check()?;
            let flow =
                run(cx, plan, file, arena, &mut |cx, file, arena| receive(cx, registers, file, arena))?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.round_done();
        }
        Ok(Flow::More)
    }

    /// Makes all rows for the only reader.
    fn stream<'x>(
        &self,
        cx: &mut Executor<'s>,
        output: &'s [Option<Reg>],
        scope: (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let kept = self.table.recursive.is_some();
        self.make(cx, scope, &mut |cx, registers, file, arena| {
            if kept && !self.take(cx, registers, file)? {
                return Ok(Flow::More);
            }
            for (from, to) in registers.iter().zip(output) {
                if let Some(to) = to {
                    file[*to as usize] = file[*from as usize];
                }
            }
            sink(cx, file, arena)
        })
    }

    /// Makes and keeps the next row. Keeps none once all rows are there.
    fn next(self: &Rc<Self>, cx: &mut Executor<'s>, file: &File<'_>) -> Result<(), SqlError> {
        if self.made.borrow().ended {
            return Ok(());
        }
        cx.check()?;
        let mut producer = match self.producer.take() {
            Some(producer) => producer,
            None => self.producer(cx, file)?,
        };
        match producer.resume() {
            None => self.producer.set(Some(producer)),
            Some(ended) => ended?,
        }
        Ok(())
    }

    /// The producer of the rows, which reads the registers of the queries around it as they are
    /// now.
    fn producer(
        self: &Rc<Self>,
        cx: &mut Executor<'s>,
        file: &File<'_>,
    ) -> Result<Producer<'s, Result<(), SqlError>>, SqlError> {
        let (this, mut beside, width) = (Rc::clone(self), cx.beside(), file.len());
        let mut around = Vec::new();
        pack_registers(&self.table.around, file, &mut around)?;
        let body = move |demand: &Demand<'_>| {
            beside.scoped(|cx, arena| {
                let arena = &*arena;
                let file = arena.bump.alloc_slice_fill_copy(width, values::types::Datum::Null);
                unpack_registers(&this.table.around, &around, file, &arena.bump)?;
                this.make(cx, (file, arena), &mut |cx, registers, file, _| {
                    let goes_on = !this.take(cx, registers, file)? || demand.wait();
                    Ok(if goes_on { Flow::More } else { Flow::Stop })
                })?;
                Ok(())
            })
        };
        Producer::new(body).map_err(|_| too_deep())
    }

    /// Hands on kept rows from the reader's place to row `end`; makes more where there is no `end`.
    fn give(
        self: &Rc<Self>,
        cx: &mut Executor<'s>,
        (mut reader, end): (RowsReader, Option<u64>),
        (file, output): (&File<'_>, &'s [Option<Reg>]),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut row = cx.take_bytes();
        let result = cx.scoped(|cx, own| {
            while end.is_none_or(|end| reader.number() < end) {
                if reader.number() == self.made.borrow().rows.count() {
                    self.next(cx, file)?;
                }
                row.clear();
                // A copy, since rows may be appended while the row is handed on.
                match reader.next(&self.made.borrow().rows)? {
                    Some(bytes) => work::put(bytes, &mut row)?,
                    None => break,
                }
                let flow = give(
                    cx,
                    own,
                    (file, row.as_slice()),
                    |mut row, file, arena| {
                        for register in output {
                            let value = unpack(&mut row, arena)?;
                            if let Some(register) = register {
                                file[*register as usize] = value;
                            }
                        }
                        Ok(())
                    },
                    sink,
                )?;
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        });
        cx.give_bytes(row);
        result
    }
}

/// A table's rows; within its recursive term (`working`) those of the last round.
pub(super) fn scan<'s, 'x>(
    cx: &mut Executor<'s>,
    (id, output, working): (u32, &'s [Option<Reg>], bool),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let Some(common) = cx.common.iter().rev().find(|common| common.table.id == id).cloned() else {
        return Err(SqlError::internal("a common table out of its query"));
    };
    if working {
        let (first, behind) = common.made.borrow().round;
        return common.give(cx, (RowsReader::at(first), Some(behind.number)), (file, output), sink);
    }
    if common.table.single && !fiber::is_lifted() {
        return common.stream(cx, output, (file, arena), sink);
    }
    common.give(cx, (RowsReader::default(), None), (file, output), sink)
}
