//! Passes the first row of each key, for DISTINCT, UNION and other operators that give no key
//! twice.
//!
//! Keys are kept while `work_mem` has room for them. After that, a row with an unknown key waits.
//! At the end the waiting rows are sorted by key to find the first of each, then by their number in
//! the input. A row passes at once only before the first row waits. So the output is in the input's
//! order.

use super::memory::{give, unpack_registers, used};
use super::{Arena, Executor, File, Flow, Sink};
use crate::spill::Sorter;
use query::plan::Reg;
use values::error::SqlError;
use values::key_table::KeyTable;
use values::work;

/// The keys kept while there is memory for them.
pub(super) struct Seen<'b> {
    keys: KeyTable<&'b [u8], ()>,
    room: usize,
    full: bool,
}

/// The answer about a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// It was not seen before.
    New,
    /// It was.
    Known,
    /// The key is not kept and there is no memory to keep it, so nobody knows whether it came
    /// before.
    NoRoom,
}

impl<'b> Seen<'b> {
    pub fn new(room: usize) -> Seen<'b> {
        Seen { keys: KeyTable::default(), room, full: false }
    }

    /// Whether the key is remembered.
    pub fn knows(&self, key: &[u8]) -> Result<bool, SqlError> {
        Ok(self.keys.get(key)?.is_some())
    }

    /// Whether the key was seen; remembers it, in an arena of its own for all keys.
    pub fn see(&mut self, key: &[u8], memory: &'b Arena<'_>) -> Result<Sight, SqlError> {
        if self.full {
            return Ok(if self.knows(key)? { Sight::Known } else { Sight::NoRoom });
        }
        if !self.keys.insert_new(key, (), || work::bytes_in(key, &memory.bump))? {
            return Ok(Sight::Known);
        }
        self.full = used(&memory.bump) + self.keys.bytes() > self.room;
        Ok(Sight::New)
    }
}

/// The first row of each key.
pub(super) struct Firsts<'s, 'b> {
    seen: Seen<'b>,
    late: Option<Late<'s>>,
}

/// Rows that wait, and how many there were.
pub(super) struct Late<'s>(Sorter<'s>, u64);

impl<'s, 'b> Firsts<'s, 'b> {
    pub fn new(cx: &Executor<'s>) -> Firsts<'s, 'b> {
        Firsts { seen: Seen::new(cx.work_mem()), late: None }
    }

    /// Whether the caller gives the row on now. If not, its key is known, or the row waits in the
    /// form that `pack` writes.
    pub fn take(
        &mut self,
        cx: &Executor<'s>,
        key: &[u8],
        memory: &'b Arena<'_>,
        pack: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        match self.seen.see(key, memory)? {
            Sight::New => Ok(true),
            Sight::Known => Ok(false),
            Sight::NoRoom => {
                let Late(sorter, number) = self.late.get_or_insert_with(|| Late(cx.sorter(), 0));
                *number += 1;
                sorter.push(key, |to| {
                    to.extend_from_slice(&number.to_be_bytes());
                    pack(to)
                })?;
                Ok(false)
            }
        }
    }

    /// The waiting rows, after the last row of the input. Drops the keys, so their arena may go.
    pub fn late(self) -> Option<Late<'s>> {
        self.late
    }
}

impl<'s> Late<'s> {
    /// Gives on the first waiting row of each key, in the input's order, in these registers.
    pub fn give(
        self,
        cx: &mut Executor<'s>,
        (registers, file): (&[Reg], &File<'_>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut by_key = self.0.finish()?;
        let mut by_number = cx.sorter();
        let mut last = None::<Vec<u8>>;
        while let Some((key, row)) = by_key.next()? {
            cx.check()?;
            if work::is(last.as_deref(), key)? {
                continue;
            }
            let last = last.get_or_insert_default();
            last.clear();
            work::put(key, last)?;
            let (number, row) = row.split_at(size_of::<u64>());
            by_number.push(number, |to| work::put(row, to))?;
        }
        drop(by_key);
        let mut rows = by_number.finish()?;
        cx.scoped(|cx, own| {
            while let Some((_, row)) = rows.next()? {
                let flow = give(
                    cx,
                    own,
                    (file, row),
                    |row, file, arena| unpack_registers(registers, row, file, arena).map(drop),
                    sink,
                )?;
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        })
    }
}
