//! Estimates of the part of a table's rows that conditions keep, from the table's statistics.
//!
//! A parameter stands for the value that the statement is planned with, if there is one. The
//! choices among estimates that depend on it are noted ([`crate::plan::Choice`]), so that another
//! value can get another plan.
//!
//! What must hold: each estimate is from 0 to 1.

use std::borrow::Cow;

use super::bounding::{Bound, Bounding, Clause, End};
use super::cost::{self, EQUAL, RANGE};
use super::key_value::is_comparable;
use super::moments;
use super::search::Search;
use crate::plan::{Asked, AskedEnd, Choice, Comparing, key_of, prefix_keys};
use crate::registers;
use catalog::ColumnStatistics;
use expressions::expr::{Cast, CastPath, Expr, Quantified, QuantifiedOver};
use expressions::function::Comparison;
use expressions::prefix::{Prefix, Rest};
use values::types::{Datum, Type, Value, oid};

/// The estimated part between two ends without statistics.
const BETWEEN: f64 = 0.005;
/// Values are skewed if one is so many times as common as another.
const SKEWED: f64 = 4.0;
/// Estimated elements of an array.
const ELEMENTS: f64 = 10.0;
/// The estimated part of texts with a pattern's prefix that match the rest of the pattern.
const REST: f64 = 0.25;

/// A bound's value at planning.
pub(super) enum Known {
    /// Its key among the column's values.
    Key(Vec<u8>),
    Null,
    Unknown,
}

/// The part of the rows between two ends. An end may be there, though nobody knows where.
#[derive(Default)]
struct Between {
    low: Option<f64>,
    high: Option<f64>,
    unknown_low: bool,
    unknown_high: bool,
    /// The part of one value, if the interval has no other.
    one: Option<f64>,
}

impl Between {
    /// Adds a lower end, with the part of the rows below it.
    fn above(&mut self, below: Option<f64>) {
        match below {
            Some(below) => self.low = Some(self.low.map_or(below, |low| low.max(below))),
            None => self.unknown_low = true,
        }
    }

    /// Adds an upper end, with the part of the rows below it.
    fn up_to(&mut self, below: Option<f64>) {
        match below {
            Some(below) => self.high = Some(self.high.map_or(below, |high| high.min(below))),
            None => self.unknown_high = true,
        }
    }

    /// The part, of `all` rows with a value.
    fn part(&self, all: f64) -> f64 {
        let known = self.high.unwrap_or(all) - self.low.unwrap_or(0.0);
        let guessed = match (self.unknown_low && self.low.is_none(), self.unknown_high && self.high.is_none())
        {
            (true, true) => BETWEEN,
            (false, false) => 1.0,
            _ => RANGE,
        };
        self.one.unwrap_or(known * guessed)
    }
}

impl<'s> Search<'s> {
    fn column(&self, column: u32) -> Option<&'s ColumnStatistics> {
        self.statistics.and_then(|statistics| statistics.columns.get(column as usize))
    }

    /// Whether no two rows have the same value in a column.
    fn is_unique(&self, column: u32) -> bool {
        let alone = |columns: &[u32]| columns == [column];
        self.table.primary_key.as_ref().is_some_and(|key| alone(&key.columns))
            || self.table.indexes.iter().any(|index| {
                index.unique && matches!(index.columns.as_slice(), [key] if key.column == column)
            })
    }

    /// The parameter or constant that a value is, without casts that change no value.
    pub(super) fn asked(&self, column: u32, value: &Expr) -> Option<Asked> {
        match self.compared_value(column, value)? {
            value @ Expr::Const(..) => match self.known(column, value) {
                Known::Key(key) => Some(Asked::Key(key.into())),
                Known::Null | Known::Unknown => None,
            },
            Expr::Param { index, .. } => Some(Asked::Parameter(*index)),
            _ => None,
        }
    }

    /// A value with which a column is compared, without casts that change no value.
    fn compared_value<'e>(&self, column: u32, mut value: &'e Expr) -> Option<&'e Expr> {
        let type_ = self.table.columns[column as usize].type_;
        // Keys of other types have another order.
        if !is_comparable(value.type_(), type_) && !moments::differ(value.type_(), type_) {
            return None;
        }
        while let Expr::Cast(cast) = value {
            if !keeps_value(cast) {
                return None;
            }
            value = &cast.input;
        }
        Some(value)
    }

    pub(super) fn known(&self, column: u32, value: &Expr) -> Known {
        let type_ = self.table.columns[column as usize].type_;
        let key = |value: &Value| match value {
            Value::Null => Known::Null,
            value => {
                let mut key = Vec::with_capacity(32);
                let is_known = key_of(value.datum(), type_, &mut key).is_some();
                if is_known { Known::Key(key) } else { Known::Unknown }
            }
        };
        match self.compared_value(column, value) {
            Some(Expr::Const(value, _)) => key(value),
            Some(Expr::Param { index, .. }) => self.values.peek(*index).as_ref().map_or(Known::Unknown, key),
            _ => Known::Unknown,
        }
    }

    /// The value of a constant or a parameter, without casts that change no value.
    pub(super) fn value<'e>(&self, value: &'e Expr) -> Option<Cow<'e, Value>> {
        match value {
            Expr::Const(value, _) => Some(Cow::Borrowed(value)),
            Expr::Param { index, .. } => self.values.peek(*index).map(Cow::Owned),
            Expr::Cast(cast) if keeps_value(cast) => self.value(&cast.input),
            _ => None,
        }
    }

    /// The part of the rows with one value of a column.
    pub(super) fn equal(&self, column: u32, value: &Expr) -> f64 {
        self.equal_to(column, &self.known(column, value))
    }

    fn equal_to(&self, column: u32, value: &Known) -> f64 {
        let one = 1.0 / self.rows.max(1.0);
        if self.is_unique(column) {
            return one;
        }
        let Some(statistics) = self.column(column) else { return EQUAL.max(one) };
        match value {
            Known::Key(key) => statistics.equal_to(key, self.rows),
            Known::Null => 0.0,
            Known::Unknown => statistics.equal_to_any(self.rows),
        }
    }

    /// The part of the rows whose value of a column meets all these comparisons.
    pub(super) fn between(&self, column: u32, ends: &[End<'_>]) -> f64 {
        let mut between = Between::default();
        let statistics = self.column(column);
        let below = |key: &[u8], inclusive| statistics.and_then(|found| found.below(key, inclusive));
        for end in ends {
            match *end {
                End::Compared(comparison, value) => {
                    let inclusive = matches!(comparison, Comparison::Greater | Comparison::LessEqual);
                    let below = match self.known(column, value) {
                        Known::Null => return 0.0,
                        Known::Key(key) => below(&key, inclusive),
                        Known::Unknown => None,
                    };
                    match comparison {
                        Comparison::Greater | Comparison::GreaterEqual => between.above(below),
                        _ => between.up_to(below),
                    }
                }
                End::Matched(matching, pattern) => match self.value(pattern).as_deref() {
                    Some(Value::Null) => return 0.0,
                    Some(Value::Text(text)) => self.add_prefix(column, &matching.prefix(text), &mut between),
                    _ => {
                        between.above(None);
                        between.up_to(None);
                    }
                },
                End::NotNull => {}
            }
        }
        let all = statistics.map_or(1.0, |statistics| 1.0 - statistics.null_fraction);
        // Rows may have come since ANALYZE.
        between.part(all).clamp((1.0 / self.rows.max(1.0)).min(all), 1.0)
    }

    /// Adds the ends of the texts with a prefix.
    fn add_prefix(&self, column: u32, prefix: &Prefix<'_>, between: &mut Between) {
        let Some([low, high]) = prefix_keys(prefix) else { return };
        if prefix.rest == Rest::Nothing {
            between.one = Some(self.equal_to(column, &Known::Key(low)));
        } else if !prefix.text.is_empty() {
            let below = |key: &[u8]| self.column(column).and_then(|found| found.below(key, false));
            between.above(below(&low));
            between.up_to(below(&high));
        }
    }

    /// The part of the rows within an end that meet its condition.
    fn rest(&self, end: &End<'_>) -> f64 {
        let End::Matched(matching, pattern) = *end else { return 1.0 };
        match self.value(pattern).as_deref() {
            Some(Value::Text(text)) if matching.prefix(text).rest == Rest::Pattern => REST,
            _ => 1.0,
        }
    }

    /// The part of the rows with NULL in a column.
    pub(super) fn null(&self, column: u32) -> f64 {
        match self.column(column) {
            _ if self.table.columns[column as usize].not_null => 0.0,
            Some(statistics) => statistics.null_fraction,
            None => EQUAL,
        }
    }

    /// The part of the rows that one comparison of a column keeps.
    pub(super) fn bounded(&self, bounding: &Bounding<'s>) -> f64 {
        let column = bounding.column;
        match &bounding.bound {
            Bound::Equal(value) => self.equal(column, value),
            Bound::Truth(value) => self.equal(column, &Expr::boolean(*value)),
            Bound::Null => self.null(column),
            Bound::List(list) => list.iter().map(|value| self.equal(column, value)).sum::<f64>().min(1.0),
            Bound::Array(array) => (self.equal_to_any(column) * elements(array)).min(1.0),
            Bound::End(end) => self.between(column, &[*end]),
        }
    }

    /// Whether the part that a comparison keeps may be any, because its value is not known.
    pub(super) fn is_guess(&self, bounding: &Bounding<'s>) -> bool {
        let column = bounding.column;
        let is_unknown = |value: &Expr| matches!(self.known(column, value), Known::Unknown);
        match &bounding.bound {
            Bound::Equal(value) => is_unknown(value) && self.is_skewed(column),
            Bound::List(list) => self.is_skewed(column) && list.iter().any(|value| is_unknown(value)),
            Bound::Array(array) => array.as_const().is_none() && self.is_skewed(column),
            Bound::End(End::Compared(_, value)) => is_unknown(value),
            Bound::End(End::Matched(_, pattern)) => self.value(pattern).is_none(),
            Bound::End(End::NotNull) | Bound::Truth(_) | Bound::Null => false,
        }
    }

    /// Whether a comparison's value reads a column of another table.
    pub(super) fn reads_column(&self, bounding: &Bounding<'s>) -> bool {
        let reads = |value: &Expr| registers::reads(value).iter().any(|&read| self.values.is_column(read));
        match &bounding.bound {
            Bound::Equal(value) | Bound::Array(value) => reads(value),
            Bound::End(End::Compared(_, value) | End::Matched(_, value)) => reads(value),
            Bound::List(list) => list.iter().any(|value| reads(value)),
            Bound::End(End::NotNull) | Bound::Truth(_) | Bound::Null => false,
        }
    }

    /// Distinct values of a column.
    pub(super) fn distinct(&self, column: u32) -> f64 {
        (1.0 / self.equal_to_any(column).max(f64::MIN_POSITIVE)).min(self.rows)
    }

    /// The part of the rows with any one value of a column.
    fn equal_to_any(&self, column: u32) -> f64 {
        let one = 1.0 / self.rows.max(1.0);
        match self.column(column) {
            _ if self.is_unique(column) => one,
            Some(statistics) => statistics.equal_to_any(self.rows),
            None => EQUAL.max(one),
        }
    }

    /// The part of the rows that meet all conditions.
    pub(super) fn kept(&self, conditions: &[Expr]) -> f64 {
        let together = self.together(conditions);
        let mut part = together.part.unwrap_or(1.0);
        let mut ends: Vec<(u32, Vec<End<'_>>)> = Vec::new();
        for (at, condition) in conditions.iter().enumerate() {
            if together.taken.contains(&at) {
                continue;
            }
            match self.end(condition) {
                Some((column, end)) => {
                    part *= self.rest(&end);
                    match ends.iter_mut().find(|(other, _)| *other == column) {
                        Some((_, list)) => list.push(end),
                        None => ends.push((column, vec![end])),
                    }
                }
                None => part *= self.selectivity(condition),
            }
        }
        ends.iter().fold(part, |part, (column, list)| part * self.between(*column, list))
    }

    /// The column and the end of a range that a condition is.
    fn end<'e>(&self, condition: &'e Expr) -> Option<(u32, End<'e>)> {
        if let Some((matching, text, pattern)) = condition.as_matching() {
            let column = self.own_column(text)?;
            let type_ = self.table.columns[column as usize].type_;
            return is_comparable(pattern.type_(), type_)
                .then_some((column, End::Matched(matching, pattern)));
        }
        if let Some(column) = self.without_null(condition) {
            return Some((column, End::NotNull));
        }
        let (comparison, left, right) = condition.as_comparison()?;
        let is_end = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let end = match (self.compared_column(left), self.compared_column(right)) {
            (Some(column), None) => (column, End::Compared(comparison, right)),
            (None, Some(column)) => (column, End::Compared(comparison.commuted(), left)),
            _ => return None,
        };
        is_end.then_some(end)
    }

    /// The part of the rows that meet a condition.
    pub(super) fn selectivity(&self, condition: &Expr) -> f64 {
        let part = match condition {
            Expr::And(parts) => self.kept(parts),
            Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - self.selectivity(part)).product::<f64>(),
            Expr::Not(inner) => 1.0 - self.selectivity(inner),
            Expr::NullTest { input, negated } => match self.own_column(input) {
                Some(column) if *negated => 1.0 - self.null(column),
                Some(column) => self.null(column),
                None => cost::selectivity(condition),
            },
            Expr::Column { .. } => match self.own_column(condition) {
                Some(column) => self.equal(column, &Expr::boolean(true)),
                None => cost::selectivity(condition),
            },
            Expr::Quantified(quantified) => self.quantified(quantified, condition),
            _ => self.compared(condition),
        };
        part.clamp(0.0, 1.0)
    }

    fn compared(&self, condition: &Expr) -> f64 {
        if let Some((column, end)) = self.end(condition) {
            return self.between(column, &[end]) * self.rest(&end);
        }
        let Some((comparison, left, right)) = condition.as_comparison() else {
            return cost::selectivity(condition);
        };
        let (column, value) = match (self.own_column(left), self.own_column(right)) {
            (Some(column), None) => (column, right),
            (None, Some(column)) => (column, left),
            // Two columns of the table.
            (Some(one), Some(other)) if comparison == Comparison::Equal => {
                return self.equal_to_any(one).min(self.equal_to_any(other));
            }
            _ => return cost::selectivity(condition),
        };
        match comparison {
            Comparison::Equal => self.equal(column, value),
            Comparison::NotEqual => 1.0 - self.equal(column, value) - self.null(column),
            _ => RANGE,
        }
    }

    fn quantified(&self, quantified: &Quantified, condition: &Expr) -> f64 {
        let Some(column) = self.own_column(&quantified.left) else { return cost::selectivity(condition) };
        let parts: f64 = match &quantified.right {
            QuantifiedOver::List(list) => list.iter().map(|value| self.equal(column, value)).sum(),
            QuantifiedOver::Array(array) => self.equal_to_any(column) * elements(array),
        };
        match (quantified.function.comparison, quantified.all) {
            (Some(Comparison::Equal), false) => parts.min(1.0),
            (Some(Comparison::NotEqual), true) => (1.0 - parts - self.null(column)).max(0.0),
            _ => cost::selectivity(condition),
        }
    }

    /// Notes the estimates of these conditions that depend on parameters.
    pub(super) fn note_choices(&self, clauses: &[Clause<'s>]) {
        let Some(statistics) = self.statistics else { return };
        let plain = clauses.iter().filter(|clause| clause.alternatives.len() == 1);
        let plain: Vec<&Bounding<'s>> = plain.flat_map(|clause| &clause.alternatives[0]).collect();
        let either = clauses.iter().filter(|clause| clause.alternatives.len() > 1);
        let sets = either.flat_map(|clause| &clause.alternatives).map(|set| set.iter().collect());
        for set in std::iter::once(plain).chain(sets) {
            for (column, comparing) in self.comparing(&set).into_iter().chain(self.combinations_asked(&set)) {
                let choice = Choice {
                    table: self.table.oid,
                    column,
                    type_: self.table.columns[column as usize].type_,
                    statistics: std::sync::Arc::clone(statistics),
                    rows: self.rows,
                    comparing,
                };
                let mut choices = self.choices.borrow_mut();
                if choices.len() < crate::plan::MOST_CHOICES && !choices.iter().any(|c| c.is_same(&choice)) {
                    choices.push(choice);
                }
            }
        }
    }

    /// The estimates for a set of comparisons that depend on parameters, by column.
    fn comparing(&self, set: &[&Bounding<'s>]) -> Vec<(u32, Comparing)> {
        let mut found: Vec<(u32, Comparing)> = Vec::new();
        let mut ranges: Vec<(u32, Option<AskedEnd>, Option<AskedEnd>)> = Vec::new();
        for bounding in set {
            let column = bounding.column;
            let equal = |value: &Expr| match self.asked(column, value) {
                Some(asked @ Asked::Parameter(_)) if self.is_skewed(column) => {
                    Some((column, Comparing::Equal(asked)))
                }
                _ => None,
            };
            match &bounding.bound {
                Bound::Equal(value) => found.extend(equal(value)),
                Bound::List(list) => found.extend(list.iter().filter_map(|value| equal(value))),
                Bound::End(End::Matched(matching, pattern)) => {
                    if let Expr::Param { index, .. } = pattern
                        && self.is_ordered(column)
                    {
                        found.push((column, Comparing::Pattern(*matching, *index)));
                    }
                }
                Bound::End(End::NotNull) => {}
                Bound::End(End::Compared(comparison, value)) => {
                    let Some(asked) = self.asked(column, value) else { continue };
                    let inclusive = matches!(comparison, Comparison::GreaterEqual | Comparison::LessEqual);
                    let is_low = matches!(comparison, Comparison::Greater | Comparison::GreaterEqual);
                    let at = ranges.iter().position(|(other, ..)| *other == column).unwrap_or(ranges.len());
                    if at == ranges.len() {
                        ranges.push((column, None, None));
                    }
                    let (_, low, high) = &mut ranges[at];
                    if is_low { low } else { high }.get_or_insert((asked, inclusive));
                }
                Bound::Truth(_) | Bound::Null | Bound::Array(_) => {}
            }
        }
        let depends = |end: &Option<AskedEnd>| matches!(end, Some((Asked::Parameter(_), _)));
        let ranges = ranges
            .into_iter()
            .filter(|(column, low, high)| (depends(low) || depends(high)) && self.is_ordered(*column));
        found.extend(ranges.map(|(column, low, high)| (column, Comparing::Range { low, high })));
        found
    }

    /// Whether the statistics tell which part of a column's values lies below one.
    fn is_ordered(&self, column: u32) -> bool {
        self.column(column).is_some_and(|statistics| statistics.below(b"", false).is_some())
    }

    fn is_skewed(&self, column: u32) -> bool {
        !self.is_unique(column)
            && self.column(column).is_some_and(|statistics| statistics.skew(self.rows) > SKEWED)
    }
}

/// Whether a cast changes no value, or only so little that estimates stay the same ([`key_of`]).
fn keeps_value(cast: &Cast) -> bool {
    let (from, to) = (cast.input.type_(), cast.type_);
    let is_integer = |type_: Type| matches!(type_.oid, oid::INT2 | oid::INT4 | oid::INT8);
    let is_float = |type_: Type| matches!(type_.oid, oid::FLOAT4 | oid::FLOAT8);
    matches!(cast.path, CastPath::Relabel)
        || super::key_value::is_wider_integer(from, to)
        || is_integer(from) && (is_float(to) || to.oid == oid::NUMERIC)
        || is_float(to) && (is_float(from) || from.oid == oid::NUMERIC)
        || from.oid == oid::NUMERIC && to.oid == oid::NUMERIC
        || from.oid == oid::DATE && to.oid == oid::TIMESTAMP
}

/// The number of elements of a constant array, or a guess of it.
pub(super) fn elements(array: &Expr) -> f64 {
    match array.as_const().map(Value::datum) {
        Some(Datum::Array(array)) => array.iter().count() as f64,
        _ => ELEMENTS,
    }
}
