//! Keys: values as bytes whose order is the order of the values, so that trees compare with memcmp.
//!
//! Each column begins with a byte that puts NULLs first or last; a descending column's bytes behind it are inverted.
//! Within a value: integers and times big endian with the sign bit flipped; floats with all bits flipped when negative;
//! text and bytea with 0 escaped as 0 255 and ended by 0 0, so that a prefix sorts first in composite keys; numerics as
//! sign, decimal exponent and digits, so that equal values of different display scale have equal bytes.

use bumpalo::Bump;

use crate::error::{SqlError, SqlState};
use crate::types::numeric::Numeric;
use crate::types::{ArrayBuilder, ArrayRef, Datum, Interval, NumericRef, Type, oid, registry};

/// How one column of a key is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeyOrder {
    /// DESC.
    pub descending: bool,
    /// NULLs before the others.
    pub nulls_first: bool,
}

const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

/// Appends one column's bytes.
pub fn encode(value: Datum<'_>, order: KeyOrder, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if value.is_null() {
        out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
        return Ok(());
    }
    out.push(VALUE);
    let start = out.len();
    encode_value(value, out)?;
    if order.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

fn encode_value(value: Datum<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match value {
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&(v as u32 ^ 1 << 31).to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => encode_i64(v, out),
        Datum::Text(v) => encode_bytes(v.as_bytes(), out),
        Datum::Bytea(v) => encode_bytes(v, out),
        Datum::Bool(v) => out.push(u8::from(v)),
        Datum::Char(v) => out.push(v),
        Datum::Int2(v) => out.extend_from_slice(&(v as u16 ^ 1 << 15).to_be_bytes()),
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float4(v) => encode_float(f64::from(v), out),
        Datum::Float8(v) => encode_float(v, out),
        Datum::Numeric(v) => encode_numeric(v, out),
        Datum::Interval(v) => {
            let span = v.span() as u128 ^ 1 << 127;
            out.extend_from_slice(&span.to_be_bytes());
        }
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::Array(v) => {
            for element in v.iter() {
                encode(element, KeyOrder { descending: false, nulls_first: false }, &mut *push(out))?;
            }
            // Less than the mark of any element: a shorter array sorts first.
            out.push(0);
            out.push(v.dimensions() as u8);
            for (length, lower) in (0..v.dimensions()).filter_map(|index| v.dimension(index)) {
                encode_i64(length.into(), out);
                encode_i64(lower.into(), out);
            }
        }
        Datum::Null | Datum::Record(_) => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                "data type record has no default operator class for access method \"btree\"",
            ));
        }
    }
    Ok(())
}

/// Marks that an element follows.
fn push(out: &mut Vec<u8>) -> &mut Vec<u8> {
    out.push(1);
    out
}

fn encode_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value as u64 ^ 1 << 63).to_be_bytes());
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0, 255]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

fn encode_float(value: f64, out: &mut Vec<u8>) {
    // One NaN, above everything; one zero.
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Kinds in order: -infinity, negative, zero, positive, infinity, NaN. Behind a sign the decimal exponent, biased, and
/// the digits in pairs, each 1 to 100, ended by 0; all inverted for a negative value.
fn encode_numeric(value: NumericRef<'_>, out: &mut Vec<u8>) {
    let decimal = match value.load() {
        Numeric::NegInfinity => return out.push(0),
        Numeric::Infinity => return out.push(4),
        Numeric::NaN => return out.push(5),
        Numeric::Finite(decimal) => decimal,
    };
    if decimal.mantissa.sign() == num_bigint::Sign::NoSign {
        return out.push(2);
    }
    let negative = decimal.mantissa.sign() == num_bigint::Sign::Minus;
    out.push(if negative { 1 } else { 3 });
    let start = out.len();
    let digits = decimal.mantissa.magnitude().to_str_radix(10);
    let exponent = digits.len() as i64 - i64::from(decimal.scale);
    out.extend_from_slice(&((exponent + (1 << 30)) as u32).to_be_bytes());
    for pair in digits.trim_end_matches('0').as_bytes().chunks(2) {
        let low = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::INDEX_CORRUPTED, "a key's bytes do not fit its type")
}

/// The bytes of a column, inverted back where it is descending.
struct Reader<'b, 'a> {
    bytes: &'b mut &'a [u8],
    mask: u8,
}

impl<'a> Reader<'_, 'a> {
    fn byte(&mut self) -> Result<u8, SqlError> {
        let (first, rest) = self.bytes.split_first().ok_or_else(corrupt)?;
        *self.bytes = rest;
        Ok(first ^ self.mask)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or_else(corrupt)?;
        *self.bytes = rest;
        Ok(head.map(|byte| byte ^ self.mask))
    }

    fn i64(&mut self) -> Result<i64, SqlError> {
        Ok((u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64)
    }

    /// Text or bytea, in place when nothing was escaped or inverted.
    fn bytes(&mut self, arena: &'a Bump) -> Result<&'a [u8], SqlError> {
        let zero = self.mask;
        let end = self.bytes.iter().position(|byte| *byte == zero).ok_or_else(corrupt)?;
        if self.mask == 0 && self.bytes.get(end + 1) == Some(&0) {
            let (value, rest) = self.bytes.split_at(end);
            *self.bytes = &rest[2..];
            return Ok(value);
        }
        let mut value = bumpalo::collections::Vec::new_in(arena);
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Ok(value.into_bump_slice()),
                    255 => value.push(0),
                    _ => return Err(corrupt()),
                },
                byte => value.push(byte),
            }
        }
    }

    fn float(&mut self) -> Result<f64, SqlError> {
        let ordered = u64::from_be_bytes(self.array()?);
        Ok(f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered }))
    }

    fn numeric(&mut self, arena: &'a Bump) -> Result<NumericRef<'a>, SqlError> {
        let kind = self.byte()?;
        let value = match kind {
            0 => Numeric::NegInfinity,
            2 => Numeric::from(0),
            4 => Numeric::Infinity,
            5 => Numeric::NaN,
            1 | 3 => {
                let flip = if kind == 1 { 0xff } else { 0 };
                let exponent =
                    i64::from(u32::from_be_bytes(self.array()?.map(|byte: u8| byte ^ flip))) - (1 << 30);
                let mut digits = String::new();
                loop {
                    let pair = self.byte()? ^ flip;
                    if pair == 0 {
                        break;
                    }
                    digits.push_str(&format!("{:02}", pair - 1));
                }
                let sign = if kind == 1 { "-" } else { "" };
                Numeric::parse(&format!("{sign}{digits}e{}", exponent - digits.len() as i64))?.trim_scale()
            }
            _ => return Err(corrupt()),
        };
        value.store(arena)
    }
}

/// Whether a column of this type is stored in a key such that [`decode`] gives back the very value (a numeric loses its
/// display scale, an interval its fields, a zero its sign).
pub fn is_exact(ty: Type) -> bool {
    !matches!(ty.oid, oid::NUMERIC | oid::INTERVAL | oid::FLOAT4 | oid::FLOAT8) && !registry::is_array(ty.oid)
}

/// Reads one column of this type off the front of `bytes`.
pub fn decode<'a>(
    ty: Type,
    order: KeyOrder,
    bytes: &mut &'a [u8],
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    let (mark, rest) = bytes.split_first().ok_or_else(corrupt)?;
    *bytes = rest;
    if *mark != VALUE {
        return Ok(Datum::Null);
    }
    let mut reader = Reader { bytes, mask: if order.descending { 0xff } else { 0 } };
    Ok(match ty.oid {
        oid::INT4 => Datum::Int4((u32::from_be_bytes(reader.array()?) ^ 1 << 31) as i32),
        oid::DATE => Datum::Date((u32::from_be_bytes(reader.array()?) ^ 1 << 31) as i32),
        oid::INT8 => Datum::Int8(reader.i64()?),
        oid::TIME => Datum::Time(reader.i64()?),
        oid::TIMESTAMP => Datum::Timestamp(reader.i64()?),
        oid::TIMESTAMPTZ => Datum::Timestamptz(reader.i64()?),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME => {
            Datum::Text(std::str::from_utf8(reader.bytes(arena)?).map_err(|_| corrupt())?)
        }
        oid::BYTEA => Datum::Bytea(reader.bytes(arena)?),
        oid::BOOL => Datum::Bool(reader.byte()? != 0),
        oid::CHAR => Datum::Char(reader.byte()?),
        oid::INT2 => Datum::Int2((u16::from_be_bytes(reader.array()?) ^ 1 << 15) as i16),
        oid::FLOAT4 => Datum::Float4(reader.float()? as f32),
        oid::FLOAT8 => Datum::Float8(reader.float()?),
        oid::NUMERIC => Datum::Numeric(reader.numeric(arena)?),
        oid::INTERVAL => {
            let span = (u128::from_be_bytes(reader.array()?) ^ 1 << 127) as i128;
            let day = i128::from(crate::types::datetime::DAY);
            Datum::Interval(Interval {
                months: (span / (day * 30)) as i32,
                days: (span / day % 30) as i32,
                micros: (span % day) as i64,
            })
        }
        oid::UUID => Datum::Uuid(arena.alloc(reader.array()?)),
        _ if registry::is_array(ty.oid) => {
            let element = Type::new(registry::element_of(ty.oid).unwrap_or(oid::TEXT));
            decode_array(element, &mut reader, arena)?
        }
        _ => Datum::Oid(u32::from_be_bytes(reader.array()?)),
    })
}

fn decode_array<'a>(
    element: Type,
    reader: &mut Reader<'_, 'a>,
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    // The elements lie inside the inverted range: invert the rest back once, then read plainly.
    let plain: &'a [u8] = if reader.mask == 0 {
        reader.bytes
    } else {
        arena.alloc_slice_fill_iter(reader.bytes.iter().map(|byte| !byte))
    };
    let mut rest = plain;
    let mut builder = ArrayBuilder::new(element.oid);
    loop {
        let (mark, tail) = rest.split_first().ok_or_else(corrupt)?;
        rest = tail;
        if *mark == 0 {
            break;
        }
        builder.push(decode(element, KeyOrder::default(), &mut rest, arena)?);
    }
    let mut plain_reader = Reader { bytes: &mut rest, mask: 0 };
    let count = plain_reader.byte()?;
    let mut dimensions = Vec::new();
    for _ in 0..count {
        dimensions.push((plain_reader.i64()? as i32, plain_reader.i64()? as i32));
    }
    let used = plain.len() - rest.len();
    *reader.bytes = &reader.bytes[used..];
    Ok(Datum::Array(ArrayRef(arena.alloc_slice_copy(&builder.finish_with(&dimensions)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::compare;

    fn check(values: &[Datum<'_>], ty: Type) {
        let arena = Bump::new();
        for order in [false, true].map(|descending| KeyOrder { descending, nulls_first: descending }) {
            for left in values {
                let mut a = Vec::new();
                encode(*left, order, &mut a).unwrap();
                let decoded = decode(ty, order, &mut &*arena.alloc_slice_copy(&a), &arena).unwrap();
                assert!(compare(decoded, *left).is_eq(), "{left:?} {decoded:?}");
                for right in values {
                    let mut b = Vec::new();
                    encode(*right, order, &mut b).unwrap();
                    let expected = compare(*left, *right);
                    let expected = if order.descending { expected.reverse() } else { expected };
                    assert_eq!(a.cmp(&b), expected, "{left:?} {right:?}");
                }
            }
        }
    }

    #[test]
    fn order_of_bytes_is_order_of_values() {
        let texts = ["", "a", "a\u{1}", "ab", "b", "é"].map(Datum::Text);
        check(&texts, Type::TEXT);
        check(
            &[
                Datum::Bytea(&[]),
                Datum::Bytea(&[0]),
                Datum::Bytea(&[0, 0]),
                Datum::Bytea(&[0, 1]),
                Datum::Bytea(&[1]),
                Datum::Null,
            ],
            Type::BYTEA,
        );
        check(&[i64::MIN, -1, 0, 1, i64::MAX].map(Datum::Int8), Type::INT8);
        check(
            &[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN].map(Datum::Float8),
            Type::FLOAT8,
        );
        let packed: Vec<Vec<u8>> = [
            "-Infinity",
            "-1000",
            "-999.5",
            "-1.1",
            "-1.10",
            "-0.001",
            "0",
            "0.00",
            "0.0001",
            "1",
            "1.000",
            "1.05",
            "9",
            "10",
            "10.5",
            "1e50",
            "Infinity",
            "NaN",
        ]
        .iter()
        .map(|text| Numeric::parse(text).unwrap().pack().unwrap())
        .collect();
        let numerics: Vec<Datum<'_>> = packed.iter().map(|bytes| Datum::Numeric(NumericRef(bytes))).collect();
        check(&numerics, Type::NUMERIC);
    }
}
