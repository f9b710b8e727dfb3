//! The start of an engine: recovery's undo and the background work.

use std::sync::Arc;

use storage::store::Inheritance;

use crate::restore::Undo;
use crate::{Engine, Error, Folder, horizon};

impl Engine {
    /// Ends the start of a folder that was made or opened: undoes what a crash left unfinished.
    /// Then serves transactions on it. Must run in a fiber of the folder's runtime.
    pub fn open(folder: Folder) -> Result<Arc<Engine>, Error> {
        let first = highest_txid(folder.0.inheritance()) + 1;
        let engine = Engine::new(folder, first)?;
        // Before recovery's checkpoint, which must store the transaction numbers in use.
        engine.attach();
        engine.store().recover(&mut Undo::new(Arc::clone(engine.store())))?;
        engine.publish(engine.store().wal().durable());
        horizon::start(&engine);
        Ok(engine)
    }
}

/// The highest transaction number that may be in use: the last checkpoint's, or a higher one in the
/// log after it.
fn highest_txid(inheritance: &Inheritance) -> u64 {
    let kept = inheritance.info.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    kept.max(inheritance.highest_txn)
}
