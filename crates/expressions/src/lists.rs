//! The long lists that the expressions of a run have tested, prepared for look-ups.
//!
//! Values of fixed width are members of a set of integers. Other values are keys of a hash table.
//!
//! What must hold:
//!
//! 1. Two values of one kind have equal words or keys exactly where the type's `=` is true. A value
//!    that may equal one of another kind is not looked up.
//! 2. The address of a test names its list. So a test lives as long as its run.
//! 3. A run without long lists allocates nothing here.

use std::cell::RefCell;

use runtime::hash::{QuickMap, QuickSet};

use values::error::SqlError;
use values::key::{self, KeyOrder};
use values::key_table::KeyTable;
use values::memory;
use values::types::compare::unpadded;
use values::types::{Datum, NumericRef, oid};
use values::work::{self, tick_part};

/// The approximate bytes of a word in a set.
const WORD: usize = 20;
/// The bits of a numeric's word that hold its scale.
const SCALE_BITS: u32 = 8;

/// The lists of a run.
#[derive(Default)]
pub struct Lists(RefCell<Option<Box<Tested>>>);

#[derive(Default)]
struct Tested {
    lists: QuickMap<usize, State>,
    /// The bytes of the key that is looked up.
    buffer: Vec<u8>,
}

enum State {
    TestedOnce,
    /// The list cannot be prepared.
    Searched,
    Prepared(List),
}

/// A prepared list.
pub(crate) struct List {
    elements: Elements,
    /// The list has a NULL.
    null: bool,
}

/// The elements that are not NULL.
enum Elements {
    None,
    Words(Kind, QuickSet<i64>),
    Keys(Kind, KeyTable<Box<[u8]>, ()>),
}

/// Values that are equal exactly where their words or keys are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Char,
    /// Integers of any width, and OIDs.
    Integer,
    /// Floats of both widths.
    Float,
    Numeric,
    Text,
    Padded,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    /// Arrays with elements of this type.
    Array(u32),
}

impl Lists {
    /// Whether the prepared list of a test has a value: Some(None) stands for NULL. None where the
    /// list must be searched.
    #[inline]
    pub(crate) fn find(&self, test: usize, value: Datum<'_>) -> Result<Option<Option<bool>>, SqlError> {
        let mut tested = self.0.borrow_mut();
        let Some(tested) = &mut *tested else { return Ok(None) };
        let Some(State::Prepared(list)) = tested.lists.get(&test) else { return Ok(None) };
        list.find(value, &mut tested.buffer)
    }

    /// Counts a test whose list is not prepared. Whether the list should be prepared now.
    pub(crate) fn is_due(&self, test: usize) -> bool {
        let mut tested = self.0.borrow_mut();
        let lists = &mut tested.get_or_insert_default().lists;
        match lists.get(&test) {
            None => {
                lists.insert(test, State::TestedOnce);
                false
            }
            Some(state) => matches!(state, State::TestedOnce),
        }
    }

    /// Keeps a test's list; None has it searched from now on.
    pub(crate) fn put(&self, test: usize, list: Option<List>) {
        let state = list.map_or(State::Searched, State::Prepared);
        self.0.borrow_mut().get_or_insert_default().lists.insert(test, state);
    }
}

impl List {
    /// Prepares a list of these values, and of a NULL; None where it must be searched.
    pub(crate) fn of(values: &[Datum<'_>], null: bool) -> Result<Option<List>, SqlError> {
        let elements = match values.first() {
            None => Some(Elements::None),
            Some(first) => match Elements::words(*first, values)? {
                Some(words) => Some(words),
                None => Elements::keys(*first, values)?,
            },
        };
        Ok(elements.map(|elements| List { elements, null }))
    }

    /// As [`Lists::find`].
    fn find(&self, value: Datum<'_>, buffer: &mut Vec<u8>) -> Result<Option<Option<bool>>, SqlError> {
        if value.is_null() {
            return Ok(Some(None));
        }
        let found = match &self.elements {
            Elements::None => false,
            Elements::Words(kind, words) => match word(value) {
                Some((own, word)) if own == *kind => words.contains(&word),
                _ => return Ok(None),
            },
            Elements::Keys(kind, keys) => match key(value, buffer)? {
                Some((own, key)) if own == *kind => keys.get(key)?.is_some(),
                _ => return Ok(None),
            },
        };
        Ok(Some(if !found && self.null { None } else { Some(found) }))
    }
}

impl Elements {
    fn words(first: Datum<'_>, values: &[Datum<'_>]) -> Result<Option<Elements>, SqlError> {
        let Some((kind, _)) = word(first) else { return Ok(None) };
        memory::ask(values.len().saturating_mul(WORD))?;
        let mut words = QuickSet::with_capacity_and_hasher(values.len(), Default::default());
        for value in values {
            tick_part(values.len())?;
            match word(*value) {
                Some((own, word)) if own == kind => words.insert(word),
                _ => return Ok(None),
            };
        }
        Ok(Some(Elements::Words(kind, words)))
    }

    fn keys(first: Datum<'_>, values: &[Datum<'_>]) -> Result<Option<Elements>, SqlError> {
        let (mut keys, mut buffer) = (KeyTable::default(), Vec::new());
        let Some((kind, _)) = key(first, &mut buffer)? else { return Ok(None) };
        for value in values {
            tick_part(values.len())?;
            match key(*value, &mut buffer)? {
                Some((own, key)) if own == kind => keys.insert_new(key, (), || work::owned_bytes(key))?,
                _ => return Ok(None),
            };
        }
        Ok(Some(Elements::Keys(kind, keys)))
    }
}

/// The value as an integer, which tells it apart from others of its kind. None for a value of a
/// kind without words, or a numeric that has none.
#[inline]
fn word(value: Datum<'_>) -> Option<(Kind, i64)> {
    Some(match value {
        Datum::Bool(value) => (Kind::Bool, value.into()),
        Datum::Char(value) => (Kind::Char, value.into()),
        Datum::Float4(value) => (Kind::Float, float_word(value.into())),
        Datum::Float8(value) => (Kind::Float, float_word(value)),
        Datum::Numeric(value) => (Kind::Numeric, numeric_word(value)?),
        Datum::Date(value) => (Kind::Date, value.into()),
        Datum::Time(value) => (Kind::Time, value),
        Datum::Timestamp(value) => (Kind::Timestamp, value),
        Datum::Timestamptz(value) => (Kind::Timestamptz, value),
        _ => (Kind::Integer, value.as_i64()?),
    })
}

/// All NaNs are equal, and so are both zeros.
fn float_word(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    value.to_bits().cast_signed()
}

/// The digits of a numeric without zeros behind its fraction, and their scale; None where they do
/// not fit.
fn numeric_word(value: NumericRef<'_>) -> Option<i64> {
    let (mantissa, mut scale) = value.small()?;
    let mut mantissa = i64::try_from(mantissa).ok()?;
    if mantissa == 0 {
        return Some(0);
    }
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    let fits = mantissa.unsigned_abs().leading_zeros() > SCALE_BITS;
    (fits && scale >> SCALE_BITS == 0).then(|| mantissa << SCALE_BITS | i64::from(scale))
}

/// The value as bytes, which tell it apart from others of its kind. None for a kind without keys.
fn key<'k>(value: Datum<'k>, buffer: &'k mut Vec<u8>) -> Result<Option<(Kind, &'k [u8])>, SqlError> {
    let kind = match value {
        Datum::Text(value) => return Ok(Some((Kind::Text, value.as_bytes()))),
        Datum::Padded(value) => return Ok(Some((Kind::Padded, unpadded(value).as_bytes()))),
        Datum::Bytea(value) => return Ok(Some((Kind::Bytea, value))),
        Datum::Uuid(value) => return Ok(Some((Kind::Uuid, value))),
        Datum::Numeric(_) => Kind::Numeric,
        Datum::Interval(_) => Kind::Interval,
        // Keys of rows hold the types of fields, which `=` does not compare.
        Datum::Array(value) if value.element_type() != oid::RECORD => Kind::Array(value.element_type()),
        _ => return Ok(None),
    };
    buffer.clear();
    key::encode(value, KeyOrder::default(), buffer)?;
    Ok(Some((kind, buffer)))
}

#[cfg(test)]
mod tests;
