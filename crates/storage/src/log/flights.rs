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
//! How many writes are in flight at most follows from how many sessions they serve a second
//! ([`Depth`]). On a disk that serves one write at a time, more writes would only make groups
//! smaller. Where the processors are busy, each write costs time that sessions want.
//!
//! `tests/loom_log.rs` runs this file under loom.

use std::collections::VecDeque;

use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{CachePadded, SpinLock};

/// The unit of log writes.
const BLOCK: u64 = 4096;
/// The most writes in flight.
pub const MOST: usize = 1 << STEPS;
/// The depths are the powers of two up to this one's.
const STEPS: u32 = 3;
/// Nanoseconds over which sessions are counted.
const WINDOW: u64 = 10_000_000;
/// One window in so many tries the next depth, up and down in turns.
const TRIAL: u32 = 6;
/// The depth changes if at least so many trials of another one serve 5% more sessions.
const TRIALS: u32 = 4;
const BETTER: u64 = 1050;

/// A write of a part of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// The end of the written part.
    pub end: u64,
    /// The end of a record, at or after `end`, that was filled when the flight departed.
    pub filled: u64,
}

/// The writes in flight.
#[derive(Debug)]
pub struct Flights {
    shared: CachePadded<Shared>,
    state: SpinLock<State>,
}

/// The part that is read without the lock. It is changed under the lock.
#[derive(Debug)]
struct Shared {
    /// Whether nobody may begin to gather.
    busy: AtomicBool,
    /// The end of the last flight that departed.
    departed: AtomicU64,
}

#[derive(Debug)]
struct State {
    gathering: bool,
    publishing: bool,
    /// Flights that are not published.
    flights: VecDeque<Entry>,
    depth: Depth,
}

#[derive(Debug)]
struct Entry {
    flight: Flight,
    has_landed: bool,
    /// Sessions that wait for it.
    sessions: usize,
}

/// The most writes in flight, found by trial: how many sessions it serves a second, compared with
/// the next lower and the next higher depth.
#[derive(Debug)]
struct Depth {
    /// The binary logarithm of the depth.
    step: u32,
    /// The step that this window tries; `step` if none.
    tried: u32,
    /// Windows that have ended.
    windows: u32,
    /// When this window began, and sessions served since.
    since: u64,
    sessions: u64,
    /// Smoothed sessions a second at `step`; 0 if unknown.
    rate: u64,
    /// Rates of the next lower and the next higher step in thousandths of `rate`, smoothed, and the
    /// number of their trials.
    others: [(u64, u32); 2],
}

impl Depth {
    fn new() -> Depth {
        Depth {
            step: STEPS,
            tried: STEPS,
            windows: 0,
            since: 0,
            sessions: 0,
            rate: 0,
            others: [(1000, 0); 2],
        }
    }

    fn most(&self) -> usize {
        1 << self.tried
    }

    /// Counts sessions that are served at `now`.
    fn note(&mut self, sessions: usize, now: u64) {
        self.sessions += sessions as u64;
        let span = now.saturating_sub(self.since);
        if span < WINDOW {
            return;
        }
        let rate = self.sessions * 1_000_000_000 / span;
        (self.since, self.sessions) = (now, 0);
        // A longer window has a pause in it, which tells nothing of the depth.
        if span < 10 * WINDOW {
            self.end_window(rate);
        }
    }

    fn end_window(&mut self, rate: u64) {
        if self.tried == self.step {
            self.rate = if self.rate == 0 { rate } else { (self.rate * 3 + rate) / 4 };
        } else {
            let (ratio, trials) = &mut self.others[usize::from(self.tried > self.step)];
            *ratio = (*ratio * 3 + rate * 1000 / self.rate.max(1)) / 4;
            *trials += 1;
            if *trials >= TRIALS && *ratio >= BETTER {
                (self.step, self.rate, self.others) = (self.tried, 0, [(1000, 0); 2]);
            }
        }
        self.windows = self.windows.wrapping_add(1);
        self.tried = self.step;
        if self.windows.is_multiple_of(TRIAL) && self.rate > 0 {
            let higher = (self.windows / TRIAL).is_multiple_of(2);
            let tried = if higher { self.step + 1 } else { self.step.wrapping_sub(1) };
            self.tried = if tried <= STEPS { tried } else { self.step };
        }
    }
}

impl Flights {
    /// A log that is durable up to `end`.
    pub fn new(end: u64) -> Flights {
        let shared = Shared { busy: AtomicBool::new(false), departed: AtomicU64::new(end) };
        let state = State {
            gathering: false,
            publishing: false,
            flights: VecDeque::with_capacity(2 * MOST),
            depth: Depth::new(),
        };
        Flights { shared: CachePadded::new(shared), state: SpinLock::new(state) }
    }

    /// The end of the last flight that departed.
    #[inline]
    pub fn departed(&self) -> u64 {
        // Acquire: a caller that compares positions has seen the flight's registration.
        self.shared.departed.load(Ordering::Acquire)
    }

    /// Whether [`Flights::begin`] would return false now. A caller that parks because of it enters
    /// a list and fences before it looks here. A change of this is followed by a fence and a look
    /// at the lists (`waiters`).
    #[inline]
    pub fn is_busy(&self) -> bool {
        // Relaxed: ordered by the caller's fence.
        self.shared.busy.load(Ordering::Relaxed)
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

    /// The gatherer's flight departs, and `waiting` sessions wait for it or for earlier ones.
    /// Others may gather from here on.
    pub fn depart(&self, flight: Flight, waiting: usize) {
        let mut state = self.state.lock();
        let aboard: usize = state.in_air().map(|entry| entry.sessions).sum();
        // The gatherer is in no list.
        let sessions = waiting.saturating_sub(aboard) + 1;
        state.flights.push_back(Entry { flight, has_landed: false, sessions });
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

    /// The flight that ends at `end` has landed at `now`, in nanoseconds. If true, the caller is
    /// the publisher.
    pub fn land(&self, end: u64, now: u64) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let found = state.flights.iter_mut().find(|entry| entry.flight.end == end);
        let entry = found.expect("it departed and was not published");
        entry.has_landed = true;
        state.depth.note(entry.sessions, now);
        let publishes = !state.publishing && state.flights[0].has_landed;
        state.publishing |= publishes;
        self.show(state);
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

    fn show(&self, state: &State) {
        // Relaxed: changed under the lock, and the last flight is this lock's too.
        let departed = self.shared.departed.load(Ordering::Relaxed);
        let open = departed.is_multiple_of(BLOCK) || state.flights.back().is_none_or(|last| last.has_landed);
        // Landed flights that wait for an earlier one are bounded too.
        let room = state.flights.len() < 2 * MOST && state.in_air().count() < state.depth.most();
        // Relaxed: see `is_busy`.
        self.shared.busy.store(state.gathering || !open || !room, Ordering::Relaxed);
    }
}

impl State {
    /// The flights that have not landed.
    fn in_air(&self) -> impl Iterator<Item = &Entry> {
        self.flights.iter().filter(|entry| !entry.has_landed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Ends windows in which a depth serves so many sessions a second. Returns the depth at the
    /// end.
    fn depth_for(served: impl Fn(usize) -> u64) -> usize {
        let mut depth = Depth::new();
        for window in 1..2000 {
            let now = window * WINDOW;
            depth.note((served(depth.most()) / 100) as usize, now);
        }
        1 << depth.step
    }

    #[test]
    fn as_many_writes_depart_as_serve_most_sessions() {
        // A disk that serves one write at a time, or processors that are busy.
        assert_eq!(depth_for(|depth| 20_000 - 1_500 * depth as u64), 1);
        // A disk that serves many.
        assert_eq!(depth_for(|depth| 10_000 * depth as u64), MOST);
        // One that serves four.
        assert_eq!(depth_for(|depth| if depth > 4 { 36_000 } else { 10_000 * depth as u64 }), 4);
        // Nothing to gain and nothing to lose.
        assert_eq!(depth_for(|_| 10_000), MOST);
    }

    #[test]
    fn a_pause_tells_nothing_of_the_depth() {
        let mut depth = Depth::new();
        let mut now = 0;
        for round in 0..2000 {
            // Each trial falls into a pause.
            let pause = depth.tried != depth.step || round % 7 == 0;
            now += if pause { 20 * WINDOW } else { WINDOW };
            depth.note(100, now);
        }
        assert_eq!(depth.step, STEPS);
    }

    #[test]
    fn flights_that_land_in_any_order_are_published_in_theirs() {
        let flights = Flights::new(0);
        let ends = [1, 3, 4].map(|blocks| flights.departed() + blocks * BLOCK);
        for end in ends {
            assert!(flights.begin() && !flights.begin());
            flights.depart(Flight { end, filled: end }, 0);
        }
        assert!(!flights.land(ends[1], 1));
        assert!(flights.land(ends[0], 1));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[0]));
        // Lands while there is a publisher, which takes it.
        assert!(!flights.land(ends[2], 1));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[1]));
        assert_eq!(flights.next_landed().map(|flight| flight.end), Some(ends[2]));
        assert_eq!(flights.next_landed(), None);
    }

    #[test]
    fn nobody_gathers_while_a_block_is_partly_in_flight() {
        let flights = Flights::new(100);
        assert!(flights.begin());
        flights.depart(Flight { end: 200, filled: 200 }, 0);
        assert!(flights.is_busy() && !flights.begin());
        assert!(flights.land(200, 1) && flights.next_landed().is_some() && flights.next_landed().is_none());
        assert!(flights.begin());
        flights.abandon();
        assert!(!flights.is_busy());
    }
}
