//! Row `needs-buffer`: buffers are freed all the time, and almost nobody waits for one.

use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, WaitQueue};
use variants::caller::Caller;
use variants::needs_buffer::{KINDS, MutexNeeds, Needs, SharedNeeds};

use super::{Arm, Machine, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// One operation in so many takes a buffer of which there are fewer than threads.
const SCARCE: u64 = 256;
/// Steps with a buffer in hand, some 75 ns.
const INSIDE: u32 = 40;
/// The kind of the buffers that each thread has for itself.
const OWN: usize = 0;
/// The kind of the scarce buffers.
const SHARED: usize = 1;

/// The row.
pub(super) const ROW: Row = Row {
    id: "needs-buffer",
    report: "B14",
    about: "the flags of what waiters need, looked at by each release: under a mutex, or shared by atomics",
    operation: "take a buffer, compute for 75 ns, free it; 1 in 256 takes one that others wait for",
    needs: Some(Machine::Cores(40, "those who free buffers meet at the mutex only if they run at once")),
    code: "crates/variants/src/needs_buffer",
    arms: &[
        Arm { name: "mutex", part: Part::Stock, start: |threads| pool(MutexNeeds::new(threads), threads) },
        Arm {
            name: "shared",
            part: Part::Published,
            start: |threads| pool(SharedNeeds::new(threads), threads),
        },
        Arm { name: "WaitQueue", part: Part::Allcore, start: |threads| pool(Own::new(), threads) },
    ],
};

/// The engine's queues of waiters, one a kind.
#[derive(Debug)]
struct Own([CachePadded<WaitQueue>; KINDS]);

impl Own {
    fn new() -> Own {
        Own(std::array::from_fn(|_| CachePadded::new(WaitQueue::new(&"mechanism"))))
    }
}

impl Needs for Own {
    #[inline]
    fn freed(&self, _: &mut Caller, kind: usize) {
        self.0[kind].wake_one();
    }

    fn wait<R>(&self, _: &mut Caller, kind: usize, mut take: impl FnMut() -> Option<R>) -> R {
        let mut taken = None;
        self.0[kind].wait_until(|| {
            taken = take();
            taken.is_some()
        });
        taken.expect("the wait ends with a buffer")
    }
}

fn pool(needs: impl Needs + 'static, threads: usize) -> Started {
    let scarce = threads.div_ceil(2) as u64;
    Ok(Box::new(Pool { needs, scarce, free: CachePadded::new(AtomicU64::new(scarce)) }))
}

#[derive(Debug)]
struct Pool<N> {
    needs: N,
    scarce: u64,
    /// Free ones of the scarce buffers.
    free: CachePadded<AtomicU64>,
}

/// Takes one of the scarce buffers, if one is free.
fn take(free: &AtomicU64) -> Option<()> {
    // Relaxed: the exchange decides.
    let mut seen = free.load(Ordering::Relaxed);
    while seen > 0 {
        // Acquire: what the last holder of the buffer did is seen. Relaxed on failure: as above.
        match free.compare_exchange_weak(seen, seen - 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(()),
            Err(found) => seen = found,
        }
    }
    None
}

impl<N: Needs> Subject for Pool<N> {
    fn work(&self, worker: &mut Worker<'_>) {
        let mut count = 0u64;
        worker.repeat(|me| {
            count += 1;
            if count.is_multiple_of(SCARCE) {
                self.needs.wait(me, SHARED, || take(&self.free));
                compute(INSIDE);
                // Release: the next holder of the buffer sees what this one did.
                self.free.fetch_add(1, Ordering::Release);
                self.needs.freed(me, SHARED);
            } else {
                self.needs.wait(me, OWN, || Some(()));
                compute(INSIDE);
                self.needs.freed(me, OWN);
            }
        });
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        let free = self.free.load(Ordering::Relaxed);
        if free == self.scarce {
            Ok(())
        } else {
            Err(format!("{free} of {} buffers are free after the round", self.scarce))
        }
    }
}
