//! The planner: statement text to plan. [`compile`] is the way in: parse, bind, plan, on the worker's stack.

use std::ops::Range;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::error::SqlError;
use crate::normalize::{Literal, LiteralUse};
use crate::plan::Statement;

/// What a statement is compiled against.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Arc<Catalog>,
    /// Setting `search_path`, as schema names.
    pub search_path: &'a [String],
    /// How many rows a table has now, by its OID, if that is known without effort.
    pub rows: &'a (dyn Fn(u32) -> Option<f64> + Sync),
}

/// What to compile.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The text the client sent: positions in errors refer to it.
    pub text: &'a str,
    /// The statement's part of it, as [`crate::parse::split`] gives it.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Declared types of parameters (OIDs; 0 or missing = to be inferred).
    pub parameters: &'a [u32],
    /// The text's literals as normalised; those the plan can do without become parameters after the declared ones.
    /// Empty for none (EXPLAIN, PREPARE, several statements in one text).
    pub literals: &'a [Literal],
}

impl<'a> Request<'a> {
    /// A whole text without lifted literals.
    #[must_use]
    pub fn plain(text: &'a str) -> Request<'a> {
        Request { text, start: 0, end: text.len(), parameters: &[], literals: &[] }
    }

    /// The statement's range.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// A compiled statement.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The plan. Its parameters are the declared and inferred ones, then the lifted literals.
    pub statement: Arc<Statement>,
    /// How many of the parameters the client gives (`$1`...); the rest are lifted literals.
    pub declared: usize,
    /// What became of each literal of the request.
    pub uses: Vec<LiteralUse>,
}

/// Compiles one statement. None: the text is empty (or a comment).
///
/// # Errors
/// Whatever is wrong with the statement, with code and position as PostgreSQL gives them.
pub fn compile(context: &Context<'_>, request: &Request<'_>) -> Result<Option<Compiled>, SqlError> {
    runtime::fiber::on_worker_stack(|| compile_here(context, request))
}

/// [`compile`] on the stack it is called on.
///
/// # Errors
/// As [`compile`].
pub fn compile_here(_context: &Context<'_>, _request: &Request<'_>) -> Result<Option<Compiled>, SqlError> {
    todo!()
}
