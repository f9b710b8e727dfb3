//! System calls of a warm server under load, counted by strace.
//!
//! What must hold: no statement asks the system for a time, a file's length or a title. Sessions
//! share socket calls. No transaction gives memory back to the system, since that interrupts every
//! core of the process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::{Server, has, skip};

const CLIENTS: u64 = 32;
const TRANSACTIONS: u64 = 50;

/// Calls that some servers make for each statement. The names of the kernels and of the C libraries
/// differ.
const NEVER: [&str; 11] = [
    "lseek",
    "fstat",
    "newfstatat",
    "statx",
    "prctl",
    "clock_gettime",
    "gettimeofday",
    "times",
    "getrusage",
    "getpid",
    "getppid",
];
/// Calls that take pages from a process.
const GIVE_BACK: [&str; 3] = ["munmap", "madvise", "mremap"];

/// Calls by name, as `strace -c` writes them: the name ends the line, the number is the fourth
/// word.
fn parse(summary: &str) -> HashMap<String, u64> {
    let lines = summary.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.last()?.to_string(), words.get(3)?.parse().ok()?))
    });
    lines.filter(|(name, _)| name != "total").collect()
}

/// Runs a script of pgbench twice and counts the server's system calls in the second run. `None`
/// where strace may not trace.
fn count(server: &Server, script: &str) -> Option<HashMap<String, u64>> {
    let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
    let load = ["-n", "-M", "prepared", "-b", script, "-c", &clients, "-j", "2", "-t", &transactions];
    server.pgbench(&load);
    let summary = server.folder.path().join("strace");
    let mut tracer = Command::new("strace")
        .args(["-f", "-c", "-p", &server.pid().to_string(), "-o", summary.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says one line once it has attached to the threads that run.
    let mut said = String::new();
    let mut tells = BufReader::new(tracer.stderr.take().unwrap());
    tells.read_line(&mut said).unwrap();
    if !said.contains("attached") {
        tracer.wait().unwrap();
        skip(&format!("system calls of a server under load, because strace can't trace: {}", said.trim()));
        return None;
    }
    let rest = std::thread::spawn(move || tells.lines().map_while(Result::ok).for_each(drop));
    server.pgbench(&load);
    assert!(Command::new("kill").args(["-INT", &tracer.id().to_string()]).status().unwrap().success());
    tracer.wait().unwrap();
    rest.join().unwrap();
    Some(parse(&std::fs::read_to_string(summary).unwrap()))
}

#[test]
fn a_warm_load_makes_few_system_calls() {
    if !has("strace") {
        return skip("system calls of a server under load, because strace is missing");
    }
    let server = Server::start(&[]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    for script in ["select-only", "tpcb-like"] {
        let Some(calls) = count(&server, script) else { return };
        let sum = |names: &[&str]| names.iter().filter_map(|&name| calls.get(name)).sum::<u64>();
        let done = CLIENTS * TRANSACTIONS;
        assert!(sum(&["epoll_wait"]) > 0, "{script}: {calls:?}");
        // The opening of a log segment asks for its length, and ends of threads unmap stacks.
        assert!(sum(&NEVER) < 10, "{script}: {calls:?}");
        assert!(sum(&GIVE_BACK) * 100 < done, "{script}: {calls:?}");
        if script == "select-only" {
            let of_sockets = ["sendto", "sendmsg", "recvfrom", "recvmsg", "read", "write", "io_uring_enter"];
            assert!(sum(&of_sockets) < done, "{script}: {calls:?}");
        }
    }
}
