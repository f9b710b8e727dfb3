//! Starting and stopping the runtime.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileIo {
    /// io_uring where the kernel grants it, else threads.
    #[default]
    Auto,
    /// io_uring, or starting fails.
    IoUring,
    /// A small pool of I/O threads.
    Threads,
}

/// How a runtime is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of workers; `None` = one for each core this process may use.
    pub cores: Option<usize>,
    /// Pin each worker to its core (best effort).
    pub pin: bool,
    /// How files are read and written.
    pub file_io: FileIo,
    /// How long shutdown waits for sessions and fibers before it leaves them behind.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { cores: None, pin: true, file_io: FileIo::Auto, grace: Duration::from_secs(10) }
    }
}

/// What was chosen at start.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Number of workers.
    pub cores: usize,
    /// Number of workers that could be pinned.
    pub pinned: usize,
    /// NUMA nodes of the machine.
    pub numa_nodes: usize,
    /// `IoUring` or `Threads`.
    pub file_io: FileIo,
    /// Why io_uring was not taken, when it was wanted.
    pub io_uring_refused: Option<String>,
}

/// A running set of workers.
#[derive(Debug)]
pub struct Runtime {}

impl Runtime {
    /// Starts the workers.
    pub fn start(_options: Options) -> io::Result<Arc<Runtime>> {
        todo!()
    }

    /// Runs `body` on a new fiber of `core`.
    pub fn spawn(&self, _core: usize, _body: impl FnOnce() + Send + 'static) {
        todo!()
    }

    /// Runs `body` on a new fiber of `core` and waits for its result. A panic of `body` goes on in the caller.
    pub fn call<R: Send>(&self, _core: usize, _body: impl FnOnce() -> R + Send) -> R {
        todo!()
    }

    /// Number of workers.
    pub fn core_count(&self) -> usize {
        todo!()
    }

    /// What was chosen at start.
    pub fn facts(&self) -> &Facts {
        todo!()
    }

    /// Stops accepting, tells every session to end, and waits (bounded by the grace time) until all have.
    pub fn drain(&self) {
        todo!()
    }

    /// Drains, then ends and joins the workers. Does nothing the second time.
    pub fn shutdown(&self) {
        todo!()
    }
}

/// The core this code runs on. Panics outside a worker.
pub fn core() -> usize {
    todo!()
}

/// The core this code runs on, or `None` outside a worker.
pub fn try_core() -> Option<usize> {
    todo!()
}

/// Number of workers of the runtime this code runs in. Panics outside a worker.
pub fn core_count() -> usize {
    todo!()
}
