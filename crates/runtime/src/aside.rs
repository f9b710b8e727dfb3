//! Calls into libraries that have no safe point: they run on a thread of their own while the fiber waits.
//!
//! The fiber parks and can be interrupted, so the core serves others and a cancel request is obeyed at once. A call whose
//! fiber has gone is abandoned: its result is dropped, and it ends early where it calls [`crate::work::tick`]. What must
//! hold:
//!
//! 1. A call owns what it reads: its fiber may be gone before the call ends.
//! 2. The threads are few, are not pinned, and have a lower priority than the cores, so that abandoned calls take little
//!    from them. A call that finds all threads taken waits for one.
//! 3. A call has an [`Interrupt`] of its own. It is the account of the call's memory, whose limit is what the session may
//!    still have, and what the call is abandoned by. What the call leaves allocated is its session's from then on.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

use sync::atomic::{AtomicBool, Ordering};
use sync::{SpinLock, WorkQueue};

use crate::interrupt::{self, Interrupt, Interrupted, Reason};
use crate::work::{self, Stopped};
use crate::{account, fiber, os};

/// Most calls that run at a time.
const THREADS_MAX: usize = 16;
/// Parsers recurse on it; it is backed as it is touched.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// Difference of priority between a core's thread and a call's, as `nice` counts.
const NICE: i32 = 5;

/// The threads of one runtime.
pub(crate) struct Threads {
    queue: WorkQueue<Box<dyn FnOnce() + Send>>,
    /// Where the threads may run: the worker that starts one is pinned.
    processors: Vec<usize>,
}

/// A call as its fiber and its thread see it.
struct Call<R> {
    /// Raised when the fiber no longer waits, or when the call takes too much memory.
    interrupt: Arc<Interrupt>,
    done: AtomicBool,
    result: SpinLock<Option<std::thread::Result<R>>>,
    waker: Waker,
}

thread_local! {
    /// The interrupt of the call that this thread runs.
    static RUNNING: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

/// Ends a call that was interrupted; does nothing on other threads. The reason stays pending for the fiber.
pub(crate) fn check() -> Result<(), Stopped> {
    RUNNING.with_borrow(|running| match running.as_ref().and_then(|interrupt| interrupt.pending()) {
        Some(reason) => Err(Stopped::Interrupted(Interrupted(reason))),
        None => Ok(()),
    })
}

/// Raises the running call's interrupt; does nothing on other threads.
pub(crate) fn raise(reason: Reason) {
    RUNNING.with_borrow(|running| running.iter().for_each(|interrupt| interrupt.raise(reason)));
}

impl Threads {
    pub(crate) fn new(processors: Vec<usize>) -> Arc<Self> {
        Arc::new(Self { queue: WorkQueue::new(THREADS_MAX), processors })
    }

    /// Lets the threads end once the queue is empty.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Queues a piece of work; false when there is no thread to run it and none can be started.
    fn push(self: &Arc<Self>, work: Box<dyn FnOnce() + Send>) -> bool {
        for _ in 0..self.queue.push_all(std::iter::once(work)) {
            let threads = Arc::clone(self);
            let builder = std::thread::Builder::new().name("aside".to_owned()).stack_size(STACK_BYTES);
            let started = builder.spawn(move || threads.run()).is_ok();
            if !started && self.queue.not_started() == 0 {
                return false;
            }
        }
        true
    }

    /// A thread's life.
    fn run(&self) {
        os::unpin(&self.processors);
        os::be_nice(NICE);
        let mut done = false;
        while let Some(work) = self.queue.next(done) {
            work();
            done = true;
        }
    }
}

/// Runs `body` on another thread while the running fiber waits, interruptibly. Where the fiber must not suspend it runs
/// right here, but not within a budget, where it ends with [`Stopped::Budget`]; so it does where no thread can be started.
/// A panic of `body` goes on in the caller.
pub fn run<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> Result<R, Stopped> {
    if work::has_budget() {
        return Err(Stopped::Budget);
    }
    let Some((worker, _)) = fiber::current().filter(|(_, fiber)| fiber.may_suspend()) else {
        return Ok(body());
    };
    let interrupt = Interrupt::new();
    interrupt.set_memory_limit(account::left_to_session());
    let call = Arc::new(Call {
        interrupt,
        done: AtomicBool::new(false),
        result: SpinLock::new(None),
        waker: sync::park::current(),
    });
    let theirs = Arc::clone(&call);
    if !worker.shared.aside.push(Box::new(move || theirs.run(body))) {
        // The queue keeps the work for a thread that may be had later; nobody waits for it then.
        call.interrupt.raise(Reason::Cancel);
        return Err(Stopped::Budget);
    }
    // Acquire: the result and the memory it takes are seen.
    while !call.done.load(Ordering::Acquire) {
        if let Err(interrupted) = interrupt::park() {
            call.interrupt.raise(interrupted.0);
            return Err(Stopped::Interrupted(interrupted));
        }
    }
    account::take_over(call.interrupt.held());
    let result = call.result.lock().take().expect("a call that is done has its result");
    // A call past its limit may have left a value unfinished.
    if let Some(reason) = call.interrupt.take() {
        return Err(Stopped::Interrupted(Interrupted(reason)));
    }
    result.map_err(|panic| resume_unwind(panic))
}

impl<R: Send + 'static> Call<R> {
    /// The thread's side.
    fn run(self: Arc<Self>, body: impl FnOnce() -> R) {
        if self.interrupt.is_pending() {
            return;
        }
        RUNNING.set(Some(Arc::clone(&self.interrupt)));
        account::enter(Arc::as_ptr(&self.interrupt));
        let result = catch_unwind(AssertUnwindSafe(body));
        account::leave();
        account::rest();
        RUNNING.set(None);
        *self.result.lock() = Some(result);
        // Release: the result is seen with it.
        self.done.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIo;
    use crate::interrupt::Interrupt;
    use crate::tests::start_with;

    #[test]
    fn a_call_gives_its_result_and_its_panic_to_the_fiber_that_waits() {
        let runtime = start_with(1, FileIo::Threads);
        assert_eq!(runtime.call(0, || run(|| 6 * 7)), Ok(42));
        let panicked = runtime
            .call(0, || catch_unwind(|| run(|| -> i32 { panic!("expected: a call panics") })).is_err());
        assert!(panicked);
        runtime.shutdown();
    }

    #[test]
    fn an_interrupt_leaves_an_endless_call_behind_which_then_ends() {
        let runtime = start_with(1, FileIo::Threads);
        let interrupt = Interrupt::new();
        let raised = Arc::clone(&interrupt);
        let (ended, wait) = std::sync::mpsc::channel();
        let stopped = runtime.call(0, move || {
            interrupt::set_current(Some(interrupt));
            run(move || {
                raised.raise(Reason::Cancel);
                while work::tick(1000).is_ok() {}
                ended.send(()).unwrap();
            })
        });
        assert_eq!(stopped, Err(Stopped::Interrupted(Interrupted(Reason::Cancel))));
        wait.recv().unwrap();
        runtime.shutdown();
    }

    #[test]
    fn no_call_is_made_within_a_budget() {
        let runtime = start_with(1, FileIo::Threads);
        assert_eq!(runtime.call(0, || work::within(1 << 20, || run(|| 1))), Err(Stopped::Budget));
        runtime.shutdown();
    }
}
