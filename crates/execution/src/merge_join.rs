//! The merge join: both inputs come in the order of their keys.
//!
//! The left rows stream through it, so its rows come in their order, and a LIMIT above ends it
//! early. The right rows are asked for as far as left rows need them ([`super::pulled`]). The right
//! rows of one key are kept for all left rows of that key. The first one is kept apart, and the
//! others in a list that leaves memory beyond `work_mem` ([`Rows`]). So a key may have any number
//! of rows on both sides.
//!
//! What must hold:
//!
//! 1. Keys compare as bytes, which order as the inputs do. A left key out of order ends the
//!    statement, as a right one does.
//! 2. A row with a NULL in its key matches nothing, wherever it comes.
//! 3. The right side begins with the first left row that has a key. It may read that row, to begin
//!    at its key.

use super::equi_join::EquiJoin;
use super::memory::unpack_registers;
use super::pulled::{Pulled, out_of_order};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{Rows, RowsReader};
use query::plan::{JoinKind, Reg};
use values::error::SqlError;
use values::work;

/// The right rows of the last left row's key.
struct Group {
    key: Vec<u8>,
    /// Whether there are any.
    any: bool,
    first: Vec<u8>,
    others: Rows,
    /// Whether the right side has ended.
    ended: bool,
}

impl Group {
    /// Goes to a left row's key. Returns whether right rows have it.
    fn find(
        &mut self,
        cx: &mut Executor<'_>,
        (right, one): (&mut Pulled<'_>, bool),
        key: &[u8],
    ) -> Result<bool, SqlError> {
        let order = work::compare(&self.key, key)?;
        if order.is_ge() {
            return if order.is_eq() { Ok(self.any) } else { Err(out_of_order()) };
        }
        self.key.clear();
        work::put(key, &mut self.key)?;
        self.any = false;
        loop {
            cx.check()?;
            let Some((other, row)) = right.next()? else {
                self.ended = true;
                return Ok(false);
            };
            match work::compare(other, key)? {
                std::cmp::Ordering::Less => right.pass(),
                std::cmp::Ordering::Greater => return Ok(false),
                std::cmp::Ordering::Equal => {
                    self.first.clear();
                    work::put(row, &mut self.first)?;
                    right.pass();
                    break;
                }
            }
        }
        self.any = true;
        if self.others.count() > 0 {
            self.others.clear();
        }
        while !one
            && let Some((other, row)) = right.next()?
            && work::equal(other, key)?
        {
            cx.check()?;
            self.others.push(cx.folder(), |to| work::put(row, to))?;
            right.pass();
        }
        Ok(true)
    }

    /// Gives a left row with each right row that matches it; whether any does.
    fn probe<'s, 'x>(
        &self,
        cx: &mut Executor<'s>,
        join: &EquiJoin<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<(bool, Flow), SqlError> {
        let registers = join.right_registers;
        if self.others.count() == 0 {
            // The only right row uses the left row's scope.
            unpack_registers(registers, work::bytes_in(&self.first, &arena.bump)?, file, &arena.bump)?;
            return join.pair(cx, file, arena, sink);
        }
        let mut reader = RowsReader::default();
        cx.scoped(|cx, own| {
            let (mut row, mut any) = (Some(self.first.as_slice()), false);
            while let Some(bytes) = row {
                cx.check()?;
                let (matched, flow) = {
                    let own = &*own;
                    let file = own.file(file);
                    unpack_registers(registers, bytes, file, &own.bump)?;
                    join.pair(cx, file, own, sink)?
                };
                own.bump.reset();
                any |= matched;
                if flow == Flow::Stop || (matched && join.wants_one()) {
                    return Ok((any, flow));
                }
                row = reader.next(&self.others)?;
            }
            Ok((any, Flow::More))
        })
    }
}

/// Joins. `start`: the left registers that the right side reads when it begins.
pub(super) fn merge_join<'s, 'x>(
    cx: &mut Executor<'s>,
    (join, start): (EquiJoin<'s>, &'s [Reg]),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let others = Rows::new(cx.work_mem());
    let mut group = Group { key: Vec::new(), any: false, first: Vec::new(), others, ended: false };
    // Where the right side has no condition of the pair, its first row of a key decides.
    let one = join.wants_one() && join.condition.is_none() && join.test.is_none();
    let needs_match = matches!(join.kind, JoinKind::Inner | JoinKind::Semi);
    let (mut around, around_arena) = (Some(arena.file(file)), arena);
    let mut right = None;
    let (mut maker, mut key) = (Keys::default(), Vec::new());
    let mut is_over = false;
    let flow = run(cx, join.left, file, arena, &mut |cx, file, arena| {
        if !join.key(cx, (true, &mut maker), file, arena, &mut key)? {
            return join.give_alone(cx, false, file, arena, sink);
        }
        if let Some(around) = around.take() {
            for register in start {
                let value = file[*register as usize];
                around[*register as usize] = value.copy_in(&around_arena.bump)?;
            }
            right = Some(Pulled::new(cx, join, around, around_arena)?);
        }
        let Some(right) = &mut right else { return Err(SqlError::internal("a join without a side")) };
        let found = group.find(cx, (right, one), &key)?;
        if !found && needs_match && group.ended {
            is_over = true;
            return Ok(Flow::Stop);
        }
        let (matched, flow) =
            if found { group.probe(cx, &join, (file, arena), sink)? } else { (false, Flow::More) };
        match flow {
            Flow::Stop => Ok(Flow::Stop),
            Flow::More => join.give_alone(cx, matched, file, arena, sink),
        }
    })?;
    Ok(if is_over { Flow::More } else { flow })
}
