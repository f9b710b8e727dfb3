//! `--metrics`: the counts over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{Server, allcore, free_port, text};

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Reads an answer to the end of the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Sends a request and reads the answer to its end.
fn ask(port: u16, request: &str) -> String {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).unwrap();
    rest(stream)
}

/// The counts of a server with `--metrics` at this port.
pub(crate) fn page(port: u16) -> String {
    ask(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
}

/// The value of a sample by its name and labels.
pub(crate) fn value(page: &str, sample: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in\n{page}")).parse().unwrap()
}

fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "60 s are over");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn counts_are_served_over_http() {
    let port = free_port();
    let mut server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    assert!(server.log().contains(&format!("metrics at http://127.0.0.1:{port}/metrics")));
    let page = || page(port);
    let commits = r#"allcore_transactions_total{database="postgres",end="commit"}"#;
    let rollbacks = r#"allcore_transactions_total{database="postgres",end="rollback"}"#;
    let sessions = r#"allcore_sessions{database="postgres"}"#;
    // The session that found the server ready has ended.
    until(|| value(&page(), sessions) == 0.0);
    let before = page();
    let mut client = server.connect();
    for _ in 0..10 {
        client.batch_execute("SELECT 1").unwrap();
    }
    client.batch_execute("SELECT 1 / 0").unwrap_err();
    let after = page();
    assert_eq!(value(&after, commits) - value(&before, commits), 10.0);
    assert_eq!(value(&after, rollbacks) - value(&before, rollbacks), 1.0);
    assert_eq!(value(&after, sessions), 1.0);
    assert!(value(&after, "allcore_buffer_frames") >= value(&after, "allcore_buffer_frames_in_use"));
    assert!(value(&after, r#"allcore_worker_processor_seconds_total{worker="core 0",mode="user"}"#) >= 0.0);

    let (head, body) = after.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    // Each sample follows its metric's type.
    let mut metric = "";
    for line in body.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(named) => metric = named.split(' ').next().unwrap(),
            None => assert!(line.starts_with('#') || line.starts_with(metric), "{line} in {metric}"),
        }
    }

    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("HEAD /metrics HTTP/1.0\r\n\r\n", "200"),
    ] {
        let answer = ask(port, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert!(ask(port, "HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
    let refusal = ask(port, "POST /metrics HTTP/1.1\r\n\r\n");
    assert!(refusal.contains("\r\nAllow: GET, HEAD\r\nContent-Type: "), "{refusal}");
    assert!(refusal.ends_with("\r\n\r\nGET or HEAD\n"), "{refusal}");
    // A request without an end is cut off, and one that stays silent keeps nobody waiting.
    let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut endless = TcpStream::connect(("127.0.0.1", port)).unwrap();
    endless.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    while endless.write_all(&[b'x'; 4096]).is_ok() {}
    assert_eq!(value(&page(), sessions), 1.0);
    drop(client);
    server.stop();
}

/// More clients than the server has slots for.
const CROWD: usize = 100;
/// Longest time for a scrape: less than the time that a silent client has.
const SCRAPE_LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_scraper_is_answered_while_others_hold_all_slots() {
    let port = free_port();
    let mut server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    let crowd = |said: &str| -> Vec<TcpStream> {
        let join = |_| {
            let mut one = connect(port);
            one.write_all(said.as_bytes()).unwrap();
            one
        };
        (0..CROWD).map(join).collect()
    };
    let is_answered = |case: &str| {
        let begun = Instant::now();
        assert!(page(port).starts_with("HTTP/1.1 200 "), "{case}");
        assert!(begun.elapsed() < SCRAPE_LIMIT, "{case}: {:?}", begun.elapsed());
    };
    let silent = crowd("");
    is_answered("silent clients");
    let evicted = |line: &&str| line.contains("closed a connection to the metrics for a newer one");
    // Another thread writes the log.
    until(|| server.log().lines().any(|line| evicted(&line)));
    // The newest stay, and get an answer when they ask.
    let mut newest = silent.into_iter().next_back().unwrap();
    newest.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    assert!(rest(newest).starts_with("HTTP/1.1 200 "));

    let mut slow = crowd("GET /metrics HTTP/1.1\r\na: ");
    for _ in 0..20 {
        // A client that was evicted cannot send.
        slow.retain_mut(|one| one.write_all(b"a").is_ok());
        is_answered("slow clients");
    }
    let request = "GET /metrics HTTP/1.1\r\n\r\n";
    // A page fits into the buffers of a socket, so the server has sent all of it. A test of the
    // runtime's door has answers that do not fit.
    let _deaf = crowd(request);
    is_answered("clients that do not read");
    let _kept = crowd(&format!("{request}GET /metrics"));
    is_answered("clients that keep the connection");
    assert_eq!(server.log().lines().filter(evicted).count(), 1, "{}", server.log());
    server.stop();
}

/// Processor time of the threads that answer for the metrics and during the start.
fn door_time(process: u32) -> Duration {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let task = task.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(task.join(name)).unwrap_or_default();
        if read("comm").trim() == "door" {
            nanoseconds += read("schedstat").split(' ').next().unwrap().parse::<u64>().unwrap();
        }
    }
    Duration::from_nanos(nanoseconds)
}

#[test]
fn a_scraper_waits_without_cost_while_descriptors_lack() {
    let port = free_port();
    let mut server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    let process = server.pid();
    // The soft limit alone.
    let limit = |descriptors: u32| {
        let mut prlimit = std::process::Command::new("prlimit");
        prlimit.args(["--pid", &process.to_string(), &format!("--nofile={descriptors}:")]);
        assert!(prlimit.status().unwrap().success());
    };
    limit(3);
    let mut waiting = connect(port);
    waiting.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let (begun, spent) = (Instant::now(), door_time(process));
    std::thread::sleep(Duration::from_secs(2));
    let (spent, elapsed) = (door_time(process) - spent, begun.elapsed());
    limit(1024);
    assert!(spent < elapsed / 4, "{spent:?} of {elapsed:?}");
    assert!(rest(waiting).starts_with("HTTP/1.1 200 "));
    server.stop();
}

#[test]
fn an_answer_reaches_a_client_that_sends_too_much() {
    let port = free_port();
    let mut server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    let long = "a".repeat(200_000);
    let line = "GET /metrics HTTP/1.1\r\n";
    for (request, status) in [
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), "414"),
        (long.clone(), "414"),
        (format!("{line}a: {long}\r\n\r\n"), "431"),
        (format!("{line}{}\r\n", "a: b\r\n".repeat(1000)), "431"),
        (format!("POST /metrics HTTP/1.1\r\nContent-Length: {}\r\n\r\n{long}", long.len()), "405"),
        (format!("{line}\r\n{line}\r\n").repeat(1000), "200"),
        ("GET /metrics HTTP/1.1\nHost: a\n\n".to_owned(), "200"),
        ("GET /metrics\n".to_owned(), "400"),
    ] {
        let (answer, shown) = (ask(port, &request), &request[..request.len().min(60)]);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{shown}: one answer");
    }
    // A client that ends its output after the request gets its answer, and one without a request
    // the end of the connection.
    for (request, begin) in [(&*format!("{line}\r\n"), "HTTP/1.1 200 "), (line, "")] {
        let mut half = connect(port);
        half.write_all(request.as_bytes()).unwrap();
        half.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = rest(half);
        assert!(answer.starts_with(begin) && answer.is_empty() == begin.is_empty(), "{answer}");
    }
    server.stop();
}

#[test]
fn a_scrape_shows_the_figures_of_top() {
    let port = free_port();
    let server = Server::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    let page = || page(port);
    let rollbacks = r#"allcore_transactions_total{database="postgres",end="rollback"}"#;
    let mut client = server.connect();
    let idle = r#"allcore_sessions_by_wait{state="idle",wait_event_type="Client",wait_event="ClientRead"}"#;
    // The session that waited for the start may still be there.
    until(|| value(&page(), idle) == 1.0);
    let after = page();
    client.batch_execute("BEGIN").unwrap();
    assert!(!after.contains("allcore_lock_events_total{"), "the profiler is off");
    client.batch_execute("SELECT allcore_lock_profile_enable()").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    client.batch_execute("CREATE TABLE t (n int)").unwrap();
    let within = page();
    let age = value(&within, "allcore_oldest_transaction_seconds");
    assert!(age >= 0.02, "{age}");
    assert_eq!(value(&within, "allcore_oldest_statement_seconds"), 0.0);
    assert_eq!(value(&within, &idle.replace("idle", "idle in transaction")), 1.0);
    for gauge in [
        "allcore_buffer_hand",
        "allcore_buffer_sweep_batch",
        "allcore_log_sessions_in_flight",
        "allcore_log_filled_bytes",
    ] {
        assert!(value(&within, gauge) >= 0.0);
    }
    let positions = ["durable", "reserved"];
    let positions = positions.map(|part| value(&within, &format!("allcore_log_{part}_bytes_total")));
    assert!(positions.is_sorted(), "{positions:?}");
    let taken = within.lines().find(|line| line.starts_with("allcore_lock_events_total{class="));
    let taken = taken.unwrap_or_else(|| panic!("no lock in\n{within}"));
    assert!(taken.contains(r#".rs:"#) && taken.contains(r#",kind=""#), "{taken}");
    client.batch_execute("SELECT allcore_lock_profile_disable(); ROLLBACK").unwrap();
    // A client that leaves within a transaction rolls it back.
    let open = value(&page(), rollbacks);
    let mut leaving = server.connect();
    leaving.batch_execute("BEGIN; INSERT INTO pg_temp.none VALUES (1)").unwrap_err();
    drop(leaving);
    until(|| value(&page(), rollbacks) == open + 1.0);
}

#[test]
fn an_address_that_is_taken_ends_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = allcore()
        .args(["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--metrics", &address])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains(&format!("cannot serve metrics at {address}: ")), "{}", text(&output));
    assert!(!data.exists(), "nothing was made");
}
