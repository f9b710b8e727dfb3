//! CPU time and context switches of trees of processes, from /proc.
//!
//! What must hold:
//! 1. A process's time counts once: its own while it lives, then its parent's, which takes it over
//!    with the wait. The sum over a tree only grows, whatever processes come and go in it.
//! 2. The load driver's tree leaves out the servers that it started, and all other processes in
//!    `apart`.
//! 3. A process's time is finer than its ticks where the kernel reports nanoseconds. Otherwise a
//!    thousand sessions, each a process with less than a tick of work in a round, would count for
//!    nothing.
//! 4. A snapshot holds at most two descriptors at a time. Ended processes are left out; any other
//!    unreadable file is an error, never a smaller figure.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Stat;
use rustix::io::Errno;

use super::cpus::{Cpus, Time};

/// CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// In clock ticks, as is `kernel`: each process's last incomplete tick is missing.
    pub(super) user: u64,
    pub(super) kernel: u64,
    /// Both, in nanoseconds, as finely as the kernel reports.
    pub(super) nanos: u64,
}

pub(super) fn nanos(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / procfs::ticks_per_second())
}

/// A thread's counters since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Thread {
    /// Context switches because the thread had to wait.
    pub(super) voluntary: u64,
    /// Others: its time slice was over, or another thread came first.
    pub(super) involuntary: u64,
    /// CPU time in nanoseconds, where the kernel keeps it.
    pub(super) worked: Option<u64>,
}

pub(super) type Threads = HashMap<i32, Thread>;

/// The machine at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) machine: Time,
    /// The time of the CPUs the server may use, where these are not all.
    pub(super) servers: Option<Time>,
    /// The load driver's, likewise.
    pub(super) clients: Option<Time>,
    pub(super) server: Spent,
    pub(super) client: Spent,
    pub(super) threads: Threads,
    pub(super) processes: Vec<i32>,
}

impl Snapshot {
    /// A snapshot of now, for a server with these first processes. Processes at or below `apart` do
    /// not belong to the load driver. The error names the unreadable file.
    pub(super) fn take(roots: &[u32], apart: &[u32]) -> Result<Self, String> {
        let cpus = Cpus::read()?;
        let stats = stats()?;
        let numbers = |of: &[u32]| of.iter().map(|one| *one as i32).collect::<Vec<i32>>();
        let server = tree(&stats, &numbers(roots), &HashSet::new());
        let client = driver(&stats, std::process::id() as i32, &server, &numbers(apart));
        let mut threads = Threads::new();
        for stat in stats.iter().filter(|stat| server.contains(&stat.pid)) {
            add_threads(stat, &mut threads)?;
        }
        Ok(Self {
            machine: cpus.time(),
            servers: roots.first().and_then(|first| cpus.of(Some(*first))),
            clients: cpus.of(None),
            server: spent(&stats, &server, &threads),
            client: spent(&stats, &client, &Threads::new()),
            threads,
            processes: server.into_iter().collect(),
        })
    }
}

/// All processes, except two kinds. A process that ends in between: its parent has its time, or
/// will have. And a process that another user hides, which is neither the server's nor the driver's
/// as far as the lab can know.
fn stats() -> Result<Vec<Stat>, String> {
    let unreadable = |error: Error| format!("/proc can't be read: {error}");
    let mut stats = Vec::new();
    for entry in fs::read_dir("/proc").map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let path = format!("/proc/{process}/stat");
        match fs::read(&path) {
            Ok(text) => stats.push(parsed(&path, &text)?),
            Err(error) if has_ended(&error) || error.kind() == ErrorKind::PermissionDenied => {}
            Err(error) => return Err(format!("{path} can't be read: {error}")),
        }
    }
    Ok(stats)
}

fn parsed(path: &str, text: &[u8]) -> Result<Stat, String> {
    Stat::from_read(text).map_err(|error| format!("{path} can't be understood: {error}"))
}

fn add_threads(stat: &Stat, threads: &mut Threads) -> Result<(), String> {
    let process = stat.pid;
    if stat.num_threads == 1 {
        let finely = read(&format!("/proc/{process}/schedstat"))?.and_then(|text| worked(&text));
        // The process's figures belong to its only thread.
        let worked = finely.or(Some(nanos(stat.utime + stat.stime)));
        let switches = switches(&format!("/proc/{process}/status"))?;
        threads.extend(switches.map(|switches| (process, Thread { worked, ..switches })));
        return Ok(());
    }
    let path = format!("/proc/{process}/task");
    let entries = match fs::read_dir(&path) {
        Err(error) if has_ended(&error) => return Ok(()),
        entries => entries.map_err(|error| format!("{path} can't be read: {error}"))?,
    };
    for entry in entries {
        let name = match entry {
            Err(error) if has_ended(&error) => return Ok(()),
            entry => entry.map_err(|error| format!("{path} can't be read: {error}"))?.file_name(),
        };
        let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Some kernels lack this file. A thread that has ended also lacks the status, which is read
        // later.
        let worked = read(&format!("{path}/{thread}/schedstat"))?.and_then(|text| worked(&text));
        let switches = switches(&format!("{path}/{thread}/status"))?;
        threads.extend(switches.map(|switches| (thread, Thread { worked, ..switches })));
    }
    Ok(())
}

/// A file's text; `None` where the file is missing, or its process has ended.
fn read(path: &str) -> Result<Option<String>, String> {
    match fs::read(path) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(error) if has_ended(&error) => Ok(None),
        Err(error) => Err(format!("{path} can't be read: {error}")),
    }
}

/// The errors of /proc for a process that ended before, or after, its file was opened.
fn has_ended(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::SRCH)
}

/// A thread's switches from its status; `None` where it has ended.
fn switches(path: &str) -> Result<Option<Thread>, String> {
    let Some(status) = read(path)? else { return Ok(None) };
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let count = line.and_then(|rest| rest.trim().parse().ok());
        count.ok_or_else(|| format!("{path} has no {}", name.trim_end_matches(':')))
    };
    let voluntary = count("voluntary_ctxt_switches:")?;
    Ok(Some(Thread { voluntary, involuntary: count("nonvoluntary_ctxt_switches:")?, worked: None }))
}

/// The first number: nanoseconds on a CPU.
fn worked(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// The processes at or below `roots`, except those at or below `without`.
pub(super) fn tree(stats: &[Stat], roots: &[i32], without: &HashSet<i32>) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for stat in stats {
        children.entry(stat.ppid).or_default().push(stat.pid);
    }
    let living: HashSet<i32> = stats.iter().map(|stat| stat.pid).collect();
    let mut found = HashSet::new();
    let mut next: Vec<i32> = roots.to_vec();
    while let Some(pid) = next.pop() {
        if living.contains(&pid) && !without.contains(&pid) && found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// The load driver's processes, below the lab's own.
fn driver(stats: &[Stat], lab: i32, server: &HashSet<i32>, apart: &[i32]) -> HashSet<i32> {
    let mut without = tree(stats, apart, &HashSet::new());
    without.extend(server);
    tree(stats, &[lab], &without)
}

/// The time of these processes, and of their ended children.
fn spent(stats: &[Stat], of: &HashSet<i32>, threads: &Threads) -> Spent {
    let mut spent = Spent::default();
    for stat in stats.iter().filter(|stat| of.contains(&stat.pid)) {
        // Times of ended children are signed in /proc, never negative.
        let (user, kernel) = (stat.cutime.max(0) as u64, stat.cstime.max(0) as u64);
        spent.user += stat.utime + user;
        spent.kernel += stat.stime + kernel;
        let finely =
            threads.get(&stat.pid).filter(|_| stat.num_threads == 1).and_then(|thread| thread.worked);
        spent.nanos += finely.unwrap_or_else(|| nanos(stat.utime + stat.stime)) + nanos(user + kernel);
    }
    spent
}

/// A server's threads between two moments.
pub(super) struct Between {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    /// The part of the server's CPU time of threads that do not live at the second moment: their
    /// switches went with them. 0 where it is unknown.
    pub(super) lost: f64,
}

/// Compares two moments, for the threads that live at the second.
pub(super) fn between(before: &Snapshot, after: &Snapshot) -> Between {
    let (mut voluntary, mut involuntary, mut worked) = (0, 0, Some(0));
    for (thread, now) in &after.threads {
        let then = before.threads.get(thread).copied().unwrap_or_default();
        // Another thread may have got this thread's number.
        let anew = then.voluntary > now.voluntary || then.involuntary > now.involuntary;
        let then = if anew { Thread::default() } else { then };
        voluntary += now.voluntary - then.voluntary;
        involuntary += now.involuntary - then.involuntary;
        let part = now.worked.map(|now| now.saturating_sub(then.worked.unwrap_or(0)));
        worked = worked.zip(part).map(|(sum, part)| sum + part);
    }
    let all = after.server.nanos.saturating_sub(before.server.nanos);
    let lost = match worked {
        Some(worked) if all > 0 => all.saturating_sub(worked) as f64 / all as f64,
        _ => 0.0,
    };
    Between { voluntary, involuntary, lost }
}

/// A thread that worked for this part of a time counts as having worked all of it.
const ALL_THE_TIME: f64 = 0.95;

/// The number of the server's threads that worked all the time between two moments, `apart` from
/// each other.
pub(super) fn busy(before: &Snapshot, after: &Snapshot, apart: Duration) -> usize {
    let worked = |(thread, now): (&i32, &Thread)| {
        let then = before.threads.get(thread)?.worked?;
        Some(now.worked?.saturating_sub(then))
    };
    let least = ALL_THE_TIME * apart.as_nanos() as f64;
    after.threads.iter().filter_map(worked).filter(|worked| *worked as f64 >= least).count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn stat(pid: i32, parent: i32, own: (u64, u64), ended: (u64, u64)) -> Stat {
        let line = format!(
            "{pid} (a b) c) S {parent} 1 1 0 -1 0 0 0 0 0 {} {} {} {} 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0",
            own.0, own.1, ended.0, ended.1
        );
        Stat::from_read(line.as_bytes()).unwrap()
    }

    fn user(stats: &[Stat], of: &HashSet<i32>) -> u64 {
        spent(stats, of, &Threads::new()).user
    }

    #[test]
    fn the_drivers_tree_leaves_out_servers_it_started_and_perf() {
        let stats = [
            stat(10, 1, (1, 1), (0, 0)),
            stat(11, 10, (2, 2), (0, 0)),
            stat(12, 10, (4, 0), (0, 0)),
            stat(13, 12, (8, 0), (0, 0)),
            stat(14, 10, (16, 0), (32, 0)),
            stat(15, 10, (64, 0), (0, 0)),
            stat(16, 11, (4, 4), (8, 8)),
            stat(20, 1, (16, 16), (0, 0)),
        ];
        let server = tree(&stats, &[11], &HashSet::new());
        assert_eq!(spent(&stats, &server, &Threads::new()), Spent { user: 14, kernel: 14, nanos: nanos(28) });
        // 12 is another arm's server with 13 below it, 14 perf, 15 pgbench.
        let of = |apart: &[i32]| user(&stats, &driver(&stats, 10, &server, apart));
        assert_eq!((of(&[]), of(&[11, 12, 14])), (125, 65));
        assert_eq!(tree(&stats, &[99], &HashSet::new()), HashSet::new(), "a process that has ended");
    }

    #[test]
    fn an_ended_child_counts_once() {
        let before = [stat(10, 1, (5, 0), (0, 0)), stat(11, 10, (7, 0), (0, 0))];
        let after = [stat(10, 1, (6, 0), (9, 0))];
        let of = |stats: &[Stat]| user(stats, &tree(stats, &[10], &HashSet::new()));
        assert_eq!(of(&after) - of(&before), 3, "one tick of its own, two of the child before it ended");
    }

    fn threads(all: &[(i32, u64, u64, u64)]) -> Threads {
        let thread = |&(number, voluntary, involuntary, worked): &(i32, u64, u64, u64)| {
            (number, Thread { voluntary, involuntary, worked: Some(worked * 10_000_000) })
        };
        all.iter().map(thread).collect()
    }

    #[test]
    fn threads_that_begin_count_from_nothing_and_ended_ones_not() {
        let before = Snapshot {
            threads: threads(&[(1, 10, 5, 4), (2, 100, 100, 20), (3, 50, 0, 6)]),
            server: Spent { user: 30, kernel: 0, nanos: nanos(30) },
            ..Snapshot::default()
        };
        let mut after = Snapshot {
            threads: threads(&[(1, 13, 6, 9), (3, 4, 4, 1), (4, 2, 2, 2)]),
            server: Spent { user: 30, kernel: 10, nanos: nanos(40) },
            ..Snapshot::default()
        };
        let seen = between(&before, &after);
        assert_eq!((seen.voluntary, seen.involuntary), (3 + 4 + 2, 1 + 4 + 2));
        // The three worked 5, 1 and 2 of the 10 ticks: the other two belong to the second thread,
        // which has ended.
        assert!((seen.lost - 0.2).abs() < 1e-9, "{}", seen.lost);
        after.threads.get_mut(&4).unwrap().worked = None;
        assert_eq!(between(&before, &after).lost, 0.0, "it can't be known");
    }

    #[test]
    fn times_below_a_tick_count_for_each_process() {
        let stats = [stat(10, 1, (0, 0), (1, 0)), stat(11, 10, (0, 1), (0, 0)), stat(12, 10, (0, 1), (0, 0))];
        // The third's kernel does not report it.
        let known = threads(&[(10, 0, 0, 0), (11, 0, 0, 0)]);
        let known = known
            .into_iter()
            .map(|(number, thread)| (number, Thread { worked: Some(700), ..thread }))
            .collect();
        let tree = tree(&stats, &[10], &HashSet::new());
        assert_eq!(
            spent(&stats, &tree, &known),
            Spent { user: 1, kernel: 2, nanos: 700 + nanos(1) + 700 + nanos(1) }
        );
        // A real tree, too: many of these sleep before their first tick.
        let children = sleepers(20);
        let of: Vec<u32> = children.iter().map(Child::id).collect();
        let seen = Snapshot::take(&of, &[]);
        end(children);
        let seen = seen.unwrap().server;
        assert!(seen.nanos > nanos(seen.user + seen.kernel), "{seen:?}");
    }

    /// Snapshots of a shell before it reads a line, and after it has written one in answer.
    fn around(script: &str) -> (Snapshot, Snapshot) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let before = Snapshot::take(&[shell.id()], &[]).unwrap();
        std::io::Write::write_all(shell.stdin.as_mut().unwrap(), b"\n").unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let after = Snapshot::take(&[shell.id()], &[]).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        (before, after)
    }

    #[test]
    fn work_of_children_that_have_ended_is_known_to_be_lost() {
        let script = "read line; sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo; read line";
        let (before, after) = around(script);
        assert!(between(&before, &after).lost > 0.5, "the loop ran in a child");
        assert_eq!(between(&before, &before).lost, 0.0);
    }

    fn sleepers(count: usize) -> Vec<Child> {
        let sleeper = || {
            let mut sleep = Command::new("sleep");
            sleep.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            sleep.process_group(0).spawn().unwrap()
        };
        (0..count).map(|_| sleeper()).collect()
    }

    fn end(children: Vec<Child>) {
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Runs the test of this name by itself, with a limit of `count` descriptors.
    fn alone_with_descriptors(test: &str, count: usize) {
        let program = std::env::current_exe().unwrap();
        let output = Command::new("sh")
            .args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &count.to_string()])
            .arg(program)
            .args(["--exact", &format!("observe::processes::tests::{test}"), "--nocapture"])
            .env("LAB_TEST_ALONE", test)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
    }

    fn is_alone(test: &str) -> bool {
        std::env::var("LAB_TEST_ALONE").is_ok_and(|alone| alone == test)
    }

    #[test]
    fn more_processes_than_descriptors_are_all_seen() {
        if !is_alone("more_processes_than_descriptors_are_all_seen") {
            return alone_with_descriptors("more_processes_than_descriptors_are_all_seen", 24);
        }
        let children = sleepers(40);
        let seen = Snapshot::take(&[std::process::id()], &[]);
        end(children);
        let seen = seen.unwrap();
        assert_eq!(seen.processes.len(), 41);
        assert!(seen.threads.len() > 41, "this one has several threads");
    }

    #[test]
    fn an_unreadable_file_is_an_error_not_a_smaller_figure() {
        if !is_alone("an_unreadable_file_is_an_error_not_a_smaller_figure") {
            return alone_with_descriptors("an_unreadable_file_is_an_error_not_a_smaller_figure", 24);
        }
        let mut files: Vec<fs::File> = (0..24).map_while(|_| fs::File::open("/dev/null").ok()).collect();
        // One descriptor is left: enough for /proc itself, and for no file in it.
        files.pop();
        let error = Snapshot::take(&[std::process::id()], &[]).unwrap_err();
        drop(files);
        assert!(error.ends_with("can't be read: Too many open files (os error 24)"), "{error}");
    }

    #[test]
    fn children_that_come_and_go_are_seen_on_this_machine() {
        // On a line of input, a shell runs a loop in a child three times, waits for each child, and
        // then waits for input.
        let script = "read line; for turn in 1 2 3; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; \
                      done; echo; read line";
        let (before, after) = around(script);
        assert_eq!(after.processes.len(), 1, "its children have ended");
        let spent = after.server.nanos - before.server.nanos;
        assert!(spent >= nanos(3), "three loops of 60,000 steps in {spent} ns");
        assert!(nanos(after.machine.all - before.machine.all) >= spent);
        assert!(between(&before, &after).voluntary >= 1, "it waited for its children");
    }
}
