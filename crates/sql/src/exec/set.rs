//! Set operations and common table expressions.

use hashbrown::{HashMap, HashSet};

use super::memory::encode_key;
use super::{Arena, CommonRows, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::plan::{CommonTable, Plan, Reg, SetKind};
use crate::types::{Datum, Value};

/// The parts of a set operation.
pub(super) struct SetOperation<'s> {
    pub kind: SetKind,
    pub all: bool,
    pub left: &'s Plan,
    pub left_registers: &'s [Reg],
    pub right: &'s Plan,
    pub right_registers: &'s [Reg],
    pub output: &'s [Reg],
}

/// The bytes that tell rows apart; the columns of both sides have the same types.
fn row_key(registers: &[Reg], file: &File<'_>, key: &mut Vec<u8>) -> Result<(), SqlError> {
    key.clear();
    for register in registers {
        encode_key(file[*register as usize], key)?;
    }
    Ok(())
}

impl<'s> SetOperation<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        match (self.kind, self.all) {
            (SetKind::Union, true) => {
                if self.pass(cx, self.left, self.left_registers, file, arena, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                self.pass(cx, self.right, self.right_registers, file, arena, sink)
            }
            (SetKind::Union, false) => self.union(cx, file, arena, sink),
            (SetKind::Intersect | SetKind::Except, _) => self.counted(cx, file, arena, sink),
        }
    }

    /// Gives one side's rows on, in the result's registers.
    fn pass<'x>(
        &self,
        cx: &mut Executor<'s>,
        side: &'s Plan,
        registers: &'s [Reg],
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        run(cx, side, file, arena, &mut |cx, file, arena| {
            self.shift(registers, file);
            sink(cx, file, arena)
        })
    }

    fn shift(&self, registers: &[Reg], file: &mut File<'_>) {
        for (from, to) in registers.iter().zip(self.output) {
            file[*to as usize] = file[*from as usize];
        }
    }

    fn union<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        let mut key = Vec::new();
        for (side, registers) in [(self.left, self.left_registers), (self.right, self.right_registers)] {
            let flow = run(cx, side, file, arena, &mut |cx, file, arena| {
                row_key(registers, file, &mut key)?;
                if seen.contains(key.as_slice()) {
                    return Ok(Flow::More);
                }
                seen.insert(key.as_slice().into());
                self.shift(registers, file);
                sink(cx, file, arena)
            })?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    /// INTERSECT and EXCEPT: the right rows are counted, the left ones checked against the counts.
    fn counted<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut counts: HashMap<Box<[u8]>, u64> = HashMap::new();
        let mut given: HashSet<Box<[u8]>> = HashSet::new();
        let mut key = Vec::new();
        run(cx, self.right, file, arena, &mut |_, file, _| {
            row_key(self.right_registers, file, &mut key)?;
            match counts.get_mut(key.as_slice()) {
                Some(count) => *count += 1,
                None => {
                    counts.insert(key.as_slice().into(), 1);
                }
            }
            Ok(Flow::More)
        })?;
        run(cx, self.left, file, arena, &mut |cx, file, arena| {
            row_key(self.left_registers, file, &mut key)?;
            let count = counts.get_mut(key.as_slice());
            let wanted = match (self.kind, self.all) {
                (SetKind::Intersect, false) => count.is_some() && given.insert(key.as_slice().into()),
                (SetKind::Intersect, true) => count.is_some_and(take_one),
                (_, true) => !count.is_some_and(take_one),
                (_, false) => count.is_none() && given.insert(key.as_slice().into()),
            };
            if !wanted {
                return Ok(Flow::More);
            }
            self.shift(self.left_registers, file);
            sink(cx, file, arena)
        })
    }
}

fn take_one(count: &mut u64) -> bool {
    let any = *count > 0;
    *count = count.saturating_sub(1);
    any
}

/// WITH: the tables first, then the body.
pub(super) fn with<'s, 'x>(
    cx: &mut Executor<'s>,
    (tables, body): (&'s [CommonTable], &'s Plan),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    for table in tables {
        let rows = match &table.recursive {
            None => collect(cx, &table.plan, &table.registers, file, arena, &mut |_| Ok(true))?,
            Some(_) => recursive(cx, table, file, arena)?,
        };
        cx.common.insert(table.id, rows.into());
    }
    let result = run(cx, body, file, arena, sink);
    for table in tables {
        cx.common.remove(&table.id);
    }
    result
}

/// The rows of a plan that `wanted` lets pass, as owned values.
fn collect<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    registers: &'s [Reg],
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    wanted: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool, SqlError>,
) -> Result<CommonRows, SqlError> {
    let mut rows = CommonRows { width: registers.len(), count: 0, values: Vec::new() };
    let mut row = Vec::with_capacity(registers.len());
    run(cx, plan, file, arena, &mut |_, file, _| {
        row.clear();
        row.extend(registers.iter().map(|register| file[*register as usize].to_value()));
        let view: Vec<Datum<'_>> = registers.iter().map(|register| file[*register as usize]).collect();
        if wanted(&view)? {
            rows.values.append(&mut row);
            rows.count += 1;
        }
        Ok(Flow::More)
    })?;
    Ok(rows)
}

/// WITH RECURSIVE: the recursive term over the previous round's rows until a round gives none.
fn recursive<'s, 'x>(
    cx: &mut Executor<'s>,
    table: &'s CommonTable,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<CommonRows, SqlError> {
    let Some(term) = &table.recursive else { return Err(SqlError::internal("no recursive term")) };
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    let mut key = Vec::new();
    let mut fresh = |row: &[Datum<'_>]| {
        if term.all {
            return Ok(true);
        }
        key.clear();
        for value in row {
            encode_key(*value, &mut key)?;
        }
        Ok(seen.insert(key.as_slice().into()))
    };
    let mut working = collect(cx, &table.plan, &table.registers, file, arena, &mut fresh)?;
    let mut all = CommonRows { width: table.registers.len(), count: 0, values: Vec::new() };
    while working.count > 0 {
        cx.check()?;
        all.count += working.count;
        all.values.extend(working.values.iter().cloned());
        cx.common.insert(table.id, working.into());
        working = collect(cx, &term.plan, &term.registers, file, arena, &mut fresh)?;
    }
    Ok(all)
}

/// The kept rows of a common table.
pub(super) fn common_scan<'s>(
    cx: &mut Executor<'s>,
    (id, output): (u32, &'s [Option<Reg>]),
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let Some(rows) = cx.common.get(&id).cloned() else {
        return Err(SqlError::internal("a common table that was not computed"));
    };
    cx.scoped(|cx, own| {
        for at in 0..rows.count {
            let row: &[Value] = &rows.values[at * rows.width..(at + 1) * rows.width];
            let flow = {
                let file = own.file(file);
                for (value, register) in row.iter().zip(output) {
                    if let Some(register) = register {
                        file[*register as usize] = value.datum_in(&own.bump);
                    }
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
