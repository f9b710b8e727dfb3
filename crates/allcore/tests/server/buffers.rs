//! The buffers' memory: it comes with demand, or all at start, and in pages of the kind asked for.

use crate::common::{Server, free_port, has, skip};
use crate::serve::refusal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

#[test]
fn preloaded_buffers_have_all_their_memory_before_the_first_client() {
    let server = Server::start(&["--buffers", "256MiB", "--preload"]);
    let log = server.log();
    let line =
        |words: &str| log.lines().position(|line| line.contains(words)).unwrap_or_else(|| panic!("{log}"));
    assert!(line("all 256MiB of buffers have memory, after") < line("ready for connections"), "{log}");
    let resident = mebibytes(&server, "VmRSS:");
    assert!(resident >= 256, "{resident} MiB resident");
    // Nothing of it is in use yet but the system's pages.
    let used = server.psql("select used < 64 * 1048576 from allcore_memory where region = 'buffers'");
    assert_eq!(used, "t");
}

#[test]
fn a_preload_ends_early_on_a_signal() {
    let mut server = Server::start(&[]);
    server.stop();
    server.arguments(&["--buffers", "8GiB", "--preload"]);
    server.launch_unready();
    while !server.log().contains("preloading buffers: ") {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}\n{}", begun.elapsed(), server.log());
    assert!(!server.log().contains("of buffers have memory, after"));
}

#[test]
fn the_kind_of_memory_is_shown_as_it_is() {
    for (asked, known) in [("off", "ordinary pages|off"), ("try", "")] {
        let server = Server::start(&["--huge-pages", asked]);
        let shown =
            server.psql("select current_setting('buffer_memory'), current_setting('huge_pages_status')");
        let truths = [
            "ordinary pages|off",
            "transparent huge pages|unknown",
            "huge pages of 2 MiB|on",
            "huge pages of 1 GiB|on",
        ];
        assert!(
            if known.is_empty() { truths.contains(&shown.trim()) } else { shown.trim() == known },
            "{shown}"
        );
        assert_eq!(server.psql("show huge_pages").trim(), asked);
        let kind = shown.split('|').next().unwrap();
        let log = server.log();
        assert!(log.contains(&format!("buffers: 64 MiB in {kind}, ")), "{log}");
    }
}

/// Huge pages of 2 MiB that the system has free.
fn free_huge_pages() -> Option<u64> {
    let read = |name: &str| -> Option<u64> {
        let path = format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    Some(read("free_hugepages")? - read("resv_hugepages")?)
}

#[test]
fn huge_pages_that_must_be_are_had_or_refused_in_a_line() {
    if free_huge_pages().is_some_and(|pages| pages >= 64) {
        let server = Server::start(&["--huge-pages", "on"]);
        assert_eq!(server.psql("show huge_pages_status").trim(), "on");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let said = refusal(&["--huge-pages", "on", "--buffers", "64MiB"], &data);
    assert!(
        said.ends_with(
            "--huge-pages on: the system has no huge pages for buffers of 64MiB: reserve 33 of 2 MiB with \
             'sysctl vm.nr_hugepages=33', or start with --huge-pages try"
        ),
        "{said}"
    );
    assert!(!data.exists(), "nothing is made");
}

#[test]
fn buffers_that_may_not_be_locked_are_told_in_a_line() {
    // Without the capability, and with a limit of 1 MiB.
    let mut command = Command::new("prlimit");
    if !has("prlimit") || !has("setpriv") {
        return skip("prlimit or setpriv is missing");
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    command.args(["--memlock=1048576:1048576", "setpriv", "--bounding-set", "-ipc_lock"]);
    command.args(["--inh-caps", "-ipc_lock", env!("CARGO_BIN_EXE_allcore"), "serve", "--buffers", "16MiB"]);
    command.args(["--huge-pages", "off", "--listen", &format!("127.0.0.1:{port}"), "--data"]);
    command.arg(folder.path().join("data")).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told = String::new();
    for line in lines {
        told += &format!("{line}\n");
        if line.contains("ready for connections") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let wanted = "buffers: 16 MiB in ordinary pages, not locked in memory: RLIMIT_MEMLOCK allows 1024 KiB, \
                  16512 KiB are needed (ulimit -l, LimitMEMLOCK=)";
    assert!(told.contains(wanted), "{told}");
}

#[test]
fn a_warm_load_takes_no_page_fault_in_the_buffers() {
    let server = Server::start(&["--buffers", "128MiB"]);
    server.pgbench(&["-i", "-s", "2", "-q"]);
    let run = || server.pgbench(&["-n", "-S", "-M", "prepared", "-c", "8", "-T", "3"]);
    run();
    // Each page with an entry was read.
    server.psql("select count(*), max(abalance) from pgbench_accounts");
    let look = || {
        let holes = server.psql("select region, used - present from allcore_memory where used <> present");
        let faults = server.psql("select sum(minor + major) from allcore_page_faults where core is not null");
        (holes, faults.trim().parse::<i64>().unwrap())
    };
    let (holes_before, before) = look();
    run();
    let (holes_after, after) = look();
    assert_eq!((holes_before.trim(), holes_after.trim()), ("", ""), "all memory in use is there");
    // Those that are left come from stacks and the heap, not one for each statement.
    assert!(after - before < 2000, "{} page faults of the workers in 3 s", after - before);
}
