//! pgbench's script language, as PostgreSQL 18's documentation describes it. It has SQL commands,
//! `\set` and its expressions, `\gset`, `\if`, `\sleep`, weights, variables of the command line and
//! automatic ones.
//!
//! `scan` cuts a script's text into commands, `parse` reads their expressions, and `command` makes
//! ops of them. `program` combines all scripts of a mix into one immutable [`Program`] in which
//! variables have numbers. `run` steps one client through it.
//!
//! What must hold:
//! 1. Deterministic computations give pgbench's results.
//! 2. A running client allocates nothing once each of its variables has held its longest text.
//! 3. `:name` is replaced wherever it stands in a command, in quotes and comments too, as in
//!    pgbench. A name that no command can ever set stays as it is.
//!
//! Three differences from pgbench:
//! - A repeated transaction restores its initial variables, not the random numbers alone, so that
//!   `\set n :n + 1` counts transactions and not tries.
//! - A statement is prepared when the client connects, not when it first runs.
//! - A statement with a variable that has no value yet ends the client.
//!
//! Not supported: `\shell` and `\setshell`, which would start processes between statements;
//! `\aset`, `\;`, the bodies of functions in SQL. Nor are NULL, arithmetic on doubles, CASE,
//! operators on bits, IS, and functions other than those of `expression::FUNCTIONS`. The driver
//! pgbench runs scripts that use them.

mod command;
mod expression;
mod parse;
mod program;
mod run;
mod scan;
mod source;
mod value;
mod variables;

pub use program::{Program, Settings};
pub use run::ScriptClient;
pub use source::Source;

#[cfg(test)]
mod tests;
