//! Windows of row_number(), rank() and dense_rank() only. Their values need no later row, so rows
//! are handed on as they come in the window's order. A run condition ends a partition at the first
//! row for which it is false.

use super::Window;
use crate::memory::{give, unpack_registers};
use crate::records::Keys;
use crate::sort::sort_key;
use crate::{Arena, Executor, File, Flow, Sink, run};
use expressions::function::WindowFunction;
use values::error::SqlError;
use values::types::Datum;
use values::work::{self, tick_parts};

/// The place of the current row in its partition.
#[derive(Default)]
struct Place {
    row_number: i64,
    rank: i64,
    dense_rank: i64,
    /// The row's key, and how many of its bytes belong to the partition.
    key: Vec<u8>,
    partition: usize,
}

impl Place {
    /// Goes on to the next row. The answer is whether it begins a partition.
    fn step(&mut self, key: &[u8], partition: usize) -> Result<bool, SqlError> {
        let begins = self.row_number == 0 || !work::equal(&key[..partition], &self.key[..self.partition])?;
        if begins {
            (self.row_number, self.rank, self.dense_rank) = (0, 0, 0);
        }
        self.row_number += 1;
        if begins || !work::equal(key, &self.key)? {
            self.rank = self.row_number;
            self.dense_rank += 1;
            self.key.clear();
            work::put(key, &mut self.key)?;
            self.partition = partition;
        }
        Ok(begins)
    }
}

impl<'s> Window<'s> {
    /// Whether all calls are of these functions.
    pub(super) fn ranks_only(&self) -> bool {
        let is_rank = |function: &WindowFunction| {
            matches!(function, WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank)
        };
        self.calls.iter().all(|call| is_rank(&call.function))
    }

    /// Gives the rows on with their places.
    pub(super) fn rank<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let has_keys = !(self.partition.is_empty() && self.order.is_empty());
        if !has_keys || self.run.as_ref().is_some_and(|run| run.in_order) {
            return self.rank_as_they_come(cx, file, arena, sink);
        }
        let most = self.most(cx, file, arena)?;
        let mut sorted = self.sort(cx, file, arena, most)?;
        let (mut place, mut ended) = (Place::default(), false);
        cx.scoped(|cx, own| {
            while let Some((key, row)) = sorted.next()? {
                let (partition, row) = row.split_at(size_of::<u32>());
                let partition = partition.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                ended &= !place.step(key, partition as usize)?;
                if ended {
                    cx.check()?;
                    continue;
                }
                let flow = give(
                    cx,
                    own,
                    (file, row),
                    |row, file, arena| unpack_registers(self.keep, row, file, arena).map(drop),
                    &mut |cx, file, arena| {
                        self.place(&place, file)?;
                        ended = !self.runs(cx, file, arena)?;
                        if ended { Ok(Flow::More) } else { sink(cx, file, arena) }
                    },
                )?;
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                if ended && self.partition.is_empty() {
                    break;
                }
            }
            Ok(Flow::More)
        })
    }

    /// The same for rows that come in order, in one partition.
    fn rank_as_they_come<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let reads_key = self.calls.iter().any(|call| !matches!(call.function, WindowFunction::RowNumber));
        let (mut place, mut maker, mut key) = (Place::default(), Keys::default(), Vec::new());
        let mut stopped = false;
        run(cx, self.input, file, arena, &mut |cx, file, arena| {
            key.clear();
            if reads_key {
                sort_key(cx, self.order, (file, arena), &mut maker, &mut key)?;
            }
            place.step(&key, 0)?;
            self.place(&place, file)?;
            if !self.runs(cx, file, arena)? {
                return Ok(Flow::Stop);
            }
            let flow = sink(cx, file, arena)?;
            stopped = flow == Flow::Stop;
            Ok(flow)
        })?;
        // A stop because of the run condition does not stop others.
        Ok(if stopped { Flow::Stop } else { Flow::More })
    }

    /// Fills the calls' registers.
    fn place(&self, place: &Place, file: &mut File<'_>) -> Result<(), SqlError> {
        tick_parts(self.calls.len())?;
        for call in self.calls {
            file[call.output as usize] = Datum::Int8(match call.function {
                WindowFunction::RowNumber => place.row_number,
                WindowFunction::Rank => place.rank,
                _ => place.dense_rank,
            });
        }
        Ok(())
    }

    /// Whether the run conditions are true.
    fn runs<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        let Some(run) = self.run else { return Ok(true) };
        tick_parts(run.conditions.len())?;
        for condition in &run.conditions {
            if !cx.test(condition, file, arena)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The most rows to sort, at least one: the run condition fails at the next.
    fn most<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<usize, SqlError> {
        let Some(most) = self.run.as_ref().and_then(|run| run.most.as_ref()) else { return Ok(usize::MAX) };
        let most = match cx.eval(most, file, arena)? {
            Datum::Int8(most) => most,
            Datum::Int4(most) => i64::from(most),
            Datum::Null => 0,
            _ => i64::MAX,
        };
        Ok(usize::try_from(most.max(1)).unwrap_or(usize::MAX))
    }
}
