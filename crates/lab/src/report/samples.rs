//! Reports for tests: simulated runs, from curves with a little noise that is the same each time.

use crate::arm::Dialect;
use crate::load::Protocol;
use crate::record::*;
use crate::stats::test_noise;

/// An arm's behaviour.
struct Curve {
    name: &'static str,
    single: f64,
    contention: f64,
    coherence: f64,
}

/// Two arms of one workload, the second twice as slow and past its peak at 64 clients, with
/// everything observed.
pub(crate) fn two_arms() -> Report {
    let curves = [
        Curve { name: "allcore", single: 16_000.0, contention: 0.03, coherence: 0.000_01 },
        Curve { name: "pg18", single: 11_000.0, contention: 0.08, coherence: 0.001_5 },
    ];
    with(&curves, "select-only", &[1, 2, 4, 8, 16, 32, 64, 128, 256])
}

/// Two arms that do these times as much with more than 8 clients.
pub(crate) fn faster(by: f64) -> Report {
    let mut report = two_arms();
    for point in report.points.iter_mut().filter(|point| point.clients > 8) {
        let tps = point.tps;
        point.tps = Interval::each(|of| by * of(&tps));
    }
    report
}

/// Six arms with long names that end differently, up to 1,000 clients.
pub(crate) fn six_arms() -> Report {
    let names = [
        "postgres-18-on-the-big-machine shared_buffers=1GB",
        "postgres-18-on-the-big-machine shared_buffers=4GB",
        "postgres-18-on-the-big-machine shared_buffers=16GB",
        "maria",
        "ein-Server-mit-einem-Namen-ohne-jede-Leerstelle-darin-der-nicht-enden-will",
        "a<b> & \"c\"",
    ];
    let curve = |(at, name): (usize, &&'static str)| Curve {
        name,
        single: 9_000.0 + 1_500.0 * at as f64,
        contention: 0.02 * at as f64,
        coherence: 0.000_1 * at as f64,
    };
    let curves: Vec<_> = names.iter().enumerate().map(curve).collect();
    with(&curves, "oltp_read_write", &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1000])
}

/// One arm at one point, measured once, nothing observed.
pub(crate) fn one_point() -> Report {
    let curves = [Curve { name: "pg", single: 900.0, contention: 0.0, coherence: 0.0 }];
    let mut report = with(&curves, "tpcc", &[8]);
    report.fits.clear();
    let point = &mut report.points[0];
    point.rounds.truncate(1);
    point.tps = Interval::alone(point.rounds[0].tps);
    let observed = &mut point.rounds[0].observed;
    *observed = Observed {
        unseen: vec!["the server runs elsewhere: its CPU time is not seen".into()],
        ..Default::default()
    };
    point.checks = vec![
        Check { claim: "d_next_o_id - 1 = max(o_id)".into(), fault: None },
        Check {
            claim: "w_ytd = sum(d_ytd)".into(),
            fault: Some("warehouse 3: 300012.50 and 300000.00".into()),
        },
    ];
    report.missing = vec!["16 clients: interrupted".into()];
    report.verdict = vec![
        "disqualified: broken data: tpcc at 8 clients, pg: w_ytd = sum(d_ytd): warehouse 3: \
                           300012.50 and 300000.00"
            .into(),
    ];
    report
}

/// One arm at 5,000 transactions a second, a rate that it does not hold with one client.
pub(crate) fn open_loop() -> Report {
    let curves = [Curve { name: "pg", single: 3_000.0, contention: 0.0, coherence: 0.0 }];
    let mut report = with(&curves, "oltp_read_write", &[1, 8, 64]);
    report.fits.clear();
    report.verdict = vec!["pg: the rate of 5,000 a second is not held with 1 client".into()];
    report.load = pairs(&[("driver", "native"), ("pace", "5000 a second, Poisson")]);
    for point in &mut report.points {
        let done = point.tps.value.min(5_000.0);
        point.tps = around(done, 0.01);
        for round in &mut point.rounds {
            round.tps = done;
            round.seconds = vec![done as u64; 10];
            round.offered = Some(Offered { from: 5_000.0, to: 5_000.0, even: false });
            round.lag = Some(round.latency);
            round.unstarted = Some(((5_000.0 - done) * round.elapsed) as u64);
        }
    }
    report
}

/// An open loop whose rate rises from 1,000 to 9,000 a second.
pub(crate) fn rising() -> Report {
    let mut report = open_loop();
    for round in report.points.iter_mut().flat_map(|point| &mut point.rounds) {
        round.offered = Some(Offered { from: 1_000.0, to: 9_000.0, even: false });
        let step = |step| Latency { p99: f64::from(step), ..round.latency };
        round.by_rate = (1..=20).map(step).collect();
    }
    report
}

/// An empty report.
pub(crate) fn nothing() -> Report {
    let mut report = with(&[], "select-only", &[]);
    report.missing = vec!["arm pg18: can't connect to 127.0.0.1:5432: connection refused".into()];
    report.findings.clear();
    report.verdict = vec!["nothing was measured".into()];
    report
}

fn with(curves: &[Curve], workload: &str, clients: &[usize]) -> Report {
    let arm = |curve: &Curve| Arm {
        name: curve.name.into(),
        dialect: Dialect::Postgres,
        server: "PostgreSQL 18.0 (Debian 18.0-1) on x86_64-pc-linux-gnu".into(),
        settings: pairs(&[("shared_buffers", "1GB"), ("synchronous_commit", "on")]),
    };
    let mut report = Report {
        version: VERSION,
        began: "2026-03-14T15:09:26Z".into(),
        command: ["allcore", "bench", "--clients", "1..256"].map(String::from).to_vec(),
        machine: Machine {
            facts: pairs(&[
                ("CPU", "AMD EPYC 9654 96-Core Processor"),
                ("cores", "2"),
                ("kernel", "Linux 6.12"),
            ]),
            noise: (0..9)
                .map(|at| Noise { at: f64::from(at) * 30.0, took: 10.0 + 0.05 * f64::from(at % 3) })
                .collect(),
        },
        load: pairs(&[("driver", "native"), ("counted", "3 rounds of 10 s"), ("seed", "42")]),
        arms: curves.iter().map(arm).collect(),
        points: Vec::new(),
        fits: curves.iter().map(|curve| fit(curve, workload)).collect(),
        verdict: vec!["allcore: 1.6 to 20 times pg18 at 1 to 256 clients".into()],
        findings: vec![
            "pg18: from 16 to 256 clients throughput falls from 54321 to 12345; 71% of server time is in \
                        s_lock."
                .into(),
        ],
        missing: Vec::new(),
    };
    for clients in clients {
        for curve in curves {
            let first = report.points.iter().find(|one| one.clients == *clients && one.arm == curves[0].name);
            let first = first.map(|one| one.tps.value);
            report.points.push(point(curve, workload, *clients, first));
        }
    }
    report
}

/// Errors that failed this many transactions.
pub(crate) fn errors(code: &str, message: &str, count: u64) -> Errors {
    Errors { code: code.into(), message: message.into(), count, tolerated: false }
}

/// Shares of these names.
pub(crate) fn shares(all: &[(&str, f64)]) -> Vec<Share> {
    all.iter().map(|(name, share)| Share { name: name.to_string(), share: *share }).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn around(value: f64, by: f64) -> Interval {
    Interval { value, low: value * (1.0 - by), high: value * (1.0 + by) }
}

fn fit(curve: &Curve, workload: &str) -> Fit {
    let peak = (curve.coherence > 0.0).then(|| ((1.0 - curve.contention) / curve.coherence).sqrt());
    let mut fit = Fit {
        arm: curve.name.into(),
        workload: workload.into(),
        protocol: Protocol::Prepared,
        single: around(curve.single, 0.02),
        contention: around(curve.contention, 0.1),
        coherence: around(curve.coherence, 0.2),
        peak: None,
        explained: 0.987,
    };
    fit.peak = peak.map(|clients| Peak { clients: around(clients, 0.15), tps: fit.tps(clients) });
    fit
}

fn point(curve: &Curve, workload: &str, clients: usize, first: Option<f64>) -> Point {
    // Points lie around the curve, not on it.
    let off = 1.0 + 0.06 * ((clients as f64).ln() * 2.0 + curve.single).sin();
    let tps = fit(curve, workload).tps(clients as f64) * off;
    let wobble = |pass: u32| 1.0 + 0.01 * (f64::from(pass) - 1.0) * (1.0 + (clients % 5) as f64 / 4.0);
    Point {
        arm: curve.name.into(),
        workload: workload.into(),
        protocol: Protocol::Prepared,
        clients,
        tps: around(tps, 0.01 + 0.01 * (clients % 5) as f64 / 4.0),
        ratio: first.map(|first| around(tps / first, 0.03)),
        rounds: (0..3).map(|pass| round(pass, clients, tps * wobble(pass), curve)).collect(),
        checks: vec![Check { claim: "balances add up".into(), fault: None }],
    }
}

fn round(pass: u32, clients: usize, tps: f64, curve: &Curve) -> Round {
    let n = clients as f64;
    let mean = n / tps * 1e3;
    let spin = (n / 400.0 * curve.contention * 12.0).min(0.7);
    // Sessions that spin too long sleep.
    let busy = n / (n + 0.4) * (1.0 - spin * spin);
    let kernel = 0.15 + curve.coherence * 40.0;
    let deadlock = errors("40P01", "deadlock detected", 3);
    let (done, failed) = ((tps * 10.0) as u64, (clients / 200) as u64);
    let second = |second: u32| (tps * (1.0 + 0.02 * f64::from((second * 7 + pass) % 5))) as u64;
    Round {
        at: f64::from(pass) * 300.0 + n,
        elapsed: 10.0,
        tps,
        kinds: vec![KindCounts { name: "transaction".into(), done, failed, retried: 0 }],
        latency: latency(mean),
        seconds: (0..10).map(second).collect(),
        errors: if clients > 200 { vec![deadlock] } else { Vec::new() },
        client_cpu: CpuTime { user: 2.1, system: 3.3 },
        observed: Observed {
            cpu: Some(CpuSplit {
                client: 0.2 * busy,
                server_user: (0.75 - kernel) * busy,
                server_kernel: kernel * busy,
                other: 0.05 * busy,
                idle: 1.0 - busy,
            }),
            server_cpu: Some(ServerCpu { user: 9.0 * (1.0 + spin), kernel: 5.0 }),
            busy_threads: Some(0),
            switches: Some(Switches { voluntary: 0.5 + 4.0 * spin, involuntary: 0.01 * n.sqrt() }),
            calls: (pass == 0).then_some(2.0 + 10.0 * spin),
            counters: (pass == 0).then_some(Counters {
                cycles: 60_000.0 * (1.0 + spin),
                instructions: 50_000.0 * (1.0 + 0.1 * spin),
                cache_misses: 90.0 * (1.0 + 0.4 * spin),
                node_loads: f64::NAN,
                cpu: 20.0 * (1.0 + spin),
                migrations: 0.02,
                page_faults: 0.5,
            }),
            symbols: shares(&[
                ("s_lock", 0.6 * spin),
                ("futex_wait (kernel)", 0.3 * spin),
                ("hash_search_with_hash_value", 0.11 * (1.0 - spin)),
                (
                    "std::collections::hash::map::HashMap<K,V,S>::get_or_insert_with_a_long_name::{{closure}}",
                    0.07,
                ),
                ("AllocSetAlloc", 0.06),
                ("LWLockAttemptLock", 0.02 + spin / 5.0),
                ("__memmove_avx_unaligned_erms", 0.04),
            ]),
            samples: 1_500,
            waits: shares(&[
                ("running", 0.9 - spin),
                ("LWLock:BufferMapping", spin),
                ("Client:ClientRead", 0.1),
            ]),
            looks: 40,
            ..Observed::default()
        },
        ..test_noise::round(pass, tps)
    }
}

/// Latencies with this mean.
fn latency(mean: f64) -> Latency {
    Latency {
        mean,
        p50: mean * 0.9,
        p90: mean * 1.3,
        p95: mean * 1.6,
        p99: mean * 3.1,
        p999: mean * 9.0,
        max: mean * 40.0,
    }
}
