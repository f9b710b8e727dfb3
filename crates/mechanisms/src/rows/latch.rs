//! Row `latch`: a hot page that all threads read and few change.

mod own;

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use variants::latch::{AddLatch, ExchangeLatch, FieldsLatch, HeldLatch, Latch, TurnstileLatch};

use own::Own;

use super::{Arm, Machine, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// One operation in so many is a change.
const CHANGE: u64 = 64;
/// Steps of computing in a read, some 75 ns: a binary search in a page.
const INSIDE: u32 = 40;
/// Steps between two operations.
const OUTSIDE: u32 = 40;

/// The row.
pub(super) const ROW: Row = Row {
    id: "latch",
    report: "P15, B14",
    about: "shared latches: LWLock's fields under a spin lock, a compare-and-swap loop, an optimistic add",
    operation: "1 change of 2 words in 64 operations, the others read both under a shared latch for 75 ns",
    needs: Some(Machine::Nodes(4, "a failed exchange costs another transfer of the line")),
    code: "crates/variants/src/latch",
    arms: &[
        Arm { name: "lwlock-9.4", part: Part::Stock, start: start::<FieldsLatch> },
        Arm { name: "lwlock-9.5", part: Part::Step, start: start::<ExchangeLatch> },
        Arm { name: "rwlock-turnstile", part: Part::Step, start: start::<TurnstileLatch> },
        Arm { name: "optimistic-add", part: Part::Published, start: start::<AddLatch> },
        Arm { name: "VersionLatch", part: Part::Allcore, start: |_| page(Own::default()) },
    ],
};

fn start<L: HeldLatch + 'static>(threads: usize) -> Started {
    page(L::new(threads))
}

fn page(latch: impl Latch + 'static) -> Started {
    Ok(Box::new(Page {
        latch,
        words: Default::default(),
        changes: AtomicU64::new(0),
        is_torn: AtomicBool::new(false),
    }))
}

#[derive(Debug)]
struct Page<L> {
    latch: L,
    /// Equal whenever nobody changes them.
    words: CachePadded<[AtomicU64; 2]>,
    changes: AtomicU64,
    is_torn: AtomicBool,
}

impl<L: Latch> Subject for Page<L> {
    fn work(&self, worker: &mut Worker<'_>) {
        // Relaxed, here and below: ordered by the latch, or read after the threads' end.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let [left, right] = &*self.words;
        let (mut count, mut changes) = (0u64, 0);
        worker.repeat(|me| {
            count += 1;
            if count.is_multiple_of(CHANGE) {
                changes += 1;
                self.latch.write(me, || {
                    left.store(load(left) + 1, Ordering::Relaxed);
                    right.store(load(right) + 1, Ordering::Relaxed);
                });
            } else {
                let seen = self.latch.read(me, || {
                    let seen = load(left);
                    compute(INSIDE);
                    (seen, load(right))
                });
                if seen.0 != seen.1 {
                    self.is_torn.store(true, Ordering::Relaxed);
                }
            }
            compute(OUTSIDE);
        });
        self.changes.fetch_add(changes, Ordering::Relaxed);
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed, all: the threads have ended.
        let changes = self.changes.load(Ordering::Relaxed);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        if self.is_torn.load(Ordering::Relaxed) {
            return Err("a reader has seen half a change: the latch does not exclude".into());
        }
        if words != [changes; 2] {
            return Err(format!("{changes} changes have added up to {words:?}: the latch does not exclude"));
        }
        Ok(())
    }
}
