//! Set-returning functions.

use super::{Arena, Executor, File, Flow, Sink};
use crate::error::{SqlError, SqlState};
use crate::expr::{EvalContext, Expr};
use crate::functions;
use crate::plan::{Reg, SetFunction};
use crate::types::{Datum, Type, Value, text};

/// Fills the next row; false when there is none.
type NextRow<'s, 'k> = dyn for<'y> FnMut(&mut [Datum<'y>], &'y Arena<'s>) -> Result<bool, SqlError> + 'k;

/// Where a function's rows go.
struct Output<'s> {
    registers: &'s [Reg],
    ordinality: Option<Reg>,
}

/// Runs a function: each of its rows in a scope of its own.
pub(super) fn function<'s, 'x>(
    cx: &mut Executor<'s>,
    (function, arguments, registers, ordinality): (SetFunction, &'s [Expr], &'s [Reg], Option<Reg>),
    file: &File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let values = arena.bump.alloc_slice_fill_copy(arguments.len(), Datum::Null);
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = cx.eval(argument, file, arena)?;
    }
    let output = Output { registers, ordinality };
    match function {
        SetFunction::SeriesInt4 | SetFunction::SeriesInt8 => {
            let Some((first, last, step)) = integers(values)? else { return Ok(Flow::More) };
            let narrow = function == SetFunction::SeriesInt4;
            let mut next = Some(first);
            each(cx, &output, file, sink, &mut |row, _| {
                let Some(value) = next.filter(|value| if step > 0 { *value <= last } else { *value >= last })
                else {
                    return Ok(false);
                };
                next = value.checked_add(step);
                // Between two int4 bounds, so it is one.
                row[0] = if narrow { Datum::Int4(value as i32) } else { Datum::Int8(value) };
                Ok(true)
            })
        }
        SetFunction::Unnest | SetFunction::ArrayElements => {
            let arrays: Vec<Vec<Datum<'_>>> = values
                .iter()
                .map(|value| match value {
                    Datum::Array(array) => array.iter().collect(),
                    _ => Vec::new(),
                })
                .collect();
            let longest = arrays.iter().map(Vec::len).max().unwrap_or(0);
            let mut at = 0;
            each(cx, &output, file, sink, &mut |row, own| {
                if at >= longest {
                    return Ok(false);
                }
                for (value, array) in row.iter_mut().zip(&arrays) {
                    *value = array.get(at).copied().unwrap_or(Datum::Null).copy_in(&own.bump);
                }
                at += 1;
                Ok(true)
            })
        }
        SetFunction::SeriesNumeric | SetFunction::SeriesTimestamp | SetFunction::SeriesTimestamptz => {
            series(cx, (&output, function), values, file, sink)
        }
    }
}

/// Calls `next` for each row until it says that there is none.
fn each<'s>(
    cx: &mut Executor<'s>,
    output: &Output<'s>,
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
    next: &mut NextRow<'s, '_>,
) -> Result<Flow, SqlError> {
    cx.scoped(|cx, own| {
        let mut number = 0;
        loop {
            cx.check()?;
            number += 1;
            let flow = {
                let row = own.bump.alloc_slice_fill_copy(output.registers.len().max(1), Datum::Null);
                if !next(row, own)? {
                    return Ok(Flow::More);
                }
                let file = own.file(file);
                for (register, value) in output.registers.iter().zip(row) {
                    file[*register as usize] = *value;
                }
                if let Some(register) = output.ordinality {
                    file[register as usize] = Datum::Int8(number);
                }
                sink(cx, file, own)?
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    })
}

/// First, last and step of an integer series; None when one of them is NULL.
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

/// Series of other types, by the operators of the type over three registers: the value, the last one, the step.
fn series<'s>(
    cx: &mut Executor<'s>,
    (output, function): (&Output<'s>, SetFunction),
    values: &[Datum<'_>],
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let (type_, step_type) = match function {
        SetFunction::SeriesTimestamp => (Type::TIMESTAMP, Type::INTERVAL),
        SetFunction::SeriesTimestamptz => (Type::TIMESTAMPTZ, Type::INTERVAL),
        _ => (Type::NUMERIC, Type::NUMERIC),
    };
    let own = bumpalo::Bump::new();
    let step = match values {
        [_, _, step] => *step,
        _ => text::parse("1", step_type, cx.environment, &own)?,
    };
    if values.iter().any(Datum::is_null) {
        return Ok(Flow::More);
    }
    let (value, last, by) = (Expr::column(0, type_), Expr::column(1, type_), Expr::column(2, step_type));
    let sum = functions::operator("+", Some(value.clone()), by)?;
    let [above, below] =
        [">", "<"].map(|operator| functions::operator(operator, Some(value.clone()), last.clone()));
    let (above, below) = (above?, below?);
    let (environment, params) = (cx.environment, cx.params);
    let compute = |expr: &Expr, value: Datum<'_>, last: Datum<'_>| -> Result<Value, SqlError> {
        let arena = bumpalo::Bump::new();
        let registers = [value, last, step];
        let mut context = EvalContext { registers: &registers, params, arena: &arena, session: environment };
        Ok(expr.eval(&mut context)?.to_value())
    };
    // The step's direction is where it leads from the first value.
    let second = compute(&sum, values[0], values[1])?;
    let is = |expr: &Expr, a: Datum<'_>, b: Datum<'_>| Ok(matches!(compute(expr, a, b)?, Value::Bool(true)));
    let past = match (is(&above, second.datum(), values[0])?, is(&below, second.datum(), values[0])?) {
        (true, _) => &above,
        (_, true) => &below,
        _ => {
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
        }
    };
    let mut next = values[0].to_value();
    each(cx, output, file, sink, &mut |row, own| {
        if is(past, next.datum(), values[1])? {
            return Ok(false);
        }
        row[0] = next.datum().copy_in(&own.bump);
        next = compute(&sum, next.datum(), values[1])?;
        Ok(true)
    })
}
