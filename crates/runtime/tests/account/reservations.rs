//! Reservations: memory for work that cannot be counted or stopped while it runs.

use super::*;

/// Held by tests that reserve memory: what one reserves, another would have to wait for.
static RESERVING: Mutex<()> = Mutex::new(());
/// The limit of those tests. None of it is touched.
const WHOLE: usize = 1 << 40;
const MORE_THAN_HALF: usize = WHOLE / 5 * 3;
const REFUSED: Stopped = Stopped::Interrupted(Interrupted(Reason::Memory));

pub(super) fn reserving() -> impl Drop {
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

/// Holds a reservation beside the core until the sender sends a message; notes each step.
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
        let budgeted = budget::whole_within(1 << 20, || account::reserve(MORE_THAN_HALF).map(drop));
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

/// A call that began anew twice asks for half as much more than before, which may be more than
/// there is.
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
pub(super) fn be_watched() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| account::watch(u64::MAX, || ()).unwrap());
}

/// Most reservations that are held at a time.
const AT_ONCE: usize = 8;
/// Sessions of the storm, what each of them does, and how many of them are cancelled at random.
const SESSIONS: u64 = 40;
const CALLS: usize = 200;
const IMPATIENT: u64 = 20;

/// The memory that the calls of the storm hold together.
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

/// Sessions of both cores make calls that reserve up to half of all memory; some are cancelled
/// meanwhile.
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
                    fiber::obey(Some(Arc::clone(own)));
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
                    fiber::obey(None);
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
