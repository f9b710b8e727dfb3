//! A hash join whose right side does not fit in memory: both sides are sorted by the bytes of their
//! keys and merged. [`super::merge_join`] merges inputs that come in the order of their keys.
//!
//! The right rows of one key are gathered ([`Rows`]) and read again for each left row of that key.
//! So a key may have any number of rows on both sides. If the plan above relies on the left rows'
//! order, the results are sorted by the left rows' numbers at the end. Left rows with a NULL in
//! their key match nothing and are not sorted.

use super::equi_join::EquiJoin;
use super::memory::{give, pack_registers, unpack_registers};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{Rows, RowsReader, Sorted, Sorter};
use query::plan::JoinKind;
use values::error::SqlError;
use values::work;

/// Where the results go: to the sink, or first into order.
struct Out<'j, 's> {
    join: &'j EquiJoin<'s>,
    ordered: Option<Sorter<'s>>,
}

impl<'s> Out<'_, 's> {
    /// Gives a result of the left row with this number. Right rows without a left one come last.
    fn give<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        number: u64,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let Some(sorter) = &mut self.ordered else { return sink(cx, file, arena) };
        sorter.push(&number.to_be_bytes(), |to| {
            pack_registers(self.join.left_registers, file, to)?;
            pack_registers(self.join.right_registers, file, to)
        })?;
        Ok(Flow::More)
    }
}

/// The right rows of one key.
struct Group {
    /// There is none when the right side has ended.
    any: bool,
    key: Vec<u8>,
    rows: Rows,
    /// One bit a row: whether it was matched, if the join gives unmatched rows.
    matched: Vec<u64>,
    /// The entry after the group.
    next: Option<(Vec<u8>, Vec<u8>)>,
}

impl Group {
    /// Goes to the next key.
    fn advance(&mut self, cx: &mut Executor<'_>, right: &mut Sorted) -> Result<(), SqlError> {
        self.rows.clear();
        self.matched.clear();
        self.any = false;
        if let Some((key, row)) = self.next.take() {
            self.any = true;
            self.rows.push(cx.folder(), |to| work::put(&row, to))?;
            self.key = key;
        }
        while let Some((key, row)) = right.next()? {
            cx.check()?;
            if !self.any {
                self.any = true;
                self.key.clear();
                work::put(key, &mut self.key)?;
            } else if !work::equal(key, &self.key)? {
                self.next = Some((work::owned_bytes(key)?.into(), work::owned_bytes(row)?.into()));
                break;
            }
            self.rows.push(cx.folder(), |to| work::put(row, to))?;
        }
        Ok(())
    }

    fn mark(&mut self, row: u64) {
        let word = (row / 64) as usize;
        if self.matched.len() <= word {
            self.matched.resize(word + 1, 0);
        }
        self.matched[word] |= 1 << (row % 64);
    }

    fn is_marked(&self, row: u64) -> bool {
        self.matched.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 != 0)
    }
}

/// A merge join in the place of a hash join.
pub(super) struct Merge<'j, 's> {
    join: &'j EquiJoin<'s>,
    out: Out<'j, 's>,
    group: Group,
}

impl<'j, 's> Merge<'j, 's> {
    pub fn new(join: &'j EquiJoin<'s>, cx: &Executor<'s>) -> Merge<'j, 's> {
        let rows = Rows::new(cx.work_mem());
        let group = Group { any: false, key: Vec::new(), rows, matched: Vec::new(), next: None };
        Merge { join, out: Out { join, ordered: join.ordered.then(|| cx.sorter()) }, group }
    }

    /// Joins the left side with the right rows, which are packed behind their keys.
    pub fn run<'x>(
        mut self,
        cx: &mut Executor<'s>,
        (right, mut maker): (Sorter<'s>, Keys),
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        // The left rows get the memory that the right ones had.
        let right = right.finish()?;
        let mut left = cx.sorter();
        let mut number = 0_u64;
        let mut key = Vec::new();
        let flow = run(cx, self.join.left, file, arena, &mut |cx, file, arena| {
            number += 1;
            if self.join.key(cx, (true, &mut maker), file, arena, &mut key)? {
                left.push(&key, |to| {
                    to.extend_from_slice(&number.to_be_bytes());
                    pack_registers(self.join.left_registers, file, to)
                })?;
                return Ok(Flow::More);
            }
            let out = &mut self.out;
            self.join.give_alone(cx, false, file, arena, &mut |cx, file, arena| {
                out.give(cx, number, (file, arena), sink)
            })
        })?;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
        let left = left.finish()?;
        let merged = cx.scoped(|cx, own| {
            cx.scoped(|cx, inner| self.merge(cx, (left, right), file, (own, inner), sink))
        })?;
        match self.out.ordered.take() {
            Some(sorter) if merged == Flow::More => self.in_order(cx, sorter, file, sink),
            _ => Ok(merged),
        }
    }

    /// Walks both sides in the order of their keys.
    fn merge(
        &mut self,
        cx: &mut Executor<'s>,
        (mut left, mut right): (Sorted, Sorted),
        file: &File<'_>,
        (own, inner): (&mut Arena<'s>, &mut Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        self.group.advance(cx, &mut right)?;
        while let Some((key, row)) = left.next()? {
            cx.check()?;
            let mut order = work::compare(&self.group.key, key)?;
            while self.group.any && order.is_lt() {
                if self.pass(cx, inner, file, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                self.group.advance(cx, &mut right)?;
                order = work::compare(&self.group.key, key)?;
            }
            let matches = self.group.any && order.is_eq();
            if !matches && matches!(self.join.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right) {
                if !self.group.any {
                    break;
                }
                continue;
            }
            let (number, row) = row.split_at(size_of::<u64>());
            let number = number.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let flow = {
                let own = &*own;
                let file = own.file(file);
                unpack_registers(self.join.left_registers, row, file, &own.bump)?;
                let (matched, flow) = match matches {
                    true => self.probe(cx, number, file, inner, sink)?,
                    false => (false, Flow::More),
                };
                match flow {
                    Flow::Stop => Flow::Stop,
                    Flow::More => {
                        let out = &mut self.out;
                        self.join.give_alone(cx, matched, file, own, &mut |cx, file, arena| {
                            out.give(cx, number, (file, arena), sink)
                        })?
                    }
                }
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        while self.group.any && self.join.keeps_unmatched() {
            if self.pass(cx, inner, file, sink)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.group.advance(cx, &mut right)?;
        }
        Ok(Flow::More)
    }

    /// Gives a left row with each row of the group that matches it; whether any does.
    fn probe(
        &mut self,
        cx: &mut Executor<'s>,
        number: u64,
        file: &File<'_>,
        inner: &mut Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<(bool, Flow), SqlError> {
        let mut reader = RowsReader::default();
        let mut any = false;
        loop {
            let at = reader.number();
            let Some(row) = reader.next(&self.group.rows)? else { return Ok((any, Flow::More)) };
            cx.check()?;
            let out = &mut self.out;
            let (matched, flow) = {
                let inner = &*inner;
                let file = inner.file(file);
                unpack_registers(self.join.right_registers, row, file, &inner.bump)?;
                self.join
                    .pair(cx, file, inner, &mut |cx, file, arena| out.give(cx, number, (file, arena), sink))?
            };
            inner.bump.reset();
            any |= matched;
            if matched && self.join.keeps_unmatched() {
                self.group.mark(at);
            }
            if flow == Flow::Stop || (matched && self.join.wants_one()) {
                return Ok((any, flow));
            }
        }
    }

    /// Leaves the group, and gives on its unmatched rows if the join wants them.
    fn pass(
        &mut self,
        cx: &mut Executor<'s>,
        inner: &mut Arena<'s>,
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        if !self.join.keeps_unmatched() {
            return Ok(Flow::More);
        }
        let mut reader = RowsReader::default();
        loop {
            let at = reader.number();
            let Some(row) = reader.next(&self.group.rows)? else { return Ok(Flow::More) };
            if self.group.is_marked(at) {
                cx.check()?;
                continue;
            }
            let out = &mut self.out;
            let flow = self.join.give_unmatched(cx, inner, (file, row), &mut |cx, file, arena| {
                out.give(cx, u64::MAX, (file, arena), sink)
            })?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    }

    /// Gives the results on in the order of the left rows.
    fn in_order(
        &self,
        cx: &mut Executor<'s>,
        sorter: Sorter<'s>,
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut rows = sorter.finish()?;
        cx.scoped(|cx, own| {
            while let Some((_, row)) = rows.next()? {
                let flow = give(
                    cx,
                    own,
                    (file, row),
                    |row, file, arena| {
                        let rest = unpack_registers(self.join.left_registers, row, file, arena)?;
                        unpack_registers(self.join.right_registers, rest, file, arena).map(drop)
                    },
                    sink,
                )?;
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        })
    }
}
