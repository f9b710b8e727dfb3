//! Results of a plan that runs for each outer row, kept by the outer values on which they depend.
//! They are the value of a correlated subquery ([`super::subquery`]), or the rows of a loop's right
//! side ([`super::memo`]).
//!
//! What must hold:
//!
//! 1. Two outer rows share a result only if these values have the same bytes. Values that are equal
//!    may differ: 1.0 and 1.00, and so may what is computed from them.
//! 2. A plan whose results few outer rows share costs little more than without them. No more are
//!    kept once a trial shows that they are of no use: at least one look in 8 must have found one.
//!    The trial ends with a number of looks, or when half of the memory is full.
//! 3. Results take at most `work_mem`. They have two generations, of half of it each. When the
//!    younger one is full, the older one is dropped and the younger one becomes the older. A result
//!    that is found in the older one moves to the younger. So results that nobody asks for go, and
//!    outer rows that come in some order still share them.

use super::memory::pack_registers;
use super::{Executor, File};
use query::explain::Memory;
use query::plan::Reg;
use values::error::SqlError;
use values::key_table::KeyTable;
use values::work;

/// After a trial, at least one look in so many must have found a result.
const SHARE: u64 = 8;

/// Bytes of an entry beside its key and its result.
const ENTRY: usize = 96;

/// The results so far.
pub(super) struct Results<'s> {
    /// The registers of the values.
    parameters: &'s [Reg],
    /// Outer rows for which nothing is kept, and looks of a trial.
    first: u64,
    trial: u64,
    /// Whether no results are kept, because they are of no use.
    useless: bool,
    rows: u64,
    looks: u64,
    /// Packed results by packed values: the younger generation and the older one.
    young: KeyTable<Vec<u8>, Vec<u8>>,
    old: KeyTable<Vec<u8>, Vec<u8>>,
    /// Bytes of the younger generation, and the most it may have.
    bytes: usize,
    most: usize,
    key: Vec<u8>,
    memory: Memory,
}

impl<'s> Results<'s> {
    /// No results of a plan that depends on these registers. Without any, none are kept, and none
    /// for the `first` outer rows. `trial`: the looks of a trial, at most.
    pub fn new(cx: &Executor<'s>, parameters: &'s [Reg], (first, trial): (u64, u64)) -> Results<'s> {
        Results {
            parameters,
            first,
            trial,
            useless: parameters.is_empty(),
            rows: 0,
            looks: 0,
            young: KeyTable::default(),
            old: KeyTable::default(),
            bytes: 0,
            most: cx.work_mem() / 2,
            key: Vec::new(),
            memory: Memory::default(),
        }
    }

    /// The result for an outer row. If none is kept, the caller computes it, and [`Results::keep`]
    /// may keep it.
    pub fn recall(&mut self, file: &File<'_>) -> Result<Option<&[u8]>, SqlError> {
        self.rows += 1;
        self.memory.misses += 1;
        if !self.is_in_use() {
            return Ok(None);
        }
        self.key.clear();
        pack_registers(self.parameters, file, &mut self.key)?;
        self.looks += 1;
        if !self.old.is_empty()
            && self.young.get(&self.key)?.is_none()
            && let Some(result) = self.old.get(&self.key)?
        {
            let result = work::owned_bytes(result)?.into();
            self.add(result)?;
        }
        let Some(result) = self.young.get(&self.key)? else { return Ok(None) };
        self.memory.hits += 1;
        self.memory.misses -= 1;
        Ok(Some(result))
    }

    /// Whether a result for the row of the last call of [`Results::recall`] may be kept.
    pub fn is_in_use(&self) -> bool {
        self.rows > self.first && !self.useless
    }

    /// The most bytes that a result may have.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Keeps the result for the row of the last call of [`Results::recall`].
    pub fn keep(&mut self, result: Vec<u8>) -> Result<(), SqlError> {
        let is_tried = self.looks > self.trial || !self.old.is_empty();
        if is_tried && self.memory.hits * SHARE < self.looks {
            self.useless = true;
            (self.young, self.old) = (KeyTable::default(), KeyTable::default());
        }
        if !self.is_in_use() {
            return Ok(());
        }
        if self.key.len() + result.len() + ENTRY > self.most {
            self.memory.overflows += 1;
            return Ok(());
        }
        self.add(result)
    }

    /// The figures so far.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    fn add(&mut self, result: Vec<u8>) -> Result<(), SqlError> {
        let bytes = self.key.len() + result.len() + ENTRY;
        if self.bytes + bytes > self.most {
            self.memory.evictions += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        let whole = if self.old.is_empty() { self.bytes } else { self.most + self.bytes };
        self.memory.bytes = self.memory.bytes.max(whole as u64);
        self.young.insert(self.key.clone(), result)
    }
}
