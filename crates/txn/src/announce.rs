//! Announcements of the snapshots in use. Announcing a snapshot costs one load and one plain store.
//!
//! Announcing a snapshot, and scanning the announcements, is a store followed by a load on both
//! sides. A naive version needs a sequentially consistent fence in every statement. No fence is
//! needed here, because a third party orders the two. The horizon's keeper starts a short task on
//! each core now and then.
//!
//! - A reader loads `published` and stores it into its session's floor (release). It does not
//!   suspend in between.
//! - The task runs on the core as a fiber of its own. So it never comes between those two steps of
//!   a reader there. It loads `published` and stores it into the core's floor (release).
//! - The keeper loads every core's floor first (acquire), then every session's.
//!
//! Proof. Let the keeper see the core floor F, stored by task T.
//!
//! - A reader of that core announced before T ran. Its store is sequenced before T's release store
//!   on the same thread. So the keeper, having acquired T's store, sees that announcement or a
//!   later value of the same session's floor. A later value means that the reader has ended.
//! - A reader of that core takes its snapshot after T. It loads `published` after T did on the same
//!   thread, and that word only grows. So its snapshot is at least F.
//!
//! Either way, no snapshot in use is below the least of the core floors and the announced floors.
//!
//! A session that moves to another core carries its floor along. The move synchronises, so the
//! argument holds for each core.

use sync::PerCore;
use sync::atomic::{AtomicU64, Ordering};

/// A session's announced snapshot.
pub struct SessionFloor(AtomicU64);

/// The floor of a session without a snapshot.
const NOTHING: u64 = u64::MAX;

impl SessionFloor {
    /// A floor that announces nothing.
    pub fn new() -> SessionFloor {
        SessionFloor(AtomicU64::new(NOTHING))
    }

    /// Announces that snapshots from `csn` on are in use.
    #[inline]
    pub fn announce(&self, csn: u64) {
        // Release: ordered before the core's task (see the module). It costs nothing on x86.
        self.0.store(csn, Ordering::Release);
    }

    /// Withdraws the announcement.
    #[inline]
    pub fn clear(&self) {
        // Release: the reads made with the snapshot come before.
        self.0.store(NOTHING, Ordering::Release);
    }

    /// The oldest announced snapshot; `None` without one.
    pub fn get(&self) -> Option<u64> {
        // Acquire: pairs with `clear`, so the reader's undo is recycled only after its last read.
        Some(self.0.load(Ordering::Acquire)).filter(|&csn| csn != NOTHING)
    }
}

/// Each core's floor. No later snapshot of the core is below it, and no unannounced one.
pub struct CoreFloors {
    cores: PerCore<AtomicU64>,
}

impl CoreFloors {
    /// Floors of `cores` cores, all at the lowest number.
    pub fn new(cores: usize) -> CoreFloors {
        CoreFloors { cores: PerCore::new(cores, |_| AtomicU64::new(0)) }
    }

    /// The task of the module's proof: runs on `core` itself, in a fiber of its own.
    pub fn raise(&self, core: usize, published: &AtomicU64) {
        // Acquire: as a reader loads it. Release: carries the announcements made before on this
        // core.
        self.cores.get(core).store(published.load(Ordering::Acquire), Ordering::Release);
    }

    /// The number below which no snapshot is in use or will be taken.
    pub fn oldest<'a>(&self, sessions: impl Iterator<Item = &'a SessionFloor>) -> u64 {
        // Acquire, and all cores before any session: see the module.
        let cores = self.cores.iter().map(|floor| floor.load(Ordering::Acquire)).min().unwrap_or(0);
        sessions.filter_map(SessionFloor::get).fold(cores, u64::min)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each thread is a core with two sessions, one of which holds a snapshot across the core's
    /// task. Each publishes as it commits. The test's own thread is the keeper.
    #[test]
    fn threads_past_the_cores_keep_what_their_snapshots_need() {
        const ROUNDS: u64 = 50_000;
        let cores = sync::stress::threads();
        let (published, recycled) = (AtomicU64::new(1), AtomicU64::new(0));
        let floors = CoreFloors::new(cores);
        let sessions: Vec<[SessionFloor; 2]> =
            (0..cores).map(|_| [SessionFloor::new(), SessionFloor::new()]).collect();
        let take = |session: &SessionFloor| {
            let csn = published.load(Ordering::Acquire); // Acquire: as the engine
            session.announce(csn);
            csn
        };
        // Acquire: what the keeper recycled comes before it says so.
        let check = |csn: u64| assert!(recycled.load(Ordering::Acquire) <= csn, "recycled under {csn}");
        let core = |core: usize| {
            for round in 0..ROUNDS {
                let long = take(&sessions[core][0]);
                // Others publish, so that the core's floor passes this snapshot.
                if round % 16 == 0 {
                    std::thread::yield_now();
                }
                floors.raise(core, &published);
                let short = take(&sessions[core][1]);
                if round % 16 == 0 {
                    std::thread::yield_now();
                }
                check(short);
                sessions[core][1].clear();
                check(long);
                sessions[core][0].clear();
                published.fetch_add(1, Ordering::AcqRel); // AcqRel: as a commit
            }
            floors.raise(core, &published);
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..cores).map(|number| scope.spawn(move || core(number))).collect();
            while running.iter().any(|one| !one.is_finished()) {
                let oldest = floors.oldest(sessions.iter().flatten());
                recycled.store(oldest, Ordering::Release); // Release: as `check`
                std::thread::yield_now();
            }
        });
        (0..cores).for_each(|core| floors.raise(core, &published));
        assert_eq!(floors.oldest(sessions.iter().flatten()), cores as u64 * ROUNDS + 1);
    }
}
