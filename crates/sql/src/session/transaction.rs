//! Transaction blocks. BEGIN, COMMIT, ROLLBACK, savepoints, errors and the ends of messages move a
//! session between four stages: idle, implicit transaction, block, failed block.
//!
//! What must hold: new definitions are published before the transaction's locks go, and portals
//! that do not outlast the transaction close with it.

use execution::RunningSession as _;
use std::sync::Arc;

use runtime::interrupt::Reason;
use runtime::timer;

use super::Session;
use super::block::{Savepoint, Stage};
use super::characteristics::{Characteristics, refuse_serializable, txn_isolation};
use super::plans::Planned;
use crate::clock::clock;
use execution::client::{Client, Notice};
use execution::from_txn;
use query::plan::{Body, Command, TransactionModes};
use values::error::{SqlError, SqlState};

fn aborted() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

impl Session {
    /// In a failed block only its end is allowed.
    pub(super) fn check_allowed(&self, planned: &Planned) -> Result<(), SqlError> {
        if self.block.stage != Stage::Failed {
            return Ok(());
        }
        match planned.compiled.as_ref().map(|compiled| &compiled.statement.body) {
            None => Ok(()),
            Some(Body::Command(command)) => match **command {
                Command::Commit { .. } | Command::Rollback { .. } | Command::RollbackTo(_) => Ok(()),
                _ => Err(aborted()),
            },
            Some(Body::Query { .. }) => Err(aborted()),
        }
    }

    /// Opens the transaction a statement needs.
    pub(super) fn ensure_transaction(&mut self) {
        // A failed implicit transaction was rolled back at once.
        if self.block.stage == Stage::Idle || (self.block.stage == Stage::Implicit && self.block.empty) {
            self.block.empty = false;
            self.open_transaction(self.environment.table.defaults);
            self.block.stage = Stage::Implicit;
        }
    }

    fn open_transaction(&mut self, characteristics: Characteristics) {
        let now = clock();
        self.environment.table.formats.transaction_time = now;
        self.environment.statement_time = now;
        self.slot.transaction(now);
        self.slot.statement(now);
        self.block.opened_with = Some(characteristics);
        self.environment.characteristics = characteristics;
        self.block.queried = false;
        self.block.executed = false;
        self.block.seen = None;
        self.block.first_portal = self.block.next_portal;
        // The session enforces read-only itself, because PostgreSQL lets some commands write in a
        // read-only transaction.
        self.environment.txn.begin(txn_isolation(characteristics.isolation), false);
        if self.block.limit.is_some() || self.environment.table.transaction_timeout.is_some() {
            self.limit_transaction(true);
        }
    }

    /// Starts the transaction's time limit, if there is one, or stops it. An interrupt that it has
    /// raised already is cleared.
    #[cold]
    fn limit_transaction(&mut self, open: bool) {
        if let Some(limit) = self.block.limit.take() {
            timer::cancel(limit);
            self.interrupt.clear(Reason::TransactionTimeout);
        }
        if let Some(limit) = self.environment.table.transaction_timeout.filter(|_| open) {
            let interrupt = Arc::clone(&self.interrupt);
            self.block.limit = Some(timer::after(limit, move || interrupt.raise(Reason::TransactionTimeout)));
        }
    }

    /// `transaction_timeout` may have changed within a transaction: a limit that runs already goes
    /// on, as in PostgreSQL.
    pub(super) fn settings_changed(&mut self) {
        let wanted = self.environment.table.transaction_timeout.is_some();
        if wanted != self.block.limit.is_some() && self.block.stage != Stage::Idle {
            self.limit_transaction(wanted);
        }
    }

    /// BEGIN. A transaction that a query string has opened before goes on as the block's. Within a
    /// block it warns, and sets the characteristics that it names.
    pub(super) fn begin(&mut self, modes: TransactionModes, client: &mut dyn Client) -> Result<(), SqlError> {
        refuse_serializable(modes)?;
        if self.block.is_explicit() {
            let message = "there is already a transaction in progress";
            self.tell(client, &Notice::warning(SqlState::ACTIVE_SQL_TRANSACTION, message));
        } else {
            self.ensure_transaction();
        }
        if modes != TransactionModes::default() {
            self.change_characteristics(modes)?;
        }
        if !self.block.is_explicit() {
            self.block.stage = Stage::Explicit;
        }
        Ok(())
    }

    /// COMMIT. Returns whether it committed: a failed block is rolled back.
    pub(super) fn commit_block(&mut self, chain: bool, client: &mut dyn Client) -> Result<bool, SqlError> {
        let (stage, characteristics) = (self.block.stage, self.environment.characteristics);
        if !self.block.is_explicit() {
            refuse_chain(chain, "COMMIT AND CHAIN")?;
            self.tell(
                client,
                &Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"),
            );
        }
        let ended = self.end_transaction(stage != Stage::Failed);
        if chain && ended.is_ok() {
            self.open_transaction(characteristics);
            self.block.stage = Stage::Explicit;
        }
        ended.map(|()| stage != Stage::Failed)
    }

    /// ROLLBACK.
    pub(super) fn rollback_block(&mut self, chain: bool, client: &mut dyn Client) -> Result<(), SqlError> {
        let characteristics = self.environment.characteristics;
        if !self.block.is_explicit() {
            refuse_chain(chain, "ROLLBACK AND CHAIN")?;
            self.tell(
                client,
                &Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"),
            );
        }
        self.end_transaction(false)?;
        if chain {
            self.open_transaction(characteristics);
            self.block.stage = Stage::Explicit;
        }
        Ok(())
    }

    /// The end of a query string, or Sync: commits or rolls back an implicit transaction.
    pub(super) fn end_implicit(&mut self, commit: bool) -> Result<(), SqlError> {
        match self.block.stage {
            Stage::Implicit => self.end_transaction(commit),
            // No transaction was opened. The bound portals close as they would at its end.
            Stage::Idle => {
                self.close_portals();
                Ok(())
            }
            Stage::Explicit | Stage::Failed => Ok(()),
        }
    }

    /// Called when a command has run. Commits if the command stands alone in its transaction, so
    /// its effect stays when a later statement of the pipeline fails.
    pub(super) fn end_alone(&mut self, done: bool) -> Result<(), SqlError> {
        let alone = std::mem::take(&mut self.block.alone);
        if alone && done { self.end_implicit(true) } else { Ok(()) }
    }

    /// The error for a portal that does not exist: 25P02 if the block's failure closed it.
    pub(super) fn no_portal(&self, name: &str) -> SqlError {
        if self.block.stage == Stage::Failed && self.block.lost.iter().any(|lost| lost == name) {
            return aborted();
        }
        SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
    }

    /// Forgets that a portal was there when the block failed.
    #[inline]
    pub(super) fn forget_lost(&mut self, name: &str) {
        if !self.block.lost.is_empty() {
            self.block.lost.retain(|lost| lost != name);
        }
    }

    /// Closes the portals that do not outlast a transaction: all but cursors WITH HOLD.
    fn close_portals(&mut self) {
        if !self.environment.portals.is_empty() {
            self.environment.portals.retain(|_, portal| portal.kept.is_some() && portal.held);
        }
        if let Some(current) = self.current.as_mut().filter(|current| current.planned.is_some()) {
            current.close();
        }
    }

    /// Ends the open transaction.
    fn end_transaction(&mut self, commit: bool) -> Result<(), SqlError> {
        self.block.stage = Stage::Idle;
        self.block.savepoints.clear();
        if !self.block.lost.is_empty() {
            self.block.lost.clear();
        }
        self.close_portals();
        let first_portal = self.block.first_portal;
        let overlay = self.block.overlay.take();
        let mut ended = Ok(());
        if !std::mem::take(&mut self.block.empty) && self.environment.txn.in_transaction() {
            // Publishes before the locks go, so that the session that gets them next finds the new
            // definitions.
            let _publication =
                (commit && overlay.is_some()).then(|| self.environment.definitions.begin_publication());
            let published = match &overlay {
                Some((_, overlay)) if commit => self.publish(overlay),
                _ => Ok(()),
            };
            self.environment.depend_on_records();
            ended = match commit && published.is_ok() {
                true => self.environment.txn.commit(self.environment.table.synchronous).map_err(from_txn),
                false => self.take_back_all(overlay.is_some()),
            };
            if self.environment.txn.in_transaction() {
                // The log had no room for the commit, or the rollback has not ended. Definitions
                // are published with room for their commit, so none are.
                debug_assert!(!commit || overlay.is_none() || published.is_err());
                ended = ended.and(self.environment.txn.rollback().map_err(from_txn));
            }
            ended = published.and(ended);
        }
        self.slot.transaction(0);
        if self.block.limit.is_some() {
            self.limit_transaction(false);
        }
        if let Some((base, overlay)) = &overlay {
            self.environment.catalog = self.environment.definitions.catalog();
            self.shared.forget_counters(&overlay.unused_counters(base, commit && ended.is_ok()));
        }
        let committed = commit && ended.is_ok();
        let definitions = &self.environment.definitions;
        self.changes.settle(definitions.oid);
        (if committed { &definitions.committed } else { &definitions.rolled_back }).add(1);
        if !committed {
            self.environment.portals.retain(|_, portal| portal.number < first_portal);
        }
        self.environment.table.end(committed, 0);
        if !self.block.created.is_empty() || self.block.dropped {
            self.shared.trees_settled(&self.block.created);
            self.block.created.clear();
            self.block.dropped = false;
        }
        ended
    }

    /// Called when the session is dropped. Its trees and counters are freed once its transaction
    /// has been rolled back.
    pub(super) fn leave(&mut self) {
        self.changes.tell(self.environment.definitions.oid);
        if self.block.stage != Stage::Idle {
            self.environment.definitions.rolled_back.add(1);
        }
        let created = std::mem::take(&mut self.block.created);
        let overlay = self.block.overlay.take();
        let unused = overlay.map_or_else(Vec::new, |(base, overlay)| overlay.unused_counters(&base, false));
        if !created.is_empty() || self.block.dropped || !unused.is_empty() {
            let shared = Arc::clone(&self.shared);
            self.environment.txn.when_gone(Box::new(move || {
                shared.trees_settled(&created);
                runtime::fiber::spawn_local(move || shared.forget_counters(&unused));
            }));
        }
    }

    /// Rolls the transaction back after an error, and marks a block as failed.
    pub fn fail(&mut self) {
        self.end_limit();
        self.take_back_failed();
        // An error may show other transactions' rows, so it waits for the log too. A failure of the
        // wait changes nothing here.
        let _ = self.environment.before_showing();
    }

    fn take_back_failed(&mut self) {
        match self.block.stage {
            Stage::Explicit => self.block.stage = Stage::Failed,
            Stage::Idle | Stage::Implicit | Stage::Failed => return self.take_back_implicit(),
        }
        self.block.lost = self.environment.portals.keys().cloned().collect();
        if self.current.as_ref().is_some_and(|current| current.planned.is_some()) {
            self.block.lost.push(String::new());
        }
        if let Some(current) = &mut self.current {
            current.close();
        }
        // If this fails, the end of the block rolls the rest back and reports an error.
        let _ = match self.block.savepoints.len() {
            0 => {
                let first = self.block.first_portal;
                self.environment.portals.retain(|_, portal| portal.held && portal.number < first);
                self.block.empty = self.take_back_all(self.block.overlay.is_some()).is_ok();
                self.forget_definitions();
                self.environment.table.end(false, 0);
                self.environment.characteristics =
                    self.block.opened_with.unwrap_or(self.environment.table.defaults);
                if self.block.limit.is_some() {
                    self.limit_transaction(false);
                }
                Ok(())
            }
            set => self.take_back_to(set - 1),
        };
    }

    /// Rolls the implicit transaction back at once, so that its locks do not wait for the client's
    /// Sync.
    fn take_back_implicit(&mut self) {
        if self.block.stage == Stage::Implicit && !self.block.empty {
            // A cursor WITH HOLD goes too, because its rows were rolled back.
            let first = self.block.first_portal;
            self.environment.portals.retain(|_, portal| portal.number < first);
            self.block.empty = self.take_back_all(self.block.overlay.is_some()).is_ok();
            self.forget_definitions();
            self.environment.table.end(false, 0);
        }
    }

    /// Rolls the transaction back. A long rollback goes on in the background, unless the
    /// transaction made trees or definitions.
    fn take_back_all(&self, defines: bool) -> Result<(), SqlError> {
        let txn = &self.environment.txn;
        let done = match defines || self.block.dropped || !self.block.created.is_empty() {
            true => {
                let mut made: Vec<u32> = self.block.created.iter().map(|tree| tree.id).collect();
                made.sort_unstable();
                txn.rollback_but(&made)
            }
            false => txn.rollback_apart(),
        };
        done.map_err(from_txn)
    }

    /// SAVEPOINT.
    pub(super) fn savepoint(&mut self, name: String) -> Result<(), SqlError> {
        self.require_block("SAVEPOINT")?;
        let savepoint = Savepoint {
            name,
            id: self.environment.txn.savepoint(),
            definitions: self.block.overlay.as_ref().map_or(0, |(_, overlay)| overlay.mark()),
            settings: self.environment.table.mark(),
            created: self.block.created.len(),
            characteristics: self.environment.characteristics,
            portals: self.block.next_portal,
        };
        self.block.savepoints.push(savepoint);
        Ok(())
    }

    /// ROLLBACK TO.
    pub(super) fn rollback_to(&mut self, name: &str) -> Result<(), SqlError> {
        self.require_block("ROLLBACK TO SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        self.block.savepoints.truncate(at + 1);
        self.take_back_to(at)?;
        self.block.stage = Stage::Explicit;
        Ok(())
    }

    /// RELEASE.
    pub(super) fn release(&mut self, name: &str) -> Result<(), SqlError> {
        self.require_block("RELEASE SAVEPOINT")?;
        let at = self.find_savepoint(name)?;
        self.environment.txn.release(self.block.savepoints[at].id).map_err(from_txn)?;
        self.environment.characteristics = self.block.savepoints[at].characteristics;
        self.block.savepoints.truncate(at);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize, SqlError> {
        self.block.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            SqlError::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, message)
        })
    }

    /// Goes back to a savepoint, which stays. Portals that were open then stay where they stand
    /// now.
    fn take_back_to(&mut self, at: usize) -> Result<(), SqlError> {
        let &Savepoint { id, definitions, settings, characteristics, portals, .. } =
            &self.block.savepoints[at];
        self.environment.portals.retain(|_, portal| portal.number < portals);
        self.environment.characteristics = characteristics;
        self.environment.txn.rollback_to(id).map_err(from_txn)?;
        if let Some((base, overlay)) = &mut self.block.overlay {
            let unused = overlay.roll_back_to(definitions, base);
            self.environment.catalog = Arc::clone(overlay.catalog());
            self.shared.forget_counters(&unused);
        }
        self.environment.table.end(false, settings);
        Ok(())
    }

    /// Refuses a command that only makes sense in a block.
    pub(super) fn require_block(&self, what: &str) -> Result<(), SqlError> {
        if self.block.is_explicit() {
            return Ok(());
        }
        let message = format!("{what} can only be used in transaction blocks");
        Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message))
    }

    /// Refuses a command that may stand neither in a block nor among the statements of one text or
    /// pipeline, which are one transaction. If the command may run, its transaction ends with it
    /// ([`Session::end_alone`]).
    pub(super) fn refuse_block(&mut self, what: &str) -> Result<(), SqlError> {
        if !self.block.outlasts_statement() {
            self.block.alone = true;
            return Ok(());
        }
        let message = format!("{what} cannot run inside a transaction block");
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message))
    }

    /// Notes that a query runs, or a command that reads rows as a query does.
    pub(super) fn note_query(&mut self) {
        self.block.queried = true;
    }
}

fn refuse_chain(chain: bool, what: &str) -> Result<(), SqlError> {
    if !chain {
        return Ok(());
    }
    let message = format!("{what} can only be used in transaction blocks");
    Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message))
}
