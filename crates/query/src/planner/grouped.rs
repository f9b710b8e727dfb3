//! Scalar subqueries of aggregates that become joins. With `(select sum(b.x) from b where b.k =
//! a.k)`, a is joined with the sums of b by k.
//!
//! It is the unnesting of Kim, "On Optimizing an SQL-like Nested Query", with an outer join for the
//! groups without rows. Where few outer rows ask for the result, the subquery runs for each of them
//! instead: the estimates choose.
//!
//! What must hold:
//!
//! 1. The subquery has one group, and reads the rows around it only in equalities with its own rows
//!    and in its result. A NULL equals nothing, in a join as in the subquery's conditions.
//! 2. Without a row, count gives 0 and every other aggregate NULL.
//! 3. Groups that no outer row asks for are computed too. So nothing that is computed for their
//!    rows may fail: conditions, keys, arguments, the aggregates themselves. FROM has tables alone.
//!    The result is computed above the join, for the outer rows.
//! 4. A volatile subquery runs for each outer row, and one with a guard may not run for some.

use super::Planner;
use super::cost;
use super::keep::free;
use super::matches::equalities;
use super::part::Part;
use super::pushdown::Inlined;
use super::safe::is_safe;
use super::stable::is_stable;
use crate::bound::{Distinct, FromItem, Query, QueryBody, Select, Source};
use crate::plan::{AggregateCall, EquiMethod, Estimate, JoinKind, Operator, Reg, SubqueryKind};
use crate::registers;
use expressions::expr::Expr;
use expressions::function::AggregateKind;
use values::error::SqlError;
use values::types::{Type, Value, oid};

/// Types whose sums never overflow. Sums of int8 and numeric are numerics, and one of int4 has room
/// for 2^32 rows.
const EXACT: [u32; 4] = [oid::INT2, oid::INT4, oid::INT8, oid::NUMERIC];

/// A subquery by its groups.
pub(super) struct Grouped {
    part: Part,
    /// (outer side, the group's column) of each equality.
    keys: Vec<(Expr, Expr)>,
    /// The result, over a group's aggregates and the outer row. Count is NULL without a group.
    value: Expr,
}

impl Grouped {
    /// The work for so many outer rows.
    pub(super) fn cost(&self, rows: f64) -> f64 {
        self.part.hashed_for(rows)
    }

    /// The outer rows with the result in a register.
    pub(super) fn join(self, outer: Part, output: Reg) -> Part {
        let Grouped { part, keys, value } = self;
        let (rows, ordered) = (outer.rows(), outer.ordered);
        let build = part.cost() + part.rows() * cost::HASH_BUILD;
        let estimate = Estimate {
            start: build + outer.plan.estimate.start,
            cost: build + outer.cost() + rows * cost::HASH_PROBE,
            rows,
        };
        let operator = Operator::EquiJoin {
            kind: JoinKind::Left,
            left: Box::new(outer.plan),
            right: Box::new(part.plan),
            keys,
            condition: None,
            test: None,
            left_registers: Vec::new(),
            right_registers: Vec::new(),
            method: EquiMethod::Hash { ordered: false },
        };
        let joined = Part { ordered, ..Part::new(operator, estimate) };
        joined.below(|input| Operator::Project { input, expressions: vec![(value, output)] }, estimate)
    }
}

impl Planner<'_, '_> {
    /// Plans a scalar subquery by its groups, if it can be.
    pub(super) fn by_groups(
        &mut self,
        query: &Query,
        kind: &SubqueryKind,
    ) -> Result<Option<Grouped>, SqlError> {
        let (SubqueryKind::Scalar { value }, QueryBody::Select(select)) = (kind, &query.body) else {
            return Ok(None);
        };
        let Some(from) = select.from.as_ref().filter(|_| is_one_group(query, select)) else {
            return Ok(None);
        };
        let own = self.item_writes(from);
        let Some((pairs, inside)) = equalities(&select.conditions, &own) else { return Ok(None) };
        let is_plain = |expr: &Expr| is_safe(expr, &|register| own.contains(&register));
        let is_outer = |expr: &Expr| is_safe(expr, &|register| !self.pending.contains_key(&register));
        let may_run = !pairs.is_empty()
            && self.binder.sources.iter().all(|source| source.identity.is_none())
            && has_tables_alone(from, &is_plain)
            && pairs.iter().all(|(outer, inner)| is_outer(outer) && is_plain(inner))
            && inside.iter().all(is_plain)
            && select.aggregates.iter().all(adds_without_failing)
            && select.aggregates.iter().flat_map(inputs).all(is_plain);
        if !may_run || !is_stable(&mut query.clone()) {
            return Ok(None);
        }
        let Some(value) = Inlined::of(&select.targets).condition(value) else { return Ok(None) };
        let mut inner = (**select).clone();
        let mut counts = Vec::new();
        for call in &mut inner.aggregates {
            if matches!(call.function.kind, AggregateKind::CountRows | AggregateKind::Count) {
                let count = self.binder.register();
                let some = Expr::column(count, Type::INT8);
                let none = Expr::constant(Value::Int8(0), Type::INT8);
                counts.push((Expr::Coalesce(vec![some, none], Type::INT8), call.output));
                call.output = count;
            }
        }
        let Some(value) = Inlined::of(&counts).condition(&value) else { return Ok(None) };
        let (mut keys, mut groups) = (Vec::new(), Vec::new());
        for (outer, own) in pairs {
            let (column, type_) = (self.binder.register(), own.type_());
            keys.push((outer, Expr::column(column, type_)));
            groups.push((own, column));
        }
        (inner.groups, inner.conditions, inner.targets) = (groups, inside, Vec::new());
        let query = Query::of(QueryBody::Select(Box::new(inner)), Vec::new());
        let part = self.query(query, &registers::Registers::default())?;
        Ok(free(&part.plan).is_empty().then_some(Grouped { part, keys, value }))
    }
}

/// Whether a subquery is one group of the rows of its FROM that meet its conditions.
fn is_one_group(query: &Query, select: &Select) -> bool {
    query.tables.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.limit_sublinks.is_empty()
        && query.locks.is_empty()
        && select.groups.is_empty()
        && !select.aggregates.is_empty()
        && select.having.is_empty()
        && select.windows.is_empty()
        && select.grouped_sets.is_empty()
        && select.sets.is_empty()
        && select.sublinks.is_empty()
        && matches!(select.distinct, Distinct::No)
}

/// Whether an item of FROM is a table, or a join of tables by conditions that never fail.
fn has_tables_alone(item: &FromItem, is_plain: &dyn Fn(&Expr) -> bool) -> bool {
    match item {
        FromItem::Source(_, source) => matches!(source, Source::Table(_)),
        FromItem::Join { left, right, condition, .. } => {
            condition.iter().all(is_plain)
                && has_tables_alone(left, is_plain)
                && has_tables_alone(right, is_plain)
        }
    }
}

/// Whether no value is too large for an aggregate. Sums of floats and of intervals overflow.
fn adds_without_failing(call: &AggregateCall) -> bool {
    match call.function.kind {
        AggregateKind::CountRows
        | AggregateKind::Count
        | AggregateKind::Min
        | AggregateKind::Max
        | AggregateKind::BoolAnd
        | AggregateKind::BoolOr
        | AggregateKind::BitAnd
        | AggregateKind::BitOr
        | AggregateKind::BitXor => true,
        AggregateKind::Sum | AggregateKind::Avg => {
            call.arguments.iter().all(|argument| EXACT.contains(&argument.type_().oid))
        }
        AggregateKind::StringAgg
        | AggregateKind::ArrayAgg
        | AggregateKind::StddevSamp
        | AggregateKind::StddevPop
        | AggregateKind::VarSamp
        | AggregateKind::VarPop => false,
    }
}

/// The expressions that an aggregate computes for each row.
fn inputs(call: &AggregateCall) -> impl Iterator<Item = &Expr> {
    call.arguments.iter().chain(&call.filter).chain(call.order.iter().map(|key| &key.expr))
}
