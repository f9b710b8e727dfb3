//! The nodes of scans: the access path, and the conditions that bound it.

use super::names;
use super::node::{Node, Role};
use super::tree::{Explainer, all_of};
use crate::plan::{AccessPath, KeyBound, KeyRange, KeyValue, Scan, TreePart};
use catalog::Table;
use expressions::expr::{Expr, Show};
use values::identifier::quoted;

impl Explainer<'_> {
    /// The node of a scan, without its figures. `removed`: rows that its filter removed in one
    /// loop.
    pub(super) fn scan(&self, scan: &Scan, removed: Option<f64>) -> Node {
        let shown = access(scan).text("Index Cond", self.index_condition(scan));
        let shown = self.combined(shown, scan);
        match &scan.filter {
            Some(filter) => shown.filtered(self.scan_filter(scan, filter), removed),
            None => shown,
        }
    }

    /// The bounded part of a key: columns and the values they are compared with.
    fn index_condition(&self, scan: &Scan) -> Option<String> {
        let table: &Table = &scan.table;
        let (index, key) = match &scan.path {
            AccessPath::Point { key } => (None, key),
            AccessPath::UniquePoint { index, key } => (Some(*index), key),
            AccessPath::Table { ranges, .. } => return self.ranges(table, None, ranges),
            AccessPath::Index { index, ranges, .. } => return self.ranges(table, Some(*index), ranges),
            AccessPath::Combined { .. } => return None,
        };
        let names = key_names(table, index);
        let equal = |(value, name)| format!("({name} = {})", self.show.text(value));
        all_of(key.iter().zip(&names).map(equal).collect())
    }

    /// The conditions of ranges of one tree.
    fn ranges(&self, table: &Table, index: Option<usize>, ranges: &[KeyRange]) -> Option<String> {
        let names = key_names(table, index);
        let name = |at: usize| names.get(at).cloned().unwrap_or_default();
        let mut shown: Vec<String> = ranges.iter().filter_map(|range| self.range(range, &name)).collect();
        match shown.len() {
            1 => shown.pop(),
            _ => Some(format!("({})", shown.join(" OR "))).filter(|_| !shown.is_empty()),
        }
    }

    /// A node with those of the trees whose keys it gathers. They have no figures of their own.
    fn combined(&self, node: Node, scan: &Scan) -> Node {
        let AccessPath::Combined { parts, all } = &scan.path else { return node };
        let part = |part: &TreePart| {
            let (table, kind) = (&scan.table, "Bitmap Index Scan");
            let primary = || table.primary_key.as_ref().map_or("", |key| key.name.as_str());
            let name = part.index.map_or_else(primary, |index| table.indexes[index].name.as_str());
            Node::titled(kind, format!("{kind} on {}", quoted(name)))
                .fact("Index Name", name)
                .text("Index Cond", self.ranges(table, part.index, &part.ranges))
        };
        if let [only] = parts.as_slice() {
            return node.child(Role::Outer, part(only));
        }
        let above = Node::new(if *all { "BitmapAnd" } else { "BitmapOr" });
        let members = parts.iter().fold(above, |above, one| above.child(Role::Member, part(one)));
        node.child(Role::Outer, members)
    }

    /// The conditions of a range on columns with these names.
    fn range(&self, range: &KeyRange, name: &dyn Fn(usize) -> String) -> Option<String> {
        let each = range.equal.iter().enumerate();
        let mut conditions: Vec<String> = each
            .flat_map(|(at, value)| match value {
                KeyValue::One(value) => vec![format!("({} = {})", name(at), self.show.text(value))],
                KeyValue::Null => vec![format!("({} IS NULL)", name(at))],
                KeyValue::List(list) => {
                    let list: Vec<String> = list.iter().map(|value| self.show.text(value)).collect();
                    vec![format!("({} = ANY (ARRAY[{}]))", name(at), list.join(", "))]
                }
                KeyValue::Array(array) => vec![format!("({} = ANY ({}))", name(at), self.show.text(array))],
                KeyValue::Each { between, .. } => self.interval(between, &name(at)),
            })
            .collect();
        conditions.extend(self.interval(range, &name(range.equal.len())));
        all_of(conditions)
    }

    /// The conditions of a range on the column after the leading ones.
    fn interval(&self, range: &KeyRange, next: &str) -> Vec<String> {
        let mut conditions = Vec::new();
        for (bounds, operator) in [(&range.low, ">"), (&range.high, "<")] {
            conditions.extend(bounds.iter().filter_map(|bound| match bound {
                KeyBound::Value { value, inclusive } => {
                    let inclusive = if *inclusive { "=" } else { "" };
                    Some(format!("({next} {operator}{inclusive} {})", self.show.text(compared(value))))
                }
                KeyBound::Pattern { pattern, matching } => {
                    let shown = || format!("({next} {} {})", matching.operator(), self.show.text(pattern));
                    // It stands in both lists.
                    (operator == ">").then(shown)
                }
                KeyBound::NotNull => Some(format!("({next} IS NOT NULL)")),
            }));
        }
        conditions
    }

    /// The filter of a scan. The scan's own table needs no qualification.
    fn scan_filter(&self, scan: &Scan, filter: &Expr) -> String {
        let own: Vec<_> = names::own(scan).collect();
        Show::new(self.show.names, &own, self.show.session).text(filter)
    }
}

/// The value of which an end of a range is the place on the calendar (`planner::moments`), or the
/// end itself.
fn compared(end: &Expr) -> &Expr {
    match end {
        Expr::Case(case) => match case.branches.as_slice() {
            [(Expr::NullTest { input, negated: false }, _)] => input,
            _ => end,
        },
        Expr::Cast(cast) if matches!(cast.input, Expr::Case(_)) => compared(&cast.input),
        _ => end,
    }
}

/// The names of the columns of a table's keys, or of an index's entries.
fn key_names(table: &Table, index: Option<usize>) -> Vec<String> {
    let name = |column: u32| quoted(&table.columns[column as usize].name);
    match index {
        Some(index) => table.entry_keys(index).iter().map(|key| name(key.column)).collect(),
        None => table.row_keys().map(|key| name(key.column)).collect(),
    }
}

/// A node for the access path to a table's rows.
fn access(scan: &Scan) -> Node {
    let primary = scan.table.primary_key.as_ref().map(|key| key.name.as_str());
    let secondary = |index: usize| Some(scan.table.indexes[index].name.as_str());
    let (index, backward) = match &scan.path {
        AccessPath::Point { .. } => (primary, false),
        AccessPath::UniquePoint { index, .. } => (secondary(*index), false),
        AccessPath::Table { ranges, backward } if ranges.iter().any(KeyRange::is_all) => (None, *backward),
        AccessPath::Table { backward, .. } => (primary, *backward),
        AccessPath::Index { index, backward, .. } => (secondary(*index), *backward),
        AccessPath::Combined { .. } => (None, false),
    };
    let kind = match index {
        None if matches!(scan.path, AccessPath::Combined { .. }) => "Bitmap Heap Scan",
        None => "Seq Scan",
        Some(_) if scan.entry.is_some() => "Index Only Scan",
        Some(_) => "Index Scan",
    };
    let mut title = kind.to_owned();
    if backward {
        title.push_str(" Backward");
    }
    if let Some(index) = index {
        title.push_str(&format!(" using {}", quoted(index)));
    }
    title.push_str(&format!(" on {}", quoted(&scan.table.name)));
    let mut shown = Node::titled(kind, title);
    if let Some(index) = index {
        let direction = if backward { "Backward" } else { "Forward" };
        shown = shown.fact("Scan Direction", direction).fact("Index Name", index);
    }
    shown.fact("Relation Name", &*scan.table.name).fact("Alias", &*scan.table.name)
}
