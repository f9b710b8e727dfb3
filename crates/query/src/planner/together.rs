//! Estimates of several columns of a table together, from extended statistics.
//!
//! Without such statistics the columns count as independent. What must hold: a table without them
//! costs no more than the look at an empty list.

use super::bounding::{Bound, Bounding};
use super::estimate::Known;
use super::search::Search;
use crate::plan::{Asked, Comparing, key_of};
use catalog::{Equality, Keys, TableCombinations};
use expressions::expr::{Expr, Quantified, QuantifiedOver};
use expressions::function::Comparison;
use values::types::Datum;

/// The longest list of common combinations that plans look through before each run.
const MOST_LISTED: usize = 1000;
/// The part of the rows that columns without statistics together have as combinations, at most.
const MOST_COMBINED: f64 = 0.1;

/// The conditions that extended statistics estimate.
#[derive(Default)]
pub(super) struct Together {
    /// The part of the rows that meets them.
    pub(super) part: Option<f64>,
    /// Their positions.
    pub(super) taken: Vec<usize>,
}

impl<'s> Search<'s> {
    /// The table's extended statistics, if there are some.
    fn extended_statistics(&self) -> Option<TableCombinations<'s>> {
        let extended = &*self.statistics?.extended;
        (!extended.is_empty()).then_some(TableCombinations(extended))
    }

    /// The part of the rows that meets those conditions that give columns values, if extended
    /// statistics know some of the columns together.
    pub(super) fn together(&self, conditions: &[Expr]) -> Together {
        let Some(statistics) = self.extended_statistics().filter(|_| conditions.len() > 1) else {
            return Together::default();
        };
        let (mut equalities, mut taken): (Vec<Equality>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, condition) in conditions.iter().enumerate() {
            if let Some(equality) = self.equality_of(condition)
                && equalities.iter().all(|other| other.column != equality.column)
            {
                equalities.push(equality);
                taken.push(at);
            }
        }
        match statistics.meeting_all(&equalities) {
            Some(part) => Together { part: Some(part.clamp(0.0, 1.0)), taken },
            None => Together::default(),
        }
    }

    /// The column to which a condition gives values, and these.
    fn equality_of(&self, condition: &Expr) -> Option<Equality> {
        let (column, values) = match condition {
            Expr::NullTest { input, negated: false } => (self.own_column(input)?, Some(vec![None])),
            Expr::Column { .. } => self.truth(condition, true)?,
            Expr::Not(inner) => self.truth(inner, false)?,
            Expr::Or(parts) => {
                let mut parts = parts.iter().map(|part| self.equality_of(part));
                let first = parts.next()??;
                return parts.try_fold(first, |all, part| {
                    let part = part.filter(|part| part.column == all.column)?;
                    Some(all.or(part))
                });
            }
            Expr::Quantified(quantified) => self.any_value(quantified)?,
            _ => {
                let Some((Comparison::Equal, left, right)) = condition.as_comparison() else { return None };
                let (column, value) = match (self.own_column(left), self.own_column(right)) {
                    (Some(column), None) => (column, right),
                    (None, Some(column)) => (column, left),
                    _ => return None,
                };
                (column, self.keys(column, &mut std::iter::once(value)))
            }
        };
        Some(Equality::new(column, self.selectivity(condition), values))
    }

    fn truth(&self, expr: &Expr, value: bool) -> Option<(u32, Keys)> {
        let column = self.own_column(expr).filter(|_| matches!(expr, Expr::Column { .. }))?;
        Some((column, self.keys(column, &mut std::iter::once(&Expr::boolean(value)))))
    }

    /// IN, = ANY: the column and the values' keys.
    fn any_value(&self, quantified: &Quantified) -> Option<(u32, Keys)> {
        if quantified.all || quantified.function.comparison != Some(Comparison::Equal) {
            return None;
        }
        let column = self.own_column(&quantified.left)?;
        let values = match &quantified.right {
            QuantifiedOver::List(list) => self.keys(column, &mut list.iter()),
            QuantifiedOver::Array(array) => self.array_keys(column, array),
        };
        Some((column, values))
    }

    /// The keys of values of a column; `None` if one is not known. NULL equals no value.
    fn keys(&self, column: u32, values: &mut dyn Iterator<Item = &Expr>) -> Keys {
        let mut keys = Vec::new();
        for value in values {
            match self.known(column, value) {
                Known::Key(key) => keys.push(Some(key)),
                Known::Null => {}
                Known::Unknown => return None,
            }
        }
        Some(keys)
    }

    fn array_keys(&self, column: u32, array: &Expr) -> Keys {
        let type_ = self.table.columns[column as usize].type_;
        let value = self.value(array)?;
        let Datum::Array(elements) = value.datum() else { return None };
        let mut keys = Vec::new();
        for element in elements.iter() {
            let (element, mut key) = (element.ok()?, Vec::new());
            if !element.is_null() {
                key_of(element, type_, &mut key)?;
                keys.push(Some(key));
            }
        }
        Some(keys)
    }

    /// The equality that a comparison of a column is.
    fn equality_in(&self, bounding: &Bounding<'s>) -> Option<Equality> {
        let column = bounding.column;
        let values = match &bounding.bound {
            Bound::Equal(value) => self.keys(column, &mut std::iter::once(*value)),
            Bound::Truth(value) => self.keys(column, &mut std::iter::once(&Expr::boolean(*value))),
            Bound::Null => Some(vec![None]),
            Bound::List(list) => self.keys(column, &mut list.iter().copied()),
            Bound::Array(array) => self.array_keys(column, array),
            Bound::End(_) => return None,
        };
        Some(Equality::new(column, self.bounded(bounding), values))
    }

    /// The part of the rows that meets further comparisons, of those rows that meet comparisons
    /// `before`. `None` if no extended statistics know columns of both together.
    pub(super) fn among<'c>(
        &self,
        before: impl Iterator<Item = &'c Bounding<'s>>,
        further: impl Iterator<Item = &'c Bounding<'s>>,
    ) -> Option<f64>
    where
        's: 'c,
    {
        let statistics = self.extended_statistics()?;
        let mut equalities: Vec<Equality> =
            before.filter_map(|bounding| self.equality_in(bounding)).collect();
        let alone = |equalities: &[Equality]| equalities.iter().map(|equality| equality.fraction).product();
        let earlier = statistics.meeting_all(&equalities).unwrap_or_else(|| alone(&equalities));
        let mut others = 1.0;
        for bounding in further {
            match self.equality_in(bounding) {
                Some(equality) if equalities.iter().all(|other| other.column != equality.column) => {
                    equalities.push(equality);
                }
                _ => others *= self.bounded(bounding),
            }
        }
        let all = statistics.meeting_all(&equalities)? * others;
        Some((all / earlier.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0))
    }

    /// The estimates of combinations that depend on parameters: the equalities of `set` whose
    /// columns one list of common combinations has.
    pub(super) fn combinations_asked(&self, set: &[&Bounding<'s>]) -> Vec<(u32, Comparing)> {
        let Some(statistics) = self.extended_statistics() else { return Vec::new() };
        let asked = set.iter().filter_map(|bounding| match &bounding.bound {
            Bound::Equal(value) => Some((bounding.column, self.asked(bounding.column, value)?)),
            _ => None,
        });
        let asked: Vec<(u32, Asked)> = asked.collect();
        let lists = statistics.0.iter().filter(|list| (1..=MOST_LISTED).contains(&list.common.len()));
        let choices = lists.filter_map(|list| {
            let own = asked.iter().filter(|(column, _)| list.columns.contains(column));
            let own: Vec<(u32, _, Asked)> = own
                .map(|(column, asked)| (*column, self.table.columns[*column as usize].type_, asked.clone()))
                .collect();
            let depends = own.iter().any(|(_, _, asked)| matches!(asked, Asked::Parameter(_)));
            (depends && own.len() > 1).then(|| (own[0].0, Comparing::Together(own)))
        });
        choices.collect()
    }

    /// Distinct combinations of values of different columns. Without extended statistics the
    /// columns count as independent. As in PostgreSQL, they have no more combinations than a tenth
    /// of the rows then, or than the column of the most values has values.
    pub(super) fn distinct_together(&self, columns: &[u32]) -> f64 {
        let found = self.extended_statistics();
        let known = found.and_then(|found| found.count(columns, |column| self.distinct(column)));
        let alone = || {
            let each = columns.iter().map(|column| self.distinct(*column));
            let (product, largest) =
                each.fold((1.0, 0.0_f64), |(product, largest), each| (product * each, largest.max(each)));
            product.min(largest.max(self.rows * MOST_COMBINED))
        };
        known.unwrap_or_else(alone).min(self.rows)
    }
}
