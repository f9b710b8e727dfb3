//! The receiver of a sweep's progress.

use std::time::Duration;

use crate::load::Protocol;
use crate::record::{Point, Round};

/// A round, and the run's progress at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub arm: String,
    pub workload: String,
    pub protocol: Protocol,
    pub clients: usize,
    pub rounds_done: usize,
    /// Planned rounds after this one, as far as known.
    pub rounds_ahead: usize,
}

/// Receives a sweep's progress. It is never on the load loop.
pub trait Progress: Send {
    fn begin(&mut self, stage: &Stage);

    /// Called a few times a second during a round, with the transactions done since it began
    /// (warm-up included), and the time since then.
    fn tick(&mut self, done: u64, since: Duration);

    /// The last round is over; `point` has all rounds so far.
    fn end(&mut self, round: &Round, point: &Point);

    /// An event worth a line: the sweep gives up an arm, or clients could not go on.
    fn note(&mut self, line: &str);
}
