//! EXPLAIN. For EXECUTE, CREATE TABLE AS and DECLARE CURSOR it shows the plan of their query.
//!
//! What must hold:
//!
//! 1. The plan is the one that would run now: EXPLAIN EXECUTE locks the tables and replaces a stale
//!    plan first.
//! 2. Without ANALYZE the query does not run. With ANALYZE it runs and CREATE TABLE AS makes its
//!    table, which a read-only transaction refuses.
//! 3. With ANALYZE the client gets none of the query's rows, but all its notices.
//! 4. Writing a plan may take as long as compiling it took, so a long one is written beside the
//!    core.

use super::Session;
use super::command::RowSink;
use super::define;
use super::prepared::check_fits;
use execution::client::Client;
use execution::from_txn;
use execution::measures::Measures;
use query::explain::{Actual, Figures};
use query::plan::{Body, Command, CreateTable, Explain, Plan, Statement};
use std::sync::Arc;
use values::error::SqlError;
use values::types::Datum;
use values::work::{self, Pace};

/// A query to explain, and the table that EXPLAIN ANALYZE makes from it, with data or
/// without.
struct Shown<'q> {
    query: &'q Arc<Statement>,
    values: &'q [Datum<'q>],
    /// Nanoseconds of its planning.
    planning: u64,
    into: Option<(&'q CreateTable, bool)>,
}

impl Session {
    /// EXPLAIN. `outer` is the EXPLAIN statement itself.
    pub(super) fn explain(
        &mut self,
        outer: &Statement,
        explain: &Explain,
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let (query, planning) = (&explain.statement, explain.planning);
        let begun = runtime::time::precise();
        let command = match &query.body {
            Body::Command(command) => Some(&**command),
            Body::Query { .. } => None,
        };
        match command {
            Some(Command::Execute(call)) => self.with_prepared(call, values, |session, query, values| {
                let planning = runtime::time::precise() - begun;
                session.show_plan(outer, explain, Shown { query, values, planning, into: None }, client)
            })?,
            Some(Command::CreateTableAsExecute { table, call, with_data }) => {
                self.with_prepared(call, values, |session, query, values| {
                    check_fits(table, query)?;
                    let planning = runtime::time::precise() - begun;
                    let into = Some((table, *with_data));
                    session.show_plan(outer, explain, Shown { query, values, planning, into }, client)
                })?;
            }
            Some(Command::CreateTableAs { table, query, with_data, .. }) => {
                let into = Some((table, *with_data));
                self.show_plan(outer, explain, Shown { query, values, planning, into }, client)?;
            }
            Some(Command::DeclareCursor(declare)) => {
                let query = &declare.query;
                self.show_plan(outer, explain, Shown { query, values, planning, into: None }, client)?;
            }
            _ => self.show_plan(outer, explain, Shown { query, values, planning, into: None }, client)?,
        }
        client.complete("EXPLAIN");
        Ok(())
    }

    /// Sends a plan's lines. ANALYZE runs the plan before. Sends none if IF NOT EXISTS finds the
    /// table.
    fn show_plan(
        &mut self,
        outer: &Statement,
        explain: &Explain,
        shown: Shown<'_>,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        if let Some((table, _)) = shown.into {
            if explain.options.analyze {
                self.environment.refuse_read_only("CREATE TABLE AS")?;
            }
            if define::schema_for_table(self, table, client)?.is_none() {
                return Ok(());
            }
        }
        let options = explain.options;
        let mut figures = Figures { planning: shown.planning, ..Figures::default() };
        if options.settings {
            figures.settings = self.environment.table.planning();
        }
        if options.analyze
            && let Body::Query { root, .. } = &shown.query.body
        {
            figures.execution = Some(self.measured(root, options.timing, &shown, client)?);
        }
        // A plan may be as deep and as large as the statement that was compiled.
        let (query, session) = (shown.query, &self.environment);
        let lines = work::here_or_beside(
            || query::explain::explain(query, (options, &figures), &session.catalog, session),
            || {
                let (query, writing) = (Arc::clone(query), session.writing());
                let (catalog, figures) = (Arc::clone(&session.catalog), figures.clone());
                Ok(move || query::explain::explain(&query, (options, &figures), &catalog, &writing))
            },
        )?;
        let mut pace = Pace::new();
        for line in lines {
            pace.step()?;
            client.row(&[Datum::Text(&line)], &outer.columns, &self.environment)?;
        }
        Ok(())
    }

    /// Runs a query and measures its nodes. Returns the nanoseconds of the whole, and what each
    /// node did.
    fn measured(
        &mut self,
        root: &Plan,
        timing: bool,
        shown: &Shown<'_>,
        client: &mut dyn Client,
    ) -> Result<(u64, Vec<Actual>), SqlError> {
        let begun = runtime::time::precise();
        self.measures = Some(Measures::new(root, timing));
        let run = self.run_shown(shown, client);
        let measures = self.measures.take();
        run?;
        let actual = measures.map(Measures::into_actual).unwrap_or_default();
        Ok((runtime::time::precise() - begun, actual))
    }

    /// Runs a query, or makes a table from it.
    fn run_shown(&mut self, shown: &Shown<'_>, client: &mut dyn Client) -> Result<(), SqlError> {
        let mut sink = RowSink { row: &mut |_| Ok(()), client };
        let Some((table, with_data)) = shown.into else {
            return self.run_query(shown.query, shown.values, u64::MAX, None, &mut sink).map(drop);
        };
        let tag_without_data = (!with_data).then_some("CREATE TABLE AS");
        self.environment.txn.statement_start().map_err(from_txn)?;
        let rows = define::table_as(self, (table, shown.query, tag_without_data), shown.values, &mut sink);
        self.environment.txn.statement_end();
        rows.map(drop)
    }
}
