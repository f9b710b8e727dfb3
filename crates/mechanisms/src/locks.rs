//! The lock profile of an arm: the place where its threads waited longest.
//!
//! The profiler counts the locks, latches and queues of `sync`, which the engine's own arms take.
//! For the variants' own locks it counts the waits alone, because a free one has no hook. It runs
//! in a short round of its own, so the figures of the other rounds are without it. What must hold:
//! nothing else in the process takes such locks then.

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
    /// Whether the profiler counts waits and repeats alone: those of an optimistic read, or of a
    /// variant's own lock.
    pub waits_alone: bool,
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
            waits_alone: matches!(kind, Kind::Read | Kind::Restart | Kind::Upgrade | Kind::Wait),
            count: counts.count,
            contended: counts.contended_wait,
            seconds: counts.wait_total as f64 / 1e9,
        }
    }

    /// Its counts in words.
    pub fn counts(&self) -> String {
        let Self { count, contended, .. } = self;
        match self.waits_alone {
            true => format!("{count} waits and repeats; where neither was needed, nothing is counted"),
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
    use std::time::Instant;

    use sync::SpinLock;
    use sync::atomic::{AtomicUsize, Ordering};
    use variants::caller::Caller;
    use variants::latch::{AddLatch, ExchangeLatch, FieldsLatch, HeldLatch, Latch, TurnstileLatch};
    use variants::needs_buffer::{MutexNeeds, Needs, SharedNeeds};
    use variants::pin::{AddFrame, CountedFrame, ExchangeFrame, Frame, PinnedFrame};
    use variants::semaphore::{FutexSemaphores, Semaphores};
    use variants::sleep_lock::{AdaptiveLock, FutexLock};
    use variants::spin::{Exclusion, Lock, Mcs, TestAndSet, TestTestAndSet, Ticket};

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

    /// Threads of the tests below.
    const THREADS: usize = 4;
    /// Time that each thread holds what the others wait for.
    const HOLD: Duration = Duration::from_millis(3);

    /// Runs `turn` on each of [`THREADS`] threads.
    fn at_once(turn: impl Fn(&mut Caller) + Sync) {
        let (begin, turn) = (&Barrier::new(THREADS), &turn);
        let run = |number| {
            begin.wait();
            turn(&mut Caller::new(number));
        };
        thread::scope(|scope| (0..THREADS).for_each(|number| _ = scope.spawn(move || run(number))));
    }

    /// The place where threads waited longest for locks of this class in a round. A busy machine
    /// may run the threads one after the other. Then another round follows.
    fn place_of(class: &str, round: impl Fn()) -> Place {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let ((), _) = during(&round);
            let rows: Vec<Row> = profile::rows().into_iter().filter(|row| row.class == class).collect();
            if let Some(place) = worst(&rows) {
                assert!(place.waits_alone && place.count >= 1, "{place:?}");
                return place;
            }
            assert!(Instant::now() < until, "nobody waited for the {class}");
        }
    }

    fn shows_lock<L: Lock>(class: &str) {
        let lock = L::new(THREADS);
        let place = place_of(class, || at_once(|me| lock.with(me, || thread::sleep(HOLD))));
        assert!(place.name.contains("mechanisms/src/locks.rs"), "who takes the lock: {place:?}");
    }

    #[test]
    fn each_lock_of_a_variant_shows_where_its_threads_waited() {
        let _alone = alone();
        shows_lock::<TestAndSet>("test-and-set lock");
        shows_lock::<TestTestAndSet>("test-first lock");
        shows_lock::<Ticket<0>>("ticket lock");
        shows_lock::<Ticket<30>>("ticket lock");
        shows_lock::<Mcs>("queue lock");
        shows_lock::<FutexLock>("futex lock");
        shows_lock::<AdaptiveLock>("adaptive lock");
        let semaphores = FutexSemaphores::new(1, 1);
        let turn = |me: &mut Caller| {
            semaphores.wait(me, 0);
            thread::sleep(HOLD);
            semaphores.post(0);
        };
        place_of("semaphore", || at_once(turn));
    }

    fn shows_latch<L: HeldLatch>(class: &str) {
        let latch = L::new(THREADS);
        place_of(class, || at_once(|me| latch.write(me, || thread::sleep(HOLD))));
    }

    #[test]
    fn each_latch_of_a_variant_shows_where_its_threads_waited() {
        let _alone = alone();
        shows_latch::<FieldsLatch>("LWLock");
        shows_latch::<ExchangeLatch>("LWLock");
        shows_latch::<AddLatch>("LWLock");
        shows_latch::<TurnstileLatch>("rwlock, asleep");
    }

    /// A thread fills the frame while the others want its page.
    fn shows_pin<F: PinnedFrame>() {
        place_of("page that goes", || {
            let (frame, come) = (F::new(7), AtomicUsize::new(0));
            let wait_for = |count| {
                while come.load(Ordering::SeqCst) < count {
                    thread::yield_now();
                }
            };
            at_once(|me| {
                if me.number() == 0 {
                    let fill = || {
                        come.fetch_add(1, Ordering::SeqCst);
                        wait_for(THREADS);
                        thread::sleep(HOLD);
                    };
                    assert!(frame.replace(me, 7, 8, fill));
                } else {
                    wait_for(1);
                    come.fetch_add(1, Ordering::SeqCst);
                    assert!(frame.visit(me, 7, || ()).is_none());
                }
            });
        });
    }

    #[test]
    fn a_pin_that_waits_for_an_evictor_or_for_the_spin_lock_shows() {
        let _alone = alone();
        shows_pin::<ExchangeFrame>();
        shows_pin::<AddFrame>();
        // Threads wait here only for one that has lost its processor in a section.
        let frame = CountedFrame::new(7);
        let visits = |me: &mut Caller| {
            (0..20_000).for_each(|_| assert!(frame.visit(me, 7, || ()).is_some()));
        };
        place_of("buffer header", || at_once(visits));
    }

    #[test]
    fn a_thread_that_needs_a_buffer_shows() {
        fn shows(needs: &impl Needs) {
            let free = AtomicUsize::new(1);
            let take = || free.compare_exchange(1, 0, Ordering::SeqCst, Ordering::SeqCst).ok();
            let turn = |me: &mut Caller| {
                needs.wait(me, 0, take);
                thread::sleep(HOLD);
                free.store(1, Ordering::SeqCst);
                needs.freed(me, 0);
            };
            place_of("needed buffer", || at_once(turn));
        }
        let _alone = alone();
        shows(&MutexNeeds::new(THREADS));
        shows(&SharedNeeds::new(THREADS));
    }

    #[test]
    fn a_place_of_optimistic_reads_or_of_a_variant_says_that_only_waits_and_repeats_count() {
        let counts = profile::Counts { count: 7, contended_wait: 7, ..profile::Counts::default() };
        let place = |kind| Place::of(&Row { class: "page", site: "a.rs:1".into(), kind, counts }).counts();
        let expected = "7 waits and repeats; where neither was needed, nothing is counted";
        assert_eq!([Kind::Read, Kind::Restart, Kind::Upgrade, Kind::Wait].map(place), [expected; 4]);
        assert_eq!([Kind::Acquire, Kind::Reacquire].map(place), ["7 of 7 waited"; 2]);
    }
}
