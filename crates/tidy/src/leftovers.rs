//! Leftovers of work: `dbg!`, `todo!`, notes to do something later, prints outside a command.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::comments;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// Macros that no finished code calls.
const UNFINISHED: &[&str] = &["dbg", "todo", "unimplemented"];
/// Macros that write to the terminal, which only a command does.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln"];
/// Notes in comments. They are spelled in parts here, so that this file holds none.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Sources whose output is what a user asked for, or what cargo reads.
const COMMANDS: &[&str] = &[
    "crates/allcore/src/",
    "crates/parser/build.rs",
    "crates/simulation/src/main.rs",
    "crates/tidy/src/main.rs",
];

/// Finds leftovers.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in workspace.rust() {
        let prints = source.is_for_tests() || COMMANDS.iter().any(|command| source.path.starts_with(command));
        let mut calls = Calls { path: &source.path, prints, found: &mut found };
        calls.visit_file(&source.syntax);
        notes(&source.path, comments::of_rust(&source.text), &mut found);
    }
    for script in &workspace.scripts {
        notes(&script.path, comments::of_script(&script.text), &mut found);
    }
    found
}

fn notes(path: &str, lines: Vec<comments::Line>, found: &mut Vec<Finding>) {
    for line in lines {
        let mut words = line.text.split(|sign: char| !sign.is_alphanumeric());
        if let Some(note) = words.find(|word| NOTES.contains(word)) {
            found.push(at(path, line.number, &format!("`{note}`: do it, or file an issue")));
        }
    }
}

struct Calls<'a> {
    path: &'a str,
    /// Whether the file may print.
    prints: bool,
    found: &'a mut Vec<Finding>,
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_macro(&mut self, called: &'a syn::Macro) {
        let name = called.path.segments.last().expect("a path has a segment").ident.to_string();
        let is_leftover =
            UNFINISHED.contains(&name.as_str()) || (!self.prints && PRINTS.contains(&name.as_str()));
        if is_leftover {
            let line = called.span().start().line;
            self.found.push(at(self.path, line, &format!("`{name}!` is left in the code")));
        }
        visit::visit_macro(self, called);
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let before = self.prints;
        self.prints |= crate::references::is_for_tests(&module.attrs);
        visit::visit_item_mod(self, module);
        self.prints = before;
    }
}
