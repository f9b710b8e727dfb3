//! Threads that stress a variant, more of them than cores. The tests of `calls` include this file.

use std::thread;

pub(crate) use sync::stress::threads;

use crate::caller::Caller;

/// Operations of each, a multiple of 8: together some 32,000.
pub(crate) fn rounds() -> u64 {
    (32_000 / threads() as u64 / 8).max(4) * 8
}

/// Runs `body` on each of [`threads`] threads and returns what they return.
pub(crate) fn at_once<R: Send>(body: impl Fn(&mut Caller) -> R + Sync) -> Vec<R> {
    on(threads(), body)
}

/// Runs `body` on this number of threads and returns what they return.
pub(crate) fn on<R: Send>(threads: usize, body: impl Fn(&mut Caller) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
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
