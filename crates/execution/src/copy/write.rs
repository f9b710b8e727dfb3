//! COPY TO.

use super::SIGNATURE;
use crate::client::Client;
use crate::{Executor, Flow};
use query::plan::{Body, ColumnDesc, CopyFormat, CopyKind, Statement};
use values::error::SqlError;
use values::types::Datum;
use values::work;
use values::{binary, text};

/// Runs the query and writes its rows. Returns their number.
pub fn copy_out<'s>(
    cx: &mut Executor<'s>,
    statement: &'s Statement,
    format: &CopyFormat,
    client: &mut dyn Client,
) -> Result<u64, SqlError> {
    let Body::Query { root, .. } = &statement.body else {
        return Err(SqlError::internal("COPY of what is no query"));
    };
    let (environment, session) = (cx.environment, cx.session);
    let mut writer = Writer { format, columns: &statement.columns, out: Vec::new(), value: Vec::new() };
    writer.begin()?;
    // Drivers rely on one row a message, and on the header of a binary copy coming with its first
    // row.
    if format.kind != CopyKind::Binary && !writer.out.is_empty() {
        client.copy_out(&writer.out)?;
        writer.out.clear();
    }
    let mut rows = 0;
    cx.query(root, statement.registers, &statement.output, &mut |row| {
        writer.row(row, environment)?;
        rows += 1;
        session.before_showing()?;
        client.copy_out(&writer.out)?;
        writer.out.clear();
        Ok(Flow::More)
    })?;
    if format.kind == CopyKind::Binary {
        writer.out.extend_from_slice(&(-1_i16).to_be_bytes());
        client.copy_out(&writer.out)?;
    }
    Ok(rows)
}

struct Writer<'w> {
    format: &'w CopyFormat,
    columns: &'w [ColumnDesc],
    out: Vec<u8>,
    value: Vec<u8>,
}

impl Writer<'_> {
    fn begin(&mut self) -> Result<(), SqlError> {
        if self.format.kind == CopyKind::Binary {
            self.out.extend_from_slice(SIGNATURE);
            self.out.extend_from_slice(&[0; 8]);
        } else if self.format.header {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    self.out.push(self.format.delimiter);
                }
                self.value.clear();
                self.value.extend_from_slice(column.name.as_bytes());
                self.field(false)?;
            }
            self.out.push(b'\n');
        }
        Ok(())
    }

    fn row(
        &mut self,
        row: &[Datum<'_>],
        session: &dyn values::environment::Environment,
    ) -> Result<(), SqlError> {
        if self.format.kind == CopyKind::Binary {
            self.out.extend_from_slice(&(row.len() as i16).to_be_bytes());
        }
        for (at, (value, column)) in row.iter().zip(self.columns).enumerate() {
            self.value.clear();
            if self.format.kind == CopyKind::Binary {
                if value.is_null() {
                    self.out.extend_from_slice(&(-1_i32).to_be_bytes());
                    continue;
                }
                binary::write(*value, column.type_, &mut self.value)?;
                self.out.extend_from_slice(&(self.value.len() as i32).to_be_bytes());
                work::put(&self.value, &mut self.out)?;
                continue;
            }
            if at > 0 {
                self.out.push(self.format.delimiter);
            }
            if value.is_null() {
                self.out.extend_from_slice(self.format.null.as_bytes());
                continue;
            }
            text::write(*value, column.type_, session, &mut self.value)?;
            self.field(self.format.force_quote.get(at).copied().unwrap_or(false))?;
        }
        if self.format.kind != CopyKind::Binary {
            self.out.push(b'\n');
        }
        Ok(())
    }

    /// Writes `value` with what the format escapes.
    fn field(&mut self, force_quote: bool) -> Result<(), SqlError> {
        let (delimiter, quote, escape) = (self.format.delimiter, self.format.quote, self.format.escape);
        if self.format.kind == CopyKind::Csv {
            let special = |byte| byte == delimiter || byte == quote || byte == b'\n' || byte == b'\r';
            let quoted = force_quote
                || self.value == self.format.null.as_bytes()
                || work::any(&self.value, special)?
                || (self.columns.len() == 1 && self.value == b"\\.");
            if !quoted {
                return work::put(&self.value, &mut self.out);
            }
            self.out.push(quote);
            for piece in work::byte_pieces(&self.value, 1) {
                for byte in piece? {
                    if *byte == quote || *byte == escape {
                        self.out.push(escape);
                    }
                    self.out.push(*byte);
                }
            }
            self.out.push(quote);
            return Ok(());
        }
        let escaped = |byte: u8| match byte {
            0x08 => Some(b'b'),
            0x0c => Some(b'f'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x0b => Some(b'v'),
            b'\\' => Some(b'\\'),
            byte if byte == delimiter => Some(byte),
            _ => None,
        };
        for piece in work::byte_pieces(&self.value, 1) {
            let mut rest = piece?;
            // Few bytes need an escape, so the bytes between two of them are copied in one piece.
            while let Some((at, letter)) =
                rest.iter().enumerate().find_map(|(at, byte)| Some((at, escaped(*byte)?)))
            {
                self.out.extend_from_slice(&rest[..at]);
                self.out.extend_from_slice(&[b'\\', letter]);
                rest = &rest[at + 1..];
            }
            self.out.extend_from_slice(rest);
        }
        Ok(())
    }
}
