//! Expressions of `\set`, `\if` and `\elif`: their tree and its evaluation.

use std::ops::RangeInclusive;

use crate::client::Random;

use super::value::Value;
use super::variables::{Names, VariableId, Variables};

#[derive(Debug)]
pub(super) enum Expression {
    Constant(Value),
    Variable(VariableId),
    Call(Function, Box<[Expression]>),
    /// Pairs of condition and result, and the result if none holds.
    Case(Box<[(Expression, Expression)]>, Box<Expression>),
}

/// A function of an expression; operators are functions too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Abs,
    Double,
    Greatest,
    Int,
    Least,
    Random,
    RandomZipfian,
}

const ARGUMENTS_MAX: usize = 16;

/// The functions that a script names, and the numbers of their arguments.
pub(super) const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 8] = [
    ("abs", Function::Abs, 1..=1),
    ("double", Function::Double, 1..=1),
    ("greatest", Function::Greatest, 1..=ARGUMENTS_MAX),
    ("int", Function::Int, 1..=1),
    ("least", Function::Least, 1..=ARGUMENTS_MAX),
    ("mod", Function::Modulo, 2..=2),
    ("random", Function::Random, 2..=2),
    ("random_zipfian", Function::RandomZipfian, 3..=3),
];

/// The state that evaluation reads and changes.
pub(super) struct Context<'a> {
    pub names: &'a Names,
    pub variables: &'a Variables,
    pub random: &'a mut Random,
}

impl Expression {
    pub(super) fn evaluate(&self, context: &mut Context<'_>) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(id) => context.variables.value(*id, context.names),
            Self::Case(cases, otherwise) => {
                for (condition, result) in cases {
                    if condition.evaluate(context)?.truth() {
                        return result.evaluate(context);
                    }
                }
                otherwise.evaluate(context)
            }
            Self::Call(function @ (Function::And | Function::Or), sides) => {
                logic(sides, *function == Function::Or, context)
            }
            Self::Call(function, arguments) => {
                let mut values = [Value::Null; ARGUMENTS_MAX];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.evaluate(context)?;
                }
                call(*function, &values[..arguments.len()], context.random)
            }
        }
    }
}

/// AND (false decides) and OR (true decides): the second side is evaluated only if it matters.
/// Unlike in SQL, a NULL on the left decides too.
fn logic(sides: &[Expression], decides: bool, context: &mut Context<'_>) -> Result<Value, String> {
    match sides[0].evaluate(context)? {
        Value::Null => Ok(Value::Null),
        left if left.bool()? == decides => Ok(Value::Bool(decides)),
        _ => match sides[1].evaluate(context)? {
            Value::Null => Ok(Value::Null),
            right => right.bool().map(Value::Bool),
        },
    }
}

/// The function's value; doubles if an argument is one.
fn call(function: Function, values: &[Value], random: &mut Random) -> Result<Value, String> {
    if values.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    let (first, last) = (values[0], values[values.len() - 1]);
    match function {
        Function::Not => first.bool().map(|value| Value::Bool(!value)),
        Function::Int => first.int().map(Value::Int),
        Function::Double => first.double().map(Value::Double),
        Function::Random | Function::RandomZipfian => draw(values, random),
        Function::Modulo => of_ints(function, first.int()?, last.int()?),
        _ => {
            let doubles = values.iter().any(|value| matches!(value, Value::Double(_)));
            let two = |left: Value, right: Value| match doubles {
                true => of_doubles(function, left.double()?, right.double()?),
                false => of_ints(function, left.int()?, right.int()?),
            };
            // `abs` takes its only argument twice; `greatest` and `least` take pairs in turn.
            values[1..].iter().try_fold(two(first, last)?, |value, next| match function {
                Function::Greatest | Function::Least => two(value, *next),
                _ => Ok(value),
            })
        }
    }
}

fn of_doubles(function: Function, left: f64, right: f64) -> Result<Value, String> {
    Ok(Value::Double(match function {
        Function::Add => left + right,
        Function::Subtract => left - right,
        Function::Multiply => left * right,
        Function::Divide => left / right,
        Function::Abs => left.abs(),
        Function::Greatest => left.max(right),
        Function::Least => left.min(right),
        _ => return Ok(Value::Bool(holds(function, left, right))),
    }))
}

fn of_ints(function: Function, left: i64, right: i64) -> Result<Value, String> {
    let value = match function {
        Function::Divide | Function::Modulo if right == 0 => return Err("division by zero".into()),
        Function::Add => left.checked_add(right),
        Function::Subtract => left.checked_sub(right),
        Function::Multiply => left.checked_mul(right),
        Function::Divide => left.checked_div(right),
        Function::Modulo => Some(left.wrapping_rem(right)),
        Function::Abs => Some(left.wrapping_abs()),
        Function::Greatest => Some(left.max(right)),
        Function::Least => Some(left.min(right)),
        _ => return Ok(Value::Bool(holds(function, left, right))),
    };
    value.map(Value::Int).ok_or_else(|| "bigint out of range".into())
}

/// Whether a comparison holds.
fn holds<T: PartialOrd>(function: Function, left: T, right: T) -> bool {
    match function {
        Function::Equal => left == right,
        Function::NotEqual => left != right,
        Function::Less => left < right,
        Function::LessOrEqual => left <= right,
        Function::Greater => left > right,
        Function::GreaterOrEqual => left >= right,
        _ => unreachable!("{function:?} is no comparison"),
    }
}

/// A random number from the first value to the second; with a third it is `random_zipfian`'s.
fn draw(values: &[Value], random: &mut Random) -> Result<Value, String> {
    let (low, high) = (values[0].int()?, values[1].int()?);
    if low > high {
        return Err("empty range given to random".into());
    }
    if high.checked_sub(low).and_then(|distance| distance.checked_add(1)).is_none() {
        return Err("random range is too large".into());
    }
    let Some(exponent) = values.get(2) else { return Ok(Value::Int(random.between(low, high))) };
    let exponent = exponent.double()?;
    // A NaN is outside the range; the generator would draw for ever with it. pgbench lets it pass
    // and hangs.
    if !(1.001..=1000.0).contains(&exponent) {
        return Err(format!("zipfian parameter must be in range [1.001, 1000] (not {exponent:.6})"));
    }
    Ok(Value::Int(random.zipfian(low, high, exponent)))
}
