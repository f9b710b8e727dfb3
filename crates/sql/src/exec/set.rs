//! Set operations.

use hashbrown::HashMap;

use super::firsts::{Firsts, Late};
use super::memory::{encode_key, give, pack_registers, unpack_registers, used};
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::plan::{Plan, Reg, SetKind};
use crate::spill::Sorter;
use crate::work::{self, PacedState};

/// An input and its columns.
type Side = (Plan, Vec<Reg>);

/// The parts of a set operation.
pub(super) struct SetOperation<'s> {
    pub kind: SetKind,
    pub all: bool,
    /// The inputs and their columns: two for INTERSECT and EXCEPT.
    pub sides: &'s [Side],
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
                for (side, registers) in self.sides {
                    if self.pass(cx, side, registers, file, arena, sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::More)
            }
            (SetKind::Union, false) => self.union(cx, file, arena, sink),
            (SetKind::Intersect | SetKind::Except, _) => match self.sides {
                [left, right] => self.counted(cx, (left, right), file, arena, sink),
                _ => Err(SqlError::internal("a set operation without two sides")),
            },
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
        let (late, flow) = cx.scoped(|cx, memory| {
            let memory = &*memory;
            let mut firsts = Firsts::new(cx);
            let mut key = Vec::new();
            let mut flow = Flow::More;
            for (side, registers) in self.sides {
                flow = run(cx, side, file, arena, &mut |cx, file, arena| {
                    row_key(registers, file, &mut key)?;
                    match firsts.take(cx, &key, memory, |to| pack_registers(registers, file, to))? {
                        true => {
                            self.shift(registers, file);
                            sink(cx, file, arena)
                        }
                        false => Ok(Flow::More),
                    }
                })?;
                if flow == Flow::Stop {
                    break;
                }
            }
            Ok((firsts.late(), flow))
        })?;
        match late {
            Some(late) if flow == Flow::More => late.give(cx, (self.output, file), sink),
            _ => Ok(flow),
        }
    }

    /// INTERSECT and EXCEPT: the right rows are counted, the left ones checked against the counts. Counts that need too
    /// much room are sorted, and the left rows to them.
    fn counted<'x>(
        &self,
        cx: &mut Executor<'s>,
        (left, right): (&'s Side, &'s Side),
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let (late, sorter, flow) = cx.scoped(|cx, memory| {
            let memory = &*memory;
            let mut counts: HashMap<&[u8], u64, PacedState> = HashMap::default();
            let mut sorter: Option<Sorter<'s>> = None;
            let mut key = Vec::new();
            run(cx, &right.0, file, arena, &mut |cx, file, _| {
                row_key(&right.1, file, &mut key)?;
                if let Some(count) = counts.get_mut(key.as_slice()) {
                    *count += 1;
                    return Ok(Flow::More);
                }
                if let Some(sorter) = &mut sorter {
                    sorter.push(&key, |to| work::put(&1_u64.to_le_bytes(), to))?;
                    return Ok(Flow::More);
                }
                counts.insert(work::bytes_in(&key, &memory.bump)?, 1);
                if used(&memory.bump) + counts.capacity() * size_of::<(&[u8], u64)>() > cx.work_mem() {
                    sorter = Some(cx.sorter());
                }
                Ok(Flow::More)
            })?;
            if let Some(mut sorter) = sorter {
                for (key, count) in counts.drain() {
                    cx.check()?;
                    sorter.push(key, |to| work::put(&count.to_le_bytes(), to))?;
                }
                return Ok((None, Some(sorter), Flow::More));
            }
            let (late, flow) = self.against(cx, (left, &mut counts), file, arena, sink)?;
            Ok((late, None, flow))
        })?;
        if let Some(sorter) = sorter {
            return self.counted_sorted(cx, (left, sorter), file, arena, sink);
        }
        match late {
            Some(late) if flow == Flow::More => late.give(cx, (self.output, file), sink),
            _ => Ok(flow),
        }
    }

    /// Checks the left rows against the counts.
    fn against<'x>(
        &self,
        cx: &mut Executor<'s>,
        ((left, registers), counts): (&'s Side, &mut HashMap<&[u8], u64, PacedState>),
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<(Option<Late<'s>>, Flow), SqlError> {
        let mut key = Vec::new();
        cx.scoped(|cx, memory| {
            let memory = &*memory;
            let mut firsts = Firsts::new(cx);
            let flow = run(cx, left, file, arena, &mut |cx, file, arena| {
                row_key(registers, file, &mut key)?;
                let count = counts.get_mut(key.as_slice());
                let wanted = match (self.kind, self.all) {
                    (SetKind::Intersect, true) => count.is_some_and(take_one),
                    (_, true) => !count.is_some_and(take_one),
                    (kind, false) => count.is_some() == (kind == SetKind::Intersect),
                };
                let pack = |to: &mut Vec<u8>| pack_registers(registers, file, to);
                if !wanted || (!self.all && !firsts.take(cx, &key, memory, pack)?) {
                    return Ok(Flow::More);
                }
                self.shift(registers, file);
                sink(cx, file, arena)
            })?;
            Ok((firsts.late(), flow))
        })
    }

    /// The same with the counts in a sorter: the left rows come behind the counts of their key.
    fn counted_sorted<'x>(
        &self,
        cx: &mut Executor<'s>,
        ((left, registers), mut sorter): (&'s Side, Sorter<'s>),
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut key = Vec::new();
        // A count is eight bytes, a left row its values behind eight bytes and one.
        run(cx, left, file, arena, &mut |_, file, _| {
            row_key(registers, file, &mut key)?;
            sorter.push(&key, |to| {
                to.extend_from_slice(&[0; 9]);
                pack_registers(registers, file, to)
            })?;
            Ok(Flow::More)
        })?;
        let mut sorted = sorter.finish()?;
        let (mut last, mut count, mut given) = (None::<Vec<u8>>, 0_u64, 0_u64);
        cx.scoped(|cx, own| {
            while let Some((key, row)) = sorted.next()? {
                cx.check()?;
                if last.as_deref() != Some(key) {
                    let buffer = last.get_or_insert_default();
                    buffer.clear();
                    work::put(key, buffer)?;
                    (count, given) = (0, 0);
                }
                let Some((_, row)) = row.split_at_checked(9) else {
                    count += row.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    continue;
                };
                given += 1;
                let wanted = match (self.kind, self.all) {
                    (SetKind::Intersect, true) => given <= count,
                    (SetKind::Intersect, false) => given == 1 && count > 0,
                    (_, true) => given > count,
                    (_, false) => given == 1 && count == 0,
                };
                let flow = match wanted {
                    true => give(
                        cx,
                        own,
                        (file, row),
                        |row, file, arena| unpack_registers(self.output, row, file, arena).map(drop),
                        sink,
                    )?,
                    false => Flow::More,
                };
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        })
    }
}

fn take_one(count: &mut u64) -> bool {
    let any = *count > 0;
    *count = count.saturating_sub(1);
    any
}
