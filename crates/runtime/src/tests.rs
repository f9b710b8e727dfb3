//! Fibers, wake-ups, timers, interrupts, calls, shutdown.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use sync::WaitQueue;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::interrupt::{self, Interrupt, Interrupted, Reason};
use crate::os::processor;
use crate::{FileIo, Options, Runtime, core, fiber, time, timer, try_core};

pub(crate) fn start(cores: usize) -> Arc<Runtime> {
    start_with(cores, FileIo::Threads)
}

pub(crate) fn start_with(cores: usize, file_io: FileIo) -> Arc<Runtime> {
    let options = Options {
        cores: Some(cores),
        pin: false,
        file_io,
        grace: Duration::from_secs(3),
        ..Options::default()
    };
    Runtime::start(options).unwrap()
}

/// Why the kernel grants no ring here, asked without this crate's own code; the test says that it
/// is skipped.
pub(crate) fn ring_refused() -> bool {
    let refused = io_uring::IoUring::new(8).err();
    if let Some(why) = &refused {
        // Past the harness, which keeps to itself what a test prints that succeeds.
        let _ = writeln!(std::io::stderr(), "skipped: the kernel refuses io_uring here: {why}");
    }
    refused.is_some()
}

#[test]
fn calls_come_back_from_their_core() {
    let runtime = start(3);
    assert_eq!(try_core(), None);
    for round in 0..300 {
        let text = format!("round {round}");
        let (ran_on, len) = runtime.call(round % 3, || (core(), text.len()));
        assert_eq!((ran_on, len), (round % 3, text.len()));
    }
    // From a fiber to another core, and to its own.
    let sum = runtime.call(0, || runtime.call(1, || core() + 10) + runtime.call(0, || core() + 100));
    assert_eq!(sum, 111);
    runtime.shutdown();
    runtime.shutdown();
}

/// A worker's pin is its own: the kernel would hand it on to each thread that the worker starts.
#[test]
fn threads_beside_pinned_cores_may_run_on_all_processors_of_the_process() {
    let options = Options { cores: Some(1), file_io: FileIo::Threads, ..Options::default() };
    let runtime = Runtime::start(options).unwrap();
    assert_eq!(runtime.facts().pinned, 1);
    let whole = processor::processors();
    runtime.call(0, || {
        assert_eq!(processor::allowed().len(), 1, "the core is pinned");
        let (tell, told) = channel();
        crate::spawn_thread("helper", move || tell.send(processor::allowed()).unwrap()).unwrap();
        assert_eq!(told.recv().unwrap(), whole, "a plain thread");
        assert_eq!(crate::file::blocking(processor::allowed), whole, "the file threads");
        assert_eq!(crate::aside::run(processor::allowed).unwrap(), whole, "the threads for long calls");
        // A second runtime that a pinned core starts has the process's processors, too.
        let inner = start(1);
        assert_eq!(inner.call(0, processor::allowed), whole);
    });
    runtime.shutdown();
}

#[test]
fn a_panic_ends_its_fiber_alone() {
    let runtime = start(1);
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.call(0, || panic!("expected"))));
    assert_eq!(*caught.unwrap_err().downcast_ref::<&str>().unwrap(), "expected");
    runtime.spawn(0, || panic!("expected too"));
    runtime.call(0, || {
        fiber::spawn_local(|| fiber::on_worker_stack(|| panic!("expected on the worker's stack")));
        fiber::yield_now();
        fiber::yield_now();
        sync::park::yield_now();
    });
    assert_eq!(runtime.call(0, || 7), 7);
}

#[test]
fn fibers_take_turns_and_wait_for_each_other() {
    let runtime = start(2);
    let (queue, count) = (Arc::new(WaitQueue::new(&"test")), Arc::new(AtomicUsize::new(0)));
    let (done, ends) = channel();
    for fiber in 0..500 {
        let (queue, count, done) = (queue.clone(), count.clone(), done.clone());
        runtime.spawn(fiber % 2, move || {
            queue.wait_until(|| count.load(Ordering::Acquire) == fiber);
            assert_eq!(core(), fiber % 2);
            count.store(fiber + 1, Ordering::Release);
            queue.wake_all();
            done.send(()).unwrap();
        });
    }
    drop(done);
    assert_eq!(ends.iter().count(), 500);
    assert!(!queue.has_waiters());
    // Long computations share a core.
    let others = runtime.call(0, || {
        let ran = std::rc::Rc::new(std::cell::Cell::new(0));
        let own = ran.clone();
        fiber::spawn_local(move || own.set(own.get() + 1));
        let began = time::precise();
        while ran.get() == 0 && time::precise() - began < 10_000_000_000 {
            fiber::safe_point();
        }
        ran.get()
    });
    assert_eq!(others, 1);
}

#[test]
fn the_worker_stack_is_deep() {
    fn depth(left: u32) -> u32 {
        let room = std::hint::black_box([left as u8; 1024]);
        if left == 0 { 0 } else { depth(left - 1) + u32::from(room[7] == left as u8) }
    }
    let runtime = start(1);
    assert_eq!(runtime.call(0, || fiber::on_worker_stack(|| fiber::on_worker_stack(|| depth(2000)))), 2000);
    assert_eq!(fiber::on_worker_stack(|| depth(10)), 10);
}

#[test]
fn timers_go_off_in_time_or_never() {
    let runtime = start(1);
    runtime.call(0, || {
        let began = time::precise();
        fiber::sleep(Duration::from_millis(20));
        let slept = time::precise() - began;
        assert!((20_000_000..2_000_000_000).contains(&slept), "{slept}");
        assert!(time::now() >= began + 20_000_000);
        let fired = std::rc::Rc::new(std::cell::Cell::new(0));
        let (first, second) = (fired.clone(), fired.clone());
        let cancelled = timer::after(Duration::from_millis(1), move || first.set(100));
        timer::after(Duration::from_millis(2), move || second.set(second.get() + 1));
        timer::cancel(cancelled);
        fiber::sleep(Duration::from_millis(10));
        assert_eq!(fired.get(), 1);
    });
    assert!(time::wall() > 1_700_000_000_000_000);
}

#[test]
fn interrupts_end_waits_and_are_taken_once() {
    let runtime = start(2);
    let interrupt = Interrupt::new();
    let waiting = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (own, says) = (interrupt.clone(), waiting.clone());
        let waiter = scope.spawn(|| {
            runtime.call(1, move || {
                fiber::obey(Some(own));
                let queue = WaitQueue::new(&"test");
                says.store(true, Ordering::Release);
                let gave_up = queue.wait_until_with(|| false, interrupt::park);
                assert!(!queue.has_waiters());
                (gave_up, interrupt::check())
            })
        });
        while !waiting.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        interrupt.raise(Reason::Cancel);
        assert_eq!(waiter.join().unwrap(), (Err(Interrupted(Reason::Cancel)), Ok(())));
    });
    let own = interrupt.clone();
    runtime.call(0, move || {
        fiber::obey(Some(own.clone()));
        own.raise(Reason::StatementTimeout);
        own.raise(Reason::Terminate);
        interrupt::mask(|| assert_eq!(interrupt::check(), Ok(())));
        assert_eq!(interrupt::check(), Err(Interrupted(Reason::Terminate)));
        own.clear(Reason::StatementTimeout);
        assert_eq!(interrupt::check(), Ok(()));
        // Raised before the wait: not slept through.
        own.raise(Reason::LockTimeout);
        assert_eq!(interrupt::park(), Err(Interrupted(Reason::LockTimeout)));
    });
}

#[test]
fn many_parked_fibers_and_all_wake() {
    let runtime = start(2);
    let open = Arc::new((WaitQueue::new(&"test"), AtomicBool::new(false)));
    let (done, ends) = channel();
    for fiber in 0..3000 {
        let (open, done) = (open.clone(), done.clone());
        runtime.spawn(fiber % 2, move || {
            open.0.wait_until(|| open.1.load(Ordering::Acquire));
            done.send(()).unwrap();
        });
    }
    drop(done);
    assert_eq!(runtime.call(0, || 1), 1);
    open.1.store(true, Ordering::Release);
    while ends.recv_timeout(Duration::from_millis(1)).is_err() {
        open.0.wake_all();
    }
    open.0.wake_all();
    assert_eq!(ends.iter().count(), 2999);
}

#[test]
fn an_idle_core_that_polls_sleeps_in_the_end() {
    let options =
        Options { cores: Some(1), pin: false, poll: Duration::from_micros(100), ..Options::default() };
    let runtime = Runtime::start(options).unwrap();
    (0..2000).for_each(|number| assert_eq!(runtime.call(0, || number), number));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(runtime.call(0, || 7), 7);
}

#[test]
fn a_latch_across_a_park_is_refused() {
    let runtime = start(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.call(0, || {
            let lock = sync::SpinLock::new(&"test", ());
            let _guard = lock.lock();
            fiber::yield_now();
        });
    }));
    assert!(caught.is_err());
    assert_eq!(runtime.call(0, sync::held::count), 0);
}

#[test]
fn shutdown_leaves_a_fiber_behind_that_never_ends() {
    let options =
        Options { grace: Duration::from_millis(100), cores: Some(1), pin: false, ..Options::default() };
    let runtime = Runtime::start(options).unwrap();
    runtime.spawn(0, || {
        loop {
            sync::park::park();
        }
    });
    runtime.call(0, || ());
    let began = time::precise();
    runtime.shutdown();
    assert!(time::precise() - began < 3_000_000_000);
}

#[test]
fn a_runtime_dropped_by_its_own_worker_ends_its_threads() {
    let runtime = Runtime::start(Options {
        cores: Some(2),
        pin: false,
        file_io: FileIo::Threads,
        ..Options::default()
    })
    .unwrap();
    runtime.call(0, || crate::file::blocking(|| assert_eq!(crate::try_core(), None, "off the core")));
    let pool = runtime.call(0, || Arc::downgrade(crate::file::pool()));
    let (worker, own) = (Arc::clone(&runtime), Arc::downgrade(&runtime));
    runtime.spawn(1, move || {
        while Arc::strong_count(&worker) > 1 {
            crate::fiber::sleep(Duration::from_millis(1));
        }
        drop(worker);
    });
    drop(runtime);
    let start = std::time::Instant::now();
    // Workers and threads for files hold it.
    while pool.upgrade().is_some() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "threads are left, {} runtimes",
            own.strong_count()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_is_sent_to_a_core_that_has_ended_is_let_go() {
    let (runtime, other) = (start(2), start(4));
    assert_eq!((runtime.core_here(), runtime.call(1, || runtime.core_here())), (None, Some(1)));
    assert_eq!(other.call(1, || runtime.core_here()), None);
    let kept = Arc::new(());
    let keeper = |body: fn()| {
        let kept = Arc::clone(&kept);
        move || {
            body();
            drop(kept);
        }
    };
    // A message that waits in the mailbox when the loop ends, and one that its sender still finds
    // open.
    let (inside, before_the_end) = (Arc::clone(&runtime), keeper(|| {}));
    runtime.spawn(1, move || inside.spawn(0, before_the_end));
    runtime.shutdown();
    assert_eq!(runtime.try_call(0, keeper(|| panic!("nobody runs it"))), None);
    runtime.spawn(1, keeper(|| panic!("nobody runs it")));
    other.call(3, || runtime.spawn(0, keeper(|| panic!("nobody runs it"))));
    assert_eq!(other.call(2, || runtime.try_call(0, keeper(|| panic!("nobody runs it")))), None);
    assert_eq!(Arc::strong_count(&kept), 1, "what was sent is forgotten with what it keeps");
    other.shutdown();
}
