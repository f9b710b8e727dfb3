//! From a text to its execution: gets the plan, locks the tables, sends the rows.
//!
//! What must hold: the client sees rows only once every commit that they show is durable, unless
//! `synchronous_commit` is off.

use crate::clock::clock;
use execution::RunningSession as _;
use std::cell::OnceCell;
use std::sync::Arc;

use runtime::{fiber, interrupt};

use super::characteristics::read_only_error;
use super::environment::Deferred;
use super::literals::literal_values;
use super::long::{LONG_TEXT, read_beside};
use super::plans::{self, Planned};
use super::portal::Portal;
use super::resolve::TakenLocks;
use super::rows::KeptRows;
use super::{Executed, Session};
use execution::client::Client;
use execution::{Executor, Flow, from_txn, scratch};
use query::normalize::Normalized;
use query::plan::{Body, ColumnDesc, Operator, Plan, QueryTag, Statement};
use query::request::Request;
use txn::TableLock;
use values::error::{SqlError, SqlState};
use values::memory;
use values::types::Datum;

impl Session {
    /// All statements of a query string.
    pub(super) fn simple_statements(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        let mut read = plans::take_normalized();
        let one = match text.len() > LONG_TEXT {
            true => read_beside(&mut read, text)?,
            false => read.read(text) && !read.several,
        };
        let done = match one {
            true => self.simple_statement(text, &read, client),
            false => {
                let done = self.several_statements(text, client);
                self.block.note_several(false);
                done
            }
        };
        plans::give_normalized(read);
        done
    }

    /// Runs a text of one statement, planned with its literals lifted out.
    fn simple_statement(
        &mut self,
        text: &str,
        read: &Normalized,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let mut taken = TakenLocks::default();
        loop {
            self.refresh_catalog();
            let known = match self.block.has_definitions() {
                true => None,
                false => {
                    plans::by_template(self.scope(), text, read).filter(|planned| self.is_current(planned))
                }
            };
            let planned = match known {
                Some(planned) => planned,
                None => {
                    let request =
                        Request { parameters: None, literals: &read.literals, ..Request::plain(text) };
                    taken.compiles_for(&self.environment.catalog);
                    let planned = match self.compile(&request) {
                        Ok(planned) => planned,
                        Err(refused) => {
                            self.lock_resolved(refused, &mut taken)?;
                            continue;
                        }
                    };
                    if !self.block.has_definitions() {
                        plans::keep_template(self.scope(), text, read, &planned);
                    }
                    planned
                }
            };
            if self.run_simple(&planned, Some((text, read)), &mut taken, client)? {
                return Ok(());
            }
        }
    }

    /// Runs a text of several statements. It plans each one after the previous one has run, because
    /// that one may define what the next one names.
    fn several_statements(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        let ranges = query::parse::split(text)?;
        if ranges.is_empty() {
            client.empty();
        }
        self.block.note_several(ranges.len() > 1);
        let copy = OnceCell::new();
        for range in ranges {
            // A text may hold 100,000 short statements. The safe point lets other fibers run, and
            // an interrupt ends the text.
            fiber::safe_point();
            interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
            self.start_limit();
            let mut taken = TakenLocks::default();
            loop {
                self.refresh_catalog();
                let (start, end) = (range.start, range.end);
                let request =
                    Request { start, end, parameters: None, copy: Some(&copy), ..Request::plain(text) };
                taken.compiles_for(&self.environment.catalog);
                match self.compile(&request) {
                    Ok(planned) if self.run_simple(&planned, None, &mut taken, client)? => break,
                    Ok(_) => {}
                    Err(refused) => self.lock_resolved(refused, &mut taken)?,
                }
            }
            self.end_limit();
        }
        Ok(())
    }

    /// Runs a statement of the simple protocol. Returns false if its plan is stale once its tables
    /// are locked.
    fn run_simple(
        &mut self,
        planned: &Arc<Planned>,
        literals: Option<(&str, &Normalized)>,
        taken: &mut TakenLocks,
        client: &mut dyn Client,
    ) -> Result<bool, SqlError> {
        #[cfg(variants)]
        runtime::replaced::relation_size();
        self.check_allowed(planned)?;
        let Some(compiled) = &planned.compiled else {
            client.empty();
            return Ok(true);
        };
        let statement = &*compiled.statement;
        if !self.lock_tables_of(statement, taken)? {
            return Ok(false);
        }
        let Body::Query { .. } = &statement.body else {
            if statement.returns_rows() {
                client.columns(&statement.columns, &[]);
            }
            self.run_command(statement, &[], client)?;
            return Ok(true);
        };
        if statement.returns_rows() {
            client.columns(&statement.columns, &[]);
        }
        let arena = scratch::take_arena();
        let run = literal_values(compiled, literals, &self.environment, &arena).and_then(|values| {
            let chosen = self.plan_by_value(planned, values)?;
            self.run_query(chosen.as_deref().unwrap_or(statement), values, u64::MAX, None, client)
        });
        scratch::give_arena(arena);
        let count = run?;
        self.complete(statement, count, client);
        Ok(true)
    }

    /// Runs the portal of this name until its end, or until it has given `limit` rows.
    ///
    /// # Errors
    /// 55000 for a portal that has run and gives no rows, or has failed.
    pub(super) fn run_portal(
        &mut self,
        (name, portal): (&str, &mut Portal),
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        let Some(planned) = portal.planned.clone() else { return Ok(Executed::Complete) };
        self.check_allowed(&planned)?;
        let Some(first) = &planned.compiled else {
            client.empty();
            return Ok(Executed::Complete);
        };
        if portal.done || portal.kept.is_some() {
            if portal.failed || portal.command.is_none() && !first.statement.returns_rows() {
                return Err(super::not_runnable(name));
            }
            let statement = Arc::clone(&first.statement);
            return self.resume(portal, &statement, limit, client);
        }
        self.run_fresh(portal, &planned, limit, client)
    }

    /// Runs a portal that has not been run yet and keeps all its rows, for FETCH.
    pub(super) fn fill_portal(
        &mut self,
        portal: &mut Portal,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let Some(planned) = portal.planned.clone().filter(|_| !portal.done && portal.kept.is_none()) else {
            return Ok(());
        };
        match planned.compiled.as_ref().map(|compiled| &compiled.statement) {
            Some(statement) if statement.returns_rows() => {
                self.run_fresh(portal, &planned, 0, client).map(drop)
            }
            _ if self.shown_columns(&planned).is_some() => {
                Err(SqlError::unsupported("FETCH from a portal of FETCH or EXECUTE"))
            }
            _ => Err(SqlError::new(SqlState::INTERNAL_ERROR, "unsupported portal strategy")),
        }
    }

    fn run_fresh(
        &mut self,
        portal: &mut Portal,
        planned: &Arc<Planned>,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        let mut planned = Arc::clone(planned);
        let mut taken = TakenLocks::default();
        let mut current = self.is_current(&planned);
        loop {
            let Some(compiled) = &planned.compiled else { return Ok(Executed::Complete) };
            let statement = Arc::clone(&compiled.statement);
            let current_enough = current || !self.depends_on_catalog(&statement);
            if current_enough && self.lock_tables_of(&statement, &mut taken)? {
                return self.run_bound(portal, &statement, limit, client);
            }
            planned = self.replan(&planned, &mut taken)?;
            portal.planned = Some(Arc::clone(&planned));
            // A plan made over uncommitted definitions is valid for this run only.
            current = true;
        }
    }

    /// Runs a portal's statement, whose tables are locked.
    fn run_bound(
        &mut self,
        portal: &mut Portal,
        statement: &Arc<Statement>,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        let arena = scratch::take_arena();
        let (mut kept, mut live, mut command) = (None, None, None);
        let gives = matches!(statement.body, Body::Command(_))
            && portal.planned.as_ref().is_some_and(|planned| self.shown_columns(planned).is_some());
        let run = match portal.values(&statement.parameters, &self.environment, &arena) {
            Err(error) => Err(error),
            Ok(values) => match &statement.body {
                Body::Command(_) if gives => {
                    let keep = limit != u64::MAX;
                    self.run_for_rows(statement, values, keep, client).map(|(ran, rows)| {
                        (command, kept) = (Some(Box::new(ran)), rows);
                        None
                    })
                }
                Body::Command(_) => self.run_command(statement, values, client).map(|()| None),
                Body::Query { .. } => {
                    let chosen = match &portal.planned {
                        Some(planned) => self.plan_by_value(planned, values),
                        None => Ok(None),
                    };
                    chosen.and_then(|chosen| {
                        let statement = chosen.as_ref().unwrap_or(statement);
                        let begun =
                            if limit == u64::MAX { None } else { self.begin_stream(statement, values)? };
                        if begun.is_some() {
                            live = begun;
                            return Ok(None);
                        }
                        self.run_query(statement, values, limit, Some(&mut kept), client).map(Some)
                    })
                }
            },
        };
        scratch::give_arena(arena);
        portal.done = true;
        portal.failed = run.is_err();
        portal.command = command;
        let count = run?;
        if let Some(live) = live {
            let memory = memory::for_kept(self.environment.table.work_mem);
            portal.kept = Some(KeptRows::new(memory).with_stream(live));
            return self.resume(portal, statement, limit, client);
        }
        if let Some(kept) = kept {
            portal.kept = Some(kept);
            // A query has given its first rows, a command has not.
            return match count {
                Some(_) => Ok(Executed::Suspended),
                None => self.resume(portal, statement, limit, client),
            };
        }
        let Some(count) = count else { return Ok(Executed::Complete) };
        self.complete(statement, count, client);
        Ok(Executed::Complete)
    }

    /// Gives more rows of a portal that stopped at its row limit.
    fn resume(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        let mut sent_rows = 0;
        if let Some(kept) = &mut portal.kept {
            let columns = portal.command.as_ref().map_or(&statement.columns, |command| &command.columns);
            let gone = self.give_rows(kept, columns, limit, client);
            portal.failed |= gone.is_err();
            sent_rows = gone?;
            if sent_rows == limit {
                return Ok(Executed::Suspended);
            }
        }
        if portal.kept.as_ref().is_some_and(|kept| !kept.scrolls()) {
            portal.kept = None;
        }
        match &portal.command {
            Some(command) => client.complete(&command.tag(sent_rows)),
            None => self.complete(statement, sent_rows, client),
        }
        Ok(Executed::Complete)
    }

    /// Gives the client at most `limit` of the rows. Returns their number.
    fn give_rows(
        &self,
        kept: &mut KeptRows,
        columns: &[ColumnDesc],
        limit: u64,
        client: &mut dyn Client,
    ) -> Result<u64, SqlError> {
        let mut sent_rows = 0;
        self.environment.before_showing()?;
        while sent_rows < limit {
            let sent = kept.pop(|row| client.row(row, columns, &self.environment))?;
            if sent.is_none() {
                break;
            }
            sent_rows += 1;
            fiber::safe_point();
            interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        }
        Ok(sent_rows)
    }

    /// Runs a query whose tables are locked. Returns the number for its tag. Keeps the rows beyond
    /// a limit.
    pub(super) fn run_query(
        &mut self,
        statement: &Statement,
        values: &[Datum<'_>],
        limit: u64,
        kept: Option<&mut Option<KeptRows>>,
        client: &mut dyn Client,
    ) -> Result<u64, SqlError> {
        let Body::Query { root, tag } = &statement.body else {
            return Err(SqlError::internal("a command where a query was expected"));
        };
        self.begin_statement(statement)?;
        let gives = *tag == QueryTag::Select || !statement.columns.is_empty();
        let limit = if gives { limit } else { u64::MAX };
        let mut sent_rows = 0_u64;
        let mut rest = None;
        let work_mem = self.environment.table.work_mem;
        let keep = || KeptRows::new(memory::for_kept(work_mem));
        let environment = &self.environment;
        let folder = self.shared.engine.folder();
        let mut cx = Executor::new(
            &self.environment.txn,
            &self.shared.row_numbers,
            &environment.catalog,
            values,
            environment,
        );
        cx.fresh = self.block.fresh();
        cx.measures = self.measures.as_ref();
        let run = cx.query(root, statement.registers, &statement.output, &mut |row| {
            if sent_rows >= limit {
                rest.get_or_insert_with(keep).push(folder, row)?;
                return Ok(Flow::More);
            }
            sent_rows += 1;
            if gives {
                environment.before_showing()?;
                client.row(row, &statement.columns, environment)?;
            }
            Ok(Flow::More)
        });
        let affected = cx.affected;
        drop(cx);
        self.environment.txn.statement_end();
        if run.is_err() {
            self.apply_deferred(false, client)?;
        }
        run?;
        // A value may be unfinished because memory ran out. The interrupt says so, and the result
        // must not count.
        interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        if gives {
            // The end of the rows also shows the client what others committed, so it waits for the
            // log as rows do.
            self.environment.before_showing()?;
        }
        if !self.environment.deferred.get_mut().is_empty() {
            self.apply_deferred(true, client)?;
        }
        if let Some(kept) = kept
            && sent_rows == limit
        {
            *kept = Some(rest.unwrap_or_else(keep));
        }
        if affected > 0 {
            self.note_changes(statement, affected);
        }
        Ok(if *tag == QueryTag::Select { sent_rows } else { affected })
    }

    /// Counts the rows that a statement has changed, for autoanalyze.
    pub(super) fn note_changes(&mut self, statement: &Statement, rows: u64) {
        for (table, lock) in &statement.locks {
            if *lock == TableLock::RowExclusive {
                self.changes.note(*table, rows);
            }
        }
    }

    /// Begins every statement, once its tables are locked: refuses writes in a read-only
    /// transaction and takes the snapshot.
    pub(super) fn begin_statement(&mut self, statement: &Statement) -> Result<(), SqlError> {
        if statement.writes && self.environment.characteristics.read_only {
            return Err(read_only_error(written_name(statement)));
        }
        self.take_snapshot(&statement.locks)
    }

    /// When a statement within a block began; the first statement of a transaction begins with it.
    pub(super) fn note_time(&mut self) {
        if self.status() != b'I' {
            self.environment.statement_time = clock();
            self.slot.statement(self.environment.statement_time);
        }
    }

    /// Sends the notices that functions queued. If the statement is `done`, makes the changes that
    /// set_config() queued.
    pub(super) fn apply_deferred(&mut self, done: bool, client: &mut dyn Client) -> Result<(), SqlError> {
        for deferred in self.environment.deferred.take() {
            match deferred {
                Deferred::Notice(notice) => self.tell(client, &notice),
                Deferred::Setting { name, value, local, .. } if done => {
                    self.set(&name, value.as_deref(), local)?;
                }
                Deferred::Setting { .. } => {}
            }
        }
        Ok(())
    }

    fn complete(&mut self, statement: &Statement, count: u64, client: &mut dyn Client) {
        let Body::Query { tag, .. } = &statement.body else { return };
        let word = match tag {
            QueryTag::Select => "SELECT ",
            QueryTag::Insert => "INSERT 0 ",
            QueryTag::Update => "UPDATE ",
            QueryTag::Delete => "DELETE ",
        };
        self.tag.clear();
        self.tag.push_str(word);
        self.tag.push_str(itoa::Buffer::new().format(count));
        client.complete(&self.tag);
    }
}

/// Name of a query that writes or locks rows, for the error of a read-only transaction.
fn written_name(statement: &Statement) -> &'static str {
    match &statement.body {
        Body::Query { tag: QueryTag::Insert, .. } => "INSERT",
        Body::Query { tag: QueryTag::Update, .. } => "UPDATE",
        Body::Query { tag: QueryTag::Delete, .. } => "DELETE",
        Body::Query { tag: QueryTag::Select, root } => locking_name(root),
        Body::Command(_) => "this command",
    }
}

/// The name of a SELECT that locks rows, by its lock.
fn locking_name(plan: &Plan) -> &'static str {
    match &plan.operator {
        Operator::LockRows { targets, .. } => match targets.first().map(|target| target.lock) {
            Some(txn::RowLock::KeyShare) => "SELECT FOR KEY SHARE",
            Some(txn::RowLock::Share) => "SELECT FOR SHARE",
            Some(txn::RowLock::NoKeyUpdate) => "SELECT FOR NO KEY UPDATE",
            Some(txn::RowLock::Update) | None => "SELECT FOR UPDATE",
        },
        Operator::Limit { input, .. } | Operator::Project { input, .. } => locking_name(input),
        Operator::With { body, .. } => locking_name(body),
        _ => "SELECT FOR UPDATE",
    }
}
