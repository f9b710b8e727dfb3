//! The right side of a nested loop that keeps its rows by the left values on which they depend, as
//! PostgreSQL's Memoize.
//!
//! The planner expects repeated values, so the trial of [`Results`] ends only with its memory.
//!
//! What must hold: only whole results are kept. If the plan above stops in the middle of them, they
//! are not, unless the loop wants the first row alone. So it must not test that row, since the left
//! values that the test reads may be others.

use super::memory::{give, pack_registers, unpack_registers};
use super::results::Results;
use super::{Arena, Executor, File, Flow, Sink, run};
use query::explain::Memory;
use query::plan::{Plan, Reg};
use values::error::SqlError;
use values::work;

/// Bytes of the number of rows in a result.
const COUNT: usize = size_of::<u64>();

/// The right side and its rows so far.
pub(super) struct Memo<'s> {
    right: &'s Plan,
    /// The registers of a row that are kept.
    registers: &'s [Reg],
    /// Whether the loop wants the first row alone.
    one: bool,
    results: Results<'s>,
    /// Rows given, kept ones and others.
    rows: u64,
}

impl<'s> Memo<'s> {
    /// No rows yet of a right side that depends on the registers `keys`.
    pub fn new(
        cx: &Executor<'s>,
        (right, keys): (&'s Plan, &'s [Reg]),
        registers: &'s [Reg],
        one: bool,
    ) -> Memo<'s> {
        Memo { right, registers, one, results: Results::new(cx, keys, (0, u64::MAX)), rows: 0 }
    }

    /// Gives the right rows of one left row.
    pub fn give<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let Memo { right, registers, one, results, rows: given } = self;
        if let Some(kept) = results.recall(file)? {
            let (count, rows) = kept.split_first_chunk::<COUNT>().unwrap_or((&[0; COUNT], &[]));
            let count = u64::from_le_bytes(*count);
            return give_kept(cx, (registers, given), (count, rows), (file, arena), sink);
        }
        let keeps = results.is_in_use();
        let (mut packed, mut count, mut stopped) = (vec![0; COUNT], 0_u64, false);
        let flow = run(cx, right, file, arena, &mut |cx, file, arena| {
            *given += 1;
            if keeps && packed.len() <= results.most() {
                count += 1;
                pack_registers(registers, file, &mut packed)?;
            }
            let flow = sink(cx, file, arena)?;
            stopped = flow == Flow::Stop;
            Ok(flow)
        })?;
        if keeps && (*one || !stopped) {
            packed[..COUNT].copy_from_slice(&count.to_le_bytes());
            results.keep(packed)?;
        }
        Ok(flow)
    }

    /// The figures of its results, and the rows it gave.
    pub fn figures(&self) -> Memory {
        Memory { rows: self.rows, ..self.results.memory() }
    }
}

/// Gives kept rows.
fn give_kept<'s, 'x>(
    cx: &mut Executor<'s>,
    (registers, given): (&[Reg], &mut u64),
    (count, mut rows): (u64, &[u8]),
    (file, arena): (&mut File<'x>, &'x Arena<'s>),
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    if count == 1 {
        // The only row uses the left row's scope.
        *given += 1;
        unpack_registers(registers, work::bytes_in(rows, &arena.bump)?, file, &arena.bump)?;
        return sink(cx, file, arena);
    }
    if count == 0 {
        return Ok(Flow::More);
    }
    cx.scoped(|cx, own| {
        for _ in 0..count {
            let mut left = 0;
            *given += 1;
            let flow = give(
                cx,
                own,
                (file, rows),
                |row, file, arena| {
                    left = unpack_registers(registers, row, file, arena)?.len();
                    Ok(())
                },
                sink,
            )?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
            rows = &rows[rows.len() - left..];
        }
        Ok(Flow::More)
    })
}
