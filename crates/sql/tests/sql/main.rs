//! The engine as a program that embeds it meets it. One binary, so that the engine is linked once
//! and tests of all files share two threads. Tests that arm stop points, which are the process's,
//! have binaries of their own.

mod autovacuum;
mod basic;
mod characteristics;
#[path = "../common/mod.rs"]
mod common;
mod compiling;
mod counts;
mod definitions;
mod expressions;
mod hot_path;
mod integrity;
mod leftovers;
mod load;
mod missing_values;
mod model;
mod more;
mod schemas;
mod sequences;
mod spill;
mod statistics;
mod storm;
mod storm_keys;
