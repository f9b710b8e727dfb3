//! Calls into libraries that have no safe point. Such a call runs on a thread of its own while its
//! fiber waits.
//!
//! The fiber parks and can be interrupted, so the core serves others and a cancel request takes
//! effect at once. A call whose fiber has gone is abandoned: its result is dropped, and it ends
//! early if it calls [`crate::work::tick`]. What must hold:
//!
//! 1. A call owns what it reads: its fiber may be gone before the call ends.
//! 2. The threads are few, are not pinned, and have a lower priority than the cores, so that
//!    abandoned calls take little from them. A call that finds all threads taken waits for one.
//! 3. A call has an [`Interrupt`] of its own. It is the account of the call's memory, whose limit
//!    is what the session may still have, and what the call is abandoned by. While the call runs,
//!    its memory counts as its session's for those who look at all sessions
//!    ([`Interrupt::held_in_all`]). Its session then owns the memory that the call leaves
//!    allocated. An abandoned call drops all it has within its own account, so that its session is
//!    charged for nothing in the end.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

use sync::atomic::{AtomicU8, Ordering};
use sync::{SpinLock, WorkQueue, core_local};

use crate::account::CALLS_MAX;
use crate::budget::{self, Stopped};
use crate::interrupt::{self, Interrupt, Interrupted, Reason};
use crate::{account, fiber, os};

/// Parsers recurse on it. The system backs it with memory as it is touched.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// Difference of priority between a core's thread and a call's, as `nice` counts.
const NICE: i32 = 5;

/// The threads of one runtime.
pub(crate) struct Threads {
    queue: WorkQueue<Box<dyn FnOnce() + Send>>,
}

/// A call as its fiber and its thread see it.
struct Call<R> {
    /// Raised when the fiber no longer waits, or when the call takes too much memory.
    interrupt: Arc<Interrupt>,
    /// [`RUNNING_CALL`] until one of the two sides changes it, once.
    state: AtomicU8,
    result: SpinLock<Option<std::thread::Result<R>>>,
    waker: Waker,
}

/// The fiber waits, and the call has not ended.
const RUNNING_CALL: u8 = 0;
/// The result is there.
const DONE: u8 = 1;
/// The fiber has gone: the thread drops everything.
const ABANDONED: u8 = 2;

core_local! {
    /// The threads of the runtime whose worker this thread is.
    static THREADS: RefCell<Option<Arc<Threads>>> = const { RefCell::new(None) };
}

/// This worker's calls go to these threads from now on, or it has ended.
pub(crate) fn install(threads: Option<Arc<Threads>>) {
    THREADS.set(threads);
}

/// Queues a piece of work; false when there is no thread to run it and none can be started.
fn push(work: Box<dyn FnOnce() + Send>) -> bool {
    let threads = THREADS.with_borrow(Clone::clone);
    threads.is_some_and(|threads| threads.push(work))
}

impl Threads {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { queue: WorkQueue::new(CALLS_MAX) })
    }

    /// Lets the threads end once the queue is empty.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Queues a piece of work; false when there is no thread to run it and none can be started.
    fn push(self: &Arc<Self>, work: Box<dyn FnOnce() + Send>) -> bool {
        for _ in 0..self.queue.push_all(std::iter::once(work)) {
            let threads = Arc::clone(self);
            let started = os::thread::spawn("aside", Some(STACK_BYTES), move || threads.run()).is_ok();
            if !started && self.queue.not_started() == 0 {
                return false;
            }
        }
        true
    }

    /// A thread's life.
    fn run(&self) {
        os::processor::be_nice(NICE);
        let mut done = false;
        while let Some(work) = self.queue.next(done) {
            work();
            done = true;
        }
    }
}

/// Runs `body` on another thread while the running fiber waits, interruptibly. If the fiber must
/// not suspend, `body` runs on this thread. Within a budget it does not run and ends with
/// [`Stopped::Budget`], and so it does if no thread can be started. A panic of `body` goes on in
/// the caller.
pub fn run<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> Result<R, Stopped> {
    run_given(0, body)
}

/// As [`run`], for a body that owns so many bytes which the running session has allocated. From now
/// on the call pays for them.
pub fn run_given<R: Send + 'static>(
    bytes: usize,
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Stopped> {
    if budget::has_budget() {
        return Err(Stopped::Budget);
    }
    if !fiber::may_wait() {
        return Ok(body());
    }
    let given = i64::try_from(bytes).unwrap_or(i64::MAX);
    let interrupt = Interrupt::beside(account::current());
    interrupt.set_memory_limit(account::left_to_session().saturating_add(given));
    account::take_over(-given);
    // Before the call's own note: a reader that adds both up counts these bytes once.
    account::note();
    interrupt.note_held(given);
    let call = Arc::new(Call {
        interrupt,
        state: AtomicU8::new(RUNNING_CALL),
        result: SpinLock::new(&"call beside the cores", None),
        waker: sync::park::current(),
    });
    let theirs = Arc::clone(&call);
    if !push(Box::new(move || theirs.run(body))) {
        // The queue keeps the work for a thread that may be had later; nobody waits for it then.
        call.abandon(Reason::Cancel);
        return Err(Stopped::Budget);
    }
    // Acquire: the result and the memory it takes are seen.
    while call.state.load(Ordering::Acquire) == RUNNING_CALL {
        if let Err(interrupted) = interrupt::park() {
            call.abandon(interrupted.0);
            return Err(Stopped::Interrupted(interrupted));
        }
    }
    let result = call.take_result();
    // A call past its limit may have left a value unfinished.
    if let Some(reason) = call.interrupt.take() {
        return Err(Stopped::Interrupted(Interrupted(reason)));
    }
    result.expect("a call that is done has its result").map_err(|panic| resume_unwind(panic))
}

/// As [`run_given`] for a body that may have to wait for memory which it reserves
/// ([`account::reserve`]). Then the call ends, the fiber waits, and the body that `make` gives next
/// has the memory. `make` gives a body with the bytes that it owns. Within such a call the body
/// runs right here, and the call around it begins anew.
///
/// # Errors
/// Those of `make`.
pub fn run_reserving<R, F, E>(
    mut make: impl FnMut() -> Result<(usize, F), E>,
) -> Result<Result<R, Stopped>, E>
where
    R: Send + 'static,
    F: FnOnce() -> R + Send + 'static,
{
    let mut call = account::Call::default();
    loop {
        let (bytes, body) = make()?;
        if interrupt::is_call() {
            return Ok(Ok(body()));
        }
        match run_given(bytes, call.of(body)) {
            Ok(Ok(done)) => return Ok(Ok(done)),
            Ok(Err(lacks)) => {
                if let Err(interrupted) = call.wait(lacks) {
                    return Ok(Err(Stopped::Interrupted(interrupted)));
                }
            }
            Err(stopped) => return Ok(Err(stopped)),
        }
    }
}

/// Drops a value beside the core: dropping some hundred thousand pieces has no safe point. Its
/// `bytes` are the running session's until they are freed. On a thread that is no worker it is
/// dropped here.
pub fn discard(bytes: usize, value: impl Send + 'static) {
    if fiber::core::current().is_none() {
        return drop(value);
    }
    let given = i64::try_from(bytes).unwrap_or(i64::MAX);
    let interrupt = Interrupt::beside(account::current());
    account::take_over(-given);
    interrupt.note_held(given);
    let work = move || {
        account::enter(Arc::as_ptr(&interrupt));
        // The account is left whatever happens; a panic has been logged by the hook.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
        account::note();
        account::leave();
        drop(dropped);
        interrupt.note_held(0);
        account::rest();
    };
    // Where no thread can be started now, the value waits for one that can be had later.
    push(Box::new(work));
}

impl<R: Send + 'static> Call<R> {
    /// The fiber's side: it waits no longer.
    fn abandon(&self, reason: Reason) {
        self.interrupt.raise(reason);
        // Acquire: a call that was done meanwhile leaves its result to the fiber, which sees it.
        if let Err(DONE) =
            self.state.compare_exchange(RUNNING_CALL, ABANDONED, Ordering::Acquire, Ordering::Acquire)
        {
            drop(self.take_result());
        }
    }

    /// The fiber's side, once the call is done: its result, whose memory is the session's from now
    /// on.
    fn take_result(&self) -> Option<std::thread::Result<R>> {
        account::take_over(self.interrupt.held());
        self.interrupt.note_held(0);
        self.result.lock().take()
    }

    /// The thread's side.
    fn run(self: Arc<Self>, body: impl FnOnce() -> R) {
        interrupt::set_call(Some(Arc::clone(&self.interrupt)));
        account::enter(Arc::as_ptr(&self.interrupt));
        if self.interrupt.is_pending() {
            drop(body);
        } else {
            let result = catch_unwind(AssertUnwindSafe(body));
            *self.result.lock() = Some(result);
        }
        account::note();
        account::leave();
        // Release: the result and what is noted are seen with it.
        let done =
            self.state.compare_exchange(RUNNING_CALL, DONE, Ordering::Release, Ordering::Relaxed).is_ok();
        if !done {
            account::enter(Arc::as_ptr(&self.interrupt));
            let result = self.result.lock().take();
            drop(result);
            account::note();
            account::leave();
            self.interrupt.note_held(0);
        }
        account::rest();
        interrupt::set_call(None);
        if done {
            self.waker.wake_by_ref();
        }
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
            fiber::obey(Some(interrupt));
            run(move || {
                raised.raise(Reason::Cancel);
                while crate::work::tick(1000).is_ok() {}
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
        assert_eq!(runtime.call(0, || budget::within(1 << 20, || run(|| 1))), Err(Stopped::Budget));
        runtime.shutdown();
    }
}
