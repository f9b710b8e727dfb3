//! Threads that stress a variant, more of them than cores. The tests of `calls` include this file.

use std::thread;

use crate::caller::Caller;

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
