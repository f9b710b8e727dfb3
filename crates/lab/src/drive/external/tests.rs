//! The real tools against real servers: skipped with a plain word where either is not there. What shows only in how a tool
//! is called, or when it is ended at a given moment, is tried with a script in its place.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::arm::control::Control;
use crate::arm::{Dialect, Target};
use crate::client::Client;
use crate::client::Statement;
use crate::drive::{Driver, Live, Measured, Phase};
use crate::tests::target;
use crate::workload::{Original, PgbenchScript, Workload};

/// What only its original runs.
struct Only(Option<Original>, [String; 2]);

impl Only {
    fn new(original: Option<Original>) -> Self {
        Self(original, ["one", "two"].map(str::to_owned))
    }
}

impl Workload for Only {
    fn name(&self) -> &str {
        "only"
    }

    fn kinds(&self) -> &[String] {
        &self.1
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
    let scripts =
        texts.iter().map(|(text, weight)| (PgbenchScript::Text((*text).to_owned()), *weight)).collect();
    Only::new(Some(Original::Pgbench {
        scripts,
        scale: 1,
        variables: vec![("x".to_owned(), "3".to_owned())],
        reconnect: false,
    }))
}

/// Runs, or says why it can't be tried here.
fn run(
    driver: &dyn Driver,
    to: &Target,
    workload: &Only,
    load: &Load,
) -> Option<Result<(Measured, Live), String>> {
    let live = Live::new(1);
    match driver.run(to, workload, load, &live) {
        Err(error) if error.contains("is not installed") => {
            crate::tests::skip(&error);
            None
        }
        result => Some(result.map(|measured| (measured, live))),
    }
}

/// A script in a tool's place, in a folder that goes with the value.
fn fake(script: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (text, program) = (folder.path().join("text"), folder.path().join("tool"));
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    // Another program makes it: a file that this process had open for writing could be found busy, held by what another
    // thread is just starting.
    let made = std::process::Command::new("install").args(["-m", "700"]).args([&text, &program]).status();
    assert!(made.unwrap().success());
    (folder, program)
}

fn point_select() -> Only {
    Only::new(Some(Original::Sysbench { test: "oltp_point_select".to_owned(), options: Vec::new() }))
}

fn to(url: &str) -> Target {
    crate::arm::url::parse("test", url).unwrap()
}

/// What comes of pgbench and of sysbench where both end with a complaint of these words, in which a shell fills in what it
/// knows; `url` is where they are sent, of which pgbench refuses MySQL's.
fn complaints(words: &str, url: &str) -> [String; 2] {
    let (_folder, program) =
        fake(&format!("echo \"pgbench: error: {words}\" >&2\necho \"FATAL: {words}\" >&2\nexit 1"));
    let said = |driver: &dyn Driver, workload: &Only| {
        driver.run(&to(url), workload, &load(CLOSED), &Live::new(1)).unwrap_err()
    };
    let pgbench = Pgbench { program: program.clone(), ..Pgbench::default() };
    [said(&pgbench, &scripts(&[("SELECT 1;", 1)])), said(&Sysbench { program }, &point_select())]
}

#[test]
fn tools_encrypt_as_little_as_the_native_driver() {
    let said = complaints("TLS $PGSSLMODE, GSSAPI $PGGSSENCMODE", "postgres://u@localhost:7/db");
    assert_eq!(said, ["pgbench: TLS disable, GSSAPI disable", "sysbench: TLS disable, GSSAPI disable"]);
}

#[test]
fn sysbench_is_sent_to_the_port_that_was_named() {
    let [_, mysql] = complaints("$*", "mysql://u@localhost:3307/db");
    assert!(mysql.contains(" --mysql-host=127.0.0.1 --mysql-port=3307 "), "{mysql}");
    let [_, other] = complaints("$*", "mysql://u@db.example:3307/db");
    assert!(other.contains(" --mysql-host=db.example --mysql-port=3307 "), "{other}");
    let [_, postgres] = complaints("$*", "postgres://u@localhost:7/db");
    assert!(postgres.contains(" --pgsql-host=localhost --pgsql-port=7 "), "{postgres}");
}

/// Ends a round when so many transactions are seen, or never will be.
fn stop_after(done: u64, live: &Live) {
    crate::tests::wait_until(|| live.done() >= done);
    live.stop();
}

#[test]
fn sysbench_ended_early_has_counted_whole_intervals() {
    let (_folder, program) = fake(
        "echo 'Threads started!'\n\
         echo '[ 1s ] thds: 2 tps: 100.00 qps: 100.00 (r/w/o: 100.00/0.00/0.00)'\n\
         echo '[ 2s ] thds: 2 tps: 300.00 qps: 300.00 (r/w/o: 300.00/0.00/0.00)'\n\
         exec sleep 600",
    );
    let live = Live::new(1);
    let load = Load { warmup: Duration::ZERO, measured: Duration::from_secs(300), ..load(CLOSED) };
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| stop_after(400, &live));
        Sysbench { program }.run(&to("mysql://u@h/db"), &point_select(), &load, &live).unwrap()
    });
    // However long it took until it was ended.
    assert_eq!((measured.kinds[0].done, measured.elapsed), (400, Duration::from_secs(2)));
    assert!(measured.kinds[0].latency.is_empty() && measured.lag.is_none() && measured.unstarted.is_none());
}

#[test]
fn sysbench_ended_while_it_reports_is_read_to_its_end() {
    let (folder, program) = fake(
        "echo 'Threads started!'\n\
         echo '[ 1s ] thds: 2 tps: 100.00 qps: 100.00 (r/w/o: 100.00/0.00/0.00)'\n\
         echo 'Latency histogram (values are in milliseconds)'\n\
         echo '[ 2s ] thds: 2 tps: 50.00 qps: 50.00 (r/w/o: 50.00/0.00/0.00)'\n\
         while [ ! -e \"${0%/*}/go\" ]; do sleep 0.01; done\n\
         echo '       2.000 |**** 150'\n\
         echo '    transactions:                        150   (75.00 per sec.)'\n\
         echo '    total time:                          2.0000s'",
    );
    let live = Live::new(1);
    let load = Load { warmup: Duration::ZERO, measured: Duration::from_secs(1), ..load(CLOSED) };
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The last interval comes after the report has begun, so that it is known to be read.
            stop_after(150, &live);
            std::thread::sleep(Duration::from_millis(200));
            std::fs::write(folder.path().join("go"), "").unwrap();
        });
        Sysbench { program }.run(&to("mysql://u@h/db"), &point_select(), &load, &live).unwrap()
    });
    let kind = &measured.kinds[0];
    assert_eq!((kind.done, kind.latency.len(), measured.elapsed), (150, 150, Duration::from_secs(2)));
}

#[test]
fn what_sysbench_does_until_its_checkpoint_is_not_counted() {
    // The last interval of the warm-up comes where it likes.
    let (_folder, program) = fake(
        "echo \"$*\" > \"${0%/*}/called\"\n\
         echo 'Threads started!'\n\
         echo '[ 1s ] thds: 2 tps: 10.00 qps: 10.00 (r/w/o: 10.00/0.00/0.00)'\n\
         echo '[ 2s ] Checkpoint report:'\n\
         echo '    transactions:                        25   (12.50 per sec.)'\n\
         echo '[ 2s ] thds: 2 tps: 15.00 qps: 15.00 (r/w/o: 15.00/0.00/0.00)'\n\
         echo '    ignored errors:                      7     (3.50 per sec.)'\n\
         echo '    total time:                          2.0100s'\n\
         echo '[ 3s ] thds: 2 tps: 100.00 qps: 100.00 (r/w/o: 100.00/0.00/0.00)'\n\
         echo 'Latency histogram (values are in milliseconds)'\n\
         echo '       2.000 |**** 104'\n\
         echo '    transactions:                        104   (52.00 per sec.)'\n\
         echo '    ignored errors:                      3     (3.00 per sec.)'\n\
         echo '    total time:                          3.0200s'",
    );
    let live = Live::new(1);
    let load = Load { warmup: Duration::from_secs(2), measured: Duration::from_secs(1), ..load(CLOSED) };
    let sysbench = Sysbench { program };
    let measured = sysbench.run(&to("mysql://u@h/db"), &point_select(), &load, &live).unwrap();
    let called = std::fs::read_to_string(sysbench.program.with_file_name("called")).unwrap();
    assert!(called.ends_with(" --time=3 --report-checkpoints=2 run\n"), "{called}");
    let kind = &measured.kinds[0];
    assert_eq!((kind.done, kind.latency.len(), kind.retried, live.done()), (104, 104, 3, 100));
    assert_eq!((measured.seconds, measured.elapsed), (vec![100], Duration::from_millis(1010)));
}

#[test]
fn tools_are_given_whole_seconds_and_all_clients_at_once() {
    let times = |ramp: u64, warmup: u64, measured: u64| {
        let [ramp, warmup, measured] = [ramp, warmup, measured].map(Duration::from_millis);
        let load = Load { ramp, warmup, measured, ..load(CLOSED) };
        [
            Pgbench::default().suits(&scripts(&[("SELECT 1;", 1)]), &load),
            Sysbench::default().suits(&point_select(), &load),
        ]
    };
    assert_eq!(times(0, 2000, 3000), [Ok(()), Ok(())]);
    for (ramp, warmup, measured, expected) in [
        (0, 500, 3000, "knows whole seconds only, not 500ms: make --warmup whole or take the native driver"),
        (0, 1000, 2500, "knows whole seconds only, not 2.5s: make --round whole or take the native driver"),
        (1000, 1000, 3000, "begins with all clients at once: leave out --ramp or take the native driver"),
    ] {
        let expected = ["pgbench", "sysbench"].map(|tool| Err(format!("{tool} {expected}")));
        assert_eq!(times(ramp, warmup, measured), expected);
    }
    let [pgbench, sysbench] = times(0, 0, 1000);
    assert!(pgbench.unwrap_err().contains("take a --warmup of at least 1s"));
    assert_eq!(sysbench, Ok(()));
}

#[test]
fn sysbench_is_given_a_whole_rate_or_none() {
    let at = |rate: f64| {
        let pace = Pace::Open { from: rate, to: rate, arrivals: Arrivals::Poisson };
        load(pace)
    };
    for rate in [1234.5, 0.4] {
        let refused = Sysbench::default().suits(&point_select(), &at(rate)).unwrap_err();
        let expected = format!(
            "sysbench keeps whole transactions a second, not {rate}; take a whole --rate or the native driver"
        );
        assert_eq!(refused, expected);
    }
    assert_eq!(Sysbench::default().suits(&point_select(), &at(1234.0)), Ok(()));
    let (_folder, program) = fake("echo \"FATAL: $*\"");
    let run = Sysbench { program }.run(&to("mysql://u@h/db"), &point_select(), &at(1234.0), &Live::new(1));
    let called = run.unwrap_err();
    assert!(called.contains(" --rate=1234 "), "{called}");
    assert_eq!(Pgbench::default().suits(&scripts(&[("SELECT 1;", 1)]), &at(1234.5)), Ok(()));
}

#[test]
fn pgbench_measures_its_scripts() {
    let Some(to) = target(Dialect::Postgres) else { return };
    let driver = Pgbench { logged: 0.5, ..Pgbench::default() };
    let workload = scripts(&[("SELECT :x;", 3), ("SELECT :client_id;", 1)]);
    let Some(run) = run(&driver, &to, &workload, &load(CLOSED)) else { return };
    let (measured, live) = run.unwrap();
    assert_eq!((measured.seconds.len(), live.phase()), (2, Phase::Over));
    // Its lines come a second after another, or later where others want the CPU.
    assert!((1.0..30.0).contains(&measured.elapsed.as_secs_f64()), "{:?}", measured.elapsed);
    let done: Vec<u64> = measured.kinds.iter().map(|kind| kind.done).collect();
    assert_eq!(done.iter().sum::<u64>(), measured.seconds.iter().sum::<u64>());
    // Three of four are of the first script.
    let share = done[0] as f64 / (done[0] + done[1]) as f64;
    assert!((0.6..0.9).contains(&share), "{done:?}");
    // Half are logged, and count twice.
    let logged = measured.kinds[0].latency.len() as f64;
    assert!((0.5..1.5).contains(&(logged / done[0] as f64)), "{logged} {done:?}");
    // pgbench gives 0 where an answer is there before it looks, which may be most of them.
    let longest = measured.kinds[0].latency.max();
    assert!((1_000..30_000_000_000).contains(&longest), "{longest}");
    assert!(measured.client_cpu.user > 0.0 && measured.lost_clients.is_none() && measured.lag.is_none());
}

#[test]
fn pgbench_keeps_a_rate_and_tells_its_lag() {
    let Some(to) = target(Dialect::Postgres) else { return };
    let driver = Pgbench::default();
    let pace = Pace::Open { from: 50.0, to: 50.0, arrivals: Arrivals::Poisson };
    let Some(run) = run(&driver, &to, &scripts(&[("SELECT 1;", 1)]), &load(pace)) else { return };
    let (measured, _) = run.unwrap();
    // Without a rate it would be thousands, on a machine that others keep busy it may be fewer than the hundred due.
    assert!((10..400).contains(&measured.kinds[0].done), "{:?}", measured.seconds);
    // It does not tell how many it never began.
    assert_eq!(measured.unstarted, None);
    let lag = measured.lag.unwrap();
    // At so low a rate all are logged, so few that the log is written only at its end.
    let logged = lag.len().abs_diff(measured.kinds[0].done);
    assert!(logged < 10, "{} {:?}", lag.len(), measured.kinds[0].done);
}

#[test]
fn what_pgbench_cannot_do_is_said() {
    let Some(to) = target(Dialect::Postgres) else { return };
    let driver = Pgbench::default();
    let said =
        |workload: &Only, load: &Load| run(&driver, &to, workload, load).map(|result| result.unwrap_err());
    let fine = scripts(&[("SELECT 1;", 1)]);
    if let Some(error) = said(&scripts(&[("SELECT * FROM lab_nowhere;", 1)]), &load(CLOSED)) {
        assert!(error.starts_with("pgbench: ") && error.contains("lab_nowhere"), "{error}");
    }
    if let Some(error) = said(&scripts(&[("\\sett x 1", 1)]), &load(CLOSED)) {
        assert!(error.starts_with("pgbench: ") && error.contains("sett"), "{error}");
    }
    let think = Pace::Closed { think: Duration::from_millis(1) };
    assert!(said(&fine, &load(think)).unwrap().contains("can't think"));
    let rising = Pace::Open { from: 1.0, to: 2.0, arrivals: Arrivals::Poisson };
    assert!(said(&fine, &load(rising)).unwrap().contains("keeps one rate"));
    assert!(said(&Only::new(None), &load(CLOSED)).unwrap().contains("no workload of pgbench"));
    let missing = Pgbench { program: "/nowhere/pgbench".into(), ..driver };
    let error = missing.run(&to, &fine, &load(CLOSED), &Live::new(1)).unwrap_err();
    assert!(error.starts_with("/nowhere/pgbench is not installed"), "{error}");
}

/// Sessions of PostgreSQL's that have asked for the table's rows last.
fn sessions(control: &mut Control) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sbtest1%' AND pid <> pg_backend_pid() \
         AND datname = current_database()";
    control.query(sql).ok().and_then(|rows| rows[0][0].as_ref()?.parse().ok()).unwrap_or(0)
}

/// Runs a round of sysbench's; how many of its sessions there are when the server is to be looked at.
fn looked_at(
    to: &Target,
    workload: &Only,
    load: &Load,
    live: &Live,
    control: &mut Control,
) -> (Measured, i64) {
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            while live.phase() != Phase::Over {
                std::thread::sleep(Duration::from_millis(1));
            }
            let sessions = sessions(control);
            live.looked();
            sessions
        });
        let measured = Sysbench::default().run(to, workload, load, live);
        // Whatever became of it, the one beside it must end.
        live.enter(Phase::Over);
        (measured.unwrap(), beside.join().unwrap())
    })
}

fn sysbench_measures(dialect: Dialect) {
    let Some(to) = target(dialect) else { return };
    let options =
        [("tables", "1"), ("table_size", "1000")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let test = "oltp_point_select".to_owned();
    let workload = Only::new(Some(Original::Sysbench { test, options: options.to_vec() }));
    let mut control = Control::connect(&to).unwrap();
    control.execute("DROP TABLE IF EXISTS sbtest1").unwrap();
    let Some(without) = run(&Sysbench::default(), &to, &workload, &load(CLOSED)) else { return };
    assert!(without.unwrap_err().starts_with("sysbench: "));
    control.execute("CREATE TABLE sbtest1 (id int PRIMARY KEY, k int, c char(120), pad char(60))").unwrap();
    let round = Load { clients: 3, ..load(CLOSED) };
    // Where others want the CPU it may part before it was looked at, but not each time.
    let mut rounds = (0..5).map(|_| {
        let live = Live::watched(1);
        let (measured, seen) = looked_at(&to, &workload, &round, &live, &mut control);
        (measured, live, seen)
    });
    let here = |(.., seen): &(Measured, Live, i64)| dialect == Dialect::Mysql || *seen == 3;
    let (measured, live, _) =
        rounds.find(here).expect("its sessions are there when they are to be looked at");
    drop(rounds);
    let kind = &measured.kinds[0];
    assert!(kind.done > 0, "{}", kind.done);
    // Its histogram has every event of the time that is counted, but for some at the checkpoint: they are set back one
    // after the other.
    assert!(kind.latency.len().abs_diff(kind.done) <= kind.done / 10, "{} {}", kind.latency.len(), kind.done);
    // The checkpoint comes late where others want the CPU.
    assert!((1.0..30.0).contains(&measured.elapsed.as_secs_f64()), "{:?}", measured.elapsed);
    assert!(measured.client_cpu.user > 0.0 && measured.lost_clients.is_none());
    assert_eq!(live.phase(), Phase::Over);
    control.execute("DROP TABLE sbtest1").unwrap();
}

#[test]
fn sysbench_measures_postgres() {
    sysbench_measures(Dialect::Postgres);
}

#[test]
fn sysbench_measures_mysql() {
    sysbench_measures(Dialect::Mysql);
}
