//! Memory that outlives statements: definitions, advisory locks, and the stacks of sessions that
//! wait.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{
    Client, LIMIT, MEMORY, Server, answer, assert_bounded, beside, logged_in, message, run, settled, start,
    start_for_many, status,
};
use crate::common::raw;

/// Sessions that wait for a lock, each with a stack that its statement made deep.
const DEEP: usize = 300;
/// Deep statements that are compiled at a time. Each takes some 8 MiB until it waits.
const COMPILED: usize = 4;

#[test]
fn definitions_take_a_part_of_the_memory() {
    let server = start();
    let mut client = server.connect();
    let text = "x".repeat(200_000);
    let mut made = 0;
    let refused = loop {
        match run(&mut client, &format!("create table t{made} (a text default '{text}')")) {
            Ok(_) => made += 1,
            Err(code) => break code,
        }
        assert!(made < 1000, "definitions grow without end");
    };
    assert_eq!(refused, "53200");
    // A quarter of the memory, which texts of 200 kB fill.
    let expected = (MEMORY as usize / 4) << 20;
    assert!((expected / 210_000..=expected / 200_000).contains(&made), "{made} tables");
    assert_bounded(&server, "definitions");
    // Nor do they grow in another session, in another database, or by ALTER.
    let mut other = server.connect();
    assert_eq!(
        run(&mut other, &format!("create table more (a text default '{text}')")),
        Err("53200".to_owned())
    );
    assert_eq!(
        run(&mut other, &format!("alter table t0 add check (a <> '{text}')")),
        Err("53200".to_owned())
    );
    assert_eq!(run(&mut other, "alter table t0 alter a drop default"), Ok(String::new()));
    assert_eq!(run(&mut other, "insert into t0 values ('y'); select a from t0"), Ok("y".to_owned()));
    run(&mut other, "create database elsewhere").unwrap();
    let settings = format!("host=127.0.0.1 port={} user=postgres dbname=elsewhere", server.port);
    let mut elsewhere = Client::connect(&settings, postgres::NoTls).unwrap();
    run(&mut elsewhere, &format!("create table one (a text default '{text}')")).unwrap();
    assert_eq!(
        run(&mut elsewhere, &format!("create table two (a text default '{text}')")),
        Err("53200".to_owned())
    );
    // Dropped definitions make room; so do definitions that are rolled back.
    run(&mut client, "drop table t1, t2").unwrap();
    run(&mut client, &format!("begin; create table back (a text default '{text}'); rollback")).unwrap();
    run(&mut client, &format!("create table again (a text default '{text}')")).unwrap();
}

#[test]
fn advisory_locks_of_idle_sessions_count() {
    let server = start_for_many();
    beside(&server, || {
        let mut ended = 0;
        let mut sessions: Vec<Client> = Vec::new();
        for class in 0..60 {
            let mut client = server.connect();
            let text = format!("select count(pg_advisory_lock({class}, n)) from generate_series(1, 20000) n");
            // 6 MB a session: it gets them, or hears that there is no more memory.
            let taken = run(&mut client, &text);
            ended += usize::from(taken.is_err());
            sessions.push(client);
        }
        assert_bounded(&server, "advisory locks");
        // 360 MB were asked for, so many have lost theirs.
        ended +=
            sessions.iter_mut().map(|client| usize::from(run(client, "select 1").is_err())).sum::<usize>();
        assert!(ended >= 30, "{ended} of 60 sessions were refused or ended");
    });
    assert_bounded(&server, "advisory locks");
}

/// The lock table's parts grow at the same time, each by twice what it was, and leave as many
/// holes.
#[test]
#[ignore = "takes all the memory that a server has by default: make soak runs it in 1 GiB"]
fn advisory_locks_of_many_sessions_leave_a_server_with_defaults_alive() {
    const SESSIONS: usize = 300;
    let server = Server::start(&[]);
    beside(&server, || {
        let mut sessions: Vec<Client> = (0..SESSIONS).map(|_| server.connect()).collect();
        let refused = sessions.iter_mut().enumerate().filter_map(|(class, client)| {
            let text = format!("select count(pg_advisory_lock({class}, n)) from generate_series(1, 40000) n");
            run(client, &text).err()
        });
        let refused = refused.count();
        println!("{refused} of {SESSIONS} sessions with 40,000 locks each were refused or ended");
        if runtime::account::available_bytes().unwrap() <= 1 << 30 {
            assert!(refused > SESSIONS / 4, "{refused} of {SESSIONS} were refused");
        }
    });
}

/// The kernel holds what was sent, also when the session has been ended.
#[test]
#[ignore = "takes all the memory that a server has by default: make soak runs it in 1 GiB"]
fn unread_results_beside_full_memory_leave_the_server_alive() {
    const SESSIONS: usize = 800;
    // Buffers as a server takes them by default in 1 GiB.
    let server = Server::start(&["--max-connections", "2000", "--buffers", "256MiB"]);
    beside(&server, || {
        let path = server.folder.path().join(format!(".s.PGSQL.{}", server.port));
        let connect = || logged_in(UnixStream::connect(&path).unwrap());
        let expressions = ["$1::int"; 10].join(",");
        let prepared: String =
            (0..8).map(|number| format!("; prepare p{number} as select {expressions}")).collect();
        let holders: Vec<UnixStream> = (0..SESSIONS)
            .map(|class| {
                let mut socket = connect();
                let locks =
                    format!("select count(pg_advisory_lock({class}, n)) from generate_series(1, 3000) n");
                let text = format!("begin; {locks}{prepared}\0");
                socket.write_all(&message(b'Q', text.as_bytes())).unwrap();
                while answer(&mut socket).0 != b'Z' {}
                socket
            })
            .collect();
        let unread: Vec<UnixStream> = (0..SESSIONS)
            .map(|_| {
                let mut socket = connect();
                let text = b"select n from generate_series(1, 10000000) n\0";
                socket.write_all(&message(b'Q', text)).unwrap();
                socket
            })
            .collect();
        settled(&server);
        drop((holders, unread));
        let mut client = server.connect();
        assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
    });
}

/// A client that ends its sessions and keeps their sockets. The kernel keeps what they have not
/// read.
#[test]
#[ignore = "takes all the memory that a server has by default: make soak runs it in 1 GiB"]
fn unread_results_of_ended_sessions_leave_the_server_alive() {
    /// More than 1 GiB holds.
    const SESSIONS: usize = 18_000;
    let server = Server::start(&["--max-connections", "1000", "--buffers", "256MiB"]);
    beside(&server, || {
        let path = server.folder.path().join(format!(".s.PGSQL.{}", server.port));
        let result = message(b'Q', b"select repeat('x', 57000)\0");
        let asked = [raw::startup("postgres", "postgres"), result, message(b'X', b"")].concat();
        let mut kept = Vec::new();
        for _ in 0..SESSIONS {
            let mut socket = UnixStream::connect(&path).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket.write_all(&asked).unwrap();
            // The answer to the login begins with R. It is another one where the connection is
            // refused.
            let mut first = [0];
            if socket.read_exact(&mut first).is_err() || first != *b"R" {
                break;
            }
            kept.push(socket);
        }
        assert!(kept.len() < SESSIONS, "nothing bounds the sockets of ended sessions");
        println!("{} sockets of ended sessions are kept", kept.len());
        drop(kept);
        let mut client = server.connect();
        assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
    });
}

#[test]
fn stacks_of_sessions_that_wait_count_or_are_given_back() {
    let server = start_for_many();
    let mut holder = server.connect();
    run(&mut holder, "create table deep (i int primary key, v bigint); insert into deep values (1, 0)")
        .unwrap();
    run(&mut holder, "begin; update deep set v = 1 where i = 1").unwrap();
    let before = status(&server, "VmRSS:");
    let value = format!("{}v{}", "(".repeat(900), " + 1)".repeat(900));
    let text = format!("update deep set v = {value} where i = 1");
    let mut watcher = server.connect();
    let mut waiting = Vec::new();
    while waiting.len() < DEEP {
        for _ in 0..COMPILED {
            let (mut client, text) = (server.connect(), text.clone());
            waiting.push(std::thread::spawn(move || run(&mut client, &text)));
        }
        wait_for_waiters(&mut watcher, &waiting);
    }
    let each = ((status(&server, "VmRSS:") - before) << 10) / DEEP as u64;
    assert!(each < 400, "{each} KiB a session");
    run(&mut holder, "rollback").unwrap();
    for waiting in waiting {
        assert_eq!(waiting.join().unwrap(), Ok(String::new()));
    }
    assert_eq!(run(&mut watcher, "select v from deep"), Ok((900 * DEEP).to_string()));
    assert_bounded(&server, "deep statements that wait");
}

/// Waits until each of these sessions waits for a lock.
fn wait_for_waiters(watcher: &mut Client, waiting: &[JoinHandle<Result<String, String>>]) {
    let count = "select count(*) from pg_stat_activity where wait_event in ('tuple', 'transactionid')";
    let begun = Instant::now();
    while run(watcher, count) != Ok(waiting.len().to_string()) {
        // A session that does not wait has ended, or does something else.
        let ended = waiting.iter().filter(|waiting| waiting.is_finished()).count();
        if begun.elapsed() >= LIMIT || ended > 0 {
            let all = "select string_agg(distinct concat_ws(' ', state, wait_event_type, wait_event), ', ') \
                       from pg_stat_activity";
            let doing = run(watcher, all);
            panic!("of {} sessions {ended} have ended, all do {doing:?}", waiting.len());
        }
    }
}
