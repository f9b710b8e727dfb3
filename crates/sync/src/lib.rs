//! Synchronization: everything by which two cores agree on something.
//!
//! This is the only crate that names the machine's atomics; the others take them from [`atomic`], so the same code
//! runs on the machine and under loom. Nothing here knows of pages, fibers or SQL. What must hold:
//!
//! 1. No latch ([`SpinLock`], [`VersionLatch`] exclusive) is held across a park. [`held`] counts, [`park::park`] asserts.
//! 2. Whoever waits enqueues first and looks again before it parks, so that no wake-up is lost ([`WaitQueue`]).
//! 3. What is read optimistically goes through [`racy::RacyBytes`] and is hostile until its version is validated.

pub mod atomic;
pub mod held;
pub mod park;
pub mod racy;
pub mod slot;
pub mod stop;

mod caption;
mod counter;
mod cursor;
mod fair;
mod padded;
mod prefetch;
mod spin;
mod version;
mod wait;
mod work;

pub use caption::Caption;
pub use counter::ShardedCounter;
pub use cursor::{BatchCursor, Claim, Position};
pub use fair::FairQueue;
pub use padded::{CachePadded, PerCore};
pub use prefetch::prefetch;
pub use spin::{SpinGuard, SpinLock};
pub use std::sync::Mutex;
pub use version::{Version, VersionLatch};
pub use wait::WaitQueue;
pub use work::WorkQueue;
