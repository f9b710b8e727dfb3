//! Faults of the simulation's own, which must fail the process: they prove that its checks work.

use clap::ValueEnum;
use sync::atomic::{AtomicBool, Ordering, spin_loop};

/// A fault that a run is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// The readers expect a sum that the accounts do not have.
    Sum,
    /// A client panics, and spins for ever while it unwinds.
    Spin,
}

/// Spins for ever when it is dropped.
pub struct Spinner;

impl Drop for Spinner {
    fn drop(&mut self) {
        let never = AtomicBool::new(false);
        // Relaxed: nobody writes it.
        while !never.load(Ordering::Relaxed) {
            spin_loop();
        }
    }
}
