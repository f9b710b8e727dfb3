//! The machine as the engine sees it: cores, fibers, time, files, sockets, memory, randomness.
//!
//! One pinned worker thread per core runs stackful fibers; a fiber never changes core. Engine code
//! reads as straight blocking code: what would block parks its fiber and the core runs another.
//! What must hold:
//!
//! 1. No fiber suspends with a latch held (checked at every suspend point).
//! 2. A core sleeps only when nothing on it can run. A sender of work wakes it.
//! 3. Nothing here knows of pages or SQL; nothing above takes threads, time, files or randomness
//!    from elsewhere.

#![cfg(not(loom))] // a loom model includes the one file that it checks
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

pub mod account;
pub mod aside;
pub mod budget;
pub mod counters;
pub mod faults;
pub mod fiber;
pub mod file;
pub mod hash;
pub mod helper;
pub mod interrupt;
pub mod memory;
#[cfg(model)]
pub mod model;
pub mod net;
pub mod page_counts;
pub mod producer;
pub mod random;
#[cfg(variants)]
pub mod replaced;
pub mod stop;
pub mod time;
pub mod timer;
pub mod topology;
pub mod wait_event;
pub mod watchdog;
pub mod work;
pub mod workers;

mod balance;
mod call;
mod device;
mod fail_stop;
mod groups;
mod here;
#[cfg(model)]
#[path = "os/mapping.rs"]
mod host; // the memory under the model machine
mod load;
mod mail;
mod mailbox;
#[cfg(not(model))]
mod os;
mod reactor;
mod shared;
mod stack;
mod start;
mod stat;
mod worker;

#[cfg(model)]
use model as os;

pub use fail_stop::{Cause, Critical, fail_stop};
pub use sync::core_local;

pub use fiber::core::{core, core_count, shutting_down, try_core};
pub use file::FileIo;
pub use start::{Facts, Options, Runtime, processor_count};

/// Reports an end that should not have happened, in the log, or on standard error if the program
/// keeps no log. The text is written when this returns, because the process may end next.
pub fn last_words(words: std::fmt::Arguments<'_>) {
    match log::max_level() {
        log::LevelFilter::Off => eprintln!("{words}"),
        _ => {
            log::error!("{words}");
            log::logger().flush();
        }
    }
}

/// Starts a thread for what may block for long; a worker's fibers must not.
pub fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    os::thread::spawn(name, None, body).map(drop)
}

/// Whether this thread is unwinding from a panic.
#[inline]
pub fn is_panicking() -> bool {
    os::thread::is_panicking()
}

#[cfg(test)]
mod tests;
