//! The elements of arrays: reading and building the packed form.
//!
//! An element is a tag and its bytes, as [`super::tagged`] writes them.
//!
//! What must hold:
//!
//! 1. The product of the lengths that a builder gets is the number of its elements. An array
//!    without elements has no dimensions.
//! 2. Elements have the representation of the element type that the array names.
//! 3. The iterator has a safe point at each element, so callers hold no borrow of the core's state.

use bumpalo::Bump;

use super::{ArrayRef, Datum, Value, tagged};
use crate::error::SqlError;
use crate::work;

impl<'a> ArrayRef<'a> {
    /// The elements in storage order. The iterator reaches a safe point about every 1,000 elements.
    pub fn iter(self) -> impl Iterator<Item = Result<Datum<'a>, SqlError>> {
        let mut bytes = self.element_bytes();
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

    /// Appends an element. Fails when an interrupt ends the statement while a long element is
    /// copied.
    pub fn push(&mut self, value: Datum<'_>) -> Result<(), SqlError> {
        self.count += 1;
        tagged::write(value, &mut self.elements)
    }

    /// Bytes of the elements so far.
    pub fn size(&self) -> usize {
        self.elements.len()
    }

    /// Number of elements so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the array has no elements yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The packed array with one dimension from 1; without dimensions when it is empty.
    pub fn finish(&self) -> Result<Vec<u8>, SqlError> {
        self.finish_with(&[(self.count as i32, 1)][..self.count.min(1)])
    }

    /// The packed array with these lengths and lower bounds. The product of the lengths is the
    /// number of elements.
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

    /// The packed array with these lengths and lower bounds, in the arena. The product of the
    /// lengths is the number of elements.
    pub fn array_with_in<'a>(
        &self,
        dimensions: &[(i32, i32)],
        arena: &'a Bump,
    ) -> Result<Datum<'a>, SqlError> {
        let bytes = work::parts_in(&[&self.head(dimensions), &self.elements], arena)?;
        Ok(Datum::Array(ArrayRef(bytes)))
    }

    /// The packed array of a few short values, such as those of the catalog. It has no safe point.
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

    /// The bytes before the elements: element type, number of dimensions, bounds.
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
