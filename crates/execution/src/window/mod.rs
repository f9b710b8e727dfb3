//! Window functions. Rows are sorted by partition and order; then a walk over each partition
//! computes the calls' values.
//!
//! A partition's rows are kept ([`Rows`]) and have several readers. One gives the rows on. One runs
//! ahead to the end of the current row's peers and feeds the aggregates. Each call has one that
//! fetches the rows it asks for.
//!
//! A single partition without an order needs no sort: its rows are handed on as they come, if no
//! call needs all of them ([`stream`]). Ranks need no kept rows either ([`ranks`]).

mod ranks;
mod stream;

use bumpalo::Bump;

use super::memory::{pack_registers, unpack_registers};
use super::records::Keys;
use super::sort::sort_key;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{Rows, RowsReader, Sorted, Sorter, pack, unpack};
use expressions::expr::Expr;
use expressions::function::WindowFunction;
use expressions::functions::Accumulator;
use query::plan::{Plan, Reg, RunCondition, SortKey, WindowCall};
use values::error::{SqlError, SqlState};
use values::types::{Datum, Value};
use values::work::{self, tick_parts};

/// The parts of a window node.
pub(super) struct Window<'s> {
    pub input: &'s Plan,
    pub partition: &'s [Expr],
    pub order: &'s [SortKey],
    pub calls: &'s [WindowCall],
    pub keep: &'s [Reg],
    pub run: &'s Option<Box<RunCondition>>,
}

/// The bucket of row `at`, as ntile() counts. Buckets have equal sizes; the first ones take one row
/// more each if the division leaves a remainder.
fn bucket(at: u64, rows: u64, buckets: i32) -> Result<Datum<'static>, SqlError> {
    let Some(buckets) = u64::try_from(buckets).ok().filter(|buckets| *buckets > 0) else {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_NTILE,
            "argument of ntile must be greater than zero",
        ));
    };
    let (size, larger) = (rows / buckets, rows % buckets);
    let in_larger = larger * (size + 1);
    let bucket = if at < in_larger { at / (size + 1) } else { larger + (at - in_larger) / size };
    Ok(Datum::Int4(bucket as i32 + 1))
}

/// The state of a walk over a partition. A kept row holds whether it begins a new set of peers
/// (bool), the calls' arguments and the kept registers.
struct Walk {
    ahead: RowsReader,
    /// One reader a call, which fetches the rows it asks for.
    fetch: Vec<RowsReader>,
    aggregates: Vec<Option<Accumulator>>,
    /// The aggregates' values over all rows up to the last peer.
    values: Vec<Value>,
    /// The current row's peers: the first one's number, and the one after the last.
    peers: (u64, u64),
    dense_rank: i64,
}

impl<'s> Window<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        if self.ranks_only() {
            return self.rank(cx, file, arena, sink);
        }
        if let Some(reach) = self.reach() {
            return self.stream(reach, cx, file, arena, sink);
        }
        let mut sorted = self.sort(cx, file, arena, usize::MAX)?;
        let mut rows = Rows::numbered(cx.work_mem());
        // The last row's key, and how many of its bytes belong to the partition.
        let (mut last, mut last_partition) = (Vec::new(), 0);
        while let Some((key, row)) = sorted.next()? {
            cx.check()?;
            let (partition, row) = row.split_at(size_of::<u32>());
            let partition = partition.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
            if rows.count() > 0 && !work::equal(&key[..partition], &last[..last_partition])? {
                if self.give(cx, &rows, file, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                rows.clear();
            }
            let new_peers = rows.count() == 0 || !work::equal(key, &last)?;
            rows.push(cx.folder(), |to| {
                pack([Datum::Bool(new_peers)].into_iter(), to)?;
                work::put(row, to)
            })?;
            last.clear();
            work::put(key, &mut last)?;
            last_partition = partition;
        }
        if rows.count() > 0 { self.give(cx, &rows, file, sink) } else { Ok(Flow::More) }
    }

    /// Sorts the input by partition and order. The first `most` rows are enough. A payload holds
    /// how many bytes of the key belong to the partition (u32), the calls' arguments and the kept
    /// registers.
    fn sort<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        most: usize,
    ) -> Result<Sorted, SqlError> {
        let mut sorter = Sorter::limited(cx.folder(), cx.work_mem(), most);
        let (mut maker, mut key) = (Keys::default(), Vec::new());
        run(cx, self.input, file, arena, &mut |cx, file, arena| {
            key.clear();
            tick_parts(self.partition.len())?;
            for expr in self.partition {
                maker.plain(cx.eval(expr, file, arena)?, &mut key)?;
            }
            let partition = key.len() as u32;
            sort_key(cx, self.order, (file, arena), &mut maker, &mut key)?;
            tick_parts(self.calls.len())?;
            sorter.push(&key, |to| {
                to.extend_from_slice(&partition.to_le_bytes());
                for argument in self.calls.iter().flat_map(|call| &call.arguments) {
                    pack([cx.eval(argument, file, arena)?].into_iter(), to)?;
                }
                pack_registers(self.keep, file, to)
            })?;
            Ok(Flow::More)
        })?;
        sorter.finish()
    }

    /// Gives a partition's rows on.
    fn give(
        &self,
        cx: &mut Executor<'s>,
        rows: &Rows,
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut walk = self.walk();
        let mut reader = RowsReader::default();
        cx.scoped(|cx, own| {
            loop {
                let at = reader.number();
                let Some(row) = reader.next(rows)? else { return Ok(Flow::More) };
                cx.check()?;
                if at == walk.peers.1 {
                    self.next_peers(cx, rows, &mut walk, own)?;
                }
                if self.give_row(cx, (rows, &mut walk), (at, row), (file, &mut *own), sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        })
    }

    /// A walk that begins.
    fn walk(&self) -> Walk {
        let start = |call: &WindowCall| match &call.function {
            WindowFunction::Aggregate(aggregate) => Some(aggregate.start()),
            _ => None,
        };
        Walk {
            ahead: RowsReader::default(),
            fetch: self.calls.iter().map(|_| RowsReader::default()).collect(),
            aggregates: self.calls.iter().map(start).collect(),
            values: self.calls.iter().map(|_| Value::Null).collect(),
            peers: (0, 0),
            dense_rank: 0,
        }
    }

    /// Gives row `at` on with the calls' values.
    fn give_row(
        &self,
        cx: &mut Executor<'s>,
        (rows, walk): (&Rows, &mut Walk),
        (at, mut row): (u64, &[u8]),
        (file, own): (&File<'_>, &mut Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let flow = {
            let own = &*own;
            let file = own.file(file);
            unpack(&mut row, &own.bump)?;
            tick_parts(self.calls.len())?;
            for (number, call) in self.calls.iter().enumerate() {
                let arguments = own.bump.alloc_slice_fill_copy(call.arguments.len(), Datum::Null);
                for argument in &mut *arguments {
                    *argument = unpack(&mut row, &own.bump)?;
                }
                file[call.output as usize] = self.value(rows, walk, (at, number), arguments, &own.bump)?;
            }
            unpack_registers(self.keep, row, file, &own.bump)?;
            sink(cx, file, own)?
        };
        own.bump.reset();
        Ok(flow)
    }

    /// Finds the end of the next set of peers and feeds them to the aggregates. The default frame
    /// ends with the current row's last peer.
    fn next_peers(
        &self,
        cx: &mut Executor<'s>,
        rows: &Rows,
        walk: &mut Walk,
        own: &mut Arena<'s>,
    ) -> Result<(), SqlError> {
        let first = walk.peers.1;
        walk.dense_rank += 1;
        let mut end = first;
        while end < rows.count() {
            cx.check()?;
            let mut row = walk.ahead.row(rows, end)?;
            if matches!(unpack(&mut row, &own.bump)?, Datum::Bool(true)) && end > first {
                break;
            }
            tick_parts(self.calls.len())?;
            for (call, state) in self.calls.iter().zip(&mut walk.aggregates) {
                let arguments = own.bump.alloc_slice_fill_copy(call.arguments.len(), Datum::Null);
                for argument in &mut *arguments {
                    *argument = unpack(&mut row, &own.bump)?;
                }
                if let Some(state) = state {
                    state.add(arguments)?;
                }
            }
            end += 1;
            own.bump.reset();
        }
        walk.peers = (first, end);
        for (value, state) in walk.values.iter_mut().zip(&walk.aggregates) {
            if let Some(state) = state {
                *value = state.finish(&own.bump)?.to_value()?;
            }
        }
        own.bump.reset();
        Ok(())
    }

    /// A call's value for row `at`.
    fn value<'x>(
        &self,
        rows: &Rows,
        walk: &mut Walk,
        (at, number): (u64, usize),
        arguments: &[Datum<'x>],
        arena: &'x Bump,
    ) -> Result<Datum<'x>, SqlError> {
        let fetch = &mut walk.fetch[number];
        Ok(match &self.calls[number].function {
            WindowFunction::RowNumber => Datum::Int8(at as i64 + 1),
            WindowFunction::Rank => Datum::Int8(walk.peers.0 as i64 + 1),
            WindowFunction::DenseRank => Datum::Int8(walk.dense_rank),
            WindowFunction::PercentRank => Datum::Float8(match rows.count() {
                0 | 1 => 0.0,
                count => walk.peers.0 as f64 / (count - 1) as f64,
            }),
            WindowFunction::CumeDist => Datum::Float8(walk.peers.1 as f64 / rows.count() as f64),
            WindowFunction::Ntile => match self.first_argument(rows, fetch, (0, number), arena)? {
                Datum::Int4(buckets) => bucket(at, rows.count(), buckets)?,
                _ => Datum::Null,
            },
            WindowFunction::NthValue => match arguments.get(1) {
                Some(Datum::Int4(wanted)) if *wanted <= 0 => {
                    return Err(SqlError::new(
                        SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE,
                        "argument of nth_value must be greater than zero",
                    ));
                }
                Some(Datum::Int4(wanted)) if (*wanted as u64) <= walk.peers.1 => {
                    self.first_argument(rows, fetch, (*wanted as u64 - 1, number), arena)?
                }
                _ => Datum::Null,
            },
            WindowFunction::FirstValue => self.first_argument(rows, fetch, (0, number), arena)?,
            WindowFunction::LastValue => {
                self.first_argument(rows, fetch, (walk.peers.1 - 1, number), arena)?
            }
            WindowFunction::Lag | WindowFunction::Lead => {
                let back = matches!(self.calls[number].function, WindowFunction::Lag);
                let offset = match arguments.get(1) {
                    None => 1,
                    Some(Datum::Int4(offset)) => i64::from(*offset),
                    Some(_) => return Ok(Datum::Null),
                };
                let to = at as i64 + if back { -offset } else { offset };
                match u64::try_from(to).ok().filter(|to| *to < rows.count()) {
                    Some(to) => self.first_argument(rows, fetch, (to, number), arena)?,
                    None => arguments.get(2).copied().unwrap_or(Datum::Null),
                }
            }
            WindowFunction::Aggregate(_) => walk.values[number].datum_in(arena).copy_in(arena)?,
        })
    }

    /// The first argument of a call at a row.
    fn first_argument<'x>(
        &self,
        rows: &Rows,
        fetch: &mut RowsReader,
        (at, number): (u64, usize),
        arena: &'x Bump,
    ) -> Result<Datum<'x>, SqlError> {
        let mut row = fetch.row(rows, at)?;
        let scratch = Bump::new();
        // Skips the flag and the arguments of the calls before.
        let before: usize = self.calls[..number].iter().map(|call| call.arguments.len()).sum();
        for _ in 0..=before {
            unpack(&mut row, &scratch)?;
        }
        unpack(&mut row, &scratch)?.copy_in(arena)
    }
}
