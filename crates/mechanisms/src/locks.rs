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
    (result, worst(&profile::rows()))
}

/// The place with the longest wait of all, if any thread waited.
fn worst(rows: &[Row]) -> Option<Place> {
    let waited = rows.iter().filter(|row| row.counts.wait_total > 0);
    waited.max_by_key(|row| row.counts.wait_total).map(Place::of)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
    use std::thread;

    use sync::SpinLock;

    use super::*;

    /// The profiler is the process's: one test at a time turns it on.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static PROFILER: Mutex<()> = Mutex::new(());
        PROFILER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(class: &'static str, count: u64, wait_total: u64) -> Row {
        let counts = profile::Counts { count, wait_total, ..profile::Counts::default() };
        Row { class, site: "a.rs:1".into(), kind: Kind::Acquire, counts }
    }

    #[test]
    fn the_worst_place_is_the_one_that_threads_waited_at_longest() {
        assert_eq!(worst(&[]), None);
        assert_eq!(worst(&[row("free", 100, 0)]), None, "nobody waited");
        let rows = [row("free", 100, 0), row("cold", 9, 5), row("hot", 2, 7), row("warm", 3, 6)];
        assert_eq!(worst(&rows), Some(Place::of(&rows[2])));
    }

    #[test]
    fn the_waits_of_a_round_are_those_of_its_threads() {
        let _alone = alone();
        let (lock, begin) = (SpinLock::new(&"held for 10 ms", ()), Barrier::new(4));
        let hold = || {
            begin.wait();
            let _guard = lock.lock();
            thread::sleep(Duration::from_millis(10));
        };
        let free = SpinLock::new(&"taken alone", ());
        let ((), longest) = during(|| {
            thread::scope(|scope| {
                (0..4).for_each(|_| _ = scope.spawn(hold));
                (0..100).for_each(|_| drop(free.lock()));
            });
        });
        let longest = longest.expect("threads waited");
        let rows = profile::rows();
        let of =
            |class| Place::of(rows.iter().find(|row| row.class == class).expect("a lock that was taken"));
        let place = of("taken alone");
        assert_eq!((place.count, place.contended, place.seconds), (100, 0, 0.0));
        let place = of("held for 10 ms");
        // Other tests may have waited longer meanwhile, at other places.
        assert!(longest.seconds > 0.01, "{longest:?}");
        assert!(place.name.starts_with("\"held for 10 ms\" at mechanisms/src/locks.rs:"), "{}", place.name);
        assert!(place.name.ends_with(" (acquire)") && place.seconds > 0.01, "{place:?}");
        assert!(place.count == 4 && place.contended >= 1, "{place:?}");
        assert_eq!(place.counts(), format!("{} of 4 waited", place.contended));
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
