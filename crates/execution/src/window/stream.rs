//! Windows whose rows are handed on as they come: one partition, all its rows peers of each other.
//!
//! row_number(), rank(), dense_rank() and first_value() need no row but the present one and the
//! first. For lag(), lead() and nth_value() rows are kept. A row is given once the last row that
//! its calls may ask for has come. Pages behind the furthest row that lag() asks for are given
//! back.

use super::Window;
use crate::memory::pack_registers;
use crate::spill::{Rows, RowsReader, pack, unpack};
use crate::{Arena, Executor, File, Flow, Sink, run};
use expressions::function::WindowFunction;
use query::plan::WindowCall;
use values::error::SqlError;
use values::types::{Datum, Value};
use values::work::{self, tick_parts};

/// The rows that a window's calls ask for.
pub(super) enum Reach {
    /// The present row and the first.
    Present,
    /// Rows around the present one.
    Around {
        /// How many rows before the current one (towards the start) the calls may read; None: no
        /// bound, so all earlier rows are kept.
        back: Option<u64>,
        /// How many rows after the current one the calls may read; None: known only for each row,
        /// from its arguments.
        ahead: Option<u64>,
    },
}

/// The rows back and ahead that a call asks for; None for a call that needs them all.
fn reach_of(call: &WindowCall) -> Option<Reach> {
    let back = match call.function {
        WindowFunction::RowNumber
        | WindowFunction::Rank
        | WindowFunction::DenseRank
        | WindowFunction::FirstValue => return Some(Reach::Present),
        WindowFunction::NthValue => return Some(Reach::Around { back: None, ahead: None }),
        WindowFunction::Lag => true,
        WindowFunction::Lead => false,
        WindowFunction::PercentRank
        | WindowFunction::CumeDist
        | WindowFunction::Ntile
        | WindowFunction::LastValue
        | WindowFunction::Aggregate(_) => return None,
    };
    let offset = match call.arguments.get(1).map(|offset| offset.as_const()) {
        None => 1,
        Some(Some(Value::Int4(offset))) => i64::from(*offset),
        Some(Some(Value::Null)) => 0,
        Some(_) => return Some(Reach::Around { back: None, ahead: None }),
    };
    let ahead = if back { -offset } else { offset };
    Some(Reach::Around { back: Some((-ahead).max(0) as u64), ahead: Some(ahead.max(0) as u64) })
}

impl<'s> Window<'s> {
    /// The rows that the calls ask for; None if rows have to be sorted, or a call needs all of
    /// them.
    pub(super) fn reach(&self) -> Option<Reach> {
        if !self.partition.is_empty() || !self.order.is_empty() {
            return None;
        }
        let mut all = Reach::Present;
        let mut first = false;
        for call in self.calls {
            first |= matches!(call.function, WindowFunction::FirstValue);
            all = match (all, reach_of(call)?) {
                (one, Reach::Present) | (Reach::Present, one) => one,
                (Reach::Around { back, ahead }, Reach::Around { back: more_back, ahead: more_ahead }) => {
                    Reach::Around {
                        back: back.zip(more_back).map(|(one, other)| one.max(other)),
                        ahead: ahead.zip(more_ahead).map(|(one, other)| one.max(other)),
                    }
                }
            };
        }
        Some(match all {
            // first_value() reads the first row, so no earlier row may be dropped (`back: None`).
            Reach::Around { ahead, .. } if first => Reach::Around { back: None, ahead },
            all => all,
        })
    }

    /// Hands rows on as they come.
    pub(super) fn stream<'x>(
        &self,
        reach: Reach,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        match reach {
            Reach::Present => self.stream_present(cx, file, arena, sink),
            Reach::Around { back, ahead } => self.stream_around((back, ahead), cx, file, arena, sink),
        }
    }

    fn stream_present<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut count = 0;
        // The values of first_value().
        let mut firsts: Vec<Value> = Vec::with_capacity(self.calls.len());
        run(cx, self.input, file, arena, &mut |cx, file, arena| {
            if count == 0 {
                for call in self.calls {
                    firsts.push(match (&call.function, call.arguments.first()) {
                        (WindowFunction::FirstValue, Some(value)) => {
                            cx.eval(value, file, arena)?.to_value()?
                        }
                        _ => Value::Null,
                    });
                }
            }
            count += 1;
            tick_parts(self.calls.len())?;
            for (call, first) in self.calls.iter().zip(&firsts) {
                file[call.output as usize] = match call.function {
                    WindowFunction::RowNumber => Datum::Int8(count),
                    WindowFunction::FirstValue => first.datum_in(&arena.bump).copy_in(&arena.bump)?,
                    _ => Datum::Int8(1),
                };
            }
            sink(cx, file, arena)
        })
    }

    fn stream_around<'x>(
        &self,
        (back, ahead): (Option<u64>, Option<u64>),
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut walk = self.walk();
        walk.dense_rank = 1;
        let mut rows = Rows::numbered(cx.work_mem());
        let (mut reader, mut payload) = (RowsReader::default(), Vec::new());
        // The number of rows that must have come before the next one is given.
        let mut wanted = None;
        cx.scoped(|cx, own| {
            let mut give = |cx: &mut Executor<'s>,
                            rows: &mut Rows,
                            file: &File<'_>,
                            ended: bool,
                            sink: &mut Sink<'s, '_>| {
                loop {
                    let at = reader.number();
                    if at == rows.count() {
                        return Ok(Flow::More);
                    }
                    cx.check()?;
                    let needed = match (wanted, ahead) {
                        (Some(needed), _) => needed,
                        (None, Some(ahead)) => at + ahead + 1,
                        (None, None) => {
                            let needed = self.needed((at, walk.ahead.row(rows, at)?), own)?;
                            own.bump.reset();
                            needed
                        }
                    };
                    if needed > rows.count() && !ended {
                        wanted = Some(needed);
                        return Ok(Flow::More);
                    }
                    wanted = None;
                    walk.peers = (0, rows.count());
                    let Some(row) = reader.next(rows)? else { return Ok(Flow::More) };
                    if self.give_row(cx, (rows, &mut walk), (at, row), (file, &mut *own), sink)? == Flow::Stop
                    {
                        return Ok(Flow::Stop);
                    }
                    if let Some(back) = back {
                        rows.release_before((at + 1).saturating_sub(back));
                    }
                }
            };
            let flow = run(cx, self.input, file, arena, &mut |cx, file, arena| {
                payload.clear();
                pack([Datum::Bool(false)].into_iter(), &mut payload)?;
                tick_parts(self.calls.len())?;
                for argument in self.calls.iter().flat_map(|call| &call.arguments) {
                    pack([cx.eval(argument, file, arena)?].into_iter(), &mut payload)?;
                }
                pack_registers(self.keep, file, &mut payload)?;
                rows.push(cx.folder(), |to| work::put(&payload, to))?;
                give(cx, &mut rows, file, false, sink)
            })?;
            match flow {
                Flow::Stop => Ok(Flow::Stop),
                Flow::More => give(cx, &mut rows, file, true, sink),
            }
        })
    }

    /// The number of rows that must have come before row `at` is given.
    fn needed(&self, (at, mut row): (u64, &[u8]), own: &Arena<'s>) -> Result<u64, SqlError> {
        let mut needed = at + 1;
        unpack(&mut row, &own.bump)?;
        tick_parts(self.calls.len())?;
        for call in self.calls {
            let mut offset = Datum::Int4(1);
            for argument in 0..call.arguments.len() {
                let value = unpack(&mut row, &own.bump)?;
                if argument == 1 {
                    offset = value;
                }
            }
            let Datum::Int4(offset) = offset else { continue };
            let last = match call.function {
                WindowFunction::NthValue => i64::from(offset) - 1,
                WindowFunction::Lag => at as i64 - i64::from(offset),
                WindowFunction::Lead => at as i64 + i64::from(offset),
                _ => continue,
            };
            needed = needed.max(u64::try_from(last + 1).unwrap_or(0));
        }
        Ok(needed)
    }
}
