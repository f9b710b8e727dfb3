//! The store: a data folder with its pool, log and space map, opened and closed as one.

use std::sync::Arc;

use runtime::Runtime;

use crate::log::Wal;
use crate::pool::Pool;
use crate::space::Space;

/// An open data folder.
pub struct Store {
    /// Pages in memory.
    pub pool: Arc<Pool>,
    /// The write-ahead log.
    pub wal: Arc<Wal>,
    /// Which pages are in use.
    pub space: Space,
    /// The machine it runs on.
    pub runtime: Arc<Runtime>,
}
