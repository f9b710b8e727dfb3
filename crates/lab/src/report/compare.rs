//! Compares two stored runs, point by point.
//!
//! Broken checks and missing points of either run come first: a run with broken data has no valid
//! figures. Differences between the machines and the loads follow, since they may explain the rest.
//! Arms match by name; if each run has only one arm, these match. Rounds of two runs lie too far
//! apart to be paired, so a ratio's bounds come from the bounds of both runs. In an open loop
//! throughput is the requested rate: there the ratio is that of p99.

use super::groups::{Group, groups};
use super::sheets::{self, Block, Sheet};
use super::terminal;
use crate::figures;
use crate::record::{Arm, Interval, LOAD_AT_START, MEMORY_AT_START, Machine, Point, Report, Verdict};
use crate::stats::{Limit, independent_ratio, median};

/// The machines differ if the medians of the fixed loop differ by more than this part.
const APART: f64 = 0.03;

/// The common points and the differences of two runs.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    /// Checks that failed in either run.
    pub broken: Vec<String>,
    /// Missing measurements of either run.
    missing: Vec<String>,
    /// How the machines differ, a line each.
    machines: Vec<String>,
    /// Other changes: servers, settings, load.
    pub changes: Vec<String>,
    /// Points of both runs, in the first one's order.
    series: Vec<Series<'a>>,
    /// Points of only one run, a line for each arm and workload.
    unmatched: Vec<String>,
    /// Thresholds that a point crosses, a line each.
    pub crossed: Vec<String>,
}

/// A point in both runs, and the second's throughput over the first's; in an open loop its p99.
type Pair<'a> = ([&'a Point; 2], Interval);

/// One arm's points of one workload in both runs.
#[derive(Debug)]
struct Series<'a> {
    /// Workload, protocol and arm.
    title: String,
    /// Whether either run's loop was open, so that less of the ratio is better.
    open: bool,
    /// By rising clients.
    pairs: Vec<Pair<'a>>,
}

/// Compares the second run with the first, and every point with the limits.
pub fn compare<'a>(first: &'a Report, second: &'a Report, limits: &[Limit]) -> Comparison<'a> {
    let mut all = Comparison::default();
    for (which, report) in [("first", first), ("second", second)] {
        let of = |line: String| format!("{which}: {line}");
        all.broken.extend(sheets::broken_checks(report).into_iter().map(of));
        all.missing.extend(sheets::missing(report).into_iter().map(of));
    }
    // Facts that differ at each run say nothing about the machine.
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
    let matched = all.pair(first, second);
    for group in groups(second) {
        for arm in &group.arms {
            let line = group.line(arm).into_iter();
            let alone = line.filter(|point| !matched.iter().any(|one| std::ptr::eq(*one, *point)));
            let alone: Vec<_> = alone.map(|point| point.clients.to_string()).collect();
            only("second", &format!("{}, {arm}", group.title()), &alone, &mut all.unmatched);
        }
    }
    for series in &all.series {
        for ([from, to], _) in &series.pairs {
            let at = format!("{} at {}", series.title, figures::clients(from.clients));
            let crossed = limits.iter().filter_map(|limit| limit.crossed(from, to));
            all.crossed.extend(crossed.map(|how| format!("{at}: {how}")));
        }
    }
    all
}

/// The ratio of the fixed loop's times: two machines differ by it, or one machine on two days.
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
            "a fixed loop took {part} {how} in the second, {from} ms became {to} (medians): the machine itself may \
             explain this much of a change"
        )
    })
}

/// The name in the second run of the first run's arm.
fn partner<'a>(first: &Report, second: &'a Report, arm: &'a str) -> &'a str {
    match (&first.arms[..], &second.arms[..]) {
        ([_], [other]) => &other.name,
        _ => arm,
    }
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

impl<'a> Comparison<'a> {
    /// Pairs each point of the first run with the second's; returns the paired points of the second
    /// run.
    fn pair(&mut self, first: &'a Report, second: &'a Report) -> Vec<&'a Point> {
        let (others, mut matched) = (groups(second), Vec::new());
        for group in groups(first) {
            let same =
                |other: &&Group<'_>| other.workload == group.workload && other.protocol == group.protocol;
            let other = others.iter().find(same);
            let open = group.is_open() || other.is_some_and(Group::is_open);
            let judged = |point: &Point| if open { point.p99() } else { point.tps };
            for arm in &group.arms {
                let (mut pairs, mut alone) = (Vec::new(), Vec::new());
                for point in group.line(arm) {
                    match other.and_then(|other| other.point(partner(first, second, arm), point.clients)) {
                        Some(with) => {
                            matched.push(with);
                            pairs.push(([point, with], independent_ratio(&judged(point), &judged(with))));
                        }
                        None => alone.push(point.clients.to_string()),
                    }
                }
                let title = format!("{}, {arm}", group.title());
                only("first", &title, &alone, &mut self.unmatched);
                if !pairs.is_empty() {
                    self.series.push(Series { title, open, pairs });
                }
            }
        }
        matched
    }

    /// Whether any point has a figure in both runs.
    pub fn is_any(&self) -> bool {
        self.series.iter().flat_map(|series| &series.pairs).any(|(_, ratio)| ratio.value.is_finite())
    }

    /// As text, at most `width` columns wide.
    pub fn table(&self, width: usize) -> String {
        let mut text = String::new();
        terminal::list("Broken checks:", &self.broken, width, &mut text);
        terminal::list("Thresholds crossed:", &self.crossed, width, &mut text);
        terminal::list("Missing:", &self.missing, width, &mut text);
        terminal::list("The machines differ:", &self.machines, width, &mut text);
        terminal::list("Changed:", &self.changes, width, &mut text);
        for series in &self.series {
            terminal::write(&series.sheet(), width, &mut text);
        }
        terminal::list("Without a partner:", &self.unmatched, width, &mut text);
        text + &self.conclusion() + "\n"
    }

    /// The number of points that became faster, slower, or neither.
    fn conclusion(&self) -> String {
        if !self.is_any() {
            return "Nothing is comparable: no point has a figure in both runs.".into();
        }
        // The second run is faster by more throughput, or by less latency.
        let faster = |series: &Series<'_>, ratio: &Interval| match ratio.verdict() {
            Verdict::More => Some(!series.open),
            Verdict::Less => Some(series.open),
            _ => None,
        };
        let all =
            || self.series.iter().flat_map(|series| series.pairs.iter().map(move |pair| (series, pair.1)));
        let count = |how| all().filter(|(series, ratio)| faster(series, ratio) == how).count();
        let unknown = all().filter(|(_, ratio)| ratio.verdict() == Verdict::Unknown).count();
        let told = match unknown {
            0 => String::new(),
            some => format!("; {some} with too few rounds to tell"),
        };
        let (faster, slower, none) = (count(Some(true)), count(Some(false)), count(None) - unknown);
        let all = all().count();
        format!("{faster} of {all} points became faster, {slower} slower, {none} neither{told}.")
    }
}

impl Series<'_> {
    fn sheet(&self) -> Sheet {
        let block = |name: &str, heads: &[&str], row: &dyn Fn(&Pair<'_>) -> Vec<String>| Block {
            name: name.into(),
            heads: heads.iter().map(|head| head.to_string()).collect(),
            rows: self.pairs.iter().map(row).collect(),
        };
        let run = |at: usize| {
            move |(points, _): &Pair<'_>| {
                let (point, failed) = (points[at], points[at].failures().failed.to_string());
                let (tps, p99) = (figures::number(point.tps.value), figures::number(point.p99().value));
                vec![tps, figures::spread(&point.tps), p99, failed]
            }
        };
        let heads = ["tps", "±", "p99", "failed"];
        let change = |(_, ratio): &Pair<'_>| {
            let within = |(low, high)| format!("{} to {}", figures::factor(low), figures::factor(high));
            vec![figures::ratio(ratio), ratio.bounds().map_or(figures::NONE.into(), within)]
        };
        Sheet {
            title: self.title.clone(),
            key: "clients".into(),
            keys: self.pairs.iter().map(|(points, _)| points[0].clients.to_string()).collect(),
            blocks: vec![
                block("first", &heads, &run(0)),
                block("second", &heads, &run(1)),
                block("second / first", &[if self.open { "p99" } else { "tps" }, "between"], &change),
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
            let (tps, by) = (point.tps, if point.clients > 8 { by } else { 1.0 });
            point.tps = Interval::each(|of| by * of(&tps));
        }
        report
    }

    #[test]
    fn differences_between_machines_come_first() {
        let first = samples::two_arms();
        let mut second = faster(1.3);
        second.machine.facts[1].1 = "64".into();
        second.arms[1].settings[0].1 = "4GB".into();
        second.load.pop();
        second.points.retain(|point| point.arm != "pg18" || point.clients < 200);
        let mut new = second.points[0].clone();
        new.clients = 512;
        second.points.push(new);
        let text = compare(&first, &second, &[]).table(100);
        assert!(text.starts_with("The machines differ:\n- cores: 2 became 64\n"), "{text}");
        golden("compare", &text);
    }

    #[test]
    fn points_are_counted_as_faster_slower_or_neither() {
        let (runs, single) = (samples::two_arms(), samples::one_point());
        let (open, mut slow, mut more) = (samples::open_loop(), samples::open_loop(), samples::open_loop());
        slow.points
            .iter_mut()
            .flat_map(|point| &mut point.rounds)
            .for_each(|round| round.latency.p99 *= 100.0);
        // More transactions arrived, and were done.
        for tps in more.points.iter_mut().map(|point| &mut point.tps) {
            let one = *tps;
            *tps = Interval::each(|of| 4.0 * of(&one));
        }
        for (first, second, told) in [
            (&runs, &runs, "0 of 18 points became faster, 0 slower, 18 neither."),
            (&faster(1.3), &runs, "0 of 18 points became faster, 10 slower, 8 neither."),
            (&runs, &faster(1.3), "10 of 18 points became faster, 0 slower, 8 neither."),
            (
                &single,
                &single,
                "0 of 1 points became faster, 0 slower, 0 neither; 1 with too few rounds to tell.",
            ),
            (&open, &slow, "0 of 3 points became faster, 3 slower, 0 neither."),
            (&open, &more, "0 of 3 points became faster, 0 slower, 3 neither."),
            (&runs, &single, "Nothing is comparable: no point has a figure in both runs."),
            (&samples::nothing(), &single, "Nothing is comparable: no point has a figure in both runs."),
        ] {
            let compared = compare(first, second, &[]);
            assert_eq!((compared.conclusion().as_str(), compared.is_any()), (told, !told.starts_with('N')));
        }
        let heads = |line: &str| line.matches("p99").count() == 3 && line.ends_with("between");
        assert!(compare(&open, &slow, &[]).table(120).lines().any(heads));
        let same = compare(&runs, &runs, &[]);
        assert!(same.machines.is_empty() && same.changes.is_empty() && same.unmatched.is_empty());
        let none = compare(&samples::nothing(), &single, &[]).table(80);
        assert!(none.contains("\n\nWithout a partner:\n- tpcc"), "{none}");
    }

    #[test]
    fn every_point_is_compared_with_every_threshold() {
        let limits = ["tps < 0.95", "p99 > 1.1"].map(|text| Limit::parse(text).unwrap());
        let mut second = faster(0.8);
        second.points[0].rounds.iter_mut().for_each(|round| round.latency.p99 *= 2.0);
        let first = samples::two_arms();
        let crossed = compare(&first, &second, &limits).crossed;
        // The points with more than 8 clients, and the first point by its latency.
        assert_eq!(crossed.len(), 11, "{crossed:#?}");
        assert!(
            crossed[0].starts_with("select-only, prepared, allcore at 1 client: p99, second / first: 2.00 (")
        );
        assert!(
            crossed[1]
                .starts_with("select-only, prepared, allcore at 16 clients: tps, second / first: 0.80 (")
        );
        assert_eq!(compare(&first, &first, &limits).crossed, [""; 0]);
    }

    #[test]
    fn single_arms_of_two_runs_match_whatever_their_names() {
        let first = samples::one_point();
        let mut second = first.clone();
        second.arms[0].name = "patched".into();
        second.points[0].arm = "patched".into();
        let both = compare(&first, &second, &[]);
        assert_eq!((both.series.len(), both.unmatched.len()), (1, 0));
    }

    #[test]
    fn a_comparison_reports_a_slower_machine_and_ignores_facts_that_always_differ() {
        let first = samples::two_arms();
        let slower = |by: f64| {
            let mut second = first.clone();
            second.machine.noise.iter_mut().for_each(|one| one.took *= by);
            for (name, value) in [(MEMORY_AT_START, "1.0 GiB"), (LOAD_AT_START, "99% of the CPUs busy")] {
                second.machine.facts.push((name.into(), value.into()));
            }
            compare(&first, &second, &[]).machines
        };
        let told = slower(1.2);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("a fixed loop took 20% longer in the second, "), "{told:?}");
        assert!(slower(0.8)[0].starts_with("a fixed loop took 20% less in the second, "));
        assert_eq!(slower(1.02), [""; 0]);
        let mut unasked = first.clone();
        unasked.machine.noise.clear();
        assert_eq!(compare(&unasked, &first, &[]).machines, [""; 0]);
    }

    #[test]
    fn broken_and_missing_points_of_either_run_come_first() {
        let (whole, lacking) = (samples::two_arms(), samples::one_point());
        let text = compare(&lacking, &whole, &[]).table(100);
        let expected = "Broken checks:\n\
            - first: tpcc at 8 clients, pg: w_ytd = sum(d_ytd): warehouse 3: 300012.50 and 300000.00\n\n\
            Missing:\n- first: 16 clients: interrupted\n\
            - first: pg: the server runs elsewhere: its CPU time is not seen\n\n";
        assert!(text.starts_with(expected), "{text}");
        let text = compare(&whole, &lacking, &[]).table(100);
        assert!(
            text.contains("- second: tpcc at 8 clients") && text.contains("- second: 16 clients"),
            "{text}"
        );
    }
}
