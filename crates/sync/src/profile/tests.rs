//! The profiler against locks whose holds and waits are known.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::*;
use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::{SpinLock, VersionLatch, WaitQueue};

/// The clock of the tests, in nanoseconds.
fn clock() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The profiler is one for the process: tests take turns. Other tests' locks may be counted
/// meanwhile, in classes of their own.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    reset();
    enable(clock);
    turn
}

fn rows_of(class: &str) -> Vec<Row> {
    rows().into_iter().filter(|row| row.class == class).collect()
}

/// The only row of a class.
fn row_of(class: &str, kind: Kind) -> Counts {
    let rows = rows_of(class);
    let mut of_kind = rows.iter().filter(|row| row.kind == kind);
    let row = of_kind.next().unwrap_or_else(|| panic!("no row {kind:?} among {rows:?}"));
    assert!(of_kind.next().is_none(), "one place, one row: {rows:?}");
    row.counts
}

/// The two clocks are read at slightly different moments.
fn with_slack(time: Duration) -> u64 {
    time.as_nanos() as u64 * 101 / 100 + 1_000_000
}

#[test]
fn a_lone_thread_has_each_hold_counted_and_no_contention() {
    let _turn = alone();
    let lock = SpinLock::new(&"lone", 0);
    let start = Instant::now();
    for _ in 0..1000 {
        *lock.lock() += 1;
    }
    let counts = row_of("lone", Kind::Acquire);
    assert_eq!((counts.count, counts.contended_hold, counts.contended_wait), (1000, 0, 0));
    assert_eq!((counts.wait_total, counts.wait_max), (0, 0));
    assert!(counts.hold_max <= counts.hold_total && counts.hold_total <= with_slack(start.elapsed()));
}

#[test]
fn holder_and_waiter_are_counted_at_their_places_with_their_times() {
    let _turn = alone();
    let pause = Duration::from_millis(20);
    let lock = SpinLock::new(&"fought for", ());
    let key = std::ptr::from_ref(&lock).addr();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let held = lock.lock();
        scope.spawn(|| drop(lock.lock()));
        while !marks::is_put(key) {
            std::thread::yield_now();
        }
        // The other thread waits by now, and until the end of this pause.
        std::thread::sleep(pause);
        drop(held);
    });
    let rows = rows_of("fought for");
    let (waited, held): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.counts.contended_wait > 0);
    let [waited, held] = [waited[0].counts, held[0].counts];
    assert_eq!((rows.len(), waited.count, held.count), (2, 1, 1));
    assert_eq!((waited.contended_wait, waited.contended_hold), (1, 0));
    assert_eq!((held.contended_wait, held.contended_hold), (0, 1));
    // The rate of the ticks is measured, so 1% less is right, too.
    let (least, most) = (pause.as_nanos() as u64 * 99 / 100, with_slack(start.elapsed()));
    for time in [waited.wait_max, held.hold_max] {
        assert!(least <= time && time <= most, "{least} <= {time} <= {most}");
    }
    assert_eq!((waited.wait_total, held.hold_total), (waited.wait_max, held.hold_max));
    assert_eq!(held.wait_total, 0);
}

#[test]
fn holds_of_many_threads_sum_to_no_more_than_the_time_that_passed() {
    const THREADS: u64 = 8;
    const HOLDS: u64 = 2000;
    let _turn = alone();
    let lock = SpinLock::new(&"crowded", 0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..HOLDS {
                    let mut held = lock.lock();
                    for _ in 0..50 {
                        *held = std::hint::black_box(*held + 1);
                    }
                }
            });
        }
    });
    let elapsed = with_slack(start.elapsed());
    let counts = row_of("crowded", Kind::Acquire);
    assert_eq!((counts.count, *lock.lock()), (THREADS * HOLDS, THREADS * HOLDS * 50));
    assert!(counts.hold_total > 0 && counts.hold_total <= elapsed, "{counts:?} in {elapsed}");
    assert!(counts.wait_total <= THREADS * elapsed && counts.wait_max <= elapsed, "{counts:?} in {elapsed}");
    assert!(counts.contended_wait <= counts.count && counts.contended_hold <= counts.count);
}

#[test]
fn nothing_is_counted_while_the_profiler_is_off() {
    let _turn = alone();
    let (before, after) = (SpinLock::new(&"off before", ()), SpinLock::new(&"off after", ()));
    let held = before.lock();
    disable();
    drop(after.lock());
    drop(held);
    assert_eq!(rows_of("off after"), []);
    let counts = row_of("off before", Kind::Acquire);
    assert!(counts.count == 1 && counts.hold_total > 0, "a hold that has begun counts to its end");
    reset();
    assert_eq!(rows_of("off before"), []);
}

#[test]
fn a_reset_forgets_what_went_before_of_holds_and_waits_that_go_on() {
    const PAUSE: Duration = Duration::from_millis(50);
    let _turn = alone();
    let (held, site) = (SpinLock::new(&"held over", ()), Site::here(&"waited over", Kind::Wait));
    let hold = held.lock();
    let (waits, gets) = (Waiting::begin_unmarked().unwrap(), Waiting::begin_unmarked().unwrap());
    std::thread::sleep(PAUSE);
    let start = Instant::now();
    reset();
    drop(hold);
    waits.end(&site);
    gets.hold_unmarked(&site).end_unmarked(|| false);
    assert_eq!(rows_of("held over"), [], "it began before");
    let counts = row_of("waited over", Kind::Wait);
    assert_eq!((counts.count, counts.contended_wait), (2, 2));
    assert!(counts.wait_total <= 2 * with_slack(start.elapsed()), "{counts:?}");
    drop(held.lock());
    assert_eq!(row_of("held over", Kind::Acquire).count, 1, "the next one counts");
}

#[test]
fn a_version_latch_counts_holds_waits_of_readers_and_refused_upgrades() {
    let _turn = alone();
    let latch: VersionLatch = VersionLatch::default();
    let class = || -> Class { &"versioned" };
    let seen = latch.load();
    let hold = latch.try_lock(seen, class).unwrap();
    assert!(latch.read(class).is_none() && latch.try_lock(seen, class).is_none());
    latch.unlock_changed(hold);
    let held = row_of("versioned", Kind::Acquire);
    assert_eq!((held.count, held.contended_hold, held.contended_wait), (1, 1, 0));
    let read = row_of("versioned", Kind::Read);
    assert_eq!((read.count, read.contended_wait, read.hold_total), (1, 1, 0));
    assert!(read.wait_total > 0);
    let refused = row_of("versioned", Kind::Upgrade);
    assert_eq!(refused, Counts { count: 1, ..Counts::default() });
}

#[test]
fn a_hold_that_refuses_a_writer_is_contended() {
    let _turn = alone();
    let latch: VersionLatch = VersionLatch::default();
    let class = || -> Class { &"refusing" };
    // One place, so that it has one row of each kind.
    let lock = |seen| latch.try_lock(seen, class);
    let seen = latch.load();
    let hold = lock(seen).unwrap();
    assert!(lock(seen).is_none());
    latch.unlock_changed(hold);
    // A change since then refuses, too, and nobody holds the latch.
    assert!(lock(seen).is_none());
    let hold = lock(latch.load()).unwrap();
    latch.unlock_changed(hold);
    let held = row_of("refusing", Kind::Acquire);
    assert_eq!((held.count, held.contended_hold), (2, 1));
    assert_eq!(row_of("refusing", Kind::Upgrade).count, 2);
}

#[test]
fn a_wait_in_a_queue_is_counted_where_it_begins() {
    let _turn = alone();
    let (queue, open) = (WaitQueue::new(&"queued"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| queue.wait_until(|| open.load(Ordering::Acquire)));
        while !queue.has_waiters() {
            std::thread::yield_now();
        }
        open.store(true, Ordering::Release);
        queue.wake_all();
    });
    queue.wait_until(|| true);
    let row = rows_of("queued").into_iter().find(|row| row.kind == Kind::Wait).unwrap();
    assert_eq!((row.counts.count, row.counts.contended_wait, row.counts.hold_total), (1, 1, 0));
    assert!(row.site.starts_with("sync/src/profile/tests.rs:"), "{}", row.site);
}

#[test]
fn threads_hand_their_counts_on_to_the_next_ones() {
    let _turn = alone();
    let lock = SpinLock::new(&"handed on", ());
    for _ in 0..1100 {
        std::thread::scope(|scope| scope.spawn(|| drop(lock.lock())).join().unwrap());
    }
    assert_eq!(row_of("handed on", Kind::Acquire).count, 1100);
    assert_eq!(rows_of("threads without counts"), []);
}

/// More threads than cores count, while others switch the profiler and read it.
#[test]
fn switching_and_resetting_under_load_leaves_the_counts_whole() {
    let _turn = alone();
    let (lock, over, rounds) = (SpinLock::new(&"switched", ()), AtomicBool::new(false), AtomicU64::new(0));
    // The rounds before the last reset.
    let before = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    drop(lock.lock());
                    rounds.fetch_add(1, Ordering::Release);
                }
            });
        }
        let switches = scope.spawn(|| {
            for _ in 0..500 {
                disable();
                let rounds = rounds.load(Ordering::Acquire);
                reset();
                before.store(rounds, Ordering::Release);
                enable(clock);
                std::thread::yield_now();
            }
        });
        while !switches.is_finished() {
            let before = before.load(Ordering::Acquire);
            for row in rows_of("switched") {
                // Each thread is at most one count ahead of its round.
                let most = rounds.load(Ordering::Acquire) + 8 - before;
                assert!(row.counts.count <= most, "{row:?} in {most} rounds");
            }
        }
        over.store(true, Ordering::Release);
    });
    reset();
    (0..10).for_each(|_| drop(lock.lock()));
    let counts: u64 = rows_of("switched").iter().map(|row| row.counts.count).sum();
    assert_eq!(counts, 10, "a reset leaves nothing behind");
}
