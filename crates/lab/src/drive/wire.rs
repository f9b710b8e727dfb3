//! A wire protocol, as the native driver needs it: bytes in, bytes out, no socket and no clock. So
//! tests feed each protocol canned bytes, and one load loop serves all protocols.
//!
//! What must hold:
//! 1. `encode` and `decode` allocate nothing once the caller's buffers are warm, except for floats,
//!    dates and times in MySQL's binary rows.
//! 2. `decode` takes any bytes, whole messages or parts. Bytes it does not understand give
//!    [`Progress::Broken`], never a panic.
//! 3. At most one answer is under way: `encode` with `wait`, `sync` and `rollback` come only after
//!    the answer before is complete.

use std::fmt;

use bytes::BytesMut;

use crate::client::{Param, Params, Prepare, Reply, Statement, StatementId, Wanted};
use crate::load::Protocol;

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
            Self::State(state) => match (&state[..2], &state[2..]) {
                (b"40", b"001" | b"P01") => Remedy::Again,
                // Wrong names, syntax or rights; a missing feature, database or schema; wrong
                // credentials, a protocol error, and a server that shuts down or admits no clients.
                (b"42" | b"0A" | b"26" | b"3D" | b"3F" | b"28" | b"08", _) => Remedy::Nothing,
                (b"57", [b'P', ..]) | (b"25", b"006") | (b"53", b"300") => Remedy::Nothing,
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
            Self::Number(1295) => "take --protocol simple, which prepares nothing",
            full if full.is_full() => "raise the server's max_connections, or ask for fewer clients",
            _ => return None,
        })
    }

    /// Whether the server lacks room for another connection at this moment.
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Self::State([b'5', b'3', b'3', b'0', b'0']) | Self::Number(1040))
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

/// A statement of a workload, as a protocol sends it.
pub(crate) struct Prepared {
    pieces: Vec<String>,
    pub(crate) wanted: Wanted,
    /// How the driver sends it; [`Protocol::Simple`] where the server can't prepare it.
    pub(crate) protocol: Protocol,
    /// Its text, with its places as the protocol writes them.
    pub(crate) text: String,
}

impl Prepared {
    /// `place` gives the text of a place by its number, from 1 on.
    pub(crate) fn new(statement: &Statement, protocol: Protocol, place: impl Fn(usize) -> String) -> Self {
        let mut text = String::new();
        for (index, piece) in statement.pieces.iter().enumerate() {
            if index > 0 {
                text.push_str(&place(index));
            }
            text.push_str(piece);
        }
        Self {
            pieces: statement.pieces.clone(),
            wanted: statement.wanted,
            protocol: if statement.prepare == Prepare::Never { Protocol::Simple } else { protocol },
            text,
        }
    }

    /// A client gives a statement as many values as it has places.
    pub(crate) fn assert_complete(&self, params: &Params) {
        assert_eq!(params.len() + 1, self.pieces.len(), "as many values as `{}` has places", self.text);
    }

    /// Writes its text with the values in it; `quote` writes texts as literals of the dialect.
    pub(crate) fn put_text(&self, params: &Params, quote: fn(&mut BytesMut, &[u8]), out: &mut BytesMut) {
        let mut pieces = self.pieces.iter();
        out.extend_from_slice(pieces.next().map_or("", |first| first).as_bytes());
        for (param, piece) in params.iter().zip(pieces) {
            match param {
                Param::Null => out.extend_from_slice(b"NULL"),
                Param::Verbatim(value) => out.extend_from_slice(value),
                Param::Text(value) => quote(out, value),
            }
            out.extend_from_slice(piece.as_bytes());
        }
    }
}

/// Why a connection could not be set up.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server reported this error.
    Server(Failure),
    /// Any other reason: no server, or one that does not speak the part of the protocol that the
    /// lab knows.
    Other(String),
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Self {
        Self::Other(why.to_owned())
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

    /// The length of the first message in `bytes`; `None` while it is incomplete.
    fn length(bytes: &[u8]) -> Result<Option<usize>, &'static str>;

    /// Begins a connection: puts its first bytes to send into `out`.
    fn greet(&self, out: &mut BytesMut) -> Self::Greeting;

    /// Takes a message; returns the session once it is usable, its statements prepared.
    fn greeted(
        &self,
        greeting: &mut Self::Greeting,
        message: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Self::Session>, Refusal>;

    /// Writes a statement with one of `params` per place. With `wait`, its answer comes at once;
    /// otherwise it comes after [`Wire::sync`].
    fn encode(
        &self,
        session: &mut Self::Session,
        statement: StatementId,
        params: &Params,
        wait: bool,
        out: &mut BytesMut,
    );

    /// Asks for the answers to the statements that were written without `wait`.
    fn sync(&self, out: &mut BytesMut);

    /// Whether a transaction is open, according to the last answer.
    fn in_transaction(&self, session: &Self::Session) -> bool;

    /// Ends the transaction that failed; returns whether an answer will come.
    fn rollback(&self, session: &mut Self::Session, out: &mut BytesMut) -> bool;

    /// Takes a message of an answer; puts bytes to send at once into `out`.
    fn answered(
        &self,
        session: &mut Self::Session,
        message: &[u8],
        answer: &mut Answer,
        out: &mut BytesMut,
    ) -> Progress;

    /// The statements, by [`StatementId`].
    fn statements(&self) -> &[Prepared];

    fn leave(&self, out: &mut BytesMut);

    fn text(&self, statement: StatementId) -> &str {
        &self.statements()[usize::from(statement.0)].text
    }

    /// Takes the messages of `bytes` until the session is usable; returns how many bytes it used.
    fn welcome(
        &self,
        greeting: &mut Self::Greeting,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<(usize, Option<Self::Session>), Refusal> {
        let mut used = 0;
        while let Some(length) = Self::length(&bytes[used..])? {
            let message = &bytes[used..used + length];
            used += length;
            if let Some(session) = self.greeted(greeting, message, out)? {
                return Ok((used, Some(session)));
            }
        }
        Ok((used, None))
    }

    /// Takes the messages of `bytes` until the answer is complete; returns how many bytes it used.
    fn decode(
        &self,
        session: &mut Self::Session,
        bytes: &[u8],
        answer: &mut Answer,
        out: &mut BytesMut,
    ) -> (usize, Progress) {
        let mut used = 0;
        loop {
            let length = match Self::length(&bytes[used..]) {
                Ok(Some(length)) => length,
                Ok(None) => return (used, Progress::More),
                Err(why) => return (used, Progress::Broken(why)),
            };
            let message = &bytes[used..used + length];
            used += length;
            match self.answered(session, message, answer, out) {
                Progress::More => (),
                whole => return (used, whole),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
