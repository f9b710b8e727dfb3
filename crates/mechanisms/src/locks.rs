//! The lock profile of an arm: the place where its threads waited longest.
//!
//! The profiler counts locks, latches and queues of `sync`: those of the engine's own arms, and
//! those that some variants stand on. It runs in a short round of its own, so the figures of the
//! other rounds are without it. What must hold: nothing else in the process takes such locks then.

use std::time::Duration;

use runtime::time;
use serde::{Deserialize, Serialize};
use sync::profile::{self, Kind, Row};

/// The longest round with the lock profiler on.
pub(crate) const ROUND: Duration = Duration::from_millis(200);

/// A place that takes locks or waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The class of the lock, its source file and line, and how the place takes it.
    pub name: String,
    /// Whether the place reads optimistically. Then the profiler counts waits and repeats alone.
    pub is_optimistic: bool,
    /// Acquisitions, waits, or repeats.
    pub count: u64,
    /// Acquisitions that had to wait.
    pub contended: u64,
    /// Time waited by all threads together.
    pub seconds: f64,
}

impl Place {
    fn of(row: &Row) -> Self {
        let Row { class, site, kind, counts } = row;
        Self {
            name: format!("\"{class}\" at {site} ({})", kind.as_str()),
            is_optimistic: matches!(kind, Kind::Read | Kind::Restart | Kind::Upgrade),
            count: counts.count,
            contended: counts.contended_wait,
            seconds: counts.wait_total as f64 / 1e9,
        }
    }

    /// Its counts in words.
    pub fn counts(&self) -> String {
        let Self { count, contended, .. } = self;
        match self.is_optimistic {
            true => format!("{count} waits and repeats; reads that needed neither are not counted"),
            false => format!("{contended} of {count} waited"),
        }
    }
}

/// Runs `body` with the profiler on. Returns the place where threads waited longest besides; `None`
/// if none waited.
pub(crate) fn during<R>(body: impl FnOnce() -> R) -> (R, Option<Place>) {
    profile::reset();
    profile::enable(time::precise);
    let result = body();
    profile::disable();
    let rows = profile::rows();
    let waited = rows.iter().filter(|row| row.counts.wait_total > 0);
    let worst = waited.max_by_key(|row| row.counts.wait_total);
    (result, worst.map(Place::of))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use sync::SpinLock;

    use super::*;

    #[test]
    fn a_lock_that_nobody_waited_for_is_not_named() {
        let lock = SpinLock::new(&"free", ());
        let ((), worst) = during(|| (0..100).for_each(|_| drop(lock.lock())));
        assert_eq!(worst, None);
    }

    #[test]
    fn the_worst_place_is_the_one_that_threads_wait_at() {
        let (hot, cold) = (SpinLock::new(&"hot", ()), SpinLock::new(&"cold", ()));
        let hold = || {
            let _guard = hot.lock();
            thread::sleep(Duration::from_millis(2));
        };
        let ((), worst) = during(|| {
            thread::scope(|scope| {
                (0..4).for_each(|_| _ = scope.spawn(hold));
                (0..100).for_each(|_| drop(cold.lock()));
            });
        });
        let worst = worst.expect("two places took locks");
        assert!(worst.name.starts_with("\"hot\" at mechanisms/src/locks.rs:"), "{}", worst.name);
        assert!(worst.name.ends_with(" (acquire)") && worst.seconds > 0.002, "{worst:?}");
        assert!(worst.count == 4 && worst.contended >= 1, "{worst:?}");
        assert_eq!(worst.counts(), format!("{} of 4 waited", worst.contended));
    }

    #[test]
    fn a_place_of_optimistic_reads_says_that_only_waits_and_repeats_count() {
        let counts = profile::Counts { count: 7, contended_wait: 7, ..profile::Counts::default() };
        let place = |kind| Place::of(&Row { class: "page", site: "a.rs:1".into(), kind, counts }).counts();
        let expected = "7 waits and repeats; reads that needed neither are not counted";
        assert_eq!([Kind::Read, Kind::Restart, Kind::Upgrade].map(place), [expected; 3]);
        assert_eq!([Kind::Acquire, Kind::Wait].map(place), ["7 of 7 waited"; 2]);
    }
}
