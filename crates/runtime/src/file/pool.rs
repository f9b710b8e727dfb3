//! Threads for blocking operations: all file operations without io_uring, and the rare ones with
//! it.
//!
//! A thread starts when there is work and no idle thread, up to a bound, and stays. What must hold:
//! a fiber that hands work over parks until it has ended, so everything that the work borrows stays
//! alive.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

use sync::WorkQueue;
use sync::atomic::{AtomicUsize, Ordering};

use crate::device::Operation;
use crate::fiber::Fiber;
use crate::os;
use crate::{Cause, fail_stop};

const THREADS_MAX: usize = 8;

/// The pool of one runtime.
pub(crate) struct Pool(WorkQueue<Work>);

/// Pieces of work of one fiber, which waits for all of them.
struct Group {
    left: AtomicUsize,
    waker: Waker,
}

/// One piece of work.
struct Work {
    body: *mut (dyn FnMut() + Send),
    group: *const Group,
}

// SAFETY: body and group lie with a fiber that waits for the group's end, and each body is run by
// one thread.
unsafe impl Send for Work {}

impl Pool {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(WorkQueue::new(THREADS_MAX)))
    }

    /// Lets the threads end once the queue is empty.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Runs all bodies on threads of the pool and parks until all have ended. The bodies must not
    /// panic.
    fn run_all(self: &Arc<Self>, fiber: &Fiber, bodies: &mut [&mut (dyn FnMut() + Send)]) {
        // Nothing may unwind from here once a thread knows of our stack, so what a park asserts is
        // asserted before.
        fiber.assert_may_suspend();
        let group = Group { left: AtomicUsize::new(bodies.len()), waker: sync::park::current() };
        let works = bodies.iter_mut().map(|body| {
            let body: *mut (dyn FnMut() + Send + '_) = *body;
            // SAFETY: only the lifetime changes; we wait below until no thread uses the body any
            // more.
            let body = unsafe {
                std::mem::transmute::<*mut (dyn FnMut() + Send + '_), *mut (dyn FnMut() + Send)>(body)
            };
            Work { body, group: &group }
        });
        for _ in 0..self.0.push_all(works) {
            if let Err(error) = self.start_thread()
                && self.0.not_started() == 0
            {
                fatal(&error);
            }
        }
        // Acquire: what the bodies did is seen.
        while group.left.load(Ordering::Acquire) > 0 {
            fiber.park();
        }
    }

    /// Runs `body` on a thread of the pool while `fiber`, which calls, parks.
    pub(super) fn run<R: Send>(self: &Arc<Self>, fiber: &Fiber, body: impl FnOnce() -> R + Send) -> R {
        let mut body = Some(body);
        let mut result = None;
        self.run_all(
            fiber,
            &mut [&mut || {
                let body = body.take().expect("work is run once");
                result = Some(catch_unwind(AssertUnwindSafe(body)));
            }],
        );
        result.expect("work that has ended has its result").unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let pool = self.clone();
        os::thread::spawn("file-io", None, move || pool.work()).map(drop)
    }

    /// A thread's life.
    fn work(&self) {
        let mut done = false;
        while let Some(work) = self.0.next(done) {
            // SAFETY: the fiber waits until `left` is zero, so body and group are alive until the
            // subtraction; the waker is cloned before. The body is ours alone: it was in the queue
            // once.
            unsafe {
                (*work.body)();
                let waker = (*work.group).waker.clone();
                // Release: what the body did is seen by the fiber.
                if (*work.group).left.fetch_sub(1, Ordering::Release) == 1 {
                    waker.wake();
                }
            }
            done = true;
        }
    }

    /// Carries file operations out at the same time.
    pub(super) fn execute_all(
        self: &Arc<Self>,
        fiber: &Fiber,
        operations: &[Operation],
        results: &mut [i32],
    ) {
        if let ([operation], [result]) = (operations, &mut *results) {
            return self.run_all(fiber, &mut [&mut || *result = os::operation::execute(operation)]);
        }
        let mut bodies: Vec<_> = operations
            .iter()
            .zip(results)
            .map(|(operation, result)| move || *result = os::operation::execute(operation))
            .collect();
        let mut bodies: Vec<&mut (dyn FnMut() + Send)> =
            bodies.iter_mut().map(|body| body as &mut (dyn FnMut() + Send)).collect();
        self.run_all(fiber, &mut bodies);
    }
}

/// No thread at all can be had for files: the work is queued and could never end.
fn fatal(error: &io::Error) -> ! {
    fail_stop(Cause::System, format_args!("no thread for file I/O can be started: {error}"))
}
