//! Expressions of `\set`, `\if` and `\elif`: their tree and its evaluation.

use crate::client::Random;

use super::function::{ARGUMENTS_MAX, Function};
use super::value::Value;
use super::variables::{Names, VariableId, Variables};

#[derive(Debug)]
pub(super) enum Expression {
    Constant(Value),
    Variable(VariableId),
    Call(Function, Box<[Expression]>),
    /// Both sides are there; evaluation reaches the second only if it matters.
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    /// Pairs of condition and result, and the result if none holds.
    Case(Box<[(Expression, Expression)]>, Box<Expression>),
}

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
            Self::And(sides) => logic(sides, false, context),
            Self::Or(sides) => logic(sides, true, context),
            Self::Case(cases, otherwise) => {
                for (condition, result) in cases {
                    if condition.evaluate(context)?.truth() {
                        return result.evaluate(context);
                    }
                }
                otherwise.evaluate(context)
            }
            Self::Call(function, arguments) => {
                let mut values = [Value::Null; ARGUMENTS_MAX];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.evaluate(context)?;
                }
                call(*function, &values[..arguments.len()], context)
            }
        }
    }
}

/// AND (false decides) and OR (true decides); unlike in SQL, a NULL on the left decides too.
fn logic(sides: &[Expression; 2], decided: bool, context: &mut Context<'_>) -> Result<Value, String> {
    match sides[0].evaluate(context)? {
        Value::Null => Ok(Value::Null),
        left if left.bool()? == decided => Ok(Value::Bool(decided)),
        _ => match sides[1].evaluate(context)? {
            Value::Null => Ok(Value::Null),
            right => right.bool().map(Value::Bool),
        },
    }
}

fn call(function: Function, values: &[Value], context: &mut Context<'_>) -> Result<Value, String> {
    use Function as F;
    match function {
        F::Is => return Ok(Value::Bool(values[0] == values[1])),
        _ if values.contains(&Value::Null) => return Ok(Value::Null),
        _ => {}
    }
    match function {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo => {
            arithmetic(function, values[0], values[1])
        }
        F::Equal | F::NotEqual | F::LessOrEqual | F::Less => compare(function, values[0], values[1]),
        F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => {
            let (left, right) = (values[0].int()?, values[1].int()?);
            Ok(Value::Int(match function {
                F::BitAnd => left & right,
                F::BitOr => left | right,
                F::BitXor => left ^ right,
                // As the processor does it: by the amount modulo 64.
                F::ShiftLeft => left.wrapping_shl(right as u32),
                _ => left.wrapping_shr(right as u32),
            }))
        }
        F::Not => values[0].bool().map(|value| Value::Bool(!value)),
        F::Abs => match values[0] {
            Value::Int(value) => Ok(Value::Int(value.wrapping_abs())),
            other => other.double().map(|value| Value::Double(value.abs())),
        },
        F::Double => values[0].double().map(Value::Double),
        F::Exp => values[0].double().map(|value| Value::Double(value.exp())),
        F::Ln => values[0].double().map(|value| Value::Double(value.ln())),
        F::Sqrt => values[0].double().map(|value| Value::Double(value.sqrt())),
        F::Int => values[0].int().map(Value::Int),
        F::Pi => Ok(Value::Double(std::f64::consts::PI)),
        F::Pow => Ok(Value::Double(values[0].double()?.powf(values[1].double()?))),
        F::Greatest => extreme(values, false),
        F::Least => extreme(values, true),
        F::Random | F::RandomZipfian => draw(function, values, context.random),
        F::Is => unreachable!("answered above"),
    }
}

fn arithmetic(function: Function, left: Value, right: Value) -> Result<Value, String> {
    use Function as F;
    let doubles = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if doubles && function != F::Modulo {
        let (left, right) = (left.double()?, right.double()?);
        return Ok(Value::Double(match function {
            F::Add => left + right,
            F::Subtract => left - right,
            F::Multiply => left * right,
            _ => left / right,
        }));
    }
    let (left, right) = (left.int()?, right.int()?);
    if right == 0 && matches!(function, F::Divide | F::Modulo) {
        return Err("division by zero".into());
    }
    let (result, name) = match function {
        F::Add => (left.checked_add(right), "add"),
        F::Subtract => (left.checked_sub(right), "sub"),
        F::Multiply => (left.checked_mul(right), "mul"),
        F::Divide => (left.checked_div(right), "div"),
        _ => (Some(left.wrapping_rem(right)), "mod"),
    };
    result.map(Value::Int).ok_or_else(|| format!("bigint {name} out of range"))
}

fn compare(function: Function, left: Value, right: Value) -> Result<Value, String> {
    fn holds<T: PartialOrd>(function: Function, left: T, right: T) -> bool {
        match function {
            Function::Equal => left == right,
            Function::NotEqual => left != right,
            Function::LessOrEqual => left <= right,
            _ => left < right,
        }
    }
    let doubles = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    Ok(Value::Bool(if doubles {
        holds(function, left.double()?, right.double()?)
    } else {
        holds(function, left.int()?, right.int()?)
    }))
}

/// The least value, or the greatest: a double if any argument is one.
fn extreme(values: &[Value], least: bool) -> Result<Value, String> {
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let better = |best: f64, value: f64| if (best < value) == least { best } else { value };
        let first = values[0].double()?;
        let best: Result<f64, String> =
            values[1..].iter().try_fold(first, |best, value| Ok(better(best, value.double()?)));
        return best.map(Value::Double);
    }
    let better = |best: i64, value: i64| if least { best.min(value) } else { best.max(value) };
    let first = values[0].int()?;
    let best: Result<i64, String> =
        values[1..].iter().try_fold(first, |best, value| Ok(better(best, value.int()?)));
    best.map(Value::Int)
}

fn draw(function: Function, values: &[Value], random: &mut Random) -> Result<Value, String> {
    let (low, high) = (values[0].int()?, values[1].int()?);
    if low > high {
        return Err("empty range given to random".into());
    }
    if high.checked_sub(low).and_then(|distance| distance.checked_add(1)).is_none() {
        return Err("random range is too large".into());
    }
    if function == Function::Random {
        return Ok(Value::Int(random.between(low, high)));
    }
    let exponent = values[2].double()?;
    // A NaN is outside the range; the generator would draw for ever with it. pgbench lets it pass
    // and hangs.
    if !(1.001..=1000.0).contains(&exponent) {
        return Err(format!("zipfian parameter must be in range [1.001, 1000] (not {exponent:.6})"));
    }
    Ok(Value::Int(random.zipfian(low, high, exponent)))
}
