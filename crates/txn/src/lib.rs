//! Transactions: who sees what, who waits for whom, and how changes are taken back.
//!
//! This crate knows nothing of SQL text. Rows are opaque bytes behind a 16-byte version header
//! ([`version`]). Each table and each index is a [`storage::btree::Tree`] of such values.
//! Invariants:
//!
//! 1. The newest version of a row is in place. Undo pointers lead to older ones, and a reader
//!    follows them only from versions that its snapshot does not see ([`visibility`]).
//! 2. A transaction's outcome is one word. It is stored once, before the commit number can be in
//!    anybody's snapshot ([`status`]).
//! 3. Nothing that a registered snapshot may still need is recycled ([`horizon`]).
//! 4. Readers take no lock and no latch, and write nothing that another core reads.
//! 5. Locks live in tables of their own, never in the row or its undo ([`locks`]).
//! 6. A session that gets a lock sees, from its next snapshot on, what the lock's last holder
//!    committed ([`locks`]).
//! 7. No session waits for a lock while it holds a latch, and every wait can be interrupted.
//!
//! The layers above reach storage through this crate alone. [`trees`], [`spool`] and [`folder`]
//! name, item by item, what they get of it. An open folder crosses as [`Folder`], a handle without
//! the store's own methods, and [`StorageError`] as part of [`Error`]. [`Lsn`] crosses as the
//! number of a commit.
//!
//! Latch order: a leaf's page latch, then one partition of the lock table, then one session's slot.
//! Never backwards.
#![cfg(not(loom))] // a loom model includes the one file that it checks
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod announce;
pub mod apart;
mod blocking;
mod deadlock;
mod engine;
mod error;
pub mod folder;
mod horizon;
#[cfg(variants)]
mod listed;
mod locks;
mod log_undo;
mod open;
mod pieces;
mod purge;
mod restore;
mod retained;
mod session;
mod slots;
mod snapshot;
pub mod spool;
mod status;
pub mod trees;
mod txid;
mod undo;
pub mod untrusted;
pub mod version;
mod visibility;
mod weak;

pub use engine::{Engine, LockInfo, LockedObject};
pub use error::Error;
pub use folder::Folder;
pub use horizon::KeptLog;
pub use locks::AdvisoryKey;
pub use purge::{Vacuum, take_deletions};
pub use session::scan::{Direction, Range, Scan};
pub use session::{
    AdvisoryLock, InsertOutcome, Isolation, Load, Loaded, LockOutcome, Outcome, RowLock, SavepointId,
    TableGrant, TableLock, TxnSession, Wait, WaitLimits,
};
pub use snapshot::Snapshot;
pub use storage::{Error as StorageError, Lsn};
pub use version::Stamp;

/// The stop points of storage and of this crate: see [`runtime::stop`].
pub const STOP_POINTS: [&[&str]; 2] = [storage::STOP_POINTS, OWN_STOP_POINTS];

const OWN_STOP_POINTS: &[&str] = &[
    "txn.commit.appended",
    "txn.commit.before_append",
    "txn.commit.before_publish",
    "txn.commit.room",
    "txn.rollback.step",
];
