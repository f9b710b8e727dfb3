//! Rows kept for later, by a portal stopped at its row limit or by a cursor.
//!
//! The place among n rows is 0 before the first one, i on row i, and n + 1 behind the last one.
//!
//! What must hold:
//!
//! 1. `forgotten` and the kept rows together count every row made so far, so places stay the same
//!    when rows are forgotten.
//! 2. Rows are forgotten only where they do not scroll. Callers ask [`KeptRows::require_scroll`]
//!    before they go back.
//! 3. The query behind the rows is dropped at its end and at its first error. So a failed query is
//!    never asked for another row.
//! 4. The reader belongs to the rows at hand: when they are cleared, a new reader replaces it.

use bumpalo::Bump;
use txn::Folder;

use super::row_stream::RowStream;
use execution::spill::{Rows, RowsReader, pack, unpack};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// Kept rows and a place among them. Rows that only go forward are forgotten as they are passed.
pub(super) struct KeptRows {
    rows: Rows,
    /// Rows passed and forgotten before the first of `rows`.
    forgotten: u64,
    /// The query that makes the rows behind the last of `rows`; None when there are no more.
    stream: Option<RowStream>,
    reader: RowsReader,
    scroll: bool,
    place: u64,
}

impl KeptRows {
    /// An empty list to be read forward. It keeps `memory` bytes of rows before it uses temporary
    /// pages.
    pub fn new(memory: usize) -> KeptRows {
        let (rows, reader) = (Rows::new(memory), RowsReader::default());
        KeptRows { rows, forgotten: 0, stream: None, reader, scroll: false, place: 0 }
    }

    /// As [`KeptRows::new`], to be read in both directions.
    pub fn scrollable(memory: usize) -> KeptRows {
        KeptRows { rows: Rows::numbered(memory), scroll: true, ..KeptRows::new(0) }
    }

    /// The same list, whose rows behind the kept ones `query` makes when they are read.
    pub fn with_stream(self, query: RowStream) -> KeptRows {
        KeptRows { stream: Some(query), ..self }
    }

    /// The number of rows made so far.
    fn count(&self) -> u64 {
        self.forgotten + self.rows.count()
    }

    /// Makes the next row behind the last one; false when there is none.
    fn make(&mut self) -> Result<bool, SqlError> {
        let Some(query) = &mut self.stream else { return Ok(false) };
        if !self.scroll {
            self.forgotten += self.rows.count();
            self.rows.clear();
            self.reader = RowsReader::default();
        }
        let made = query.next(&mut self.rows);
        if !matches!(made, Ok(true)) {
            self.stream = None;
        }
        made
    }

    /// Keeps a copy of a row.
    pub fn push(&mut self, folder: &Folder, row: &[Datum<'_>]) -> Result<(), SqlError> {
        self.rows.push(folder, |to| pack(row.iter().copied(), to))
    }

    /// Whether rows that were passed can be read again.
    pub fn scrolls(&self) -> bool {
        self.scroll
    }

    /// The place.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Number of rows passed, the one it stands on included.
    pub fn passed(&self) -> u64 {
        self.place.min(self.count())
    }

    /// Whether it stands on a row.
    pub fn on_row(&self) -> bool {
        (1..=self.count()).contains(&self.place)
    }

    /// Fails with 55000 if the rows only go forward.
    pub fn require_scroll(&self) -> Result<(), SqlError> {
        if self.scroll {
            return Ok(());
        }
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        Err(SqlError::new(state, "cursor can only scan forward")
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }

    /// Goes before the first row.
    pub fn rewind(&mut self) -> Result<(), SqlError> {
        if self.place > 0 {
            self.require_scroll()?;
            self.place = 0;
        }
        Ok(())
    }

    /// Hands the next row to `with`; None at the end.
    pub fn pop<R>(
        &mut self,
        with: impl FnOnce(&[Datum<'_>]) -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        if self.place >= self.count() && !self.make()? {
            self.place = self.count() + 1;
            return Ok(None);
        }
        self.place += 1;
        if self.scroll {
            return self.show(with);
        }
        self.reader.take(&mut self.rows)?.map(|packed| unpacked(packed, with)).transpose()
    }

    /// Hands the row before to `with`; None at the start. The rows must scroll.
    pub fn back<R>(
        &mut self,
        with: impl FnOnce(&[Datum<'_>]) -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        self.place = self.place.saturating_sub(1);
        if self.place == 0 {
            return Ok(None);
        }
        self.show(with)
    }

    /// The row at the place.
    fn show<R>(
        &mut self,
        with: impl FnOnce(&[Datum<'_>]) -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        unpacked(self.reader.row(&self.rows, self.place - 1)?, with).map(Some)
    }
}

fn unpacked<R>(packed: &[u8], with: impl FnOnce(&[Datum<'_>]) -> Result<R, SqlError>) -> Result<R, SqlError> {
    let arena = Bump::new();
    let (mut packed, mut values) = (packed, Vec::new());
    while !packed.is_empty() {
        values.push(unpack(&mut packed, &arena)?);
    }
    with(&values)
}
