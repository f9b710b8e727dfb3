//! One worker's loop: a core's, or the service worker's, which accepts connections and lets clients in.
//!
//! A turn: poll events, deliver mail, fire timers, run the fibers that can run, serve the sessions that have input, send
//! their replies.
//! Everything here is touched by this worker's thread alone. What must hold:
//!
//! 1. The loop sleeps only when no fiber is ready, no session waits to be served and no mail lies there.
//! 2. Every turn polls and ends: a fiber that yields for ever, or a client that sends for ever, starves nobody.
//! 3. The number of fibers is bounded by need: a session that waits for its client has none.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;
use sync::core_local;

use crate::fiber::{Fiber, Hook, Job, Phase};
use crate::file::Disk;
use crate::net::{Batch, Net};
use crate::reactor::Reactor;
use crate::shared::Shared;
use crate::stack::{self, Stack};
use crate::timer::Timers;
use crate::{os, time};

/// Idle fibers kept for the next job; beyond that they are retired.
const IDLE_FIBERS: usize = 64;

core_local! {
    static WORKER: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// The state of one core.
pub(crate) struct Worker {
    pub(crate) core: usize,
    pub(crate) shared: Arc<Shared>,
    /// The fiber that runs now.
    pub(crate) running: Cell<*const Fiber>,
    /// Monotonic time as of this turn.
    pub(crate) now: Cell<u64>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) net: Net,
    pub(crate) disk: Disk,
    pub(crate) reactor: Reactor,
    ready: RefCell<VecDeque<*const Fiber>>,
    jobs: RefCell<VecDeque<Job>>,
    idle: RefCell<Vec<*const Fiber>>,
    /// Fibers that have a job.
    busy: Cell<usize>,
    /// Smoothed length of the gaps between running dry and the next work.
    gap: Cell<u64>,
}

/// The worker whose thread this is.
#[inline]
pub(crate) fn current() -> Option<&'static Worker> {
    // SAFETY: set while `Worker::run` is on this thread's stack, and cleared before the worker goes. A worker is not
    // Sync, so the reference stays on this thread, where nothing runs any more once the worker is gone.
    WORKER.with(|worker| unsafe { worker.get().as_ref() })
}

/// The worker whose thread this is. Panics elsewhere.
#[inline]
pub(crate) fn here() -> &'static Worker {
    current().expect("this runs on a worker of the runtime only")
}

/// The worker this code runs on: a core, or behind the last one the reserve or the service worker. Panics outside a worker.
#[inline]
pub fn core() -> usize {
    here().core
}

/// The worker this code runs on as [`core()`] gives it, or `None` outside a worker.
#[inline]
pub fn try_core() -> Option<usize> {
    current().map(|worker| worker.core)
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

impl Worker {
    pub(crate) fn new(core: usize, shared: Arc<Shared>, disk: Disk) -> io::Result<Self> {
        let reactor = Reactor::new(shared.mailbox(core).event())?;
        if let Some(event) = disk.event() {
            reactor.watch_disk(event)?;
        }
        // Who wants no ring for files wants none for sockets.
        let batch = disk.event().and_then(|_| Batch::new());
        Ok(Self {
            core,
            shared,
            running: Cell::new(ptr::null()),
            now: Cell::new(time::precise()),
            timers: RefCell::default(),
            net: Net::new(batch),
            disk,
            reactor,
            ready: RefCell::default(),
            jobs: RefCell::default(),
            idle: RefCell::default(),
            busy: Cell::new(0),
            gap: Cell::new(u64::MAX / 16),
        })
    }

    /// The loop, until the runtime says exit and nothing runs any more (or the grace time is over).
    pub(crate) fn run(&self) {
        WORKER.with(|worker| worker.set(self));
        sync::park::install(&Hook);
        sync::slot::set(self.core);
        let turns = self.shared.turns.get(self.core);
        let mut turn = 0;
        while !self.may_exit() {
            self.poll();
            turn += 1;
            // Relaxed: the watchdog only asks whether it changes.
            turns.store(turn, Ordering::Relaxed);
            self.shared.mailbox(self.core).deliver_all(self);
            self.fire_timers();
            self.run_ready();
            self.start_jobs();
            self.serve_sessions();
            self.net.send_replies();
            self.disk.submit();
        }
        self.net.close_all();
        self.retire_idle(0);
        WORKER.with(|worker| worker.set(ptr::null()));
    }

    fn may_exit(&self) -> bool {
        // Acquire: what was asked before the exit is seen.
        if !self.shared.exiting.load(Ordering::Acquire) {
            return false;
        }
        let quiet = self.busy.get() == 0 && !self.has_work() && !self.shared.mailbox(self.core).has_mail();
        // Relaxed: only the number.
        quiet || time::precise() >= self.shared.exit_deadline.load(Ordering::Relaxed)
    }

    fn has_work(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.jobs.borrow().is_empty() || self.net.has_ready()
    }

    fn refresh(&self) -> u64 {
        let now = time::precise();
        self.now.set(now);
        now
    }

    fn poll(&self) {
        if self.has_work() || self.shared.mailbox(self.core).has_mail() || self.disk.has_completions() {
            self.reactor.poll(self, Some(0));
            self.refresh();
            return;
        }
        let began = self.refresh();
        let deadline = self.timers.borrow().next_deadline();
        let (gap, longest) = (self.gap.get(), self.shared.poll_nanos);
        // Polling pays only while work usually comes before it would end.
        if !(gap <= longest / 2 && self.poll_actively(began, (2 * gap).min(longest), deadline)) {
            self.sleep(deadline);
        }
        // A new gap counts an eighth, so one lull doesn't end polling and one burst doesn't start it.
        let lasted = self.refresh() - began;
        self.gap.set(gap - gap / 8 + lasted / 8);
    }

    /// Polls without sleeping; false when the time is over and nothing came.
    fn poll_actively(&self, began: u64, budget: u64, deadline: Option<u64>) -> bool {
        let until = deadline.unwrap_or(u64::MAX).min(began + budget);
        loop {
            if self.reactor.poll(self, Some(0)) || self.shared.mailbox(self.core).has_mail() {
                return true;
            }
            if self.disk.has_completions() || self.refresh() >= until {
                return self.disk.has_completions();
            }
            os::thread::yield_now();
        }
    }

    fn sleep(&self, deadline: Option<u64>) {
        let mut deadline = deadline;
        // Acquire: see `may_exit`.
        if self.shared.exiting.load(Ordering::Acquire) {
            // Relaxed: only the number.
            let exit = self.shared.exit_deadline.load(Ordering::Relaxed);
            deadline = Some(deadline.map_or(exit, |deadline| deadline.min(exit)));
        }
        let left = deadline.map(|deadline| deadline.saturating_sub(self.now.get()));
        // Whole milliseconds, rounded up: a timer may be late by one, never early.
        let timeout = left.map(|nanos| i32::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i32::MAX));
        let mailbox = self.shared.mailbox(self.core);
        if mailbox.sleep() {
            self.reactor.poll(self, timeout);
            mailbox.awake();
        }
    }

    fn fire_timers(&self) {
        let now = self.now.get();
        loop {
            let action = self.timers.borrow_mut().due(now);
            match action {
                Some(action) => contain("a timer", action),
                None => return,
            }
        }
    }

    fn run_ready(&self) {
        // As many as are ready now: what they make ready comes after the next poll.
        let count = self.ready.borrow().len();
        for _ in 0..count {
            let Some(fiber) = self.ready.borrow_mut().pop_front() else { return };
            self.run_fiber(fiber);
        }
    }

    fn start_jobs(&self) {
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

    fn serve_sessions(&self) {
        self.net.begin_serving();
        while self.net.has_due() {
            let Some(fiber) = self.take_fiber() else { return };
            self.run_job(fiber, Job::Serve);
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
                os::thread::sleep(Duration::from_millis(1)); // the fibers that run will give theirs back
                None
            }
        }
    }

    fn retire_idle(&self, keep: usize) {
        while self.idle.borrow().len() > keep {
            let fiber = self.idle.borrow_mut().pop().expect("more than none");
            // SAFETY: made by this worker, idle, and out of the pool now, so nothing uses it afterwards.
            let stack = unsafe { Fiber::retire(fiber) };
            stack::keep(stack);
        }
    }

    /// Puts a fiber at the end of the ready queue.
    pub(crate) fn make_ready(&self, fiber: &Fiber) {
        fiber.set_ready();
        self.ready.borrow_mut().push_back(fiber);
    }

    /// Starts a job on a pooled fiber, this turn or the next.
    pub(crate) fn start_job(&self, job: Job) {
        self.jobs.borrow_mut().push_back(job);
    }
}

/// Runs a callback of the loop; a panic ends the callback alone.
pub(crate) fn contain(what: &str, action: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(action)).is_err() {
        crate::last_words(format_args!("{what} panicked on core {}; the core goes on", here().core));
    }
}
