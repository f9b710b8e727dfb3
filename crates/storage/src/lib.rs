//! The crate of storage: pages, the buffer pool, the space map, B+-trees, the write-ahead log,
//! checkpoints and recovery.
//!
//! It knows nothing of SQL or sessions. `docs/formats.md` describes the files on disk. Everything
//! here runs inside fibers of the runtime's workers. No latch is held across a park. The bytes that
//! an optimistic read returns are hostile until its page's version has been validated.
//!
//! Latch order: pages of one tree from the root down and, within one structure change, from left to
//! right; the space map's page last. Frames, log space and page numbers are reserved before the
//! first latch.

#![cfg(not(loom))] // a loom model includes the one file that it checks
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

pub mod apart;
mod bitmap;
pub mod btree;
pub mod checkpoint;
pub mod control;
pub mod datafile;
mod entry;
pub mod error;
mod format;
pub mod frame;
mod free;
pub mod log;
mod node;
mod pace;
pub mod page;
pub mod pool;
pub mod recovery;
pub mod retry;
pub mod space;
pub mod spool;
pub mod store;
pub mod sweep;
pub mod untrusted;
pub mod writer;

pub use error::Error;
pub use page::{Lsn, PageKind, PageNo};
pub use pool::{Miss, PageMut, PageRef, Pinned, Pool, Restart};
pub use space::Space;
pub use store::{Store, StoreOptions};

/// The crate's stop points: see [`runtime::stop`].
pub const STOP_POINTS: &[&str] = &[
    "btree.build.appended",
    "btree.collapse.logged",
    "btree.merge.latched",
    "btree.merge.logged",
    "btree.root_split.logged",
    "btree.split.latched",
    "btree.split.logged",
    "checkpoint.after_control",
    "checkpoint.before_control",
    "checkpoint.begin",
    "checkpoint.pages_written",
    "log.flush.after_write",
    "log.flush.before_write",
    "log.flush.write",
    "log.segment.make",
    "log.segment.recycle",
    "log.segment.reserve",
    "recovery.redo",
    "recovery.renounced",
    "recovery.undo",
    "storage.evict.before_free",
    "storage.evict.before_write",
    "storage.evict.chosen",
    "storage.load.read",
    "storage.pages.read",
    "storage.pages.sync",
    "storage.pages.write",
    "storage.space.grow",
    "storage.space.grown",
    "storage.writer.after_write",
];
