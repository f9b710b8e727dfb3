//! Rules on comments and documents: a contract at each module's top, lines within 100 columns.

use crate::comments;
use crate::markdown;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// The widest a line of prose may be.
const COLUMNS: usize = 100;

/// Finds modules whose file does not open with `//!`.
pub(crate) fn heads(workspace: &Workspace) -> Vec<Finding> {
    let headless = workspace.rust().filter(|source| !source.text.starts_with("//!"));
    headless.map(|source| at(&source.path, 1, "the file does not open with `//!`")).collect()
}

/// Finds lines of prose that are too wide. A line with a URL may be.
pub(crate) fn columns(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut report = |path: &str, number: usize, width: usize| {
        found.push(at(path, number, &format!("{width} columns of prose, {COLUMNS} are the limit")));
    };
    for source in workspace.rust() {
        for line in comments::prose(comments::of_rust(&source.text)) {
            if line.width > COLUMNS && !line.text.contains("://") {
                report(&source.path, line.number, line.width);
            }
        }
    }
    for script in &workspace.scripts {
        for line in comments::of_script(&script.text) {
            if line.width > COLUMNS && !line.text.contains("://") {
                report(&script.path, line.number, line.width);
            }
        }
    }
    for document in &workspace.documents {
        let excepted = markdown::parts(&document.text).excepted;
        for (number, line) in (1..).zip(document.text.lines()) {
            let width = line.chars().count();
            let is_prose = !excepted.iter().any(|lines| lines.contains(&number));
            if width > COLUMNS && is_prose && !line.contains("://") {
                report(&document.path, number, width);
            }
        }
    }
    found
}
