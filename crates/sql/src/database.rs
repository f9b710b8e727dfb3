//! An open data folder: runtime, storage, transactions and catalogs of all databases in it, and the door to sessions.

use std::path::Path;
use std::sync::Arc;

use crate::error::SqlError;
use crate::session::Session;

/// How to open a data folder.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Worker threads; None = one for each core.
    pub cores: Option<usize>,
    /// Pin workers to their cores.
    pub pin: bool,
    /// Bytes of page frames; None = the store's default.
    pub memory: Option<usize>,
}

/// Why a data folder could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The runtime did not start.
    Runtime(std::io::Error),
    /// The storage could not be opened or recovered.
    Storage(storage::Error),
    /// The system catalog could not be read.
    Catalog(SqlError),
}

/// An open data folder. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    _inner: Arc<()>,
}

impl Database {
    /// Opens the folder, making it when it is empty, and recovers it as needed. Blocks; not to be called on a worker.
    pub fn open(_path: &Path, _options: Options) -> Result<Database, OpenError> {
        todo!()
    }

    /// The runtime everything runs on.
    #[must_use]
    pub fn runtime(&self) -> &Arc<runtime::Runtime> {
        todo!()
    }

    /// A new session. To be called on a worker's fiber: the session belongs to that core.
    pub fn connect(
        &self,
        _database: &str,
        _user: &str,
        _interrupt: &Arc<runtime::interrupt::Interrupt>,
    ) -> Result<Session, SqlError> {
        todo!()
    }

    /// Waits for nobody: checkpoints, closes the files and stops the workers. Sessions must be gone. Not to be called on a worker.
    pub fn shutdown(&self) -> Result<(), OpenError> {
        todo!()
    }
}
