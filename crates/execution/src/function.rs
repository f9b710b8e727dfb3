//! Set-returning functions. Each produces rows, and several run side by side: a function that ends
//! early gives NULL until the last one has ended.

use super::{Arena, Executor, File, Flow, Sink};
use expressions::context::EvalContext;
use expressions::expr::Expr;
use expressions::function::SetFunction;
use expressions::functions;
use query::plan::{Reg, SetCall};
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::memory;
use values::text;
use values::types::numeric::Numeric;
use values::types::{Datum, Type, Value};

/// A function that has begun.
enum Producer<'v, 's> {
    /// It has no rows (any more).
    Ended,
    /// An integer series: the next value, the last one, the step, whether they are int4.
    Integers { next: Option<i64>, last: i64, step: i64, narrow: bool },
    /// Arrays side by side, and how many rows of the longest were given.
    Arrays { arrays: Vec<Vec<Datum<'v>>>, at: usize },
    /// A series of another type.
    Series(Box<Series<'s>>),
    /// One value.
    Once(Datum<'v>),
}

/// Runs functions side by side until the last of them ends: each row in a scope of its own.
pub(super) fn function<'s, 'x>(
    cx: &mut Executor<'s>,
    (calls, ordinality): (&'s [SetCall], Option<Reg>),
    file: &File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut producers = Vec::with_capacity(calls.len());
    for call in calls {
        let values = arena.bump.alloc_slice_fill_copy(call.arguments.len(), Datum::Null);
        for (value, argument) in values.iter_mut().zip(&call.arguments) {
            *value = cx.eval(argument, file, arena)?;
        }
        producers.push(begin(cx, call.function, values)?);
    }
    cx.scoped(|cx, own| {
        let mut number = 0;
        loop {
            cx.check()?;
            number += 1;
            let flow = {
                let own = &*own;
                let row = own.file(file);
                let mut any = false;
                for (call, producer) in calls.iter().zip(&mut producers) {
                    let values = own.bump.alloc_slice_fill_copy(call.output.len().max(1), Datum::Null);
                    any |= producer.next(values, own)?;
                    for (register, value) in call.output.iter().zip(values) {
                        row[*register as usize] = *value;
                    }
                }
                if !any {
                    return Ok(Flow::More);
                }
                if let Some(register) = ordinality {
                    row[register as usize] = Datum::Int8(number);
                }
                sink(cx, row, own)?
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    })
}

/// Begins a function with these arguments.
fn begin<'v, 's>(
    cx: &Executor<'s>,
    function: SetFunction,
    values: &[Datum<'v>],
) -> Result<Producer<'v, 's>, SqlError> {
    Ok(match function {
        SetFunction::SeriesInt4 | SetFunction::SeriesInt8 => match integers(values)? {
            Some((first, last, step)) => {
                let narrow = function == SetFunction::SeriesInt4;
                Producer::Integers { next: Some(first), last, step, narrow }
            }
            None => Producer::Ended,
        },
        SetFunction::Unnest | SetFunction::ArrayElements => {
            let elements = |value: &Datum<'v>| match value {
                Datum::Array(array) => {
                    memory::ask(array.len().saturating_mul(size_of::<Datum<'_>>()))?;
                    array.iter().collect()
                }
                _ => Ok(Vec::new()),
            };
            let arrays = values.iter().map(elements).collect::<Result<_, SqlError>>()?;
            Producer::Arrays { arrays, at: 0 }
        }
        SetFunction::Once => Producer::Once(values.first().copied().unwrap_or(Datum::Null)),
        SetFunction::SeriesNumeric | SetFunction::SeriesTimestamp | SetFunction::SeriesTimestamptz => {
            match Series::begin(cx, function, values)? {
                Some(series) => Producer::Series(Box::new(series)),
                None => Producer::Ended,
            }
        }
    })
}

impl Producer<'_, '_> {
    /// Fills the next row; false when there is none. A function that has ended leaves its columns
    /// NULL.
    fn next<'y>(&mut self, row: &mut [Datum<'y>], own: &'y Arena<'_>) -> Result<bool, SqlError> {
        match self {
            Producer::Ended => return Ok(false),
            Producer::Integers { next, last, step, narrow } => {
                let within = |value: &i64| if *step > 0 { *value <= *last } else { *value >= *last };
                if let Some(value) = next.filter(within) {
                    *next = value.checked_add(*step);
                    // The value lies between two int4 bounds, so it fits.
                    row[0] = if *narrow { Datum::Int4(value as i32) } else { Datum::Int8(value) };
                    return Ok(true);
                }
            }
            Producer::Arrays { arrays, at } => {
                let mut any = false;
                for (value, array) in row.iter_mut().zip(&*arrays) {
                    if let Some(element) = array.get(*at) {
                        *value = element.copy_in(&own.bump)?;
                        any = true;
                    }
                }
                if any {
                    *at += 1;
                    return Ok(true);
                }
            }
            Producer::Series(series) => {
                if series.next(row, own)? {
                    return Ok(true);
                }
            }
            Producer::Once(value) => {
                row[0] = value.copy_in(&own.bump)?;
                *self = Producer::Ended;
                return Ok(true);
            }
        }
        *self = Producer::Ended;
        Ok(false)
    }
}

/// First, last and step of an integer series. `None` if one of them is NULL.
fn integers(values: &[Datum<'_>]) -> Result<Option<(i64, i64, i64)>, SqlError> {
    let mut numbers = [0, 0, 1];
    for (number, value) in numbers.iter_mut().zip(values) {
        *number = match value {
            Datum::Int4(value) => i64::from(*value),
            Datum::Int8(value) => *value,
            _ => return Ok(None),
        };
    }
    if numbers[2] == 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
    }
    Ok(Some((numbers[0], numbers[1], numbers[2])))
}

/// A series of another type. The type's operators compute it over three registers: the value, the
/// last value and the step.
struct Series<'s> {
    environment: &'s dyn Environment,
    params: &'s [Datum<'s>],
    /// The next value. `None` once the sum overflows the type: that lies beyond the last value,
    /// whatever it is.
    next: Option<Value>,
    last: Value,
    step: Value,
    sum: Expr,
    /// Whether a value is past the last one.
    past: Expr,
}

impl<'s> Series<'s> {
    /// Begins the series. Returns `None` if an argument is NULL.
    fn begin(
        cx: &Executor<'s>,
        function: SetFunction,
        values: &[Datum<'_>],
    ) -> Result<Option<Series<'s>>, SqlError> {
        let (type_, step_type) = match function {
            SetFunction::SeriesTimestamp => (Type::TIMESTAMP, Type::INTERVAL),
            SetFunction::SeriesTimestamptz => (Type::TIMESTAMPTZ, Type::INTERVAL),
            _ => (Type::NUMERIC, Type::NUMERIC),
        };
        if values.iter().any(Datum::is_null) {
            return Ok(None);
        }
        check_finite(values)?;
        let arena = bumpalo::Bump::new();
        let step = match values {
            [_, _, step] => *step,
            _ => text::parse("1", step_type, cx.environment, &arena)?,
        };
        let (value, last, by) = (Expr::column(0, type_), Expr::column(1, type_), Expr::column(2, step_type));
        let sum = functions::operator("+", Some(value.clone()), by)?;
        let [above, below] =
            [">", "<"].map(|operator| functions::operator(operator, Some(value.clone()), last.clone()));
        // The step's sign. An interval has the sign of its length, with months of 30 days.
        let sign = match step {
            Datum::Interval(step) => step.span().signum(),
            Datum::Numeric(step) => {
                let zero = Numeric::from(0).store(&arena)?;
                step.compare(zero) as i128
            }
            _ => 0,
        };
        let past = match sign {
            0 => {
                let message = "step size cannot equal zero";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            1.. => above?,
            _ => below?,
        };
        let (next, last, step) = (Some(values[0].to_value()?), values[1].to_value()?, step.to_value()?);
        let series = Series { environment: cx.environment, params: cx.params, next, last, step, sum, past };
        Ok(Some(series))
    }

    fn compute(&self, expr: &Expr, value: &Value, last: &Value) -> Result<Value, SqlError> {
        let arena = bumpalo::Bump::new();
        let registers = [value.datum(), last.datum(), self.step.datum()];
        let mut context = EvalContext::new(&registers, self.params, &arena, self.environment);
        expr.eval(&mut context)?.to_value()
    }

    fn next<'y>(&mut self, row: &mut [Datum<'y>], own: &'y Arena<'_>) -> Result<bool, SqlError> {
        let Some(value) = &self.next else { return Ok(false) };
        if matches!(self.compute(&self.past, value, &self.last)?, Value::Bool(true)) {
            return Ok(false);
        }
        row[0] = value.datum().copy_in(&own.bump)?;
        self.next = match self.compute(&self.sum, value, &self.last) {
            Err(error)
                if error.code == SqlState::NUMERIC_VALUE_OUT_OF_RANGE
                    && matches!(value, Value::Numeric(_)) =>
            {
                None
            }
            sum => Some(sum?),
        };
        Ok(true)
    }
}

/// Fails with 22023 if a number of the series is not finite, or if an interval is infinite.
fn check_finite(values: &[Datum<'_>]) -> Result<(), SqlError> {
    for (value, name) in values.iter().zip(["start value", "stop value", "step size"]) {
        let wrong = match value {
            Datum::Numeric(number) if number.is_nan() => "NaN",
            Datum::Numeric(number) if number.is_infinite() => "infinity",
            Datum::Interval(interval) if interval.is_infinite() => "infinite",
            _ => continue,
        };
        let message = format!("{name} cannot be {wrong}");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(())
}
