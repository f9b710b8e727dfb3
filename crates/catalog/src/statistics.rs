//! Statistics of a table's data, as ANALYZE collects them from a sample of its rows.
//!
//! A value is known by its key ([`values::key`]), ascending and not NULL. So one comparison of
//! bytes serves all types. An estimate within a bucket of the histogram reads the bytes as a
//! number.
//!
//! What must hold:
//!
//! 1. Common values and bounds of the histogram are in ascending order of their keys.
//! 2. All fractions are of the table's rows, NULLs included.

use serde::{Deserialize, Serialize};

use super::extended::{ExtendedStatistics, StatisticsObject};
use super::sampled::SampledValue;

/// Statistics of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Rows at the time of ANALYZE.
    pub rows: f64,
    /// Pages of its tree at that time.
    pub pages: f64,
    /// Statistics by column position. The list is shorter than the table when columns were added
    /// since.
    pub columns: Vec<ColumnStatistics>,
    /// Statistics of several columns, for each object of CREATE STATISTICS that ANALYZE met.
    pub extended: Vec<ExtendedStatistics>,
}

/// Statistics of one column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// The fraction of the values that is NULL, 0 to 1.
    pub null_fraction: f64,
    /// Distinct values. A negative number is a fraction of the rows (-1 = all different), as in
    /// `pg_stats.n_distinct`.
    pub distinct: f64,
    /// Average size of a value in bytes.
    pub width: f64,
    /// The most common values.
    pub common: Vec<CommonValue>,
    /// Bounds between equal shares of the values that are not common; at least two, or none.
    pub histogram: Vec<SampledValue>,
    /// The correlation of the values' order with the order of the rows, -1 to 1.
    pub correlation: f64,
}

/// A common value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommonValue {
    /// The value.
    pub value: SampledValue,
    /// The fraction of the rows that have it.
    pub frequency: f64,
}

impl TableStatistics {
    /// Takes over the data of objects for which ANALYZE found none, because the sample is empty or
    /// their target is 0.
    pub fn keep_extended(&mut self, objects: &[StatisticsObject], before: &TableStatistics) {
        for old in &before.extended {
            let is_object = objects.iter().any(|object| object.oid == old.object);
            if is_object && self.extended.iter().all(|new| new.object != old.object) {
                self.extended.push(old.clone());
            }
        }
    }
}

impl ColumnStatistics {
    /// Distinct values among this number of rows.
    fn distinct_of(&self, rows: f64) -> f64 {
        let count = if self.distinct < 0.0 { -self.distinct * rows } else { self.distinct };
        count.clamp(1.0, rows.max(1.0))
    }

    /// The fraction of the rows with some value, if each value is as likely to be asked for.
    #[must_use]
    pub fn equal_to_any(&self, rows: f64) -> f64 {
        (1.0 - self.null_fraction) / self.distinct_of(rows)
    }

    /// The fraction of the rows with the value of this key.
    #[must_use]
    pub fn equal_to(&self, key: &[u8], rows: f64) -> f64 {
        match self.common.binary_search_by(|common| (*common.value.key).cmp(key)) {
            Ok(at) => self.common[at].frequency,
            Err(_) => self.equal_to_other(rows),
        }
    }

    /// The fraction of the rows with one value that is not common.
    fn equal_to_other(&self, rows: f64) -> f64 {
        let others = (self.distinct_of(rows) - self.common.len() as f64).max(1.0);
        let fraction = self.uncommon_fraction() / others;
        // It is no more common than the common ones.
        let least = self.common.iter().map(|common| common.frequency).fold(f64::INFINITY, f64::min);
        fraction.min(least).max(1.0 / rows.max(1.0) / 2.0)
    }

    /// The fraction of the rows with values that are not common.
    fn uncommon_fraction(&self) -> f64 {
        let common: f64 = self.common.iter().map(|common| common.frequency).sum();
        (1.0 - self.null_fraction - common).max(0.0)
    }

    /// The fraction of the rows with values before the one of this key; with `inclusive`, or equal
    /// to it. `None` if the sample had too few values.
    #[must_use]
    pub fn below(&self, key: &[u8], inclusive: bool) -> Option<f64> {
        if self.common.is_empty() && self.histogram.is_empty() {
            return None;
        }
        let count = self.common.partition_point(|common| match (*common.value.key).cmp(key) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => inclusive,
            std::cmp::Ordering::Greater => false,
        });
        let common: f64 = self.common[..count].iter().map(|common| common.frequency).sum();
        Some(common + self.uncommon_fraction() * self.histogram_below(key).unwrap_or(0.5))
    }

    /// The fraction of the histogram's values before a key.
    fn histogram_below(&self, key: &[u8]) -> Option<f64> {
        let buckets = self.histogram.len().checked_sub(1).filter(|buckets| *buckets > 0)?;
        let next = self.histogram.partition_point(|bound| *bound.key < *key);
        let within = match next {
            0 => return Some(0.0),
            next if next > buckets => return Some(1.0),
            next => part(&self.histogram[next - 1].key, &self.histogram[next].key, key),
        };
        Some(((next - 1) as f64 + within) / buckets as f64)
    }

    /// The greatest frequency of a value over the least, as far as known; 1 if all are alike.
    #[must_use]
    pub fn skew(&self, rows: f64) -> f64 {
        let most = self.common.iter().map(|common| common.frequency).fold(0.0, f64::max);
        let least = self.common.iter().map(|common| common.frequency).fold(f64::INFINITY, f64::min);
        let other = if self.histogram.is_empty() { f64::INFINITY } else { self.equal_to_other(rows) };
        let least = least.min(other).max(f64::MIN_POSITIVE);
        (most / least).max(1.0)
    }
}

/// The place of a key between two others, 0 to 1: the bytes after their common beginning, read as a
/// number.
fn part(low: &[u8], high: &[u8], key: &[u8]) -> f64 {
    let common = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    let number = |bytes: &[u8]| {
        let rest = bytes.get(common..).unwrap_or(&[]);
        let (length, mut word) = (rest.len().min(8), [0; 8]);
        word[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(word) as f64
    };
    let (low, high, key) = (number(low), number(high), number(key));
    if high > low { ((key - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u32) -> SampledValue {
        SampledValue { key: number.to_be_bytes().into(), text: number.to_string().into() }
    }

    /// 1,000 rows: a fifth NULL, a fifth 7, the others evenly from 100 to 200.
    fn column() -> ColumnStatistics {
        ColumnStatistics {
            null_fraction: 0.2,
            distinct: 101.0,
            width: 4.0,
            common: vec![CommonValue { value: value(7), frequency: 0.2 }],
            histogram: [100, 150, 200].map(value).into(),
            correlation: 0.0,
        }
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn common_values_have_their_own_frequencies() {
        let column = column();
        assert!(near(column.equal_to(&7_u32.to_be_bytes(), 1000.0), 0.2));
        assert!(near(column.equal_to(&120_u32.to_be_bytes(), 1000.0), 0.6 / 100.0));
        assert!(near(column.equal_to_any(1000.0), 0.8 / 101.0));
        assert!(column.skew(1000.0) > 30.0, "{}", column.skew(1000.0));
        let even = ColumnStatistics { common: Vec::new(), ..column };
        assert!(near(even.skew(1000.0), 1.0));
    }

    #[test]
    fn parts_of_the_histogram_add_up() {
        let column = column();
        let below = |number: u32, inclusive| column.below(&number.to_be_bytes(), inclusive).unwrap();
        assert!(near(below(7, false), 0.0) && near(below(7, true), 0.2));
        assert!(near(below(100, false), 0.2) && near(below(125, false), 0.2 + 0.6 / 4.0));
        assert!(near(below(150, false), 0.2 + 0.6 / 2.0) && near(below(201, false), 0.8));
        assert_eq!(ColumnStatistics::default().below(b"a", true), None);
    }

    #[test]
    fn a_place_between_texts_is_read_from_their_bytes() {
        assert!(near(part(b"ba", b"bc", b"bb"), 0.5));
        assert!((part(b"a", b"c", b"b\xff") - 1.0).abs() < 0.01);
        assert!(near(part(b"a", b"a", b"a"), 0.5));
    }

    #[test]
    fn data_of_a_passed_over_object_stays() {
        let data = ExtendedStatistics { object: 7, columns: vec![1, 3], ..Default::default() };
        let before = TableStatistics { extended: vec![data], ..TableStatistics::default() };
        let object = |oid| StatisticsObject {
            oid,
            schema: 1,
            name: String::new(),
            columns: vec![1, 3],
            kinds: crate::StatisticsKinds::ALL,
            target: Some(0),
        };
        let mut now = TableStatistics::default();
        now.keep_extended(&[object(8)], &before);
        assert!(now.extended.is_empty());
        now.keep_extended(&[object(7)], &before);
        assert_eq!(now.extended, before.extended);
    }
}
