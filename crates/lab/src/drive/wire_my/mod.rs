//! MySQL's protocol (4.1 and later), as the native driver speaks it to MySQL and MariaDB.
//!
//! Prepared statements take binary values. Whole numbers are BIGINT, other numbers DECIMAL, texts
//! VARCHAR. Booleans are the BIGINT 1 or 0 that TRUE and FALSE are in a statement's text. The
//! protocol answers one command at a time, so the driver queues nothing and waits for every
//! statement's answer. In extended mode the driver prepares, executes and closes a statement each
//! time. It sends BEGIN and START TRANSACTION as text, because MySQL prepares neither.

mod answer;
#[cfg(test)]
mod tests;
mod welcome;

use bytes::{BufMut as _, BytesMut};
use mysql_common::constants::{ColumnFlags, ColumnType, Command, StatusFlags};
use mysql_common::io::BufMutExt as _;

use crate::arm::Target;
use crate::client::{Param, Params, Statement, StatementId, Wanted};
use crate::drive::wire::{Answer, Prepared, Progress, Refusal, Wire};
use crate::load::Protocol;
use answer::Expect;

pub(crate) use welcome::Greeting;

/// The next packet continues a packet of this length.
const PACKET_FULL: usize = 0xff_ffff;

pub(crate) struct Mysql {
    target: Target,
    statements: Vec<Prepared>,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// By statement: the server's number for it, where it is prepared.
    numbers: Vec<Option<u32>>,
    expect: Expect,
    /// The server's status with the last answer.
    status: StatusFlags,
    /// Whether rows come in binary.
    binary: bool,
    /// The wanted part of the reply to the statement sent last.
    wanted: Wanted,
    /// Columns of the result under way.
    columns: Vec<(u8, ColumnFlags)>,
    /// The COM_STMT_EXECUTE that follows the preparation, with the number 0.
    execute: BytesMut,
}

impl Mysql {
    /// For connections to `target` that run `statements`.
    pub(crate) fn new(target: &Target, statements: &[Statement], protocol: Protocol) -> Self {
        let prepared = |one| {
            let mut prepared = Prepared::new(one, protocol, |_| "?".to_owned());
            let word = prepared.text.split_ascii_whitespace().next().unwrap_or_default();
            if ["begin", "begin;", "start"].iter().any(|begin| word.eq_ignore_ascii_case(begin)) {
                prepared.protocol = Protocol::Simple;
            }
            prepared
        };
        Self { target: target.clone(), statements: statements.iter().map(prepared).collect() }
    }
}

fn prepare(statement: &Prepared, out: &mut BytesMut) {
    command(Command::COM_STMT_PREPARE, out, |out| out.extend_from_slice(statement.text.as_bytes()));
}

/// Writes a packet with its length and number. No statement of a workload fills one.
fn packet(out: &mut BytesMut, number: u8, body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    body(out);
    let length = out.len() - start - 4;
    assert!(length < PACKET_FULL, "a statement of 16 MiB or more");
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
}

fn command(command: Command, out: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
    packet(out, 0, |out| {
        out.put_u8(command as u8);
        body(out);
    });
}

/// COM_STMT_EXECUTE without a cursor.
fn execute(id: u32, params: &Params, out: &mut BytesMut) {
    command(Command::COM_STMT_EXECUTE, out, |out| {
        out.put_u32_le(id);
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if params.is_empty() {
            return;
        }
        let nulls = out.len();
        out.put_bytes(0, params.len().div_ceil(8));
        // Types follow.
        out.put_u8(1);
        for (index, param) in params.iter().enumerate() {
            let kind = match param {
                Param::Null => {
                    out[nulls + index / 8] |= 1 << (index % 8);
                    ColumnType::MYSQL_TYPE_NULL
                }
                Param::Verbatim(value) if whole(value).is_some() => ColumnType::MYSQL_TYPE_LONGLONG,
                Param::Verbatim(value) if decimal(value) => ColumnType::MYSQL_TYPE_NEWDECIMAL,
                Param::Text(_) | Param::Verbatim(_) => ColumnType::MYSQL_TYPE_VAR_STRING,
            };
            out.extend_from_slice(&[kind as u8, 0]);
        }
        for param in params.iter() {
            match param {
                Param::Null => (),
                Param::Verbatim(value) if let Some(number) = whole(value) => out.put_i64_le(number),
                Param::Text(value) | Param::Verbatim(value) => out.put_lenenc_str(value),
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

    fn length(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if length == PACKET_FULL {
            return Err("the server answered with a row of 16 MiB or more, which this driver does not read");
        }
        Ok((bytes.len() >= length + 4).then_some(length + 4))
    }

    fn greet(&self, _: &mut BytesMut) -> Greeting {
        // The server speaks first.
        Greeting::default()
    }

    fn greeted(
        &self,
        greeting: &mut Greeting,
        message: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Session>, Refusal> {
        greeting.take(self, message[3], &message[4..], out)
    }

    fn encode(
        &self,
        session: &mut Session,
        statement: StatementId,
        params: &Params,
        _: bool,
        out: &mut BytesMut,
    ) {
        let id = usize::from(statement.0);
        let statement = &self.statements[id];
        statement.assert_complete(params);
        session.wanted = statement.wanted;
        session.expect = Expect::First;
        session.binary = statement.protocol != Protocol::Simple;
        match statement.protocol {
            Protocol::Simple => {
                command(Command::COM_QUERY, out, |out| statement.put_text(params, quote, out));
            }
            Protocol::Prepared => {
                let number = session.numbers[id].expect("the session begins with it prepared");
                execute(number, params, out);
            }
            Protocol::Extended => {
                session.execute.clear();
                execute(0, params, &mut session.execute);
                session.expect = Expect::Prepared;
                prepare(statement, out);
            }
        }
    }

    fn in_transaction(&self, session: &Session) -> bool {
        session.status.contains(StatusFlags::SERVER_STATUS_IN_TRANS)
    }

    fn sync(&self, _: &mut BytesMut) {}

    fn rollback(&self, session: &mut Session, out: &mut BytesMut) -> bool {
        // An error's packet does not report whether a transaction is still open.
        session.expect = Expect::First;
        session.wanted = Wanted::Nothing;
        command(Command::COM_QUERY, out, |out| out.extend_from_slice(b"ROLLBACK"));
        true
    }

    fn answered(
        &self,
        session: &mut Session,
        message: &[u8],
        answer: &mut Answer,
        out: &mut BytesMut,
    ) -> Progress {
        session.take(&message[4..], answer, out)
    }

    fn statements(&self) -> &[Prepared] {
        &self.statements
    }

    fn leave(&self, out: &mut BytesMut) {
        command(Command::COM_QUIT, out, |_| ());
    }
}

/// Writes a text as a literal, in the default mode, in which a backslash escapes.
fn quote(out: &mut BytesMut, value: &[u8]) {
    out.put_u8(b'\'');
    for &byte in value {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0 => out.extend_from_slice(b"\\0"),
            _ => out.put_u8(byte),
        }
    }
    out.put_u8(b'\'');
}
