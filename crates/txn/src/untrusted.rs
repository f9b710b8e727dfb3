//! The readers of undo information, as functions of its bytes: the fuzzer's interface
//! (`crates/readers`). What must hold: no bytes make these functions panic.

use crate::{log_undo, undo};

/// Reads an undo record of memory; returns the bytes of its key, version and new key.
pub fn undo_record(bytes: &[u8]) -> Option<usize> {
    let record = undo::Record::parse(bytes)?;
    Some(record.key.len() + record.version.map_or(0, <[u8]>::len) + record.moved_to.len())
}

/// Reads the undo information of a log record, and builds the version before from the `present`
/// one. `None` where the bytes are no undo information, or the two do not fit.
pub fn version_before(bytes: &[u8], present: &[u8]) -> Option<Vec<u8>> {
    let (_, _, before) = log_undo::decode(bytes)?;
    let mut version = Vec::new();
    before.build(present, &mut version).then_some(version)
}
