//! The verdict: a report's first lines, for a reader in a hurry. They name the faults that
//! disqualify the run, then compare the arms.
//!
//! What must hold: a ratio inside the noise is no difference, and a ratio of single rounds is
//! marked as unproven.

use super::{measured, rate};
use crate::figures::{clients, list, number, percent, whole};
use crate::record::{Interval, Point, Report, Verdict};
use crate::report::groups::{Group, groups};
use crate::report::sheets;
use crate::stats;

/// Other programs that take at least this share of the CPU time distort the figures.
pub(super) const OTHERS: f64 = 0.1;

/// The driver's own lateness that hides a server's latency: its 95th percentile, in milliseconds.
const LATE: f64 = 0.1;

/// The verdict names at most this many points, and counts the others.
const NAMED: usize = 3;

/// The verdict's lines; those that disqualify the run come first.
pub(super) fn verdict(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = sheets::broken_checks(report);
    lines.iter_mut().for_each(|line| line.insert_str(0, "disqualified: broken data: "));
    lines.extend(over(report, OTHERS, |point| Some(point.cpu()?.other)).map(|(from, to, at)| {
        format!("disqualified: other programs took {} of the CPU time: {at}", range(from, to, percent))
    }));
    lines.extend(over(report, LATE, |point| Some(point.own_lag()?.p95)).map(|(from, to, at)| {
        let late = range(from, to, number);
        format!(
            "caution: the driver itself began transactions late, p95 {late} ms: {at}; latencies include that"
        )
    }));
    lines.extend(
        stats::machine_drift(&report.machine.noise).into_iter().map(|line| format!("caution: {line}")),
    );
    lines.extend(results(report));
    lines
}

/// The least and the greatest value that reach a bound, and their points.
fn over(report: &Report, bound: f64, of: impl Fn(&Point) -> Option<f64>) -> Option<(f64, f64, String)> {
    let reach: Vec<(&Point, f64)> = report
        .points
        .iter()
        .filter_map(|point| Some((point, of(point)?)))
        .filter(|one| one.1 >= bound)
        .collect();
    let least = reach.iter().map(|one| one.1).min_by(f64::total_cmp)?;
    let most = reach.iter().map(|one| one.1).max_by(f64::total_cmp)?;
    let name = |(point, _): &(&Point, f64)| format!("{} at {}", point.arm, clients(point.clients));
    let at = match reach.len() {
        1..=NAMED => list(&reach.iter().map(name).collect::<Vec<_>>()),
        count => format!("{count} of {} points", report.points.len()),
    };
    Some((least, most, at))
}

fn results(report: &Report) -> Vec<String> {
    let groups = groups(report);
    let Some(first) = report.arms.first().map(|arm| arm.name.as_str()).filter(|_| !groups.is_empty()) else {
        return vec!["nothing was measured".into()];
    };
    let mut lines = Vec::new();
    for group in &groups {
        let mut said = Vec::new();
        for arm in group.arms.iter().filter(|arm| **arm != first) {
            said.extend(against(group, first, arm));
        }
        let alone = said.is_empty();
        for arm in &group.arms {
            said.extend(alone_or_missed(group, arm, alone).into_iter().map(|line| format!("{arm}: {line}")));
        }
        let name = if groups.len() > 1 { format!("{}: ", group.title()) } else { String::new() };
        lines.extend(said.into_iter().map(|line| format!("{name}{line}")));
    }
    lines
}

/// How an arm compares with the first, in a line for each outcome.
fn against(group: &Group<'_>, first: &str, arm: &str) -> Vec<String> {
    let points = measured(group, arm).into_iter().filter_map(|point| Some((point.clients, point.ratio?)));
    let points: Vec<(usize, Interval)> =
        points.filter(|(_, ratio)| ratio.value.is_finite() && ratio.value > 0.0).collect();
    let all: Vec<usize> = points.iter().map(|(clients, _)| *clients).collect();
    let outcome = |ratio: &Interval| match ratio.verdict() {
        Verdict::None => None,
        how => Some((ratio.value >= 1.0, how != Verdict::Unknown)),
    };
    let line = |wanted: Option<(bool, bool)>| {
        let those = || points.iter().filter(|(_, ratio)| outcome(ratio) == wanted);
        let at = at(&those().map(|(clients, _)| *clients).collect::<Vec<_>>(), &all)?;
        let Some((more, proven)) = wanted else {
            return Some(format!("no difference between {first} and {arm} {at}"));
        };
        let (over, under) = if more { (arm, first) } else { (first, arm) };
        let factors = || those().map(|(_, ratio)| if more { ratio.value } else { 1.0 / ratio.value });
        let (least, most) = (factors().fold(f64::MAX, f64::min), factors().fold(0.0, f64::max));
        let (times, unproven) =
            (range(least, most, times), if proven { "" } else { " (single rounds: unproven)" });
        Some(match group.is_open() {
            true => format!("p99 of {over} is {times} times that of {under} {at}{unproven}"),
            false => format!("{over}: {times} times {under} {at}{unproven}"),
        })
    };
    let outcomes = [Some((false, true)), Some((true, true)), Some((false, false)), Some((true, false)), None];
    outcomes.into_iter().filter_map(line).collect()
}

/// An arm's best point, if `alone`: nothing is compared with it. In an open loop, whether the
/// server held the rate.
fn alone_or_missed(group: &Group<'_>, arm: &str, alone: bool) -> Vec<String> {
    let (held, missed) = rate::held(&measured(group, arm));
    match group.turn(arm) {
        _ if group.is_open() => held.filter(|_| alone).into_iter().chain(missed).collect(),
        Some(turn) if alone => vec![format!(
            "{} transactions a second at best, with {}, p99 {} ms",
            number(turn.best.tps.value),
            clients(turn.best.clients),
            number(turn.best.latency().p99)
        )],
        _ => Vec::new(),
    }
}

/// `at 16 to 256 clients` where these are neighbours in `all`, `at 1 and 64 clients` elsewhere.
fn at(those: &[usize], all: &[usize]) -> Option<String> {
    let (from, to) = (those.first()?, those.last()?);
    let between = all.iter().filter(|count| (from..=to).contains(count)).count();
    Some(match those {
        [one] => format!("at {}", clients(*one)),
        [_, _, _, ..] if between == those.len() => format!("at {} to {}", whole(*from as f64), clients(*to)),
        _ => {
            let counts: Vec<String> = those.iter().map(|count| whole(*count as f64)).collect();
            format!("at {} clients", list(&counts))
        }
    })
}

/// `2.2 to 5.6`, or one figure where both have the same text.
fn range(from: f64, to: f64, with: fn(f64) -> String) -> String {
    let (from, to) = (with(from), with(to));
    if from == to { from } else { format!("{from} to {to}") }
}

/// A factor of at least 1 in words: two decimals where it is close to 1.
fn times(value: f64) -> String {
    match value {
        close if close < 1.995 => format!("{close:.2}"),
        some if some < 99.95 => format!("{some:.1}"),
        many => whole(many),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::conclude;
    use crate::record::{Check, Latency, Noise};
    use crate::report::samples;
    use crate::tests::{golden, golden_cases};

    /// A point of the second arm: clients, and its ratio to the first with its bounds.
    type Ratio = (usize, f64, f64, f64);

    fn verdict_of(mut report: Report) -> Vec<String> {
        conclude(&mut report);
        report.verdict
    }

    /// Two arms with these ratios, on a steady machine.
    fn two(ratios: &[Ratio]) -> Report {
        let mut report = samples::two_arms();
        report.machine.noise.clear();
        report.points.retain(|point| ratios.iter().any(|one| one.0 == point.clients));
        for point in report.points.iter_mut().filter(|point| point.ratio.is_some()) {
            let (_, value, low, high) = *ratios.iter().find(|one| one.0 == point.clients).unwrap();
            point.ratio = Some(Interval { value, low, high });
        }
        report
    }

    #[test]
    fn arms_are_compared_by_the_clients_at_which_either_is_ahead() {
        let ahead = |clients, value: f64| (clients, value, value - 0.1, value + 0.1);
        let single = |clients, value| (clients, value, f64::NAN, f64::NAN);
        let cases = [
            vec![ahead(16, 0.45), ahead(32, 0.3), ahead(64, 0.18)],
            vec![ahead(1, 1.25), ahead(2, 1.0), ahead(4, 0.5), ahead(8, 1.0)],
            vec![ahead(1, 0.5), ahead(2, 1.0), ahead(4, 0.5)],
            vec![single(8, 0.5)],
            vec![single(8, 120.0)],
            vec![single(8, f64::NAN)],
        ];
        let cases = cases.map(|ratios| {
            let shown: Vec<_> =
                ratios.iter().map(|one| format!("pg18 {:.2} times allcore at {}", one.1, one.0)).collect();
            (shown.join(", "), verdict_of(two(&ratios)))
        });
        golden_cases("verdict_ratios", cases);
    }

    #[test]
    fn an_open_loop_is_compared_by_p99_and_names_the_rate_that_is_not_held() {
        let mut alone = samples::open_loop();
        alone.machine.noise.clear();
        let mut two = alone.clone();
        two.points.extend(alone.points.iter().map(|point| Point {
            arm: "slow".into(),
            ratio: Some(Interval { value: 3.0, low: 2.5, high: 3.5 }),
            ..point.clone()
        }));
        two.arms.push(crate::record::Arm { name: "slow".into(), ..alone.arms[0].clone() });
        golden_cases("verdict_rates", [("one arm", verdict_of(alone)), ("two arms", verdict_of(two))]);
    }

    #[test]
    fn faults_that_disqualify_a_run_come_first() {
        let mut report = samples::two_arms();
        report.points[0].checks = vec![Check { claim: "sums".into(), fault: Some("1 and 2".into()) }];
        let others = |report: &mut Report, at: &[usize]| {
            for (index, point) in at.iter().enumerate() {
                for round in &mut report.points[*point].rounds {
                    round.observed.cpu.as_mut().unwrap().other = 0.12 + 0.1 * index as f64;
                }
            }
        };
        others(&mut report, &[2, 3]);
        let late = Some(Latency { p95: 0.35, ..Latency::default() });
        report.points[5].rounds.iter_mut().for_each(|round| round.own_lag = late);
        report.machine.noise =
            (0..30).map(|at| Noise { at: f64::from(at), took: 20.0 + f64::from(at) }).collect();
        golden("verdict_faults", &verdict_of(report.clone()).join("\n"));
        others(&mut report, &[2, 3, 4, 6]);
        assert!(verdict_of(report)[1].ends_with(": 4 of 18 points"));
    }
}
