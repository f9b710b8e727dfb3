//! Arrays in their packed form, which is also what rows hold: element type (u32), number of
//! dimensions (u8), length and lower bound of each (two i32), then each element: a tag and its
//! bytes, as [`super::tagged`] writes them.

use bumpalo::Bump;

use super::tagged;
use super::{Datum, Value, oid};
use crate::error::{SqlError, SqlState};
use crate::work;

/// Most dimensions of an array, as in PostgreSQL.
pub const MAX_DIMENSIONS: usize = 6;
/// Most elements of an array, as in PostgreSQL.
pub const MAX_ELEMENTS: usize = 134_217_727;

/// 54000 for an array of more dimensions than there may be.
#[cold]
pub fn too_many_dimensions(count: usize) -> SqlError {
    let message =
        format!("number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// A packed array.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a>(pub &'a [u8]);

impl<'a> ArrayRef<'a> {
    /// OID of the element type.
    pub fn element_type(self) -> u32 {
        self.0.first_chunk().map_or(oid::UNKNOWN, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Number of dimensions; 0 for an empty array.
    pub fn dimensions(self) -> usize {
        self.0.get(4).copied().unwrap_or(0).into()
    }

    /// Length and lower bound of a dimension, from 0.
    pub fn dimension(self, index: usize) -> Option<(i32, i32)> {
        if index >= self.dimensions() {
            return None;
        }
        let bytes = self.0.get(5 + index * 8..13 + index * 8)?;
        let word = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some((word(0), word(4)))
    }

    /// Length and lower bound of each dimension.
    pub fn shape(self) -> Vec<(i32, i32)> {
        (0..self.dimensions()).filter_map(|index| self.dimension(index)).collect()
    }

    /// Number of elements, in all dimensions.
    pub fn len(self) -> usize {
        if self.dimensions() == 0 {
            return 0;
        }
        (0..self.dimensions())
            .map(|index| self.dimension(index).map_or(0, |(length, _)| length as usize))
            .product()
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The elements in storage order, with a safe point once in a while.
    pub fn iter(self) -> impl Iterator<Item = Result<Datum<'a>, SqlError>> {
        let mut bytes = self.0.get(5 + self.dimensions() * 8..).unwrap_or_default();
        let mut left = self.len();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            Some(work::tick(16).and_then(|()| tagged::read(&mut bytes)))
        })
    }

    /// The element at these subscripts; None outside the bounds.
    pub fn get(self, subscripts: &[i32]) -> Result<Option<Datum<'a>>, SqlError> {
        let Some(position) = self.position(subscripts) else { return Ok(None) };
        for (at, element) in self.iter().enumerate() {
            let element = element?;
            if at == position {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    /// The place in storage order of the element at these subscripts; None outside the bounds.
    fn position(self, subscripts: &[i32]) -> Option<usize> {
        if subscripts.len() != self.dimensions() || subscripts.is_empty() {
            return None;
        }
        let mut position = 0;
        for (index, subscript) in subscripts.iter().enumerate() {
            let (length, lower) = self.dimension(index)?;
            let offset = subscript.checked_sub(lower)?;
            if !(0..length).contains(&offset) {
                return None;
            }
            position = position * length as usize + offset as usize;
        }
        Some(position)
    }
}

/// Builds a packed array element by element.
#[derive(Clone, Debug)]
pub struct ArrayBuilder {
    element: u32,
    count: usize,
    elements: Vec<u8>,
}

impl ArrayBuilder {
    /// An empty array of this element type.
    pub fn new(element: u32) -> ArrayBuilder {
        ArrayBuilder { element, count: 0, elements: Vec::new() }
    }

    /// Appends an element. Fails when the statement is interrupted while a long one is copied.
    pub fn push(&mut self, value: Datum<'_>) -> Result<(), SqlError> {
        self.count += 1;
        tagged::write(value, &mut self.elements)
    }

    /// Bytes of its elements.
    pub fn size(&self) -> usize {
        self.elements.len()
    }

    /// Number of its elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The packed array with one dimension from 1, or none when it is empty.
    pub fn finish(&self) -> Result<Vec<u8>, SqlError> {
        self.finish_with(&[(self.count as i32, 1)][..self.count.min(1)])
    }

    /// The packed array with these lengths and lower bounds, whose product is the number of
    /// elements.
    pub fn finish_with(&self, dimensions: &[(i32, i32)]) -> Result<Vec<u8>, SqlError> {
        let mut bytes = self.head(dimensions);
        bytes.reserve_exact(self.elements.len());
        work::put(&self.elements, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`ArrayBuilder::finish`], in the arena.
    pub fn array_in<'a>(&self, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
        self.array_with_in(&[(self.count as i32, 1)][..self.count.min(1)], arena)
    }

    /// As [`ArrayBuilder::finish_with`], in the arena.
    pub fn array_with_in<'a>(
        &self,
        dimensions: &[(i32, i32)],
        arena: &'a Bump,
    ) -> Result<Datum<'a>, SqlError> {
        let bytes = work::parts_in(&[&self.head(dimensions), &self.elements], arena)?;
        Ok(Datum::Array(ArrayRef(bytes)))
    }

    /// The packed array of values which are few and short, as those of the catalog: made at once,
    /// without a safe point.
    pub fn list_of(element: u32, values: impl Iterator<Item = Value>, lower: i32) -> Vec<u8> {
        let mut builder = ArrayBuilder::new(element);
        for value in values {
            // Only a long value has safe points.
            let pushed = builder.push(value.datum());
            debug_assert!(pushed.is_ok(), "{value:?}");
        }
        let mut bytes = builder.head(&[(builder.count as i32, lower)][..builder.count.min(1)]);
        bytes.extend_from_slice(&builder.elements);
        bytes
    }

    /// The bytes before the elements.
    fn head(&self, dimensions: &[(i32, i32)]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(5 + dimensions.len() * 8);
        bytes.extend_from_slice(&self.element.to_le_bytes());
        bytes.push(dimensions.len() as u8);
        for (length, lower) in dimensions {
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&lower.to_le_bytes());
        }
        bytes
    }
}
