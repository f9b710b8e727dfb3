//! Commands: all statements that are not queries.
//!
//! A command either moves the transaction block, or runs within a transaction. The dispatch of this
//! module decides which, and calls the module that does the work.
//!
//! What must hold:
//!
//! 1. BEGIN, COMMIT, ROLLBACK and the commands of savepoints are dispatched before a transaction is
//!    opened. Any other command with an effect opens the transaction that it needs.
//! 2. After each command in a transaction come [`Session::apply_deferred`] and
//!    [`Session::end_alone`], whether it succeeded or not. So queued notices reach the client, and
//!    a command that stands alone commits at once.
//! 3. A command sends its tag once its work is done, and none when it fails.
//! 4. A command that reads rows as a query does fixes the transaction's characteristics
//!    ([`settles`]). A new command is one of these unless that list excludes it.

use std::sync::Arc;

use super::characteristics::settles;
use super::{Session, define};
use execution::client::{Client, Notice};
use execution::{Executor, from_storage, from_txn};
use query::plan::{Body, Command, Copy, CopyKind, CopyRelation, Discard, Statement};
use values::error::{SqlError, SqlState};
use values::memory;
use values::types::{Datum, Type};

impl Session {
    /// Runs a command and completes it.
    pub(super) fn run_command(
        &mut self,
        statement: &Statement,
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let Body::Command(command) = &statement.body else {
            return Err(SqlError::internal("a query where a command was expected"));
        };
        self.note_time();
        match &**command {
            Command::Begin { modes, tag } => {
                self.begin(*modes, client)?;
                client.complete(tag);
            }
            Command::Commit { chain } => {
                let committed = self.commit_block(*chain, client)?;
                client.complete(if committed { "COMMIT" } else { "ROLLBACK" });
            }
            Command::Rollback { chain } => {
                self.rollback_block(*chain, client)?;
                client.complete("ROLLBACK");
            }
            Command::Savepoint(name) => {
                self.savepoint(name.clone())?;
                client.complete("SAVEPOINT");
            }
            Command::RollbackTo(name) => {
                self.rollback_to(name)?;
                client.complete("ROLLBACK");
            }
            Command::Release(name) => {
                self.release(name)?;
                client.complete("RELEASE");
            }
            Command::SetTransaction { modes, session } => {
                match session {
                    true => self.set_default_modes(*modes)?,
                    false => self.set_transaction(*modes, client)?,
                }
                client.complete("SET");
            }
            Command::SetConstraints => {
                self.warn_outside_block("SET CONSTRAINTS", client);
                client.complete("SET CONSTRAINTS");
            }
            Command::NoEffect(tag) => client.complete(tag),
            _ => {
                let done = self.run_in_transaction(statement, command, values, client);
                let applied = self.apply_deferred(done.is_ok(), client);
                self.end_alone(done.is_ok() && applied.is_ok())?;
                applied?;
                return done;
            }
        }
        Ok(())
    }

    /// Commands that belong to a transaction.
    fn run_in_transaction(
        &mut self,
        statement: &Statement,
        command: &Command,
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        self.ensure_transaction();
        if settles(command) {
            self.note_query();
        }
        match command {
            Command::Set { name, value, local } => {
                if *local {
                    self.warn_outside_block("SET LOCAL", client);
                }
                self.set(name, value.as_deref(), *local)?;
                client.complete("SET");
            }
            Command::Reset(name) => self.reset(name.as_deref(), client)?,
            Command::Show(name) => self.show(statement, name.as_deref(), client)?,
            Command::Prepare { name, types, text, before, source } => {
                self.prepare(name, types, (text, *before, source), client)?;
            }
            Command::Execute(call) => self.execute_prepared(call, values, client)?,
            Command::Deallocate(name) => self.deallocate(name.as_deref(), client)?,
            Command::Discard(what) => {
                let tag = self.discard(*what)?;
                client.complete(tag);
            }
            Command::DeclareCursor(declare) => {
                self.declare(declare, values, client)?;
                client.complete("DECLARE CURSOR");
            }
            Command::Fetch { name, way, skip } => self.fetch(name, *way, *skip, client)?,
            Command::CloseCursor(name) => self.close_cursors(name.as_deref(), client)?,
            Command::LockTable { tables, mode, nowait } => {
                if !self.block.outlasts_statement() {
                    self.require_block("LOCK TABLE")?;
                }
                self.lock_named(tables, *mode, *nowait)?;
                client.complete("LOCK TABLE");
            }
            Command::Copy(copy) => self.copy(copy, values, client)?,
            Command::Explain(explain) => self.explain(statement, explain, values, client)?,
            Command::Vacuum { tables, vacuum, analyze, verbose } => {
                self.maintain(tables, (*vacuum, *analyze, *verbose), client)?;
                client.complete(if *vacuum { "VACUUM" } else { "ANALYZE" });
            }
            Command::Checkpoint => {
                self.shared.engine.folder().checkpoint().map_err(|error| from_storage(&error))?;
                client.complete("CHECKPOINT");
            }
            _ => {
                self.environment.txn.statement_start().map_err(from_txn)?;
                let done = define::run(self, command, values, client);
                self.environment.txn.statement_end();
                done?;
            }
        }
        Ok(())
    }

    /// RESET; None is ALL.
    fn reset(&mut self, name: Option<&str>, client: &mut dyn Client) -> Result<(), SqlError> {
        match name {
            Some(name) => self.set(name, None, false)?,
            None => {
                self.environment.table.reset_all()?;
                self.settings_changed();
            }
        }
        client.complete("RESET");
        Ok(())
    }

    /// PREPARE: the statement's text lies in `source`, behind `before` characters.
    fn prepare(
        &mut self,
        name: &str,
        types: &[Type],
        (text, before, source): (&str, u32, &Arc<str>),
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        if self.environment.prepared.contains(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        let types: Vec<u32> = types.iter().map(|type_| type_.oid).collect();
        let planned = self.plan_prepared(text, &types).map_err(|mut error| {
            error.position = error.position.map(|position| position + before);
            error
        })?;
        memory::ask_to_keep()?;
        let created = self.environment.statement_time;
        self.environment.prepared.insert(name, planned, Some(Arc::clone(source)), created);
        client.complete("PREPARE");
        Ok(())
    }

    /// DEALLOCATE; None is ALL.
    fn deallocate(&mut self, name: Option<&str>, client: &mut dyn Client) -> Result<(), SqlError> {
        match name {
            None => self.environment.prepared.clear(),
            Some(name) => {
                self.find_prepared(name)?;
                self.close_statement(name);
            }
        }
        client.complete(if name.is_some() { "DEALLOCATE" } else { "DEALLOCATE ALL" });
        Ok(())
    }

    /// CLOSE; None is ALL.
    fn close_cursors(&mut self, name: Option<&str>, client: &mut dyn Client) -> Result<(), SqlError> {
        match name {
            // Keeps only the portal that runs this statement.
            None => self.environment.portals.retain(|_, portal| portal.is_running()),
            Some(name) => self.close_cursor(name)?,
        }
        client.complete(if name.is_some() { "CLOSE CURSOR" } else { "CLOSE CURSOR ALL" });
        Ok(())
    }

    /// DISCARD; its tag.
    fn discard(&mut self, what: Discard) -> Result<&'static str, SqlError> {
        Ok(match what {
            Discard::All => {
                self.refuse_block("DISCARD ALL")?;
                self.environment.portals.clear();
                self.environment.prepared.clear();
                self.environment.discard();
                self.environment.table.set("session_authorization", None, false)?;
                self.environment.table.reset_all()?;
                "DISCARD ALL"
            }
            Discard::Sequences => {
                self.environment.discard_sequences();
                "DISCARD SEQUENCES"
            }
            Discard::Plans => "DISCARD PLANS",
            Discard::Temporary => "DISCARD TEMP",
        })
    }

    pub(super) fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        if let Some(modes) = super::settings::transaction_modes(name, value)? {
            return self.change_characteristics(modes);
        }
        self.environment.table.set(name, value, local)?;
        self.settings_changed();
        Ok(())
    }

    fn show(
        &mut self,
        statement: &Statement,
        name: Option<&str>,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        match name {
            Some(name) => {
                let value = self.environment.shown(name)?;
                client.row(&[Datum::Text(value)], &statement.columns, &self.environment)?;
            }
            None => {
                for (name, value) in self.environment.all_shown() {
                    let row = [Datum::Text(name), Datum::Text(value), Datum::Text("")];
                    client.row(&row, &statement.columns, &self.environment)?;
                }
            }
        }
        client.complete("SHOW");
        Ok(())
    }

    fn copy(&mut self, copy: &Copy, values: &[Datum<'_>], client: &mut dyn Client) -> Result<(), SqlError> {
        let statement = match &copy.relation {
            CopyRelation::Query(statement) | CopyRelation::Insert { statement, .. } => statement,
        };
        if copy.from {
            self.environment.refuse_read_only("COPY FROM")?;
        }
        self.begin_statement(statement)?;
        let environment = &self.environment;
        let mut cx = Executor::new(
            &self.environment.txn,
            &self.shared.row_numbers,
            &environment.catalog,
            values,
            environment,
        );
        cx.fresh = self.block.fresh();
        let binary = copy.format.kind == CopyKind::Binary;
        let done = match &copy.relation {
            CopyRelation::Query(statement) => {
                client.copy_out_begin(statement.columns.len(), binary);
                execution::copy_out(&mut cx, statement, &copy.format, client)
            }
            CopyRelation::Insert { statement, table, fields } => {
                client.copy_in_begin(fields.len(), binary)?;
                execution::copy_in(&mut cx, (statement, table, fields), &copy.format, client)
            }
        };
        drop(cx);
        self.environment.txn.statement_end();
        let rows = done?;
        if copy.from {
            self.note_changes(statement, rows);
        } else {
            client.copy_out_end();
        }
        client.complete(&format!("COPY {rows}"));
        Ok(())
    }
}

/// A client that takes rows instead of sending them, and passes everything else to the session's
/// client.
pub(super) struct RowSink<'c> {
    pub row: &'c mut dyn FnMut(&[Datum<'_>]) -> Result<(), SqlError>,
    pub client: &'c mut dyn Client,
}

impl Client for RowSink<'_> {
    fn columns(&mut self, _: &[query::plan::ColumnDesc], _: &[i16]) {}
    fn row(
        &mut self,
        row: &[Datum<'_>],
        _: &[query::plan::ColumnDesc],
        _: &dyn values::environment::Environment,
    ) -> Result<(), SqlError> {
        (self.row)(row)
    }
    fn complete(&mut self, _: &str) {}
    fn empty(&mut self) {}
    fn notice(&mut self, notice: &Notice) {
        self.client.notice(notice);
    }
    fn copy_out_begin(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_end(&mut self) {}
    fn copy_in_begin(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        Ok(None)
    }
}
