//! The answers of a MySQL server.

use super::binary::take_value;
use super::packet::{frame, packet, take, take_length, take_text};
use super::{COM_STMT_CLOSE, Known, Session, UNPREPARABLE};
use crate::client::Reply;
use crate::client::Wanted;
use crate::drive::wire::{Answer, Code, Failure, Progress};

#[derive(Debug, Clone, Copy)]
pub(super) enum Expect {
    Nothing,
    /// The answer to COM_STMT_PREPARE.
    Prepared,
    /// Packets that describe parameters and columns, before the statement can run.
    Described {
        id: u32,
        /// Packets to come.
        left: u32,
    },
    /// A count, an error, or the number of columns.
    First,
    Columns(u64),
    /// The end of the columns.
    ColumnsEnd,
    Rows,
}

/// In a status: another result follows.
const MORE_RESULTS: u16 = 0x8;
/// In a column's flags.
const UNSIGNED: u8 = 0x20;
const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// The header of a result in which the server asks for a file.
const FILE: u8 = 0xfb;

impl Session {
    /// A connection on which this is known of the statements.
    pub(super) fn ready(known: Vec<Known>) -> Self {
        Self {
            known,
            preparing: (0, false),
            status: 0,
            query: Vec::new(),
            expect: Expect::Nothing,
            binary: false,
            wanted: Wanted::Nothing,
            columns: Vec::new(),
            execute: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        answer: &mut Answer,
        out: &mut Vec<u8>,
    ) -> (usize, Progress) {
        let mut used = 0;
        loop {
            let body = match frame(&bytes[used..]) {
                Ok(Some((_, body))) => body,
                Ok(None) => return (used, Progress::More),
                Err(why) => return (used, Progress::Broken(why)),
            };
            used += body.len() + 4;
            match self.step(body, answer, out) {
                Some(Progress::More) => (),
                Some(whole) => {
                    self.expect = Expect::Nothing;
                    return (used, whole);
                }
                None => return (used, Progress::Broken("a packet that is cut or does not belong here")),
            }
        }
    }

    /// Takes one packet.
    fn step(&mut self, body: &[u8], answer: &mut Answer, out: &mut Vec<u8>) -> Option<Progress> {
        let first = *body.first()?;
        if first == ERR && !matches!(self.expect, Expect::Columns(_)) {
            error(body, &mut answer.failure)?;
            let preparing = matches!(self.expect, Expect::Prepared) && !self.query.is_empty();
            if preparing && answer.failure.code == UNPREPARABLE {
                self.known[self.preparing.0] = Known::Text;
                self.binary = false;
                self.expect = Expect::First;
                out.extend_from_slice(&self.query);
                return Some(Progress::More);
            }
            // Unasked, a server sends only the notice that it ends.
            let asked = !matches!(self.expect, Expect::Nothing);
            return Some(if asked { Progress::Failed } else { Progress::Ended });
        }
        self.expect = match self.expect {
            Expect::Nothing => return None,
            Expect::Prepared => {
                let (id, left) = prepared(body)?;
                self.known[self.preparing.0] = Known::Number(id);
                self.described(id, left, out)
            }
            Expect::Described { id, left } => self.described(id, left - 1, out),
            Expect::First if first == OK => {
                let mut rest = &body[1..];
                // The number of changed rows, and the last number it generated.
                take_length(&mut rest)?;
                take_length(&mut rest)?;
                return self.result_ends(status(rest)?);
            }
            Expect::First if first == FILE => {
                return Some(Progress::Broken("LOAD DATA LOCAL can't be part of a workload"));
            }
            Expect::First => {
                let columns = take_length(&mut &body[..])?;
                answer.reply.set_columns(usize::try_from(columns).ok()?);
                self.columns.clear();
                Expect::Columns(columns)
            }
            Expect::Columns(left) => {
                // Its end has fixed places: type, flags, decimals and two zeros.
                let at = body.len().checked_sub(6)?;
                if self.wanted == Wanted::NamedRows {
                    answer.reply.name(std::str::from_utf8(name(body)?).unwrap_or_default());
                }
                self.columns.push((body[at], body[at + 1] & UNSIGNED != 0));
                if left > 1 { Expect::Columns(left - 1) } else { Expect::ColumnsEnd }
            }
            Expect::ColumnsEnd => Expect::Rows,
            Expect::Rows if first == EOF && body.len() < 9 => {
                return self.result_ends(status(body.get(3..)?)?);
            }
            Expect::Rows => {
                match (self.wanted, self.binary) {
                    (Wanted::Nothing, _) => (),
                    (_, true) => self.binary_row(body, &mut answer.reply)?,
                    (_, false) => self.text_row(body, &mut answer.reply)?,
                }
                Expect::Rows
            }
        };
        Some(Progress::More)
    }

    /// Awaits the packets of the description. After the last one it executes the statement, and
    /// closes it unless it stays prepared.
    fn described(&mut self, id: u32, left: u32, out: &mut Vec<u8>) -> Expect {
        if left > 0 {
            return Expect::Described { id, left };
        }
        let start = out.len();
        out.extend_from_slice(&self.execute);
        out[start + 5..start + 9].copy_from_slice(&id.to_le_bytes());
        if !self.preparing.1 {
            packet(out, 0, |out| {
                out.push(COM_STMT_CLOSE);
                out.extend_from_slice(&id.to_le_bytes());
            });
        }
        Expect::First
    }

    fn result_ends(&mut self, status: u16) -> Option<Progress> {
        self.status = status;
        if status & MORE_RESULTS != 0 {
            self.expect = Expect::First;
            return Some(Progress::More);
        }
        Some(Progress::Replied)
    }

    fn text_row(&self, mut body: &[u8], reply: &mut Reply) -> Option<()> {
        for _ in &self.columns {
            if body.first() == Some(&0xfb) {
                take(&mut body, 1);
                reply.push(None);
            } else {
                reply.push(Some(take_text(&mut body)?));
            }
        }
        Some(())
    }

    fn binary_row(&mut self, body: &[u8], reply: &mut Reply) -> Option<()> {
        // A zero; a bit for each NULL, the first two unused; the others' values.
        let mut rest = &body[1..];
        let nulls = take(&mut rest, (self.columns.len() + 9) / 8)?;
        for (index, &(kind, unsigned)) in self.columns.iter().enumerate() {
            if nulls[(index + 2) / 8] & (1 << ((index + 2) % 8)) != 0 {
                reply.push(None);
            } else {
                take_value(&mut rest, kind, unsigned, &mut self.scratch)?;
                reply.push(Some(&self.scratch));
            }
        }
        Some(())
    }
}

/// A column's name, which follows catalog, schema, table and the table's own name.
fn name(mut column: &[u8]) -> Option<&[u8]> {
    for _ in 0..4 {
        take_text(&mut column)?;
    }
    take_text(&mut column)
}

fn status(rest: &[u8]) -> Option<u16> {
    rest.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// The number of a prepared statement, and how many packets of its description follow.
pub(super) fn prepared(body: &[u8]) -> Option<(u32, u32)> {
    let mut rest = body.strip_prefix(&[OK])?;
    let id = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let columns = u32::from(status(take(&mut rest, 2)?)?);
    let params = u32::from(status(take(&mut rest, 2)?)?);
    // Each group is followed by its end.
    let packets = |count: u32| if count > 0 { count + 1 } else { 0 };
    Some((id, packets(params) + packets(columns)))
}

pub(super) fn error(body: &[u8], failure: &mut Failure) -> Option<()> {
    let mut rest = body.strip_prefix(&[ERR])?;
    let number = status(take(&mut rest, 2)?)?;
    // A mark and the SQLSTATE come first, except before both sides have agreed on the protocol.
    if rest.first() == Some(&b'#') {
        take(&mut rest, 6)?;
    }
    failure.set(Code::Number(number), rest);
    Some(())
}
