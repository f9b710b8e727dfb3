//! Row `spin`: a section of a few instructions under a lock whose waiters poll.
//!
//! With more threads than cores the order of a queue costs more than it saves. The lock goes to the
//! next thread in line even if that thread has lost its processor.

use sync::SpinLock;
use sync::atomic::{AtomicU64, Ordering};
use variants::caller::Caller;
use variants::spin::{Exclusion, Lock, Mcs, TestAndSet, TestTestAndSet, Ticket};

use super::{Arm, Machine, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Words that a section changes, on a line of their own.
const WORDS: usize = 4;
/// Steps of [`compute`] between two sections, some 150 ns: about as long as a contended section.
const OUTSIDE: u32 = 75;

/// The row.
pub(super) const ROW: Row = Row {
    id: "spin",
    report: "P15, B14",
    about: "spin locks: test-and-set that all waiters storm, against a queue in which each polls its own line",
    operation: "lock, add 1 to 4 words, unlock, compute for 150 ns",
    needs: Some(Machine::Cores(32, "waiters need cores of their own to poll on")),
    code: "crates/variants/src/spin",
    arms: &[
        Arm { name: "test-and-set", part: Part::Stock, start: start::<TestAndSet> },
        Arm { name: "test-first", part: Part::Step, start: start::<TestTestAndSet> },
        Arm { name: "ticket", part: Part::Step, start: start::<Ticket<0>> },
        Arm { name: "ticket-backoff", part: Part::Step, start: start::<Ticket<30>> },
        Arm { name: "mcs", part: Part::Published, start: start::<Mcs> },
        Arm {
            name: "SpinLock",
            part: Part::Allcore,
            start: |_| section(Own(SpinLock::new(&"mechanism", ())), 0, OUTSIDE),
        },
    ],
};

fn start<L: Lock + 'static>(threads: usize) -> Started {
    section(L::new(threads), 0, OUTSIDE)
}

/// The engine's spin lock.
#[derive(Debug)]
struct Own(SpinLock<()>);

impl Exclusion for Own {
    #[inline]
    fn with<R>(&self, _: &mut Caller, body: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        body()
    }
}

/// Sections under `lock`, which compute for `inside` steps each, and for `outside` steps between
/// two.
pub(super) fn section(lock: impl Exclusion + 'static, inside: u32, outside: u32) -> Started {
    Ok(Box::new(Section { lock, words: Default::default(), inside, outside }))
}

#[derive(Debug)]
struct Section<L> {
    lock: L,
    words: sync::CachePadded<[AtomicU64; WORDS]>,
    inside: u32,
    outside: u32,
}

impl<L: Exclusion> Subject for Section<L> {
    fn work(&self, worker: &mut Worker<'_>) {
        worker.repeat(|me| {
            self.lock.with(me, || {
                for word in self.words.iter() {
                    // Relaxed, both: ordered by the lock. A lost addition shows in the check.
                    let seen = word.load(Ordering::Relaxed);
                    word.store(seen + 1, Ordering::Relaxed);
                }
                compute(self.inside);
            });
            compute(self.outside);
        });
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        let sums = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        if sums == [operations; WORDS] {
            Ok(())
        } else {
            Err(format!("{operations} sections have added up to {sums:?}: the lock does not exclude"))
        }
    }
}
