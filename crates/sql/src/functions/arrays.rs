//! Functions over arrays.

use super::arguments::{array, give_text, int, text};
use super::{Function, bad_argument, func};
use crate::error::SqlError;
use crate::expr::EvalContext;
use crate::types::{ArrayBuilder, ArrayRef, Datum, Type, compare, oid, text as type_text};
use crate::work;

type Result<T> = std::result::Result<T, SqlError>;

const ANY: u32 = oid::ANYARRAY;
const ITEM: u32 = oid::ANYELEMENT;
const I4: u32 = oid::INT4;

fn rebuilt<'a>(
    element: u32,
    values: impl Iterator<Item = Datum<'a>>,
    cx: &EvalContext<'a, '_>,
) -> Result<Datum<'a>> {
    let mut builder = ArrayBuilder::new(element);
    for value in values {
        let before = builder.size();
        builder.push(value);
        work::tick(builder.size() - before + 16)?;
    }
    Ok(Datum::Array(ArrayRef(work::bytes_in(&builder.finish(), cx.arena))))
}

/// The first element that equals a value which is not NULL. Counts its work.
fn place(list: ArrayRef<'_>, item: Datum<'_>) -> Result<Option<usize>> {
    for (at, value) in list.iter().enumerate() {
        work::tick(16)?;
        if compare(value, item).is_eq() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The type an element has when there is no array to ask.
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

fn append<'a>(cx: &EvalContext<'a, '_>, list: Datum<'a>, item: Datum<'a>, front: bool) -> Result<Datum<'a>> {
    let item_first = front.then_some(item).into_iter();
    let item_last = (!front).then_some(item).into_iter();
    if list.is_null() {
        return rebuilt(type_of(item), std::iter::once(item), cx);
    }
    let list = array(list)?;
    rebuilt(list.element_type(), item_first.chain(list.iter()).chain(item_last), cx)
}

fn concatenate<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    if a[0].is_null() || a[1].is_null() {
        return Ok(if a[0].is_null() { a[1] } else { a[0] });
    }
    let (left, right) = (array(a[0])?, array(a[1])?);
    rebuilt(left.element_type(), left.iter().chain(right.iter()), cx)
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
                work::push(
                    &mut out,
                    &type_text::to_string(value, Type::new(list.element_type()), cx.session),
                )?;
            }
        }
    }
    Ok(give_text(&out, cx.arena))
}

fn contains(container: ArrayRef<'_>, items: ArrayRef<'_>) -> Result<bool> {
    for item in items.iter() {
        if item.is_null() || place(container, item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overlaps(left: ArrayRef<'_>, right: ArrayRef<'_>) -> Result<bool> {
    for item in right.iter() {
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
    // Subscripts of a dimension, the first one given.
    func("generate_subscripts", &[oid::ANYARRAY, oid::INT4, oid::INT4], oid::INT4_ARRAY, |cx, a| {
        let (count, first) = (array(a[0])?.iter().count(), int(a[2])? as i32);
        let mut builder = ArrayBuilder::new(oid::INT4);
        if int(a[1])? == 1 {
            for number in (first..).take(count) {
                builder.push(Datum::Int4(number));
                work::tick(16)?;
            }
        }
        Ok(Datum::Array(ArrayRef(work::bytes_in(&builder.finish(), cx.arena))))
    }),
    // What a field selection becomes; its result has the field's type.
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
    func("array_upper", &[ANY, I4], I4, |_, a| give(dimension(a)?.map(|(length, lower)| lower + length - 1))),
    func("array_ndims", &[ANY], I4, |_, a| {
        give(Some(array(a[0])?.dimensions() as i32).filter(|count| *count > 0))
    }),
    func("cardinality", &[ANY], I4, |_, a| Ok(Datum::Int4(array(a[0])?.len() as i32))),
    func("array_append", &[ANY, ITEM], ANY, |cx, a| append(cx, a[0], a[1], false)).lax(),
    func("array_prepend", &[ITEM, ANY], ANY, |cx, a| append(cx, a[1], a[0], true)).lax(),
    func("array_cat", &[ANY, ANY], ANY, concatenate).lax(),
    func("array_append_operator", &[ANY, ITEM], ANY, |cx, a| append(cx, a[0], a[1], false)).lax().op("||"),
    func("array_prepend_operator", &[ITEM, ANY], ANY, |cx, a| append(cx, a[1], a[0], true)).lax().op("||"),
    func("array_cat_operator", &[ANY, ANY], ANY, concatenate).lax().op("||"),
    func("array_to_string", &[ANY, oid::TEXT], oid::TEXT, |cx, a| to_text(cx, a)).lax().stable(),
    func("array_to_string", &[ANY, oid::TEXT, oid::TEXT], oid::TEXT, |cx, a| to_text(cx, a)).lax().stable(),
    func("array_position", &[ANY, ITEM], I4, |_, a| give(place(array(a[0])?, a[1])?.map(|at| at as i32 + 1)))
        .lax(),
    func("array_remove", &[ANY, ITEM], ANY, |cx, a| {
        let (list, item) = (array(a[0])?, a[1]);
        rebuilt(list.element_type(), list.iter().filter(move |value| compare(*value, item).is_ne()), cx)
    })
    .lax(),
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
