//! A wire protocol, as the native driver needs it: bytes in, bytes out, no socket and no clock. So
//! tests feed each protocol canned bytes, and one load loop serves all protocols.
//!
//! What must hold:
//! 1. `encode` and `decode` allocate nothing once the caller's buffers are warm.
//! 2. `decode` takes any bytes, whole messages or parts. Bytes it does not understand give
//!    [`Progress::Broken`], never a panic.

use std::fmt;

use crate::arm::Dialect;
use crate::client::{Param, Params, Reply, StatementId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    State([u8; 5]),
    Number(u16),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => f.write_str(&String::from_utf8_lossy(state)),
            Self::Number(number) => number.fmt(f),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The transaction may succeed on a repetition.
    Again,
    /// This transaction can't succeed, another may.
    Next,
    /// Every other transaction would fail in the same way: the request is wrong, or the server does
    /// not serve.
    Nothing,
}

impl Code {
    pub(crate) fn remedy(self) -> Remedy {
        match self {
            Self::State(state) => match &state {
                b"40001" | b"40P01" => Remedy::Again,
                // Wrong names, syntax or rights; a missing feature, database or schema; wrong
                // credentials, a protocol error, and a server that shuts down or admits no clients.
                [b'4', b'2', ..]
                | [b'0', b'A', ..]
                | [b'2', b'6', ..]
                | [b'3', b'D', ..]
                | [b'3', b'F', ..] => Remedy::Nothing,
                [b'2', b'8', ..] | [b'0', b'8', ..] | [b'5', b'7', b'P', ..] | b"25006" | b"53300" => {
                    Remedy::Nothing
                }
                _ => Remedy::Next,
            },
            // A lock wait timeout, a deadlock, a row changed since it was read.
            Self::Number(1205 | 1213 | 1020) => Remedy::Again,
            // Rights, database, table, column, syntax, number of columns, read-only server, unknown
            // statement, no room for another prepared one.
            Self::Number(
                1040 | 1044 | 1045 | 1046 | 1049 | 1053 | 1054 | 1064 | 1136 | 1142 | 1146 | 1243 | 1290
                | 1295 | 1305 | 1461,
            ) => Remedy::Nothing,
            Self::Number(_) => Remedy::Next,
        }
    }

    /// Advice to the user, where one can mend it.
    pub(crate) fn advice(self) -> Option<&'static str> {
        Some(match self {
            Self::State([b'2', b'8', ..]) | Self::Number(1044 | 1045 | 1698) => {
                "give a user and password the server accepts in the arm's URL"
            }
            Self::State([b'3', b'D', ..]) | Self::Number(1049) => {
                "create the database first, or name another"
            }
            Self::State(state) if &state == b"42P01" => "load the workload's tables first",
            Self::Number(1146) => "load the workload's tables first",
            Self::Number(1461) => {
                "raise the server's max_prepared_stmt_count (SET GLOBAL max_prepared_stmt_count = 1048576), ask for \
                 fewer clients, or take --protocol simple"
            }
            full if full.is_full() => "raise the server's max_connections, or ask for fewer clients",
            _ => return None,
        })
    }

    /// Whether the server lacks room for another connection at this moment.
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Self::State([b'5', b'3', b'3', b'0', b'0']) | Self::Number(1040))
    }

    /// Parses a code: five letters and digits are PostgreSQL's, a number MySQL's.
    pub(crate) fn parse(text: &str, dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::Postgres => Some(Self::State(text.as_bytes().try_into().ok()?)),
            Dialect::Mysql => Some(Self::Number(text.parse().ok()?)),
        }
    }
}

/// An error in a server's answer. The next error reuses its text.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// Its text, and its position in the statement, if the server reports one.
    pub(crate) message: String,
    pub(crate) behind: usize,
}

impl Default for Failure {
    fn default() -> Self {
        Self { code: Code::Number(0), message: String::new(), behind: 0 }
    }
}

impl Failure {
    /// Replaces it with another error, whose text need not be well-formed.
    pub(crate) fn set(&mut self, code: Code, message: &[u8]) {
        self.code = code;
        self.message.clear();
        for chunk in message.utf8_chunks() {
            self.message.push_str(chunk.valid());
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// A client gives a statement as many values as it has places.
#[inline]
pub(crate) fn assert_complete(pieces: &[String], params: &Params) {
    assert_eq!(params.len() + 1, pieces.len(), "as many values as `{}` has places", pieces.join("?"));
}

/// Writes a statement's text with its values in it; `quote` writes texts as literals of the
/// dialect.
pub(crate) fn put_statement(
    pieces: &[String],
    params: &Params,
    quote: fn(&mut Vec<u8>, &[u8]),
    out: &mut Vec<u8>,
) {
    let mut pieces = pieces.iter();
    out.extend_from_slice(pieces.next().map_or("", |first| first).as_bytes());
    for (param, piece) in params.iter().zip(pieces) {
        match param {
            Param::Null => out.extend_from_slice(b"NULL"),
            Param::Verbatim(value) | Param::Unset(value) => out.extend_from_slice(value),
            Param::Text(value) => quote(out, value),
        }
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Appends received bytes to `input` and calls `step` for each message at its front. It ends when a
/// message is incomplete or `step` gives a result. `step` returns the message's length and its
/// result.
pub(crate) fn each_message<T>(
    input: &mut Vec<u8>,
    bytes: &[u8],
    mut step: impl FnMut(&[u8]) -> Result<Option<(usize, Option<T>)>, Refusal>,
) -> Result<Option<T>, Refusal> {
    input.extend_from_slice(bytes);
    let mut used = 0;
    while let Some((length, given)) = step(&input[used..])? {
        used += length;
        if given.is_some() {
            return Ok(given);
        }
    }
    input.drain(..used);
    Ok(None)
}

#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server reported this error.
    Server(Failure),
    /// The bytes are not the protocol, or a part of it that the lab does not speak.
    Protocol(String),
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::Protocol(text)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    /// The error, where `decode` reports one.
    pub(crate) failure: Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The answer is incomplete.
    More,
    /// The answer is complete, without an error.
    Replied,
    /// The answer is complete, with an error.
    Failed,
    /// The server ends the connection with this error.
    Ended,
    /// The bytes make no sense.
    Broken(&'static str),
}

/// A protocol, made for the statements of a workload.
pub(crate) trait Wire: Sync {
    type Greeting: Send;
    type Session: Send;

    /// Begins a connection: puts its first bytes to send into `out`.
    fn greet(&self, out: &mut Vec<u8>) -> Self::Greeting;

    /// Takes received bytes; returns the session once it is usable, its statements prepared.
    fn welcome(
        &self,
        greeting: &mut Self::Greeting,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Self::Session>, Refusal>;

    /// Writes a statement with one of `params` per place. With `wait`, its answer comes at once;
    /// otherwise it comes with that of a later statement or of [`Wire::sync`]. Returns whether the
    /// answer comes at once, which may be so even without `wait`.
    fn encode(
        &self,
        session: &mut Self::Session,
        statement: StatementId,
        params: &Params,
        wait: bool,
        out: &mut Vec<u8>,
    ) -> bool;

    /// Asks for the answers that are outstanding; returns whether there are any.
    fn sync(&self, session: &mut Self::Session, out: &mut Vec<u8>) -> bool;

    /// Whether a transaction is open, according to the last answer.
    fn in_transaction(&self, session: &Self::Session) -> bool;

    /// Ends the transaction that failed; returns whether an answer will come.
    fn rollback(&self, session: &mut Self::Session, out: &mut Vec<u8>) -> bool;

    /// Takes received bytes and returns how many it used; puts bytes to send at once into `out`.
    fn decode(
        &self,
        session: &mut Self::Session,
        bytes: &[u8],
        answer: &mut Answer,
        out: &mut Vec<u8>,
    ) -> (usize, Progress);

    /// A statement's text, with its places as the protocol writes them.
    fn text(&self, statement: StatementId) -> &str;

    fn leave(&self, out: &mut Vec<u8>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_is_tried_again_a_duplicate_is_passed_over_a_missing_table_ends_it() {
        for (code, remedy) in [
            (Code::State(*b"40001"), Remedy::Again),
            (Code::State(*b"40P01"), Remedy::Again),
            (Code::State(*b"23505"), Remedy::Next),
            (Code::State(*b"42P01"), Remedy::Nothing),
            (Code::State(*b"57P01"), Remedy::Nothing),
            (Code::State(*b"57014"), Remedy::Next),
            (Code::Number(1213), Remedy::Again),
            (Code::Number(1205), Remedy::Again),
            (Code::Number(1062), Remedy::Next),
            (Code::Number(1146), Remedy::Nothing),
            (Code::Number(1461), Remedy::Nothing),
        ] {
            assert_eq!(code.remedy(), remedy, "{code}");
        }
        assert!(Code::Number(1461).advice().unwrap().contains("max_prepared_stmt_count = 1048576"));
    }
}
