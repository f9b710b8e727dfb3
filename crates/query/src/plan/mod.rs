//! The relational plan: what the planner makes, what the executor runs, what sessions share by
//! `Arc`.
//!
//! A plan is immutable. Every value that flows between its nodes lives in a *register*: one flat
//! array of datums for the whole statement, in which each column a node produces has a number of
//! its own. So joins concatenate nothing and projections copy nothing: a node fills its registers
//! and calls the node above. What must hold:
//!
//! 1. Register numbers are unique within one statement (subqueries and common table expressions
//!    included) and below [`Statement::registers`]. A node writes only its own registers.
//! 2. An expression reads registers written below it in the same row's making, or by the left side
//!    of a join above its own right side, or by the outer query of a subquery. That is how
//!    correlation and index nested loops work: the right side simply reads the left side's
//!    registers and is run again for every left row.
//! 3. Keys handed to scans have exactly the type of the key column they meet (the planner casts).
//! 4. An `again` plan runs over the file of a row that was joined before, in the file itself: it
//!    consists of [`Plan::Joined`] and of nodes that pass on the file they are given.
//! 5. A node that keeps rows (sort, hash join, set operation) names the registers to keep:
//!    everything read above it that was written below it.

mod command;
mod live;
mod modify;
mod name;
mod scan;
mod sequence;
pub mod walk;

use std::sync::Arc;

pub use command::*;
pub use live::may_be_live;
pub use modify::*;
pub use name::QualifiedName;
pub use scan::*;
pub use sequence::*;

use expressions::expr::Expr;
use expressions::function::{SetFunction, WindowFunction};
use values::types::Type;

/// The number of a register.
pub type Reg = u32;

/// A compiled statement: the unit of the plan cache.
#[derive(Debug)]
pub struct Statement {
    /// The action.
    pub body: Body,
    /// The columns of the result and the registers they are in; empty for statements without rows.
    pub columns: Arc<[ColumnDesc]>,
    /// The register of each result column, in order.
    pub output: Vec<Reg>,
    /// How many registers the statement's file has.
    pub registers: u32,
    /// The type of each parameter `$1`, `$2`, ...
    pub parameters: Arc<[Type]>,
    /// Changes data or takes row locks: not allowed in a read-only transaction.
    pub writes: bool,
    /// The catalog generation it was planned against; a different one makes the plan stale.
    pub generation: u64,
    /// The tables it touches and the lock each needs, taken before the snapshot, in this order.
    pub locks: Vec<(u32, txn::TableLock)>,
}

impl Statement {
    /// Whether it gives rows, even if none: what Describe tells.
    #[must_use]
    pub fn returns_rows(&self) -> bool {
        match &self.body {
            Body::Query { tag, .. } => *tag == QueryTag::Select || !self.columns.is_empty(),
            Body::Command(_) => !self.columns.is_empty(),
        }
    }

    /// Whether it is a command around a query that PostgreSQL analyzes as it prepares the command.
    pub fn analyzes_query(&self) -> bool {
        matches!(&self.body, Body::Command(command)
            if matches!(**command, Command::Explain(_) | Command::CreateTableAs { .. } | Command::DeclareCursor(_)))
    }
}

/// The two kinds of statements.
#[derive(Debug)]
pub enum Body {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE: run by the relational executor.
    Query {
        /// The tree of operators.
        root: Plan,
        /// Names the command in the completion tag.
        tag: QueryTag,
    },
    /// Everything else.
    Command(Box<Command>),
}

/// How the completion tag of a query is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryTag {
    /// `SELECT n`, n = rows returned.
    Select,
    /// `INSERT 0 n`.
    Insert,
    /// `UPDATE n`.
    Update,
    /// `DELETE n`.
    Delete,
}

/// One column of a result, as RowDescription tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDesc {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// The table it comes from unchanged, or 0.
    pub table: u32,
    /// The attribute number there, or 0.
    pub attribute: i16,
}

/// A relational operator.
#[derive(Debug)]
pub enum Plan {
    /// One row without columns: `SELECT 1`'s input.
    OneRow,
    /// No rows: a condition known to be false.
    Nothing,
    /// Literal rows; row i's expressions go to registers `output`, in order.
    Values {
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// The registers they fill.
        output: Vec<Reg>,
    },
    /// A table's rows, by its own tree or by a secondary index.
    Scan(Box<Scan>),
    /// Rows of a system relation, computed from the catalog and the running state.
    Virtual {
        /// The relation's oid in the catalog's list of system relations.
        relation: u32,
        /// Which of its columns go to which registers.
        columns: Vec<ColumnRead>,
        /// Kept rows, or all.
        filter: Option<Expr>,
    },
    /// Rows of set-returning functions side by side, those with fewer rows filled up with NULL.
    /// Runs again for every left row when it is the right side of a join.
    Function {
        /// The functions.
        calls: Vec<SetCall>,
        /// Where the row number goes (WITH ORDINALITY).
        ordinality: Option<Reg>,
    },
    /// Rows for which the condition is true.
    Filter {
        /// Its rows.
        input: Box<Plan>,
        /// The condition.
        condition: Expr,
    },
    /// Computes further registers.
    Project {
        /// Its rows.
        input: Box<Plan>,
        /// Each expression and the register it fills, in order; a later one may read an earlier
        /// one.
        expressions: Vec<(Expr, Reg)>,
    },
    /// For every left row runs the right side, which may read the left side's registers.
    NestedLoop {
        /// The kind; Right and Full are not possible here.
        kind: JoinKind,
        /// The outer side.
        left: Box<Plan>,
        /// The inner side.
        right: Box<Plan>,
        /// The join condition, evaluated over both rows.
        condition: Option<Expr>,
        /// The right side's registers set to NULL for an unmatched left row.
        right_registers: Vec<Reg>,
    },
    /// Builds a hash table of the right side, then streams the left side past it.
    HashJoin {
        /// The kind.
        kind: JoinKind,
        /// The probing side.
        left: Box<Plan>,
        /// The side kept in memory; must not read the left side's registers.
        right: Box<Plan>,
        /// Pairs of key expressions of equal type (left over left registers, right over right
        /// registers).
        keys: Vec<(Expr, Expr)>,
        /// The further condition on a pair.
        condition: Option<Expr>,
        /// Gives a row where a pair of rows matches as far as subqueries that read both sides
        /// decide it.
        test: Option<Box<Plan>>,
        /// The left registers set to NULL for an unmatched right row.
        left_registers: Vec<Reg>,
        /// The right registers kept, and set to NULL for an unmatched left row.
        right_registers: Vec<Reg>,
        /// Whether somebody above relies on the left rows' order.
        ordered: bool,
    },
    /// Runs a subquery for every input row and puts its one result in a register.
    Subquery {
        /// The outer rows.
        input: Box<Plan>,
        /// The subquery; reads the input's registers when `correlated`.
        subquery: Box<Plan>,
        /// The use of its rows.
        kind: SubqueryKind,
        /// Where the result goes.
        output: Reg,
        /// Whether it must run again for every row; else its rows are computed once.
        correlated: bool,
        /// The subquery's registers that its kind reads: what a kept row holds.
        keep: Vec<Reg>,
        /// For which rows it runs; for others its result, which nothing reads, is NULL. None: for
        /// all.
        guard: Option<Box<Guard>>,
    },
    /// Groups rows and computes aggregates.
    Aggregate {
        /// Its rows.
        input: Box<Plan>,
        /// Grouping keys and their registers. Empty: one group, even of no rows.
        groups: Vec<(Expr, Reg)>,
        /// The aggregates.
        calls: Vec<AggregateCall>,
        /// The registers keys and aggregates are computed from.
        keep: Vec<Reg>,
    },
    /// Window functions over sorted partitions.
    Window {
        /// Its rows, in any order.
        input: Box<Plan>,
        /// PARTITION BY.
        partition: Vec<Expr>,
        /// ORDER BY within a partition.
        order: Vec<SortKey>,
        /// The functions, all of this one window.
        calls: Vec<WindowCall>,
        /// The registers kept through it.
        keep: Vec<Reg>,
    },
    /// Sorts; with `limit` it keeps only that many of the first rows.
    Sort {
        /// Its rows.
        input: Box<Plan>,
        /// Most significant first.
        keys: Vec<SortKey>,
        /// The registers kept.
        keep: Vec<Reg>,
        /// Top-n: the number of rows ever needed from it (limit plus offset).
        limit: Option<Expr>,
    },
    /// LIMIT and OFFSET, bigint expressions; NULL is no limit.
    Limit {
        /// Its rows.
        input: Box<Plan>,
        /// At most so many.
        limit: Option<Expr>,
        /// Skip so many first.
        offset: Option<Expr>,
        /// WITH TIES: rows equal to the last one in these keys follow (the input is sorted by
        /// them).
        ties: Vec<Expr>,
    },
    /// The first row of each set of equal keys, in input order.
    Distinct {
        /// Its rows.
        input: Box<Plan>,
        /// DISTINCT ON's keys, or all output columns.
        keys: Vec<Expr>,
        /// The registers kept.
        keep: Vec<Reg>,
    },
    /// UNION, INTERSECT, EXCEPT.
    SetOperation {
        /// The leftmost input.
        first: Box<SetSide>,
        /// The operations, done from left to right.
        stages: Vec<SetStage>,
        /// The result's columns.
        output: Vec<Reg>,
    },
    /// WITH: the body, which reads the tables; each is computed once, as far as its rows are asked
    /// for.
    With {
        /// The common table expressions.
        tables: Vec<CommonTable>,
        /// The plan that uses them.
        body: Box<Plan>,
    },
    /// The kept rows of a common table expression (or of the working table inside a recursive one).
    CommonScan {
        /// Its number, as in [`CommonTable::id`].
        id: u32,
        /// Kept column i goes to the register, None when it isn't needed.
        output: Vec<Option<Reg>>,
        /// It is within the recursive term of that table: it reads the last round's rows.
        working: bool,
    },
    /// SELECT ... FOR UPDATE and its weaker kinds.
    LockRows {
        /// Its rows.
        input: Box<Plan>,
        /// The rows to lock in each result row.
        targets: Vec<LockTarget>,
        /// The plan that is evaluated again when one of them has a newer version. None: nothing is.
        again: Option<Box<Again>>,
    },
    /// Rows joined before, whose registers are filled already: one row.
    Joined {
        /// Their registers.
        registers: Vec<Reg>,
        /// NULL in this register: an outer join found no row, and there is none here either.
        present: Option<Reg>,
    },
    /// INSERT; its output rows are the inserted ones, for RETURNING.
    Insert(Box<Insert>),
    /// UPDATE; its output rows are the new versions.
    Update(Box<Update>),
    /// DELETE; its output rows are the deleted ones.
    Delete(Box<Delete>),
    /// One input after the other (plain UNION ALL of inheritance, MERGE's branches); registers are
    /// shared.
    Append(Vec<Plan>),
}

/// For which rows a subquery runs.
#[derive(Debug)]
pub struct Guard {
    /// Conditions and the registers that tell whether they are true, computed for every row, in
    /// order. A later one, and guards above, may read an earlier one.
    pub flags: Vec<(Expr, Reg)>,
    /// Those for which all of these are true.
    pub conditions: Vec<Expr>,
}

/// The kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// And left rows without a match.
    Left,
    /// And right rows without a match.
    Right,
    /// And both.
    Full,
    /// Left rows with a match, once each.
    Semi,
    /// Left rows without one.
    Anti,
}

/// The result of a subquery.
#[derive(Debug, Clone)]
pub enum SubqueryKind {
    /// The value of its single row, NULL when there is none; more rows are error 21000.
    Scalar {
        /// The value, over the subquery's registers.
        value: Expr,
    },
    /// Whether it has a row.
    Exists,
    /// `x op ANY (subquery)` (and IN), or `op ALL`, with three-valued logic.
    Quantified {
        /// The comparison, over the outer row's and the subquery's registers.
        comparison: Expr,
        /// ALL instead of ANY.
        all: bool,
        /// For `= ANY` of an uncorrelated subquery: (outer side, subquery side) of each equality,
        /// so that it can be hashed.
        hash: Option<Vec<(Expr, Expr)>>,
    },
    /// `ARRAY(subquery)`.
    Array {
        /// The element, over the subquery's registers.
        value: Expr,
        /// The array's type.
        type_: Type,
    },
}

/// A sort key.
#[derive(Debug, Clone)]
pub struct SortKey {
    /// The sort key.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
    /// NULLs before everything else.
    pub nulls_first: bool,
}

/// One aggregate of an Aggregate node.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: expressions::function::Aggregate,
    /// Its arguments; empty for count(*).
    pub arguments: Vec<Expr>,
    /// Only distinct arguments.
    pub distinct: bool,
    /// The order rows are fed in.
    pub order: Vec<SortKey>,
    /// FILTER (WHERE ...).
    pub filter: Option<Expr>,
    /// Where the result goes.
    pub output: Reg,
}

/// One window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// The function.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// Where the result goes.
    pub output: Reg,
}

/// The kinds of set operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// UNION
    Union,
    /// INTERSECT
    Intersect,
    /// EXCEPT
    Except,
}

/// An input of a set operation and its columns; those of all inputs have the same types.
pub type SetSide = (Plan, Vec<Reg>);

/// One operation of a chain of them.
#[derive(Debug)]
pub struct SetStage {
    /// Which.
    pub kind: SetKind,
    /// Keep duplicates.
    pub all: bool,
    /// The inputs on its right. UNION adds the rows of all of them, EXCEPT takes them off;
    /// INTERSECT has one.
    pub sides: Vec<SetSide>,
    /// The rows on its left are distinct.
    pub distinct: bool,
}

/// One WITH query.
#[derive(Debug)]
pub struct CommonTable {
    /// Unique within the statement.
    pub id: u32,
    /// The query; of a recursive one the non-recursive term.
    pub plan: Plan,
    /// Its columns.
    pub registers: Vec<Reg>,
    /// The recursive term, whose [`Plan::CommonScan`] of the same id reads the previous round's
    /// rows.
    pub recursive: Option<RecursiveTerm>,
    /// One scan reads it, once.
    pub single: bool,
    /// The registers of the queries around it that it reads.
    pub around: Vec<Reg>,
}

/// The part of a recursive query after UNION.
#[derive(Debug)]
pub struct RecursiveTerm {
    /// The query.
    pub plan: Plan,
    /// Its columns.
    pub registers: Vec<Reg>,
    /// UNION ALL keeps duplicates.
    pub all: bool,
}

/// One set-returning function.
#[derive(Debug, Clone)]
pub struct SetCall {
    /// Which.
    pub function: SetFunction,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The registers of its columns.
    pub output: Vec<Reg>,
}

impl Plan {
    /// A projection of `expressions` over this plan, or the plan itself when there are none.
    #[must_use]
    pub fn project(self, expressions: Vec<(Expr, Reg)>) -> Plan {
        if expressions.is_empty() {
            return self;
        }
        Plan::Project { input: Box::new(self), expressions }
    }

    /// This plan filtered by `condition`, if there is one.
    #[must_use]
    pub fn filter(self, condition: Option<Expr>) -> Plan {
        match condition {
            Some(condition) => Plan::Filter { input: Box::new(self), condition },
            None => self,
        }
    }
}
