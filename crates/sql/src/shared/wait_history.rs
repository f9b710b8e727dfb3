//! Samples of what sessions wait for: the rows of `allcore_wait_history`.
//!
//! While the history runs, a fiber on the last core looks at the activity table once in an
//! interval. It keeps the wait event of each session that is not idle. Sessions pay nothing. What
//! must hold:
//!
//! 1. At most [`SAMPLES_MAX`] samples are kept, in at most [`ROUNDS_MAX`] rounds; the oldest go
//!    first.
//! 2. One fiber samples at a time: a start or stop takes the next turn, and a fiber whose turn is
//!    over ends.
//! 3. Nobody makes or drops a sample while it holds the lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use catalog::pg_catalog::WaitSample;
use runtime::fiber;
use runtime::wait_event::WaitEvent;
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
        let mut rounds = VecDeque::with_capacity(ROUNDS_MAX);
        {
            let mut kept = self.kept.lock();
            kept.samples = 0;
            std::mem::swap(&mut kept.rounds, &mut rounds);
        }
        drop(rounds);
    }

    fn is_turn(&self, turn: u64) -> bool {
        self.kept.lock().turn == turn
    }

    /// All samples, oldest first.
    pub fn samples(&self) -> Vec<WaitSample> {
        let (mut samples, mut from) = (Vec::new(), 0);
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
                return samples;
            }
            samples.extend(some.iter().flatten().flat_map(|round| round.iter().cloned()));
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
    let busy = activity.list().into_iter().filter(|one| one.state != State::Idle);
    busy.map(|one| WaitSample {
        time,
        pid: one.session as i32,
        waits: one.wait_event.map(WaitEvent::names),
        state: one.state.as_str(),
        statement: (one.statement != 0).then_some(one.statement),
        query: beginning(one.query),
    })
    .collect()
}

/// The first bytes of a text, up to the end of a character.
fn beginning(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX));
    text.shrink_to_fit();
    text
}

/// Samples once in `interval` from now on, instead of as often as before.
pub(crate) fn start(shared: &Arc<Shared>, interval: Duration) {
    let turn = shared.wait_history.next_turn();
    let weak = Arc::downgrade(shared);
    let core = shared.runtime.core_count() - 1;
    shared.runtime.spawn(core, move || {
        let mut next = runtime::time::precise();
        loop {
            let Some(shared) = weak.upgrade().filter(|shared| !shared.autovacuum.is_closed()) else { return };
            let history = &shared.wait_history;
            let now = runtime::time::precise();
            if now < next {
                if !history.is_turn(turn) {
                    return;
                }
                drop(shared);
                fiber::sleep(Duration::from_nanos(next - now).min(TICK));
                continue;
            }
            let round = sample(&shared.activity);
            if !round.is_empty() && !history.keep(turn, round) || !history.is_turn(turn) {
                return;
            }
            // A late sampler leaves rounds out.
            next = (next + interval.as_nanos() as u64).max(now);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let samples = history.samples();
        assert_eq!(samples.len(), 65_000);
        assert_eq!((samples[0].time, samples.last().unwrap().time), (35, 99));
        assert!(samples.is_sorted_by_key(|sample| sample.time));
        for time in 100..100 + 2 * ROUNDS_MAX as i64 {
            assert!(history.keep(turn, round(1, time)));
        }
        assert_eq!(history.samples().len(), ROUNDS_MAX);
        history.reset();
        assert_eq!(history.samples(), []);
    }

    #[test]
    fn a_sampler_whose_turn_is_over_keeps_nothing() {
        let history = WaitHistory::new();
        let turn = history.next_turn();
        history.stop();
        assert!(!history.keep(turn, round(1, 0)));
        assert_eq!(history.samples(), []);
    }

    #[test]
    fn a_statement_is_cut_between_characters() {
        assert_eq!(beginning("a".repeat(99) + "é"), "a".repeat(99));
        assert_eq!(beginning("é".repeat(60)), "é".repeat(50));
        assert_eq!(beginning("select 1".to_owned()), "select 1");
    }
}
