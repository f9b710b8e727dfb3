//! Expressions of `\set`, `\if` and `\elif`: their tree and its evaluation.

use crate::client::Random;

use super::value::Value;
use super::variables::{Names, VariableId, Variables};

#[derive(Debug)]
pub(super) enum Expression {
    Constant(Value),
    Variable(VariableId),
    Call(Function, Box<[Expression]>),
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
    Random,
    RandomZipfian,
}

/// The functions that a script names, and the numbers of their arguments.
pub(super) const FUNCTIONS: [(&str, Function, usize); 2] =
    [("random", Function::Random, 2), ("random_zipfian", Function::RandomZipfian, 3)];

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
            Self::Call(function @ (Function::And | Function::Or), sides) => {
                logic(sides, *function == Function::Or, context)
            }
            Self::Call(Function::Not, side) => Ok(Value::Bool(!side[0].evaluate(context)?.bool()?)),
            Self::Call(Function::Random | Function::RandomZipfian, arguments) => draw(arguments, context),
            Self::Call(function, sides) => {
                operate(*function, sides[0].evaluate(context)?.int()?, sides[1].evaluate(context)?.int()?)
            }
        }
    }
}

/// AND (false decides) and OR (true decides): the second side is evaluated only if it matters.
fn logic(sides: &[Expression], decides: bool, context: &mut Context<'_>) -> Result<Value, String> {
    let left = sides[0].evaluate(context)?.bool()?;
    let value = if left == decides { left } else { sides[1].evaluate(context)?.bool()? };
    Ok(Value::Bool(value))
}

fn operate(function: Function, left: i64, right: i64) -> Result<Value, String> {
    let holds = |holds: bool| Ok(Value::Bool(holds));
    let value = match function {
        Function::Divide | Function::Modulo if right == 0 => return Err("division by zero".into()),
        Function::Add => left.checked_add(right),
        Function::Subtract => left.checked_sub(right),
        Function::Multiply => left.checked_mul(right),
        Function::Divide => left.checked_div(right),
        Function::Modulo => Some(left.wrapping_rem(right)),
        Function::Equal => return holds(left == right),
        Function::NotEqual => return holds(left != right),
        Function::Less => return holds(left < right),
        Function::LessOrEqual => return holds(left <= right),
        Function::Greater => return holds(left > right),
        Function::GreaterOrEqual => return holds(left >= right),
        _ => unreachable!("{function:?} is no operator on numbers"),
    };
    value.map(Value::Int).ok_or_else(|| "bigint out of range".into())
}

/// A random number from the first argument to the second; with a third it is `random_zipfian`'s.
fn draw(arguments: &[Expression], context: &mut Context<'_>) -> Result<Value, String> {
    let (low, high) = (arguments[0].evaluate(context)?.int()?, arguments[1].evaluate(context)?.int()?);
    if low > high {
        return Err("empty range given to random".into());
    }
    if high.checked_sub(low).and_then(|distance| distance.checked_add(1)).is_none() {
        return Err("random range is too large".into());
    }
    let Some(exponent) = arguments.get(2) else { return Ok(Value::Int(context.random.between(low, high))) };
    let exponent = exponent.evaluate(context)?.double()?;
    if !(1.001..=1000.0).contains(&exponent) {
        return Err(format!("zipfian parameter must be in range [1.001, 1000] (not {exponent:.6})"));
    }
    Ok(Value::Int(context.random.zipfian(low, high, exponent)))
}
