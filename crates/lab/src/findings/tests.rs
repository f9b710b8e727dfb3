//! Findings of constructed reports.

use super::*;
use crate::arm::Dialect;
use crate::load::Protocol;
use crate::observe::{CLIENT, RUNNING};
use crate::record::Errors;
use crate::record::{
    Arm, CpuSplit, Interval, KindCounts, Noise, Observed, Offered, OwnCpus, Peak, Share, Switches,
};
use crate::report::samples;
use crate::stats::{estimate, test_noise};

/// A report with these points, and arms in the order in which the points name them.
fn report(points: Vec<Point>) -> Report {
    let mut report = samples::nothing();
    for point in &points {
        if report.arm_number(&point.arm) == report.arms.len() {
            let (name, server) = (point.arm.clone(), String::new());
            report.arms.push(Arm { name, dialect: Dialect::Postgres, server, settings: Vec::new() });
        }
    }
    report.machine.noise.clear();
    report.points = points;
    report
}

/// The findings of these points.
fn findings(points: Vec<Point>) -> Vec<String> {
    concluded(report(points)).findings
}

fn concluded(mut report: Report) -> Report {
    conclude(&mut report);
    report
}

/// A point of these rounds.
fn of_rounds(arm: &str, clients: usize, rounds: &[f64]) -> Point {
    let mut point = test_noise::point(arm, clients, rounds);
    point.tps = estimate(rounds);
    point
}

/// A point whose interval is this one.
fn within(clients: usize, value: f64, low: f64, high: f64) -> Point {
    let mut point = point("pg", clients, value);
    point.tps = Interval { value, low, high };
    point
}

/// A point of five rounds close to `tps`.
fn point(arm: &str, clients: usize, tps: f64) -> Point {
    of_rounds(arm, clients, &[0.99, 1.0, 1.01, 1.005, 0.995].map(|noise| tps * noise))
}

fn curve(arm: &str, tps: &[(usize, f64)]) -> Vec<Point> {
    tps.iter().map(|&(clients, tps)| point(arm, clients, tps)).collect()
}

fn share(name: &str, share: f64) -> Share {
    Share { name: name.into(), share }
}

fn observe(point: &mut Point, observed: Observed) {
    // Only the first round has costly observations.
    for round in &mut point.rounds[1..] {
        round.observed = Observed { symbols: Vec::new(), calls: None, ..observed.clone() };
    }
    point.rounds[0].observed = observed;
}

/// Throughput halves from 8 to 64 clients, and every observed cost grows.
fn falling() -> Vec<Point> {
    let mut points = curve("pg", &[(1, 1_000.0), (8, 6_000.0), (16, 5_500.0), (64, 3_000.0)]);
    let cpu = |user, kernel, idle: f64| {
        Some(CpuSplit { client: 0.1, server_user: user, server_kernel: kernel, other: 0.0, idle })
    };
    let good = Observed {
        cpu: cpu(0.7, 0.18, 0.02),
        own_cpus: None,
        busy_threads: Some(0),
        switches: Some(Switches { voluntary: 1.0, involuntary: 0.1 }),
        calls: Some(4.0),
        symbols: vec![
            share("other", 0.71),
            share("hash_search", 0.2),
            share("futex_wait (kernel)", 0.05),
            share("s_lock", 0.04),
        ],
        samples: 1_000,
        waits: vec![share(RUNNING, 0.6), share(CLIENT, 0.37), share("LWLock:WALWrite", 0.03)],
        looks: 40,
        unseen: Vec::new(),
    };
    let bad = Observed {
        cpu: cpu(0.2, 0.3, 0.4),
        own_cpus: None,
        busy_threads: Some(0),
        switches: Some(Switches { voluntary: 3.5, involuntary: 0.15 }),
        calls: Some(11.0),
        symbols: vec![
            share("s_lock", 0.45),
            share("futex_wait (kernel)", 0.26),
            share("other", 0.19),
            share("hash_search", 0.1),
        ],
        samples: 1_000,
        waits: vec![share("LWLock:WALWrite", 0.41), share(RUNNING, 0.5), share(CLIENT, 0.09)],
        looks: 40,
        unseen: Vec::new(),
    };
    observe(&mut points[1], good);
    observe(&mut points[3], bad);
    points
}

fn says(findings: &[String], sentence: &str) {
    assert!(findings.iter().any(|one| one == sentence), "not said: {sentence}\n{findings:#?}");
}

#[test]
fn a_fall_names_the_costs_that_grew() {
    let findings = findings(falling());
    for sentence in [
        "throughput is highest with 8 clients, 6,000 transactions a second (5,940 to 6,060)",
        "from 8 to 64 clients throughput halves, from 6,000 to 3,000 a second",
        "with 64 clients 71% of server time is in s_lock and futex_wait (kernel), with 8 clients it was 9.0%",
        "with 64 clients 41% of the sessions wait for LWLock:WALWrite, with 8 clients it was 3.0%",
        "the kernel takes 60% of the server's CPU time with 64 clients, with 8 clients it was 20%",
        "a transaction costs 3.50 voluntary context switches with 64 clients, with 8 clients it was 1.00",
        "a transaction costs 11.0 system calls with 64 clients, with 8 clients it was 4.00",
        "with 64 clients the CPUs are 40% idle: the server waits rather than computes",
        "with 8 clients the CPUs are used up: 88% by the server, 10% by the load driver; higher throughput needs \
         more CPUs, or less work for each transaction",
    ] {
        says(&findings, &format!("pg, select-only: {sentence}."));
    }
    assert!(!findings.iter().any(|one| one.contains("involuntary")), "0.05 more is none: {findings:#?}");
}

/// The findings on CPUs. The arguments are the idle parts of the server's and the driver's own
/// CPUs, at the best point and at the fallen one.
fn apart(best: (f64, f64), fallen: (f64, f64)) -> Vec<String> {
    let mut points = falling();
    for (index, (server_idle, client_idle)) in [(1, best), (3, fallen)] {
        for round in &mut points[index].rounds {
            round.observed.own_cpus = Some(OwnCpus { server_idle, client_idle });
        }
    }
    findings(points).into_iter().filter(|one| one.contains("CPUs")).collect()
}

#[test]
fn a_server_with_cpus_of_its_own_is_limited_by_these() {
    // The machine is 2% and then 40% idle, which says nothing about the server's CPUs.
    assert_eq!(
        apart((0.5, 0.01), (0.02, 0.9)),
        [
            "pg, select-only: at its best, with 8 clients, the CPUs that the server may use are 50% idle: they are \
             not what limits it.",
            "pg, select-only: with 8 clients the CPUs that the load driver may use are used up: the server may be \
             capable of more.",
        ]
    );
    assert_eq!(
        apart((0.01, 0.5), (0.6, 0.5)),
        [
            "pg, select-only: with 8 clients the CPUs that the server may use are used up; higher throughput needs \
             more of them, or less work for each transaction.",
            "pg, select-only: with 64 clients the CPUs that the server may use are 60% idle: the server waits rather \
             than computes.",
        ]
    );
}

#[test]
fn idle_cpus_have_another_meaning_where_threads_work_all_the_time() {
    let busy = |threads| {
        let mut points = falling();
        points[3].rounds.iter_mut().for_each(|round| round.observed.busy_threads = Some(threads));
        findings(points).into_iter().find(|one| one.contains("CPUs are 40% idle")).unwrap()
    };
    let sentence = |rest: &str| format!("pg, select-only: with 64 clients the CPUs are 40% idle{rest}.");
    assert_eq!(busy(0), sentence(": the server waits rather than computes"));
    let one = " while one of the server's threads works all the time, which more CPUs do not help";
    assert_eq!(busy(1), sentence(one));
    let two = " while 2 of the server's threads work all the time, which more CPUs do not help";
    assert_eq!(busy(2), sentence(two));
}

#[test]
fn sessions_of_few_looks_are_no_growth() {
    let grown = |looks| {
        let mut points = falling();
        for index in [1, 3] {
            points[index].rounds.iter_mut().for_each(|round| round.observed.looks = looks);
        }
        findings(points).iter().any(|one| one.contains("of the sessions wait"))
    };
    // Five rounds.
    assert_eq!((grown(1), grown(8)), (false, true));
}

/// The findings on symbols, with these shares at the best point and at the last one, of this many
/// samples each.
fn grown(before: &[(&str, f64)], after: &[(&str, f64)], samples: u64) -> Vec<String> {
    let seen = |all: &[(&str, f64)]| Observed {
        symbols: all.iter().map(|(name, part)| share(name, *part)).collect(),
        samples,
        ..Observed::default()
    };
    let mut points = falling();
    observe(&mut points[1], seen(before));
    observe(&mut points[3], seen(after));
    findings(points).into_iter().filter(|one| one.contains("server time")).collect()
}

#[test]
fn noise_of_few_samples_is_no_growth() {
    let before = [("other", 0.9), ("s_lock", 0.1)];
    let after = [("other", 0.82), ("s_lock", 0.18)];
    // Three deviations: 0.103 of 200 samples, 0.046 of 1,000.
    let few = grown(&before, &after, 200);
    assert_eq!(
        few,
        ["pg, select-only: with 64 clients 82% of server time is in other, more than in any other symbol."]
    );
    let many = grown(&before, &after, 1_000);
    assert_eq!(
        many,
        ["pg, select-only: with 64 clients 18% of server time is in s_lock, with 8 clients it was 10%."]
    );
    assert_eq!(grown(&before, &after, 0), [""; 0], "nobody counted");
    // If two symbols differ by chance alone, neither is the first.
    let close = [("one", 0.53), ("other", 0.47)];
    assert_eq!(grown(&close, &close, 200), [""; 0]);
}

#[test]
fn an_unlisted_share_has_an_upper_bound_and_is_not_zero() {
    let after = [("other", 0.75), ("s_lock", 0.25)];
    let cut = grown(&[("other", 0.74), ("next", 0.02)], &after, 1_000);
    assert_eq!(
        cut,
        [
            "pg, select-only: with 64 clients 25% of server time is in s_lock, with 8 clients it was under 2.0%."
        ]
    );
    let whole = grown(&[("other", 1.0)], &after, 1_000);
    assert_eq!(
        whole,
        ["pg, select-only: with 64 clients 25% of server time is in s_lock, with 8 clients it was 0%."]
    );
}

#[test]
fn states_are_marked_and_waits_are_not() {
    let mut points = falling();
    let seen = |updating, lock| Observed {
        waits: vec![
            share(RUNNING, 1.0 - updating - lock),
            share("in state Updating", updating),
            share("InnoDB row lock", lock),
        ],
        looks: 200,
        ..Observed::default()
    };
    observe(&mut points[1], seen(0.3, 0.1));
    observe(&mut points[3], seen(0.5, 0.4));
    let findings = findings(points);
    for sentence in [
        "with 64 clients 50% of the sessions are in state Updating, with 8 clients it was 30%",
        "with 64 clients 40% of the sessions wait for InnoDB row lock, with 8 clients it was 10%",
    ] {
        says(&findings, &format!("pg, select-only: {sentence}."));
    }
}

/// Clients, throughput, and the half-width of its interval; NaN for a single round.
type Shape = (usize, f64, f64);

/// The half-width for a single round.
const ONCE: f64 = f64::NAN;

/// Curves, and the beginnings of their findings.
const SHAPES: [(&[Shape], &[&str]); 14] = [
    (&[(8, 7e3, 70.0)], &["7,000 transactions a second (6,930 to 7,070) with 8 clients."]),
    (
        &[(1, 1e3, 10.0), (8, 7e3, 70.0), (64, 30e3, 300.0)],
        &[
            "throughput still grows from 8 to 64 clients, the most that were measured: 30,000 transactions a second \
             (29,700 to 30,300).",
        ],
    ),
    (
        &[(1, 1e3, 10.0), (8, 7e3, 70.0), (64, 6.9e3, 69.0)],
        &[
            "throughput grows up to 8 clients and stays level up to 64 clients: 7,000 transactions a second (6,930 \
             to 7,070) at best.",
        ],
    ),
    (
        &[(1, 1e3, 10.0), (8, 1_010.0, 10.0), (64, 990.0, 10.0)],
        &[
            "throughput is level from 1 to 64 clients, more clients do not raise it: 1,010 transactions a second \
             (1,000 to 1,020) at best.",
        ],
    ),
    (
        &[(1, 1e3, 10.0), (8, 500.0, 5.0), (64, 1_010.0, 10.0)],
        &[
            "throughput dips to 500 transactions a second (495 to 505) with 8 clients, and comes back to 1,010 ",
        ],
    ),
    (
        &[(1, 1e3, 10.0), (8, 6e3, 60.0), (64, 5.3e3, 53.0)],
        &[
            "throughput is highest with 8 clients, 6,000 ",
            "from 8 to 64 clients throughput falls by 12%, from 6,000 to 5,300 a second.",
        ],
    ),
    // The fall is inside the noise.
    (
        &[(1, 1e3, 10.0), (8, 6e3, 2e3), (64, 5.3e3, 53.0)],
        &[
            "throughput grows up to 8 clients: 6,000 transactions a second (4,000 to 8,000).",
            "the rounds are too noisy to tell whether throughput falls from 8 to 64 clients: 6,000 transactions a \
             second (4,000 to 8,000) with 8 clients, then 5,300 ",
        ],
    ),
    // A lower point beyond the fall is too noisy.
    (
        &[(8, 6e3, 60.0), (64, 5e3, 50.0), (256, 4.9e3, 2e3)],
        &[
            "throughput is highest with 8 clients",
            "from 8 to 64 clients throughput falls by 17%, from 6,000 to 5,000 a second.",
        ],
    ),
    (
        &[(1, 1e3, 500.0), (8, 1.1e3, 700.0)],
        &[
            "the rounds are too noisy to tell whether throughput grows from 1 to 8 clients: 1,000 transactions a \
             second (500 to 1,500) with 1 client, then 1,100 transactions a second (400 to 1,800) with 8 clients.",
        ],
    ),
    (&[(1, f64::NAN, 1.0)], &[]),
    (&[(1, 1e3, 10.0), (8, f64::NAN, 1.0)], &["1,000 transactions a second (990 to 1,010) with 1 client."]),
    (&[(1, 1e3, ONCE), (8, 6e3, ONCE)], &["throughput still grows from 1 to 8 clients"]),
    (
        &[(1, 6e3, ONCE), (8, 1e3, ONCE)],
        &["throughput is highest with 1 client", "from 1 to 8 clients throughput falls by 83%"],
    ),
    (&[(1, 1e3, ONCE), (8, 1_010.0, ONCE)], &["throughput is level from 1 to 8 clients"]),
];

#[test]
fn findings_describe_curves_by_shape_and_noise() {
    const SEEN: &str = ", in single rounds, which do not show the noise.";
    for (shape, expected) in SHAPES {
        let points =
            shape.iter().map(|&(clients, value, far)| within(clients, value, value - far, value + far));
        let findings = findings(points.collect());
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (found, expected) in findings.iter().zip(expected) {
            assert!(found.starts_with(&format!("pg, select-only: {expected}")), "{expected}\n{found}");
        }
        assert_eq!(
            findings.last().is_some_and(|one| one.ends_with(SEEN)),
            shape[0].2.is_nan(),
            "{findings:#?}"
        );
    }
}

#[test]
fn a_best_point_names_the_points_without_a_difference_from_it() {
    let curve = |width: f64| {
        let of = |clients, value: f64| within(clients, value, value - width, value + width);
        findings(vec![of(1, 1_000.0), of(8, 6_000.0), of(16, 5_900.0), of(32, 5_700.0), of(64, 3_000.0)])
    };
    let highest = |told: &str| format!("pg, select-only: throughput is highest with 8 clients{told}, 6,000");
    for (width, told) in [
        (40.0, ""),
        (60.0, " (no difference from 16 clients)"),
        (200.0, " (no difference from 16 and 32 clients)"),
    ] {
        let findings = curve(width);
        assert!(findings[0].starts_with(&highest(told)), "{findings:#?}");
    }
}

/// A point of an open loop that goes from one rate to another; `done` maps a second's arrivals to
/// the transactions done.
fn offered(clients: usize, (from, to): (f64, f64), done: impl Fn(f64) -> f64) -> Point {
    let at = |second: f64| from + (to - from) * second / 10.0;
    let seconds: Vec<f64> = (0..10).map(|second| done(at(f64::from(second) + 0.5))).collect();
    let all: f64 = seconds.iter().sum();
    let mut point = of_rounds("pg", clients, &[all / 10.0; 3]);
    for round in &mut point.rounds {
        round.elapsed = 10.0;
        round.offered = Some(Offered { from, to, even: false });
        round.seconds = seconds.iter().map(|done| *done as u64).collect();
        round.unstarted = Some(((from + to) / 2.0 * 10.0 - all) as u64);
    }
    point
}

#[test]
fn an_open_loop_that_keeps_up_has_only_that_finding() {
    let steady = |clients| offered(clients, (2_000.0, 2_000.0), |due| due);
    let report = concluded(report([1, 2, 4, 8, 16, 32, 64].map(steady).into()));
    assert_eq!(
        report.findings,
        ["pg, select-only: the rate of 2,000 a second is held with 1, 2, 4, 8, 16, 32 and 64 clients."]
    );
    assert!(report.fits.is_empty(), "a law would call it contention: {:?}", report.fits);
}

#[test]
fn a_rate_that_is_not_held_is_reported_with_the_transactions_that_never_began() {
    let points = vec![
        offered(1, (2_000.0, 2_000.0), |due| due.min(1_500.0)),
        offered(8, (2_000.0, 2_000.0), |due| 0.99 * due),
    ];
    assert_eq!(
        findings(points),
        [
            "pg, select-only: the rate of 2,000 a second is not held with 1 client: 75% of the arrivals are done; \
             15,000 transactions never began.",
            "pg, select-only: the rate of 2,000 a second is held with 8 clients.",
        ]
    );
    // The driver of one round does not report this number, so the sum is unknown.
    let mut untold = offered(1, (2_000.0, 2_000.0), |due| due.min(1_500.0));
    untold.rounds[0].unstarted = None;
    let untold = findings(vec![untold]);
    let lacking = "pg, select-only: the rate of 2,000 a second is not held with 1 client: 75% of the arrivals are done.";
    assert_eq!(untold, [lacking]);
    // With few arrivals, chance may take this many, but an even schedule may not.
    let mut few = offered(4, (10.0, 10.0), |due| 0.9 * due);
    let held = "pg, select-only: the rate of 10.0 a second is held with 4 clients.";
    assert_eq!(findings(vec![few.clone()]), [held]);
    few.rounds
        .iter_mut()
        .for_each(|round| round.offered = Some(Offered { even: true, from: 10.0, to: 10.0 }));
    let lacking = "pg, select-only: the rate of 10.0 a second is not held with 4 clients: 90% of the arrivals are \
                   done; 30 transactions never began.";
    assert_eq!(findings(vec![few]), [lacking]);
}

#[test]
fn a_rising_rate_is_reported_up_to_the_rate_that_is_held() {
    let findings = findings(vec![offered(64, (0.0, 10_000.0), |due| due.min(6_000.0))]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(
        findings[0].starts_with(
            "pg, select-only: the rate of 0 to 10,000 a second is not held with 64 clients: 84% of the arrivals are \
             done; it keeps up until 6,000 arrivals a second; 24,"
        ),
        "{findings:#?}"
    );
    let never = self::findings(vec![offered(64, (1_000.0, 9_000.0), |_| 500.0)]);
    assert!(never[0].contains("; it does not even keep up with 1,000 a second; "), "{never:#?}");
}

#[test]
fn the_law_is_reported_with_its_terms_where_it_fits() {
    let tps = |clients: usize| {
        let n = clients as f64;
        (clients, 1_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.001 * n * (n - 1.0)))
    };
    let law = findings(curve("pg", &[1, 2, 4, 8, 16, 32, 64, 128].map(tps)));
    let told = law.iter().find(|one| one.contains("scalability law")).unwrap();
    assert!(told.contains("contention 2.0% (2.0% to 2.0%) and coherence 1.0e-3"), "{told}");
    assert!(told.contains("its peak is at 31 (31 to 31) clients, with 1"), "{told}");
    assert!(
        told.contains("with 128 clients 95% of linear throughput is lost, 86% of that to coherence"),
        "{told}"
    );
    let cliff = findings(curve("pg", &[(1, 1e3), (2, 2e3), (4, 4e3), (8, 8e3), (16, 16e3), (32, 500.0)]));
    assert!(!cliff.iter().any(|one| one.contains("scalability law")), "{cliff:#?}");
}

#[test]
fn a_law_states_as_fact_only_values_that_its_intervals_prove() {
    let of = |value, low, high| Interval { value, low, high };
    let fit = Fit {
        arm: "pg".into(),
        workload: "w".into(),
        protocol: Protocol::Prepared,
        single: Interval::alone(1_000.0),
        contention: of(0.02, 0.01, 0.03),
        coherence: of(3.1e-5, 0.0, 9.8e-5),
        peak: Some(Peak { clients: of(167.0, 98.0, f64::INFINITY), tps: 62_313.0 }),
        explained: 0.99,
    };
    let points = curve("pg", &[(1, 1_000.0), (64, 30_000.0)]);
    let points: Vec<&Point> = points.iter().collect();
    let told = law::sentence(&fit, &points);
    assert!(
        told.contains("its peak is at 167 (98 or more) clients") && !told.contains("to coherence"),
        "{told}"
    );
    assert!(told.ends_with("with 64 clients 58% of linear throughput is lost"), "{told}");
    let sure = Fit { coherence: of(3.1e-5, 1e-5, 9.8e-5), ..fit };
    assert!(
        law::sentence(&sure, &points).contains("9.0% of that to coherence"),
        "{}",
        law::sentence(&sure, &points)
    );
}

#[test]
fn failures_come_first_with_the_error() {
    let mut points = curve("pg", &[(1, 1_000.0), (8, 6_000.0)]);
    points[1].rounds[0].kinds = vec![KindCounts { name: "t".into(), done: 880, failed: 120, retried: 0 }];
    points[1].rounds[0].errors = vec![
        Errors { code: "40001".into(), message: "could not serialize".into(), count: 20, tolerated: false },
        Errors { code: "40P01".into(), message: "deadlock detected".into(), count: 100, tolerated: false },
    ];
    assert_eq!(
        findings(points)[0],
        "pg, select-only: 12% of the transactions failed with 8 clients, most often by 40P01 (deadlock detected)."
    );
}

#[test]
fn workloads_and_protocols_are_separate_and_a_drifting_machine_is_reported() {
    let mut points = curve("pg", &[(1, 1_000.0), (8, 6_000.0)]);
    let mut simple = points.clone();
    simple.iter_mut().for_each(|point| point.protocol = Protocol::Simple);
    points.extend(simple);
    let mut report = report(points);
    report.machine.noise =
        (0..30).map(|at| Noise { at: f64::from(at), took: 20.0 + f64::from(at) }).collect();
    let Report { findings, verdict, .. } = concluded(report);
    for protocol in ["prepared", "simple"] {
        let grows = format!("pg, select-only, {protocol}: throughput still grows");
        assert_eq!(findings.iter().filter(|one| one.starts_with(&grows)).count(), 1, "{findings:#?}");
    }
    assert!(verdict[0].starts_with("caution: the machine drifted"), "{verdict:#?}");
}

#[test]
fn an_empty_report_has_no_findings() {
    let Report { findings, verdict, .. } = concluded(report(Vec::new()));
    assert_eq!((findings, verdict), (Vec::new(), vec!["nothing was measured".to_owned()]));
}
