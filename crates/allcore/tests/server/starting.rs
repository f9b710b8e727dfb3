//! While a server recovers, it refuses clients with 57P03 ("the database system is starting up"). A
//! client that keeps connecting gets in as soon as recovery is over.

use crate::common::Server;
use postgres::error::SqlState;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Waiting longer than this is a failure.
const LONG: Duration = Duration::from_secs(120);

/// A killed server with something to recover.
fn killed() -> Server {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql("create table t (id int primary key); insert into t select generate_series(1, 1000)");
    server.crash();
    server
}

/// Connects until the server says that it is starting up.
fn wait_for_refusal(server: &Server) -> postgres::Error {
    let deadline = Instant::now() + LONG;
    loop {
        match server.try_connect() {
            Ok(_) => panic!("a server that can't have started let a client in"),
            Err(error) if error.code().is_some() => return error,
            // Nobody listens yet.
            Err(error) => assert!(Instant::now() < deadline, "{error}\n{}", server.log()),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_first_start_that_was_cut_off_begins_anew() {
    let mut server = killed();
    let data = server.data();
    // As a crash before its end leaves it.
    std::fs::rename(data.join("ALLCORE"), data.join("ALLCORE.new")).unwrap();
    server.launch();
    assert_eq!(server.psql("select count(*) from pg_class where relname = 't'").trim(), "0");
    server.psql("create table t (id int primary key); insert into t values (1)");
    server.crash();
    server.launch();
    assert_eq!(server.psql("select count(*) from t").trim(), "1");
}

#[test]
fn clients_hear_that_the_server_is_starting() {
    let mut server = killed();
    server.environment("ALLCORE_STOP", Some("recovery.redo=park@1"));
    server.launch_unready();
    let error = wait_for_refusal(&server);
    assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW));
    let reply = error.as_db_error().unwrap();
    assert_eq!((reply.severity(), reply.message()), ("FATAL", "the database system is starting up"));
    for mut client in [server.client("psql"), server.socket_client("psql")] {
        let output = client.args(["-X", "-c", "select 1"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("FATAL:  the database system is starting up"),
            "{said}"
        );
    }
    // Clients that say nothing, or nonsense, are in nobody's way, also when they are many.
    let silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 4, 1], &[0xff; 3000], &[0, 0, 0, 8]] {
        let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let _ = client.write_all(nonsense);
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said);
        assert!(said.is_empty(), "{said:?}");
    }
    assert_eq!(wait_for_refusal(&server).code(), Some(&SqlState::CANNOT_CONNECT_NOW));
    drop(silent);
    server.crash();
    server.environment("ALLCORE_STOP", None);
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "1000");
}

#[test]
fn clients_that_keep_asking_get_in() {
    let mut server = killed();
    server.environment("ALLCORE_STOP", Some("recovery.redo=sleep:1000@1"));
    server.launch_unready();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let deadline = Instant::now() + LONG;
                loop {
                    match server.try_connect() {
                        Ok(mut client) => {
                            let count: i64 = client.query_one("select count(*) from t", &[]).unwrap().get(0);
                            return assert_eq!(count, 1000);
                        }
                        Err(error) => {
                            let code = error.code();
                            assert!(code.is_none_or(|code| *code == SqlState::CANNOT_CONNECT_NOW), "{error}");
                            assert!(Instant::now() < deadline, "{error}\n{}", server.log());
                        }
                    }
                }
            });
        }
    });
    server.stop();
    server.check();
}

/// Milliseconds that each core's thread has run.
fn ran(server: &Server) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let tasks = tasks.map(|task| task.unwrap().path());
    let mut cores: Vec<_> = tasks
        .filter(|task| std::fs::read_to_string(task.join("comm")).unwrap().starts_with("core-"))
        .collect();
    cores.sort();
    let nanoseconds = |task: &Path| -> u64 {
        let line = std::fs::read_to_string(task.join("schedstat")).unwrap();
        line.split(' ').next().unwrap().parse().unwrap()
    };
    cores.iter().map(|task| nanoseconds(task) / 1_000_000).collect()
}

#[test]
fn all_cores_redo_the_log() {
    let mut server = Server::start(&["--buffers", "128MiB", "--cores", "2"]);
    server.psql("create table redone (id int primary key, filler text)");
    server.stop();
    server.launch();
    let idle = ran(&server);
    server.psql(
        "insert into redone select i, repeat('r', 400) from generate_series(1, 120000) i;
         update redone set filler = repeat('s', 400);",
    );
    server.crash();
    server.launch();
    let busy = ran(&server);
    println!("a start takes the cores {idle:?} ms, with something to redo {busy:?} ms");
    assert_eq!((idle.len(), busy.len()), (2, 2));
    let more: Vec<u64> = busy.iter().zip(&idle).map(|(busy, idle)| busy.saturating_sub(*idle)).collect();
    // One core also reads the log for both, so their times differ. Each must have at least a tenth
    // of the work.
    assert!(more.iter().all(|more| *more * 10 >= busy.iter().sum()), "{idle:?} ms and {busy:?} ms");
    assert_eq!(server.psql("select count(*), min(filler) = repeat('s', 400) from redone"), "120000|t");
}
