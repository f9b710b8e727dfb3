//! System calls of a warm server under load, counted by strace.
//!
//! What must hold: no statement asks the system for a time, a file's length or a title. Sessions
//! share socket calls. While sessions stay, no core gives memory back to the system, since that
//! interrupts every core of the process (a TLB shoot-down). No core takes a page fault for a point
//! select once the load is warm.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Server, has, skip};

const CLIENTS: u64 = 32;
const TRANSACTIONS: u64 = 50;

/// Calls that some servers make for each statement. The names of the kernels and of the C libraries
/// differ. A clock is seen here only where the C library asks the kernel for it: most read it in
/// the process. Those reads are among the counted instructions (docs/instructions.md).
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
/// Calls that take pages from a process. `mprotect` is none of them: the server makes a heap longer
/// by it, and sets the guard pages of new stacks.
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

/// Runs strace on the server while `load` runs, with these arguments, and returns its report.
/// `None` where it may not trace.
fn trace(server: &Server, arguments: &[&str], load: impl FnOnce()) -> Option<String> {
    let report = server.folder.path().join("strace");
    let mut tracer = Command::new("strace")
        .args(["-f", "-p", &server.pid().to_string(), "-o", report.to_str().unwrap()])
        .args(arguments)
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
    load();
    assert!(Command::new("kill").args(["-INT", &tracer.id().to_string()]).status().unwrap().success());
    tracer.wait().unwrap();
    rest.join().unwrap();
    Some(std::fs::read_to_string(report).unwrap())
}

#[test]
fn a_warm_load_makes_few_system_calls() {
    if !has("strace") {
        return skip("system calls of a server under load, because strace is missing");
    }
    let server = Server::start(&[]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    for script in ["select-only", "tpcb-like"] {
        let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
        let load = ["-n", "-M", "prepared", "-b", script, "-c", &clients, "-j", "2", "-t", &transactions];
        server.pgbench(&load);
        let Some(summary) = trace(&server, &["-c"], || _ = server.pgbench(&load)) else { return };
        let calls = parse(&summary);
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

/// The threads of the server's cores.
fn cores(server: &Server) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let threads = threads.map(|thread| thread.unwrap().path());
    let is_core = |thread: &PathBuf| {
        std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("core-"))
    };
    let number = |thread: PathBuf| thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
    threads.filter(is_core).map(number).collect()
}

/// Runs a load of 32 prepared clients for 8 s, and `look` once it is warm; also returns
/// transactions a second.
fn warm<R>(server: &Server, script: &str, look: impl FnOnce() -> R) -> (R, f64) {
    let clients = CLIENTS.to_string();
    let load = ["-n", "-M", "prepared", "-b", script, "-c", &clients, "-j", "2", "-T", "8"];
    std::thread::scope(|scope| {
        let sessions = scope.spawn(|| server.pgbench(&load));
        std::thread::sleep(Duration::from_secs(2));
        let seen = look();
        let said = sessions.join().unwrap();
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        (seen, tps.unwrap_or_else(|| panic!("no throughput in {said}")))
    })
}

/// The least difference of each count that one of five windows of 0.5 s shows.
fn least(counts: impl Fn() -> [u64; 2]) -> [u64; 2] {
    let mut least = [u64::MAX; 2];
    for _ in 0..5 {
        let before = counts();
        std::thread::sleep(Duration::from_millis(500));
        let after = counts();
        for at in 0..2 {
            least[at] = least[at].min(after[at] - before[at]);
        }
    }
    least
}

/// Page faults of these threads of the server.
fn faults(server: &Server, threads: &[u32]) -> u64 {
    let of = |thread: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", server.pid())).unwrap();
        // The name, in brackets, may have blanks. Minor and major faults are the eighth and tenth
        // words behind it.
        let words: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        words[7].parse::<u64>().unwrap() + words[9].parse::<u64>().unwrap()
    };
    threads.iter().map(of).sum()
}

/// TLB shoot-downs of all processors, which other processes cause too; `None` where the kernel does
/// not count them.
fn shootdowns() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/interrupts").ok()?;
    let line = all.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(line.split_whitespace().map_while(|word| word.parse::<u64>().ok()).sum())
}

#[test]
fn the_cores_of_a_warm_load_take_no_page_fault_and_no_shoot_down() {
    if shootdowns().is_none() {
        skip("TLB shoot-downs under load, because /proc/interrupts does not count them");
    }
    let server = Server::start(&[]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    let cores = cores(&server);
    assert!(!cores.is_empty());
    for script in ["select-only", "tpcb-like"] {
        let look = || least(|| [faults(&server, &cores), shootdowns().unwrap_or(0)]);
        let ([faults, shootdowns], tps) = warm(&server, script, look);
        let in_window = tps / 2.0;
        let said =
            format!("{script}: {faults} faults, {shootdowns} shoot-downs, {in_window:.0} transactions");
        // Updates use new pages of files and of undo.
        let most = if script == "select-only" { 0.0 } else { in_window / 20.0 };
        assert!(faults as f64 <= most, "{said}");
        // Other processes of the machine have some. Updates wait for the disk, so they are few.
        let others = 200.0;
        assert!((shootdowns as f64) < others + in_window / 100.0, "{said}");
    }
}

/// The sessions come before the trace and go after it, because a session takes memory of its own.
#[test]
fn no_core_gives_memory_back_while_sessions_stay() {
    if !has("strace") {
        return skip("memory given back under load, because strace is missing");
    }
    let server = &Server::start(&[]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    let cores = cores(server);
    let clients = CLIENTS.to_string();
    let traced = format!("trace=epoll_wait,{}", GIVE_BACK.join(","));
    for script in ["select-only", "tpcb-like"] {
        let report = std::thread::scope(|scope| {
            let load = ["-n", "-M", "prepared", "-b", script, "-c", &clients, "-j", "2", "-T", "8"];
            let sessions = scope.spawn(move || server.pgbench(&load));
            std::thread::sleep(Duration::from_secs(1));
            let report = trace(server, &["-e", &traced], || std::thread::sleep(Duration::from_secs(1)));
            sessions.join().unwrap();
            report
        });
        let Some(report) = report else { return };
        // A line is the thread's number and the call.
        let calls = report.lines().filter_map(|line| line.split_once(' '));
        let (of_cores, of_others): (Vec<_>, Vec<_>) =
            calls.partition(|(thread, _)| thread.parse().is_ok_and(|thread| cores.contains(&thread)));
        // Advice about huge pages, which each new stack gets, takes no page away.
        let gives_back = |(_, call): &&(&str, &str)| {
            GIVE_BACK.iter().any(|name| call.trim().starts_with(name)) && !call.contains("HUGEPAGE")
        };
        assert!(of_cores.len() > 100, "{script}: the cores were not traced:\n{report}");
        let given: Vec<_> = of_cores.iter().filter(gives_back).collect();
        assert!(given.is_empty(), "{script}: {given:?}");
        // A thread for files or beside the cores unmaps its stack as it ends.
        let given: Vec<_> = of_others.iter().filter(gives_back).collect();
        assert!(given.len() < 10, "{script}: {given:?}");
    }
}
