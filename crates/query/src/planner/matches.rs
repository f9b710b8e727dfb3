//! EXISTS by a hash, where it is no join: within OR, in a column, under NOT of something else.
//!
//! What must hold: the subquery is not volatile. It reads the rows around it only in equalities
//! with its own rows. The hashed subquery then has all its rows, and a match of all equalities
//! decides. A NULL matches nothing, so the result is never NULL, as that of EXISTS.

use super::Planner;
use super::keep::free;
use super::part::Part;
use super::semi::has_rows_of_from;
use super::stable::is_stable;
use crate::bound::{Distinct, Query, QueryBody};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::{Comparison, Volatility};
use values::error::SqlError;
use values::types::oid;

/// The two sides of equalities.
type Pairs = Vec<(Expr, Expr)>;

/// A subquery of EXISTS that can be hashed.
pub(super) struct Hashed {
    pub(super) part: Part,
    /// (outer side, subquery side) of each equality.
    pub(super) pairs: Vec<(Expr, Expr)>,
}

impl Hashed {
    /// The work for so many outer rows.
    pub(super) fn cost(&self, rows: f64) -> f64 {
        self.part.hashed_for(rows)
    }
}

impl Planner<'_, '_> {
    /// Plans the subquery of an EXISTS for hashing, if it can be.
    pub(super) fn hashed_exists(&mut self, query: &Query) -> Result<Option<Hashed>, SqlError> {
        let QueryBody::Select(select) = &query.body else { return Ok(None) };
        let (Some(from), true) = (&select.from, has_rows_of_from(query)) else { return Ok(None) };
        let mut own = self.item_writes(from);
        own.extend(select.sublinks.iter().map(|link| link.output));
        let Some((pairs, inside)) = equalities(&select.conditions, &own) else { return Ok(None) };
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut inner = query.clone();
        if !is_stable(&mut inner) {
            return Ok(None);
        }
        if let QueryBody::Select(select) = &mut inner.body {
            select.conditions = inside;
            // It would drop rows by its columns alone, and with them keys that have no other row.
            select.distinct = Distinct::No;
        }
        let part = self.query(inner, &Registers::default())?;
        Ok(free(&part.plan).is_empty().then_some(Hashed { part, pairs }))
    }
}

/// The outer and the inner sides of a subquery's equalities with the rows around it, and its other
/// conditions. None if these read rows around it, too. `own`: the registers of its rows.
pub(super) fn equalities(conditions: &[Expr], own: &Registers) -> Option<(Pairs, Vec<Expr>)> {
    let (mut pairs, mut inside) = (Vec::new(), Vec::new());
    for condition in conditions {
        match registers::reads(condition).is_subset(own) {
            true => inside.push(condition.clone()),
            false => pairs.push(pair(condition, own)?),
        }
    }
    Some((pairs, inside))
}

/// The outer and the inner side of an equality.
fn pair(condition: &Expr, own: &Registers) -> Option<(Expr, Expr)> {
    let (Comparison::Equal, left, right) = condition.as_comparison()? else { return None };
    let fits = left.type_().oid == right.type_().oid
        && left.type_().oid != oid::RECORD
        && condition.volatility() < Volatility::Volatile;
    let is_inner = |expr: &Expr| {
        let read = registers::reads(expr);
        !read.is_empty() && read.is_subset(own)
    };
    let is_outer = |expr: &Expr| registers::reads(expr).is_disjoint(own);
    match fits {
        true if is_inner(right) && is_outer(left) => Some((left.clone(), right.clone())),
        true if is_inner(left) && is_outer(right) => Some((right.clone(), left.clone())),
        _ => None,
    }
}
