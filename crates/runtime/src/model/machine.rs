//! The scheduler of virtual threads.
//!
//! A virtual thread is a coroutine. Fibers are coroutines on top of a worker's: a switch saves the
//! stack that is in use, whichever it is, and comes back to it. The queue is ordered by clock and,
//! at the same time, by the order of entries.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::rc::Rc;

use corosensei::stack::StackPointer;
use corosensei::{Coroutine, Yielder};

use super::events::{Event, Stream, digest};
use super::generator::Generator;
use super::preemption::Preemption;
use crate::device::Purpose;
use crate::fail_stop::{Cause, fail_stop};
use crate::host;

/// The time at which a simulation begins, in nanoseconds.
const START: u64 = 1_000_000_000;
/// A spinning thread looks again after so many nanoseconds.
const SPIN: u64 = 40;
/// Most from a wake-up until the thread runs.
const WAKE_MOST: u64 = 8_000;
/// Stack of a thread that asks for none, in bytes.
const STACK: usize = 4 << 20;
/// A simulation that takes more switches than this is a storm.
const SWITCHES_MOST: u64 = 2_000_000_000;
/// A thread that spins so often, or touches memory so often while it panics, without another thread
/// running in between, waits for ever.
const STUCK: u64 = 10_000_000;
/// The thread that runs the simulation's body.
const MAIN: usize = 1;

/// The figures of a simulation that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of all events: two runs with the same hash did the same.
    pub hash: u64,
    /// Number of switches between virtual threads.
    pub switches: u64,
    /// Number of accesses to shared memory.
    pub accesses: u64,
    /// Number of preemption points at which a thread lost its processor.
    pub losses: u64,
    /// Virtual time that passed, in nanoseconds.
    pub nanoseconds: u64,
}

/// The state of a simulation.
pub(super) struct Machine {
    threads: RefCell<Vec<Thread>>,
    /// Threads that are to run, by time and order of entry.
    queue: RefCell<BTreeMap<(u64, u64), usize>>,
    entries: Cell<u64>,
    current: Cell<usize>,
    /// The running thread's clock.
    clock: Cell<u64>,
    /// When the next thread is to run.
    horizon: Cell<u64>,
    generator: Generator,
    preemption: Preemption,
    events: Stream,
    switches: Cell<u64>,
    accesses: Cell<u64>,
    /// Preemption points at which a thread has lost its processor.
    losses: Cell<u64>,
    /// Spins since the last switch, and accesses of a thread that panics.
    looks: Cell<u64>,
}

/// A virtual thread.
struct Thread {
    name: String,
    coroutine: Cell<Option<Coroutine<(), (), (), Stack>>>,
    yielder: *const Yielder<(), ()>,
    state: State,
    /// A wake-up came that no park has taken yet.
    notified: bool,
    clock: u64,
    /// Its place in the queue.
    place: Option<(u64, u64)>,
    /// Threads that wait for its end.
    joining: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    /// Until a wake-up, or the time at its place in the queue.
    Parked,
    /// Until the time at its place in the queue.
    Asleep,
    Done,
}

thread_local! {
    static MACHINE: Cell<Option<&'static Machine>> = const { Cell::new(None) };
}

/// The machine of the simulation that runs. Panics elsewhere.
pub(super) fn here() -> &'static Machine {
    MACHINE.get().expect("the model machine runs within a simulation only")
}

/// Runs `body` as the first virtual thread of a machine whose every choice is drawn from `seed`;
/// what the run came to, and the body's result.
///
/// Panics when the body panics, when no thread can ever run again, and when this process has run a
/// simulation before.
pub fn simulate<R: 'static>(seed: u64, body: impl FnOnce() -> R + 'static) -> (Outcome, R) {
    assert!(MACHINE.get().is_none(), "a process runs one simulation");
    let generator = Generator::new(seed);
    let preemption = Preemption::draw(&generator);
    let machine: &'static Machine = Box::leak(Box::new(Machine {
        threads: RefCell::default(),
        queue: RefCell::default(),
        entries: Cell::new(0),
        current: Cell::new(0),
        clock: Cell::new(START),
        horizon: Cell::new(0),
        generator,
        preemption,
        events: Stream::new(),
        switches: Cell::new(0),
        accesses: Cell::new(0),
        losses: Cell::new(0),
        looks: Cell::new(0),
    }));
    MACHINE.set(Some(machine));
    sync::set_scheduler(Some(machine));
    let result = Rc::new(Cell::new(None));
    let told = Rc::clone(&result);
    let main = move || told.set(Some(catch_unwind(AssertUnwindSafe(body))));
    machine.spawn("main", STACK, Box::new(main)).expect("a stack for the first thread");
    machine.run();
    let result = result.take().expect("the first thread has ended");
    (machine.outcome(), result.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// The name of a virtual thread of this simulation.
pub fn thread_name(thread: usize) -> String {
    here().threads.borrow()[thread - 1].name.clone()
}

impl Machine {
    /// Runs threads until the first has ended.
    fn run(&self) {
        loop {
            let Some(((at, _), thread)) = self.queue.borrow_mut().pop_first() else { self.deadlock() };
            let coroutine = {
                let thread = &mut self.threads.borrow_mut()[thread - 1];
                self.clock.set(thread.clock.max(at));
                thread.place = None;
                thread.state = State::Running;
                thread.coroutine.take()
            };
            self.set_horizon();
            self.current.set(thread);
            self.switches.set(self.switches.get() + 1);
            assert!(self.switches.get() < SWITCHES_MOST, "a storm: {SWITCHES_MOST} switches");
            self.looks.set(0);
            self.events.note(Event::Switch, &[thread as u64, self.clock.get()]);
            let mut coroutine = coroutine.expect("a thread that is queued is suspended");
            let ended = coroutine.resume(()).as_return().is_some();
            self.current.set(0);
            if ended {
                self.end(thread);
                if thread == MAIN {
                    return;
                }
            } else {
                self.threads.borrow()[thread - 1].coroutine.set(Some(coroutine));
            }
        }
    }

    fn end(&self, thread: usize) {
        let joining = {
            let thread = &mut self.threads.borrow_mut()[thread - 1];
            thread.state = State::Done;
            std::mem::take(&mut thread.joining)
        };
        joining.into_iter().for_each(|waits| self.wake(waits));
    }

    fn deadlock(&self) -> ! {
        let threads = self.threads.borrow();
        let waiting: Vec<_> = threads.iter().filter(|thread| thread.state != State::Done).collect();
        let names: Vec<_> = waiting.iter().map(|thread| (&thread.name, thread.state)).collect();
        panic!("no virtual thread can run again: {names:?}")
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            hash: self.events.hash(),
            switches: self.switches.get(),
            accesses: self.accesses.get(),
            losses: self.losses.get(),
            nanoseconds: self.clock.get() - START,
        }
    }

    /// Adds an event to the simulation's stream.
    pub(super) fn note(&self, event: Event, numbers: &[u64]) {
        self.events.note(event, numbers);
    }

    /// As [`Machine::note`], for a call on a path; the call's result.
    pub(super) fn note_path<R>(&self, event: Event, path: &Path, result: io::Result<R>) -> io::Result<R> {
        self.note(event, &[digest(path.as_os_str().as_bytes()), u64::from(result.is_ok())]);
        result
    }

    /// The generator of all random numbers.
    pub(super) fn generator(&self) -> &Generator {
        &self.generator
    }

    /// The running thread's clock, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.clock.get()
    }

    /// The running thread.
    pub(super) fn current(&self) -> usize {
        self.current.get()
    }

    fn set_horizon(&self) {
        let first = self.queue.borrow().first_key_value().map(|((at, _), _)| *at);
        self.horizon.set(first.unwrap_or(u64::MAX));
    }

    /// Puts a thread into the queue.
    fn enqueue(&self, thread: &mut Thread, number: usize, at: u64) {
        self.entries.set(self.entries.get() + 1);
        let place = (at, self.entries.get());
        thread.place = Some(place);
        self.queue.borrow_mut().insert(place, number);
        self.horizon.set(self.horizon.get().min(at));
    }

    /// Starts a thread.
    pub(super) fn spawn(&self, name: &str, stack: usize, body: Box<dyn FnOnce()>) -> io::Result<usize> {
        let stack = Stack::map(stack)?;
        let mut threads = self.threads.borrow_mut();
        let number = threads.len() + 1;
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            here().threads.borrow_mut()[number - 1].yielder = yielder;
            body();
        });
        let mut thread = Thread {
            name: name.to_owned(),
            coroutine: Cell::new(Some(coroutine)),
            yielder: std::ptr::null(),
            state: State::Ready,
            notified: false,
            clock: self.now(),
            place: None,
            joining: Vec::new(),
        };
        let at = self.now() + self.generator.between(1_000, WAKE_MOST);
        self.enqueue(&mut thread, number, at);
        threads.push(thread);
        Ok(number)
    }

    /// Whether a thread has ended; if it has not, the running thread is woken at its end.
    pub(super) fn join(&self, thread: usize) -> bool {
        let current = self.current();
        let thread = &mut self.threads.borrow_mut()[thread - 1];
        if thread.state != State::Done {
            thread.joining.push(current);
        }
        thread.state == State::Done
    }

    /// Takes time on the running thread, in nanoseconds; others that are due run first.
    pub(super) fn spend(&self, nanoseconds: u64) {
        self.clock.set(self.clock.get() + nanoseconds);
        if self.clock.get() > self.horizon.get() && self.may_switch() {
            self.suspend(State::Ready, Some(self.clock.get()));
        }
    }

    /// Suspends the running thread for a time; no wake-up ends it earlier.
    pub(super) fn sleep(&self, nanoseconds: u64) {
        self.suspend(State::Asleep, Some(self.clock.get() + nanoseconds));
    }

    /// Parks the running thread until it is woken, or until this time.
    pub(super) fn park_until(&self, until: Option<u64>) {
        let was_notified = {
            let thread = &mut self.threads.borrow_mut()[self.current() - 1];
            std::mem::take(&mut thread.notified)
        };
        if was_notified {
            return self.spend(SPIN);
        }
        self.suspend(State::Parked, until.map(|until| until.max(self.clock.get())));
        self.threads.borrow_mut()[self.current() - 1].notified = false;
    }

    /// Wakes a thread that is parked, or keeps the wake-up for its next park.
    pub(super) fn wake(&self, number: usize) {
        let thread = &mut self.threads.borrow_mut()[number - 1];
        if thread.state != State::Parked {
            thread.notified = true;
            return;
        }
        if let Some(place) = thread.place.take() {
            self.queue.borrow_mut().remove(&place);
        }
        thread.state = State::Ready;
        let at = self.clock.get().max(thread.clock) + self.generator.between(100, WAKE_MOST);
        self.enqueue(thread, number, at);
    }

    /// A thread that panics unwinds to its end: `std` counts panics for the one real thread.
    fn may_switch(&self) -> bool {
        self.current() != 0 && !std::thread::panicking()
    }

    /// Counts a look at memory that may belong to a loop that waits. Ends the process after
    /// [`STUCK`] of them without a switch: the loop would never end.
    fn look_again(&self) {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() > STUCK {
            let threads = self.threads.borrow();
            let name = threads.get(self.current().wrapping_sub(1)).map_or("no thread", |it| &it.name);
            fail_stop(Cause::Engine, format_args!("{name:?} looked {STUCK} times while no other ran"))
        }
    }

    fn suspend(&self, state: State, until: Option<u64>) {
        let number = self.current();
        assert!(number != 0, "the scheduler itself does not wait");
        let yielder = {
            let thread = &mut self.threads.borrow_mut()[number - 1];
            thread.state = state;
            thread.clock = self.clock.get();
            if let Some(until) = until {
                self.enqueue(thread, number, until);
            }
            thread.yielder
        };
        // SAFETY: set at the thread's start, and lives on its stack for as long as it runs. The
        // stack in use may be one that the thread's coroutine resumed (a fiber's): it is saved as
        // it is.
        unsafe { (*yielder).suspend(()) };
    }
}

impl sync::Scheduler for Machine {
    fn access(&self) {
        self.accesses.set(self.accesses.get() + 1);
        if !self.may_switch() {
            return self.look_again();
        }
        self.spend(self.preemption.access(&self.generator));
    }

    fn preemption_point(&self) {
        let lost = if self.may_switch() { self.preemption.point(&self.generator) } else { 0 };
        if lost > 0 {
            self.losses.set(self.losses.get() + 1);
            self.spend(lost);
        }
    }

    fn spin(&self) {
        self.look_again();
        // A thread that spins lets the one it waits for go ahead, whatever its own clock says.
        let at = self.horizon.get();
        let ahead = if at == u64::MAX { 0 } else { at.saturating_sub(self.clock.get()) };
        self.clock.set(self.clock.get() + ahead);
        self.spend(SPIN);
    }

    fn park(&self) {
        self.park_until(None);
    }

    fn unpark(&self, thread: usize) {
        if thread != 0 {
            self.wake(thread);
        }
    }

    fn current(&self) -> usize {
        self.current.get()
    }
}

/// A virtual thread's stack.
struct Stack {
    start: NonZeroUsize,
    bytes: usize,
}

impl Stack {
    fn map(bytes: usize) -> io::Result<Stack> {
        let bytes = bytes.next_multiple_of(4096);
        let start = host::map(bytes, Purpose::Stack)?;
        // SAFETY: the lowest page of our own mapping.
        unsafe { host::forbid(start, 4096) }?;
        Ok(Stack { start: NonZeroUsize::new(start.addr()).expect("a mapping is not at zero"), bytes })
    }
}

// SAFETY: the mapping has a guard page at its low end; base and limit are page-aligned. It is never
// unmapped while a coroutine has it.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.start.checked_add(self.bytes).expect("a mapping does not wrap")
    }

    fn limit(&self) -> StackPointer {
        self.start
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, whole, and nothing runs on it any more.
        unsafe { host::unmap(self.start.get() as *mut u8, self.bytes) };
    }
}
