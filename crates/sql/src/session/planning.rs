//! From a text to its plan. A plan comes from the caches if it fits the present definitions, or
//! else from the compiler. What must hold: if the binder refuses a text, the client gets the error
//! only once its tables are locked and the error still stands.

use std::cell::RefCell;
use std::sync::Arc;

use runtime::account;

use super::Session;
use super::long::shared;
use super::plans::{self, Planned, Runs, Scope};
use super::resolve::TakenLocks;
use catalog::Table;
use query::compile::{Compiled, Refused};
use query::normalize::Normalized;
use query::plan::{Body, Command, Statement, classes, truths};
use query::request::{Context, Request, Sizes};
use txn::folder::Folder;
use txn::trees::{self, Tree};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// Sizes of tables by the shape of their trees. The planner cannot wait for pages.
struct TreeSizes<'a> {
    folder: &'a Folder,
    /// Trees whose pages are not in the pool.
    absent: RefCell<Vec<Tree>>,
}

impl Sizes for TreeSizes<'_> {
    fn rows(&self, table: &Table) -> Option<f64> {
        let tree = execution::tree(table.tree);
        let size = trees::resident_size(self.folder, tree);
        if size.is_none() {
            self.absent.borrow_mut().push(tree);
        }
        size.map(|size| size.entries)
    }
}

impl Session {
    /// The part of the plan caches that this session uses.
    #[inline]
    pub(super) fn scope(&self) -> Scope {
        Scope {
            instance: self.shared.instance,
            database: self.environment.definitions.oid,
            path: self.environment.table.path_key,
        }
    }

    /// Whether a plan fits the present definitions.
    #[inline]
    pub(super) fn is_current(&self, planned: &Planned) -> bool {
        let Some(compiled) = &planned.compiled else { return !self.block.has_definitions() };
        let (statement, definitions) = (&compiled.statement, &self.environment.definitions);
        // Names may mean other tables under another path.
        !self.block.has_definitions()
            && planned.path == self.environment.table.path_key
            && (definitions.is_current(statement.generation.latest())
                || definitions.is_current(self.environment.catalog.generation)
                    && statement.fits(&self.environment.catalog))
    }

    /// The same plan if it fits the present definitions, else a new one.
    #[inline]
    pub(super) fn current_plan(
        &mut self,
        planned: &Arc<Planned>,
        taken: &mut TakenLocks,
    ) -> Result<Arc<Planned>, SqlError> {
        self.refresh_catalog();
        if self.is_current(planned) { Ok(Arc::clone(planned)) } else { self.replan(planned, taken) }
    }

    /// Whether the statement depends on definitions: queries, and commands that hold plans.
    #[inline]
    pub(super) fn depends_on_catalog(&self, statement: &Statement) -> bool {
        match &statement.body {
            Body::Command(command) => matches!(
                **command,
                Command::Copy(_)
                    | Command::Explain(_)
                    | Command::CreateTableAs { .. }
                    | Command::DeclareCursor(_)
                    | Command::AlterTable { .. }
                    | Command::CreateIndex(_)
                    | Command::CreateTable(_)
            ),
            Body::Query { .. } => true,
        }
    }

    /// The plan for a text that is being prepared. Locks the tables that a query reads or writes,
    /// as a run would, because the client may ask for their columns.
    pub(super) fn plan_prepared(&mut self, text: &str, types: &[u32]) -> Result<Arc<Planned>, SqlError> {
        #[cfg(variants)]
        runtime::replaced::relation_size();
        let mut taken = TakenLocks::default();
        loop {
            let planned = self.plan_text(text, types, &mut taken)?;
            let Some(compiled) = planned.compiled.as_ref().filter(|_| self.status() != b'E') else {
                return Ok(planned);
            };
            let statement = &compiled.statement;
            if matches!(statement.body, Body::Command(_)) && !statement.analyzes_query()
                || self.lock_tables_of(statement, &mut taken)?
            {
                return Ok(planned);
            }
        }
    }

    /// The plan for a text with declared parameter types.
    pub(super) fn plan_text(
        &mut self,
        text: &str,
        types: &[u32],
        taken: &mut TakenLocks,
    ) -> Result<Arc<Planned>, SqlError> {
        loop {
            self.refresh_catalog();
            let scope = self.scope();
            if !self.block.has_definitions()
                && let Some(planned) = plans::by_text(scope, text, types)
                && self.is_current(&planned)
            {
                return Ok(planned);
            }
            taken.compiles_for(&self.environment.catalog);
            match self.compile(&Request { parameters: Some(types), ..Request::plain(text) }) {
                Ok(planned) => {
                    if !self.block.has_definitions() {
                        plans::keep_text(scope, &planned);
                    }
                    return Ok(planned);
                }
                Err(refused) => self.lock_resolved(refused, taken)?,
            }
        }
    }

    /// Makes a stale plan again. Its result must have the former columns, because the client may
    /// know them.
    pub(super) fn replan(
        &mut self,
        planned: &Arc<Planned>,
        taken: &mut TakenLocks,
    ) -> Result<Arc<Planned>, SqlError> {
        let fresh = self.plan_text(&planned.text, &planned.types, taken)?;
        let columns = |planned: &Planned| planned.compiled.as_ref().map(|c| Arc::clone(&c.statement.columns));
        let same = match (columns(planned), columns(&fresh)) {
            (Some(old), Some(new)) => {
                old.len() == new.len() && old.iter().zip(new.iter()).all(|(a, b)| a.type_ == b.type_)
            }
            _ => true,
        };
        match same {
            true => Ok(fresh),
            // Drivers recognise this routine's name and prepare the statement again.
            false => {
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type")
                    .with_routine("RevalidateCachedQuery"))
            }
        }
    }

    /// The plan for these values of a statement whose tables are locked. `None` if its own plan
    /// serves.
    #[inline]
    pub(super) fn plan_by_value(
        &self,
        planned: &Planned,
        values: &[Datum<'_>],
    ) -> Result<Option<Arc<Statement>>, SqlError> {
        match &planned.compiled {
            Some(Compiled { statement, .. })
                if !statement.choices.is_empty() || !statement.premises.is_empty() =>
            {
                self.choose_by_value(planned, values)
            }
            _ => Ok(None),
        }
    }

    /// The truths of premises decide first. The plan for them may have choices of its own.
    fn choose_by_value(
        &self,
        planned: &Planned,
        values: &[Datum<'_>],
    ) -> Result<Option<Arc<Statement>>, SqlError> {
        let Some(compiled) = &planned.compiled else { return Ok(None) };
        let statement = &compiled.statement;
        let lifted = !compiled.uses.is_empty();
        if self.block.has_definitions() || !lifted && self.environment.table.generic_plans {
            return Ok(None);
        }
        let own = |variant: &Planned| variant.compiled.as_ref().map(|made| Arc::clone(&made.statement));
        if !statement.premises.is_empty() {
            let truths = truths(&statement.premises, values);
            let Some(variant) = self.variant(planned, Runs::Truths(truths), values)? else { return Ok(None) };
            return match variant.truths {
                Some(_) => Ok(self.plan_by_value(&variant, values)?.or_else(|| own(&variant))),
                None => Ok(own(&variant)),
            };
        }
        let classes = classes(&statement.choices, values);
        if statement.made_for == Some(classes) {
            return Ok(None);
        }
        Ok(self.variant(planned, Runs::Classes(classes), values)?.as_deref().and_then(own))
    }

    /// The plan of a statement for such runs. `None` if there can be none any more.
    fn variant(
        &self,
        planned: &Planned,
        runs: Runs,
        values: &[Datum<'_>],
    ) -> Result<Option<Arc<Planned>>, SqlError> {
        // Names mean the same to two plans that fit one catalog, so the locks of the one serve the
        // other.
        let fits = |plan: &Planned| {
            plan.compiled.as_ref().is_none_or(|made| made.statement.fits(&self.environment.catalog))
        };
        if !fits(planned) {
            return Ok(None);
        }
        for runs in [runs, Runs::Any] {
            if let Some(known) = plans::by_value(planned.number, runs).filter(|plan| fits(plan)) {
                return Ok(Some(known));
            }
        }
        // Beyond the bound one plan serves all other values.
        let runs = if planned.takes_variant(runs) { runs } else { Runs::Any };
        let mut known = Vec::with_capacity(values.len());
        for value in values.iter().take(if runs == Runs::Any { 0 } else { values.len() }) {
            known.push(value.to_value()?);
        }
        let truths = match runs {
            Runs::Truths(truths) => Some(truths),
            Runs::Classes(_) | Runs::Any => planned.truths,
        };
        let lifted = planned.compiled.as_ref().is_some_and(|compiled| !compiled.uses.is_empty());
        let mut read = Normalized::default();
        if lifted && !read.read(&planned.text) {
            return Ok(None);
        }
        let parameters = (!lifted).then_some(&*planned.types);
        let request = Request {
            parameters,
            literals: &read.literals,
            values: Some(&known),
            truths,
            ..Request::plain(&planned.text)
        };
        let made = match self.compile(&request) {
            Ok(made) => made,
            Err(refused) if refused.error.code.is_stop() => return Err(refused.error),
            // Definitions have changed since: the statement goes on with the plan that it has.
            Err(_) => return Ok(None),
        };
        if !fits(&made) {
            return Ok(None);
        }
        plans::keep_value(planned.number, runs, &made);
        Ok(Some(made))
    }

    /// Compiles a text against the present definitions.
    pub(super) fn compile(&self, request: &Request<'_>) -> Result<Arc<Planned>, Refused> {
        let catalog = &self.environment.catalog;
        let sizes = TreeSizes { folder: self.shared.engine.folder(), absent: RefCell::default() };
        let search_path = &self.environment.table.search_path;
        let methods = self.environment.table.methods;
        let context = Context { catalog, search_path, sizes: Some(&sizes), methods };
        let text = &request.text[request.start..request.end];
        let compile = || account::measure(|| query::compile::compile(&context, request));
        let (mut compiled, mut bytes) = compile();
        let absent = sizes.absent.take();
        if !absent.is_empty() {
            // The plan stays in use, so its tables are worth the reads. A failure shows in the run.
            absent.into_iter().for_each(|tree| drop(trees::size(sizes.folder, tree)));
            (compiled, bytes) = compile();
        }
        let compiled = compiled.map_err(|refused| {
            if self.block.status() != b'E' || refused.error.code.is_stop() {
                return refused;
            }
            // The split finds the same syntax error as PostgreSQL's grammar.
            match query::parse::split(text) {
                Ok(parts) if parts.len() > 1 => refused,
                Ok(_) => Refused::from(SqlError::new(
                    SqlState::IN_FAILED_SQL_TRANSACTION,
                    "current transaction is aborted, commands ignored until end of transaction block",
                )),
                Err(stopped) if stopped.code.is_stop() => stopped.into(),
                Err(_) => refused,
            }
        })?;
        let (types, path) = (request.parameters.unwrap_or_default(), self.environment.table.path_key);
        let text = (shared(text)?, types);
        Ok(Arc::new(Planned::new(text, path, request.truths, compiled, bytes)))
    }
}
