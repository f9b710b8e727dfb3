//! A stretch of the pool's memory, on one NUMA node. It counts the part in use, and the part that a
//! helper has touched ahead of use.
//!
//! The stretch is dealt out in units, from its beginning on. A worker claims the next unit and
//! frees its frames for use. A helper touches the units that come next, so that a worker's first
//! access finds memory there. What must hold:
//!
//! 1. Each unit is claimed at most once.
//! 2. Two helpers never begin the same unit, and none begins more than `ahead` units before they
//!    are claimed. So memory is touched in proportion to demand.
//! 3. A claim waits for no helper. A worker that is ahead of the helper takes a unit that nobody
//!    has touched, and takes its page faults itself. The helper goes on behind that unit.
//!
//! These counts publish nothing. Touching changes no byte. Others reach a unit's frames through the
//! lists and page table entries of the worker that claimed it.

use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};

/// Units of one node, numbered from 0.
#[derive(Debug)]
pub(crate) struct Stretch {
    units: usize,
    /// Units that a helper touches before they are claimed.
    ahead: usize,
    claimed: CachePadded<AtomicUsize>,
    /// Units that helpers have begun, or that workers claimed before a helper came to them.
    begun: CachePadded<AtomicUsize>,
}

impl Stretch {
    /// A stretch of so many units, of which none is claimed.
    pub(crate) fn new(units: usize, ahead: usize) -> Stretch {
        let none = || CachePadded::new(AtomicUsize::new(0));
        Stretch { units, ahead: ahead.max(1), claimed: none(), begun: none() }
    }

    /// Claims the next unit; `None` when all are claimed.
    pub(crate) fn claim(&self) -> Option<usize> {
        // Relaxed, here and below: the count alone decides. The look keeps it from growing without
        // end.
        if self.claimed.load(Ordering::Relaxed) >= self.units {
            return None;
        }
        let unit = self.claimed.fetch_add(1, Ordering::Relaxed);
        (unit < self.units).then_some(unit)
    }

    /// Units that are claimed: those below this number.
    pub(crate) fn claimed(&self) -> usize {
        // Relaxed: a reader that needs a claim to be seen is ordered behind it by other means.
        self.claimed.load(Ordering::Relaxed).min(self.units)
    }

    /// Whether a helper has units to touch, and so few are left ahead that it should be woken.
    pub(crate) fn is_short(&self) -> bool {
        // Relaxed: a hint; the next claim looks again.
        let begun = self.begun.load(Ordering::Relaxed);
        begun < self.units && begun < self.claimed() + self.ahead.div_ceil(2)
    }

    /// All units have been touched: helpers have nothing to do any more.
    pub(crate) fn touch_no_more(&self) {
        // Relaxed: as in `begin`.
        self.begun.store(self.units, Ordering::Relaxed);
    }

    /// The unit that a helper touches next; `None` when it is far enough ahead.
    pub(crate) fn begin(&self) -> Option<usize> {
        // Relaxed, here and below: the exchange alone decides who touches the unit.
        let mut begun = self.begun.load(Ordering::Relaxed);
        loop {
            let claimed = self.claimed();
            let unit = begun.max(claimed);
            if unit >= self.units.min(claimed + self.ahead) {
                return None;
            }
            match self.begun.compare_exchange(begun, unit + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(unit),
                Err(now) => begun = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_past_the_cores_claim_and_touch_each_unit_once() {
        const UNITS: usize = 20_000;
        const AHEAD: usize = 8;
        let threads = sync::stress::threads();
        let stretch = Stretch::new(UNITS, AHEAD);
        let claim = || {
            let claimed = std::iter::from_fn(|| {
                std::thread::yield_now();
                stretch.claim()
            });
            claimed.collect::<Vec<usize>>()
        };
        let touch = || {
            let mut touched = Vec::new();
            while stretch.claimed() < UNITS {
                let Some(unit) = stretch.begin() else {
                    std::thread::yield_now();
                    continue;
                };
                // The count has only risen since.
                assert!(unit < stretch.claimed() + AHEAD, "{unit} is too far ahead");
                touched.push(unit);
            }
            touched
        };
        let (mut claimed, mut touched) = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..threads / 2).map(|_| scope.spawn(claim)).collect();
            let touches: Vec<_> = (0..threads / 2).map(|_| scope.spawn(touch)).collect();
            let all = |of: Vec<std::thread::ScopedJoinHandle<'_, Vec<usize>>>| {
                of.into_iter().flat_map(|one| one.join().expect("it has panicked")).collect::<Vec<usize>>()
            };
            (all(claims), all(touches))
        });
        claimed.sort_unstable();
        assert!(claimed.into_iter().eq(0..UNITS));
        let count = touched.len();
        touched.sort_unstable();
        touched.dedup();
        assert_eq!(touched.len(), count, "a unit was touched twice");
        assert_eq!((stretch.begin(), stretch.is_short()), (None, false));
    }
}
