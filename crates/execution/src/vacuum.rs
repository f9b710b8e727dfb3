//! VACUUM.

use txn::Engine;

use super::from_txn;
use super::keys::tree;
use catalog::Table;
use values::error::SqlError;

/// Removes deleted entries that no snapshot can see. Returns their number.
pub fn vacuum(engine: &Engine, table: &Table) -> Result<u64, SqlError> {
    table.trees().map(|address| engine.vacuum(&tree(address)).map_err(from_txn)).sum()
}
