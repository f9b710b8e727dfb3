//! The workloads under the lab's own driver, on real servers. No statement fails under any
//! protocol, and the checks hold after clients were cut off in mid-transaction.

use std::time::{Duration, Instant};

use super::Scratch;
use crate::arm::control::Progress;
use crate::arm::{Dialect, Target};
use crate::client::random::sysbench::Distribution;
use crate::drive::{Driver, Live, Measured, Native};
use crate::load::{Load, Protocol};
use crate::script::{Settings, Source};
use crate::tests::wait_until;
use crate::workload::pgbench::PgBench;
use crate::workload::sysbench::{Options, Sysbench};
use crate::workload::{Found, Workload};

const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

/// A round that ends once this many transactions are done, however long that takes on this machine.
fn run(scratch: &Scratch, workload: &dyn Workload, protocol: Protocol, pipeline: bool) -> Measured {
    let load = Load { protocol, pipeline, tries: 10, ..Load::closed(6, 2, Duration::from_secs(60)) };
    let live = Live::new(2);
    std::thread::scope(|scope| {
        let round = scope.spawn(|| Native.run(&scratch.target, workload, &load, &live));
        let begun = Instant::now();
        let is_over = |done| done >= MANY || (done >= 100 && begun.elapsed() >= LEAST);
        wait_until(|| is_over(live.done()) || round.is_finished());
        live.stop();
        round.join().unwrap().unwrap()
    })
}

/// The least time of a round, in which clients meet each other, unless it has done this many
/// transactions before.
const LEAST: Duration = Duration::from_millis(300);
const MANY: u64 = 400;

/// Loads the workload, finds it loaded, and runs it under every protocol, and as pipelines where
/// possible. It tolerates errors that a repetition overcomes where clients write the same rows. The
/// checks hold after the load and after the rounds, and find a row that the test then spoils.
pub fn assert_works(scratch: &Scratch, workload: &dyn Workload, spoil: Option<&str>) {
    let progress = Progress::new(0);
    workload.load(&scratch.target, 2, &progress).unwrap_or_else(|fault| panic!("{fault}"));
    // TPC-C's total is an expected value, as the number of lines in an order is random.
    assert!(progress.rows().abs_diff(progress.total()) <= progress.total() / 100, "{progress:?}");
    let mut control = scratch.control();
    assert_eq!(workload.found(&mut control), Ok(Found::Loaded));
    let before = workload.prepare(&mut control).unwrap();
    let mut faults = || {
        let checks = workload.check(&mut control, &before).unwrap();
        checks.into_iter().filter_map(|check| check.fault).collect::<Vec<_>>()
    };
    assert_eq!(faults(), Vec::<String>::new(), "{}", workload.name());
    let pipelines = scratch.target.dialect == Dialect::Postgres && workload.pipelines().is_ok();
    let pipelined = PROTOCOLS[1..].iter().filter(|_| pipelines).map(|protocol| (*protocol, true));
    for (protocol, pipeline) in PROTOCOLS.map(|protocol| (protocol, false)).into_iter().chain(pipelined) {
        let measured = run(scratch, workload, protocol, pipeline);
        let name = format!("{} {protocol:?}, pipeline: {pipeline}", workload.name());
        assert_eq!(measured.lost_clients, None, "{name}");
        // Deadlocks, and the errors that the workload repeats after: two clients that delete and
        // insert one row meet as 23505.
        let deadlock = |code: &str| ["40P01", "40001", "1213", "1020"].contains(&code);
        let errors: Vec<_> =
            measured.errors.iter().filter(|error| !error.tolerated && !deadlock(&error.code)).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert!(measured.kinds.iter().map(|kind| kind.done).sum::<u64>() > 5, "{name}");
    }
    assert_eq!(faults(), Vec::<String>::new(), "{}", workload.name());
    if let Some(spoil) = spoil {
        scratch.control().execute(spoil).unwrap();
        assert_ne!(faults(), Vec::<String>::new(), "{}", workload.name());
    }
}

/// A round that can't begin says what to do.
#[test]
fn a_missing_database_or_table_is_reported_with_advice() {
    let options = Options { tables: 1, table_size: 8, rand_type: Distribution::Uniform };
    let workload = Sysbench::new("oltp_point_select", options, 1).unwrap();
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "advice") else { continue };
        let refused = |database: &str, advice: &str| {
            let target = Target { database: database.to_owned(), ..scratch.target.clone() };
            let load = Load::closed(1, 1, Duration::from_millis(100));
            let why = Native.run(&target, &workload, &load, &Live::new(1)).unwrap_err();
            assert!(why.contains(advice), "{why}");
        };
        refused("lab_no_such_database", "create the database first");
        refused(&scratch.target.database, "load the workload's tables first");
    }
}

/// A script on pgbench's tables of scale 1.
fn script(name: &str, text: &str) -> PgBench {
    let source = Source { name: name.into(), text: text.into(), weight: 1 };
    PgBench::new(&[source], &SETTINGS).unwrap()
}

const SETTINGS: Settings = Settings { defines: Vec::new(), scale: 1, seed: 1 };

/// Where every client writes the same few rows, a client begins another transaction after each
/// error that sysbench tolerates, and no transaction fails.
#[test]
fn errors_that_sysbench_tolerates_fail_no_transaction() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "tolerated") else { continue };
        if dialect == Dialect::Postgres {
            // PostgreSQL looks for a deadlock after 1 s by default; servers without this setting
            // look at once.
            let database = &scratch.target.database;
            let set = format!("alter database {database} set deadlock_timeout = '10ms'");
            drop(scratch.control().execute(&set));
        }
        let options = Options { tables: 1, table_size: 8, rand_type: Distribution::Uniform };
        let workload = Sysbench::new("oltp_write_only", options, 1).unwrap();
        workload.load(&scratch.target, 1, &Progress::new(0)).unwrap_or_else(|fault| panic!("{fault}"));
        let measured = run(&scratch, &workload, Protocol::Prepared, false);
        let only = &measured.kinds[0];
        assert_eq!((measured.lost_clients, only.failed), (None, 0), "{dialect:?}: {:?}", measured.errors);
        assert!(only.done > 0 && only.retried > 0, "{dialect:?}: {} done", only.done);
        assert!(measured.errors.iter().all(|error| error.tolerated), "{dialect:?}: {:?}", measured.errors);
        let counted: u64 = measured.errors.iter().map(|error| error.count).sum();
        // A client may have rolled one back within the time although its error came before.
        assert!(counted.abs_diff(only.retried) <= 6, "{dialect:?}: {counted} and {}", only.retried);
    }
}

fn assert_succeeds(measured: Measured, what: &str) {
    assert_eq!((measured.lost_clients, measured.errors), (None, Vec::new()), "{what}");
    assert!(measured.kinds[0].done > 5, "{what}");
}

/// Scripts that end their client at a wrong result, under every protocol and on every server.
#[test]
fn scripts_see_what_the_server_answers() {
    // A script's booleans compare with a column's.
    let booleans = "\\set yes 1 = 1\n\\set no 1 = 2\n\
                    SELECT count(*) AS many FROM flags WHERE flag = :yes \\gset\n\
                    SELECT count(*) AS few FROM flags WHERE flag = :no \\gset\n\
                    \\if :many <> 2 or :few <> 1\n\\set wrong 1 / 0\n\\endif\n";
    // Every step depends on the one before.
    let numbers = "\\set x random(1, 1000)\n\
                   SELECT :x::int AS same, :x::int + 1 AS more, NULL AS none, 'a text' AS text \\gset p_\n\
                   \\if :p_same <> :x or :p_more <> :x + 1\n\\set wrong 1 / 0\n\\endif\n\
                   SELECT :p_more::int - :p_same::int AS one \\gset\n\
                   \\if :one = 1\n\\else\n\\set wrong 1 / 0\n\\endif\n";
    // Quoted variables work under the simple protocol only, as in pgbench.
    let quoted = "SELECT NULL AS none \\gset\nSELECT length(':none') = 0 AS empty \\gset\n\
                  \\if :empty\n\\else\n\\set wrong 1 / 0\n\\endif\n";
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "script") else { continue };
        let mut control = scratch.control();
        control.execute("create table flags (flag boolean)").unwrap();
        control.execute("insert into flags values (true), (true), (false)").unwrap();
        for protocol in PROTOCOLS {
            let texts = match (dialect, protocol) {
                (Dialect::Mysql, _) => &[booleans][..],
                (_, Protocol::Simple) => &[booleans, numbers, quoted],
                _ => &[booleans, numbers],
            };
            for text in texts {
                let measured = run(&scratch, &script("all.sql", text), protocol, false);
                assert_succeeds(measured, &format!("{dialect:?} {protocol:?}: {text}"));
            }
        }
        let measured = run(&scratch, &script("bad.sql", "SELECT 1;\n\\set a 1 / 0"), Protocol::Simple, false);
        assert_eq!(measured.lost_clients, Some((6, "bad.sql:2: division by zero".into())));
    }
}

/// A server's error comes with the place of its statement, in a pipeline too.
#[test]
fn errors_of_the_server_have_the_place_of_their_statement() {
    let Some(scratch) = Scratch::new(Dialect::Postgres, "places") else { return };
    let script = |text: &str| script("bad.sql", text);
    let unknown = script("\\set x 1\nBEGIN;\nSELECT 1;\n\nSELECT :x::int,\n  nothing;\nSELECT 2;\nEND;\n");
    let divided = script("BEGIN;\nSELECT 1;\nSELECT 1 / (:client_id::int - :client_id::int);\nEND;\n");
    for (protocol, pipeline) in
        [(Protocol::Simple, false), (Protocol::Extended, false), (Protocol::Extended, true)]
    {
        let measured = run(&scratch, &unknown, protocol, pipeline);
        let (lost, why) = measured.lost_clients.unwrap();
        assert_eq!(lost, 6);
        let said = "bad.sql:5: 42703: column \"nothing\" does not exist at character ";
        assert!(why.starts_with(said), "{why}");
        assert!(why.contains("(running `SELECT $1::int,   nothing;`)"), "{why}");
        // The transaction fails once, and the client goes on.
        let load = Load { protocol, pipeline, tries: 10, ..Load::closed(6, 2, Duration::from_secs(1)) };
        let measured = Native.run(&scratch.target, &divided, &load, &Live::new(2)).unwrap();
        assert_eq!((measured.lost_clients, measured.kinds[0].done), (None, 0));
        let [error] = measured.errors.as_slice() else { panic!("{:?}", measured.errors) };
        assert_eq!(error.code, "22012");
        assert!(error.message.starts_with("division by zero (bad.sql:3, `SELECT 1 / ("), "{}", error.message);
        assert!(error.count > 0);
        assert!(error.count.abs_diff(measured.kinds[0].failed) <= 6, "{error:?}");
    }
}

#[test]
fn a_script_that_is_not_prepared_creates_what_it_reads_and_leaves_no_transaction_open() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "creates") else { continue };
        let run = |text: &str, protocol| run(&scratch, &script("creates.sql", text), protocol, false);
        let text = match dialect {
            Dialect::Postgres => "CREATE TEMP TABLE IF NOT EXISTS fresh (x int);\n",
            // MySQL can't prepare the first.
            Dialect::Mysql => {
                "START TRANSACTION;\nROLLBACK;\nCREATE TEMPORARY TABLE IF NOT EXISTS fresh (x int);\n"
            }
        };
        let text = format!(
            "\\set x random(1, 9)\n{text}INSERT INTO fresh VALUES (:x);\n\
             SELECT count(*) AS n FROM fresh WHERE x = :x \\gset\n\\if :n < 1\n\\set wrong 1 / 0\n\\endif\n"
        );
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let measured = run(&text, protocol);
            assert_succeeds(measured, &format!("{dialect:?} {protocol:?}"));
            let open = run("BEGIN;\nSELECT 1;", protocol);
            let why = "end of script reached without completing the last transaction".to_owned();
            let seen = (open.lost_clients, open.kinds[0].done);
            assert_eq!(seen, (Some((6, why)), 0), "{dialect:?} {protocol:?}");
        }
        if dialect == Dialect::Mysql {
            let (_, why) = run("PREPARE p FROM 'SELECT 1';", Protocol::Extended).lost_clients.unwrap();
            assert!(why.ends_with("; take --protocol simple, which prepares nothing"), "{why}");
        }
    }
}
