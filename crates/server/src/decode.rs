//! Reads the messages of a client, in place, from the bytes received.
//!
//! This module alone checks every length and every string: what it returns is well formed.
//! `message` puts its fields together to bodies. A message that is cut, too long, or of an unknown
//! type is a [`Violation`], which ends its session alone with SQLSTATE 08P01.
//!
//! What must hold:
//!
//! 1. A length is judged as soon as the head is there. So an absurd one is refused and never waited
//!    for.
//! 2. No bytes make a reader panic or read beyond the message's body.
//! 3. A reader of a body calls [`Fields::end`] after its last field, so that no bytes go unread.
//! 4. A search in a long body has safe points: a message may have a gigabyte.

use runtime::work::{STRIDE, yield_after};
use sql::{SqlError, SqlState};

/// The reason why bytes are no message of the protocol. The text is PostgreSQL's for the same
/// fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// The length word is below 4, or above the greatest length of the message's type.
    Length,
    /// The protocol has no message with this type byte.
    UnknownType(u8),
    /// The body ends before its fields do, or goes on after them.
    Body(&'static str),
    /// A string of the message is not UTF-8.
    Utf8(Vec<u8>),
    /// A format code is neither 0 nor 1.
    Format(i16),
    /// Describe or Close names neither a statement nor a portal.
    Subtype {
        /// The message's name, as PostgreSQL writes it.
        message: &'static str,
        /// The byte that names the kind of object.
        kind: u8,
    },
}

impl Violation {
    /// The error that a client gets.
    pub fn error(&self) -> SqlError {
        let (code, message) = match self {
            Self::Length => (SqlState::PROTOCOL_VIOLATION, "invalid message length".to_owned()),
            Self::UnknownType(kind) => {
                (SqlState::PROTOCOL_VIOLATION, format!("invalid frontend message type {kind}"))
            }
            Self::Body(what) => (SqlState::PROTOCOL_VIOLATION, (*what).to_owned()),
            Self::Format(code) => {
                (SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}"))
            }
            Self::Subtype { message, kind } => {
                (SqlState::PROTOCOL_VIOLATION, format!("invalid {message} message subtype {kind}"))
            }
            Self::Utf8(bytes) => {
                let shown: Vec<String> = bytes.iter().map(|b| format!("0x{b:02x}")).collect();
                let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
                (SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
            }
        };
        SqlError::new(code, message)
    }
}

/// Bytes of the head of a start-up packet: no type byte, a length, a code.
pub(crate) const STARTUP_HEAD: usize = 8;
/// Bytes of the longest start-up packet, as in PostgreSQL.
pub(crate) const STARTUP_LIMIT: usize = 10_000;
/// Bytes of the longest message that carries no data of the user's.
const SMALL_LIMIT: usize = 10_000;
/// Bytes of the longest message that may carry a value: one gigabyte, as in PostgreSQL.
const LARGE_LIMIT: usize = 0x3fff_ffff;

/// Start-up code of protocol 3.0; the upper half is the major version.
pub(crate) const PROTOCOL_3: u32 = 3 << 16;
/// Start-up code of a request for TLS.
pub(crate) const SSL_REQUEST: u32 = 80_877_103;
/// Start-up code of a request for GSSAPI encryption.
pub(crate) const GSS_REQUEST: u32 = 80_877_104;
/// Start-up code of a request to cancel another session's statement.
pub(crate) const CANCEL_REQUEST: u32 = 80_877_102;

/// The start of the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// Fewer bytes than one message.
    Partial,
    /// A message of this type. Its body is `5..total`; the next message starts at `total`.
    Message {
        /// The type byte.
        kind: u8,
        /// Bytes of the whole message, type and length word included.
        total: usize,
    },
}

/// Finds the first message in `input`. It judges the length as soon as the head is there, so an
/// absurd one is refused at once and not waited for.
pub fn frame(input: &[u8]) -> Result<Frame, Violation> {
    let Some(head) = input.first_chunk::<5>() else { return Ok(Frame::Partial) };
    let kind = head[0];
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let limit = match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' | b'f' => LARGE_LIMIT,
        b'p' | b'E' | b'D' | b'C' | b'S' | b'H' | b'X' | b'c' => SMALL_LIMIT,
        other => return Err(Violation::UnknownType(other)),
    };
    if !(4..=limit).contains(&length) {
        return Err(Violation::Length);
    }
    if input.len() <= length { Ok(Frame::Partial) } else { Ok(Frame::Message { kind, total: length + 1 }) }
}

/// The fields of one message's body, read from front to back.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of `body`.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Violation> {
        let (taken, rest) =
            self.rest.split_at_checked(n).ok_or(Violation::Body("insufficient data left in message"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, Violation> {
        Ok(self.bytes(1)?[0])
    }

    /// A 16-bit integer.
    pub fn i16(&mut self) -> Result<i16, Violation> {
        let taken = self.bytes(2)?;
        Ok(i16::from_be_bytes([taken[0], taken[1]]))
    }

    /// A 32-bit integer.
    pub fn i32(&mut self) -> Result<i32, Violation> {
        let taken = self.bytes(4)?;
        Ok(i32::from_be_bytes([taken[0], taken[1], taken[2], taken[3]]))
    }

    /// An unsigned 32-bit integer: an object's OID.
    pub fn u32(&mut self) -> Result<u32, Violation> {
        Ok(self.i32()?.cast_unsigned())
    }

    /// The number of fields that follow. Unsigned, as PostgreSQL reads it, so that 65,535
    /// parameters may be bound.
    pub fn count(&mut self) -> Result<usize, Violation> {
        Ok(usize::from(self.i16()?.cast_unsigned()))
    }

    /// A string that a zero byte ends.
    pub fn string(&mut self) -> Result<&'a str, Violation> {
        // Most names are empty: those of the unnamed portal and statement.
        if let [0, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok("");
        }
        let end = match self.rest.len() > STRIDE {
            true => long_end(self.rest),
            false => self.rest.iter().position(|&b| b == 0),
        };
        let end = end.ok_or(Violation::Body("invalid string in message"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        runtime::work::utf8(text).map_err(|e| Violation::Utf8(bad_sequence(text, e.valid_up_to())))
    }

    /// A value: its length and its bytes; `None` if the length is -1.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Violation> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| Violation::Body("insufficient data left in message"))?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// Checks that no bytes are left.
    pub fn end(&self) -> Result<(), Violation> {
        if self.rest.is_empty() { Ok(()) } else { Err(Violation::Body("invalid message format")) }
    }
}

/// The place of the first zero byte in many bytes. Searches in pieces, with a safe point after
/// each.
#[cold]
fn long_end(bytes: &[u8]) -> Option<usize> {
    let mut before = 0;
    for piece in bytes.chunks(STRIDE) {
        if piece.contains(&0) {
            return piece.iter().position(|&b| b == 0).map(|at| before + at);
        }
        before += piece.len();
        yield_after(piece.len());
    }
    None
}

/// The bytes that PostgreSQL names in its message about a faulty UTF-8 sequence.
fn bad_sequence(text: &[u8], at: usize) -> Vec<u8> {
    let expected = match text[at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    text[at..text.len().min(at + expected)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_framed_only_when_whole() {
        let sync = [b'S', 0, 0, 0, 4];
        for cut in 0..5 {
            assert_eq!(frame(&sync[..cut]), Ok(Frame::Partial));
        }
        assert_eq!(frame(&sync), Ok(Frame::Message { kind: b'S', total: 5 }));
        assert_eq!(frame(b"Q\0\0\0\x06a\0rest"), Ok(Frame::Message { kind: b'Q', total: 7 }));
    }

    #[test]
    fn absurd_heads_are_refused_before_their_body_comes() {
        assert_eq!(frame(b"S\0\0\0\x03"), Err(Violation::Length));
        assert_eq!(frame(b"S\xff\xff\xff\xff"), Err(Violation::Length));
        assert_eq!(frame(b"S\0\0\x27\x11"), Err(Violation::Length));
        assert_eq!(frame(b"Q\x40\0\0\0"), Err(Violation::Length));
        assert_eq!(frame(b"!\0\0\0\x04"), Err(Violation::UnknownType(b'!')));
    }

    #[test]
    fn a_long_string_ends_at_its_first_zero_byte() {
        for length in [0, STRIDE - 1, STRIDE, 3 * STRIDE + 5] {
            let mut body = "x".repeat(length).into_bytes();
            body.extend([0; STRIDE]);
            let mut fields = Fields::new(&body);
            assert_eq!(fields.string().map(str::len), Ok(length));
            assert_eq!(fields.string(), Ok(""));
        }
        let endless = "x".repeat(3 * STRIDE);
        assert_eq!(
            Fields::new(endless.as_bytes()).string(),
            Err(Violation::Body("invalid string in message"))
        );
    }

    #[test]
    fn fields_never_read_past_the_body() {
        let mut fields = Fields::new(b"abc\0\0\x02\xff\xff\xff\xff\0\0\0\x05ab");
        assert_eq!(fields.string(), Ok("abc"));
        assert_eq!(fields.count(), Ok(2));
        assert_eq!(fields.value(), Ok(None));
        assert!(fields.value().is_err());
        assert!(Fields::new(b"no end").string().is_err());
        assert_eq!(Fields::new(b"a\xc3(\0").string(), Err(Violation::Utf8(vec![0xc3, b'('])));
        assert_eq!(Fields::new(b"\xff\xff").count(), Ok(65_535));
    }
}
