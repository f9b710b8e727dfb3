//! The evaluator: a walk over the tree.
//!
//! A constant, a register or a parameter costs one match. A call's arguments live on the stack.
//! Integer arithmetic and comparisons run in place, without the call.
//!
//! What must hold:
//!
//! 1. An operation in place gives the value and the error of the function's code.
//! 2. AND, OR, CASE and COALESCE evaluate their parts in order and stop at the one that decides. A
//!    later part may fail where it is not needed.
//! 3. A strict function is not called with a NULL.
//! 4. A value lies in the context's arena, in a register or in the expression. It lives as long as
//!    the evaluation's caller keeps these.

use bumpalo::Bump;

use super::{BoolOperand, Call, Case, Cast, CastPath, Expr, Extreme};
use crate::context::EvalContext;
use crate::function::{Comparison, Fast, Function, Volatility};
use values::error::{SqlError, SqlState};
use values::memory;
use values::types::array::{MAX_DIMENSIONS, too_many_dimensions};
use values::types::{
    ArrayBuilder, ArrayRef, Datum, RecordRef, Type, Value, compare, modifier, oid, registry,
};
use values::work::{self, tick_part};
use values::{encoding, text};

/// Number of arguments kept on the stack. Longer lists go to the arena.
const INLINE: usize = 4;

fn integer_overflow(type_name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"))
}

impl Expr {
    /// The expression's value.
    pub fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        match self {
            Expr::Column { register, .. } => Ok(context.registers[*register as usize]),
            Expr::Param { index, .. } => Ok(context.params[*index as usize]),
            Expr::Const(Value::Record(_), _) => match self {
                Expr::Const(value, _) => Ok(value.datum_in(context.arena)),
                _ => Ok(Datum::Null),
            },
            Expr::Const(value, _) => Ok(value.datum()),
            Expr::Operand { index, .. } => Ok(context.operands[*index as usize]),
            Expr::Shared(shared) => shared.eval(context),
            Expr::Call(call) => call.eval(context),
            Expr::And(parts) => eval_all(parts, BoolOperand { decisive: false }, context),
            Expr::Or(parts) => eval_all(parts, BoolOperand { decisive: true }, context),
            Expr::Not(input) => Ok(match input.eval(context)? {
                Datum::Bool(value) => Datum::Bool(!value),
                other => other,
            }),
            Expr::Case(case) => case.eval(context),
            Expr::Coalesce(arguments, _) => {
                for argument in arguments {
                    tick_part(arguments.len())?;
                    let value = argument.eval(context)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Expr::NullIf(call) => {
                let [left, right] = call.arguments.as_slice() else { return Ok(Datum::Null) };
                let value = left.eval(context)?;
                // PostgreSQL plans with the parameters' values, and NULL equals nothing.
                if value.is_null() && matches!(left, Expr::Param { .. }) && !right.is_row_free() {
                    return Ok(value);
                }
                let other = right.eval(context)?;
                let equal = call_function(call.function, &[value, other], context)?;
                Ok(if matches!(equal, Datum::Bool(true)) { Datum::Null } else { value })
            }
            Expr::Extreme(extreme) => extreme.eval(context),
            Expr::Cast(cast) => cast.eval(context),
            Expr::NullTest { input, negated } => Ok(Datum::Bool(match input.eval(context)? {
                Datum::Record(record) => record.fields.iter().all(|field| field.is_null() != *negated),
                value => value.is_null() != *negated,
            })),
            Expr::BoolTest { input, expected, negated } => {
                let value = match input.eval(context)? {
                    Datum::Bool(value) => Some(value),
                    _ => None,
                };
                Ok(Datum::Bool((value == *expected) != *negated))
            }
            Expr::Distinct { equal, negated } => equal.eval_distinct(*negated, context),
            Expr::Quantified(quantified) => quantified.eval(context),
            Expr::Array { elements, type_ } => eval_array(elements, *type_, context),
            Expr::Row { fields, .. } => eval_row(fields, context),
            Expr::Subscript { array, indexes, .. } => eval_subscript(array, indexes, context),
            Expr::Field { record, index, .. } => Ok(match record.eval(context)? {
                Datum::Record(record) => record.fields.get(*index as usize).copied().unwrap_or(Datum::Null),
                _ => Datum::Null,
            }),
        }
    }
}

/// AND and OR: the deciding value ends the walk; a NULL is remembered.
fn eval_all<'a>(
    parts: &'a [Expr],
    operand: BoolOperand,
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    let mut unknown = false;
    for part in parts {
        tick_part(parts.len())?;
        match part.eval(context)? {
            Datum::Bool(value) if value == operand.decisive => return Ok(Datum::Bool(value)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!operand.decisive) })
}

impl Call {
    pub(super) fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        let function = self.function;
        if let (Some(fast), [left, right]) = (function.fast, self.arguments.as_slice()) {
            if let Fast::Compare(comparison) = fast {
                if let Some(a) = ready_integer(left, context)
                    && let Some(b) = ready_integer(right, context)
                {
                    return Ok(Datum::Bool(comparison.holds(a.cmp(&b))));
                }
                if let Some(result) = compare_ready(comparison, (left, right), context) {
                    return result.map(Datum::Bool);
                }
            }
            let left = left.eval(context)?;
            let right = right.eval(context)?;
            return fast_call(fast, function, left, right, context);
        }
        let mut inline = [Datum::Null; INLINE];
        let count = self.arguments.len();
        let places = match inline.get_mut(..count) {
            Some(places) => places,
            None => context.arena.alloc_slice_fill_copy(count, Datum::Null),
        };
        for (place, argument) in places.iter_mut().zip(&self.arguments) {
            tick_part(count)?;
            put_argument(argument, place, context)?;
        }
        let arguments = &*places;
        if function.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        ask_for_call(function, arguments)?;
        (function.code)(context, arguments)
    }

    fn eval_distinct<'a>(
        &'a self,
        negated: bool,
        context: &mut EvalContext<'a, '_>,
    ) -> Result<Datum<'a>, SqlError> {
        let left = self.arguments[0].eval(context)?;
        let right = self.arguments[1].eval(context)?;
        let distinct = match (left.is_null(), right.is_null()) {
            (true, true) => false,
            (false, false) => {
                !matches!(call_function(self.function, &[left, right], context)?, Datum::Bool(true))
            }
            _ => true,
        };
        Ok(Datum::Bool(distinct != negated))
    }
}

/// An integer that needs no evaluation, read where it lies.
#[inline]
fn ready_integer(expr: &Expr, context: &EvalContext<'_, '_>) -> Option<i64> {
    let value = match expr {
        Expr::Column { register, .. } => &context.registers[*register as usize],
        Expr::Param { index, .. } => &context.params[*index as usize],
        Expr::Const(Value::Int4(value), _) => return Some((*value).into()),
        Expr::Const(Value::Int8(value), _) => return Some(*value),
        _ => return None,
    };
    match value {
        Datum::Int4(value) => Some((*value).into()),
        Datum::Int8(value) => Some(*value),
        _ => None,
    }
}

/// A value of another frequent type that needs no evaluation.
enum Ready<'r> {
    Date(i32),
    Timestamp(i64),
    Timestamptz(i64),
    Text(&'r str),
}

impl<'r> Ready<'r> {
    /// The value of a column, a parameter or a constant.
    #[inline]
    fn of(expr: &'r Expr, context: &EvalContext<'r, 'r>) -> Option<Ready<'r>> {
        let value = match expr {
            Expr::Column { register, .. } => &context.registers[*register as usize],
            Expr::Param { index, .. } => &context.params[*index as usize],
            Expr::Const(value, _) => return Ready::of_constant(value),
            _ => return None,
        };
        match value {
            Datum::Text(value) => Some(Ready::Text(value)),
            Datum::Date(value) => Some(Ready::Date(*value)),
            Datum::Timestamp(value) => Some(Ready::Timestamp(*value)),
            Datum::Timestamptz(value) => Some(Ready::Timestamptz(*value)),
            _ => None,
        }
    }

    #[inline]
    fn of_constant(value: &'r Value) -> Option<Ready<'r>> {
        match value {
            Value::Text(value) => Some(Ready::Text(value)),
            Value::Date(value) => Some(Ready::Date(*value)),
            Value::Timestamp(value) => Some(Ready::Timestamp(*value)),
            Value::Timestamptz(value) => Some(Ready::Timestamptz(*value)),
            _ => None,
        }
    }
}

/// The result of a comparison whose operands are no integers, need no evaluation and are of one
/// type. `None`: they are others.
fn compare_ready<'r>(
    comparison: Comparison,
    (left, right): (&'r Expr, &'r Expr),
    context: &EvalContext<'r, 'r>,
) -> Option<Result<bool, SqlError>> {
    let order = match (Ready::of(left, context)?, Ready::of(right, context)?) {
        (Ready::Timestamp(left), Ready::Timestamp(right))
        | (Ready::Timestamptz(left), Ready::Timestamptz(right)) => left.cmp(&right),
        (Ready::Date(left), Ready::Date(right)) => left.cmp(&right),
        (Ready::Text(left), Ready::Text(right)) => {
            let (left, right) = (left.as_bytes(), right.as_bytes());
            return Some(match comparison {
                Comparison::Equal => work::equal(left, right),
                Comparison::NotEqual => work::equal(left, right).map(|equal| !equal),
                _ => work::compare(left, right).map(|order| comparison.holds(order)),
            });
        }
        _ => return None,
    };
    Some(Ok(comparison.holds(order)))
}

/// Puts an argument's value into its place. A text is written there and nowhere before: a copy of
/// bytes that were just written in pieces waits for them.
#[inline]
fn put_argument<'a>(
    expr: &'a Expr,
    place: &mut Datum<'a>,
    context: &mut EvalContext<'a, '_>,
) -> Result<(), SqlError> {
    match expr {
        Expr::Column { register, .. } => match &context.registers[*register as usize] {
            Datum::Text(text) => *place = Datum::Text(text),
            other => *place = *other,
        },
        Expr::Const(Value::Text(text), _) => *place = Datum::Text(text),
        expr => *place = expr.eval(context)?,
    }
    Ok(())
}

/// Calls a function over values. The result of a strict function with a NULL argument is NULL,
/// without the call.
pub(crate) fn call_function<'a>(
    function: &'static Function,
    arguments: &[Datum<'a>],
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    if function.strict && arguments.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    (function.code)(context, arguments)
}

#[inline]
pub(super) fn fast_call<'a>(
    fast: Fast,
    function: &'static Function,
    left: Datum<'a>,
    right: Datum<'a>,
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    match (fast, left, right) {
        (Fast::Compare(comparison), Datum::Int4(a), Datum::Int4(b)) => {
            Ok(Datum::Bool(comparison.holds(a.cmp(&b))))
        }
        (Fast::Compare(comparison), Datum::Int8(a), Datum::Int8(b)) => {
            Ok(Datum::Bool(comparison.holds(a.cmp(&b))))
        }
        (Fast::Compare(Comparison::Equal), Datum::Text(a), Datum::Text(b)) => {
            work::equal(a.as_bytes(), b.as_bytes()).map(Datum::Bool)
        }
        (_, Datum::Null, _) | (_, _, Datum::Null) => Ok(Datum::Null),
        (Fast::Compare(comparison), a, b) => Ok(Datum::Bool(comparison.holds(compare(a, b)?))),
        (Fast::Add, Datum::Int4(a), Datum::Int4(b)) => {
            a.checked_add(b).map(Datum::Int4).ok_or_else(|| integer_overflow("integer"))
        }
        (Fast::Add, Datum::Int8(a), Datum::Int8(b)) => {
            a.checked_add(b).map(Datum::Int8).ok_or_else(|| integer_overflow("bigint"))
        }
        (Fast::Subtract, Datum::Int4(a), Datum::Int4(b)) => {
            a.checked_sub(b).map(Datum::Int4).ok_or_else(|| integer_overflow("integer"))
        }
        (Fast::Subtract, Datum::Int8(a), Datum::Int8(b)) => {
            a.checked_sub(b).map(Datum::Int8).ok_or_else(|| integer_overflow("bigint"))
        }
        (_, left, right) => (function.code)(context, &[left, right]),
    }
}

impl Case {
    fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        for (condition, result) in &self.branches {
            tick_part(self.branches.len())?;
            if matches!(condition.eval(context)?, Datum::Bool(true)) {
                return result.eval(context);
            }
        }
        self.otherwise.eval(context)
    }
}

impl Extreme {
    fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        let mut best = Datum::Null;
        for argument in &self.arguments {
            tick_part(self.arguments.len())?;
            let value = argument.eval(context)?;
            if value.is_null() {
                continue;
            }
            let is_better = best.is_null() || {
                let order = values::types::compare_records(best, value, "a comparison function")?;
                order.is_ne() && order.is_lt() == self.greatest
            };
            if is_better {
                best = value;
            }
        }
        Ok(best)
    }
}

impl Cast {
    fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        let value = self.input.eval(context)?;
        if value.is_null() {
            return Ok(value);
        }
        convert(&self.path, value, self.input.type_(), self.type_, self.explicit, context)
    }
}

/// Converts a value that is not NULL.
pub fn convert<'a>(
    path: &CastPath,
    value: Datum<'a>,
    from: Type,
    to: Type,
    explicit: bool,
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    let converted = match path {
        CastPath::Relabel => return Ok(value),
        CastPath::Length => value,
        CastPath::Function(function) => call_function(function, &[value], context)?,
        CastPath::Output => Datum::Text(output(value, from, context)?),
        CastPath::Input => {
            let input = match value {
                Datum::Text(input) | Datum::Padded(input) => input,
                other => output(other, from, context)?,
            };
            // The length is applied below: a cast cuts text that an input refuses.
            let plain = if explicit { Type::new(to.oid) } else { to };
            text::parse(input, plain, context.session, context.arena)?
        }
        CastPath::Elements(element) => {
            let Datum::Array(array) = value else { return Ok(value) };
            let to_element =
                registry::element_of(to.oid).map_or(to, |oid| Type::with_modifier(oid, to.modifier));
            let mut builder = ArrayBuilder::new(to_element.oid);
            let from_element = Type::new(array.element_type());
            for item in array.iter() {
                let item = item?;
                builder.push(if item.is_null() {
                    item
                } else {
                    convert(element, item, from_element, to_element, explicit, context)?
                })?;
            }
            return builder.array_with_in(&array.shape(), context.arena);
        }
    };
    modifier::apply(converted, to, explicit, context.arena)
}

/// A value's text in the arena.
pub fn output<'a>(value: Datum<'a>, ty: Type, context: &EvalContext<'a, '_>) -> Result<&'a str, SqlError> {
    if let Datum::Text(text) | Datum::Padded(text) = value {
        return Ok(text);
    }
    let bytes = text::to_bytes(value, ty, context.session)?;
    work::text_in(encoding::utf8(&bytes)?, context.arena)
}

fn eval_array<'a>(
    elements: &'a [Expr],
    ty: Type,
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    let mut builder = ArrayBuilder::new(registry::element_of(ty.oid).unwrap_or(0));
    // Elements of the array's own type are sub-arrays.
    let nested = elements.first().is_some_and(|element| element.type_().oid == ty.oid);
    if !nested {
        for element in elements {
            tick_part(elements.len())?;
            builder.push(element.eval(context)?)?;
        }
        return builder.array_in(context.arena);
    }
    // The shape of each sub-array; NULL counts as an empty one.
    let mut inner: Option<Vec<(i32, i32)>> = None;
    for element in elements {
        tick_part(elements.len())?;
        let array = match element.eval(context)? {
            Datum::Array(array) => Some(array),
            _ => None,
        };
        let shape = array.map_or_else(Vec::new, ArrayRef::shape);
        if inner.get_or_insert_with(|| shape.clone()) != &shape {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "multidimensional arrays must have array expressions with matching dimensions",
            ));
        }
        if let Some(array) = array {
            array.iter().try_for_each(|value| builder.push(value?))?;
        }
    }
    let inner = inner.unwrap_or_default();
    if inner.is_empty() {
        return builder.array_in(context.arena);
    }
    if inner.len() >= MAX_DIMENSIONS {
        return Err(too_many_dimensions(inner.len() + 1));
    }
    let mut dimensions = vec![(elements.len() as i32, 1)];
    dimensions.extend(inner);
    builder.array_with_in(&dimensions, context.arena)
}

fn eval_row<'a>(fields: &'a [Expr], context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
    let arena: &'a Bump = context.arena;
    let values = arena.alloc_slice_fill_copy(fields.len(), Datum::Null);
    for (slot, field) in values.iter_mut().zip(fields) {
        tick_part(fields.len())?;
        *slot = field.eval(context)?;
    }
    let types = arena.alloc_slice_fill_iter(fields.iter().map(Expr::type_));
    Ok(Datum::Record(arena.alloc(RecordRef { types, fields: values })))
}

fn eval_subscript<'a>(
    array: &'a Expr,
    indexes: &'a [Expr],
    context: &mut EvalContext<'a, '_>,
) -> Result<Datum<'a>, SqlError> {
    let Datum::Array(array) = array.eval(context)? else {
        // PostgreSQL has already computed subscripts that are constants, and their errors end the
        // statement.
        let known = |index: &&Expr| index.is_row_free() && index.volatility() < Volatility::Volatile;
        for index in indexes.iter().filter(known) {
            index.eval(context)?;
        }
        return Ok(Datum::Null);
    };
    let (mut subscripts, mut null) = (Vec::with_capacity(indexes.len()), false);
    for index in indexes {
        match index.eval(context)? {
            Datum::Int4(index) => subscripts.push(index),
            _ => null = true,
        }
    }
    Ok(if null { Datum::Null } else { array.get(&subscripts)?.unwrap_or(Datum::Null) })
}

/// Arguments of fewer bytes in total are not large.
const LARGE: usize = 64 << 10;
/// The most memory of a call, as a multiple of its arguments' size: the result, and copies on the
/// way to it.
const COPIES: usize = 3;

/// Asks for the memory of a call over large values when its result may be large too.
#[inline]
fn ask_for_call(function: &'static Function, arguments: &[Datum<'_>]) -> Result<(), SqlError> {
    let size = arguments.iter().map(memory::bytes_of).sum();
    if size < LARGE { Ok(()) } else { ask_for_large_call(function, size) }
}

#[cold]
fn ask_for_large_call(function: &'static Function, size: usize) -> Result<(), SqlError> {
    // A copy made before this point may have yielded and left its interrupt.
    work::tick(0)?;
    let small = matches!(
        function.result,
        oid::BOOL | oid::CHAR | oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::OID
    );
    if small { Ok(()) } else { memory::ask(size.saturating_mul(COPIES)) }
}
