//! The buffers' memory: it comes with demand.

use crate::common::Server;
use std::time::Duration;

/// A value in KiB from `/proc/PID/status`, in MiB.
fn mebibytes(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn a_small_database_takes_little_of_large_buffers() {
    let server = Server::start(&["--buffers", "2GiB"]);
    server
        .psql("create table small as select g as id, repeat('x', 100) as t from generate_series(1, 1000) g");
    // A helper that touched all memory would be far by now.
    std::thread::sleep(Duration::from_secs(1));
    let small = mebibytes(&server, "VmRSS:");
    assert!(small < 300, "{small} MiB resident with 1,000 rows");
    server.psql(
        "create table large (id int primary key, t text);
         insert into large select g, repeat('x', 1000) from generate_series(1, 200000) g;
         checkpoint",
    );
    let large = mebibytes(&server, "VmRSS:");
    assert!((small + 200..small + 700).contains(&large), "{large} MiB resident with 200 MB more");
    assert_eq!(server.psql("select count(*), sum(length(t)) from large"), "200000|200000000");
}

#[test]
fn a_server_stops_at_once_while_its_buffers_grow() {
    let mut server = Server::start(&["--buffers", "2GiB"]);
    server.psql("create table t (id int primary key, t text)");
    let mut client = server.connect();
    let insert = "insert into t select g, repeat('x', 1000) from generate_series(1, 10000000) g";
    let load = std::thread::spawn(move || client.batch_execute(insert).unwrap_err());
    while mebibytes(&server, "VmRSS:") < 400 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop();
    load.join().unwrap();
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "0");
}
