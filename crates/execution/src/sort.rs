//! Sort and top-n, LIMIT and OFFSET, DISTINCT.
//!
//! A row to be sorted is packed behind one byte string that orders as the sort keys do. So
//! comparing two rows is comparing bytes. What must hold: rows with equal keys stay in the input's
//! order.

use super::firsts::Firsts;
use super::memory::{encode_key, give, pack_registers, unpack_registers};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{Sorted, Sorter};
use expressions::expr::Expr;
use query::plan::{Plan, Reg, SortKey};
use values::error::{SqlError, SqlState};
use values::key::KeyOrder;
use values::types::Datum;
use values::work::tick_parts;

/// The least number of rows of a part that is sorted by itself.
const PART: usize = 32;

/// Appends the bytes that order a row by `keys`.
pub(super) fn sort_key<'s, 'x>(
    cx: &mut Executor<'s>,
    keys: &'s [SortKey],
    (file, arena): (&File<'x>, &'x Arena<'s>),
    maker: &mut Keys,
    bytes: &mut Vec<u8>,
) -> Result<(), SqlError> {
    tick_parts(keys.len())?;
    for key in keys {
        let value = cx.eval(&key.expr, file, arena)?;
        let order = KeyOrder { descending: key.descending, nulls_first: key.nulls_first };
        maker.ordered(value, order, bytes)?;
    }
    Ok(())
}

/// The order of a sort.
#[derive(Clone, Copy)]
pub(super) struct Order<'s> {
    pub(super) keys: &'s [SortKey],
    /// The number of leading keys by which the input comes.
    pub(super) presorted: usize,
}

/// Sort, and top-n when a limit is given.
pub(super) fn sort<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, order, keep, limit): (&'s Plan, Order<'s>, &'s [Reg], Option<&'s Expr>),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let limit = match limit.map(|limit| count(cx, limit, file, arena, Count::Limit)) {
        Some(Ok(limit)) => limit.unwrap_or(u64::MAX),
        // LIMIT and OFFSET are bigints, but their sum may exceed a bigint.
        Some(Err(error)) if error.code == SqlState::NUMERIC_VALUE_OUT_OF_RANGE => u64::MAX,
        Some(Err(error)) => return Err(error),
        None => u64::MAX,
    };
    if limit == 0 {
        return Ok(Flow::More);
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if order.presorted > 0 {
        return sort_in_parts(cx, (input, order, keep, limit), file, arena, sink);
    }
    let mut sorter = Sorter::limited(cx.folder(), cx.work_mem(), limit);
    let (mut maker, mut key) = (Keys::default(), cx.take_bytes());
    run(cx, input, file, arena, &mut |cx, file, arena| {
        key.clear();
        sort_key(cx, order.keys, (file, arena), &mut maker, &mut key)?;
        sorter.push(&key, |to| pack_registers(keep, file, to))?;
        Ok(Flow::More)
    })?;
    cx.give_bytes(key);
    emit(cx, sorter.finish()?, keep, file, sink)
}

/// Sorts rows that come by some leading keys: part by part. A part has all rows of some values of
/// these keys, and at least [`PART`] rows, so that short ones cost no sorter each.
fn sort_in_parts<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, order, keep, mut left): (&'s Plan, Order<'s>, &'s [Reg], usize),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let (before, after) = order.keys.split_at(order.presorted);
    let new = |cx: &Executor<'s>, left| Sorter::limited(cx.folder(), cx.work_mem(), left);
    let (mut sorter, mut rows) = (new(cx, left), 0);
    let (mut maker, mut key, mut last) = (Keys::default(), cx.take_bytes(), cx.take_bytes());
    let mut stopped = false;
    run(cx, input, file, arena, &mut |cx, file, arena| {
        key.clear();
        sort_key(cx, before, (file, arena), &mut maker, &mut key)?;
        if rows >= PART && !values::work::equal(&key, &last)? {
            left = left.saturating_sub(rows);
            let part = std::mem::replace(&mut sorter, new(cx, left.max(1)));
            rows = 0;
            stopped = emit(cx, part.finish()?, keep, file, sink)? == Flow::Stop;
            if stopped || left == 0 {
                return Ok(Flow::Stop);
            }
        }
        last.clear();
        values::work::put(&key, &mut last)?;
        sort_key(cx, after, (file, arena), &mut maker, &mut key)?;
        sorter.push(&key, |to| pack_registers(keep, file, to))?;
        rows += 1;
        Ok(Flow::More)
    })?;
    cx.give_bytes(key);
    cx.give_bytes(last);
    match stopped {
        true => Ok(Flow::Stop),
        false if left == 0 => Ok(Flow::More),
        false => emit(cx, sorter.finish()?, keep, file, sink),
    }
}

/// Gives sorted rows on.
fn emit<'s>(
    cx: &mut Executor<'s>,
    mut rows: Sorted,
    registers: &[Reg],
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    cx.scoped(|cx, own| {
        while let Some((_, row)) = rows.next()? {
            let flow = give(
                cx,
                own,
                (file, row),
                |row, file, arena| unpack_registers(registers, row, file, arena).map(drop),
                sink,
            )?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    })
}

/// Which number is meant, for the message.
#[derive(Clone, Copy)]
enum Count {
    Limit,
    Offset,
}

/// Evaluates a LIMIT or OFFSET; None = NULL.
fn count<'s, 'x>(
    cx: &mut Executor<'s>,
    expr: &'s Expr,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    which: Count,
) -> Result<Option<u64>, SqlError> {
    let number = match cx.eval(expr, file, arena)? {
        Datum::Null => return Ok(None),
        Datum::Int8(number) => number,
        Datum::Int4(number) => i64::from(number),
        _ => return Err(SqlError::internal("a row count that is no bigint")),
    };
    u64::try_from(number).map(Some).map_err(|_| match which {
        Count::Limit => {
            SqlError::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative")
        }
        Count::Offset => {
            SqlError::new(SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative")
        }
    })
}

/// LIMIT and OFFSET, WITH TIES when `ties` are given.
pub(super) fn limit<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, limit, offset, ties): (&'s Plan, Option<&'s Expr>, Option<&'s Expr>, &'s [Expr]),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut skip = match offset {
        Some(offset) => count(cx, offset, file, arena, Count::Offset)?.unwrap_or(0),
        None => 0,
    };
    let mut left = match limit {
        Some(limit) => count(cx, limit, file, arena, Count::Limit)?.unwrap_or(u64::MAX),
        None => u64::MAX,
    };
    if left == 0 {
        return Ok(Flow::More);
    }
    let (mut last, mut bytes) = (Vec::new(), Vec::new());
    let mut stopped = false;
    run(cx, input, file, arena, &mut |cx, file, arena| {
        if skip > 0 {
            skip -= 1;
            return Ok(Flow::More);
        }
        if !ties.is_empty() {
            bytes.clear();
            tick_parts(ties.len())?;
            for tie in ties {
                encode_key(cx.eval(tie, file, arena)?, &mut bytes)?;
            }
            if left == 0 && !values::work::equal(&bytes, &last)? {
                return Ok(Flow::Stop);
            }
            std::mem::swap(&mut last, &mut bytes);
        }
        left = left.saturating_sub(1);
        if sink(cx, file, arena)? == Flow::Stop {
            stopped = true;
            return Ok(Flow::Stop);
        }
        Ok(if left == 0 && ties.is_empty() { Flow::Stop } else { Flow::More })
    })?;
    // A stop because of this operator's own limit does not stop others.
    Ok(if stopped { Flow::Stop } else { Flow::More })
}

/// The first row of each set of equal keys.
pub(super) fn distinct<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, keys, keep): (&'s Plan, &'s [Expr], &'s [Reg]),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let (late, flow) = cx.scoped(|cx, memory| {
        let memory = &*memory;
        let mut firsts = Firsts::new(cx);
        let (mut maker, mut bytes) = (Keys::default(), Vec::new());
        let flow = run(cx, input, file, arena, &mut |cx, file, arena| {
            bytes.clear();
            tick_parts(keys.len())?;
            for key in keys {
                maker.plain(cx.eval(key, file, arena)?, &mut bytes)?;
            }
            match firsts.take(cx, &bytes, memory, |to| pack_registers(keep, file, to))? {
                true => sink(cx, file, arena),
                false => Ok(Flow::More),
            }
        })?;
        Ok((firsts.late(), flow))
    })?;
    match late {
        Some(late) if flow == Flow::More => late.give(cx, (keep, file), sink),
        _ => Ok(flow),
    }
}
