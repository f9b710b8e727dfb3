//! A session: one client's transaction, settings, prepared statements and portals.
//!
//! Its methods run on fibers of the runtime's workers, one at a time. Between them it owns no fiber
//! and no latch; an open transaction keeps its row locks and its snapshot's horizon. What must
//! hold:
//!
//! 1. Outside of BEGIN a transaction lives from the first statement to the end of the query string,
//!    or to Sync.
//! 2. After an error a transaction block runs nothing but its end. The error rolls it back at once,
//!    to the last savepoint or whole.
//! 3. A plan runs only if its tables are locked and its generation, read after the locks, is
//!    current. It also runs if its tables were locked before it was made.
//! 4. Between transactions the session may come to another core, if it keeps no portal and no timer
//!    ([`Session::may_leave_core`]).

mod administer;
mod advisory;
mod block;
mod characteristics;
mod command;
mod cursor;
mod define;
mod environment;
mod explain;
mod limit;
mod literals;
mod locks;
mod long;
mod maintain;
mod planning;
mod plans;
mod portal;
mod prepared;
mod resolve;
mod row_stream;
mod rows;
mod settings;
mod sizes;
mod snapshot;
mod statement;
mod stream;
mod suspend;
mod transaction;
mod uncommitted;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use runtime::interrupt::{Interrupt, Reason};
use sync::Caption;

use block::Block;
use environment::SessionEnvironment;
use limit::StatementLimit;
use plans::Planned;
use portal::Portal;
pub use settings::check_setting;

use crate::activity::{ActivitySlot, State};
use crate::clock::clock;
use crate::log_text;
use crate::shared::autoanalyze::OwnChanges;
use crate::shared::definitions::Definitions;
use crate::shared::{Shared, no_database};
use execution::client::{Client, Notice};
use execution::from_txn;
use execution::measures::Measures;
use query::plan::ColumnDesc;
use query::plan::{Body, Command};
use values::error::{SqlError, SqlState};
use values::memory;

/// How an Execute ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executed {
    /// All rows were given and the completion tag.
    Complete,
    /// The row limit was reached; the portal has more.
    Suspended,
}

/// One client's state.
pub struct Session {
    shared: Arc<Shared>,
    environment: SessionEnvironment,
    block: Block,
    /// The unnamed statement.
    unnamed: Option<Arc<Planned>>,
    /// The unnamed portal, whose buffers are used again. None while it runs: moving the box costs
    /// no copy of it.
    current: Option<Box<Portal>>,
    /// The last tag of a query, whose buffer is used again.
    tag: String,
    interrupt: Arc<Interrupt>,
    limit: StatementLimit,
    /// Set while EXPLAIN ANALYZE runs its query.
    measures: Option<Measures>,
    /// For autoanalyze.
    changes: OwnChanges,
    slot: ActivitySlot,
}

impl Session {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        definitions: Arc<Definitions>,
        user: &str,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Session, SqlError> {
        let user: Arc<str> = user.into();
        let slot = shared.activity.take_slot(definitions.oid, &user, interrupt).ok_or_else(|| {
            SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
        })?;
        // DROP DATABASE closes the database before it looks for taken slots. So one of the two sees
        // the other.
        if definitions.is_closed() {
            return Err(no_database(&definitions.entry().name));
        }
        let txn = shared.engine.session().map_err(from_txn)?;
        txn.set_label(slot.session);
        definitions.begun.add(1);
        Ok(Session {
            environment: SessionEnvironment::new(shared, definitions, txn, user, (slot.session, interrupt)),
            shared: Arc::clone(shared),
            block: Block::default(),
            unnamed: None,
            current: Some(Box::default()),
            tag: String::new(),
            interrupt: Arc::clone(interrupt),
            limit: StatementLimit::default(),
            measures: None,
            changes: OwnChanges::default(),
            slot,
        })
    }

    /// Runs a query string of the simple protocol: any number of statements, in one implicit
    /// transaction unless they say otherwise. On an error the rest is skipped; the status is
    /// updated. Ends with everything a ReadyForQuery needs.
    pub fn simple_query(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        self.slot.query(0, text);
        self.slot.state(State::Active);
        let begun = self.begin_duration();
        self.start_limit();
        // The simple protocol's statement replaces the unnamed ones of the extended protocol.
        self.unnamed = None;
        self.close_portal("");
        let done = self.simple_statements(text, client);
        self.end_limit();
        let ended = match &done {
            Ok(()) => self.end_implicit(true),
            Err(_) => {
                self.fail();
                self.end_implicit(false)
            }
        };
        self.rest();
        if let Some(begun) = begun {
            self.end_duration(begun, text);
        }
        done.and(ended)
    }

    /// Prepares a statement. Parameter types that are 0 or missing are inferred.
    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Result<(), SqlError> {
        if !name.is_empty() && self.environment.prepared.contains(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        self.slot.query(0, text);
        self.slot.state(State::Active);
        self.start_limit();
        let planned = self.plan_prepared(text, types)?;
        self.check_allowed(&planned)?;
        match name {
            "" => self.unnamed = Some(planned),
            _ => {
                memory::ask_to_keep()?;
                self.environment.prepared.insert(name, planned, None, clock());
            }
        }
        Ok(())
    }

    /// Makes a portal of a prepared statement and its parameters.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: &[Option<&[u8]>],
        parameter_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<(), SqlError> {
        let bound = self.bind_prepared(portal, statement, parameters, parameter_formats, result_formats);
        if bound.is_err()
            && let Ok(planned) = self.find_prepared(statement)
        {
            // The activity table shows the statement that the error is about.
            self.slot.query(planned.number, &planned.text);
        }
        bound
    }

    fn bind_prepared(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: &[Option<&[u8]>],
        parameter_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<(), SqlError> {
        let planned = self.take_prepared(statement)?;
        self.check_allowed(&planned)?;
        let declared = planned.compiled.as_ref().map_or(0, |compiled| compiled.declared);
        if parameters.len() != declared {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {declared}",
                parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        if parameter_formats.len() > 1 && parameter_formats.len() != parameters.len() {
            let message = format!(
                "bind message has {} parameter formats but {} parameters",
                parameter_formats.len(),
                parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        if let Some(compiled) = &planned.compiled
            && result_formats.len() > 1
            && !matches!(compiled.statement.body, Body::Command(_))
            && compiled.statement.returns_rows()
            && compiled.statement.columns.len() != result_formats.len()
        {
            let message = format!(
                "bind message has {} result formats but query has {} columns",
                result_formats.len(),
                compiled.statement.columns.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        let target = match portal {
            "" => self.current.get_or_insert_default(),
            _ if self.environment.portals.contains_key(portal) => {
                let message = format!("cursor \"{portal}\" already exists");
                return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
            }
            _ => {
                memory::ask_to_keep()?;
                let target = self.environment.portals.entry(portal.to_owned()).or_default();
                target.number = self.block.number_portal();
                target.created = self.environment.statement_time;
                target
            }
        };
        target.open(planned, parameters, parameter_formats, result_formats);
        Ok(())
    }

    /// The parameter types of a prepared statement, and its columns if it returns rows.
    #[allow(clippy::type_complexity)]
    pub fn describe_statement(
        &mut self,
        name: &str,
    ) -> Result<(Vec<u32>, Option<Arc<[ColumnDesc]>>), SqlError> {
        let planned = self.find_prepared(name)?;
        let Some(compiled) = &planned.compiled else { return Ok((Vec::new(), None)) };
        let types =
            compiled.statement.parameters.iter().take(compiled.declared).map(|type_| type_.oid).collect();
        Ok((types, self.shown_columns(planned)))
    }

    /// The columns of a portal and their formats, if it returns rows.
    #[allow(clippy::type_complexity)]
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<(Arc<[ColumnDesc]>, &[i16])>, SqlError> {
        let portal = self.find_portal(name)?;
        let columns = portal.planned.as_ref().and_then(|planned| self.shown_columns(planned));
        Ok(columns.map(|columns| (columns, portal.formats.as_slice())))
    }

    /// The result formats of a portal as given to `bind`: empty = all text, one = for all columns,
    /// else one each.
    pub fn portal_formats(&self, name: &str) -> &[i16] {
        match name {
            "" => self.current.as_deref(),
            _ => self.environment.portals.get(name),
        }
        .map_or(&[], |portal| &portal.formats)
    }

    /// Runs a portal until its end, or until it has given `max_rows` rows (0 = all). A statement
    /// that changes rows runs to its end in any case.
    pub fn execute(
        &mut self,
        portal: &str,
        max_rows: u32,
        client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        self.slot.state(State::Active);
        let begun = self.begin_duration();
        let mut taken = match portal {
            "" => self.current.take().ok_or_else(|| self.no_portal(portal))?,
            _ => match self.environment.portals.get_mut(portal) {
                Some(place) => Box::new(std::mem::take(place)),
                None => return Err(self.no_portal(portal)),
            },
        };
        let done = match &taken.planned {
            Some(planned) => {
                self.slot.query(planned.number, &planned.text);
                self.start_limit();
                let limit = if max_rows == 0 { u64::MAX } else { u64::from(max_rows) };
                let done = self.run_portal((portal, &mut taken), limit, client);
                self.block.note_executed();
                if !matches!(done, Ok(Executed::Suspended)) {
                    self.end_limit();
                }
                done
            }
            None => Err(self.no_portal(portal)),
        };
        if let (Some(begun), Some(planned)) = (begun, &taken.planned) {
            self.end_duration(begun, &planned.text);
        }
        match portal {
            "" => {
                let ran = taken.planned.as_ref().is_some_and(|planned| planned.compiled.is_some());
                if done.is_ok() && ran && self.block.is_over() {
                    // COMMIT and ROLLBACK end the portal that runs them, too.
                    taken.close();
                }
                self.current = Some(taken);
            }
            // The statement itself may have closed all portals, at the end of its transaction.
            _ => {
                if let Some(place) = self.environment.portals.get_mut(portal) {
                    *place = *taken;
                }
            }
        }
        done
    }

    /// Forgets a prepared statement; no error when there is none.
    pub fn close_statement(&mut self, name: &str) {
        match name {
            "" => self.unnamed = None,
            _ => self.environment.prepared.remove(name),
        }
    }

    /// Forgets a portal; no error when there is none.
    pub fn close_portal(&mut self, name: &str) {
        self.forget_lost(name);
        match name {
            "" => {
                if let Some(current) = &mut self.current {
                    current.close();
                }
            }
            _ => {
                self.environment.portals.remove(name);
            }
        }
    }

    /// Ends the implicit transaction: commits it, or rolls it back after an error.
    pub fn sync(&mut self) -> Result<(), SqlError> {
        self.end_limit();
        let ended = self.end_implicit(true);
        self.rest();
        ended
    }

    /// `I` idle, `T` in a transaction, `E` in a failed one.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.block.status()
    }

    /// The session's number, as pg_backend_pid() and BackendKeyData tell it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.slot.session
    }

    /// Sets a setting that the session begins with; `by_client`: from the startup packet, so that a
    /// reload leaves it alone.
    pub fn startup_setting(&mut self, name: &str, value: &str, by_client: bool) -> Result<(), SqlError> {
        self.environment.table.set_initial(name, value, by_client)?;
        self.show_application();
        Ok(())
    }

    /// Takes over the settings that sessions begin with now. Keeps a value that a SET or the
    /// client's startup packet decided.
    pub fn reload_settings(&mut self, settings: &[(String, String)]) {
        self.environment.table.reload(settings, self.shared.read_only_settings());
        self.show_application();
    }

    /// Whether an error of a statement is to be logged.
    #[must_use]
    pub fn logs_errors(&self) -> bool {
        self.environment.table.logs_errors
    }

    /// An error's message for the log, and the failed statement's text if the settings ask for it.
    /// The text is as much as `pg_stat_activity` shows. Both are cut where a password may begin.
    #[must_use]
    pub fn failure_for_log<'e>(&self, error: &'e SqlError) -> (Cow<'e, str>, Option<String>) {
        let text = self.slot.text();
        let statement = self.environment.table.logs_failed_statements;
        let statement = statement.then(|| log_text::statement(&text).into_owned());
        (log_text::message(error, &text, Caption::MOST), statement)
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.environment.user
    }

    /// The settings that the server reports to the client at start (ParameterStatus): (name,
    /// value).
    #[must_use]
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        self.environment.table.reported().map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// The settings of [`Session::reported_settings`] that changed since the last report: (name,
    /// value).
    #[inline]
    pub fn changed_settings(&mut self) -> Vec<(&'static str, String)> {
        let changed = self.environment.table.take_changed();
        if changed.iter().any(|(name, _)| *name == "application_name") {
            self.show_application();
        }
        changed
    }

    /// How long the session may idle now before it is ended, given its state and settings.
    #[must_use]
    pub fn idle_limit(&self) -> Option<Duration> {
        match self.status() {
            b'I' => self.environment.table.idle_timeout,
            _ => self.environment.table.idle_transaction_timeout,
        }
    }

    /// Whether nothing of the session lives on its core. A transaction's undo does, and so do
    /// timers and the queries of portals.
    #[must_use]
    pub fn may_leave_core(&self) -> bool {
        let has_timer = self.limit.is_running() || self.block.limit.is_some();
        let is_bound = self.current.as_ref().is_some_and(|current| current.planned.is_some());
        self.block.is_over() && !has_timer && !is_bound && self.environment.portals.is_empty()
    }

    /// The session has come to this core.
    pub fn enter_core(&mut self) {
        self.environment.txn.enter_core();
        self.bring_statements();
    }

    /// Prefetches the memory outside the session that its next statement will need.
    #[inline]
    pub fn prefetch(&self) {
        self.slot.prefetch();
        self.environment.txn.prefetch();
    }

    /// The columns of a statement's rows. FETCH has those of its cursor, EXECUTE those of its
    /// statement.
    fn shown_columns(&self, planned: &Arc<Planned>) -> Option<Arc<[ColumnDesc]>> {
        if let Some(compiled) = &planned.compiled
            && let Body::Command(command) = &compiled.statement.body
        {
            match &**command {
                Command::Fetch { name, skip: false, .. } => {
                    return self.environment.portals.get(name)?.planned.as_ref().and_then(columns_of);
                }
                Command::Execute(call) => return self.find_prepared(&call.name).ok().and_then(columns_of),
                _ => {}
            }
        }
        columns_of(planned)
    }

    fn find_portal(&self, name: &str) -> Result<&Portal, SqlError> {
        let portal =
            if name.is_empty() { self.current.as_deref() } else { self.environment.portals.get(name) };
        portal.filter(|portal| portal.planned.is_some()).ok_or_else(|| self.no_portal(name))
    }

    /// Sends the client a notice, if `client_min_messages` lets it through.
    fn tell(&self, client: &mut dyn Client, notice: &Notice) {
        if self.environment.table.tells(notice.severity) {
            client.notice(notice);
        }
    }

    /// Starts the statement's time limit, if there is one and it does not run yet.
    #[inline]
    fn start_limit(&mut self) {
        self.limit.start(self.environment.table.statement_timeout, &self.interrupt);
    }

    #[inline]
    fn end_limit(&mut self) {
        self.limit.end(&self.interrupt);
    }

    /// When a statement begins, where slow ones are logged; the clock is not read otherwise.
    #[inline]
    fn begin_duration(&self) -> Option<u64> {
        self.environment.table.log_min_duration.map(|_| runtime::time::precise())
    }

    /// Logs a statement that took as long as `log_min_duration_statement` says.
    #[cold]
    fn end_duration(&self, begun: u64, text: &str) {
        let took = runtime::time::precise().saturating_sub(begun);
        let Some(limit) = self.environment.table.log_min_duration else { return };
        if u128::from(took) < limit.as_nanos() {
            return;
        }
        let milliseconds = took as f64 / 1e6;
        log::info!(
            session = self.slot.session,
            user = &*self.environment.user,
            statement = &*log_text::statement(text);
            "duration: {milliseconds:.3} ms"
        );
    }

    /// Shows others the session's `application_name`.
    fn show_application(&self) {
        self.slot.application(self.environment.table.get("application_name").unwrap_or_default());
    }

    /// Shows that the session waits for its client.
    fn rest(&self) {
        self.slot.state(match self.status() {
            b'I' => State::Idle,
            b'T' => State::InTransaction,
            _ => State::Failed,
        });
        let holds_nothing = self.status() == b'I' && self.environment.portals.is_empty();
        if self.interrupt.is_pending() && (holds_nothing || !runtime::account::is_short()) {
            // The interrupt came too late for its statement. A session that keeps portals while
            // memory is short gets it while idle.
            self.interrupt.clear(Reason::Memory);
        }
        if holds_nothing {
            let kept = self.environment.prepared.bytes() + self.environment.txn.advisory_bytes();
            runtime::account::settle(kept as i64);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The error for running a portal again after its run has failed.
fn not_runnable(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" cannot be run");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// The columns of a statement that returns rows.
fn columns_of(planned: &Arc<Planned>) -> Option<Arc<[ColumnDesc]>> {
    let statement = &planned.compiled.as_ref()?.statement;
    statement.returns_rows().then(|| Arc::clone(&statement.columns))
}

impl Session {
    /// A value as text of a type, as a client would send it; None for NULL.
    pub(crate) fn value_text(
        &self,
        value: &values::types::Value,
        type_: values::types::Type,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let arena = bumpalo::Bump::new();
        let datum = value.datum_in(&arena);
        let text = || values::text::to_bytes(datum, type_, &self.environment);
        (!datum.is_null()).then(text).transpose()
    }
}
