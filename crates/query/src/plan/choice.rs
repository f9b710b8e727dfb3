//! Choices: estimates by which a plan was chosen and which depend on parameters.
//!
//! A plan for one set of values may be a bad one for another. A common value asks for a scan, a
//! rare one for an index. So a statement names its choices, and each run looks which class the
//! values are of. Estimates of one class differ by at most the factor 4, so that one plan serves
//! all values of a class.
//!
//! What must hold: a class is a function of the values and of the statistics that the plan was made
//! with. It is computed before each run, so it allocates little and takes no lock.

use std::sync::Arc;

use catalog::{ColumnStatistics, Equality, TableCombinations, TableStatistics};
use expressions::prefix::{Matching, Prefix, Rest};
use values::key::KeyOrder;
use values::types::numeric::Numeric;
use values::types::{Datum, NumericRef, Type, oid};

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// The most choices of one statement. Further ones are made without the values.
pub(crate) const MOST_CHOICES: usize = 8;

/// The classes of a statement's choices, in their order, one byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Classes(u64);

/// A value that a column is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    /// The parameter of this number, from 0.
    Parameter(u32),
    /// A constant's key.
    Key(Box<[u8]>),
}

/// One end of a range: the value, and whether it belongs to the range.
pub(crate) type AskedEnd = (Asked, bool);

/// The comparison that a choice estimates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Comparing {
    Equal(Asked),
    Range {
        low: Option<AskedEnd>,
        high: Option<AskedEnd>,
    },
    /// With the pattern that a parameter is.
    Pattern(Matching, u32),
    /// Equality of several columns together, each with its type.
    Together(Vec<(u32, Type, Asked)>),
}

/// An estimate that depends on parameters.
#[derive(Clone, Debug)]
pub struct Choice {
    pub(crate) table: u32,
    pub(crate) column: u32,
    pub(crate) type_: Type,
    pub(crate) statistics: Arc<TableStatistics>,
    pub(crate) rows: f64,
    pub(crate) comparing: Comparing,
}

impl Choice {
    /// Whether both make the same estimate.
    pub(crate) fn is_same(&self, other: &Choice) -> bool {
        (self.table, self.column) == (other.table, other.column) && self.comparing == other.comparing
    }

    /// The parameters on which it depends.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = u32> {
        let asked = match &self.comparing {
            Comparing::Equal(asked) => [Some(asked), None],
            Comparing::Range { low, high } => [low.as_ref(), high.as_ref()].map(|end| end.map(|end| &end.0)),
            Comparing::Pattern(..) | Comparing::Together(_) => [None, None],
        };
        let together = match &self.comparing {
            Comparing::Together(columns) => columns.as_slice(),
            _ => &[],
        };
        let pattern = match self.comparing {
            Comparing::Pattern(_, parameter) => Some(parameter),
            _ => None,
        };
        let asked = asked.into_iter().flatten().chain(together.iter().map(|(_, _, asked)| asked));
        let compared = asked.filter_map(|asked| match asked {
            Asked::Parameter(index) => Some(*index),
            Asked::Key(_) => None,
        });
        compared.chain(pattern)
    }

    /// The class of the estimate for these parameters: the logarithm of the rows to the base 4.
    fn class(&self, parameters: &[Datum<'_>], key: &mut Vec<u8>) -> u8 {
        let Some(statistics) = self.statistics.columns.get(self.column as usize) else { return 0 };
        let rows = self.fraction(statistics, parameters, key) * self.rows;
        (rows as u64).checked_ilog2().map_or(0, |power| power as u8 / 2 + 1)
    }

    fn fraction(&self, statistics: &ColumnStatistics, parameters: &[Datum<'_>], key: &mut Vec<u8>) -> f64 {
        let mut read = |asked: &Asked, estimate: &dyn Fn(&[u8]) -> Option<f64>| match asked {
            Asked::Key(known) => estimate(known),
            Asked::Parameter(index) => estimate(key_of(*parameters.get(*index as usize)?, self.type_, key)?),
        };
        match &self.comparing {
            Comparing::Equal(asked) => {
                read(asked, &|key| Some(statistics.equal_to(key, self.rows))).unwrap_or(0.0)
            }
            Comparing::Range { low, high } => {
                let mut end = |(asked, _): &AskedEnd, inclusive: bool| {
                    read(asked, &|key| statistics.below(key, inclusive))
                };
                let from = low.as_ref().map_or(Some(0.0), |low| end(low, !low.1));
                let to = high.as_ref().map_or(Some(1.0 - statistics.null_fraction), |high| end(high, high.1));
                // A comparison with NULL finds nothing.
                from.zip(to).map_or(0.0, |(from, to)| (to - from).max(0.0))
            }
            Comparing::Pattern(matching, parameter) => match parameters.get(*parameter as usize) {
                Some(Datum::Text(pattern)) => {
                    prefixed(statistics, &matching.prefix(pattern), self.rows).unwrap_or(0.0)
                }
                _ => 0.0,
            },
            Comparing::Together(columns) => self.together(columns, parameters, key).unwrap_or(0.0),
        }
    }

    /// The fraction of the rows with values of several columns. `None` if one of them is NULL.
    fn together(
        &self,
        columns: &[(u32, Type, Asked)],
        parameters: &[Datum<'_>],
        key: &mut Vec<u8>,
    ) -> Option<f64> {
        let mut equalities = Vec::with_capacity(columns.len());
        for (column, type_, asked) in columns {
            let known = match asked {
                Asked::Key(known) => &**known,
                Asked::Parameter(index) => key_of(*parameters.get(*index as usize)?, *type_, key)?,
            };
            let fraction = self.statistics.columns.get(*column as usize)?.equal_to(known, self.rows);
            equalities.push(Equality::new(*column, fraction, Some(vec![Some(known.to_vec())])));
        }
        TableCombinations(&self.statistics.extended).meeting_all(&equalities)
    }
}

/// The fraction of the rows whose value has a prefix. `None` if the sample had too few values.
fn prefixed(statistics: &ColumnStatistics, prefix: &Prefix<'_>, rows: f64) -> Option<f64> {
    let [low, high] = prefix_keys(prefix)?;
    if prefix.rest == Rest::Nothing {
        return Some(statistics.equal_to(&low, rows));
    }
    Some((statistics.below(&high, false)? - statistics.below(&low, false)?).max(0.0))
}

/// The classes of choices for these parameters.
#[must_use]
pub fn classes(choices: &[Choice], parameters: &[Datum<'_>]) -> Classes {
    let mut key = Vec::with_capacity(32);
    let class = |classes, choice: &Choice| classes << 8 | u64::from(choice.class(parameters, &mut key));
    Classes(choices.iter().take(MOST_CHOICES).fold(0, class))
}

/// The key of a value among a column's values, for estimates. The value's type is comparable with
/// the column's, or is a number or a date that a cast makes so. Integers are taken into the
/// column's range. `key` is the memory to write it to. `None` for NULL and for values of other
/// types.
pub(crate) fn key_of<'k>(value: Datum<'_>, column: Type, key: &'k mut Vec<u8>) -> Option<&'k [u8]> {
    let fits = |low: i64, high: i64| value.as_i64().map(|number| number.clamp(low, high));
    let packed;
    let value = match (column.oid, value) {
        (_, Datum::Null | Datum::OutOfLine(_) | Datum::Record(_)) => return None,
        (oid::INT2, _) => Datum::Int2(fits(i16::MIN.into(), i16::MAX.into())? as i16),
        (oid::INT4, _) => Datum::Int4(fits(i32::MIN.into(), i32::MAX.into())? as i32),
        (oid::INT8, _) => Datum::Int8(value.as_i64()?),
        (oid::FLOAT4 | oid::FLOAT8, _) => Datum::Float8(float(value)?),
        (oid::NUMERIC, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_)) => {
            packed = Numeric::from(value.as_i64()?).pack().ok()?;
            Datum::Numeric(NumericRef(&packed))
        }
        (oid::TIMESTAMP, Datum::Date(day)) => Datum::Timestamp(i64::from(day).checked_mul(DAY)?),
        // The session's time zone moves them by some hours.
        (oid::TIMESTAMP, Datum::Timestamptz(moment)) => Datum::Timestamp(moment),
        (oid::DATE, Datum::Timestamp(moment) | Datum::Timestamptz(moment)) => {
            Datum::Date(i32::try_from(moment.div_euclid(DAY)).ok()?)
        }
        (_, value) => value,
    };
    key.clear();
    values::key::encode(value, KeyOrder::default(), key).ok()?;
    Some(key)
}

/// A number as a float, which rounds it.
fn float(value: Datum<'_>) -> Option<f64> {
    Some(match value {
        Datum::Float4(number) => number.into(),
        Datum::Float8(number) => number,
        Datum::Numeric(number) => number.load().to_f64(),
        other => other.as_i64()? as f64,
    })
}

/// The first key of texts with a prefix, and the one behind the last, among a column's values.
pub(crate) fn prefix_keys(prefix: &Prefix<'_>) -> Option<[Vec<u8>; 2]> {
    let (mut low, order) = (Vec::with_capacity(32), KeyOrder::default());
    match prefix.rest {
        Rest::Nothing => values::key::encode(Datum::Text(&prefix.text), order, &mut low).ok()?,
        _ => values::key::encode_prefix(&prefix.text, order, &mut low).ok()?,
    }
    let mut high = low.clone();
    values::key::step_over(&mut high).then_some([low, high])
}
