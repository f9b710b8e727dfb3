//! Findings of constructed reports.

use super::*;
use crate::load::Protocol;
use crate::observe::RUNNING;
use crate::record::{CpuSplit, Interval, KindCounts, Observed, Offered, OwnCpus, Peak};
use crate::report::samples::{self, shares};
use crate::stats::{estimate, test_noise};
use crate::tests::{golden, golden_cases};

/// A report with these points of the arm pg, on a steady machine.
fn report(points: Vec<Point>) -> Report {
    let mut report = samples::one_point();
    report.machine.noise.clear();
    report.points = points;
    report
}

fn concluded(mut report: Report) -> Report {
    conclude(&mut report);
    report
}

/// The findings of one arm's points of one workload, without the name of these.
fn findings(points: Vec<Point>) -> Vec<String> {
    let findings = concluded(report(points)).findings;
    findings.iter().map(|one| one.strip_prefix("pg, select-only: ").unwrap_or(one).to_owned()).collect()
}

/// The findings with this text in them.
fn findings_on(text: &str, points: Vec<Point>) -> Vec<String> {
    findings(points).into_iter().filter(|one| one.contains(text)).collect()
}

/// A point of these rounds.
fn of_rounds(clients: usize, rounds: &[f64]) -> Point {
    let mut point = test_noise::point("pg", clients, rounds);
    point.tps = estimate(rounds);
    point
}

/// Points of five rounds close to the throughput.
fn curve(tps: &[(usize, f64)]) -> Vec<Point> {
    let rounds = |tps: f64| [0.99, 1.0, 1.01, 1.005, 0.995].map(|noise| tps * noise);
    tps.iter().map(|&(clients, tps)| of_rounds(clients, &rounds(tps))).collect()
}

/// Throughput halves from 8 to 64 clients, with these observations.
fn falling_with(best: Observed, fallen: Observed) -> Vec<Point> {
    let mut points = curve(&[(1, 1_000.0), (8, 6_000.0), (16, 5_500.0), (64, 3_000.0)]);
    for (index, observed) in [(1, best), (3, fallen)] {
        // Only the first round has costly observations.
        for round in &mut points[index].rounds[1..] {
            round.observed = Observed { symbols: Vec::new(), calls: None, ..observed.clone() };
        }
        points[index].rounds[0].observed = observed;
    }
    points
}

#[test]
fn a_fall_names_the_costs_that_grew() {
    golden("findings_fall", &concluded(samples::two_arms()).findings.join("\n"));
}

#[test]
fn cpus_limit_a_server_unless_they_are_idle() {
    // The machine is 2% idle, which says nothing about the server's own CPUs.
    let cases = [(0.5, 0.01, 0), (0.01, 0.5, 0), (0.2, 0.5, 0), (0.5, 0.5, 1), (0.5, 0.5, 2)];
    let cases = cases.map(|(server_idle, client_idle, busy)| {
        let own = OwnCpus { server_idle, client_idle };
        let cpu =
            Some(CpuSplit { client: 0.1, server_user: 0.7, server_kernel: 0.18, other: 0.0, idle: 0.02 });
        let observed = Observed { cpu, own_cpus: Some(own), busy_threads: Some(busy), ..Observed::default() };
        let found = findings_on("CPUs", falling_with(observed, Observed::default()));
        (format!("{own:?}, {busy} busy threads"), found)
    });
    golden_cases("findings_own_cpus", cases);
    let unknown = falling_with(Observed::default(), Observed::default());
    assert_eq!(findings_on("CPUs", unknown), [""; 0]);
}

#[test]
fn cpus_that_other_programs_take_are_not_the_servers_limit() {
    let cpu =
        Some(CpuSplit { client: 0.03, server_user: 0.02, server_kernel: 0.01, other: 0.93, idle: 0.01 });
    let observed = Observed { cpu, ..Observed::default() };
    let expected = "with 8 clients the CPUs are used up: 3.0% by the server, 3.0% by the load driver, 93% by other \
                    programs; the server may be capable of more without the other programs.";
    assert_eq!(findings_on("CPUs", falling_with(observed, Observed::default())), [expected]);
}

#[test]
fn a_share_has_grown_beyond_the_noise_of_its_samples() {
    type Symbols<'a> = &'a [(&'a str, f64)];
    let (before, after) = ([("other", 0.9), ("s_lock", 0.1)], [("other", 0.82), ("s_lock", 0.18)]);
    let most = [("other", 0.75), ("s_lock", 0.25)];
    let cases: [(&str, u64, Symbols<'_>, Symbols<'_>); 5] = [
        ("nobody counted", 0, &before, &after),
        ("three deviations are 0.103", 200, &before, &after),
        ("three deviations are 0.046", 1_000, &before, &after),
        ("a share that was not listed has an upper bound", 1_000, &[("other", 0.74), ("next", 0.02)], &most),
        ("the list was complete", 1_000, &[("other", 1.0)], &most),
    ];
    let cases = cases.map(|(why, samples, before, after)| {
        let seen = |all| Observed { symbols: shares(all), samples, ..Observed::default() };
        let found = findings_on("server time", falling_with(seen(before), seen(after)));
        (format!("{samples} samples, {why}: {before:?}, then {after:?}"), found)
    });
    golden_cases("findings_shares", cases);
}

#[test]
fn sessions_wait_or_are_in_a_state_and_few_looks_show_neither() {
    let seen = |updating, lock, looks| {
        let waits = [(RUNNING, 1.0 - updating - lock), ("in state Updating", updating), ("row lock", lock)];
        Observed { waits: shares(&waits), looks, ..Observed::default() }
    };
    let of =
        |looks| findings_on("of the sessions", falling_with(seen(0.3, 0.1, looks), seen(0.5, 0.4, looks)));
    golden("findings_waits", &of(200).join("\n"));
    assert_eq!(of(1), [""; 0]);
}

#[test]
fn findings_describe_curves_by_shape_and_noise() {
    /// The half-width of a single round's interval.
    const ONCE: f64 = f64::NAN;
    /// Clients, throughput, and the half-width of its interval.
    type Curve<'a> = &'a [(usize, f64, f64)];
    let curves: [(&str, Curve<'_>); 15] = [
        ("one point", &[(8, 7e3, 70.0)]),
        ("growth", &[(1, 1e3, 10.0), (8, 7e3, 70.0), (64, 30e3, 300.0)]),
        ("growth, then level", &[(1, 1e3, 10.0), (8, 7e3, 70.0), (64, 6.9e3, 69.0)]),
        ("level", &[(1, 1e3, 10.0), (8, 1_010.0, 10.0), (64, 990.0, 10.0)]),
        ("a fall", &[(1, 1e3, 10.0), (8, 6e3, 60.0), (64, 5.3e3, 53.0)]),
        ("one overlaps the best", &[(1, 1e3, 60.0), (8, 6e3, 60.0), (16, 5.9e3, 60.0), (64, 3e3, 60.0)]),
        (
            "two overlap the best",
            &[(1, 1e3, 200.0), (8, 6e3, 200.0), (16, 5.9e3, 200.0), (32, 5.7e3, 200.0), (64, 3e3, 200.0)],
        ),
        ("a fall inside the noise", &[(1, 1e3, 10.0), (8, 6e3, 2e3), (64, 5.3e3, 53.0)]),
        ("a noisy lower point beyond the fall", &[(8, 6e3, 60.0), (64, 5e3, 50.0), (256, 4.9e3, 2e3)]),
        ("growth inside the noise", &[(1, 1e3, 500.0), (8, 1.1e3, 700.0)]),
        ("no figure", &[(1, f64::NAN, 1.0)]),
        ("one figure", &[(1, 1e3, 10.0), (8, f64::NAN, 1.0)]),
        ("growth in single rounds", &[(1, 1e3, ONCE), (8, 6e3, ONCE)]),
        ("a fall in single rounds", &[(1, 6e3, ONCE), (8, 1e3, ONCE)]),
        ("level single rounds", &[(1, 1e3, ONCE), (8, 1_010.0, ONCE)]),
    ];
    let cases = curves.map(|(what, curve)| {
        let points = curve.iter().map(|&(clients, value, off)| Point {
            tps: Interval { value, low: value - off, high: value + off },
            ..of_rounds(clients, &[value])
        });
        let mut found = findings(points.collect());
        found.retain(|one| !one.contains("scalability law"));
        (format!("{what}: {curve:?}"), found)
    });
    golden_cases("findings_curves", cases);
}

/// A point of an open loop that goes from one rate to another; `done` maps a second's arrivals to
/// the transactions done.
fn offered(clients: usize, (from, to): (f64, f64), done: impl Fn(f64) -> f64) -> Point {
    let at = |second: f64| from + (to - from) * second / 10.0;
    let seconds: Vec<f64> = (0..10).map(|second| done(at(f64::from(second) + 0.5))).collect();
    let all: f64 = seconds.iter().sum();
    let mut point = of_rounds(clients, &[all / 10.0; 3]);
    for round in &mut point.rounds {
        round.elapsed = 10.0;
        round.offered = Some(Offered { from, to, even: false });
        round.seconds = seconds.iter().map(|done| *done as u64).collect();
        round.unstarted = Some(((from + to) / 2.0 * 10.0 - all) as u64);
    }
    point
}

#[test]
fn an_open_loop_reports_only_whether_the_rate_is_held() {
    let steady = (2_000.0, 2_000.0);
    let slow = offered(1, steady, |due| due.min(1_500.0));
    let mut unknown = slow.clone();
    unknown.rounds[0].unstarted = None;
    let few = offered(4, (10.0, 10.0), |due| 0.9 * due);
    let mut even = few.clone();
    for offered in even.rounds.iter_mut().filter_map(|round| round.offered.as_mut()) {
        offered.even = true;
    }
    let cases = [
        ("held", [1, 2, 4, 8].map(|clients| offered(clients, steady, |due| due)).to_vec()),
        ("held by 8 clients only", vec![slow, offered(8, steady, |due| 0.99 * due)]),
        ("the driver of one round does not count those that never began", vec![unknown]),
        ("few random arrivals: chance may take a tenth", vec![few]),
        ("few even arrivals: chance may not", vec![even]),
        ("up to 6,000 a second", vec![offered(64, (0.0, 10_000.0), |due| due.min(6_000.0))]),
        ("not even the lowest rate", vec![offered(64, (1_000.0, 9_000.0), |_| 500.0)]),
    ];
    for (name, points) in &cases {
        let Report { fits, .. } = concluded(report(points.clone()));
        assert!(fits.is_empty(), "{name}: a law would call it contention: {fits:?}");
    }
    golden_cases("findings_rates", cases.map(|(name, points)| (name, findings(points))));
}

#[test]
fn the_law_is_reported_with_its_terms_where_it_fits() {
    let tps = |clients: usize| {
        let n = clients as f64;
        (clients, 1_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.001 * n * (n - 1.0)))
    };
    let law = findings_on("scalability law", curve(&[1, 2, 4, 8, 16, 32, 64, 128].map(tps)));
    let cliff = curve(&[(1, 1e3), (2, 2e3), (4, 4e3), (8, 8e3), (16, 16e3), (32, 500.0)]);
    golden_cases("findings_law", [("a law", law), ("a cliff", findings_on("scalability law", cliff))]);
}

#[test]
fn a_law_states_as_fact_only_values_that_its_intervals_prove() {
    let of = |value, low, high| Interval { value, low, high };
    let fit = Fit {
        contention: of(0.02, 0.01, 0.03),
        coherence: of(3.1e-5, 0.0, 9.8e-5),
        peak: Some(Peak { clients: of(167.0, 98.0, f64::INFINITY), tps: 62_313.0 }),
        ..samples::two_arms().fits[0].clone()
    };
    let points = curve(&[(1, 1_000.0), (64, 30_000.0)]);
    let points: Vec<&Point> = points.iter().collect();
    let sure = Fit { coherence: of(3.1e-5, 1e-5, 9.8e-5), ..fit.clone() };
    let cases = [("coherence may be 0", fit), ("coherence is above 0", sure)];
    let cases = cases.map(|(case, fit)| (case, vec![law::sentence(&fit, &points)]));
    golden_cases("findings_law_bounds", cases);
}

#[test]
fn failures_come_first_with_the_error() {
    let mut points = curve(&[(1, 1_000.0), (8, 6_000.0)]);
    points[1].rounds[0].kinds = vec![KindCounts { name: "t".into(), done: 880, failed: 120, retried: 0 }];
    points[1].rounds[0].errors = vec![
        samples::errors("40001", "could not serialize", 20),
        samples::errors("40P01", "deadlock detected", 100),
    ];
    assert_eq!(
        findings(points)[0],
        "12% of the transactions failed with 8 clients, most often by 40P01 (deadlock detected)."
    );
}

#[test]
fn workloads_and_protocols_are_separate() {
    let mut points = curve(&[(1, 1_000.0), (8, 6_000.0)]);
    let simple: Vec<Point> =
        points.iter().map(|point| Point { protocol: Protocol::Simple, ..point.clone() }).collect();
    points.extend(simple);
    golden("findings_protocols", &concluded(report(points)).findings.join("\n"));
}

#[test]
fn an_empty_report_has_no_findings() {
    let Report { findings, verdict, .. } = concluded(report(Vec::new()));
    assert_eq!((findings, verdict), (Vec::new(), vec!["nothing was measured".to_owned()]));
}
