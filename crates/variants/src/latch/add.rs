//! The published latch: one optimistic add, undone when the thread was not entitled (P15).
//!
//! 1. A reader adds its share to the state word. If no writer held the latch, it has the share:
//!    one atomic change that never fails, at any number of readers.
//! 2. Otherwise it subtracts the share again and must wait.
//! 3. A writer exchanges a word without holders for one with [`EXCLUSIVE`]. It must not add
//!    optimistically, because readers would take it for a holder.
//!
//! What must hold: a share that is about to be undone looks like a holder. A writer's release may
//! see it and wake nobody, and a writer's attempt may fail because of it. So undoing is a release:
//! the thread that leaves the latch free owes the wake-up ([`Outcome::Undone`]).
//!
//! Cost in line transfers: 1 for a shared acquisition, 1 for its release, at any number of readers.
//! 2 for an attempt that is undone.

use sync::atomic::{AtomicU32, Ordering};

use super::exchange::exchange;
use super::lwlock::{Attempt, EXCLUSIVE, HELD, LwLock, Outcome, SHARED};
use crate::caller::Caller;

/// LWLock with P15's optimistic add.
pub type AddLatch = LwLock<Add>;

/// Adds first and looks afterwards.
#[derive(Debug)]
pub enum Add {}

impl Attempt for Add {
    #[inline]
    fn share(state: &AtomicU32, me: &mut Caller) -> Outcome {
        // Acquire: what the last writer wrote is seen.
        if state.fetch_add(SHARED, Ordering::Acquire) & EXCLUSIVE == 0 {
            return Outcome::Taken;
        }
        me.retried();
        // Release: this counts as a release to the thread that takes the latch next.
        Outcome::Undone(state.fetch_sub(SHARED, Ordering::Release) - SHARED)
    }

    #[inline]
    fn take(state: &AtomicU32, me: &mut Caller) -> Outcome {
        exchange(state, me, HELD, EXCLUSIVE)
    }
}
