//! Rows: many values as bytes, single columns readable without touching the others.

use crate::error::SqlError;
use crate::types::{Datum, Type};

/// What is needed to find a column in a row's bytes: made once per table version.
#[derive(Debug, Clone)]
pub struct RowShape {}

impl RowShape {
    /// The shape of rows of these types.
    pub fn new(_types: &[Type]) -> RowShape {
        todo!()
    }
}

/// Appends the row's bytes.
pub fn encode(_row: &[Datum<'_>], _shape: &RowShape, _out: &mut Vec<u8>) -> Result<(), SqlError> {
    todo!()
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

    /// One column. A column the row was written without (added later) is NULL: the caller knows its default.
    pub fn get(&self, _column: usize) -> Result<Datum<'a>, SqlError> {
        todo!()
    }

    /// How many columns the row was written with.
    pub fn columns(&self) -> usize {
        todo!()
    }
}
