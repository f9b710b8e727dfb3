//! Joins: nested loops (the right side may depend on the left row) and hash joins.

use hashbrown::HashMap;

use super::memory::{copy_all, encode_key, load, null_all, store};
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::plan::{JoinKind, Plan, Reg};
use crate::types::Datum;

/// For every left row the right side anew.
pub(super) struct NestedLoop<'s> {
    pub kind: JoinKind,
    pub left: &'s Plan,
    pub right: &'s Plan,
    pub condition: Option<&'s Expr>,
    pub right_registers: &'s [Reg],
}

impl<'s> NestedLoop<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        run(cx, self.left, file, arena, &mut |cx, file, arena| {
            let mut matched = false;
            let mut stopped = false;
            run(cx, self.right, file, arena, &mut |cx, file, arena| {
                if let Some(condition) = self.condition
                    && !cx.test(condition, file, arena)?
                {
                    return Ok(Flow::More);
                }
                matched = true;
                if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    return Ok(Flow::Stop);
                }
                let flow = sink(cx, file, arena)?;
                stopped = flow == Flow::Stop;
                Ok(flow)
            })?;
            if stopped {
                return Ok(Flow::Stop);
            }
            match self.kind {
                JoinKind::Left if !matched => {
                    null_all(self.right_registers, file);
                    sink(cx, file, arena)
                }
                JoinKind::Semi if matched => sink(cx, file, arena),
                JoinKind::Anti if !matched => sink(cx, file, arena),
                _ => Ok(Flow::More),
            }
        })
    }
}

/// The right side in a hash table, the left side streamed past it.
pub(super) struct HashJoin<'s> {
    pub kind: JoinKind,
    pub left: &'s Plan,
    pub right: &'s Plan,
    pub keys: &'s [(Expr, Expr)],
    pub condition: Option<&'s Expr>,
    pub left_registers: &'s [Reg],
    pub right_registers: &'s [Reg],
}

/// A kept right row.
struct Kept<'b> {
    row: &'b [Datum<'b>],
    /// The next row of the same key.
    next: Option<usize>,
    matched: bool,
}

impl<'s> HashJoin<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let memory = cx.take_arena();
        let result = self.run_in(cx, file, arena, &memory, sink);
        cx.give_arena(memory);
        result
    }

    fn run_in<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        memory: &Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut rows: Vec<Kept<'_>> = Vec::new();
        let mut heads: HashMap<&[u8], (usize, usize)> = HashMap::new();
        let mut key = Vec::new();
        let keeps_unmatched = matches!(self.kind, JoinKind::Right | JoinKind::Full);
        run(cx, self.right, file, arena, &mut |cx, file, arena| {
            let joinable = self.key(cx, false, file, arena, &mut key)?;
            if !joinable && !keeps_unmatched {
                return Ok(Flow::More);
            }
            let at = rows.len();
            rows.push(Kept {
                row: store(self.right_registers, file, &memory.bump),
                next: None,
                matched: false,
            });
            if !joinable {
                return Ok(Flow::More);
            }
            if let Some((_, last)) = heads.get_mut(key.as_slice()) {
                rows[*last].next = Some(at);
                *last = at;
            } else {
                heads.insert(memory.bump.alloc_slice_copy(&key), (at, at));
            }
            Ok(Flow::More)
        })?;
        if rows.is_empty() && matches!(self.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right) {
            return Ok(Flow::More);
        }
        let mut flow = run(cx, self.left, file, arena, &mut |cx, file, arena| {
            let head = match self.key(cx, true, file, arena, &mut key)? {
                true => heads.get(key.as_slice()).map(|(first, _)| *first),
                false => None,
            };
            self.probe(cx, head, &mut rows, file, arena, sink)
        })?;
        if keeps_unmatched && flow == Flow::More {
            flow = self.unmatched(cx, &rows, file, sink)?;
        }
        Ok(flow)
    }

    /// Gives one left row with each of its matches.
    fn probe<'x>(
        &self,
        cx: &mut Executor<'s>,
        head: Option<usize>,
        rows: &mut [Kept<'_>],
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut matched = false;
        let mut next = head;
        while let Some(at) = next {
            next = rows[at].next;
            copy_all(self.right_registers, rows[at].row, file, &arena.bump);
            if let Some(condition) = self.condition
                && !cx.test(condition, file, arena)?
            {
                continue;
            }
            matched = true;
            rows[at].matched = true;
            if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                break;
            }
            if sink(cx, file, arena)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        match self.kind {
            JoinKind::Left | JoinKind::Full if !matched => {
                null_all(self.right_registers, file);
                sink(cx, file, arena)
            }
            JoinKind::Semi if matched => sink(cx, file, arena),
            JoinKind::Anti if !matched => sink(cx, file, arena),
            _ => Ok(Flow::More),
        }
    }

    /// Gives the right rows nobody matched.
    fn unmatched(
        &self,
        cx: &mut Executor<'s>,
        rows: &[Kept<'_>],
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        cx.scoped(|cx, own| {
            for kept in rows.iter().filter(|kept| !kept.matched) {
                let flow = {
                    let file = own.file(file);
                    null_all(self.left_registers, file);
                    load(self.right_registers, kept.row, file);
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

    /// The join key's bytes of a row; false when a part of it is NULL and so matches nothing.
    fn key<'x>(
        &self,
        cx: &mut Executor<'s>,
        left: bool,
        file: &File<'x>,
        arena: &'x Arena<'s>,
        key: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        key.clear();
        for (of_left, of_right) in self.keys {
            let expr = if left { of_left } else { of_right };
            let value = cx.eval(expr, file, arena)?;
            if value.is_null() {
                return Ok(false);
            }
            encode_key(value, key)?;
        }
        Ok(true)
    }
}
