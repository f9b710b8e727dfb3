//! Copies of rows that outlive their scope, in an arena or packed, and the bytes of keys.

use bumpalo::Bump;

use super::{Arena, Executor, File, Flow, Sink};
use crate::spill::{pack, unpack};
use query::plan::Reg;
use values::error::SqlError;
use values::key::{self, KeyOrder};
use values::types::Datum;

/// A copy of the given registers.
pub(super) fn store<'b>(
    registers: &[Reg],
    file: &File<'_>,
    bump: &'b Bump,
) -> Result<&'b [Datum<'b>], SqlError> {
    let row = bump.alloc_slice_fill_copy(registers.len(), Datum::Null);
    for (value, register) in row.iter_mut().zip(registers) {
        *value = file[*register as usize].copy_in(bump)?;
    }
    Ok(row)
}

/// Puts a stored row back into the registers. The row outlives the file.
pub(super) fn load<'x>(registers: &[Reg], row: &[Datum<'x>], file: &mut File<'x>) {
    for (register, value) in registers.iter().zip(row) {
        file[*register as usize] = *value;
    }
}

/// Puts a copy of a stored row back.
pub(super) fn copy_all<'x>(
    registers: &[Reg],
    row: &[Datum<'_>],
    file: &mut File<'x>,
    bump: &'x Bump,
) -> Result<(), SqlError> {
    for (register, value) in registers.iter().zip(row) {
        file[*register as usize] = value.copy_in(bump)?;
    }
    Ok(())
}

/// Bytes used of an arena.
pub(super) fn used(bump: &Bump) -> usize {
    bump.allocated_bytes() - bump.chunk_capacity()
}

/// Packs the given registers.
pub(super) fn pack_registers(registers: &[Reg], file: &File<'_>, to: &mut Vec<u8>) -> Result<(), SqlError> {
    pack(registers.iter().map(|register| file[*register as usize]), to)
}

/// Puts packed registers back; gives what follows them.
pub(super) fn unpack_registers<'x>(
    registers: &[Reg],
    mut row: &'x [u8],
    file: &mut File<'x>,
    arena: &'x Bump,
) -> Result<&'x [u8], SqlError> {
    for register in registers {
        file[*register as usize] = unpack(&mut row, arena)?;
    }
    Ok(row)
}

/// Gives a packed row on in a scope of its own, whose registers `fill` sets.
pub(super) fn give<'s>(
    cx: &mut Executor<'s>,
    own: &mut Arena<'s>,
    (file, row): (&File<'_>, &[u8]),
    fill: impl for<'x> FnOnce(&'x [u8], &mut File<'x>, &'x Bump) -> Result<(), SqlError>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    cx.check()?;
    let flow = {
        let own = &*own;
        let file = own.file(file);
        fill(row, file, &own.bump)?;
        sink(cx, file, own)?
    };
    own.bump.reset();
    Ok(flow)
}

/// Sets registers to NULL.
pub(super) fn null_all(registers: &[Reg], file: &mut File<'_>) {
    for register in registers {
        file[*register as usize] = Datum::Null;
    }
}

/// The order for keys that are only compared for equality.
const PLAIN: KeyOrder = KeyOrder { descending: false, nulls_first: false };

/// Appends the value's bytes: equal bytes mean values that are not distinct.
pub(super) fn encode_key(value: Datum<'_>, key: &mut Vec<u8>) -> Result<(), SqlError> {
    key::encode(value, PLAIN, key)
}
