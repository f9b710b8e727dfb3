//! The machine under the engine, and the only place that names it: `std`, loom or the model.
//!
//! Each machine is one file with the same surface, chosen by a `cfg`. The rest of the crate and of
//! the engine reads only this surface:
//!
//! - `atomic`: the atomic types, `Ordering` and `fence`;
//! - [`Mutex`], [`MutexGuard`], [`Condvar`]: locks in which a thread may sleep;
//! - [`core_local!`](crate::core_local): state of which each core has its own;
//! - [`preemption_point`]: called where the loss of the processor may uncover a race. Such places
//!   are stop points, latches, and each step between an optimistic read and its validation;
//! - `racy_access`: called before each read of memory that others may be changing;
//! - `spin_loop`, `yield_thread`, `park_thread`, `thread_waker`: how a thread that is no core
//!   waits;
//! - `Sleepers`: the threads that sleep while a word has a value;
//! - [`current_processor`]: where a thread runs at the moment;
//! - `next_number`: numbers that tell threads apart;
//! - [`OnceLock`], [`LazyLock`], [`Once`], [`channel`]: `std`'s, but on the model machine.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // an interface to the machine

#[cfg(any(loom, model))]
mod futex;
#[cfg(loom)]
mod loom;
#[cfg(model)]
pub(crate) mod model;
#[cfg(not(any(loom, model)))]
mod os;
#[cfg(not(model))]
mod standard;

#[cfg(any(loom, model))]
pub(crate) use self::futex::Sleepers;
#[cfg(loom)]
pub use self::loom::*;
#[cfg(model)]
pub use self::model::*;
#[cfg(not(any(loom, model)))]
pub use self::os::*;
#[cfg(not(model))]
pub use self::standard::*;
