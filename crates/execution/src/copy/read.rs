//! COPY FROM: lines cut out of the client's pieces, fields out of lines, values out of fields.
//!
//! Errors carry PostgreSQL's context: the table, the number of the line and, for a value, its
//! column.

use super::SIGNATURE;
use super::fields::{Fields, Shown, find_paced, has_either};
use crate::client::Client;
use crate::insert::insert_row;
use crate::load;
use crate::{Arena, Executor};
use query::plan::{Body, CopyFormat, CopyKind, Insert, Reg, Statement};
use values::error::{SqlError, SqlState};
use values::types::{Datum, Type};
use values::work;
use values::{binary, encoding, text};

/// Type, name and register of a line's field.
type Field = (Type, String, Reg);

/// Reads rows from the client and inserts them; their number.
pub fn copy_in<'s>(
    cx: &mut Executor<'s>,
    (statement, table, fields): (&'s Statement, &str, &[Field]),
    format: &CopyFormat,
    client: &mut dyn Client,
) -> Result<u64, SqlError> {
    let Body::Query { root, .. } = &statement.body else {
        return Err(SqlError::internal("COPY into what is no query"));
    };
    let Some(insert) = load::insert_of(root) else {
        return Err(SqlError::internal("COPY into what is no table"));
    };
    load::begin(cx, insert)?;
    let mut reader = Reader { cx, insert, statement, table, fields, format, line: 0, rows: 0 };
    let mut input = Input { bytes: Vec::new(), start: 0, ended: false };
    match format.kind {
        CopyKind::Binary => reader.binary(&mut input, client)?,
        CopyKind::Text | CopyKind::Csv => reader.lines(&mut input, client)?,
    }
    let rows = reader.rows;
    // Data after the end marker is read and ignored.
    while input.more(client)? {
        input.start = input.bytes.len();
    }
    cx.finish()?;
    Ok(rows)
}

/// Data that has come from the client and was not used yet.
struct Input {
    bytes: Vec<u8>,
    start: usize,
    ended: bool,
}

impl Input {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes another piece; false at the end.
    fn more(&mut self, client: &mut dyn Client) -> Result<bool, SqlError> {
        if self.ended {
            return Ok(false);
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        match client.copy_in()? {
            Some(piece) => work::put(piece, &mut self.bytes)?,
            None => self.ended = true,
        }
        Ok(!self.ended)
    }

    /// Returns exactly `count` bytes, or `None` if the copy ends before.
    fn take(&mut self, count: usize, client: &mut dyn Client) -> Result<Option<&[u8]>, SqlError> {
        while self.rest().len() < count {
            if !self.more(client)? {
                return Ok(None);
            }
        }
        self.start += count;
        Ok(Some(&self.bytes[self.start - count..self.start]))
    }
}

/// The end of a line: the bytes that ended the first one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// There was none yet.
    Unknown,
    Feed,
    Return,
    ReturnFeed,
}

impl Ending {
    /// The last byte of it.
    fn last(self) -> u8 {
        if self == Ending::Return { b'\r' } else { b'\n' }
    }

    /// The byte that a line with this ending may hold only within quotes.
    fn stray(self) -> u8 {
        if self == Ending::Return { b'\n' } else { b'\r' }
    }
}

/// How far the search for a line's end has come, and whether that is within CSV quotes. Also the
/// first place of the text format's end marker, `\.`.
#[derive(Default)]
struct Seen {
    at: usize,
    quoted: bool,
    marker: Option<usize>,
}

struct Reader<'r, 's> {
    cx: &'r mut Executor<'s>,
    insert: &'s Insert,
    statement: &'s Statement,
    table: &'r str,
    fields: &'r [Field],
    format: &'r CopyFormat,
    line: u64,
    rows: u64,
}

/// As [`has_either`], with safe points.
fn has_either_paced(bytes: &[u8], a: u8, b: u8) -> Result<bool, SqlError> {
    for piece in work::byte_pieces(bytes, 1) {
        if has_either(piece?, a, b) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

impl<'s> Reader<'_, 's> {
    /// Text and CSV.
    fn lines(&mut self, input: &mut Input, client: &mut dyn Client) -> Result<(), SqlError> {
        let mut seen = Seen::default();
        let (mut ending, mut firsts) = (Ending::Unknown, <[Seen; 2]>::default());
        let mut fields = Fields::default();
        let mut arena = self.cx.take_arena();
        loop {
            if ending == Ending::Unknown {
                ending = self.ending(input.rest(), &mut firsts, input.ended)?;
            }
            // Until the first line's ending is known, no line's end can be found.
            let found = match ending {
                Ending::Unknown => None,
                known => self.line_end(input.rest(), &mut seen, known.last())?,
            };
            let length = match found {
                Some(at) => at,
                None => {
                    // At the end of the data `ending()` decides. So go on while data comes or the
                    // ending is still unknown.
                    if input.more(client)? || ending == Ending::Unknown {
                        continue;
                    }
                    if seen.quoted {
                        let first = self.line == 0;
                        self.line += 1 + self.breaks(input.rest(), first, ending)?;
                        let error = bad_format("unterminated CSV quoted field");
                        return Err(self.with_line(error, Some(input.rest())));
                    }
                    input.rest().len()
                }
            };
            if length == 0 && found.is_none() {
                break;
            }
            work::tick(length)?;
            let whole = &input.rest()[..length];
            let marker = std::mem::take(&mut seen).marker;
            let first = self.line == 0;
            self.line += 1;
            if let Some(at) = marker {
                self.check_ending(&whole[..at], false, ending)?;
                self.check_marker(at, &input.rest()[at + 2..], ending)?;
                input.start += length + usize::from(found.is_some());
                break;
            }
            let (line, plain) = match whole.strip_suffix(b"\r") {
                Some(line) if ending == Ending::ReturnFeed && found.is_some() => {
                    (line, !line.ends_with(b"\\"))
                }
                _ => (whole, ending != Ending::ReturnFeed),
            };
            let plain = plain && !has_either_paced(line, 0, ending.stray())?;
            if !plain {
                self.check_ending(whole, found.is_some(), ending)?;
            }
            self.line += self.breaks(line, first, ending)?;
            if !first || !self.format.header {
                fields.cut(line, self.format, self.fields.len())?;
                self.insert_texts((line, plain), &fields, &arena)?;
                arena.bump.reset();
            }
            input.start += length + usize::from(found.is_some());
        }
        self.cx.give_arena(arena);
        Ok(())
    }

    /// The line breaks within a CSV line's quotes, which count as lines. PostgreSQL takes another
    /// byte for one before it knows what ends a line.
    fn breaks(&self, line: &[u8], first: bool, ending: Ending) -> Result<u64, SqlError> {
        let mut count = 0;
        if self.format.kind == CopyKind::Csv {
            let end = if ending == Ending::Feed && !first { b'\n' } else { b'\r' };
            for piece in work::byte_pieces(line, 1) {
                count += piece?.iter().filter(|byte| **byte == end).count() as u64;
            }
        }
        Ok(count)
    }

    /// The end of the first line; unknown if that has not come yet.
    fn ending(
        &self,
        bytes: &[u8],
        [feeds, returns]: &mut [Seen; 2],
        ended: bool,
    ) -> Result<Ending, SqlError> {
        let feed = self.line_end(bytes, feeds, b'\n')?;
        let back = self.line_end(bytes, returns, b'\r')?;
        let Some(at) = back.filter(|at| feed.is_none_or(|feed| *at < feed)) else {
            return Ok(if feed.is_some() || ended { Ending::Feed } else { Ending::Unknown });
        };
        Ok(match bytes.get(at + 1) {
            Some(b'\n') => Ending::ReturnFeed,
            None if !ended => Ending::Unknown,
            _ => Ending::Return,
        })
    }

    /// Fails if the line holds a carriage return or a line feed that differs from the ending of the
    /// first line.
    fn check_ending(&self, line: &[u8], ended: bool, ending: Ending) -> Result<(), SqlError> {
        let first = |end| self.line_end(line, &mut Seen::default(), end);
        let at_end = |at: usize| at + 1 == line.len();
        let name = match ending {
            Ending::Return => first(b'\n')?.map(|_| "newline"),
            Ending::ReturnFeed if ended => match first(b'\r')? {
                Some(at) if at_end(at) => None,
                Some(_) => Some("carriage return"),
                None => Some("newline"),
            },
            _ => first(b'\r')?.map(|_| "carriage return"),
        };
        let Some(name) = name else { return Ok(()) };
        let csv = self.format.kind == CopyKind::Csv;
        let (how, instead) = match (csv, name) {
            (true, _) => ("unquoted", "quoted CSV field"),
            (false, "newline") => ("literal", "\"\\n\""),
            (false, _) => ("literal", "\"\\r\""),
        };
        let error = bad_format(format!("{how} {name} found in data"));
        Err(self.with_line(error.with_hint(format!("Use {instead} to represent {name}.")), None))
    }

    /// Fails if the end marker, which begins `at` bytes into its line, is not the whole line. Fails
    /// as well if the line does not end as the first one did.
    fn check_marker(&self, at: usize, behind: &[u8], ending: Ending) -> Result<(), SqlError> {
        let error = |what| Err(self.with_line(bad_format(format!("end-of-copy marker {what}")), None));
        let (alone, style) = ("is not alone on its line", "does not match previous newline style");
        // The line that ends the first is the one that decides.
        let ending = if self.line == 1 { Ending::Unknown } else { ending };
        let next = match (ending, behind) {
            (Ending::ReturnFeed, [b'\n', ..]) => return error(style),
            (Ending::ReturnFeed, [b'\r', behind @ ..]) => behind.first(),
            (Ending::ReturnFeed, _) => None,
            _ => behind.first(),
        };
        match next {
            Some(b'\r' | b'\n') if ending != Ending::Unknown && next != Some(&ending.last()) => error(style),
            Some(b'\r' | b'\n') if at == 0 => Ok(()),
            _ => error(alone),
        }
    }

    /// Where the line ends. A line break within CSV quotes, or behind a backslash of the text
    /// format, belongs to the line.
    fn line_end(&self, bytes: &[u8], seen: &mut Seen, end: u8) -> Result<Option<usize>, SqlError> {
        let CopyFormat { kind, quote, escape, .. } = *self.format;
        // An escape takes the byte behind it along; a doubled quote toggles twice.
        let (mark, escape) = match kind {
            CopyKind::Csv => (quote, (escape != quote).then_some(escape)),
            _ => (b'\\', Some(b'\\')),
        };
        loop {
            let within_quotes = seen.quoted && escape.is_some();
            let (one, other) = if within_quotes { (quote, escape.unwrap_or(quote)) } else { (end, mark) };
            seen.at = find_paced(bytes, seen.at, one, other)?;
            let Some(&byte) = bytes.get(seen.at) else { return Ok(None) };
            if byte == end && !seen.quoted {
                return Ok(Some(seen.at));
            }
            work::tick(4)?;
            if Some(byte) == escape && (seen.quoted || kind != CopyKind::Csv) {
                let Some(&next) = bytes.get(seen.at + 1) else { return Ok(None) };
                if kind != CopyKind::Csv && next == b'.' {
                    seen.marker.get_or_insert(seen.at);
                }
                let takes = kind != CopyKind::Csv || next == quote || Some(next) == escape;
                seen.at += if takes { 2 } else { 1 };
                continue;
            }
            seen.quoted ^= byte == quote && kind == CopyKind::Csv;
            seen.at += 1;
        }
    }

    /// Reads a line's values and inserts them as a row. The flag beside the line says that it holds
    /// no zero byte.
    fn insert_texts<'x>(
        &mut self,
        line: (&'x [u8], bool),
        present: &'x Fields,
        arena: &'x Arena<'s>,
    ) -> Result<(), SqlError> {
        if present.len() > self.fields.len() {
            return Err(self.with_line(bad_format("extra data after last expected column"), Some(line.0)));
        }
        let Some(missing) = self.fields.get(present.len()) else {
            return self.insert_whole(line, present, arena);
        };
        let message = format!("missing data for column \"{}\"", missing.1);
        Err(self.with_line(bad_format(message), Some(line.0)))
    }

    /// As [`Reader::insert_texts`], for a line with as many fields as there are columns.
    fn insert_whole<'x>(
        &mut self,
        (line, plain): (&'x [u8], bool),
        present: &'x Fields,
        arena: &'x Arena<'s>,
    ) -> Result<(), SqlError> {
        let encoding = |error| self.with_line(error, None);
        let whole = if plain { encoding::utf8(line) } else { encoding::valid_text(line) };
        let whole = whole.map_err(encoding)?;
        let file = arena.bump.alloc_slice_fill_copy(self.statement.registers as usize, Datum::Null);
        for (at, (type_, name, register)) in self.fields.iter().enumerate() {
            let text = match present.get(at) {
                Shown::Null => continue,
                Shown::Line(start, end) => &whole[start..end],
                Shown::Unescaped(bytes) => encoding::valid_text(bytes).map_err(encoding)?,
            };
            file[*register as usize] = text::parse(text, *type_, self.cx.environment, &arena.bump)
                .map_err(|error| self.with_column(error, name, Some(text)))?;
        }
        self.insert_file(file, arena).map_err(|error| {
            // PostgreSQL stores rows in batches, so it no longer has the line when a unique key is
            // violated.
            let shown = (error.code != SqlState::UNIQUE_VIOLATION).then_some(line);
            self.with_line(error, shown)
        })
    }

    /// Inserts the row whose fields the registers hold.
    fn insert_file<'x>(&mut self, file: &mut [Datum<'x>], arena: &'x Arena<'s>) -> Result<(), SqlError> {
        self.cx.check()?;
        if insert_row(self.cx, self.insert, file, arena)? {
            self.rows += 1;
        }
        Ok(())
    }

    /// PostgreSQL's binary format.
    fn binary(&mut self, input: &mut Input, client: &mut dyn Client) -> Result<(), SqlError> {
        if input.take(SIGNATURE.len(), client)? != Some(SIGNATURE) {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let flags = input.take(4, client)?;
        let flags = int4(flags.ok_or_else(|| bad_format("invalid COPY file header (missing flags)"))?);
        if flags & 1 << 16 != 0 {
            return Err(bad_format("invalid COPY file header (WITH OIDS)"));
        }
        // Bits 0 to 15 are flags that a reader may ignore; any of bits 16 to 31 is critical and
        // unknown.
        if flags >> 16 != 0 {
            return Err(bad_format("unrecognized critical flags in COPY file header"));
        }
        let missing = || bad_format("invalid COPY file header (missing length)");
        let extension = int4(input.take(4, client)?.ok_or_else(missing)?);
        let extension = usize::try_from(extension).map_err(|_| missing())?;
        input
            .take(extension, client)?
            .ok_or_else(|| bad_format("invalid COPY file header (wrong length)"))?;
        loop {
            self.line += 1;
            let Some(count) = input.take(2, client)? else { return Ok(()) };
            let count = i16::from_be_bytes([count[0], count[1]]);
            if count == -1 {
                return Ok(());
            }
            if usize::try_from(count) != Ok(self.fields.len()) {
                let message = format!("row field count is {count}, expected {}", self.fields.len());
                return Err(self.with_line(bad_format(message), None));
            }
            self.binary_row(input, client)?;
        }
    }

    fn binary_row(&mut self, input: &mut Input, client: &mut dyn Client) -> Result<(), SqlError> {
        let arena = self.cx.take_arena();
        let done = (|| {
            let file = arena.bump.alloc_slice_fill_copy(self.statement.registers as usize, Datum::Null);
            let short = || bad_format("unexpected EOF in COPY data");
            for (type_, name, register) in self.fields {
                let length = int4(input.take(4, client)?.ok_or_else(|| self.with_line(short(), None))?);
                if length == -1 {
                    continue;
                }
                let length = usize::try_from(length)
                    .map_err(|_| self.with_column(bad_format("invalid field size"), name, None))?;
                let bytes = input.take(length, client)?.ok_or_else(|| self.with_line(short(), None))?;
                let bytes = work::bytes_in(bytes, &arena.bump)?;
                file[*register as usize] = binary::parse(bytes, *type_, &arena.bump)
                    .map_err(|error| self.with_column(error, name, None))?;
            }
            self.insert_file(file, &arena).map_err(|error| self.with_line(error, None))
        })();
        self.cx.give_arena(arena);
        done
    }

    /// "COPY t, line 3: "...""
    fn with_line(&self, mut error: SqlError, line: Option<&[u8]>) -> SqlError {
        // At least as many bytes as the message shows.
        let line = line.map(|line| String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN + 4)]));
        let shown = line.map(|line| format!(": \"{}\"", shortened(&line)));
        error.context = Some(format!("COPY {}, line {}{}", self.table, self.line, shown.unwrap_or_default()));
        error
    }

    /// "COPY t, line 3, column a: "..."".
    fn with_column(&self, mut error: SqlError, column: &str, value: Option<&str>) -> SqlError {
        let shown = value.map(|value| format!(": \"{}\"", shortened(value)));
        error.context = Some(format!(
            "COPY {}, line {}, column {column}{}",
            self.table,
            self.line,
            shown.unwrap_or_default()
        ));
        error
    }
}

/// Characters shown of a line or a value.
const SHOWN: usize = 100;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn int4(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes))
}
