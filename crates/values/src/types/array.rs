//! An array's packed form, which is also what rows hold, and its shape.
//!
//! The bytes, with integers in little endian:
//!
//! - the element type (u32);
//! - the number of dimensions (u8);
//! - length and lower bound of each dimension (two i32);
//! - the elements, each a tag and its bytes, which [`super::elements`] reads and builds.

use super::oid;
use crate::error::{SqlError, SqlState};

/// The most dimensions of an array, as in PostgreSQL.
pub const MAX_DIMENSIONS: usize = 6;
/// The most elements of an array, as in PostgreSQL.
pub(crate) const MAX_ELEMENTS: usize = 134_217_727;

/// 54000: the array would have more than [`MAX_DIMENSIONS`].
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

    /// The bytes of all elements, without a gap.
    pub(super) fn element_bytes(self) -> &'a [u8] {
        self.0.get(5 + self.dimensions() * 8..).unwrap_or_default()
    }

    /// Number of dimensions; 0 for an empty array.
    pub fn dimensions(self) -> usize {
        self.0.get(4).copied().unwrap_or(0).into()
    }

    /// Length and lower bound of a dimension; the first dimension has index 0.
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

    /// Number of elements in all dimensions.
    pub fn len(self) -> usize {
        if self.dimensions() == 0 {
            return 0;
        }
        (0..self.dimensions())
            .map(|index| self.dimension(index).map_or(0, |(length, _)| length as usize))
            .product()
    }

    /// Whether the array has no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The position in storage order of the element at these subscripts; None outside the bounds.
    pub(super) fn position(self, subscripts: &[i32]) -> Option<usize> {
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
