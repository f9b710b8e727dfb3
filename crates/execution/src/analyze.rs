//! ANALYZE: statistics of a table from a sample of its rows.
//!
//! 1. A table of few leaves is read whole. Otherwise leaves are drawn at random, each leaf of the
//!    table with the same chance ([`txn::trees::draw`]), and read in the order of their keys. So
//!    the work does not grow with the table.
//! 2. Each row met is kept with the same chance, whatever its leaf's fill: about [`ROWS`] rows for
//!    each bucket.
//! 3. The number of distinct values is estimated as Haas and Stokes do it ("Estimating the number
//!    of classes in a finite population", 1998, formula Duj1).
//! 4. A value is common if its count in the sample is more than that of the other values would be,
//!    by two standard deviations.
//! 5. Combinations of the columns of an object of CREATE STATISTICS are counted over the same
//!    sample ([`combinations`]).
//!
//! What must hold: the sample is of rows that the statement's snapshot sees.

mod combinations;

use std::ops::Bound;

use catalog::{ColumnStatistics, CommonValue, SampledValue, StatisticsObject, Table, TableStatistics};
use runtime::work;
use txn::trees::{self, Drawn, Tree};
use txn::{Direction, Range, TxnSession};
use values::environment::NoSession;
use values::error::SqlError;
use values::row::RowView;
use values::text;
use values::types::{Datum, Type};

use self::combinations::Codes;
use super::keys::table_tree;
use super::memory::encode_key;
use super::{from_storage, from_txn};

/// Rows of a sample for each bucket of a histogram. So many keep a bucket's error below half its
/// size with a chance of 99%. Source: Chaudhuri, Motwani and Narasayya, "Random sampling for
/// histogram construction: how much is enough?", 1998.
const ROWS: usize = 300;
/// Leaves of a sample for each bucket. A table of twice as many is read whole.
const LEAVES: usize = 150;
/// Leaves drawn to learn the table's size.
const PROBES: usize = 100;
/// A longer value counts as different from all others, and is neither common nor a bound.
const WIDEST: usize = 1024;
/// Entries read between two checks for an interrupt.
const CHECKED: usize = 64;
/// Work of comparing two keys, in ns. Safe points lie between comparisons, since a sample may have
/// millions of keys.
const COMPARING: usize = 20;

/// Rows of a table, in the order of their keys, and the size of the table.
#[derive(Default)]
struct Sample {
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    ends: Vec<usize>,
    /// Rows of the whole table, and its pages.
    rows: f64,
    pages: f64,
}

/// Gathers a table's statistics by the present snapshot. `target`: the most common values of a
/// column, and the buckets of its histogram.
pub fn analyze(txn: &TxnSession, table: &Table, target: usize) -> Result<TableStatistics, SqlError> {
    // An object with a larger target needs more rows.
    let targets = table.extended.iter().filter_map(|object| object.target);
    let sample = Sample::take(txn, table, targets.map(usize::from).fold(target, usize::max))?;
    let mut found = TableStatistics { rows: sample.rows, pages: sample.pages, ..Default::default() };
    if sample.ends.is_empty() {
        return Ok(found);
    }
    let target_of = |object: &StatisticsObject| object.target.map_or(target, usize::from);
    let objects: Vec<_> = table.extended.iter().filter(|object| target_of(object) > 0).collect();
    let mut codes: Vec<Option<Codes>> = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        let is_coded = objects.iter().any(|object| object.columns.contains(&(at as u32)));
        let (statistics, coded) = sample.column(table, (at, column.type_), target, is_coded)?;
        found.columns.push(statistics);
        codes.push(coded);
    }
    for object in objects {
        let of = |column: &u32| codes[*column as usize].as_ref();
        let columns: Vec<&Codes> = object.columns.iter().filter_map(of).collect();
        let value = |row: usize, column: usize| {
            let at = object.columns[column] as usize;
            sample.sampled_value(table, row, (at, table.columns[at].type_))
        };
        let size = (sample.rows, target_of(object));
        found.extended.push(combinations::gather(object, &columns, size, value)?);
    }
    Ok(found)
}

fn safe_point() -> Result<(), SqlError> {
    runtime::fiber::safe_point();
    runtime::interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))
}

/// Whether something of this chance happens.
fn happens(chance: f64) -> bool {
    (runtime::random::u64() >> 11) as f64 / ((1_u64 << 53) as f64) < chance
}

impl Sample {
    fn take(txn: &TxnSession, table: &Table, target: usize) -> Result<Sample, SqlError> {
        let tree = table_tree(table);
        let (wanted_rows, wanted_leaves) = ((ROWS * target) as f64, LEAVES * target);
        let mut drawn = draw(txn, tree, PROBES)?;
        let mean = |drawn: &[Drawn], of: fn(&Drawn) -> f64| {
            drawn.iter().map(of).sum::<f64>() / drawn.len().max(1) as f64
        };
        let leaves = mean(&drawn, |leaf| leaf.weight);
        let mut sample = Sample { pages: mean(&drawn, |leaf| leaf.pages).round(), ..Sample::default() };
        if leaves <= 2.0 * wanted_leaves as f64 {
            let entries = mean(&drawn, |leaf| leaf.weight * leaf.entries as f64);
            let whole = Range { lower: Bound::Unbounded, upper: Bound::Unbounded };
            sample.rows = sample.read(txn, tree, whole, wanted_rows / entries.max(1.0))? as f64;
            sample.pages =
                trees::pages(txn.engine().folder(), tree).map_err(|error| from_storage(&error))? as f64;
            return Ok(sample);
        }
        // About half of the drawn leaves are kept.
        drawn.extend(draw(txn, tree, 2 * wanted_leaves)?);
        let leaves = mean(&drawn, |leaf| leaf.weight);
        let most = drawn.iter().map(|leaf| leaf.weight).fold(0.0, f64::max);
        drawn.retain(|leaf| happens(leaf.weight / most));
        drawn.truncate(wanted_leaves);
        drawn.sort_by(|one, other| {
            work::yield_after(COMPARING);
            one.lower.cmp(&other.lower)
        });
        drawn.dedup_by(|one, other| one.lower == other.lower);
        let chance = wanted_rows / drawn.iter().map(|leaf| leaf.entries).sum::<usize>().max(1) as f64;
        let mut met = 0;
        for leaf in &drawn {
            let upper = leaf.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            met += sample.read(txn, tree, Range { lower: Bound::Included(&leaf.lower), upper }, chance)?;
        }
        sample.rows = (met as f64 / drawn.len().max(1) as f64 * leaves).round();
        Ok(sample)
    }

    /// Keeps each row of a range with the same chance. Returns the number of rows met.
    fn read(
        &mut self,
        txn: &TxnSession,
        tree: Tree,
        range: Range<'_>,
        chance: f64,
    ) -> Result<usize, SqlError> {
        let mut scan = txn.scan(&tree, range, Direction::Forward);
        let mut met = 0;
        while let Some((_, row, _)) = scan.next(txn).map_err(from_txn)? {
            met += 1;
            if met % CHECKED == 0 {
                safe_point()?;
            }
            if happens(chance) {
                self.bytes.extend_from_slice(row);
                self.ends.push(self.bytes.len());
            }
        }
        Ok(met)
    }

    fn row(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// The value of a row in a column; None is NULL.
    fn sampled_value(
        &self,
        table: &Table,
        row: usize,
        (at, type_): (usize, Type),
    ) -> Result<Option<SampledValue>, SqlError> {
        let value = RowView::new(self.row(row), table.shape()).get(at)?;
        if value.is_null() {
            return Ok(None);
        }
        let (mut key, mut out) = (Vec::new(), Vec::new());
        encode_key(value, &mut key)?;
        text::write(value, type_, &NoSession::default(), &mut out)?;
        Ok(Some(SampledValue { key: key.into(), text: String::from_utf8_lossy(&out).into() }))
    }

    /// The statistics of a column, and its values as codes if they are wanted.
    fn column(
        &self,
        table: &Table,
        (at, type_): (usize, Type),
        target: usize,
        is_coded: bool,
    ) -> Result<(ColumnStatistics, Option<Codes>), SqlError> {
        let value = |row: usize| RowView::new(self.row(row), table.shape()).get(at);
        let mut keys = Keys::default();
        let (mut nulls, mut width) = (0, 0);
        for row in 0..self.ends.len() {
            if row % CHECKED == 0 {
                safe_point()?;
            }
            match value(row)? {
                Datum::Null => nulls += 1,
                // A value out of line is not fetched.
                Datum::OutOfLine(pointer) => {
                    keys.wide.push(row);
                    width += pointer.length as usize;
                }
                value => {
                    let start = keys.bytes.len();
                    encode_key(value, &mut keys.bytes)?;
                    let length = keys.bytes.len() - start;
                    width += length - marks(value);
                    if length > WIDEST {
                        keys.bytes.truncate(start);
                        keys.wide.push(row);
                    } else {
                        keys.places.push(Place {
                            key: start..keys.bytes.len(),
                            row,
                            rank: keys.places.len(),
                        });
                    }
                }
            }
        }
        let wide = keys.wide.len();
        let sampled = Sampled { nulls, wide, rows: self.ends.len(), all: self.rows, target };
        let known = keys.places.len() + wide;
        let correlation = keys.sort();
        let groups = keys.groups();
        let mut statistics = keys.statistics(&groups, &sampled, |row| {
            let mut out = Vec::new();
            text::write(value(row)?, type_, &NoSession::default(), &mut out)?;
            Ok(String::from_utf8_lossy(&out).into())
        })?;
        statistics.correlation = correlation;
        statistics.width = width as f64 / known.max(1) as f64;
        Ok((statistics, is_coded.then(|| keys.codes(&groups, self.ends.len()))))
    }
}

/// The bytes of a key that are not of the value: the mark before it, and a text's end. PostgreSQL
/// counts one byte for a text's length.
fn marks(value: Datum<'_>) -> usize {
    if matches!(value, Datum::Text(_) | Datum::Padded(_) | Datum::Bytea(_)) { 2 } else { 1 }
}

fn draw(txn: &TxnSession, tree: Tree, times: usize) -> Result<Vec<Drawn>, SqlError> {
    let mut drawn = Vec::with_capacity(times);
    for number in 0..times {
        if number % CHECKED == 0 {
            safe_point()?;
        }
        let leaf = trees::draw(txn.engine().folder(), tree, &mut runtime::random::u64);
        drawn.push(leaf.map_err(|error| from_storage(&error))?);
    }
    Ok(drawn)
}

/// Counts of a column's sample.
struct Sampled {
    nulls: usize,
    /// Values too long to be compared.
    wide: usize,
    /// Rows of the sample, and of the table.
    rows: usize,
    all: f64,
    /// The most common values, and the buckets of the histogram.
    target: usize,
}

/// A value of the sample.
struct Place {
    /// Where its key is.
    key: std::ops::Range<usize>,
    /// Its row.
    row: usize,
    /// The number of values in the rows before.
    rank: usize,
}

/// The keys of a column's values.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The rows of values too long to be compared.
    wide: Vec<usize>,
}

impl Keys {
    fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.places[at].key.clone()]
    }

    /// The rows' values as codes.
    fn codes(&self, groups: &[(usize, usize)], rows: usize) -> Codes {
        let rows_of = |&(first, count): &(usize, usize)| {
            self.places[first..first + count].iter().map(|place| place.row)
        };
        Codes::new(rows, groups.iter().map(rows_of), &self.wide)
    }

    /// The statistics of the sorted keys but for their correlation and width. `text` writes the
    /// value of a row.
    fn statistics(
        &self,
        groups: &[(usize, usize)],
        sampled: &Sampled,
        text: impl Fn(usize) -> Result<Box<str>, SqlError>,
    ) -> Result<ColumnStatistics, SqlError> {
        let rows = sampled.rows.max(1) as f64;
        let null_fraction = sampled.nulls as f64 / rows;
        let distinct = distinct(groups, sampled);
        let common = common(groups, distinct, sampled);
        let value = |at: usize| {
            Ok::<_, SqlError>(SampledValue { key: self.key(at).into(), text: text(self.places[at].row)? })
        };
        let mut values = Vec::with_capacity(common.len());
        for &(first, count) in &common {
            values.push(CommonValue { value: value(first)?, frequency: count as f64 / rows });
        }
        let mut others = Vec::with_capacity(self.places.len());
        let mut left_out = common.iter().peekable();
        for &(first, count) in groups {
            match left_out.next_if(|(common, _)| *common == first) {
                Some(_) => {}
                None => others.extend(first..first + count),
            }
        }
        let mut histogram = Vec::new();
        let different = groups.len() - common.len();
        if different >= 2 {
            let buckets = sampled.target.min(others.len() - 1);
            for bucket in 0..=buckets {
                histogram.push(value(others[bucket * (others.len() - 1) / buckets])?);
            }
        }
        // As in pg_stats: a number of values that grows with the table is a fraction of its rows.
        let distinct = if distinct > 0.1 * sampled.all { -distinct / sampled.all.max(1.0) } else { distinct };
        Ok(ColumnStatistics { null_fraction, distinct, common: values, histogram, ..Default::default() })
    }

    /// Sorts the keys, and returns the correlation of their order with that of the rows.
    fn sort(&mut self) -> f64 {
        let bytes = &self.bytes;
        self.places.sort_by(|one, other| {
            work::yield_after(COMPARING);
            bytes[one.key.clone()].cmp(&bytes[other.key.clone()])
        });
        let count = self.places.len() as f64;
        let mean = (count - 1.0) / 2.0;
        let products = self.places.iter().enumerate();
        let sum: f64 = products.map(|(at, place)| (at as f64 - mean) * (place.rank as f64 - mean)).sum();
        let variance = count * (count * count - 1.0) / 12.0;
        if variance > 0.0 { sum / variance } else { 0.0 }
    }

    /// The first place and the count of each value, in the order of the keys.
    fn groups(&self) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for at in 0..self.places.len() {
            work::yield_after(COMPARING);
            match groups.last_mut() {
                Some((first, count)) if self.key(*first) == self.key(at) => *count += 1,
                _ => groups.push((at, 1)),
            }
        }
        groups
    }
}

/// The estimated number of distinct values in the table.
fn distinct(groups: &[(usize, usize)], sampled: &Sampled) -> f64 {
    let known = sampled.rows - sampled.nulls;
    let all = sampled.all * known as f64 / sampled.rows.max(1) as f64;
    let once = groups.iter().filter(|(_, count)| *count == 1).count() + sampled.wide;
    estimated_distinct(known, all, (groups.len() + sampled.wide, once))
}

/// The estimated number of distinct values among `all`, if a sample of so many has `found`
/// different ones, of which `once` come once.
fn estimated_distinct(known: usize, all: f64, (found, once): (usize, usize)) -> f64 {
    let found = found as f64;
    if once == 0 || known as f64 >= all {
        return found;
    }
    let (known, once) = (known as f64, once as f64);
    let estimate = known * found / (known - once + once * known / all);
    estimate.clamp(found, all)
}

/// The common values, each by its first place and its count, in the order of the keys.
fn common(groups: &[(usize, usize)], distinct: f64, sampled: &Sampled) -> Vec<(usize, usize)> {
    let known = (sampled.rows - sampled.nulls) as f64;
    let is_whole = groups.len() <= sampled.target && sampled.wide == 0 && groups.len() as f64 >= distinct;
    let mut candidates: Vec<(usize, usize)> = groups.to_vec();
    candidates.sort_by(|one, other| {
        work::yield_after(COMPARING);
        other.1.cmp(&one.1).then(one.0.cmp(&other.0))
    });
    if !is_whole {
        candidates.retain(|(_, count)| *count > 1);
        candidates.truncate(sampled.target);
        let mut sum: usize = candidates.iter().map(|(_, count)| count).sum();
        while let Some(&(_, least)) = candidates.last() {
            // The share of each other value, and of this one if it were like them.
            let others = (distinct - candidates.len() as f64 + 1.0).max(1.0);
            let share = ((known - (sum - least) as f64) / known / others).clamp(0.0, 1.0);
            let deviation = (known * share * (1.0 - share)).sqrt();
            if least as f64 > known * share + 2.0 * deviation + 0.5 {
                break;
            }
            sum -= least;
            candidates.pop();
        }
    }
    candidates.sort_unstable();
    candidates
}
