//! WITH: which plans read which common table.
//!
//! A table that no plan reads is left out: it does not run, whatever its query does. (WITH holds queries only; a
//! statement that changes data would have to stay.)

use super::registers::children;
use crate::plan::{Again, CommonTable, Plan};

/// A body with the tables that it reads, or that one of those reads.
pub(super) fn with_tables(mut tables: Vec<CommonTable>, body: Plan) -> Plan {
    // Backwards: a table reads earlier ones only, so the readers of each are known to stay when it is looked at.
    for at in (0..tables.len()).rev() {
        let id = tables[at].id;
        let count =
            readers(&body, id, 1) + tables.iter().map(|table| table_readers(table, id, 1)).sum::<u32>();
        match count {
            0 => drop(tables.remove(at)),
            count => tables[at].single = count == 1,
        }
    }
    if tables.is_empty() {
        return body;
    }
    Plan::With { tables, body: Box::new(body) }
}

/// Calls `visit` with the number of every common table a plan scans.
pub(super) fn scanned(plan: &Plan, visit: &mut dyn FnMut(u32)) {
    if let Plan::CommonScan { id, .. } = plan {
        visit(*id);
    }
    children(plan, &mut |child| scanned(child, visit));
}

/// Number of operators of a plan that stand on each other.
pub(super) fn height(plan: &Plan) -> u32 {
    let mut below = 0;
    children(plan, &mut |child| below = below.max(height(child)));
    below + 1
}

/// Number of times a plan scans a table: `weight` for each scan, 2 for one that may run again.
fn readers(plan: &Plan, id: u32, weight: u32) -> u32 {
    let mut count = 0;
    match plan {
        Plan::CommonScan { id: scanned, working, .. } => {
            return if *scanned == id && !working { weight } else { 0 };
        }
        Plan::NestedLoop { left, right, .. } => return readers(left, id, weight) + readers(right, id, 2),
        Plan::Subquery { input, subquery, .. } => {
            return readers(input, id, weight) + readers(subquery, id, 2);
        }
        Plan::With { tables, body } => {
            return readers(body, id, weight)
                + tables.iter().map(|table| table_readers(table, id, weight)).sum::<u32>();
        }
        Plan::LockRows { again, .. } => count += again_readers(again.as_deref(), id),
        Plan::Update(update) => count += again_readers(update.again.as_deref(), id),
        Plan::Delete(delete) => count += again_readers(delete.again.as_deref(), id),
        _ => {}
    }
    children(plan, &mut |child| count += readers(child, id, weight));
    count
}

/// The recursive term of another table runs again and again.
fn table_readers(table: &CommonTable, id: u32, weight: u32) -> u32 {
    readers(&table.plan, id, weight) + table.recursive.as_ref().map_or(0, |term| readers(&term.plan, id, 2))
}

/// A plan that is evaluated again for a row runs beside the rest of the statement.
fn again_readers(again: Option<&Again>, id: u32) -> u32 {
    let Some(again) = again else { return 0 };
    let matches = again.matches.iter().flat_map(|part| std::iter::once(&part.subquery).chain(&part.plan));
    matches.chain(&again.plan).map(|plan| readers(plan, id, 2)).sum()
}
