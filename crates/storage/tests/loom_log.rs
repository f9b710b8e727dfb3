//! Loom models of the log: its reservation and filled point, its writes in flight, and who waits
//! for them. They include `fill.rs`, `flights.rs` and `waiters.rs`, which need `sync` only, so that
//! loom need not run all of storage.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p storage --test loom_log --release`
#![cfg(loom)]

#[allow(dead_code)] // the model needs only a part of it
#[path = "../src/log/fill.rs"]
mod fill;
#[allow(dead_code)] // as above
#[path = "../src/log/flights.rs"]
mod flights;
#[allow(dead_code)] // as above
#[path = "../src/log/waiters.rs"]
mod waiters;

use fill::Fill;
use flights::{Flight, Flights};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::task::Waker;
use waiters::Waiters;

const START: u64 = 8;

/// A log of single-byte records: each position holds the byte that was filled in.
struct Log {
    fill: Fill,
    bytes: Vec<UnsafeCell<u8>>,
}

// SAFETY: the core that reserved a byte writes it, and it is read only below the filled point. Loom
// checks that this orders the two.
unsafe impl Sync for Log {}
// SAFETY: as above.
unsafe impl Send for Log {}

impl Log {
    fn new(cores: usize) -> Arc<Log> {
        let bytes = (0..START + 4).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Log { fill: Fill::new(cores, START), bytes })
    }

    fn append(&self, core: usize, bound: u64, value: u8) -> fill::Reservation {
        let reservation = self.fill.reserve(core, bound, 1);
        self.bytes[reservation.start as usize].with_mut(|byte| {
            // SAFETY: reserved by this core alone, read by nobody before it is complete.
            unsafe { *byte = value }
        });
        self.fill.complete(core);
        reservation
    }

    /// Reads the filled part. Loom fails the test if a byte is read while its writer may still
    /// write it.
    fn check_filled(&self) -> u64 {
        self.check_below(self.fill.filled())
    }

    fn check_below(&self, filled: u64) -> u64 {
        for at in START..filled {
            // SAFETY: below the filled point.
            let byte = self.bytes[at as usize].with(|byte| unsafe { *byte });
            assert_ne!(byte, 0, "position {at} is below the filled point {filled} and not filled");
        }
        filled
    }
}

#[test]
fn nothing_unfilled_is_below_the_filled_point() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let appenders: Vec<_> = (0..2)
            .map(|core| {
                let log = log.clone();
                thread::spawn(move || {
                    // Two records: the second announces the end of the first, which may be far
                    // behind by then.
                    let first = log.append(core, START, 1);
                    log.append(core, first.start + 1, 2);
                })
            })
            .collect();
        log.check_filled();
        appenders.into_iter().for_each(|appender| appender.join().unwrap());
        assert_eq!(log.check_filled(), START + 4);
    });
}

#[test]
fn nothing_unfilled_is_below_the_end_of_a_wait() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let appender = {
            let log = log.clone();
            thread::spawn(move || log.append(0, START, 1))
        };
        // It may wait for two looks at a core that lags.
        log.check_below(log.fill.wait_filled_past(START, 2));
        appender.join().unwrap();
        assert_eq!(log.check_below(log.fill.wait_filled_past(START, 1)), START + 1);
    });
}

#[test]
fn a_reservation_knows_its_epoch_exactly() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let appenders: Vec<_> = (0..2)
            .map(|core| {
                let log = log.clone();
                thread::spawn(move || {
                    let built_for = log.fill.epoch();
                    let reservation = log.append(core, START, 1);
                    (built_for, reservation)
                })
            })
            .collect();
        let next = log.fill.begin_epoch();
        while log.fill.filled() < next.redo {
            thread::yield_now();
        }
        // The records reserved before the redo position are filled by now.
        log.check_filled();
        for appender in appenders {
            let (built_for, reservation) = appender.join().unwrap();
            // A record lies before the redo position if and only if it belongs to the old epoch. So
            // an image is due exactly from there on.
            assert_eq!(reservation.start >= next.redo, reservation.epoch == next);
            assert_eq!(reservation.start < next.redo, reservation.epoch.number == 0);
            assert!(built_for.number == 0 || built_for == next);
        }
    });
}

#[test]
fn the_rest_of_a_block_is_reserved_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let other = log.clone();
        let appender = thread::spawn(move || other.append(0, START, 1).start);
        let rest = match log.fill.reserve_rest(1, START, 2, 1) {
            Ok((reservation, length)) => {
                assert_eq!((reservation.start + length) % 2, 0);
                for at in reservation.start..reservation.start + length {
                    // SAFETY: reserved by this core alone, read by nobody before it is complete.
                    log.bytes[at as usize].with_mut(|byte| unsafe { *byte = 2 });
                }
                log.fill.complete(1);
                Some(reservation.start..reservation.start + length)
            }
            Err(end) => {
                assert_eq!(end % 2, 0);
                None
            }
        };
        log.check_filled();
        let start = appender.join().unwrap();
        assert!(rest.is_none_or(|rest| !rest.contains(&start)));
        log.check_filled();
    });
}

/// The published end, which only a publisher may write.
struct Published(UnsafeCell<u64>);

// SAFETY: written by the publisher alone. Loom checks that there is one at a time.
unsafe impl Sync for Published {}
// SAFETY: as above.
unsafe impl Send for Published {}

/// A thread's part: it gathers if it may, its write lands, and it publishes what it has to.
fn fly(flights: &Flights, published: &Published) {
    flights.join(1);
    if !flights.begin() {
        return;
    }
    let end = flights.departed() + 4096;
    flights.depart(Flight { end, filled: end, sessions: flights.take_joined() });
    if !flights.land(end) {
        return;
    }
    while let Some(flight) = flights.next_landed() {
        published.0.with_mut(|last| {
            // SAFETY: this thread is the publisher.
            let last = unsafe { &mut *last };
            assert_eq!(flight.end, *last + 4096, "published in order");
            *last = flight.end;
        });
    }
}

/// A model of two threads that meet in spin locks.
fn check_pair(body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    model.check(body);
}

#[test]
fn flights_are_published_in_order_by_one_at_a_time() {
    check_pair(|| {
        let flights = Arc::new(Flights::new(0));
        let published = Arc::new(Published(UnsafeCell::new(0)));
        let other = {
            let (flights, published) = (flights.clone(), published.clone());
            thread::spawn(move || fly(&flights, &published))
        };
        fly(&flights, &published);
        other.join().unwrap();
        // SAFETY: the other one has ended.
        let last = published.0.with(|last| unsafe { *last });
        assert_eq!(last, flights.departed(), "no landed flight is left behind");
        assert!(!flights.is_busy());
    });
}

/// Wakes one that waits for what no write covers, if it may gather; returns how many were found.
fn wake_one(flights: &Flights, waiters: &Waiters) -> usize {
    Waiters::fence();
    let is_due = waiters.any_above(flights.departed()) && !flights.is_busy();
    usize::from(is_due && waiters.take_one_above(Some(0), flights.departed()).is_some())
}

/// The publisher's part: publishes landed writes and wakes those that they cover, then one that may
/// gather. Returns how many were found.
fn publish(flights: &Flights, waiters: &Waiters, durable: &AtomicU64) -> usize {
    let (mut woken, mut found) = (Vec::new(), 0);
    while let Some(flight) = flights.next_landed() {
        durable.store(flight.end, Ordering::Relaxed); // Relaxed: ordered by the fence below
        Waiters::fence();
        waiters.take_up_to(flight.end, &mut woken, |woken| found += woken.drain(..).count());
    }
    found + wake_one(flights, waiters)
}

/// One thread waits for `lsn` while a write up to `end` is in flight for two sessions. The other
/// one lands it.
fn check_waiter(end: u64, lsn: u64) {
    check_pair(move || {
        let flights = Arc::new(Flights::new(0));
        let waiters = Arc::new(Waiters::new(1));
        let durable = Arc::new(AtomicU64::new(0));
        assert!(flights.begin());
        flights.depart(Flight { end, filled: end, sessions: 2 });
        let sleeper = {
            let (flights, waiters, durable) = (flights.clone(), waiters.clone(), durable.clone());
            thread::spawn(move || {
                flights.join(1);
                waiters.enter(Some(0), lsn, Waker::noop().clone(), true);
                // Relaxed: ordered by the fence in `enter`. True means that it parks.
                durable.load(Ordering::Relaxed) < lsn && (flights.departed() >= lsn || flights.is_busy())
            })
        };
        assert!(flights.land(end));
        let found = publish(&flights, &waiters, &durable);
        assert!(!sleeper.join().unwrap() || found == 1, "it parked, and nobody found it");
    });
}

#[test]
fn a_waiter_that_parks_is_woken_by_its_write() {
    check_waiter(100, 100);
}

#[test]
fn a_waiter_that_parks_is_woken_to_gather() {
    // The next write waits for this one: they share a block, or one session is fewer than two.
    check_waiter(100, 200);
    check_waiter(4096, 5000);
}

/// Two threads join beside a write for two sessions. Neither knows of the other one.
#[test]
fn of_two_that_make_a_write_due_together_one_gathers() {
    check_pair(|| {
        let flights = Arc::new(Flights::new(0));
        let waiters = Arc::new(Waiters::new(2));
        assert!(flights.begin());
        flights.depart(Flight { end: 4096, filled: 4096, sessions: 2 });
        let commit = |core: usize, flights: &Flights, waiters: &Waiters| {
            flights.join(1);
            if flights.begin() {
                return true;
            }
            waiters.enter(Some(core), 5000, Waker::noop().clone(), true);
            !flights.is_busy() && flights.begin()
        };
        let other = {
            let (flights, waiters) = (flights.clone(), waiters.clone());
            thread::spawn(move || commit(1, &flights, &waiters))
        };
        let gathers = commit(0, &flights, &waiters);
        assert!(gathers != other.join().unwrap());
    });
}

/// One thread waits while a session of its core has claimed the next write. A write for two
/// sessions is in flight, so the next one depends on both. That session ends its claim, counts
/// those that have come meanwhile, and looks once whether it may gather.
#[test]
fn a_waiter_that_counts_on_a_claim_is_counted_and_found() {
    check_pair(|| {
        let flights = Arc::new(Flights::new(0));
        let waiters = Arc::new(Waiters::new(1));
        let durable = Arc::new(AtomicU64::new(0));
        assert!(flights.begin());
        flights.depart(Flight { end: 4096, filled: 4096, sessions: 2 });
        assert!(waiters.claim(Some(0)));
        let sleeper = {
            let (flights, waiters, durable) = (flights.clone(), waiters.clone(), durable.clone());
            thread::spawn(move || {
                waiters.enter(Some(0), 5000, Waker::noop().clone(), false);
                let is_claimed = waiters.is_claimed(Some(0));
                let is_served = flights.departed() >= 5000 || flights.is_busy() || is_claimed;
                // Relaxed: ordered by the fence in `enter`. True means that it parks.
                (is_claimed, durable.load(Ordering::Relaxed) < 5000 && is_served)
            })
        };
        waiters.release(Some(0));
        let came = waiters.take_arrived(Some(0), flights.departed());
        flights.join(1 + came);
        let gathers = flights.begin();
        assert_eq!(gathers, came == 1, "two that wait may gather beside two in flight");
        if gathers {
            flights.depart(Flight { end: 8192, filled: 8192, sessions: flights.take_joined() });
        }
        assert!(flights.land(4096));
        if gathers {
            assert!(!flights.land(8192), "there is a publisher");
        }
        let found = publish(&flights, &waiters, &durable);
        let (is_claimed, parks) = sleeper.join().unwrap();
        assert!(!is_claimed || came == 1, "it counted on the claim, and was not counted");
        assert!(!parks || found == 1, "it parked, and nobody found it");
    });
}

/// A session joins while another one gathers, between its look at the count and its departure.
#[test]
fn one_that_joins_while_another_gathers_is_found() {
    check_pair(|| {
        let flights = Arc::new(Flights::new(0));
        let waiters = Arc::new(Waiters::new(2));
        flights.join(1);
        assert!(flights.begin());
        let sleeper = {
            let (flights, waiters) = (flights.clone(), waiters.clone());
            thread::spawn(move || {
                flights.join(1);
                if flights.begin() {
                    return false;
                }
                waiters.enter(Some(1), 5000, Waker::noop().clone(), true);
                flights.is_busy()
            })
        };
        // Its write does not cover the sleeper, also where it counts it.
        flights.depart(Flight { end: 4096, filled: 4096, sessions: flights.take_joined() });
        let mut found = wake_one(&flights, &waiters);
        assert!(flights.land(4096));
        found += publish(&flights, &waiters, &AtomicU64::new(0));
        assert!(!sleeper.join().unwrap() || found > 0, "it parked, and nobody found it");
    });
}

/// A session counts another one of its core, which has parked, while a write lands. A second write
/// is in flight. Either the session may gather, or the landing wakes the other one.
#[test]
fn a_landing_or_the_session_that_joins_sees_the_other() {
    check_pair(|| {
        let flights = Arc::new(Flights::new(0));
        let waiters = Arc::new(Waiters::new(1));
        for (end, sessions) in [(4096, 2), (8192, 1)] {
            flights.join(2); // so many that it may depart
            assert!(flights.begin() && flights.take_joined() == 2);
            flights.depart(Flight { end, filled: end, sessions });
        }
        waiters.enter(Some(0), 9000, Waker::noop().clone(), false);
        let joiner = {
            let (flights, waiters) = (flights.clone(), waiters.clone());
            thread::spawn(move || {
                flights.join(waiters.take_arrived(Some(0), 8192));
                flights.begin()
            })
        };
        assert!(flights.land(4096));
        let found = publish(&flights, &waiters, &AtomicU64::new(0));
        assert!(joiner.join().unwrap() || found == 1, "nobody gathers for the one that has parked");
    });
}
