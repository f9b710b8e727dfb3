//! Row `sleep-lock`: a section of about a microsecond under a lock whose waiters sleep.

use sync::Mutex;
use variants::caller::Caller;
use variants::sleep_lock::{AdaptiveLock, FutexLock};
use variants::spin::{Exclusion, Lock};

use super::spin::section;
use super::{Arm, Machine, Part, Row, Started};

/// Steps of computing in a section, some 750 ns: what a search in a descriptor table takes.
const INSIDE: u32 = 375;
/// Steps between two sections: the lock is the bottleneck from two threads on.
const OUTSIDE: u32 = 375;

/// The row.
pub(super) const ROW: Row = Row {
    id: "sleep-lock",
    report: "K07",
    about: "locks that sleep: the kernel asked at each contended step, against spinning while the owner runs",
    operation: "lock, compute for 0.75 us, unlock, compute for 0.75 us",
    needs: Some(Machine::Cores(8, "a waiter needs a core of its own to spin on while the owner runs")),
    code: "crates/variants/src/sleep_lock",
    arms: &[
        Arm { name: "futex", part: Part::Stock, start: start::<FutexLock> },
        Arm { name: "adaptive", part: Part::Published, start: start::<AdaptiveLock> },
        Arm { name: "Mutex", part: Part::Allcore, start: |_| section(Own::default(), INSIDE, OUTSIDE) },
    ],
};

fn start<L: Lock + 'static>(threads: usize) -> Started {
    section(L::new(threads), INSIDE, OUTSIDE)
}

/// The engine's lock for threads that are no cores.
#[derive(Debug, Default)]
struct Own(Mutex<()>);

impl Exclusion for Own {
    #[inline]
    fn with<R>(&self, _: &mut Caller, body: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        body()
    }
}
