//! Sweeps of scripted drivers on a scripted clock.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use super::*;
use crate::arm::{Address, Dialect};
use crate::client::Random;
use crate::drive::{Kind, Live, Measured, Phase, histogram};
use crate::record::CpuTime;
use crate::record::{Counters, Latency, Observed};
use crate::report::samples;
use crate::tests::{golden, golden_cases};
use crate::workload::pgbench::PgBench;
use crate::workload::tests::builtins;

/// A workload that never runs: the drivers are scripted.
fn named() -> PgBench {
    builtins(&["select-only"], 1)
}

/// The events of drivers and observers, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// The clock of a test, and a record of its rounds.
#[derive(Default)]
struct Bench {
    now: Cell<Duration>,
    /// The number of rounds at each call of `settle`, and the time a call takes.
    settled: RefCell<Vec<usize>>,
    settles: Duration,
    ran: RefCell<Vec<(String, usize, u64)>>,
    stop: AtomicBool,
    /// Arms whose servers have ended.
    ended: RefCell<Vec<String>>,
    log: Log,
    /// By arm, the number of costly observations that see nothing.
    blind: [usize; 2],
}

impl Machine for Bench {
    fn now(&self) -> Duration {
        self.now.get()
    }
    fn settle(&self) {
        self.settled.borrow_mut().push(self.ran.borrow().len());
        self.now.set(self.now.get() + self.settles);
    }
    fn fixed_loop(&self) -> f64 {
        20.0
    }
}

/// An arm's round: its tps, or the reason for its failure. Arguments: the clients, and the index of
/// the arm's round at these, from 0.
type Script<'a> = Box<dyn Fn(usize, usize) -> Result<f64, String> + 'a>;

/// Counts until the observer has looked, ends its sessions, and gives the script's result.
struct Scripted<'a> {
    bench: &'a Bench,
    script: Script<'a>,
}

impl Driver for Scripted<'_> {
    fn run(&self, to: &Target, _: &dyn Workload, load: &Load, live: &Live) -> Result<Measured, String> {
        let Bench { ran, now, log, .. } = self.bench;
        let before = ran.borrow().iter().filter(|one| one.0 == to.arm && one.1 == load.clients).count();
        ran.borrow_mut().push((to.arm.clone(), load.clients, load.seed));
        now.set(now.get() + load.ramp + load.warmup + load.measured);
        let tps = (self.script)(load.clients, before);
        let begun = log.lock().unwrap().len();
        live.enter(Phase::Measuring);
        live.publish(0, 1);
        crate::tests::wait_until(|| log.lock().unwrap().len() > begun);
        live.enter(Phase::Over);
        live.hold();
        log.lock().unwrap().push(format!("{} parts", to.arm));
        Ok(measured((tps? * load.measured.as_secs_f64()) as u64, load.measured))
    }
}

fn measured(done: u64, elapsed: Duration) -> Measured {
    let mut latency = histogram();
    latency.record_n(2_000_000, done).unwrap();
    Measured {
        elapsed,
        kinds: vec![Kind { done, failed: 0, retried: 0, latency }],
        seconds: Vec::new(),
        lag: None,
        own_lag: None,
        by_rate: Vec::new(),
        unstarted: Some(0),
        errors: Vec::new(),
        lost_clients: None,
        client_cpu: CpuTime::default(),
    }
}

/// Records its calls.
#[derive(Default)]
struct Told {
    stages: Vec<Stage>,
    notes: Vec<String>,
    ticks: Vec<u64>,
}

impl Progress for Told {
    fn begin(&mut self, stage: &Stage) {
        self.stages.push(stage.clone());
    }
    fn tick(&mut self, done: u64, _: Duration) {
        self.ticks.push(done);
    }
    fn end(&mut self, round: &Round, point: &Point) {
        assert_eq!(point.rounds.last().unwrap().at, round.at);
    }
    fn note(&mut self, line: &str) {
        self.notes.push(line.into());
    }
}

/// Records its calls; it sees symbols after so many costly observations.
struct Looks(Log, usize);

impl Looks {
    fn log(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
}

impl Observe for Looks {
    fn begin(&mut self, window: Duration, deep: bool) {
        self.1 = self.1.saturating_sub(usize::from(deep));
        self.log(format!("begins {}{}", window.as_secs(), if deep { " deep" } else { "" }));
    }
    fn end(&mut self) {
        std::thread::sleep(Duration::from_millis(2));
        self.log("looked");
    }
    fn seen(&mut self, transactions: u64, _: Duration) -> Observed {
        self.log(format!("seen {transactions}"));
        let symbols = samples::shares(&[("s_lock", 0.5)]);
        let (calls, counters) = (Some(3.0), Some(Counters::default()));
        match self.1 {
            0 => Observed { symbols, calls, counters, ..Observed::default() },
            _ => Observed::default(),
        }
    }
    fn forget(&mut self) {
        self.log("forgotten");
    }
}

fn target(arm: &str) -> Target {
    let nowhere = Address::Tcp("nowhere".into(), 1);
    Target { arm: arm.into(), ..crate::tests::target_at(Dialect::Postgres, nowhere) }
}

const SECOND: Duration = Duration::from_secs(1);

fn plan(clients: &[usize]) -> Plan {
    Plan {
        clients: clients.to_vec(),
        load: Load { warmup: 2 * SECOND, seed: 7, ..Load::closed(0, 4, 8 * SECOND) },
        width: 0.03,
        least_rounds: 3,
        most_rounds: 10,
        time: None,
    }
}

/// Sweeps arms called a, b and so on with these drivers.
fn driven(bench: &Bench, plan: &Plan, drivers: &[&dyn Driver]) -> (Swept, Told) {
    let workload = named();
    let targets = ["a", "b", "c"].map(target);
    let blind = bench.blind.iter().copied().chain([0]);
    let mut looks: Vec<Looks> = blind.map(|blind| Looks(Arc::clone(&bench.log), blind + 1)).collect();
    let mut contenders: Vec<Contender<'_>> = (targets.iter().zip(drivers).zip(&mut looks))
        .map(|((target, driver), observer)| Contender {
            target,
            driver: *driver,
            workload: &workload,
            observer,
            ended: Box::new(|| {
                bench.ended.borrow().iter().find(|one| **one == target.arm).map(|_| "it fell".into())
            }),
        })
        .collect();
    let mut told = Told::default();
    let swept = sweep(&mut contenders, plan, bench, &bench.stop, &mut told);
    (swept, told)
}

/// Sweeps arms whose rounds follow these scripts.
fn swept<'a>(bench: &'a Bench, plan: &Plan, scripts: Vec<Script<'a>>) -> (Swept, Told) {
    let drivers: Vec<Scripted<'_>> = scripts.into_iter().map(|script| Scripted { bench, script }).collect();
    let drivers: Vec<&dyn Driver> = drivers.iter().map(|driver| driver as &dyn Driver).collect();
    driven(bench, plan, &drivers)
}

/// Sweeps arms whose rounds follow these scripts. Returns the rounds in order, when each point's
/// rounds began, and the sweep's lines.
fn shown<'a>(bench: &'a Bench, plan: &Plan, scripts: Vec<Script<'a>>) -> Vec<String> {
    let (swept, told) = swept(bench, plan, scripts);
    let ran: Vec<_> = bench.ran.borrow().iter().map(|(arm, clients, _)| format!("{arm}{clients}")).collect();
    let mut lines = vec![format!("{} s: {}", bench.now.get().as_secs(), ran.join(" "))];
    lines.extend(swept.points.iter().map(|Point { arm, clients, rounds, .. }| {
        let at: Vec<f64> = rounds.iter().map(|round| round.at).collect();
        format!("{arm} with {clients} at {at:?} s")
    }));
    for (kind, said) in [("missing", swept.missing), ("wide", swept.wide), ("note", told.notes)] {
        lines.extend(said.iter().map(|line| format!("{kind}: {line}")));
    }
    lines
}

fn steady(tps: f64) -> Script<'static> {
    Box::new(move |clients, round| Ok(tps * clients as f64 * (1.0 + 0.001 * (round % 3) as f64)))
}

#[test]
fn arms_take_turns_in_alternating_order() {
    let (plan, arms) = (plan(&[1, 8]), || vec![steady(100.0), steady(150.0)]);
    golden("sweep_turns", &shown(&Bench::default(), &plan, arms()).join("\n"));

    let bench = Bench::default();
    let (swept, told) = swept(&bench, &plan, arms());
    let seeds: Vec<u64> = bench.ran.borrow().iter().map(|one| one.2).collect();
    assert_eq!((seeds[0], seeds[1], seeds[4], seeds[11]), (7, 7, 8, 9), "rounds of a pass draw alike");
    assert_eq!(swept.noise.len(), 12);
    assert_eq!(*bench.settled.borrow(), (0..12).collect::<Vec<_>>(), "before each round");
    assert_eq!(swept.points[0].ratio, None);
    let ratio = swept.points[3].ratio.unwrap();
    assert!((ratio.value - 1.5).abs() < 1e-3 && ratio.contains(1.0) == Some(false), "{ratio:?}");
    let round = &swept.points[2].rounds[1];
    assert_eq!((round.pass, round.at, round.elapsed), (1, 70.0, 8.0));
    assert!((round.tps - 800.8).abs() < 0.2 && (round.latency.p99 - 2.0).abs() < 0.01, "{round:?}");
    assert_eq!((round.kinds[0].name.as_str(), round.kinds[0].done), ("select-only", 6_406));
    assert_eq!(told.stages.len(), 12);
    for (index, stage) in told.stages.iter().enumerate() {
        assert_eq!((stage.rounds_done, stage.rounds_ahead), (index, 11 - index));
    }
}

#[test]
fn a_wide_point_is_measured_again_with_all_its_arms() {
    let wide: Script<'_> = Box::new(|clients, round| {
        let off = if clients == 8 && round < 3 { [0.9, 1.0, 1.1][round] } else { 1.0 };
        Ok(1_000.0 * off)
    });
    let most = Plan { most_rounds: 40, ..plan(&[1, 8]) };
    golden("sweep_wide", &shown(&Bench::default(), &most, vec![steady(100.0), wide]).join("\n"));
}

#[test]
fn a_point_that_stays_wide_is_reported_unless_the_plan_has_one_round() {
    let mut random = Random::new(1, 1);
    let values: Vec<f64> = (0..10).map(|_| 1_000.0 * (1.0 + 0.3 * random.unit())).collect();
    let wide: Script<'_> = Box::new(move |_, round| Ok(values[round]));
    let once = Plan { least_rounds: 1, most_rounds: 1, ..plan(&[1]) };
    let cases = [
        ("up to ten rounds", shown(&Bench::default(), &plan(&[8]), vec![wide])),
        ("one round", shown(&Bench::default(), &once, vec![steady(100.0)])),
    ];
    golden_cases("sweep_stays_wide", cases);
}

#[test]
fn an_arm_that_fails_is_left_out_there_and_others_go_on() {
    let failing: Script<'_> = Box::new(|clients, round| match (clients, round) {
        (64, _) => Err("too many clients already".into()),
        (8, 1) => Err("the connection was closed".into()),
        _ => Ok(500.0),
    });
    let gone: Script<'_> = Box::new(|_, _| Err("no such database".into()));
    let scripts = vec![steady(100.0), failing, gone];
    golden("sweep_fails", &shown(&Bench::default(), &plan(&[1, 8, 64]), scripts).join("\n"));
}

#[test]
fn an_arm_whose_server_has_ended_runs_nothing_more() {
    let bench = Bench::default();
    let dying: Script<'_> = Box::new(|clients, round| {
        if (clients, round) == (8, 1) {
            bench.ended.borrow_mut().push("b".into());
            return Err("the connection was closed".into());
        }
        Ok(500.0)
    });
    golden("sweep_ended", &shown(&bench, &plan(&[1, 8, 64]), vec![steady(100.0), dying]).join("\n"));
}

/// The round of 4 clients that a driver's figures give.
fn round_of(measured: &Measured) -> Result<Round, String> {
    let load = Load { clients: 4, measured: SECOND, ..plan(&[4]).load };
    round::round(&named(), &load, measured, Observed::default(), 0, Duration::ZERO, false)
}

#[test]
fn untimed_transactions_have_no_latency() {
    let timed = Measured { lag: Some(histogram()), ..measured(50, Duration::from_secs(1)) };
    let mut untimed = timed.clone();
    untimed.kinds[0].latency = histogram();
    let round = round_of(&untimed).unwrap();
    assert_eq!((round.tps, round.lag), (50.0, None));
    let Latency { mean, p50, p90, p95, p99, p999, max } = round.latency;
    assert!([mean, p50, p90, p95, p99, p999, max].iter().all(|one| one.is_nan()), "{:?}", round.latency);
    // It does not lower the figures of the other rounds either.
    let mut rounds = vec![round, round_of(&timed).unwrap()];
    rounds[1].lag = Some(rounds[1].latency);
    let point = Point { rounds, ..samples::two_arms().points[0].clone() };
    assert!((point.latency().p99 - 2.0).abs() < 0.01, "{:?}", point.latency());
    assert_eq!(point.lag().map(|lag| lag.p99), Some(point.latency().p99));
}

#[test]
fn a_round_without_transactions_or_clients_is_a_failure() {
    let missing = vec![samples::errors("42P01", "no such table", 9)];
    let ended = |clients| Some((clients, "the server ended".to_owned()));
    let silent = "no transaction was done: the server did not answer for the whole round of 1s, or a \
                  transaction takes longer";
    for (done, errors, lost_clients, expected) in [
        (0, Vec::new(), None, Err(silent)),
        (0, missing, None, Err("no transaction was done: 42P01: no such table")),
        (50, Vec::new(), ended(4), Err("no client could go on: the server ended")),
        (50, Vec::new(), ended(3), Ok(50.0)),
    ] {
        let measured = Measured { errors, lost_clients, ..measured(done, SECOND) };
        assert_eq!(round_of(&measured).map(|round| round.tps), expected.map_err(str::to_owned));
    }
    let early = round_of(&measured(0, SECOND / 2)).unwrap_err();
    assert_eq!(early, "no transaction was done: the round ended too early for one");
}

#[test]
fn a_sweep_out_of_time_has_missing_points_and_whole_pairs() {
    let limited = |seconds, clients: &[usize]| Plan { time: Some(seconds * SECOND), ..plan(clients) };
    let pair = || vec![steady(100.0), steady(150.0)];
    let [first, second, third] = [(); 3].map(|()| Bench::default());
    let fourth = Bench { settles: 5 * SECOND, ..Bench::default() };
    let slow: Script<'_> = Box::new(|clients, _| {
        let more = if clients == 64 { 50 * SECOND } else { Duration::ZERO };
        third.now.set(third.now.get() + more);
        Ok(100.0)
    });
    let cases = [
        ("70 s: a seventh round would have had no pair", shown(&first, &limited(70, &[1, 8]), pair())),
        ("5 s: the first point is measured in any case", shown(&second, &limited(5, &[1, 8, 64]), pair())),
        (
            "205 s: the last round would have taken 60 s of 25",
            shown(&third, &limited(205, &[1, 8, 64]), vec![slow]),
        ),
        (
            "40 s: a third round would have taken 15 s of 10",
            shown(&fourth, &limited(40, &[1]), vec![steady(100.0)]),
        ),
    ];
    golden_cases("sweep_out_of_time", cases);
}

#[test]
fn a_stop_keeps_the_measurements() {
    let bench = Bench::default();
    // In the second pass b comes first.
    let stopping: Script<'_> = Box::new(|clients, round| {
        if clients == 8 && round == 1 {
            bench.stop.store(true, Ordering::Relaxed);
        }
        Ok(100.0)
    });
    golden("sweep_stopped", &shown(&bench, &plan(&[1, 8, 64]), vec![stopping, steady(150.0)]).join("\n"));
}

/// Runs in real time until it is stopped, which it asks for after a while.
struct Real<'a>(&'a AtomicBool);

/// Transactions that [`Real`] does before it counts.
const WARM: u64 = 10;

impl Driver for Real<'_> {
    fn run(&self, _: &Target, _: &dyn Workload, _: &Load, live: &Live) -> Result<Measured, String> {
        let began = Instant::now();
        for done in 0.. {
            live.publish(0, done);
            live.enter(if done < WARM { Phase::Warming } else { Phase::Measuring });
            self.0.store(done > 10 * WARM, Ordering::Relaxed);
            if live.is_stopped() || began.elapsed() > 60 * SECOND {
                live.enter(Phase::Over);
                return Ok(measured(done, began.elapsed()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        unreachable!("it is told to stop")
    }
}

#[test]
fn a_stop_reaches_the_driver_and_observers_see_what_it_counted() {
    let (bench, began) = (Bench::default(), Instant::now());
    let (swept, told) = driven(&bench, &plan(&[1, 8]), &[&Real(&bench.stop)]);
    let took = began.elapsed();
    assert!(took < 50 * SECOND, "{took:?}");
    assert_eq!(swept.points.len(), 1, "the only round is kept though it was cut short");
    let round = &swept.points[0].rounds[0];
    assert_eq!(round.observed.calls, Some(3.0));
    let seen = format!("seen {}", round.kinds[0].done);
    assert_eq!(*bench.log.lock().unwrap(), ["begins 8 deep", "looked", &seen]);
    assert!(told.ticks.is_sorted() && !told.ticks.is_empty(), "{:?}", told.ticks);
    assert_eq!(swept.missing, ["a was not measured at 8 clients, because the run was stopped"]);
}

/// The events of a sweep of two arms or one, with this many rounds.
fn happens(rounds: u32, bench: Bench, scripts: Vec<Script<'_>>) -> Vec<String> {
    let plan = Plan { least_rounds: rounds, most_rounds: rounds, ..plan(&[1]) };
    swept(&bench, &plan, scripts);
    bench.log.lock().unwrap().clone()
}

#[test]
fn sessions_stay_until_the_observer_has_looked_and_a_failed_rounds_results_are_dropped() {
    let looked = ["begins 8 deep", "looked", "a parts", "seen 800"];
    assert_eq!(happens(1, Bench::default(), vec![steady(100.0)]), looked);
    let failing: Script<'_> = Box::new(|_, _| Err("it fell".into()));
    let forgotten = ["begins 8 deep", "looked", "a parts", "forgotten"];
    assert_eq!(happens(1, Bench::default(), vec![failing]), forgotten);
}

#[test]
fn the_costly_looks_come_with_the_same_rounds_of_all_arms() {
    for (blind, expected, why) in [
        ([0, 0], [true, false, false, false], "both saw symbols"),
        ([0, 1], [true, true, false, false], "the other arm saw nothing in its first"),
        ([8, 0], [true, true, false, false], "twice is enough"),
    ] {
        let log = happens(4, Bench { blind, ..Bench::default() }, vec![steady(100.0), steady(100.0)]);
        let begins = log.iter().filter(|line| line.starts_with("begins"));
        let deep: Vec<bool> = begins.map(|line| line.ends_with("deep")).collect();
        assert_eq!(deep, expected.iter().flat_map(|deep| [*deep; 2]).collect::<Vec<_>>(), "{why}");
    }
}
