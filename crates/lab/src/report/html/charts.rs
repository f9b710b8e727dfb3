//! The plots of one workload.

use serde_json::{Value, json};

use super::axis::Axis;
use super::plot::{Dot, Line, Plot};
use crate::figures;
use crate::record::{Interval, Latency, Point};
use crate::report::groups::Group;

type Percentile = fn(&Latency) -> f64;

const PERCENTILES: [(&str, Percentile); 3] =
    [("p50", |all| all.p50), ("p95", |all| all.p95), ("p99", |all| all.p99)];

/// The axis of a rate.
const DUE: &str = "transactions due a second";

/// The parts of the CPU time, in the order of their bars.
const PARTS: [&str; 5] = ["server, own code", "server, kernel", "client", "other", "idle"];

/// The report's first plots: throughput against clients, or against a rising rate.
pub(super) fn lead(group: &Group<'_>) -> Value {
    section(&group.title(), "plots two", leading(group))
}

/// All other plots.
pub(super) fn sections(group: &Group<'_>) -> Vec<Value> {
    let efficiency = efficiency(group).map(|plot| section("Efficiency", "plots two", vec![plot]));
    let latency = section("Latency", "plots", latencies(group));
    let seconds = seconds(group);
    let seconds =
        (!seconds.is_empty()).then(|| section("Throughput over the seconds of all rounds", "plots", seconds));
    efficiency.into_iter().chain([latency]).chain(cpu(group)).chain(seconds).collect()
}

/// The plots of throughput, efficiency and the 99th percentile as separate pictures: a description
/// of each, and its SVG.
pub(super) fn pictures(group: &Group<'_>) -> Vec<(&'static str, String)> {
    let all = [
        ("tps", "transactions a second", leading(group).pop()),
        ("efficiency", "efficiency, relative to the fewest clients", efficiency(group)),
        ("p99", "latency p99, ms", latencies(group).pop()),
    ];
    let drawn = all.into_iter().filter_map(|(name, what, plot)| Some((name, what, plot?)));
    // A picture is narrower than a caption in the page, and would cut a text that exceeds one line.
    drawn
        .filter(|(_, _, plot)| plot.is_seen())
        .map(|(name, what, plot)| (name, plot.picture(&format!("{}: {what}", group.workload))))
        .collect()
}

/// Plots under a heading, in a layout, with one legend.
fn section(heading: &str, class: &str, plots: Vec<Plot>) -> Value {
    json!({
        "heading": heading,
        "class": class,
        "legend": plots.first().map(Plot::legend),
        "figures": plots.iter().map(Plot::figure).collect::<Vec<_>>(),
    })
}

fn leading(group: &Group<'_>) -> Vec<Plot> {
    match group.rises() {
        true => group.clients.iter().map(|clients| done(group, *clients)).collect(),
        false => vec![throughput(group)],
    }
}

fn throughput(group: &Group<'_>) -> Plot {
    let mut plot = by_clients(group, "Transactions a second against clients", "tps", |_, _, tps| tps);
    if group.is_open() {
        for line in &mut plot.lines {
            let due = |point: &&Point| Some((point.clients as f64, point.offered()?.mean()));
            line.curve = group.line(&line.name).iter().filter_map(due).collect();
        }
        // The plot shows all arrivals, unlike a fitted curve that shoots far beyond the measured
        // values.
        plot.y = up_to_bounds(&plot.lines, plot.lines.iter().flat_map(|line| &line.curve).map(|due| due.1));
        plot.caption += "; dashed: those due";
    }
    plot
}

/// Throughput per client, relative to each arm's own point with the fewest clients; `None` in an
/// open loop.
fn efficiency(group: &Group<'_>) -> Option<Plot> {
    let relative = |arm: &str, clients: f64, tps: f64| {
        let first = group.line(arm).into_iter().find(|point| point.tps.value.is_finite());
        first.map_or(f64::NAN, |first| tps / clients / (first.tps.value / first.clients as f64))
    };
    let caption = "Efficiency: tps of each client, relative to the arm's fewest clients";
    (!group.is_open()).then(|| by_clients(group, caption, "efficiency", relative))
}

/// A plot against clients with bounds and fitted curves; `scale` maps an arm, clients and
/// transactions a second to a value.
fn by_clients(
    group: &Group<'_>,
    caption: &str,
    name: &'static str,
    scale: impl Fn(&str, f64, f64) -> f64,
) -> Plot {
    let mut lines = lines(group, |arm| {
        let dot = |point: &&Point| {
            let (x, Interval { value, .. }) = (point.clients as f64, point.tps);
            let scaled = |tps: f64| scale(arm, x, tps);
            let bounds = point.tps.bounds().map(|(low, high)| (scaled(low), scaled(high)));
            Dot { x, y: scaled(value), bounds }
        };
        group.line(arm).iter().map(dot).collect()
    });
    let ends = [group.clients.first(), group.clients.last()].map(|end| *end.unwrap_or(&1) as f64);
    for line in &mut lines {
        let Some(fit) = group.fit(&line.name) else { continue };
        let clients = (0..=60).map(|at| ends[0] * (ends[1] / ends[0]).powf(f64::from(at) / 60.0));
        line.curve = clients.map(|clients| (clients, scale(&line.name, clients, fit.tps(clients)))).collect();
    }
    let is_fitted = lines.iter().any(|line| !line.curve.is_empty());
    let dashed = if is_fitted { "; dashed: the fitted curve" } else { "" };
    Plot {
        caption: format!("{caption}{dashed}"),
        names: ("clients", name),
        x: Axis::clients(&group.clients),
        y: up_to_bounds(&lines, std::iter::empty()),
        lines,
    }
}

/// Throughput against a rising rate, at one number of clients.
fn done(group: &Group<'_>, clients: usize) -> Plot {
    let mut lines = lines(group, |arm| dots(group.point(arm, clients).map(Point::done_by_rate)));
    for line in &mut lines {
        line.curve = line.dots().map(|dot| (dot.x, dot.x)).collect();
    }
    let due = lines.iter().flat_map(|line| &line.curve).map(|due| due.1);
    Plot {
        caption: format!("{}: transactions done a second; dashed: those due", figures::clients(clients)),
        names: (DUE, "tps"),
        x: rates(&lines),
        y: Axis::from_zero(values(&lines).chain(due)),
        lines,
    }
}

/// A plot for each percentile of latency against clients; for a rising rate, against the rate, for
/// each number of clients. All have the same vertical axis, so that a reader can compare them.
fn latencies(group: &Group<'_>) -> Vec<Plot> {
    let rising: Vec<usize> = if group.rises() { group.clients.clone() } else { Vec::new() };
    let against_rate = rising.iter().flat_map(|clients| {
        PERCENTILES.map(|(name, of)| {
            let at =
                |point: &Point| point.latency_by_rate().iter().map(|(rate, all)| (*rate, of(all))).collect();
            let lines = lines(group, |arm| dots(group.point(arm, *clients).map(at)));
            let caption = format!("{}: latency {name} against the rate, ms", figures::clients(*clients));
            (caption, DUE, rates(&lines), lines)
        })
    });
    let against_clients = PERCENTILES.iter().filter(|_| rising.is_empty()).map(|(name, of)| {
        let at = |point: &Point| (point.clients as f64, of(&point.latency()));
        let lines = lines(group, |arm| dots(Some(group.line(arm).into_iter().map(at).collect())));
        (format!("Latency {name} against clients, ms"), "clients", Axis::clients(&group.clients), lines)
    });
    let all: Vec<_> = against_rate.chain(against_clients).collect();
    let y = Axis::logarithmic(all.iter().flat_map(|one| values(&one.3)));
    let plot = |(caption, name, x, lines)| Plot { caption, names: (name, "ms"), x, y: y.clone(), lines };
    all.into_iter().map(plot).collect()
}

/// The machine's CPU time as bars: a row for each point with its parts in percent.
fn cpu(group: &Group<'_>) -> Option<Value> {
    let arm = |arm: &&str| {
        let bar = |point: &Point| {
            let cpu = point.cpu()?;
            let parts = [cpu.server_user, cpu.server_kernel, cpu.client, cpu.other, cpu.idle];
            let part = |share: f64| {
                let width = (share * 100.0).clamp(0.0, 100.0);
                json!({ "width": format!("{width:.1}"), "text": figures::percent(share) })
            };
            Some(json!({ "clients": point.clients, "parts": parts.map(part) }))
        };
        let bars: Vec<Value> = group.line(arm).into_iter().filter_map(bar).collect();
        (!bars.is_empty()).then(|| json!({ "caption": arm, "bars": bars }))
    };
    let figures: Vec<Value> = group.arms.iter().filter_map(arm).collect();
    let heading = "Where the machine's CPU time went";
    (!figures.is_empty())
        .then(|| json!({ "heading": heading, "class": "plots", "parts": PARTS, "figures": figures }))
}

/// Throughput over time, where any arm is best and with the most clients.
fn seconds(group: &Group<'_>) -> Vec<Plot> {
    let is_seen = |point: &&&Point| point.rounds.iter().any(|round| round.seconds.len() > 1);
    let last = group.points.iter().rfind(is_seen).map(|point| point.clients);
    let bests: Vec<usize> =
        group.arms.iter().filter_map(|arm| group.turn(arm)).map(|turn| turn.best.clients).collect();
    let shown = group.clients.iter().filter(|clients| bests.contains(clients) || last == Some(**clients));
    let plot = |clients: &usize| {
        let caption = format!("{}: transactions in each second", figures::clients(*clients));
        let mut lines = lines(group, |_| Vec::new());
        for line in &mut lines {
            let mut second = 0;
            let mut dot = |done: &u64| {
                second += 1;
                Dot { x: f64::from(second - 1), y: *done as f64, bounds: None }
            };
            let rounds = group.point(&line.name, *clients).map_or(&[][..], |point| &point.rounds);
            line.runs = rounds.iter().map(|round| round.seconds.iter().map(&mut dot).collect()).collect();
        }
        let names = ("seconds counted, rounds apart", "tps");
        Plot { caption, names, x: rates(&lines), y: Axis::from_zero(values(&lines)), lines }
    };
    shown.map(plot).filter(Plot::is_seen).collect()
}

/// A line for each arm with these dots.
fn lines(group: &Group<'_>, of: impl Fn(&str) -> Vec<Dot>) -> Vec<Line> {
    let line = |arm: &&str| Line {
        arm: group.report.arm_number(arm),
        name: arm.to_string(),
        runs: vec![of(arm)],
        curve: Vec::new(),
    };
    group.arms.iter().map(line).collect()
}

/// Dots without bounds; none for an arm that lacks the point.
fn dots(values: Option<Vec<(f64, f64)>>) -> Vec<Dot> {
    values.unwrap_or_default().into_iter().map(|(x, y)| Dot { x, y, bounds: None }).collect()
}

/// A horizontal axis from 0 to the greatest rate or second.
fn rates(lines: &[Line]) -> Axis {
    Axis::from_zero(lines.iter().flat_map(Line::dots).map(|dot| dot.x))
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(Line::dots).map(|dot| dot.y).filter(|value| value.is_finite())
}

/// An axis from 0 to the highest value or bound, or to the highest of the others. Bounds far above
/// all values, as of few noisy rounds, would press the values to the ground: they leave the plot.
fn up_to_bounds(lines: &[Line], others: impl Iterator<Item = f64>) -> Axis {
    let most = 1.5 * values(lines).fold(0.0, f64::max);
    let of = |dot: &Dot| [dot.y].into_iter().chain(dot.bounds.map(|(_, high)| high.min(most)));
    Axis::from_zero(lines.iter().flat_map(Line::dots).flat_map(of).chain(others))
}
