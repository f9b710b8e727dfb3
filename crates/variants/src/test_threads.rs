//! Threads that stress a variant, more of them than cores.

use std::thread;

use sync::atomic::{AtomicU64, Ordering};

use crate::caller::Caller;
use crate::spin::Exclusion;

/// Threads of a stress test: several times the cores of a developer's machine.
pub(crate) const THREADS: usize = 16;
/// Operations of each.
pub(crate) const ROUNDS: u64 = 2_000;

/// Runs `body` on each of [`THREADS`] threads and returns what they return.
pub(crate) fn at_once<R: Send>(body: impl Fn(&mut Caller) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn({
                    let body = &body;
                    move || body(&mut Caller::new(number))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Checks that a lock excludes: threads add by a load and a store, and no addition is lost.
pub(crate) fn excludes(lock: &impl Exclusion, rounds: u64) {
    let sum = AtomicU64::new(0);
    at_once(|me| {
        for _ in 0..rounds {
            lock.with(me, || {
                // Relaxed: ordered by the lock under test.
                let seen = sum.load(Ordering::Relaxed);
                sum.store(seen + 1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(sum.into_inner(), THREADS as u64 * rounds);
}
