//! The ranges of a scan as intervals of keys.
//!
//! What must hold: the intervals lie in the tree's order and share no key, so a scan gives each
//! entry once.
//!
//! Where a range has each value of a column, a scan first looks up those that the tree has. Each
//! lookup skips the keys that begin as the one found before. The transaction's snapshot decides
//! which values there are, as it does for the rows. Beyond a number of values the rest of the range
//! is one interval. Its rows may not meet the conditions; the scan's filter decides.

use txn::Direction;
use txn::trees::{Drawn, Tree};

use super::keys::{Bounds, Part, encode_part};
use super::{Arena, Executor, File, from_txn};
use catalog::Table;
use query::plan::{KeyRange, KeyValue};
use values::error::SqlError;
use values::key::{self, step_over};
use values::memory;
use values::types::{Datum, Type, oid};
use values::work;

/// More intervals than this are sorted with safe points in between.
const FEW: usize = 1000;

/// Keys from `low` on, up to and without `high`.
#[derive(Clone, Copy)]
pub(super) struct Interval<'x> {
    low: &'x [u8],
    /// `None` is the end of the tree.
    high: Option<&'x [u8]>,
    /// The range fixes all columns of the key.
    whole: bool,
}

impl<'x> Interval<'x> {
    /// The keys as a range.
    pub(super) fn as_range(&self) -> txn::Range<'x> {
        use std::ops::Bound;
        txn::Range {
            lower: Bound::Included(self.low),
            upper: self.high.map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// Whether it has all keys of a leaf.
    pub(super) fn has_all(&self, leaf: &Drawn) -> bool {
        let ends_within = match (&leaf.upper, self.high) {
            (_, None) => true,
            (Some(upper), Some(high)) => **upper <= *high,
            (None, Some(_)) => false,
        };
        *leaf.lower >= *self.low && ends_within
    }

    /// The key, if the interval holds one whole key.
    pub(super) fn key(&self) -> Option<&'x [u8]> {
        self.whole.then_some(self.low)
    }
}

/// A tree with its columns.
pub(super) struct Keyed<'t, P> {
    pub(super) table: &'t Table,
    pub(super) tree: Tree,
    pub(super) parts: P,
}

/// Computes the intervals of a union of ranges over a tree.
pub(super) fn intervals<'s, 'x>(
    cx: &mut Executor<'s>,
    keyed: &Keyed<'_, impl Iterator<Item = Part> + Clone>,
    ranges: &'s [KeyRange],
    bounds: &mut Bounds,
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Vec<Interval<'x>>, SqlError> {
    let mut all = Vec::new();
    for range in ranges {
        let next = keyed.parts.clone().nth(range.equal.len());
        let whole = next.is_none();
        for prefix in prefixes(cx, keyed, range, (bounds, &mut all), file, arena)? {
            cx.check()?;
            if bounds.behind(cx, prefix, (next, range), file, arena)? {
                let (low, high) = bounds.ends();
                let low = work::bytes_in(low, &arena.bump)?;
                let high = high.map(|high| work::bytes_in(high, &arena.bump)).transpose()?;
                all.push(Interval { low, high, whole });
            }
        }
    }
    let sorted = sorted(cx, all)?;
    Ok(merged(sorted))
}

/// The prefixes that the leading columns of a range make: one for each choice of their values. The
/// part that has more values than are looked up goes to `rest`.
fn prefixes<'s, 'x>(
    cx: &mut Executor<'s>,
    keyed: &Keyed<'_, impl Iterator<Item = Part> + Clone>,
    range: &'s KeyRange,
    (bounds, rest): (&mut Bounds, &mut Vec<Interval<'x>>),
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Vec<&'x [u8]>, SqlError> {
    let mut prefixes: Vec<&'x [u8]> = vec![&[]];
    for (value, part) in range.equal.iter().zip(keyed.parts.clone()) {
        let type_ = keyed.table.columns[part.column as usize].type_;
        let mut longer = Vec::new();
        if let KeyValue::Each { between, most } = value {
            for prefix in prefixes {
                if bounds.behind(cx, prefix, (Some(part), between), file, arena)? {
                    let left = most.saturating_sub(longer.len());
                    let skipped = Skipped { part, type_, prefix, left };
                    rest.extend(each_value(cx, &keyed.tree, &skipped, bounds, &mut longer, arena)?);
                }
            }
            prefixes = longer;
            continue;
        }
        let values = encoded(cx, value, (part, type_), file, arena)?;
        if range.equal.len() == 1 {
            return Ok(values);
        }
        let count = prefixes.len().saturating_mul(values.len());
        memory::ask(count.saturating_mul(size_of::<&[u8]>()))?;
        longer.reserve_exact(count);
        for prefix in prefixes {
            for value in &values {
                cx.check()?;
                longer.push(work::parts_in(&[prefix, value], &arena.bump)?);
            }
        }
        prefixes = longer;
    }
    Ok(prefixes)
}

/// A column whose values are looked up.
struct Skipped<'p> {
    part: Part,
    type_: Type,
    /// The columns before it.
    prefix: &'p [u8],
    /// The most values to look up.
    left: usize,
}

/// Looks up the values that a tree has of a column, within bounds of its keys. Adds the prefix with
/// each of them; returns the rest of the bounds if there are more values than may be looked up.
fn each_value<'x>(
    cx: &mut Executor<'_>,
    tree: &Tree,
    skipped: &Skipped<'_>,
    bounds: &Bounds,
    found: &mut Vec<&'x [u8]>,
    arena: &'x Arena<'_>,
) -> Result<Option<Interval<'x>>, SqlError> {
    let (first, high) = bounds.ends();
    let high: Option<&'x [u8]> = high.map(|high| work::bytes_in(high, &arena.bump)).transpose()?;
    let mut low = cx.take_bytes();
    work::put(first, &mut low)?;
    let mut is_whole = false;
    let range = Interval { low: &low, high, whole: false }.as_range();
    let mut entries = cx.txn.scan(tree, range, Direction::Forward);
    for looked_up in 0..skipped.left {
        cx.check()?;
        if looked_up > 0 {
            entries.go_on(Interval { low: &low, high, whole: false }.as_range());
        }
        let Some((key, ..)) = entries.next(cx.txn).map_err(from_txn)? else {
            is_whole = true;
            break;
        };
        let start = skipped.prefix.len();
        let column = key.get(start..).and_then(|rest| key::length(rest, skipped.type_, skipped.part.order));
        let Some(length) = column else {
            return Err(SqlError::internal("a key whose column has no end"));
        };
        let longer: &'x [u8] = work::bytes_in(&key[..start + length], &arena.bump)?;
        found.push(longer);
        low.clear();
        low.extend_from_slice(longer);
        if !step_over(&mut low) {
            is_whole = true;
            break;
        }
    }
    let has_rest = !is_whole && high.is_none_or(|high| *low < *high);
    let rest = has_rest.then(|| work::bytes_in(&low, &arena.bump)).transpose()?;
    cx.give_bytes(low);
    Ok(rest.map(|low| Interval { low, high, whole: false }))
}

/// A leading column's values in a range, as parts of keys. NULLs among them find nothing.
fn encoded<'s, 'x>(
    cx: &mut Executor<'s>,
    value: &'s KeyValue,
    (part, type_): (Part, Type),
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Vec<&'x [u8]>, SqlError> {
    let (mut values, mut key) = (Vec::new(), cx.take_bytes());
    let mut add = |value: Datum<'x>| {
        key.clear();
        encode_part(part, value, &mut key)?;
        values.push(work::bytes_in(&key, &arena.bump)?);
        Ok::<_, SqlError>(())
    };
    match value {
        // Its values depend on the columns before it.
        KeyValue::Each { .. } => return Err(SqlError::internal("a skipped column without a tree")),
        KeyValue::Null => add(Datum::Null)?,
        KeyValue::One(value) => match cx.eval(value, file, arena)? {
            Datum::Null => {}
            value => add(value)?,
        },
        KeyValue::List(list) => {
            for value in list {
                cx.check()?;
                match cx.eval(value, file, arena)? {
                    Datum::Null => {}
                    value => add(value)?,
                }
            }
        }
        KeyValue::Array(array) => {
            if let Datum::Array(array) = cx.eval(array, file, arena)? {
                for element in array.iter() {
                    cx.check()?;
                    if let Some(value) = as_column(element?, type_) {
                        add(value)?;
                    }
                }
            }
        }
    }
    cx.give_bytes(key);
    Ok(values)
}

/// An array's element as a value of the column; `None` if no value of the column equals it.
fn as_column(element: Datum<'_>, column: Type) -> Option<Datum<'_>> {
    let number = match element {
        Datum::Null => return None,
        Datum::Int2(number) => i64::from(number),
        Datum::Int4(number) => i64::from(number),
        Datum::Int8(number) => number,
        other => return Some(other),
    };
    match column.oid {
        oid::INT2 => i16::try_from(number).ok().map(Datum::Int2),
        oid::INT4 => i32::try_from(number).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(number)),
    }
}

/// The intervals in the order of their lower ends.
fn sorted<'x>(
    cx: &mut Executor<'_>,
    mut intervals: Vec<Interval<'x>>,
) -> Result<Vec<Interval<'x>>, SqlError> {
    if intervals.len() <= FEW {
        intervals.sort_unstable_by_key(|interval| interval.low);
        return Ok(intervals);
    }
    let mut sorter = cx.sorter();
    for (at, interval) in intervals.iter().enumerate() {
        cx.check()?;
        sorter.push(interval.low, |to| {
            to.extend_from_slice(&at.to_le_bytes());
            Ok(())
        })?;
    }
    let (mut rows, mut sorted) = (sorter.finish()?, Vec::with_capacity(intervals.len()));
    while let Some((_, at)) = rows.next()? {
        cx.check()?;
        let at = at.first_chunk().map_or(0, |at| usize::from_le_bytes(*at));
        sorted.push(intervals[at]);
    }
    Ok(sorted)
}

/// Joins intervals that overlap or meet.
fn merged(intervals: Vec<Interval<'_>>) -> Vec<Interval<'_>> {
    let mut merged: Vec<Interval<'_>> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match merged.last_mut() {
            Some(last) if last.high.is_none_or(|high| next.low <= high) => {
                last.whole &= next.low == last.low && next.whole;
                last.high = match (last.high, next.high) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => merged.push(next),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval<'x>(low: &'x [u8], high: Option<&'x [u8]>, whole: bool) -> Interval<'x> {
        Interval { low, high, whole }
    }

    #[test]
    fn merged_intervals_share_no_key() {
        let one = |low: &'static [u8], high: &'static [u8]| interval(low, Some(high), true);
        let list = vec![
            one(b"a", b"b"),
            one(b"a", b"b"),
            one(b"c", b"d"),
            interval(b"cc", Some(b"e"), false),
            one(b"e", b"f"),
            one(b"x", b"y"),
            interval(b"y", None, false),
            one(b"z", b"{"),
        ];
        let merged = merged(list);
        let ends: Vec<_> = merged.iter().map(|i| (i.low, i.high)).collect();
        assert_eq!(ends, [(&b"a"[..], Some(&b"b"[..])), (b"c", Some(b"f")), (b"x", None)]);
        let keys: Vec<_> = merged.iter().map(|i| i.key()).collect();
        assert_eq!(keys, [Some(&b"a"[..]), None, None]);
    }

    #[test]
    fn elements_outside_the_columns_range_equal_no_value() {
        assert!(as_column(Datum::Int8(1 << 40), Type::INT4).is_none());
        assert!(matches!(as_column(Datum::Int8(7), Type::INT4), Some(Datum::Int4(7))));
        assert!(matches!(as_column(Datum::Int2(7), Type::INT8), Some(Datum::Int8(7))));
    }
}
