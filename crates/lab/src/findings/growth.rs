//! What grew from a curve's best point to its worst, and what the machine was short of.

use super::curve::Turn;
use crate::observe::{CLIENT, RUNNING};
use crate::report::figures::{clients, list, number, percent};
use crate::report::{CpuSplit, Point, Share};

/// A symbol or a wait counts as grown by so much of all samples.
const GROWN: f64 = 0.05;

/// The kernel's part counts as grown by so much.
const GROWN_KERNEL: f64 = 0.10;

/// Counts per transaction count as grown by so many times, and by at least this much.
const GROWN_COUNT: (f64, f64) = (1.3, 0.2);

/// So many names at most.
const NAMED: usize = 3;

/// Sentences on what grew and what was short; none where nothing was observed.
pub(super) fn grown(points: &[&Point]) -> Vec<String> {
    let Some(turn) = Turn::of(points) else { return Vec::new() };
    // Without a fall, what the last point has more of than the best one keeps it from growing; where it is the best one
    // itself, the point before shows what is on its way.
    let (from, to) = match turn.fallen {
        Some(fallen) => (turn.best, fallen),
        None if turn.best.clients < turn.last.clients => (turn.best, turn.last),
        None => (points[points.len().saturating_sub(2)], turn.last),
    };
    let mut said = Vec::new();
    if from.clients < to.clients {
        said.extend(more_symbols(from, to));
        said.extend(more_waits(from, to));
        said.extend(more_kernel(from, to));
        said.extend(more_counts(from, to));
    }
    said.extend(turn.best.cpu().map(|split| limits(turn.best, &split)).unwrap_or_default());
    said.extend(turn.fallen.and_then(|fallen| idle(fallen, &fallen.cpu()?)));
    said
}

/// Names whose share grew, those that grew most first, with the sums of their shares before and after.
fn more(before: &[Share], after: &[Share]) -> Option<(Vec<String>, f64, f64)> {
    if before.is_empty() {
        return None;
    }
    let then = |name: &str| before.iter().find(|one| one.name == name).map_or(0.0, |one| one.share);
    let mut grown: Vec<(&Share, f64)> = after
        .iter()
        .map(|one| (one, then(&one.name)))
        .filter(|(one, then)| one.share - then >= GROWN)
        .collect();
    grown.sort_by(|one, other| (other.0.share - other.1).total_cmp(&(one.0.share - one.1)));
    grown.truncate(NAMED);
    let sums = (grown.iter().map(|one| one.1).sum(), grown.iter().map(|one| one.0.share).sum());
    let names: Vec<String> = grown.iter().map(|one| one.0.name.clone()).collect();
    (!names.is_empty()).then_some((names, sums.0, sums.1))
}

fn more_symbols(from: &Point, to: &Point) -> Option<String> {
    let after = to.symbols();
    if let Some((names, then, now)) = more(&from.symbols(), &after) {
        let (now, then) = (percent(now), percent(then));
        let (names, to, from) = (list(&names), clients(to.clients), clients(from.clients));
        return Some(format!("with {to} {now} of server time is in {names}, with {from} it was {then}"));
    }
    let top = after.first().filter(|top| top.share >= 2.0 * GROWN)?;
    let (to, share) = (clients(to.clients), percent(top.share));
    Some(format!("with {to} {share} of server time is in {}, more than in any other symbol", top.name))
}

fn more_waits(from: &Point, to: &Point) -> Option<String> {
    let real = |point: &Point| -> Vec<Share> {
        let all = point.waits();
        // Whoever runs, or has nothing to do, waits for nothing in the server; but that such samples exist must be known.
        if all.is_empty() {
            return all;
        }
        let nothing = Share { name: String::new(), share: 0.0 };
        all.into_iter().filter(|one| one.name != RUNNING && one.name != CLIENT).chain([nothing]).collect()
    };
    let (names, then, now) = more(&real(from), &real(to))?;
    let (now, then, to, from) = (percent(now), percent(then), clients(to.clients), clients(from.clients));
    Some(format!("with {to} {now} of the sessions wait for {}, with {from} it was {then}", list(&names)))
}

fn more_kernel(from: &Point, to: &Point) -> Option<String> {
    let (then, now) = (kernel_part(from)?, kernel_part(to)?);
    (now - then >= GROWN_KERNEL).then(|| {
        let (now, then, to, from) = (percent(now), percent(then), clients(to.clients), clients(from.clients));
        format!("the kernel takes {now} of the server's CPU time with {to}, with {from} it was {then}")
    })
}

/// The kernel's part of the server's CPU time.
fn kernel_part(point: &Point) -> Option<f64> {
    let cpu = point.cpu()?;
    let server = cpu.server_user + cpu.server_kernel;
    // Of a server that hardly runs, a part says nothing.
    (server >= 0.02).then(|| cpu.server_kernel / server)
}

fn more_counts(from: &Point, to: &Point) -> Vec<String> {
    let grew = |then: f64, now: f64| now >= GROWN_COUNT.0 * then && now - then >= GROWN_COUNT.1;
    let sentence = |what: &str, then: f64, now: f64| {
        let (to, from) = (clients(to.clients), clients(from.clients));
        format!("a transaction costs {} {what} with {to}, with {from} it was {}", number(now), number(then))
    };
    let mut said = Vec::new();
    if let (Some(then), Some(now)) = (from.switches(), to.switches()) {
        if grew(then.voluntary, now.voluntary) {
            said.push(sentence("voluntary context switches", then.voluntary, now.voluntary));
        }
        if grew(then.involuntary, now.involuntary) {
            said.push(sentence("involuntary context switches", then.involuntary, now.involuntary));
        }
    }
    if let (Some(then), Some(now)) = (from.calls(), to.calls())
        && grew(then, now)
    {
        said.push(sentence("system calls", then, now));
    }
    said
}

/// What limits the best point.
fn limits(best: &Point, split: &CpuSplit) -> Vec<String> {
    let at = clients(best.clients);
    let mut said = Vec::new();
    let server = percent(split.server_user + split.server_kernel);
    // What others take is neither the server's limit nor its fault.
    let shared = split.other >= 0.1;
    if split.idle < 0.05 && shared {
        said.push(format!(
            "with {at} the CPUs are used up, {} by other programs: {server} were the server's and {} the load driver's, \
             and with the machine to themselves they might have done more",
            percent(split.other),
            percent(split.client)
        ));
        return said;
    }
    if split.idle < 0.05 {
        said.push(format!(
            "with {at} the CPUs are used up: {server} by the server, {} by the load driver; more needs more CPUs, or less \
             work for each transaction",
            percent(split.client)
        ));
    } else if split.idle >= 0.3 {
        said.push(format!(
            "at its best, with {at}, the CPUs are {} idle: they are not what limits it",
            percent(split.idle)
        ));
    }
    if shared {
        said.push(format!(
            "with {at} other programs took {} of the CPU time: the figures are theirs as well",
            percent(split.other)
        ));
    }
    said
}

fn idle(fallen: &Point, split: &CpuSplit) -> Option<String> {
    let (at, idle) = (clients(fallen.clients), percent(split.idle));
    (split.idle >= 0.3)
        .then(|| format!("with {at} the CPUs are {idle} idle: the server waits rather than computes"))
}
