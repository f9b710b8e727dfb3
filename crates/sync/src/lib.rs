//! Synchronization: everything by which two cores agree on something.
//!
//! Only this crate names the machine's atomics, locks and thread locals, in one module. The others
//! take them from here, so the same code runs on `std`, under loom and on a model machine. Nothing
//! here knows of pages, fibers or SQL. What must hold:
//!
//! 1. No latch ([`SpinLock`], [`VersionLatch`] exclusive) is held across a park. [`held`] counts,
//!    [`park::park`] asserts.
//! 2. A waiter enqueues first and tests its condition again before it parks, so that no wake-up is
//!    lost ([`WaitQueue`]).
//! 3. An optimistic read goes through [`racy::RacyBytes`]; its bytes are hostile until their
//!    version is validated.

#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

pub mod atomic;
pub mod held;
pub mod park;
pub mod profile;
pub mod racy;
pub mod slot;
#[doc(hidden)] // for tests
pub mod stress;

mod caption;
mod counter;
mod cursor;
mod fair;
mod futex;
mod machine;
mod padded;
mod processor;
mod spin;
mod spinners;
mod version;
mod wait;
mod work;

pub use caption::Caption;
pub use counter::ShardedCounter;
pub use cursor::{BatchCursor, Claim, Position, Walk};
pub use fair::FairQueue;
pub use futex::Futex;
#[cfg(model)]
pub use machine::{CoreLocal, Scheduler, ledger, set_scheduler};
pub use machine::{
    LazyLock, Mutex, MutexGuard, Once, OnceLock, channel, current_processor, preemption_point,
};
pub use padded::{CachePadded, PerCore};
pub use processor::prefetch;
pub use spin::{SpinGuard, SpinLock};
pub use spinners::Spinners;
pub use version::{Version, VersionLatch};
pub use wait::WaitQueue;
pub use work::WorkQueue;
