//! The real pgbench against a real server. A test is skipped, with a message, where either is
//! missing. A shell script in its place records how the lab calls it.

use super::*;
use crate::client::{Client, Statement};
use crate::tests::target;

/// A workload that only pgbench runs.
struct Only(Option<Original>);

impl Workload for Only {
    fn name(&self) -> &str {
        "only"
    }

    fn kinds(&self) -> &[String] {
        &[]
    }

    fn original(&self) -> Option<Original> {
        self.0.clone()
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        unreachable!()
    }

    fn client(&self, _: usize, _: usize) -> Box<dyn Client> {
        unreachable!()
    }
}

fn load(pace: Pace) -> Load {
    let warmup = Duration::from_secs(1);
    Load { pace, warmup, tries: 3, seed: 7, ..Load::closed(2, 1, Duration::from_secs(2)) }
}

const CLOSED: Pace = Pace::Closed { think: Duration::ZERO };

fn scripts(texts: &[(&str, u32)]) -> Only {
    let scripts = texts.iter().map(|(text, weight)| ((*text).to_owned(), *weight)).collect();
    let variables = vec![("x".to_owned(), "3".to_owned())];
    Only(Some(Original { scripts, scale: 1, variables, reconnect: false }))
}

/// Runs pgbench on a server; prints a message where either is missing.
fn run(driver: &dyn Driver, workload: &Only, load: &Load) -> Option<Result<(Measured, Live), String>> {
    let live = Live::new(1);
    match driver.run(&target(Dialect::Postgres)?, workload, load, &live) {
        Err(error) if crate::tests::is_absent(&error) => None,
        result => Some(result.map(|measured| (measured, live))),
    }
}

#[test]
fn pgbench_measures_its_scripts() {
    let driver = Pgbench { logged: 0.5, ..Pgbench::default() };
    let workload = scripts(&[("SELECT :x;", 3), ("SELECT :client_id;", 1)]);
    let Some(run) = run(&driver, &workload, &load(CLOSED)) else { return };
    let (measured, live) = run.unwrap();
    assert_eq!((measured.seconds.len(), live.phase()), (2, Phase::Over));
    // Its lines come a second apart, or more on a busy machine.
    assert!((1.0..30.0).contains(&measured.elapsed.as_secs_f64()), "{:?}", measured.elapsed);
    let done: Vec<u64> = measured.kinds.iter().map(|kind| kind.done).collect();
    assert_eq!(done.iter().sum::<u64>(), measured.seconds.iter().sum::<u64>());
    // Three of four transactions come from the first script.
    let share = done[0] as f64 / (done[0] + done[1]) as f64;
    assert!((0.6..0.9).contains(&share), "{done:?}");
    // pgbench logs half of them, and each counts twice.
    let logged = measured.kinds[0].latency.len() as f64;
    assert!((0.5..1.5).contains(&(logged / done[0] as f64)), "{logged} {done:?}");
    // pgbench logs 0 where an answer arrives before it looks, which may be most of them.
    let longest = measured.kinds[0].latency.max();
    assert!((1_000..30_000_000_000).contains(&longest), "{longest}");
    assert!(measured.client_cpu.user > 0.0 && measured.lost_clients.is_none() && measured.lag.is_none());
}

#[test]
fn pgbench_keeps_a_rate_and_tells_its_lag() {
    let pace = Pace::Open { from: 50.0, to: 50.0, arrivals: Arrivals::Poisson };
    let one = scripts(&[("SELECT 1;", 1)]);
    let Some(run) = run(&Pgbench::default(), &one, &load(pace)) else { return };
    let (measured, _) = run.unwrap();
    // Without a rate there would be thousands; a busy machine may do fewer than the 100 arrivals.
    assert!((10..400).contains(&measured.kinds[0].done), "{:?}", measured.seconds);
    // pgbench does not report how many never began.
    assert_eq!(measured.unstarted, None);
    let lag = measured.lag.unwrap();
    // At so low a rate pgbench logs all, and writes the log only at its end.
    let logged = lag.len().abs_diff(measured.kinds[0].done);
    assert!(logged < 10, "{} {:?}", lag.len(), measured.kinds[0].done);
}

#[test]
fn errors_of_scripts_are_those_that_pgbench_prints() {
    for (script, wanted) in [("SELECT * FROM lab_nowhere;", "lab_nowhere"), ("\\sett x 1", "sett")] {
        let Some(run) = run(&Pgbench::default(), &scripts(&[(script, 1)]), &load(CLOSED)) else { return };
        let error = run.unwrap_err();
        assert!(error.starts_with("pgbench: ") && error.contains(wanted), "{error}");
    }
}

#[test]
fn loads_that_pgbench_cannot_make_are_refused() {
    let seconds = |ramp, warmup, measured| {
        let [ramp, warmup, measured] = [ramp, warmup, measured].map(Duration::from_millis);
        Load { ramp, warmup, measured, ..load(CLOSED) }
    };
    let rate = |to, arrivals| load(Pace::Open { from: 1.0, to, arrivals });
    for (load, wanted) in [
        (seconds(0, 500, 3000), "whole seconds only: make --warmup whole"),
        (seconds(0, 1000, 2500), "whole seconds only: make --round whole"),
        (seconds(1000, 1000, 3000), "all clients at once: leave out --ramp"),
        (seconds(0, 0, 1000), "take a --warmup of at least 1s"),
        (load(Pace::Closed { think: Duration::from_millis(1) }), "can't think"),
        (rate(2.0, Arrivals::Poisson), "keeps one rate"),
        (rate(1.0, Arrivals::Even), "take Poisson arrivals"),
    ] {
        let refused = Pgbench::default().suits(&scripts(&[("SELECT 1;", 1)]), &load).unwrap_err();
        assert!(refused.contains(wanted), "{refused}");
    }
    assert_eq!(Pgbench::default().suits(&scripts(&[]), &seconds(0, 2000, 3000)), Ok(()));
    let refused = Pgbench::default().suits(&Only(None), &load(CLOSED)).unwrap_err();
    assert!(refused.contains("no workload of pgbench"), "{refused}");
}

#[test]
fn libpq_encrypts_as_little_as_the_native_driver() {
    let folder = tempfile::tempdir().unwrap();
    let (text, program) = (folder.path().join("text"), folder.path().join("tool"));
    let script = "#!/bin/sh\necho \"pgbench: error: TLS $PGSSLMODE, GSSAPI $PGGSSENCMODE\" >&2\nexit 1\n";
    fs::write(&text, script).unwrap();
    // Another program makes the file. A thread that forks meanwhile would hold it open for writing,
    // and then it could not run.
    let made = Command::new("install").args(["-m", "700"]).args([&text, &program]).status();
    assert!(made.unwrap().success());
    let to = crate::arm::url::parse("test", "postgres://u@localhost:7/db").unwrap();
    for (program, wanted) in [
        (program, "pgbench: TLS disable, GSSAPI disable"),
        ("/nowhere/pgbench".into(), "/nowhere/pgbench is not installed"),
    ] {
        let pgbench = Pgbench { program, ..Pgbench::default() };
        let said = pgbench.run(&to, &scripts(&[("SELECT 1;", 1)]), &load(CLOSED), &Live::new(1));
        assert!(said.as_ref().is_err_and(|said| said.starts_with(wanted)), "{said:?}");
    }
}

#[test]
fn the_output_of_pgbench_is_parsed() {
    let line =
        "progress: 1763755001.250 s, 1000.4 tps, lat 0.809 ms stddev 0.123, 2 failed, 3 retried, 4 retries";
    let read = Progress::of(line, Some(1_763_755_000.250)).unwrap();
    assert_eq!(read, Progress { at: 1_763_755_001.250, done: 1000, latency: 809_000, failed: 2, retried: 4 });
    let lagging = "progress: 5.000 s, 10.0 tps, lat 0.8 ms stddev 0.1, 0 failed, lag 0.1 ms, 3 skipped";
    assert_eq!(Progress::of(lagging, Some(4.5)).unwrap().done, 5);
    assert_eq!(Progress::of("pgbench: error: connection failed", None), None);
    let open = Logged::of("3 17 1234 1 1763755001 250000 99 0", true).unwrap();
    let expected = Logged { script: 1, at: 1_763_755_001.25, latency: 1234, lag: Some(99) };
    assert_eq!(open, expected);
    assert_eq!(Logged::of("3 17 failed 1 1763755001 250000", false), None);
    assert_eq!(Logged::of("3 17 12", false), None);
}

#[test]
fn transactions_done_are_shared_out_completely() {
    let kind = |done| Kind { done, ..Kind::default() };
    let mut kinds = [kind(1), kind(2), kind(0)];
    share_out(100, &mut kinds);
    assert_eq!(kinds.map(|kind| kind.done), [34, 66, 0]);
    let mut none = [kind(0), kind(0)];
    share_out(7, &mut none);
    assert_eq!(none.map(|kind| kind.done), [7, 0]);
}
