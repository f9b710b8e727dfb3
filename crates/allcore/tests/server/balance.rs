//! Sessions that move between cores: because one core is much busier, or all the time for a test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Row, Statement};

use crate::common::{Server, free_port, pid};
use crate::metrics;

/// Sessions on each of two cores.
fn sessions(observer: &mut Client) -> [i64; 2] {
    let by_core = "SELECT sessions FROM allcore_workers WHERE core IS NOT NULL ORDER BY core";
    let rows = observer.query(by_core, &[]).unwrap();
    [0, 1].map(|core: usize| rows[core].get(0))
}

/// A session with state of every kind that lasts beyond a transaction.
struct Keeper {
    client: Client,
    pid: i32,
    number: i32,
    statement: Statement,
}

impl Keeper {
    fn new(mut client: Client, number: i32) -> Keeper {
        let pid = pid(&mut client);
        let state = format!(
            "SET application_name = 'keeper {number}'; SET work_mem = '{}kB';
             PREPARE doubled(int) AS SELECT $1 * 2 + {number};
             SELECT pg_advisory_lock({number}), nextval('numbers')",
            1000 + number
        );
        client.batch_execute(&state).unwrap();
        let statement = client.prepare("SELECT $1::int4 + 1").unwrap();
        Keeper { client, pid, number, statement }
    }

    /// A cancel finds the session where it is now, and takes nothing else from it.
    fn is_cancelled(&mut self, server: &Server) {
        let (pid, cancel) = (self.pid, self.client.cancel_token());
        thread::scope(|scope| {
            let slept = scope.spawn(|| self.client.batch_execute("SELECT pg_sleep(60)"));
            server.wait_active(pid);
            cancel.cancel_query(postgres::NoTls).unwrap();
            assert_eq!(slept.join().unwrap().unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
        });
        self.check();
    }

    fn check(&mut self) {
        let number = self.number;
        let one = |row: Row| -> i32 { row.get(0) };
        assert_eq!(one(self.client.query_one(&self.statement, &[&number]).unwrap()), number + 1);
        let asked = format!("EXECUTE doubled({number})");
        assert_eq!(one(self.client.query_one(asked.as_str(), &[]).unwrap()), 3 * number);
        let shown = self
            .client
            .query_one(
                "SELECT current_setting('application_name'), current_setting('work_mem'), pg_backend_pid(),
                        currval('numbers') > 0,
                        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())",
                &[],
            )
            .unwrap();
        let text = |at: usize| -> String { shown.get(at) };
        assert_eq!((text(0), text(1)), (format!("keeper {number}"), format!("{}kB", 1000 + number)));
        assert_eq!(
            (shown.get::<_, i32>(2), shown.get::<_, bool>(3), shown.get::<_, i64>(4)),
            (self.pid, true, 1)
        );
    }

    /// A statement of some milliseconds.
    fn work(&mut self) {
        let sum: i64 =
            self.client.query_one("SELECT sum(n) FROM generate_series(1, 3000) n", &[]).unwrap().get(0);
        assert_eq!(sum, 4_501_500);
    }
}

#[test]
fn busy_sessions_of_one_core_spread_and_keep_all_they_have() {
    let server = Server::start(&["--cores", "2"]);
    let mut observer = server.connect();
    observer.batch_execute("CREATE SEQUENCE numbers").unwrap();
    // Sessions on the core of the next one that comes are kept, so one core has all of them.
    let (mut kept, mut others, mut core) = (Vec::new(), Vec::new(), None);
    while kept.len() < 5 {
        let before = sessions(&mut observer);
        let client = server.connect();
        let after = sessions(&mut observer);
        let at = usize::from(after[1] > before[1]);
        match core.get_or_insert(at) {
            core if *core == at => kept.push(Keeper::new(client, kept.len() as i32 + 1)),
            _ => others.push(client),
        }
    }
    drop(others);
    let core = core.unwrap();
    // One of them has a transaction open from before the load until after it.
    let mut open = kept.pop().unwrap();
    open.client.batch_execute("BEGIN; CREATE TABLE made (a int); INSERT INTO made VALUES (1)").unwrap();
    drop(observer);
    // A look is a session of its own. If fewer are left on the core, one of the kept ones has
    // moved.
    let all = kept.len() as i64 + 1;
    let look = || sessions(&mut server.connect())[core];
    let deadline = Instant::now() + Duration::from_secs(10);
    while look() > all {
        assert!(Instant::now() < deadline, "the other sessions do not end");
    }
    let over = AtomicBool::new(false);
    let spread = thread::scope(|scope| {
        for keeper in &mut kept {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    keeper.work();
                }
            });
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut spread = false;
        while !spread && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
            spread = look() < all;
        }
        over.store(true, Ordering::Relaxed);
        spread
    });
    assert!(spread, "{all} sessions are on core {core}, and stay there");
    kept.iter_mut().for_each(Keeper::check);
    open.check();
    let made: i64 = open.client.query_one("SELECT count(*) FROM made", &[]).unwrap().get(0);
    open.client.batch_execute("COMMIT").unwrap();
    assert_eq!(made, 1);
    // A cancel finds the session where it is now.
    for keeper in &mut kept {
        keeper.is_cancelled(&server);
    }
}

/// Every session moves whenever it may, some hundred times a second.
#[test]
fn sessions_that_move_all_the_time_lose_nothing() {
    const ACCOUNTS: i32 = 50;
    let port = free_port();
    let mut server = Server::start_with(
        &["--cores", "2", "--metrics", &format!("127.0.0.1:{port}")],
        &[("ALLCORE_STOP", "runtime.balance.wander=fail:5")],
    );
    let mut observer = server.connect();
    observer
        .batch_execute(&format!(
            "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
             INSERT INTO accounts SELECT n, 1000 FROM generate_series(1, {ACCOUNTS}) n;
             CREATE TABLE done (client int, number int, PRIMARY KEY (client, number));
             CREATE SEQUENCE numbers"
        ))
        .unwrap();
    let began = Instant::now();
    let mut seen = [false; 2];
    while seen != [true; 2] {
        let on = sessions(&mut observer);
        (0..2).for_each(|core| seen[core] |= on[core] == 1);
        assert!(began.elapsed() < Duration::from_secs(30), "the session stays on its core");
    }
    let until = Instant::now() + Duration::from_secs(5);
    let transfers: Vec<i32> = thread::scope(|scope| {
        let client = |client: i32| transfer(&server, client, until);
        let clients: Vec<_> = (1..=8).map(|number| scope.spawn(move || client(number))).collect();
        // Meanwhile some come and go, and some statements are cancelled.
        while Instant::now() < until {
            let mut keeper = Keeper::new(server.connect(), 1000);
            (0..20).for_each(|_| keeper.check());
            keeper.is_cancelled(&server);
        }
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let sum: i64 = observer.query_one("SELECT sum(balance) FROM accounts", &[]).unwrap().get(0);
    assert_eq!(sum, i64::from(ACCOUNTS) * 1000);
    let done: i64 = observer.query_one("SELECT count(*) FROM done", &[]).unwrap().get(0);
    assert_eq!(done, transfers.iter().map(|&made| i64::from(made)).sum::<i64>(), "{transfers:?}");
    assert!(transfers.iter().all(|&made| made > 5), "{transfers:?}");
    // The sessions that have gone have left nothing on either core.
    let left = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()";
    assert_eq!(observer.query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
    // Both cores have got sessions and given some. The page is newer than the rows.
    let moves = "SELECT worker, moved_in, moved_out FROM allcore_workers WHERE core IS NOT NULL";
    let rows = observer.query(moves, &[]).unwrap();
    assert_eq!(rows.len(), 2);
    drop(observer);
    let page = metrics::page(port);
    for row in rows {
        let worker: String = row.get(0);
        for (at, name) in [(1, "allcore_worker_moved_in_total"), (2, "allcore_worker_moved_out_total")] {
            let (shown, served) =
                (row.get::<_, i64>(at), metrics::value(&page, &format!("{name}{{worker=\"{worker}\"}}")));
            assert!(shown > 0 && served >= shown as f64, "{worker}: {shown}, {name} {served}");
        }
    }
    server.stop();
    server.check();
}

/// Moves money to and fro, in transactions of several statements; how many it has committed.
fn transfer(server: &Server, number: i32, until: Instant) -> i32 {
    let mut keeper = Keeper::new(server.connect(), number);
    let take = keeper.client.prepare("UPDATE accounts SET balance = balance - 1 WHERE id = $1").unwrap();
    let give = keeper.client.prepare("UPDATE accounts SET balance = balance + 1 WHERE id = $1").unwrap();
    let mut made = 0;
    let mut round = number;
    while Instant::now() < until {
        round += 1;
        let (from, to) = (round * 7 % 50 + 1, round * 13 % 50 + 1);
        let mut transaction = keeper.client.transaction().unwrap();
        let moved = transaction.execute(&take, &[&from]).and_then(|_| {
            let undone =
                format!("SAVEPOINT s; UPDATE accounts SET balance = 0 WHERE id = {from}; ROLLBACK TO s");
            transaction.batch_execute(&undone)?;
            transaction.execute(&give, &[&to])?;
            transaction.execute("INSERT INTO done VALUES ($1, $2)", &[&number, &made])?;
            // A cursor's query runs from one message to the next.
            let portal = transaction.bind("SELECT n FROM generate_series(1, 30) n", &[])?;
            let mut rows = |count| transaction.query_portal(&portal, count);
            Ok((rows(10)?.len(), rows(0)?.len()))
        });
        match moved {
            Ok(rows) => {
                assert_eq!(rows, (10, 20));
                transaction.commit().unwrap();
                made += 1;
            }
            // Two clients that lock rows in different order.
            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                transaction.rollback().unwrap()
            }
            Err(error) => panic!("{error:?}"),
        }
        // Its own commit is seen, wherever the session is now.
        let own = keeper.client.query_one("SELECT count(*) FROM done WHERE client = $1", &[&number]).unwrap();
        assert_eq!(own.get::<_, i64>(0), i64::from(made));
        if round % 8 == 0 {
            keeper.check();
        }
    }
    keeper.check();
    made
}
