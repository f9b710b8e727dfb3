//! The state of a session's transaction block: its stage, its savepoints, its uncommitted
//! definitions.
//!
//! [`super::transaction`] moves a block from stage to stage. This module says what the fields mean.
//!
//! What must hold:
//!
//! 1. In [`Stage::Idle`] the engine's session has no transaction. In the other stages it has one,
//!    unless the block is `empty`. Then an error has rolled it back, and its end is still to come.
//! 2. A savepoint's `definitions`, `settings`, `created` and `portals` are marks in lists that only
//!    grow between savepoints. ROLLBACK TO cuts back to them.
//! 3. `created` alone is never cut. The end of the transaction hands all trees that it made to
//!    garbage collection, also those whose object a savepoint took back.
//! 4. [`Block::fresh`] returns no tree from before the last savepoint. A bulk load into a fresh
//!    tree leaves no undo behind, and a rollback to the savepoint keeps older trees.
//! 5. Numbers of portals grow as long as the session lives. A portal of this transaction has at
//!    least `first_portal`, and a portal older than a savepoint has less than its `portals`.
//! 6. `alone` belongs to one command: the end of that command takes it
//!    ([`super::Session::end_alone`]).

use std::sync::Arc;

use runtime::timer::TimerId;
use txn::SavepointId;

use super::characteristics::Characteristics;
use catalog::{Catalog, Overlay, TreeAddress};

/// Where a session's transaction stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stage {
    /// None is open.
    #[default]
    Idle,
    /// Open until the end of the query string, or Sync.
    Implicit,
    /// Open until COMMIT or ROLLBACK.
    Explicit,
    /// Failed; open until ROLLBACK (or COMMIT, which rolls back) or ROLLBACK TO.
    Failed,
}

/// A named savepoint and the state that ROLLBACK TO restores.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) id: SavepointId,
    pub(super) definitions: usize,
    pub(super) settings: usize,
    pub(super) created: usize,
    /// The transaction's characteristics when it was set.
    pub(super) characteristics: Characteristics,
    /// Portals made before it have lower numbers.
    pub(super) portals: u64,
}

/// A session's transaction block.
#[derive(Default)]
pub(super) struct Block {
    pub(super) stage: Stage,
    /// The block has failed and all its changes are rolled back, so `txn` has no open transaction.
    pub(super) empty: bool,
    /// The state that an error outside of savepoints goes back to.
    pub(super) opened_with: Option<Characteristics>,
    /// A query has run in it: its characteristics are settled.
    pub(super) queried: bool,
    /// It is the implicit block of a query string of several statements.
    pub(super) several: bool,
    /// Execute has run a statement in it.
    pub(super) executed: bool,
    /// The present command stands alone in its transaction, which ends with it.
    pub(super) alone: bool,
    /// The number of the next portal, and of the first one made in this transaction.
    pub(super) next_portal: u64,
    pub(super) first_portal: u64,
    pub(super) savepoints: Vec<Savepoint>,
    /// The portals that existed when the block failed. A client may still name them until the block
    /// ends.
    pub(super) lost: Vec<String>,
    /// Uncommitted definitions, and the catalog they are laid over.
    pub(super) overlay: Option<(Arc<Catalog>, Overlay)>,
    /// In repeatable read: the definitions at the time of the snapshot.
    pub(super) seen: Option<Arc<Catalog>>,
    /// Trees made and trees dropped.
    pub(super) created: Vec<TreeAddress>,
    pub(super) dropped: bool,
    /// Ends the session when the transaction has been open for `transaction_timeout`.
    pub(super) limit: Option<TimerId>,
}

impl Block {
    /// `I`, `T` or `E`.
    pub fn status(&self) -> u8 {
        match self.stage {
            Stage::Idle | Stage::Implicit => b'I',
            Stage::Explicit => b'T',
            Stage::Failed => b'E',
        }
    }

    /// Whether no transaction is open, not even an implicit one: the last statement has ended it.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Whether BEGIN was given.
    pub fn is_explicit(&self) -> bool {
        matches!(self.stage, Stage::Explicit | Stage::Failed)
    }

    /// Whether the transaction goes on after the present statement. It does in a block, among the
    /// statements of one query string, and behind another Execute of the same pipeline.
    pub fn outlasts_statement(&self) -> bool {
        self.is_explicit() || self.several || (self.stage == Stage::Implicit && self.executed)
    }

    /// Notes that Execute has run a statement. Later statements share its transaction until Sync.
    #[inline]
    pub fn note_executed(&mut self) {
        self.executed = true;
    }

    /// Notes whether the next statements come from a query string of several.
    pub fn note_several(&mut self, several: bool) {
        self.several = several;
    }

    /// Whether a query has run in the transaction.
    pub fn is_queried(&self) -> bool {
        self.queried
    }

    /// Whether a savepoint is set.
    pub fn has_savepoints(&self) -> bool {
        !self.savepoints.is_empty()
    }

    /// The number of a new portal.
    pub fn number_portal(&mut self) -> u64 {
        self.next_portal += 1;
        self.next_portal - 1
    }

    /// The trees made since the last savepoint. A rollback that undoes changes in them drops the
    /// trees too.
    pub fn fresh(&self) -> &[TreeAddress] {
        &self.created[self.savepoints.last().map_or(0, |savepoint| savepoint.created)..]
    }

    /// The committed definitions that the transaction's own ones are laid over.
    pub fn base(&self) -> Option<&Arc<Catalog>> {
        self.overlay.as_ref().map(|(base, _)| base)
    }

    /// Whether there are uncommitted definitions.
    pub fn has_definitions(&self) -> bool {
        self.overlay.is_some()
    }
}
