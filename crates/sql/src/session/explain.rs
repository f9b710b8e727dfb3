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
use query::plan::{Body, Command, CreateTable, Explain, Statement};
use std::sync::Arc;
use values::error::SqlError;
use values::types::Datum;
use values::work::{self, Pace};

/// A query to explain, and the table that EXPLAIN ANALYZE makes from it, with data or
/// without.
struct Shown<'q> {
    query: &'q Arc<Statement>,
    values: &'q [Datum<'q>],
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
        let query = &explain.statement;
        let command = match &query.body {
            Body::Command(command) => Some(&**command),
            Body::Query { .. } => None,
        };
        match command {
            Some(Command::Execute(call)) => self.with_prepared(call, values, |session, query, values| {
                session.show_plan(outer, explain, Shown { query, values, into: None }, client)
            })?,
            Some(Command::CreateTableAsExecute { table, call, with_data }) => {
                self.with_prepared(call, values, |session, query, values| {
                    check_fits(table, query)?;
                    let into = Some((table, *with_data));
                    session.show_plan(outer, explain, Shown { query, values, into }, client)
                })?;
            }
            Some(Command::CreateTableAs { table, query, with_data, .. }) => {
                let into = Some((table, *with_data));
                self.show_plan(outer, explain, Shown { query, values, into }, client)?;
            }
            Some(Command::DeclareCursor(declare)) => {
                let query = &declare.query;
                self.show_plan(outer, explain, Shown { query, values, into: None }, client)?;
            }
            _ => self.show_plan(outer, explain, Shown { query, values, into: None }, client)?,
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
            if explain.analyze {
                self.environment.refuse_read_only("CREATE TABLE AS")?;
            }
            if define::schema_for_table(self, table, client)?.is_none() {
                return Ok(());
            }
        }
        let mut actual = None;
        if explain.analyze && matches!(shown.query.body, Body::Query { .. }) {
            let start = runtime::time::precise();
            let rows = self.run_shown(&shown, client)?;
            actual = Some((rows, runtime::time::precise() - start));
        }
        // A plan may be as deep and as large as the statement that was compiled.
        let (query, session, json) = (shown.query, &self.environment, explain.json);
        let lines = work::here_or_beside(
            || query::explain::explain(query, actual, json, session),
            || {
                let (query, writing) = (Arc::clone(query), session.writing());
                Ok(move || query::explain::explain(&query, actual, json, &writing))
            },
        )?;
        let mut pace = Pace::new();
        for line in lines {
            pace.step()?;
            client.row(&[Datum::Text(&line)], &outer.columns, &self.environment)?;
        }
        Ok(())
    }

    /// Runs a query, or makes a table from it. Returns the number of rows.
    fn run_shown(&mut self, shown: &Shown<'_>, client: &mut dyn Client) -> Result<u64, SqlError> {
        let mut sink = RowSink { row: &mut |_| Ok(()), client };
        let Some((table, with_data)) = shown.into else {
            return self.run_query(shown.query, shown.values, u64::MAX, None, &mut sink);
        };
        let tag_without_data = (!with_data).then_some("CREATE TABLE AS");
        self.environment.txn.statement_start().map_err(from_txn)?;
        let rows = define::table_as(self, (table, shown.query, tag_without_data), shown.values, &mut sink);
        self.environment.txn.statement_end();
        rows
    }
}
