//! Which thread runs on which processor, as far as threads can tell each other without a system
//! call.
//!
//! FreeBSD's kernel reads a lock owner's run state from its thread structure. In user space there
//! is no such word. Here each thread writes its number into the cell of its processor whenever it
//! takes a lock. If the cell of the owner's processor holds another number, that thread has run
//! there since: the owner has lost its processor. One table serves all locks. What must hold: the
//! table is a hint. It may call a thread running that a thread without locks has displaced, or
//! whose number another group of threads has too. So callers bound their spinning.
//!
//! Cost in line transfers: 0 for a store, since the line stays with its processor. Each look at it
//! by a waiter on another processor costs 1, and the next store that changes it 1 more.

use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};

/// Cells of the table, one a processor. Processors beyond share them, which makes a running owner
/// look displaced and costs a sleep.
const PROCESSORS: usize = if cfg!(loom) { 1 } else { 512 };

/// The thread last seen on a processor: thread `n` is `n + 1`, and 0 is none.
type Cell = CachePadded<AtomicUsize>;

#[cfg(not(loom))]
static SEEN: [Cell; PROCESSORS] = [const { CachePadded::new(AtomicUsize::new(0)) }; PROCESSORS];

#[cfg(loom)]
loom::lazy_static! {
    static ref SEEN: [Cell; PROCESSORS] = [CachePadded::new(AtomicUsize::new(0))];
}

/// Notes that this thread runs here now. Returns the number of its processor's cell.
#[inline]
pub(crate) fn note(thread: usize) -> usize {
    let processor = sync::current_processor() % PROCESSORS;
    let cell = &SEEN[processor];
    // Relaxed, here and below: a hint. A store only on change keeps the line shared.
    if cell.load(Ordering::Relaxed) != thread + 1 {
        cell.store(thread + 1, Ordering::Relaxed);
    }
    processor
}

/// Whether this thread was the last one seen on this processor.
#[inline]
pub(crate) fn is_running(thread: usize, processor: usize) -> bool {
    SEEN[processor % PROCESSORS].load(Ordering::Relaxed) == thread + 1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_was_seen_last() {
        // Numbers that no other test has, on a processor that the machine hardly has.
        let (one, other, processor) = (1 << 20, 1 << 21, PROCESSORS - 1);
        assert!(!is_running(one, processor));
        SEEN[processor].store(one + 1, Ordering::Relaxed);
        assert!(is_running(one, processor + PROCESSORS) && !is_running(other, processor));
    }
}
