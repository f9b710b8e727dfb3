//! A point's observations as one: the means over those of its rounds that have them.

use crate::report::{CpuSplit, Observed, Point, Share, Switches};

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn observed(point: &Point) -> impl Iterator<Item = &Observed> {
    point.rounds.iter().map(|round| &round.observed)
}

/// Where CPU time went.
pub(super) fn cpu(point: &Point) -> Option<CpuSplit> {
    let part = |of: fn(&CpuSplit) -> f64| mean(observed(point).filter_map(|one| one.cpu.as_ref()).map(of));
    Some(CpuSplit {
        client: part(|cpu| cpu.client)?,
        server_user: part(|cpu| cpu.server_user)?,
        server_kernel: part(|cpu| cpu.server_kernel)?,
        other: part(|cpu| cpu.other)?,
        idle: part(|cpu| cpu.idle)?,
    })
}

/// The kernel's part of the server's CPU time.
pub(super) fn kernel(point: &Point) -> Option<f64> {
    let cpu = cpu(point)?;
    let server = cpu.server_user + cpu.server_kernel;
    // Of a server that hardly runs, a part says nothing.
    (server >= 0.02).then(|| cpu.server_kernel / server)
}

/// Context switches for each transaction.
pub(super) fn switches(point: &Point) -> Option<Switches> {
    let part =
        |of: fn(&Switches) -> f64| mean(observed(point).filter_map(|one| one.switches.as_ref()).map(of));
    Some(Switches { voluntary: part(|one| one.voluntary)?, involuntary: part(|one| one.involuntary)? })
}

/// System calls for each transaction.
pub(super) fn calls(point: &Point) -> Option<f64> {
    mean(observed(point).filter_map(|one| one.calls))
}

/// Symbols of the server, by their share.
pub(super) fn symbols(point: &Point) -> Vec<Share> {
    shares(observed(point).map(|one| one.symbols.as_slice()))
}

/// What its sessions waited for, by share.
pub(super) fn waits(point: &Point) -> Vec<Share> {
    shares(observed(point).map(|one| one.waits.as_slice()))
}

/// Means over the rounds that have any; a name that a round doesn't have counts as nothing there. The largest first.
fn shares<'a>(rounds: impl Iterator<Item = &'a [Share]>) -> Vec<Share> {
    let (mut sums, mut count): (Vec<Share>, usize) = (Vec::new(), 0);
    for round in rounds.filter(|round| !round.is_empty()) {
        count += 1;
        for one in round {
            match sums.iter_mut().find(|sum| sum.name == one.name) {
                Some(sum) => sum.share += one.share,
                None => sums.push(one.clone()),
            }
        }
    }
    sums.iter_mut().for_each(|sum| sum.share /= count as f64);
    sums.sort_by(|one, other| other.share.total_cmp(&one.share));
    sums
}
