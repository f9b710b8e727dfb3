//! The step between: a compare-and-swap loop on one state word (PostgreSQL 9.5,
//! `LWLockAttemptLock`).
//!
//! An attempt reads the word, computes the word it wants, and exchanges the two. It begins anew if
//! the word has changed meanwhile. Where it must wait, it exchanges the word for itself, because
//! PostgreSQL uses the exchange as a memory barrier. The queue is that of [`super::lwlock`].
//!
//! What must hold: the word changes by exchanges that saw it, so no attempt ever holds more than it
//! is entitled to.
//!
//! Cost in line transfers: 1 for an uncontended acquisition, 1 for a release. With n readers at
//! once, an attempt fails whenever another reader came first, and each failure is a transfer. So
//! one acquisition costs up to n, and all of them up to n^2.

use sync::atomic::{AtomicU32, Ordering};

use super::lwlock::{Attempt, EXCLUSIVE, HELD, LwLock, Outcome, SHARED};
use crate::caller::Caller;

/// LWLock as in PostgreSQL 9.5.
pub type ExchangeLatch = LwLock<Exchange>;

/// Changes the word by a loop of exchanges.
#[derive(Debug)]
pub enum Exchange {}

impl Attempt for Exchange {
    #[inline]
    fn share(state: &AtomicU32, me: &mut Caller) -> Outcome {
        exchange(state, me, EXCLUSIVE, SHARED)
    }

    #[inline]
    fn take(state: &AtomicU32, me: &mut Caller) -> Outcome {
        exchange(state, me, HELD, EXCLUSIVE)
    }
}

/// Adds `share` if no bit of `against` is set.
#[inline]
pub(super) fn exchange(state: &AtomicU32, me: &mut Caller, against: u32, share: u32) -> Outcome {
    // Relaxed: the exchange decides.
    let mut seen = state.load(Ordering::Relaxed);
    loop {
        let is_free = seen & against == 0;
        let wanted = if is_free { seen + share } else { seen };
        // AcqRel: what the last holder wrote is seen; the original's barrier. Relaxed on failure:
        // looked at again.
        match state.compare_exchange_weak(seen, wanted, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) if is_free => return Outcome::Taken,
            Ok(_) => return Outcome::Refused,
            Err(found) => {
                me.retried();
                seen = found;
            }
        }
    }
}
