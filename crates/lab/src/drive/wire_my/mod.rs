//! MySQL's protocol (4.1 and later), as the native driver speaks it to MySQL and MariaDB.
//!
//! Prepared statements take binary values. Whole numbers are BIGINT, other numbers DECIMAL, texts
//! VARCHAR. Booleans are the BIGINT 1 or 0 that TRUE and FALSE are in a statement's text. The
//! protocol answers one command at a time, so the driver queues nothing and waits for every
//! statement's answer. In extended mode the driver prepares, executes and closes a statement each
//! time. It sends a statement as text once the server has refused to prepare it (MySQL START
//! TRANSACTION, say).

mod answer;
mod binary;
mod packet;
#[cfg(test)]
mod tests;
mod welcome;

use crate::arm::{Address, Target};
use crate::client::{Param, Params, StatementId};
use crate::client::{Prepare, Statement, Wanted};
use crate::drive::wire::{Answer, Code, Progress, Refusal, Wire, assert_complete, put_statement};
use crate::load::Protocol;
use answer::Expect;
use packet::{packet, put_length};

pub(crate) use welcome::Greeting;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

/// The bit of a server's status for an open transaction.
const IN_TRANSACTION: u16 = 0x1;
/// The error of a statement that can't be prepared (ER_UNSUPPORTED_PS).
const UNPREPARABLE: Code = Code::Number(1295);

const TYPE_BIGINT: u8 = 0x08;
const TYPE_NULL: u8 = 0x06;
const TYPE_DECIMAL: u8 = 0xf6;
const TYPE_VARCHAR: u8 = 0xfd;

pub(crate) struct Mysql {
    user: String,
    password: String,
    database: String,
    /// Whether the password may go over the connection in clear text.
    local: bool,
    statements: Vec<Prepared>,
}

struct Prepared {
    pieces: Vec<String>,
    wanted: Wanted,
    /// How the driver sends it; [`Protocol::Simple`] where the server can't prepare it.
    protocol: Protocol,
    late: bool,
    /// Its text with a `?` for each parameter.
    text: String,
}

/// The state of a statement on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The driver has not prepared it yet.
    Nothing,
    /// The server can prepare it; the server's number for it, where it stays prepared.
    Number(u32),
    /// The server prepares no statement of its kind: the driver sends it as text.
    Text,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// By the workload's numbers of the statements.
    known: Vec<Known>,
    /// The statement under preparation, and whether it stays prepared.
    preparing: (usize, bool),
    expect: Expect,
    /// The server's status with the last answer.
    status: u16,
    /// Whether rows come in binary.
    binary: bool,
    /// The wanted part of the reply to the statement sent last.
    wanted: Wanted,
    /// Columns of the result under way: type, and whether it is unsigned.
    columns: Vec<(u8, bool)>,
    execute: Vec<u8>,
    /// The COM_QUERY for a statement that the server can't prepare.
    query: Vec<u8>,
    /// A value as text.
    scratch: Vec<u8>,
}

impl Mysql {
    /// For connections to `target` that run `statements`.
    pub(crate) fn new(target: &Target, statements: &[Statement], protocol: Protocol) -> Self {
        let prepared = |one: &Statement| Prepared {
            pieces: one.pieces.clone(),
            wanted: one.wanted,
            protocol: if one.prepare == Prepare::Never { Protocol::Simple } else { protocol },
            late: one.prepare == Prepare::AtFirstUse,
            text: one.pieces.join("?"),
        };
        Self {
            user: target.user.clone(),
            password: target.password.clone().unwrap_or_default(),
            database: target.database.clone(),
            local: matches!(target.address, Address::Unix(_)),
            statements: statements.iter().map(prepared).collect(),
        }
    }
}

impl Prepared {
    /// Writes it as COM_QUERY, with the values in it.
    fn encode_simple(&self, params: &Params, out: &mut Vec<u8>) {
        packet(out, 0, |out| {
            out.push(COM_QUERY);
            put_statement(&self.pieces, params, quote, out);
        });
    }
}

/// COM_STMT_EXECUTE without a cursor.
fn execute(id: u32, params: &Params, out: &mut Vec<u8>) {
    packet(out, 0, |out| {
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if params.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + params.len().div_ceil(8), 0);
        // Types follow.
        out.push(1);
        for (index, param) in params.iter().enumerate() {
            let kind = match param {
                Param::Null | Param::Unset(_) => {
                    out[nulls + index / 8] |= 1 << (index % 8);
                    TYPE_NULL
                }
                Param::Verbatim(value) if whole(value).is_some() => TYPE_BIGINT,
                Param::Verbatim(value) if decimal(value) => TYPE_DECIMAL,
                Param::Text(_) | Param::Verbatim(_) => TYPE_VARCHAR,
            };
            out.extend_from_slice(&[kind, 0]);
        }
        for param in params.iter() {
            match param {
                Param::Null | Param::Unset(_) => (),
                Param::Verbatim(value) if let Some(number) = whole(value) => {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                Param::Text(value) | Param::Verbatim(value) => {
                    put_length(out, value.len() as u64);
                    out.extend_from_slice(value);
                }
            }
        }
    });
}

/// A value as a whole number, if it is one.
fn whole(value: &[u8]) -> Option<i64> {
    match value {
        b"true" => Some(1),
        b"false" => Some(0),
        _ => std::str::from_utf8(value).ok()?.parse().ok(),
    }
}

fn decimal(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
}

impl Wire for Mysql {
    type Greeting = Greeting;
    type Session = Session;

    fn greet(&self, _: &mut Vec<u8>) -> Greeting {
        // The server speaks first.
        Greeting::default()
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
        _: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let id = usize::from(statement.0);
        let statement = &self.statements[id];
        assert_complete(&statement.pieces, params);
        session.wanted = statement.wanted;
        session.expect = Expect::First;
        session.binary = true;
        match (statement.protocol, session.known[id]) {
            (Protocol::Simple, _) | (_, Known::Text) => {
                session.binary = false;
                statement.encode_simple(params, out);
            }
            (Protocol::Prepared, Known::Number(number)) => execute(number, params, out),
            (protocol, known) => {
                session.execute.clear();
                execute(0, params, &mut session.execute);
                session.query.clear();
                if known == Known::Nothing {
                    statement.encode_simple(params, &mut session.query);
                }
                session.preparing = (id, protocol == Protocol::Prepared);
                session.expect = Expect::Prepared;
                prepare(&statement.text, out);
            }
        }
        true
    }

    fn in_transaction(&self, session: &Session) -> bool {
        session.status & IN_TRANSACTION != 0
    }

    fn sync(&self, _: &mut Session, _: &mut Vec<u8>) -> bool {
        false
    }

    fn rollback(&self, session: &mut Session, out: &mut Vec<u8>) -> bool {
        // An error's packet does not report whether a transaction is still open.
        session.expect = Expect::First;
        session.wanted = Wanted::Nothing;
        packet(out, 0, |out| {
            out.push(COM_QUERY);
            out.extend_from_slice(b"ROLLBACK");
        });
        true
    }

    fn decode(
        &self,
        session: &mut Session,
        bytes: &[u8],
        answer: &mut Answer,
        out: &mut Vec<u8>,
    ) -> (usize, Progress) {
        session.decode(bytes, answer, out)
    }

    fn text(&self, statement: StatementId) -> &str {
        &self.statements[usize::from(statement.0)].text
    }

    fn leave(&self, out: &mut Vec<u8>) {
        packet(out, 0, |out| out.push(COM_QUIT));
    }
}

fn prepare(text: &str, out: &mut Vec<u8>) {
    packet(out, 0, |out| {
        out.push(COM_STMT_PREPARE);
        out.extend_from_slice(text.as_bytes());
    });
}

/// Writes a text as a literal, in the default mode, in which a backslash escapes.
fn quote(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'\'');
    for &byte in value {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0 => out.extend_from_slice(b"\\0"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}
