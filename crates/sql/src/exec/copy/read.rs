//! COPY FROM: lines cut out of the client's pieces, fields out of lines, values out of fields.
//!
//! Errors carry PostgreSQL's context: the table, the number of the line and, for a value, its column.

use super::SIGNATURE;
use crate::error::{SqlError, SqlState};
use crate::exec::insert::insert_row;
use crate::exec::{Arena, Executor};
use crate::plan::{Body, CopyFormat, CopyKind, Insert, Plan, Reg, Statement};
use crate::session::Client;
use crate::types::{Datum, Type, binary, text};

/// Type, name and register of a line's field.
type Field = (Type, String, Reg);

/// Reads rows from the client and inserts them; their number.
pub(crate) fn copy_in<'s>(
    cx: &mut Executor<'s>,
    (statement, table, fields): (&'s Statement, &str, &[Field]),
    format: &CopyFormat,
    client: &mut dyn Client,
) -> Result<u64, SqlError> {
    let Body::Query { root, .. } = &statement.body else {
        return Err(SqlError::internal("COPY into what is no query"));
    };
    let Some(insert) = find_insert(root) else {
        return Err(SqlError::internal("COPY into what is no table"));
    };
    let mut reader = Reader { cx, insert, statement, table, fields, format, line: 0, rows: 0 };
    let mut input = Input { bytes: Vec::new(), start: 0, ended: false };
    match format.kind {
        CopyKind::Binary => reader.binary(&mut input, client)?,
        CopyKind::Text | CopyKind::Csv => reader.lines(&mut input, client)?,
    }
    let rows = reader.rows;
    // What comes after the end marker is read and passed over.
    while input.more(client)? {
        input.start = input.bytes.len();
    }
    cx.finish()?;
    Ok(rows)
}

fn find_insert(plan: &Plan) -> Option<&Insert> {
    match plan {
        Plan::Insert(insert) => Some(insert),
        Plan::Project { input, .. } => find_insert(input),
        _ => None,
    }
}

/// What has come from the client and was not used yet.
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
            Some(piece) => self.bytes.extend_from_slice(piece),
            None => self.ended = true,
        }
        Ok(!self.ended)
    }

    /// Exactly this many bytes; None when they don't come.
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

fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

impl<'s> Reader<'_, 's> {
    /// Text and CSV.
    fn lines(&mut self, input: &mut Input, client: &mut dyn Client) -> Result<(), SqlError> {
        let mut searched = 0;
        let mut quoted = false;
        loop {
            let found = self.line_end(&input.rest()[searched..], &mut quoted);
            let length = match found {
                Some(at) => searched + at,
                None => {
                    searched = input.rest().len();
                    if input.more(client)? {
                        continue;
                    }
                    if quoted {
                        return Err(self.with_line(bad_format("unterminated CSV quoted field"), None));
                    }
                    searched
                }
            };
            if length == 0 && found.is_none() {
                return Ok(());
            }
            let line = input.rest()[..length].to_vec();
            input.start += length + usize::from(found.is_some());
            (searched, quoted) = (0, false);
            self.line += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line == b"\\." {
                return Ok(());
            }
            if self.line == 1 && self.format.header {
                continue;
            }
            let values = self.split(line)?;
            self.insert_texts(line, &values)?;
        }
    }

    /// Where the line ends; line feeds within CSV quotes belong to it.
    fn line_end(&self, bytes: &[u8], quoted: &mut bool) -> Option<usize> {
        if self.format.kind == CopyKind::Text {
            return bytes.iter().position(|byte| *byte == b'\n');
        }
        bytes.iter().position(|byte| {
            // A doubled quote toggles twice.
            *quoted ^= *byte == self.format.quote;
            *byte == b'\n' && !*quoted
        })
    }

    /// The fields of a line; None is NULL.
    fn split(&self, line: &[u8]) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
        let fields = match self.format.kind {
            CopyKind::Csv => self.split_csv(line),
            _ => self.split_text(line),
        };
        if fields.len() > self.fields.len() {
            return Err(self.with_line(bad_format("extra data after last expected column"), Some(line)));
        }
        if fields.len() < self.fields.len() {
            let message = format!("missing data for column \"{}\"", self.fields[fields.len()].1);
            return Err(self.with_line(bad_format(message), Some(line)));
        }
        Ok(fields)
    }

    fn split_text(&self, line: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut fields = Vec::with_capacity(self.fields.len());
        let (mut field, mut at, mut start) = (Vec::new(), 0, 0);
        let null = self.format.null.as_bytes();
        let mut finish = |raw: &[u8], field: &mut Vec<u8>| {
            let value = std::mem::take(field);
            fields.push((raw != null).then_some(value));
        };
        while at < line.len() {
            let byte = line[at];
            at += 1;
            if byte == self.format.delimiter {
                finish(&line[start..at - 1], &mut field);
                start = at;
            } else if byte == b'\\' && at < line.len() {
                let escaped = line[at];
                at += 1;
                field.push(match escaped {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 0x0b,
                    b'0'..=b'7' => number(line, &mut at, u32::from(escaped - b'0'), 8, 2),
                    b'x' if line.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                        number(line, &mut at, 0, 16, 2)
                    }
                    other => other,
                });
            } else {
                field.push(byte);
            }
        }
        finish(&line[start..], &mut field);
        fields
    }

    fn split_csv(&self, line: &[u8]) -> Vec<Option<Vec<u8>>> {
        let (quote, escape) = (self.format.quote, self.format.escape);
        let mut fields = Vec::with_capacity(self.fields.len());
        let (mut field, mut at, mut inside, mut was_quoted) = (Vec::new(), 0, false, false);
        let null = self.format.null.as_bytes();
        while at < line.len() {
            let byte = line[at];
            at += 1;
            if inside {
                let next = line.get(at).copied();
                if byte == escape && (next == Some(quote) || (next == Some(escape) && escape != quote)) {
                    field.push(line[at]);
                    at += 1;
                } else if byte == quote {
                    inside = false;
                } else {
                    field.push(byte);
                }
            } else if byte == quote {
                (inside, was_quoted) = (true, true);
            } else if byte == self.format.delimiter {
                let value = std::mem::take(&mut field);
                fields.push((was_quoted || value != null).then_some(value));
                was_quoted = false;
            } else {
                field.push(byte);
            }
        }
        fields.push((was_quoted || field != null).then_some(field));
        fields
    }

    /// Reads a line's values and inserts them as a row.
    fn insert_texts(&mut self, line: &[u8], values: &[Option<Vec<u8>>]) -> Result<(), SqlError> {
        let arena = self.cx.take_arena();
        let done = (|| {
            let file = arena.bump.alloc_slice_fill_copy(self.statement.registers as usize, Datum::Null);
            for ((type_, name, register), value) in self.fields.iter().zip(values) {
                let Some(value) = value else { continue };
                let text = std::str::from_utf8(value).map_err(|_| {
                    let message = "invalid byte sequence for encoding \"UTF8\"";
                    self.with_line(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message), None)
                })?;
                let text: &str = arena.bump.alloc_str(text);
                file[*register as usize] = text::parse(text, *type_, self.cx.environment, &arena.bump)
                    .map_err(|error| self.with_column(error, name, Some(text)))?;
            }
            // PostgreSQL stores rows in batches and has no longer the line when a key is broken.
            let shown = |error: &SqlError| (error.code != SqlState::UNIQUE_VIOLATION).then_some(line);
            self.insert_file(file, &arena).map_err(|error| {
                let line = shown(&error);
                self.with_line(error, line)
            })
        })();
        self.cx.give_arena(arena);
        done
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
        input.take(4, client)?.ok_or_else(|| bad_format("invalid COPY file header (missing flags)"))?;
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
                let Ok(length) = usize::try_from(length) else { continue };
                let bytes = input.take(length, client)?.ok_or_else(|| self.with_line(short(), None))?;
                let bytes: &[u8] = arena.bump.alloc_slice_copy(bytes);
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
        let shown = line.map(|line| format!(": \"{}\"", shortened(&String::from_utf8_lossy(line))));
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

fn shortened(text: &str) -> String {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn int4(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes))
}

/// A byte written as up to `more` further digits of a base.
fn number(line: &[u8], at: &mut usize, first: u32, base: u32, more: usize) -> u8 {
    let mut value = first;
    for _ in 0..more {
        let Some(digit) = line.get(*at).and_then(|byte| char::from(*byte).to_digit(base)) else { break };
        value = value * base + digit;
        *at += 1;
    }
    value as u8
}
