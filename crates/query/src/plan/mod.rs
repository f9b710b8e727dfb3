//! The relational plan. The planner makes it, the executor runs it, and sessions share it by `Arc`.
//!
//! A plan is immutable. Every value that flows between its nodes is in a *register*. The registers
//! are one flat array of datums for the whole statement, and each column that a node produces has
//! its own number. So joins concatenate nothing and projections copy nothing: a node fills its
//! registers and calls the node above. What must hold:
//!
//! 1. Register numbers are unique within one statement (subqueries and common table expressions
//!    included) and below [`Statement::registers`]. A node writes only its own registers.
//! 2. An expression reads only registers that are filled before it runs. Nodes below it write them
//!    for the same row. Or the left side of a join writes them, if the expression is on the right
//!    side; or the outer query of a subquery does. Correlation and index nested loops work this
//!    way: the right side reads the left side's registers and runs again for every left row.
//! 3. Keys for scans have exactly the type of the key column they are compared with (the planner
//!    casts).
//! 4. An `second_look` plan runs in the register file of a row that was joined before. It consists
//!    of [`Operator::Joined`] and of nodes that pass on the file they are given.
//! 5. A node that keeps rows (sort, hash join, set operation) names the registers to keep. They are
//!    all those written below it and read by it or above it.

mod choice;
mod command;
mod live;
mod modify;
mod name;
mod node;
mod number;
mod premise;
mod scan;
mod sequence;
mod statistics;
mod unfiltered;
pub mod walk;

use std::sync::Arc;

pub use choice::*;
pub use command::*;
pub use live::may_be_live;
pub use modify::*;
pub use name::QualifiedName;
pub use node::{Estimate, Plan};
pub(crate) use number::number;
pub use premise::*;
pub use scan::*;
pub use sequence::*;
pub use statistics::*;
pub use unfiltered::unfiltered_scans;

use catalog::Catalog;
use expressions::expr::Expr;
use expressions::function::{SetFunction, WindowFunction};
use sync::atomic::{AtomicU64, Ordering};
use values::types::Type;

/// The number of a register.
pub type Reg = u32;

/// A compiled statement: the unit of the plan cache.
#[derive(Debug)]
pub struct Statement {
    /// The work to do.
    pub body: Body,
    /// The result's columns; empty for statements without rows.
    pub columns: Arc<[ColumnDesc]>,
    /// The register of each result column, in order.
    pub output: Vec<Reg>,
    /// The number of registers in the statement's file.
    pub registers: u32,
    /// The type of each parameter `$1`, `$2`, ...
    pub parameters: Arc<[Type]>,
    /// Whether it changes data or takes row locks. A read-only transaction refuses such statements.
    pub writes: bool,
    /// The catalog generation it was planned for, and later ones for which it is as good.
    pub generation: Generation,
    /// The tables it uses and the lock each needs. They are locked before the snapshot, in this
    /// order.
    pub locks: Vec<(u32, txn::TableLock)>,
    /// The estimates by which it was chosen that depend on parameters.
    pub choices: Vec<Choice>,
    /// Its conditions on parameters alone, unless their truths are part of the plan.
    pub premises: Vec<Expr>,
    /// The classes of the values that it was planned with, if they were known.
    pub made_for: Option<Classes>,
}

/// The catalog generation of a plan.
#[derive(Debug)]
pub struct Generation {
    made: u64,
    /// The latest one for which the plan was found good.
    latest: AtomicU64,
}

impl Generation {
    /// That of a plan made for this catalog.
    pub(crate) fn of(catalog: &Catalog) -> Generation {
        Generation { made: catalog.generation, latest: AtomicU64::new(catalog.generation) }
    }

    /// The latest catalog generation for which the plan is known to be good.
    #[inline]
    pub fn latest(&self) -> u64 {
        // Relaxed: the number alone counts. The plan never changes.
        self.latest.load(Ordering::Relaxed)
    }
}

impl Statement {
    /// Whether its plan is good for a catalog. ANALYZE of other tables leaves it good.
    #[inline]
    #[must_use]
    pub fn fits(&self, catalog: &Catalog) -> bool {
        self.generation.latest() == catalog.generation || self.fits_later(catalog)
    }

    #[cold]
    fn fits_later(&self, catalog: &Catalog) -> bool {
        let tables = self.locks.iter().map(|(table, _)| *table);
        let fits =
            self.generation.made < catalog.generation && catalog.keeps_plan(self.generation.made, tables);
        if fits {
            // Relaxed: as in `latest`. A session with an older catalog may put an older number
            // back, which costs another look.
            self.generation.latest.store(catalog.generation, Ordering::Relaxed);
        }
        fits
    }

    /// Whether it returns rows, even if none; Describe reports this.
    #[must_use]
    pub fn returns_rows(&self) -> bool {
        match &self.body {
            Body::Query { tag, .. } => *tag == QueryTag::Select || !self.columns.is_empty(),
            Body::Command(_) => !self.columns.is_empty(),
        }
    }

    /// Whether it is a command around a query that PostgreSQL analyses during PREPARE.
    pub fn analyzes_query(&self) -> bool {
        matches!(&self.body, Body::Command(command)
            if matches!(**command, Command::Explain(_) | Command::CreateTableAs { .. } | Command::DeclareCursor(_)))
    }
}

/// The two kinds of statements.
#[derive(Debug)]
pub enum Body {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE: the relational executor runs it.
    Query {
        /// The tree of operators.
        root: Plan,
        /// The command's name in the completion tag.
        tag: QueryTag,
    },
    /// Any other statement.
    Command(Box<Command>),
}

/// The form of a query's completion tag.
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

/// One column of a result, as RowDescription describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDesc {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// The OID of the table it is an unchanged column of, or 0.
    pub table: u32,
    /// The attribute number in that table, or 0.
    pub attribute: i16,
}

/// A hash join in which a nested loop goes on, once it has met so many left rows that the hash
/// costs less.
#[derive(Debug)]
pub struct HashBeyond {
    /// The left rows that the loop joins by itself.
    pub rows: u64,
    /// The hash join. Its left side is one row: the one that the loop has read.
    pub join: Plan,
}

/// A relational operator.
#[derive(Debug)]
pub enum Operator {
    /// One row without columns, the input of `SELECT 1`.
    OneRow,
    /// No rows, for a condition known to be false.
    Nothing,
    /// Literal rows. The expressions of a row fill the registers `output`, in order.
    Values {
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// The registers they fill.
        output: Vec<Reg>,
    },
    /// A table's rows, through its own tree or a secondary index.
    Scan(Box<Scan>),
    /// Rows of a system relation, computed from the catalog and the running state.
    Virtual {
        /// The relation's oid in the catalog's list of system relations.
        relation: u32,
        /// The columns read and their registers.
        columns: Vec<ColumnRead>,
        /// The condition on rows to keep; None keeps all.
        filter: Option<Expr>,
    },
    /// Rows of set-returning functions side by side. Functions with fewer rows are filled up with
    /// NULL. As the right side of a join it runs again for every left row.
    Function {
        /// The functions.
        calls: Vec<SetCall>,
        /// The register of the row number (WITH ORDINALITY).
        ordinality: Option<Reg>,
    },
    /// The rows for which the condition is true.
    Filter {
        /// The input rows.
        input: Box<Plan>,
        /// The condition.
        condition: Expr,
    },
    /// Computes further registers.
    Project {
        /// The input rows.
        input: Box<Plan>,
        /// Each expression and the register it fills, in order. An expression may read the results
        /// of earlier ones.
        expressions: Vec<(Expr, Reg)>,
    },
    /// Runs the right side for every left row. The right side may read the left side's registers.
    NestedLoop {
        /// The kind. Right and Full are impossible here.
        kind: JoinKind,
        /// The outer side.
        left: Box<Plan>,
        /// The inner side.
        right: Box<Plan>,
        /// The join condition, evaluated over both rows.
        condition: Option<Expr>,
        /// The right side's registers, set to NULL for an unmatched left row.
        right_registers: Vec<Reg>,
        /// The left registers on which the right rows depend, if they are kept by their values.
        /// Then the join has no condition of its own.
        memo: Option<Vec<Reg>>,
        /// How the join goes on if it meets many more left rows than were expected.
        beyond: Option<Box<HashBeyond>>,
    },
    /// Joins rows whose keys are equal. It reads each side once.
    EquiJoin {
        /// The kind. Right and Full need a hash.
        kind: JoinKind,
        /// The side whose rows stream.
        left: Box<Plan>,
        /// The side whose rows are kept. It must not read the left side's registers, but for the
        /// beginning of a merge.
        right: Box<Plan>,
        /// Pairs of key expressions of equal type. The left one reads left registers, the right one
        /// right registers.
        keys: Vec<(Expr, Expr)>,
        /// A further condition on a pair.
        condition: Option<Expr>,
        /// Returns a row if a pair of rows matches, for conditions whose subqueries read both
        /// sides.
        test: Option<Box<Plan>>,
        /// The left registers, set to NULL for an unmatched right row.
        left_registers: Vec<Reg>,
        /// The right registers kept, set to NULL for an unmatched left row.
        right_registers: Vec<Reg>,
        /// How rows of equal keys meet.
        method: EquiMethod,
    },
    /// Runs a subquery for every input row and writes its one result to a register.
    Subquery {
        /// The outer rows.
        input: Box<Plan>,
        /// The subquery. It reads the input's registers if `correlated`.
        subquery: Box<Plan>,
        /// How its rows become the result.
        kind: SubqueryKind,
        /// The register of the result.
        output: Reg,
        /// Whether it must run again for every row. If not, its rows are computed once.
        correlated: bool,
        /// The registers of outer rows on which the result of a correlated subquery depends. Empty
        /// if it may differ between two rows that are equal in these.
        parameters: Vec<Reg>,
        /// The subquery's registers that `kind` reads. A kept row holds these.
        keep: Vec<Reg>,
        /// The rows for which it runs; None means all. For other rows its result is NULL, and
        /// nothing reads it.
        guard: Option<Box<Guard>>,
    },
    /// Groups rows and computes aggregates.
    Aggregate {
        /// The input rows.
        input: Box<Plan>,
        /// Grouping keys and their registers. Without keys there is one group, even for no rows.
        groups: Vec<(Expr, Reg)>,
        /// The aggregates.
        calls: Vec<AggregateCall>,
        /// The registers from which keys and aggregates are computed.
        keep: Vec<Reg>,
        /// Whether rows of one group come one after the other.
        sorted: bool,
    },
    /// Window functions over sorted partitions.
    Window {
        /// Its rows, in any order.
        input: Box<Plan>,
        /// PARTITION BY.
        partition: Vec<Expr>,
        /// ORDER BY within a partition.
        order: Vec<SortKey>,
        /// The functions, all over this one window.
        calls: Vec<WindowCall>,
        /// The registers to keep.
        keep: Vec<Reg>,
        /// The rows to give on; None means all.
        run: Option<Box<RunCondition>>,
    },
    /// Sorts. With `limit` it keeps only that many of the first rows.
    Sort {
        /// The input rows.
        input: Box<Plan>,
        /// The sort keys, most significant first.
        keys: Vec<SortKey>,
        /// The number of leading keys by which the input rows come. Rows that are equal in these
        /// are sorted together, and none of the next ones is read before they are passed on.
        presorted: usize,
        /// The registers to keep.
        keep: Vec<Reg>,
        /// Top-n: the most rows that nodes above ask for (limit plus offset).
        limit: Option<Expr>,
    },
    /// LIMIT and OFFSET, bigint expressions. NULL means no limit.
    Limit {
        /// The input rows.
        input: Box<Plan>,
        /// The most rows to return.
        limit: Option<Expr>,
        /// The number of rows to skip first.
        offset: Option<Expr>,
        /// WITH TIES: rows that equal the last one in these keys follow it. The input is sorted by
        /// them.
        ties: Vec<Expr>,
    },
    /// The first row of each set of equal keys, in input order.
    Distinct {
        /// The input rows.
        input: Box<Plan>,
        /// DISTINCT ON's keys, or all output columns.
        keys: Vec<Expr>,
        /// The registers to keep.
        keep: Vec<Reg>,
    },
    /// UNION, INTERSECT, EXCEPT.
    SetOperation {
        /// The leftmost input.
        first: Box<SetSide>,
        /// The operations, applied from left to right.
        stages: Vec<SetStage>,
        /// The result's columns.
        output: Vec<Reg>,
    },
    /// WITH: the tables and the body that reads them. Each table is computed once, as far as the
    /// body asks for its rows.
    With {
        /// The common table expressions.
        tables: Vec<CommonTable>,
        /// The plan that reads them.
        body: Box<Plan>,
    },
    /// The kept rows of a common table expression, or of the working table inside a recursive one.
    CommonScan {
        /// Its number, as in [`CommonTable::id`].
        id: u32,
        /// The register of each kept column; None if nothing reads it.
        output: Vec<Option<Reg>>,
        /// Whether it is inside that table's recursive term, where it reads the previous
        /// iteration's rows.
        working: bool,
    },
    /// SELECT ... FOR UPDATE and the weaker kinds.
    LockRows {
        /// The input rows.
        input: Box<Plan>,
        /// The rows to lock in each result row.
        targets: Vec<LockTarget>,
        /// The plan of the second look, evaluated when one of the rows has a newer version. None if
        /// there is nothing to evaluate.
        second_look: Option<Box<SecondLook>>,
    },
    /// One row, of rows joined before. Its registers are already filled.
    Joined {
        /// Their registers.
        registers: Vec<Reg>,
        /// If this register is NULL, an outer join found no row, and this node returns none either.
        present: Option<Reg>,
    },
    /// INSERT. It outputs the inserted rows, for RETURNING.
    Insert(Box<Insert>),
    /// UPDATE. It outputs the new versions.
    Update(Box<Update>),
    /// DELETE. It outputs the deleted rows.
    Delete(Box<Delete>),
}

/// How the rows of a join on equal keys meet.
#[derive(Debug)]
pub enum EquiMethod {
    /// A hash table of the right side, which each left row probes.
    Hash {
        /// Whether a node above relies on the order of the left rows.
        ordered: bool,
    },
    /// Both sides come in the order of the keys.
    Merge(Box<MergeOrder>),
}

/// The order of the two sides of a merge join.
#[derive(Debug)]
pub struct MergeOrder {
    /// Whether each key descends.
    pub descending: Vec<bool>,
    /// The left registers that the right side reads, of the first left row with a key.
    pub start: Vec<Reg>,
}

/// The rows for which a subquery runs.
#[derive(Debug)]
pub struct Guard {
    /// Conditions, and registers for whether each is true, computed for every row in order. A later
    /// condition and guards above may read the registers of earlier ones.
    pub flags: Vec<(Expr, Reg)>,
    /// The subquery runs for rows for which all of these are true.
    pub conditions: Vec<Expr>,
}

/// The kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Matching pairs only.
    Inner,
    /// Matching pairs, and left rows without a match.
    Left,
    /// Matching pairs, and right rows without a match.
    Right,
    /// Matching pairs, and rows of both sides without a match.
    Full,
    /// Left rows with a match, once each.
    Semi,
    /// Left rows without a match, with NULLs for the right side.
    Anti,
}

/// The result of a subquery.
#[derive(Debug, Clone)]
pub enum SubqueryKind {
    /// The value of its single row; NULL without a row; error 21000 for more than one.
    Scalar {
        /// The value, over the subquery's registers.
        value: Expr,
    },
    /// Whether it has a row.
    Exists,
    /// Whether an uncorrelated subquery has a row whose values equal those of the outer row. It is
    /// true or false, never NULL. The subquery's rows are hashed.
    Matches {
        /// (outer side, subquery side) of each equality.
        pairs: Vec<(Expr, Expr)>,
    },
    /// `x op ANY (subquery)` (and IN), or `op ALL`, with three-valued logic.
    Quantified {
        /// The comparison, over the outer row's and the subquery's registers.
        comparison: Expr,
        /// ALL instead of ANY.
        all: bool,
        /// For `= ANY` of an uncorrelated subquery: (outer side, subquery side) of each equality,
        /// for hashing.
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
    /// The expression to sort by.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
    /// Whether NULLs come before all other values.
    pub nulls_first: bool,
}

/// One aggregate of an Aggregate node.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// The function.
    pub function: expressions::function::Aggregate,
    /// Its arguments; empty for count(*).
    pub arguments: Vec<Expr>,
    /// Whether it uses each distinct argument only once.
    pub distinct: bool,
    /// The order in which rows are fed.
    pub order: Vec<SortKey>,
    /// FILTER (WHERE ...).
    pub filter: Option<Expr>,
    /// The register of the result.
    pub output: Reg,
}

/// One window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// The function.
    pub function: WindowFunction,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The register of the result.
    pub output: Reg,
}

/// Conditions that end a partition of a window. All functions of the window are row_number(),
/// rank() or dense_rank().
#[derive(Debug)]
pub struct RunCondition {
    /// The first row for which one is not true ends its partition, and is not given on. They read
    /// the window's functions.
    pub conditions: Vec<Expr>,
    /// Top-n of a single partition: no more rows meet the conditions. NULL means none. Its
    /// evaluation cannot fail.
    pub most: Option<Expr>,
    /// Whether the input comes in the order of the window's keys.
    pub in_order: bool,
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

/// An input of a set operation and its columns. All inputs' columns have the same types.
pub type SetSide = (Plan, Vec<Reg>);

/// One operation of a chain.
#[derive(Debug)]
pub struct SetStage {
    /// The kind of operation.
    pub kind: SetKind,
    /// Whether it keeps duplicates.
    pub all: bool,
    /// The inputs on its right. UNION adds the rows of all of them, EXCEPT removes them; INTERSECT
    /// has one input.
    pub sides: Vec<SetSide>,
    /// Whether the rows on its left are distinct.
    pub distinct: bool,
}

/// One WITH query.
#[derive(Debug)]
pub struct CommonTable {
    /// Its number, unique within the statement.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The query; for a recursive one, the non-recursive term.
    pub plan: Plan,
    /// Its columns.
    pub registers: Vec<Reg>,
    /// The recursive term. Its [`Operator::CommonScan`] with the same id reads the previous
    /// iteration's rows.
    pub recursive: Option<RecursiveTerm>,
    /// Whether only one scan reads it, once.
    pub single: bool,
    /// The registers of the surrounding queries that it reads.
    pub around: Vec<Reg>,
}

/// The part of a recursive query after UNION.
#[derive(Debug)]
pub struct RecursiveTerm {
    /// The query.
    pub plan: Plan,
    /// Its columns.
    pub registers: Vec<Reg>,
    /// Whether UNION ALL keeps duplicates.
    pub all: bool,
}

/// One set-returning function.
#[derive(Debug, Clone)]
pub struct SetCall {
    /// The function.
    pub function: SetFunction,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The registers of its columns.
    pub output: Vec<Reg>,
}
