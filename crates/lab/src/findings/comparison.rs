//! How the arms compare with the first.

use super::{measured, name};
use crate::figures::{clients, factor, list, whole};
use crate::record::Verdict;
use crate::record::{Interval, Point, Report};
use crate::report::groups::groups;

/// A sentence for each arm and workload but the first arm's, which all ratios are to: of throughput, and in an open loop, where
/// all do what is asked for, of p99.
pub(super) fn arms(report: &Report) -> Vec<String> {
    let Some(first) = report.arms.first().map(|arm| arm.name.as_str()) else { return Vec::new() };
    let mut said = Vec::new();
    for group in groups(report) {
        let by = if group.is_open() { " by p99" } else { "" };
        for arm in group.arms.iter().filter(|arm| **arm != first) {
            let against = against(&measured(&group, arm));
            let name = || name(report, &group, arm);
            said.extend(against.map(|parts| format!("{}, against {first}{by}: {parts}.", name())));
        }
    }
    said
}

fn against(points: &[&Point]) -> Option<String> {
    let of = |wanted: Verdict| -> Vec<(&Point, Interval)> {
        let ratios = points.iter().filter_map(|point| Some((*point, point.ratio?)));
        ratios.filter(|(_, ratio)| ratio.verdict() == wanted).collect()
    };
    let mut parts = Vec::new();
    for (wanted, how) in [(Verdict::More, "more"), (Verdict::Less, "less")] {
        let points = of(wanted);
        if !points.is_empty() {
            parts.push(format!("{how} with {}", list(&points.iter().map(times).collect::<Vec<_>>())));
        }
    }
    for (wanted, how) in [
        (Verdict::None, "no difference outside the noise with"),
        (Verdict::Unknown, "too few rounds to tell with"),
    ] {
        let points = of(wanted);
        if !points.is_empty() {
            let counts: Vec<String> = points.iter().map(|(point, _)| whole(point.clients as f64)).collect();
            let noun = if counts == ["1"] { "client" } else { "clients" };
            parts.push(format!("{how} {} {noun}", list(&counts)));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn times((point, ratio): &(&Point, Interval)) -> String {
    let (low, high) = (factor(ratio.low), factor(ratio.high));
    format!("{} ({} times, {low} to {high})", clients(point.clients), factor(ratio.value))
}
