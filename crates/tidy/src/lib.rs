//! Rules that the sources of the workspace follow, checked by reading them.
//!
//! A [`Workspace`] holds every source and document, parsed once. A [`Rule`] turns it into findings.
//! A rule may have a list of tolerated findings under `lists/`, by file or by module. A list only
//! shrinks: a finding beyond the list is an error, and so is an entry that is larger than needed.
//!
//! What must hold: a rule reads the sources alone. It builds nothing and runs no other program.

#![forbid(unsafe_code)]

pub mod circles;
mod commands;
mod comments;
mod layers;
mod leftovers;
mod links;
pub mod list;
mod machine;
mod markdown;
mod messages;
mod modules;
mod names;
mod prose;
mod public;
mod references;
mod sentences;
mod sizes;
mod unsafety;
mod words;
mod workspace;

pub use workspace::Workspace;

/// One departure from a rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The file or module the list counts it under.
    pub key: String,
    /// How much it counts: 1, or the size of what is too large.
    pub weight: usize,
    /// The file and line, and what is wrong there.
    pub message: String,
}

/// A finding that its list counts by file.
fn at(path: &str, line: usize, message: &str) -> Finding {
    Finding { key: path.to_owned(), weight: 1, message: format!("{path}:{line}: {message}") }
}

/// A rule of the sources.
pub struct Rule {
    /// Its name, which is also the name of its list.
    pub name: &'static str,
    /// Says what to do about a finding.
    pub advice: &'static str,
    /// Finds the departures.
    pub find: fn(&Workspace) -> Vec<Finding>,
}

/// Every rule, in the order of the reports.
pub const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        advice: "a crate imports only crates above it in ARCHITECTURE.md's table of crates",
        find: layers::find,
    },
    Rule {
        name: "machine",
        advice: "reach the machine through `sync` and `runtime`, and storage through `txn` (clippy.toml)",
        find: machine::find,
    },
    Rule {
        name: "circles",
        advice: "move what both modules need below both; `cargo run -p tidy -- circles CRATE` prints the graph",
        find: circles::find,
    },
    Rule {
        name: "heads",
        advice: "open each file with `//!`: what it is, what must hold",
        find: prose::heads,
    },
    Rule { name: "columns", advice: "wrap comments and Markdown text at 100 columns", find: prose::columns },
    Rule { name: "functions", advice: "split the function where one idea ends", find: sizes::functions },
    Rule { name: "files", advice: "split the file where one idea ends", find: sizes::files },
    Rule { name: "leftovers", advice: "finish the work, or take it out", find: leftovers::find },
    Rule { name: "words", advice: "begin with the subject, and use the field's term", find: words::find },
    Rule {
        name: "sentences",
        advice: "say it in two sentences: at most 25 words each",
        find: sentences::find,
    },
    Rule {
        name: "tests",
        advice: "name the test by a sentence: `a_reader_never_sees_a_half_written_row`",
        find: names::find,
    },
    Rule {
        name: "unsafety",
        advice: "add `#![forbid(unsafe_code)]`, or move the code to a crate that proves its `unsafe`",
        find: unsafety::find,
    },
    Rule { name: "public", advice: "make the item `pub(crate)`, or delete it", find: public::find },
    Rule { name: "links", advice: "name a file and a heading that exist", find: links::find },
    Rule { name: "commands", advice: "name a command and a file that exist", find: commands::find },
];
