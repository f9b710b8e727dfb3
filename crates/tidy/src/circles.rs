//! Circles among the modules of a crate.
//!
//! A parent may name its children and a child its parent. Any other path counts where the two ways
//! from the root part. So `a::b` that names `c` is an arrow from `a` to `c` at the crate's top
//! level. So each level is a graph among siblings, and each of these graphs must be free of
//! circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::Finding;
use crate::modules::{Id, Modules};
use crate::workspace::{Member, Workspace};

#[cfg(test)]
mod tests;

/// The arrows between the children of one module.
struct Level {
    /// The crate's name and the names down to the parent, joined by `::`.
    name: String,
    /// From sibling to sibling, with the places of the paths.
    arrows: BTreeMap<(String, String), Vec<String>>,
}

impl Level {
    /// The circles: each a sorted list of siblings that reach one another.
    fn circles(&self) -> Vec<Vec<&str>> {
        let arrows = self.arrows.keys().map(|(from, to)| (from.as_str(), to.as_str()));
        let graph = DiGraphMap::<&str, ()>::from_edges(arrows);
        let mut found: Vec<Vec<&str>> =
            tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1).collect();
        found.iter_mut().for_each(|circle| circle.sort_unstable());
        found.sort();
        found
    }

    /// The places that keep a circle closed, the arrows with the fewest paths first.
    fn closing(&self, circle: &[&str], shown: usize) -> String {
        let mut inner: Vec<_> = self
            .arrows
            .iter()
            .filter(|((from, to), _)| circle.contains(&from.as_str()) && circle.contains(&to.as_str()))
            .collect();
        inner.sort_by_key(|(_, places)| places.len());
        let mut text = String::new();
        for ((from, to), places) in inner {
            let first: Vec<_> = places.iter().take(shown).map(String::as_str).collect();
            let more = places.len() - first.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            writeln!(text, "    {from} -> {to}: {}{more}", first.join(", ")).expect("a String takes all");
        }
        text
    }
}

/// Finds the modules that belong to circles; each weighs its circle's size.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for level in workspace.members.iter().flat_map(|member| levels(workspace, member)) {
        for circle in level.circles() {
            for module in &circle {
                let message = format!(
                    "{}: a circle of {}\n{}",
                    level.name,
                    circle.join(", "),
                    level.closing(&circle, 1)
                );
                found.push(Finding {
                    key: format!("{}::{module}", level.name),
                    weight: circle.len(),
                    message,
                });
            }
        }
    }
    found
}

/// The circles of all crates, or the graph and the circles of one, as text.
pub fn describe(workspace: &Workspace, named: Option<&str>) -> String {
    let mut text = String::new();
    for member in workspace.members.iter().filter(|member| named.is_none_or(|name| name == member.name)) {
        for level in levels(workspace, member) {
            if named.is_some() {
                write_graph(&mut text, &level);
            }
            for circle in level.circles() {
                writeln!(text, "{}: a circle of {}: {}", level.name, circle.len(), circle.join(", "))
                    .expect("a String takes all");
                if named.is_some() {
                    text += &level.closing(&circle, 3);
                }
            }
        }
    }
    if text.is_empty() { "no circles\n".to_owned() } else { text }
}

fn write_graph(text: &mut String, level: &Level) {
    let mut by_source: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in level.arrows.keys() {
        by_source.entry(from).or_default().insert(to);
    }
    writeln!(text, "{}", level.name).expect("a String takes all");
    for (from, to) in by_source {
        writeln!(text, "  {from} -> {}", to.into_iter().collect::<Vec<_>>().join(" "))
            .expect("a String takes all");
    }
}

/// The levels of a crate that have arrows. A program beside a library has levels of its own.
fn levels(workspace: &Workspace, member: &Member) -> Vec<Level> {
    let mut found = Vec::new();
    for root in ["lib.rs", "main.rs"] {
        let path = format!("{}/src/{root}", member.folder);
        if workspace.source(&path).is_some() {
            levels_of(&member.name, &Modules::read(workspace, &path), &mut found);
        }
    }
    found
}

fn levels_of(name: &str, modules: &Modules, found: &mut Vec<Level>) {
    let mut arrows: BTreeMap<Id, BTreeMap<(String, String), Vec<String>>> = BTreeMap::new();
    for used in modules.uses() {
        let (from, to) = (&modules.get(used.from).path, &modules.get(used.to).path);
        let shared = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        if shared == from.len() || shared == to.len() {
            continue;
        }
        let mut parent = used.from;
        for _ in shared..from.len() {
            parent = modules.get(parent).parent;
        }
        let place = format!("{}:{}", modules.get(used.from).file, used.line);
        let places =
            arrows.entry(parent).or_default().entry((from[shared].clone(), to[shared].clone())).or_default();
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    for (parent, arrows) in arrows {
        let mut path = vec![name.to_owned()];
        path.extend(modules.get(parent).path.iter().cloned());
        found.push(Level { name: path.join("::"), arrows });
    }
}
