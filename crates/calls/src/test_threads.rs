//! Threads that stress a variant, more of them than cores.

use std::thread;

use variants::caller::Caller;

/// Threads of a stress test: several times the cores of a developer's machine.
pub(crate) const THREADS: usize = 16;

/// Runs `body` on each of [`THREADS`] threads and returns what they return.
pub(crate) fn at_once<R: Send>(body: impl Fn(&mut Caller) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let start = |number| {
            let body = &body;
            scope.spawn(move || body(&mut Caller::new(number)))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
