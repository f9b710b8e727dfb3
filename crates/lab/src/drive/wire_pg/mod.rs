//! PostgreSQL's protocol 3.0, as the native driver speaks it.
//!
//! The driver sends a statement as libpq does (Bind, Describe, Execute, Sync). So a server has
//! the same work under this driver as under pgbench. All values are text. The driver makes the
//! messages of prepared statements once; for a transaction it copies them and adds the values.

mod answer;
#[cfg(test)]
mod tests;
mod welcome;

use std::collections::VecDeque;

use crate::arm::Target;
use crate::client::{Param, Params, StatementId};
use crate::client::{Prepare, Statement, Wanted};
use crate::drive::wire::{Answer, Progress, Refusal, Wire, assert_complete, put_statement};
use crate::load::Protocol;

pub(crate) use welcome::Greeting;

pub(crate) struct Postgres {
    user: String,
    password: Option<String>,
    database: String,
    statements: Vec<Prepared>,
}

/// A statement, and the messages it sends each time.
struct Prepared {
    pieces: Vec<String>,
    wanted: Wanted,
    /// How the driver sends it; [`Protocol::Simple`] where the server can't prepare it.
    protocol: Protocol,
    /// Its text with `$1`, `$2` and so on.
    text: String,
    /// Its Parse, where the driver prepares it at first use.
    late: Option<Vec<u8>>,
    /// Parse (where the driver sends it each time) and the head of Bind, up to the number of
    /// parameters, with Bind's length 0.
    head: Vec<u8>,
    /// Where Bind begins in `head`.
    bind: usize,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// ReadyForQuery messages asked for, and those that have come.
    asked: u64,
    answered: u64,
    /// By statement: whether the server has it, where the driver prepares it at first use.
    prepared: Vec<bool>,
    /// Statements whose ParseComplete is to come, and the number of the ReadyForQuery that follows
    /// it.
    parsing: VecDeque<(u64, u16)>,
    queued: bool,
    /// An error has come since the last answer.
    failed: bool,
    /// Statements that have gone well since then.
    went_well: usize,
    /// The transaction's state by the last ReadyForQuery.
    status: u8,
    /// The wanted part of the reply to the statement sent last.
    wanted: Wanted,
}

/// Describe of the unnamed portal, and Execute without a limit.
const DESCRIBE_EXECUTE: &[u8] = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";

impl Postgres {
    /// For connections to `target` that run `statements`.
    pub(crate) fn new(target: &Target, statements: &[Statement], protocol: Protocol) -> Self {
        let statements =
            statements.iter().enumerate().map(|(id, one)| Prepared::new(id, one, protocol)).collect();
        Self {
            user: target.user.clone(),
            password: target.password.clone(),
            database: target.database.clone(),
            statements,
        }
    }
}

impl Prepared {
    fn new(id: usize, statement: &Statement, protocol: Protocol) -> Self {
        let mut text = String::new();
        for (index, piece) in statement.pieces.iter().enumerate() {
            if index > 0 {
                text.push_str(&format!("${index}"));
            }
            text.push_str(piece);
        }
        let protocol = if statement.prepare == Prepare::Never { Protocol::Simple } else { protocol };
        let late = (protocol == Protocol::Prepared && statement.prepare == Prepare::AtFirstUse).then(|| {
            let mut late = Vec::new();
            parse(&mut late, &name(id), &text);
            late
        });
        let mut head = Vec::new();
        let name = match protocol {
            Protocol::Extended => {
                parse(&mut head, "", &text);
                String::new()
            }
            _ => name(id),
        };
        let bind = head.len();
        head.extend_from_slice(b"B\0\0\0\0\0");
        put_text(&mut head, &name);
        head.extend_from_slice(&[0, 0]);
        head.extend_from_slice(&(statement.pieces.len() as u16 - 1).to_be_bytes());
        Self { pieces: statement.pieces.clone(), wanted: statement.wanted, protocol, text, late, head, bind }
    }

    fn encode_simple(&self, params: &Params, out: &mut Vec<u8>) {
        message(out, b'Q', |out| {
            put_statement(&self.pieces, params, quote, out);
            out.push(0);
        });
    }

    fn encode_bound(&self, params: &Params, out: &mut Vec<u8>) {
        let start = out.len() + self.bind;
        out.extend_from_slice(&self.head);
        for param in params.iter() {
            match param {
                Param::Null | Param::Unset(_) => out.extend_from_slice(&(-1i32).to_be_bytes()),
                Param::Text(value) | Param::Verbatim(value) => {
                    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        // The results' formats: all text.
        out.extend_from_slice(&[0, 0]);
        let length = (out.len() - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(DESCRIBE_EXECUTE);
    }
}

impl Session {
    /// Sends a statement's Parse, unless the server has it or will have it.
    fn parse(&mut self, number: u16, parse: &[u8], out: &mut Vec<u8>) {
        let under_way = || self.parsing.iter().any(|(_, other)| *other == number);
        if !self.prepared[usize::from(number)] && !under_way() {
            out.extend_from_slice(parse);
            self.parsing.push_back((self.asked, number));
        }
    }

    /// The oldest Parse under way is done.
    fn parsed(&mut self) {
        if let Some((_, number)) = self.parsing.pop_front() {
            self.prepared[usize::from(number)] = true;
        }
    }

    /// A ReadyForQuery has come. A Parse before it that is not complete was skipped after an error.
    fn ready(&mut self) {
        while self.parsing.front().is_some_and(|(before, _)| *before <= self.answered) {
            self.parsing.pop_front();
        }
        self.answered += 1;
    }
}

impl Wire for Postgres {
    type Greeting = Greeting;
    type Session = Session;

    fn greet(&self, out: &mut Vec<u8>) -> Greeting {
        Greeting::new(self, out)
    }

    fn welcome(
        &self,
        greeting: &mut Greeting,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, Refusal> {
        greeting.take(self, bytes, out)
    }

    fn encode(
        &self,
        session: &mut Session,
        statement: StatementId,
        params: &Params,
        wait: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let number = statement.0;
        let statement = &self.statements[usize::from(number)];
        assert_complete(&statement.pieces, params);
        session.wanted = statement.wanted;
        if statement.protocol == Protocol::Simple {
            // After an error in the queue the server would skip a Query, unless a Sync comes
            // between them.
            self.sync(session, out);
            statement.encode_simple(params, out);
            session.asked += 1;
            return true;
        }
        if let Some(late) = &statement.late {
            session.parse(number, late, out);
        }
        statement.encode_bound(params, out);
        session.queued = true;
        wait && self.sync(session, out)
    }

    fn sync(&self, session: &mut Session, out: &mut Vec<u8>) -> bool {
        if std::mem::take(&mut session.queued) {
            out.extend_from_slice(SYNC);
            session.asked += 1;
        }
        session.asked > session.answered
    }

    fn in_transaction(&self, session: &Session) -> bool {
        session.status != b'I'
    }

    fn rollback(&self, session: &mut Session, out: &mut Vec<u8>) -> bool {
        if !self.in_transaction(session) {
            return false;
        }
        message(out, b'Q', |out| put_text(out, "ROLLBACK"));
        session.asked += 1;
        true
    }

    fn decode(
        &self,
        session: &mut Session,
        bytes: &[u8],
        answer: &mut Answer,
        _: &mut Vec<u8>,
    ) -> (usize, Progress) {
        session.decode(bytes, answer)
    }

    fn text(&self, statement: StatementId) -> &str {
        &self.statements[usize::from(statement.0)].text
    }

    fn leave(&self, out: &mut Vec<u8>) {
        message(out, b'X', |_| ());
    }
}

/// The name of prepared statement number `id`.
fn name(id: usize) -> String {
    format!("s{id}")
}

fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A Parse message; the server infers the parameters' types.
fn parse(out: &mut Vec<u8>, name: &str, text: &str) {
    message(out, b'P', |out| {
        put_text(out, name);
        put_text(out, text);
        out.extend_from_slice(&[0, 0]);
    });
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Writes a text as a literal. Backslashes are themselves under standard_conforming_strings, which
/// the driver sets at the beginning.
fn quote(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'\'');
    for &byte in value {
        if byte == b'\'' {
            out.push(b'\'');
        }
        out.push(byte);
    }
    out.push(b'\'');
}
