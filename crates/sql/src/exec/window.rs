//! Window functions: rows sorted by partition and order, then each partition walked with its peers in sight.

use std::ops::Range;

use super::memory::{copy_datum, encode_key, load, store};
use super::sort::sort_key;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::plan::{Plan, Reg, SortKey, WindowCall, WindowFunction};
use crate::types::Datum;

/// The parts of a window node.
pub(super) struct Window<'s> {
    pub input: &'s Plan,
    pub partition: &'s [Expr],
    pub order: &'s [SortKey],
    pub calls: &'s [WindowCall],
    pub keep: &'s [Reg],
}

/// A kept row: the bytes it is sorted by, how many of them are the partition's, its registers, the calls' arguments.
struct Row<'b> {
    key: &'b [u8],
    partition: usize,
    kept: &'b [Datum<'b>],
    arguments: &'b [&'b [Datum<'b>]],
}

impl<'s> Window<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        cx.scoped(|cx, memory| {
            let memory = &*memory;
            let mut rows = self.collect(cx, file, arena, memory)?;
            rows.sort_by(|a, b| a.key.cmp(b.key));
            let mut start = 0;
            while start < rows.len() {
                let partition = &rows[start].key[..rows[start].partition];
                let length =
                    rows[start..].iter().take_while(|row| &row.key[..row.partition] == partition).count();
                if self.partition_rows(cx, &rows[start..start + length], file, memory, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                start += length;
            }
            Ok(Flow::More)
        })
    }

    fn collect<'x, 'b>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        memory: &'b Arena<'s>,
    ) -> Result<Vec<Row<'b>>, SqlError> {
        let mut rows = Vec::new();
        let mut key = Vec::new();
        run(cx, self.input, file, arena, &mut |cx, file, arena| {
            key.clear();
            for expr in self.partition {
                encode_key(cx.eval(expr, file, arena)?, &mut key)?;
            }
            let partition = key.len();
            sort_key(cx, self.order, file, arena, &mut key)?;
            let mut arguments: Vec<&[Datum<'_>]> = Vec::with_capacity(self.calls.len());
            for call in self.calls {
                let mut values = Vec::with_capacity(call.arguments.len());
                for argument in &call.arguments {
                    values.push(copy_datum(cx.eval(argument, file, arena)?, &memory.bump));
                }
                arguments.push(memory.bump.alloc_slice_copy(&values));
            }
            rows.push(Row {
                key: memory.bump.alloc_slice_copy(&key),
                partition,
                kept: store(self.keep, file, &memory.bump),
                arguments: memory.bump.alloc_slice_copy(&arguments),
            });
            Ok(Flow::More)
        })?;
        Ok(rows)
    }

    /// Computes the calls over one partition and gives its rows on.
    fn partition_rows<'b>(
        &self,
        cx: &mut Executor<'s>,
        rows: &[Row<'b>],
        file: &File<'_>,
        memory: &'b Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut peers: Vec<Range<usize>> = Vec::with_capacity(rows.len());
        for at in 0..rows.len() {
            let same = at > 0 && rows[at].key == rows[at - 1].key;
            let start = if same { peers[at - 1].start } else { at };
            let end = if same {
                peers[at - 1].end
            } else {
                at + rows[at..].iter().take_while(|row| row.key == rows[at].key).count()
            };
            peers.push(start..end);
        }
        let mut results: Vec<Vec<Datum<'b>>> = Vec::with_capacity(self.calls.len());
        for (number, call) in self.calls.iter().enumerate() {
            results.push(compute(call, number, rows, &peers, memory)?);
        }
        cx.scoped(|cx, own| {
            for (at, row) in rows.iter().enumerate() {
                let flow = {
                    let file = own.file(file);
                    load(self.keep, row.kept, file);
                    for (call, values) in self.calls.iter().zip(&results) {
                        file[call.output as usize] = values[at];
                    }
                    sink(cx, file, own)?
                };
                own.bump.reset();
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        })
    }
}

/// One call's value for each row of a partition.
fn compute<'b>(
    call: &WindowCall,
    number: usize,
    rows: &[Row<'b>],
    peers: &[Range<usize>],
    memory: &'b Arena<'_>,
) -> Result<Vec<Datum<'b>>, SqlError> {
    let first = |at: usize| rows[at].arguments[number].first().copied().unwrap_or(Datum::Null);
    let mut values = Vec::with_capacity(rows.len());
    match &call.function {
        WindowFunction::RowNumber => values.extend((1..).take(rows.len()).map(Datum::Int8)),
        WindowFunction::Rank => values.extend(peers.iter().map(|peers| Datum::Int8(peers.start as i64 + 1))),
        WindowFunction::DenseRank => {
            let mut rank = 0;
            for (at, peers) in peers.iter().enumerate() {
                rank += i64::from(peers.start == at);
                values.push(Datum::Int8(rank));
            }
        }
        WindowFunction::FirstValue => values.extend((0..rows.len()).map(|_| first(0))),
        WindowFunction::LastValue => values.extend(peers.iter().map(|peers| first(peers.end - 1))),
        WindowFunction::Lag | WindowFunction::Lead => {
            let back = matches!(call.function, WindowFunction::Lag);
            for (at, row) in rows.iter().enumerate() {
                let arguments = row.arguments[number];
                let offset = match arguments.get(1) {
                    None => 1,
                    Some(Datum::Int4(offset)) => i64::from(*offset),
                    Some(_) => {
                        values.push(Datum::Null);
                        continue;
                    }
                };
                let to = at as i64 + if back { -offset } else { offset };
                let there = usize::try_from(to).ok().filter(|to| *to < rows.len());
                values.push(there.map_or_else(|| arguments.get(2).copied().unwrap_or(Datum::Null), first));
            }
        }
        WindowFunction::Aggregate(aggregate) => {
            let mut state = aggregate.start();
            let mut taken = 0;
            let mut value = Datum::Null;
            for peers in peers {
                // The default frame ends with the current row's last peer.
                if peers.end > taken {
                    for row in &rows[taken..peers.end] {
                        state.add(row.arguments[number])?;
                    }
                    taken = peers.end;
                    value = copy_datum(state.finish(&memory.bump)?, &memory.bump);
                }
                values.push(value);
            }
        }
    }
    Ok(values)
}
