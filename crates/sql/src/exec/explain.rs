//! EXPLAIN: a plan as lines of text, or as one JSON document.

use crate::plan::{AccessPath, Body, JoinKind, Plan, SetKind, Statement};

/// A node as shown.
struct Node {
    title: String,
    children: Vec<Node>,
}

/// The lines EXPLAIN answers; `actual`: rows and nanoseconds of a run.
pub(crate) fn explain(statement: &Statement, actual: Option<(u64, u64)>, json: bool) -> Vec<String> {
    let Body::Query { root, .. } = &statement.body else { return vec!["Utility Statement".to_owned()] };
    let node = node(root);
    let mut lines = Vec::new();
    if json {
        let mut text = String::from("[{\"Plan\": ");
        write_json(&node, &mut text);
        if let Some((rows, nanoseconds)) = actual {
            text.push_str(&format!(
                ", \"Actual Rows\": {rows}, \"Execution Time\": {:.3}",
                nanoseconds as f64 / 1e6
            ));
        }
        text.push_str("}]");
        return vec![text];
    }
    write_text(&node, 0, &mut lines);
    if let Some((rows, nanoseconds)) = actual {
        if let Some(first) = lines.first_mut() {
            first.push_str(&format!(" (actual rows={rows})"));
        }
        lines.push(format!("Execution Time: {:.3} ms", nanoseconds as f64 / 1e6));
    }
    lines
}

fn write_text(node: &Node, depth: usize, lines: &mut Vec<String>) {
    lines.push(match depth {
        0 => node.title.clone(),
        _ => format!("{:indent$}->  {}", "", node.title, indent = depth * 6 - 4),
    });
    for child in &node.children {
        write_text(child, depth + 1, lines);
    }
}

fn write_json(node: &Node, text: &mut String) {
    text.push_str(&format!("{{\"Node Type\": \"{}\"", node.title.replace('\\', "\\\\").replace('"', "\\\"")));
    if !node.children.is_empty() {
        text.push_str(", \"Plans\": [");
        for (at, child) in node.children.iter().enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            write_json(child, text);
        }
        text.push(']');
    }
    text.push('}');
}

fn leaf(title: impl Into<String>) -> Node {
    Node { title: title.into(), children: Vec::new() }
}

fn over(title: impl Into<String>, inputs: &[&Plan]) -> Node {
    Node { title: title.into(), children: inputs.iter().map(|plan| node(plan)).collect() }
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

fn node(plan: &Plan) -> Node {
    match plan {
        Plan::OneRow | Plan::Nothing => leaf("Result"),
        Plan::Values { .. } => leaf("Values Scan"),
        Plan::Scan(scan) => {
            let table = &scan.table.name;
            let way = |backward: bool| if backward { " Backward" } else { "" };
            leaf(match &scan.path {
                AccessPath::Point { .. } => {
                    let key = scan.table.primary_key.as_ref().map_or("", |key| &key.name);
                    format!("Index Scan using {key} on {table}")
                }
                AccessPath::Table { range, backward }
                    if range.equal.is_empty() && range.low.is_none() && range.high.is_none() =>
                {
                    format!("Seq Scan{} on {table}", way(*backward))
                }
                AccessPath::Table { backward, .. } => {
                    let key = scan.table.primary_key.as_ref().map_or("", |key| &key.name);
                    format!("Index Scan{} using {key} on {table}", way(*backward))
                }
                AccessPath::UniquePoint { index, .. } => {
                    format!("Index Scan using {} on {table}", scan.table.indexes[*index].name)
                }
                AccessPath::Index { index, backward, .. } => {
                    format!(
                        "Index Scan{} using {} on {table}",
                        way(*backward),
                        scan.table.indexes[*index].name
                    )
                }
            })
        }
        Plan::Virtual { .. } => leaf("System Relation Scan"),
        Plan::Function { function, .. } => leaf(format!("Function Scan on {function:?}")),
        // What a row passes on its way costs no node of its own, as in PostgreSQL.
        Plan::Project { input, .. } => node(input),
        Plan::Filter { input, .. } => over("Filter", &[input]),
        Plan::NestedLoop { kind, left, right, .. } => over(join("Nested Loop", *kind), &[left, right]),
        Plan::HashJoin { kind, left, right, .. } => {
            let mut shown = over(
                if *kind == JoinKind::Inner { "Hash Join".to_owned() } else { join("Hash", *kind) },
                &[left],
            );
            shown.children.push(over("Hash", &[right]));
            shown
        }
        Plan::Subquery { input, subquery, .. } => over("SubPlan", &[input, subquery]),
        Plan::Aggregate { input, groups, .. } => {
            over(if groups.is_empty() { "Aggregate" } else { "HashAggregate" }, &[input])
        }
        Plan::Window { input, .. } => over("WindowAgg", &[input]),
        Plan::Sort { input, .. } => over("Sort", &[input]),
        Plan::Limit { input, .. } => over("Limit", &[input]),
        Plan::Distinct { input, .. } => over("Unique", &[input]),
        Plan::SetOperation { kind, left, right, .. } => over(
            match kind {
                SetKind::Union => "Append",
                SetKind::Intersect => "SetOp Intersect",
                SetKind::Except => "SetOp Except",
            },
            &[left, right],
        ),
        Plan::With { tables, body } => {
            let mut shown = node(body);
            shown.children.extend(tables.iter().map(|table| over("CTE", &[&table.plan])));
            shown
        }
        Plan::CommonScan { .. } => leaf("CTE Scan"),
        Plan::LockRows { input, .. } => over("LockRows", &[input]),
        Plan::Insert(insert) => over(format!("Insert on {}", insert.table.name), &[&insert.input]),
        Plan::Update(update) => over(format!("Update on {}", update.target.table.name), &[&update.input]),
        Plan::Delete(delete) => over(format!("Delete on {}", delete.target.table.name), &[&delete.input]),
        Plan::Append(inputs) => over("Append", &inputs.iter().collect::<Vec<_>>()),
    }
}
