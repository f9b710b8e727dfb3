//! kill -9 under a concurrent transfer workload, at random moments and at named stop points.
//! Afterwards every acknowledged commit is there, and every other one is whole or absent. Sums are
//! exact, and indexes agree with their tables.
//!
//! `ALLCORE_CRASH_ROUNDS` sets the number of random rounds (10 in `make test`, 500 in `make soak`).

use crate::common::{Server, SmallDisk, skip};
use postgres::error::SqlState;
use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ACCOUNTS: i64 = 500;
const WORKERS: u64 = 8;
const START_BALANCE: i64 = 1000;

/// Small and fast random numbers with a seed that is printed on failure.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn set_up(server: &Server) {
    server.psql(&format!(
        "create table accounts (id int primary key, balance bigint not null, note text not null);
         create index accounts_note on accounts (note);
         create table transfers (id bigint primary key, source int not null, target int not null, amount int not null);
         create index transfers_source on transfers (source);
         insert into accounts select i, {START_BALANCE}, 'n' || i from generate_series(1, {ACCOUNTS}) i;"
    ));
}

/// One transfer in one transaction.
fn transfer(client: &mut postgres::Client, id: i64, random: &mut Random) -> Result<(), postgres::Error> {
    let source = 1 + random.below(ACCOUNTS as u64) as i32;
    let target = 1 + random.below(ACCOUNTS as u64) as i32;
    let amount = random.below(50) as i32;
    // Rows in a fixed order, so that deadlocks are rare and not the point here.
    let mut steps = [(source, -i64::from(amount)), (target, i64::from(amount))];
    steps.sort_unstable();
    let mut transaction = client.transaction()?;
    for (account, change) in steps {
        transaction.execute(
            "update accounts set balance = balance + $1, note = 'n' || $2::bigint where id = $3",
            &[&change, &id, &account],
        )?;
    }
    transaction
        .execute("insert into transfers values ($1, $2, $3, $4)", &[&id, &source, &target, &amount])?;
    transaction.commit()
}

/// Transfers by many sessions until `stop` or until the server is gone; gives the ids acknowledged.
fn workload(server: &Server, next: &AtomicU64, stop: &AtomicBool, seed: u64) -> Vec<i64> {
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let acknowledged = &acknowledged;
            scope.spawn(move || {
                let mut random = Random(seed ^ (worker + 1).wrapping_mul(0x9e37_79b9));
                let Ok(mut client) = server.try_connect() else { return };
                while !stop.load(Ordering::Relaxed) {
                    let id = next.fetch_add(1, Ordering::Relaxed) as i64;
                    match transfer(&mut client, id, &mut random) {
                        Ok(()) => acknowledged.lock().unwrap().push(id),
                        Err(e) if e.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                        Err(e) => {
                            assert!(e.is_closed() || e.code().is_none(), "{e}: {:?}", e.code());
                            return;
                        }
                    }
                }
            });
        }
    });
    acknowledged.into_inner().unwrap()
}

/// Asserts the invariants of the transfers after every recovery.
fn verify(server: &Server, acknowledged: &[i64], context: &str) {
    let mut client = server.connect();
    let total: i64 = client.query_one("select sum(balance)::bigint from accounts", &[]).unwrap().get(0);
    assert_eq!(total, ACCOUNTS * START_BALANCE, "money appeared or vanished: {context}");
    let present: std::collections::HashSet<i64> =
        client.query("select id from transfers", &[]).unwrap().iter().map(|row| row.get(0)).collect();
    for id in acknowledged {
        assert!(present.contains(id), "transfer {id} was acknowledged and is lost: {context}");
    }
    let moved = client
        .query(
            "select a.id from accounts a
               left join (select target, sum(amount) as amount from transfers group by target) got on got.target = a.id
               left join (select source, sum(amount) as amount from transfers group by source) gave on gave.source = a.id
              where a.balance <> $1 + coalesce(got.amount, 0) - coalesce(gave.amount, 0)",
            &[&START_BALANCE],
        )
        .unwrap();
    assert!(moved.is_empty(), "accounts and transfers disagree on {} accounts: {context}", moved.len());
    for query in [
        "select count(*) from transfers where source >= 0",
        "select count(*) from accounts where note >= ''",
        "select count(*) from accounts a, accounts b where a.note = b.note and a.id = b.id",
    ] {
        let found: i64 = client.query_one(query, &[]).unwrap().get(0);
        let expected = if query.contains("transfers") { present.len() as i64 } else { ACCOUNTS };
        assert_eq!(found, expected, "an index disagrees with its table: {query}: {context}");
    }
}

#[test]
fn killed_at_random_moments() {
    let rounds: u64 = std::env::var("ALLCORE_CRASH_ROUNDS").map_or(10, |text| text.parse().unwrap());
    let seed = std::env::var("ALLCORE_CRASH_SEED").map_or_else(
        |_| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64,
        |text| text.parse().unwrap(),
    );
    println!("ALLCORE_CRASH_SEED={seed}");
    let mut random = Random(seed);
    // A pool far smaller than the data it comes to, so that eviction and page writes are killed
    // too.
    let mut server = Server::start(&["--buffers", "8MiB"]);
    set_up(&server);
    let next = AtomicU64::new(1);
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let stop = AtomicBool::new(false);
        let pause = Duration::from_millis(30 + random.below(500));
        let pid = server.pid().to_string();
        let acked = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(pause);
                std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
                stop.store(true, Ordering::Relaxed);
            });
            workload(&server, &next, &stop, seed ^ round)
        });
        acknowledged.extend(acked);
        server.crash();
        let context = format!("round {round} of ALLCORE_CRASH_SEED={seed}");
        if round % 4 == 0 {
            // Killed once more while it recovers.
            server.launch_unready();
            std::thread::sleep(Duration::from_millis(random.below(60)));
            server.crash();
        }
        server.launch();
        verify(&server, &acknowledged, &context);
        if round % 25 == 24 {
            println!("{} of {rounds} rounds, {} transfers acknowledged", round + 1, acknowledged.len());
        }
        if round % 5 == 4 || round + 1 == rounds {
            server.stop();
            server.check();
            server.launch();
        }
    }
    assert!(!acknowledged.is_empty());
}

/// Rows of [`churn`] that are there altogether or not at all, and rows that each round of it adds.
const CHURNED: i64 = 600;
const ADDED: i64 = 200;

fn set_up_churn(server: &Server) {
    // More than the pool holds, so that pages are read and evicted all the time.
    server.psql(
        "create table churned (id int primary key, note text not null);
         create index churned_note on churned (note);
         create table grown (id bigint primary key, filler text not null);
         insert into grown select i, repeat('g', 1000) from generate_series(1, 12000) i",
    );
}

/// Splits trees from the root on, merges them back to a single leaf, and grows the file, until
/// `stop` or until the server is gone. Returns the last row that is known to be added behind
/// `last`.
fn churn(server: &Server, stop: &AtomicBool, last: i64) -> i64 {
    let Ok(mut client) = server.try_connect() else { return last };
    let mut last = last;
    while !stop.load(Ordering::Relaxed) {
        let statements = [
            format!(
                "insert into churned select i, repeat('n', 500) || i from generate_series(1, {CHURNED}) i"
            ),
            "delete from churned".to_owned(),
            "vacuum churned".to_owned(),
            "select count(*) from grown where filler = ''".to_owned(),
            format!(
                "insert into grown select i, repeat('g', 1000) from generate_series({}, {}) i",
                last + 1,
                last + ADDED
            ),
        ];
        for statement in statements {
            if let Err(e) = client.batch_execute(&statement) {
                assert!(e.is_closed() || e.code().is_none(), "{statement}: {e}: {:?}", e.code());
                return last;
            }
        }
        last += ADDED;
    }
    // The last round may have been cut short.
    let _ = client.batch_execute("delete from churned");
    last
}

/// Asserts the invariants of [`churn`]'s tables after every recovery. Returns the last row added.
fn verify_churn(server: &Server, last: i64, context: &str) -> i64 {
    let mut client = server.connect();
    let mut count = |sql: &str| client.query_one(sql, &[]).unwrap().get::<_, i64>(0);
    let churned = count("select count(*) from churned");
    assert!(churned == 0 || churned == CHURNED, "{churned} rows are left of a statement: {context}");
    assert_eq!(count("select count(*) from churned where note >= ''"), churned, "{context}");
    let grown = count("select count(*) from grown where filler = repeat('g', 1000)");
    assert!(
        grown == last || grown == last + ADDED,
        "{last} rows were acknowledged, {grown} are there: {context}"
    );
    assert_eq!(count("select max(id) from grown"), grown, "{context}");
    client.batch_execute("delete from churned").unwrap();
    grown
}

/// The load before a checkpoint is asked for.
const ROUND: Duration = Duration::from_millis(400);

#[test]
fn killed_at_stop_points() {
    let points = [
        ("txn.commit.before_append", 40),
        ("txn.commit.appended", 40),
        ("log.flush.before_write", 40),
        ("log.flush.after_write", 40),
        ("btree.split.latched", 3),
        ("btree.split.logged", 3),
        ("btree.root_split.logged", 1),
        ("btree.merge.latched", 3),
        ("btree.merge.logged", 3),
        ("btree.merge.logged", 70),
        ("btree.collapse.logged", 1),
        ("storage.space.grown", 1),
        ("storage.load.read", 60),
        ("storage.evict.chosen", 300),
        ("storage.evict.before_free", 300),
        ("storage.evict.before_write", 5),
        ("storage.writer.after_write", 5),
        ("checkpoint.begin", 1),
        ("checkpoint.pages_written", 1),
        ("checkpoint.before_control", 1),
        ("checkpoint.after_control", 1),
    ];
    let mut server = Server::start(&["--buffers", "8MiB"]);
    set_up(&server);
    set_up_churn(&server);
    let next = AtomicU64::new(1);
    let mut acknowledged = Vec::new();
    let mut last = 12_000;
    server.stop();
    for (point, nth) in points {
        let context = format!("{point}@{nth}");
        println!("{context}");
        server.environment("ALLCORE_STOP", Some(&format!("{point}=kill@{nth}")));
        server.launch_unready();
        let deadline = Instant::now() + Duration::from_secs(120);
        let status = loop {
            if let Some(status) = server.end_status(Duration::from_millis(1)) {
                break status;
            }
            assert!(Instant::now() < deadline, "{context} was never reached");
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let begun = Instant::now();
                    while begun.elapsed() < ROUND && !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    stop.store(true, Ordering::Relaxed);
                });
                scope.spawn(|| last = churn(&server, &stop, last));
                // It ends before the round where the server was killed.
                acknowledged.extend(workload(&server, &next, &stop, 7));
                stop.store(true, Ordering::Relaxed);
                // Checkpoints come with time or volume; a test asks for one.
                if let Ok(mut client) = server.try_connect() {
                    let _ = client.batch_execute("checkpoint");
                }
            });
        };
        assert_eq!(status.signal(), Some(9), "{context}: {}", server.log());
        server.environment("ALLCORE_STOP", None);
        server.launch();
        verify(&server, &acknowledged, &context);
        last = verify_churn(&server, last, &context);
        server.stop();
        server.check();
    }
    server.launch();
    assert!(acknowledged.len() > points.len() && last > 12_000);
}

/// A read that fails fails one statement; the page is there for the next one.
#[test]
fn a_page_that_cannot_be_read_fails_one_statement() {
    let mut server = Server::start(&["--buffers", "8MiB"]);
    set_up_churn(&server);
    server.stop();
    server.environment("ALLCORE_STOP", Some("storage.pages.read=fail:5@300"));
    server.launch();
    let mut client = server.connect();
    let mut failed = Vec::new();
    for round in 0..2 {
        for id in (1..12_000_i64).step_by(20) {
            match client.query_one("select length(filler) from grown where id = $1", &[&id]) {
                Ok(row) => assert_eq!(row.get::<_, i32>(0), 1000),
                Err(error) => failed.push((round, id, error.code().cloned())),
            }
        }
    }
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].2, Some(SqlState::IO_ERROR));
    server.environment("ALLCORE_STOP", None);
    server.stop();
    server.check();
}

/// Transfers until the server ends by itself; gives how, and the ids acknowledged.
fn transfer_until_the_end(
    server: &mut Server,
    next: &AtomicU64,
    during: &mut dyn FnMut(),
) -> (std::process::ExitStatus, Vec<i64>) {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut acknowledged = Vec::new();
    loop {
        if let Some(status) = server.end_status(Duration::from_millis(1)) {
            return (status, acknowledged);
        }
        assert!(Instant::now() < deadline, "it goes on:\n{}", server.log());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(400));
                stop.store(true, Ordering::Relaxed);
            });
            acknowledged.extend(workload(server, next, &stop, 5));
            if let Ok(mut client) = server.try_connect() {
                let _ = client.batch_execute("checkpoint");
            }
        });
        during();
    }
}

/// Status of a process that ends because it can't write (EX_IOERR).
const FAIL_STOP: i32 = 74;

/// That one line said why the process ended.
fn said_why(server: &Server, words: &str) {
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("PANIC")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains(words) && lines[0].contains("the next start recovers"), "{}", lines[0]);
}

#[test]
fn a_log_or_checkpoint_that_cannot_be_written_ends_the_process() {
    // EIO and ENOSPC: neither a log write nor a sync is tried again, whatever the disk said.
    for (fault, words) in [
        ("log.flush.write=fail:5@200", "writing log segment"),
        ("log.flush.write=fail:28@90", "writing log segment"),
        ("storage.pages.sync=fail:5@1", "syncing a file of pages"),
        ("storage.pages.sync=fail:28@1", "syncing a file of pages"),
    ] {
        let mut server = Server::start(&["--buffers", "8MiB"]);
        set_up(&server);
        server.stop();
        server.environment("ALLCORE_STOP", Some(fault));
        server.launch_unready();
        let (status, acknowledged) = transfer_until_the_end(&mut server, &AtomicU64::new(1), &mut || {});
        assert_eq!(status.code(), Some(FAIL_STOP), "{fault}: {}", server.log());
        said_why(&server, words);
        server.environment("ALLCORE_STOP", None);
        server.launch();
        verify(&server, &acknowledged, fault);
        server.stop();
        server.check();
    }
}

#[test]
fn a_disk_that_breaks_down_loses_nothing_acknowledged() {
    let mut server = Server::start(&["--buffers", "8MiB"]);
    server.stop();
    std::fs::remove_dir_all(server.data()).unwrap();
    std::fs::create_dir(server.data()).unwrap();
    let disk = match SmallDisk::mount(&server.data(), 400) {
        Ok(disk) => disk,
        Err(why) => return skip(&format!("no small disk can be mounted here: {why}")),
    };
    server.launch();
    set_up(&server);
    let mut rounds = 0;
    let mut broken = Ok(());
    let next = AtomicU64::new(1);
    let (status, acknowledged) = transfer_until_the_end(&mut server, &next, &mut || {
        rounds += 1;
        if rounds == 2 {
            broken = disk.break_down();
            assert!(broken.is_ok(), "{broken:?}");
        }
    });
    assert_eq!(status.code(), Some(FAIL_STOP), "{}", server.log());
    said_why(&server, "Input/output error");
    assert!(!acknowledged.is_empty());
    disk.unmount();
    disk.mount_again().unwrap();
    server.launch();
    verify(&server, &acknowledged, "the disk is back");
    server.stop();
    server.check();
}

#[test]
fn missing_values_of_acknowledged_columns_outlive_a_crash() {
    let mut server = Server::start(&[]);
    server.psql(
        "create table t (id int primary key, body text); create index on t (body);
         insert into t select i, 'row ' || i from generate_series(1, 20000) i",
    );
    let all = "select count(*), sum(id), sum(n), min(s), max(s), count(distinct made), min(made) from t";
    let mut before = String::new();
    for round in 0..3 {
        if round == 0 {
            server.psql("alter table t add n int not null default 7, add s text default 'é', add made timestamptz default now()");
            server.psql("alter table t alter n set default 8; create index on t (s, n)");
        } else {
            assert_eq!(server.psql(all), before, "round {round}");
            // Rows change under the values, and a column is added that is not committed.
            server.psql(&format!("update t set body = body || '!' where id % 5 = {round}; checkpoint"));
        }
        before = server.psql(all);
        let mut client = server.connect();
        client
            .batch_execute(
                "begin; alter table t add gone int default 9; update t set gone = 1 where id < 500",
            )
            .unwrap();
        server.psql("create table if not exists other (id int); insert into other values (1)");
        server.crash();
        drop(client);
        server.launch();
    }
    assert_eq!(server.psql(all), before);
    server.psql("insert into t (id) values (0)");
    assert_eq!(server.psql("select n, s from t where id in (0, 1) order by id"), "8|é\n7|é");
    server.stop();
    server.check();
}

/// Databases and sequences change in transactions of the engine's own, whose commits do not wait
/// for the disk. Nothing else is written here that would take them there.
#[test]
fn acknowledged_databases_and_numbers_outlive_a_crash() {
    let mut server = Server::start(&[]);
    server.psql("create sequence s; create sequence t");
    let databases = "select string_agg(datname, ' ' order by datname) from pg_database";
    let mut last = 0;
    for round in 0..4 {
        let mut client = server.connect();
        match round {
            0 => client.batch_execute("create database made").unwrap(),
            1 => client.batch_execute("drop database made").unwrap(),
            2 => {
                // A record covers 32 numbers.
                let next = "select max(nextval('s')) from generate_series(1, 40)";
                let number: i64 = client.query_one(next, &[]).unwrap().get(0);
                assert!(number > last, "{number} again after {last}");
                last = number;
            }
            _ => client.batch_execute("select setval('t', 3000)").unwrap(),
        }
        server.crash();
        drop(client);
        server.launch();
        let there = server.psql(databases).contains("made");
        assert_eq!(there, round == 0, "round {round}");
        let number: i64 = server.psql("select nextval('s')").trim().parse().unwrap();
        assert!(number > last, "round {round}: {number} again after {last}");
        last = number;
    }
    assert_eq!(server.psql("select nextval('t')").trim(), "3001");
    server.stop();
    server.check();
}
