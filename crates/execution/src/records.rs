//! Rows as parts of keys: two that are compared must have fields of the same types.
//!
//! PostgreSQL compares rows field by field and refuses two fields of different types when it comes
//! to them. Here keys are compared as bytes. So a key's maker notes the type of each field, under
//! the bytes that precede the field in the key. Where two keys are equal up to a field, that field
//! must have one type.

use std::hash::BuildHasher;

use runtime::hash::QuickMap;
use values::error::SqlError;
use values::key::{self, KeyOrder};
use values::types::records::{dissimilar, incomparable, unequal_widths};
use values::types::{Datum, RecordRef, oid};
use values::work::{self, PacedState};

/// Longer values stand in a path as their digests.
const SHORT: u8 = 16;
/// The end of a row's fields, which is no type.
const END: u32 = 0;
/// Stands in a path behind the fields of a row within a row.
const OUT: u8 = u8::MAX;

/// The order in which bytes only tell values apart.
const PLAIN: KeyOrder = KeyOrder { descending: false, nulls_first: false };

/// Makes the keys of one operator.
#[derive(Default)]
pub(super) struct Keys {
    rows: Option<Box<Noted>>,
    /// Error messages name the rows to come before the earlier ones, because they stand on the
    /// operator's left.
    flipped: bool,
}

/// The type of the field behind each path, by the path's digest.
#[derive(Default)]
struct Noted {
    fields: QuickMap<u128, u32>,
    states: [PacedState; 2],
}

impl Keys {
    /// Says that the rows to come stand on the operator's left, and the earlier ones on its right.
    pub fn flip(&mut self) {
        self.flipped = true;
    }

    /// Appends a value's bytes, which only tell values apart: equal bytes mean values that are not
    /// distinct.
    ///
    /// # Errors
    /// 42804 and 42883 for a row that PostgreSQL does not compare with one before.
    #[inline]
    pub fn plain(&mut self, value: Datum<'_>, key: &mut Vec<u8>) -> Result<(), SqlError> {
        self.ordered(value, PLAIN, key)
    }

    /// Appends a value's bytes, which order as the value does.
    ///
    /// # Errors
    /// As [`Keys::plain`].
    #[inline]
    pub fn ordered(&mut self, value: Datum<'_>, order: KeyOrder, key: &mut Vec<u8>) -> Result<(), SqlError> {
        if let Datum::Record(row) = value {
            self.note(row, key)?;
        }
        key::encode(value, order, key)
    }

    #[cold]
    fn note(&mut self, row: &RecordRef<'_>, before: &[u8]) -> Result<(), SqlError> {
        let flipped = self.flipped;
        let noted = self.rows.get_or_insert_default();
        let mut path = noted.digest(before).to_le_bytes().to_vec();
        noted.fields(row, flipped, &mut path)
    }
}

impl Noted {
    fn digest(&self, bytes: &[u8]) -> u128 {
        let [high, low] = &self.states;
        u128::from(high.hash_one(bytes)) << 64 | u128::from(low.hash_one(bytes))
    }

    fn fields(&mut self, row: &RecordRef<'_>, flipped: bool, path: &mut Vec<u8>) -> Result<(), SqlError> {
        for (at, (type_, field)) in row.types.iter().zip(row.fields).enumerate() {
            work::tick(SHORT.into())?;
            self.note(path, at, type_.oid, flipped)?;
            path.extend_from_slice(&type_.oid.to_le_bytes());
            if let Datum::Record(inner) = field {
                path.push(1);
                self.fields(inner, flipped, path)?;
                path.push(OUT);
                continue;
            }
            let mut value = Vec::new();
            key::encode(*field, PLAIN, &mut value)?;
            match u8::try_from(value.len()) {
                Ok(short @ ..=SHORT) => {
                    path.push(2 + short);
                    path.extend_from_slice(&value);
                }
                _ => {
                    path.push(0);
                    path.extend_from_slice(&self.digest(&value).to_le_bytes());
                }
            }
        }
        self.note(path, row.fields.len(), END, flipped)
    }

    /// Notes the type of the field behind a path.
    fn note(&mut self, path: &[u8], at: usize, type_: u32, flipped: bool) -> Result<(), SqlError> {
        let place = self.digest(path);
        match self.fields.insert(place, type_) {
            Some(known) if known != type_ && (known == END || type_ == END) => Err(unequal_widths()),
            Some(known) if known != type_ => {
                let (left, right) = if flipped { (type_, known) } else { (known, type_) };
                Err(dissimilar(left, right, at + 1))
            }
            Some(oid::UNKNOWN) => Err(incomparable("a comparison function")),
            _ => Ok(()),
        }
    }
}
