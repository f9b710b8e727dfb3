//! Which thread runs on which processor, as far as threads can tell each other without a system
//! call.
//!
//! FreeBSD's kernel reads a lock owner's run state from its thread structure. In user space there
//! is no such word. Here each thread writes its number into the cell of its processor whenever it
//! takes a lock. If the cell of the owner's processor holds another number, that thread has run
//! there since: the owner has lost its processor. What must hold: the table is a hint. It may call
//! a thread running that a thread without locks has displaced, so callers bound their spinning.
//!
//! Cost: a store to a line that stays with its processor. Each look at it by a waiter on another
//! processor costs one transfer, and the next store another one.

use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};

/// Cells of a table, one a processor. Processors beyond share them, which makes a running owner
/// look displaced and costs a sleep.
const PROCESSORS: usize = if cfg!(loom) { 1 } else { 512 };

/// The threads last seen on each processor.
#[derive(Debug)]
pub(crate) struct Running {
    seen: Box<[CachePadded<AtomicUsize>]>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { seen: (0..PROCESSORS).map(|_| CachePadded::new(AtomicUsize::new(usize::MAX))).collect() }
    }

    /// Notes that this thread runs here now. Returns the number of its processor's cell.
    #[inline]
    pub(crate) fn note(&self, thread: usize) -> usize {
        let processor = sync::current_processor() % PROCESSORS;
        let cell = &self.seen[processor];
        // Relaxed, here and below: a hint. A store only on change keeps the line shared.
        if cell.load(Ordering::Relaxed) != thread {
            cell.store(thread, Ordering::Relaxed);
        }
        processor
    }

    /// Whether this thread was the last one seen on this processor.
    #[inline]
    pub(crate) fn is_running(&self, thread: usize, processor: usize) -> bool {
        self.seen[processor % PROCESSORS].load(Ordering::Relaxed) == thread
    }
}
