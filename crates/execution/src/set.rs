//! Set operations: a chain of UNION, INTERSECT and EXCEPT, done from left to right.
//!
//! A row of an input goes through the stages to the right of it, one after the other, until one of
//! them drops it. All inputs have columns of the same types, so a row has one key for all stages.
//! The right inputs of INTERSECT and EXCEPT are counted first, from the last to the first, as if
//! each operation ran on its own. A stage that runs out of room holds rows back and gives them on
//! when all rows on its left have passed.

use super::firsts::Firsts;
use super::memory::{give, pack_registers, unpack_registers, used};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::Sorter;
use query::plan::{Reg, SetKind, SetSide, SetStage};
use values::error::SqlError;
use values::key_table::KeyTable;
use values::work;

/// The parts of a set operation.
pub(super) struct SetOperation<'s> {
    pub first: &'s SetSide,
    pub stages: &'s [SetStage],
    pub output: &'s [Reg],
}

/// The memory of a stage.
enum State<'s, 'b> {
    /// All rows pass.
    Open,
    /// The first row of each key passes.
    Firsts(Firsts<'s, 'b>),
    /// A row passes or not by the number of equal rows on the right.
    Counted { counts: Counts<'b>, firsts: Option<Firsts<'s, 'b>> },
    /// The counts outgrew the memory: rows wait, sorted behind the counts of their key.
    Sorted(Sorter<'s>),
}

type Counts<'b> = KeyTable<&'b [u8], u64>;

/// The stages of a running chain.
struct Chain<'s, 'b> {
    operation: &'b SetOperation<'s>,
    states: Vec<State<'s, 'b>>,
    /// Two arenas a stage: one for counted rows, one for passed rows.
    memory: &'b [[Arena<'s>; 2]],
    maker: Keys,
    key: Vec<u8>,
    /// From this stage on, no stage looks at keys.
    open: usize,
}

/// The bytes that tell rows apart.
fn row_key(maker: &mut Keys, registers: &[Reg], file: &File<'_>, key: &mut Vec<u8>) -> Result<(), SqlError> {
    key.clear();
    for register in registers {
        maker.plain(file[*register as usize], key)?;
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
        let is_open = |stage: &SetStage| stage.kind == SetKind::Union && stage.all;
        let open = self.stages.iter().rposition(|stage| !is_open(stage)).map_or(0, |last| last + 1);
        let memory: Vec<_> = self.stages[..open].iter().map(|_| [cx.take_arena(), cx.take_arena()]).collect();
        let mut chain = Chain {
            operation: self,
            states: Vec::new(),
            memory: &memory,
            maker: Keys::default(),
            key: cx.take_bytes(),
            open,
        };
        let result = chain.run(cx, file, arena, sink);
        cx.give_bytes(std::mem::take(&mut chain.key));
        drop(chain);
        memory.into_iter().flatten().for_each(|arena| cx.give_arena(arena));
        result
    }

    fn shift(&self, registers: &[Reg], file: &mut File<'_>) {
        for (from, to) in registers.iter().zip(self.output) {
            file[*to as usize] = file[*from as usize];
        }
    }
}

impl<'s, 'b> Chain<'s, 'b> {
    fn run<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let stages = self.operation.stages;
        for at in (0..stages.len()).rev() {
            let state = self.begin(cx, at, file, arena)?;
            self.states.push(state);
        }
        self.states.reverse();
        if stages.iter().any(|stage| stage.kind != SetKind::Union) {
            self.maker.flip();
        }
        if self.side(cx, (self.operation.first, 0), file, arena, sink)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        for (at, stage) in stages.iter().enumerate() {
            if stage.kind == SetKind::Union {
                for side in &stage.sides {
                    if self.side(cx, (side, at), file, arena, sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
            if self.finish(cx, at, file, sink)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    /// A stage before the first row, with its right rows counted.
    fn begin<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        at: usize,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<State<'s, 'b>, SqlError> {
        let stage = &self.operation.stages[at];
        match (stage.kind, stage.all) {
            (SetKind::Union, true) => Ok(State::Open),
            (SetKind::Union, false) => Ok(State::Firsts(Firsts::new(cx))),
            _ => count(cx, stage, (&mut self.maker, &self.memory[at][0]), file, arena),
        }
    }

    /// Runs an input, whose rows enter at a stage.
    fn side<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        ((plan, registers), at): (&'s SetSide, usize),
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        run(cx, plan, file, arena, &mut |cx, file, arena| {
            self.operation.shift(registers, file);
            self.pass(cx, at, file, arena, sink)
        })
    }

    /// Takes a row through the stages from `at` on.
    fn pass<'x>(
        &mut self,
        cx: &mut Executor<'s>,
        at: usize,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        if at < self.open {
            let output = self.operation.output;
            row_key(&mut self.maker, output, file, &mut self.key)?;
            let key = self.key.as_slice();
            let pack = |to: &mut Vec<u8>| pack_registers(output, file, to);
            for at in at..self.open {
                let stage = &self.operation.stages[at];
                let passes = match &mut self.states[at] {
                    State::Open => true,
                    State::Firsts(firsts) => firsts.take(cx, key, &self.memory[at][1], pack)?,
                    State::Counted { counts, firsts } => {
                        let count = counts.get_mut(key)?;
                        let wanted = match (stage.kind, stage.all) {
                            (SetKind::Intersect, true) => count.is_some_and(take_one),
                            (_, true) => !count.is_some_and(take_one),
                            (kind, false) => count.is_some() == (kind == SetKind::Intersect),
                        };
                        wanted
                            && match firsts {
                                Some(firsts) => firsts.take(cx, key, &self.memory[at][1], pack)?,
                                None => true,
                            }
                    }
                    State::Sorted(sorter) => {
                        // A count is eight bytes, a left row its values behind eight bytes and one.
                        sorter.push(key, |to| {
                            to.extend_from_slice(&[0; 9]);
                            pack(to)
                        })?;
                        false
                    }
                };
                if !passes {
                    return Ok(Flow::More);
                }
            }
        }
        sink(cx, file, arena)
    }

    /// Gives on the rows that a stage held back, when all on its left have passed.
    fn finish(
        &mut self,
        cx: &mut Executor<'s>,
        at: usize,
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let late = match std::mem::replace(&mut self.states[at], State::Open) {
            State::Open => None,
            State::Firsts(firsts) => firsts.late(),
            State::Counted { firsts, .. } => firsts.and_then(Firsts::late),
            State::Sorted(sorter) => return self.finish_sorted(cx, (at, sorter), file, sink),
        };
        let Some(late) = late else { return Ok(Flow::More) };
        late.give(cx, (self.operation.output, file), &mut |cx, file, arena| {
            self.pass(cx, at + 1, file, arena, sink)
        })
    }

    /// [`Chain::finish`] for counts that lie in a sorter. The left rows come behind the counts of
    /// their key.
    fn finish_sorted(
        &mut self,
        cx: &mut Executor<'s>,
        (at, sorter): (usize, Sorter<'s>),
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let stage = &self.operation.stages[at];
        let output = self.operation.output;
        let mut sorted = sorter.finish()?;
        let (mut last, mut count, mut emitted) = (None::<Vec<u8>>, 0_u64, 0_u64);
        cx.scoped(|cx, own| {
            while let Some((key, row)) = sorted.next()? {
                cx.check()?;
                if !work::is(last.as_deref(), key)? {
                    let buffer = last.get_or_insert_default();
                    buffer.clear();
                    work::put(key, buffer)?;
                    (count, emitted) = (0, 0);
                }
                let Some((_, row)) = row.split_at_checked(9) else {
                    count += row.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    continue;
                };
                emitted += 1;
                let wanted = match (stage.kind, stage.all) {
                    (SetKind::Intersect, true) => emitted <= count,
                    (SetKind::Intersect, false) => emitted == 1 && count > 0,
                    (_, true) => emitted > count,
                    (_, false) => emitted == 1 && count == 0,
                };
                let flow = match wanted {
                    true => give(
                        cx,
                        own,
                        (file, row),
                        |row, file, arena| unpack_registers(output, row, file, arena).map(drop),
                        &mut |cx, file, arena| self.pass(cx, at + 1, file, arena, sink),
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

/// Counts the rows on a stage's right. Counts that need too much room are sorted, and the left rows
/// to them.
fn count<'s, 'x, 'b>(
    cx: &mut Executor<'s>,
    stage: &'s SetStage,
    (maker, memory): (&mut Keys, &'b Arena<'s>),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<State<'s, 'b>, SqlError> {
    let mut counts = Counts::default();
    let mut sorter: Option<Sorter<'s>> = None;
    let mut key = Vec::new();
    // Each runs as an operation of its own, around those on its left.
    for (plan, registers) in stage.sides.iter().rev() {
        run(cx, plan, file, arena, &mut |cx, file, _| {
            row_key(maker, registers, file, &mut key)?;
            if let Some(count) = counts.get_mut(&key)? {
                *count += 1;
                return Ok(Flow::More);
            }
            if let Some(sorter) = &mut sorter {
                sorter.push(&key, |to| work::put(&1_u64.to_le_bytes(), to))?;
                return Ok(Flow::More);
            }
            counts.insert(work::bytes_in(&key, &memory.bump)?, 1)?;
            if used(&memory.bump) + counts.bytes() > cx.work_mem() {
                sorter = Some(cx.sorter());
            }
            Ok(Flow::More)
        })?;
    }
    let Some(mut sorter) = sorter else {
        let firsts = (!stage.all && !stage.distinct).then(|| Firsts::new(cx));
        return Ok(State::Counted { counts, firsts });
    };
    for (key, count) in counts.drain() {
        cx.check()?;
        sorter.push(key, |to| work::put(&count.to_le_bytes(), to))?;
    }
    Ok(State::Sorted(sorter))
}

fn take_one(count: &mut u64) -> bool {
    let any = *count > 0;
    *count = count.saturating_sub(1);
    any
}
