//! Samples of what sessions wait for: the rows of `allcore_wait_history`.
//!
//! While the history runs, a fiber on the service worker looks at the activity table once in an
//! interval. It keeps the wait event of each session that is not idle. It is on no core, since a
//! fiber never sees that the session of its own core runs. Sessions pay nothing. What must hold:
//!
//! 1. At most [`SAMPLES_MAX`] samples are kept, in at most [`ROUNDS_MAX`] rounds; the oldest go
//!    first.
//! 2. One fiber samples at a time: a start or stop takes the next turn, and a fiber whose turn is
//!    over ends.
//! 3. Nobody makes or drops a sample while it holds the lock.
//! 4. The sampler sleeps after each look, at least for as long as the look took. So however many
//!    sessions there are, it lets others run and sees that it is to stop.
//! 5. The memory of samples counts for the process alone, also where a session drops them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use catalog::pg_catalog::WaitSample;
use runtime::wait_event::WaitEvent;
use runtime::{account, fiber};
use sync::SpinLock;

use super::Shared;
use crate::activity::{ActivityTable, State};
use crate::clock::clock;

/// Samples that are kept, at most: some 15 MB with their texts.
const SAMPLES_MAX: usize = 65_536;
/// Rounds of samples that are kept, at most.
const ROUNDS_MAX: usize = 4096;
/// Bytes of a statement's text that a sample has.
const TEXT_MAX: usize = 100;
/// Rounds that a reader takes under one lock.
const ROUNDS_A_LOCK: usize = 64;
/// Slots of the activity table that the sampler looks at between two safe points.
const SLOTS_A_POINT: usize = 16;
/// The longest time between two looks whether the history was stopped.
const TICK: Duration = Duration::from_millis(100);

/// The history of a database.
pub(crate) struct WaitHistory {
    kept: SpinLock<Kept>,
}

struct Kept {
    /// Goes up with each start and stop.
    turn: u64,
    /// The rounds, oldest first, each with its number.
    rounds: VecDeque<(u64, Arc<[WaitSample]>)>,
    samples: usize,
    next: u64,
}

impl WaitHistory {
    pub fn new() -> WaitHistory {
        let rounds = VecDeque::with_capacity(ROUNDS_MAX);
        let kept = Kept { turn: 0, rounds, samples: 0, next: 0 };
        WaitHistory { kept: SpinLock::new(&"wait history", kept) }
    }

    /// Ends the sampling; the samples stay.
    pub fn stop(&self) {
        self.next_turn();
    }

    /// Ends the turn of the fiber that samples; returns the next one.
    fn next_turn(&self) -> u64 {
        let mut kept = self.kept.lock();
        kept.turn += 1;
        kept.turn
    }

    /// Forgets all samples.
    pub fn reset(&self) {
        let mut rounds = VecDeque::new();
        account::charged_to_nobody(|| rounds.reserve_exact(ROUNDS_MAX));
        {
            let mut kept = self.kept.lock();
            kept.samples = 0;
            std::mem::swap(&mut kept.rounds, &mut rounds);
        }
        while let Some(round) = rounds.pop_front() {
            account::charged_to_nobody(|| drop(round));
            fiber::safe_point();
        }
        account::charged_to_nobody(|| drop(rounds));
    }

    fn is_turn(&self, turn: u64) -> bool {
        self.kept.lock().turn == turn
    }

    /// Shows all samples, oldest first, until `show` fails.
    pub fn samples<E>(&self, mut show: impl FnMut(&WaitSample) -> Result<(), E>) -> Result<(), E> {
        let mut from = 0;
        loop {
            let mut some: [Option<Arc<[WaitSample]>>; ROUNDS_A_LOCK] = [const { None }; ROUNDS_A_LOCK];
            {
                let kept = self.kept.lock();
                let first = kept.rounds.partition_point(|(number, _)| *number < from);
                for (to, (number, round)) in some.iter_mut().zip(kept.rounds.range(first..)) {
                    *to = Some(Arc::clone(round));
                    from = number + 1;
                }
            }
            if some[0].is_none() {
                return Ok(());
            }
            let shown = some.iter().flatten().flat_map(|round| round.iter()).try_for_each(&mut show);
            // The last one to drop a round may be this reader.
            account::charged_to_nobody(|| drop(some));
            shown?;
            fiber::safe_point();
        }
    }

    /// Keeps a round, and lets old ones go. False if the turn is over.
    fn keep(&self, turn: u64, round: Arc<[WaitSample]>) -> bool {
        loop {
            let old = {
                let mut kept = self.kept.lock();
                if kept.turn != turn {
                    return false;
                }
                let fits = kept.samples + round.len() <= SAMPLES_MAX && kept.rounds.len() < ROUNDS_MAX;
                if fits || kept.rounds.is_empty() {
                    let number = kept.next;
                    kept.next += 1;
                    kept.samples += round.len();
                    kept.rounds.push_back((number, round));
                    return true;
                }
                let old = kept.rounds.pop_front();
                kept.samples -= old.as_ref().map_or(0, |(_, round)| round.len());
                old
            };
            drop(old);
        }
    }
}

/// The wait event of each session that is not idle.
fn sample(activity: &ActivityTable) -> Arc<[WaitSample]> {
    let time = clock();
    let mut round = Vec::new();
    let looks = activity.look(|state| state != State::Idle, TEXT_MAX);
    for (slot, seen) in looks.enumerate() {
        round.extend(seen.map(|one| WaitSample {
            time,
            pid: one.session as i32,
            waits: one.wait_event.map(WaitEvent::names),
            state: one.state.as_str(),
            statement: (one.statement != 0).then_some(one.statement),
            query: one.query,
        }));
        if slot % SLOTS_A_POINT == SLOTS_A_POINT - 1 {
            fiber::safe_point();
        }
    }
    round.into()
}

/// Samples once in `interval` from now on, instead of as often as before.
pub(crate) fn start(shared: &Arc<Shared>, interval: Duration) {
    let turn = shared.wait_history.next_turn();
    let weak = Arc::downgrade(shared);
    let running = move || {
        let shared = weak.upgrade()?;
        (!shared.autovacuum.is_closed() && shared.wait_history.is_turn(turn)).then_some(shared)
    };
    shared.runtime.spawn(shared.runtime.service_worker(), move || {
        repeat(interval, running, |shared| {
            let round = sample(&shared.activity);
            if !round.is_empty() {
                shared.wait_history.keep(turn, round);
            }
        });
    });
}

/// Calls `look` once in `interval` with what `running` gives, until that is nothing.
fn repeat<T>(interval: Duration, running: impl Fn() -> Option<T>, look: impl Fn(T)) {
    let interval = interval.as_nanos() as u64;
    let mut next = runtime::time::precise();
    while let Some(with) = running() {
        let begun = runtime::time::precise();
        look(with);
        let ended = runtime::time::precise();
        let lasted = ended.saturating_sub(begun);
        next += interval;
        if next < ended + lasted {
            // A late sampler leaves looks out.
            next = ended + interval.max(lasted);
        }
        let mut now = ended;
        while now < next && running().is_some() {
            fiber::sleep(Duration::from_nanos(next - now).min(TICK));
            now = runtime::time::precise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Options, Runtime};
    use sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn all(history: &WaitHistory) -> Vec<WaitSample> {
        let mut samples = Vec::new();
        let Ok(()) = history.samples(|sample| {
            samples.push(sample.clone());
            Ok::<(), std::convert::Infallible>(())
        });
        samples
    }

    fn round(sessions: usize, time: i64) -> Arc<[WaitSample]> {
        let one = |pid| WaitSample {
            time,
            pid: pid as i32,
            waits: None,
            state: "active",
            statement: None,
            query: String::new(),
        };
        (0..sessions).map(one).collect()
    }

    #[test]
    fn the_oldest_samples_go_first() {
        let history = WaitHistory::new();
        let turn = history.next_turn();
        for time in 0..100 {
            assert!(history.keep(turn, round(1000, time)));
        }
        let samples = all(&history);
        assert_eq!(samples.len(), 65_000);
        assert_eq!((samples[0].time, samples.last().unwrap().time), (35, 99));
        assert!(samples.is_sorted_by_key(|sample| sample.time));
        for time in 100..100 + 2 * ROUNDS_MAX as i64 {
            assert!(history.keep(turn, round(1, time)));
        }
        assert_eq!(all(&history).len(), ROUNDS_MAX);
        history.reset();
        assert_eq!(all(&history), []);
    }

    #[test]
    fn a_sampler_whose_turn_is_over_keeps_nothing() {
        let history = WaitHistory::new();
        let turn = history.next_turn();
        history.stop();
        assert!(!history.keep(turn, round(1, 0)));
        assert_eq!(all(&history), []);
    }

    #[test]
    fn a_sampler_whose_looks_last_longer_than_its_interval_lets_others_run_and_stops() {
        let runtime = Runtime::start(Options { cores: Some(1), ..Options::default() }).unwrap();
        let looks = Arc::new(AtomicUsize::new(0));
        let (running, looked) = (Arc::new(AtomicBool::new(true)), Arc::clone(&looks));
        let (runs, ended) = (Arc::clone(&running), Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&ended);
        runtime.spawn(0, move || {
            let running = || runs.load(Ordering::Acquire).then_some(());
            repeat(Duration::from_nanos(1), running, |()| {
                let until = runtime::time::precise() + 3_000_000;
                while runtime::time::precise() < until {}
                looked.fetch_add(1, Ordering::Release);
            });
            end.store(true, Ordering::Release);
        });
        // Others of its worker have their turns between its looks.
        let mut turns = 0;
        while looks.load(Ordering::Acquire) < 10 {
            runtime.call(0, || ());
            turns += 1;
        }
        assert!(turns >= 9, "{turns}");
        running.store(false, Ordering::Release);
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !ended.load(Ordering::Acquire) {
            assert!(std::time::Instant::now() < deadline, "the sampler does not stop");
            runtime.call(0, || ());
        }
    }
}
