//! Keys: values as bytes in the order of the values, so that a tree compares them with memcmp.
//!
//! Each column begins with a byte that puts NULLs first or last. A descending column's remaining
//! bytes are inverted. Within a value:
//!
//! - integers and times: big endian with the sign bit flipped;
//! - floats: sign bit flipped, or all bits when negative;
//! - text and bytea: 0 escaped as 0 255, with 0 0 at the end, so that a prefix sorts first in
//!   composite keys;
//! - numerics: sign, decimal exponent and digits, so that equal values of different display scale
//!   have equal bytes;
//! - bpchar: without its trailing blanks, so that lengths do not matter;
//! - arrays and records: element by element, NULLs last.
//!
//! What must hold:
//!
//! 1. For values of one type, the order of the bytes is that of `compare`, and bytes are equal
//!    exactly where values are. Indexes, hash tables and sorts rest on it.
//! 2. No value's bytes are the beginning of another's of the same type. So the bytes of the next
//!    column never decide between two values of this one.
//! 3. Rows hold the values. So a key may lose what its order does not need. The bytes of most types
//!    show where a value ends ([`length`]), and those of some lose nothing ([`decode()`]).
//! 4. Trees on disk are ordered by these bytes. Another encoding is another format of the folder
//!    (docs/formats.md).

mod decode;

use runtime::work::STRIDE;

use crate::error::SqlError;
use crate::types::compare::unpadded;
use crate::types::numeric::{self, Numeric};
use crate::types::{Datum, NumericRef, Type, oid};
use crate::work;

pub use decode::{decode, is_decodable};

/// The order of one column of a key.
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
    ordered(&mut out[start..], order)
}

/// Appends the bytes with which the keys of all texts with a prefix begin. Those of an empty prefix
/// begin the keys of all values other than NULL, of any type.
pub fn encode_prefix(prefix: &str, order: KeyOrder, out: &mut Vec<u8>) -> Result<(), SqlError> {
    out.push(VALUE);
    let start = out.len();
    escape_bytes(prefix.as_bytes(), out)?;
    ordered(&mut out[start..], order)
}

/// Turns a key into the first one after all keys that begin with it; false when there is none.
pub fn step_over(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last != u8::MAX {
            key.push(last + 1);
            return true;
        }
    }
    false
}

/// Where a value of a type ends within a key.
#[derive(Clone, Copy)]
enum Ending {
    /// After so many bytes.
    Fixed(usize),
    /// After two zeros; a zero within it is escaped.
    Zeros,
    /// As [`encode_numeric`] writes it.
    Numeric,
}

/// Where values of a type end. Those of arrays and records show it only element by element.
fn ending(type_: Type) -> Option<Ending> {
    Some(match type_.oid {
        oid::BOOL | oid::CHAR => Ending::Fixed(1),
        oid::INT2 => Ending::Fixed(2),
        oid::INT4 | oid::DATE | oid::OID => Ending::Fixed(4),
        oid::INT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::FLOAT4 | oid::FLOAT8 => {
            Ending::Fixed(8)
        }
        oid::INTERVAL | oid::UUID => Ending::Fixed(16),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::BYTEA => Ending::Zeros,
        oid::NUMERIC => Ending::Numeric,
        _ => return None,
    })
}

/// Whether [`length`] knows where the values of a type end.
pub fn has_length(type_: Type) -> bool {
    ending(type_).is_some()
}

/// The length of the column with which these bytes begin. `None` if nobody knows where the type's
/// values end, or if the bytes are no such column.
pub fn length(key: &[u8], type_: Type, order: KeyOrder) -> Option<usize> {
    let ending = ending(type_)?;
    let (mark, value) = key.split_first()?;
    if *mark != VALUE {
        return Some(1);
    }
    let inverted = if order.descending { u8::MAX } else { 0 };
    let end = |from: usize, inverted: u8| {
        let digits = value.get(from..)?.iter().position(|byte| byte ^ inverted == 0)?;
        Some(from + digits + 1)
    };
    let length = match ending {
        Ending::Fixed(length) => length,
        Ending::Zeros => {
            let mut at = 0;
            loop {
                at = end(at, inverted)?;
                let next = value.get(at)? ^ inverted;
                at += 1;
                if next == 0 {
                    break at;
                }
            }
        }
        Ending::Numeric => match value.first()? ^ inverted {
            // The exponent has 4 bytes.
            1 => end(5, !inverted)?,
            3 => end(5, inverted)?,
            _ => 1,
        },
    };
    (length <= value.len()).then_some(1 + length)
}

/// Inverts the bytes of a value in a descending column.
fn ordered(bytes: &mut [u8], order: KeyOrder) -> Result<(), SqlError> {
    if order.descending {
        for piece in bytes.chunks_mut(STRIDE) {
            piece.iter_mut().for_each(|byte| *byte = !*byte);
            if piece.len() == STRIDE {
                work::tick(STRIDE)?;
            }
        }
    }
    Ok(())
}

fn encode_value(value: Datum<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match value {
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&(v as u32 ^ 1 << 31).to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => encode_i64(v, out),
        Datum::Text(v) => encode_bytes(v.as_bytes(), out)?,
        Datum::Padded(v) => encode_bytes(unpadded(v).as_bytes(), out)?,
        Datum::Bytea(v) => encode_bytes(v, out)?,
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
                encode(element?, KeyOrder { descending: false, nulls_first: false }, &mut *push(out))?;
            }
            // This byte is less than the mark of an element: a shorter array sorts first.
            out.push(0);
            out.push(v.dimensions() as u8);
            for (length, lower) in (0..v.dimensions()).filter_map(|index| v.dimension(index)) {
                encode_i64(length.into(), out);
                encode_i64(lower.into(), out);
            }
        }
        Datum::OutOfLine(v) => v.unfetched(),
        Datum::Record(v) => {
            // A field's type precedes it, so that values of different types never have equal bytes.
            for (type_, field) in v.types.iter().zip(v.fields) {
                work::tick(16)?;
                push(out).extend_from_slice(&type_.oid.to_be_bytes());
                encode(*field, KeyOrder { descending: false, nulls_first: false }, out)?;
            }
            out.push(0);
        }
        Datum::Null => return Err(SqlError::internal("a NULL as the value of a key")),
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

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
    escape_bytes(bytes, out)?;
    out.extend_from_slice(&[0, 0]);
    Ok(())
}

fn escape_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
    if bytes.len() > STRIDE {
        out.reserve(bytes.len());
    }
    for piece in bytes.chunks(STRIDE) {
        // `contains` compares many bytes at a time, and a text has no zeros.
        if piece.contains(&0) {
            let mut parts = piece.split(|byte| *byte == 0);
            out.extend_from_slice(parts.next().unwrap_or_default());
            for part in parts {
                out.extend_from_slice(&[0, 255]);
                out.extend_from_slice(part);
            }
        } else {
            out.extend_from_slice(piece);
        }
        if piece.len() == STRIDE {
            work::tick(STRIDE)?;
        }
    }
    Ok(())
}

fn encode_float(value: f64, out: &mut Vec<u8>) {
    // All NaNs become one, above every number; both zeros become one.
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Appends the kind, in the order -infinity, negative, zero, positive, infinity, NaN.
///
/// For a finite number the biased decimal exponent follows, then the digits in pairs, each 1 to
/// 100, and a 0 at the end. A negative number's bytes are all inverted.
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
    let digits = numeric::to_digits(decimal.mantissa.magnitude());
    let exponent = digits.len() as i64 - i64::from(decimal.scale);
    out.extend_from_slice(&((exponent + (1 << 30)) as u32).to_be_bytes());
    let significant = digits.len() - digits.iter().rev().take_while(|digit| **digit == b'0').count();
    for pair in digits[..significant].chunks(2) {
        let low = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::compare;

    fn check(type_: Type, values: &[Datum<'_>]) {
        for order in [false, true].map(|descending| KeyOrder { descending, nulls_first: descending }) {
            for left in values {
                let mut a = Vec::new();
                encode(*left, order, &mut a).unwrap();
                for behind in [&[][..], &[0], &[1, 0, 0], &[255; 3]] {
                    assert_eq!(length(&[&a, behind].concat(), type_, order), Some(a.len()), "{left:?}");
                }
                if !left.is_null() {
                    assert_eq!(length(&a[..a.len() - 1], type_, order), None, "{left:?}");
                }
                let memory = bumpalo::Bump::new();
                let decoded = decode(&a, type_, order, &memory).map(|decoded| format!("{decoded:?}"));
                let is_known = is_decodable(type_) || left.is_null();
                assert_eq!(decoded, is_known.then(|| format!("{left:?}")));
                for right in values {
                    let mut b = Vec::new();
                    encode(*right, order, &mut b).unwrap();
                    let expected = compare(*left, *right).unwrap();
                    let expected = if order.descending { expected.reverse() } else { expected };
                    assert_eq!(a.cmp(&b), expected, "{left:?} {right:?}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_bounds_the_keys_of_exactly_its_texts() {
        let letters = ["", "a", "b", "\u{1}", "\u{7f}", "é", "\u{7ff}", "\u{ffff}", "\u{10ffff}"];
        let texts: Vec<String> = letters
            .iter()
            .flat_map(|a| letters.iter().flat_map(move |b| letters.map(|c| format!("{a}{b}{c}"))))
            .collect();
        for order in [false, true].map(|descending| KeyOrder { descending, nulls_first: descending }) {
            for prefix in texts.iter().filter(|text| text.chars().count() < 3) {
                let mut low = Vec::new();
                encode_prefix(prefix, order, &mut low).unwrap();
                let mut high = low.clone();
                assert!(step_over(&mut high));
                for value in texts.iter().map(|text| Datum::Text(text)).chain([Datum::Null]) {
                    let mut key = Vec::new();
                    encode(value, order, &mut key).unwrap();
                    let begins = matches!(value, Datum::Text(text) if text.starts_with(prefix.as_str()));
                    assert_eq!((&low..&high).contains(&&key), begins, "{prefix:?} {value:?}");
                }
            }
        }
    }

    #[test]
    fn order_of_bytes_is_order_of_values() {
        let texts = ["", "a", "a\u{1}", "ab", "b", "é"].map(Datum::Text);
        check(Type::TEXT, &texts);
        check(Type::new(oid::BPCHAR), &["", "   ", "a", "a  ", "a b", "b "].map(Datum::Padded));
        check(Type::new(oid::BOOL), &[false, true].map(Datum::Bool));
        check(Type::new(oid::INT2), &[i16::MIN, -1, 0, 255, i16::MAX].map(Datum::Int2));
        check(Type::INT4, &[i32::MIN, -1, 0, 255, i32::MAX].map(Datum::Int4));
        check(Type::new(oid::DATE), &[-1, 0, 255].map(Datum::Date));
        check(Type::new(oid::TIMESTAMPTZ), &[-1, 0, 255].map(Datum::Timestamptz));
        check(Type::new(oid::UUID), &[[0; 16], [1; 16], [255; 16]].each_ref().map(Datum::Uuid));
        check(Type::new(oid::FLOAT4), &[-1.5, 0.0, 2.5].map(Datum::Float4));
        check(
            Type::new(oid::BYTEA),
            &[
                Datum::Bytea(&[]),
                Datum::Bytea(&[0]),
                Datum::Bytea(&[0, 0]),
                Datum::Bytea(&[0, 1]),
                Datum::Bytea(&[0, 255]),
                Datum::Bytea(&[1]),
                Datum::Bytea(&[255, 0]),
                Datum::Bytea(&[255, 255]),
                Datum::Null,
            ],
        );
        check(Type::new(oid::INT8), &[i64::MIN, -1, 0, 1, i64::MAX].map(Datum::Int8));
        check(
            Type::new(oid::FLOAT8),
            &[f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN].map(Datum::Float8),
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
        check(Type::new(oid::NUMERIC), &numerics);
    }
}
