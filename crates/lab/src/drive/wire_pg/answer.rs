//! The answers of a PostgreSQL server.

use super::Session;
use crate::client::{Reply, Wanted};
use crate::drive::wire::{Answer, Code, Failure, Progress};

impl Session {
    pub(super) fn new() -> Self {
        Self { failed: false, went_well: 0, status: b'I', wanted: Wanted::Nothing }
    }

    pub(super) fn take(&mut self, tag: u8, body: &[u8], answer: &mut Answer) -> Progress {
        match tag {
            b'D' | b'T' if self.wanted == Wanted::Nothing => (),
            b'D' => {
                if row(body, &mut answer.reply).is_none() {
                    return Progress::Broken("a row is shorter than it says");
                }
            }
            b'C' | b'I' => self.went_well += 1,
            b'Z' => {
                self.status = body.first().copied().unwrap_or(b'I');
                self.went_well = 0;
                let failed = std::mem::take(&mut self.failed);
                return if failed { Progress::Failed } else { Progress::Replied };
            }
            // The next statement's answer begins: the reply holds the last one.
            b'2' => answer.reply.clear(),
            b'T' => {
                answer.reply.set_columns(count(body).unwrap_or(0));
                if self.wanted == Wanted::NamedRows && names(body, &mut answer.reply).is_none() {
                    return Progress::Broken("a description of rows is shorter than it says");
                }
            }
            // The first of several errors is the cause.
            b'E' if self.failed => (),
            b'E' => {
                self.failed = true;
                answer.failure.behind = self.went_well;
                if error(body, &mut answer.failure) {
                    return Progress::Ended;
                }
            }
            b'1' | b'3' | b'n' | b'N' | b'S' | b'A' | b't' | b's' | b'H' | b'd' | b'c' => (),
            b'G' => return Progress::Broken("COPY FROM STDIN can't be part of a workload"),
            _ => return Progress::Broken("a message of unknown type"),
        }
        Progress::More
    }
}

fn count(body: &[u8]) -> Option<usize> {
    body.first_chunk().map(|count| usize::from(u16::from_be_bytes(*count)))
}

fn row(body: &[u8], reply: &mut Reply) -> Option<()> {
    let columns = count(body)?;
    let mut rest = &body[2..];
    for _ in 0..columns {
        let (length, after) = rest.split_first_chunk()?;
        rest = after;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (value, after) = rest.split_at_checked(length)?;
                reply.push(Some(value));
                rest = after;
            }
            Err(_) => reply.push(None),
        }
    }
    Some(())
}

fn names(body: &[u8], reply: &mut Reply) -> Option<()> {
    let columns = count(body)?;
    let mut rest = &body[2..];
    for _ in 0..columns {
        let end = rest.iter().position(|&byte| byte == 0)?;
        reply.name(std::str::from_utf8(&rest[..end]).unwrap_or_default());
        // Behind the name: table, column, type, its size and modifier, format.
        rest = rest.get(end + 1 + 18..)?;
    }
    Some(())
}

/// Reads an ErrorResponse; returns whether it ends the connection.
pub(super) fn error(body: &[u8], failure: &mut Failure) -> bool {
    let (mut severity, mut state, mut message, mut position) = (&b""[..], *b"XX000", &b""[..], &b""[..]);
    let mut rest = body;
    while let [field, after @ ..] = rest {
        let Some(end) = after.iter().position(|&byte| byte == 0) else { break };
        let value = &after[..end];
        match field {
            b'V' => severity = value,
            // Servers older than 9.6 send only this field, which may be translated.
            b'S' if severity.is_empty() => severity = value,
            b'C' => state = value.try_into().unwrap_or(state),
            b'M' => message = value,
            b'P' => position = value,
            _ => (),
        }
        rest = &after[end + 1..];
    }
    failure.set(Code::State(state), message);
    if !position.is_empty() && position.iter().all(u8::is_ascii_digit) {
        failure.message.push_str(" at character ");
        failure.message.extend(position.iter().map(|digit| char::from(*digit)));
    }
    matches!(severity, b"FATAL" | b"PANIC")
}
