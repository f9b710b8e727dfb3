//! A report as tables of text, with the lines on what is broken or missing. The terminal, Markdown
//! and HTML each format the tables in their own way.

use super::groups::{Group, gather};
use crate::figures::{self, NONE};
use crate::record::{NO_CALLS, NO_COUNTERS, NO_SYMBOLS, NO_WAITS, Observed, Point, Profile, Report};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) heads: Vec<String>,
    /// For each row, a cell for each head.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Leaves out columns in which no row has a value. `None` without rows.
    pub(super) fn new(title: &str, heads: &[&str], mut rows: Vec<Vec<String>>) -> Option<Self> {
        let is_seen = |at: &usize| rows.iter().any(|row| !row[*at].is_empty() && row[*at] != NONE);
        let kept: Vec<usize> = (0..heads.len()).filter(is_seen).collect();
        for row in &mut rows {
            *row = kept.iter().map(|at| row[*at].clone()).collect();
        }
        let heads = kept.iter().map(|at| heads[*at].to_owned()).collect();
        (!rows.is_empty()).then(|| Self { title: title.into(), heads, rows })
    }

    /// A row for each point that has cells; points with the same clients follow one another.
    fn of_points(
        title: &str,
        group: &Group<'_>,
        heads: &[&str],
        cells: impl Fn(&Point) -> Option<Vec<String>>,
    ) -> Option<Self> {
        let row = |point: &&Point| Some([vec![clients(point), point.arm.clone()], cells(point)?].concat());
        let rows = group.points.iter().filter_map(row).collect();
        Self::new(title, &[&["clients", "arm"], heads].concat(), rows)
    }
}

fn clients(point: &Point) -> String {
    point.clients.to_string()
}

/// The ratio of a point to the first arm's, under both names; empty without one.
fn ratio(group: &Group<'_>, point: &Point) -> String {
    let Some((ratio, first)) = point.ratio.as_ref().zip(group.report.arms.first()) else {
        return String::new();
    };
    format!("{} / {}: {}", point.arm, first.name, figures::ratio(ratio))
}

/// Transactions a second with their bounds, and each arm's ratio to the first one; in an open loop
/// throughput as a part of the arrivals.
pub(crate) fn throughput(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["tps", "±", "of those due", "ratio"];
    Sheet::of_points("Transactions a second", group, &heads, |point| {
        let kept = point.kept().map_or(String::new(), figures::percent);
        let ratio = if group.is_open() { String::new() } else { ratio(group, point) };
        Some(vec![figures::number(point.tps.value), figures::spread(&point.tps), kept, ratio])
    })
}

/// The most important other tables: latency, lateness, failures, the law.
pub(crate) fn main(group: &Group<'_>) -> Vec<Sheet> {
    [latency(group), lag(group), failures(group), fits(group)].into_iter().flatten().collect()
}

/// All other tables, but those of symbols and waits.
pub(crate) fn rest(group: &Group<'_>) -> Vec<Sheet> {
    let all = [errors(group), kinds(group), checks(group), cpu(group), costs(group), events(group)];
    all.into_iter().flatten().collect()
}

/// Latencies; in an open loop with each arm's ratio of p99 to the first one's.
fn latency(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["mean", "p50", "p90", "p95", "p99", "p99.9", "max", "ratio of p99"];
    Sheet::of_points("Latency, ms", group, &heads, |point| {
        let all = point.latency();
        let figures = [all.mean, all.p50, all.p90, all.p95, all.p99, all.p999, all.max].map(figures::number);
        let ratio = if group.is_open() { ratio(group, point) } else { String::new() };
        Some(figures.into_iter().chain([ratio]).collect())
    })
}

/// Lateness of begins in an open loop, and the driver's own part of it.
pub(super) fn lag(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["p50", "p95", "p99", "driver's own p95", "not started"];
    Sheet::of_points("Lateness of transactions, ms", group, &heads, |point| {
        let lag = point.lag()?;
        let own = point.own_lag().map(|own| own.p95);
        let unstarted = point.unstarted().map_or(NONE.into(), |count| count.to_string());
        let all = [Some(lag.p50), Some(lag.p95), Some(lag.p99), own].map(figures::maybe);
        Some(all.into_iter().chain([unstarted]).collect())
    })
}

/// Failures of the points that had any.
fn failures(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["failed", "retried", "errors", "lost clients"];
    Sheet::of_points("Failures, over all rounds", group, &heads, |point| {
        let all = point.failures();
        let counts = [all.failed, all.retried, all.errors, all.lost_clients];
        counts.iter().any(|count| *count > 0).then(|| counts.map(|count| count.to_string()).to_vec())
    })
}

/// The sum of counts that a stored run may hold of any size.
fn sum(counts: impl IntoIterator<Item = u64>) -> String {
    counts.into_iter().fold(0, u64::saturating_add).to_string()
}

/// Errors by code, and clients that could not go on.
fn errors(group: &Group<'_>) -> Option<Sheet> {
    let mut rows = Vec::new();
    for point in &group.points {
        let mut row = |code: &str, count: String, message: String| {
            rows.push(vec![clients(point), point.arm.clone(), code.into(), count, message]);
        };
        let errors = point.rounds.iter().flat_map(|round| &round.errors);
        for (code, errors) in gather(errors.map(|error| (&error.code, error))) {
            let tolerated = if errors[0].tolerated { " (tolerated)" } else { "" };
            let message = format!("{}{tolerated}", errors[0].message);
            row(code, sum(errors.iter().map(|error| error.count)), message);
        }
        for (clients, why) in point.rounds.iter().filter_map(|round| round.lost_clients.as_ref()) {
            row("lost clients", clients.to_string(), why.clone());
        }
    }
    Sheet::new("Errors", &["clients", "arm", "code", "count", "first message"], rows)
}

/// Counts by kind of transaction, over all rounds, where a workload has several.
fn kinds(group: &Group<'_>) -> Option<Sheet> {
    let mut rows = Vec::new();
    for point in &group.points {
        let kinds = gather(point.rounds.iter().flat_map(|round| &round.kinds).map(|kind| (&kind.name, kind)));
        for (name, kinds) in kinds.iter().filter(|_| kinds.len() > 1) {
            let counts = [
                sum(kinds.iter().map(|kind| kind.done)),
                sum(kinds.iter().map(|kind| kind.failed)),
                sum(kinds.iter().map(|kind| kind.retried)),
            ];
            rows.push([vec![clients(point), point.arm.clone(), name.to_string()], counts.to_vec()].concat());
        }
    }
    let heads = ["clients", "arm", "kind", "done", "failed", "retried"];
    Sheet::new("By kind of transaction", &heads, rows)
}

/// Conditions that must hold after the last round. Each row has the numbers of clients of one
/// arm with one outcome.
fn checks(group: &Group<'_>) -> Option<Sheet> {
    let all = group.points.iter().flat_map(|point| point.checks.iter().map(move |check| (point, check)));
    let outcomes =
        gather(all.map(|(point, check)| ((&point.arm, &check.claim, &check.fault), clients(point))));
    let row = |((arm, claim, fault), clients): ((&String, &String, &Option<String>), Vec<String>)| {
        let result = fault.as_ref().map_or("holds".into(), |fault| format!("BROKEN: {fault}"));
        vec![arm.clone(), claim.clone(), clients.join(", "), result]
    };
    let rows = outcomes.into_iter().map(row).collect();
    Sheet::new("Checks", &["arm", "condition", "clients", "result"], rows)
}

fn cpu(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["client", "server user", "server kernel", "other", "idle"];
    Sheet::of_points("The machine's CPU time", group, &heads, |point| {
        let cpu = point.cpu()?;
        let parts = [cpu.client, cpu.server_user, cpu.server_kernel, cpu.other, cpu.idle];
        Some(parts.map(figures::percent).to_vec())
    })
}

/// A transaction's costs for the server, for its kernel and for the driver.
fn costs(group: &Group<'_>) -> Option<Sheet> {
    let heads = [
        "server user, µs",
        "server kernel, µs",
        "driver's CPU, µs",
        "voluntary switches",
        "involuntary switches",
        "system calls",
    ];
    Sheet::of_points("Each transaction's CPU time, switches and calls", group, &heads, |point| {
        let (user, kernel) = point.server_cpu().map(|cpu| (cpu.user, cpu.kernel)).unzip();
        let (voluntary, involuntary) =
            point.switches().map(|switches| (switches.voluntary, switches.involuntary)).unzip();
        let all = [user, kernel, point.client_cpu(), voluntary, involuntary, point.calls()];
        Some(all.map(figures::maybe).to_vec())
    })
}

/// A transaction's events on the server's processors.
fn events(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["cycles", "instructions", "cache misses", "node loads", "migrations", "page faults"];
    Sheet::of_points("Each transaction's events on the server", group, &heads, |point| {
        let all = point.counters()?;
        let hardware = [all.cycles, all.instructions, all.cache_misses, all.node_loads];
        Some(hardware.into_iter().chain([all.migrations, all.page_faults]).map(figures::number).collect())
    })
}

fn fits(group: &Group<'_>) -> Option<Sheet> {
    let row = |arm: &&str| {
        let fit = group.fit(arm)?;
        let peak = fit.peak.as_ref();
        Some(vec![
            arm.to_string(),
            figures::bounded(&fit.single, figures::number),
            figures::bounded(&fit.contention, figures::small),
            figures::bounded(&fit.coherence, figures::small),
            peak.map_or("none".into(), |peak| figures::bounded(&peak.clients, figures::whole)),
            peak.map_or(NONE.into(), |peak| figures::number(peak.tps)),
            figures::number(fit.explained),
        ])
    };
    let heads = ["arm", "tps of one client", "contention", "coherence", "peak at clients", "tps there", "R²"];
    Sheet::new("Universal scalability law", &heads, group.arms.iter().filter_map(row).collect())
}

/// The shares of one kind in a point.
type SharesOf = fn(&Point) -> Profile;

/// Top symbols of each arm's server, then the waits of its sessions: a column for each of its
/// points. Names with the greatest share come first.
pub(crate) fn shares(group: &Group<'_>) -> Vec<Sheet> {
    let kinds: [(&str, &str, SharesOf); 2] = [
        ("Top symbols of the server", "symbol", Point::symbols),
        ("Wait events of the sessions", "wait", Point::waits),
    ];
    let mut sheets = Vec::new();
    for (title, key, of) in kinds {
        for arm in &group.arms {
            let mut line = group.line(arm);
            line.retain(|point| !of(point).shares.is_empty());
            let all = line.iter().enumerate().flat_map(|(at, point)| {
                of(point).shares.into_iter().map(move |one| (one.name, (at, one.share)))
            });
            let mut rows = gather(all);
            let greatest = |shares: &[(usize, f64)]| shares.iter().map(|one| one.1).fold(0.0, f64::max);
            rows.sort_by(|one, other| greatest(&other.1).total_cmp(&greatest(&one.1)));
            let row = |(name, shares): (String, Vec<(usize, f64)>)| {
                let mut row = vec![NONE.to_owned(); line.len()];
                shares.into_iter().for_each(|(at, share)| row[at] = figures::percent(share));
                [vec![name], row].concat()
            };
            let counts: Vec<String> = line.iter().map(|point| clients(point)).collect();
            let heads: Vec<&str> = [key].into_iter().chain(counts.iter().map(String::as_str)).collect();
            let title = format!("{title} by clients, {arm}");
            sheets.extend(Sheet::new(&title, &heads, rows.into_iter().map(row).collect()));
        }
    }
    sheets
}

/// Checks that failed, a line each.
pub(crate) fn broken_checks(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for point in &report.points {
        for check in &point.checks {
            let Some(fault) = &check.fault else { continue };
            let at = figures::clients(point.clients);
            lines.push(format!("{} at {at}, {}: {}: {fault}", point.workload, point.arm, check.claim));
        }
    }
    lines
}

/// Missing measurements: those that the command line asked for, and observations that no round of a
/// point has.
pub(crate) fn missing(report: &Report) -> Vec<String> {
    let unseen = report.points.iter().flat_map(|point| {
        let reasons = point.rounds.iter().flat_map(|round| &round.observed.unseen);
        let reasons = reasons.filter(|reason| !is_seen_elsewhere(point, reason));
        reasons.map(|reason| ((&point.arm, reason), point.clients))
    });
    let line = |((arm, reason), mut counts): ((&String, &String), Vec<usize>)| {
        counts.dedup();
        let mut points = report.points.iter().filter(|point| point.arm == *arm);
        if points.all(|point| counts.contains(&point.clients)) {
            return format!("{arm}: {reason}");
        }
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        format!("{arm} with {}: {reason}", figures::list(&counts))
    };
    report.missing.iter().cloned().chain(gather(unseen).into_iter().map(line)).collect()
}

/// Whether another round of the point has the observation that `reason` reports as missing.
fn is_seen_elsewhere(point: &Point, reason: &str) -> bool {
    let any = |seen: fn(&Observed) -> bool| point.rounds.iter().any(|round| seen(&round.observed));
    (reason.starts_with(NO_CALLS) && any(|one| one.calls.is_some()))
        || (reason.starts_with(NO_COUNTERS) && any(|one| one.counters.is_some()))
        || (reason.starts_with(NO_SYMBOLS) && any(|one| !one.symbols.is_empty()))
        || (reason.starts_with(NO_WAITS) && any(|one| one.looks > 0))
}

/// The fixed loop's times, from the quickest to the slowest; `None` if it never ran.
pub(crate) fn noise(report: &Report) -> Option<String> {
    let took = || report.machine.noise.iter().map(|noise| noise.took).filter(|took| took.is_finite());
    let least = took().min_by(f64::total_cmp)?;
    let most = took().max_by(f64::total_cmp)?;
    let apart = figures::percent(most / least - 1.0);
    let (least, most) = (figures::number(least), figures::number(most));
    Some(format!("a fixed loop took {least} to {most} ms over the run ({apart} apart)"))
}
