//! Ranges of a key: how comparisons bound its columns.
//!
//! Each alternative of the conditions ([`super::bounding`]) bounds a key to a range. Equalities on
//! the key's first columns form a prefix, comparisons on the next column an interval. Equalities on
//! a whole unique key form a point. A column of few values may be skipped: the scan then looks for
//! the bounds of later columns behind each of its values.
//!
//! What must hold: a condition needs no filter if its clause is exact and each range uses all its
//! comparisons. A range with a skipped column meets none: where the column has more values than
//! expected, the scan stops skipping and reads the rest.

use super::bounding::{Bound, Bounding, COMPARISONS, COPYING, Clause, End, MOST};
use super::estimate::elements;
use super::key_interval::interval;
use super::search::Search;
use super::{cost, key_value};
use crate::plan::{KeyRange, KeyValue};
use catalog::{IndexKey, Table};
use expressions::expr::Expr;
use values::error::SqlError;
use values::key::has_length;

/// The most keys that the lists of conditions make together, apart from a single list.
const POINTS: f64 = 10_000.0;

/// The most values of a skipped column that are looked up, if fewer are expected.
const SKIPS: usize = 100;

/// The comparisons that bound a leading column of a key.
#[derive(Clone)]
enum Leading<B> {
    /// Those values.
    Values(B),
    /// Each value of a column, if it is skipped.
    Each(Skipped<B>),
}

/// A leading column that is skipped.
#[derive(Clone)]
struct Skipped<B> {
    column: u32,
    /// Its values lie between these ends. Without any NULL is one of them.
    ends: Vec<B>,
    /// The most values that are looked up.
    most: usize,
}

impl<B> Leading<B> {
    fn iter(&self) -> impl Iterator<Item = &B> {
        match self {
            Leading::Values(one) => std::slice::from_ref(one).iter(),
            Leading::Each(skipped) => skipped.ends.iter(),
        }
    }
}

/// The comparisons that bound one range of a key: of the leading columns, then of the next one.
#[derive(Clone)]
pub(super) struct Reach<'s> {
    leading: Vec<Leading<Bounding<'s>>>,
    ends: Vec<Bounding<'s>>,
}

impl Reach<'_> {
    /// All keys.
    pub(super) const ALL: Self = Reach { leading: Vec::new(), ends: Vec::new() };
}

/// One range, with estimates.
#[derive(Clone)]
pub(super) struct Reached<'c, 's> {
    leading: Vec<Leading<&'c Bounding<'s>>>,
    ends: Vec<&'c Bounding<'s>>,
    /// The fraction of the table's rows.
    pub(super) fraction: f64,
    /// The number of keys that its lists and skipped columns make.
    points: f64,
    /// The work of looking up the values of skipped columns, before the first row.
    skips: f64,
}

impl<'c, 's> Reached<'c, 's> {
    const ALL: Self =
        Reached { leading: Vec::new(), ends: Vec::new(), fraction: 1.0, points: 1.0, skips: 0.0 };

    /// Whether comparisons bound it.
    pub(super) fn is_bounded(&self) -> bool {
        !self.leading.is_empty() || !self.ends.is_empty()
    }

    /// The comparisons that bound it.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &'c Bounding<'s>> {
        let leading = self.leading.iter().flat_map(Leading::iter);
        leading.chain(&self.ends).copied()
    }

    /// The positions of the conditions whose comparisons bound it.
    pub(super) fn conditions(&self) -> impl Iterator<Item = usize> {
        self.bounds().map(|bounding| bounding.condition)
    }

    /// The comparison that gives a leading column its values.
    fn values(&self, at: usize) -> Option<&'c Bounding<'s>> {
        match self.leading.get(at) {
            Some(Leading::Values(bounding)) => Some(bounding),
            _ => None,
        }
    }

    pub(super) fn owned(&self) -> Reach<'s> {
        let owned = |list: &[&Bounding<'s>]| list.iter().map(|&bounding| bounding.clone()).collect();
        let leading = self.leading.iter().map(|leading| match leading {
            Leading::Values(bounding) => Leading::Values((*bounding).clone()),
            Leading::Each(Skipped { column, ends, most }) => {
                Leading::Each(Skipped { column: *column, ends: owned(ends), most: *most })
            }
        });
        Reach { leading: leading.collect(), ends: owned(&self.ends) }
    }
}

/// The ranges to which the conditions bound a key.
pub(super) struct Matched<'c, 's> {
    pub(super) ranges: Vec<Reached<'c, 's>>,
    pub(super) used: Vec<usize>,
}

impl Matched<'_, '_> {
    pub(super) fn fraction(&self) -> f64 {
        self.ranges.iter().map(|range| range.fraction).sum::<f64>().min(1.0)
    }

    pub(super) fn points(&self) -> f64 {
        self.ranges.iter().map(|range| range.points).sum()
    }

    pub(super) fn skips(&self) -> f64 {
        self.ranges.iter().map(|range| range.skips).sum()
    }

    /// The number of leading columns with one value, the same in all ranges.
    pub(super) fn fixed(&self) -> usize {
        let Some((first, others)) = self.ranges.split_first() else { return 0 };
        let is_same = |at: &usize| {
            let Some(bounding) = first.values(*at) else { return false };
            let is_there = |other: &Reached<'_, '_>| {
                other.values(*at).is_some_and(|there| std::ptr::eq(there, bounding))
            };
            !bounding.bound.is_list() && others.iter().all(is_there)
        };
        (0..first.leading.len()).take_while(is_same).count()
    }

    fn is_skipping(&self) -> bool {
        let skips = |leading: &Leading<_>| matches!(leading, Leading::Each(_));
        self.ranges.iter().any(|range| range.leading.iter().any(skips))
    }

    /// Whether equalities fix all columns of the key, to one value other than NULL each.
    pub(super) fn is_point(&self, keys: &[IndexKey]) -> bool {
        let [range] = self.ranges.as_slice() else { return false };
        let is_one = |at: usize| {
            range.values(at).is_some_and(|values| matches!(values.bound, Bound::Equal(_) | Bound::Truth(_)))
        };
        !keys.is_empty() && range.leading.len() == keys.len() && (0..keys.len()).all(is_one)
    }
}

impl<'s> Search<'s> {
    /// The ranges to which the conditions bound a key. A condition with alternatives takes part if
    /// it makes the ranges smaller. `row`: the work of reading one row.
    pub(super) fn matched<'c>(
        &self,
        keys: &[IndexKey],
        clauses: &'c [Clause<'s>],
        row: f64,
    ) -> Matched<'c, 's> {
        let (plain, either): (Vec<&'c Clause<'s>>, Vec<_>) =
            clauses.iter().partition(|clause| clause.alternatives.len() == 1);
        let mut taken = plain;
        let mut sets: Vec<Vec<&'c Bounding<'s>>> =
            vec![taken.iter().flat_map(|clause| &clause.alternatives[0]).collect()];
        let mut ranges: Vec<Reached<'c, 's>> = sets.iter().map(|set| self.reached(keys, set, row)).collect();
        let fraction = |ranges: &[Reached<'_, '_>]| ranges.iter().map(|range| range.fraction).sum::<f64>();
        let points = |ranges: &[Reached<'_, '_>]| ranges.iter().map(|range| range.points).sum::<f64>();
        for clause in either {
            let in_key = |bounding: &Bounding<'s>| keys.iter().any(|key| key.column == bounding.column);
            let bounds = |alternative: &Vec<Bounding<'s>>| alternative.iter().any(in_key);
            let before: usize = sets.iter().map(Vec::len).sum();
            let comparisons = before * clause.alternatives.len() + clause.comparisons() * sets.len();
            if sets.len() * clause.alternatives.len() > MOST
                || comparisons > 2 * COMPARISONS
                || !clause.alternatives.iter().all(bounds)
            {
                continue;
            }
            runtime::work::yield_after(comparisons * COPYING);
            let with = |set: &Vec<&'c Bounding<'s>>| {
                let set = set.clone();
                clause.alternatives.iter().map(move |more| set.iter().copied().chain(more).collect())
            };
            let more: Vec<Vec<_>> = sets.iter().flat_map(with).collect();
            let smaller: Vec<_> = more.iter().map(|set| self.reached(keys, set, row)).collect();
            if fraction(&smaller) < fraction(&ranges) && points(&smaller) <= POINTS {
                (sets, ranges) = (more, smaller);
                taken.push(clause);
            }
        }
        let is_used = |bounding: &Bounding<'s>, range: &Reached<'_, 's>| {
            let leading = range.leading.iter().flat_map(Leading::iter);
            leading.chain(&range.ends).any(|used| std::ptr::eq(*used, bounding))
        };
        // Whether each range uses all comparisons of a condition.
        let meets = |condition: usize| {
            sets.iter().zip(&ranges).all(|(set, range)| {
                let mut own = set.iter().filter(|bounding| bounding.condition == condition);
                own.all(|bounding| is_used(bounding, range))
            })
        };
        let conditions = |clause: &&Clause<'s>| clause.alternatives[0].first().map(|first| first.condition);
        let used = taken.iter().filter(|clause| clause.exact).filter_map(conditions);
        let used: Vec<usize> = used.filter(|&condition| meets(condition)).collect();
        let matched = Matched { ranges, used };
        if matched.is_skipping() { Matched { used: Vec::new(), ..matched } } else { matched }
    }

    /// The range to which one set of comparisons bounds a key. `row`: the work of reading one row.
    pub(super) fn reached<'c>(
        &self,
        keys: &[IndexKey],
        set: &[&'c Bounding<'s>],
        row: f64,
    ) -> Reached<'c, 's> {
        self.extended(Reached::ALL, keys, set, row)
    }

    /// A range, bounded by further columns of the key.
    fn extended<'c>(
        &self,
        mut range: Reached<'c, 's>,
        mut keys: &[IndexKey],
        set: &[&'c Bounding<'s>],
        row: f64,
    ) -> Reached<'c, 's> {
        while let Some((key, others)) = keys.split_first() {
            let own = || set.iter().copied().filter(|bounding| bounding.column == key.column);
            if let Some(before) = range.leading.iter().find(|leading| column_of(leading) == key.column) {
                // The column stands earlier in the key too. Nobody knows which value of several it
                // has there.
                match before {
                    Leading::Values(values) if !values.bound.is_list() => {
                        range.leading.push(Leading::Values(values));
                    }
                    _ => break,
                }
            } else if let Some((equal, points)) = self.equality(&range, own) {
                let before = (0..range.leading.len()).filter_map(|at| range.values(at));
                let among = self.among(before, std::iter::once(equal));
                range.fraction *= among.unwrap_or_else(|| self.bounded(equal));
                range.leading.push(Leading::Values(equal));
                range.points *= points;
            } else {
                range.ends.extend(own().filter(|b| matches!(b.bound, Bound::End(..))));
                let ends: Vec<End<'_>> = range.ends.iter().filter_map(|bounding| bounding.end()).collect();
                let part = if ends.is_empty() { 1.0 } else { self.between(key.column, &ends) };
                let skipping = self.skipping(&range, (key.column, part), others, set, row);
                range.fraction *= part;
                return skipping
                    .filter(|other| self.work(other, row) < self.work(&range, row))
                    .unwrap_or(range);
            }
            keys = others;
        }
        range
    }

    /// The comparison of a key's next column with one value or several, and the number of these.
    fn equality<'c, I: Iterator<Item = &'c Bounding<'s>>>(
        &self,
        range: &Reached<'c, 's>,
        own: impl Fn() -> I,
    ) -> Option<(&'c Bounding<'s>, f64)>
    where
        's: 'c,
    {
        let one = own().find(|b| matches!(b.bound, Bound::Equal(_) | Bound::Truth(_) | Bound::Null));
        let equal = one.or_else(|| own().find(|b| b.bound.is_list()))?;
        let values = match &equal.bound {
            Bound::List(list) => list.len() as f64,
            Bound::Array(array) => elements(array),
            _ => 1.0,
        };
        // Two lists make each pair a key, and nobody knows the length of an array.
        let is_array = |leading: &Leading<&Bounding<'_>>| {
            matches!(leading, Leading::Values(Bounding { bound: Bound::Array(_), .. }))
        };
        let has_array = range.leading.iter().any(is_array) || matches!(equal.bound, Bound::Array(_));
        let crossed = values > 1.0 && range.points > 1.0;
        (!crossed || !has_array && values * range.points <= POINTS).then_some((equal, values))
    }

    /// A range that has each value of the key's next column, within the ends that it has so far,
    /// and is bounded by later columns. `part`: the part of the rows that these ends keep.
    fn skipping<'c>(
        &self,
        range: &Reached<'c, 's>,
        (column, part): (u32, f64),
        keys: &[IndexKey],
        set: &[&'c Bounding<'s>],
        row: f64,
    ) -> Option<Reached<'c, 's>> {
        let is_bounded = |key: &IndexKey| set.iter().any(|bounding| bounding.column == key.column);
        let type_ = self.table.columns[column as usize].type_;
        if self.statistics.is_none() || !has_length(type_) || !keys.iter().any(is_bounded) {
            return None;
        }
        let mut longer = range.clone();
        let ends = std::mem::take(&mut longer.ends);
        longer.fraction *= part;
        longer.points *= (self.distinct(column) * part).max(1.0);
        longer.points = longer.points.min((self.rows * longer.fraction).max(1.0));
        longer.skips += longer.points * self.skip_work(&longer);
        let most = SKIPS.max((2.0 * longer.points) as usize);
        longer.leading.push(Leading::Each(Skipped { column, ends, most }));
        let length = longer.leading.len();
        let longer = self.extended(longer, keys, set, row);
        (longer.leading.len() > length || !longer.ends.is_empty()).then_some(longer)
    }

    /// The work of looking up the next value of a skipped column, and the rows behind the one
    /// before. The next value may lie in another leaf.
    fn skip_work(&self, range: &Reached<'_, '_>) -> f64 {
        let entries = self.rows * range.fraction / range.points.max(1.0);
        cost::DESCENT + cost::LEAF * (entries / cost::LEAF_ENTRIES).min(1.0)
    }

    /// The work of reading a range.
    pub(super) fn work(&self, range: &Reached<'_, '_>, row: f64) -> f64 {
        range.points * cost::DESCENT + range.skips + self.rows * range.fraction * row
    }
}

/// The column that a leading part of a range bounds.
fn column_of(leading: &Leading<&Bounding<'_>>) -> u32 {
    match leading {
        Leading::Values(bounding) => bounding.column,
        Leading::Each(skipped) => skipped.column,
    }
}

pub(super) fn key_range(range: &Reach<'_>, table: &Table) -> Result<KeyRange, SqlError> {
    let mut key = interval(&range.ends, table)?;
    for leading in &range.leading {
        key.equal.push(match leading {
            Leading::Each(Skipped { ends, most, .. }) => {
                KeyValue::Each { between: interval(ends, table)?, most: *most }
            }
            Leading::Values(bounding) => {
                let type_ = table.columns[bounding.column as usize].type_;
                match &bounding.bound {
                    Bound::Equal(value) => KeyValue::One(key_value::exact(value, type_)?),
                    Bound::Truth(value) => KeyValue::One(Expr::boolean(*value)),
                    Bound::List(list) => {
                        let exact = list.iter().map(|value| key_value::exact(value, type_));
                        KeyValue::List(exact.collect::<Result<_, _>>()?)
                    }
                    Bound::Array(array) => KeyValue::Array((*array).clone()),
                    Bound::Null | Bound::End(..) => KeyValue::Null,
                }
            }
        });
    }
    Ok(key)
}
