//! Rules that the sources of the workspace follow, checked by reading them.
//!
//! A [`Workspace`] holds every source and document, parsed once. A [`Rule`] turns it into findings.
//! A rule may have a list of tolerated findings under `lists/`, by file or by module. A list only
//! shrinks: a finding beyond the list is an error, and so is an entry that the sources no longer need.
//!
//! What must hold: a rule reads the sources alone. It builds nothing and runs no other program.

#![forbid(unsafe_code)]

pub mod circles;
pub mod list;
mod modules;
mod references;
mod rooms;
mod workspace;

pub use workspace::{Member, Source, Workspace};

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
        name: "rooms",
        advice: "a crate imports only crates above it in ARCHITECTURE.md's table of rooms",
        find: rooms::find,
    },
    Rule {
        name: "circles",
        advice: "move what both modules need below both; `cargo run -p tidy -- circles CRATE` prints the graph",
        find: circles::find,
    },
];
