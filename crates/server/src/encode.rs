//! Writes the messages of the server at the end of the send buffer.
//!
//! [`begin`] begins a message and leaves room for its length; [`end`] fills the length in. What
//! must hold: each message that was begun is ended before the buffer is sent.

use execution::client::Notice;
use query::plan::ColumnDesc;
use runtime::budget::Stopped;
use runtime::work::{self, STRIDE};
use sql::SqlError;

/// Begins a message of type `kind`. Pass the result to [`end`].
pub fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    out.len() - 4
}

/// Ends the message begun at `start`. Its length counts itself but not the type byte.
pub fn end(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes a message without a body.
pub fn bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    if bytes.contains(&0) {
        // A zero byte would end the field early and desynchronise the client.
        out.extend(bytes.iter().filter(|&&byte| byte != 0));
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(0);
}

/// AuthenticationOk, or a step of SASL: `code` and its body.
pub fn authentication(out: &mut Vec<u8>, code: u32, body: &[u8]) {
    let start = begin(out, b'R');
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    end(out, start);
}

/// ParameterStatus: a setting that the client follows.
pub(crate) fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    let start = begin(out, b'S');
    string(out, name);
    string(out, value);
    end(out, start);
}

/// BackendKeyData: the secret that a cancel request must show.
pub(crate) fn key_data(out: &mut Vec<u8>, process: u32, secret: &[u8]) {
    let start = begin(out, b'K');
    out.extend_from_slice(&process.to_be_bytes());
    out.extend_from_slice(secret);
    end(out, start);
}

/// ReadyForQuery with the transaction's status byte.
pub fn ready(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// CommandComplete.
pub fn complete(out: &mut Vec<u8>, tag: &str) {
    let start = begin(out, b'C');
    string(out, tag);
    end(out, start);
}

/// ParameterDescription: the types of a statement's parameters.
pub(crate) fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    let start = begin(out, b't');
    out.extend_from_slice(&u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
    for oid in types {
        out.extend_from_slice(&oid.to_be_bytes());
    }
    end(out, start);
}

/// The format (0 text, 1 binary) of column `index`. `formats` holds none, one for all columns, or
/// one for each.
pub(crate) fn format_of(formats: &[i16], index: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(index).copied().unwrap_or(0),
    }
}

/// RowDescription.
pub(crate) fn row_description(out: &mut Vec<u8>, columns: &[ColumnDesc], formats: &[i16]) {
    let start = begin(out, b'T');
    out.extend_from_slice(&u16::try_from(columns.len()).unwrap_or(u16::MAX).to_be_bytes());
    for (index, column) in columns.iter().enumerate() {
        string(out, &column.name);
        // One piece, so that room in the buffer is asked for once.
        let mut fields = [0; 18];
        fields[..4].copy_from_slice(&column.table.to_be_bytes());
        fields[4..6].copy_from_slice(&column.attribute.to_be_bytes());
        fields[6..10].copy_from_slice(&column.type_.oid.to_be_bytes());
        fields[10..12].copy_from_slice(&column.type_.info().map_or(-1, |info| info.length).to_be_bytes());
        fields[12..16].copy_from_slice(&column.type_.modifier.to_be_bytes());
        fields[16..].copy_from_slice(&format_of(formats, index).to_be_bytes());
        out.extend_from_slice(&fields);
    }
    end(out, start);
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`).
pub(crate) fn copy_response(out: &mut Vec<u8>, kind: u8, columns: usize, binary: bool) {
    let start = begin(out, kind);
    out.push(u8::from(binary));
    out.extend_from_slice(&u16::try_from(columns).unwrap_or(u16::MAX).to_be_bytes());
    for _ in 0..columns {
        out.extend_from_slice(&i16::from(binary).to_be_bytes());
    }
    end(out, start);
}

/// CopyData, with safe points. Writes nothing if the statement is interrupted.
pub(crate) fn copy_data(out: &mut Vec<u8>, data: &[u8]) -> Result<(), Stopped> {
    let start = begin(out, b'd');
    out.reserve(data.len());
    let mut pieces = data.chunks(STRIDE);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        if let Err(stopped) = work::tick(STRIDE) {
            // Drops the message that was begun; its type stands before its length.
            out.truncate(start - 1);
            return Err(stopped);
        }
        out.extend_from_slice(piece);
    }
    end(out, start);
    Ok(())
}

/// Severity of a report. An error ends the statement, a fatal one the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The session ends.
    Fatal,
}

/// ErrorResponse.
pub fn error(out: &mut Vec<u8>, severity: Severity, fault: &SqlError) {
    let word = match severity {
        Severity::Error => "ERROR",
        Severity::Fatal => "FATAL",
    };
    report(out, b'E', word, fault);
}

/// NoticeResponse.
pub fn notice(out: &mut Vec<u8>, notice: &Notice) {
    let mut content = SqlError::new(notice.code, notice.message.as_str());
    content.detail.clone_from(&notice.detail);
    content.hint.clone_from(&notice.hint);
    report(out, b'N', notice.severity.as_str(), &content);
}

fn report(out: &mut Vec<u8>, kind: u8, severity: &str, fault: &SqlError) {
    let start = begin(out, kind);
    let mut field = |code: u8, text: &str| {
        if !text.is_empty() {
            out.push(code);
            string(out, text);
        }
    };
    field(b'S', severity);
    field(b'V', severity);
    field(b'C', fault.code.as_str());
    field(b'M', if fault.message.is_empty() { "unknown" } else { &fault.message });
    field(b'D', fault.detail.as_deref().unwrap_or(""));
    field(b'H', fault.hint.as_deref().unwrap_or(""));
    if let Some(position) = fault.position {
        field(b'P', &position.to_string());
    }
    field(b'W', fault.context.as_deref().unwrap_or(""));
    field(b's', fault.schema.as_deref().unwrap_or(""));
    field(b't', fault.table.as_deref().unwrap_or(""));
    field(b'c', fault.column.as_deref().unwrap_or(""));
    field(b'd', fault.data_type.as_deref().unwrap_or(""));
    field(b'n', fault.constraint.as_deref().unwrap_or(""));
    field(b'R', fault.routine.unwrap_or(""));
    out.push(0);
    end(out, start);
}
