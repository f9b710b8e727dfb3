//! The bound form of queries: names resolved to registers, every expression typed.
//!
//! The binder gives each column of each source a register when the statement first names it. So no
//! later step rewrites expressions. The planner only decides in which order and by which paths the
//! registers are filled. A register replaces each subquery in an expression; [`Sublink`] lists the
//! subquery beside it.

pub(crate) mod reads;
pub(crate) mod walk;

use std::sync::Arc;

use crate::plan::{
    AggregateCall, ConflictUpdate, JoinKind, Reg, RowIdentity, SetCall, SetKind, SortKey, SubqueryKind,
    WindowCall,
};
use catalog::Table;
use expressions::expr::Expr;
use values::types::Type;

/// A bound SELECT, VALUES or set operation.
#[derive(Debug, Clone)]
pub struct Query {
    /// The queries of WITH.
    pub tables: Vec<CommonQuery>,
    /// The source of the rows.
    pub body: QueryBody,
    /// The result's columns.
    pub output: Vec<OutputColumn>,
    /// ORDER BY, over registers of the body.
    pub order: Vec<SortKey>,
    /// LIMIT, a bigint.
    pub limit: Option<Expr>,
    /// OFFSET, a bigint.
    pub offset: Option<Expr>,
    /// Subqueries in LIMIT and OFFSET.
    pub(crate) limit_sublinks: Vec<Sublink>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    /// The locking clauses (FOR UPDATE and the like): (source, lock, wait).
    pub locks: Vec<(SourceId, txn::RowLock, txn::Wait)>,
}

impl Query {
    /// A query of a body and its columns, without further clauses.
    pub(super) fn of(body: QueryBody, output: Vec<OutputColumn>) -> Query {
        Query {
            tables: Vec::new(),
            body,
            output,
            order: Vec::new(),
            limit: None,
            offset: None,
            limit_sublinks: Vec::new(),
            ties: false,
            locks: Vec::new(),
        }
    }

    /// A query without rows and columns, in place of one that moves.
    pub(super) fn none() -> Query {
        Query::of(
            QueryBody::Values { rows: Vec::new(), output: Vec::new(), sublinks: Vec::new() },
            Vec::new(),
        )
    }
}

/// A column of a result.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// The register of its value.
    pub register: Reg,
    /// The table and attribute number, if it is an unchanged column of a table.
    pub origin: Option<(u32, i16)>,
}

/// The source of a query's rows.
#[derive(Debug, Clone)]
pub enum QueryBody {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES.
    Values {
        /// The rows, each with one value for each register of `output`.
        rows: Vec<Vec<Expr>>,
        /// The registers they fill.
        output: Vec<Reg>,
        /// Subqueries in them.
        sublinks: Vec<Sublink>,
    },
    /// UNION, INTERSECT, EXCEPT.
    Set {
        /// The queries from left to right; their columns have the same types.
        sides: Vec<Query>,
        /// The operations between the sides, applied from left to right; true means ALL.
        steps: Vec<(SetKind, bool)>,
        /// The registers of the result.
        output: Vec<Reg>,
    },
}

/// A bound SELECT without its ORDER BY and LIMIT.
#[derive(Debug, Clone, Default)]
pub struct Select {
    /// FROM; None means one row without columns.
    pub from: Option<FromItem>,
    /// WHERE, as conditions that must all hold.
    pub conditions: Vec<Expr>,
    /// Whether there is a GROUP BY, an aggregate or a HAVING.
    pub(crate) grouped: bool,
    /// GROUP BY.
    pub groups: Vec<(Expr, Reg)>,
    /// Aggregates.
    pub aggregates: Vec<AggregateCall>,
    /// HAVING.
    pub(crate) having: Vec<Expr>,
    /// Window functions, those of one window together.
    pub windows: Vec<Window>,
    /// Set-returning functions that GROUP BY reads: they run below the grouping.
    pub(crate) grouped_sets: Vec<SetCall>,
    /// Set-returning functions of the target list: they run side by side, above the grouping.
    pub sets: Vec<SetCall>,
    /// The register for the row number of `sets` (functions of FROM WITH ORDINALITY).
    pub ordinality: Option<Reg>,
    /// Computed columns of the result, hidden sort keys included.
    pub targets: Vec<(Expr, Reg)>,
    /// DISTINCT.
    pub distinct: Distinct,
    /// Subqueries in any of these expressions.
    pub sublinks: Vec<Sublink>,
}

/// DISTINCT.
#[derive(Debug, Clone, Default)]
pub enum Distinct {
    /// ALL.
    #[default]
    No,
    /// DISTINCT: all output columns.
    All(Vec<Expr>),
    /// DISTINCT ON.
    On(Vec<Expr>),
}

/// One window and its functions.
#[derive(Debug, Clone)]
pub struct Window {
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The functions.
    pub calls: Vec<WindowCall>,
    /// Conditions of the query around it that end a partition where one is false. The planner moves
    /// them here.
    pub(crate) run: Vec<Expr>,
}

impl Window {
    /// The expressions of PARTITION BY and ORDER BY.
    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.partition.iter_mut().chain(self.order.iter_mut().map(|key| &mut key.expr))
    }
}

/// A subquery inside an expression. The expression reads `output` instead.
#[derive(Debug, Clone)]
pub struct Sublink {
    /// The register of its result.
    pub output: Reg,
    /// The query.
    pub query: Query,
    /// How its rows become the result.
    pub kind: SubqueryKind,
}

/// A WITH query.
#[derive(Debug, Clone)]
pub struct CommonQuery {
    /// Its number, unique in the statement.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its query; for a recursive one, the non-recursive term.
    pub query: Query,
    /// The recursive term, and whether UNION ALL adds its rows.
    pub recursive: Option<(Query, bool)>,
    /// MATERIALIZED: its rows are computed once, even for one reader.
    pub(crate) materialized: bool,
    /// NOT MATERIALIZED: it stands in place of each reader.
    pub(crate) inlined: bool,
}

/// The number of a source of rows within the statement.
pub type SourceId = usize;

/// FROM.
#[derive(Debug, Clone)]
pub enum FromItem {
    /// One source.
    Source(SourceId, Source),
    /// A join. `condition` holds ON and USING as conditions that must all hold.
    Join {
        /// Inner, left, right or full.
        kind: JoinKind,
        /// Left side.
        left: Box<FromItem>,
        /// Right side.
        right: Box<FromItem>,
        /// ON and USING.
        condition: Vec<Expr>,
        /// Whether a comma joins the sides, not JOIN.
        listed: bool,
        /// Whether the planner may join the items of both sides in any order, and how many they
        /// are. `None`: each side is joined by itself. `Some(0)`: nobody has counted them.
        items: Option<usize>,
    },
}

/// A source of rows.
#[derive(Debug, Clone)]
pub enum Source {
    /// A table or a system relation. The binder keeps its registers
    /// ([`crate::bind::SourceRegisters`]).
    Table(Arc<Table>),
    /// A subquery; its output registers are read directly.
    Query(Box<Query>),
    /// Functions side by side, and the register of the row number (WITH ORDINALITY).
    Function(Vec<SetCall>, Option<Reg>),
    /// A WITH query, by number. The binder has the registers of its columns.
    Common(u32),
}

/// A bound statement.
#[derive(Debug)]
pub enum Bound {
    /// SELECT and VALUES.
    Query(Box<Query>),
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Change>),
    /// DELETE.
    Delete(Box<Change>),
}

/// INSERT.
#[derive(Debug)]
pub struct Insert {
    /// The queries of WITH.
    pub tables: Vec<CommonQuery>,
    /// The table.
    pub table: Arc<Table>,
    /// The rows. None means one row: DEFAULT VALUES, or the single row of VALUES, whose expressions
    /// are in `values`.
    pub input: Option<Query>,
    /// A value for each column.
    pub values: Vec<Expr>,
    /// Subqueries in them.
    pub sublinks: Vec<Sublink>,
    /// The first of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints.
    pub checks: Vec<crate::plan::Check>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
    /// RETURNING.
    pub(crate) returning: Returning,
}

/// ON CONFLICT.
#[derive(Debug)]
pub struct Conflict {
    /// The unique key in which a conflict counts.
    pub arbiter: Option<crate::plan::Arbiter>,
    /// DO UPDATE.
    pub update: Option<ConflictUpdate>,
}

/// UPDATE or DELETE.
#[derive(Debug)]
pub struct Change {
    /// The queries of WITH.
    pub tables: Vec<CommonQuery>,
    /// The table.
    pub table: Arc<Table>,
    /// The changed table's source in `from`.
    pub target: SourceId,
    /// The registers that identify the row.
    pub identity: RowIdentity,
    /// The target, the items joined with it, and WHERE.
    pub select: Select,
    /// SET.
    pub assignments: Vec<crate::plan::Assignment>,
    /// The first of the new row's registers (UPDATE).
    pub new_row: Reg,
    /// CHECK constraints (UPDATE).
    pub checks: Vec<crate::plan::Check>,
    /// RETURNING.
    pub(crate) returning: Returning,
}

/// RETURNING.
#[derive(Debug, Default)]
pub(crate) struct Returning {
    /// Its columns; empty without RETURNING.
    pub output: Vec<OutputColumn>,
    /// The computed columns.
    pub targets: Vec<(Expr, Reg)>,
    /// Subqueries in them.
    pub sublinks: Vec<Sublink>,
}
