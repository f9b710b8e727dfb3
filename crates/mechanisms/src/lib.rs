//! `allcore bench mechanism`: each published mechanism beside what it replaced and beside the
//! engine's own.
//!
//! A row ([`rows`]) has several arms: the stock state, the steps and the published fix, and the
//! engine's own type. The variants come from the crates `variants` and `calls`. A round ([`round`])
//! lets a number of threads repeat the row's operation on one arm. The arms take turns round by
//! round ([`run()`]), and the rounds become a [`report`]. Its pages have beside them what stored
//! runs of the lab say of the variants on the [`engine`].
//!
//! What must hold:
//! 1. All arms of a row do the same work, so that only the mechanism differs. Two rows are
//!    exceptions, and their files say why. The engine's own arm of `no-remap-io` reads the disk,
//!    and the other arms read a cached file. In `pinned-memory` all arms but the engine's own map
//!    memory anew in each pass.
//! 2. Each round checks its structure against the operations done. A wrong variant fails the run.
//! 3. The report has what was measured before Ctrl-C.

#![forbid(unsafe_code)]

mod engine;
mod here;
mod locks;
mod meeting;
pub mod options;
mod page;
mod questions;
mod report;
mod round;
mod rows;
mod run;
mod shootdowns;

pub use run::run;
