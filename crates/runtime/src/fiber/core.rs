//! A core as its fibers see it: the running fiber, the ready ones, and the jobs that wait for a
//! fiber.
//!
//! Everything here is touched by this worker's thread alone. What must hold:
//!
//! 1. The number of fibers is bounded by need: at most [`IDLE_FIBERS`] idle ones are kept.
//! 2. A fiber is alive until it is retired, which happens to idle ones only.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;
use sync::core_local;

use super::{Fiber, Hook, Job, Phase};
use crate::here::Here;
use crate::os;
use crate::shared::Shared;
use crate::stack::{self, Stack};

/// Idle fibers kept for the next job; beyond that they are retired.
const IDLE_FIBERS: usize = 64;

core_local! {
    static CORE: Here<Core> = const { Here::none() };
}

/// The fibers of one core.
pub(crate) struct Core {
    /// Its number among the workers.
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    /// The fiber that runs now.
    pub(super) running: Cell<*const Fiber>,
    /// Called when a fiber yields.
    pub(super) on_yield: fn(),
    ready: RefCell<VecDeque<*const Fiber>>,
    /// Fibers that wait for the end of this turn.
    last: RefCell<VecDeque<*const Fiber>>,
    jobs: RefCell<VecDeque<Job>>,
    idle: RefCell<Vec<*const Fiber>>,
    /// Fibers that have a job.
    busy: Cell<usize>,
}

/// The core whose thread this is.
#[inline]
pub(crate) fn current() -> Option<&'static Core> {
    CORE.with(Here::get)
}

/// The core whose thread this is. Panics elsewhere.
#[inline]
pub(crate) fn here() -> &'static Core {
    current().expect("this runs on a worker of the runtime only")
}

/// The worker this code runs on: a core, or behind the last one the reserve or the service worker.
/// Panics outside a worker.
#[inline]
pub fn core() -> usize {
    here().number
}

/// The worker this code runs on as [`core()`] gives it, or `None` outside a worker.
#[inline]
pub fn try_core() -> Option<usize> {
    current().map(|core| core.number)
}

/// Number of pinned workers of the runtime this code runs in. Panics outside a worker.
#[inline]
pub fn core_count() -> usize {
    here().shared.core_count()
}

/// Whether the runtime this code runs in is being shut down: background fibers end then.
pub fn shutting_down() -> bool {
    // Relaxed: a flag that is looked at again.
    here().shared.draining.load(Ordering::Relaxed)
}

impl Core {
    /// A core without fibers. It calls `on_yield` when a fiber yields.
    pub(crate) fn new(number: usize, shared: Arc<Shared>, on_yield: fn()) -> Core {
        Core {
            number,
            shared,
            running: Cell::new(ptr::null()),
            on_yield,
            ready: RefCell::default(),
            last: RefCell::default(),
            jobs: RefCell::default(),
            idle: RefCell::default(),
            busy: Cell::new(0),
        }
    }

    /// This thread is the core's from now on, until [`Core::leave`].
    pub(crate) fn enter(&self) {
        CORE.with(|core| core.enter(self));
        sync::park::install(&Hook);
        sync::slot::set(self.number);
    }

    /// The core's loop has ended.
    pub(crate) fn leave(&self) {
        self.retire_idle(0);
        CORE.with(Here::leave);
    }

    /// Whether this is the core whose thread runs here, in the same runtime.
    #[inline]
    pub(crate) fn is(&self, number: usize, shared: &Arc<Shared>) -> bool {
        self.number == number && Arc::ptr_eq(&self.shared, shared)
    }

    /// Number of fibers that have a job.
    #[inline]
    pub(crate) fn fibers(&self) -> usize {
        self.busy.get()
    }

    /// Whether no fiber has a job.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Whether a fiber can run, or a job waits for one.
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.jobs.borrow().is_empty() || !self.last.borrow().is_empty()
    }

    /// Number of fibers that can run.
    pub(crate) fn ready_fibers(&self) -> usize {
        self.ready.borrow().len()
    }

    /// Runs the fibers that are ready now. Fibers that these make ready run after the next poll.
    pub(crate) fn run_ready(&self) {
        self.run_queue(&self.ready);
    }

    /// Runs the fibers that wait for the turn's end. Fibers that wait for it again run in the next
    /// turn.
    pub(crate) fn run_last(&self) {
        self.run_queue(&self.last);
    }

    fn run_queue(&self, queue: &RefCell<VecDeque<*const Fiber>>) {
        let count = queue.borrow().len();
        for _ in 0..count {
            let Some(fiber) = queue.borrow_mut().pop_front() else { return };
            self.run_fiber(fiber);
        }
    }

    /// Gives a fiber to each job that waits now.
    pub(crate) fn start_jobs(&self) {
        let count = self.jobs.borrow().len();
        for _ in 0..count {
            let Some(fiber) = self.take_fiber() else { return };
            let job = self.jobs.borrow_mut().pop_front();
            match job {
                Some(job) => self.run_job(fiber, job),
                None => return self.idle.borrow_mut().push(fiber),
            }
        }
    }

    /// While `wants` returns true, runs `job` on a fiber of the pool. Each run lasts until the
    /// fiber parks or `job` returns.
    pub(crate) fn run_while(&self, wants: impl Fn() -> bool, job: fn()) {
        while wants() {
            let Some(fiber) = self.take_fiber() else { return };
            self.run_job(fiber, Job::Call(job));
        }
    }

    fn run_job(&self, fiber: *const Fiber, job: Job) {
        self.busy.set(self.busy.get() + 1);
        // SAFETY: fibers in the pool are alive until retired, which only this worker does.
        unsafe { (*fiber).give(job) };
        self.run_fiber(fiber);
    }

    fn run_fiber(&self, fiber: *const Fiber) {
        self.running.set(fiber);
        // SAFETY: ready and pooled fibers are alive until retired, which happens to idle ones only.
        let alive = unsafe { &*fiber };
        alive.resume();
        self.running.set(ptr::null());
        if alive.phase() == Phase::Idle {
            self.busy.set(self.busy.get() - 1);
            self.idle.borrow_mut().push(fiber);
            self.retire_idle(IDLE_FIBERS);
        }
    }

    /// A fiber from the pool or a new one; `None` when no stack can be mapped now.
    fn take_fiber(&self) -> Option<*const Fiber> {
        if let Some(fiber) = self.idle.borrow_mut().pop() {
            return Some(fiber);
        }
        match stack::take().map_or_else(Stack::map, Ok) {
            Ok(stack) => Some(Fiber::create(self, stack)),
            Err(error) => {
                if self.busy.get() == 0 {
                    panic!("no stack for a single fiber: {error}");
                }
                // Running fibers give their stacks back when they end.
                os::thread::sleep(Duration::from_millis(1));
                None
            }
        }
    }

    fn retire_idle(&self, keep: usize) {
        while self.idle.borrow().len() > keep {
            let fiber = self.idle.borrow_mut().pop().expect("more than none");
            // SAFETY: made by this worker, idle, and out of the pool now, so nothing uses it
            // afterwards.
            let stack = unsafe { Fiber::retire(fiber) };
            stack::keep(stack);
        }
    }

    /// Puts a fiber at the end of the ready queue.
    pub(super) fn make_ready(&self, fiber: &Fiber) {
        fiber.set_ready();
        self.ready.borrow_mut().push_back(fiber);
    }

    /// Has a fiber run at the end of this turn.
    pub(super) fn make_last(&self, fiber: &Fiber) {
        fiber.set_ready();
        self.last.borrow_mut().push_back(fiber);
    }

    /// Runs `body` on a pooled fiber, this turn or the next.
    pub(crate) fn start(&self, body: Box<dyn FnOnce()>) {
        self.jobs.borrow_mut().push_back(Job::Run(body));
    }
}

/// Runs a callback of the loop; a panic ends the callback alone.
pub(crate) fn contain(what: &str, action: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(action)).is_err() {
        crate::last_words(format_args!("{what} panicked on core {}; the core goes on", here().number));
    }
}
