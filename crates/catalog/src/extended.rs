//! Extended statistics: the objects of CREATE STATISTICS, and the data that ANALYZE finds about the
//! combinations of values of their columns.
//!
//! An object belongs to the definition of its table. Its data lies with the statistics of the
//! table and names the columns again, so that the planner reads the data alone.
//!
//! What must hold:
//!
//! 1. The columns of an object are in ascending order. There are 2 to [`MOST_COLUMNS`] of them.
//! 2. A set of an object's columns is a byte. Bit `i` stands for the column at position `i` of the
//!    object's list.
//! 3. NULL counts as a value.
//! 4. All fractions are of the table's rows.
//! 5. Common combinations are in descending order of their frequencies.

use serde::{Deserialize, Serialize};

use super::sampled::SampledValue;

/// The most columns of an object, as in PostgreSQL.
pub const MOST_COLUMNS: usize = 8;

/// An object of CREATE STATISTICS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsObject {
    /// Its OID.
    pub oid: u32,
    /// The OID of its schema, which need not be that of the table.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Positions of its columns.
    pub columns: Vec<u32>,
    /// The kinds of statistics that ANALYZE gathers for it.
    pub kinds: StatisticsKinds,
    /// SET STATISTICS: the most common combinations to keep. 0: ANALYZE passes the object over.
    pub target: Option<u16>,
}

/// The kinds of extended statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsKinds {
    /// `ndistinct`: numbers of combinations.
    pub distinct: bool,
    /// `dependencies`: functional dependencies.
    pub dependencies: bool,
    /// `mcv`: most common combinations.
    pub common: bool,
}

impl StatisticsKinds {
    /// All kinds, which an object has that names none.
    pub const ALL: StatisticsKinds = StatisticsKinds { distinct: true, dependencies: true, common: true };
}

/// The statistics that ANALYZE found for one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtendedStatistics {
    /// The object's OID.
    pub object: u32,
    /// Positions of the object's columns.
    pub columns: Vec<u32>,
    /// The number of combinations of values of each set of two columns or more. Small sets come
    /// first.
    pub distinct: Vec<(u8, f64)>,
    /// Functional dependencies with a degree above 0. Those of few columns come first.
    pub dependencies: Vec<FunctionalDependency>,
    /// The most common combinations of all columns.
    pub common: Vec<CommonCombination>,
}

/// How far the values of some columns decide that of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionalDependency {
    /// The set of columns that decide.
    pub from: u8,
    /// The position, in the object's list, of the column that they decide.
    pub to: u8,
    /// The fraction of the rows whose values of `from` come with one value of `to` only.
    pub degree: f64,
}

/// A common combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommonCombination {
    /// A value for each column. None is NULL.
    pub values: Vec<Option<SampledValue>>,
    /// The fraction of the rows that have it.
    pub frequency: f64,
    /// The fraction of the rows that would have it if the columns were independent.
    pub base: f64,
}

/// A condition that gives a column one value, or one of a list.
#[derive(Clone, Debug)]
pub struct Equality {
    /// The column's position in the table.
    pub column: u32,
    /// The fraction of the rows that meet it, by the column alone.
    pub fraction: f64,
    /// The keys of the values in ascending order.
    values: Keys,
}

/// The keys of values; None is NULL. There is no list if a value is not known.
pub type Keys = Option<Vec<Option<Vec<u8>>>>;

impl Equality {
    /// The condition, of any order of the values.
    #[must_use]
    pub fn new(column: u32, fraction: f64, mut values: Keys) -> Equality {
        if let Some(values) = &mut values {
            values.sort_unstable();
            values.dedup();
        }
        Equality { column, fraction, values }
    }

    /// Either of two conditions on one column.
    #[must_use]
    pub fn or(self, other: Equality) -> Equality {
        let values = self.values.zip(other.values).map(|(one, other)| [one, other].concat());
        Equality::new(self.column, (self.fraction + other.fraction).min(1.0), values)
    }

    fn accepts(&self, value: Option<&SampledValue>) -> bool {
        let key = value.map(|value| &*value.key);
        let found = |values: &Vec<Option<Vec<u8>>>| {
            values.binary_search_by(|known| known.as_deref().cmp(&key)).is_ok()
        };
        self.values.as_ref().is_some_and(found)
    }

    fn is_one(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.len() == 1)
    }
}

impl ExtendedStatistics {
    fn position(&self, column: u32) -> Option<usize> {
        self.columns.iter().position(|other| *other == column)
    }

    /// The set of those of the columns that `is_in` accepts.
    fn set(&self, is_in: impl Fn(u32) -> bool) -> u8 {
        let columns = self.columns.iter().enumerate().filter(|(_, column)| is_in(**column));
        columns.fold(0, |set, (at, _)| set | 1 << at)
    }

    /// The fraction of the rows that meet equalities on columns of the list of common
    /// combinations. `dependent`: the fraction by functional dependencies.
    fn commonly(&self, equalities: &[&Equality], dependent: f64) -> f64 {
        let (mut listed, mut base, mut all) = (0.0, 0.0, 0.0);
        let meets = |common: &CommonCombination| {
            equalities.iter().all(|equality| {
                let at = self.position(equality.column);
                let value = at.and_then(|at| common.values.get(at));
                value.is_some_and(|value| equality.accepts(value.as_ref()))
            })
        };
        for common in &self.common {
            all += common.frequency;
            if meets(common) {
                listed += common.frequency;
                base += common.base;
            }
        }
        let is_one = equalities.len() == self.columns.len() && equalities.iter().all(|one| one.is_one());
        let others = match listed > 0.0 {
            true if is_one => 0.0,
            // The other values are as frequent together as the columns alone make them.
            true => (product(equalities) - base).max(0.0),
            // A combination that is not listed is no more common than those that are.
            false if is_one => self.common.last().map_or(dependent, |least| dependent.min(least.frequency)),
            false => dependent,
        };
        listed + others.min((1.0 - all).max(0.0))
    }
}

/// The fraction of the rows that meet equalities if their columns are independent.
fn product(equalities: &[&Equality]) -> f64 {
    equalities.iter().map(|equality| equality.fraction).product()
}

/// The statistics of all objects of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableCombinations<'t>(pub &'t [ExtendedStatistics]);

impl<'t> TableCombinations<'t> {
    /// The fraction of the rows that meet all equalities, each on another column. `None` if no
    /// object knows two of the columns together.
    #[must_use]
    pub fn meeting_all(self, equalities: &[Equality]) -> Option<f64> {
        let mut rest: Vec<&Equality> = equalities.iter().collect();
        let mut fraction = 1.0;
        while let Some((statistics, covered)) = self.widest(&rest) {
            let is_covered = |equality: &&Equality| {
                statistics.position(equality.column).is_some_and(|at| covered & 1 << at != 0)
            };
            let taken: Vec<&Equality> = rest.extract_if(.., |equality| is_covered(equality)).collect();
            let dependent = self.dependently(&taken).unwrap_or_else(|| product(&taken));
            fraction *= statistics.commonly(&taken, dependent);
        }
        match self.dependently(&rest) {
            Some(dependent) => Some(fraction * dependent),
            None if rest.len() == equalities.len() => None,
            None => Some(fraction * product(&rest)),
        }
    }

    /// The list of common combinations that knows the most of these columns, and which of its
    /// columns these are. The object with the fewest columns wins.
    fn widest(self, equalities: &[&Equality]) -> Option<(&'t ExtendedStatistics, u8)> {
        let is_asked =
            |column| equalities.iter().any(|equality| equality.column == column && equality.values.is_some());
        let lists = self.0.iter().filter(|statistics| !statistics.common.is_empty());
        let lists = lists.map(|statistics| (statistics, statistics.set(is_asked)));
        let lists = lists.filter(|(_, set)| set.count_ones() > 1);
        lists.min_by_key(|(statistics, set)| {
            (8 - set.count_ones(), statistics.columns.len(), statistics.object)
        })
    }

    /// The fraction of the rows that meet equalities, by functional dependencies; `None` if there
    /// is none between their columns.
    fn dependently(self, equalities: &[&Equality]) -> Option<f64> {
        let mut rest: Vec<&Equality> = equalities.to_vec();
        let mut fraction = 1.0;
        let mut found = None;
        while rest.len() > 1
            && let Some((statistics, dependency)) = self.strongest(&rest)
        {
            let decided = statistics.columns[usize::from(dependency.to)];
            let at = rest.iter().position(|equality| equality.column == decided)?;
            let decided = rest.remove(at);
            let deciding: Vec<&Equality> = rest
                .iter()
                .copied()
                .filter(|equality| {
                    statistics.position(equality.column).is_some_and(|at| dependency.from & 1 << at != 0)
                })
                .collect();
            // Where the value is decided, the rows that meet both equalities are those of the
            // rarer one.
            let given = (decided.fraction / product(&deciding).max(f64::MIN_POSITIVE)).min(1.0);
            fraction *= dependency.degree * given + (1.0 - dependency.degree) * decided.fraction;
            found = Some(fraction);
        }
        found.map(|fraction| fraction * product(&rest))
    }

    /// The dependency of the highest degree between the columns of these equalities.
    fn strongest(self, equalities: &[&Equality]) -> Option<(&'t ExtendedStatistics, FunctionalDependency)> {
        let is_asked = |column| equalities.iter().any(|equality| equality.column == column);
        let mut best: Option<(&ExtendedStatistics, FunctionalDependency)> = None;
        for statistics in self.0 {
            if statistics.dependencies.is_empty() {
                continue;
            }
            let asked = statistics.set(is_asked);
            for dependency in &statistics.dependencies {
                let needs = dependency.from | 1 << dependency.to;
                if needs & asked == needs && best.is_none_or(|(_, best)| dependency.degree > best.degree) {
                    best = Some((statistics, *dependency));
                }
            }
        }
        best
    }

    /// The number of combinations of values of different columns. `alone` returns the number of
    /// values of one. `None` if no object counted a set of them.
    #[must_use]
    pub fn count(self, columns: &[u32], alone: impl Fn(u32) -> f64) -> Option<f64> {
        let mut rest = columns.to_vec();
        let mut count = 1.0;
        while let Some((statistics, set, distinct)) = self.counted(&rest) {
            rest.retain(|column| statistics.position(*column).is_none_or(|at| set & 1 << at == 0));
            count *= distinct;
        }
        let is_known = rest.len() < columns.len();
        is_known.then(|| count * rest.into_iter().map(alone).product::<f64>())
    }

    /// The widest set among these columns whose combinations were counted.
    fn counted(self, columns: &[u32]) -> Option<(&'t ExtendedStatistics, u8, f64)> {
        let sets = self.0.iter().flat_map(|statistics| {
            let there = statistics.set(|column| columns.contains(&column));
            let counted = statistics.distinct.iter().filter(move |(set, _)| set & there == *set);
            counted.map(move |(set, distinct)| (statistics, *set, *distinct))
        });
        sets.min_by_key(|(statistics, set, _)| (8 - set.count_ones(), statistics.object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u8) -> Option<SampledValue> {
        Some(SampledValue { key: [number].into(), text: number.to_string().into() })
    }

    fn equal(column: u32, fraction: f64, values: &[u8]) -> Equality {
        Equality::new(column, fraction, Some(values.iter().map(|value| Some(vec![*value])).collect()))
    }

    /// Columns 1, 3 and 4 of a table. Column 3 is decided by column 1, and so is column 4 in nine
    /// of ten rows.
    fn statistics(common: Vec<CommonCombination>) -> [ExtendedStatistics; 1] {
        [ExtendedStatistics {
            object: 7,
            columns: vec![1, 3, 4],
            distinct: vec![(0b011, 100.0), (0b101, 120.0), (0b110, 50.0), (0b111, 130.0)],
            dependencies: vec![
                FunctionalDependency { from: 0b001, to: 1, degree: 1.0 },
                FunctionalDependency { from: 0b001, to: 2, degree: 0.9 },
            ],
            common,
        }]
    }

    fn near(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-9)
    }

    #[test]
    fn a_decided_column_keeps_all_rows_of_the_deciding_one() {
        let found = statistics(Vec::new());
        assert!(near(
            TableCombinations(&found).meeting_all(&[equal(1, 0.01, &[1]), equal(3, 0.1, &[1])]),
            0.01
        ));
        // The decided value is the rarer one.
        assert!(near(
            TableCombinations(&found).meeting_all(&[equal(1, 0.1, &[1]), equal(3, 0.02, &[1])]),
            0.02
        ));
        let nine = 0.01 * (0.9 + 0.1 * 0.1);
        assert!(near(
            TableCombinations(&found).meeting_all(&[equal(1, 0.01, &[1]), equal(4, 0.1, &[1])]),
            nine
        ));
        let all = [equal(1, 0.01, &[1]), equal(3, 0.1, &[1]), equal(4, 0.1, &[1])];
        assert!(near(TableCombinations(&found).meeting_all(&all), nine));
        // A column of no object is independent.
        assert!(near(
            TableCombinations(&found).meeting_all(&[all[0].clone(), all[1].clone(), equal(9, 0.5, &[1])]),
            0.005
        ));
        // Nothing decides column 4 but column 1.
        assert_eq!(TableCombinations(&found).meeting_all(&[equal(3, 0.1, &[1]), equal(4, 0.1, &[1])]), None);
        assert_eq!(TableCombinations(&found).meeting_all(&[equal(1, 0.1, &[1])]), None);
    }

    #[test]
    fn common_combinations_have_their_own_frequencies() {
        let common = |numbers: [u8; 3], frequency| CommonCombination {
            values: numbers.map(|number| if number == 0 { None } else { value(number) }).into(),
            frequency,
            base: frequency / 10.0,
        };
        let found = statistics(vec![common([1, 1, 1], 0.4), common([1, 1, 0], 0.2), common([2, 1, 1], 0.1)]);
        let one = |column, number| equal(column, 0.5, &[number]);
        assert!(near(TableCombinations(&found).meeting_all(&[one(1, 1), one(3, 1), one(4, 1)]), 0.4));
        let null = Equality::new(4, 0.3, Some(vec![None]));
        assert!(near(TableCombinations(&found).meeting_all(&[one(1, 1), one(3, 1), null]), 0.2));
        // Two of the three columns: what is listed, and what the columns alone add.
        assert!(near(TableCombinations(&found).meeting_all(&[one(1, 1), one(3, 1)]), 0.6 + (0.25 - 0.06)));
        let either = equal(1, 0.3, &[2]).or(equal(1, 0.3, &[1]));
        assert!(near(TableCombinations(&found).meeting_all(&[either, one(3, 1), one(4, 1)]), 0.5 + 0.1));
        // A combination that is not listed is no more common than the last one.
        assert!(near(TableCombinations(&found).meeting_all(&[one(1, 5), one(3, 5), one(4, 5)]), 0.1));
        let whole = statistics(vec![common([1, 1, 1], 0.6), common([2, 1, 1], 0.4)]);
        assert!(near(TableCombinations(&whole).meeting_all(&[one(1, 5), one(3, 1)]), 0.0));
    }

    #[test]
    fn an_unknown_value_is_in_no_list() {
        let common =
            CommonCombination { values: vec![value(1), value(1), value(1)], frequency: 0.9, base: 0.1 };
        let found = statistics(vec![common]);
        let unknown = |column| Equality::new(column, 0.01, None);
        assert!(near(TableCombinations(&found).meeting_all(&[unknown(1), unknown(3)]), 0.01));
    }

    #[test]
    fn combinations_multiply_the_columns_that_no_set_has() {
        let found = statistics(Vec::new());
        assert!(near(TableCombinations(&found).count(&[3, 1], |_| 1000.0), 100.0));
        assert!(near(TableCombinations(&found).count(&[1, 3, 4], |_| 1000.0), 130.0));
        assert!(near(TableCombinations(&found).count(&[4, 9, 3], |_| 7.0), 350.0));
        assert_eq!(TableCombinations(&found).count(&[1, 9], |_| 7.0), None);
        assert_eq!(TableCombinations(&[]).count(&[1, 3], |_| 7.0), None);
    }
}
