//! Values out of line: those that do not fit into their row's entry in the table's tree.
//!
//! A value is cut into chunks, which are entries of the table's tree of values. A chunk's key is
//! the value's number (8 bytes) and the chunk's number (4 bytes), big endian. The row holds a
//! pointer in the value's place. What must hold:
//!
//! 1. The transaction that stores the first row version with a pointer writes the value, under a
//!    number never used before. The transaction that stores the first version without the pointer
//!    retires it. Versions in between pass the pointer on. So each pointer of a row has exactly its
//!    chunks, for every snapshot and after every crash.
//! 2. A reader reaches a chunk through a row that it sees or has locked, so it does not test the
//!    chunk's visibility. Even a deleted chunk is the right one, and it stays while any snapshot
//!    can see that row.
//! 3. No register that an expression reads holds a pointer: scans, updates and the keys of indexes
//!    fetch the value first. A value that no expression reads is not fetched.

use runtime::{fiber, interrupt};
use txn::trees::{MAX_ENTRY, MAX_KEY};
use txn::{InsertOutcome, Outcome, TxnSession};

use super::{Arena, Executor, File, from_txn, tree};
use catalog::{Table, TreeAddress};
use expressions::expr::Expr;
use query::plan::{ColumnRead, Reg};
use values::error::{SqlError, SqlState};
use values::memory;
use values::row::{self, POINTER, RowView};
use values::types::{Datum, OutOfLinePointer};

/// Bytes of a chunk: four of them fill a leaf.
pub const CHUNK: usize = 1984;
/// Bytes of a chunk's key.
const KEY: usize = 12;
/// The longest value, as in PostgreSQL.
const LONGEST: usize = 0x3fff_ffff;
/// Chunks between two safe points.
const CHUNKS_BETWEEN: u32 = 16;

/// The key of a chunk.
pub fn chunk_key(number: u64, chunk: u32) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..].copy_from_slice(&chunk.to_be_bytes());
    key
}

/// The chunks of a value of this length.
pub fn chunks(length: u32) -> u32 {
    length.div_ceil(CHUNK as u32)
}

fn lost(pointer: OutOfLinePointer) -> SqlError {
    let message = format!("value {} of {} bytes is not whole", pointer.number, pointer.length);
    SqlError::new(SqlState::DATA_CORRUPTED, message)
}

/// A safe point every 16 chunks: other fibers may run, and an interrupt ends the statement.
fn safe_point(chunk: u32) -> Result<(), SqlError> {
    if chunk.is_multiple_of(CHUNKS_BETWEEN) {
        fiber::safe_point();
        interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
    }
    Ok(())
}

/// Reads a value into `to`, which has room for it.
fn read(
    txn: &TxnSession,
    address: TreeAddress,
    pointer: OutOfLinePointer,
    to: &mut bumpalo::collections::Vec<'_, u8>,
    buffer: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let tree = tree(address);
    let length = pointer.length as usize;
    for number in 0..chunks(pointer.length) {
        safe_point(number)?;
        let found = txn.get_written(&tree, &chunk_key(pointer.number, number), buffer).map_err(from_txn)?;
        if found.is_none() || buffer.len() != CHUNK.min(length - to.len()) {
            return Err(lost(pointer));
        }
        to.extend_from_slice_copy(buffer);
    }
    Ok(())
}

/// A column's value, fetched when it lies out of line.
pub fn fetch<'x>(
    txn: &TxnSession,
    table: &Table,
    (column, value): (usize, Datum<'x>),
    bump: &'x bumpalo::Bump,
) -> Result<Datum<'x>, SqlError> {
    let Datum::OutOfLine(pointer) = value else { return Ok(value) };
    let length = pointer.length as usize;
    if length > LONGEST {
        return Err(lost(pointer));
    }
    memory::ask(length)?;
    let mut bytes = bumpalo::collections::Vec::new_in(bump);
    bytes.try_reserve_exact(length).map_err(|_| {
        SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(format!("Failed on request of size {length}."))
    })?;
    read(txn, table.out_of_line, pointer, &mut bytes, &mut Vec::with_capacity(CHUNK))?;
    table.shape().value(column, bytes.into_bump_slice())
}

/// The row with the columns that `wanted` names fetched: itself when there is nothing to fetch.
pub fn fetched<'x>(
    txn: &TxnSession,
    table: &Table,
    row: &'x [Datum<'x>],
    wanted: impl Fn(usize) -> bool,
    bump: &'x bumpalo::Bump,
) -> Result<&'x [Datum<'x>], SqlError> {
    let far = |column: usize, value: &Datum<'_>| matches!(value, Datum::OutOfLine(_)) && wanted(column);
    if !row.iter().enumerate().any(|(column, value)| far(column, value)) {
        return Ok(row);
    }
    let copy = bump.alloc_slice_copy(row);
    for (column, value) in copy.iter_mut().enumerate() {
        if far(column, value) {
            *value = fetch(txn, table, (column, *value), bump)?;
        }
    }
    Ok(copy)
}

/// Fetches those of the columns read whose registers `wanted` names.
pub(super) fn fetch_registers<'x>(
    cx: &Executor<'_>,
    table: &Table,
    columns: &[ColumnRead],
    wanted: impl Fn(Reg) -> bool,
    file: &mut File<'x>,
    arena: &'x Arena<'_>,
) -> Result<(), SqlError> {
    for read in columns.iter().filter(|read| wanted(read.register)) {
        let value = &mut file[read.register as usize];
        *value = fetch(cx.txn, table, (read.column as usize, *value), &arena.bump)?;
    }
    Ok(())
}

/// Decodes the columns that the scan reads. Values out of line stay pointers.
#[inline]
pub(super) fn decode<'x>(
    table: &'x Table,
    columns: &[ColumnRead],
    row: &'x [u8],
    file: &mut File<'x>,
) -> Result<(), SqlError> {
    let view = RowView::new(row, table.shape());
    for read in columns {
        view.read(read.column as usize, &mut file[read.register as usize])?;
    }
    Ok(())
}

/// Decodes the columns that the scan reads, and fetches those that lie out of line.
pub(super) fn decode_whole<'x>(
    cx: &Executor<'_>,
    table: &'x Table,
    columns: &[ColumnRead],
    row: &'x [u8],
    file: &mut File<'x>,
    arena: &'x Arena<'_>,
) -> Result<(), SqlError> {
    decode(table, columns, row, file)?;
    if row::has_out_of_line(row) {
        fetch_registers(cx, table, columns, |_| true, file, arena)
    } else {
        Ok(())
    }
}

/// Whether an expression reads a register.
pub fn reads(expr: &Expr, register: Reg) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Column { register: own, .. } if *own == register));
    found
}

/// Fetches the columns of a new row, in registers from `first` on, that nodes above read.
#[inline]
pub(super) fn fetch_returned<'x>(
    cx: &Executor<'_>,
    table: &Table,
    (first, returned): (Reg, &[u32]),
    file: &mut File<'x>,
    arena: &'x Arena<'_>,
) -> Result<(), SqlError> {
    for column in returned {
        let value = &mut file[(first + column) as usize];
        *value = fetch(cx.txn, table, (*column as usize, *value), &arena.bump)?;
    }
    Ok(())
}

/// Error 54000 for a key longer than an entry can hold, with PostgreSQL's words.
#[cold]
pub(crate) fn key_too_long(bytes: usize, index: &str) -> SqlError {
    let message = format!("index row size {bytes} exceeds maximum {MAX_KEY} for index \"{index}\"");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Encodes a row for its table's tree. Writes the values that have to go out of line for that.
/// Returns the pointers to them.
#[inline]
pub(super) fn encode(
    cx: &mut Executor<'_>,
    table: &Table,
    row: &[Datum<'_>],
    key: &[u8],
    bytes: &mut Vec<u8>,
) -> Result<Vec<OutOfLinePointer>, SqlError> {
    if key.len() > MAX_KEY {
        let name = table.primary_key.as_ref().map_or("", |key| &key.name);
        return Err(key_too_long(key.len(), name));
    }
    let room = MAX_ENTRY - txn::version::HEADER - key.len();
    if row::encode(row, table.shape(), room, bytes)? {
        return Ok(Vec::new());
    }
    move_out(cx, table, row, room, bytes)
}

/// Moves the longest values out of line until the row fits, those that keys read last.
#[cold]
fn move_out(
    cx: &mut Executor<'_>,
    table: &Table,
    row: &[Datum<'_>],
    room: usize,
    bytes: &mut Vec<u8>,
) -> Result<Vec<OutOfLinePointer>, SqlError> {
    let mut packed = row.to_vec();
    let mut order: Vec<(bool, usize, usize)> = Vec::new();
    for (column, value) in row.iter().enumerate() {
        let length = row::variable_bytes(*value).map_or(0, <[u8]>::len);
        if length > LONGEST {
            let message = format!("value of column \"{}\" is too long", table.columns[column].name);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_detail(format!("It has {length} bytes, the longest allowed has {LONGEST}.")));
        }
        if length > POINTER && table.out_of_line != TreeAddress::NONE {
            order.push((table.is_keyed(column), usize::MAX - length, column));
        }
    }
    order.sort_unstable();
    let mut out = 0;
    loop {
        bytes.clear();
        if row::encode(&packed, table.shape(), room, bytes)? {
            break;
        }
        let Some((_, _, column)) = order.get(out) else {
            bytes.clear();
            row::encode(&packed, table.shape(), usize::MAX, bytes)?;
            let message = format!("row is too big: size {}, maximum size {room}", bytes.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        };
        // 0 is no value's number. It stands here until the columns to move are known.
        packed[*column] = Datum::OutOfLine(OutOfLinePointer { number: 0, length: 0 });
        out += 1;
    }
    let mut written = Vec::with_capacity(out);
    for (_, _, column) in &order[..out] {
        let value = row::variable_bytes(row[*column]).unwrap_or_default();
        let number = cx.numbers.take(cx.folder(), table.out_of_line)?;
        let pointer = OutOfLinePointer { number, length: value.len() as u32 };
        let tree = tree(table.out_of_line);
        for (chunk, part) in (0..).zip(value.chunks(CHUNK)) {
            safe_point(chunk)?;
            let outcome = cx.txn.insert(&tree, &chunk_key(number, chunk), part).map_err(from_txn)?;
            if outcome != InsertOutcome::Done {
                return Err(lost(pointer));
            }
        }
        packed[*column] = Datum::OutOfLine(pointer);
        written.push(pointer);
    }
    bytes.clear();
    row::encode(&packed, table.shape(), room, bytes)?;
    Ok(written)
}

/// Retires a value that no newer version of its row has.
pub(super) fn retire(
    cx: &mut Executor<'_>,
    table: &Table,
    pointer: OutOfLinePointer,
) -> Result<(), SqlError> {
    let tree = tree(table.out_of_line);
    let mut payload = cx.take_bytes();
    for chunk in 0..chunks(pointer.length) {
        safe_point(chunk)?;
        let key = chunk_key(pointer.number, chunk);
        let done = match cx.txn.get_written(&tree, &key, &mut payload).map_err(from_txn)? {
            Some(stamp) => cx.txn.delete(&tree, &key, stamp).map_err(from_txn)? == Outcome::Done,
            None => false,
        };
        if !done {
            return Err(lost(pointer));
        }
    }
    cx.give_bytes(payload);
    Ok(())
}

/// Retires the values of `old` that `new` doesn't have in the same place.
#[cold]
pub(super) fn retire_replaced(
    cx: &mut Executor<'_>,
    table: &Table,
    old: &[Datum<'_>],
    new: &[Datum<'_>],
) -> Result<(), SqlError> {
    for (column, value) in old.iter().enumerate() {
        let Datum::OutOfLine(pointer) = *value else { continue };
        if !matches!(new.get(column), Some(Datum::OutOfLine(kept)) if *kept == pointer) {
            retire(cx, table, pointer)?;
        }
    }
    Ok(())
}
