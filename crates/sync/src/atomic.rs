//! The atomics facade: what the [machine](crate::machine) has, and how to wait while spinning.

pub use crate::machine::atomic::*;
pub use crate::machine::{spin_loop, yield_thread};
