//! Findings: what a report's figures say, as plain sentences. For each arm the shape of its curve and where it turns, what
//! grew there, whether its rounds were steady, what the scalability law makes of it, how the arms compare, what failed, and
//! whether the machine kept still.
//!
//! What must hold:
//! 1. A sentence stands only on what was measured: no figure, no sentence; a difference inside the noise is none, and what
//!    single rounds show is told as no more than that.
//! 2. What grew is told as what grew, with both figures, not as a cause; the reader draws the conclusion.
//! 3. Throughput of an open loop is what was asked for: whether it was held is told, and nothing else made of it.

mod comparison;
mod curve;
mod growth;
mod law;
mod rate;
mod settled;

use crate::record::{Fit, Point, Report};
use crate::report::groups::{Group, groups};
use crate::stats::{drift, fit};

/// Works out what a report's points say: its fits and its findings.
pub fn conclude(report: &mut Report) {
    let (fits, refused) = fits(report);
    report.fits = fits;
    report.findings = sentences(report);
    report.findings.extend(refused);
}

/// How the sentences on an arm's points begin.
fn name(report: &Report, group: &Group<'_>, arm: &str) -> String {
    let several = report.points.iter().any(|point| point.protocol != group.protocol);
    let protocol = if several { format!(", {}", group.protocol.name()) } else { String::new() };
    format!("{arm}, {}{protocol}", group.workload)
}

/// An arm's points that gave a number, by rising clients.
fn measured<'a>(group: &Group<'a>, arm: &str) -> Vec<&'a Point> {
    group.line(arm).into_iter().filter(|point| point.tps.value.is_finite()).collect()
}

/// The scalability law through the points of each arm, workload and protocol, and why there is none where there is none.
fn fits(report: &Report) -> (Vec<Fit>, Vec<String>) {
    let (mut fits, mut refused) = (Vec::new(), Vec::new());
    for group in groups(report).iter().filter(|group| !group.is_open()) {
        for arm in &group.arms {
            let points = measured(group, arm);
            // Nobody expects a curve of a single point.
            if points.len() < 2 {
                continue;
            }
            match fit(&points) {
                Ok(fit) => fits.push(fit),
                Err(reason) => refused.push(format!("{}: {reason}.", name(report, group, arm))),
            }
        }
    }
    (fits, refused)
}

/// What points and fits say; findings that are there already are not looked at.
fn sentences(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    for group in groups(report) {
        for arm in &group.arms {
            let points = measured(&group, arm);
            let mut said = match group.is_open() {
                true => rate::held(&points),
                false => [curve::shape(&points), growth::grown(&points), settled::unsteady(&points)].concat(),
            };
            said.extend(group.fit(arm).map(|fit| law::sentence(fit, &points)));
            said.extend(curve::failures(&points));
            let name = name(report, &group, arm);
            sentences.extend(said.into_iter().map(|sentence| format!("{name}: {sentence}.")));
        }
    }
    sentences.extend(comparison::arms(report));
    sentences.extend(drift(&report.machine.noise, &report.points));
    sentences
}

#[cfg(test)]
mod tests;
