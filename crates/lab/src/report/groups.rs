//! Orders points: all arms' points of one workload and protocol. Sums up a point's rounds.

use super::turn::Turn;
use crate::load::Protocol;
use crate::record::{
    Counters, CpuSplit, Fit, Interval, Latency, Numbers, Offered, OwnCpus, PIPELINE, Point, Profile, Report,
    Round, ServerCpu, Share, Switches,
};
use crate::stats;

/// All points of one workload and protocol.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) report: &'a Report,
    pub(crate) workload: &'a str,
    pub(crate) protocol: Protocol,
    /// Numbers of clients of any arm, rising.
    pub(crate) clients: Vec<usize>,
    /// Arms that have points here, in the report's order.
    pub(crate) arms: Vec<&'a str>,
    /// The points, by rising clients; those of the same clients in the order of their arms.
    pub(crate) points: Vec<&'a Point>,
}

/// Values by their key, both in the order in which they first appear.
pub(super) fn gather<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut gathered: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match gathered.iter_mut().find(|one| one.0 == key) {
            Some((_, values)) => values.push(value),
            None => gathered.push((key, vec![value])),
        }
    }
    gathered
}

/// A report's groups, in the order they were first measured.
pub(crate) fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    let all = report.points.iter().map(|point| ((point.workload.as_str(), point.protocol), point));
    for ((workload, protocol), mut points) in gather(all) {
        points.sort_by_key(|point| (point.clients, report.arm_number(&point.arm)));
        let mut clients: Vec<usize> = points.iter().map(|point| point.clients).collect();
        clients.dedup();
        let arms = gather(points.iter().map(|point| (point.arm.as_str(), ())));
        let mut arms: Vec<&str> = arms.into_iter().map(|(arm, _)| arm).collect();
        arms.sort_by_key(|arm| report.arm_number(arm));
        groups.push(Group { report, workload, protocol, clients, arms, points });
    }
    groups
}

impl<'a> Group<'a> {
    /// The workload and protocol, as a heading.
    pub(crate) fn title(&self) -> String {
        let pipelined = self.report.load.iter().any(|(name, _)| name == PIPELINE);
        let pipelined = if pipelined { ", pipelined" } else { "" };
        format!("{}, {}{pipelined}", self.workload, self.protocol.name())
    }

    pub(crate) fn point(&self, arm: &str, clients: usize) -> Option<&'a Point> {
        self.points.iter().copied().find(|point| point.arm == arm && point.clients == clients)
    }

    pub(crate) fn line(&self, arm: &str) -> Vec<&'a Point> {
        self.points.iter().copied().filter(|point| point.arm == arm).collect()
    }

    /// Whether transactions arrived at a given rate, whether the server kept up or not. Throughput
    /// is then no measure of the server's capacity.
    pub(crate) fn is_open(&self) -> bool {
        self.points.iter().any(|point| point.is_open())
    }

    /// Whether the rate rises, or falls, over each round.
    pub(crate) fn rises(&self) -> bool {
        self.points.iter().filter_map(|point| point.offered()).any(|offered| offered.from != offered.to)
    }

    pub(crate) fn fit(&self, arm: &str) -> Option<&'a Fit> {
        let here =
            |fit: &&Fit| fit.arm == arm && fit.workload == self.workload && fit.protocol == self.protocol;
        self.report.fits.iter().find(here)
    }

    /// The turn of an arm's curve; `None` without numbers.
    pub(crate) fn turn(&self, arm: &str) -> Option<Turn<'a>> {
        Turn::of(&self.line(arm))
    }
}

/// Counts of failures at a point, over all rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    /// Errors of statements, except those that the workload tolerates.
    pub(crate) errors: u64,
    pub(crate) lost_clients: u64,
}

impl Point {
    /// The judged figure ([`Round::judged`]): the rounds' median.
    pub(crate) fn judged(&self) -> Interval {
        if self.is_open() { self.p99() } else { self.tps }
    }

    /// The 99th percentile of latency, in milliseconds: the rounds' median.
    pub(crate) fn p99(&self) -> Interval {
        let all: Vec<f64> = self.rounds.iter().map(|round| round.latency.p99).collect();
        stats::estimate_positive(&all)
    }

    /// The rounds' medians.
    pub(crate) fn latency(&self) -> Latency {
        self.all(|round| Some(round.latency), stats::median).unwrap_or(Latency::each(|_| f64::NAN))
    }

    /// Lateness of begins (open loop): the rounds' medians.
    pub(crate) fn lag(&self) -> Option<Latency> {
        self.all(|round| round.lag, stats::median)
    }

    /// Lateness of begins while a client was free, the driver's own (open loop).
    pub(crate) fn own_lag(&self) -> Option<Latency> {
        self.all(|round| round.own_lag, stats::median)
    }

    /// Latencies over a rising rate: the arrivals a second, and the rounds' medians there.
    pub(crate) fn latency_by_rate(&self) -> Vec<(f64, Latency)> {
        let (offered, steps) = (self.offered(), self.rounds.iter().map(|round| round.by_rate.len()).max());
        let steps = steps.unwrap_or(0);
        let step = |at: usize| {
            let rate = offered?.at((at as f64 + 0.5) / steps as f64);
            Some((rate, self.all(|round| round.by_rate.get(at).copied(), stats::median)?))
        };
        (0..steps).filter_map(step).collect()
    }

    /// Throughput in the seconds of a rising rate: the arrivals, and the rounds' median.
    pub(crate) fn done_by_rate(&self) -> Vec<(f64, f64)> {
        let (offered, seconds) = (self.offered(), self.rounds.iter().map(|round| round.seconds.len()).max());
        let elapsed = median(self.rounds.iter().map(|round| round.elapsed));
        let second = |at: usize| {
            let done = self.rounds.iter().filter_map(|round| round.seconds.get(at));
            Some((offered?.at((at as f64 + 0.5) / elapsed?), median(done.map(|done| *done as f64))?))
        };
        (0..seconds.unwrap_or(0)).filter_map(second).collect()
    }

    /// The arrival rates (open loop): the rounds' medians.
    pub(crate) fn offered(&self) -> Option<Offered> {
        let all = || self.rounds.iter().filter_map(|round| round.offered);
        let from = median(all().map(|one| one.from))?;
        Some(Offered { from, to: median(all().map(|one| one.to))?, even: all().all(|one| one.even) })
    }

    /// Throughput as a part of the arrivals (open loop).
    pub(crate) fn kept(&self) -> Option<f64> {
        Some(self.tps.value / self.offered()?.mean()).filter(|part| part.is_finite())
    }

    /// Transactions that arrived and never began (open loop), over all rounds; `None` where one of
    /// these does not report them.
    pub(crate) fn unstarted(&self) -> Option<u64> {
        self.rounds.iter().try_fold(0, |sum: u64, round| Some(sum.saturating_add(round.unstarted?)))
    }

    /// The numbers of all rounds that have them, combined by `as_one`.
    fn all<T: Numbers>(&self, of: impl Fn(&Round) -> Option<T>, as_one: impl Fn(&[f64]) -> f64) -> Option<T> {
        let all: Vec<T> = self.rounds.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| T::each(|number| as_one(&all.iter().map(number).collect::<Vec<_>>())))
    }

    /// Over all rounds.
    pub(crate) fn failures(&self) -> Failures {
        let mut sum = Failures::default();
        for round in &self.rounds {
            for kind in &round.kinds {
                sum.failed = sum.failed.saturating_add(kind.failed);
                sum.retried = sum.retried.saturating_add(kind.retried);
            }
            for errors in round.errors.iter().filter(|errors| !errors.tolerated) {
                sum.errors = sum.errors.saturating_add(errors.count);
            }
            let lost = round.lost_clients.as_ref().map_or(0, |(clients, _)| *clients as u64);
            sum.lost_clients = sum.lost_clients.saturating_add(lost);
        }
        sum
    }

    /// The rounds' mean, so that the shares still add up.
    pub(crate) fn cpu(&self) -> Option<CpuSplit> {
        self.all(|round| round.observed.cpu, mean)
    }

    /// The server's CPU time for each transaction: the rounds' medians.
    pub(crate) fn server_cpu(&self) -> Option<ServerCpu> {
        self.all(|round| round.observed.server_cpu, stats::median)
    }

    /// The rounds' mean.
    pub(crate) fn own_cpus(&self) -> Option<OwnCpus> {
        self.all(|round| round.observed.own_cpus, mean)
    }

    /// Number of the server's threads that worked all the time: the rounds' median.
    pub(crate) fn busy_threads(&self) -> usize {
        let seen = self.rounds.iter().filter_map(|round| round.observed.busy_threads);
        median(seen.map(|threads| threads as f64)).map_or(0, |threads| threads as usize)
    }

    /// Context switches of the server for each transaction: the rounds' medians.
    pub(crate) fn switches(&self) -> Option<Switches> {
        self.all(|round| round.observed.switches, stats::median)
    }

    /// System calls of the server for each transaction: the rounds' median.
    pub(crate) fn calls(&self) -> Option<f64> {
        median(self.rounds.iter().filter_map(|round| round.observed.calls))
    }

    /// Events of the server's hardware and kernel for each transaction: the rounds' medians.
    pub(crate) fn counters(&self) -> Option<Counters> {
        self.all(|round| round.observed.counters, stats::median)
    }

    /// The driver's own CPU time for each transaction, in microseconds: the rounds' median.
    pub(crate) fn client_cpu(&self) -> Option<f64> {
        let each = self.rounds.iter().map(|round| {
            let cpu = round.client_cpu.user + round.client_cpu.system;
            cpu / (round.tps * round.elapsed) * 1e6
        });
        median(each)
    }

    /// Top symbols of the server, of all rounds' samples.
    pub(crate) fn symbols(&self) -> Profile {
        self.profile(|round| (&round.observed.symbols, round.observed.samples))
    }

    /// Wait events of the sessions, of all rounds' samples.
    pub(crate) fn waits(&self) -> Profile {
        self.profile(|round| (&round.observed.waits, round.observed.looks))
    }

    fn profile(&self, of: impl Fn(&Round) -> (&Vec<Share>, u64)) -> Profile {
        let seen = || self.rounds.iter().map(&of).filter(|(shares, _)| !shares.is_empty());
        // Without sample counts, rounds weigh alike.
        let weight = |samples: u64| samples.max(1) as f64;
        let all: f64 = seen().map(|(_, samples)| weight(samples)).sum();
        let parts = seen().flat_map(|(shares, samples)| {
            let part = move |one: &Share| (one.name.clone(), one.share * weight(samples) / all);
            shares.iter().filter(|one| one.share.is_finite()).map(part)
        });
        let sum = |(name, parts): (String, Vec<f64>)| Share { name, share: parts.iter().sum() };
        let mut shares: Vec<Share> = gather(parts).into_iter().map(sum).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        Profile { samples: seen().fold(0, |sum: u64, (_, samples)| sum.saturating_add(samples)), shares }
    }
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// The median of the numbers among these; `None` without any.
fn median(of: impl Iterator<Item = f64>) -> Option<f64> {
    Some(stats::median(&of.collect::<Vec<_>>())).filter(|median| median.is_finite())
}
