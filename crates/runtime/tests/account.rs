//! A session's allocations are charged to it, and it learns when they are too many.
#![allow(missing_docs, reason = "a test")]

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use runtime::account::{self, Counting};
use runtime::aside;
use runtime::interrupt::{self, Interrupt, Interrupted, Reason};
use runtime::net::{Accepted, Address, Next, Serve, SessionIo};
use runtime::work::{self, Stopped};
use runtime::{Options, Runtime, fiber, random};
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: i64 = 1 << 20;

fn start() -> Arc<Runtime> {
    let options = Options { cores: Some(1), pin: false, grace: Duration::from_secs(3), ..Options::default() };
    Runtime::start(options).unwrap()
}

/// Runs `body` on a fiber of the only core, as the session of this interrupt.
fn as_session<R: Send>(runtime: &Runtime, own: &Arc<Interrupt>, body: impl FnOnce() -> R + Send) -> R {
    let own = Arc::clone(own);
    runtime.call(0, move || {
        interrupt::set_current(Some(own));
        let done = body();
        interrupt::set_current(None);
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
            interrupt::set_current(Some(other));
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
    let _alone = reserving();
    be_watched();
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
        // A block may be a step larger than asked for, where the rest of a free one would be too small.
        let counted = account::held() - before;
        assert!((taken - counted).abs() <= taken / 100, "{counted} bytes for {taken}");
        let (_numbers, small) = account::measure(|| (0..1000_u64).map(Box::new).collect::<Vec<_>>());
        assert!(small >= 32 * 1000, "{small} bytes for 1,000 of 8");
    });
    runtime.shutdown();
}

/// Bytes of a block's head, which are not usable.
const HEAD: i64 = 8;

/// Held by tests that reserve memory: what one reserves, another would have to wait for.
static RESERVING: Mutex<()> = Mutex::new(());
/// The limit of those tests. None of it is touched.
const WHOLE: usize = 1 << 40;
const MORE_THAN_HALF: usize = WHOLE / 5 * 3;
const REFUSED: Stopped = Stopped::Interrupted(Interrupted(Reason::Memory));

fn reserving() -> impl Drop {
    let guard = RESERVING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    account::set_limit(WHOLE as u64);
    // A call's reservation lasts until the heaps have been trimmed.
    let begun = Instant::now();
    while account::taken() > WHOLE as u64 / 10 {
        assert!(begun.elapsed() < Duration::from_secs(60), "a reservation does not end");
        std::thread::yield_now();
    }
    guard
}

#[test]
fn a_reservation_counts_at_once_and_its_threads_allocations_use_it_up() {
    const GIB: i64 = 1 << 30;
    let _alone = reserving();
    let runtime = start();
    let own = Interrupt::new();
    as_session(&runtime, &own, || {
        let before = account::taken() as i64;
        // The other tests of this process hold less than a quarter of a GiB. Large blocks are given
        // back beside the core.
        let until_taken = |expected: i64| {
            let begun = Instant::now();
            while (account::taken() as i64 - before - expected * GIB).abs() >= GIB / 4 {
                let taken = account::taken() as i64 - before;
                assert!(begun.elapsed() < Duration::from_secs(60), "{taken} bytes are not {expected} GiB");
                std::thread::yield_now();
            }
        };
        let reservation = account::reserve(4 << 30).unwrap();
        until_taken(4);
        let within = vec![0_u8; 3 << 30];
        until_taken(4);
        let beyond = vec![0_u8; 2 << 30];
        until_taken(5);
        drop(beyond);
        until_taken(4);
        drop(reservation);
        until_taken(3);
        drop(within);
        until_taken(0);
        assert_about(account::held(), 0);
    });
    runtime.shutdown();
}

/// A call beside the core that reserves memory and may begin anew.
fn reserving_call<R: Send + 'static>(body: impl Fn() -> R + Clone + Send + 'static) -> Result<R, Stopped> {
    let made = aside::run_reserving(|| Ok::<_, ()>((0, body.clone())));
    made.unwrap()
}

/// A call that holds a reservation, and what ends it.
type Holder = (std::thread::JoinHandle<()>, Sender<()>);

/// Holds a reservation beside the core until it is told to end; notes what happens.
fn hold(runtime: &Arc<Runtime>, notes: &Sender<&'static str>) -> Holder {
    hold_so_much(runtime, notes, MORE_THAN_HALF)
}

fn hold_so_much(runtime: &Arc<Runtime>, notes: &Sender<&'static str>, bytes: usize) -> Holder {
    let (end, wait) = channel();
    let (has, hear) = channel();
    let (runtime, notes) = (Arc::clone(runtime), notes.clone());
    let holder = std::thread::spawn(move || {
        as_session(&runtime, &Interrupt::new(), || {
            aside::run(move || {
                let reservation = account::reserve(bytes).unwrap();
                has.send(()).unwrap();
                wait.recv().unwrap();
                notes.send("ended").unwrap();
                drop(reservation);
            })
        })
        .unwrap();
    });
    hear.recv().unwrap();
    (holder, end)
}

#[test]
fn a_call_beside_the_core_waits_for_memory_that_another_has_reserved() {
    let _alone = reserving();
    let runtime = start();
    let (notes, hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let own = Interrupt::new();
    let granted = as_session(&runtime, &own, || {
        // A core does not wait, and an idle server would not have so much.
        assert_eq!(account::reserve(MORE_THAN_HALF).map(drop), Err(REFUSED));
        let budgeted = work::whole_within(1 << 20, || account::reserve(MORE_THAN_HALF).map(drop));
        assert_eq!(budgeted, None);
        let too_much = aside::run(|| account::reserve(WHOLE + 1).map(drop));
        assert_eq!(too_much, Ok(Err(REFUSED)));
        // A little fits beside it.
        assert_eq!(account::reserve(WHOLE / 5).map(drop), Ok(()));
        // A call that can't begin anew does not wait.
        assert_eq!(aside::run(|| account::reserve(MORE_THAN_HALF).map(drop)), Ok(Err(REFUSED)));
        reserving_call(move || {
            end.send(()).unwrap_or(());
            let granted = account::reserve(MORE_THAN_HALF).map(drop);
            granted.is_ok().then(|| notes.send("granted").unwrap());
            granted
        })
    });
    assert_eq!(granted, Ok(Ok(())));
    assert_eq!([hear.recv(), hear.recv()], [Ok("ended"), Ok("granted")]);
    holder.join().unwrap();
    runtime.shutdown();
}

/// A session of its own that makes a call which reserves memory.
fn beside<R: Send + 'static>(
    runtime: &Arc<Runtime>,
    body: impl Fn() -> R + Clone + Send + 'static,
) -> std::thread::JoinHandle<Result<R, Stopped>> {
    let runtime = Arc::clone(runtime);
    std::thread::spawn(move || as_session(&runtime, &Interrupt::new(), || reserving_call(body)))
}

/// Waits until a call waits for memory.
fn until_one_waits() {
    while !account::is_waited_for() {
        std::thread::yield_now();
    }
}

/// There are 16 threads.
#[test]
fn calls_that_wait_for_reserved_memory_leave_the_threads_to_others() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let (begins, hear) = channel();
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let begins = begins.clone();
            beside(&runtime, move || {
                let reserved = account::reserve(MORE_THAN_HALF).map(drop);
                begins.send(()).unwrap();
                reserved
            })
        })
        .collect();
    // All of them have been on a thread, and none still is.
    (0..20).for_each(|_| hear.recv().unwrap());
    let others: Vec<_> = (0..20).map(|at| beside(&runtime, move || at)).collect();
    others.into_iter().enumerate().for_each(|(at, other)| assert_eq!(other.join().unwrap(), Ok(at)));
    end.send(()).unwrap();
    for call in waiting {
        assert_eq!(call.join().unwrap(), Ok(Ok(())));
    }
    holder.join().unwrap();
    runtime.shutdown();
}

#[test]
fn half_of_the_threads_stay_free_of_calls_that_have_reserved_memory() {
    let _alone = reserving();
    let runtime = start();
    let (begins, hear) = channel();
    let (end, wait) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (begins, wait) = (begins.clone(), Arc::clone(&wait));
            beside(&runtime, move || {
                let reserved = account::reserve(WHOLE / 100);
                begins.send(reserved.is_ok()).unwrap();
                let reserved = reserved?;
                wait.lock().unwrap().recv().unwrap();
                drop(reserved);
                Ok(())
            })
        })
        .collect();
    let begun: Vec<bool> = (0..20).map(|_| hear.recv().unwrap()).collect();
    assert_eq!(begun.into_iter().filter(|has| *has).count(), 8);
    assert_eq!(beside(&runtime, || 1).join().unwrap(), Ok(1));
    (0..20).for_each(|_| end.send(()).unwrap());
    for call in calls {
        assert_eq!(call.join().unwrap(), Ok(Ok::<(), Stopped>(())));
    }
    runtime.shutdown();
}

#[test]
fn a_call_that_needs_more_than_it_has_reserved_begins_anew_with_all_of_it() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let (begins, hear) = channel();
    let call = beside(&runtime, move || {
        begins.send(()).unwrap();
        let _outer = account::reserve(WHOLE / 5)?;
        account::reserve(MORE_THAN_HALF).map(drop)
    });
    hear.recv().unwrap();
    until_one_waits();
    end.send(()).unwrap();
    assert_eq!(call.join().unwrap(), Ok(Ok(())));
    assert_eq!(hear.iter().count(), 1);
    // It would never fit.
    let too_much = beside(&runtime, || {
        let _outer = account::reserve(WHOLE / 5)?;
        let _kept = account::reserve(WHOLE / 5 * 2)?;
        account::reserve(WHOLE).map(drop)
    });
    assert_eq!(too_much.join().unwrap(), Err(REFUSED));
    holder.join().unwrap();
    runtime.shutdown();
}

/// A call that began anew twice asks for half as much more than before, which may be more than there is.
#[test]
fn a_call_gets_what_it_lacks_where_half_as_much_more_would_not_fit() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let (has, hear) = channel();
    let (go_on, wait) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let call = beside(&runtime, move || {
        let _first = account::reserve(WHOLE / 10 * 7)?;
        has.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        account::reserve(WHOLE / 10 * 8).map(drop)
    });
    until_one_waits();
    end.send(()).unwrap();
    hear.recv().unwrap();
    let (other, end) = hold_so_much(&runtime, &notes, WHOLE / 4);
    go_on.send(()).unwrap();
    until_one_waits();
    end.send(()).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(call.join().unwrap(), Ok(Ok(())));
    [holder, other].into_iter().for_each(|holder| holder.join().unwrap());
    runtime.shutdown();
}

/// A call that is made on a thread beside the cores runs there.
#[test]
fn a_call_within_a_call_waits_for_memory_as_the_outer_one() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let (begins, hear) = channel();
    let call = beside(&runtime, move || {
        begins.send(()).unwrap();
        reserving_call(|| account::reserve(MORE_THAN_HALF).map(drop))
    });
    until_one_waits();
    assert_eq!(beside(&runtime, || 1).join().unwrap(), Ok(1));
    end.send(()).unwrap();
    assert_eq!(call.join().unwrap(), Ok(Ok(Ok(()))));
    assert_eq!(hear.iter().count(), 2);
    holder.join().unwrap();
    runtime.shutdown();
}

/// Sessions that hold little are granted their reservations, so that some are always held.
#[test]
fn a_call_does_not_wait_for_small_reservations_where_it_would_not_fit_without_them() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold_so_much(&runtime, &notes, 2 << 20);
    // A little more than fits once the reservation has ended, since the session holds some, too.
    let too_much = WHOLE - (2 << 20);
    as_session(&runtime, &Interrupt::new(), || {
        let kept = vec![0_u8; 64 << 20];
        assert_eq!(reserving_call(move || account::reserve(too_much).map(drop)), Ok(Err(REFUSED)));
        drop(kept);
    });
    end.send(()).unwrap();
    holder.join().unwrap();
    runtime.shutdown();
}

/// The statement's text is reserved for, then an expression of the catalog that it needs.
#[test]
fn a_thread_that_has_reserved_memory_does_not_wait_for_those_who_wait_for_it() {
    let _alone = reserving();
    let runtime = start();
    let (has, hear) = channel();
    let (others_wait, wait) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let first = beside(&runtime, move || {
        let _outer = account::reserve(MORE_THAN_HALF)?;
        has.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        let _within = account::reserve(MORE_THAN_HALF)?;
        let _beyond = account::reserve(MORE_THAN_HALF + WHOLE / 8)?;
        assert_eq!(account::reserve(WHOLE + 1).map(drop), Err(REFUSED));
        Ok(())
    });
    hear.recv().unwrap();
    let second = beside(&runtime, || account::reserve(MORE_THAN_HALF).map(drop));
    until_one_waits();
    others_wait.send(()).unwrap();
    for ended in [first, second] {
        assert_eq!(ended.join().unwrap(), Ok(Ok(())));
    }
    runtime.shutdown();
}

#[test]
fn an_interrupt_ends_the_wait_for_reserved_memory_and_its_place_in_the_queue() {
    let _alone = reserving();
    let runtime = start();
    let (notes, _hear) = channel();
    let (holder, end) = hold(&runtime, &notes);
    let own = Interrupt::new();
    let waiting = {
        let (runtime, own) = (Arc::clone(&runtime), Arc::clone(&own));
        let body = || account::reserve(MORE_THAN_HALF).map(drop);
        std::thread::spawn(move || as_session(&runtime, &own, || reserving_call(body)))
    };
    until_one_waits();
    let behind = beside(&runtime, || account::reserve(MORE_THAN_HALF).map(drop));
    own.raise(Reason::Cancel);
    let by_cancel = Err(Stopped::Interrupted(Interrupted(Reason::Cancel)));
    assert_eq!(waiting.join().unwrap(), by_cancel);
    as_session(&runtime, &own, || {
        // Nobody stands before the next one.
        end.send(()).unwrap();
        assert_eq!(reserving_call(|| account::reserve(MORE_THAN_HALF).map(drop)), Ok(Ok(())));
    });
    assert_eq!(behind.join().unwrap(), Ok(Ok(())));
    holder.join().unwrap();
    runtime.shutdown();
}

/// Starts the watch once for all tests of the process.
fn be_watched() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| account::watch(u64::MAX, || ()).unwrap());
}

/// Most reservations that are held at a time.
const AT_ONCE: usize = 8;
/// Sessions of the storm, what each of them does, and how many of them are cancelled at random.
const SESSIONS: u64 = 40;
const CALLS: usize = 200;
const IMPATIENT: u64 = 20;

/// What the calls of the storm hold together.
#[derive(Default)]
struct Together {
    calls: AtomicUsize,
    bytes: AtomicU64,
}

/// Reserves memory and then more, as the parser does, and looks at what all hold meanwhile.
fn reserve_within(together: &Together, sizes: [usize; 2]) -> Result<(), Stopped> {
    let [outer, inner] = sizes;
    let _outer = account::reserve(outer)?;
    // Relaxed: sums, read again by those who add to them.
    let calls = together.calls.fetch_add(1, Ordering::Relaxed) + 1;
    let bytes = together.bytes.fetch_add(outer as u64, Ordering::Relaxed) + outer as u64;
    let whole = {
        let _inner = account::reserve(inner);
        (0..20).for_each(|_| std::thread::yield_now());
        _inner.map(drop)
    };
    together.calls.fetch_sub(1, Ordering::Relaxed);
    together.bytes.fetch_sub(outer as u64, Ordering::Relaxed);
    assert!(calls <= AT_ONCE, "{calls} reservations");
    assert!(bytes <= WHOLE as u64, "{bytes} bytes");
    // The other tests of this process take less than 1 GiB.
    let taken = account::taken();
    assert!(taken < WHOLE as u64 + (1 << 30), "{taken} bytes");
    whole
}

/// Sessions of both cores make calls that reserve up to half of all memory; some are cancelled meanwhile.
#[test]
fn a_storm_of_reservations_and_cancel_requests_leaves_nothing_reserved_and_nobody_waiting() {
    let _alone = reserving();
    be_watched();
    let options = Options { cores: Some(2), pin: false, grace: Duration::from_secs(3), ..Options::default() };
    let runtime = Runtime::start(options).unwrap();
    let together = Arc::new(Together::default());
    let own: Vec<_> = (0..SESSIONS).map(|_| Interrupt::new()).collect();
    let left = Arc::new(AtomicUsize::new(SESSIONS as usize));
    let granted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (number, own) in own.iter().enumerate() {
            let (runtime, together, left) = (&runtime, Arc::clone(&together), Arc::clone(&left));
            let granted = &granted;
            scope.spawn(move || {
                let session = || {
                    interrupt::set_current(Some(Arc::clone(own)));
                    for _ in 0..CALLS {
                        let sizes = [random::u64() % 40 + 1, random::u64() % 60]
                            .map(|part| WHOLE / 100 * part as usize);
                        let together = Arc::clone(&together);
                        let body = move || reserve_within(&together, sizes);
                        match reserving_call(body) {
                            Ok(Ok(())) => drop(granted.fetch_add(1, Ordering::Relaxed)),
                            Ok(Err(stopped)) | Err(stopped) => {
                                assert_eq!(stopped, Stopped::Interrupted(Interrupted(Reason::Cancel)));
                            }
                        }
                    }
                    interrupt::set_current(None);
                };
                runtime.call(number % 2, session);
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while left.load(Ordering::Relaxed) > 0 {
            own[(random::u64() % IMPATIENT) as usize].raise(Reason::Cancel);
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    assert!(granted.into_inner() >= (SESSIONS - IMPATIENT) as usize * CALLS);
    assert!(!account::is_waited_for());
    // All that is left is given back, so that nearly all of it fits at once.
    let begun = Instant::now();
    let nearly_all = || account::reserve(WHOLE - (1 << 30)).map(drop);
    while as_session(&runtime, &Interrupt::new(), nearly_all).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes stay", account::taken());
        std::thread::yield_now();
    }
    runtime.shutdown();
}

/// Reads a megabyte and the beginning of another message, and answers with a byte.
struct Reader(Sender<Arc<Interrupt>>);

const MESSAGE: usize = 1 << 20;
const BEGINNING: usize = 20 << 10;

impl Serve for Reader {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if io.input().len() == MESSAGE + BEGINNING {
            io.consume(MESSAGE);
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

/// Waits within its turn for the whole of a megabyte, and answers with a byte.
struct Waiter(Sender<Arc<Interrupt>>);

impl Serve for Waiter {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if !io.input().is_empty() {
            if io.fill(MESSAGE).is_err() {
                return Next::Close;
            }
            io.consume(MESSAGE);
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

/// Bytes that a session holds after it has sent so many messages of 1 MiB, each answered, and `behind`
/// bytes.
fn held_after(serve: fn(Sender<Arc<Interrupt>>) -> Box<dyn Serve>, messages: usize, behind: usize) -> i64 {
    let runtime = start();
    let (tell, hear) = channel();
    let accept = move |_: &Accepted| serve(tell.clone());
    let address = Address::Tcp("127.0.0.1:0".to_socket_addrs().unwrap().next().unwrap());
    let listener = runtime.listen(address, Arc::new(accept)).unwrap();
    let Address::Tcp(address) = listener.address() else { panic!("not over TCP") };
    let mut client = TcpStream::connect(address).unwrap();
    let mut held = 0;
    for _ in 0..messages {
        client.write_all(&vec![1; MESSAGE + behind]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        held = hear.recv().unwrap().held();
    }
    runtime.shutdown();
    held
}

#[test]
fn a_session_keeps_no_room_for_the_beginning_of_a_message_that_another_message_made() {
    let held = held_after(|tell| Box::new(Reader(tell)), 1, BEGINNING);
    assert!(held < 3 * BEGINNING as i64, "{held} bytes for {BEGINNING}");
}

#[test]
fn a_session_that_sends_long_messages_holds_nothing_of_them_and_gets_nothing_for_them() {
    let held = held_after(|tell| Box::new(Waiter(tell)), 10, 0);
    assert!(held.abs() < BEGINNING as i64, "{held} bytes");
}

/// Answers a byte with ten megabytes, part of which waits for the client to read.
struct Talker(Sender<Arc<Interrupt>>);

const ANSWER: usize = 10 << 20;

impl Serve for Talker {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if !io.input().is_empty() {
            io.consume(io.input().len());
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            for part in [ANSWER / 2, ANSWER / 2 - 1] {
                let length = io.output().len() + part;
                io.output().resize(length, 1);
                if part == ANSWER / 2 && io.flush().is_err() {
                    return Next::Close;
                }
            }
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

#[test]
fn a_session_holds_nothing_of_long_answers_that_have_been_sent() {
    let runtime = start();
    let (tell, hear) = channel();
    let accept = move |_: &Accepted| Box::new(Talker(tell.clone())) as Box<dyn Serve>;
    let address = Address::Tcp("127.0.0.1:0".to_socket_addrs().unwrap().next().unwrap());
    let listener = runtime.listen(address, Arc::new(accept)).unwrap();
    let Address::Tcp(address) = listener.address() else { panic!("not over TCP") };
    let mut client = TcpStream::connect(address).unwrap();
    let mut answer = vec![0; ANSWER];
    for _ in 0..10 {
        client.write_all(&[1]).unwrap();
        let interrupt = hear.recv().unwrap();
        client.read_exact(&mut answer).unwrap();
        // The last bytes are sent before their buffer is given back.
        let begun = Instant::now();
        while interrupt.held().abs() >= BEGINNING as i64 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes", interrupt.held());
            std::thread::yield_now();
        }
    }
    runtime.shutdown();
}
