//! Transaction numbers. Cores hand them out from batches of their own, so assigning one touches no
//! cache line of another core.
//!
//! A core's word is the next number that it will hand out; a multiple of [`BATCH`] means that its
//! batch is used up. Numbers that an idle core does not use would hold the horizon back. So the
//! horizon's keeper may take the rest of a batch away: a compare-and-swap decides between it and
//! the core.
//!
//! Invariant: no number is handed out twice, or both handed out and taken away. Each is less than
//! [`WINDOW`] above the newest horizon that a core has used.
//!
//! This file knows atomics only; `tests/loom_txids.rs` runs it under loom.

use sync::CachePadded;
use sync::PerCore;
use sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::status::WINDOW;
use crate::version::MAX_TXID;

/// Numbers that a core takes at once: eight cache lines of the status table, so that cores do not
/// share lines. Loom's models use up batches.
pub const BATCH: u64 = if cfg!(loom) { 3 } else { 64 };

/// The source of transaction numbers.
pub struct Txids {
    next: CachePadded<AtomicU64>,
    cores: PerCore<AtomicU64>,
}

impl Txids {
    /// Hands out numbers from `first` on, rounded up to a whole batch.
    pub fn new(first: u64, cores: usize) -> Txids {
        let first = first.max(1).next_multiple_of(BATCH);
        Txids {
            next: CachePadded::new(AtomicU64::new(first)),
            cores: PerCore::new(cores, |_| AtomicU64::new(0)),
        }
    }

    /// A number that was never handed out before. `horizon` bounds how far numbers may run ahead.
    #[inline]
    pub fn assign(&self, core: usize, horizon: u64) -> Result<u64, Error> {
        let word = self.cores.get(core);
        // Relaxed everywhere: cores agree on the number only; the status word publishes the rest.
        let mut next = word.load(Ordering::Relaxed);
        loop {
            if next.is_multiple_of(BATCH) {
                return self.new_batch(word, horizon);
            }
            match word.compare_exchange_weak(next, next + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(next),
                Err(found) => next = found,
            }
        }
    }

    #[cold]
    fn new_batch(&self, word: &AtomicU64, horizon: u64) -> Result<u64, Error> {
        // Relaxed: see `assign`. A core may find an old end, but its add shows it the newest. So
        // each core goes beyond the bound by one batch at most, and the slack covers that.
        let ahead = self.next.load(Ordering::Relaxed).saturating_sub(horizon);
        let slack = BATCH * (self.cores.len() as u64 + 1);
        if ahead + slack > WINDOW || self.next.load(Ordering::Relaxed) + slack > MAX_TXID {
            return Err(Error::TooManyTransactions);
        }
        let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
        // Only this core's running fiber leaves the state "used up", so no other thread stores now.
        word.store(first + 1, Ordering::Relaxed);
        Ok(first)
    }

    /// No core has a number from here on.
    pub fn end(&self) -> u64 {
        // Relaxed: a bound that only grows.
        self.next.load(Ordering::Relaxed)
    }

    /// Takes away the rest of the batch of `txid`, unless `txid` itself has been handed out.
    /// Returns the numbers taken, which will never be used.
    pub(crate) fn take_rest(&self, txid: u64) -> Option<std::ops::Range<u64>> {
        let end = (txid / BATCH + 1) * BATCH;
        for word in self.cores.iter() {
            // Relaxed: the compare-and-swap below decides.
            let next = word.load(Ordering::Relaxed);
            let same_batch = !next.is_multiple_of(BATCH) && next / BATCH == txid / BATCH;
            if same_batch && next <= txid {
                // Relaxed: cores agree on the numbers only.
                return word
                    .compare_exchange(next, end, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
                    .then_some(next..end);
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_batches_apart() {
        let txids = Txids::new(1, 2);
        let mut seen = std::collections::HashSet::new();
        for turn in 0..1000 {
            let core = turn % 2;
            let txid = txids.assign(core, 1).unwrap();
            assert!(txid >= BATCH && seen.insert(txid) && txid < txids.end());
        }
    }

    #[test]
    fn the_rest_of_an_idle_batch_is_taken_once() {
        let txids = Txids::new(1, 1);
        let first = txids.assign(0, 1).unwrap();
        assert_eq!(txids.take_rest(first), None);
        assert_eq!(txids.take_rest(first + 1), Some(first + 1..first + BATCH));
        assert_eq!(txids.take_rest(first + 1), None);
        assert_eq!(txids.assign(0, 1).unwrap(), first + BATCH);
    }

    #[test]
    fn an_ancient_horizon_stops_numbers() {
        let txids = Txids::new(WINDOW, 1);
        assert_eq!(txids.assign(0, 1), Err(Error::TooManyTransactions));
        assert!(txids.assign(0, WINDOW - BATCH).is_ok());
    }
}
