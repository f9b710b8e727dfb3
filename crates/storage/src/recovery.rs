//! Recovery from the log.

use crate::Error;
use crate::page::Lsn;

/// Performs logical undo of losers: implemented by the transaction room.
pub trait UndoHandler {
    /// Undoes the change of `txn` whose record ends at `lsn` and carried `undo`, through ordinary tree changes logged with
    /// `TxnLink { txn, prev: last, compensation: Some(prev) }`. Returns the LSN of the last record it logged (`last` when it
    /// logged none).
    fn undo(&mut self, txn: u64, lsn: Lsn, undo: &[u8], prev: Lsn, last: Lsn) -> Result<Lsn, Error>;
}
