//! The start of an engine: recovery's undo and the background work.

use std::sync::Arc;

use storage::Store;
use storage::store::Inheritance;

use crate::restore::Undo;
use crate::{Engine, Error, horizon};

impl Engine {
    /// Ends the start of a store that was created or opened: undoes what a crash left unfinished.
    /// Then serves transactions on it. Must run in a fiber of the store's runtime.
    pub fn open(store: Arc<Store>) -> Result<Arc<Engine>, Error> {
        let engine = Engine::new(Arc::clone(&store), highest_txid(store.inheritance()) + 1)?;
        // Before recovery's checkpoint, which must store the transaction numbers in use.
        engine.attach();
        engine.store.recover(&mut Undo::new(Arc::clone(&engine.store)))?;
        engine.publish(engine.store.wal().durable());
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
