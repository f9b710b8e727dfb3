//! The running states of aggregates.
//!
//! [`Aggregate::start`] makes the state of an empty group, [`Accumulator::add`] takes a row, and
//! [`Accumulator::finish`] gives the result so far. A window asks for a result after each row.
//!
//! What must hold:
//!
//! 1. Sums over integers and numerics are exact, so the order of rows does not change them. A sum
//!    of `i64` values fits `i128` for as many rows as `count` can count.
//! 2. A state owns its values. The arguments lie in an arena that may go after the row.
//! 3. Rows with a NULL as first argument are not counted, except by array_agg and count(*). A
//!    result without counted rows is NULL, except for count.
//! 4. [`Accumulator::finish`] leaves the state as it is.
//! 5. [`Accumulator::size`] grows with the state. The executor bounds the memory of groups by it.
//! 6. Values may be equal and look different. Then min and max keep the last one, as PostgreSQL
//!    does.

use bumpalo::Bump;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::arguments::{as_float, out_of_range};
use super::bad_argument;
use super::text_building::bounded;
use crate::function::{Aggregate, AggregateKind as Kind};
use values::error::{SqlError, SqlState};
use values::memory;
use values::types::array::{MAX_DIMENSIONS, too_many_dimensions};
use values::types::numeric::{Numeric, Operation, combine_small, store_small};
use values::types::{ArrayBuilder, Datum, Interval, Value, compare, oid, registry};
use values::work;

/// The running state of one aggregate over one group.
#[derive(Debug)]
pub struct Accumulator {
    kind: Kind,
    result: u32,
    count: i64,
    state: State,
}

#[derive(Debug)]
enum State {
    None,
    /// Sum of integers, and sum of their squares for variances.
    Integer {
        sum: i128,
        squares: BigInt,
    },
    /// Sum of numerics over i128, at the greatest scale so far, while it fits.
    Small {
        sum: i128,
        scale: u32,
    },
    Big {
        sum: Numeric,
        squares: Numeric,
    },
    /// The sums of Youngs and Cramer: of the values, and of squares of differences.
    Float {
        sum: f64,
        squares: f64,
    },
    Interval(Interval),
    Best(Value),
    Bool(bool),
    Bits(i64),
    Text(String),
    Bytes(Vec<u8>),
    Array(ArrayBuilder),
    /// The elements of arrays that all have this shape.
    Arrays(ArrayBuilder, Vec<(i32, i32)>),
}

impl Aggregate {
    /// The state of an empty group.
    pub fn start(&self) -> Accumulator {
        let variance = matches!(self.kind, Kind::StddevSamp | Kind::StddevPop | Kind::VarSamp | Kind::VarPop);
        let state = match (self.kind, self.argument.oid) {
            (Kind::CountRows | Kind::Count, _) => State::None,
            (Kind::Min | Kind::Max, _) => State::Best(Value::Null),
            (Kind::BoolAnd, _) => State::Bool(true),
            (Kind::BoolOr, _) => State::Bool(false),
            (Kind::BitAnd, _) => State::Bits(-1),
            (Kind::BitOr | Kind::BitXor, _) => State::Bits(0),
            (Kind::StringAgg, oid::BYTEA) => State::Bytes(Vec::new()),
            (Kind::StringAgg, _) => State::Text(String::new()),
            // Arrays become sub-arrays.
            (Kind::ArrayAgg, array) if array == self.result.oid => {
                let element = registry::element_of(array).unwrap_or(oid::TEXT);
                State::Arrays(ArrayBuilder::new(element), Vec::new())
            }
            (Kind::ArrayAgg, element) => State::Array(ArrayBuilder::new(element)),
            (_, oid::INT2 | oid::INT4 | oid::INT8) => State::Integer { sum: 0, squares: BigInt::ZERO },
            (_, oid::NUMERIC) if !variance => State::Small { sum: 0, scale: 0 },
            (_, oid::NUMERIC) => State::Big { sum: Numeric::from(0), squares: Numeric::from(0) },
            (_, oid::INTERVAL) => State::Interval(Interval::default()),
            // -0.0 is the neutral element of addition: it keeps even the sign of a zero.
            (Kind::Sum, _) => State::Float { sum: -0.0, squares: 0.0 },
            _ => State::Float { sum: 0.0, squares: 0.0 },
        };
        Accumulator { kind: self.kind, result: self.result.oid, count: 0, state }
    }
}

impl Accumulator {
    fn wants_squares(&self) -> bool {
        matches!(self.kind, Kind::StddevSamp | Kind::StddevPop | Kind::VarSamp | Kind::VarPop)
    }

    /// Approximate bytes of the state.
    pub fn size(&self) -> usize {
        let apart = match &self.state {
            State::Text(text) => text.capacity(),
            State::Bytes(bytes) => bytes.capacity(),
            State::Array(builder) | State::Arrays(builder, _) => builder.size(),
            State::Best(best) => memory::bytes_of(&best.datum()),
            _ => 0,
        };
        size_of::<Accumulator>() + apart
    }

    /// Adds a row. Skips it when the first argument is NULL, except for array_agg.
    pub fn add(&mut self, arguments: &[Datum<'_>]) -> Result<(), SqlError> {
        // Read where it lies: most kinds need one of its words.
        let value = arguments.first().unwrap_or(&Datum::Bool(true));
        if value.is_null() && self.kind != Kind::ArrayAgg {
            return Ok(());
        }
        self.count += 1;
        let wants_squares = self.wants_squares();
        match &mut self.state {
            State::None => {}
            State::Integer { sum, squares } => {
                let value = value.as_i64().ok_or_else(|| bad_argument("sum"))?;
                *sum += i128::from(value);
                if wants_squares {
                    *squares += i128::from(value) * i128::from(value);
                }
            }
            State::Small { .. } | State::Big { .. } => self.add_numeric(*value)?,
            State::Float { sum, squares } => {
                let value = as_float(*value).ok_or_else(|| bad_argument("sum"))?;
                add_float((self.kind, self.result), self.count, value, sum, squares)?;
            }
            State::Interval(sum) => match value {
                Datum::Interval(value) => *sum = sum.plus(*value)?,
                _ => return Err(bad_argument("sum")),
            },
            State::Best(best) => keep_best(best, *value, self.kind == Kind::Max)?,
            State::Bool(all) => match (value, self.kind) {
                (Datum::Bool(value), Kind::BoolAnd) => *all &= *value,
                (Datum::Bool(value), _) => *all |= *value,
                _ => return Err(bad_argument("bool_and")),
            },
            State::Bits(bits) => {
                let value = value.as_i64().ok_or_else(|| bad_argument("bit_and"))?;
                match self.kind {
                    Kind::BitAnd => *bits &= value,
                    Kind::BitOr => *bits |= value,
                    _ => *bits ^= value,
                }
            }
            State::Text(text) => {
                if let (true, Some(Datum::Text(delimiter))) = (self.count > 1, arguments.get(1)) {
                    work::push(text, delimiter)?;
                }
                if let Datum::Text(value) = value {
                    work::push(text, value)?;
                }
                bounded(text.len())?;
            }
            State::Bytes(bytes) => {
                if let (true, Some(Datum::Bytea(delimiter))) = (self.count > 1, arguments.get(1)) {
                    work::put(delimiter, bytes)?;
                }
                if let Datum::Bytea(value) = value {
                    work::put(value, bytes)?;
                }
                bounded(bytes.len())?;
            }
            State::Array(builder) => {
                builder.push(*value)?;
                bounded(builder.size())?;
            }
            State::Arrays(builder, shape) => add_array(builder, shape, *value, self.count == 1)?,
        }
        Ok(())
    }

    fn add_numeric(&mut self, value: Datum<'_>) -> Result<(), SqlError> {
        let Datum::Numeric(value) = value else { return Err(bad_argument("sum")) };
        let wants_squares = self.wants_squares();
        if let State::Small { sum, scale } = &mut self.state {
            let small = value.small().and_then(|small| combine_small(Operation::Add, (*sum, *scale), small));
            if let Some((new_sum, new_scale)) = small {
                (*sum, *scale) = (new_sum, new_scale);
                return Ok(());
            }
            let so_far = Numeric::finite(BigInt::from(*sum), *scale);
            self.state = State::Big { sum: so_far, squares: Numeric::from(0) };
        }
        if let State::Big { sum, squares } = &mut self.state {
            let value = value.load();
            *sum = sum.add(&value);
            if wants_squares {
                *squares = squares.add(&product(&value, &value));
            }
        }
        Ok(())
    }

    /// Adds so many rows to count(*).
    pub fn add_rows(&mut self, rows: u64) {
        debug_assert_eq!(self.kind, Kind::CountRows);
        self.count += rows as i64;
    }

    /// The result over the rows so far; NULL without rows, except for count.
    pub fn finish<'a>(&self, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
        if matches!(self.kind, Kind::CountRows | Kind::Count) {
            return Ok(Datum::Int8(self.count));
        }
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        match &self.state {
            State::None => Ok(Datum::Int8(self.count)),
            State::Integer { .. } | State::Small { .. } | State::Big { .. } => self.finish_exact(arena),
            State::Float { sum, squares } => Ok(self.finish_float(*sum, *squares)),
            State::Interval(sum) if self.kind == Kind::Avg => {
                Ok(Datum::Interval(sum.divide(self.count as f64)?))
            }
            State::Interval(sum) => Ok(Datum::Interval(*sum)),
            // The copy outlives the state.
            State::Best(best) => best.datum().copy_in(arena),
            State::Bool(value) => Ok(Datum::Bool(*value)),
            State::Bits(bits) => Ok(match self.result {
                oid::INT2 => Datum::Int2(*bits as i16),
                oid::INT4 => Datum::Int4(*bits as i32),
                _ => Datum::Int8(*bits),
            }),
            State::Text(text) => {
                memory::ask(text.len())?;
                work::text_in(text, arena).map(Datum::Text)
            }
            State::Bytes(bytes) => {
                memory::ask(bytes.len())?;
                work::bytes_in(bytes, arena).map(Datum::Bytea)
            }
            State::Array(builder) => {
                memory::ask(builder.size())?;
                builder.array_in(arena)
            }
            State::Arrays(builder, shape) => {
                memory::ask(builder.size())?;
                let count = i32::try_from(self.count).map_err(|_| out_of_range("integer"))?;
                let shape: Vec<(i32, i32)> = [(count, 1)].into_iter().chain(shape.iter().copied()).collect();
                builder.array_with_in(&shape, arena)
            }
        }
    }

    fn finish_exact<'a>(&self, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
        let (sum, squares) = match &self.state {
            State::Integer { sum, squares } => {
                if self.kind == Kind::Sum {
                    return match self.result {
                        oid::INT8 => sum.to_i64().map(Datum::Int8).ok_or_else(|| out_of_range("bigint")),
                        _ => Ok(Datum::Numeric(store_small(*sum, 0, arena))),
                    };
                }
                (Numeric::finite(BigInt::from(*sum), 0), Numeric::finite(squares.clone(), 0))
            }
            State::Small { sum, scale } => {
                if self.kind == Kind::Sum {
                    return Ok(Datum::Numeric(store_small(*sum, *scale, arena)));
                }
                (Numeric::finite(BigInt::from(*sum), *scale), Numeric::from(0))
            }
            State::Big { sum, squares } => (sum.clone(), squares.clone()),
            _ => return Err(bad_argument("sum")),
        };
        let count = Numeric::from(self.count);
        let result = match self.kind {
            Kind::Sum => sum,
            Kind::Avg => sum.calculate(count, Numeric::divide)?,
            kind => {
                let sample = matches!(kind, Kind::StddevSamp | Kind::VarSamp);
                if sample && self.count < 2 {
                    return Ok(Datum::Null);
                }
                let (count, root) = (self.count, matches!(kind, Kind::StddevSamp | Kind::StddevPop));
                sum.calculate(squares, move |sum, squares| variance(sum, squares, count, sample, root))?
            }
        };
        Ok(Datum::Numeric(result.store(arena)?))
    }

    fn finish_float(&self, sum: f64, squares: f64) -> Datum<'static> {
        let count = self.count as f64;
        match self.kind {
            Kind::Sum if self.result == oid::FLOAT4 => Datum::Float4(sum as f32),
            Kind::Sum => Datum::Float8(sum),
            Kind::Avg => Datum::Float8(sum / count),
            Kind::VarPop => Datum::Float8(squares / count),
            Kind::StddevPop => Datum::Float8((squares / count).sqrt()),
            _ if self.count < 2 => Datum::Null,
            Kind::VarSamp => Datum::Float8(squares / (count - 1.0)),
            _ => Datum::Float8((squares / (count - 1.0)).sqrt()),
        }
    }
}

/// Adds a float to Youngs and Cramer's sums over `count` values, this one included.
#[inline]
fn add_float(
    (kind, result): (Kind, u32),
    count: i64,
    value: f64,
    sum: &mut f64,
    squares: &mut f64,
) -> Result<(), SqlError> {
    let before = (count - 1) as f64;
    let previous = *sum;
    *sum += value;
    if result == oid::FLOAT4 {
        // Each step rounds a sum of reals to a real.
        *sum = f64::from(*sum as f32);
    }
    if kind != Kind::Sum && before > 0.0 {
        let difference = value * count as f64 - *sum;
        *squares += difference * difference / (count as f64 * before);
    } else if !value.is_finite() {
        *squares = f64::NAN;
    }
    if sum.is_infinite() || squares.is_infinite() {
        if !previous.is_infinite() && !value.is_infinite() {
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
        }
        *squares = f64::NAN;
    }
    Ok(())
}

/// Replaces the best value so far if this one is better: greater when `greatest`, else less.
#[inline]
fn keep_best(best: &mut Value, value: Datum<'_>, greatest: bool) -> Result<(), SqlError> {
    let order = compare(value, best.datum())?;
    // Equal values may look different: the last one is the result.
    let differs = matches!(
        value,
        Datum::Numeric(_) | Datum::Float4(_) | Datum::Float8(_) | Datum::Interval(_) | Datum::Array(_)
    );
    let better = matches!(best, Value::Null)
        || if greatest { order.is_gt() } else { order.is_lt() }
        || order.is_eq() && differs;
    if better {
        *best = value.to_value()?;
    }
    Ok(())
}

/// Appends an array's elements as a sub-array. All arrays have the shape of the first; 2202E
/// otherwise.
pub fn add_array(
    builder: &mut ArrayBuilder,
    shape: &mut Vec<(i32, i32)>,
    value: Datum<'_>,
    first: bool,
) -> Result<(), SqlError> {
    let refused = |message: &str| Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    let array = match value {
        Datum::Array(array) => array,
        _ => {
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays"));
        }
    };
    if first {
        *shape = array.shape();
        if shape.is_empty() {
            return refused("cannot accumulate empty arrays");
        }
        if shape.len() >= MAX_DIMENSIONS {
            return Err(too_many_dimensions(shape.len() + 1));
        }
    } else if *shape != array.shape() {
        return refused("cannot accumulate arrays of different dimensionality");
    }
    for element in array.iter() {
        builder.push(element?)?;
    }
    bounded(builder.size())
}

/// A product with all its digits. [`Numeric::multiply`] rounds to the largest scale of a value.
fn product(left: &Numeric, right: &Numeric) -> Numeric {
    match (left, right) {
        (Numeric::Finite(a), Numeric::Finite(b)) => {
            Numeric::finite(&a.mantissa * &b.mantissa, a.scale + b.scale)
        }
        _ => left.multiply(right),
    }
}

/// (n * squares - sum^2) / (n * (n or n - 1)), or its root, at PostgreSQL's scales.
fn variance(
    sum: &Numeric,
    squares: &Numeric,
    count: i64,
    sample: bool,
    root: bool,
) -> Result<Numeric, SqlError> {
    let n = Numeric::from(count);
    let spread = product(&n, squares).add(&product(sum, sum).negate());
    if spread.signum() <= 0 {
        return Ok(Numeric::from(0));
    }
    let divisor = n.multiply(&Numeric::from(if sample { count - 1 } else { count }));
    let variance = spread.divide(&divisor)?;
    Ok(match variance {
        // The root has the variance's own scale.
        Numeric::Finite(variance) if root => Numeric::Finite(variance.root(variance.scale)),
        other => other,
    })
}
