//! Rows kept for later: of a portal stopped at its row limit, of a cursor.

use std::collections::VecDeque;

use crate::types::{Datum, Value};

/// Rows of equal width, taken from the front.
#[derive(Default)]
pub(super) struct KeptRows {
    rows: VecDeque<Box<[Value]>>,
}

impl KeptRows {
    /// Keeps a copy of a row.
    pub fn push(&mut self, row: &[Datum<'_>]) {
        self.rows.push_back(row.iter().map(Datum::to_value).collect());
    }

    /// The next row.
    pub fn pop(&mut self) -> Option<Box<[Value]>> {
        self.rows.pop_front()
    }
}
