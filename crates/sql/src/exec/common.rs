//! WITH: common table expressions.
//!
//! A table's rows are made when a reader asks for them, so that a recursion without end serves a LIMIT. The planner
//! leaves out tables that no plan reads. What must hold:
//!
//! 1. A table that is read once (`single`) hands its rows on while they are made. Its reader is the only one, so
//!    nothing else reads its state meanwhile.
//! 2. Any other table is made by whole rounds: a reader that has read all rows runs the next round to its end, without
//!    handing a row on, and all readers read what is kept. So a round never runs twice, whatever it contains.
//! 3. Tables that read each other lazily stand on the stack together. A table that would make more than [`MAX_LAZY`]
//!    operators stand there is made whole before the statement's body runs, where the tables it reads are complete and
//!    nothing nests. So a LIMIT above a longer chain of tables does not end a recursion at its head.

use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashSet;

use super::memory::{encode_key, give};
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::plan::{CommonTable, Plan, Reg};
use crate::spill::{RowPlace, Rows, RowsReader, pack, unpack};
use crate::work::{self, PacedState};

/// Operators of tables that may be in the making at once, one for the other.
const MAX_LAZY: u32 = 200;

/// A common table in execution.
pub(super) struct Common<'s> {
    table: &'s CommonTable,
    made: RefCell<Made>,
}

/// A common table's state and rows.
struct Made {
    rows: Rows,
    /// The rows that the recursive term reads, the last round's: the first one's place and the one behind the last.
    round: (RowPlace, RowPlace),
    /// The non-recursive term has run.
    begun: bool,
    /// No further round gives rows.
    ended: bool,
    /// The keys of all rows of a UNION. Every round asks for them, so these stay in memory.
    seen: HashSet<Box<[u8]>, PacedState>,
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
    for table in tables {
        let (rows, seen) = (Rows::new(cx.work_mem()), HashSet::default());
        let made = RefCell::new(Made { rows, round: Default::default(), begun: false, ended: false, seen });
        let common = Rc::new(Common { table, made });
        cx.common.push(Rc::clone(&common));
        if cx.lazy + table.depth > MAX_LAZY {
            while !common.made.borrow().ended {
                common.round(cx, file, arena)?;
            }
        }
    }
    let result = run(cx, body, file, arena, sink);
    cx.common.truncate(before);
    result
}

impl<'s> Common<'s> {
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

    /// Takes a row of the present round; false: UNION has it already.
    fn take(&self, cx: &Executor<'s>, registers: &[Reg], file: &File<'_>) -> Result<bool, SqlError> {
        let made = &mut *self.made.borrow_mut();
        if self.table.recursive.as_ref().is_some_and(|term| !term.all) {
            let mut key = Vec::new();
            for register in registers {
                encode_key(file[*register as usize], &mut key)?;
            }
            if !made.seen.insert(key.into()) {
                return Ok(false);
            }
        }
        let values = registers.iter().map(|register| file[*register as usize]);
        made.rows.push(cx.store(), |to| pack(values, to))?;
        Ok(true)
    }

    /// Runs the next round to its end.
    fn round<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<(), SqlError> {
        let (plan, registers) = self.term();
        cx.check()?;
        cx.lazy += self.table.height;
        run(cx, plan, file, arena, &mut |cx, file, _| {
            self.take(cx, registers, file)?;
            Ok(Flow::More)
        })?;
        cx.lazy -= self.table.height;
        self.round_done();
        Ok(())
    }

    /// Makes all rows and hands them on at once.
    fn stream<'x>(
        &self,
        cx: &mut Executor<'s>,
        output: &'s [Option<Reg>],
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let kept = self.table.recursive.is_some();
        while !self.made.borrow().ended {
            let (plan, registers) = self.term();
            cx.check()?;
            cx.lazy += self.table.height;
            let flow = run(cx, plan, file, arena, &mut |cx, file, arena| {
                if kept && !self.take(cx, registers, file)? {
                    return Ok(Flow::More);
                }
                for (from, to) in registers.iter().zip(output) {
                    if let Some(to) = to {
                        file[*to as usize] = file[*from as usize];
                    }
                }
                sink(cx, file, arena)
            })?;
            cx.lazy -= self.table.height;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.round_done();
        }
        Ok(Flow::More)
    }

    /// Hands on kept rows from the reader's place to row `end`.
    fn give(
        &self,
        cx: &mut Executor<'s>,
        (reader, end): (&mut RowsReader, u64),
        (file, output): (&File<'_>, &'s [Option<Reg>]),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut row = cx.take_bytes();
        let result = cx.scoped(|cx, own| {
            while reader.number() < end {
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
        let (mut reader, to) = {
            let made = common.made.borrow();
            (RowsReader::at(made.round.0), made.round.1.number)
        };
        return common.give(cx, (&mut reader, to), (file, output), sink);
    }
    if common.table.single && !common.made.borrow().begun {
        return common.stream(cx, output, (file, arena), sink);
    }
    let mut reader = RowsReader::default();
    loop {
        let made = common.made.borrow().rows.count();
        if common.give(cx, (&mut reader, made), (file, output), sink)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        // Another reader may have made rows meanwhile.
        let (more, ended) = (reader.number() < common.made.borrow().rows.count(), common.made.borrow().ended);
        match (more, ended) {
            (true, _) => {}
            (false, true) => return Ok(Flow::More),
            (false, false) => common.round(cx, file, arena)?,
        }
    }
}
