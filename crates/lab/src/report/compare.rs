//! Two stored runs, point by point.
//!
//! What is broken or missing in either run comes first, since a figure of a run whose data is broken is none; then what
//! differs between the machines and the loads, since it may explain all the rest. Arms are matched by name; where each
//! run has but one, those two are. Rounds of two runs lie too far apart to be paired, so that a ratio's bounds come from
//! both runs' own: the distances of each side add up as independent ones do, on logarithms (recovered variances, after
//! Zou and Donner 2008). In an open loop throughput is what was asked for: there the ratio is that of p99.

use super::groups::{Group, groups};
use super::sheets::{self, Block, Sheet};
use super::terminal;
use crate::figures;
use crate::record::{Arm, Interval, LOAD_AT_START, MEMORY_AT_START, Machine, Point, Report, Verdict};
use crate::stats::median;

/// The fixed loop's medians are apart by more than this part where the machines differ.
const APART: f64 = 0.03;

/// What two runs have in common, and what not.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Checks that failed in either run.
    pub broken: Vec<String>,
    /// What either run lacks.
    pub missing: Vec<String>,
    /// How the machines differ, a line each.
    pub machines: Vec<String>,
    /// What else was changed: servers, settings, load.
    pub changes: Vec<String>,
    /// Points that both have, in the first one's order.
    pub series: Vec<Series>,
    /// Points that only one has, a line for each arm and workload.
    pub unmatched: Vec<String>,
}

/// One arm's points of one workload in both runs.
#[derive(Debug, Clone)]
pub struct Series {
    /// Workload, protocol and arm.
    pub title: String,
    /// Whether either run's loop was open, so that less of the ratio is better.
    pub open: bool,
    /// By rising clients.
    pub pairs: Vec<Pair>,
}

/// One point in both runs.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Connections.
    pub clients: usize,
    /// Transactions a second in the first run and in the second.
    pub tps: [Interval; 2],
    /// The second's throughput over the first's; in an open loop its p99.
    pub ratio: Interval,
    /// The 99th percentile of latency in both, in milliseconds.
    pub p99: [f64; 2],
    /// Transactions given up in both.
    pub failed: [u64; 2],
}

/// Holds the second run against the first.
pub fn compare(first: &Report, second: &Report) -> Comparison {
    let mut all = Comparison::default();
    for (which, report) in [("first", first), ("second", second)] {
        let of = |line: String| format!("{which}: {line}");
        all.broken.extend(sheets::broken_checks(report).into_iter().map(of));
        all.missing.extend(sheets::missing(report).into_iter().map(of));
    }
    // What is another one at each run says nothing of the machine.
    let lasting = |report: &Report| -> Vec<(String, String)> {
        let facts = report.machine.facts.iter();
        facts.filter(|(name, _)| name != MEMORY_AT_START && name != LOAD_AT_START).cloned().collect()
    };
    changes("", &lasting(first), &lasting(second), &mut all.machines);
    all.machines.extend(speeds(&first.machine, &second.machine));
    changes("load: ", &first.load, &second.load, &mut all.changes);
    for arm in &first.arms {
        if let Some(other) = second.arms.iter().find(|other| other.name == partner(first, second, &arm.name))
        {
            arm_changes(arm, other, &mut all.changes);
        }
    }
    let others = groups(second);
    let mut matched: Vec<&Point> = Vec::new();
    for group in groups(first) {
        let same = |other: &&Group<'_>| other.workload == group.workload && other.protocol == group.protocol;
        let other = others.iter().find(same);
        let open = group.is_open() || other.is_some_and(Group::is_open);
        for arm in &group.arms {
            let mut pairs = Vec::new();
            let mut alone = Vec::new();
            for point in group.line(arm) {
                match other.and_then(|other| other.point(partner(first, second, arm), point.clients)) {
                    Some(with) => {
                        matched.push(with);
                        pairs.push(pair(point, with, open));
                    }
                    None => alone.push(point.clients.to_string()),
                }
            }
            let title = format!("{}, {arm}", group.title());
            only("first", &title, &alone, &mut all.unmatched);
            if !pairs.is_empty() {
                all.series.push(Series { title, open, pairs });
            }
        }
    }
    for group in &others {
        for arm in &group.arms {
            let line = group.line(arm).into_iter();
            let alone = line.filter(|point| !matched.iter().any(|one| std::ptr::eq(*one, *point)));
            let alone: Vec<_> = alone.map(|point| point.clients.to_string()).collect();
            only("second", &format!("{}, {arm}", group.title()), &alone, &mut all.unmatched);
        }
    }
    all
}

/// How the times differ that the fixed loop took, which is how the machines do, or the same one on two days.
fn speeds(first: &Machine, second: &Machine) -> Option<String> {
    let median = |of: &Machine| {
        let took = of.noise.iter().map(|one| one.took).filter(|took| took.is_finite());
        median(&took.collect::<Vec<_>>())
    };
    let (from, to) = (median(first), median(second));
    let apart = to / from - 1.0;
    (apart.abs() > APART).then(|| {
        let (part, how) = (figures::percent(apart.abs()), if apart > 0.0 { "longer" } else { "less" });
        let (from, to) = (figures::number(from), figures::number(to));
        format!(
            "a fixed loop took {part} {how} in the second, {from} ms became {to} (medians): so far the machine itself may be what \
             changed"
        )
    })
}

/// What the arm of the first run is called in the second one.
fn partner<'a>(first: &Report, second: &'a Report, arm: &'a str) -> &'a str {
    match (&first.arms[..], &second.arms[..]) {
        ([_], [other]) => &other.name,
        _ => arm,
    }
}

fn pair(point: &Point, with: &Point, open: bool) -> Pair {
    let of = |point: &Point| if open { point.p99() } else { point.tps };
    Pair {
        clients: point.clients,
        tps: [point.tps, with.tps],
        ratio: ratio(&of(point), &of(with)),
        p99: [point.p99().value, with.p99().value],
        failed: [point.failures().failed, with.failures().failed],
    }
}

/// `to` over `from`, as independent measurements.
fn ratio(from: &Interval, to: &Interval) -> Interval {
    let value = to.value / from.value;
    let (Some((from_low, from_high)), Some((to_low, to_high))) = (from.bounds(), to.bounds()) else {
        return Interval::alone(value);
    };
    let below = (to.value / to_low).ln().hypot((from_high / from.value).ln());
    let above = (to_high / to.value).ln().hypot((from.value / from_low).ln());
    Interval { value, low: value * (-below).exp(), high: value * above.exp() }
}

fn arm_changes(from: &Arm, to: &Arm, lines: &mut Vec<String>) {
    let name = match from.name == to.name {
        true => format!("{}: ", from.name),
        false => format!("{} and {}: ", from.name, to.name),
    };
    if from.server != to.server {
        lines.push(format!("{name}server: {} became {}", from.server, to.server));
    }
    changes(&name, &from.settings, &to.settings, lines);
}

fn changes(what: &str, from: &[(String, String)], to: &[(String, String)], lines: &mut Vec<String>) {
    let find = |all: &[(String, String)], name: &str| {
        all.iter().find(|(one, _)| one == name).map(|(_, value)| value.clone())
    };
    for (name, value) in from {
        match find(to, name) {
            Some(other) if other == *value => {}
            Some(other) => lines.push(format!("{what}{name}: {value} became {other}")),
            None => lines.push(format!("{what}{name}: {value} in the first only")),
        }
    }
    for (name, value) in to.iter().filter(|(name, _)| find(from, name).is_none()) {
        lines.push(format!("{what}{name}: {value} in the second only"));
    }
}

fn only(which: &str, title: &str, clients: &[String], lines: &mut Vec<String>) {
    if !clients.is_empty() {
        lines.push(format!("{title}: {} clients in the {which} only", clients.join(", ")));
    }
}

impl Comparison {
    /// As text, at most `width` columns wide.
    pub fn table(&self, width: usize) -> String {
        let mut text = String::new();
        terminal::list("Broken checks:", &self.broken, width, &mut text);
        terminal::list("Missing:", &self.missing, width, &mut text);
        terminal::list("The machines differ:", &self.machines, width, &mut text);
        terminal::list("Changed:", &self.changes, width, &mut text);
        for series in &self.series {
            terminal::write(&series.sheet(), width, &mut text);
        }
        terminal::list("Without a partner:", &self.unmatched, width, &mut text);
        text.push_str(&self.conclusion());
        text.push('\n');
        text
    }

    /// How many points became faster, slower, or neither.
    fn conclusion(&self) -> String {
        let better = |series: &Series, pair: &Pair| match pair.ratio.verdict() {
            Verdict::More if series.open => Verdict::Less,
            Verdict::Less if series.open => Verdict::More,
            other => other,
        };
        let verdicts: Vec<Verdict> = (self.series.iter())
            .flat_map(|series| series.pairs.iter().map(move |pair| better(series, pair)))
            .collect();
        let count = |what| verdicts.iter().filter(|one| **one == what).count();
        let (faster, slower) = (count(Verdict::More), count(Verdict::Less));
        let (none, unknown) = (count(Verdict::None), count(Verdict::Unknown));
        let all = verdicts.len();
        let mut text = format!("Of {all} points {faster} became faster, {slower} slower, {none} neither");
        if unknown > 0 {
            text.push_str(&format!("; of {unknown} too few rounds are known to tell"));
        }
        text.push('.');
        text
    }
}

impl Series {
    fn sheet(&self) -> Sheet {
        let block = |name: &str, heads: &[&str], row: &dyn Fn(&Pair) -> Vec<String>| Block {
            name: name.into(),
            heads: heads.iter().map(|head| head.to_string()).collect(),
            rows: self.pairs.iter().map(row).collect(),
        };
        let run = |at: usize| {
            move |pair: &Pair| {
                let tps = &pair.tps[at];
                let (p99, failed) = (figures::number(pair.p99[at]), pair.failed[at].to_string());
                vec![figures::number(tps.value), figures::spread(tps), p99, failed]
            }
        };
        let heads = ["tps", "±", "p99", "failed"];
        let change = |pair: &Pair| {
            let within = |(low, high)| format!("{} to {}", figures::factor(low), figures::factor(high));
            vec![figures::ratio(&pair.ratio), pair.ratio.bounds().map_or(figures::NONE.into(), within)]
        };
        Sheet {
            title: self.title.clone(),
            key: "clients".into(),
            keys: self.pairs.iter().map(|pair| pair.clients.to_string()).collect(),
            blocks: vec![
                block("first", &heads, &run(0)),
                block("second", &heads, &run(1)),
                block(
                    "second to first",
                    &[if self.open { "p99's ratio" } else { "ratio" }, "between"],
                    &change,
                ),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{samples, tests::golden};

    fn faster(by: f64) -> Report {
        let mut report = samples::two_arms();
        for point in &mut report.points {
            let Interval { value, low, high } = point.tps;
            let by = if point.clients > 8 { by } else { 1.0 };
            point.tps = Interval { value: value * by, low: low * by, high: high * by };
        }
        report
    }

    #[test]
    fn what_differs_between_machines_comes_first() {
        let first = samples::two_arms();
        let mut second = faster(1.3);
        second.machine.facts[1].1 = "64".into();
        second.arms[1].settings[0].1 = "4GB".into();
        second.load.pop();
        second.points.retain(|point| point.arm != "pg18" || point.clients < 200);
        let mut new = second.points[0].clone();
        new.clients = 512;
        second.points.push(new);
        let text = compare(&first, &second).table(100);
        assert!(text.starts_with("The machines differ:\n- cores: 2 became 64\n"), "{text}");
        golden("compare", &text);
    }

    #[test]
    fn a_run_does_not_differ_from_itself_and_noise_is_no_difference() {
        let first = samples::two_arms();
        let same = compare(&first, &first);
        assert!(same.machines.is_empty() && same.changes.is_empty() && same.unmatched.is_empty());
        assert!(same.conclusion().starts_with("Of 18 points 0 became faster, 0 slower, 18 neither."));
        let slower = compare(&faster(1.3), &first);
        assert_eq!(slower.conclusion(), "Of 18 points 0 became faster, 10 slower, 8 neither.");
        let single = samples::one_point();
        let unknown = compare(&single, &single).conclusion();
        assert!(unknown.ends_with("of 1 too few rounds are known to tell."), "{unknown}");
    }

    #[test]
    fn runs_of_open_loops_are_held_against_each_other_by_their_latency() {
        let first = samples::open_loop();
        let mut second = first.clone();
        for round in second.points.iter_mut().flat_map(|point| &mut point.rounds) {
            round.latency.p99 *= 100.0;
        }
        let points = first.points.len();
        let slower = compare(&first, &second);
        assert_eq!(
            slower.conclusion(),
            format!("Of {points} points 0 became faster, {points} slower, 0 neither.")
        );
        assert!(slower.table(120).contains("p99's ratio"), "{}", slower.table(120));
        let mut more = first.clone();
        // More was due, and done.
        for point in &mut more.points {
            let Interval { value, low, high } = point.tps;
            point.tps = Interval { value: 4.0 * value, low: 4.0 * low, high: 4.0 * high };
        }
        let conclusion = compare(&first, &more).conclusion();
        assert!(conclusion.contains(&format!("0 became faster, 0 slower, {points} neither")), "{conclusion}");
    }

    #[test]
    fn two_arms_of_other_names_are_held_against_each_other_where_there_are_no_others() {
        let first = samples::one_point();
        let mut second = first.clone();
        second.arms[0].name = "patched".into();
        second.points[0].arm = "patched".into();
        let both = compare(&first, &second);
        assert_eq!((both.series.len(), both.unmatched.len()), (1, 0));
        let text = compare(&samples::nothing(), &first).table(80);
        assert!(text.contains("\n\nWithout a partner:\n- tpcc"), "{text}");
    }

    #[test]
    fn a_machine_that_is_slower_in_the_second_run_is_told_and_what_always_differs_is_not() {
        let first = samples::two_arms();
        let slower = |by: f64| {
            let mut second = first.clone();
            second.machine.noise.iter_mut().for_each(|one| one.took *= by);
            for (name, value) in [(MEMORY_AT_START, "1.0 GiB"), (LOAD_AT_START, "99% of the CPUs busy")] {
                second.machine.facts.push((name.into(), value.into()));
            }
            compare(&first, &second).machines
        };
        let told = slower(1.2);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("a fixed loop took 20% longer in the second, "), "{told:?}");
        assert!(slower(0.8)[0].starts_with("a fixed loop took 20% less in the second, "));
        assert_eq!(slower(1.02), [""; 0]);
        let mut unasked = first.clone();
        unasked.machine.noise.clear();
        assert_eq!(compare(&unasked, &first).machines, [""; 0]);
    }

    #[test]
    fn what_is_broken_or_missing_in_either_run_is_said_before_all_else() {
        let (whole, lacking) = (samples::two_arms(), samples::one_point());
        let text = compare(&lacking, &whole).table(100);
        let expected = "Broken checks:\n\
            - first: tpcc at 8 clients, pg: w_ytd = sum(d_ytd): warehouse 3: 300012.50 and 300000.00\n\n\
            Missing:\n- first: 16 clients: interrupted\n\
            - first: pg: the server runs elsewhere: its CPU time is not seen\n\n";
        assert!(text.starts_with(expected), "{text}");
        let text = compare(&whole, &lacking).table(100);
        assert!(
            text.contains("- second: tpcc at 8 clients") && text.contains("- second: 16 clients"),
            "{text}"
        );
    }

    #[test]
    fn bounds_of_a_ratio_hold_the_truth_as_often_as_those_of_its_parts() {
        let from = Interval { value: 100.0, low: 97.0, high: 104.0 };
        let to = Interval { value: 200.0, low: 192.0, high: 206.0 };
        let both = ratio(&from, &to);
        assert!((both.low - 1.890).abs() < 0.001 && (both.high - 2.087).abs() < 0.001, "{both:?}");
        let back = ratio(&to, &from);
        assert!((back.low - 1.0 / both.high).abs() < 1e-9 && (back.high - 1.0 / both.low).abs() < 1e-9);
    }
}
