//! The bound form of queries: names resolved to registers, every expression typed.
//!
//! The binder gives each column of each source a register the first time it is named, so
//! expressions need no rewriting later: the planner only decides in which order and by which paths
//! the registers are filled. Subqueries in expressions are replaced by a register and listed beside
//! ([`Sublink`]).

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
    /// WITH.
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
    pub limit_sublinks: Vec<Sublink>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    /// FOR UPDATE and its kin: (source, lock, wait).
    pub locks: Vec<(SourceId, txn::RowLock, txn::Wait)>,
}

impl Query {
    /// A body and its columns, with no clause beside them.
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
}

/// A column of a result.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// Where its value is.
    pub register: Reg,
    /// The table and attribute number it comes from unchanged.
    pub origin: Option<(u32, i16)>,
}

/// The source of a query's rows.
#[derive(Debug, Clone)]
pub enum QueryBody {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES.
    Values {
        /// The rows, each as wide as `output`.
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
        /// The operations between them, which are done from left to right; true: ALL.
        steps: Vec<(SetKind, bool)>,
        /// The registers of the result.
        output: Vec<Reg>,
    },
}

/// A bound SELECT without its ORDER BY and LIMIT.
#[derive(Debug, Clone, Default)]
pub struct Select {
    /// FROM; None = one row without columns.
    pub from: Option<FromItem>,
    /// WHERE, as conditions that must all hold.
    pub conditions: Vec<Expr>,
    /// There is a GROUP BY, an aggregate or a HAVING.
    pub grouped: bool,
    /// GROUP BY.
    pub groups: Vec<(Expr, Reg)>,
    /// Aggregates.
    pub aggregates: Vec<AggregateCall>,
    /// HAVING.
    pub having: Vec<Expr>,
    /// Window functions, those of one window together.
    pub windows: Vec<Window>,
    /// Set-returning functions that GROUP BY reads: they run below the grouping.
    pub grouped_sets: Vec<SetCall>,
    /// Set-returning functions of the target list: they run side by side, above the grouping.
    pub sets: Vec<SetCall>,
    /// Where the number of the rows of `sets` goes (functions of FROM WITH ORDINALITY).
    pub ordinality: Option<Reg>,
    /// Computed columns of the result, hidden sort keys included.
    pub targets: Vec<(Expr, Reg)>,
    /// DISTINCT.
    pub distinct: Distinct,
    /// Subqueries in any of the expressions.
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
}

impl Window {
    /// The expressions of PARTITION BY and ORDER BY.
    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.partition.iter_mut().chain(self.order.iter_mut().map(|key| &mut key.expr))
    }
}

/// A subquery inside an expression: the expression reads `output` instead.
#[derive(Debug, Clone)]
pub struct Sublink {
    /// Where its result goes.
    pub output: Reg,
    /// The query.
    pub query: Query,
    /// The processing of its rows.
    pub kind: SubqueryKind,
}

/// A WITH query.
#[derive(Debug, Clone)]
pub struct CommonQuery {
    /// Unique in the statement.
    pub id: u32,
    /// Its query; the non-recursive term of a recursive one.
    pub query: Query,
    /// The recursive term and whether it is UNION ALL.
    pub recursive: Option<(Query, bool)>,
}

/// Names a source of rows within the statement.
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
    },
}

/// A source of rows.
#[derive(Debug, Clone)]
pub enum Source {
    /// A table or a system relation. Its registers are in [`super::Tables`].
    Table(Arc<Table>),
    /// A subquery; its output registers are read directly.
    Query(Box<Query>),
    /// Functions side by side, and where the row's number goes (WITH ORDINALITY).
    Function(Vec<SetCall>, Option<Reg>),
    /// A WITH query: its number and which register each of its columns goes to.
    Common(u32),
}

/// The action of a statement.
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
    /// WITH.
    pub tables: Vec<CommonQuery>,
    /// The table.
    pub table: Arc<Table>,
    /// The rows; None = one row (DEFAULT VALUES, or the single row of VALUES, whose expressions are
    /// in `values`).
    pub input: Option<Query>,
    /// A value for each column.
    pub values: Vec<Expr>,
    /// Subqueries in them.
    pub sublinks: Vec<Sublink>,
    /// First of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints.
    pub checks: Vec<crate::plan::Check>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
    /// RETURNING.
    pub returning: Returning,
}

/// ON CONFLICT.
#[derive(Debug)]
pub struct Conflict {
    /// The key that decides.
    pub arbiter: Option<crate::plan::Arbiter>,
    /// DO UPDATE.
    pub update: Option<ConflictUpdate>,
}

/// UPDATE or DELETE.
#[derive(Debug)]
pub struct Change {
    /// WITH.
    pub tables: Vec<CommonQuery>,
    /// The table.
    pub table: Arc<Table>,
    /// The table's place in `from`.
    pub target: SourceId,
    /// The registers that identify the row.
    pub identity: RowIdentity,
    /// The target and what it is joined with, and WHERE.
    pub select: Select,
    /// SET.
    pub assignments: Vec<crate::plan::Assignment>,
    /// First of the new row's registers (UPDATE).
    pub new_row: Reg,
    /// CHECK constraints (UPDATE).
    pub checks: Vec<crate::plan::Check>,
    /// RETURNING.
    pub returning: Returning,
}

/// RETURNING.
#[derive(Debug, Default)]
pub struct Returning {
    /// Its columns; empty without one.
    pub output: Vec<OutputColumn>,
    /// The computed ones.
    pub targets: Vec<(Expr, Reg)>,
    /// Subqueries in them.
    pub sublinks: Vec<Sublink>,
}
