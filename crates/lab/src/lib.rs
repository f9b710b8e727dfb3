//! The lab: drives PostgreSQL- and MySQL-speaking servers side by side over a sweep of clients. It
//! reports where each stops scaling, and why. It knows nothing of the engine.
//!
//! A run goes as follows. The command line (`options`) names arms (`arm`) and a workload
//! (`workload`). The sweep goes through the points and alternates the arms round by round. Each
//! round is one `drive::Driver::run` with the observers beside it. The measurements become a
//! `record::Report`, from which the lab makes every output (table, JSON, Markdown, HTML).
//!
//! A module uses only those before it in this order, and there are no circles: `files`, `client`
//! (statements, and a client's next step), `load`, `arm`, `record`, `figures`, `stats`, `script`,
//! `workload`, `drive`, `options`, `report`, `observe`, `findings`, `sweep`, `view`, `run`.
//!
//! What must hold:
//! 1. On the load loop no thread shares data with another, allocates, or makes a system call beyond
//!    its socket work.
//! 2. Latency counts from a transaction's arrival in an open loop, not from its sending; in a
//!    closed loop it counts from the sending.
//! 3. The report has all measurements before an error or Ctrl-C, and names those that are missing.
#![forbid(unsafe_code)]

pub(crate) mod arm;
pub(crate) mod client;
pub(crate) mod drive;
pub mod figures;
pub mod files;
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

pub use client::random::Random;
pub use observe::facts;
pub use record::{COMMIT, Interval, Point, Report, Verdict};
pub use report::{Page, Part, sheet};
pub use run::stored;
pub use stats::{estimate_positive, median, of_logs, ratio};
pub use sweep::steps;
pub use view::say;

#[cfg(test)]
mod tests;
