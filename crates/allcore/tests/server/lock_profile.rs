//! The lock profiler and the wait history, as an administrator uses them.

use std::time::{Duration, Instant};

use postgres::Client;

use crate::common::{Server, pid};

fn run(client: &mut Client, statement: &str) {
    client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn number(client: &mut Client, query: &str) -> i64 {
    client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error}")).get(0)
}

/// Sums of a class, in microseconds.
#[derive(Debug)]
struct Sums {
    count: i64,
    hold_total: f64,
    hold_max: f64,
    wait_total: f64,
    contended_hold: i64,
    contended_wait: i64,
}

fn sums(client: &mut Client, class: &str) -> Sums {
    let query = format!(
        "SELECT coalesce(sum(count), 0)::int8, coalesce(sum(hold_total), 0), coalesce(max(hold_max), 0),
             coalesce(sum(wait_total), 0), coalesce(sum(contended_hold), 0)::int8,
             coalesce(sum(contended_wait), 0)::int8
         FROM allcore_lock_profile WHERE class = '{class}'"
    );
    let row = client.query_one(&query, &[]).unwrap();
    Sums {
        count: row.get(0),
        hold_total: row.get(1),
        hold_max: row.get(2),
        wait_total: row.get(3),
        contended_hold: row.get(4),
        contended_wait: row.get(5),
    }
}

/// Waits until a session waits for a lock.
fn until_waiting(client: &mut Client, pid: i32) {
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
    let deadline = Instant::now() + Duration::from_secs(60);
    while number(client, &waits) == 0 {
        assert!(Instant::now() < deadline, "session {pid} does not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_wait_and_the_hold_it_waits_for_are_counted_with_their_times() {
    const PAUSE: Duration = Duration::from_millis(100);
    let server = Server::start(&[]);
    let (mut admin, mut holder, mut waiter) = (server.connect(), server.connect(), server.connect());
    let waits = pid(&mut waiter);
    assert_eq!(number(&mut admin, "SELECT count(*) FROM allcore_lock_profile"), 0, "off at first");
    run(&mut admin, "SELECT allcore_lock_profile_enable()");

    let begun = Instant::now();
    run(&mut holder, "SELECT pg_advisory_lock(7)");
    let waiting = std::thread::spawn(move || run(&mut waiter, "SELECT pg_advisory_lock(7)"));
    until_waiting(&mut admin, waits);
    std::thread::sleep(PAUSE);
    run(&mut holder, "SELECT pg_advisory_unlock(7)");
    waiting.join().unwrap();
    let seen = sums(&mut admin, "advisory lock");
    assert_eq!((seen.count, seen.contended_hold, seen.contended_wait), (2, 1, 1), "{seen:?}");
    // 1% less is right: the rate of the processor's clock is measured.
    let (least, most) = (PAUSE.as_micros() as f64 * 0.99, begun.elapsed().as_micros() as f64 * 1.01 + 1000.0);
    for time in [seen.hold_max, seen.hold_total, seen.wait_total] {
        assert!(least <= time && time <= 2.0 * most, "{least} <= {time} <= {most}: {seen:?}");
    }

    // Each statement locks its table; nobody waits.
    run(&mut admin, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    run(&mut admin, "SELECT allcore_lock_profile_reset()");
    (0..20).for_each(|_| run(&mut holder, "UPDATE t SET v = v + 1"));
    let tables = sums(&mut admin, "table lock");
    assert!(tables.count >= 20 && tables.contended_hold == 0 && tables.contended_wait == 0, "{tables:?}");
    let leaves = sums(&mut admin, "leaf page");
    assert!(leaves.count >= 20 && leaves.hold_total > 0.0, "{leaves:?}");
    let flushes = sums(&mut admin, "log write");
    assert!(flushes.count > 0 && flushes.wait_total > 0.0 && flushes.hold_total == 0.0, "{flushes:?}");

    run(&mut admin, "SELECT allcore_lock_profile_disable()");
    run(&mut admin, "SELECT allcore_lock_profile_reset()");
    run(&mut holder, "UPDATE t SET v = v + 1");
    assert_eq!(sums(&mut admin, "table lock").count, 0);
}

#[test]
fn a_table_lock_is_contended_only_if_somebody_waits() {
    let server = Server::start(&[]);
    let (mut admin, mut holder, mut waiter) = (server.connect(), server.connect(), server.connect());
    run(&mut admin, "CREATE TABLE t (id int PRIMARY KEY); SELECT allcore_lock_profile_enable()");
    // The second mode goes to the lock table.
    run(&mut holder, "BEGIN; SELECT * FROM t; LOCK TABLE t; COMMIT");
    run(&mut holder, "BEGIN; SELECT * FROM t; SAVEPOINT s; LOCK TABLE t; ROLLBACK TO s; COMMIT");
    run(&mut holder, "BEGIN; SELECT * FROM t");
    // It moves the holder's lock to the lock table, and does not wait.
    let error = waiter.batch_execute("BEGIN; LOCK TABLE t NOWAIT").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "55P03");
    run(&mut waiter, "ROLLBACK");
    run(&mut holder, "COMMIT");
    let alone = sums(&mut admin, "table lock");
    assert!(alone.count >= 5, "{alone:?}");
    assert_eq!((alone.contended_hold, alone.contended_wait), (0, 0), "{alone:?}");

    // A hold that is waited for counts so, whether it ends with its transaction or before a second
    // mode.
    let waits = pid(&mut waiter);
    for (contended, last) in [(1, "COMMIT"), (3, "LOCK TABLE t; COMMIT")] {
        run(&mut holder, "BEGIN; SELECT * FROM t");
        let waiting = std::thread::spawn(move || {
            run(&mut waiter, "BEGIN; LOCK TABLE t; COMMIT");
            waiter
        });
        until_waiting(&mut admin, waits);
        run(&mut holder, last);
        waiter = waiting.join().unwrap();
        assert_eq!(sums(&mut admin, "table lock").contended_hold, contended, "{last}");
    }
}

#[test]
fn a_waiter_that_gives_up_is_counted_as_a_wait() {
    let server = Server::start(&[]);
    let (mut admin, mut holder, mut waiter) = (server.connect(), server.connect(), server.connect());
    run(&mut admin, "CREATE TABLE t (id int PRIMARY KEY); SELECT allcore_lock_profile_enable()");
    run(&mut holder, "BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    run(&mut waiter, "SET lock_timeout = 30");
    let error = waiter.batch_execute("SELECT * FROM t").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "55P03");
    let given_up =
        "SELECT sum(count)::int8 FROM allcore_lock_profile WHERE class = 'table lock' AND kind = 'wait'";
    assert_eq!(number(&mut admin, given_up), 1);
    run(&mut holder, "ROLLBACK");
    run(&mut waiter, "SELECT * FROM t");
    assert_eq!(sums(&mut admin, "table lock").contended_wait, 1, "only the wait that was given up");
}

#[test]
fn sessions_switch_reset_and_read_the_profile_while_others_work() {
    let server = Server::start(&[]);
    server.psql(
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g",
    );
    let deadline = Instant::now() + Duration::from_secs(3);
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let mut client = server.connect();
            scope.spawn(move || {
                while Instant::now() < deadline {
                    let row = worker % 3 + 1;
                    run(&mut client, &format!("UPDATE t SET v = v + 1 WHERE id = {row}"));
                }
            });
        }
        for _ in 0..2 {
            let mut client = server.connect();
            scope.spawn(move || {
                let steps = ["enable", "reset", "disable"];
                for step in steps.iter().cycle().take_while(|_| Instant::now() < deadline) {
                    run(&mut client, &format!("SELECT allcore_lock_profile_{step}()"));
                    let wrong = "SELECT count(*) FROM allcore_lock_profile WHERE hold_total > 1e8 OR hold_max > hold_total
                        OR wait_total > 1e8 OR contended_wait > count";
                    assert_eq!(number(&mut client, wrong), 0);
                }
            });
        }
    });
    let mut client = server.connect();
    run(&mut client, "SELECT allcore_lock_profile_enable()");
    run(&mut client, "SELECT allcore_lock_profile_reset()");
    run(&mut client, "SELECT pg_advisory_lock(1), pg_advisory_unlock(1)");
    assert_eq!(sums(&mut client, "advisory lock").count, 1, "the profiler counts after all that");
}

#[test]
fn the_wait_history_has_what_sessions_waited_for() {
    let server = Server::start(&[]);
    let (mut admin, mut holder, mut waiter) = (server.connect(), server.connect(), server.connect());
    let waits = pid(&mut waiter);
    assert_eq!(number(&mut admin, "SELECT count(*) FROM allcore_wait_history"), 0);
    run(&mut holder, "SELECT pg_advisory_lock(7)");
    run(&mut admin, "SELECT allcore_wait_history_start(5)");
    let waiting = std::thread::spawn(move || run(&mut waiter, "SELECT pg_advisory_lock(7)"));
    let seen = format!(
        "SELECT count(*) FROM allcore_wait_history WHERE pid = {waits} AND wait_event_type = 'Lock'
         AND wait_event = 'advisory' AND state = 'active' AND query = 'SELECT pg_advisory_lock(7)'
         AND time >= query_start"
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while number(&mut admin, &seen) < 5 {
        assert!(Instant::now() < deadline, "the sampler sees no wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    run(&mut holder, "SELECT pg_advisory_unlock(7)");
    waiting.join().unwrap();
    // An idle session is not sampled.
    let idle = "SELECT count(*) FROM allcore_wait_history WHERE state = 'idle'";
    assert_eq!(number(&mut admin, idle), 0);
    run(&mut admin, "SELECT allcore_wait_history_stop()");
    // A round that was under way ends within its turn.
    let kept = number(&mut admin, &seen);
    std::thread::sleep(Duration::from_millis(150));
    let all = "SELECT count(*) FROM allcore_wait_history";
    let before = number(&mut admin, all);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((number(&mut admin, all), number(&mut admin, &seen)), (before, kept), "stopped");
    run(&mut admin, "SELECT allcore_wait_history_reset()");
    assert_eq!(number(&mut admin, all), 0);
}

#[test]
fn a_server_of_one_core_has_a_history_of_the_session_that_keeps_it_busy() {
    let server = Server::start(&["--cores", "1"]);
    let mut admin = server.connect();
    run(&mut admin, "SELECT allcore_wait_history_start(1)");
    let work = "SELECT count(*) FROM generate_series(1, 1000000)";
    let seen = format!(
        "SELECT count(*) FROM allcore_wait_history
         WHERE state = 'active' AND wait_event IS NULL AND query = '{work}'"
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while number(&mut admin, &seen) < 5 {
        assert!(Instant::now() < deadline, "the sampler does not see the session that runs");
        run(&mut admin, work);
    }
}

#[test]
fn every_role_may_switch_them_and_intervals_have_bounds() {
    let server = Server::start(&[]);
    let alice = format!("host=127.0.0.1 port={} user=alice dbname=postgres connect_timeout=20", server.port);
    let mut other = Client::connect(&alice, postgres::NoTls).unwrap();
    let setting: String = other.query_one("SHOW is_superuser", &[]).unwrap().get(0);
    assert_eq!(setting, "on");
    for function in [
        "allcore_lock_profile_enable()",
        "allcore_lock_profile_disable()",
        "allcore_lock_profile_reset()",
        "allcore_wait_history_start(10)",
        "allcore_wait_history_stop()",
        "allcore_wait_history_reset()",
    ] {
        run(&mut other, &format!("SELECT {function}"));
    }
    let mut admin = server.connect();
    for millis in ["0", "-1", "3600001", "2147483647"] {
        let error = admin.batch_execute(&format!("SELECT allcore_wait_history_start({millis})")).unwrap_err();
        assert_eq!(error.code().unwrap().code(), "22023", "{millis}");
    }
    run(&mut admin, "SELECT allcore_wait_history_start(NULL)");
    assert_eq!(number(&mut admin, "SELECT count(*) FROM allcore_wait_history"), 0);
}
