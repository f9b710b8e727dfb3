//! Approximate memory of a definition.
//!
//! What must hold:
//!
//! - The sum over a catalog is bounded. Every session reads the definitions, and no session can be
//!   asked to free them.
//! - An equal object has an equal size, so that the sum returns to its former value when a change
//!   is undone.

use super::extended::ExtendedStatistics;
use super::objects::{Schema, Sequence, Table};
use super::statistics::TableStatistics;

/// An object, its names in the catalog's maps and its entry of statistics.
const OBJECT: usize = 1024;
/// A column with its layout and statistics.
const COLUMN: usize = 256;
/// A constraint or an index, its name in the catalog's maps, and its lists of columns.
const KEY: usize = 512;
/// A column of a key.
const KEY_COLUMN: usize = 16;
/// A value of a common combination without its key and text.
const VALUE: usize = 64;
/// A set of columns with its number of combinations, or a dependency.
const SET: usize = 16;

impl Table {
    /// Approximate bytes of the definition; see the module.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let columns = self
            .columns
            .iter()
            .map(|column| COLUMN + column.name.len() + column.default.as_ref().map_or(0, String::len));
        let keys = self.primary_key.iter().map(|key| (&key.name, key.columns.len() + key.included.len()));
        let indexes =
            self.indexes.iter().map(|index| (&index.name, index.columns.len() + index.included.len()));
        let checks = self.checks.iter().map(|check| (&check.name, check.text.len() / KEY_COLUMN));
        let foreign = self.foreign_keys.iter().map(|key| (&key.name, 2 * key.columns.len()));
        let extended = self.extended.iter().map(|object| (&object.name, object.columns.len()));
        let keys = keys.chain(indexes).chain(checks).chain(foreign).chain(extended);
        let keys = keys.map(|(name, columns)| KEY + 2 * name.len() + columns * KEY_COLUMN);
        // The layout of the rows holds a copy.
        let missing = self.missing.values().map(|bytes| 2 * bytes.len());
        OBJECT + 2 * self.name.len() + columns.sum::<usize>() + keys.sum::<usize>() + missing.sum::<usize>()
    }
}

impl TableStatistics {
    /// Approximate bytes of the extended statistics. Those of columns count with the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.extended.iter().map(ExtendedStatistics::bytes).sum()
    }
}

impl ExtendedStatistics {
    fn bytes(&self) -> usize {
        let values = self.common.iter().flat_map(|common| &common.values);
        let value = |value: &Option<crate::SampledValue>| {
            VALUE + value.as_ref().map_or(0, |value| value.key.len() + value.text.len())
        };
        let sets = SET * (self.distinct.len() + self.dependencies.len());
        KEY + sets + values.map(value).sum::<usize>()
    }
}

impl Sequence {
    /// Approximate bytes of the definition; see the module.
    #[must_use]
    pub fn bytes(&self) -> usize {
        OBJECT + 2 * self.name.len()
    }
}

impl Schema {
    /// Approximate bytes of the definition; see the module.
    #[must_use]
    pub fn bytes(&self) -> usize {
        OBJECT + 2 * self.name.len()
    }
}
