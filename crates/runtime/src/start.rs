//! Starts and stops the runtime, and runs code on its cores from outside.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;
use sync::channel::channel;
use sync::{Mutex, Once};

use crate::aside::Threads;
use crate::counters::Counters;
use crate::fiber::core;
use crate::file::{Disk, FileIo, Pool};
use crate::mailbox;
use crate::net::{self, Accept, Address, Bound, Listener};
use crate::shared::{Shared, WORKERS_BESIDE};
use crate::topology::{Topology, Workers};
use crate::worker::Worker;
use crate::{call, os, stop, time, watchdog};

/// Parser and planner recurse on the worker's stack. The system backs it with memory as it is
/// touched.
const WORKER_STACK_BYTES: usize = 16 * 1024 * 1024;

/// How a runtime is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of workers; `None` = one for each core this process may use.
    pub cores: Option<usize>,
    /// Pin each worker to its core (best effort, and only when there are no more workers than
    /// cores).
    pub pin: bool,
    /// How files are read and written.
    pub file_io: FileIo,
    /// How long an idle core polls before it sleeps, at most, while work comes that often. Zero by
    /// default: polling takes as much from clients on the same machine as it gives
    /// (docs/decisions/0013-no-polling-before-sleep.md has the figures). On a machine of its own,
    /// 50 µs save the wake-up's latency.
    pub poll: Duration,
    /// How long shutdown waits for sessions and fibers before it leaves them behind.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cores: None,
            pin: true,
            file_io: FileIo::Auto,
            poll: Duration::ZERO,
            grace: Duration::from_secs(10),
        }
    }
}

/// The choices made at start.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Number of workers.
    pub cores: usize,
    /// Number of workers that could be pinned.
    pub pinned: usize,
    /// NUMA nodes that this process may use.
    pub numa_nodes: usize,
    /// `IoUring` or `Threads`.
    pub file_io: FileIo,
    /// Number of workers that send to and receive from many sockets by one system call, through a
    /// ring.
    pub batched: usize,
    /// Why io_uring was not taken, when it was wanted.
    pub io_uring_refused: Option<String>,
}

/// The worker of a core, until its thread ends or fails to start. Dropping this closes the worker's
/// mailbox. The last worker also closes the pools of threads.
struct Ended {
    core: usize,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    aside: Arc<Threads>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.shared.mailbox(self.core).mail().close();
        // AcqRel: the last worker to end sees everything that the other workers have put into the
        // pools, and only then closes them.
        if self.shared.working.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.close();
            self.aside.close();
        }
    }
}

/// A running set of workers.
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<os::thread::JoinHandle>>,
    facts: Facts,
    workers: Workers,
    /// The kernel's numbers of the workers' threads.
    numbers: Vec<i32>,
    pub(crate) counters: Counters,
    grace: Duration,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Runtime").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts all workers. If one of them cannot be started, ends the others before it returns the
    /// error.
    pub fn start(options: Options) -> io::Result<Arc<Runtime>> {
        stop::arm_from_environment().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        install_panic_hook();
        let machine = Topology::of_machine();
        let cores = options.cores.unwrap_or(machine.processors().len()).max(1);
        let places = if options.pin { machine.choose(cores).unwrap_or_default() } else { Vec::new() };
        let (pool, aside) = (Pool::new(), Threads::new());
        let (mut disks, refused) = Disk::for_cores(cores, options.file_io, &pool)?;
        let file_io = if disks[0].event().is_some() { FileIo::IoUring } else { FileIo::Threads };
        disks.extend((0..WORKERS_BESIDE).map(|_| Disk::without_ring(&pool)));
        let workers = cores + WORKERS_BESIDE;
        let placed = Workers::new(&machine, &places, cores, workers);
        let shared = Arc::new(Shared::new(placed.nodes_of_cores(), options.poll)?);
        let facts = Facts {
            cores,
            pinned: 0,
            numa_nodes: machine.nodes(),
            file_io,
            batched: 0,
            io_uring_refused: refused,
        };
        // The runtime is complete before its first thread starts. An error below drops it, which
        // ends and joins the workers that run by then.
        let grace = options.grace;
        let (threads, numbers) = (Mutex::new(Vec::new()), vec![0; workers]);
        let counters = Counters::new(workers);
        let mut runtime = Runtime { shared, threads, facts, workers: placed, numbers, counters, grace };
        let (started, answers) = channel();
        // One for each worker that is counted, whether or not its thread will start.
        let end = |core| Ended {
            core,
            shared: Arc::clone(&runtime.shared),
            pool: Arc::clone(&pool),
            aside: Arc::clone(&aside),
        };
        let ends: Vec<Ended> = (0..workers).map(end).collect();
        for (core, (disk, ended)) in disks.into_iter().zip(ends).enumerate() {
            let (shared, started) = (Arc::clone(&runtime.shared), started.clone());
            let aside = Arc::clone(&aside);
            let processor = places.get(core).map(|place| place.number);
            let body = move || {
                let _ended = ended;
                let pinned = processor.is_some_and(os::processor::pin);
                let made =
                    stop::fault("runtime.start.worker").and_then(|()| Worker::new(core, shared, disk, aside));
                match made {
                    Ok(worker) => {
                        let number = os::thread::number();
                        let _ = started.send(Ok((core, number, pinned, worker.is_batched())));
                        drop(started);
                        worker.run();
                    }
                    Err(error) => drop(started.send(Err(error))),
                }
            };
            let name = match core {
                core if core < cores => format!("core-{core}"),
                core if core == cores => "reserve".to_owned(),
                _ => "service".to_owned(),
            };
            stop::fault("runtime.start.thread")?;
            let thread = os::thread::spawn(&name, Some(WORKER_STACK_BYTES), body)?;
            runtime.threads.get_mut().push(thread);
        }
        drop(started);
        for answer in answers {
            let (core, number, pinned, batched) = answer?;
            runtime.numbers[core] = number;
            runtime.facts.pinned += usize::from(pinned);
            runtime.facts.batched += usize::from(batched);
        }
        Ok(Arc::new(runtime))
    }

    /// Starts the watchdog, which calls `report` once for each time that a fiber holds a worker for
    /// longer than [`watchdog::LIMIT`].
    pub fn watch(&self, report: Box<watchdog::Report>) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = os::thread::spawn("watchdog", None, move || watchdog::watch(&shared, &*report))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Runs `body` on a new fiber of `core`. It is dropped when the workers have ended, or end
    /// before its turn.
    pub fn spawn(&self, core: usize, body: impl FnOnce() + Send + 'static) {
        let start = move || core::here().start(Box::new(body));
        match self.core_here() {
            Some(here) if here == core => start(),
            _ => mailbox::send(self.shared.mailbox(core), start),
        }
    }

    /// The core this code runs on, if it belongs to this runtime. Each folder's runtime has cores
    /// of its own, and only code on a core may touch that core's state.
    pub fn core_here(&self) -> Option<usize> {
        core::current().filter(|core| Arc::ptr_eq(&core.shared, &self.shared)).map(|core| core.number)
    }

    /// As [`Runtime::try_call`]. Panics when the workers have ended.
    pub fn call<R: Send>(&self, core: usize, body: impl FnOnce() -> R + Send) -> R {
        self.try_call(core, body).expect("the runtime has not been shut down")
    }

    /// Runs `body` on a new fiber of `core` and waits for its result: a foreign thread blocks, a
    /// fiber parks. A panic of `body` goes on in the caller. None when the workers have ended, or
    /// end before its turn: then it is dropped. Nothing is allocated for the way there and back but
    /// the fiber's job.
    pub fn try_call<R: Send>(&self, core: usize, body: impl FnOnce() -> R + Send) -> Option<R> {
        call::run(self.shared.mailbox(core), body)
    }

    /// Listens at `address`, until the listener is dropped or the runtime drains.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn listen(&self, address: Address, accept: Arc<Accept>) -> io::Result<Listener> {
        self.listen_at(Bound::new(address)?, usize::MAX, accept)
    }

    /// As [`Runtime::listen`], at an address that was taken before. While the runtime has `most`
    /// sessions, further connections are not accepted yet.
    ///
    /// # Errors
    /// When the service worker cannot watch the address.
    pub fn listen_at(&self, place: Bound, most: usize, accept: Arc<Accept>) -> io::Result<Listener> {
        net::listen_at(&self.shared, place, most, accept)
    }

    /// Number of pinned workers.
    pub fn core_count(&self) -> usize {
        self.shared.core_count()
    }

    /// Number of all workers: the cores', and behind them the reserve and the service worker. State
    /// by worker has as many parts.
    pub fn worker_count(&self) -> usize {
        self.shared.service() + 1
    }

    /// The worker that accepts connections. A fiber on it sees the cores while they run, and keeps
    /// none of their sessions waiting.
    pub fn service_worker(&self) -> usize {
        self.shared.service()
    }

    /// Sessions on all cores.
    pub fn session_count(&self) -> usize {
        self.shared.session_count()
    }

    /// The choices made at start.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The workers, and the NUMA nodes on which they run.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The kernel's numbers of the workers' threads.
    pub(crate) fn worker_threads(&self) -> &[i32] {
        &self.numbers
    }

    /// Stops accepting, tells every session to end, and waits (bounded by the grace time) until all
    /// have. Only from a thread that is no worker.
    pub fn drain(&self) {
        assert!(core::current().is_none(), "a worker can't wait for its own end");
        // SeqCst: of a session that attaches meanwhile, one of two holds. The worker's message
        // below finds the session, or the session sees `draining`.
        self.shared.draining.store(true, Ordering::SeqCst);
        for worker in 0..=self.shared.service() {
            mailbox::send(self.shared.mailbox(worker), || net::here().drain());
        }
        let deadline = time::precise() + self.grace.as_nanos() as u64;
        while self.session_count() > 0 && time::precise() < deadline {
            os::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Drains, then ends and joins the workers. Each ends when its fibers have, or when the grace
    /// time is over. Fibers that still wait then are left behind. Does nothing the second time.
    /// Only from a thread that is no worker.
    pub fn shutdown(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return;
        }
        self.drain();
        self.tell_to_exit();
        for thread in threads {
            // The watchdog sleeps between its looks.
            thread.thread().unpark();
            if thread.join().is_err() {
                crate::last_words(format_args!("a worker's loop panicked"));
            }
        }
    }

    /// Whether the workers have ended or are about to: nothing can be run on them any more.
    pub fn is_over(&self) -> bool {
        // Relaxed: a guard against misuse.
        self.shared.exiting.load(Ordering::Relaxed)
    }

    fn tell_to_exit(&self) {
        let deadline = time::precise() + self.grace.as_nanos() as u64;
        // Relaxed: published by the store of `exiting`.
        self.shared.exit_deadline.store(deadline, Ordering::Relaxed);
        // Release: the deadline is seen with it.
        self.shared.exiting.store(true, Ordering::Release);
        for worker in 0..=self.shared.service() {
            mailbox::send(self.shared.mailbox(worker), || {});
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        match core::current() {
            None => self.shutdown(),
            // A worker drops the last reference. It can't join itself, so it asks the workers to
            // end and waits for none.
            Some(_) => self.tell_to_exit(),
        }
    }
}

/// Processors that this process may run on: as many workers can be pinned.
pub fn processor_count() -> usize {
    os::processor::processors().len()
}

/// Panics on a worker are logged with their backtrace; elsewhere the previous hook stays in charge.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match core::current() {
            Some(core) => {
                let trace = std::backtrace::Backtrace::force_capture();
                crate::last_words(format_args!("core {}: {panic}\n{trace}", core.number));
            }
            None => previous(panic),
        }));
    });
}
