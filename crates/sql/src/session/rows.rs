//! Rows kept for later: of a portal stopped at its row limit, of a cursor.

use std::sync::Arc;

use bumpalo::Bump;
use storage::Store;

use crate::error::SqlError;
use crate::spill::{Rows, RowsReader, pack, unpack};
use crate::types::Datum;

/// Rows taken from the front; what was taken is forgotten.
pub(super) struct KeptRows {
    rows: Rows,
    reader: RowsReader,
}

impl KeptRows {
    /// No rows yet; `memory` bytes of them will be kept before they go to temporary pages.
    pub fn new(memory: usize) -> KeptRows {
        KeptRows { rows: Rows::new(memory), reader: RowsReader::default() }
    }

    /// Keeps a copy of a row.
    pub fn push(&mut self, store: &Arc<Store>, row: &[Datum<'_>]) -> Result<(), SqlError> {
        self.rows.push(store, |to| pack(row.iter().copied(), to))
    }

    /// Hands the next row to `with`; None at the end.
    pub fn pop<R>(
        &mut self,
        with: impl FnOnce(&[Datum<'_>]) -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        let Some(mut packed) = self.reader.take(&mut self.rows)? else { return Ok(None) };
        let arena = Bump::new();
        let mut values = Vec::new();
        while !packed.is_empty() {
            values.push(unpack(&mut packed, &arena)?);
        }
        with(&values).map(Some)
    }
}
