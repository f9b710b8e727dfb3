//! What the live view knows: the round under way, its throughput over the last while, and the points so far.

use std::collections::VecDeque;
use std::time::Duration;

use crate::figures;
use crate::record::{Latency, Point, Round};
use crate::sweep::Stage;

/// How many samples the sparkline has at most.
const SAMPLES: usize = 240;
/// How many notes are kept.
const NOTES: usize = 3;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct State {
    pub stage: Option<Stage>,
    /// Since the round began.
    pub since: Duration,
    /// Transactions a second between the last two ticks.
    pub tps: Option<f64>,
    /// The same, tick for tick.
    pub samples: VecDeque<u64>,
    /// The last tick.
    last: (u64, Duration, Duration),
    /// Mean latency between the last two ticks, in milliseconds, where the driver knows it.
    pub latency: Option<f64>,
    /// Of the round that was over last.
    pub last_latency: Option<Latency>,
    /// Rows of the points so far, the newest last.
    pub points: Vec<Row>,
    /// The last lines worth reading.
    pub notes: VecDeque<String>,
}

/// A point so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub arm: String,
    pub workload: String,
    pub clients: usize,
    pub tps: String,
    pub spread: String,
    pub p99: String,
    pub rounds: usize,
}

impl State {
    pub fn begin(&mut self, stage: &Stage) {
        self.stage = Some(stage.clone());
        self.since = Duration::ZERO;
        self.last = Default::default();
        (self.tps, self.latency) = (None, None);
        self.samples.clear();
    }

    pub fn tick(&mut self, done: u64, spent: Duration, since: Duration) {
        self.since = since;
        let (before, spent_before, then) = std::mem::replace(&mut self.last, (done, spent, since));
        let passed = since.saturating_sub(then).as_secs_f64();
        if passed <= 0.0 {
            return;
        }
        let done = done.saturating_sub(before) as f64;
        let spent = spent.saturating_sub(spent_before).as_secs_f64() * 1e3;
        self.latency = (spent > 0.0 && done > 0.0).then(|| spent / done);
        let tps = done / passed;
        self.tps = Some(tps);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(tps as u64);
    }

    /// Until the run ends: what it was when the round began, less the time since.
    pub fn left(&self) -> Option<Duration> {
        Some(self.stage.as_ref()?.left?.saturating_sub(self.since))
    }

    /// The part of the run that is over, this round's own included.
    pub fn progress(&self) -> f64 {
        let Some(stage) = &self.stage else { return 0.0 };
        let to_come = (1 + stage.rounds_ahead) as f64;
        let round = stage.left.map_or(0.0, |left| left.as_secs_f64() / to_come);
        let part = if round > 0.0 { (self.since.as_secs_f64() / round).min(1.0) } else { 0.0 };
        (stage.rounds_done as f64 + part) / (stage.rounds_done as f64 + to_come)
    }

    pub fn end(&mut self, round: &Round, point: &Point) {
        self.last_latency = Some(round.latency);
        let row = Row {
            arm: figures::plain(&point.arm),
            workload: figures::plain(&point.workload),
            clients: point.clients,
            tps: figures::number(point.tps.value),
            spread: figures::spread(&point.tps),
            p99: figures::number(point.latency().p99),
            rounds: point.rounds.len(),
        };
        let same =
            |one: &Row| one.arm == row.arm && one.workload == row.workload && one.clients == row.clients;
        self.points.retain(|one| !same(one));
        self.points.push(row);
    }

    pub fn note(&mut self, line: &str) {
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(figures::plain(line));
    }
}

/// Hours, minutes and seconds as one says them: `1:02:03`, `2:03`, `3 s`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::samples;

    /// A stage of a run of ten rounds.
    pub fn stage(point: &Point, done: usize) -> Stage {
        Stage {
            arm: point.arm.clone(),
            workload: point.workload.clone(),
            protocol: point.protocol,
            clients: point.clients,
            pass: 0,
            rounds_done: done,
            rounds_ahead: 9 - done,
            left: Some(Duration::from_secs(125)),
        }
    }

    #[test]
    fn throughput_now_is_that_between_two_ticks_and_a_point_has_one_row() {
        let report = samples::two_arms();
        let mut state = State::default();
        state.begin(&stage(&report.points[0], 0));
        state.tick(500, Duration::from_secs(1), Duration::from_millis(500));
        assert_eq!(state.latency, Some(2.0));
        state.tick(500, Duration::from_secs(1), Duration::from_millis(500));
        state.tick(2_500, Duration::from_secs(9), Duration::from_secs(1));
        assert_eq!((state.tps, state.latency), (Some(4_000.0), Some(4.0)));
        assert_eq!(state.samples, [1_000, 4_000]);
        for point in [&report.points[0], &report.points[1], &report.points[0]] {
            state.end(&point.rounds[0], point);
        }
        let arms: Vec<_> = state.points.iter().map(|row| row.arm.as_str()).collect();
        assert_eq!(arms, ["pg18", "allcore"]);
        state.begin(&stage(&report.points[1], 1));
        assert_eq!((state.tps, state.samples.len()), (None, 0));
        for line in ["a", "b", "c", "d\u{1b}[2J"] {
            state.note(line);
        }
        assert_eq!(state.notes, ["b", "c", "d [2J"]);
    }

    #[test]
    fn time_left_and_progress_go_on_within_a_round() {
        let report = samples::two_arms();
        let mut state = State::default();
        assert_eq!((state.left(), state.progress()), (None, 0.0));
        // Five rounds of ten are over, and the other five take 25 seconds each.
        state.begin(&stage(&report.points[0], 5));
        assert_eq!((state.left(), state.progress()), (Some(Duration::from_secs(125)), 0.5));
        state.tick(1, Duration::ZERO, Duration::from_secs(20));
        assert_eq!(state.left(), Some(Duration::from_secs(105)));
        assert!((state.progress() - 0.58).abs() < 1e-9, "{}", state.progress());
        assert_eq!(state.latency, None);
        // A round that takes longer than was thought is still one round.
        state.tick(2, Duration::ZERO, Duration::from_secs(500));
        assert_eq!((state.left(), state.progress()), (Some(Duration::ZERO), 0.6));
    }

    #[test]
    fn times_are_said_briefly() {
        let all = [3, 123, 3723].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(all, ["3 s", "2:03", "1:02:03"]);
    }
}
