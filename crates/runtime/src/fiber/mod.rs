//! Fibers, on which engine code runs.
//!
//! A fiber is a stack that runs one job after the other; between jobs it waits in its core's pool.
//! It never changes core. Its atomics (`state`) may be used by any thread, everything else by its
//! home worker alone. What must hold:
//!
//! 1. A fiber that parks is resumed after a wake-up. A wake-up before the park is kept, so none is
//!    lost.
//! 2. It suspends with no latch held, not while panicking, and not from the worker's stack.
//! 3. A panic ends the job alone.

pub(crate) mod core;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use corosensei::{Coroutine, Yielder};
use sync::atomic::{AtomicU32, Ordering};
use sync::held;
use sync::park::ParkHook;

use crate::account;
use crate::interrupt::{self, Interrupt};
use crate::mail::Link;
use crate::page_counts;
use crate::shared::Shared;
use crate::stack::{self, FurtherStack, STACK_BYTES, Stack};
use crate::wait_event::{self, WaitEvent};
use crate::{os, time, timer};
use core::Core;

/// A wake-up came that no park has taken yet.
const NOTIFIED: u32 = 1;
/// The fiber's link lies in its core's mailbox.
const QUEUED: u32 = 2;

/// A fiber that has run this long yields at its next safe point.
const SLICE_NANOS: u64 = 1_000_000;
/// Steps that one safe point stands for: a step is a row of an operator.
const STEPS_PER_POINT: u32 = 64;
/// Most steps between two looks at the clock.
const STEPS_MAX: u32 = 32 * STEPS_PER_POINT;
/// Steps until the next look are meant to take this long.
const LOOK_NANOS: u64 = SLICE_NANOS / 4;
/// Steps until the first safe point of work whose pace is unknown.
pub const FIRST_STEPS: u32 = 2;
/// Fewer steps than these need no look at the clock, unless steps are known to be long: most
/// statements have no more.
const FEW_STEPS: u32 = 8;

/// The part of a waiting fiber's stack that its session's account does not count. Most statements
/// need no more.
const STACK_UNCOUNTED: usize = 64 << 10;
/// Stack below the caller of [`shed_stack`] that it leaves alone: its own calls stand there.
const STACK_LEFT: usize = 16 << 10;

/// A pooled fiber's task.
pub(crate) enum Job {
    /// Run a closure.
    Run(Box<dyn FnOnce()>),
    /// Call a function, which allocates nothing.
    Call(fn()),
}

/// Where a fiber stands; kept by its home worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In the pool, without a job.
    Idle,
    /// In the ready queue.
    Ready,
    Running,
    /// Waits for a wake-up.
    Parked,
}

#[repr(C)]
pub(crate) struct Fiber {
    link: Link,
    state: AtomicU32,
    home: usize,
    shared: Arc<Shared>,
    local: Local,
}

/// State that the home worker's thread alone touches.
struct Local {
    phase: Cell<Phase>,
    coroutine: UnsafeCell<Option<Coroutine<(), (), (), Stack>>>,
    yielder: Cell<*const Yielder<(), ()>>,
    job: Cell<Option<Job>>,
    /// Keeps the interrupt that [`obey`] was called with.
    interrupt: RefCell<Option<Arc<Interrupt>>>,
    /// It has been suspended since its job began.
    suspended: Cell<bool>,
    /// Steps since the last look at the clock.
    steps: Cell<u32>,
    /// Steps between two looks; few while each takes long.
    interval: Cell<u32>,
    /// When it was resumed or timed its steps last; 0 where the time of the turn is near enough.
    looked: Cell<u64>,
    /// Time that these steps took in slices that are over.
    worked: Cell<u64>,
    slice_end: Cell<u64>,
    on_worker_stack: Cell<bool>,
    /// The lower half of the stack it runs on ends here.
    half: Cell<usize>,
}

// SAFETY: any thread may use `link` and `state`, and `home` and `shared` never change. Only the
// home worker's thread touches `local`: every access goes through that worker (checked by `notify`)
// or runs on the fiber itself.
unsafe impl Sync for Fiber {}
// SAFETY: as above. Another thread may drop the last reference only after `retire` has emptied
// `local`.
unsafe impl Send for Fiber {}

impl Fiber {
    /// A new fiber of this worker, idle. It holds a reference to itself until it is retired.
    pub(crate) fn create(core: &Core, stack: Stack) -> *const Fiber {
        let fiber = Arc::new(Fiber {
            link: Link::new(deliver),
            state: AtomicU32::new(0),
            home: core.number,
            shared: core.shared.clone(),
            local: Local {
                phase: Cell::new(Phase::Idle),
                coroutine: UnsafeCell::new(None),
                yielder: Cell::new(ptr::null()),
                job: Cell::new(None),
                interrupt: RefCell::new(None),
                suspended: Cell::new(false),
                steps: Cell::new(0),
                interval: Cell::new(STEPS_MAX),
                looked: Cell::new(0),
                worked: Cell::new(0),
                slice_end: Cell::new(0),
                on_worker_stack: Cell::new(false),
                half: Cell::new(stack.lowest() + STACK_BYTES / 2),
            },
        });
        let fiber = Arc::into_raw(fiber);
        let address = fiber as usize;
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the fiber's own reference keeps it alive until its coroutine has returned and
            // `retire` ran.
            run(unsafe { &*(address as *const Fiber) }, yielder);
        });
        // SAFETY: new, so nobody else refers to it.
        unsafe { *(*fiber).local.coroutine.get() = Some(coroutine) };
        fiber
    }

    pub(crate) fn phase(&self) -> Phase {
        self.local.phase.get()
    }

    pub(crate) fn set_ready(&self) {
        self.local.phase.set(Phase::Ready);
    }

    pub(crate) fn give(&self, job: Job) {
        self.local.job.set(Some(job));
    }

    /// Runs the fiber until it suspends. Only by its worker's loop.
    pub(crate) fn resume(&self) {
        self.local.phase.set(Phase::Running);
        self.local.slice_end.set(0);
        // Slow steps are timed exactly; the others need no clock here.
        let is_slow = self.local.interval.get() < STEPS_MAX;
        self.local.looked.set(if is_slow { time::precise() } else { 0 });
        // SAFETY: only the home worker's loop comes here, and never from within the fiber, so the
        // reference is alone.
        let coroutine = unsafe { (*self.local.coroutine.get()).as_mut() };
        coroutine.expect("a pooled fiber has its coroutine").resume(());
    }

    /// Ends an idle fiber and gives its stack back.
    ///
    /// # Safety
    /// `fiber` came from [`Fiber::create`] of this worker, is idle, and is not used afterwards.
    pub(crate) unsafe fn retire(fiber: *const Fiber) -> Stack {
        // SAFETY: by contract; this takes over the reference the fiber held to itself.
        let fiber = unsafe { Arc::from_raw(fiber) };
        fiber.local.job.set(None);
        fiber.resume(); // no job: the coroutine returns
        // SAFETY: the coroutine has returned, so nothing else refers to it.
        let coroutine = unsafe { (*fiber.local.coroutine.get()).take() };
        coroutine.expect("a pooled fiber has its coroutine").into_stack()
    }

    /// What must hold at every suspend point; asserted before anything is changed, so that a panic
    /// leaves all in order.
    pub(crate) fn assert_may_suspend(&self) {
        held::assert_none();
        assert!(!os::thread::is_panicking(), "a fiber must not suspend while it panics");
        assert!(!self.local.on_worker_stack.get(), "a fiber must not suspend on the worker's stack");
    }

    /// Whether it may suspend here.
    pub(crate) fn may_suspend(&self) -> bool {
        held::count() == 0 && !self.local.on_worker_stack.get() && !os::thread::is_panicking()
    }

    /// Gives control back to the worker's loop. Only on the fiber itself. A deep stack counts as
    /// the session's memory meanwhile.
    fn suspend(&self) {
        self.local.suspended.set(true);
        let deep = self.stack_used().saturating_sub(STACK_UNCOUNTED);
        if deep > 0 {
            account::keep(deep);
        }
        let (account, obeyed, pages) = (account::leave(), interrupt::leave(), page_counts::now());
        // SAFETY: set at the fiber's start, and lives on its stack for as long as it runs.
        unsafe { (*self.local.yielder.get()).suspend(()) };
        account::enter(account);
        interrupt::enter(obeyed);
        page_counts::set(pages);
        if deep > 0 {
            account::keep_no_more(deep);
        }
    }

    /// Bytes of the stack that it stands on between its top and the caller.
    fn stack_used(&self) -> usize {
        let here = 0_u8;
        (self.local.half.get() + STACK_BYTES / 2).saturating_sub(ptr::from_ref(&here).addr())
    }

    /// Parks until notified.
    pub(crate) fn park(&self) {
        self.assert_may_suspend();
        // Acquire: what the waker wrote before it woke is seen.
        if self.state.fetch_and(!NOTIFIED, Ordering::Acquire) & NOTIFIED == 0 {
            // A wake-up between here and the suspension waits in the mailbox: only the loop looks
            // at the phase.
            self.local.phase.set(Phase::Parked);
            self.suspend();
            // Acquire: as above.
            self.state.fetch_and(!NOTIFIED, Ordering::Acquire);
        }
    }

    fn yield_now(&self, core: &Core) {
        self.assert_may_suspend();
        (core.on_yield)();
        core.make_ready(self);
        wait_event::during_else(WaitEvent::Turn, || self.suspend());
    }

    /// Wakes the fiber, from any thread.
    pub(crate) fn notify(this: &Arc<Fiber>) {
        if let Some(core) = core::current()
            && core.is(this.home, &this.shared)
        {
            this.notify_here(core);
            return;
        }
        // AcqRel: what was written before the wake-up is seen by the park that takes it.
        if this.state.fetch_or(NOTIFIED | QUEUED, Ordering::AcqRel) & QUEUED == 0 {
            let link = Arc::into_raw(this.clone()).cast_mut().cast::<Link>();
            // SAFETY: the reference given away keeps the fiber alive until `deliver` takes it back.
            // QUEUED was not set, so the link is in no mailbox, and `deliver` fits a fiber.
            unsafe { this.shared.mailbox(this.home).push(link) };
        }
    }

    /// Wakes the fiber, on its own core.
    fn notify_here(&self, core: &Core) {
        // Relaxed: same thread as the park.
        self.state.fetch_or(NOTIFIED, Ordering::Relaxed);
        if self.phase() == Phase::Parked {
            core.make_ready(self);
        }
    }

    /// Wakes the fiber, on its own core.
    pub(crate) fn notify_on_core(&self) {
        self.notify_here(core::here());
    }
}

/// # Safety
/// `link` is the first field of a fiber whose reference was given away by [`Fiber::notify`],
/// delivered once.
unsafe fn deliver(link: *mut Link, on_core: bool) {
    // SAFETY: by contract; `repr(C)` puts the link first.
    let fiber = unsafe { Arc::from_raw(link.cast_const().cast::<Fiber>()) };
    // AcqRel: a waker that still saw QUEUED wrote before this; its NOTIFIED is in the old value.
    let old = fiber.state.fetch_and(!QUEUED, Ordering::AcqRel);
    // Only its worker may look at the phase.
    if on_core && old & NOTIFIED != 0 && fiber.phase() == Phase::Parked {
        core::here().make_ready(&fiber);
    }
}

/// A fiber's life: one job after the other, until it is resumed without one.
fn run(fiber: &Fiber, yielder: &Yielder<(), ()>) {
    fiber.local.yielder.set(yielder);
    while let Some(job) = fiber.local.job.take() {
        let ended = catch_unwind(AssertUnwindSafe(|| match job {
            Job::Run(body) => body(),
            Job::Call(body) => body(),
        }));
        if ended.is_err() {
            // The panic hook has logged it. The unwinding has dropped the job's values; the fiber
            // itself is as good as new.
            fiber.local.on_worker_stack.set(false);
        }
        account::leave();
        interrupt::leave();
        let interrupt = fiber.local.interrupt.take();
        drop(interrupt);
        fiber.local.phase.set(Phase::Idle);
        yielder.suspend(());
    }
}

/// The running fiber, on a worker.
pub(crate) fn current() -> Option<(&'static Core, &'static Fiber)> {
    let core = core::current()?;
    // SAFETY: the pointer is set while the fiber runs, and the caller is that fiber: it lives as
    // long as it runs. The reference stays on this thread, since a `&Core` is not Send and comes
    // along.
    let fiber = unsafe { core.running.get().as_ref() }?;
    Some((core, fiber))
}

/// The running fiber, to be notified later. Panics outside a fiber.
pub(crate) fn current_arc() -> Arc<Fiber> {
    let (_, fiber) = current().expect("only a fiber waits on a worker");
    // SAFETY: the fiber is alive (it runs) and was made by an Arc; the count is raised for the new
    // reference.
    unsafe {
        Arc::increment_strong_count(fiber);
        Arc::from_raw(fiber)
    }
}

/// Runs `body` on a new fiber of this core. Panics outside a worker.
pub fn spawn_local(body: impl FnOnce() + 'static) {
    core::here().start(Box::new(body));
}

/// Yields: every other ready fiber of this core runs first. Outside a fiber it yields the thread.
pub fn yield_now() {
    match current() {
        Some((core, fiber)) => fiber.yield_now(core),
        None => os::thread::yield_now(),
    }
}

/// Yields until the end of this turn: every other ready fiber of this core runs first, and every
/// session that has input. The operations on files that the fiber then begins are submitted with
/// those of the whole turn. Does nothing outside a fiber.
pub fn yield_to_turn_end() {
    if let Some((core, fiber)) = current() {
        fiber.assert_may_suspend();
        core.make_last(fiber);
        wait_event::during(WaitEvent::Turn, || fiber.suspend());
    }
}

/// Parks the fiber for a time; an interrupt does not end it early.
pub fn sleep(time: Duration) {
    if current().is_none() {
        os::thread::sleep(time);
        return;
    }
    let waker = sync::park::current();
    let over = std::rc::Rc::new(Cell::new(false));
    let tell = over.clone();
    timer::after(time, move || {
        tell.set(true);
        waker.wake();
    });
    while !over.get() {
        sync::park::park();
    }
}

/// Yields when the fiber's time slice (about 1 ms) is used up; cheap otherwise.
#[inline]
pub fn safe_point() {
    if let Some((core, fiber)) = current() {
        fiber.advance(core, STEPS_PER_POINT);
    }
}

/// A safe point behind so many steps. Returns the number of steps until the next one is due. Work
/// whose pace is unknown begins with [`FIRST_STEPS`]. The number grows to 64 while steps are short,
/// and falls to 1 when each takes long. Only the first few steps pass without a look at the clock.
/// The next 64 may each take a thousand times as long as those before.
#[inline]
pub fn safe_point_after(steps: u32) -> u32 {
    let Some((core, fiber)) = current() else { return STEPS_PER_POINT };
    let is_slow = fiber.local.interval.get() < STEPS_MAX;
    if steps >= FEW_STEPS || is_slow {
        fiber.time_steps(core, fiber.local.steps.get() + steps);
    } else {
        fiber.advance(core, steps);
    }
    (steps * 2).min(fiber.local.interval.get()).min(STEPS_PER_POINT)
}

/// Whether this code runs on a fiber that may wait here.
pub(crate) fn may_wait() -> bool {
    current().is_some_and(|(_, fiber)| fiber.may_suspend())
}

/// Whether the running fiber has been suspended since it was asked last.
#[inline]
pub(crate) fn was_suspended() -> bool {
    current().is_some_and(|(_, fiber)| fiber.local.suspended.replace(false))
}

/// Says whose interrupts the running fiber obeys from now on, and to whose account it allocates.
/// Does nothing outside a fiber.
pub fn obey(interrupt: Option<Arc<Interrupt>>) {
    if let Some((_, fiber)) = current() {
        account::leave();
        let obeyed = interrupt.as_ref().map_or(ptr::null(), Arc::as_ptr);
        account::enter(obeyed);
        interrupt::obey(obeyed);
        let previous = fiber.local.interrupt.replace(interrupt);
        drop(previous);
    }
}

/// From now on the running fiber obeys no interrupt. Its account stays.
#[inline]
pub(crate) fn obey_nobody() {
    interrupt::leave();
    if let Some((_, fiber)) = current() {
        let previous = fiber.local.interrupt.take();
        drop(previous);
    }
}

/// Yields when the fiber's time slice is used up, where it may suspend; looks at the clock at each
/// call.
pub(crate) fn yield_at_slice_end() {
    if let Some((core, fiber)) = current()
        && fiber.may_suspend()
    {
        fiber.end_slice(core, time::precise());
    }
}

impl Fiber {
    #[inline]
    fn advance(&self, core: &Core, steps: u32) {
        let counted = self.local.steps.get() + steps;
        if counted < self.local.interval.get() {
            self.local.steps.set(counted);
        } else {
            self.time_steps(core, counted);
        }
    }

    /// Sets the steps until the next look by the time these took, and yields when the slice is used
    /// up.
    #[cold]
    fn time_steps(&self, core: &Core, counted: u32) {
        let now = time::precise();
        let taken = self.local.worked.take() + now.saturating_sub(self.began());
        let fitting = u64::from(counted) * LOOK_NANOS / taken.max(1);
        let most = self.local.interval.get().saturating_mul(4).min(STEPS_MAX);
        self.local.interval.set(fitting.clamp(1, u64::from(most)) as u32);
        self.local.steps.set(0);
        let is_over = self.is_slice_over(now);
        self.local.looked.set(now);
        if is_over {
            self.yield_now(core);
        }
    }

    /// Yields when the slice is used up, between two steps or within one.
    fn end_slice(&self, core: &Core, now: u64) {
        let began = self.began();
        if self.is_slice_over(now) {
            self.local.worked.set(self.local.worked.get() + now.saturating_sub(began));
            // The step is a long one, until the next are timed.
            self.local.interval.set(1);
            self.yield_now(core);
        }
    }

    /// Since when it has run, as far as that is known.
    fn began(&self) -> u64 {
        match self.local.looked.get() {
            0 => time::now(),
            looked => looked,
        }
    }

    fn is_slice_over(&self, now: u64) -> bool {
        let end = match self.local.slice_end.get() {
            0 => self.began() + SLICE_NANOS,
            end => end,
        };
        self.local.slice_end.set(end);
        time::set_turn(now);
        now >= end
    }
}

/// Whether more than half of the stack is used. Then recursion continues on a further stack
/// ([`on_further_stack`]) or ends with an error, because its callees need the rest. False on the
/// worker's stack and outside fibers.
#[inline]
pub fn is_deep() -> bool {
    is_used(STACK_BYTES / 2)
}

/// Whether more than an eighth of the stack is used. False on the worker's stack and outside
/// fibers.
pub fn is_lifted() -> bool {
    is_used(STACK_BYTES / 8)
}

#[inline]
fn is_used(bytes: usize) -> bool {
    let here = 0_u8;
    current().is_some_and(|(_, fiber)| {
        ptr::from_ref(&here).addr() < fiber.local.half.get() + (STACK_BYTES / 2 - bytes)
            && !fiber.local.on_worker_stack.get()
    })
}

/// Gives back the stack memory below the caller, which deeper calls used before. For a fiber that
/// is about to wait long. Costs a system call, and interrupts the cores only if the session's
/// account counts some of that memory.
pub fn shed_stack() {
    let Some((_, fiber)) = current().filter(|(_, fiber)| !fiber.local.on_worker_stack.get()) else { return };
    let lowest = fiber.local.half.get() - STACK_BYTES / 2;
    let used = fiber.stack_used() + STACK_LEFT;
    stack::shed(lowest, STACK_BYTES.saturating_sub(used), STACK_UNCOUNTED);
}

/// Runs `body` on a further stack of this fiber. An error means that there is none; `body` has not
/// run then.
pub fn on_further_stack<R>(body: impl FnOnce() -> R) -> io::Result<R> {
    let stack = FurtherStack::deep()?;
    let _floor = Floor::enter(stack.lowest());
    Ok(corosensei::on_stack(stack, body))
}

/// The stack below is the fiber's own again when this is dropped.
pub(crate) struct Floor(Option<usize>);

impl Floor {
    /// The fiber goes over to the stack with this lowest address.
    pub(crate) fn enter(lowest: usize) -> Floor {
        Floor(current().map(|(_, fiber)| {
            assert!(!fiber.local.on_worker_stack.get(), "the worker's stack has no further stacks");
            fiber.local.half.replace(lowest + STACK_BYTES / 2)
        }))
    }
}

/// Where the stack ends that code stood on when it left its fiber.
pub(crate) struct LeftFloor(Option<usize>);

impl Floor {
    /// Code on a further stack is about to wait for another fiber, or for the same one later.
    pub(crate) fn leave() -> LeftFloor {
        LeftFloor(current().map(|(_, fiber)| fiber.local.half.get()))
    }
}

impl LeftFloor {
    /// The code goes on, on its stack.
    pub(crate) fn enter_again(self) {
        if let (Some((_, fiber)), Some(half)) = (current(), self.0) {
            fiber.local.half.set(half);
        }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        if let (Some((_, fiber)), Some(before)) = (current(), self.0) {
            fiber.local.half.set(before);
        }
    }
}

/// Runs `body` on the worker's own big stack: for deep recursion (parser, planner). It must not
/// park.
pub fn on_worker_stack<R>(body: impl FnOnce() -> R) -> R {
    struct Unsendable<F>(F);
    // SAFETY: corosensei asks for Send only to keep the yielder off the parent's stack. The yielder
    // is private to this module, and suspending from there is refused by the flag; the thread stays
    // the same.
    unsafe impl<F> Send for Unsendable<F> {}
    impl<R, F: FnOnce() -> R> Unsendable<F> {
        fn run(self) -> R {
            (self.0)()
        }
    }
    struct Back<'a>(&'a Cell<bool>);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }
    match current() {
        Some((_, fiber)) if !fiber.local.on_worker_stack.get() => {
            fiber.local.on_worker_stack.set(true);
            let _back = Back(&fiber.local.on_worker_stack);
            let body = Unsendable(body);
            // SAFETY: set at the fiber's start, and lives on its stack for as long as it runs.
            unsafe { (*fiber.local.yielder.get()).on_parent_stack(move || body.run()) }
        }
        _ => body(),
    }
}

/// How code on a worker parks: see `sync::park`.
pub(crate) struct Hook;

impl ParkHook for Hook {
    fn current(&self) -> Waker {
        let (_, fiber) = current().expect("only a fiber waits on a worker");
        // SAFETY: the fiber is alive (it runs) and was made by an Arc; the new reference belongs to
        // the waker.
        unsafe {
            Arc::increment_strong_count(fiber);
            Waker::from_raw(RawWaker::new(ptr::from_ref(fiber).cast(), &VTABLE))
        }
    }

    fn park(&self) {
        current().expect("only a fiber parks on a worker").1.park();
    }

    fn yield_now(&self) {
        yield_now();
    }

    fn spin(&self, pause: fn()) {
        // A session that waits for its turn at a page spins too, and shows the page.
        wait_event::during_else(WaitEvent::SpinLock, pause);
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: a waker's data is a reference to a fiber made by an Arc; the clone gets one of
        // its own.
        unsafe { Arc::increment_strong_count(data.cast::<Fiber>()) };
        RawWaker::new(data, &VTABLE)
    },
    // SAFETY: takes over the waker's reference.
    |data| Fiber::notify(&unsafe { Arc::from_raw(data.cast::<Fiber>()) }),
    |data| {
        // SAFETY: borrows the waker's reference; ManuallyDrop leaves it in place.
        let fiber = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Fiber>()) });
        Fiber::notify(&fiber);
    },
    // SAFETY: takes over the waker's reference.
    |data| drop(unsafe { Arc::from_raw(data.cast::<Fiber>()) }),
);
