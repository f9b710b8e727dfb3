//! Rows kept in the order they came.
//!
//! A row is its length (u32) and its values, each with a tag ([`crate::types::tagged`]), packed without gaps.

use std::sync::Arc;

use bumpalo::Bump;
use storage::Store;
use storage::spool::{Spool, SpoolReader};

use super::failed;
use crate::error::SqlError;
use crate::types::{Datum, tagged};

/// Appends values as [`unpack`] reads them.
#[inline]
pub(crate) fn pack<'d>(values: impl Iterator<Item = Datum<'d>>, to: &mut Vec<u8>) {
    values.for_each(|value| tagged::write_deep(value, to));
}

/// The next packed value. Only a record needs the arena.
#[inline]
pub(crate) fn unpack<'x>(bytes: &mut &'x [u8], arena: &'x Bump) -> Result<Datum<'x>, SqlError> {
    tagged::read_deep(bytes, arena).ok_or_else(|| SqlError::internal("a kept row that cannot be read"))
}

/// A list of rows.
pub(crate) struct Rows {
    spool: Spool,
    count: u64,
}

impl Rows {
    /// An empty list that keeps `memory` bytes before it uses pages.
    pub fn new(memory: usize) -> Rows {
        Rows { spool: Spool::new(memory), count: 0 }
    }

    /// Appends a row.
    #[inline]
    pub fn push<'d>(
        &mut self,
        store: &Arc<Store>,
        values: impl Iterator<Item = Datum<'d>>,
    ) -> Result<(), SqlError> {
        self.count += 1;
        let write = |to: &mut Vec<u8>| {
            let start = to.len();
            to.extend_from_slice(&[0; 4]);
            pack(values, to);
            let len = (to.len() - start - 4) as u32;
            to[start..start + 4].copy_from_slice(&len.to_le_bytes());
        };
        self.spool.append(store, write).map_err(failed)
    }
}

/// A place in a list of rows.
#[derive(Default)]
pub(crate) struct RowsReader {
    reader: SpoolReader,
    given: u64,
}

impl RowsReader {
    /// The next row's packed values; None at the end. Rows may be appended meanwhile.
    #[inline]
    pub fn next<'a>(&'a mut self, rows: &'a Rows) -> Result<Option<&'a [u8]>, SqlError> {
        if self.given == rows.count {
            return Ok(None);
        }
        self.given += 1;
        let len = self.reader.read(&rows.spool, 4).map_err(failed)?;
        let len = len.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        self.reader.read(&rows.spool, len as usize).map(Some).map_err(failed)
    }

    /// The next row, which nobody will read again: its page is given back once it is passed.
    pub fn take<'a>(&'a mut self, rows: &'a mut Rows) -> Result<Option<&'a [u8]>, SqlError> {
        rows.spool.release_before(self.reader.at());
        self.next(rows)
    }
}
