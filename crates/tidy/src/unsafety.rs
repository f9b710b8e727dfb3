//! Crates without `unsafe`: each root of theirs forbids it.

use crate::Finding;
use crate::workspace::Workspace;

/// The crates that contain `unsafe` (ARCHITECTURE.md, "Crates").
const UNSAFE: &[&str] = &["sync", "calls", "runtime", "storage", "parser"];
/// The attribute at the head of every other crate.
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Finds crate roots that do not forbid `unsafe`. A program beside a library has a root of its own.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let members = workspace.members.iter().filter(|member| !UNSAFE.contains(&member.name.as_str()));
    let roots = members.flat_map(|member| {
        ["lib.rs", "main.rs"].map(|root| workspace.source(&format!("{}/src/{root}", member.folder)))
    });
    let open = roots.flatten().filter(|source| !source.text.lines().any(|line| line == FORBID));
    open.map(|source| crate::at(&source.path, 1, &format!("the crate's root lacks {FORBID}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[test]
    fn each_root_of_a_crate_forbids_unsafe_code() {
        let found = find(&sample(&[("lib.rs", FORBID), ("main.rs", "fn main() {}")]));
        let keys: Vec<_> = found.iter().map(|finding| finding.key.as_str()).collect();
        assert_eq!(keys, ["crates/sample/src/main.rs"]);
    }
}
