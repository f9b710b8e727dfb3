//! The engine reaches the machine through `sync` and `runtime` alone, and `storage` through `txn`.
//!
//! Clippy refuses the standard library's other ways (`clippy.toml`) in the crates that ask for it.
//! This rule holds the crates to asking, and refuses what clippy cannot see.

use crate::workspace::{Member, Workspace};
use crate::{Finding, at, layers};

/// The crates of the engine.
const ENGINE: [&str; 14] = [
    "sync",
    "variants",
    "runtime",
    "storage",
    "txn",
    "values",
    "expressions",
    "catalog",
    "parser",
    "query",
    "execution",
    "sql",
    "server",
    "allcore",
];
/// The line at the head of each.
const DENY: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]";
/// Macros, and the paths of the interfaces that may use them.
const MACROS: [(&str, &[&str]); 2] =
    [("thread_local!", &["sync/src/machine/", "runtime/src/model/"]), ("asm!", &["sync/src/processor.rs"])];
/// Libraries, and the crates that may import them. `readers` feeds hostile bytes to storage's
/// formats, and `mechanisms` measures parts of its pool. No part of the server imports `readers` or
/// `calls`.
const IMPORTERS: [(&str, &[&str]); 3] = [
    ("libc", &["sync", "calls", "runtime"]),
    ("storage", &["txn", "readers", "mechanisms"]),
    ("calls", &["mechanisms"]),
];

/// Finds heads without [`DENY`], macros outside their interfaces, and imports past them.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in &workspace.members {
        imports(member, &mut found);
        if ENGINE.contains(&member.name.as_str()) {
            heads(workspace, member, &mut found);
            macros(workspace, member, &mut found);
        }
    }
    found
}

fn imports(member: &Member, found: &mut Vec<Finding>) {
    for name in layers::shipped(member) {
        let allowed = IMPORTERS.iter().find(|(library, _)| *library == name).map(|(_, crates)| *crates);
        if allowed.is_some_and(|crates| !crates.contains(&member.name.as_str())) {
            let manifest = format!("{}/Cargo.toml", member.folder);
            found.push(at(&manifest, 1, &format!("{} must not import {name}", member.name)));
        }
    }
}

fn heads(workspace: &Workspace, member: &Member, found: &mut Vec<Finding>) {
    let roots = ["lib.rs", "main.rs"].map(|root| workspace.source(&format!("{}/src/{root}", member.folder)));
    for root in roots.into_iter().flatten() {
        if !root.text.lines().any(|line| line == DENY) {
            found.push(at(&root.path, 1, &format!("the crate's root lacks {DENY}")));
        }
    }
}

fn macros(workspace: &Workspace, member: &Member, found: &mut Vec<Finding>) {
    let folder = format!("{}/src/", member.folder);
    let shipped =
        workspace.rust().filter(|source| source.path.starts_with(&folder) && !source.is_for_tests());
    for source in shipped {
        let is_interface = |paths: &[&str]| paths.iter().any(|path| source.path.contains(path));
        for (name, _) in MACROS.iter().filter(|(_, paths)| !is_interface(paths)) {
            let code =
                source.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
            for (number, _) in code.filter(|(_, line)| line.contains(name)) {
                found.push(at(&source.path, number + 1, &format!("{name} belongs to the interfaces")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[test]
    fn a_macro_outside_its_interface_and_a_head_that_asks_for_nothing_are_found() {
        let mut workspace = sample(&[
            ("lib.rs", "mod a;\n"),
            ("a.rs", "// thread_local!\nthread_local! { static A: u8 = 1; }\n"),
            ("a/tests.rs", "thread_local! { static A: u8 = 1; }\n"),
        ]);
        workspace.members[0].name = "sql".to_owned();
        let messages: Vec<String> = find(&workspace).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].starts_with("crates/sample/src/lib.rs:1: the crate's root lacks"),
            "{messages:?}"
        );
        assert!(messages[1].starts_with("crates/sample/src/a.rs:2: thread_local!"), "{messages:?}");
    }

    #[test]
    fn imports_past_the_interfaces_are_found_in_every_table_but_that_of_the_tests() {
        let mut workspace = sample(&[]);
        workspace.members[0].name = "sql".to_owned();
        workspace.members[0].manifest = "[dev-dependencies]\nstorage = '1'\n\
             [target.'cfg(unix)'.dependencies]\nlibc = '1'\n[dependencies]\ntxn = '1'\n"
            .parse()
            .expect("a manifest");
        let messages: Vec<String> = find(&workspace).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, ["crates/sample/Cargo.toml:1: sql must not import libc"]);
    }
}
