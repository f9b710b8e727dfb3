//! Conclusions from a report's figures, as plain sentences: the verdict, and the findings by
//! importance. Findings cover failures, the shape of each arm's curve and where it turns, and the
//! costs that grew there. They also cover steadiness and the scalability law.
//!
//! What must hold:
//! 1. Each sentence rests on measurements. A difference inside the noise is none, and a conclusion
//!    from single rounds says so.
//! 2. Findings report growth with both figures, and claim no cause. The reader concludes.
//! 3. Throughput of an open loop is the requested rate: findings report only whether the server
//!    held it.

mod curve;
mod growth;
mod law;
mod rate;
mod settled;
mod verdict;

use crate::record::{Fit, Point, Report};
use crate::report::groups::{Group, groups};
use crate::stats::{arm_drift, fit};

/// Derives a report's fits, findings and verdict from its points.
pub fn conclude(report: &mut Report) {
    report.fits = fits(report);
    report.findings = findings(report);
    report.verdict = verdict::verdict(report);
}

/// How much a finding matters; the first come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Failure,
    /// Throughput falls beyond its highest point, or a rate is not held.
    Fall,
    /// The curve's shape otherwise.
    Shape,
    /// Symbols, waits and counts that grew, and CPUs that were short.
    Growth,
    /// Rounds or arms that were not steady.
    Steadiness,
    Law,
}

/// The beginning of the sentences on an arm's points.
fn name(report: &Report, group: &Group<'_>, arm: &str) -> String {
    let several = report.points.iter().any(|point| point.protocol != group.protocol);
    let protocol = if several { format!(", {}", group.protocol.name()) } else { String::new() };
    format!("{arm}, {}{protocol}", group.workload)
}

/// An arm's points with a throughput, by rising clients.
fn measured<'a>(group: &Group<'a>, arm: &str) -> Vec<&'a Point> {
    group.line(arm).into_iter().filter(|point| point.tps.value.is_finite()).collect()
}

/// The scalability law fitted to the points of each arm, workload and protocol.
fn fits(report: &Report) -> Vec<Fit> {
    let groups = groups(report).into_iter().filter(|group| !group.is_open());
    groups
        .flat_map(|group| group.arms.iter().filter_map(|arm| fit(&measured(&group, arm))).collect::<Vec<_>>())
        .collect()
}

/// All findings of a report's points and fits, by rank.
fn findings(report: &Report) -> Vec<String> {
    let mut ranked: Vec<(Rank, String)> = Vec::new();
    for group in groups(report) {
        for arm in &group.arms {
            let (points, name) = (measured(&group, arm), name(report, &group, arm));
            let mut say = |rank, said: Vec<String>| {
                ranked.extend(said.into_iter().map(|sentence| (rank, format!("{name}: {sentence}."))));
            };
            say(Rank::Failure, curve::failures(&points).into_iter().collect());
            if group.is_open() {
                let (held, missed) = rate::held(&points);
                say(Rank::Fall, missed);
                say(Rank::Shape, held.into_iter().collect());
                continue;
            }
            let falls = group.turn(arm).is_some_and(|turn| turn.fallen.is_some());
            say(if falls { Rank::Fall } else { Rank::Shape }, curve::shape(&points));
            say(Rank::Growth, growth::grown(&points));
            say(Rank::Steadiness, settled::unsteady(&points));
            say(Rank::Law, group.fit(arm).map(|fit| law::sentence(fit, &points)).into_iter().collect());
        }
    }
    ranked.extend(arm_drift(&report.points).into_iter().map(|sentence| (Rank::Steadiness, sentence)));
    ranked.sort_by_key(|one| one.0);
    ranked.into_iter().map(|one| one.1).collect()
}

#[cfg(test)]
mod tests;
