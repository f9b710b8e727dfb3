//! Findings of constructed reports.

use super::*;
use crate::arm::Dialect;
use crate::load::Protocol;
use crate::observe::{CLIENT, RUNNING};
use crate::record::{
    Arm, CpuSplit, Errors, Interval, KindCounts, Noise, Observed, Offered, OwnCpus, Peak, Share, Switches,
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
fn of_rounds(arm: &str, clients: usize, rounds: &[f64]) -> Point {
    let mut point = test_noise::point(arm, clients, rounds);
    point.tps = estimate(rounds);
    point
}

/// A point whose interval is this one.
fn within(clients: usize, value: f64, low: f64, high: f64) -> Point {
    let mut point = of_rounds("pg", clients, &[value]);
    point.tps = Interval { value, low, high };
    point
}

/// Points of five rounds close to the throughput.
fn curve(tps: &[(usize, f64)]) -> Vec<Point> {
    let rounds = |tps: f64| [0.99, 1.0, 1.01, 1.005, 0.995].map(|noise| tps * noise);
    tps.iter().map(|&(clients, tps)| of_rounds("pg", clients, &rounds(tps))).collect()
}

fn shares(all: &[(&str, f64)]) -> Vec<Share> {
    all.iter().map(|(name, share)| Share { name: name.to_string(), share: *share }).collect()
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

/// The same, and every observed cost grows.
fn falling() -> Vec<Point> {
    let cpu = |server_user, server_kernel, idle| {
        Some(CpuSplit { client: 0.1, server_user, server_kernel, other: 0.0, idle })
    };
    let best = Observed {
        cpu: cpu(0.7, 0.18, 0.02),
        switches: Some(Switches { voluntary: 1.0, involuntary: 0.1 }),
        calls: Some(4.0),
        symbols: shares(&[
            ("other", 0.71),
            ("hash_search", 0.2),
            ("futex_wait (kernel)", 0.05),
            ("s_lock", 0.04),
        ]),
        samples: 1_000,
        waits: shares(&[(RUNNING, 0.6), (CLIENT, 0.37), ("LWLock:WALWrite", 0.03)]),
        looks: 40,
        ..Observed::default()
    };
    let fallen = Observed {
        cpu: cpu(0.2, 0.3, 0.4),
        switches: Some(Switches { voluntary: 3.5, involuntary: 0.15 }),
        calls: Some(11.0),
        symbols: shares(&[
            ("s_lock", 0.45),
            ("futex_wait (kernel)", 0.26),
            ("other", 0.19),
            ("hash_search", 0.1),
        ]),
        waits: shares(&[("LWLock:WALWrite", 0.41), (RUNNING, 0.5), (CLIENT, 0.09)]),
        ..best.clone()
    };
    falling_with(best, fallen)
}

#[test]
fn a_fall_names_the_costs_that_grew() {
    let expected = [
        "throughput is highest with 8 clients, 6,000 transactions a second (5,940 to 6,060).",
        "from 8 to 64 clients throughput falls by 50%, from 6,000 to 3,000 a second.",
        "with 64 clients 71% of server time is in s_lock and futex_wait (kernel), with 8 clients it was 9.0%.",
        "with 64 clients 41% of the sessions wait for LWLock:WALWrite, with 8 clients it was 3.0%.",
        "a transaction costs 3.50 voluntary context switches with 64 clients, with 8 clients it was 1.00.",
        "a transaction costs 11.0 system calls with 64 clients, with 8 clients it was 4.00.",
        "with 8 clients the CPUs are used up: 88% by the server, 10% by the load driver; higher throughput needs \
         more of them, or less work for each transaction.",
        "with 64 clients the CPUs are 40% idle: they are not the limit.",
    ];
    let findings = findings(falling());
    // The last is the scalability law's, if any.
    assert_eq!(findings[..expected.len()], expected, "{findings:#?}");
}

#[test]
fn cpus_limit_a_server_unless_they_are_idle() {
    let which = "with 8 clients the CPUs that the server may use are";
    for (own, busy, expected) in [
        // The machine is 2% idle, which says nothing about the server's own CPUs.
        (
            Some((0.5, 0.01)),
            0,
            &[
                format!("{which} 50% idle: they are not the limit."),
                "with 8 clients the CPUs that the load driver may use are used up: the server may be capable of more."
                    .into(),
            ][..],
        ),
        (
            Some((0.01, 0.5)),
            0,
            &[format!("{which} used up; higher throughput needs more of them, or less work for each transaction.")],
        ),
        (Some((0.2, 0.5)), 0, &[]),
        (
            Some((0.5, 0.5)),
            1,
            &[format!(
                "{which} 50% idle while 1 of the server's threads works all the time, which more CPUs do not help."
            )],
        ),
        (
            Some((0.5, 0.5)),
            2,
            &[format!(
                "{which} 50% idle while 2 of the server's threads work all the time, which more CPUs do not help."
            )],
        ),
        (None, 0, &[]),
    ] {
        let observed = Observed {
            own_cpus: own.map(|(server_idle, client_idle)| OwnCpus { server_idle, client_idle }),
            busy_threads: Some(busy),
            ..Observed::default()
        };
        assert_eq!(findings_on("CPUs", falling_with(observed, Observed::default())), expected, "{own:?}");
    }
}

#[test]
fn a_share_has_grown_beyond_the_noise_of_its_samples() {
    let grown = |before: &[(&str, f64)], after: &[(&str, f64)], samples: u64| {
        let seen = |all| Observed { symbols: shares(all), samples, ..Observed::default() };
        findings_on("server time", falling_with(seen(before), seen(after)))
    };
    // Three deviations: 0.103 of 200 samples, 0.046 of 1,000.
    let (before, after) = ([("other", 0.9), ("s_lock", 0.1)], [("other", 0.82), ("s_lock", 0.18)]);
    assert_eq!(grown(&before, &after, 200), [""; 0]);
    assert_eq!(grown(&before, &after, 0), [""; 0], "nobody counted");
    let of = |now: &str, then: &str| {
        [format!("with 64 clients {now} of server time is in s_lock, with 8 clients it was {then}.")]
    };
    assert_eq!(grown(&before, &after, 1_000), of("18%", "10%"));
    // A share that was not listed has an upper bound, and is not zero.
    let after = [("other", 0.75), ("s_lock", 0.25)];
    assert_eq!(grown(&[("other", 0.74), ("next", 0.02)], &after, 1_000), of("25%", "under 2.0%"));
    assert_eq!(grown(&[("other", 1.0)], &after, 1_000), of("25%", "0%"));
}

#[test]
fn sessions_wait_or_are_in_a_state_and_few_looks_show_neither() {
    let seen = |updating, lock, looks| {
        let waits = [(RUNNING, 1.0 - updating - lock), ("in state Updating", updating), ("row lock", lock)];
        Observed { waits: shares(&waits), looks, ..Observed::default() }
    };
    let of =
        |looks| findings_on("of the sessions", falling_with(seen(0.3, 0.1, looks), seen(0.5, 0.4, looks)));
    let expected = [
        "with 64 clients 40% of the sessions wait for row lock, with 8 clients it was 10%.",
        "with 64 clients 50% of the sessions are in state Updating, with 8 clients it was 30%.",
    ];
    assert_eq!(of(200), expected);
    assert_eq!(of(1), [""; 0]);
}

/// Clients, throughput, and the half-width of its interval; NaN for a single round.
type Shape = (usize, f64, f64);

/// The half-width for a single round.
const ONCE: f64 = f64::NAN;

/// Curves, and the beginnings of their findings.
const SHAPES: [(&[Shape], &[&str]); 15] = [
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
        &[(1, 1e3, 10.0), (8, 6e3, 60.0), (64, 5.3e3, 53.0)],
        &[
            "throughput is highest with 8 clients, 6,000 ",
            "from 8 to 64 clients throughput falls by 12%, from 6,000 to 5,300 a second.",
        ],
    ),
    // The points whose intervals overlap the best one's show no difference from it.
    (
        &[(1, 1e3, 60.0), (8, 6e3, 60.0), (16, 5.9e3, 60.0), (64, 3e3, 60.0)],
        &[
            "throughput is highest with 8 clients (no difference from 16 clients), 6,000 ",
            "from 8 to 64 clients",
        ],
    ),
    (
        &[(1, 1e3, 200.0), (8, 6e3, 200.0), (16, 5.9e3, 200.0), (32, 5.7e3, 200.0), (64, 3e3, 200.0)],
        &[
            "throughput is highest with 8 clients (no difference from 16 and 32 clients), 6,000 ",
            "from 8 to 64 clients",
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
        let mut findings = findings(points.collect());
        findings.retain(|one| !one.contains("scalability law"));
        assert!(
            findings.iter().zip(expected).all(|(one, expected)| one.starts_with(expected)),
            "{findings:#?}"
        );
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        let seen = findings.last().is_some_and(|one| one.ends_with(SEEN));
        assert_eq!(seen, shape[0].2.is_nan(), "{findings:#?}");
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
fn an_open_loop_reports_only_whether_the_rate_is_held() {
    let steady = (2_000.0, 2_000.0);
    let slow = offered(1, steady, |due| due.min(1_500.0));
    // The driver of one round does not report this number, so the sum is unknown.
    let mut untold = slow.clone();
    untold.rounds[0].unstarted = None;
    // With few arrivals, chance may take this many, but an even schedule may not.
    let few = offered(4, (10.0, 10.0), |due| 0.9 * due);
    let mut even = few.clone();
    even.rounds
        .iter_mut()
        .for_each(|round| round.offered = Some(Offered { even: true, from: 10.0, to: 10.0 }));
    let missed = "the rate of 2,000 a second is not held with 1 client: 75% of the arrivals are done";
    for (points, expected) in [
        (
            [1, 2, 4, 8].map(|clients| offered(clients, steady, |due| due)).to_vec(),
            &["the rate of 2,000 a second is held with 1, 2, 4 and 8 clients.".to_owned()][..],
        ),
        (
            vec![slow, offered(8, steady, |due| 0.99 * due)],
            &[
                format!("{missed}; 15,000 transactions never began."),
                "the rate of 2,000 a second is held with 8 clients.".into(),
            ],
        ),
        (vec![untold], &[format!("{missed}.")]),
        (vec![few], &["the rate of 10.0 a second is held with 4 clients.".into()]),
        (
            vec![even],
            &["the rate of 10.0 a second is not held with 4 clients: 90% of the arrivals are done; 30 transactions \
               never began."
                .into()],
        ),
        (
            vec![offered(64, (0.0, 10_000.0), |due| due.min(6_000.0))],
            &["the rate of 0 to 10,000 a second is not held with 64 clients: 84% of the arrivals are done; it keeps \
               up until 6,000 arrivals a second; 24,000 transactions never began."
                .into()],
        ),
        (
            vec![offered(64, (1_000.0, 9_000.0), |_| 500.0)],
            &["the rate of 1,000 to 9,000 a second is not held with 64 clients: 10% of the arrivals are done; it \
               does not even keep up with 1,000 a second; 135,000 transactions never began."
                .into()],
        ),
    ] {
        let report = concluded(report(points.clone()));
        assert!(report.fits.is_empty(), "a law would call it contention: {:?}", report.fits);
        assert_eq!(findings(points), expected);
    }
}

#[test]
fn the_law_is_reported_with_its_terms_where_it_fits() {
    let tps = |clients: usize| {
        let n = clients as f64;
        (clients, 1_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.001 * n * (n - 1.0)))
    };
    let law = findings_on("scalability law", curve(&[1, 2, 4, 8, 16, 32, 64, 128].map(tps)));
    for part in [
        "contention 2.0% (2.0% to 2.0%) and coherence 1.0e-3",
        "its peak is at 31 (31 to 31) clients, with 1",
        "with 128 clients 95% of linear throughput is lost, 86% of that to coherence",
    ] {
        assert!(law[0].contains(part), "{law:?}");
    }
    let cliff = curve(&[(1, 1e3), (2, 2e3), (4, 4e3), (8, 8e3), (16, 16e3), (32, 500.0)]);
    assert_eq!(findings_on("scalability law", cliff), [""; 0]);
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
    let points = curve(&[(1, 1_000.0), (64, 30_000.0)]);
    let points: Vec<&Point> = points.iter().collect();
    let told = law::sentence(&fit, &points);
    assert!(told.contains("its peak is at 167 (98 or more) clients"), "{told}");
    assert!(told.ends_with("with 64 clients 58% of linear throughput is lost"), "{told}");
    let sure = law::sentence(&Fit { coherence: of(3.1e-5, 1e-5, 9.8e-5), ..fit }, &points);
    assert!(sure.contains("9.0% of that to coherence"), "{sure}");
}

#[test]
fn failures_come_first_with_the_error() {
    let mut points = curve(&[(1, 1_000.0), (8, 6_000.0)]);
    points[1].rounds[0].kinds = vec![KindCounts { name: "t".into(), done: 880, failed: 120, retried: 0 }];
    let error = |code: &str, message: &str, count| Errors {
        code: code.into(),
        message: message.into(),
        count,
        tolerated: false,
    };
    points[1].rounds[0].errors =
        vec![error("40001", "could not serialize", 20), error("40P01", "deadlock detected", 100)];
    assert_eq!(
        findings(points)[0],
        "12% of the transactions failed with 8 clients, most often by 40P01 (deadlock detected)."
    );
}

#[test]
fn workloads_and_protocols_are_separate_and_a_drifting_machine_is_reported() {
    let mut points = curve(&[(1, 1_000.0), (8, 6_000.0)]);
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
