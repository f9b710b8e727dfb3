//! Indexes whose entries have all columns that a statement reads of a table.
//!
//! A scan of such an index reads no row. Entries have versions of their own, so an entry is visible
//! exactly if its row is.
//!
//! What must hold: the entry shows the column as the row has it, in each bit
//! ([`values::key::decode()`]).

use super::search::Search;
use crate::plan::Reg;
use values::key::{has_length, is_decodable};

impl Search<'_> {
    /// The registers of the columns of an index's entries: of the index's own, then of the row's
    /// key. `None` unless these are all columns that the statement reads.
    pub(super) fn covering(&self, index: usize) -> Option<Box<[Option<Reg>]>> {
        if !self.reads_columns || !self.methods.index_only_scan {
            return None;
        }
        let keys = self.table.indexes[index].columns.iter().copied().chain(self.table.row_keys());
        let mut registers = Vec::new();
        for key in keys {
            let column = key.column as usize;
            let register = self.columns.get(column).copied().flatten();
            registers.push(register.filter(|_| is_decodable(self.table.columns[column].type_)));
        }
        while registers.pop_if(|register| register.is_none()).is_some() {}
        let is_there = |register: &Option<Reg>| register.is_none() || registers.contains(register);
        let keys = self.table.indexes[index].columns.iter().copied().chain(self.table.row_keys());
        let mut passed = keys.take(registers.len());
        let all = self.columns.iter().all(is_there)
            && passed.all(|key| has_length(self.table.columns[key.column as usize].type_));
        all.then(|| registers.into())
    }
}
