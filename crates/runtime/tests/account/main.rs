//! A session's allocations are charged to it, and it learns when they are too many.
#![allow(missing_docs, reason = "a test")]

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use runtime::account::{self, Counting};
use runtime::aside;
use runtime::budget::{self, Stopped};
use runtime::interrupt::{self, Interrupt, Interrupted, Reason};
use runtime::net::{Accepted, Address, Next, Serve, SessionIo};
use runtime::work;
use runtime::{Options, Runtime, fiber, random};
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};

mod messages;
mod reservations;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: i64 = 1 << 20;
/// Bytes of a block's head, which are not usable.
const HEAD: i64 = 8;

fn start() -> Arc<Runtime> {
    let options = Options { cores: Some(1), pin: false, grace: Duration::from_secs(3), ..Options::default() };
    Runtime::start(options).unwrap()
}

/// Runs `body` on a fiber of the only core, as the session of this interrupt.
fn as_session<R: Send>(runtime: &Runtime, own: &Arc<Interrupt>, body: impl FnOnce() -> R + Send) -> R {
    let own = Arc::clone(own);
    runtime.call(0, move || {
        fiber::obey(Some(own));
        let done = body();
        fiber::obey(None);
        done
    })
}

/// Whether it is so many MiB, some KiB more or less.
#[track_caller]
fn assert_about(bytes: i64, mebibytes: i64) {
    let off = (bytes - mebibytes * MIB).abs();
    assert!(off < MIB / 4, "{bytes} bytes are not about {mebibytes} MiB");
}

#[test]
fn a_failed_allocation_is_not_counted() {
    let runtime = start();
    let own = Interrupt::new();
    as_session(&runtime, &own, || {
        let mut bytes = vec![1u8; 1 << 20];
        assert!(bytes.try_reserve_exact(isize::MAX as usize / 2).is_err());
        assert!(Vec::<u64>::new().try_reserve_exact(isize::MAX as usize / 16).is_err());
        assert_about(account::held(), 1);
    });
}

#[test]
fn each_session_pays_for_what_it_allocates_and_gets_it_back() {
    let runtime = start();
    let (one, other) = (Interrupt::new(), Interrupt::new());
    let mut kept = as_session(&runtime, &one, || {
        let mut kept: Vec<Vec<u8>> = (0..10).map(|_| vec![1; 1 << 20]).collect();
        assert_about(account::held(), 10);
        // Another session of the core works while this one waits: that is not this one's.
        let over = Arc::new(sync::atomic::AtomicBool::new(false));
        let (tell, other) = (Arc::clone(&over), Arc::clone(&other));
        fiber::spawn_local(move || {
            fiber::obey(Some(other));
            let grown = vec![1_u8; 5 << 20];
            fiber::yield_now();
            assert_about(account::held(), 5);
            drop(grown);
            assert_about(account::held(), 0);
            tell.store(true, sync::atomic::Ordering::Relaxed);
        });
        while !over.load(sync::atomic::Ordering::Relaxed) {
            fiber::yield_now();
        }
        assert_about(account::held(), 10);
        kept.truncate(3);
        // Growth in place counts too.
        kept[0].resize(4 << 20, 1);
        assert_about(account::held(), 6);
        kept
    });
    assert_about(one.held(), 6);
    assert_about(other.held(), 0);
    as_session(&runtime, &one, || {
        kept.clear();
        assert_about(account::held(), 0);
        let (_, bytes) = account::measure(|| kept.push(vec![1; 2 << 20]));
        assert_about(bytes as i64, 2);
        account::settle(7 * MIB);
        assert_about(account::held(), 7);
    });
    assert_about(one.held(), 7);
    runtime.shutdown();
}

#[test]
fn a_session_past_its_limit_is_interrupted_and_large_values_are_refused_before() {
    let runtime = start();
    let own = Interrupt::new();
    own.set_memory_limit(8 * MIB);
    as_session(&runtime, &own, || {
        let mut kept = Vec::new();
        let told = loop {
            kept.push(vec![1_u8; 64 << 10]);
            if let Err(by) = interrupt::check() {
                break by;
            }
            assert!(kept.len() < 1000, "nobody was told");
        };
        assert_eq!(told, Interrupted(Reason::Memory));
        let held = account::held();
        assert!((8 * MIB..12 * MIB).contains(&held), "{held}");
        drop(kept);
        assert_eq!(interrupt::check(), Ok(()));
        assert_eq!(account::ask(4 << 20), Ok(()));
        assert_eq!(account::ask(9 << 20), Err(Interrupted(Reason::Memory)));
        // Small values are not asked for.
        let _nearly_all = vec![1_u8; (8 << 20) - 1000];
        assert_eq!(account::ask(60 << 10), Ok(()));
        assert_eq!(account::ask(64 << 10), Err(Interrupted(Reason::Memory)));
        own_is_asked_elsewhere();
    });
    runtime.shutdown();
}

#[test]
fn a_call_beside_the_core_takes_memory_of_its_session_within_the_sessions_limit() {
    let runtime = start();
    let own = Interrupt::new();
    own.set_memory_limit(16 * MIB);
    as_session(&runtime, &own, || {
        let given = vec![1_u8; 2 << 20];
        assert_about(account::held(), 2);
        let kept = aside::run(move || [given.as_slice(), &[2; 6 << 20]].concat()).unwrap();
        assert_about(account::held(), 8);
        let asked = aside::run(|| (account::ask(6 << 20).is_ok(), account::ask(10 << 20).is_ok()));
        assert_eq!(asked, Ok((true, false)));
        let stopped = aside::run(|| {
            let mut kept = Vec::new();
            while work::tick(64 << 10).is_ok() {
                kept.push(vec![1_u8; 64 << 10]);
            }
        });
        assert_eq!(stopped, Err(Stopped::Interrupted(Interrupted(Reason::Memory))));
        assert_eq!(interrupt::check(), Ok(()));
        drop(kept);
        assert_about(account::held(), 0);
    });
    runtime.shutdown();
}

#[test]
fn an_abandoned_call_is_seen_while_it_runs_and_leaves_its_session_charged_for_nothing() {
    let runtime = start();
    let own = Interrupt::new();
    let seen = Arc::clone(&own);
    as_session(&runtime, &own, move || {
        let given = vec![1_u8; 8 << 20];
        let raised = Arc::clone(&seen);
        let (ended, wait) = std::sync::mpsc::channel();
        let stopped = aside::run_given(given.len(), move || {
            let made = vec![1_u8; 4 << 20];
            let held = raised.held_in_all();
            raised.raise(Reason::Cancel);
            while work::tick(1000).is_ok() {}
            ended.send(held).unwrap();
            (given, made)
        });
        assert_eq!(stopped.map(drop), Err(Stopped::Interrupted(Interrupted(Reason::Cancel))));
        assert_about(account::held(), 0);
        assert_about(wait.recv().unwrap(), 12);
    });
    until_nothing_is_held(&own);
    runtime.shutdown();
}

/// A value whose drop waits until the test lets it go on.
struct Waits(std::sync::mpsc::Receiver<()>);

impl Drop for Waits {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

#[test]
fn a_discarded_value_is_its_sessions_no_more_as_far_as_it_is_dropped() {
    let runtime = start();
    let own = Interrupt::new();
    let (end, wait) = channel::<()>();
    as_session(&runtime, &own, || {
        let kept: Vec<_> = (0..48).map(|_| vec![1_u8; 1 << 20]).collect();
        aside::discard(48 << 20, (kept, Waits(wait)));
        assert_about(account::held(), 0);
    });
    let begun = Instant::now();
    while own.held_in_all() > 4 * MIB {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes stay", own.held_in_all());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(end);
    until_nothing_is_held(&own);
    runtime.shutdown();
}

#[test]
fn what_a_call_beside_the_core_frees_is_its_sessions_no_more_while_the_call_goes_on() {
    let runtime = start();
    let own = Interrupt::new();
    own.set_memory_limit(64 * MIB);
    let seen = Arc::clone(&own);
    let (end, wait) = channel::<()>();
    as_session(&runtime, &own, move || {
        let raised = Arc::clone(&seen);
        let stopped = aside::run(move || {
            drop((0..48).map(|_| vec![1_u8; 1 << 20]).collect::<Vec<_>>());
            raised.raise(Reason::Cancel);
            // As code that has no safe point.
            let _ = wait.recv();
        });
        assert_eq!(stopped, Err(Stopped::Interrupted(Interrupted(Reason::Cancel))));
        let held = seen.held_in_all();
        assert!(held < 4 * MIB, "{held} bytes stay while the call goes on");
        assert_eq!(account::ask(32 << 20), Ok(()));
        drop(end);
    });
    until_nothing_is_held(&own);
    runtime.shutdown();
}

/// Waits until what ran beside the core for a session has given its memory back.
#[track_caller]
fn until_nothing_is_held(own: &Interrupt) {
    let begun = Instant::now();
    while own.held_in_all() > MIB / 8 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes stay", own.held_in_all());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_about(own.held_in_all(), 0);
}

/// Tells the name of the thread that drops it.
struct Told(std::sync::mpsc::Sender<Option<String>>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.send(std::thread::current().name().map(str::to_owned)).unwrap();
    }
}

#[test]
fn a_discarded_value_is_dropped_beside_the_core_and_is_its_sessions_until_then() {
    let runtime = start();
    let own = Interrupt::new();
    let (told, hear) = std::sync::mpsc::channel();
    as_session(&runtime, &own, || {
        let kept = vec![1_u8; 8 << 20];
        aside::discard(kept.len(), (kept, Told(told)));
        assert_about(account::held(), 0);
    });
    assert_eq!(hear.recv().unwrap().as_deref(), Some("aside"));
    until_nothing_is_held(&own);
    runtime.shutdown();
}

/// A thread without a session may have what it wants.
fn own_is_asked_elsewhere() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(account::left(), None);
            assert_eq!(account::ask(usize::MAX), Ok(()));
        });
    });
}

#[test]
fn a_large_block_counts_for_the_process_until_it_is_given_back_beside() {
    // Threads that end keep their leases, and the tests that reserve memory start many.
    let _alone = reservations::reserving();
    reservations::be_watched();
    let runtime = start();
    let own = Interrupt::new();
    let before = account::taken() as i64;
    as_session(&runtime, &own, || {
        let mut kept = vec![7_u8; 96 << 20];
        assert_about(account::held(), 96);
        // The other tests of this process hold less than a third of it.
        assert!(account::taken() as i64 - before > 64 * MIB);
        // The kept part of a large block moves.
        kept.truncate(5000);
        kept.shrink_to_fit();
        assert!(kept.iter().all(|byte| *byte == 7) && kept.len() == 5000);
        assert_about(account::held(), 0);
        drop(vec![1_u8; 96 << 20]);
        assert_about(account::held(), 0);
    });
    let begun = std::time::Instant::now();
    while account::taken() as i64 - before > 64 * MIB {
        assert!(begun.elapsed() < Duration::from_secs(60), "the block is not given back");
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.shutdown();
}

#[test]
fn a_value_counts_with_the_block_that_the_allocator_takes_for_it() {
    let runtime = start();
    let own = Interrupt::new();
    as_session(&runtime, &own, || {
        let mut values: Vec<Vec<u8>> = Vec::with_capacity(4000);
        let before = account::held();
        (1..4000).for_each(|size| values.push(Vec::with_capacity(size)));
        let block = |value: &Vec<u8>| {
            // SAFETY: a plain call on a block that the system's allocator has given.
            (unsafe { libc::malloc_usable_size(value.as_ptr().cast_mut().cast()) }) as i64 + HEAD
        };
        let taken: i64 = values.iter().map(block).sum();
        // A block may be a step larger than asked for, where the rest of a free one would be too
        // small.
        let counted = account::held() - before;
        assert!((taken - counted).abs() <= taken / 100, "{counted} bytes for {taken}");
        let (_numbers, small) = account::measure(|| (0..1000_u64).map(Box::new).collect::<Vec<_>>());
        assert!(small >= 32 * 1000, "{small} bytes for 1,000 of 8");
    });
    runtime.shutdown();
}
