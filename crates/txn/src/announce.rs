//! Which snapshots are in use: what lets a snapshot cost one load and one plain store.
//!
//! Announcing a snapshot and scanning the announcements is a store followed by a load on both sides; done naively it
//! needs a sequentially consistent fence in every statement. Here the fence is not needed, because a third party orders
//! the two: a short task that the horizon's keeper starts on each core, now and then.
//!
//! - A reader loads `published` and stores it into its session's floor (release). It doesn't suspend in between.
//! - The task runs on the core as a fiber of its own, so it never comes between those two steps of a reader of its core.
//!   It loads `published` and stores it into the core's floor (release).
//! - The keeper loads every core's floor first (acquire), then every session's.
//!
//! Let the keeper see the core floor F, stored by task T. A reader of that core that announced before T ran: its store is
//! sequenced before T's release store on the same thread, so the keeper, having acquired it, sees that announcement or a
//! later value of the same session's floor; a later one means that the reader has ended. A reader that takes its snapshot
//! after T: it loads `published` after T did on the same thread, and that word only grows, so its snapshot is at least F.
//! Either way no snapshot in use is below the least of the core floors and the announced floors.
//!
//! A session that moves to another core carries its floor along; the move synchronises, so the argument holds per core.

use sync::PerCore;
use sync::atomic::{AtomicU64, Ordering};

/// A session's announced snapshot.
pub struct SessionFloor(AtomicU64);

/// No snapshot in use.
const NOTHING: u64 = u64::MAX;

impl SessionFloor {
    /// Nothing announced.
    pub fn new() -> SessionFloor {
        SessionFloor(AtomicU64::new(NOTHING))
    }

    /// Announces that snapshots from `csn` on are in use.
    #[inline]
    pub fn announce(&self, csn: u64) {
        // Release: ordered before the core's task, see above; costs nothing on x86.
        self.0.store(csn, Ordering::Release);
    }

    /// Gives the snapshot up.
    #[inline]
    pub fn clear(&self) {
        // Release: the reads made with the snapshot come before.
        self.0.store(NOTHING, Ordering::Release);
    }

    /// The oldest snapshot announced.
    pub fn get(&self) -> Option<u64> {
        // Acquire: pairs with `clear`, so that what the reader used is recycled only after its last read.
        Some(self.0.load(Ordering::Acquire)).filter(|&csn| csn != NOTHING)
    }
}

/// Each core's floor: no snapshot taken on it later, and none unannounced, is below.
pub struct CoreFloors {
    cores: PerCore<AtomicU64>,
}

impl CoreFloors {
    /// Floors of `cores` cores, at the bottom.
    pub fn new(cores: usize) -> CoreFloors {
        CoreFloors { cores: PerCore::new(cores, |_| AtomicU64::new(0)) }
    }

    /// The task: run on `core` itself, in a fiber of its own.
    pub fn raise(&self, core: usize, published: &AtomicU64) {
        // Acquire: as a reader loads it. Release: carries the announcements made before on this core.
        self.cores.get(core).store(published.load(Ordering::Acquire), Ordering::Release);
    }

    /// No snapshot in use or taken from now on is below this.
    pub fn oldest<'a>(&self, sessions: impl Iterator<Item = &'a SessionFloor>) -> u64 {
        // Acquire, and all cores before any session: see above.
        let cores = self.cores.iter().map(|floor| floor.load(Ordering::Acquire)).min().unwrap_or(0);
        sessions.filter_map(SessionFloor::get).fold(cores, u64::min)
    }
}
