//! The log's writes in flight, oldest first.
//!
//! A write departs when its range is fixed, and lands when the disk has it. Several are in flight
//! at once and land in any order. The log's durable end passes a flight only after all flights
//! before it. What must hold:
//!
//! 1. There is one gatherer at a time: the caller to which [`Flights::begin`] returned true, until
//!    it calls [`Flights::depart`] or [`Flights::abandon`]. It alone fixes a range, which begins
//!    where the last one ended.
//! 2. No two flights share a block, because a disk may write two in either order. So nobody gathers
//!    until a flight that ends within a block has landed.
//! 3. There is one publisher at a time: the caller to which [`Flights::land`] returned true, until
//!    [`Flights::next_landed`] returns `None`. It takes the flights in the order of positions.
//! 4. No landed flight is left without a publisher: landing and the publisher's last look hold the
//!    same lock.
//!
//! **How many.** Another write departs only if it serves at least as many sessions as all writes in
//! flight together. So a lone commit waits for nobody, and two go side by side. While none lands,
//! 64 sessions take 7 writes: of 1, 1, 2, 4, 8, 16 and 32 sessions. Each write costs processor
//! time, which many sessions want more than the shorter wait. The rule needs no figure of the disk.
//! On one that serves one write at a time, the sessions soon form two groups that take turns.
//!
//! `tests/loom_log.rs` runs this file under loom.

use std::collections::VecDeque;

use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use sync::{CachePadded, SpinLock};

/// The unit of log writes, which the log asserts to be its own.
pub(crate) const BLOCK: u64 = 4096;
/// The most writes in flight.
pub(crate) const MOST: usize = 8;
/// A write of a part of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// The end of the written part.
    pub end: u64,
    /// The end of a record, at or after `end`, that was filled when the flight departed.
    pub filled: u64,
    /// Sessions that it serves, as far as they were counted ([`Flights::take_joined`]).
    pub sessions: usize,
}

/// The writes in flight.
#[derive(Debug)]
pub struct Flights {
    shared: CachePadded<Shared>,
    state: SpinLock<State>,
}

/// The part that is read without the lock. It is changed under the lock, but for `joined`.
#[derive(Debug)]
struct Shared {
    /// Whether nobody may begin to gather, however many have joined.
    closed: AtomicBool,
    /// The end of the last flight that departed.
    departed: AtomicU64,
    /// Sessions of the flights that have not landed.
    in_flight: AtomicUsize,
    /// Sessions that wait for a flight that has not departed. Changed without the lock.
    joined: AtomicUsize,
}

#[derive(Debug)]
struct State {
    gathering: bool,
    publishing: bool,
    /// Flights that are not published.
    flights: VecDeque<Entry>,
    departures: u64,
    bytes: u64,
}

/// Counts of log writes since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightCounts {
    /// Writes that departed.
    pub departures: u64,
    /// Their bytes of log. A block that two writes share counts once.
    pub bytes: u64,
    /// Sessions whose wait a write ended.
    pub served: u64,
    /// Writes in flight now.
    pub in_flight: usize,
    /// Sessions that these serve.
    pub sessions_in_flight: usize,
}

#[derive(Debug)]
struct Entry {
    flight: Flight,
    has_landed: bool,
}

impl Flights {
    /// A log that is durable up to `end`.
    pub fn new(end: u64) -> Flights {
        let shared = Shared {
            closed: AtomicBool::new(false),
            departed: AtomicU64::new(end),
            in_flight: AtomicUsize::new(0),
            joined: AtomicUsize::new(0),
        };
        let state = State {
            gathering: false,
            publishing: false,
            flights: VecDeque::with_capacity(2 * MOST),
            departures: 0,
            bytes: 0,
        };
        let state = SpinLock::new(&"log flights", state);
        Flights { shared: CachePadded::new(shared), state }
    }

    /// The end of the last flight that departed.
    #[inline]
    pub fn departed(&self) -> u64 {
        // Acquire: a caller that compares positions has seen the flight's registration.
        self.shared.departed.load(Ordering::Acquire)
    }

    /// Whether [`Flights::begin`] would return false now. A caller that parks because of it enters
    /// a list and fences before it looks here. So does one that counts on another session to join.
    /// A landing and a departure are followed by a fence and a look at the lists (`waiters`). If
    /// two callers join at once, the second one's count includes the first one's.
    #[inline]
    pub fn is_busy(&self) -> bool {
        let Shared { closed, in_flight, joined, .. } = &*self.shared;
        // Relaxed: ordered by the caller's fence.
        closed.load(Ordering::Relaxed) || joined.load(Ordering::Relaxed) < in_flight.load(Ordering::Relaxed)
    }

    /// Counts sessions that wait for a flight that has not departed. The counts decide when a
    /// flight departs while others are in flight. So one that is a bit wrong costs a little time:
    /// once no flight is left, anybody may gather.
    pub fn join(&self, sessions: usize) {
        if sessions > 0 {
            // Release: pairs with `take_joined`.
            self.shared.joined.fetch_add(sessions, Ordering::Release);
            // SeqCst: as `Waiters::fence`. This count, and what a landing changes, are a store
            // each, followed by a load of the other's.
            fence(Ordering::SeqCst);
        }
    }

    /// The sessions that have joined, for the gatherer to take along. It asks before it looks at
    /// the filled point. All of them have appended by then, and most of them what is filled.
    pub fn take_joined(&self) -> usize {
        self.shared.joined.swap(0, Ordering::Acquire) // Acquire: pairs with `join`
    }

    /// Makes the caller the gatherer, unless there is one, or no flight may depart now.
    pub fn begin(&self) -> bool {
        if self.is_busy() {
            return false;
        }
        let mut state = self.state.lock();
        let free = !self.is_busy();
        state.gathering |= free;
        self.show(&state);
        free
    }

    /// Whether a flight has not landed.
    pub(crate) fn has_company(&self) -> bool {
        self.state.lock().in_air().next().is_some()
    }

    /// The gatherer's flight departs. Others may gather from here on.
    pub fn depart(&self, flight: Flight) {
        let mut state = self.state.lock();
        state.departures += 1;
        // Relaxed: stored under the lock.
        state.bytes += flight.end - self.shared.departed.load(Ordering::Relaxed);
        state.flights.push_back(Entry { flight, has_landed: false });
        state.gathering = false;
        // Release: pairs with `departed`.
        self.shared.departed.store(flight.end, Ordering::Release);
        self.show(&state);
    }

    /// The gatherer found nothing to write.
    pub fn abandon(&self) {
        let mut state = self.state.lock();
        state.gathering = false;
        self.show(&state);
    }

    /// The flight that ends at `end` has landed. If true, the caller is the publisher.
    pub fn land(&self, end: u64) -> bool {
        let mut state = self.state.lock();
        let found = state.flights.iter_mut().find(|entry| entry.flight.end == end);
        let entry = found.expect("it departed and was not published");
        entry.has_landed = true;
        let publishes = !state.publishing && state.flights[0].has_landed;
        state.publishing |= publishes;
        self.show(&state);
        publishes
    }

    /// The next flight to publish; with `None` the caller is no publisher any more.
    pub fn next_landed(&self) -> Option<Flight> {
        let mut state = self.state.lock();
        let next = state.flights.pop_front_if(|entry| entry.has_landed).map(|entry| entry.flight);
        state.publishing = next.is_some();
        self.show(&state);
        next
    }

    /// The writes so far, which ended the wait of `served` sessions.
    #[cfg(not(loom))]
    pub(crate) fn counts(&self, served: u64) -> FlightCounts {
        let state = self.state.lock();
        FlightCounts {
            departures: state.departures,
            bytes: state.bytes,
            served,
            in_flight: state.in_air().count(),
            sessions_in_flight: state.in_air().map(|flight| flight.sessions).sum(),
        }
    }

    fn show(&self, state: &State) {
        // Relaxed: changed under the lock, and the last flight is this lock's too.
        let departed = self.shared.departed.load(Ordering::Relaxed);
        let open = departed.is_multiple_of(BLOCK) || state.flights.back().is_none_or(|last| last.has_landed);
        // Landed flights that wait for an earlier one are bounded too.
        let room = state.flights.len() < 2 * MOST && state.in_air().count() < MOST;
        let sessions = state.in_air().map(|flight| flight.sessions).sum();
        // Relaxed: see `is_busy`.
        self.shared.in_flight.store(sessions, Ordering::Relaxed);
        // Relaxed: as above.
        self.shared.closed.store(state.gathering || !open || !room, Ordering::Relaxed);
    }
}

impl State {
    /// The flights that have not landed.
    fn in_air(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().filter(|entry| !entry.has_landed).map(|entry| &entry.flight)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn flights_that_land_in_any_order_are_published_in_theirs() {
        let flights = Flights::new(0);
        let ends = [1, 3, 4].map(|blocks| flights.departed() + blocks * BLOCK);
        for end in ends {
            assert!(flights.begin() && !flights.begin());
            flights.depart(Flight { end, filled: end, sessions: 0 });
        }
        assert!(!flights.land(ends[1]));
        let counts = flights.counts(0);
        assert_eq!((counts.departures, counts.bytes, counts.in_flight), (3, 4 * BLOCK, 2));
        assert!(flights.land(ends[0]));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[0]));
        // Lands while there is a publisher, which takes it.
        assert!(!flights.land(ends[2]));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[1]));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[2]));
        assert_eq!(flights.next_landed(), None);
    }

    #[test]
    fn nobody_gathers_while_a_block_is_partly_in_flight() {
        let flights = Flights::new(100);
        assert!(flights.begin());
        flights.depart(Flight { end: 200, filled: 200, sessions: 1 });
        assert!(flights.is_busy() && !flights.begin());
        assert!(flights.land(200) && flights.next_landed().is_some() && flights.next_landed().is_none());
        assert!(flights.begin());
        flights.abandon();
        assert!(!flights.is_busy());
    }

    #[test]
    fn a_write_departs_beside_others_if_it_serves_as_many_sessions() {
        let flights = Flights::new(0);
        let mut ends = Vec::new();
        let mut depart = |flights: &Flights| {
            assert!(flights.begin());
            let end = flights.departed() + BLOCK;
            flights.depart(Flight { end, filled: end, sessions: flights.take_joined() });
            ends.push(end);
        };
        // A burst of 64 sessions, one after the other.
        for came in 1..=64_u32 {
            flights.join(1);
            let is_due = came.is_power_of_two();
            assert_eq!(flights.is_busy(), !is_due, "{came}");
            if is_due {
                depart(&flights);
            }
        }
        let counts = flights.counts(0);
        assert_eq!((counts.departures, counts.in_flight, counts.sessions_in_flight), (7, 7, 64));
        // Ten come while these are in flight. They wait until ten or fewer are left there.
        flights.join(10);
        for (landed, &end) in ends.clone().iter().enumerate() {
            let left: usize = [1, 1, 2, 4, 8, 16, 32][landed..].iter().sum();
            assert_eq!(flights.is_busy(), left > 10, "{landed}");
            flights.land(end);
        }
        assert!(!flights.is_busy());
        while flights.next_landed().is_some() {}
        assert_eq!(flights.counts(0).sessions_in_flight, 0);
    }

    #[test]
    fn no_more_than_the_most_writes_are_in_flight() {
        let flights = Flights::new(0);
        for writes in 0..MOST {
            assert!(flights.begin(), "{writes}");
            let end = flights.departed() + BLOCK;
            flights.depart(Flight { end, filled: end, sessions: 0 });
        }
        assert!(flights.is_busy() && !flights.begin());
        flights.land(BLOCK);
        assert!(!flights.is_busy());
    }

    #[test]
    fn threads_past_the_cores_publish_every_flight_in_order() {
        const WRITES: u64 = 10_000;
        let threads = sync::stress::threads();
        let flights = Flights::new(0);
        let (published, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let fly = || {
            // Relaxed, here and below: a publisher alone stores the one, and the other is a count.
            let mut has_joined = false;
            while done.load(Ordering::Relaxed) < WRITES {
                flights.join(usize::from(!has_joined));
                has_joined = true;
                if !flights.begin() {
                    std::thread::yield_now();
                    continue;
                }
                has_joined = false;
                let end = flights.departed() + BLOCK;
                flights.depart(Flight { end, filled: end, sessions: flights.take_joined() });
                std::thread::yield_now();
                let mut publishes = flights.land(end);
                while publishes {
                    match flights.next_landed() {
                        Some(flight) => {
                            assert_eq!(published.load(Ordering::Relaxed) + BLOCK, flight.end);
                            published.store(flight.end, Ordering::Relaxed);
                        }
                        None => publishes = false,
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(fly)));
        // All have landed, so nothing waits for a publisher.
        assert_eq!(published.load(Ordering::Relaxed), flights.departed());
        assert!(flights.departed() >= WRITES * BLOCK && flights.counts(0).in_flight == 0);
    }
}
