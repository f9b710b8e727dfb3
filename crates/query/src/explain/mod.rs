//! EXPLAIN: a plan as lines of text, or as one JSON document.
//!
//! Nodes and labels have PostgreSQL's names. Projections have no node of their own, as there.

mod names;

use crate::plan::{
    AccessPath, Body, JoinKind, KeyBound, KeyRange, KeyValue, Operator, Plan, RunCondition, Scan, SetKind,
    SortKey, Statement, TreePart,
};
use catalog::Table;
use expressions::expr::{Expr, Show};
use values::environment::Environment;
use values::error::SqlError;
use values::identifier::quoted;
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

/// Work of showing a node without its text, in ns: a microsecond or two.
const SHOWING: usize = 2000;

/// A node as EXPLAIN shows it.
struct Node {
    title: String,
    /// Details: label and text of each.
    details: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

impl Node {
    fn with(mut self, label: &'static str, text: Option<String>) -> Node {
        self.details.extend(text.map(|text| (label, text)));
        self
    }

    /// The node with one more condition on its rows.
    fn filtered(mut self, condition: String) -> Node {
        match self.details.iter_mut().find(|(label, _)| *label == "Filter") {
            Some((_, own)) => *own = format!("({own} AND {condition})"),
            None => self.details.push(("Filter", condition)),
        }
        self
    }
}

/// The lines of EXPLAIN's answer. `actual`: rows and nanoseconds of a run. The recursion is as deep
/// as the plan.
pub fn explain(
    statement: &Statement,
    actual: Option<(u64, u64)>,
    json: bool,
    session: &dyn Environment,
) -> Result<Vec<String>> {
    let Body::Query { root, .. } = &statement.body else { return Ok(vec!["Utility Statement".to_owned()]) };
    let names = names::names(root, session)?;
    let node = Explainer { show: Show::new(&names, &[], session) }.node(root)?;
    let mut lines = Vec::new();
    if json {
        let mut text = String::from("[{\"Plan\": ");
        write_json(&node, &mut text)?;
        if let Some((rows, nanoseconds)) = actual {
            text.push_str(&format!(
                ", \"Actual Rows\": {rows}, \"Execution Time\": {:.3}",
                nanoseconds as f64 / 1e6
            ));
        }
        text.push_str("}]");
        return Ok(vec![text]);
    }
    write_text(&node, 0, &mut lines)?;
    if let Some((rows, nanoseconds)) = actual {
        if let Some(first) = lines.first_mut() {
            first.push_str(&format!(" (actual rows={rows})"));
        }
        lines.push(format!("Execution Time: {:.3} ms", nanoseconds as f64 / 1e6));
    }
    Ok(lines)
}

fn write_text(node: &Node, depth: usize, lines: &mut Vec<String>) -> Result<()> {
    // A line's length grows with the node's depth.
    work::tick(SHOWING + depth * (1 + node.details.len()))?;
    lines.push(match depth {
        0 => node.title.clone(),
        _ => format!("{:indent$}->  {}", "", node.title, indent = depth * 6 - 4),
    });
    for (label, text) in &node.details {
        lines.push(format!("{:indent$}{label}: {text}", "", indent = depth * 6 + 2));
    }
    for child in &node.children {
        write_text(child, depth + 1, lines)?;
    }
    Ok(())
}

fn write_json(node: &Node, text: &mut String) -> Result<()> {
    work::tick(SHOWING)?;
    text.push_str(&format!("{{\"Node Type\": \"{}\"", escaped(&node.title)));
    for (label, shown) in &node.details {
        text.push_str(&format!(", \"{label}\": \"{}\"", escaped(shown)));
    }
    if !node.children.is_empty() {
        text.push_str(", \"Plans\": [");
        for (at, child) in node.children.iter().enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            write_json(child, text)?;
        }
        text.push(']');
    }
    text.push('}');
    Ok(())
}

/// A text escaped for the quotes of JSON.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if c < ' ' => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

fn leaf(title: impl Into<String>) -> Node {
    Node { title: title.into(), details: Vec::new(), children: Vec::new() }
}

fn join(method: &str, kind: JoinKind) -> String {
    match kind {
        JoinKind::Inner => method.to_owned(),
        JoinKind::Left => format!("{method} Left Join"),
        JoinKind::Right => format!("{method} Right Join"),
        JoinKind::Full => format!("{method} Full Join"),
        JoinKind::Semi => format!("{method} Semi Join"),
        JoinKind::Anti => format!("{method} Anti Join"),
    }
}

/// A node's title for the access path to a table's rows.
fn scan_title(scan: &Scan) -> String {
    let table = quoted(&scan.table.name);
    let way = |backward: bool| if backward { " Backward" } else { "" };
    let only = if scan.entry.is_some() { " Only" } else { "" };
    let primary = || scan.table.primary_key.as_ref().map_or_else(String::new, |key| quoted(&key.name));
    match &scan.path {
        AccessPath::Point { .. } => format!("Index Scan using {} on {table}", primary()),
        AccessPath::Table { ranges, backward } if ranges.iter().any(KeyRange::is_all) => {
            format!("Seq Scan{} on {table}", way(*backward))
        }
        AccessPath::Table { backward, .. } => {
            format!("Index Scan{} using {} on {table}", way(*backward), primary())
        }
        AccessPath::UniquePoint { index, .. } => {
            format!("Index Scan using {} on {table}", quoted(&scan.table.indexes[*index].name))
        }
        AccessPath::Index { index, backward, .. } => {
            format!(
                "Index{only} Scan{} using {} on {table}",
                way(*backward),
                quoted(&scan.table.indexes[*index].name)
            )
        }
        AccessPath::Combined { .. } => format!("Bitmap Heap Scan on {table}"),
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

/// A plan's subqueries and the plan below them, the lowest first. An expression with thousands of
/// subqueries has one node above the other for each, so this is a loop and no recursion.
fn subqueries(plan: &Plan) -> Vec<&Plan> {
    let (mut below, mut inputs) = (plan, Vec::new());
    while let Operator::Subquery { input, subquery, .. } = &below.operator {
        inputs.push(&**subquery);
        below = input;
    }
    inputs.push(below);
    inputs.reverse();
    inputs
}

fn set_title(kind: SetKind) -> &'static str {
    match kind {
        SetKind::Union => "Append",
        SetKind::Intersect => "SetOp Intersect",
        SetKind::Except => "SetOp Except",
    }
}

/// Whether EXPLAIN shows a condition on a plan's rows at the plan's own node, as PostgreSQL does.
/// That would be wrong for a node that takes fewer rows, or computes different rows from fewer.
fn tests_rows(plan: &Plan) -> bool {
    match &plan.operator {
        Operator::Project { input, .. } => tests_rows(input),
        Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Values { .. }
        | Operator::Function { .. }
        | Operator::CommonScan { .. }
        | Operator::NestedLoop { .. }
        | Operator::HashJoin { .. }
        | Operator::Subquery { .. }
        | Operator::Aggregate { .. } => true,
        _ => false,
    }
}

/// Joins conditions with AND.
fn all_of(mut conditions: Vec<String>) -> Option<String> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(format!("({})", conditions.join(" AND "))),
    }
}

/// Converts plans to nodes.
struct Explainer<'a> {
    show: Show<'a>,
}

impl Explainer<'_> {
    fn over(&self, title: impl Into<String>, inputs: &[&Plan]) -> Result<Node> {
        let children = inputs.iter().map(|plan| self.node(plan)).collect::<Result<_>>()?;
        Ok(Node { children, ..leaf(title) })
    }

    fn shown(&self, expr: Option<&Expr>) -> Option<String> {
        expr.map(|expr| self.show.text(expr))
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

    /// The nodes of the trees that a path combines.
    fn combined(&self, scan: &Scan) -> Vec<Node> {
        let AccessPath::Combined { parts, all } = &scan.path else { return Vec::new() };
        let part = |part: &TreePart| {
            let name = match (part.index, &scan.table.primary_key) {
                (Some(index), _) => quoted(&scan.table.indexes[index].name),
                (None, Some(key)) => quoted(&key.name),
                (None, None) => String::new(),
            };
            let condition = self.ranges(&scan.table, part.index, &part.ranges);
            leaf(format!("Bitmap Index Scan on {name}")).with("Index Cond", condition)
        };
        let children: Vec<Node> = parts.iter().map(part).collect();
        match children.len() {
            1 => children,
            _ => vec![Node { children, ..leaf(if *all { "BitmapAnd" } else { "BitmapOr" }) }],
        }
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
                    Some(format!("({next} {operator}{inclusive} {})", self.show.text(value)))
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

    /// A sort of rows that come by so many leading keys.
    fn sort(&self, input: &Plan, (keys, presorted): (&[SortKey], usize)) -> Result<Node> {
        let title = if presorted > 0 { "Incremental Sort" } else { "Sort" };
        let known = (presorted > 0).then(|| self.sort_keys(&keys[..presorted]));
        Ok(self
            .over(title, &[input])?
            .with("Sort Key", Some(self.sort_keys(keys)))
            .with("Presorted Key", known))
    }

    fn sort_keys(&self, keys: &[SortKey]) -> String {
        let one = |key: &SortKey| {
            let direction = if key.descending { " DESC" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            format!("{}{direction}{nulls}", self.show.text(&key.expr))
        };
        keys.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn node(&self, plan: &Plan) -> Result<Node> {
        let shown = self.shown_node(plan)?;
        work::tick(SHOWING + shown.details.iter().map(|(_, text)| text.len()).sum::<usize>())?;
        Ok(shown)
    }

    fn shown_node(&self, plan: &Plan) -> Result<Node> {
        Ok(match &plan.operator {
            Operator::OneRow | Operator::Nothing => leaf("Result"),
            Operator::Values { .. } => leaf("Values Scan"),
            Operator::Scan(scan) => Node { children: self.combined(scan), ..leaf(scan_title(scan)) }
                .with("Index Cond", self.index_condition(scan))
                .with("Filter", scan.filter.as_ref().map(|filter| self.scan_filter(scan, filter))),
            Operator::Virtual { filter, .. } => {
                leaf("System Relation Scan").with("Filter", self.shown(filter.as_ref()))
            }
            Operator::Function { calls, .. } => {
                let names: Vec<String> = calls.iter().map(|call| format!("{:?}", call.function)).collect();
                leaf(format!("Function Scan on {}", names.join(", ")))
            }
            // PostgreSQL shows no node for a projection.
            Operator::Project { input, .. } => self.node(input)?,
            Operator::Filter { input, condition } => {
                let condition = self.show.text(condition);
                let tested = if tests_rows(input) { self.node(input) } else { self.over("Filter", &[input]) };
                tested?.filtered(condition)
            }
            Operator::NestedLoop { kind, left, right, condition, .. } => {
                self.nested_loop(*kind, (left, right), condition.as_ref())?
            }
            Operator::HashJoin { kind, left, right, keys, condition, test, .. } => {
                let title =
                    if *kind == JoinKind::Inner { "Hash Join".to_owned() } else { join("Hash", *kind) };
                let mut shown = self
                    .over(title, &[left])?
                    .with("Hash Cond", self.equalities(keys))
                    .with("Join Filter", self.shown(condition.as_ref()));
                shown.children.push(self.over("Hash", &[right])?);
                if let Some(test) = test {
                    shown.children.push(self.over("SubPlan", &[test])?);
                }
                shown
            }
            Operator::Subquery { .. } => self.over("SubPlan", &subqueries(plan))?,
            Operator::Aggregate { input, groups, sorted, .. } => {
                let keys: Vec<String> = groups.iter().map(|(expr, _)| self.show.text(expr)).collect();
                self.over(aggregate_title(groups.is_empty(), *sorted), &[input])?
                    .with("Group Key", (!keys.is_empty()).then(|| keys.join(", ")))
            }
            Operator::Window { input, run, .. } => self.window(input, run.as_deref())?,
            Operator::Sort { input, keys, presorted, .. } => self.sort(input, (keys, *presorted))?,
            Operator::Limit { input, .. } => self.over("Limit", &[input])?,
            Operator::Distinct { input, .. } => self.over("Unique", &[input])?,
            Operator::SetOperation { first, stages, .. } => {
                stages.iter().try_fold(self.node(&first.0)?, |left, stage| {
                    let right = stage.sides.iter().map(|(side, _)| self.node(side));
                    let children = std::iter::once(Ok(left)).chain(right).collect::<Result<_>>()?;
                    Ok::<_, SqlError>(Node { children, ..leaf(set_title(stage.kind)) })
                })?
            }
            Operator::With { tables, body } => {
                let mut shown = self.node(body)?;
                for table in tables {
                    shown.children.push(self.over("CTE", &[&table.plan])?);
                }
                shown
            }
            Operator::CommonScan { .. } => leaf("CTE Scan"),
            Operator::Joined { .. } => leaf("Result"),
            Operator::LockRows { input, .. } => self.over("LockRows", &[input])?,
            Operator::Insert(insert) => self.written("Insert", &insert.table.name, &insert.input)?,
            Operator::Update(update) => self.written("Update", &update.target.table.name, &update.input)?,
            Operator::Delete(delete) => self.written("Delete", &delete.target.table.name, &delete.input)?,
        })
    }

    /// The node of a nested loop. An inner one whose left side is a condition without rows is a
    /// filter; it has no condition of its own.
    fn nested_loop(
        &self,
        kind: JoinKind,
        (left, right): (&Plan, &Plan),
        condition: Option<&Expr>,
    ) -> Result<Node> {
        match &left.operator {
            Operator::Filter { input, condition }
                if kind == JoinKind::Inner && matches!(input.operator, Operator::OneRow) =>
            {
                let shown = self.over("Result", &[right])?;
                Ok(shown.with("One-Time Filter", Some(self.show.text(condition))))
            }
            _ => {
                let shown = self.over(join("Nested Loop", kind), &[left, right])?;
                Ok(shown.with("Join Filter", self.shown(condition)))
            }
        }
    }

    fn window(&self, input: &Plan, run: Option<&RunCondition>) -> Result<Node> {
        let conditions = run.iter().flat_map(|run| &run.conditions);
        let shown = all_of(conditions.map(|condition| self.show.text(condition)).collect());
        Ok(self.over("WindowAgg", &[input])?.with("Run Condition", shown))
    }

    /// The node of a command that writes rows of its input.
    fn written(&self, command: &str, table: &str, input: &Plan) -> Result<Node> {
        self.over(format!("{command} on {}", quoted(table)), &[input])
    }

    /// The condition of a hash join: its keys are equal.
    fn equalities(&self, keys: &[(Expr, Expr)]) -> Option<String> {
        let equal = |(a, b): &(Expr, Expr)| format!("({} = {})", self.show.text(a), self.show.text(b));
        all_of(keys.iter().map(equal).collect())
    }
}

fn aggregate_title(is_whole: bool, sorted: bool) -> &'static str {
    match (is_whole, sorted) {
        (true, _) => "Aggregate",
        (false, true) => "GroupAggregate",
        (false, false) => "HashAggregate",
    }
}
