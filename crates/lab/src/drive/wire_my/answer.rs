//! The answers of a MySQL server.

use bytes::{BufMut as _, BytesMut};
use mysql_common::constants::{ColumnFlags, ColumnType, Command, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::StmtPacket;
use mysql_common::value::{BinValue, Value, ValueDeserializer};

use super::{Session, command};
use crate::client::{Reply, Wanted};
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

const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// The header of a result in which the server asks for a file.
const FILE: u8 = 0xfb;

impl Session {
    /// A connection that has these statements.
    pub(super) fn ready(numbers: Vec<Option<u32>>) -> Self {
        Self {
            numbers,
            status: StatusFlags::empty(),
            expect: Expect::Nothing,
            binary: false,
            wanted: Wanted::Nothing,
            columns: Vec::new(),
            execute: BytesMut::new(),
        }
    }

    pub(super) fn take(&mut self, body: &[u8], answer: &mut Answer, out: &mut BytesMut) -> Progress {
        let progress = self.step(body, answer, out);
        let progress = progress.unwrap_or(Progress::Broken("a packet that is cut or does not belong here"));
        if progress != Progress::More {
            self.expect = Expect::Nothing;
        }
        progress
    }

    fn step(&mut self, body: &[u8], answer: &mut Answer, out: &mut BytesMut) -> Option<Progress> {
        let first = *body.first()?;
        if first == ERR && !matches!(self.expect, Expect::Columns(_)) {
            error(body, &mut answer.failure)?;
            // Unasked, a server sends only the notice that it ends.
            let asked = !matches!(self.expect, Expect::Nothing);
            return Some(if asked { Progress::Failed } else { Progress::Ended });
        }
        self.expect = match self.expect {
            Expect::Nothing => return None,
            Expect::Prepared => {
                let (id, left) = prepared(body)?;
                self.described(id, left, out)
            }
            Expect::Described { id, left } => self.described(id, left - 1, out),
            Expect::First if first == OK => {
                let mut rest = ParseBuf(&body[1..]);
                // The number of changed rows, and the last number it generated.
                rest.checked_eat_lenenc_int()?;
                rest.checked_eat_lenenc_int()?;
                return self.result_ends(rest);
            }
            Expect::First if first == FILE => {
                return Some(Progress::Broken("LOAD DATA LOCAL can't be part of a workload"));
            }
            Expect::First => {
                let columns = ParseBuf(body).checked_eat_lenenc_int()?;
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
                let flags = ColumnFlags::from_bits_truncate(u16::from_le_bytes([body[at + 1], body[at + 2]]));
                self.columns.push((body[at], flags));
                if left > 1 { Expect::Columns(left - 1) } else { Expect::ColumnsEnd }
            }
            Expect::ColumnsEnd => Expect::Rows,
            Expect::Rows if first == EOF && body.len() < 9 => {
                return self.result_ends(ParseBuf(body.get(3..)?));
            }
            Expect::Rows => {
                match (self.wanted, self.binary) {
                    (Wanted::Nothing, _) => (),
                    (_, true) => self.binary_row(ParseBuf(&body[1..]), &mut answer.reply)?,
                    (_, false) => self.text_row(ParseBuf(body), &mut answer.reply)?,
                }
                Expect::Rows
            }
        };
        Some(Progress::More)
    }

    /// Awaits the packets of the description. After the last one it executes the statement and
    /// closes it.
    fn described(&self, id: u32, left: u32, out: &mut BytesMut) -> Expect {
        if left > 0 {
            return Expect::Described { id, left };
        }
        let start = out.len();
        out.extend_from_slice(&self.execute);
        out[start + 5..start + 9].copy_from_slice(&id.to_le_bytes());
        command(Command::COM_STMT_CLOSE, out, |out| out.put_u32_le(id));
        Expect::First
    }

    /// A result ends with the server's status.
    fn result_ends(&mut self, mut rest: ParseBuf<'_>) -> Option<Progress> {
        self.status = StatusFlags::from_bits_truncate(rest.checked_eat_u16_le()?);
        if self.status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS) {
            self.expect = Expect::First;
            return Some(Progress::More);
        }
        Some(Progress::Replied)
    }

    fn text_row(&self, mut rest: ParseBuf<'_>, reply: &mut Reply) -> Option<()> {
        for _ in &self.columns {
            if rest.0.first() == Some(&0xfb) {
                rest.skip(1);
                reply.push(None);
            } else {
                reply.push(Some(rest.checked_eat_lenenc_str()?));
            }
        }
        Some(())
    }

    /// A bit for each NULL, the first two unused; the others' values.
    fn binary_row(&self, mut rest: ParseBuf<'_>, reply: &mut Reply) -> Option<()> {
        let nulls = rest.checked_eat((self.columns.len() + 9) / 8)?;
        for (index, &(kind, flags)) in self.columns.iter().enumerate() {
            if nulls[(index + 2) / 8] & (1 << ((index + 2) % 8)) != 0 {
                reply.push(None);
            } else if (0x01..=0x0d).contains(&kind) {
                let kind = ColumnType::try_from(kind).ok()?;
                match rest.parse::<ValueDeserializer<BinValue>>((kind, flags)).ok()?.0 {
                    Value::Int(value) => reply.push(Some(itoa::Buffer::new().format(value).as_bytes())),
                    // A date or time is in quotes.
                    value => reply.push(Some(value.as_sql(true).trim_matches('\'').as_bytes())),
                }
            } else {
                // All types but numbers and times come as text.
                reply.push(Some(rest.checked_eat_lenenc_str()?));
            }
        }
        Some(())
    }
}

/// A column's name, which follows catalog, schema, table and the table's own name.
fn name(column: &[u8]) -> Option<&[u8]> {
    let mut rest = ParseBuf(column);
    for _ in 0..4 {
        rest.checked_eat_lenenc_str()?;
    }
    rest.checked_eat_lenenc_str()
}

/// The number of a prepared statement, and how many packets of its description follow.
pub(super) fn prepared(body: &[u8]) -> Option<(u32, u32)> {
    let packet: StmtPacket = ParseBuf(body).parse(()).ok()?;
    // Each group is followed by its end.
    let packets = |count: u16| if count > 0 { u32::from(count) + 1 } else { 0 };
    Some((packet.statement_id(), packets(packet.num_params()) + packets(packet.num_columns())))
}

pub(super) fn error(body: &[u8], failure: &mut Failure) -> Option<()> {
    let mut rest = ParseBuf(body.strip_prefix(&[ERR])?);
    let number = rest.checked_eat_u16_le()?;
    // A mark and the SQLSTATE come first, except before both sides have agreed on the protocol.
    if rest.0.first() == Some(&b'#') {
        rest.checked_eat(6)?;
    }
    failure.set(Code::Number(number), rest.0);
    Some(())
}
