//! Values: [`Datum`], a small copyable view that lives in a row, an arena or a plan, and [`Value`],
//! the owned form.
//!
//! A datum does not know its SQL type: the expression or the column does. `Text` serves text,
//! varchar, name and unknown, and `Oid` every OID alias type. bpchar is `Padded`, separate from
//! text, because it always compares without its trailing blanks.
//!
//! What must hold:
//!
//! 1. A type has one representation. Comparison, keys and rows choose by it and never ask for the
//!    type.
//! 2. A text is UTF-8 without zero bytes: who makes one from bytes checks it.
//! 3. The extremes of dates, timestamps and intervals are the infinities.
//! 4. [`Datum::OutOfLine`] stands in stored rows only. Code that expects a value panics on it,
//!    because a pointer taken for a value would be a wrong answer.
//! 5. A record has no view without an arena: [`Value::datum`] gives NULL for it, so callers that
//!    may meet one use [`Value::datum_in`].

use super::{ArrayRef, Interval, NumericRef, Type};
use crate::error::SqlError;
use crate::work;

/// A value, or NULL. At most 24 bytes, passed by copy.
#[derive(Clone, Copy, Debug)]
pub enum Datum<'a> {
    /// SQL NULL.
    Null,
    /// bool
    Bool(bool),
    /// "char", one byte
    Char(u8),
    /// int2
    Int2(i16),
    /// int4
    Int4(i32),
    /// int8
    Int8(i64),
    /// float4
    Float4(f32),
    /// float8
    Float8(f64),
    /// numeric
    Numeric(NumericRef<'a>),
    /// text, varchar, name, unknown, cstring; void is the empty text
    Text(&'a str),
    /// bpchar with its trailing blanks: output shows them, comparisons and keys ignore them
    Padded(&'a str),
    /// bytea
    Bytea(&'a [u8]),
    /// date: days since 2000-01-01; `i32::MIN` and `MAX` are the infinities
    Date(i32),
    /// time: microseconds since midnight
    Time(i64),
    /// timestamp: microseconds since 2000-01-01; `i64::MIN` and `MAX` are the infinities
    Timestamp(i64),
    /// timestamptz: microseconds since 2000-01-01 UTC
    Timestamptz(i64),
    /// interval
    Interval(Interval),
    /// oid, regclass, regtype, xid, cid ...
    Oid(u32),
    /// uuid
    Uuid(&'a [u8; 16]),
    /// an array of any element type, int2vector and oidvector
    Array(ArrayRef<'a>),
    /// a row value; never stored
    Record(&'a RecordRef<'a>),
    /// A stored out-of-line value that was not fetched. Only code that reads, writes or checks
    /// stored rows meets it: the registers of an expression hold the value itself.
    OutOfLine(OutOfLinePointer),
}

const _: () = assert!(size_of::<Datum<'static>>() <= 24);

/// The pointer to an out-of-line value, which a row holds in the value's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfLinePointer {
    /// The value's number among those of its table.
    pub number: u64,
    /// Its length in bytes.
    pub length: u32,
}

/// A row value.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// Types of the fields.
    pub types: &'a [Type],
    /// The fields.
    pub fields: &'a [Datum<'a>],
}

/// An owned value: constants of plans, parameters, aggregate states.
#[derive(Clone, Debug)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// bool
    Bool(bool),
    /// "char"
    Char(u8),
    /// int2
    Int2(i16),
    /// int4
    Int4(i32),
    /// int8
    Int8(i64),
    /// float4
    Float4(f32),
    /// float8
    Float8(f64),
    /// numeric, packed
    Numeric(Box<[u8]>),
    /// text and its like
    Text(Box<str>),
    /// bpchar
    Padded(Box<str>),
    /// bytea
    Bytea(Box<[u8]>),
    /// date
    Date(i32),
    /// time
    Time(i64),
    /// timestamp
    Timestamp(i64),
    /// timestamptz
    Timestamptz(i64),
    /// interval
    Interval(Interval),
    /// the OID family
    Oid(u32),
    /// uuid
    Uuid([u8; 16]),
    /// array, packed
    Array(Box<[u8]>),
    /// row value
    Record(Box<[(Type, Value)]>),
}

impl OutOfLinePointer {
    /// Panics: the caller used a pointer as its value. No answer is better than a wrong one.
    #[cold]
    pub(crate) fn unfetched(self) -> ! {
        unreachable!("{self:?} is used as a value and was not fetched")
    }
}

impl Datum<'_> {
    /// Whether the value is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Whether the datum points to an out-of-line value.
    #[inline]
    pub fn is_out_of_line(&self) -> bool {
        matches!(self, Datum::OutOfLine(_))
    }

    /// A copy in the arena. Fails when an interrupt ends the statement while a long value is
    /// copied.
    pub fn copy_in<'b>(&self, arena: &'b bumpalo::Bump) -> Result<Datum<'b>, SqlError> {
        Ok(match *self {
            Datum::Null => Datum::Null,
            Datum::Bool(v) => Datum::Bool(v),
            Datum::Char(v) => Datum::Char(v),
            Datum::Int2(v) => Datum::Int2(v),
            Datum::Int4(v) => Datum::Int4(v),
            Datum::Int8(v) => Datum::Int8(v),
            Datum::Float4(v) => Datum::Float4(v),
            Datum::Float8(v) => Datum::Float8(v),
            Datum::Numeric(v) => Datum::Numeric(NumericRef(work::bytes_in(v.0, arena)?)),
            Datum::Text(v) => Datum::Text(work::text_in(v, arena)?),
            Datum::Padded(v) => Datum::Padded(work::text_in(v, arena)?),
            Datum::Bytea(v) => Datum::Bytea(work::bytes_in(v, arena)?),
            Datum::Date(v) => Datum::Date(v),
            Datum::Time(v) => Datum::Time(v),
            Datum::Timestamp(v) => Datum::Timestamp(v),
            Datum::Timestamptz(v) => Datum::Timestamptz(v),
            Datum::Interval(v) => Datum::Interval(v),
            Datum::Oid(v) => Datum::Oid(v),
            Datum::Uuid(v) => Datum::Uuid(arena.alloc(*v)),
            Datum::Array(v) => Datum::Array(ArrayRef(work::bytes_in(v.0, arena)?)),
            Datum::Record(v) => {
                let fields = arena.alloc_slice_fill_copy(v.fields.len(), Datum::Null);
                for (copy, field) in fields.iter_mut().zip(v.fields) {
                    *copy = field.copy_in(arena)?;
                }
                Datum::Record(arena.alloc(RecordRef { types: arena.alloc_slice_copy(v.types), fields }))
            }
            Datum::OutOfLine(v) => Datum::OutOfLine(v),
        })
    }

    /// An owned copy. Fails as [`Datum::copy_in`] does.
    pub fn to_value(&self) -> Result<Value, SqlError> {
        Ok(match *self {
            Datum::Null => Value::Null,
            Datum::Bool(v) => Value::Bool(v),
            Datum::Char(v) => Value::Char(v),
            Datum::Int2(v) => Value::Int2(v),
            Datum::Int4(v) => Value::Int4(v),
            Datum::Int8(v) => Value::Int8(v),
            Datum::Float4(v) => Value::Float4(v),
            Datum::Float8(v) => Value::Float8(v),
            Datum::Numeric(v) => Value::Numeric(v.0.into()),
            Datum::Text(v) => Value::Text(work::owned_text(v)?),
            Datum::Padded(v) => Value::Padded(work::owned_text(v)?),
            Datum::Bytea(v) => Value::Bytea(work::owned_bytes(v)?),
            Datum::Date(v) => Value::Date(v),
            Datum::Time(v) => Value::Time(v),
            Datum::Timestamp(v) => Value::Timestamp(v),
            Datum::Timestamptz(v) => Value::Timestamptz(v),
            Datum::Interval(v) => Value::Interval(v),
            Datum::Oid(v) => Value::Oid(v),
            Datum::Uuid(v) => Value::Uuid(*v),
            Datum::Array(v) => Value::Array(work::owned_bytes(v.0)?),
            Datum::Record(v) => {
                let fields = v.types.iter().zip(v.fields).map(|(ty, field)| Ok((*ty, field.to_value()?)));
                Value::Record(fields.collect::<Result<_, SqlError>>()?)
            }
            Datum::OutOfLine(v) => v.unfetched(),
        })
    }
}

impl Value {
    /// A view of the value. A record needs an arena: see [`Value::datum_in`].
    #[inline]
    pub fn datum(&self) -> Datum<'_> {
        match self {
            Value::Null | Value::Record(_) => Datum::Null,
            Value::Bool(v) => Datum::Bool(*v),
            Value::Char(v) => Datum::Char(*v),
            Value::Int2(v) => Datum::Int2(*v),
            Value::Int4(v) => Datum::Int4(*v),
            Value::Int8(v) => Datum::Int8(*v),
            Value::Float4(v) => Datum::Float4(*v),
            Value::Float8(v) => Datum::Float8(*v),
            Value::Numeric(v) => Datum::Numeric(NumericRef(v)),
            Value::Text(v) => Datum::Text(v),
            Value::Padded(v) => Datum::Padded(v),
            Value::Bytea(v) => Datum::Bytea(v),
            Value::Date(v) => Datum::Date(*v),
            Value::Time(v) => Datum::Time(*v),
            Value::Timestamp(v) => Datum::Timestamp(*v),
            Value::Timestamptz(v) => Datum::Timestamptz(*v),
            Value::Interval(v) => Datum::Interval(*v),
            Value::Oid(v) => Datum::Oid(*v),
            Value::Uuid(v) => Datum::Uuid(v),
            Value::Array(v) => Datum::Array(ArrayRef(v)),
        }
    }

    /// A view of the value, with the fields of records in the arena.
    pub fn datum_in<'a>(&'a self, arena: &'a bumpalo::Bump) -> Datum<'a> {
        match self {
            Value::Record(fields) => Datum::Record(arena.alloc(RecordRef {
                types: arena.alloc_slice_fill_iter(fields.iter().map(|(ty, _)| *ty)),
                fields: arena.alloc_slice_fill_iter(fields.iter().map(|(_, value)| value.datum_in(arena))),
            })),
            other => other.datum(),
        }
    }
}
