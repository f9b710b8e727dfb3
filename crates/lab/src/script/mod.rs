//! pgbench's script language, as PostgreSQL 18's documentation describes it. It has SQL commands,
//! `\set` and its expressions, `\gset`, `\if`, `\sleep`, weights, variables of the command line and
//! automatic ones.
//!
//! `scan` cuts a script's text into commands, `parse` reads their expressions, and `command` makes
//! ops of them. `program` combines all scripts of a mix into one immutable [`Program`] in which
//! variables have numbers. `run` steps one client through it.
//!
//! What must hold:
//! 1. Deterministic computations give pgbench's results, to the bit; the lab refuses the scripts
//!    that pgbench refuses.
//! 2. A running client allocates nothing once each of its variables has held its longest text.
//! 3. `:name` is replaced wherever it stands in a command, in quotes and comments too, as in
//!    pgbench. A name that no command can ever set stays as it is. A name without a value yet stays
//!    in a text, and is NULL where it is bound.
//!
//! Two differences from pgbench: a repeated transaction restores its initial variables, not the
//! random numbers alone, so that `\set n :n + 1` counts transactions and not tries. And a statement
//! in a pipeline is prepared when it first runs, like any other, not when its pipeline begins.
//!
//! Not supported: `\shell` and `\setshell`, which would start processes between statements;
//! `\aset`, `\;`, the bodies of functions in SQL; `random_gaussian`, `random_exponential`,
//! `permute`, the hash functions, `debug`. The driver pgbench runs scripts that use them.

mod command;
mod expression;
mod function;
mod op;
mod parse;
mod program;
mod run;
mod scan;
mod value;
mod variables;

pub use program::{Program, Settings, Source};
pub use run::ScriptClient;
#[cfg(test)]
use value::Value;

use std::fmt;

/// A fault of a script, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub script: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// The backslash command it is in.
    pub command: Option<String>,
    pub text: String,
}

impl Fault {
    /// A fault at byte `offset` of the text.
    fn at(script: &str, text: &str, offset: usize, command: Option<&str>, message: String) -> Self {
        let (start, line, column) = place(text, offset);
        let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        Self {
            script: script.to_owned(),
            line,
            column,
            message,
            command: command.map(str::to_owned),
            text: text[start..end].trim_end_matches('\r').to_owned(),
        }
    }
}

/// The offset of the line that holds byte `offset`, the line's number, and the character's position
/// in it, both from 1.
fn place(text: &str, offset: usize) -> (usize, usize, usize) {
    let offset = (0..=offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    (start, text[..start].matches('\n').count() + 1, text[start..offset].chars().count() + 1)
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}:{}: {}", self.script, self.line, self.column, self.message)?;
        if let Some(command) = &self.command {
            write!(to, " in command \"{command}\"")?;
        }
        write!(to, "\n{}\n{:>column$} error found here", self.text, '^', column = self.column)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests;
