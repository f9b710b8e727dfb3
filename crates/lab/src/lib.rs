//! The lab: drives PostgreSQL- and MySQL-speaking servers side by side over a sweep of clients and shows where each stops
//! scaling, and why. It knows nothing of the engine.
//!
//! The way of a run: the command line (`options`) names arms (`arm`) and a workload (`workload`). The sweep goes through
//! the points, arms alternating round by round, each round one [`drive::Driver::run`] with the observers beside it. What
//! was measured becomes a [`record::Report`], which every output (table, JSON, Markdown, HTML) is made from.
//!
//! Modules know those before them in this order, and no module knows itself again through another: `client` (statements
//! and what a client does next), `load`, `arm`, `record`, `figures`, `stats`, `script`, `workload`, `drive`, `options`,
//! `report`, `observe`, `findings`, `sweep`, `view`, `run`.
//!
//! What must hold:
//! 1. Nothing on the load loop is shared between threads, allocates, or makes a system call beyond its socket work.
//! 2. A statement's latency begins when it was due, not when it could be sent (open loop), or when it is sent (closed).
//! 3. Whatever was measured before an error or Ctrl-C is in the report, with what is missing.
#![forbid(unsafe_code)]

pub(crate) mod arm;
pub(crate) mod client;
pub(crate) mod drive;
pub(crate) mod figures;
pub(crate) mod findings;
pub mod interrupt;
pub(crate) mod load;
pub(crate) mod observe;
pub mod options;
pub(crate) mod record;
pub(crate) mod report;
pub mod run;
pub(crate) mod script;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod view;
pub(crate) mod workload;

#[cfg(test)]
mod tests;
