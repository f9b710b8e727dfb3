//! The sweep: the choice, order and number of rounds, and their results.
//!
//! What must hold:
//! 1. Arms take turns: in each pass over the points, each point's arms run one right after the
//!    other. Every second pass has the opposite order, so that neither a drifting machine nor the
//!    first place favours an arm.
//! 2. The sweep measures a point until its interval is narrow enough. All arms that still run there
//!    go on together, so that each round has its pair.
//! 3. The sweep notes an arm that fails at a point with its reason, and leaves it out there. The
//!    arm's earlier rounds and other points stay, and the other arms go on.
//! 4. All arms of a point have the costly observations in the same rounds.
//! 5. The sweep runs nothing more on an arm whose server has ended.
//! 6. When the run is stopped or its time is up, the result has all measurements so far, and names
//!    the missing ones.

mod missing;
mod plan;
mod progress;
mod round;
mod steps;

use std::time::{Duration, Instant};

use sync::atomic::{AtomicBool, Ordering};

use crate::arm::Target;
use crate::drive::Driver;
use crate::figures;
use crate::load::Load;
use crate::observe::Observe;
use crate::record::{Interval, Noise, Point, Round};
use crate::stats::{estimate_positive, ratio};
use crate::workload::Workload;

pub use progress::{Progress, Stage};
pub use steps::steps;

use missing::{Failure, Missing};
use plan::Cells;

/// An arm as the sweep drives it.
pub struct Contender<'a> {
    /// The target of the load; the points have its arm's name.
    pub target: &'a Target,
    pub driver: &'a dyn Driver,
    pub workload: &'a dyn Workload,
    pub observer: &'a mut dyn Observe,
    /// Reports how the arm's server has ended; `None` while it runs, and for other servers than the
    /// lab's own.
    pub ended: Box<dyn FnMut() -> Option<String> + 'a>,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub clients: Vec<usize>,
    /// Each round's load; its clients are the point's, its threads at most as many, its seed
    /// differs in each pass.
    pub load: Load,
    /// A point is done when its interval is at most this part of its median wide.
    pub width: f64,
    /// The least number of rounds; at least 1.
    pub least_rounds: u32,
    pub most_rounds: u32,
    /// No round begins that would end later than this after the sweep's beginning. The first point
    /// has one round in any case.
    pub time: Option<Duration>,
}

/// The machine a sweep runs on: the real one, or a scripted one in tests.
pub trait Machine {
    /// Time since the run's beginning.
    fn now(&self) -> Duration;

    /// Writes the kernel's dirty data to disk, so that it does not write them in another arm's
    /// round.
    fn settle(&self);

    /// Runs the fixed loop; returns its time in milliseconds.
    fn fixed_loop(&self) -> f64;
}

#[derive(Debug)]
pub struct ThisMachine(Instant);

impl ThisMachine {
    /// The run begins now.
    pub fn begin() -> Self {
        Self(Instant::now())
    }
}

impl Machine for ThisMachine {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn settle(&self) {
        rustix::fs::sync();
    }

    fn fixed_loop(&self) -> f64 {
        crate::observe::fixed_loop()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// All points with at least one round, by clients, then in the order of the arms.
    pub points: Vec<Point>,
    /// Times of the fixed loop, one before each round.
    pub noise: Vec<Noise>,
    /// Missing measurements and their reasons: a sentence each.
    pub missing: Vec<String>,
    /// Arms with intervals wider than asked, and the reason: a sentence each.
    pub wide: Vec<String>,
}

/// Goes through the plan until all points are narrow enough, its time is up, or `stop` is set.
pub fn sweep(
    contenders: &mut [Contender<'_>],
    plan: &Plan,
    machine: &dyn Machine,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Swept {
    let began = machine.now();
    let cells = Cells::new(contenders, plan);
    let mut sweep =
        Sweep { plan, machine, stop, progress, began, cells, noise: Vec::new(), missing: Missing::default() };
    let why = sweep.passes(contenders);
    let (missing, wide) = sweep.missing.sentences(&sweep.cells, plan, why);
    Swept { points: sweep.cells.into_points(), noise: sweep.noise, missing, wide }
}

/// The reason why a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// No round was left to run.
    Done,
    /// Its time was up.
    Time,
    /// It was stopped.
    Stopped,
}

struct Sweep<'a> {
    plan: &'a Plan,
    machine: &'a dyn Machine,
    stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    began: Duration,
    cells: Cells,
    noise: Vec<Noise>,
    missing: Missing,
}

impl Sweep<'_> {
    fn passes(&mut self, contenders: &mut [Contender<'_>]) -> End {
        for pass in 0..self.plan.most_rounds {
            let due = self.cells.due(self.plan, pass);
            if due.is_empty() {
                break;
            }
            for &row in &due {
                if let Some(end) = self.turn(contenders, pass, row) {
                    return end;
                }
            }
        }
        End::Done
    }

    /// Runs one round of each arm at a point.
    fn turn(&mut self, contenders: &mut [Contender<'_>], pass: u32, row: usize) -> Option<End> {
        let arms = self.cells.order(row, pass);
        if self.is_stopped() {
            return Some(End::Stopped);
        }
        if self.left().is_some_and(|left| left < self.cells.cost(row, self.plan) * arms.len() as u32)
            && self.cells.any_round()
        {
            return Some(End::Time);
        }
        let deep = self.cells.deep(row);
        for arm in arms {
            self.round(&mut contenders[arm], pass, (row, arm), deep);
            if self.is_stopped() {
                return Some(End::Stopped);
            }
        }
        None
    }

    fn round(&mut self, contender: &mut Contender<'_>, pass: u32, (row, arm): (usize, usize), deep: bool) {
        if let Some(how) = (contender.ended)() {
            return self.lose(contender, arm, &how);
        }
        let began = self.machine.now();
        self.machine.settle();
        let at = self.machine.now();
        self.noise.push(Noise { at: at.as_secs_f64(), took: self.machine.fixed_loop() });
        let stage = self.stage(contender, row);
        self.progress.begin(&stage);
        let load = Load {
            clients: stage.clients,
            threads: self.plan.load.threads.clamp(1, stage.clients),
            seed: self.plan.load.seed.wrapping_add(u64::from(pass)),
            ..self.plan.load.clone()
        };
        let result = round::run(contender, &load, deep, self.stop, self.progress);
        let took = self.machine.now() - began;
        self.cells.run();
        let stopped = self.is_stopped();
        match result.and_then(|(measured, observed)| {
            round::round(contender.workload, &load, &measured, observed, pass, at, stopped)
        }) {
            Ok(round) => {
                self.cells.spent(row, took);
                self.keep(round, row, arm);
            }
            // A stopped round's own error does not count.
            Err(_) if stopped => {}
            Err(reason) => match soon(&mut contender.ended) {
                Some(how) => self.lose(contender, arm, &how),
                None => {
                    let after = self.cells.fail(row, arm);
                    let failure = Failure { clients: vec![stage.clients], after, arm: stage.arm, reason };
                    self.progress.note(&failure.sentence());
                    self.missing.add(failure);
                }
            },
        }
    }

    /// Notes how the arm's server has ended, and stops measuring it.
    fn lose(&mut self, contender: &Contender<'_>, arm: usize, how: &str) {
        let name = &contender.target.arm;
        self.progress.note(&format!("{name}: {how}"));
        for (clients, after) in self.cells.lose(arm, self.plan) {
            self.missing.add(Failure {
                arm: name.clone(),
                clients: vec![clients],
                after,
                reason: how.into(),
            });
        }
    }

    fn keep(&mut self, round: Round, row: usize, arm: usize) {
        let point = self.cells.point(row, arm);
        // A round that the stop cut short is better than none at all, and worse than whole ones.
        let short = round.elapsed < self.plan.load.measured.as_secs_f64() / 2.0;
        if short && self.is_stopped() && !point.rounds.is_empty() {
            return;
        }
        if let Some((lost, why)) = &round.lost_clients
            && point.rounds.iter().all(|earlier| earlier.lost_clients.is_none())
        {
            let line = format!(
                "{} at {}: {lost} of them could not go on: {why}",
                point.arm,
                figures::clients(point.clients)
            );
            self.progress.note(&line);
            self.missing.lost.push(line);
        }
        self.cells.add(row, arm, round);
        let point = self.cells.point(row, arm);
        let round = point.rounds.last().expect("it was added just now");
        self.progress.end(round, point);
    }

    fn stage(&self, contender: &Contender<'_>, row: usize) -> Stage {
        let (done, ahead) = self.cells.rounds(self.plan);
        Stage {
            arm: contender.target.arm.clone(),
            workload: contender.workload.name().into(),
            protocol: self.plan.load.protocol,
            clients: self.cells.clients(row),
            rounds_done: done,
            rounds_ahead: ahead,
        }
    }

    /// Time until the run's limit.
    fn left(&self) -> Option<Duration> {
        Some((self.began + self.plan.time?).saturating_sub(self.machine.now()))
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: the flag publishes nothing else.
        self.stop.load(Ordering::Relaxed)
    }
}

/// Waits briefly for a server's end: its connections break a moment before the system reports it.
fn soon(ended: &mut dyn FnMut() -> Option<String>) -> Option<String> {
    const LOOKS: u32 = 20;
    (0..LOOKS).find_map(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        ended()
    })
}

/// Computes the median of a point's rounds with its interval, and its ratio to the first arm's
/// rounds of the same passes.
fn summarise(point: &mut Point, first: Option<&Point>) {
    let tps: Vec<f64> = point.rounds.iter().map(|round| round.tps).collect();
    point.tps = estimate_positive(&tps);
    point.ratio = first.map(|first| ratio(first, point)).filter(|ratio: &Interval| ratio.value.is_finite());
}

#[cfg(test)]
mod tests;
