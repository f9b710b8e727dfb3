//! Encodes the answers that `execution::client` hands over straight into the send buffer.
//!
//! A large result is sent while the statement runs, and the statement parks while its client does
//! not read. The data of COPY FROM STDIN is read from the receive buffer in place.
//!
//! What must hold:
//!
//! 1. A message enters the send buffer whole or not at all. A row with a value that cannot be
//!    written is taken out again, so an error can follow.
//! 2. No message is longer than [`LONGEST`], on which drivers rely.
//! 3. The buffer is offered for sending after each row and each piece of COPY data. So a result of
//!    any size takes bounded memory.
//! 4. A CopyData message stays in the receive buffer until the next one is asked for, because the
//!    caller borrows it. It is consumed once, at the latest when the client is dropped.
//! 5. A wait for a long message asks for its memory first.
//! 6. A fault of the socket sets `broken`. Then the connection ends and sends nothing more.

use crate::decode::{self, Frame};
use crate::encode;
use crate::message;
use crate::wire::Wire;
use execution::client::{Client, Notice};
use query::plan::ColumnDesc;
use sql::{Datum, SqlError, SqlState};
use std::io;
use values::environment::Environment;
use values::{binary, text};

/// Bytes of the longest message: PostgreSQL's bound for messages that it builds in memory, on which
/// drivers rely.
const LONGEST: usize = 0x3fff_ffff;

/// The error for a message that has this many bytes and should get this many more.
#[cold]
fn too_long(bytes: usize, more: usize) -> SqlError {
    let message = format!("string buffer exceeds maximum allowed length ({LONGEST} bytes)");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .with_detail(format!("Cannot enlarge string buffer containing {bytes} bytes by {more} more bytes."))
}

/// The client of one statement's execution.
pub(crate) struct WireClient<'a, 'w, 'io> {
    wire: &'a mut Wire<'w, 'io>,
    formats: &'a [i16],
    describe: bool,
    /// Bytes of the CopyData message returned last; consumed by the request for the next one.
    copy_pending: usize,
    /// Whether the connection broke, so that nothing more reaches this client.
    pub broken: bool,
}

impl<'a, 'w, 'io> WireClient<'a, 'w, 'io> {
    /// A client for one execution. `formats` are the result formats asked for; `describe` says
    /// whether a description precedes the rows.
    pub fn new(wire: &'a mut Wire<'w, 'io>, formats: &'a [i16], describe: bool) -> Self {
        Self { wire, formats, describe, copy_pending: 0, broken: false }
    }

    /// The reason why no more data comes: the statement is to end, or the client has gone.
    fn no_data(&mut self, fault: &io::Error) -> SqlError {
        match runtime::interrupt::check() {
            Err(by) if fault.kind() == io::ErrorKind::Interrupted => SqlError::interrupted(by),
            _ => self.lost(fault),
        }
    }

    fn lost(&mut self, fault: &io::Error) -> SqlError {
        self.broken = true;
        SqlError::new(SqlState::CONNECTION_FAILURE, format!("connection to client lost: {fault}"))
    }

    fn flush_if_large(&mut self) -> Result<(), SqlError> {
        self.wire.flush_if_large().map_err(|fault| self.lost(&fault))
    }
}

impl Client for WireClient<'_, '_, '_> {
    fn columns(&mut self, columns: &[ColumnDesc], formats: &[i16]) {
        if self.describe {
            encode::row_description(self.wire.output(), columns, formats);
        }
    }

    fn row(
        &mut self,
        row: &[Datum<'_>],
        columns: &[ColumnDesc],
        session: &dyn Environment,
    ) -> Result<(), SqlError> {
        let out = self.wire.output();
        let start = encode::begin(out, b'D');
        out.extend_from_slice(&u16::try_from(row.len()).unwrap_or(u16::MAX).to_be_bytes());
        for (index, (datum, column)) in row.iter().zip(columns).enumerate() {
            if datum.is_null() {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let mut written = if encode::format_of(self.formats, index) == 0 {
                text::write(*datum, column.type_, session, out)
            } else {
                binary::write(*datum, column.type_, out)
            };
            if out.len() - start > LONGEST {
                written = written.and(Err(too_long(at - start, out.len() - at - 4)));
            }
            if written.is_err() {
                // Drops the message that was begun; its type stands before its length.
                out.truncate(start - 1);
                return written;
            }
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        encode::end(out, start);
        self.flush_if_large()
    }

    fn complete(&mut self, tag: &str) {
        encode::complete(self.wire.output(), tag);
    }

    fn empty(&mut self) {
        encode::bare(self.wire.output(), b'I');
    }

    fn notice(&mut self, notice: &Notice) {
        encode::notice(self.wire.output(), notice);
    }

    fn copy_out_begin(&mut self, columns: usize, binary: bool) {
        encode::copy_response(self.wire.output(), b'H', columns, binary);
    }

    fn copy_out(&mut self, data: &[u8]) -> Result<(), SqlError> {
        if data.len() > LONGEST {
            return Err(too_long(0, data.len()));
        }
        encode::copy_data(self.wire.output(), data).map_err(SqlError::stopped)?;
        self.flush_if_large()
    }

    fn copy_out_end(&mut self) {
        encode::bare(self.wire.output(), b'c');
    }

    fn copy_in_begin(&mut self, columns: usize, binary: bool) -> Result<(), SqlError> {
        encode::copy_response(self.wire.output(), b'G', columns, binary);
        self.wire.flush().map_err(|fault| self.lost(&fault))
    }

    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        loop {
            self.wire.consume(std::mem::take(&mut self.copy_pending));
            let frame = decode::frame(self.wire.input()).map_err(|v| v.error())?;
            let Frame::Message { kind, total } = frame else {
                // The head gives the length. Once it is known, wait for the whole message.
                let wanted = match self.wire.input().first_chunk::<5>() {
                    Some(head) => 1 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize,
                    None => 5,
                };
                runtime::account::ask(wanted).map_err(SqlError::interrupted)?;
                self.wire.fill(wanted).map_err(|fault| self.no_data(&fault))?;
                continue;
            };
            match kind {
                b'd' => {
                    self.copy_pending = total;
                    return Ok(Some(&self.wire.input()[5..total]));
                }
                b'c' => {
                    self.wire.consume(total);
                    return Ok(None);
                }
                b'f' => {
                    let reason = message::copy_fail(&self.wire.input()[5..total]).unwrap_or("").to_owned();
                    self.wire.consume(total);
                    return Err(SqlError::new(
                        SqlState::QUERY_CANCELED,
                        format!("COPY from stdin failed: {reason}"),
                    ));
                }
                // Flush and Sync may come amid the data and have no meaning there.
                b'H' | b'S' => self.wire.consume(total),
                other => {
                    return Err(SqlError::new(
                        SqlState::PROTOCOL_VIOLATION,
                        format!("unexpected message type 0x{other:02X} during COPY from stdin"),
                    ));
                }
            }
        }
    }
}

impl Drop for WireClient<'_, '_, '_> {
    fn drop(&mut self) {
        // A COPY that failed midway: its current message is consumed; the session ignores later
        // CopyData.
        self.wire.consume(std::mem::take(&mut self.copy_pending));
    }
}
