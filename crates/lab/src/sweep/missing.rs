//! Points that a sweep did not measure, or not precisely enough, and the reasons.

use super::plan::{Cell, Cells, width};
use super::{End, Plan};
use crate::figures;

#[derive(Debug, Default)]
pub(super) struct Missing {
    /// One for each arm and reason, with all clients.
    failures: Vec<Failure>,
    /// Points with clients that could not go on: a sentence each.
    pub(super) lost: Vec<String>,
}

/// A point at which an arm failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) arm: String,
    /// Their numbers of clients.
    pub(super) clients: Vec<usize>,
    /// The number of good rounds before.
    pub(super) after: usize,
    pub(super) reason: String,
}

impl Failure {
    pub(super) fn sentence(&self) -> String {
        let Self { arm, clients, after, reason } = self;
        let from = if *after == 0 { String::new() } else { format!(", from round {} on", after + 1) };
        format!("{arm} at {}{from}: {reason}", figures::counted(clients))
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.arm, self.after, &self.reason) == (&other.arm, other.after, &other.reason)
    }
}

impl Missing {
    pub(super) fn add(&mut self, failure: Failure) {
        match self.failures.iter_mut().find(|one| one.is_like(&failure)) {
            Some(one) => one.clients.extend(failure.clients),
            None => self.failures.push(failure),
        }
    }

    /// The sweep's missing parts at its end: a sentence for each reason, and the arms with
    /// intervals wider than asked.
    pub(super) fn sentences(self, cells: &Cells, plan: &Plan, end: End) -> (Vec<String>, Vec<String>) {
        let mut sentences: Vec<String> = self.failures.iter().map(Failure::sentence).collect();
        sentences.extend(self.lost);
        let why = match end {
            End::Done => "",
            End::Time => ", because the time was up",
            End::Stopped => ", because the run was stopped",
        };
        let because = |sentence: String| sentence + why;
        sentences.extend(cells.arms().filter_map(|arm| unmeasured(&arm)).map(because));
        (sentences, cells.arms().filter_map(|arm| too_wide(&arm, plan)).map(because).collect())
    }
}

fn unmeasured(arm: &[&Cell]) -> Option<String> {
    let cells: Vec<&&Cell> = arm.iter().filter(|cell| !cell.failed && cell.point.rounds.is_empty()).collect();
    let counts: Vec<usize> = cells.iter().map(|cell| cell.point.clients).collect();
    Some(format!("{} was not measured at {}", cells.first()?.point.arm, figures::counted(&counts)))
}

/// A single round, if the plan has only one, needs no interval.
fn too_wide(arm: &[&Cell], plan: &Plan) -> Option<String> {
    if plan.most_rounds < 2 {
        return None;
    }
    let wide: Vec<&&Cell> =
        arm.iter().filter(|cell| !cell.point.rounds.is_empty() && !cell.is_done(plan)).collect();
    let word = |cell: &&&Cell| {
        let point = &cell.point;
        match width(&point.judged()) {
            Some(width) => {
                format!("{} with {} after {} rounds", figures::wide(width), point.clients, point.rounds.len())
            }
            None => format!("unknown with {} after a single round", point.clients),
        }
    };
    let words: Vec<String> = wide.iter().map(word).collect();
    let wanted = plan.width * 100.0;
    let arm = &wide.first()?.point.arm;
    Some(format!(
        "{arm} has intervals wider than the {wanted:.1}% asked for, by clients: {}",
        words.join(", ")
    ))
}
