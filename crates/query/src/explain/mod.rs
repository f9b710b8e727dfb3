//! EXPLAIN: a plan as lines of text, or as one JSON document.
//!
//! Nodes, labels and keys have PostgreSQL's names, and stand in its order. What must hold:
//!
//! 1. A node shows the estimate and the figures of the topmost operator that it stands for.
//!    PostgreSQL has no node for a projection, for a condition or for a subquery of an expression.
//! 2. Costs are in PostgreSQL's unit ([`COST_UNIT`]).

mod json;
mod names;
mod node;
mod scan;
mod text;
mod tree;
mod width;

use crate::plan::{Body, ExplainOptions, Statement};
use catalog::Catalog;
use expressions::expr::Show;
use runtime::page_counts::PageCounts;
use values::environment::Environment;
use values::error::SqlError;

type Result<T> = std::result::Result<T, SqlError>;

/// Work of showing a node without its text, in ns: a microsecond or two.
const SHOWING: usize = 2000;

/// The cost that EXPLAIN shows for a row read in order, the planner's unit of work. PostgreSQL's
/// unit is one page read in order. A row costs it 0.01 (`cpu_tuple_cost`) and its part of a page,
/// 1/64 for rows of about 100 bytes.
const COST_UNIT: f64 = 0.025;

/// The figures of a node in one execution of its statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Actual {
    /// The runs of the node.
    pub loops: u64,
    /// The rows that it gave, in all loops together, as the other figures.
    pub rows: u64,
    /// The rows of a scan that its filter removed.
    pub removed: u64,
    /// Nanoseconds until the first row; 0 without timing.
    pub start: u64,
    /// Nanoseconds until the end; 0 without timing.
    pub total: u64,
    /// Pages of the node and of those below it.
    pub pages: PageCounts,
    /// The rows that a nested loop kept of its right side.
    pub memory: Memory,
}

/// The figures of a loop that keeps the rows of its right side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Left rows whose right rows were kept.
    pub hits: u64,
    /// Left rows for which the right side ran.
    pub misses: u64,
    /// Results that were dropped for younger ones.
    pub evictions: u64,
    /// Results that were too large to be kept.
    pub overflows: u64,
    /// The most bytes of one execution.
    pub bytes: u64,
    /// The rows that it gave.
    pub rows: u64,
}

impl Memory {
    /// The figures of two executions.
    #[must_use]
    pub fn with(self, other: Memory) -> Memory {
        Memory {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            evictions: self.evictions + other.evictions,
            overflows: self.overflows + other.overflows,
            bytes: self.bytes.max(other.bytes),
            rows: self.rows + other.rows,
        }
    }
}

/// The figures that EXPLAIN shows beside the plan.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Nanoseconds of planning.
    pub planning: u64,
    /// With ANALYZE: nanoseconds of the execution, and what each node did. Nodes beyond the end
    /// did nothing.
    pub execution: Option<(u64, Vec<Actual>)>,
    /// With SETTINGS: names and values of those that affect planning and are not the default.
    pub settings: Vec<(String, String)>,
}

/// The lines of EXPLAIN's answer. The recursion is as deep as the plan.
pub fn explain(
    statement: &Statement,
    (options, figures): (ExplainOptions, &Figures),
    catalog: &Catalog,
    session: &dyn Environment,
) -> Result<Vec<String>> {
    let Body::Query { root, .. } = &statement.body else { return Ok(vec!["Utility Statement".to_owned()]) };
    let known = names::names(root, catalog, session)?;
    let tree = tree::Explainer {
        show: Show::new(&known.registers, &[], session),
        links: &known.links,
        tables: &known.tables,
        catalog,
        returns: !statement.columns.is_empty(),
        widths: width::widths(statement, root, catalog)?,
        actual: figures.execution.as_ref().map(|(_, actual)| actual.as_slice()),
    };
    let node = tree.node(root)?;
    match options.json {
        true => Ok(vec![json::document(&node, options, figures)?]),
        false => text::lines(&node, options, figures),
    }
}

/// A duration in milliseconds, for so many loops each.
fn milliseconds(nanoseconds: u64, loops: u64) -> f64 {
    nanoseconds as f64 / 1e6 / loops.max(1) as f64
}
