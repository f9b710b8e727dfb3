//! Loom model of the queue that operating system threads wait at: every piece is done once, and
//! every thread ends.
#![cfg(loom)]
#![allow(missing_docs)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use sync::WorkQueue;

#[test]
fn pieces_are_done_once_and_threads_end() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let queue = Arc::new(WorkQueue::new(2));
        let done = Arc::new(AtomicUsize::new(0));
        let start = |wanted: usize| {
            (0..wanted)
                .map(|_| {
                    let (queue, done) = (queue.clone(), done.clone());
                    thread::spawn(move || {
                        let mut busy = false;
                        while let Some(piece) = queue.next(busy) {
                            done.fetch_add(piece, Ordering::Relaxed);
                            busy = true;
                        }
                    })
                })
                .collect::<Vec<_>>()
        };
        // One thread for one piece; then another for each piece that no idle thread will take.
        let mut threads = start(queue.push_all([1]));
        assert_eq!(threads.len(), 1);
        threads.extend(start(queue.push_all([10, 100])));
        assert!(threads.len() <= 2);
        queue.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(done.load(Ordering::Relaxed), 111);
    });
}
