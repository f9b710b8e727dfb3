//! The lab: drives PostgreSQL- and MySQL-speaking servers side by side over a sweep of clients and shows where each stops
//! scaling, and why. It knows nothing of the engine.
//!
//! The way of a run: the command line (`options`) names arms (`arm`) and a workload (`workload`). The sweep goes through
//! the points, arms alternating round by round, each round one [`drive::Driver::run`] with the observers beside it. What
//! was measured becomes a [`report::Report`], which every output (table, JSON, Markdown, HTML) is made from.
//!
//! What must hold:
//! 1. Nothing on the load loop is shared between threads, allocates, or makes a system call beyond its socket work.
//! 2. A statement's latency begins when it was due, not when it could be sent (open loop), or when it is sent (closed).
//! 3. Whatever was measured before an error or Ctrl-C is in the report, with what is missing.
#![forbid(unsafe_code)]

pub mod arm;
pub mod client;
pub mod drive;
pub mod findings;
pub mod interrupt;
pub mod observe;
pub mod options;
pub mod report;
pub mod run;
pub mod script;
pub mod stats;
pub mod sweep;
pub mod view;
pub mod workload;

#[cfg(test)]
mod tests;
