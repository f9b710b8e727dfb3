//! Access paths: how a scan reaches one table's rows under the conditions on it.
//!
//! A condition `column op value` can bound a key if the value reads only registers that are filled
//! before the scan. Equalities on a key's first columns form a prefix, comparisons on the next
//! column an interval. Equalities on a whole unique key form a point.
//!
//! What must hold:
//!
//! 1. A condition that bounds the key is exact and needs no filter. So the order of the index is
//!    that of the comparison, for the types on both sides.
//! 2. A NULL constant among the equalities means IS NULL. A comparison with a constant NULL is
//!    decided before, so none comes here.
//! 3. Any other value that turns out to be NULL finds no row.
//! 4. A bound is computed once, before the scan, so a volatile value never bounds.
//! 5. The choice between paths changes cost alone. Conditions that do not bound stay as filters.

use super::cost;
use crate::plan::{AccessPath, KeyBound, KeyRange, Reg, SortKey};
use crate::registers::{self, Registers};
use catalog::{IndexKey, Table, TableStatistics};
use expressions::expr::{Case, CastPath, Expr};
use expressions::function::{Comparison, Volatility};
use expressions::functions::{self, CastContext};
use values::types::{Type, Value, oid};

/// A possible access path, with estimates.
pub(super) struct Access {
    pub(super) path: AccessPath,
    /// Positions of conditions that the path meets by itself.
    pub(super) used: Vec<usize>,
    /// Estimated rows of the path.
    pub(super) rows: f64,
    /// Estimated cost of reading them, in the unit of [`cost`].
    pub(super) cost: f64,
    /// Whether the rows come in the wanted order.
    pub(super) ordered: bool,
}

/// The input of the search for a path.
pub(super) struct Search<'s> {
    pub(super) table: &'s Table,
    /// The register of each column.
    pub(super) columns: &'s [Option<Reg>],
    pub(super) conditions: &'s [Expr],
    /// Registers filled before the scan.
    pub(super) available: &'s Registers,
    pub(super) rows: f64,
    pub(super) statistics: Option<&'s TableStatistics>,
    /// The order that the query wants, and whether it then needs only some of the rows.
    pub(super) order: &'s [SortKey],
    pub(super) limited: bool,
}

/// A condition that can bound a key.
struct Bounding {
    condition: usize,
    column: u32,
    comparison: Comparison,
    value: Expr,
    /// Whether the range includes its end. A rounded end is included under any comparison.
    inclusive: bool,
}

impl Search<'_> {
    /// The cheapest path. The cost includes sorting its rows.
    pub(super) fn best(&self) -> Access {
        let bounding = self.bounding();
        let mut best = self.table_path(&bounding);
        for index in 0..self.table.indexes.len() {
            let other = self.index_path(index, &bounding);
            if self.total(&other) < self.total(&best) {
                best = other;
            }
        }
        best
    }

    fn total(&self, access: &Access) -> f64 {
        if self.order.is_empty() || access.ordered {
            // With a limit, an ordered path stops early.
            let share = if self.limited && access.ordered && !self.order.is_empty() { 0.1 } else { 1.0 };
            return access.cost * share;
        }
        access.cost + cost::sort(access.rows)
    }

    fn bounding(&self) -> Vec<Bounding> {
        let mut found = Vec::new();
        for (condition, expr) in self.conditions.iter().enumerate() {
            if let Expr::NullTest { input, negated: false } = expr
                && let Some(column) = self.own_column(input)
            {
                let value = Expr::null(self.table.columns[column as usize].type_);
                // A NULL constant marks IS NULL. No equality with NULL comes from anywhere else.
                found.push(Bounding {
                    condition,
                    column,
                    comparison: Comparison::Equal,
                    value,
                    inclusive: false,
                });
                continue;
            }
            let Some((comparison, left, right)) = expr.as_comparison() else { continue };
            if comparison == Comparison::NotEqual {
                continue;
            }
            for (side, other, comparison) in [(left, right, comparison), (right, left, comparison.commuted())]
            {
                if let Some(column) = self.own_column(side)
                    && self.is_ready(other)
                    && let type_ = self.table.columns[column as usize].type_
                    && let Some(value) = key_value(other, type_, comparison)
                {
                    let inclusive = is_wider(other.type_(), type_);
                    found.push(Bounding { condition, column, comparison, value, inclusive });
                    break;
                }
            }
        }
        found
    }

    /// The position of the column that an expression is, ignoring casts that only rename the type.
    fn own_column(&self, expr: &Expr) -> Option<u32> {
        match expr {
            Expr::Column { register, .. } => {
                self.columns.iter().position(|column| *column == Some(*register)).map(|column| column as u32)
            }
            Expr::Cast(cast) if matches!(cast.path, CastPath::Relabel) => self.own_column(&cast.input),
            _ => None,
        }
    }

    /// Whether a value can be computed before the scan.
    fn is_ready(&self, expr: &Expr) -> bool {
        registers::reads(expr).is_subset(self.available) && expr.volatility() < Volatility::Volatile
    }

    /// The path through the table's own tree.
    fn table_path(&self, bounding: &[Bounding]) -> Access {
        let keys: Vec<IndexKey> =
            self.table.primary_key.iter().flat_map(|key| &key.columns).map(ascending).collect();
        let matched = self.matched(&keys, bounding);
        if !keys.is_empty() && matched.range.equal.len() == keys.len() && matched.range.null_equal.is_empty()
        {
            return Access {
                path: AccessPath::Point { key: matched.range.equal },
                used: matched.used,
                rows: 1.0,
                cost: cost::DESCENT + 1.0,
                ordered: true,
            };
        }
        let rows = (self.rows * matched.fraction).max(1.0);
        let (ordered, backward) = self.order_of(&keys, matched.range.equal.len());
        Access {
            path: AccessPath::Table { range: matched.range, backward },
            used: matched.used,
            rows,
            cost: cost::DESCENT + rows,
            ordered,
        }
    }

    fn index_path(&self, number: usize, bounding: &[Bounding]) -> Access {
        let index = &self.table.indexes[number];
        let matched = self.matched(&index.columns, bounding);
        let whole = matched.range.equal.len() == index.columns.len() && matched.range.null_equal.is_empty();
        if index.unique && whole {
            return Access {
                path: AccessPath::UniquePoint { index: number, key: matched.range.equal },
                used: matched.used,
                rows: 1.0,
                cost: 2.0 * cost::DESCENT + 1.0,
                ordered: true,
            };
        }
        let rows = (self.rows * matched.fraction).max(1.0);
        let (ordered, backward) = self.order_of(&index.columns, matched.range.equal.len());
        Access {
            path: AccessPath::Index { index: number, range: matched.range, backward },
            used: matched.used,
            rows,
            cost: cost::DESCENT + rows * cost::INDEX_ROW,
            ordered,
        }
    }

    /// The range to which the conditions bound a key.
    fn matched(&self, keys: &[IndexKey], bounding: &[Bounding]) -> Matched {
        let mut matched = Matched { range: KeyRange::all(), used: Vec::new(), fraction: 1.0 };
        for key in keys {
            let equal = bounding.iter().find(|b| b.column == key.column && b.comparison == Comparison::Equal);
            if let Some(equal) = equal {
                if self.is_null_test(equal) {
                    matched.range.null_equal.push(matched.range.equal.len());
                }
                matched.range.equal.push(equal.value.clone());
                matched.used.push(equal.condition);
                matched.fraction *= cost::equal_fraction(self.statistics, key.column, self.rows);
                continue;
            }
            for bound in bounding.iter().filter(|b| b.column == key.column) {
                let (place, inclusive) = match bound.comparison {
                    Comparison::Greater => (&mut matched.range.low, false),
                    Comparison::GreaterEqual => (&mut matched.range.low, true),
                    Comparison::Less => (&mut matched.range.high, false),
                    Comparison::LessEqual => (&mut matched.range.high, true),
                    Comparison::Equal | Comparison::NotEqual => continue,
                };
                if place.is_none() {
                    let inclusive = inclusive || bound.inclusive;
                    *place = Some(KeyBound { value: bound.value.clone(), inclusive });
                    matched.used.push(bound.condition);
                }
            }
            matched.fraction *=
                cost::range_fraction(matched.range.low.is_some(), matched.range.high.is_some());
            break;
        }
        matched
    }

    fn is_null_test(&self, bounding: &Bounding) -> bool {
        matches!(self.conditions[bounding.condition], Expr::NullTest { .. })
    }

    /// Whether a key's order, after this number of fixed columns, is the wanted one; and whether it
    /// is backward.
    fn order_of(&self, keys: &[IndexKey], fixed: usize) -> (bool, bool) {
        if self.order.is_empty() {
            return (true, false);
        }
        let fixed_columns: Vec<u32> = keys[..fixed].iter().map(|key| key.column).collect();
        let mut rest = keys[fixed..].iter();
        let mut backward: Option<bool> = None;
        for wanted in self.order {
            let Some(column) = self.own_column(&wanted.expr) else { return (false, false) };
            if fixed_columns.contains(&column) {
                continue;
            }
            let Some(key) = rest.next() else { return (false, false) };
            if key.column != column {
                return (false, false);
            }
            let flipped = key.descending != wanted.descending;
            let nulls_fit = self.table.columns[column as usize].not_null
                || (key.nulls_first != flipped) == wanted.nulls_first;
            if !nulls_fit || backward.is_some_and(|backward| backward != flipped) {
                return (false, false);
            }
            backward = Some(flipped);
        }
        (true, backward.unwrap_or(false))
    }
}

struct Matched {
    range: KeyRange,
    used: Vec<usize>,
    fraction: f64,
}

fn ascending(column: &u32) -> IndexKey {
    IndexKey { column: *column, descending: false, nulls_first: false }
}

fn integer_width(type_: u32) -> Option<(i64, i64)> {
    match type_ {
        oid::INT2 => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        oid::INT4 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        oid::INT8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

fn is_text(type_: u32) -> bool {
    matches!(type_, oid::TEXT | oid::VARCHAR)
}

/// Whether a type has integers outside the column type's range.
fn is_wider(value_type: Type, column: Type) -> bool {
    match (integer_width(column.oid), integer_width(value_type.oid)) {
        (Some((low, high)), Some((value_low, value_high))) => value_low < low || value_high > high,
        _ => false,
    }
}

/// Converts a wider integer to an inclusive end of a range of the column's type. It is the nearest
/// value of the type that satisfies the comparison; NULL if no value satisfies it.
fn nearest(value: &Expr, comparison: Comparison, (low, high): (i64, i64), column: Type) -> Option<Expr> {
    let number = |number: i64| Expr::constant(Value::Int8(number), Type::INT8);
    let narrow = |value: Expr| functions::cast(value, column, CastContext::Explicit).ok();
    let is = |operator: &str, end: i64| functions::operator(operator, Some(value.clone()), number(end)).ok();
    let moved = |operator: &str| functions::operator(operator, Some(value.clone()), number(1)).ok();
    // When all values satisfy it, the end of the range then, when none does, and the bound
    // otherwise.
    let (all, end, none, otherwise) = match comparison {
        Comparison::Less => (is(">", high)?, high, is("<=", low)?, moved("-")?),
        Comparison::LessEqual => (is(">=", high)?, high, is("<", low)?, value.clone()),
        Comparison::Greater => (is("<", low)?, low, is(">=", high)?, moved("+")?),
        Comparison::GreaterEqual => (is("<=", low)?, low, is(">", high)?, value.clone()),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    Some(Expr::Case(Box::new(Case {
        branches: vec![(all, narrow(number(end))?), (none, Expr::null(column))],
        otherwise: narrow(otherwise)?,
        type_: column,
    })))
}

/// A value as a key of exactly the column's type. None if the comparison is not the column's own.
///
/// A wider integer outside the column's range becomes NULL, since it equals no value of the column.
/// For the end of a range see [`nearest`].
fn key_value(value: &Expr, column: Type, comparison: Comparison) -> Option<Expr> {
    let value_type = value.type_();
    if value_type.oid == column.oid {
        return Some(value.clone());
    }
    let wanted = Type::new(column.oid);
    if let (Some((low, high)), Some((value_low, value_high))) =
        (integer_width(column.oid), integer_width(value_type.oid))
    {
        if value_low >= low && value_high <= high {
            return functions::cast(value.clone(), wanted, CastContext::Implicit).ok();
        }
        if comparison != Comparison::Equal {
            return nearest(value, comparison, (low, high), wanted);
        }
        let bound = |number: i64| Expr::constant(Value::Int8(number), Type::INT8);
        let narrow = functions::cast(value.clone(), wanted, CastContext::Explicit).ok()?;
        let above = functions::operator(">=", Some(value.clone()), bound(low)).ok()?;
        let below = functions::operator("<=", Some(value.clone()), bound(high)).ok()?;
        return Some(Expr::Case(Box::new(Case {
            branches: vec![(Expr::And(vec![above, below]), narrow)],
            otherwise: Expr::null(wanted),
            type_: wanted,
        })));
    }
    if is_text(column.oid) && is_text(value_type.oid) {
        return functions::cast(value.clone(), wanted, CastContext::Assignment).ok();
    }
    None
}
