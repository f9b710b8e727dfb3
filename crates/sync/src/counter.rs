//! A counter that many cores add to and few read: each adds on a cache line of its own, a reader
//! sums.

use crate::atomic::{AtomicI64, Ordering};
use crate::padded::CachePadded;
use crate::slot;

/// A sum kept in shards. Exact once the adders are quiet; while they run a reader sees some moment
/// of each shard.
#[derive(Debug)]
pub struct ShardedCounter {
    shards: Box<[CachePadded<AtomicI64>]>,
}

impl ShardedCounter {
    /// A counter at zero, with a shard for each of `cores` (rounded up to a power of two).
    pub fn new(cores: usize) -> Self {
        let shards = cores.max(1).next_power_of_two();
        Self { shards: (0..shards).map(|_| CachePadded::new(AtomicI64::new(0))).collect() }
    }

    /// Adds to the shard of this thread.
    #[inline]
    pub fn add(&self, amount: i64) {
        let shard = slot::current() & (self.shards.len() - 1);
        // Relaxed: a count orders nothing else.
        self.shards[shard].fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum of all shards.
    pub fn sum(&self) -> i64 {
        // Relaxed: see `add`.
        self.shards.iter().map(|shard| shard.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sums_what_threads_add() {
        let counter = ShardedCounter::new(3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| counter.add(2)));
            }
        });
        counter.add(-1);
        assert_eq!(counter.sum(), 79_999);
    }
}
