//! Results of a correlated subquery, kept by the outer values on which they depend.
//!
//! What must hold:
//!
//! 1. Two outer rows share a result only if these values have the same bytes. Values that are equal
//!    may differ: 1.0 and 1.00, and so may what is computed from them.
//! 2. A subquery whose results few outer rows share costs little more than without them. None are
//!    kept for the first rows, and no more once a trial shows that they are of no use.

use super::memory::{pack_registers, unpack_registers};
use super::{Arena, Executor, File};
use query::plan::Reg;
use values::error::SqlError;
use values::key_table::KeyTable;
use values::work;

/// Outer rows for which nothing is kept.
const FIRST: u64 = 8;
/// Looks after which at least one in [`SHARE`] must have found a result.
const TRIAL: u64 = 512;
const SHARE: u64 = 8;

/// Bytes of an entry beside its key and its result.
const ENTRY: usize = 96;

/// The results so far.
pub(super) struct Results<'s> {
    /// The registers of the values.
    parameters: &'s [Reg],
    rows: u64,
    looks: u64,
    found: u64,
    /// Packed results by packed values.
    kept: KeyTable<Vec<u8>, Vec<u8>>,
    bytes: usize,
    key: Vec<u8>,
}

impl<'s> Results<'s> {
    /// No results of a subquery that depends on these registers. Without any, none are kept.
    pub fn new(parameters: &'s [Reg]) -> Results<'s> {
        let (rows, looks, found, bytes) = (0, 0, 0, 0);
        Results { parameters, rows, looks, found, kept: KeyTable::default(), bytes, key: Vec::new() }
    }

    /// Sets a register to the result for an outer row. Returns false if none is kept: then the
    /// caller computes it, and [`Results::keep`] may keep it.
    pub fn recall<'x>(
        &mut self,
        output: Reg,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        self.rows += 1;
        if !self.is_in_use() {
            return Ok(false);
        }
        self.key.clear();
        pack_registers(self.parameters, file, &mut self.key)?;
        self.looks += 1;
        let Some(result) = self.kept.get(&self.key)? else { return Ok(false) };
        self.found += 1;
        unpack_registers(&[output], work::bytes_in(result, &arena.bump)?, file, &arena.bump)?;
        Ok(true)
    }

    /// Keeps the result in a register for the row of the last call of [`Results::recall`].
    pub fn keep(&mut self, cx: &Executor<'s>, output: Reg, file: &File<'_>) -> Result<(), SqlError> {
        if self.looks > TRIAL && self.found * SHARE < self.looks {
            self.parameters = &[];
            self.kept = KeyTable::default();
        }
        if !self.is_in_use() || self.bytes > cx.work_mem() {
            return Ok(());
        }
        let mut result = Vec::new();
        pack_registers(&[output], file, &mut result)?;
        self.bytes += self.key.len() + result.len() + ENTRY;
        self.kept.insert(self.key.clone(), result)
    }

    fn is_in_use(&self) -> bool {
        self.rows > FIRST && !self.parameters.is_empty()
    }
}
