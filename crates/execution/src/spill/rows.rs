//! Rows kept in the order they came.
//!
//! A row is its length (u32) and its values, each with a tag ([`values::types::tagged`]), packed
//! without gaps.

use bumpalo::Bump;
use txn::Folder;
use txn::spool::{self, Spool, SpoolReader};

use super::{failed, short};
use values::error::SqlError;
use values::types::{Datum, tagged};

/// Appends values as [`unpack`] reads them.
#[inline]
pub fn pack<'d>(mut values: impl Iterator<Item = Datum<'d>>, to: &mut Vec<u8>) -> Result<(), SqlError> {
    values.try_for_each(|value| tagged::write_deep(value, to))
}

/// The next packed value. Only a record needs the arena.
#[inline]
pub fn unpack<'x>(bytes: &mut &'x [u8], arena: &'x Bump) -> Result<Datum<'x>, SqlError> {
    tagged::read_deep(bytes, arena)
}

/// A list of rows.
pub struct Rows {
    spool: Spool,
    count: u64,
    /// Whether readers look rows up by number.
    marked: bool,
    /// Where every 64th row begins, if so.
    marks: Vec<u64>,
}

/// Rows from one mark to the next.
const ROWS_BETWEEN_MARKS: u64 = 64;

impl Rows {
    /// An empty list that keeps `memory` bytes before it uses pages.
    pub fn new(memory: usize) -> Rows {
        Rows { spool: Spool::new(memory), count: 0, marked: false, marks: Vec::new() }
    }

    /// As [`Rows::new`], for [`RowsReader::row`].
    pub fn numbered(memory: usize) -> Rows {
        Rows { marked: true, ..Rows::new(memory) }
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The place behind the last row.
    pub fn end(&self) -> RowPlace {
        RowPlace { number: self.count, at: self.spool.len() }
    }

    /// Appends a row that `write` packs.
    #[inline]
    pub fn push(
        &mut self,
        folder: &Folder,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if self.count.is_multiple_of(ROWS_BETWEEN_MARKS) && self.marked {
            self.marks.push(self.spool.len());
        }
        self.count += 1;
        let mut length = Ok(0);
        let framed = |to: &mut Vec<u8>| {
            let start = to.len();
            to.extend_from_slice(&[0; 4]);
            length = write(to).and_then(|()| short(to.len() - start - 4));
            to[start..start + 4].copy_from_slice(&length.as_ref().map_or(0, |len| *len).to_le_bytes());
        };
        spool::append(&mut self.spool, folder, framed).map_err(failed)?;
        length.map(drop)
    }

    /// Gives back the pages of rows before `number`, which nobody reads again. For a list made by
    /// [`Rows::numbered`].
    pub fn release_before(&mut self, number: u64) {
        if let Some(at) = self.marks.get((number / ROWS_BETWEEN_MARKS) as usize) {
            self.spool.release_before(*at);
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.spool.clear();
        self.marks.clear();
        self.count = 0;
    }
}

/// Where a row of a list begins.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct RowPlace {
    /// The row's number.
    pub number: u64,
    at: u64,
}

/// A reader of a list of rows.
#[derive(Default)]
pub struct RowsReader {
    reader: SpoolReader,
    /// Rows returned so far.
    returned: u64,
    /// Where the row last returned begins.
    last: u64,
}

impl RowsReader {
    /// A reader that begins at a place.
    pub fn at(place: RowPlace) -> RowsReader {
        let mut reader = RowsReader { returned: place.number, ..RowsReader::default() };
        reader.reader.seek(place.at);
        reader
    }

    /// The next row's packed values; None at the end. Rows may be appended meanwhile.
    #[inline]
    pub fn next<'a>(&'a mut self, rows: &'a Rows) -> Result<Option<&'a [u8]>, SqlError> {
        if self.returned == rows.count {
            return Ok(None);
        }
        self.returned += 1;
        self.last = self.reader.at();
        let len = self.length(rows)?;
        self.reader.read(&rows.spool, len).map(Some).map_err(failed)
    }

    /// The number of the next row.
    pub fn number(&self) -> u64 {
        self.returned
    }

    /// Row `number`, which must exist. For a list made by [`Rows::numbered`].
    pub fn row<'a>(&'a mut self, rows: &'a Rows, number: u64) -> Result<&'a [u8], SqlError> {
        let mark = number / ROWS_BETWEEN_MARKS;
        if number + 1 == self.returned {
            self.reader.seek(self.last);
            self.returned = number;
        } else if number < self.returned || mark > self.returned / ROWS_BETWEEN_MARKS {
            let at = rows.marks.get(mark as usize).ok_or_else(|| SqlError::internal("no such kept row"))?;
            self.reader.seek(*at);
            self.returned = mark * ROWS_BETWEEN_MARKS;
        }
        while self.returned < number {
            let len = self.length(rows)?;
            self.reader.seek(self.reader.at() + len as u64);
            self.returned += 1;
        }
        self.next(rows)?.ok_or_else(|| SqlError::internal("no such kept row"))
    }

    fn length(&mut self, rows: &Rows) -> Result<usize, SqlError> {
        let len = self.reader.read(&rows.spool, 4).map_err(failed)?;
        Ok(len.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize))
    }

    /// The next row, which nobody will read again: its page is given back once it is passed.
    pub fn take<'a>(&'a mut self, rows: &'a mut Rows) -> Result<Option<&'a [u8]>, SqlError> {
        rows.spool.release_before(self.reader.at());
        self.next(rows)
    }
}
