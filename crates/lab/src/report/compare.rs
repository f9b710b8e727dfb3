//! Compares two stored runs, point by point.
//!
//! Broken checks, other faults that disqualify either run, and missing points come first: such a
//! run has no valid figures. Differences between the machines and the loads follow, since they may
//! explain the rest. Arms match by name; if each run has only one arm, these match. Rounds of two
//! runs lie too far apart to be paired, so a ratio's bounds come from the bounds of both runs. In
//! an open loop throughput is the requested rate: there the ratio is that of p99.

use super::groups::{gather, groups};
use super::sheets::{self, Sheet};
use super::terminal;
use crate::figures;
use crate::record::{Interval, LOAD_AT_START, MEMORY_AT_START, Machine, Point, Report, Verdict};
use crate::stats::{Limit, independent_ratio, median};

/// The machines differ if the medians of the fixed loop differ by more than this part.
const APART: f64 = 0.03;

/// The common points and the differences of two runs.
#[derive(Debug, Default)]
pub(crate) struct Comparison<'a> {
    /// Checks that failed in either run.
    pub(crate) broken: Vec<String>,
    /// Other lines of either run's verdict that disqualify it.
    disqualified: Vec<String>,
    /// Missing measurements of either run.
    missing: Vec<String>,
    /// How the machines, servers, settings and loads differ, a line each.
    pub(crate) changes: Vec<String>,
    /// Points of both runs, in the first one's order.
    pairs: Vec<Pair<'a>>,
    /// Points of only the first run, and of only the second: a line for each arm and workload.
    unmatched: [Vec<String>; 2],
    /// Thresholds that a point crosses, a line each.
    pub(crate) crossed: Vec<String>,
    /// Points of the first run that a threshold cannot judge, a line each.
    pub(crate) unjudged: Vec<String>,
}

#[derive(Debug)]
struct Pair<'a> {
    /// Workload, protocol and arm.
    title: String,
    points: [&'a Point; 2],
    /// Whether either run's loop was open, so that less of the ratio is better.
    open: bool,
    /// The second's throughput over the first's; in an open loop its p99.
    ratio: Interval,
}

/// Compares the second run with the first, and every point with the limits.
pub(crate) fn compare<'a>(first: &'a Report, second: &'a Report, limits: &[Limit]) -> Comparison<'a> {
    let mut all = Comparison::default();
    for (which, report) in [("first", first), ("second", second)] {
        let of = |line: String| format!("{which}: {line}");
        all.broken.extend(sheets::broken_checks(report).into_iter().map(of));
        let verdict = report.verdict.iter().filter_map(|line| line.strip_prefix("disqualified: "));
        let others = verdict.filter(|line| !line.starts_with("broken data")).map(str::to_owned);
        all.disqualified.extend(others.map(of));
        all.missing.extend(sheets::missing(report).into_iter().map(of));
    }
    all.changes = differences(first, second);
    all.pair(first, second);
    for Pair { title, points: [from, to], .. } in &all.pairs {
        let at = figures::clients(from.clients);
        for limit in limits {
            match limit.crossed(from, to) {
                Ok(how) => all.crossed.extend(how.map(|how| format!("{title} at {at}: {how}"))),
                Err(why) => all.unjudged.push(format!("{title} at {at}: {why}")),
            }
        }
    }
    if !limits.is_empty() {
        all.unjudged.extend(all.unmatched[0].iter().cloned());
    }
    all
}

/// How the machines, the loads and the arms differ, in this order.
fn differences(first: &Report, second: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    // Facts that differ at each run say nothing about the machine.
    let lasting = |report: &Report| -> Vec<(String, String)> {
        let facts = report.machine.facts.iter();
        facts.filter(|(name, _)| name != MEMORY_AT_START && name != LOAD_AT_START).cloned().collect()
    };
    changes("machine: ", &lasting(first), &lasting(second), &mut lines);
    lines.extend(speeds(&first.machine, &second.machine));
    changes("load: ", &first.load, &second.load, &mut lines);
    for arm in &first.arms {
        let partner = partner(first, second, &arm.name);
        let Some(other) = second.arms.iter().find(|other| other.name == partner) else { continue };
        let server = |server: &String| [("server".to_owned(), server.clone())];
        let name = format!("{}: ", arm.name);
        changes(&name, &server(&arm.server), &server(&other.server), &mut lines);
        changes(&name, &arm.settings, &other.settings, &mut lines);
    }
    lines
}

/// The ratio of the fixed loop's times: two machines differ by it, or one machine on two days.
fn speeds(first: &Machine, second: &Machine) -> Option<String> {
    let median = |of: &Machine| median(&of.noise.iter().map(|one| one.took).collect::<Vec<_>>());
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

fn changes(what: &str, from: &[(String, String)], to: &[(String, String)], lines: &mut Vec<String>) {
    for (name, value) in from {
        match to.iter().find(|one| one.0 == *name) {
            Some((_, now)) if now == value => {}
            Some((_, now)) => lines.push(format!("{what}{name}: {value} became {now}")),
            None => lines.push(format!("{what}{name}: {value} in the first only")),
        }
    }
    for (name, value) in to.iter().filter(|one| !from.iter().any(|other| other.0 == one.0)) {
        lines.push(format!("{what}{name}: {value} in the second only"));
    }
}

impl<'a> Comparison<'a> {
    /// Pairs each point of the first run with the second's, and names those without a partner.
    fn pair(&mut self, first: &'a Report, second: &'a Report) {
        let (ours, others) = (groups(first), groups(second));
        let mut alone = [Vec::new(), Vec::new()];
        for group in &ours {
            let same = (group.workload, group.protocol);
            let other = others.iter().find(|other| (other.workload, other.protocol) == same);
            let open = group.is_open() || other.is_some_and(|other| other.is_open());
            let judged = |point: &Point| if open { point.p99() } else { point.tps };
            for (arm, point) in
                group.arms.iter().flat_map(|arm| group.line(arm).into_iter().map(move |point| (arm, point)))
            {
                let title = format!("{}, {arm}", group.title());
                match other.and_then(|other| other.point(partner(first, second, arm), point.clients)) {
                    Some(with) => {
                        let ratio = independent_ratio(&judged(point), &judged(with));
                        self.pairs.push(Pair { title, points: [point, with], open, ratio });
                    }
                    None => alone[0].push((title, point.clients)),
                }
            }
        }
        for (group, point) in
            others.iter().flat_map(|group| group.points.iter().map(move |point| (group, *point)))
        {
            if !self.pairs.iter().any(|pair| std::ptr::eq(pair.points[1], point)) {
                let title = format!("{}, {}", group.title(), point.arm);
                alone[1].push((title, point.clients));
            }
        }
        for ((which, alone), lines) in ["first", "second"].iter().zip(alone).zip(&mut self.unmatched) {
            let line = |(title, clients): (String, Vec<usize>)| {
                format!("{title}: {} in the {which} only", figures::counted(&clients))
            };
            lines.extend(gather(alone).into_iter().map(line));
        }
    }

    /// Whether any point has a figure in both runs.
    pub(crate) fn is_any(&self) -> bool {
        self.pairs.iter().any(|pair| pair.ratio.value.is_finite())
    }

    /// As text, at most `width` columns wide.
    pub(crate) fn table(&self, width: usize) -> String {
        let mut text = String::new();
        terminal::list("Broken checks:", &self.broken, width, &mut text);
        terminal::list("Disqualified:", &self.disqualified, width, &mut text);
        terminal::list("Thresholds crossed:", &self.crossed, width, &mut text);
        terminal::list("Not judged by a threshold:", &self.unjudged, width, &mut text);
        terminal::list("Missing:", &self.missing, width, &mut text);
        terminal::list("Changed:", &self.changes, width, &mut text);
        for pairs in self.pairs.chunk_by(|one, next| one.title == next.title) {
            sheet(pairs).iter().for_each(|sheet| terminal::write(sheet, width, &mut text));
        }
        terminal::list("Without a partner:", &self.unmatched.concat(), width, &mut text);
        text + &self.conclusion() + "\n"
    }

    /// The number of points that became faster, slower, or neither.
    fn conclusion(&self) -> String {
        if !self.is_any() {
            return "Nothing is comparable: no point has a figure in both runs.".into();
        }
        let count = |verdicts: [Verdict; 2]| {
            // The second run is faster by more throughput, or by less latency.
            let is = |pair: &&Pair<'_>| pair.ratio.verdict() == verdicts[usize::from(pair.open)];
            self.pairs.iter().filter(is).count()
        };
        let (faster, slower) = (count([Verdict::More, Verdict::Less]), count([Verdict::Less, Verdict::More]));
        let (none, unknown) = (count([Verdict::None; 2]), count([Verdict::Unknown; 2]));
        let told = match unknown {
            0 => String::new(),
            some => format!("; {some} with too few rounds to tell"),
        };
        let all = self.pairs.len();
        format!("{faster} of {all} points became faster, {slower} slower, {none} neither{told}.")
    }
}

/// The table of one arm's points of one workload in both runs.
fn sheet(pairs: &[Pair<'_>]) -> Option<Sheet> {
    let ratio = if pairs[0].open { "p99, second / first" } else { "tps, second / first" };
    let heads = ["clients", "tps, first", "second", ratio, "p99, first", "second", "failed, first", "second"];
    let row = |pair: &Pair<'_>| {
        let tps = pair.points.map(|point| figures::number(point.tps.value));
        let p99 = pair.points.map(|point| figures::number(point.p99().value));
        let failed = pair.points.map(|point| point.failures().failed.to_string());
        let ratio = figures::ratio(&pair.ratio);
        let clients = pair.points[0].clients.to_string();
        [&[clients][..], &tps, &[ratio], &p99, &failed].concat()
    };
    Sheet::new(&pairs[0].title, &heads, pairs.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Numbers as _;
    use crate::report::samples;
    use crate::tests::{golden, golden_cases};

    #[test]
    fn differences_between_machines_come_first() {
        let first = samples::two_arms();
        let mut second = samples::faster(1.3);
        second.machine.facts[1].1 = "64".into();
        second.arms[1].settings[0].1 = "4GB".into();
        second.load.pop();
        second.points.retain(|point| point.arm != "pg18" || point.clients < 200);
        let mut new = second.points[0].clone();
        new.clients = 512;
        second.points.push(new);
        let text = compare(&first, &second, &[]).table(100);
        assert!(text.starts_with("Changed:\n- machine: cores: 2 became 64\n"), "{text}");
        golden("compare", &text);
    }

    #[test]
    fn points_are_counted_as_faster_slower_or_neither() {
        let (runs, single, faster) = (samples::two_arms(), samples::one_point(), samples::faster(1.3));
        let (open, mut slow, mut more) = (samples::open_loop(), samples::open_loop(), samples::open_loop());
        for round in slow.points.iter_mut().flat_map(|point| &mut point.rounds) {
            round.latency.p99 *= 100.0;
        }
        for point in &mut more.points {
            let tps = point.tps;
            point.tps = Interval::each(|of| 4.0 * of(&tps));
        }
        let cases = [
            ("the same", &runs, &runs),
            ("slower", &faster, &runs),
            ("faster", &runs, &faster),
            ("single rounds", &single, &single),
            ("a rate, p99 of 100 times", &open, &slow),
            ("a rate, more arrived and were done", &open, &more),
            ("other points", &runs, &single),
            ("no point", &samples::nothing(), &single),
        ];
        let concluded = cases.map(|(case, first, second)| {
            let compared = compare(first, second, &[]);
            assert_eq!(compared.is_any(), !compared.conclusion().starts_with("Nothing"));
            (case, vec![compared.conclusion()])
        });
        golden_cases("compare_conclusions", concluded);
        assert!(compare(&open, &slow, &[]).table(120).contains("| p99, second / first |"));
        let same = compare(&runs, &runs, &[]);
        assert!(same.changes.is_empty() && same.unmatched.concat().is_empty());
        let none = compare(&samples::nothing(), &single, &[]).table(80);
        assert!(none.contains("\n\nWithout a partner:\n- tpcc"), "{none}");
    }

    #[test]
    fn every_point_is_compared_with_every_threshold() {
        let limits = ["tps < 0.95", "p99 > 1.1"].map(|text| Limit::parse(text).unwrap());
        let (first, mut second) = (samples::two_arms(), samples::faster(0.8));
        second.points[0].rounds.iter_mut().for_each(|round| round.latency.p99 *= 2.0);
        golden("compare_thresholds", &compare(&first, &second, &limits).crossed.join("\n"));
        assert_eq!(compare(&first, &first, &limits).crossed, [""; 0]);
    }

    #[test]
    fn a_point_that_a_threshold_cannot_judge_is_named() {
        let limits = ["tps < 0.95", "p99 > 1.1"].map(|text| Limit::parse(text).unwrap());
        let (first, mut second) = (samples::two_arms(), samples::two_arms());
        second.points.pop();
        second.points[1].rounds.iter_mut().for_each(|round| round.latency.p99 = f64::NAN);
        second.points[2].tps = Interval::each(|_| f64::NAN);
        assert_eq!(compare(&first, &second, &[]).unjudged, [""; 0]);
        assert_eq!(
            compare(&second, &first, &limits[1..]).unjudged.len(),
            1,
            "only the second has a point more"
        );
        golden("compare_unjudged", &compare(&first, &second, &limits).unjudged.join("\n"));
    }

    #[test]
    fn single_arms_of_two_runs_match_whatever_their_names() {
        let first = samples::one_point();
        let mut second = first.clone();
        second.arms[0].name = "patched".into();
        second.points[0].arm = "patched".into();
        let both = compare(&first, &second, &[]);
        assert_eq!((both.pairs.len(), both.unmatched.concat().len()), (1, 0));
    }

    #[test]
    fn a_comparison_reports_a_slower_machine_and_ignores_facts_that_always_differ() {
        let first = samples::two_arms();
        let cases = [1.2, 0.8, 1.02].map(|by| {
            let mut second = first.clone();
            second.machine.noise.iter_mut().for_each(|one| one.took *= by);
            for (name, value) in [(MEMORY_AT_START, "1.0 GiB"), (LOAD_AT_START, "99% of the CPUs busy")] {
                second.machine.facts.push((name.into(), value.into()));
            }
            (format!("{by} times as long"), compare(&first, &second, &[]).changes)
        });
        golden_cases("compare_machines", cases);
        let mut unmeasured = first.clone();
        unmeasured.machine.noise.clear();
        assert_eq!(compare(&unmeasured, &first, &[]).changes, [""; 0]);
    }

    #[test]
    fn a_run_that_other_programs_disqualify_is_named() {
        let (first, mut second) = (samples::two_arms(), samples::two_arms());
        second.verdict = ["broken data: x", "other programs took 43% of the CPU time: a at 1 client"]
            .map(|line| format!("disqualified: {line}"))
            .into();
        let text = compare(&first, &second, &[]).table(100);
        assert!(
            text.starts_with("Disqualified:\n- second: other programs took 43% of the CPU time"),
            "{text}"
        );
        assert!(!text.contains("broken"), "{text}");
    }

    #[test]
    fn broken_and_missing_points_of_either_run_come_first() {
        let (whole, partial) = (samples::two_arms(), samples::one_point());
        let cases = [("the first", &partial, &whole), ("the second", &whole, &partial)];
        let cases = cases.map(|(which, first, second)| {
            let text = compare(first, second, &[]).table(100);
            (which, text.lines().take_while(|line| *line != "Changed:").map(str::to_owned).collect())
        });
        golden_cases("compare_broken", cases);
    }
}
