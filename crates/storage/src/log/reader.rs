//! Reading the log back from its files: forward record by record until the first gap, or the record
//! that ends at an LSN.
//!
//! The log ends where no record begins: wrong position, impossible length, wrong checksum, or no
//! such segment. The module `damage` decides whether that is an unfinished end or damage. A segment
//! that was cut short reads as zeros from there on, and so does a missing one. A segment that is
//! too long is damage. An I/O error is an error.

use std::path::{Path, PathBuf};

use runtime::file::{AlignedBuf, File};

use super::record::{self, HEADER, LONGEST, Record, TRAILER};
use super::{BLOCK, segments};
use crate::Error;
use crate::error::IoContext;
use crate::format::segment_name;
use crate::page::Lsn;

/// The number of bits of a position.
pub(super) const POSITION_BITS: u32 = 56;
/// Bytes read at once: several of the longest records.
const WINDOW: usize = (4 * LONGEST).next_multiple_of(1 << 20);

/// Reads the log of a data folder to which nobody appends.
#[derive(Debug)]
pub struct LogReader {
    folder: PathBuf,
    segment_bytes: u64,
    salt: u32,
    /// Numbers of the segments, ascending.
    segments: Vec<u64>,
    /// The position at which the next record begins.
    next: u64,
    window: AlignedBuf,
    /// Position of the window's first byte (a block's start), and the number of bytes in it.
    window_start: u64,
    window_length: usize,
    /// The segment that was read last, its file and its length.
    open: Option<(u64, File, u64)>,
}

impl LogReader {
    /// Begins at `start`, where a record must begin or the log end. Ignores everything before its
    /// segment.
    pub fn new(folder: &Path, segment_bytes: u64, salt: u32, start: Lsn) -> Result<LogReader, Error> {
        let mut numbers = segments::list(folder)?;
        let last = (1 << POSITION_BITS) / segment_bytes;
        numbers.retain(|number| (start.0 / segment_bytes..last).contains(number));
        Ok(LogReader {
            folder: folder.to_owned(),
            segment_bytes,
            salt,
            segments: numbers,
            next: start.0,
            window: AlignedBuf::new(WINDOW),
            window_start: 0,
            window_length: 0,
            open: None,
        })
    }

    /// Number of the first segment in the folder.
    pub(crate) fn first_segment(&self) -> Option<u64> {
        self.segments.first().copied()
    }

    /// The position at which the next record begins; after `next_record` returned `None`, the end
    /// of the log.
    pub fn position(&self) -> Lsn {
        Lsn(self.next)
    }

    /// The next record, or `None` where the log ends.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        let start = self.next;
        let Some(length) =
            self.bytes(start, HEADER)?.and_then(|header| record::claimed_length(header, start))
        else {
            return Ok(None);
        };
        let salt = self.salt;
        let parsed = self.bytes(start, length)?.and_then(|bytes| Record::parse(bytes, start, salt));
        let Some(checked) = parsed.map(|record| record.checked()) else { return Ok(None) };
        self.next = start + length as u64;
        let bytes = self.bytes(start, length)?.expect("in the window");
        Ok(Some(Record::again(bytes, checked)))
    }

    /// The record that ends at `lsn`, `None` if there is none.
    pub fn record_ending_at(&mut self, lsn: Lsn) -> Result<Option<Record<'_>>, Error> {
        let Some(trailer) = lsn.0.checked_sub(TRAILER as u64) else { return Ok(None) };
        // For backward walks the window is placed so that the records before this one are in it
        // too.
        self.place_window_before(lsn.0)?;
        let Some(length) = self.bytes(trailer, TRAILER)?.and_then(|bytes| record::u32_at(bytes, 0)) else {
            return Ok(None);
        };
        let Some(start) = lsn.0.checked_sub(u64::from(length)) else { return Ok(None) };
        if length as usize > LONGEST || (length as usize) < HEADER + TRAILER {
            return Ok(None);
        }
        let salt = self.salt;
        Ok(self.bytes(start, length as usize)?.and_then(|bytes| Record::parse(bytes, start, salt)))
    }

    fn place_window_before(&mut self, end: u64) -> Result<(), Error> {
        let held = self.window_start..self.window_start + self.window_length as u64;
        if !(held.contains(&end.saturating_sub(LONGEST as u64)) && end <= held.end) {
            let start = end.saturating_sub((WINDOW / 2) as u64) & !(BLOCK - 1);
            let first = self.first_segment().unwrap_or(0) * self.segment_bytes;
            self.load(start.max(first))?;
        }
        Ok(())
    }

    pub(super) fn salt(&self) -> u32 {
        self.salt
    }

    /// The position at which the segments end.
    pub(super) fn segments_end(&self) -> u64 {
        self.segments.last().map_or(0, |last| (last + 1) * self.segment_bytes)
    }

    fn is_there(&self, segment: u64) -> bool {
        self.segments.binary_search(&segment).is_ok()
    }

    /// The first position from `start` on that lies in a segment of the folder.
    pub(super) fn next_there(&self, start: u64) -> Option<u64> {
        let segment = start / self.segment_bytes;
        let there = self.segments.iter().find(|number| **number >= segment)?;
        Some(start.max(there * self.segment_bytes))
    }

    /// The first missing segment among those that hold the positions from `start` to before `end`.
    pub(super) fn missing_between(&self, start: u64, end: u64) -> Option<u64> {
        (start / self.segment_bytes..end.div_ceil(self.segment_bytes)).find(|number| !self.is_there(*number))
    }

    /// `length` bytes at `start`; `None` where the segments end before.
    pub(super) fn bytes(&mut self, start: u64, length: usize) -> Result<Option<&[u8]>, Error> {
        let held = self.window_start..self.window_start + self.window_length as u64;
        if start < held.start || start + length as u64 > held.end {
            self.load(start & !(BLOCK - 1))?;
        }
        let at = (start - self.window_start) as usize;
        Ok(self.window[..self.window_length].get(at..at + length))
    }

    /// Fills the window from `start` (a block's start) on, as far as there are segments.
    fn load(&mut self, start: u64) -> Result<(), Error> {
        self.window_start = start;
        self.window_length = 0;
        while self.window_length < self.window.len() {
            let position = start + self.window_length as u64;
            let number = position / self.segment_bytes;
            if self.first_segment().is_none_or(|first| number < first) || position >= self.segments_end() {
                return Ok(());
            }
            let there = self.open_segment(number)?;
            let at = position % self.segment_bytes;
            let length = (self.window.len() - self.window_length).min((self.segment_bytes - at) as usize);
            let piece = &mut self.window[self.window_length..self.window_length + length];
            match &self.open {
                Some((_, file, _)) if at + length as u64 <= there => {
                    file.read_at(piece, at).during("reading a log segment")?;
                }
                Some((_, file, _)) if at < there => {
                    piece.fill(0);
                    file.read_some_at(piece, at).during("reading a log segment")?;
                }
                _ => piece.fill(0),
            }
            self.window_length += length;
        }
        Ok(())
    }

    /// Opens a segment, if the folder has it; returns its length in bytes.
    fn open_segment(&mut self, number: u64) -> Result<u64, Error> {
        if !self.is_there(number) {
            return Ok(0);
        }
        if self.open.as_ref().is_none_or(|(open, ..)| *open != number) {
            let file = segments::open_for_reading(&self.folder.join(segment_name(number)))?;
            let length = file.len().during("measuring a log segment")?;
            if length > self.segment_bytes {
                return Err(segments::too_long(number));
            }
            self.open = Some((number, file, length));
        }
        Ok(self.open.as_ref().map_or(0, |(.., length)| *length))
    }
}
