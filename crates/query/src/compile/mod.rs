//! Compiling: from a statement's text to an immutable statement. [`compile`] is the entry: parse,
//! bind, plan. It runs on the worker's stack, or for long work on a thread beside the cores.
//!
//! Queries are bound and planned here. The modules below bind all other statements. A statement
//! that contains a query (EXPLAIN, COPY, CREATE TABLE AS) compiles the query here, too.
//!
//! What must hold:
//!
//! 1. Compiling reads the catalog, the search path and the request, and nothing else of the
//!    session. So sessions share the result, and another thread may compute it.
//! 2. Compiling has no effect. Work that outgrows its budget begins anew elsewhere.
//! 3. A statement has the generation of the catalog that it was compiled against.
//! 4. A refusal has the locks of the tables that were found so far. The session takes them before
//!    it believes the error.
//! 5. A literal that was lifted and turned out to be needed as a constant is refused by its number.
//!    Then the statement is bound again with that literal in place.

#[cfg(test)]
mod bind_tests;
mod command;
mod copy;
mod cursor;
mod databases;
mod define;
mod maintenance;
mod owner;
#[cfg(test)]
mod sample;
mod sequence;
mod storage;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use catalog::{Catalog, Table};
use expressions::expr::Expr;
use pg_query::NodeEnum;
use pg_query::protobuf::{CreateTableAsStmt, Node, ObjectType, SelectStmt};
use values::error::{SqlError, SqlState};
use values::types::{Type, Value};

use crate::bind::{Binder, Parameters};
use crate::compile::command::Locks;
use crate::normalize::LiteralUse;
use crate::plan::{Body, Check, Command, Generation, Reg, Statement};
use crate::planner::plan_bound;
use crate::request::{Assigned, Context, Request};

/// A compiled statement.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The plan. Its parameters are the declared and inferred ones, then the lifted literals.
    pub statement: Arc<Statement>,
    /// The number of parameters that the client supplies (`$1`...). The rest are lifted literals.
    pub declared: usize,
    /// The use of each literal of the request.
    pub uses: Vec<LiteralUse>,
}

/// A statement that cannot be compiled.
#[derive(Debug)]
pub struct Refused {
    /// The reason, with PostgreSQL's code and position.
    pub error: SqlError,
    /// The tables that the statement's names stand for, with its lock on each. PostgreSQL refuses
    /// such a statement only after it has got these locks.
    pub resolved: Locks,
}

impl From<SqlError> for Refused {
    fn from(error: SqlError) -> Refused {
        Refused { error, resolved: Locks::new() }
    }
}

impl From<Refused> for SqlError {
    fn from(refused: Refused) -> SqlError {
        refused.error
    }
}

/// Compiles one statement. None: the text is empty or a comment.
///
/// # Errors
/// Any error in the statement.
pub fn compile(context: &Context<'_>, request: &Request<'_>) -> Result<Option<Compiled>, Refused> {
    values::work::here_or_beside(
        || compile_here(context, request),
        || {
            let catalog = Arc::clone(context.catalog);
            let path = context.search_path.to_vec();
            let (text, start, end) = (request.copied()?, request.start, request.end);
            let (parameters, literals) = (request.parameters.map(<[u32]>::to_vec), request.literals.to_vec());
            let assigned = request.assigned.map(|assigned| (assigned.output, assigned.column.clone()));
            let (values, truths) = (request.values.map(<[Value]>::to_vec), request.truths);
            Ok(move || {
                let context = Context {
                    catalog: &catalog,
                    search_path: &path,
                    sizes: None,
                    methods: Default::default(),
                };
                let (parameters, literals) = (parameters.as_deref(), &literals[..]);
                let assigned = assigned.as_ref();
                let assigned = assigned.map(|(output, column)| Assigned { output: *output, column });
                let values = values.as_deref();
                let (text, copy) = (&**text, None);
                let request =
                    Request { text, start, end, parameters, literals, values, truths, copy, assigned };
                compile_here(&context, &request)
            })
        },
    )
}

/// As [`compile`], on the caller's stack.
///
/// # Errors
/// As [`compile`].
pub fn compile_here(context: &Context<'_>, request: &Request<'_>) -> Result<Option<Compiled>, Refused> {
    let text = request.text.get(request.range()).unwrap_or_default();
    let tree = crate::parse::parse(text).map_err(|error| moved(error, request))?;
    match &tree.statements[..] {
        [] => Ok(None),
        [parsed] => Ok(Some(compile_node(context, request, &parsed.node)?)),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "cannot insert multiple commands into a prepared statement",
        )
        .into()),
    }
}

/// Converts an error's position in the statement to one in the client's text.
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
) -> Result<Compiled, Refused> {
    match node {
        // SELECT INTO means CREATE TABLE AS.
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

fn compile_query(context: &Context<'_>, request: &Request<'_>, node: &NodeEnum) -> Result<Compiled, Refused> {
    let mut refused: Vec<usize> = Vec::new();
    loop {
        let mut binder = Binder::new(context, request, &refused);
        let bound = match binder.bind(node) {
            Ok(bound) => bound,
            Err(error) => return Err(Refused { error, resolved: binder.locks }),
        };
        if binder.refused.len() > refused.len() {
            refused.clone_from(&binder.refused);
            continue;
        }
        let Parameters { declared, uses, .. } = binder.finish()?;
        let statement = match plan_bound(&mut binder, bound) {
            Ok(statement) => statement,
            Err(error) => return Err(Refused { error, resolved: binder.locks }),
        };
        return Ok(Compiled { statement: Arc::new(statement), declared, uses });
    }
}

/// A column's default as an expression that reads no register.
pub fn default_value(catalog: &Arc<Catalog>, table: &Table, column: usize) -> Result<Expr, SqlError> {
    let bind = move |catalog: &Arc<Catalog>, table: &Table| {
        let context = Context { catalog, search_path: &[], sizes: None, methods: Default::default() };
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

/// The checks of a table's rows, and the register from which they read the first column.
pub fn row_checks(catalog: &Arc<Catalog>, table: &Arc<Table>) -> Result<(Reg, Vec<Check>), SqlError> {
    let bind = |catalog: &Arc<Catalog>, table: &Arc<Table>| {
        let context = Context { catalog, search_path: &[], sizes: None, methods: Default::default() };
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

fn compile_command(
    context: &Context<'_>,
    request: &Request<'_>,
    node: &NodeEnum,
) -> Result<Compiled, Refused> {
    let (command, columns, locks) = command::bind_command(context, request, node)?;
    let parameters = command_parameters(request.parameters.unwrap_or_default(), &command)?;
    let declared = parameters.len();
    let statement = Statement {
        body: Body::Command(Box::new(command)),
        columns: columns.into(),
        output: Vec::new(),
        registers: 0,
        parameters,
        writes: false,
        generation: Generation::of(context.catalog),
        locks,
        choices: Vec::new(),
        premises: Vec::new(),
        made_for: None,
    };
    let uses = vec![LiteralUse::Pinned; request.literals.len()];
    Ok(Compiled { statement: Arc::new(statement), declared, uses })
}

/// The parameters of a command: the declared ones, which it need not use, and those of its query.
///
/// # Errors
/// 42P18 for a parameter whose type could not be inferred.
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
