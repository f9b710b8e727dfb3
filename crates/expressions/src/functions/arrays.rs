//! Functions over arrays.
//!
//! What must hold:
//!
//! 1. A result has the element type of its array argument, whatever its elements are.
//! 2. The product of a shape's lengths is the number of elements, and an array without elements has
//!    no dimensions ([`shaped`]).
//! 3. A lower bound and the bound behind the last element fit int4, so subscripts never overflow.
//! 4. Elements are equal as `compare` says, where two NULLs are equal. `@>` and `&&` leave NULLs
//!    out.

use super::arguments::{array, give_text, int, text};
use super::bad_argument;
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::{ArrayBuilder, ArrayRef, Datum, Type, compare, oid};
use values::work;
use values::{encoding, text as type_text};

type Result<T> = std::result::Result<T, SqlError>;

const ANY: u32 = oid::ANYARRAY;
/// An array and an element, which a call casts to one common element type.
const SAME: u32 = oid::ANYCOMPATIBLEARRAY;
const ITEM: u32 = oid::ANYCOMPATIBLE;
const I4: u32 = oid::INT4;

fn rebuilt<'a>(
    element: u32,
    values: impl Iterator<Item = Result<Datum<'a>>>,
    cx: &EvalContext<'a, '_>,
) -> Result<Datum<'a>> {
    let mut builder = ArrayBuilder::new(element);
    push_all(&mut builder, values)?;
    builder.array_in(cx.arena)
}

/// The index of the first element that equals `item`, which is not NULL. Counts its work.
fn place(list: ArrayRef<'_>, item: Datum<'_>) -> Result<Option<usize>> {
    for (at, value) in list.iter().enumerate() {
        if compare(value?, item)?.is_eq() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The type of an element where no array gives it.
fn type_of(value: Datum<'_>) -> u32 {
    match value {
        Datum::Bool(_) => oid::BOOL,
        Datum::Char(_) => oid::CHAR,
        Datum::Int2(_) => oid::INT2,
        Datum::Int4(_) => oid::INT4,
        Datum::Int8(_) => oid::INT8,
        Datum::Float4(_) => oid::FLOAT4,
        Datum::Float8(_) => oid::FLOAT8,
        Datum::Numeric(_) => oid::NUMERIC,
        Datum::Bytea(_) => oid::BYTEA,
        Datum::Date(_) => oid::DATE,
        Datum::Time(_) => oid::TIME,
        Datum::Timestamp(_) => oid::TIMESTAMP,
        Datum::Timestamptz(_) => oid::TIMESTAMPTZ,
        Datum::Interval(_) => oid::INTERVAL,
        Datum::Oid(_) => oid::OID,
        Datum::Uuid(_) => oid::UUID,
        _ => oid::TEXT,
    }
}

/// The array of the builder's elements with these lengths and lower bounds.
fn shaped<'a>(builder: &ArrayBuilder, shape: &[(i32, i32)], cx: &EvalContext<'a, '_>) -> Result<Datum<'a>> {
    if let Some((_, lower)) = shape.iter().find(|(length, lower)| lower.checked_add(*length).is_none()) {
        let message = format!("array lower bound is too large: {lower}");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    builder.array_with_in(if builder.is_empty() { &[] } else { shape }, cx.arena)
}

fn push_all<'a>(builder: &mut ArrayBuilder, values: impl Iterator<Item = Result<Datum<'a>>>) -> Result<()> {
    for value in values {
        let before = builder.size();
        builder.push(value?)?;
        work::tick(builder.size() - before + 16)?;
    }
    Ok(())
}

/// 22003: the array would have more elements than PostgreSQL allows.
fn too_many(what: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"))
}

fn append<'a>(cx: &EvalContext<'a, '_>, list: Datum<'a>, item: Datum<'a>, front: bool) -> Result<Datum<'a>> {
    if list.is_null() {
        return rebuilt(type_of(item), std::iter::once(Ok(item)), cx);
    }
    let list = array(list)?;
    let (length, lower) = match list.dimensions() {
        0 => (0, 1),
        1 => list.dimension(0).unwrap_or((0, 1)),
        _ => {
            let message = "argument must be empty or one-dimensional array";
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
        }
    };
    let fits = if front { lower.checked_sub(1) } else { lower.checked_add(length) };
    fits.ok_or_else(|| too_many("integer"))?;
    let mut builder = ArrayBuilder::new(list.element_type());
    push_all(&mut builder, front.then_some(Ok(item)).into_iter())?;
    push_all(&mut builder, list.iter())?;
    push_all(&mut builder, (!front).then_some(Ok(item)).into_iter())?;
    shaped(&builder, &[(length + 1, lower)], cx)
}

/// The shape of two non-empty arrays joined. Arrays of equal dimensions are joined along the
/// outermost one; an array of one dimension less becomes an element of the other.
fn joined(left: &[(i32, i32)], right: &[(i32, i32)]) -> Result<Vec<(i32, i32)>> {
    let refused = |detail: String| {
        let message = "cannot concatenate incompatible arrays";
        Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message).with_detail(detail))
    };
    let (mut shape, added, inner, kind) = match left.len() as i64 - right.len() as i64 {
        0 => (left.to_vec(), right[0].0, &right[1..], "element dimensions"),
        -1 => (right.to_vec(), 1, left, "dimensions"),
        1 => (left.to_vec(), 1, right, "dimensions"),
        _ => {
            return refused(format!(
                "Arrays of {} and {} dimensions are not compatible for concatenation.",
                left.len(),
                right.len()
            ));
        }
    };
    if shape[1..] != *inner {
        return refused(format!("Arrays with differing {kind} are not compatible for concatenation."));
    }
    shape[0].0 = shape[0].0.checked_add(added).ok_or_else(|| too_many("array size"))?;
    Ok(shape)
}

fn concatenate<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() || a[1].is_null() {
        return Ok(if a[0].is_null() { a[1] } else { a[0] });
    }
    let (left, right) = (array(a[0])?, array(a[1])?);
    if left.dimensions() == 0 || right.dimensions() == 0 {
        return Ok(if right.dimensions() == 0 { a[0] } else { a[1] });
    }
    let shape = joined(&left.shape(), &right.shape())?;
    let mut builder = ArrayBuilder::new(left.element_type());
    push_all(&mut builder, left.iter())?;
    push_all(&mut builder, right.iter())?;
    shaped(&builder, &shape, cx)
}

/// Fails with 0A000 for an array of several dimensions.
fn one_dimension(list: ArrayRef<'_>, what: &str) -> Result<()> {
    if list.dimensions() <= 1 {
        return Ok(());
    }
    let message = format!("{what} multidimensional arrays is not supported");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// The subscript of the first element that equals the item, at or after a subscript.
fn position<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let list = array(a[0])?;
    one_dimension(list, "searching for elements in")?;
    let first = match a.get(2) {
        Some(first) if first.is_null() => {
            let message = "initial position must not be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        Some(first) => int(*first)?,
        None => i64::from(i32::MIN),
    };
    let lower = list.dimension(0).map_or(1, |(_, lower)| i64::from(lower));
    for (at, value) in (lower..).zip(list.iter()) {
        let value = value?;
        if at >= first && compare(value, a[1])?.is_eq() {
            return Ok(Datum::Int4(at as i32));
        }
    }
    Ok(Datum::Null)
}

/// All subscripts of elements that equal the item.
fn positions<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let list = array(a[0])?;
    one_dimension(list, "searching for elements in")?;
    let lower = list.dimension(0).map_or(1, |(_, lower)| lower);
    let mut builder = ArrayBuilder::new(oid::INT4);
    for (at, value) in (lower..).zip(list.iter()) {
        if compare(value?, a[1])?.is_eq() {
            builder.push(Datum::Int4(at))?;
        }
    }
    shaped(&builder, &[(builder.len() as i32, 1)], cx)
}

fn remove<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let list = array(a[0])?;
    one_dimension(list, "removing elements from")?;
    let lower = list.dimension(0).map_or(1, |(_, lower)| lower);
    let mut builder = ArrayBuilder::new(list.element_type());
    for value in list.iter() {
        let value = value?;
        if compare(value, a[1])?.is_ne() {
            builder.push(value)?;
        }
    }
    shaped(&builder, &[(builder.len() as i32, lower)], cx)
}

fn replace<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let list = array(a[0])?;
    let mut builder = ArrayBuilder::new(list.element_type());
    for value in list.iter() {
        let value = value?;
        builder.push(if compare(value, a[1])?.is_eq() { a[2] } else { value })?;
    }
    shaped(&builder, &list.shape(), cx)
}

/// The array's bounds as text.
fn bounds<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let shape = array(a[0])?.shape();
    if shape.is_empty() {
        return Ok(Datum::Null);
    }
    let shown: String =
        shape.iter().map(|(length, lower)| format!("[{lower}:{}]", lower + (length - 1))).collect();
    give_text(&shown, cx.arena)
}

/// The subscripts of a dimension.
fn subscripts<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let mut builder = ArrayBuilder::new(oid::INT4);
    if let Some((length, lower)) = dimension(a)? {
        push_all(&mut builder, (lower..).take(length as usize).map(|at| Ok(Datum::Int4(at))))?;
    }
    shaped(&builder, &[(builder.len() as i32, 1)], cx)
}

fn to_text<'a>(cx: &EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() || a[1].is_null() {
        return Ok(Datum::Null);
    }
    let list = array(a[0])?;
    let (delimiter, null) = (text(a[1])?, a.get(2).and_then(|null| text(*null).ok()));
    let mut out = String::new();
    let mut first = true;
    for value in list.iter() {
        let value = value?;
        if value.is_null() && null.is_none() {
            continue;
        }
        if !first {
            work::push(&mut out, delimiter)?;
        }
        first = false;
        work::tick(delimiter.len() + 16)?;
        match null {
            Some(null) if value.is_null() => work::push(&mut out, null)?,
            _ => {
                let shown = type_text::to_bytes(value, Type::new(list.element_type()), cx.session)?;
                work::push(&mut out, encoding::utf8(&shown)?)?;
            }
        }
    }
    give_text(&out, cx.arena)
}

fn contains(container: ArrayRef<'_>, items: ArrayRef<'_>) -> Result<bool> {
    for item in items.iter() {
        let item = item?;
        if item.is_null() || place(container, item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overlaps(left: ArrayRef<'_>, right: ArrayRef<'_>) -> Result<bool> {
    for item in right.iter() {
        let item = item?;
        if !item.is_null() && place(left, item)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn dimension(a: &[Datum<'_>]) -> Result<Option<(i32, i32)>> {
    let index = int(a[1])?;
    Ok(if index < 1 { None } else { array(a[0])?.dimension(index as usize - 1) })
}

fn give<'a>(value: Option<i32>) -> Result<Datum<'a>> {
    Ok(value.map_or(Datum::Null, Datum::Int4))
}

pub(super) static FUNCTIONS: &[Function] = &[
    func("generate_subscripts", &[ANY, I4], oid::INT4_ARRAY, subscripts),
    // The numbers from 1 to the number of elements. SQL cannot call this name.
    func("element numbers", &[ANY], oid::INT4_ARRAY, |cx, a| {
        let mut builder = ArrayBuilder::new(oid::INT4);
        push_all(&mut builder, (1..).take(array(a[0])?.len()).map(|at| Ok(Datum::Int4(at))))?;
        shaped(&builder, &[(builder.len() as i32, 1)], cx)
    }),
    // The call of a field selection. Its result has the field's type.
    func("record_field", &[oid::RECORD, oid::INT4], oid::ANY, |_, a| match a[0] {
        Datum::Record(record) => {
            let place = usize::try_from(int(a[1])?).unwrap_or(usize::MAX);
            record.fields.get(place).copied().ok_or_else(|| bad_argument("record_field"))
        }
        _ => Err(bad_argument("record_field")),
    }),
    func("num_nulls", &[oid::ANY], I4, |_, a| {
        Ok(Datum::Int4(a.iter().filter(|value| value.is_null()).count() as i32))
    })
    .lax()
    .any_number(),
    func("num_nonnulls", &[oid::ANY], I4, |_, a| {
        Ok(Datum::Int4(a.iter().filter(|value| !value.is_null()).count() as i32))
    })
    .lax()
    .any_number(),
    func("array_length", &[ANY, I4], I4, |_, a| give(dimension(a)?.map(|(length, _)| length))),
    func("array_lower", &[ANY, I4], I4, |_, a| give(dimension(a)?.map(|(_, lower)| lower))),
    func("array_upper", &[ANY, I4], I4, |_, a| {
        give(dimension(a)?.map(|(length, lower)| lower + (length - 1)))
    }),
    func("array_ndims", &[ANY], I4, |_, a| {
        give(Some(array(a[0])?.dimensions() as i32).filter(|count| *count > 0))
    }),
    func("cardinality", &[ANY], I4, |_, a| Ok(Datum::Int4(array(a[0])?.len() as i32))),
    func("array_append", &[SAME, ITEM], SAME, |cx, a| append(cx, a[0], a[1], false)).lax(),
    func("array_prepend", &[ITEM, SAME], SAME, |cx, a| append(cx, a[1], a[0], true)).lax(),
    func("array_cat", &[SAME, SAME], SAME, concatenate).lax(),
    func("array_append_operator", &[SAME, ITEM], SAME, |cx, a| append(cx, a[0], a[1], false)).lax().op("||"),
    func("array_prepend_operator", &[ITEM, SAME], SAME, |cx, a| append(cx, a[1], a[0], true)).lax().op("||"),
    func("array_cat_operator", &[SAME, SAME], SAME, concatenate).lax().op("||"),
    func("array_to_string", &[ANY, oid::TEXT], oid::TEXT, |cx, a| to_text(cx, a)).lax().stable(),
    func("array_to_string", &[ANY, oid::TEXT, oid::TEXT], oid::TEXT, |cx, a| to_text(cx, a)).lax().stable(),
    func("array_dims", &[ANY], oid::TEXT, bounds),
    func("array_position", &[SAME, ITEM], I4, |_, a| position(a)).lax(),
    func("array_position", &[SAME, ITEM, I4], I4, |_, a| position(a)).lax(),
    func("array_positions", &[SAME, ITEM], oid::INT4_ARRAY, positions).lax(),
    func("array_remove", &[SAME, ITEM], SAME, remove).lax(),
    func("array_replace", &[SAME, ITEM, ITEM], SAME, replace).lax(),
    func("arraycontains", &[ANY, ANY], oid::BOOL, |_, a| {
        Ok(Datum::Bool(contains(array(a[0])?, array(a[1])?)?))
    })
    .op("@>"),
    func("arraycontained", &[ANY, ANY], oid::BOOL, |_, a| {
        Ok(Datum::Bool(contains(array(a[1])?, array(a[0])?)?))
    })
    .op("<@"),
    func("arrayoverlap", &[ANY, ANY], oid::BOOL, |_, a| {
        Ok(Datum::Bool(overlaps(array(a[0])?, array(a[1])?)?))
    })
    .op("&&"),
];
