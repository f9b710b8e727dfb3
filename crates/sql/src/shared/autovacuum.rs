//! Autovacuum: vacuum of trees with many deleted entries.
//!
//! 1. Every core counts the entries that it deletes, by tree. A round collects the counts, one
//!    pause after the last round. The counts are in memory only, so entries deleted before a
//!    restart wait for further deletions.
//! 2. A round vacuums a tree when more of its entries have been deleted than PostgreSQL's
//!    threshold: 50 plus a fifth of the tree's entries. The first look estimates the number of
//!    entries. After a vacuum, the vacuum's count replaces the estimate.
//! 3. A vacuum leaves deleted entries that a snapshot may still need. They count again as soon as
//!    no snapshot needs them.
//! 4. A vacuum that had to leave its tree goes on from that place in a later round. Otherwise the
//!    vacuum of a huge tree, which others often interrupt, might never end.
//!
//! What must hold:
//! - Autovacuum touches a tree only under its table's lock, in VACUUM's mode, and only if the tree
//!   still belongs to the table. It does not wait for that lock, and gives it up every 4,096
//!   entries. A session that waits for the lock gets it then, and the tree is left for the next
//!   round.
//! - A check and DROP DATABASE hold rounds off, because they use trees without locks
//!   ([`Autovacuum::hold_off`]). They wait for the end of a running round, at most 4,096 entries
//!   away, and no round begins until they are done. Closing the folder holds rounds off for good.
//! - A failure reaches no session. Autovacuum logs it once for each tree, and tries the tree again
//!   after 60 s.

use std::sync::Arc;
use std::time::Duration;

use runtime::fiber;
use runtime::hash::{HashMap, HashSet};
use runtime::stop;
use runtime::wait_event::{self, WaitEvent};
use sync::{SpinLock, WaitQueue};
use txn::trees::Tree;
use txn::{Isolation, TableLock, TxnSession, Vacuum, Wait};

use super::autoanalyze::{self, Analyze, Changes};
use super::definitions::Definitions;
use super::{Shared, system};
use execution::{from_storage, from_txn, tree};
use values::error::SqlError;

/// So many deleted entries are worth no vacuum in any tree: `autovacuum_vacuum_threshold`.
const THRESHOLD: u64 = 50;
/// Beyond that, one entry in so many may be deleted: `autovacuum_vacuum_scale_factor`.
const SCALE: u64 = 5;
/// Entries looked at under one lock.
const ENTRIES_UNDER_LOCK: u64 = 4096;
/// The longest time between two checks whether the database is closing.
const TICK: Duration = Duration::from_millis(100);
/// The pause before another try of a tree whose vacuum failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    working: bool,
    /// The number of holders that let no round begin.
    held_off: u32,
    closed: bool,
}

/// Whether a round may begin, and whether one is under way.
pub(crate) struct Autovacuum {
    state: SpinLock<State>,
    /// Waiters for the end of a round.
    ended: WaitQueue,
}

/// Holds rounds off while it exists.
pub(crate) struct HeldOff<'a>(&'a Autovacuum);

impl Drop for HeldOff<'_> {
    fn drop(&mut self) {
        self.0.state.lock().held_off -= 1;
    }
}

/// A round that is under way.
struct Round<'a>(&'a Autovacuum);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.0.state.lock().working = false;
        self.0.ended.wake_all();
    }
}

impl Autovacuum {
    pub(crate) fn new() -> Autovacuum {
        Autovacuum {
            state: SpinLock::new(&"autovacuum", State::default()),
            ended: WaitQueue::new(&"autovacuum end"),
        }
    }

    /// Waits until no round is under way. No round begins while the returned value exists.
    pub(crate) fn hold_off(&self) -> HeldOff<'_> {
        self.state.lock().held_off += 1;
        self.wait_for_end();
        HeldOff(self)
    }

    /// Waits until no round is under way. No round begins after that.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wait_for_end();
    }

    fn wait_for_end(&self) {
        let is_over = || !self.state.lock().working;
        wait_event::during(WaitEvent::Autovacuum, || self.ended.wait_until(is_over));
    }

    /// Whether the database is closing.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Whether a caller waits for the end of the round.
    pub(super) fn must_end(&self) -> bool {
        let state = self.state.lock();
        state.closed || state.held_off > 0
    }

    fn begin(&self) -> Option<Round<'_>> {
        let mut state = self.state.lock();
        let may = !state.closed && state.held_off == 0;
        state.working = may;
        may.then(|| Round(self))
    }
}

/// The counts of a tree.
#[derive(Default, Debug, PartialEq, Eq)]
struct Tally {
    /// Deletions counted since its last vacuum.
    deleted: u64,
    /// Deleted entries that its last vacuum had to leave, and the horizon at which it may remove
    /// them.
    left: u64,
    left_until: u64,
    /// The number of its entries, once a round has counted or estimated them.
    entries: Option<u64>,
    /// No round tries it before this time.
    retry_at: u64,
}

impl Tally {
    /// Counts the entries that a vacuum had to leave, once the horizon has passed them.
    fn advance(&mut self, horizon: u64) {
        if self.left > 0 && self.left_until <= horizon {
            self.deleted += std::mem::take(&mut self.left);
        }
    }

    /// Whether enough entries are deleted for a vacuum, by the counts so far.
    fn is_due(&self) -> bool {
        self.deleted > THRESHOLD + self.entries.unwrap_or(0) / SCALE
    }

    /// Notes the end of a vacuum. Deletions since its beginning stay counted, because the vacuum
    /// may have passed those entries before.
    fn vacuumed(&mut self, begun: &Begun) {
        let (left, left_until) = begun.vacuum.left();
        let deleted = self.deleted.saturating_sub(begun.deleted);
        *self = Tally { deleted, left, left_until, entries: Some(begun.vacuum.kept()), ..Tally::default() };
    }
}

/// A vacuum that is under way.
struct Begun {
    vacuum: Vacuum,
    /// Deletions counted when it began.
    deleted: u64,
}

/// The state that rounds pass on.
#[derive(Default)]
struct Ledger {
    tallies: HashMap<u32, Tally>,
    /// Unfinished vacuums that had to leave their trees.
    begun: HashMap<u32, Begun>,
    /// Trees whose failure was logged.
    told: HashSet<u32>,
}

/// A tree to be vacuumed, and its table. The system tree has none, and is never dropped.
struct Due {
    tree: Tree,
    owner: Option<(Arc<Definitions>, u32)>,
}

/// The outcome of vacuuming a tree.
enum Outcome {
    Vacuumed(Begun),
    /// The tree has so many entries that a vacuum is not worth it yet.
    Early(u64),
    /// The vacuum stopped: the table was locked, the tree no longer belongs to it, or a caller
    /// waits for the end of the round. Holds the unfinished vacuum.
    Left(Option<Begun>),
}

/// Starts the fiber that runs the rounds, on the last core. It ends with the database.
/// `analyze`: how tables are analysed, and the pause between two looks at those that have changed.
pub(crate) fn start(shared: &Arc<Shared>, pause: Duration, analyze: Option<(Duration, Analyze)>) {
    let weak = Arc::downgrade(shared);
    let core = shared.runtime.core_count() - 1;
    shared.runtime.spawn(core, move || {
        let (mut ledger, mut changes) = (Ledger::default(), Changes::default());
        let after = |pause: Duration| runtime::time::now() + pause.as_nanos() as u64;
        let analyze_pause = analyze.map_or(Duration::MAX, |(pause, _)| pause);
        let (mut next, mut next_analyze) = (after(pause), analyze.map(|(pause, _)| after(pause)));
        loop {
            fiber::sleep(pause.min(analyze_pause).min(TICK));
            let Some(shared) = weak.upgrade().filter(|shared| !shared.autovacuum.is_closed()) else { return };
            if runtime::time::now() >= next {
                if let Some(_round) = shared.autovacuum.begin() {
                    shared.round(&mut ledger);
                    if let Some((_, analyze)) = analyze {
                        shared.analyze_round(&mut changes, autoanalyze::Round::Grown, analyze);
                    }
                }
                next = after(pause);
            }
            if let (Some((analyze_pause, analyze)), Some(due)) = (analyze, &mut next_analyze)
                && runtime::time::now() >= *due
            {
                if let Some(_round) = shared.autovacuum.begin() {
                    shared.analyze_round(&mut changes, autoanalyze::Round::Changed, analyze);
                }
                *due = after(analyze_pause);
            }
        }
    });
}

impl Shared {
    /// Collects the counts and vacuums what is due.
    fn round(&self, ledger: &mut Ledger) {
        for core in 0..self.runtime.worker_count() {
            for (id, deletions) in self.runtime.call(core, txn::take_deletions) {
                ledger.tallies.entry(id).or_default().deleted += deletions;
            }
        }
        let (horizon, now) = (self.engine.horizon(), runtime::time::now());
        let mut any = false;
        for tally in ledger.tallies.values_mut() {
            tally.advance(horizon);
            any |= tally.is_due() && tally.retry_at <= now;
        }
        if !any {
            return;
        }
        for due in self.due(ledger, now) {
            if self.autovacuum.must_end() {
                return;
            }
            let id = due.tree.id;
            let Some(tally) = ledger.tallies.get_mut(&id) else { continue };
            match self.vacuum_due(&due, tally, ledger.begun.remove(&id)) {
                Ok(Outcome::Vacuumed(begun)) => tally.vacuumed(&begun),
                Ok(Outcome::Early(entries)) => tally.entries = Some(entries),
                Ok(Outcome::Left(begun)) => ledger.begun.extend(begun.map(|begun| (id, begun))),
                Err(error) => {
                    tally.retry_at = runtime::time::now() + RETRY_AFTER.as_nanos() as u64;
                    if ledger.told.insert(id) {
                        log::warn!("autovacuum of tree {id} failed: {error}");
                    }
                }
            }
        }
    }

    /// The trees that are due. Forgets the counts of trees that no table has any more, and of a
    /// tree whose creation is not committed yet.
    fn due(&self, ledger: &mut Ledger, now: u64) -> Vec<Due> {
        let mut found = HashSet::from_iter([system::SYSTEM_TREE]);
        let mut list = Vec::new();
        let mut look = |tree: Tree, owner: Option<(&Arc<Definitions>, u32)>| {
            let due =
                ledger.tallies.get(&tree.id).is_some_and(|tally| tally.is_due() && tally.retry_at <= now);
            if due {
                list.push(Due {
                    tree,
                    owner: owner.map(|(definitions, table)| (Arc::clone(definitions), table)),
                });
            }
        };
        look(system::tree(), None);
        for definitions in self.databases() {
            for table in definitions.catalog().tables() {
                for address in table.trees() {
                    found.insert(address.id);
                    look(tree(address), Some((&definitions, table.oid)));
                }
            }
            fiber::safe_point();
        }
        ledger.tallies.retain(|id, _| found.contains(id));
        ledger.begun.retain(|id, _| found.contains(id));
        ledger.told.retain(|id| found.contains(id));
        list
    }

    /// Vacuums a tree if enough of its entries are deleted. Goes on from where an earlier round
    /// stopped.
    fn vacuum_due(&self, due: &Due, tally: &Tally, begun: Option<Begun>) -> Result<Outcome, SqlError> {
        let txn = self.engine.session().map_err(from_txn)?;
        let deleted = tally.deleted;
        if begun.is_none() && tally.entries.is_none() {
            let entries = self.under_lock(&txn, due, || {
                txn::trees::estimated_entries(self.engine.folder(), due.tree)
                    .map_err(|error| from_storage(&error))
            })?;
            let Some(entries) = entries else { return Ok(Outcome::Left(None)) };
            let tally = Tally { deleted, entries: Some(entries), ..Tally::default() };
            if !tally.is_due() {
                return Ok(Outcome::Early(entries));
            }
        }
        let mut has_moved = begun.is_some();
        let mut begun = begun.unwrap_or_else(|| Begun { vacuum: Vacuum::new(&due.tree), deleted });
        loop {
            let step = || begun.vacuum.step(&self.engine, ENTRIES_UNDER_LOCK).map_err(from_txn);
            match self.under_lock(&txn, due, step)? {
                Some(true) if !self.autovacuum.must_end() => has_moved = true,
                Some(false) => return Ok(Outcome::Vacuumed(begun)),
                Some(true) => return Ok(Outcome::Left(Some(begun))),
                None => {
                    stop::point("sql.vacuum.locked");
                    // A vacuum that has not moved begins again later. Then it also finds the
                    // entries deleted until then.
                    return Ok(Outcome::Left(has_moved.then_some(begun)));
                }
            }
            stop::point("sql.vacuum.stepped");
        }
    }

    /// Calls `body` while the tree's table is locked. Returns `None` if the lock is not free or the
    /// tree is gone.
    fn under_lock<R>(
        &self,
        txn: &TxnSession,
        due: &Due,
        body: impl FnOnce() -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        let Some((definitions, table)) = &due.owner else { return body().map(Some) };
        txn.begin(Isolation::ReadCommitted, true);
        let locked = txn.lock_table(*table, TableLock::ShareUpdateExclusive, Wait::Skip).map_err(from_txn);
        let done = locked.and_then(|locked| {
            // The lock's last holder replaced the catalog before it gave up the lock, so this
            // catalog is current.
            let catalog = definitions.catalog();
            let has_tree = |table: &Arc<_>| owns(table, due.tree.id);
            match locked && catalog.table(*table).is_some_and(has_tree) {
                true => body().map(Some),
                false => Ok(None),
            }
        });
        txn.rollback().map_err(from_txn)?;
        done
    }
}

fn owns(table: &catalog::Table, tree: u32) -> bool {
    table.trees().any(|address| address.id == tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_due_beyond_postgresql_s_threshold_of_deletions_that_nobody_needs() {
        let mut tally = Tally { deleted: THRESHOLD, ..Tally::default() };
        assert!(!tally.is_due());
        tally.deleted += 1;
        assert!(tally.is_due());
        tally.entries = Some(100);
        assert!(!tally.is_due());
        tally = Tally { deleted: 70, left: 1, left_until: 9, ..tally };
        tally.advance(8);
        assert!(!tally.is_due());
        tally.advance(9);
        assert!(tally.is_due() && tally.left == 0);
        tally.advance(10);
        assert_eq!(tally.deleted, 71);
    }
}
