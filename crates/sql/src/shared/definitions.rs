//! A database's committed definitions: the catalog that statements plan against, its generation,
//! and whether every snapshot taken now includes their commits. What must hold: a reader that sees
//! a generation finds at least its catalog.

use std::convert::Infallible;
use std::sync::Arc;

use sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use sync::{CachePadded, ShardedCounter, SpinLock, assert_apart};

use super::visibility::{Publication, Publications};
use catalog::{Catalog, DatabaseEntry};

/// One database's present definitions.
pub(crate) struct Definitions {
    /// Its OID.
    pub oid: u32,
    /// Equal to the catalog's generation; read by every statement, written at DDL.
    pub generation: AtomicU64,
    /// Each new session takes the lock, and each old one after a change of definitions. So it lies
    /// apart from what every statement reads.
    pub(super) catalog: CachePadded<SpinLock<Arc<Catalog>>>,
    publications: Publications,
    /// The database refuses new sessions, because it is being dropped.
    closed: AtomicBool,
    /// Sessions that began since the server started.
    pub begun: ShardedCounter,
    /// Transactions of its sessions that were committed, and those that were rolled back, since the
    /// server started.
    pub committed: ShardedCounter,
    pub rolled_back: ShardedCounter,
}

assert_apart!(Definitions: catalog from generation, publications);

/// Keeps a database closed to new sessions while it exists.
pub(crate) struct Closing<'d>(Option<&'d Definitions>);

impl Closing<'_> {
    /// It stays closed.
    pub fn for_good(mut self) {
        self.0 = None;
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(definitions) = self.0 {
            definitions.closed.store(false, Ordering::Relaxed); // nothing comes with it
        }
    }
}

impl Definitions {
    pub(super) fn new(catalog: Catalog, workers: usize) -> Arc<Definitions> {
        Arc::new(Definitions {
            oid: catalog.database.oid,
            generation: AtomicU64::new(catalog.generation),
            catalog: CachePadded::new(SpinLock::new(&"catalog", Arc::new(catalog))),
            publications: Publications::new(),
            closed: AtomicBool::new(false),
            begun: ShardedCounter::new(workers),
            committed: ShardedCounter::new(workers),
            rolled_back: ShardedCounter::new(workers),
        })
    }

    /// The database's OID and name.
    pub fn entry(&self) -> DatabaseEntry {
        self.catalog.lock().database.clone()
    }

    /// Closes the database to new sessions. Sessions that got in before are in the activity table
    /// by now.
    pub fn close(&self) -> Closing<'_> {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst); // before the look at the activity table, see `is_closed`
        Closing(Some(self))
    }

    /// Whether it is closed to a session that has taken its slot.
    pub fn is_closed(&self) -> bool {
        fence(Ordering::SeqCst); // after the slot was taken: one of the two sees the other
        self.closed.load(Ordering::Relaxed)
    }

    /// Begins a publication. The caller begins it before it publishes definitions, and holds it
    /// until its transaction has ended.
    pub fn begin_publication(&self) -> Publication<'_> {
        // Taken under the catalog's lock, so definitions published later have a higher generation.
        let catalog = self.catalog.lock();
        self.publications.begin(catalog.generation + 1)
    }

    /// Whether a snapshot taken now includes the commits of all definitions up to this generation.
    /// Without that, a statement would find new trees but not see their entries.
    #[inline]
    pub fn is_visible(&self, generation: u64) -> bool {
        self.publications.is_over(generation)
    }

    /// The present catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock())
    }

    /// Whether a plan of this generation is still good. Acquire: a reader that sees the new number
    /// finds the new catalog.
    #[inline]
    pub fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Applies a transaction's changes to the newest catalog.
    pub fn publish(&self, change: impl FnOnce(&Catalog) -> Catalog) {
        let Ok(()) = self.try_publish(|catalog| Ok::<_, Infallible>(change(catalog)));
    }

    /// Applies a transaction's changes to the newest catalog, unless they fail.
    pub fn try_publish<E>(&self, change: impl FnOnce(&Catalog) -> Result<Catalog, E>) -> Result<(), E> {
        let mut catalog = self.catalog.lock();
        let next = change(&catalog)?;
        self.put(&mut catalog, next);
        Ok(())
    }

    /// Puts a catalog in place of the one it was made from. Returns false if another session has
    /// replaced that one.
    pub fn replace(&self, base: &Arc<Catalog>, next: Catalog) -> bool {
        let mut catalog = self.catalog.lock();
        let is_there = Arc::ptr_eq(&catalog, base);
        if is_there {
            self.put(&mut catalog, next);
        }
        is_there
    }

    fn put(&self, place: &mut Arc<Catalog>, next: Catalog) {
        let generation = next.generation;
        *place = Arc::new(next);
        self.generation.store(generation, Ordering::Release); // pairs with is_current
    }
}
