//! The view of a reader: a snapshot is one log position and the reader's own place in its
//! transaction.

use storage::Lsn;

/// A snapshot: the reader sees commits up to `csn`, and its own changes of earlier commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The reader sees commits whose record ends at or before this position.
    pub csn: Lsn,
    /// The durable position when the snapshot was taken. The reader depends on any later commit
    /// that it sees.
    pub durable: Lsn,
    /// The reader sees writers below this number without a look at their outcome.
    pub horizon: u64,
    /// The transaction's own number; 0 without one.
    pub txid: u64,
    /// The reader sees its own changes of commands before this one.
    pub command: u32,
}

impl Snapshot {
    /// A snapshot that sees nothing; the value before one is taken.
    pub(crate) const NONE: Snapshot =
        Snapshot { csn: Lsn::ZERO, durable: Lsn::ZERO, horizon: 0, txid: 0, command: 0 };
}
