//! The buffers' memory: it comes with demand, or all at start, and in pages of the kind asked for.

use crate::common::{Server, free_port, has, skip};
use crate::serve::refusal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A value in KiB from a file of `/proc`, in MiB; `None` where the file has none.
fn mebibytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? >> 10)
}

/// The server's memory in MiB, explicit huge pages among it; `None` when it has ended.
fn running(server: &Server) -> Option<u64> {
    let file = format!("/proc/{}/status", server.pid());
    Some(mebibytes(&file, "VmRSS:")? + mebibytes(&file, "HugetlbPages:").unwrap_or(0))
}

fn resident(server: &Server) -> u64 {
    running(server).unwrap_or_else(|| panic!("the server has ended:\n{}", server.log()))
}

/// Waits until the running server has come so far.
fn wait_for(server: &Server, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while !is_so() {
        assert!(running(server).is_some(), "the server ended before {what}:\n{}", server.log());
        assert!(Instant::now() < deadline, "no {what} in 180 s:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A number that a query returns.
fn number(server: &Server, query: &str) -> u64 {
    let text = server.psql(query);
    text.trim().parse().unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// Frames in use. They are at most those of the file's pages, and a unit of 256 for each core with
/// a free frame in it.
fn frames_in_use(server: &Server) -> u64 {
    let in_use = number(server, "select in_use from allcore_buffers");
    // Four bytes an entry.
    let pages = number(server, "select used / 4 from allcore_memory where region = 'page table'");
    let cores = number(server, "select count(*) from allcore_workers where core is not null");
    assert!(in_use <= pages + 256 * (cores + 1), "{in_use} frames for {pages} pages, {cores} cores");
    in_use
}

#[test]
fn a_small_database_takes_little_of_large_buffers() {
    let server = Server::start(&["--buffers", "2GiB", "--huge-pages", "off"]);
    server
        .psql("create table small as select g as id, repeat('x', 100) as t from generate_series(1, 1000) g");
    // The helpers go 16 MiB ahead of these, and 2 MiB a core. One that touched all memory would be
    // far by now.
    frames_in_use(&server);
    std::thread::sleep(Duration::from_secs(1));
    let small = resident(&server);
    assert!(small < 300, "{small} MiB resident with 1,000 rows");
    server.psql(
        "create table large (id int primary key, t text);
         insert into large select g, repeat('x', 1000) from generate_series(1, 200000) g;
         checkpoint",
    );
    assert!(frames_in_use(&server) * 8192 > 200_000_000);
    let large = resident(&server);
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
    wait_for(&server, "growth to 400 MiB", || running(&server).is_some_and(|now| now >= 400));
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
    let resident = resident(&server);
    assert!(resident >= 256, "{resident} MiB resident");
    // Nothing of it is in use yet but the system's pages.
    let used = server.psql("select used < 64 * 1048576 from allcore_memory where region = 'buffers'");
    assert_eq!(used, "t");
}

#[test]
fn a_preload_ends_early_on_a_signal() {
    let mut server = Server::start(&[]);
    server.stop();
    let free = mebibytes("/proc/meminfo", "MemAvailable:").unwrap();
    server.arguments(&["--buffers", &format!("{}MiB", (free / 4).clamp(64, 4096)), "--preload"]);
    // The first line comes before the folder is opened, the second before the preload.
    for line in [" opens ", "sessions may take "] {
        let mut is_early = || {
            let old = server.log().len();
            server.launch_unready();
            wait_for(&server, line, || server.log()[old..].contains(line));
            let is_full = |server: &Server| server.log()[old..].contains("of buffers have memory, after");
            let was_full = is_full(&server);
            let begun = Instant::now();
            server.stop();
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}\n{}", begun.elapsed(), server.log());
            was_full || !is_full(&server)
        };
        // The machine may keep the signal back until the preload has ended, but not every time.
        assert!((0..3).any(|_| is_early()), "{}", server.log());
    }
}

/// The kind of memory that buffers get where explicit huge pages are tried first.
fn kinds_tried() -> &'static [&'static str] {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}")).unwrap_or_default()
    };
    let (all, of_size) = (read("enabled"), read("hugepages-2048kB/enabled"));
    let asks_all = of_size.is_empty() || of_size.contains("[inherit]");
    let setting = if asks_all { all } else { of_size };
    let is_given = ["[always]", "[madvise]"].iter().any(|word| setting.contains(word));
    // Free pages may be taken by another process before the server starts.
    match (free_huge_pages().is_some_and(|pages| pages > 0), is_given) {
        (false, true) => &["transparent huge pages|unknown"],
        (false, false) => &["ordinary pages|off"],
        (true, true) => &["transparent huge pages|unknown", "huge pages of 2 MiB|on"],
        (true, false) => &["ordinary pages|off", "huge pages of 2 MiB|on"],
    }
}

#[test]
fn the_kind_of_memory_is_shown_as_it_is() {
    for (asked, known) in [("off", &["ordinary pages|off"][..]), ("try", kinds_tried())] {
        let server = Server::start(&["--huge-pages", asked]);
        let shown =
            server.psql("select current_setting('buffer_memory'), current_setting('huge_pages_status')");
        assert!(known.contains(&shown.trim()), "{shown}, not {known:?}");
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
                  32896 KiB are needed (ulimit -l, LimitMEMLOCK=)";
    assert!(told.contains(wanted), "{told}");
}

#[test]
fn a_warm_load_takes_no_page_fault_in_the_buffers() {
    let server = Server::start(&["--buffers", "128MiB"]);
    server.pgbench(&["-i", "-s", "2", "-q"]);
    let run = || server.pgbench(&["-n", "-S", "-M", "prepared", "-c", "8", "-T", "3"]);
    run();
    // The load has filled the log's ring once.
    let ring = "select used = reserved and present = reserved from allcore_memory where region = 'log'";
    assert_eq!(server.psql(ring), "t");
    // Each page with an entry was read.
    server.psql("select count(*), max(abalance) from pgbench_accounts");
    let look = || {
        // Frames that are free may never have been touched: a core that is ahead of the helper
        // takes a unit without memory.
        let free = server.psql("select free_by_node from allcore_buffers");
        let free: u64 =
            free.trim().trim_matches(['{', '}']).split(',').map(|n| n.parse::<u64>().unwrap()).sum();
        let holes = server.psql(&format!(
            "select region, used - present from allcore_memory where used - present > case region \
             when 'buffers' then {free} * 8192 when 'frame headers' then {free} * 64 else 0 end"
        ));
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
