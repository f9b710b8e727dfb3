//! Figures of the nodes of a plan in execution, for EXPLAIN ANALYZE.
//!
//! What must hold:
//!
//! 1. A statement without measures does no work for them. [`super::stack::lower`] alone looks for
//!    them, and only a statement with measures always calls it.
//! 2. A node's time is that of its operator and of the plans below it. Operators above it work in
//!    its sink, so the time in the sink is not its own. Nor are the pages that they look at.
//! 3. The filter of a measured scan runs here, so that the rows it removes are counted. The scan
//!    itself then has no filter.

use std::cell::RefCell;

use runtime::hash::HashMap;
use runtime::page_counts::{self, PageCounts};

use super::{Arena, Executor, File, Flow, Sink, access, operate, scan};
use query::explain::{Actual, Memory};
use query::plan::{ColumnRead, Operator, Plan, Scan, unfiltered_scans};
use values::error::SqlError;

/// The figures of a statement in execution, by the number of the node.
pub struct Measures {
    timing: bool,
    nodes: RefCell<Vec<Actual>>,
    /// The scans that have a filter, without it.
    unfiltered: HashMap<u32, Scan>,
}

impl Measures {
    /// Measures of a plan's nodes, with or without their times.
    #[must_use]
    pub fn new(root: &Plan, timing: bool) -> Measures {
        Measures { timing, nodes: RefCell::default(), unfiltered: unfiltered_scans(root) }
    }

    /// The figures of the nodes by number. A node that never ran may be missing at the end.
    #[must_use]
    pub fn into_actual(self) -> Vec<Actual> {
        self.nodes.into_inner()
    }

    /// Adds up what a nested loop kept of its right side.
    pub(super) fn memory(&self, node: u32, kept: Memory) {
        self.add(node, Actual { memory: kept, ..Actual::default() });
    }

    fn clock(&self) -> u64 {
        if self.timing { runtime::time::precise() } else { 0 }
    }

    fn add(&self, node: u32, ran: Actual) {
        let mut nodes = self.nodes.borrow_mut();
        let node = node as usize;
        if nodes.len() <= node {
            nodes.resize(node + 1, Actual::default());
        }
        let sum = &mut nodes[node];
        *sum = Actual {
            loops: sum.loops + ran.loops,
            rows: sum.rows + ran.rows,
            removed: sum.removed + ran.removed,
            start: sum.start + ran.start,
            total: sum.total + ran.total,
            pages: sum.pages + ran.pages,
            memory: sum.memory.with(ran.memory),
        };
    }
}

/// A scan whose rows are tested here.
enum Tested<'s> {
    Table(&'s Scan),
    System(u32, &'s [ColumnRead]),
}

/// Runs a node and adds up what it did.
pub(super) fn run<'s, 'x>(
    measures: &'s Measures,
    (cx, plan): (&mut Executor<'s>, &'s Plan),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let (begun, pages) = (measures.clock(), page_counts::now());
    let (mut rows, mut start, mut above, mut pages_above) = (0, None, 0, PageCounts::default());
    let counted: &mut Sink<'s, '_> = &mut |cx, file, arena| {
        let (came, pages) = (measures.clock(), page_counts::now());
        rows += 1;
        start.get_or_insert(came - begun);
        let flow = sink(cx, file, arena);
        above += measures.clock() - came;
        pages_above = pages_above + (page_counts::now() - pages);
        flow
    };
    let mut removed = 0;
    // A scan of a second look, which no node shows, tests its rows itself.
    let tested = match (&plan.operator, measures.unfiltered.get(&plan.node)) {
        (Operator::Scan(scan), Some(bare)) => scan.filter.as_ref().zip(Some(Tested::Table(bare))),
        (Operator::Virtual { relation, columns, filter: Some(filter) }, _) => {
            Some((filter, Tested::System(*relation, columns)))
        }
        _ => None,
    };
    let result = match tested {
        None => operate(cx, plan, file, arena, counted),
        Some((filter, source)) => {
            let sink: &mut Sink<'s, '_> = &mut |cx, file, arena| {
                if cx.test(filter, file, arena)? {
                    return counted(cx, file, arena);
                }
                removed += 1;
                Ok(Flow::More)
            };
            match source {
                Tested::Table(bare) => access::rows(cx, bare, file, arena, sink),
                Tested::System(relation, columns) => {
                    scan::virtual_scan(cx, (relation, columns, None), file, sink)
                }
            }
        }
    };
    let total = measures.clock() - begun - above;
    let (start, pages) = (start.unwrap_or(total), page_counts::now() - pages - pages_above);
    let memory = Memory::default();
    measures.add(plan.node, Actual { loops: 1, rows, removed, start, total, pages, memory });
    result
}
