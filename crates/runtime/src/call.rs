//! Calls into a core from another core or from a foreign thread. A mailbox takes the closure there,
//! and its result comes back on the caller's stack.
//!
//! What must hold: the caller waits until the call is done or dropped, because the call lies on its
//! stack.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sync::atomic::{AtomicBool, Ordering};

use crate::fiber::core;
use crate::mail::Link;
use crate::mailbox::Mailbox;

/// Runs `body` on a new fiber of the core with this mailbox and waits for its result: a foreign
/// thread blocks, a fiber parks. A panic of `body` goes on in the caller. `None` when the core's
/// worker has ended, or ends before its turn: then `body` is dropped. Allocates nothing but the
/// fiber's job.
pub(crate) fn run<R: Send>(mailbox: &Mailbox, body: impl FnOnce() -> R + Send) -> Option<R> {
    let mut call = Call::new(body);
    // SAFETY: the call stays on this stack until `done`, which is the last thing the other side
    // touches. It is in no mailbox yet, and the function fits its type.
    unsafe { mailbox.push((&raw mut call).cast()) };
    let done = &raw const call.done;
    // SAFETY: `call` lives here; the other side writes its other fields while we look at this
    // atomic alone.
    let done = unsafe { done.as_ref() }.expect("a local is not null");
    for _ in 0..CALL_SPINS {
        // Acquire: the result written before is seen.
        if done.load(Ordering::Acquire) {
            break;
        }
        sync::atomic::spin_loop();
    }
    // Acquire: as above.
    while !done.load(Ordering::Acquire) {
        sync::park::park();
    }
    match call.result.take()? {
        Ok(result) => Some(result),
        Err(panic) => resume_unwind(panic),
    }
}

/// Tests of the result before the caller parks: a few microseconds, about as long as a short
/// statement takes.
const CALL_SPINS: u32 = 200;

/// A call on its caller's stack.
#[repr(C)]
struct Call<R, F> {
    link: Link,
    /// The closure; `None` once it has been run.
    body: Option<F>,
    /// The closure's result; `None` until it has been run.
    result: Option<std::thread::Result<R>>,
    waker: std::task::Waker,
    done: AtomicBool,
}

impl<R: Send, F: FnOnce() -> R + Send> Call<R, F> {
    fn new(body: F) -> Self {
        Self {
            link: Link::new(accept_call::<R, F>),
            body: Some(body),
            result: None,
            waker: sync::park::current(),
            done: AtomicBool::new(false),
        }
    }
}

/// A call that its core has accepted. Dropping it lets the caller go on, whether or not the call
/// has run.
struct Accepted<R, F>(*mut Call<R, F>);

impl<R, F: FnOnce() -> R> Accepted<R, F> {
    fn run(self) {
        // SAFETY: the caller waits for `done` and touches nothing else meanwhile, so the call is
        // alive and ours.
        let call = unsafe { &mut *self.0 };
        if let Some(body) = call.body.take() {
            call.result = Some(catch_unwind(AssertUnwindSafe(body)));
        }
    }
}

impl<R, F> Drop for Accepted<R, F> {
    fn drop(&mut self) {
        // SAFETY: as in `run`. The waker is cloned before `done`, after which the call may be gone.
        unsafe {
            let waker = (*self.0).waker.clone();
            // Release: the result is seen with it.
            (*self.0).done.store(true, Ordering::Release);
            waker.wake();
        }
    }
}

/// # Safety
/// `link` is the first field of a `Call<R, F>` that waits for its `done`, delivered once.
unsafe fn accept_call<R: Send, F: FnOnce() -> R + Send>(link: *mut Link, on_core: bool) {
    let call = Accepted(link.cast::<Call<R, F>>());
    if !on_core {
        return;
    }
    let job: Box<dyn FnOnce() + '_> = Box::new(move || call.run());
    // SAFETY: only the lifetime changes: what the job borrows (through the address) outlives it,
    // since the caller waits.
    let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(job) };
    core::here().start(job);
}
