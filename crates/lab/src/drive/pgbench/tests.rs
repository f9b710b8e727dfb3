//! The real pgbench against a real server. A test is skipped, with a message, where either is
//! missing. A shell script in its place records how the lab calls it.

use super::*;
use crate::script::{Settings, Source};
use crate::tests::target;
use crate::workload::pgbench::PgBench;

fn load(pace: Pace) -> Load {
    let warmup = Duration::from_secs(1);
    Load { pace, warmup, tries: 3, seed: 7, ..Load::closed(2, 1, Duration::from_secs(2)) }
}

const CLOSED: Pace = Pace::Closed { think: Duration::ZERO };

/// Scripts with their weights; their `:x` is 3.
fn scripts(texts: &[(&str, u32)]) -> PgBench {
    let source = |&(text, weight): &(&str, u32)| Source { name: "t.sql".into(), text: text.into(), weight };
    let settings = Settings { defines: vec![("x".into(), "3".into())], scale: 1, seed: 1 };
    PgBench::new(&texts.iter().map(source).collect::<Vec<_>>(), &settings).unwrap()
}

/// Runs pgbench on a server; prints a message where either is missing.
fn run(driver: &Pgbench, workload: &PgBench, load: &Load) -> Option<(Measured, Live)> {
    let live = Live::new(1);
    let measured = driver.run(&target(Dialect::Postgres)?, workload, load, &live);
    let absent = measured.as_ref().is_err_and(|error| crate::tests::is_absent(error));
    (!absent).then(|| (measured.unwrap(), live))
}

#[test]
fn pgbench_measures_its_scripts() {
    let driver = Pgbench { logged: 0.5, ..Pgbench::default() };
    let workload = scripts(&[("SELECT :x;", 3), ("SELECT :client_id;", 1)]);
    let Some((measured, live)) = run(&driver, &workload, &load(CLOSED)) else { return };
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
    let Some((measured, _)) = run(&Pgbench::default(), &one, &load(pace)) else { return };
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
fn errors_are_those_that_pgbench_prints() {
    let Some(target) = target(Dialect::Postgres) else { return };
    let nowhere = Target { database: "lab_nowhere".to_owned(), ..target.clone() };
    for (target, script) in [(&target, "SELECT * FROM lab_nowhere;"), (&nowhere, "SELECT 1;")] {
        let run = Pgbench::default().run(target, &scripts(&[(script, 1)]), &load(CLOSED), &Live::new(1));
        let error = run.unwrap_err();
        if crate::tests::is_absent(&error) {
            return;
        }
        assert!(
            error.starts_with("pgbench: ") && error.contains("\"lab_nowhere\" does not exist"),
            "{error}"
        );
    }
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
    assert_eq!(read, Progress { at: 1_763_755_001.250, done: 1000, failed: 2, retried: 4 });
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
