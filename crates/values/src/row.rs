//! Rows: many values as bytes. A reader finds a single column without reading the others.
//!
//! The layout (docs/formats.md), all integers little endian, nothing aligned:
//!
//! - number of columns (u16);
//! - flags (u8): bit 0 = has NULLs, bit 1 = has out-of-line values;
//! - when the row has NULLs, a bitmap with a 1 for each;
//! - the fixed-width columns in order; NULL ones take no room;
//! - the end offsets (u32) of the variable columns that are not NULL, from the start of the
//!   variable part;
//! - the bytes of the variable columns.
//!
//! The highest bit of an end offset marks a pointer to an out-of-line value. In a row without NULLs
//! every fixed column lies at an offset known from the shape alone.
//!
//! What must hold:
//!
//! 1. A row may have fewer columns than its shape: the others were added after the row was written.
//!    They read as their missing values, or as NULL. So a shape only grows at its end.
//! 2. A column keeps its type for as long as rows of the shape exist. Another type needs new rows.
//! 3. Bytes that no writer made are an error and no panic: the offline check reads damaged rows.

use crate::error::{SqlError, SqlState};
use crate::types::{ArrayRef, Datum, Interval, NumericRef, OutOfLinePointer, Type, oid, registry};

/// The encoding of a column's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Char,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Oid,
    Uuid,
    Numeric,
    Text,
    Padded,
    Bytea,
    Array,
}

impl Kind {
    fn of(ty: Type) -> Kind {
        match ty.oid {
            oid::BOOL => Kind::Bool,
            oid::CHAR => Kind::Char,
            oid::INT2 => Kind::Int2,
            oid::INT4 => Kind::Int4,
            oid::INT8 => Kind::Int8,
            oid::FLOAT4 => Kind::Float4,
            oid::FLOAT8 => Kind::Float8,
            oid::DATE => Kind::Date,
            oid::TIME => Kind::Time,
            oid::TIMESTAMP => Kind::Timestamp,
            oid::TIMESTAMPTZ => Kind::Timestamptz,
            oid::INTERVAL => Kind::Interval,
            oid::UUID => Kind::Uuid,
            oid::NUMERIC => Kind::Numeric,
            oid::BYTEA => Kind::Bytea,
            oid::TEXT | oid::VARCHAR | oid::NAME | oid::UNKNOWN | oid::VOID | oid::JSON => Kind::Text,
            oid::BPCHAR => Kind::Padded,
            other if registry::is_array(other) => Kind::Array,
            _ => Kind::Oid,
        }
    }

    /// Bytes of a fixed-width value; 0 for a variable-width one.
    fn width(self) -> u32 {
        match self {
            Kind::Bool | Kind::Char => 1,
            Kind::Int2 => 2,
            Kind::Int4 | Kind::Float4 | Kind::Date | Kind::Oid => 4,
            Kind::Int8 | Kind::Float8 | Kind::Time | Kind::Timestamp | Kind::Timestamptz => 8,
            Kind::Interval | Kind::Uuid => 16,
            Kind::Numeric | Kind::Text | Kind::Padded | Kind::Bytea | Kind::Array => 0,
        }
    }
}

/// A column of a shape.
#[derive(Clone, Copy, Debug)]
struct Column {
    kind: Kind,
    /// For a fixed column, the bytes of the fixed columns before it. For a variable column, the
    /// number of variable columns before it.
    before: u32,
}

/// The widths and offsets that locate a column in a row's bytes: computed once per table version.
#[derive(Debug, Clone)]
pub struct RowShape {
    columns: Box<[Column]>,
    /// Bytes of all fixed columns, and the number of variable ones.
    totals: (u32, u32),
    /// The missing value of each column as stored bytes; empty if no column has one.
    missing: Box<[Option<Box<[u8]>>]>,
}

impl RowShape {
    /// The shape of rows of these types.
    pub fn new(types: &[Type]) -> RowShape {
        let (mut fixed, mut variable) = (0, 0);
        let columns = types
            .iter()
            .map(|ty| {
                let kind = Kind::of(*ty);
                let counter = if kind.width() > 0 { &mut fixed } else { &mut variable };
                let before = *counter;
                *counter += kind.width().max(1);
                Column { kind, before }
            })
            .collect();
        RowShape { columns, totals: (fixed, variable), missing: Box::default() }
    }

    /// The same shape with missing values. Each has the bytes that [`encode_value`] made.
    #[must_use]
    pub fn with_missing(self, missing: impl Iterator<Item = (usize, Box<[u8]>)>) -> RowShape {
        let mut all = Vec::new();
        for (column, bytes) in missing.filter(|(column, _)| *column < self.len()) {
            all.resize_with(self.len(), || None);
            all[column] = Some(bytes);
        }
        RowShape { missing: all.into(), ..self }
    }

    /// The value of a column in rows that were written before the column existed. NULL without a
    /// missing value.
    #[cold]
    pub fn missing(&self, column: usize) -> Result<Datum<'_>, SqlError> {
        let (Some(Some(bytes)), Some(column)) = (self.missing.get(column), self.columns.get(column)) else {
            return Ok(Datum::Null);
        };
        let value = match column.kind.width() {
            0 => column.value(bytes),
            _ => read_fixed(column.kind, bytes),
        };
        value.ok_or_else(corrupt)
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the shape has no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Bytes of the fixed columns and number of the variable ones among the first `count`.
    fn totals(&self, count: usize) -> (usize, usize) {
        if count >= self.len() {
            return (self.totals.0 as usize, self.totals.1 as usize);
        }
        let (mut fixed, mut variable) = (0, 0);
        for column in &self.columns[..count] {
            fixed += column.kind.width() as usize;
            variable += usize::from(column.kind.width() == 0);
        }
        (fixed, variable)
    }
}

impl Column {
    /// A variable-width value from its bytes.
    fn value<'a>(&self, bytes: &'a [u8]) -> Option<Datum<'a>> {
        Some(match self.kind {
            Kind::Text => Datum::Text(runtime::work::utf8(bytes).ok()?),
            Kind::Padded => Datum::Padded(runtime::work::utf8(bytes).ok()?),
            Kind::Numeric => Datum::Numeric(NumericRef(bytes)),
            Kind::Array => Datum::Array(ArrayRef(bytes)),
            _ => Datum::Bytea(bytes),
        })
    }
}

impl RowShape {
    /// The value of an out-of-line column, from its bytes. Fails when an interrupt ends the
    /// statement.
    pub fn value<'a>(&self, column: usize, bytes: &'a [u8]) -> Result<Datum<'a>, SqlError> {
        let column = self.columns.get(column).ok_or_else(corrupt)?;
        let text = || {
            let text = runtime::work::checked_utf8(bytes).map_err(SqlError::stopped)?;
            text.map_err(|_| corrupt())
        };
        match column.kind {
            Kind::Text => text().map(Datum::Text),
            Kind::Padded => text().map(Datum::Padded),
            _ => column.value(bytes).ok_or_else(corrupt),
        }
    }
}

const HEADER: usize = 3;
/// Flag: some columns are NULL.
const HAS_NULLS: u8 = 1;
/// Flag: some columns hold pointers.
const HAS_OUT_OF_LINE: u8 = 2;
/// Marks an end offset whose column holds a pointer.
const OUT_OF_LINE: u32 = 1 << 31;
/// Bytes of a pointer: the value's number (u64), its length (u32).
pub const POINTER: usize = 12;

/// Whether a row's bytes hold pointers to out-of-line values.
#[inline]
pub fn has_out_of_line(bytes: &[u8]) -> bool {
    bytes.get(2).is_some_and(|flags| flags & HAS_OUT_OF_LINE != 0)
}

/// The stored bytes of a variable-width value; None for another value.
pub fn variable_bytes<'a>(value: Datum<'a>) -> Option<&'a [u8]> {
    match value {
        Datum::Text(v) | Datum::Padded(v) => Some(v.as_bytes()),
        Datum::Bytea(v) | Datum::Numeric(NumericRef(v)) | Datum::Array(ArrayRef(v)) => Some(v),
        _ => None,
    }
}

/// Appends the row's bytes. Returns false when they would take more than `room`; `out` then holds a
/// part of them.
pub fn encode(row: &[Datum<'_>], shape: &RowShape, room: usize, out: &mut Vec<u8>) -> Result<bool, SqlError> {
    let begin = out.len();
    if row.len() > shape.len() {
        return Err(SqlError::internal("a row has more columns than its shape"));
    }
    let has_nulls = row.iter().any(Datum::is_null);
    out.extend_from_slice(&(row.len() as u16).to_le_bytes());
    out.push(if has_nulls { HAS_NULLS } else { 0 });
    if has_nulls {
        let start = out.len();
        out.resize(start + row.len().div_ceil(8), 0);
        for (index, _) in row.iter().enumerate().filter(|(_, value)| value.is_null()) {
            out[start + index / 8] |= 1 << (index % 8);
        }
    }
    let mut variable = 0;
    for (value, column) in row.iter().zip(&shape.columns) {
        if column.kind.width() == 0 {
            variable += usize::from(!value.is_null());
        } else {
            encode_fixed(*value, column.kind, out)?;
        }
    }
    let mut ends = out.len();
    out.resize(ends + variable * 4, 0);
    let start = out.len();
    for (value, column) in row.iter().zip(&shape.columns).filter(|(_, column)| column.kind.width() == 0) {
        let mut mark = 0;
        let bytes = match (*value, column.kind) {
            (Datum::Null, _) => continue,
            (Datum::Text(v), Kind::Text) | (Datum::Padded(v), Kind::Padded) => v.as_bytes(),
            (Datum::Bytea(v), Kind::Bytea)
            | (Datum::Numeric(NumericRef(v)), Kind::Numeric)
            | (Datum::Array(ArrayRef(v)), Kind::Array) => v,
            (Datum::OutOfLine(pointer), _) => {
                mark = OUT_OF_LINE;
                out[begin + 2] |= HAS_OUT_OF_LINE;
                &pointer.encode()
            }
            _ => return Err(mismatch()),
        };
        // The check precedes the copy: a value may have a gigabyte.
        if bytes.len() > room {
            return Ok(false);
        }
        out.extend_from_slice(bytes);
        let end = (out.len() - start) as u32 | mark;
        out[ends..ends + 4].copy_from_slice(&end.to_le_bytes());
        ends += 4;
    }
    Ok(out.len() - begin <= room)
}

/// The stored bytes of a value of a type, by themselves. Fails for NULL, which has none.
pub fn encode_value(value: Datum<'_>, ty: Type) -> Result<Box<[u8]>, SqlError> {
    let kind = Kind::of(ty);
    let mut row = Vec::new();
    encode(&[value], &RowShape::new(&[ty]), usize::MAX, &mut row)?;
    let start = if kind.width() > 0 { HEADER } else { HEADER + 4 };
    match row.get(start..) {
        Some(bytes) if row[2] == 0 => Ok(bytes.into()),
        _ => Err(mismatch()),
    }
}

impl OutOfLinePointer {
    fn encode(self) -> [u8; POINTER] {
        let mut bytes = [0; POINTER];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<OutOfLinePointer> {
        let (number, length) = bytes.split_first_chunk()?;
        let length = u32::from_le_bytes(length.try_into().ok()?);
        Some(OutOfLinePointer { number: u64::from_le_bytes(*number), length })
    }
}

fn encode_fixed(value: Datum<'_>, kind: Kind, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match (value, kind) {
        (Datum::Null, _) => {}
        (Datum::Int4(v), Kind::Int4) | (Datum::Date(v), Kind::Date) => {
            out.extend_from_slice(&v.to_le_bytes())
        }
        (Datum::Int8(v), Kind::Int8)
        | (Datum::Time(v), Kind::Time)
        | (Datum::Timestamp(v), Kind::Timestamp)
        | (Datum::Timestamptz(v), Kind::Timestamptz) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Bool(v), Kind::Bool) => out.push(u8::from(v)),
        (Datum::Char(v), Kind::Char) => out.push(v),
        (Datum::Int2(v), Kind::Int2) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Oid(v), Kind::Oid) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Float4(v), Kind::Float4) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Float8(v), Kind::Float8) => out.extend_from_slice(&v.to_le_bytes()),
        (Datum::Uuid(v), Kind::Uuid) => out.extend_from_slice(v),
        (Datum::Interval(v), Kind::Interval) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

fn mismatch() -> SqlError {
    SqlError::internal("a value does not have its column's type")
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a row's bytes do not fit its shape")
}

/// A row's bytes with their shape.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Their shape.
    pub shape: &'a RowShape,
}

impl<'a> RowView<'a> {
    /// A view of a row.
    pub fn new(bytes: &'a [u8], shape: &'a RowShape) -> RowView<'a> {
        RowView { bytes, shape }
    }

    /// Number of columns that the row was written with.
    #[inline]
    pub fn columns(&self) -> usize {
        self.bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes).into())
    }

    /// One column; [`Datum::OutOfLine`] when its value is out of line. A column added after the row
    /// was written reads as its missing value, or as NULL.
    pub fn get(&self, column: usize) -> Result<Datum<'a>, SqlError> {
        let mut value = Datum::Null;
        self.read(column, &mut value)?;
        Ok(value)
    }

    /// Reads one column into its place, as [`RowView::get`].
    ///
    /// Frequent types are written there and nowhere before: a processor waits some 15 cycles for a
    /// copy of bytes that were just written in pieces.
    pub fn read(&self, column: usize, to: &mut Datum<'a>) -> Result<(), SqlError> {
        let count = self.columns();
        if column >= count {
            *to = self.shape.missing(column)?;
            return Ok(());
        }
        let shape = self.shape.columns.get(column).ok_or_else(corrupt)?;
        self.read_there(column, *shape, count, to).ok_or_else(corrupt)
    }

    #[inline]
    fn read_there(&self, column: usize, shape: Column, count: usize, to: &mut Datum<'a>) -> Option<()> {
        match (self.locate(column, shape, count)?, shape.kind) {
            (Place::Null, _) => *to = Datum::Null,
            (Place::Value(bytes), Kind::Int4) => *to = Datum::Int4(i32::from_le_bytes(*bytes.first_chunk()?)),
            (Place::Value(bytes), Kind::Int8) => *to = Datum::Int8(i64::from_le_bytes(*bytes.first_chunk()?)),
            (Place::Value(bytes), Kind::Text) => *to = Datum::Text(runtime::work::utf8(bytes).ok()?),
            (Place::Value(bytes), kind) if kind.width() > 0 => *to = read_fixed(kind, bytes)?,
            (Place::Value(bytes), _) => *to = shape.value(bytes)?,
            (Place::Pointer(bytes), _) => *to = OutOfLinePointer::decode(bytes).map(Datum::OutOfLine)?,
        }
        Some(())
    }

    /// Where a column's bytes are. Those of a fixed column go on to the row's end.
    #[inline]
    fn locate(&self, column: usize, shape: Column, count: usize) -> Option<Place<'a>> {
        let mut base = HEADER;
        let mut before = shape.before as usize;
        // The fixed bytes and the variable columns that NULLs before the column leave out.
        let (mut fixed_missing, mut variable_missing, mut variable_missing_before) = (0, 0, 0);
        if *self.bytes.get(2)? & HAS_NULLS != 0 {
            let bitmap = self.bytes.get(HEADER..HEADER + count.div_ceil(8))?;
            let is_null = |index: usize| bitmap[index / 8] >> (index % 8) & 1 != 0;
            if is_null(column) {
                return Some(Place::Null);
            }
            base += bitmap.len();
            let upto = if shape.kind.width() > 0 { column } else { count };
            for index in (0..upto).filter(|index| is_null(*index)) {
                let width = self.shape.columns.get(index)?.kind.width() as usize;
                fixed_missing += width;
                if width == 0 {
                    variable_missing += 1;
                    variable_missing_before += usize::from(index < column);
                }
            }
        }
        if shape.kind.width() > 0 {
            return self.bytes.get(base + before - fixed_missing..).map(Place::Value);
        }
        before -= variable_missing_before;
        let (fixed, variable) = self.shape.totals(count);
        let ends = base + fixed - fixed_missing;
        let start = ends + (variable - variable_missing) * 4;
        let end_of = |index: usize| -> Option<u32> {
            let bytes = self.bytes.get(ends + index * 4..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let from = if before == 0 { 0 } else { (end_of(before - 1)? & !OUT_OF_LINE) as usize };
        let end = end_of(before)?;
        let bytes = self.bytes.get(start + from..start + (end & !OUT_OF_LINE) as usize)?;
        Some(if end & OUT_OF_LINE != 0 { Place::Pointer(bytes) } else { Place::Value(bytes) })
    }
}

/// The place of a column's value in a row.
enum Place<'a> {
    Null,
    /// The value's bytes.
    Value(&'a [u8]),
    /// The bytes of a pointer to a value out of line.
    Pointer(&'a [u8]),
}

#[inline]
fn read_fixed(kind: Kind, bytes: &[u8]) -> Option<Datum<'_>> {
    let int4 = || bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
    let int8 = || bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes));
    Some(match kind {
        Kind::Int4 => Datum::Int4(int4()?),
        Kind::Int8 => Datum::Int8(int8()?),
        Kind::Bool => Datum::Bool(*bytes.first()? != 0),
        Kind::Char => Datum::Char(*bytes.first()?),
        Kind::Int2 => Datum::Int2(i16::from_le_bytes(*bytes.first_chunk()?)),
        Kind::Float4 => Datum::Float4(f32::from_le_bytes(*bytes.first_chunk()?)),
        Kind::Float8 => Datum::Float8(f64::from_le_bytes(*bytes.first_chunk()?)),
        Kind::Date => Datum::Date(int4()?),
        Kind::Time => Datum::Time(int8()?),
        Kind::Timestamp => Datum::Timestamp(int8()?),
        Kind::Timestamptz => Datum::Timestamptz(int8()?),
        Kind::Interval => Datum::Interval(Interval {
            micros: int8()?,
            days: i32::from_le_bytes(*bytes.get(8..)?.first_chunk()?),
            months: i32::from_le_bytes(*bytes.get(12..)?.first_chunk()?),
        }),
        Kind::Uuid => Datum::Uuid(bytes.first_chunk()?),
        _ => Datum::Oid(int4()? as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::compare;

    #[test]
    fn every_column_reads_back_whatever_is_null() {
        let types =
            [Type::INT4, Type::TEXT, Type::BOOL, Type::BYTEA, Type::INT8, Type::VARCHAR, Type::FLOAT8];
        let shape = RowShape::new(&types);
        let full = [
            Datum::Int4(-7),
            Datum::Text("héllo"),
            Datum::Bool(true),
            Datum::Bytea(&[1, 0, 2]),
            Datum::Int8(1 << 40),
            Datum::Text(""),
            Datum::Float8(2.5),
        ];
        for nulls in 0u32..1 << full.len() {
            let row: Vec<Datum<'_>> = (0..full.len())
                .map(|index| if nulls >> index & 1 == 1 { Datum::Null } else { full[index] })
                .collect();
            for written in 0..=row.len() {
                let mut bytes = Vec::new();
                assert!(encode(&row[..written], &shape, 500, &mut bytes).unwrap());
                let view = RowView::new(&bytes, &shape);
                for (index, value) in row.iter().enumerate() {
                    let expected = if index < written { *value } else { Datum::Null };
                    assert!(compare(view.get(index).unwrap(), expected).unwrap().is_eq());
                }
            }
        }
        assert!(RowView::new(&[9, 0, 0, 1], &shape).get(4).is_err());
    }

    #[test]
    fn a_short_row_reads_the_missing_values_of_later_columns() {
        let uuid = [7; 16];
        let interval = Interval { micros: -1, days: 2, months: 3 };
        let columns = [
            (Type::INT4, Datum::Int4(1)),
            (Type::BOOL, Datum::Bool(true)),
            (Type::TEXT, Datum::Text("héllo")),
            (Type::new(oid::CHAR), Datum::Char(b'c')),
            (Type::new(oid::INT2), Datum::Int2(-2)),
            (Type::INT8, Datum::Int8(i64::MIN)),
            (Type::FLOAT8, Datum::Float8(0.5)),
            (Type::new(oid::UUID), Datum::Uuid(&uuid)),
            (Type::new(oid::INTERVAL), Datum::Interval(interval)),
            (Type::BYTEA, Datum::Bytea(&[])),
            (Type::new(oid::BPCHAR), Datum::Padded("a  ")),
        ];
        let types: Vec<Type> = columns.iter().map(|(ty, _)| *ty).collect();
        let shape = RowShape::new(&types);
        // The first column has none, as have those of a table that was made with them.
        let missing = columns.iter().enumerate().skip(1);
        let shape =
            shape.with_missing(missing.map(|(at, (ty, value))| (at, encode_value(*value, *ty).unwrap())));
        let others: Vec<Datum<'_>> = columns.iter().map(|_| Datum::Null).collect();
        for written in 0..=columns.len() {
            let mut bytes = Vec::new();
            assert!(encode(&others[..written], &shape, 500, &mut bytes).unwrap());
            let view = RowView::new(&bytes, &shape);
            for (at, (_, value)) in columns.iter().enumerate() {
                let expected = if at < written || at == 0 { Datum::Null } else { *value };
                let found = view.get(at).unwrap();
                assert!(compare(found, expected).unwrap().is_eq(), "{found:?} {expected:?}");
            }
            assert!(view.get(columns.len()).unwrap().is_null());
        }
    }

    #[test]
    fn a_missing_value_must_fit_its_column() {
        assert!(encode_value(Datum::Null, Type::INT4).is_err());
        assert!(encode_value(Datum::Null, Type::TEXT).is_err());
        assert!(encode_value(Datum::Int8(1), Type::INT4).is_err());
        let pointer = OutOfLinePointer { number: 1, length: 5 };
        assert!(encode_value(Datum::OutOfLine(pointer), Type::TEXT).is_err());
        let damaged: [(Type, &[u8]); 2] = [(Type::INT4, &[1, 2]), (Type::TEXT, &[0xff])];
        for (ty, bytes) in damaged {
            let shape = RowShape::new(&[ty]).with_missing([(0, bytes.into()), (9, bytes.into())].into_iter());
            assert!(RowView::new(&[0, 0, 0], &shape).get(0).is_err());
        }
    }

    #[test]
    fn pointers_stand_where_values_stood() {
        let shape = RowShape::new(&[Type::TEXT, Type::INT4, Type::BYTEA, Type::NUMERIC, Type::TEXT]);
        let pointer = OutOfLinePointer { number: u64::MAX - 3, length: 0x3fff_ffff };
        for moved in 0u32..8 {
            let place =
                |bit: u32, value| if moved >> bit & 1 == 1 { Datum::OutOfLine(pointer) } else { value };
            let row = [
                place(0, Datum::Text("first")),
                Datum::Int4(7),
                place(1, Datum::Bytea(&[1, 2])),
                Datum::Null,
                place(2, Datum::Text("last")),
            ];
            let mut bytes = Vec::new();
            assert!(encode(&row, &shape, 100, &mut bytes).unwrap());
            assert_eq!(has_out_of_line(&bytes), moved != 0);
            let view = RowView::new(&bytes, &shape);
            for (at, value) in row.iter().enumerate() {
                match (view.get(at).unwrap(), *value) {
                    (Datum::OutOfLine(found), Datum::OutOfLine(put)) => assert_eq!(found, put),
                    (found, value) => assert!(compare(found, value).unwrap().is_eq(), "{found:?} {value:?}"),
                }
            }
            let length = bytes.len();
            assert!(encode(&row, &shape, length, &mut Vec::new()).unwrap());
            assert!(!encode(&row, &shape, length - 1, &mut Vec::new()).unwrap());
        }
    }
}
