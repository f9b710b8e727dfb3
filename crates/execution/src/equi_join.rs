//! Joins on equal keys: when two rows match, and which rows the join gives. The hash join
//! ([`super::join`]), its merge of sorted rows ([`super::merge`]) and the merge join
//! ([`super::merge_join`]) share these rules.
//!
//! What must hold: all give the same rows, because a merge of sorted rows replaces a hash join that
//! outgrows `work_mem`.

use super::memory::{give, null_all, unpack_registers};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, run};
use expressions::expr::Expr;
use query::plan::{EquiMethod, JoinKind, Operator, Plan, Reg};
use values::error::SqlError;
use values::key::KeyOrder;
use values::work::tick_parts;

/// A join whose condition compares keys of the two sides.
#[derive(Clone, Copy)]
pub(super) struct EquiJoin<'s> {
    pub kind: JoinKind,
    pub left: &'s Plan,
    pub right: &'s Plan,
    pub keys: &'s [(Expr, Expr)],
    pub condition: Option<&'s Expr>,
    /// A plan that gives a row when the pair matches.
    pub test: Option<&'s Plan>,
    pub left_registers: &'s [Reg],
    pub right_registers: &'s [Reg],
    /// Whether each key descends, in a merge of two inputs that come in the order of the keys.
    pub descending: &'s [bool],
    /// The plan above relies on the order of the left rows.
    pub ordered: bool,
}

impl<'s> EquiJoin<'s> {
    /// The join of a plan's node.
    pub(super) fn of(plan: &'s Plan) -> Result<EquiJoin<'s>, SqlError> {
        let Operator::EquiJoin {
            kind,
            left,
            right,
            keys,
            condition,
            test,
            left_registers,
            right_registers,
            method,
        } = &plan.operator
        else {
            return Err(SqlError::internal("a join on keys of another node"));
        };
        let (ordered, descending): (bool, &[bool]) = match method {
            EquiMethod::Hash { ordered } => (*ordered, &[]),
            EquiMethod::Merge(order) => (true, &order.descending),
        };
        Ok(EquiJoin {
            kind: *kind,
            left,
            right,
            keys,
            condition: condition.as_ref(),
            test: test.as_deref(),
            left_registers,
            right_registers,
            descending,
            ordered,
        })
    }

    pub(super) fn keeps_unmatched(&self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }

    /// Whether the join needs only the first match of a left row.
    pub(super) fn wants_one(&self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Appends the bytes of a row's join key, which order as the inputs of a merge do. Returns
    /// false if a part is NULL, which matches nothing.
    pub(super) fn key<'x>(
        &self,
        cx: &mut Executor<'s>,
        (left, maker): (bool, &mut Keys),
        file: &File<'x>,
        arena: &'x Arena<'s>,
        key: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        key.clear();
        tick_parts(self.keys.len())?;
        for (at, (of_left, of_right)) in self.keys.iter().enumerate() {
            let expr = if left { of_left } else { of_right };
            let value = cx.eval(expr, file, arena)?;
            if value.is_null() {
                return Ok(false);
            }
            let descending = self.descending.get(at) == Some(&true);
            maker.ordered(value, KeyOrder { descending, nulls_first: false }, key)?;
        }
        Ok(true)
    }

    /// Whether a left row and a right row of equal keys match. Gives the pair on if the join wants
    /// pairs.
    pub(super) fn pair<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<(bool, Flow), SqlError> {
        if let Some(condition) = self.condition
            && !cx.test(condition, file, arena)?
        {
            return Ok((false, Flow::More));
        }
        if let Some(test) = self.test {
            let mut holds = false;
            run(cx, test, file, arena, &mut |_, _, _| {
                holds = true;
                Ok(Flow::Stop)
            })?;
            if !holds {
                return Ok((false, Flow::More));
            }
        }
        if self.wants_one() { Ok((true, Flow::More)) } else { Ok((true, sink(cx, file, arena)?)) }
    }

    /// Gives a left row on without a right one, if the join's kind asks for it, given whether the
    /// row matched.
    pub(super) fn give_alone<'x>(
        &self,
        cx: &mut Executor<'s>,
        matched: bool,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        match self.kind {
            JoinKind::Left | JoinKind::Full | JoinKind::Anti if !matched => {
                null_all(self.right_registers, file);
                sink(cx, file, arena)
            }
            JoinKind::Semi if matched => sink(cx, file, arena),
            _ => Ok(Flow::More),
        }
    }

    /// Gives a packed right row that nobody matched.
    pub(super) fn give_unmatched(
        &self,
        cx: &mut Executor<'s>,
        own: &mut Arena<'s>,
        (file, row): (&File<'_>, &[u8]),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        give(
            cx,
            own,
            (file, row),
            |row, file, arena| {
                null_all(self.left_registers, file);
                unpack_registers(self.right_registers, row, file, arena).map(drop)
            },
            sink,
        )
    }
}
