//! How the arms compare with the first.

use super::Group;
use super::words::{clients, list, number};
use crate::report::{Interval, Point, Report};
use crate::stats::{Verdict, verdict};

/// A sentence for each arm and workload but the first arm's.
pub(super) fn arms(report: &Report) -> Vec<String> {
    let Some(first) = report.points.first().map(|point| point.arm.clone()) else { return Vec::new() };
    let groups = Group::all(&report.points);
    groups
        .iter()
        .filter(|group| group.points[0].arm != first)
        .filter_map(|group| against(&first, group))
        .collect()
}

fn against(first: &str, group: &Group<'_>) -> Option<String> {
    let of = |wanted: Verdict| -> Vec<(&Point, Interval)> {
        let ratios = group.points.iter().filter_map(|point| Some((*point, point.ratio?)));
        ratios.filter(|(_, ratio)| verdict(ratio) == wanted).collect()
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
            let counts: Vec<String> = points.iter().map(|(point, _)| point.clients.to_string()).collect();
            let noun = if counts == ["1"] { "client" } else { "clients" };
            parts.push(format!("{how} {} {noun}", list(&counts)));
        }
    }
    let name = group.name();
    (!parts.is_empty()).then(|| format!("{name}, against {first}: {}.", parts.join("; ")))
}

fn times((point, ratio): &(&Point, Interval)) -> String {
    let (low, high) = (number(ratio.low), number(ratio.high));
    format!("{} ({} times, {low} to {high})", clients(point.clients), number(ratio.value))
}
