//! Model checks of the published variants: every interleaving that loom finds within its bounds.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p variants --test loom_variants --release`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;

/// The engine's latch, which the row `latch` runs beside the published ones.
#[path = "../../mechanisms/src/rows/latch/own.rs"]
mod own;

use own::Own;
use sync::atomic::{AtomicU64, Ordering};
use variants::caller::Caller;
use variants::clean_list::{CleanList, HeldList, ScannedList};
use variants::clock_hand::{Batched, Hand, OneByOne};
use variants::free_queues::{FreeFrames, NodeQueues};
use variants::latch::{AddLatch, ExchangeLatch, FieldsLatch, HeldLatch, Latch, TurnstileLatch};
use variants::needs_buffer::{MutexNeeds, Needs, SharedNeeds};
use variants::pin::{AddFrame, CountedFrame, ExchangeFrame, Frame, PinnedFrame};
use variants::semaphore::{FutexSemaphores, Semaphores};
use variants::sleep_lock::{AdaptiveLock, FutexLock};
use variants::snapshot::{NumberSnapshots, Snapshots};
use variants::spin::{Exclusion, Lock, Mcs, TestAndSet, TestTestAndSet, Ticket};

fn model_within(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(check);
}

/// Adds 1 by a load and a store, which only a lock makes whole.
fn add(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Threads add twice each under a lock. Loom reports a deadlock if a wake-up is lost.
fn excludes<L: Lock + Send + 'static>(threads: usize, preemptions: usize) {
    model_within(preemptions, move || {
        let shared = Arc::new((L::new(threads), AtomicU64::new(0)));
        let twice = |shared: &(L, AtomicU64), number| {
            let mut me = Caller::new(number);
            (0..2).for_each(|_| shared.0.with(&mut me, || add(&shared.1)));
        };
        let others: Vec<_> = (1..threads)
            .map(|number| {
                let other = shared.clone();
                thread::spawn(move || twice(&other, number))
            })
            .collect();
        twice(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
        let sum = shared.0.with(&mut Caller::new(0), || shared.1.load(Ordering::Relaxed));
        assert_eq!(sum, 2 * threads as u64);
    });
}

#[test]
fn spin_locks_exclude_other_threads() {
    excludes::<TestAndSet>(2, 3);
    excludes::<TestTestAndSet>(2, 3);
    excludes::<Ticket<0>>(2, 3);
    excludes::<Ticket<1>>(2, 2);
    excludes::<TestTestAndSet>(3, 1);
    excludes::<Ticket<0>>(3, 1);
}

#[test]
fn the_queue_lock_hands_over_to_each_waiter() {
    excludes::<Mcs>(2, 3);
    excludes::<Mcs>(3, 1);
}

#[test]
fn sleeping_locks_exclude_and_lose_no_wake_up() {
    excludes::<FutexLock>(2, 3);
    excludes::<AdaptiveLock>(2, 3);
}

/// Two threads come while a third one holds the lock. A woken thread does not know whether another
/// one sleeps, and has to wake it.
fn wakes_both<L: Lock + Send + 'static>(preemptions: usize) {
    model_within(preemptions, || {
        let shared = Arc::new((L::new(3), AtomicU64::new(0)));
        let mut me = Caller::new(0);
        shared.0.lock(&mut me);
        let others = [1, 2].map(|number| {
            let other = shared.clone();
            thread::spawn(move || other.0.with(&mut Caller::new(number), || add(&other.1)))
        });
        // Lets both come as far as to their sleep, without a preemption.
        thread::yield_now();
        add(&shared.1);
        shared.0.unlock(&mut me);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.0.with(&mut me, || shared.1.load(Ordering::Relaxed)), 3);
    });
}

#[test]
fn a_thread_woken_while_another_sleeps_wakes_it_in_its_turn() {
    wakes_both::<FutexLock>(2);
    wakes_both::<AdaptiveLock>(1);
    wakes_both::<Mcs>(1);
}

/// Readers see both words of a change, and changes are not lost. Each thread acts `turns` times.
fn shares<L: Latch + Send + 'static>(
    make: fn(usize) -> L,
    modes: &'static [char],
    turns: u64,
    preemptions: usize,
) {
    model_within(preemptions, move || {
        let shared = Arc::new((make(modes.len()), AtomicU64::new(0), AtomicU64::new(0)));
        let act = move |shared: &(L, AtomicU64, AtomicU64), number: usize| {
            let (latch, left, right) = shared;
            let mut me = Caller::new(number);
            for _ in 0..turns {
                if modes[number] == 'w' {
                    latch.write(&mut me, || (add(left), add(right)));
                } else {
                    let see = || (left.load(Ordering::Relaxed), right.load(Ordering::Relaxed));
                    let seen = latch.read(&mut me, see);
                    assert_eq!(seen.0, seen.1);
                }
            }
        };
        let others: Vec<_> = (1..modes.len())
            .map(|number| {
                let other = shared.clone();
                thread::spawn(move || act(&other, number))
            })
            .collect();
        act(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
        let writers = modes.iter().filter(|mode| **mode == 'w').count() as u64;
        let seen = shared.0.read(&mut Caller::new(0), || shared.1.load(Ordering::Relaxed));
        assert_eq!(seen, writers * turns);
    });
}

#[test]
fn latches_share_and_exclude_and_lose_no_wake_up() {
    for modes in [&['w', 'r'][..], &['w', 'w']] {
        shares(FieldsLatch::new, modes, 1, 3);
        shares(ExchangeLatch::new, modes, 1, 3);
        shares(AddLatch::new, modes, 1, 3);
        shares(TurnstileLatch::new, modes, 1, 3);
    }
}

/// A reader takes its share back while one writer holds the latch and another one sleeps.
#[test]
fn a_share_taken_back_wakes_the_writer_that_it_kept_out() {
    shares(AddLatch::new, &['w', 'w', 'r'], 1, 2);
}

/// A writer and a reader come while a writer holds the latch. Its release wakes the writer alone,
/// whose release has to wake the reader.
fn wakes_one_after_the_other<L: HeldLatch + Send + 'static>(preemptions: usize) {
    model_within(preemptions, || {
        let shared = Arc::new((L::new(3), AtomicU64::new(0)));
        let mut me = Caller::new(0);
        shared.0.lock(&mut me);
        let (writing, reading) = (shared.clone(), shared.clone());
        let writer = thread::spawn(move || writing.0.write(&mut Caller::new(1), || add(&writing.1)));
        let reader =
            thread::spawn(move || reading.0.read(&mut Caller::new(2), || reading.1.load(Ordering::Relaxed)));
        // Lets both come as far as to their sleep, without a preemption.
        thread::yield_now();
        add(&shared.1);
        shared.0.unlock(&mut me);
        writer.join().unwrap();
        assert!((1..=2).contains(&reader.join().unwrap()));
        assert_eq!(shared.0.read(&mut me, || shared.1.load(Ordering::Relaxed)), 2);
    });
}

#[test]
fn a_writer_woken_while_readers_sleep_wakes_them_in_its_turn() {
    wakes_one_after_the_other::<FieldsLatch>(1);
    wakes_one_after_the_other::<ExchangeLatch>(1);
    wakes_one_after_the_other::<AddLatch>(1);
    wakes_one_after_the_other::<TurnstileLatch>(1);
}

/// A validated reader of the engine's latch sees a whole change. The losers of the latch queue.
#[test]
fn the_engines_latch_shows_whole_changes_and_its_losers_take_turns() {
    shares(|_| Own::default(), &['w', 'r'], 2, 2);
    shares(|_| Own::default(), &['w', 'w'], 2, 3);
    shares(|_| Own::default(), &['w', 'w', 'w'], 1, 1);
    shares(|_| Own::default(), &['w', 'w', 'r'], 1, 1);
}

/// A page is never replaced under a reader that has pinned it.
fn keeps_pinned<F: PinnedFrame + Send + 'static>() {
    model_within(3, || {
        let shared = Arc::new((F::new(7), AtomicU64::new(7)));
        let evicting = shared.clone();
        let thread = thread::spawn(move || {
            let (frame, bytes) = &*evicting;
            frame.replace(&mut Caller::new(1), 7, 8, || bytes.store(8, Ordering::Relaxed))
        });
        let (frame, bytes) = &*shared;
        let mut me = Caller::new(0);
        let see = || (bytes.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        if let Some(seen) = frame.visit(&mut me, 7, see) {
            assert_eq!(seen, (7, 7));
        }
        if let Some(seen) = frame.visit(&mut me, 8, see) {
            assert_eq!(seen, (8, 8));
        }
        let page = if thread.join().unwrap() { 8 } else { 7 };
        assert!(frame.visit(&mut me, page, || ()).is_some());
    });
}

#[test]
fn a_pinned_page_stays_in_its_frame() {
    keeps_pinned::<CountedFrame>();
    keeps_pinned::<ExchangeFrame>();
    keeps_pinned::<AddFrame>();
}

/// Two threads take three steps each, and walk their batches to the end.
fn visits_once<H: Hand + Send + 'static>(
    make: impl Fn() -> H + Sync + Send + 'static,
    left: fn(&H::Walk) -> usize,
) {
    model_within(3, move || {
        let hand = Arc::new(make());
        let walk = move |hand: &H, number| {
            let (mut me, mut walk) = (Caller::new(number), H::Walk::default());
            let mut seen: Vec<usize> = (0..3).map(|_| hand.next(&mut me, &mut walk)).collect();
            while left(&walk) > 0 {
                seen.push(hand.next(&mut me, &mut walk));
            }
            seen
        };
        let other = hand.clone();
        let thread = thread::spawn(move || walk(&other, 1));
        let mut seen = walk(&hand, 0);
        seen.extend(thread.join().unwrap());
        let start = hand.start(&mut Caller::new(0));
        for frame in 0..3 {
            let visits = seen.iter().filter(|other| **other == frame).count() as u64;
            assert_eq!(visits, start.passes + u64::from(frame < start.hand));
        }
    });
}

#[test]
fn hands_visit_each_frame_once_a_pass_and_count_passes() {
    visits_once(|| OneByOne::new(3), |()| 0);
    visits_once(|| Batched::new(3, 2), |walk| walk.left());
}

/// A snapshot that includes a commit finds what was written before it.
#[test]
fn a_numbered_snapshot_sees_what_its_commits_wrote() {
    model_within(3, || {
        let shared = Arc::new((NumberSnapshots::new(4), AtomicU64::new(0)));
        let writing = shared.clone();
        let thread = thread::spawn(move || {
            let (snapshots, row) = &*writing;
            let mut me = Caller::new(1);
            let own = snapshots.begin(&mut me);
            row.store(1, Ordering::Relaxed);
            snapshots.commit(&mut me, own);
        });
        let (snapshots, row) = &*shared;
        let (mut me, mut snapshot) = (Caller::new(0), 0);
        snapshots.take(&mut me, &mut snapshot);
        if snapshots.sees(&snapshot, 1) {
            assert_eq!(row.load(Ordering::Relaxed), 1);
        }
        thread.join().unwrap();
    });
}

/// Two threads share one buffer. Loom reports a deadlock if a wake-up is lost.
fn wakes_waiters<N: Needs + Send + 'static>(make: fn(usize) -> N) {
    model_within(2, move || {
        let shared = Arc::new((make(2), AtomicU64::new(1)));
        let turn = |shared: &(N, AtomicU64), number| {
            let (needs, free) = shared;
            let mut me = Caller::new(number);
            let take = || free.compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed).ok();
            needs.wait(&mut me, 0, take);
            free.fetch_add(1, Ordering::Release);
            needs.freed(&mut me, 0);
        };
        let other = shared.clone();
        let thread = thread::spawn(move || turn(&other, 1));
        turn(&shared, 0);
        thread.join().unwrap();
    });
}

#[test]
fn a_freed_buffer_wakes_the_thread_that_waits_for_it() {
    wakes_waiters(MutexNeeds::new);
    wakes_waiters(SharedNeeds::new);
}

/// Two threads take a buffer each and put it back, while one of the two uses another one.
fn takes_once<L: CleanList + Send + 'static>(make: fn(usize, usize) -> L) {
    model_within(2, move || {
        let shared = Arc::new((make(2, 2), [AtomicU64::new(0), AtomicU64::new(0)]));
        let turn = |shared: &(L, [AtomicU64; 2]), number| {
            let (list, uses) = shared;
            let mut me = Caller::new(number);
            if let Some(buffer) = list.victim(&mut me, &mut L::Kept::default()) {
                add(&uses[buffer]);
                list.put(&mut me, buffer);
            }
        };
        let other = shared.clone();
        let thread = thread::spawn(move || turn(&other, 1));
        if shared.0.enter(1) {
            add(&shared.1[1]);
            shared.0.leave(1);
        }
        turn(&shared, 0);
        thread.join().unwrap();
        let (mut me, mut kept) = (Caller::new(0), L::Kept::default());
        let mut left = [(); 2].map(|()| shared.0.victim(&mut me, &mut kept).expect("both lie there"));
        left.sort_unstable();
        assert_eq!((left, shared.0.victim(&mut me, &mut kept)), ([0, 1], None));
    });
}

#[test]
fn a_clean_buffer_is_taken_by_one_thread_and_none_is_lost() {
    takes_once(HeldList::new);
    takes_once(ScannedList::new);
}

/// Two threads take a frame, use it and put it back, twice each.
fn keeps_frames_apart(make: fn() -> NodeQueues, frames: usize, preemptions: usize) {
    model_within(preemptions, move || {
        let shared = Arc::new((make(), [AtomicU64::new(0), AtomicU64::new(0)]));
        let turns = |shared: &(NodeQueues, [AtomicU64; 2]), number| {
            let (queues, uses) = shared;
            let mut me = Caller::new(number);
            let mut taken = 0;
            for _ in 0..2 {
                if let Some(frame) = queues.take(&mut me) {
                    add(&uses[frame]);
                    queues.put(&mut me, frame);
                    taken += 1;
                }
            }
            taken
        };
        let other = shared.clone();
        let thread = thread::spawn(move || turns(&other, 1));
        let taken = turns(&shared, 0) + thread.join().unwrap();
        let (queues, uses) = &*shared;
        let mut me = Caller::new(0);
        let mut left: Vec<usize> = std::iter::from_fn(|| queues.take(&mut me)).collect();
        left.sort_unstable();
        assert_eq!(left, (0..frames).collect::<Vec<_>>());
        let uses: u64 = uses.iter().map(|uses| uses.load(Ordering::Relaxed)).sum();
        assert_eq!(uses, taken, "a frame has had two owners at once");
    });
}

#[test]
fn a_free_frame_is_taken_by_one_thread_and_none_is_lost() {
    keeps_frames_apart(|| NodeQueues::stock(2, 1, 2), 2, 2);
    keeps_frames_apart(|| NodeQueues::published(2, 1, 2, 2), 2, 3);
}

/// The threads' homes differ: each may find the frame in the other one's segment, or in none.
#[test]
fn a_frame_of_a_split_queue_goes_from_segment_to_segment() {
    keeps_frames_apart(|| NodeQueues::published(1, 1, 2, 2), 1, 2);
    keeps_frames_apart(|| NodeQueues::published(1, 2, 1, 2), 1, 2);
}

#[test]
fn a_semaphore_excludes_and_loses_no_post() {
    model_within(2, || {
        let shared = Arc::new((FutexSemaphores::new(1, 1), AtomicU64::new(0)));
        let turn = |shared: &(FutexSemaphores, AtomicU64), number| {
            let mut me = Caller::new(number);
            shared.0.wait(&mut me, 0);
            add(&shared.1);
            shared.0.post(0);
        };
        let others: Vec<_> = (1..3)
            .map(|number| {
                let other = shared.clone();
                thread::spawn(move || turn(&other, number))
            })
            .collect();
        turn(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
        shared.0.wait(&mut Caller::new(0), 0);
        assert_eq!(shared.1.load(Ordering::Relaxed), 3);
    });
}
