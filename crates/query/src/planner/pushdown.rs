//! Pushdown: moves conditions into subqueries of FROM, and takes plain subqueries apart.
//!
//! What must hold:
//!
//! 1. The subquery's rows that meet the condition stay the same. So a condition moves below a
//!    grouping only if it reads grouping columns. It moves below windows only if it reads columns
//!    by which each is partitioned, and below a DISTINCT ON only if it reads its columns. None
//!    moves below a limit. A bound on a window's result ends the window ([`super::run`]).
//! 2. A condition moves below a set operation into each of its sides.
//! 3. No volatile expression is moved or copied.

use super::stable::has_stable_rows;
use crate::bound::{Distinct, FromItem, Query, QueryBody, Select, Source, SourceId};
use crate::plan::Reg;
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Volatility;
use runtime::hash::HashMap;

/// The most parts of a condition after expressions replaced its columns.
const MOST_PARTS: usize = 10_000;
/// The source of a subquery that the planner wraps. Nothing asks for its registers.
pub(super) const WRAPPED: SourceId = SourceId::MAX;

/// Whether a subquery only selects and computes columns of its FROM. A subquery with an order runs
/// by itself. SQL does not promise that its rows keep the order, but PostgreSQL keeps it, and an
/// array_agg() or LIMIT over it relies on that.
pub(super) fn is_flat(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.tables.is_empty()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.limit_sublinks.is_empty()
        && query.locks.is_empty()
        && select.from.is_some()
        && !select.grouped
        && select.windows.is_empty()
        && select.sets.is_empty()
        && select.sublinks.is_empty()
        && matches!(select.distinct, Distinct::No)
        && has_stable_rows(select)
}

/// Whether conditions on its output reach the sources of its rows. A volatile expression is
/// computed once for each of its rows, so a subquery with one runs by itself.
pub(super) fn is_open(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.limit.is_none()
        && query.offset.is_none()
        && !select.grouped
        && select.windows.is_empty()
        && select.sets.is_empty()
        && matches!(select.distinct, Distinct::No)
        && has_stable_rows(select)
}

/// Moves conditions on a subquery's output into it if that does not change the result. A subquery
/// that locks rows locks only those that meet its own conditions, so conditions that read other
/// sources stay outside.
pub(super) fn push_down(mut query: Query, conditions: Vec<Expr>) -> (Query, Vec<Expr>) {
    if query.limit.is_some() || query.offset.is_some() {
        return (query, conditions);
    }
    let output: Registers = query.output.iter().map(|column| column.register).collect();
    let locks = !query.locks.is_empty();
    let (inside, mut outside): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(|condition| {
        condition.volatility() < Volatility::Volatile
            && (!locks || registers::reads(condition).is_subset(&output))
    });
    match &mut query.body {
        QueryBody::Select(select) => {
            outside.extend(inside.into_iter().filter(|condition| {
                !into_select(select, condition, &output)
                    && !super::run::takes_condition(select, condition, &output)
            }));
        }
        QueryBody::Set { sides, output, .. } => {
            for side in sides {
                let columns = output.iter().zip(&side.output);
                let columns: Vec<(Expr, Reg)> = columns
                    .map(|(register, column)| (Expr::column(column.register, column.type_), *register))
                    .collect();
                let renamed = Inlined::of(&columns);
                // A renaming makes no condition larger than it is.
                let own = inside.iter().map(|condition| renamed.of_any_size(condition)).collect();
                *side = filtered(std::mem::replace(side, Query::none()), own);
            }
        }
        QueryBody::Values { .. } => outside.extend(inside),
    }
    (query, outside)
}

/// A query of the rows that meet conditions on its output.
pub(super) fn filtered(query: Query, conditions: Vec<Expr>) -> Query {
    let (inner, rest) = push_down(query, conditions);
    if rest.is_empty() {
        return inner;
    }
    let output = inner.output.clone();
    let from = Some(FromItem::Source(WRAPPED, Source::Query(Box::new(inner))));
    let select = Select { from, conditions: rest, ..Select::default() };
    Query::of(QueryBody::Select(Box::new(select)), output)
}

/// Moves a condition into a SELECT, if it may.
fn into_select(select: &mut Select, condition: &Expr, output: &Registers) -> bool {
    let stable = |(expr, _): &&(Expr, Reg)| expr.volatility() < Volatility::Volatile;
    let targets: Vec<(Expr, Reg)> = select.targets.iter().filter(stable).cloned().collect();
    let targets = Inlined::of(&targets);
    let Some(mut inner) = targets.condition(condition) else { return false };
    let read = registers::reads(condition);
    // The registers of this query that the condition reads.
    let own: Registers = read
        .intersection(output)
        .flat_map(|register| {
            targets
                .columns
                .get(register)
                .map_or_else(|| Registers::from_iter([*register]), |_| targets.read_by(*register))
        })
        .collect();
    let volatile = select.targets.iter().filter(|target| !stable(target)).map(|(_, register)| *register);
    let made = select.sets.iter().flat_map(|set| &set.output).chain(&select.ordinality).copied();
    let links = select.sublinks.iter().map(|link| link.output);
    let calls = select.windows.iter().flat_map(|window| &window.calls).map(|call| call.output);
    let aggregates = select.aggregates.iter().map(|call| call.output);
    if volatile
        .chain(made)
        .chain(links)
        .chain(calls)
        .chain(aggregates)
        .any(|register| own.contains(&register))
    {
        return false;
    }
    if let Distinct::On(keys) = &select.distinct
        && !read.intersection(output).all(|register| has_column(keys, *register))
    {
        return false;
    }
    if !select
        .windows
        .iter()
        .all(|window| own.iter().all(|register| has_column(&window.partition, *register)))
    {
        return false;
    }
    if select.grouped {
        let groups: Registers = select.groups.iter().map(|(_, register)| *register).collect();
        let is_stable = select.groups.iter().all(|group| stable(&group));
        if groups.is_empty() || !select.grouped_sets.is_empty() || !is_stable || !own.is_subset(&groups) {
            return false;
        }
        let Some(below) = Inlined::of(&select.groups).condition(&inner) else { return false };
        inner = below;
        let links: Registers = select.sublinks.iter().map(|link| link.output).collect();
        if !registers::reads(&inner).is_disjoint(&links) {
            return false;
        }
    }
    select.conditions.push(inner);
    true
}

fn has_column(list: &[Expr], wanted: Reg) -> bool {
    list.iter().any(|expr| matches!(expr, Expr::Column { register, .. } if *register == wanted))
}

/// Columns that their expressions replace.
pub(super) struct Inlined<'c> {
    columns: HashMap<Reg, &'c Expr>,
}

impl<'c> Inlined<'c> {
    pub(super) fn of(columns: &'c [(Expr, Reg)]) -> Self {
        Self { columns: columns.iter().map(|(expr, register)| (*register, expr)).collect() }
    }

    /// A condition with the expressions; `None` if it would be too large.
    pub(super) fn condition(&self, condition: &Expr) -> Option<Expr> {
        let (mut inner, mut parts) = (condition.clone(), 0);
        self.replace(&mut inner, &mut parts, MOST_PARTS).then_some(inner)
    }

    /// The same for expressions that are columns.
    fn of_any_size(&self, condition: &Expr) -> Expr {
        let (mut inner, mut parts) = (condition.clone(), 0);
        self.replace(&mut inner, &mut parts, usize::MAX);
        inner
    }

    /// The registers that a column's expression reads.
    fn read_by(&self, register: Reg) -> Registers {
        let (mut open, mut read) = (vec![register], Registers::default());
        let mut seen = Registers::default();
        while let Some(register) = open.pop() {
            match self.columns.get(&register) {
                Some(expr) if seen.insert(register) => open.extend(registers::reads(expr)),
                Some(_) => {}
                None => drop(read.insert(register)),
            }
        }
        read
    }

    fn replace(&self, expr: &mut Expr, parts: &mut usize, most: usize) -> bool {
        *parts += 1;
        if *parts > most {
            return false;
        }
        if let Expr::Column { register, .. } = expr
            && let Some(new) = self.columns.get(register)
        {
            let is_itself = matches!(new, Expr::Column { register: same, .. } if same == register);
            *expr = (*new).clone();
            return is_itself || self.replace(expr, parts, most);
        }
        let mut fits = true;
        expr.for_each_child_mut(&mut |child| fits = fits && self.replace(child, parts, most));
        fits
    }
}
