//! Extended statistics of a sample: combinations of values of several columns.
//!
//! Each value of a column gets a code, equal values the same one. Combinations of columns get codes
//! too. One pass over the rows adds a column to a combination: each pair of their codes gets a new
//! code. So a set of columns costs one pass, whatever their types.
//!
//! What must hold:
//!
//! 1. NULL has a code. A value too long to be compared has a code that no other row has.
//! 2. At most one coded combination for each column of an object is in memory.

use std::cmp::Reverse;

use catalog::{CommonCombination, ExtendedStatistics, FunctionalDependency, StatisticsObject};
use runtime::hash::HashMap;
use runtime::work;
use values::error::SqlError;

use super::{estimated_distinct, safe_point};

/// Work of coding one row, in ns.
const CODING: usize = 30;
/// The largest standard error of a common combination's frequency, as a part of the frequency.
const ERROR: f64 = 0.2;

/// The values of one column, or the combinations of several, as codes.
pub(super) struct Codes {
    /// The code of each row of the sample.
    rows: Vec<u32>,
    /// For each code, its number of rows.
    counts: Vec<u32>,
    /// The first code of values too long to be compared.
    wide: u32,
}

impl Codes {
    /// The codes of a column. `groups` are the rows of each value; `wide` are rows with a value
    /// too long to be compared. All other rows of the sample are NULL.
    pub(super) fn new(
        count: usize,
        groups: impl Iterator<Item = impl Iterator<Item = usize>>,
        wide: &[usize],
    ) -> Codes {
        let mut codes = Codes { rows: vec![0; count], counts: vec![0], wide: 0 };
        for group in groups {
            let code = codes.counts.len() as u32;
            let mut size = 0;
            for row in group {
                codes.rows[row] = code;
                size += 1;
            }
            codes.counts.push(size);
        }
        codes.wide = codes.counts.len() as u32;
        for &row in wide {
            codes.rows[row] = codes.counts.len() as u32;
            codes.counts.push(1);
        }
        codes.counts[0] = (count - codes.counts.iter().sum::<u32>() as usize) as u32;
        codes
    }

    /// The codes of the combinations with another column.
    fn with(&self, other: &Codes) -> Result<Codes, SqlError> {
        safe_point()?;
        let mut known: HashMap<(u32, u32), u32> = HashMap::default();
        let mut codes = Codes { rows: Vec::with_capacity(self.rows.len()), counts: Vec::new(), wide: 0 };
        for pair in self.rows.iter().copied().zip(other.rows.iter().copied()) {
            work::yield_after(CODING);
            let code = *known.entry(pair).or_insert_with(|| {
                codes.counts.push(0);
                codes.counts.len() as u32 - 1
            });
            codes.counts[code as usize] += 1;
            codes.rows.push(code);
        }
        Ok(codes)
    }

    /// The fraction of the rows whose code comes with one code of a column only.
    fn decide(&self, other: &Codes) -> Result<f64, SqlError> {
        safe_point()?;
        // The code of the column beside each code, until a second one comes.
        let mut beside: Vec<Option<Result<u32, ()>>> = vec![None; self.counts.len()];
        for (code, other) in self.rows.iter().zip(&other.rows) {
            work::yield_after(CODING / 4);
            let place = &mut beside[*code as usize];
            match place {
                None => *place = Some(Ok(*other)),
                Some(Ok(first)) if first != other => *place = Some(Err(())),
                Some(_) => {}
            }
        }
        let decided = beside.iter().zip(&self.counts).filter(|(beside, _)| matches!(beside, Some(Ok(_))));
        let rows: f64 = decided.map(|(_, count)| f64::from(*count)).sum();
        Ok(rows / self.rows.len().max(1) as f64)
    }

    /// The estimated number of codes among all rows of a table.
    fn distinct(&self, all: f64) -> f64 {
        let found = self.counts.iter().filter(|count| **count > 0).count();
        let once = self.counts.iter().filter(|count| **count == 1).count();
        estimated_distinct(self.rows.len(), all, (found, once)).round()
    }
}

/// Gathers an object's statistics. `columns` are the codes of its columns, `all` the rows of the
/// table, and `target` the most combinations to list. `value` returns the value of a row in the
/// column of this position among them.
pub(super) fn gather(
    object: &StatisticsObject,
    columns: &[&Codes],
    (all, target): (f64, usize),
    value: impl Fn(usize, usize) -> Result<Option<catalog::SampledValue>, SqlError>,
) -> Result<ExtendedStatistics, SqlError> {
    let mut gathering = Gathering { object, columns, all, found: ExtendedStatistics::default() };
    let whole = match object.kinds.distinct || object.kinds.dependencies {
        true => gathering.sets(0, None, 0)?,
        false => None,
    };
    let mut found = gathering.found;
    found.object = object.oid;
    found.columns.clone_from(&object.columns);
    // Small sets first, each size in the order of the columns.
    let order = |set: u8| (set.count_ones(), Reverse(set.reverse_bits()));
    found.distinct.sort_by_key(|(set, _)| order(*set));
    found.dependencies.sort_by_key(|dependency| (order(dependency.from), dependency.to));
    if object.kinds.common
        && let Some((first, others)) = columns.split_first()
    {
        let whole = match whole {
            Some(whole) => whole,
            None => {
                let [second, others @ ..] = others else { return Ok(found) };
                let mut whole = first.with(second)?;
                for column in others {
                    whole = whole.with(column)?;
                }
                whole
            }
        };
        found.common = common(&whole, columns, (all, target), value)?;
    }
    Ok(found)
}

/// The sets of an object's columns under way.
struct Gathering<'g> {
    object: &'g StatisticsObject,
    columns: &'g [&'g Codes],
    all: f64,
    found: ExtendedStatistics,
}

impl Gathering<'_> {
    /// Looks at all sets that add columns from position `next` on to a set with these codes.
    /// Returns the codes of all columns together, if they are among them.
    fn sets(&mut self, set: u8, codes: Option<&Codes>, next: usize) -> Result<Option<Codes>, SqlError> {
        let columns = self.columns;
        let mut whole = None;
        for at in next..columns.len() {
            let larger = set | 1 << at;
            let combined = codes.map(|codes| codes.with(columns[at])).transpose()?;
            let codes = combined.as_ref().unwrap_or(columns[at]);
            self.look(larger, codes)?;
            let further = self.sets(larger, Some(codes), at + 1)?;
            let is_whole = larger.count_ones() as usize == columns.len();
            whole = if is_whole { combined } else { further.or(whole) };
        }
        Ok(whole)
    }

    /// Looks at one set of columns.
    fn look(&mut self, set: u8, codes: &Codes) -> Result<(), SqlError> {
        if self.object.kinds.distinct && set.count_ones() > 1 {
            self.found.distinct.push((set, codes.distinct(self.all)));
        }
        if self.object.kinds.dependencies {
            for (at, column) in self.columns.iter().enumerate().filter(|(at, _)| set & 1 << at == 0) {
                let degree = codes.decide(column)?;
                if degree > 0.0 {
                    self.found.dependencies.push(FunctionalDependency { from: set, to: at as u8, degree });
                }
            }
        }
        Ok(())
    }
}

/// The common combinations: those whose frequency in the sample is near that in the table.
fn common(
    whole: &Codes,
    columns: &[&Codes],
    (all, target): (f64, usize),
    value: impl Fn(usize, usize) -> Result<Option<catalog::SampledValue>, SqlError>,
) -> Result<Vec<CommonCombination>, SqlError> {
    let rows = whole.rows.len().max(1) as f64;
    // The standard error of a share among `rows` of `all` rows drawn without return.
    let left = (all - rows).max(0.0) / (all - 1.0).max(1.0);
    let least = if left > 0.0 { rows / (1.0 + ERROR * ERROR * rows / left) } else { 0.0 };
    let mut firsts = vec![usize::MAX; whole.counts.len()];
    for (row, code) in whole.rows.iter().enumerate() {
        let first = &mut firsts[*code as usize];
        *first = (*first).min(row);
    }
    let is_short = |row: usize| columns.iter().all(|column| column.rows[row] < column.wide);
    let mut listed: Vec<(u32, usize)> = whole.counts.iter().copied().zip(firsts).collect();
    listed.retain(|&(count, first)| count > 0 && f64::from(count) >= least && is_short(first));
    listed.sort_by_key(|&(count, first)| (Reverse(count), first));
    listed.truncate(target);
    let mut common = Vec::with_capacity(listed.len());
    for (count, row) in listed {
        values::work::tick(CODING)?;
        let values = (0..columns.len()).map(|column| value(row, column)).collect::<Result<_, _>>()?;
        let alone = columns.iter().map(|column| f64::from(column.counts[column.rows[row] as usize]) / rows);
        common.push(CommonCombination { values, frequency: f64::from(count) / rows, base: alone.product() });
    }
    Ok(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{SampledValue, StatisticsKinds};

    /// The codes of a column with these values. 0 is NULL.
    fn codes(values: &[u32]) -> Codes {
        let most = values.iter().copied().max().unwrap_or(0);
        let rows = |wanted| values.iter().enumerate().filter(move |(_, value)| **value == wanted);
        Codes::new(values.len(), (1..=most).map(|value| rows(value).map(|(row, _)| row)), &[])
    }

    fn gathered(columns: &[Vec<u32>], all: f64, target: usize) -> ExtendedStatistics {
        let object = StatisticsObject {
            oid: 9,
            schema: 0,
            name: String::new(),
            columns: (0..columns.len() as u32).collect(),
            kinds: StatisticsKinds::ALL,
            target: None,
        };
        let coded: Vec<Codes> = columns.iter().map(|column| codes(column)).collect();
        let coded: Vec<&Codes> = coded.iter().collect();
        gather(&object, &coded, (all, target), |row, column| {
            let number = columns[column][row];
            let value = || SampledValue { key: [number as u8].into(), text: number.to_string().into() };
            Ok((number > 0).then(value))
        })
        .unwrap()
    }

    #[test]
    fn sets_dependencies_and_combinations_of_a_whole_table() {
        // The second column follows from the first, NULL included; the third from nothing.
        let first: Vec<u32> = (0..120).map(|row| row % 12).collect();
        let second: Vec<u32> = first.iter().map(|value| value / 4).collect();
        let third: Vec<u32> = (0..120).map(|row| 1 + row % 5).collect();
        let found = gathered(&[first, second, third], 120.0, 100);
        assert_eq!(found.distinct, [(0b011, 12.0), (0b101, 60.0), (0b110, 15.0), (0b111, 60.0)]);
        let decided: Vec<(u8, u8, f64)> =
            found.dependencies.iter().map(|found| (found.from, found.to, found.degree)).collect();
        assert_eq!(decided, [(0b001, 1, 1.0), (0b101, 1, 1.0)]);
        assert_eq!(found.common.len(), 60);
        let null = found.common.iter().find(|common| common.values[0].is_none()).unwrap();
        assert!(null.values[1].is_none(), "0 / 4 is NULL too");
        assert!((null.frequency - 2.0 / 120.0).abs() < 1e-9);
        assert!((null.base - 10.0 / 120.0 * 40.0 / 120.0 * 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_dependency_has_the_part_of_the_rows_that_keep_it() {
        // Value 1 of the first column comes with two values of the second.
        let found = gathered(&[vec![1, 1, 2, 2, 3], vec![1, 2, 3, 3, 3]], 5.0, 100);
        let degree =
            |from, to| found.dependencies.iter().find(|d| (d.from, d.to) == (from, to)).unwrap().degree;
        assert!((degree(0b01, 1) - 3.0 / 5.0).abs() < 1e-9);
        assert!((degree(0b10, 0) - 2.0 / 5.0).abs() < 1e-9);
    }

    #[test]
    fn rare_combinations_of_a_sample_are_not_listed() {
        let values: Vec<u32> = (0..1000).map(|row| if row < 600 { 1 } else { row }).collect();
        let found = gathered(&[values.clone(), values], 1e6, 100);
        assert_eq!(found.common.len(), 1);
        assert!((found.common[0].frequency - 0.6).abs() < 1e-9);
        // 401 found, 400 of them once.
        assert_eq!(found.distinct, [(0b11, 668.0)]);
        let few = gathered(&[vec![1, 1, 2, 3], vec![1, 1, 2, 3]], 4.0, 2);
        assert_eq!(few.common.iter().map(|common| common.frequency).collect::<Vec<_>>(), [0.5, 0.25]);
    }

    #[test]
    fn values_too_long_to_compare_differ_and_are_not_listed() {
        let long = Codes::new(4, std::iter::empty::<std::iter::Empty<usize>>(), &[0, 1, 2]);
        let short = codes(&[1, 1, 1, 1]);
        assert_eq!(long.with(&short).unwrap().distinct(4.0), 4.0);
        assert_eq!(short.decide(&long).unwrap(), 0.0);
        let found = common(&long.with(&short).unwrap(), &[&long, &short], (4.0, 9), |_, _| Ok(None));
        assert_eq!(found.unwrap().len(), 1, "NULL alone");
    }
}
