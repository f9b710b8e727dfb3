//! A report as tables of text, which the terminal, Markdown and HTML each format in their own way.
//!
//! A [`Sheet`] has a key column (clients, mostly) and blocks of columns beside it (one per arm,
//! mostly). An output with little room can put the blocks below each other and repeat the keys.

use super::groups::Group;
use crate::figures::{self, NONE};
use crate::record::{
    Interval, Latency, NO_CALLS, NO_SYMBOLS, NO_WAITS, Observed, Point, Report, Share, Verdict,
};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sheet {
    /// The title.
    pub title: String,
    /// The head of the key column.
    pub key: String,
    /// The key of each row.
    pub keys: Vec<String>,
    /// The columns beside the keys.
    pub blocks: Vec<Block>,
}

/// Columns that belong together.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Block {
    /// The head over all its columns; may be empty.
    pub name: String,
    /// The head of each column.
    pub heads: Vec<String>,
    /// For each key, a cell for each head.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    fn of_points(
        title: &str,
        group: &Group<'_>,
        heads: &[&str],
        cells: impl Fn(&Point) -> Vec<String>,
    ) -> Self {
        let heads: Vec<String> = heads.iter().map(|head| head.to_string()).collect();
        let block = |arm: &&str| {
            let row = |clients: &usize| match group.point(arm, *clients) {
                Some(point) => cells(point),
                None => vec![NONE.into(); heads.len()],
            };
            Block {
                name: arm.to_string(),
                heads: heads.clone(),
                rows: group.clients.iter().map(row).collect(),
            }
        };
        Self {
            title: title.into(),
            key: "clients".into(),
            keys: group.clients.iter().map(usize::to_string).collect(),
            blocks: group.arms.iter().map(block).collect(),
        }
    }

    /// Adds to each arm but the first its ratio to the first, under a head that names both sides.
    fn add_ratios(&mut self, group: &Group<'_>, report: &Report, of: &str) {
        let Some(first) = report.arms.first() else { return };
        for block in self.blocks.iter_mut().filter(|block| block.name != first.name) {
            block.heads.push(format!("{of}{} / {}", block.name, first.name));
            for (row, clients) in block.rows.iter_mut().zip(&group.clients) {
                let ratio = group.point(&block.name, *clients).and_then(|point| point.ratio);
                row.push(ratio.as_ref().map_or(NONE.into(), ratio_within));
            }
        }
    }

    /// A sheet with one unnamed block; `rows` begin with their key. `None` without rows.
    fn plain(title: &str, key: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let mut keys = Vec::new();
        let mut cells = Vec::new();
        for mut row in rows {
            cells.push(row.split_off(1));
            keys.extend(row);
        }
        let heads = heads.iter().map(|head| head.to_string()).collect();
        let blocks = vec![Block { name: String::new(), heads, rows: cells }];
        Some(Self { title: title.into(), key: key.into(), keys, blocks })
    }
}

/// A ratio with its interval.
fn ratio_within(ratio: &Interval) -> String {
    match ratio.verdict() {
        Verdict::More | Verdict::Less => figures::bounded(ratio, figures::factor),
        _ => figures::ratio(ratio),
    }
}

/// Transactions a second with their bounds, and each arm's ratio to the first one; in an open loop
/// throughput as a part of the arrivals.
pub fn throughput(group: &Group<'_>, report: &Report) -> Sheet {
    let open = group.is_open();
    let heads = if open { &["tps", "±", "of those due"][..] } else { &["tps", "±"] };
    let mut sheet = Sheet::of_points("Transactions a second", group, heads, |point| {
        let kept = open.then(|| point.kept().map_or(NONE.into(), figures::percent));
        [figures::number(point.tps.value), figures::spread(&point.tps)].into_iter().chain(kept).collect()
    });
    if !open {
        sheet.add_ratios(group, report, "");
    }
    sheet
}

/// The most important latencies; in an open loop with each arm's ratio of p99 to the first one's.
pub fn latency(group: &Group<'_>, report: &Report) -> Sheet {
    let mut sheet = Sheet::of_points("Latency, ms", group, &["p50", "p95", "p99"], |point| {
        let Latency { p50, p95, p99, .. } = point.latency();
        [p50, p95, p99].map(figures::number).to_vec()
    });
    if group.is_open() {
        sheet.add_ratios(group, report, "p99, ");
    }
    sheet
}

/// The other latencies.
pub fn more_latency(group: &Group<'_>) -> Sheet {
    Sheet::of_points("Latency, ms: the rest", group, &["mean", "p90", "p99.9", "max"], |point| {
        let Latency { mean, p90, p999, max, .. } = point.latency();
        [mean, p90, p999, max].map(figures::number).to_vec()
    })
}

/// Lateness of begins, and the driver's own part of it; `None` in a closed loop.
pub fn lag(group: &Group<'_>) -> Option<Sheet> {
    let open = group.points().any(|point| point.lag().is_some());
    let heads = ["p50", "p95", "p99", "driver's own p95", "not started"];
    open.then(|| {
        Sheet::of_points("Lateness of transactions, ms", group, &heads, |point| {
            let (lag, own) =
                (point.lag().unwrap_or(Latency::none()), point.own_lag().unwrap_or(Latency::none()));
            let unstarted = point.unstarted().map_or(NONE.into(), |count| count.to_string());
            [lag.p50, lag.p95, lag.p99, own.p95].map(figures::number).into_iter().chain([unstarted]).collect()
        })
    })
}

/// Failures, at the numbers of clients that had any; `None` where none had.
pub fn failures(group: &Group<'_>) -> Option<Sheet> {
    let heads = ["failed", "retried", "errors", "lost clients"];
    let mut sheet = Sheet::of_points("Failures, over all rounds", group, &heads, |point| {
        let all = point.failures();
        [all.failed, all.retried, all.errors, all.lost_clients].map(|count| count.to_string()).to_vec()
    });
    let blocks = &sheet.blocks;
    let kept: Vec<usize> = (0..sheet.keys.len())
        .filter(|at| blocks.iter().flat_map(|block| &block.rows[*at]).any(|cell| cell != "0" && cell != NONE))
        .collect();
    sheet.keys = kept.iter().map(|at| sheet.keys[*at].clone()).collect();
    for block in &mut sheet.blocks {
        block.rows = kept.iter().map(|at| block.rows[*at].clone()).collect();
    }
    (!kept.is_empty()).then_some(sheet)
}

/// Sums by key, in the order in which keys first appear.
fn sums<K: PartialEq, const N: usize>(all: impl Iterator<Item = (K, [u64; N])>) -> Vec<(K, [u64; N])> {
    let mut sums: Vec<(K, [u64; N])> = Vec::new();
    for (key, counts) in all {
        match sums.iter_mut().find(|sum| sum.0 == key) {
            Some((_, sum)) => {
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count))
            }
            None => sums.push((key, counts)),
        }
    }
    sums
}

/// Errors by code, where there were any.
pub fn errors(group: &Group<'_>) -> Option<Sheet> {
    let mut rows = Vec::new();
    for point in group.points() {
        let errors = || point.rounds.iter().flat_map(|round| &round.errors);
        for (code, [count]) in sums(errors().map(|error| (&error.code, [error.count]))) {
            let first = errors().find(|error| error.code == *code).expect("it was counted");
            let tolerated = if first.tolerated { " (tolerated)" } else { "" };
            rows.push((point, code.as_str(), count, format!("{}{tolerated}", first.message)));
        }
        let lost = point.rounds.iter().filter_map(|round| round.lost_clients.as_ref());
        rows.extend(lost.map(|(clients, why)| (point, "lost clients", *clients as u64, why.clone())));
    }
    let row = |(point, code, count, message): (&Point, &str, u64, String)| {
        vec![point.arm.clone(), point.clients.to_string(), code.into(), count.to_string(), message]
    };
    let rows = rows.into_iter().map(row).collect();
    Sheet::plain("Errors", "arm", &["clients", "code", "count", "first message"], rows)
}

/// The split of the machine's CPU time; `None` without observations.
pub fn cpu(group: &Group<'_>) -> Option<Sheet> {
    let seen = group.points().any(|point| point.cpu().is_some());
    let heads = ["client", "server user", "server kernel", "other", "idle"];
    seen.then(|| {
        Sheet::of_points("The machine's CPU time", group, &heads, |point| match point.cpu() {
            Some(cpu) => [cpu.client, cpu.server_user, cpu.server_kernel, cpu.other, cpu.idle]
                .map(figures::percent)
                .to_vec(),
            None => vec![NONE.into(); heads.len()],
        })
    })
}

/// A transaction's costs for the server's kernel and for the driver.
pub fn costs(group: &Group<'_>) -> Sheet {
    let heads = ["voluntary switches", "involuntary switches", "system calls", "driver's CPU, µs"];
    Sheet::of_points("Each transaction's switches, calls and driver's time", group, &heads, |point| {
        let switches = point.switches();
        let all = [
            switches.map(|one| one.voluntary),
            switches.map(|one| one.involuntary),
            point.calls(),
            point.client_cpu(),
        ];
        all.map(figures::maybe).to_vec()
    })
}

/// The shares that a sheet or a plot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// Top symbols of the server.
    Symbols,
    /// Wait events of the sessions.
    Waits,
}

impl Shares {
    pub(crate) fn of(self, point: &Point) -> Vec<Share> {
        match self {
            Self::Symbols => point.symbols().shares,
            Self::Waits => point.waits().shares,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Symbols => "Top symbols of the server",
            Self::Waits => "Wait events of the sessions",
        }
    }

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Symbols => "symbol",
            Self::Waits => "wait",
        }
    }
}

/// An arm's shares at some of its points: one row per name, with the points' shares in their order.
/// Names with the greatest share come first, `most` of them. A share that a point did not list is
/// `None`.
pub fn shares(points: &[&Point], what: Shares, most: usize) -> Vec<(String, Vec<Option<f64>>)> {
    let all: Vec<Vec<Share>> = points.iter().map(|point| what.of(point)).collect();
    let mut names: Vec<(&str, f64)> = Vec::new();
    for one in all.iter().flatten() {
        match names.iter_mut().find(|(name, _)| *name == one.name) {
            Some((_, greatest)) => *greatest = greatest.max(one.share),
            None => names.push((&one.name, one.share)),
        }
    }
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.truncate(most);
    let at =
        |name: &str, shares: &Vec<Share>| shares.iter().find(|one| one.name == name).map(|one| one.share);
    let row = |(name, _): (&str, f64)| {
        (name.to_string(), all.iter().map(|shares| at(name, shares)).collect::<Vec<Option<f64>>>())
    };
    names.into_iter().map(row).collect()
}

/// An arm's shares at all its points; `None` without observations.
pub fn shares_sheet(group: &Group<'_>, arm: &str, what: Shares) -> Option<Sheet> {
    let mut line = group.line(arm);
    line.retain(|point| !what.of(point).is_empty());
    let heads: Vec<String> = line.iter().map(|point| point.clients.to_string()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let text = |share: &Option<f64>| share.map_or(NONE.into(), figures::percent);
    let rows = shares(&line, what, usize::MAX).into_iter();
    let rows = rows.map(|(name, row)| std::iter::once(name).chain(row.iter().map(text)).collect()).collect();
    Sheet::plain(&format!("{} by clients, {arm}", what.title()), what.key(), &heads, rows)
}

/// The same for all arms with observations.
pub fn all_shares(group: &Group<'_>, what: Shares) -> Vec<Sheet> {
    group.arms.iter().filter_map(|arm| shares_sheet(group, arm, what)).collect()
}

/// Counts by kind of transaction, over all rounds; `None` where a workload has only one kind.
pub fn kinds(group: &Group<'_>) -> Option<Sheet> {
    let points = || group.arms.iter().flat_map(|arm| group.line(arm));
    let mixed = points().flat_map(|point| &point.rounds).any(|round| round.kinds.len() > 1);
    let of_point = |point: &Point| {
        let kinds = point.rounds.iter().flat_map(|round| &round.kinds);
        let sums = sums(kinds.map(|kind| (&kind.name, [kind.done, kind.failed, kind.retried])));
        let row = |(kind, counts): (&String, [u64; 3])| {
            let texts = [point.arm.clone(), point.clients.to_string(), kind.clone()];
            texts.into_iter().chain(counts.map(|count| count.to_string())).collect()
        };
        sums.into_iter().map(row).collect::<Vec<Vec<String>>>()
    };
    let rows = points().filter(|_| mixed).flat_map(of_point).collect();
    Sheet::plain("By kind of transaction", "arm", &["clients", "kind", "done", "failed", "retried"], rows)
}

/// The fitted curves; `None` without any.
pub fn fits(group: &Group<'_>) -> Option<Sheet> {
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
    let heads = ["tps of one client", "contention", "coherence", "peak at clients", "tps there", "R²"];
    Sheet::plain("Universal scalability law", "arm", &heads, group.arms.iter().filter_map(row).collect())
}

/// Conditions that must hold after the runs, each once for an arm, and where they failed; `None`
/// without checks.
pub fn checks(group: &Group<'_>) -> Option<Sheet> {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for point in group.arms.iter().flat_map(|arm| group.line(arm)) {
        for check in &point.checks {
            let outcome = check.fault.as_ref().map_or("holds".into(), |fault| format!("BROKEN: {fault}"));
            let clients = point.clients.to_string();
            let same =
                |row: &&mut [String; 4]| (&row[0], &row[1], &row[3]) == (&point.arm, &check.claim, &outcome);
            match rows.iter_mut().find(same) {
                Some(row) => row[2] += &format!(", {clients}"),
                None => rows.push([point.arm.clone(), check.claim.clone(), clients, outcome]),
            }
        }
    }
    let rows = rows.into_iter().map(Vec::from).collect();
    Sheet::plain("Checks", "arm", &["condition", "clients", "result"], rows)
}

/// Checks that failed, a line each.
pub fn broken_checks(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for point in &report.points {
        for check in &point.checks {
            let Some(fault) = &check.fault else { continue };
            lines.push(format!(
                "{} at {}, {}: {}: {fault}",
                point.workload,
                figures::clients(point.clients),
                point.arm,
                check.claim
            ));
        }
    }
    lines
}

/// Missing measurements: those that the command line asked for, and observations that no round of a
/// point has.
pub fn missing(report: &Report) -> Vec<String> {
    let mut unseen: Vec<(&str, &str, Vec<usize>)> = Vec::new();
    for point in &report.points {
        for reason in point.rounds.iter().flat_map(|round| &round.observed.unseen) {
            if is_seen_elsewhere(point, reason) {
                continue;
            }
            match unseen.iter_mut().find(|(arm, known, _)| *arm == point.arm && known == reason) {
                Some((_, _, counts)) if counts.contains(&point.clients) => {}
                Some((_, _, counts)) => counts.push(point.clients),
                None => unseen.push((&point.arm, reason, vec![point.clients])),
            }
        }
    }
    let unseen = unseen.into_iter().map(|(arm, reason, counts)| {
        let all = report
            .points
            .iter()
            .filter(|point| point.arm == arm)
            .all(|point| counts.contains(&point.clients));
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        if all {
            format!("{arm}: {reason}")
        } else {
            format!("{arm} with {}: {reason}", figures::list(&counts))
        }
    });
    report.missing.iter().cloned().chain(unseen).collect()
}

/// Whether another round of the point has the observation that `reason` reports as missing.
fn is_seen_elsewhere(point: &Point, reason: &str) -> bool {
    let any = |seen: fn(&Observed) -> bool| point.rounds.iter().any(|round| seen(&round.observed));
    (reason.starts_with(NO_CALLS) && any(|one| one.calls.is_some()))
        || (reason.starts_with(NO_SYMBOLS) && any(|one| !one.symbols.is_empty()))
        || (reason.starts_with(NO_WAITS) && any(|one| one.looks > 0))
}

/// The fixed loop's times, from the quickest to the slowest; `None` if it never ran.
pub fn noise(report: &Report) -> Option<String> {
    let took = || report.machine.noise.iter().map(|noise| noise.took).filter(|took| took.is_finite());
    let least = took().min_by(f64::total_cmp)?;
    let most = took().max_by(f64::total_cmp)?;
    let apart = figures::percent(most / least - 1.0);
    let (least, most) = (figures::number(least), figures::number(most));
    Some(format!("a fixed loop took {least} to {most} ms over the run ({apart} apart)"))
}
