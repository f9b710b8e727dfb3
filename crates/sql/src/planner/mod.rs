//! The planner: statement text to plan. [`compile`] is the way in: parse, bind, plan, on the worker's stack, or on a
//! thread beside the cores where that takes long.

mod access;
mod again;
mod chain;
mod common;
mod cost;
pub(crate) mod fold;
mod from;
mod full;
mod guard;
mod join;
mod lists;
mod modify;
mod pending;
mod price;
mod prune;
mod pushdown;
mod query;
mod reads;
pub(crate) mod registers;
#[cfg(test)]
pub(crate) mod sample;
mod sets;
mod stale;
#[cfg(test)]
mod tests;
mod written;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{CreateTableAsStmt, Node, ObjectType, SelectStmt};

use crate::bind::{Binder, Bound, Parameters};
use crate::normalize::{Literal, LiteralUse};
use crate::plan::{Body, Check, ColumnDesc, Command, Plan, Reg, Statement};
use catalog::{Catalog, Table};
use expressions::expr::Expr;
use expressions::function::Volatility;
use values::error::{SqlError, SqlState};
use values::types::Type;

/// What a statement is compiled against.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Arc<Catalog>,
    /// Setting `search_path`, as schema names.
    pub search_path: &'a [String],
    /// How many rows a table has now, by its OID, if that is known without effort.
    pub rows: fn(&Catalog, u32) -> Option<f64>,
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
    /// Declared types of parameters (OIDs; 0 or missing = to be inferred). None: the text may have no parameters.
    pub parameters: Option<&'a [u32]>,
    /// The text's literals as normalised; those the plan can do without become parameters after the declared ones.
    /// Empty for none (EXPLAIN, PREPARE, several statements in one text).
    pub literals: &'a [Literal],
    /// Where a text of several statements keeps its copy for those that are compiled beside the core.
    pub copy: Option<&'a OnceCell<Arc<Box<str>>>>,
}

impl<'a> Request<'a> {
    /// A whole text without declared parameters and lifted literals.
    #[must_use]
    pub fn plain(text: &'a str) -> Request<'a> {
        Request { text, start: 0, end: text.len(), parameters: Some(&[]), literals: &[], copy: None }
    }

    /// The text for a thread beside the core, which needs all of it: for positions, and for what is kept with the text.
    fn copied(&self) -> Result<Arc<Box<str>>, SqlError> {
        if let Some(copy) = self.copy.and_then(OnceCell::get) {
            return Ok(Arc::clone(copy));
        }
        let copy = Arc::new(values::work::owned_text(self.text)?);
        Ok(Arc::clone(self.copy.map_or(&copy, |kept| kept.get_or_init(|| Arc::clone(&copy)))))
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
    values::work::here_or_beside(
        || compile_here(context, request),
        || {
            let catalog = Arc::clone(context.catalog);
            let (path, rows) = (context.search_path.to_vec(), context.rows);
            let (text, start, end) = (request.copied()?, request.start, request.end);
            let (parameters, literals) = (request.parameters.map(<[u32]>::to_vec), request.literals.to_vec());
            Ok(move || {
                let context = Context { catalog: &catalog, search_path: &path, rows };
                let (parameters, literals) = (parameters.as_deref(), &literals[..]);
                let request = Request { text: &text, start, end, parameters, literals, copy: None };
                compile_here(&context, &request)
            })
        },
    )
}

/// [`compile`] on the stack it is called on.
///
/// # Errors
/// As [`compile`].
pub fn compile_here(context: &Context<'_>, request: &Request<'_>) -> Result<Option<Compiled>, SqlError> {
    let text = request.text.get(request.range()).unwrap_or_default();
    let tree = crate::parse::parse(text).map_err(|error| moved(error, request))?;
    match &tree.statements[..] {
        [] => Ok(None),
        [parsed] => Ok(Some(compile_node(context, request, &parsed.node)?)),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "cannot insert multiple commands into a prepared statement",
        )),
    }
}

/// An error's position within the statement as one within the client's text.
fn moved(mut error: SqlError, request: &Request<'_>) -> SqlError {
    let before = request.text.get(..request.start).map_or(0, |text| text.chars().count());
    error.position = error.position.map(|position| position + u32::try_from(before).unwrap_or(0));
    error
}

/// Compiles a parsed statement.
pub(crate) fn compile_node(
    context: &Context<'_>,
    request: &Request<'_>,
    node: &NodeEnum,
) -> Result<Compiled, SqlError> {
    match node {
        // SELECT INTO is CREATE TABLE AS under another name.
        NodeEnum::SelectStmt(select) if select.into_clause.is_some() => {
            compile_command(context, request, &into_create(select))
        }
        NodeEnum::SelectStmt(_)
        | NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_) => compile_query(context, request, node),
        _ => compile_command(context, request, node),
    }
}

fn compile_query(
    context: &Context<'_>,
    request: &Request<'_>,
    node: &NodeEnum,
) -> Result<Compiled, SqlError> {
    let mut refused: Vec<usize> = Vec::new();
    loop {
        let mut binder = Binder::new(context, request, &refused);
        let bound = match binder.bind(node) {
            Ok(bound) => bound,
            Err(error) => return Err(error.with_resolved(binder.locks)),
        };
        if binder.refused.len() > refused.len() {
            refused.clone_from(&binder.refused);
            continue;
        }
        let Parameters { declared, uses, .. } = binder.finish()?;
        let statement = match plan_bound(&mut binder, bound) {
            Ok(statement) => statement,
            Err(error) => return Err(error.with_resolved(binder.locks)),
        };
        return Ok(Compiled { statement: Arc::new(statement), declared, uses });
    }
}

/// A column's default as an expression that reads nothing.
pub(crate) fn default_value(catalog: &Arc<Catalog>, table: &Table, column: usize) -> Result<Expr, SqlError> {
    let bind = move |catalog: &Arc<Catalog>, table: &Table| {
        let context = Context { catalog, search_path: &[], rows: |_, _| None };
        Binder::new(&context, &Request::plain(""), &[]).default_value(table, column)
    };
    values::work::here_or_beside(
        || bind(catalog, table),
        || {
            let (catalog, table) = (Arc::clone(catalog), table.clone());
            Ok(move || bind(&catalog, &table))
        },
    )
}

/// The checks of a table's rows, and the register their first column is read from.
pub(crate) fn row_checks(catalog: &Arc<Catalog>, table: &Arc<Table>) -> Result<(Reg, Vec<Check>), SqlError> {
    let bind = |catalog: &Arc<Catalog>, table: &Arc<Table>| {
        let context = Context { catalog, search_path: &[], rows: |_, _| None };
        let request = Request::plain("");
        let mut binder = Binder::new(&context, &request, &[]);
        let first = binder.register_block(table.columns.len());
        Ok((first, binder.checks(table, first)?))
    };
    values::work::here_or_beside(
        || bind(catalog, table),
        || {
            let (catalog, table) = (Arc::clone(catalog), Arc::clone(table));
            Ok(move || bind(&catalog, &table))
        },
    )
}

/// Whether a query may wait between its rows while its session runs other statements: it reads tables and changes nothing,
/// and all that it computes is the same now and later. What PostgreSQL computes before the first row, with the errors that
/// come of it, is left to those that run at once.
pub(crate) fn may_be_live(root: &Plan) -> bool {
    let mut may = !matches!(
        root,
        Plan::Virtual { .. } | Plan::LockRows { .. } | Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_)
    );
    fold::exprs(root, &mut |expr| {
        may &= expr.volatility() < Volatility::Volatile && !expr.computes_ahead();
    });
    registers::children(root, &mut |child| may = may && may_be_live(child));
    may
}

/// Plans a bound query with its binder, which knows the registers.
pub(crate) fn plan_bound(binder: &mut Binder<'_>, bound: Bound) -> Result<Statement, SqlError> {
    let parameters = binder.finish()?.types;
    let mut planner = query::Planner::new(binder);
    let planned = planner.statement(bound)?;
    let mut root = planned.root;
    fold::plan(&mut root);
    registers::fill(&mut root, planned.columns.iter().map(|column| column.register).collect());
    let columns: Arc<[ColumnDesc]> = planned
        .columns
        .iter()
        .map(|column| {
            let (table, attribute) = column.origin.unwrap_or((0, 0));
            ColumnDesc { name: column.name.clone(), type_: column.type_, table, attribute }
        })
        .collect();
    Ok(Statement {
        body: Body::Query { root, tag: planned.tag },
        columns,
        output: planned.columns.iter().map(|column| column.register).collect(),
        registers: binder.register_count(),
        parameters,
        writes: binder.writes,
        generation: binder.context.catalog.generation,
        locks: std::mem::take(&mut binder.locks),
    })
}

fn compile_command(
    context: &Context<'_>,
    request: &Request<'_>,
    node: &NodeEnum,
) -> Result<Compiled, SqlError> {
    let (command, columns, locks) = crate::bind::bind_command(context, request, node)?;
    let parameters = command_parameters(request.parameters.unwrap_or_default(), &command)?;
    let declared = parameters.len();
    let statement = Statement {
        body: Body::Command(Box::new(command)),
        columns: columns.into(),
        output: Vec::new(),
        registers: 0,
        parameters,
        writes: false,
        generation: context.catalog.generation,
        locks,
    };
    let uses = vec![LiteralUse::Pinned; request.literals.len()];
    Ok(Compiled { statement: Arc::new(statement), declared, uses })
}

/// The parameters of a command: the declared ones, which it need not use, and those of the query in it.
///
/// # Errors
/// 42P18 for one whose type nothing told.
fn command_parameters(declared: &[u32], command: &Command) -> Result<Arc<[Type]>, SqlError> {
    let inner = command.query().map_or(&[][..], |statement| &statement.parameters);
    let count = declared.len().max(inner.len());
    let types = (0..count).map(|index| {
        let told = declared.get(index).filter(|oid| **oid != 0).map(|oid| Type::new(*oid));
        told.or_else(|| inner.get(index).copied()).ok_or_else(|| {
            let message = format!("could not determine data type of parameter ${}", index + 1);
            SqlError::new(SqlState::INDETERMINATE_DATATYPE, message)
        })
    });
    types.collect()
}

/// `SELECT ... INTO table` as `CREATE TABLE table AS SELECT ...`.
fn into_create(select: &SelectStmt) -> NodeEnum {
    let mut query = select.clone();
    let into = query.into_clause.take();
    let query = Node { node: Some(NodeEnum::SelectStmt(Box::new(query))) };
    NodeEnum::CreateTableAsStmt(Box::new(CreateTableAsStmt {
        query: Some(Box::new(query)),
        into,
        objtype: ObjectType::ObjectTable as i32,
        is_select_into: true,
        if_not_exists: false,
    }))
}
