//! Model checks of what two cores agree through: every interleaving loom can find within its
//! bounds.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sync --test loom --release`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;

use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::profile::Class;
use sync::{BatchCursor, Caption, FairQueue, SpinLock, Spinners, VersionLatch, WaitQueue, Walk};

/// The class of the latches below.
const CLASS: fn() -> Class = || &"test";

fn model(check: impl Fn() + Sync + Send + 'static) {
    model_within(3, check);
}

fn model_within(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(check);
}

#[test]
fn a_spin_lock_excludes_other_threads() {
    model(|| {
        let lock = Arc::new(SpinLock::new(&"test", 0));
        let other = lock.clone();
        let thread = thread::spawn(move || *other.lock() += 1);
        *lock.lock() += 1;
        thread.join().unwrap();
        assert_eq!(*lock.lock(), 2);
    });
}

/// A holder and two waiters: the lock and the queue of those who spin for it.
#[test]
fn a_spin_lock_with_a_queue_excludes_other_threads() {
    model_within(2, || {
        let lock = Arc::new(SpinLock::new(&"test", 0));
        let count = |lock: &SpinLock<i32>| *lock.lock() += 1;
        let others = [lock.clone(), lock.clone()].map(|lock| thread::spawn(move || count(&lock)));
        count(&lock);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*lock.lock(), 3);
    });
}

/// One of three threads is first at a time, sees what the ones before it did, and each has its
/// turn.
#[test]
fn spinners_are_first_one_at_a_time() {
    model_within(2, || {
        let shared = Arc::new((Spinners::new(), AtomicU64::new(0)));
        let turn = |shared: &(Spinners, AtomicU64)| {
            shared.0.in_turn(|_| {
                // Relaxed: the turns order what they do.
                let before = shared.1.load(Ordering::Relaxed);
                shared.1.store(before + 1, Ordering::Relaxed);
            });
        };
        let others = [shared.clone(), shared.clone()].map(|shared| thread::spawn(move || turn(&shared)));
        turn(&shared);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.1.load(Ordering::Relaxed), 3);
    });
}

/// A validated reader never sees half a change.
#[test]
fn version_latch_readers_see_whole_changes() {
    model(|| {
        let shared = Arc::new((VersionLatch::<0>::default(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = shared.clone();
        let thread = thread::spawn(move || {
            let (latch, left, right) = &*writer;
            let hold = latch.try_lock(latch.load(), CLASS).unwrap();
            left.store(1, Ordering::Relaxed);
            right.store(1, Ordering::Relaxed);
            latch.unlock_changed(hold);
        });
        let (latch, left, right) = &*shared;
        if let Some(version) = latch.read(CLASS) {
            let seen = (left.load(Ordering::Relaxed), right.load(Ordering::Relaxed));
            if latch.validate(version) {
                assert_eq!(seen.0, seen.1);
            }
        }
        thread.join().unwrap();
    });
}

/// A caption is read whole, as it was before a change or after it.
#[test]
fn captions_are_read_whole() {
    model(|| {
        let caption = Arc::new(Caption::default());
        let writer = caption.clone();
        let thread = thread::spawn(move || writer.write("aaaaaaaaaaaa"));
        let seen = caption.read();
        assert!(matches!(seen.as_str(), "" | "aaaaaaaaaaaa"), "{seen}");
        thread.join().unwrap();
    });
}

/// Two writers that lock at the same version: one wins, and the loser's version is void.
#[test]
fn a_version_latch_has_one_winner() {
    model(|| {
        let shared = Arc::new((VersionLatch::<0>::default(), AtomicU64::new(0)));
        let upgrade = |shared: &(VersionLatch<0>, AtomicU64)| {
            let Some(version) = shared.0.read(CLASS) else { return 0 };
            let seen = shared.1.load(Ordering::Relaxed);
            let Some(hold) = shared.0.try_lock(version, CLASS) else { return 0 };
            assert_eq!(shared.1.load(Ordering::Relaxed), seen);
            shared.1.store(seen + 1, Ordering::Relaxed);
            shared.0.unlock_changed(hold);
            1
        };
        let other = shared.clone();
        let thread = thread::spawn(move || upgrade(&other));
        let won = upgrade(&shared) + thread.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Relaxed), won);
        assert!(won >= 1);
    });
}

/// A pinned latch is never given to another use, as eviction does with a page's frame; and a reader
/// sees everything that a pin keeps.
#[test]
fn a_pinned_latch_is_not_taken_idle() {
    model(|| {
        let shared = Arc::new((VersionLatch::<20>::default(), AtomicU64::new(7)));
        let evicting = shared.clone();
        let thread = thread::spawn(move || {
            let (latch, page) = &*evicting;
            if let Some(hold) = latch.try_lock_idle(latch.load(), CLASS) {
                page.store(8, Ordering::Relaxed);
                latch.unlock_changed(hold);
            }
        });
        let (latch, page) = &*shared;
        if let Some(seen) = latch.read(CLASS) {
            let before = page.load(Ordering::Relaxed);
            if latch.try_pin(seen) {
                assert_eq!(page.load(Ordering::Relaxed), before, "pinned and given away");
                latch.unpin();
            }
        }
        thread.join().unwrap();
        assert!(!latch.load().is_pinned(), "a pin that was not granted stays");
    });
}

/// A wake-up that follows the change of state is never lost (loom reports the deadlock if it is).
#[test]
fn wait_queue_loses_no_wake_up() {
    model(|| {
        let shared = Arc::new((WaitQueue::new(&"test"), AtomicBool::new(false)));
        let waiter = shared.clone();
        let thread = thread::spawn(move || waiter.0.wait_until(|| waiter.1.load(Ordering::Acquire)));
        shared.1.store(true, Ordering::Release);
        shared.0.wake_one();
        thread.join().unwrap();
        assert!(!shared.0.has_waiters());
    });
}

/// One token, two takers in turn: a taker gives it back and wakes the other.
#[test]
fn wait_queue_hands_over() {
    model(|| {
        let shared = Arc::new((WaitQueue::new(&"test"), AtomicBool::new(true)));
        let turn = |shared: &(WaitQueue, AtomicBool)| {
            // An exchange, not a swap: loom lets a swap that fails overwrite a later store, which
            // no machine does.
            let take = || shared.1.compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire).is_ok();
            shared.0.wait_until(take);
            shared.1.store(true, Ordering::Release);
            shared.0.wake_one();
        };
        let other = shared.clone();
        let thread = thread::spawn(move || turn(&other));
        turn(&shared);
        thread.join().unwrap();
    });
}

/// An interrupted waiter that was chosen passes its wake-up on.
#[test]
fn wait_queue_interrupt_passes_the_wake_up_on() {
    model_within(2, || {
        let shared = Arc::new((WaitQueue::new(&"test"), AtomicBool::new(false)));
        let take = |token: &AtomicBool| {
            token.compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        let give = |shared: &(WaitQueue, AtomicBool)| {
            shared.1.store(true, Ordering::Release);
            shared.0.wake_one();
        };
        let (patient, hasty) = (shared.clone(), shared.clone());
        let first = thread::spawn(move || {
            // Gives up at its first park, as if interrupted; if it got the token before, it gives
            // it back.
            if hasty.0.wait_until_with(|| take(&hasty.1), || Err(())).is_ok() {
                give(&hasty);
            }
        });
        let second = thread::spawn(move || patient.0.wait_until(|| take(&patient.1)));
        give(&shared);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// Parks if `waits`. Otherwise gives up at once.
fn park_if(waits: bool) -> Result<(), ()> {
    if waits {
        sync::park::park();
    }
    waits.then_some(()).ok_or(())
}

/// A fair queue loses no wake-up that follows the change of state.
#[test]
fn fair_queue_loses_no_wake_up() {
    model(|| {
        let shared = Arc::new((FairQueue::new(&"test"), AtomicBool::new(false)));
        let waiter = shared.clone();
        let thread = thread::spawn(move || {
            waiter.0.wait_until_with(|| waiter.1.load(Ordering::Relaxed), || park_if(true))
        });
        // Relaxed, here and above: the queue's lock orders them.
        shared.1.store(true, Ordering::Relaxed);
        shared.0.wake_first();
        assert_eq!(thread.join().unwrap(), Ok(()));
        assert!(!shared.0.has_waiters());
    });
}

/// One token, two waiters: the first one gives up, or takes the token and gives it back. The other
/// one gets it.
#[test]
fn fair_queue_hands_the_first_place_over() {
    for patient in [false, true] {
        model_within(2, move || {
            let shared = Arc::new((FairQueue::new(&"test"), AtomicBool::new(false)));
            let give = |shared: &(FairQueue, AtomicBool)| {
                shared.1.store(true, Ordering::Release);
                shared.0.wake_first();
            };
            let turn = move |shared: &(FairQueue, AtomicBool), patient: bool| {
                let take =
                    || shared.1.compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire).is_ok();
                let taken = shared.0.wait_until_with(take, || park_if(patient));
                if taken.is_ok() {
                    give(shared);
                }
            };
            let other = shared.clone();
            let thread = thread::spawn(move || turn(&other, patient));
            give(&shared);
            turn(&shared, true);
            thread.join().unwrap();
            assert!(!shared.0.has_waiters());
        });
    }
}

/// Every place is claimed once a pass, and hand and passes agree at every moment.
#[test]
fn clock_hand_claims_once_and_counts_passes() {
    model(|| {
        let cursor = Arc::new(BatchCursor::new(4, 3));
        let other = cursor.clone();
        let thread = thread::spawn(move || other.claim().chain(other.claim()).collect::<Vec<_>>());
        let mut places: Vec<_> = cursor.claim().chain(cursor.claim()).collect();
        let position = cursor.position();
        assert!(position.passes * 4 + position.hand as u64 >= 6);
        places.extend(thread.join().unwrap());
        places.sort_unstable();
        assert_eq!(places, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        let position = cursor.position();
        assert_eq!((position.passes, position.hand), (3, 0));
    });
}

/// Two cores with walks of their own and no lock visit no place twice in a pass. A pass misses only
/// the places of a batch that one of them gives up.
#[test]
fn walks_of_two_cores_share_no_place() {
    model(|| {
        let cursor = Arc::new(BatchCursor::new(4, 2));
        let visit = |cursor: &BatchCursor| {
            let walk = Walk::default();
            let first = walk.next(cursor);
            let given_up = walk.expire(cursor);
            (vec![first, walk.next(cursor)], given_up)
        };
        let other = cursor.clone();
        let thread = thread::spawn(move || visit(&other));
        let (mut places, given_up) = visit(&cursor);
        let (others, theirs) = thread.join().unwrap();
        places.extend(others);
        places.sort_unstable();
        let passes = cursor.position().passes as usize;
        let most = passes + usize::from(cursor.position().hand > 0);
        let visits = |place| places.iter().filter(|&&visited| visited == place).count();
        assert!((0..4).all(|place| visits(place) <= most), "{places:?}");
        if given_up + theirs == 0 {
            assert_eq!(places, [0, 1, 2, 3]);
        }
    });
}
