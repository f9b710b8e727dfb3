//! `allcore_counters`: hardware and software counters of the workers.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use postgres::{Client, NoTls};

use crate::common::{Server, free_port, has, skip};
use crate::metrics;

const NAMES: [&str; 8] = [
    "cycles",
    "instructions",
    "cache_misses",
    "node_loads",
    "task_clock",
    "context_switches",
    "migrations",
    "page_faults",
];

/// A row of the view.
#[derive(Debug)]
struct Row {
    counts: HashMap<&'static str, Option<i64>>,
    user_only: bool,
    refused: String,
}

/// The rows by worker.
fn look(client: &mut Client) -> HashMap<String, Row> {
    let rows = client.query("SELECT * FROM allcore_counters", &[]).unwrap();
    let row = |row: postgres::Row| {
        let refused: Option<String> = row.get("refused");
        let counts = NAMES.map(|name| (name, row.get(name)));
        let (user_only, refused) = (row.get("user_only"), refused.unwrap_or_default());
        (row.get("worker"), Row { counts: counts.into(), user_only, refused })
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn each_worker_has_counts_that_grow_or_a_reason_for_anybody_who_looks() {
    let port = free_port();
    let server = Server::start(&["--cores", "2", "--metrics", &format!("127.0.0.1:{port}")]);
    assert!(!metrics::page(port).contains("allcore_counters_total"), "a scrape opens no counter");
    let alice = format!("host=127.0.0.1 port={} user=alice dbname=postgres connect_timeout=20", server.port);
    let mut client = Client::connect(&alice, NoTls).unwrap();
    let before = look(&mut client);
    assert_eq!(before.len(), 4, "{before:?}");
    let cores = "SELECT count(core) FROM allcore_counters WHERE worker = 'core ' || core";
    assert_eq!(client.query_one(cores, &[]).unwrap().get::<_, i64>(0), 2);
    client.batch_execute("SELECT count(*) FROM generate_series(1, 100000)").unwrap();
    let after = look(&mut client);
    for (worker, row) in &after {
        for name in NAMES {
            match (before[worker].counts[name], row.counts[name]) {
                (Some(before), Some(after)) => assert!(before <= after, "{worker}: {name}"),
                (_, None) => assert!(row.refused.contains(name), "{worker}: {name}: {row:?}"),
                (None, Some(_)) => {}
            }
        }
    }
    let sum =
        |rows: &HashMap<String, Row>, name| rows.values().map(|row| row.counts[name]).sum::<Option<i64>>();
    if let (Some(before), Some(after)) = (sum(&before, "task_clock"), sum(&after, "task_clock")) {
        assert!(after - before > 1_000_000, "{before} {after}");
        let page = metrics::page(port);
        assert!(page.contains(r#"allcore_counters_total{worker="core 0",event="page_faults"} "#), "{page}");
        assert!(!page.contains("task_clock"), "the time has a metric of its own: {page}");
    } else {
        skip("the kernel lets no process count its time on a processor");
    }
}

#[test]
fn a_server_without_privileges_counts_its_own_code_and_tells_the_rest() {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" || !has("setpriv") {
        return skip("kernel.perf_event_paranoid is not 2, or setpriv is missing");
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_admin,-perfmon", env!("CARGO_BIN_EXE_allcore"), "serve"]);
    command.args(["--buffers", "16MiB", "--listen", &format!("127.0.0.1:{port}"), "--data"]);
    let mut child = command.arg(folder.path().join("data")).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let ready = lines.any(|line| line.contains("ready for connections"));
    let settings = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=20");
    let rows = Client::connect(&settings, NoTls).map(|mut client| look(&mut client));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready, "setpriv needs root");
    for row in rows.unwrap().values() {
        let forbidden = "context_switches, migrations: the kernel forbids it";
        match row.counts["task_clock"] {
            Some(_) => assert!(row.user_only && row.refused.contains(forbidden), "{row:?}"),
            // A container's seccomp profile may forbid the call altogether.
            None => assert!(row.refused.contains("page_faults: the kernel forbids it"), "{row:?}"),
        }
    }
}
