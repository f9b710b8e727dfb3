//! Access paths: how a scan reaches a table's rows.

use super::keys::Bounds;
use super::{Arena, Executor, File, Flow, Sink, combined, scan};
use query::plan::{AccessPath, Scan};
use values::error::SqlError;

/// A scan by whichever path the planner chose.
pub(super) fn rows<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Scan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut bounds = Bounds::from_buffers(cx.take_bytes(), cx.take_bytes());
    let result = match &plan.path {
        AccessPath::Point { key } => scan::point(cx, plan, key, &mut bounds, file, arena, sink),
        AccessPath::UniquePoint { index, key } => {
            scan::unique_point(cx, plan, (&plan.table.indexes[*index], key), &mut bounds, file, arena, sink)
        }
        AccessPath::Table { ranges, backward } => {
            scan::table_ranges(cx, plan, (ranges, *backward), &mut bounds, file, arena, sink)
        }
        AccessPath::Index { index, ranges, backward } => {
            let index = &plan.table.indexes[*index];
            scan::index_ranges(cx, plan, (index, ranges, *backward), &mut bounds, file, arena, sink)
        }
        AccessPath::Combined { parts, all } => {
            combined::rows(cx, plan, (parts, *all), &mut bounds, file, sink)
        }
    };
    let (low, high) = bounds.into_buffers();
    cx.give_bytes(low);
    cx.give_bytes(high);
    result
}
