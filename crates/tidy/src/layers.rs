//! The graph of crates: each imports only crates above it in ARCHITECTURE.md's table of crates.

use crate::Finding;
use crate::workspace::{Member, Workspace};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Crates that import nothing of the workspace but what stands beside them.
const APART: &[(&str, &[&str])] = &[("lab", &["sync"]), ("history", &[]), ("top", &[]), ("tidy", &[])];

/// Finds imports that point down the table, and crates the table does not name.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let document = workspace.text(DOCUMENT);
    let rows: Vec<&str> = document.lines().filter_map(row).collect();
    let place = |name: &str| rows.iter().position(|row| *row == name);
    let mut found = Vec::new();
    for member in &workspace.members {
        let mut report =
            |message: String| found.push(Finding { key: member.name.clone(), weight: 1, message });
        let Some(own) = place(&member.name) else {
            report(format!("{DOCUMENT}: the table of crates lacks {}", member.name));
            continue;
        };
        let apart = APART.iter().find(|(name, _)| *name == member.name).map(|(_, imports)| *imports);
        for import in imports(workspace, member) {
            let manifest = format!("{}/Cargo.toml", member.folder);
            if apart.is_some_and(|allowed| !allowed.contains(&import.as_str())) {
                report(format!("{manifest}: {} stands apart and must not import {import}", member.name));
            } else if place(&import).is_none_or(|other| other >= own) {
                report(format!("{manifest}: {} imports {import}, which is not above it", member.name));
            }
        }
    }
    for row in rows {
        if !workspace.members.iter().any(|member| member.name == row) {
            found.push(Finding {
                key: row.to_owned(),
                weight: 1,
                message: format!("{DOCUMENT}: there is no crate {row}"),
            });
        }
    }
    found
}

/// The crate a line of the document's first table is about.
fn row(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name)
}

/// The workspace's crates that a member depends on, those of its tests included.
fn imports(workspace: &Workspace, member: &Member) -> Vec<String> {
    let is_other =
        |name: &str| workspace.members.iter().any(|other| other.name == name && other.name != member.name);
    named(member, &["dependencies", "build-dependencies", "dev-dependencies"])
        .filter(|name| is_other(name))
        .map(str::to_owned)
        .collect()
}

/// The libraries that a member depends on, but for its tests.
pub(crate) fn shipped(member: &Member) -> impl Iterator<Item = &str> {
    named(member, &["dependencies", "build-dependencies"])
}

/// The dependencies in these tables of a member's manifest and of each of its targets.
fn named<'m>(member: &'m Member, tables: &'m [&'m str]) -> impl Iterator<Item = &'m str> {
    let targets = member.manifest.get("target").and_then(|targets| targets.as_table());
    let targets = targets.into_iter().flat_map(|targets| targets.values());
    targets
        .filter_map(|target| target.as_table())
        .chain([&member.manifest])
        .flat_map(move |manifest| tables.iter().filter_map(|table| manifest.get(*table)?.as_table()))
        .flat_map(|table| table.keys().map(String::as_str))
}
