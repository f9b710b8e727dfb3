//! Published mechanisms against scaling collapse, each beside the state it replaced.
//!
//! A module is one row: the trait of a mechanism, the `stock` implementation, the `published` one,
//! and the steps between them. The crate `mechanisms` runs them beside the engine's own, and an
//! engine built with `--cfg variants` runs some in place of its own ([`chosen`]). Reports have an
//! initial and a year:
//!
//! - B14: Belousov 2014, PostgreSQL on FreeBSD, 4 sockets of 10 cores with 2 threads each;
//! - G26: Burd and Mlodgenski 2026, batched clock sweep, 6 NUMA nodes, 384 threads;
//! - K07: Kennaway 2007, MySQL on FreeBSD and Linux, 8 cores;
//! - P15: Korotkov and others 2015, PostgreSQL on POWER8, 4 sockets of 8 cores with 8 threads each.
//!
//! What must hold:
//!
//! 1. A variant is as good as its authors would write it: same padding, same bounds of spinning.
//!    Only the mechanism differs.
//! 2. Locks guard plain atomics of their users, so no variant needs `unsafe`.
//! 3. Each head states the algorithm, its invariants and its cost in line transfers. A transfer is
//!    the move of a cache line from one core to another.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

pub mod caller;
pub mod chosen;
pub mod clean_list;
pub mod clock_hand;
pub mod free_queues;
pub mod latch;
pub mod needs_buffer;
pub mod pin;
pub mod runs;
pub mod semaphore;
pub mod sleep_lock;
pub mod snapshot;
pub mod spin;

mod gate;
mod running;
#[cfg(all(test, not(loom)))]
mod test_threads;
mod waiters;
