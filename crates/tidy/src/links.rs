//! Links of documents lead to files and headings that exist.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::markdown;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// Finds links that lead nowhere. Addresses on the net are not tried.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let parts: BTreeMap<&str, _> = workspace
        .documents
        .iter()
        .map(|document| (document.path.as_str(), markdown::parts(&document.text)))
        .collect();
    let mut found = Vec::new();
    for (path, document) in &parts {
        for (line, link) in &document.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { PathBuf::from(path) } else { beside(path, file) };
            let name = target.to_string_lossy();
            if !workspace.root.join(&target).exists() {
                found.push(at(path, *line, &format!("there is no file {name}")));
            } else if !anchor.is_empty()
                && let Some(other) = parts.get(name.as_ref())
                && !other.anchors.iter().any(|known| known == anchor)
            {
                found.push(at(path, *line, &format!("{name} has no heading #{anchor}")));
            }
        }
    }
    found
}

/// A path relative to a document's folder, without `..`.
fn beside(document: &str, file: &str) -> PathBuf {
    let mut target = Path::new(document).parent().expect("a document lies in a folder").to_path_buf();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => drop(target.pop()),
            Component::CurDir => {}
            other => target.push(other),
        }
    }
    target
}
