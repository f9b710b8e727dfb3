//! Autoanalyze: ANALYZE of tables of which many rows have changed.
//!
//! 1. Each statement counts the rows that it changed, by table ([`OwnChanges`]). Its session tells
//!    the core after the transaction, once there are some. Changes that are rolled back stay
//!    counted.
//! 2. Once a minute a round analyses the tables of which many rows have changed. PostgreSQL's
//!    threshold holds: more than 50 plus a tenth of the rows at the last ANALYZE.
//! 3. Once a second a round analyses the tables that have grown to twice the rows of their last
//!    ANALYZE, and to 1,000 at least. So the plans behind a load have statistics. A table that is
//!    small and much changed waits for the minute, because each ANALYZE ends its plans. The first
//!    round after a start takes the tables without statistics, too, of so many rows.
//!
//! What must hold:
//! - A round is one of autovacuum's ([`super::autovacuum`]). So a check and the end of the server
//!   hold it off, and wait for the end of one table's ANALYZE at most.
//! - It waits for no lock. A locked table is left for the next round.
//! - A failure reaches no session. A failed table waits for further changes.

use std::cell::RefCell;
use std::sync::Arc;

use runtime::fiber;
use runtime::hash::QuickMap;
use smallvec::SmallVec;
use sync::core_local;

use super::Shared;
use super::definitions::Definitions;
use execution::tree;
use values::error::{SqlError, SqlState};
use values::identifier::quoted;

/// So many changed rows are worth no ANALYZE of any table: `autovacuum_analyze_threshold`.
const THRESHOLD: u64 = 50;
/// Beyond that, one row in so many may have changed: `autovacuum_analyze_scale_factor`.
const SCALE: f64 = 10.0;
/// So many rows make a load.
const LOADED: u64 = 1000;

/// A table: its database's OID and its own.
type Key = (u32, u32);

core_local! {
    /// Changed rows on this core that no round has taken yet.
    static CHANGED: RefCell<QuickMap<Key, u64>> = RefCell::default();
}

/// A session tells its core of so many changed rows at once.
const TOLD: u64 = 32;

/// Rows that a session's statements have changed, by table, and of which its core does not know
/// yet.
#[derive(Default)]
pub(crate) struct OwnChanges {
    tables: SmallVec<[(u32, u64); 4]>,
    /// The rows of all tables.
    rows: u64,
}

impl OwnChanges {
    /// Counts rows of a table that a statement has changed.
    #[inline]
    pub fn note(&mut self, table: u32, rows: u64) {
        self.rows += rows;
        match self.tables.iter_mut().find(|(other, _)| *other == table) {
            Some((_, changed)) => *changed += rows,
            None => self.tables.push((table, rows)),
        }
    }

    /// Tells the core of all if they are many. Called after the end of a transaction: before, an
    /// ANALYZE would not see them.
    #[inline]
    pub fn settle(&mut self, database: u32) {
        if self.rows >= TOLD {
            self.tell(database);
        }
    }

    /// Tells the core of all.
    #[cold]
    pub fn tell(&mut self, database: u32) {
        self.rows = 0;
        CHANGED.with_borrow_mut(|changed| {
            for (table, rows) in self.tables.drain(..) {
                *changed.entry((database, table)).or_default() += rows;
            }
        });
    }
}

/// Runs ANALYZE of a table, by its quoted name, in a session of a database.
pub(crate) type Analyze = fn(&Arc<Shared>, &Arc<Definitions>, &str) -> Result<(), SqlError>;

/// The state that rounds pass on.
#[derive(Default)]
pub(crate) struct Changes {
    /// The changed rows of each table since its last ANALYZE.
    rows: QuickMap<Key, u64>,
    /// Whether a round has looked at the tables without statistics at the start.
    has_begun: bool,
}

/// The tables without statistics, as loaded ones: the server may have been killed after their load.
fn unknown(databases: &[Arc<Definitions>]) -> Vec<(Key, u64)> {
    let mut found = Vec::new();
    for definitions in databases {
        let catalog = definitions.catalog();
        let unknown = catalog.tables().filter(|table| catalog.statistics(table.oid).is_none());
        found.extend(unknown.map(|table| ((definitions.oid, table.oid), LOADED)));
    }
    found
}

/// Which tables a round analyses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Those of which many rows have changed.
    Changed,
    /// Those that have grown.
    Grown,
}

impl Round {
    /// Whether a table of which so many rows have changed is due. `live`: counts its rows.
    fn has_due(self, changed: u64, rows: f64, live: impl FnOnce() -> Option<f64>) -> bool {
        match self {
            Round::Changed => changed as f64 > THRESHOLD as f64 + rows / SCALE,
            Round::Grown => {
                changed >= LOADED && live().is_some_and(|live| live >= (2.0 * rows).max(LOADED as f64))
            }
        }
    }
}

impl Shared {
    /// Takes what the cores have counted, and analyses the tables that are due.
    pub(super) fn analyze_round(self: &Arc<Shared>, changes: &mut Changes, round: Round, analyze: Analyze) {
        for core in 0..self.runtime.worker_count() {
            let taken = self.runtime.call(core, || CHANGED.with_borrow_mut(std::mem::take));
            for (key, rows) in taken {
                *changes.rows.entry(key).or_default() += rows;
            }
        }
        let databases = self.databases();
        let mut looked: Vec<(Key, u64)> = changes.rows.iter().map(|(key, rows)| (*key, *rows)).collect();
        let begins = round == Round::Grown && !changes.has_begun;
        if begins {
            looked.extend(unknown(&databases));
        }
        looked.sort_unstable();
        for (key, changed) in looked {
            fiber::safe_point();
            if self.autovacuum.must_end() {
                return;
            }
            let definitions = databases.iter().find(|definitions| definitions.oid == key.0);
            let known = definitions.and_then(|definitions| {
                let catalog = definitions.catalog();
                let table = catalog.table(key.1).map(Arc::clone)?;
                Some((definitions, catalog, table))
            });
            let Some((definitions, catalog, table)) = known else {
                changes.rows.remove(&key);
                continue;
            };
            let rows = catalog.statistics(table.oid).map_or(0.0, |statistics| statistics.rows);
            let live = || {
                let size = txn::trees::size(self.engine.folder(), tree(table.tree));
                size.ok().map(|size| size.entries)
            };
            if !round.has_due(changed, rows, live) {
                continue;
            }
            let name = format!("{}.{}", quoted(catalog.schema_name(table.schema)), quoted(&table.name));
            match analyze(self, definitions, &name) {
                // A locked table, or no place for the session: the next round tries again.
                Err(error) if is_busy(&error) => {
                    changes.rows.entry(key).or_insert(changed);
                }
                done => {
                    changes.rows.remove(&key);
                    // The table may have been dropped or renamed since.
                    if let Err(error) = done
                        && error.code != SqlState::UNDEFINED_TABLE
                    {
                        log::warn!("autoanalyze of {name} failed: {error}");
                    }
                }
            }
        }
        changes.has_begun |= begins;
    }
}

fn is_busy(error: &SqlError) -> bool {
    [SqlState::LOCK_NOT_AVAILABLE, SqlState::TOO_MANY_CONNECTIONS].contains(&error.code)
}
