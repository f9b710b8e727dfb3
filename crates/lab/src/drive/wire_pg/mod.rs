//! PostgreSQL's protocol 3.0, as the native driver speaks it.
//!
//! The driver sends a statement as libpq does (Bind, Describe, Execute, Sync). So a server has
//! the same work under this driver as under pgbench. All values are text.

mod answer;
#[cfg(test)]
pub(super) mod tests;
mod welcome;

use bytes::{BufMut as _, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::arm::Target;
use crate::client::{Param, Params, Statement, StatementId, Wanted};
use crate::drive::wire::{Answer, Prepared, Progress, Refusal, Wire};
use crate::load::Protocol;

pub(crate) use welcome::Greeting;

/// A limit above any message that a workload asks for: a longer length is an error.
const MESSAGE_MAX: usize = 1 << 30;

/// The reason why writing a message never fails.
const FITS: &str = "no name, text or value has a zero byte or more than 1 GiB";

pub(crate) struct Postgres {
    target: Target,
    statements: Vec<Prepared>,
    /// The server's names for them; empty where the driver prepares a statement each time.
    names: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// An error has come since the last answer.
    failed: bool,
    /// Statements that have gone well since then.
    went_well: usize,
    /// The transaction's state by the last ReadyForQuery.
    status: u8,
    /// The wanted part of the reply to the statement sent last.
    wanted: Wanted,
}

impl Postgres {
    /// For connections to `target` that run `statements`.
    pub(crate) fn new(target: &Target, statements: &[Statement], protocol: Protocol) -> Self {
        let prepared = |one| Prepared::new(one, protocol, |place| format!("${place}"));
        let name = |id| if protocol == Protocol::Prepared { format!("s{id}") } else { String::new() };
        Self {
            target: target.clone(),
            statements: statements.iter().map(prepared).collect(),
            names: (0..statements.len()).map(name).collect(),
        }
    }

    /// Writes Parse; the server infers the parameters' types.
    fn parse(&self, number: usize, out: &mut BytesMut) {
        frontend::parse(&self.names[number], &self.statements[number].text, [], out).expect(FITS);
    }
}

/// Writes Query, with the values in it.
fn query(statement: &Prepared, params: &Params, out: &mut BytesMut) {
    out.put_u8(b'Q');
    let start = out.len();
    out.put_u32(0);
    statement.put_text(params, quote, out);
    out.put_u8(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes Bind, Describe and Execute of the statement of this name.
fn execute(name: &str, params: &Params, out: &mut BytesMut) {
    let value = |param: Param<'_>, out: &mut BytesMut| match param {
        Param::Null => Ok(IsNull::Yes),
        Param::Text(value) | Param::Verbatim(value) => {
            out.extend_from_slice(value);
            Ok(IsNull::No)
        }
    };
    let bound = frontend::bind("", name, [], params.iter(), value, [], out);
    assert!(bound.is_ok(), "{FITS}");
    frontend::describe(b'P', "", out).expect(FITS);
    frontend::execute("", 0, out).expect(FITS);
}

impl Wire for Postgres {
    type Greeting = Greeting;
    type Session = Session;

    fn length(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(head) = bytes.first_chunk::<5>() else { return Ok(None) };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_MAX).contains(&length) {
            return Err("a message has a length no message can have: this is no PostgreSQL server");
        }
        Ok((bytes.len() > length).then_some(length + 1))
    }

    fn greet(&self, out: &mut BytesMut) -> Greeting {
        Greeting::new(self, out)
    }

    fn greeted(
        &self,
        greeting: &mut Greeting,
        message: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Session>, Refusal> {
        greeting.take(self, message, out)
    }

    fn encode(
        &self,
        session: &mut Session,
        statement: StatementId,
        params: &Params,
        wait: bool,
        out: &mut BytesMut,
    ) {
        let number = usize::from(statement.0);
        let statement = &self.statements[number];
        statement.assert_complete(params);
        session.wanted = statement.wanted;
        match statement.protocol {
            Protocol::Simple => {
                assert!(wait, "a statement that is sent as text can't be part of a pipeline");
                return query(statement, params, out);
            }
            Protocol::Extended => self.parse(number, out),
            Protocol::Prepared => (),
        }
        execute(&self.names[number], params, out);
        if wait {
            self.sync(out);
        }
    }

    fn sync(&self, out: &mut BytesMut) {
        frontend::sync(out);
    }

    fn in_transaction(&self, session: &Session) -> bool {
        session.status != b'I'
    }

    fn rollback(&self, session: &mut Session, out: &mut BytesMut) -> bool {
        if !self.in_transaction(session) {
            return false;
        }
        frontend::query("ROLLBACK", out).expect(FITS);
        true
    }

    fn answered(
        &self,
        session: &mut Session,
        message: &[u8],
        answer: &mut Answer,
        _: &mut BytesMut,
    ) -> Progress {
        session.take(message[0], &message[5..], answer)
    }

    fn statements(&self) -> &[Prepared] {
        &self.statements
    }

    fn leave(&self, out: &mut BytesMut) {
        frontend::terminate(out);
    }
}

/// Writes a text as a literal. Backslashes are themselves under standard_conforming_strings, which
/// the driver sets at the beginning.
fn quote(out: &mut BytesMut, value: &[u8]) {
    out.put_u8(b'\'');
    for &byte in value {
        if byte == b'\'' {
            out.put_u8(b'\'');
        }
        out.put_u8(byte);
    }
    out.put_u8(b'\'');
}
