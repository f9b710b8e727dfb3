//! Conditions that bound keys, as alternatives of comparisons of columns with values.
//!
//! What must hold:
//!
//! 1. A row for which a condition is true meets all comparisons of one of its alternatives. If the
//!    clause is exact, the converse holds too.
//! 2. A compared value reads only registers that are filled before the scan. It is computed once,
//!    before the scan, so a volatile value never bounds.
//! 3. A value that turns out to be NULL finds no row. A comparison with a constant NULL is decided
//!    before, so none comes here.
//! 4. A value within OR or CASE is one that cannot fail. Its part may never be reached, and no
//!    error may come from there.

use std::rc::Rc;

use super::key_value::{is_comparable, never_fails};
use super::moments;
use super::search::Search;
use crate::registers;
use expressions::expr::{CastPath, Expr, Quantified, QuantifiedOver};
use expressions::function::{Comparison, Volatility};
use expressions::prefix::{Matching, Rest};
use values::types::{self, Type, Value, oid};

/// The most alternatives of the conditions of one scan together.
pub(super) const MOST: usize = 1000;
/// The most comparisons of one clause.
pub(super) const COMPARISONS: usize = 4 * MOST;
/// Work of copying a comparison, in ns.
pub(super) const COPYING: usize = 20;

/// A comparison of a column.
#[derive(Clone)]
pub(super) struct Bounding<'s> {
    /// The position of its condition.
    pub(super) condition: usize,
    pub(super) column: u32,
    pub(super) bound: Bound<'s>,
}

/// The values with which a column is compared.
#[derive(Clone)]
pub(super) enum Bound<'s> {
    Equal(&'s Expr),
    /// A boolean column by itself, or with NOT.
    Truth(bool),
    Null,
    List(Rc<[&'s Expr]>),
    Array(&'s Expr),
    End(End<'s>),
}

/// A comparison that bounds an interval.
#[derive(Clone, Copy)]
pub(super) enum End<'e> {
    /// Any comparison but `=` and `<>`.
    Compared(Comparison, &'e Expr),
    /// A match with a pattern.
    Matched(Matching, &'e Expr),
    /// IS NOT NULL.
    NotNull,
}

impl<'s> Bounding<'s> {
    /// The end of a range that it is.
    pub(super) fn end(&self) -> Option<End<'s>> {
        match self.bound {
            Bound::End(end) => Some(end),
            _ => None,
        }
    }
}

impl Bound<'_> {
    /// Whether the column may have several values.
    pub(super) fn is_list(&self) -> bool {
        matches!(self, Bound::List(_) | Bound::Array(_))
    }
}

/// The place of a comparison in its condition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It must hold.
    Outer,
    /// Within OR or CASE.
    Inner,
}

/// The comparisons that a condition implies.
pub(super) struct Clause<'s> {
    pub(super) alternatives: Vec<Vec<Bounding<'s>>>,
    /// Whether the condition says no more.
    pub(super) exact: bool,
}

impl<'s> Clause<'s> {
    /// Both clauses; `None` if that makes too many alternatives.
    fn and(&self, other: &Clause<'s>) -> Option<Clause<'s>> {
        let (left, right) = (self.alternatives.len(), other.alternatives.len());
        let comparisons = self.comparisons() * right + other.comparisons() * left;
        if left * right > MOST || comparisons > COMPARISONS {
            return None;
        }
        runtime::work::yield_after(comparisons * COPYING);
        let both = |left: &Vec<Bounding<'s>>| {
            let left = left.clone();
            other.alternatives.iter().map(move |right| left.iter().chain(right).cloned().collect())
        };
        let alternatives = self.alternatives.iter().flat_map(both).collect();
        Some(Clause { alternatives, exact: self.exact && other.exact })
    }

    /// Either clause.
    fn or(mut self, other: Clause<'s>) -> Option<Clause<'s>> {
        self.alternatives.extend(other.alternatives);
        self.exact &= other.exact;
        (self.alternatives.len() <= MOST && self.comparisons() <= COMPARISONS).then_some(self)
    }

    /// The number of comparisons of all alternatives.
    pub(super) fn comparisons(&self) -> usize {
        self.alternatives.iter().map(Vec::len).sum()
    }
}

impl<'s> Search<'s> {
    /// The conditions that can bound a key.
    pub(super) fn clauses(&self) -> Vec<Clause<'s>> {
        let conditions = self.conditions.iter().enumerate();
        conditions.filter_map(|(condition, expr)| self.clause(condition, expr, Place::Outer)).collect()
    }

    fn clause(&self, condition: usize, expr: &'s Expr, place: Place) -> Option<Clause<'s>> {
        if let Some((column, bound)) = self.comparison(expr, place) {
            return Some(self.alone(condition, column, bound));
        }
        match expr {
            Expr::And(parts) => self.all_of(condition, parts.iter(), place),
            Expr::Or(parts) => {
                if let Some((column, bound)) = self.same_column(parts) {
                    return Some(self.alone(condition, column, bound));
                }
                let mut clauses = parts.iter().map(|part| self.clause(condition, part, Place::Inner));
                let first = clauses.next()??;
                clauses.try_fold(first, |all, next| all.or(next?))
            }
            // A comparison of rows: if the first fields are equal, the others decide.
            Expr::Case(case) => {
                let [(test, result)] = case.branches.as_slice() else { return None };
                let equal = self.all_of(condition, [test, result].into_iter(), Place::Inner)?;
                let either = equal.or(self.clause(condition, &case.otherwise, Place::Inner)?)?;
                Some(Clause { exact: false, ..either })
            }
            _ => None,
        }
    }

    /// The clause of one comparison.
    fn alone(&self, condition: usize, column: u32, bound: Bound<'s>) -> Clause<'s> {
        let exact = self.is_exact(column, &bound);
        Clause { alternatives: vec![vec![Bounding { condition, column, bound }]], exact }
    }

    fn all_of(
        &self,
        condition: usize,
        parts: impl Iterator<Item = &'s Expr>,
        place: Place,
    ) -> Option<Clause<'s>> {
        let (mut all, mut exact) = (None::<Clause<'s>>, true);
        for part in parts {
            let Some(clause) = self.clause(condition, part, place) else {
                exact = false;
                continue;
            };
            all = match all {
                None => Some(clause),
                Some(before) => match before.and(&clause) {
                    Some(both) => Some(both),
                    None => {
                        exact = false;
                        Some(before)
                    }
                },
            };
        }
        all.map(|all| Clause { exact: all.exact && exact, ..all })
    }

    /// The comparison of one column, if the expression is no more than that.
    fn comparison(&self, expr: &'s Expr, place: Place) -> Option<(u32, Bound<'s>)> {
        match expr {
            Expr::NullTest { input, negated: false } => Some((self.own_column(input)?, Bound::Null)),
            Expr::NullTest { .. } => Some((self.without_null(expr)?, Bound::End(End::NotNull))),
            Expr::Column { .. } => Some((self.own_column(expr)?, Bound::Truth(true))),
            Expr::Not(inner) if matches!(**inner, Expr::Column { .. }) => {
                Some((self.own_column(inner)?, Bound::Truth(false)))
            }
            Expr::Quantified(quantified) => self.any_of(quantified, place),
            Expr::Call(call) if call.function.matching.is_some() => self.pattern(expr, place),
            _ => {
                let (comparison, left, right) = expr.as_comparison()?;
                let sides = [(left, right, comparison), (right, left, comparison.commuted())];
                sides.into_iter().find_map(|(side, value, comparison)| {
                    let column = self.bounded_by((side, value), comparison, place)?;
                    match comparison {
                        Comparison::NotEqual => None,
                        Comparison::Equal => Some((column, Bound::Equal(value))),
                        comparison => Some((column, Bound::End(End::Compared(comparison, value)))),
                    }
                })
            }
        }
    }

    /// LIKE and its kin. A pattern without a prefix bounds nothing.
    fn pattern(&self, expr: &'s Expr, place: Place) -> Option<(u32, Bound<'s>)> {
        let (matching, side, pattern) = expr.as_matching()?;
        let column = self.bounded_by((side, pattern), Comparison::Equal, place)?;
        if let Some(Value::Text(text)) = pattern.as_const() {
            let prefix = matching.prefix(text);
            match prefix.rest {
                Rest::Nothing if *prefix.text == **text => return Some((column, Bound::Equal(pattern))),
                Rest::Nothing => {}
                _ if prefix.text.is_empty() => return None,
                _ => {}
            }
        }
        Some((column, Bound::End(End::Matched(matching, pattern))))
    }

    /// The column that may be NULL and of which an expression says that it is not.
    pub(super) fn without_null(&self, expr: &Expr) -> Option<u32> {
        let Expr::NullTest { input, negated: true } = expr else { return None };
        let column = self.own_column(input)?;
        let definition = &self.table.columns[column as usize];
        (!definition.not_null && definition.type_.oid != oid::RECORD).then_some(column)
    }

    /// `column IN (list)` and `column = ANY (array)`.
    fn any_of(&self, quantified: &'s Quantified, place: Place) -> Option<(u32, Bound<'s>)> {
        if quantified.all || quantified.function.comparison != Some(Comparison::Equal) {
            return None;
        }
        match &quantified.right {
            QuantifiedOver::List(list) => {
                let column = self.bounded_by((&quantified.left, list.first()?), Comparison::Equal, place)?;
                let type_ = self.table.columns[column as usize].type_;
                let fit = |value: &Expr| is_comparable(value.type_(), type_) && self.is_ready(value, place);
                list.iter().all(fit).then(|| (column, Bound::List(list.iter().collect())))
            }
            QuantifiedOver::Array(array) => {
                let column = self.own_column(&quantified.left)?;
                let element = types::element_of(array.type_().oid)?;
                let type_ = self.table.columns[column as usize].type_;
                let fits = is_comparable(Type::new(element), type_) && self.is_ready(array, place);
                fits.then_some((column, Bound::Array(array)))
            }
        }
    }

    /// `column = a OR column = b ...` over one column.
    fn same_column(&self, parts: &'s [Expr]) -> Option<(u32, Bound<'s>)> {
        let mut values = Vec::with_capacity(parts.len());
        let mut column = None;
        for part in parts {
            let (found, bound) = self.comparison(part, Place::Inner)?;
            if *column.get_or_insert(found) != found {
                return None;
            }
            match bound {
                Bound::Equal(value) => values.push(value),
                Bound::List(list) => values.extend(list.iter()),
                _ => return None,
            }
        }
        Some((column?, Bound::List(values.into())))
    }

    /// Whether a bound says all that its condition says. A pattern may want more than its prefix.
    fn is_exact(&self, column: u32, bound: &Bound<'_>) -> bool {
        let is_key =
            |value: &Expr| !moments::differ(value.type_(), self.table.columns[column as usize].type_);
        match bound {
            Bound::End(End::Matched(matching, pattern)) => match pattern.as_const() {
                Some(Value::Text(pattern)) => matching.prefix(pattern).rest != Rest::Pattern,
                _ => false,
            },
            Bound::Equal(value) | Bound::End(End::Compared(_, value)) => is_key(value),
            Bound::List(list) => list.iter().all(|value| is_key(value)),
            Bound::Truth(_) | Bound::Null | Bound::Array(_) | Bound::End(End::NotNull) => true,
        }
    }

    /// The column that `side` is, if `value` can bound its key under a comparison.
    fn bounded_by(&self, (side, value): (&Expr, &Expr), comparison: Comparison, place: Place) -> Option<u32> {
        let column = self.compared_column(side)?;
        let type_ = self.table.columns[column as usize].type_;
        let fits = match side {
            Expr::Cast(cast) if moments::is_moment(cast) => {
                value.type_().oid == cast.type_.oid && moments::bounds(value.type_(), type_, comparison)
            }
            _ => is_comparable(value.type_(), type_) || moments::bounds(value.type_(), type_, comparison),
        };
        (fits && self.is_ready(value, place)).then_some(column)
    }

    /// The column that one side of a comparison is, also as a moment of another type.
    pub(super) fn compared_column(&self, side: &Expr) -> Option<u32> {
        match side {
            Expr::Cast(cast) if moments::is_moment(cast) => self.own_column(&cast.input),
            _ => self.own_column(side),
        }
    }

    /// The position of the column that an expression is, ignoring casts that only rename the type.
    pub(super) fn own_column(&self, expr: &Expr) -> Option<u32> {
        match expr {
            Expr::Column { register, .. } => {
                self.columns.iter().position(|column| *column == Some(*register)).map(|column| column as u32)
            }
            Expr::Cast(cast) if matches!(cast.path, CastPath::Relabel) => self.own_column(&cast.input),
            _ => None,
        }
    }

    /// Whether a value can be computed before the scan.
    fn is_ready(&self, expr: &Expr, place: Place) -> bool {
        match expr {
            Expr::Const(..) | Expr::Param { .. } => true,
            Expr::Column { register, .. } => self.available.contains(register),
            Expr::Cast(cast) if never_fails(cast) => self.is_ready(&cast.input, place),
            expr => {
                place == Place::Outer
                    && registers::reads(expr).is_subset(self.available)
                    && expr.volatility() < Volatility::Volatile
            }
        }
    }
}
