//! Transactions over a real folder. One binary, so that the crates below are linked once and tests
//! of all files share two threads. Tests that arm stop points, which are the process's, have
//! binaries of their own.

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod model;
mod rowlocks;
mod snapshots;
mod speed;
mod stress;
mod table_locks;
mod turmoil;
mod waiting;
