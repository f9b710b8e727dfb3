//! FROM as a set of sides and one pool of conditions. The planner may join the sides in any order
//! in which each comes after those that it reads.
//!
//! What must hold:
//!
//! 1. Inner joins and left joins come apart. The nullable side of a left join keeps its ON. It is
//!    joined as a whole, to any sides among which are those that ON reads. Conditions on its
//!    columns apply afterwards. That is the same as the written order: each row of the preserved
//!    side has the same matches, whatever it is joined with before.
//! 2. A left join whose NULLs a condition rejects is an inner join ([`super::rejects`]). One whose
//!    matches a condition rejects is an anti join ([`super::unmatched`]).
//! 3. A full join is one side. A condition EXISTS or ANY that becomes a join is a side, too.
//! 4. A subquery that only selects and computes columns comes apart, too. Its computed columns are
//!    computed above the joins, and conditions read their expressions instead. Below a left join
//!    they have to be NULL if the columns that they read are.
//! 5. Sides of a JOIN that keep their written order come apart in a join of their own
//!    ([`super::collapse`]).
//! 6. The conditions of a subquery or a join stand before those around it, which may fail for rows
//!    that the former drop.

use super::Planner;
use super::collapse::is_one;
use super::part::{Leaf, Part, Semi, Side};
use super::pushdown::{Inlined, is_flat};
use super::rejects::{is_null, rejects_null};
use crate::bound::reads::item_reads;
use crate::bound::{FromItem, Query, QueryBody, Source, SourceId};
use crate::plan::{Estimate, JoinKind, Operator, Reg};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::SetFunction;
use values::error::{SqlError, SqlState};

/// The sides of a join, and what applies to their rows.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) sides: Vec<Side>,
    /// Conditions that must all hold.
    pub(super) conditions: Vec<Expr>,
    /// Columns to compute above the joins, in order.
    pub(super) computed: Vec<(Expr, Reg)>,
    /// Conditions that read them and apply above.
    pub(super) above: Vec<Expr>,
    /// Registers that subqueries and functions beside these sides read.
    lateral: Registers,
}

impl Planner<'_, '_> {
    /// Takes FROM apart.
    pub(super) fn gather(
        &self,
        item: FromItem,
        conditions: Vec<Expr>,
        semis: Vec<Semi>,
    ) -> Result<Gathered, SqlError> {
        let mut gathered = Gathered { conditions, ..Gathered::default() };
        gathered.lateral.extend(self.pending.values().flat_map(|pending| pending.needs()));
        semis.iter().flat_map(|semi| &semi.inner).for_each(|inner| inner.reads(&mut gathered.lateral));
        // A subquery whose columns such a side reads stays whole. Then it is such a side, too.
        let mut known = usize::MAX;
        while known != gathered.lateral.len() {
            known = gathered.lateral.len();
            self.lateral_reads(&item, &mut gathered.lateral);
            for semi in &semis {
                self.attached_reads(&semi.from, false, &mut gathered.lateral);
            }
        }
        self.take_apart(item, &mut gathered)?;
        for Semi { from, conditions, inner, kind } in semis {
            self.attach_side(from, inner, (kind, conditions, false), &mut gathered);
        }
        if !gathered.computed.is_empty() {
            gathered.inline()?;
            let computed: Registers = gathered.computed.iter().map(|(_, register)| *register).collect();
            if gathered.sides.iter().any(|side| !self.leaf_needs(&side.leaf).is_disjoint(&computed)) {
                return Err(SqlError::internal("a column that is read before it is computed"));
            }
        }
        Ok(gathered)
    }

    fn take_apart(&self, item: FromItem, into: &mut Gathered) -> Result<(), SqlError> {
        match item {
            FromItem::Join { kind, left, right, condition, items, .. } => {
                let kind = self.reduced(kind, &left, &right, &into.conditions);
                let merge = items.is_some();
                match kind {
                    JoinKind::Left => self.take_outer((*left, merge), *right, condition, into)?,
                    JoinKind::Right => self.take_outer((*right, merge), *left, condition, into)?,
                    JoinKind::Full => {
                        let leaf = Leaf::Full(Box::new((*left, *right, condition)));
                        self.add(leaf, None, into);
                    }
                    JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => {
                        into.conditions.splice(0..0, condition);
                        self.take_side(*left, merge, into)?;
                        self.take_side(*right, merge, into)?;
                    }
                }
            }
            FromItem::Source(_, Source::Query(query)) => {
                if !comes_apart(&query, &into.lateral) {
                    self.add(Leaf::Query(query), None, into);
                } else if let QueryBody::Select(select) = query.body
                    && let Some(from) = select.from
                {
                    into.conditions.splice(0..0, select.conditions);
                    self.take_apart(from, into)?;
                    into.computed.extend(select.targets);
                }
            }
            FromItem::Source(source, Source::Table(table)) => {
                self.add(Leaf::Table(source, table), None, into)
            }
            FromItem::Source(source, other) => {
                let part = self.computed_source(source, other);
                self.add(Leaf::Planned(Box::new(part)), None, into);
            }
        }
        Ok(())
    }

    /// Takes a side of a JOIN. Unless the lists of both sides merge, a side of several items is
    /// joined by itself.
    fn take_side(&self, item: FromItem, merge: bool, into: &mut Gathered) -> Result<(), SqlError> {
        if merge || is_one(&item) {
            return self.take_apart(item, into);
        }
        self.add(Leaf::Joined(Box::new((item, Vec::new()))), None, into);
        Ok(())
    }

    /// Takes a left join apart.
    fn take_outer(
        &self,
        (preserved, merge): (FromItem, bool),
        nullable: FromItem,
        on: Vec<Expr>,
        into: &mut Gathered,
    ) -> Result<(), SqlError> {
        let kind = self.left_or_anti(&nullable, &on, &mut into.conditions);
        self.take_side(preserved, merge, into)?;
        self.attach_side(nullable, Vec::new(), (kind, on, true), into);
        Ok(())
    }

    /// The kind of a join below conditions that reject some of its rows.
    fn reduced(&self, kind: JoinKind, left: &FromItem, right: &FromItem, conditions: &[Expr]) -> JoinKind {
        let rejects = |item: &FromItem| {
            let writes = self.item_writes(item);
            conditions.iter().any(|condition| rejects_null(condition, &writes))
        };
        match kind {
            JoinKind::Left if rejects(right) => JoinKind::Inner,
            JoinKind::Right if rejects(left) => JoinKind::Inner,
            JoinKind::Full => match (rejects(left), rejects(right)) {
                (true, true) => JoinKind::Inner,
                (true, false) => JoinKind::Left,
                (false, true) => JoinKind::Right,
                (false, false) => JoinKind::Full,
            },
            kind => kind,
        }
    }

    fn add(&self, leaf: Leaf, join: Option<(JoinKind, Vec<Expr>)>, into: &mut Gathered) {
        let writes = self.leaf_writes(&leaf);
        let mut needs = self.leaf_needs(&leaf);
        for condition in join.iter().flat_map(|(_, on)| on) {
            needs.extend(self.required(condition));
        }
        into.sides.push(Side { leaf, writes, needs, join });
    }

    /// Adds a side that joins the others by a condition of its own. `nullable`: whether it is that
    /// of an outer join, whose columns are read above.
    fn attach_side(
        &self,
        item: FromItem,
        semis: Vec<Semi>,
        (kind, mut on, nullable): (JoinKind, Vec<Expr>, bool),
        into: &mut Gathered,
    ) {
        let leaf = match item {
            item if !semis.is_empty() => Leaf::Joined(Box::new((item, semis))),
            FromItem::Source(source, Source::Table(table)) => Leaf::Table(source, table),
            FromItem::Source(_, Source::Query(query))
                if self.attached_comes_apart(&query, nullable, &into.lateral) =>
            {
                // Its rows are those of its FROM that meet its conditions.
                if let QueryBody::Select(select) = query.body
                    && let Some(from) = select.from
                {
                    on.splice(0..0, select.conditions);
                    self.attach_side(from, semis, (kind, on, nullable), into);
                    into.computed.extend(select.targets);
                }
                return;
            }
            FromItem::Source(_, Source::Query(query)) => Leaf::Query(query),
            FromItem::Source(source, other) => Leaf::Planned(Box::new(self.computed_source(source, other))),
            join => Leaf::Joined(Box::new((join, semis))),
        };
        self.add(leaf, Some((kind, on)), into);
    }

    /// Plans a source that has no conditions of its own.
    fn computed_source(&self, source: SourceId, item: Source) -> Part {
        let (operator, rows) = match item {
            Source::Function(calls, ordinality) => {
                let single = calls.iter().all(|call| call.function == SetFunction::Once);
                (Operator::Function { calls, ordinality }, if single { 1.0 } else { 100.0 })
            }
            Source::Common(id) => (self.common_scan(id, self.binder.sources[source].columns.clone()), 100.0),
            Source::Table(_) | Source::Query(_) => (Operator::Nothing, 1.0),
        };
        Part::new(operator, Estimate { start: 0.0, cost: rows, rows })
    }
}

impl Planner<'_, '_> {
    /// Adds the registers that sides read which do not come apart here: they run before columns of
    /// other sides are computed.
    fn lateral_reads(&self, item: &FromItem, into: &mut Registers) {
        match item {
            FromItem::Join { kind: JoinKind::Full, .. } => item_reads(item, into),
            FromItem::Join { kind, left, right, items, .. } => {
                for (side, nullable) in [(left, JoinKind::Right), (right, JoinKind::Left)] {
                    if *kind == nullable {
                        self.attached_reads(side, true, into);
                    } else if items.is_some() || is_one(side) {
                        self.lateral_reads(side, into);
                    } else {
                        item_reads(side, into);
                    }
                }
            }
            FromItem::Source(_, Source::Query(query)) if comes_apart(query, into) => {
                if let QueryBody::Select(select) = &query.body {
                    select.from.iter().for_each(|from| self.lateral_reads(from, into));
                }
            }
            item => item_reads(item, into),
        }
    }

    /// The same for a side that joins the others by a condition of its own. Its condition is
    /// rewritten.
    fn attached_reads(&self, item: &FromItem, nullable: bool, into: &mut Registers) {
        match item {
            FromItem::Source(_, Source::Query(query)) if self.attached_comes_apart(query, nullable, into) => {
                if let QueryBody::Select(select) = &query.body {
                    select.from.iter().for_each(|from| self.attached_reads(from, nullable, into));
                }
            }
            item => item_reads(item, into),
        }
    }

    /// Whether such a side comes apart. Columns of the nullable side are computed above the join,
    /// so they have to be NULL where no row matches.
    fn attached_comes_apart(&self, query: &Query, nullable: bool, lateral: &Registers) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let Some(from) = select.from.as_ref().filter(|_| comes_apart(query, lateral)) else { return false };
        if select.targets.is_empty() {
            return true;
        }
        let mut own = self.item_writes(from);
        nullable
            && select.targets.iter().all(|(expr, register)| {
                let is_null = is_null(expr, &own);
                own.insert(*register);
                is_null
            })
    }
}

impl Gathered {
    /// Replaces computed columns by their expressions in all conditions.
    fn inline(&mut self) -> Result<(), SqlError> {
        let inlined = Inlined::of(&self.computed);
        let mut own = Vec::with_capacity(self.conditions.len());
        for condition in std::mem::take(&mut self.conditions) {
            match inlined.condition(&condition) {
                Some(condition) => own.push(condition),
                None => self.above.push(condition),
            }
        }
        self.conditions = own;
        let computed: Registers = self.computed.iter().map(|(_, register)| *register).collect();
        for side in &mut self.sides {
            let Some((_, on)) = &mut side.join else { continue };
            for condition in on {
                *condition = inlined.condition(condition).ok_or_else(|| {
                    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "expressions of subqueries are too large")
                })?;
                side.needs.extend(registers::reads(condition));
            }
            side.needs.retain(|register| !computed.contains(register));
        }
        Ok(())
    }
}

/// Whether a subquery comes apart. One whose columns a whole side reads does not: that side runs
/// before they would be computed.
fn comes_apart(query: &Query, lateral: &Registers) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    is_flat(query) && select.targets.iter().all(|(_, register)| !lateral.contains(register))
}
