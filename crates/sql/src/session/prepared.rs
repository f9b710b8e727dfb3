//! A session's named prepared statements, made by Parse or by PREPARE, and EXECUTE.
//!
//! EXECUTE computes its arguments, writes them in binary and binds them to a portal, as the
//! protocol's Bind does. So a parameter has one way into a statement.
//!
//! What must hold:
//!
//! 1. [`PreparedStatements::insert`] gets a name that is free: its callers refuse a known one. It
//!    counts an entry's bytes once and does not look for a former entry.
//! 2. `bytes` is the sum of all entries' bytes. An idle session's account of memory keeps this
//!    number, so a wrong one stays wrong between statements.
//! 3. An entry's plan may be stale. A run takes the present plan for it and runs that only after
//!    the plan's tables are locked.
//! 4. An argument is converted to the parameter's type before it is written, so its bytes have the
//!    form that the type reads. The binary form keeps the whole value. A text would depend on
//!    settings such as extra_float_digits.
//! 5. A session that comes to another core shares plans with sessions of the old one. Each use
//!    writes a plan's count of references, so its line would travel between the cores. The next
//!    Bind or EXECUTE of a statement takes this core's plan instead. No statement checks for this:
//!    the entries lie in `brought`, where a lookup comes only if `by_name` has none.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use runtime::hash::QuickMap;

use super::Session;
use super::plans::{self, Planned};
use super::portal::Portal;
use super::resolve::TakenLocks;
use catalog::pg_catalog::Prepared;
use execution::client::Client;
use expressions::context::EvalContext;
use expressions::expr::Expr;
use expressions::functions;
use query::plan::{Body, CreateTable, PreparedCall, QueryTag, Statement};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// A prepared statement.
struct Entry {
    planned: Arc<Planned>,
    /// The text that held the PREPARE. `None` for a statement of the extended protocol.
    source: Option<Arc<str>>,
    created: i64,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.planned.bytes + self.source.as_ref().map_or(0, |source| source.len())
    }
}

/// The arguments of EXECUTE as Bind takes them.
struct Arguments {
    /// Each one's bytes; None is NULL.
    values: Vec<Option<Vec<u8>>>,
    /// Each one's format: 1 for binary, 0 for the text of a literal without a type.
    formats: Vec<i16>,
}

impl Arguments {
    /// A portal of `planned` with these arguments.
    fn portal(&self, planned: &Arc<Planned>) -> Portal {
        let values: Vec<Option<&[u8]>> = self.values.iter().map(Option::as_deref).collect();
        let mut portal = Portal::default();
        portal.open(Arc::clone(planned), &values, &self.formats, &[]);
        portal
    }
}

/// Prepared statements by name, which the client chooses.
#[derive(Default)]
pub(super) struct PreparedStatements {
    by_name: QuickMap<String, Entry>,
    /// Statements that came from another core with the session and have not been used here.
    brought: QuickMap<String, Entry>,
    bytes: usize,
}

impl PreparedStatements {
    /// Bytes of their plans and texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.brought.contains_key(name)
    }

    fn get(&self, name: &str) -> Option<&Arc<Planned>> {
        self.by_name.get(name).map(|entry| &entry.planned)
    }

    /// The session has come to another core.
    fn bring(&mut self) {
        if self.brought.is_empty() {
            self.brought = std::mem::take(&mut self.by_name);
        } else {
            self.brought.extend(self.by_name.drain());
        }
    }

    /// Gives a brought statement a plan of this core.
    fn settle(&mut self, name: &str, planned: Arc<Planned>) {
        let Some((name, mut entry)) = self.brought.remove_entry(name) else { return };
        self.bytes -= entry.bytes();
        entry.planned = planned;
        self.bytes += entry.bytes();
        self.by_name.insert(name, entry);
    }

    /// Keeps a statement, made at the time `created` from a PREPARE in `source`.
    pub fn insert(&mut self, name: &str, planned: Arc<Planned>, source: Option<Arc<str>>, created: i64) {
        let entry = Entry { planned, source, created };
        self.bytes += entry.bytes();
        self.by_name.insert(name.to_owned(), entry);
    }

    /// Forgets a statement, where there is one of this name.
    pub fn remove(&mut self, name: &str) {
        let entry = self.by_name.remove(name).or_else(|| self.brought.remove(name));
        self.bytes -= entry.map_or(0, |entry| entry.bytes());
    }

    pub fn clear(&mut self) {
        *self = PreparedStatements::default();
    }

    /// The statements as pg_prepared_statements shows them.
    pub fn list(&self) -> Vec<Prepared> {
        let mut names: Vec<_> = self.by_name.iter().chain(&self.brought).collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let listed = |(name, entry): (&String, &Entry)| {
            let compiled = entry.planned.compiled.as_ref();
            let parameters = compiled.map_or(&[][..], |compiled| {
                let types = &compiled.statement.parameters;
                types.get(..compiled.declared).unwrap_or(types)
            });
            Prepared {
                name: name.clone(),
                statement: entry.source.as_ref().unwrap_or(&entry.planned.text).to_string(),
                created: entry.created,
                parameters: parameters.iter().map(|type_| type_.oid).collect(),
                results: super::columns_of(&entry.planned)
                    .map(|columns| columns.iter().map(|column| column.type_.oid).collect()),
                by_command: entry.source.is_some(),
            }
        };
        names.into_iter().map(listed).collect()
    }
}

impl Session {
    /// A prepared statement as it is.
    pub(super) fn find_prepared(&self, name: &str) -> Result<&Arc<Planned>, SqlError> {
        let prepared = &self.environment.prepared;
        let found = if name.is_empty() { self.unnamed.as_ref() } else { prepared.get(name) };
        let found = found.or_else(|| prepared.brought.get(name).map(|entry| &entry.planned));
        found.ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                _ => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// A prepared statement for a run, with a plan of this core.
    #[inline]
    pub(super) fn take_prepared(&mut self, name: &str) -> Result<Arc<Planned>, SqlError> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.environment.prepared.get(name) };
        match found {
            Some(planned) => Ok(Arc::clone(planned)),
            None => self.take_brought(name),
        }
    }

    #[cold]
    fn take_brought(&mut self, name: &str) -> Result<Arc<Planned>, SqlError> {
        let brought = Arc::clone(self.find_prepared(name)?);
        let planned = self.own_plan(&brought)?;
        self.environment.prepared.settle(name, Arc::clone(&planned));
        Ok(planned)
    }

    /// A plan of this core for the same statement. The same plan if another one could differ, since
    /// definitions or the search path have changed: a run makes it anew if it must.
    fn own_plan(&mut self, planned: &Arc<Planned>) -> Result<Arc<Planned>, SqlError> {
        self.refresh_catalog();
        let is_same = planned.compiled.is_some() && self.is_current(planned) && self.status() != b'E';
        if is_same { self.replan(planned, &mut TakenLocks::default()) } else { Ok(Arc::clone(planned)) }
    }

    /// The session has come to this core with its prepared statements. The unnamed one is mostly
    /// parsed anew before its next use, so it only takes a plan that this core has.
    pub(super) fn bring_statements(&mut self) {
        self.environment.prepared.bring();
        if let Some(unnamed) = &self.unnamed
            && self.is_current(unnamed)
            && let Some(own) = plans::by_text(self.scope(), &unnamed.text, &unnamed.types)
            && self.is_current(&own)
        {
            self.unnamed = Some(own);
        }
    }

    /// Converts an argument of EXECUTE to the parameter's type.
    fn as_parameter(&self, planned: &Planned, at: usize, argument: &Expr) -> Result<Expr, SqlError> {
        let types = planned.compiled.as_ref().map(|compiled| &compiled.statement.parameters);
        let Some(&type_) = types.and_then(|types| types.get(at)) else { return Ok(argument.clone()) };
        let argument_type = argument.type_();
        if argument_type.oid == values::types::oid::UNKNOWN {
            if let Some(values::types::Value::Text(text)) = argument.as_const() {
                values::text::parse(text, type_, &self.environment, &bumpalo::Bump::new())?;
            }
            return Ok(argument.clone());
        }
        functions::cast(argument.clone(), type_, functions::CastContext::Assignment).map_err(|_| {
            let message = format!(
                "parameter ${} of type {argument_type} cannot be coerced to the expected type {type_}",
                at + 1
            );
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
        })
    }

    /// The arguments of EXECUTE. `values`: the parameters of the EXECUTE itself.
    fn execute_arguments(
        &self,
        planned: &Planned,
        call: &PreparedCall,
        values: &[Datum<'_>],
    ) -> Result<Arguments, SqlError> {
        let declared = planned.compiled.as_ref().map_or(0, |compiled| compiled.declared);
        let PreparedCall { name, arguments, places } = call;
        // PostgreSQL ignores the arguments for a statement without parameters.
        if declared == 0 {
            return Ok(Arguments { values: Vec::new(), formats: Vec::new() });
        }
        if declared != arguments.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                .with_detail(format!("Expected {declared} parameters but got {}.", arguments.len())));
        }
        let arena = bumpalo::Bump::new();
        let (mut given, mut formats) = (Vec::with_capacity(declared), Vec::with_capacity(declared));
        for (at, (argument, place)) in arguments.iter().zip(places).enumerate() {
            let argument = self.as_parameter(planned, at, argument).map_err(|error| error.at(*place))?;
            let value = argument.eval(&mut EvalContext::new(&[], values, &arena, &self.environment))?;
            let type_ = argument.type_();
            let (mut bytes, untyped) = (Vec::new(), type_.oid == values::types::oid::UNKNOWN);
            values::binary::write(value, type_, &mut bytes)?;
            given.push((!value.is_null()).then_some(bytes));
            formats.push(i16::from(!untyped));
        }
        Ok(Arguments { values: given, formats })
    }

    /// EXECUTE.
    pub(super) fn execute_prepared(
        &mut self,
        call: &PreparedCall,
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let planned = self.take_prepared(&call.name)?;
        let mut portal = self.execute_arguments(&planned, call, values)?.portal(&planned);
        if let Some(columns) = super::columns_of(&planned) {
            client.columns(&columns, &[]);
        }
        self.run_portal(("", &mut portal), u64::MAX, client)?;
        Ok(())
    }

    /// Calls `then` with the plan of a prepared statement, whose tables it locks, and with the
    /// parameters' values.
    pub(super) fn with_prepared<T>(
        &mut self,
        call: &PreparedCall,
        values: &[Datum<'_>],
        then: impl FnOnce(&mut Session, &Arc<Statement>, &[Datum<'_>]) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let mut planned = self.take_prepared(&call.name)?;
        let arguments = self.execute_arguments(&planned, call, values)?;
        let arena = bumpalo::Bump::new();
        let mut taken = TakenLocks::default();
        loop {
            planned = self.current_plan(&planned, &mut taken)?;
            let Some(query) = planned.compiled.as_ref().map(|compiled| Arc::clone(&compiled.statement))
            else {
                return Err(no_select());
            };
            if !self.lock_tables_of(&query, &mut taken)? {
                continue;
            }
            let portal = arguments.portal(&planned);
            let values = portal.values(&query.parameters, &self.environment, &arena)?;
            let query = self.plan_by_value(&planned, values)?.unwrap_or(query);
            return then(self, &query, values);
        }
    }

    /// CREATE TABLE AS EXECUTE.
    pub(super) fn create_from_prepared(
        &mut self,
        (table, call, with_data): (&CreateTable, &PreparedCall, bool),
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        self.with_prepared(call, values, |session, query, values| {
            check_fits(table, query)?;
            let tag_without_data = (!with_data).then_some("SELECT 0");
            super::define::table_as(session, (table, query, tag_without_data), values, client).map(drop)
        })
    }
}

/// Refuses a statement that CREATE TABLE AS EXECUTE cannot make a table from. Refuses as well more
/// column names than the query has columns.
pub(super) fn check_fits(table: &CreateTable, query: &Statement) -> Result<(), SqlError> {
    if !matches!(&query.body, Body::Query { tag, .. } if *tag == QueryTag::Select) {
        return Err(no_select());
    }
    if table.columns.len() > query.columns.len() {
        let message = "too many column names were specified";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    Ok(())
}

fn no_select() -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT")
}
