//! Ticket locks: first come, first served by two counters (Mellor-Crummey and Scott 1991, section
//! 2.2), without and with proportional backoff.
//!
//! 1. A thread draws a ticket with one add on `next`.
//! 2. It polls `serving` until that is its ticket. With backoff it first pauses for `PAUSES` pauses
//!    of the processor for each thread before it.
//! 3. The release adds 1 to `serving`. Only the holder writes it, so a plain store is enough.
//!
//! What must hold: tickets are drawn once each, and `serving` moves by one a release. So one thread
//! holds the lock, in the order of the draws. The counters may wrap, because only equality and
//! differences count.
//!
//! Cost in line transfers: 2 for an uncontended lock that another core used last, one for each
//! counter. The counters have lines of their own, so a draw disturbs no poll. A release invalidates
//! n copies of `serving`, and n waiters fetch it: n transfers a hand-over. Backoff leaves about one
//! fetch by the next holder and few by the others.

use sync::atomic::{AtomicU32, Ordering};
use sync::{CachePadded, profile};

use super::Lock;
use crate::caller::{Backoff, Caller};

/// A ticket lock; `PAUSES` pauses for each thread before the caller, 0 without backoff.
#[derive(Debug)]
pub struct Ticket<const PAUSES: u32> {
    next: CachePadded<AtomicU32>,
    serving: CachePadded<AtomicU32>,
}

impl<const PAUSES: u32> Lock for Ticket<PAUSES> {
    fn new(_: usize) -> Self {
        Self { next: CachePadded::new(AtomicU32::new(0)), serving: CachePadded::new(AtomicU32::new(0)) }
    }

    #[inline]
    fn lock(&self, _: &mut Caller) {
        // Relaxed: the draw is the number itself; the poll below acquires.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: what the last holder wrote is seen.
        let before = || ticket.wrapping_sub(self.serving.load(Ordering::Acquire));
        if before() == 0 {
            return;
        }
        let mut backoff = Backoff::default();
        profile::wait(&"ticket lock", || {
            loop {
                match before() {
                    0 => return,
                    threads => (0..(threads * PAUSES).max(1)).for_each(|_| backoff.pause()),
                }
            }
        });
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        // Relaxed: only the holder changes the word.
        let own = self.serving.load(Ordering::Relaxed);
        // Release: the next holder sees what this one wrote.
        self.serving.store(own.wrapping_add(1), Ordering::Release);
    }
}
