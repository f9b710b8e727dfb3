//! Whom a sweep tells how far it is.

use std::time::Duration;

use crate::load::Protocol;
use crate::record::{Point, Round};

/// A round, and how far the run is with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Name of the arm.
    pub arm: String,
    /// Name of the workload.
    pub workload: String,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Connections.
    pub clients: usize,
    /// Which pass over the points it belongs to, from 0.
    pub pass: u32,
    /// Rounds that are over.
    pub rounds_done: usize,
    /// Rounds that are planned after this one, as far as can be told.
    pub rounds_ahead: usize,
    /// Until the run ends, as far as can be told.
    pub left: Option<Duration>,
}

/// Whom a sweep tells how far it is. Nothing of it is on the load loop.
pub trait Progress: Send {
    /// A round begins.
    fn begin(&mut self, stage: &Stage);

    /// While a round runs, a few times each second: transactions done since it began (warm-up included), what they took
    /// together (zero where the driver doesn't know), and how long ago it began.
    fn tick(&mut self, done: u64, spent: Duration, since: Duration);

    /// The round that began last is over; its point as it now is, with all rounds so far.
    fn end(&mut self, round: &Round, point: &Point);

    /// Something worth a line: an arm that is given up, clients that could not go on.
    fn note(&mut self, line: &str);
}
