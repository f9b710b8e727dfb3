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
//! 4. A snapshot holds a handful of descriptors at a time, however many processes there are. Ended
//!    processes are left out; any other unreadable file is an error, never a smaller figure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use procfs::process::{Process, Stat, Task, all_processes};
use procfs::{ProcError, ProcResult};

use super::cpus::{Cpus, Time};
use crate::record::Switches;

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
            add_threads(stat.pid, &mut threads)?;
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
    let mut stats = Vec::new();
    for process in all_processes().map_err(unreadable)? {
        match process.and_then(|process| process.stat()) {
            Ok(stat) => stats.push(stat),
            Err(ProcError::NotFound(_) | ProcError::PermissionDenied(_)) => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(stats)
}

fn unreadable(error: ProcError) -> String {
    format!("/proc can't be read: {error}")
}

/// Adds the threads of a process, if it still lives.
fn add_threads(process: i32, to: &mut Threads) -> Result<(), String> {
    let Some(tasks) = living(Process::new(process).and_then(|process| process.tasks()))? else {
        return Ok(());
    };
    for task in tasks {
        if let Some((number, thread)) = living(task.and_then(|task| counters(&task)))? {
            to.insert(number, thread);
        }
    }
    Ok(())
}

/// `None` where the process or thread has ended.
fn living<T>(read: ProcResult<T>) -> Result<Option<T>, String> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(ProcError::NotFound(_)) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

fn counters(task: &Task) -> ProcResult<(i32, Thread)> {
    let worked = match task.schedstat() {
        Ok(times) => Some(times.sum_exec_runtime),
        // Some kernels lack this file. A thread that has ended also lacks the status.
        Err(ProcError::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let status = task.status()?;
    let (Some(voluntary), Some(involuntary)) =
        (status.voluntary_ctxt_switches, status.nonvoluntary_ctxt_switches)
    else {
        return Err(ProcError::Other("a thread's status has no context switches".into()));
    };
    Ok((task.tid, Thread { voluntary, involuntary, worked }))
}

/// The processes at or below `roots`, except those at or below `without`.
fn tree(stats: &[Stat], roots: &[i32], without: &HashSet<i32>) -> HashSet<i32> {
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

/// The context switches between two moments of the server's threads that live at the second. And
/// the part of its CPU time that other threads took, whose switches ended with them; 0 where that
/// is unknown.
pub(super) fn between(before: &Snapshot, after: &Snapshot) -> (Switches, f64) {
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
    (Switches { voluntary: voluntary as f64, involuntary: involuntary as f64 }, lost)
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
pub(super) mod tests {
    use std::fs::File;
    use std::process::{Child, Command, Stdio};

    use procfs::FromRead;

    use super::*;
    use crate::tests::Spawned;

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

    /// Threads by number, with their switches (voluntary, involuntary) and the ticks they worked.
    pub(in crate::observe) fn threads(all: &[(i32, u64, u64, u64)]) -> Threads {
        let thread = |&(number, voluntary, involuntary, worked): &(i32, u64, u64, u64)| {
            (number, Thread { voluntary, involuntary, worked: Some(nanos(worked)) })
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
        let (seen, lost) = between(&before, &after);
        assert_eq!(seen, Switches { voluntary: 3.0 + 4.0 + 2.0, involuntary: 1.0 + 4.0 + 2.0 });
        // The three worked 5, 1 and 2 of the 10 ticks: the other two belong to the second thread,
        // which has ended.
        assert!((lost - 0.2).abs() < 1e-9, "{lost}");
        after.threads.get_mut(&4).unwrap().worked = None;
        assert_eq!(between(&before, &after).1, 0.0, "it can't be known");
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
        let of: Vec<u32> = children.iter().map(Spawned::id).collect();
        let seen = Snapshot::take(&of, &[]);
        drop(children);
        let seen = seen.unwrap().server;
        assert!(seen.nanos > nanos(seen.user + seen.kernel), "{seen:?}");
    }

    #[test]
    fn work_of_ended_children_counts_and_their_switches_are_known_to_be_lost() {
        // On a line of input, a shell runs a loop in a child three times, waits for each child, and
        // then waits for input.
        let script = "read line; for turn in 1 2 3; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; \
                      done; echo; read line";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let snapshot = |shell: &Child| Snapshot::take(&[shell.id()], &[]).unwrap();
        let before = snapshot(&shell);
        std::io::Write::write_all(shell.stdin.as_mut().unwrap(), b"\n").unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let after = snapshot(&shell);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(after.processes.len(), 1, "its children have ended");
        let spent = after.server.nanos - before.server.nanos;
        assert!(spent >= nanos(3), "three loops of 60,000 steps in {spent} ns");
        assert!(nanos(after.machine.all - before.machine.all) >= spent);
        let (seen, lost) = between(&before, &after);
        assert!(seen.voluntary >= 1.0, "it waited for its children");
        assert!(lost > 0.5, "the loops ran in children");
        assert_eq!(between(&before, &before).1, 0.0);
    }

    fn sleepers(count: usize) -> Vec<Spawned> {
        (0..count).map(|_| Spawned::sleeping()).collect()
    }

    /// The test runs itself alone, in a process with a limit of 24 descriptors.
    #[test]
    fn few_descriptors_are_enough_and_an_unreadable_file_is_no_smaller_figure() {
        let name = "few_descriptors_are_enough_and_an_unreadable_file_is_no_smaller_figure";
        if std::env::var_os("LAB_TEST_ALONE").is_none() {
            let mut alone = Command::new("sh");
            alone.args(["-c", "ulimit -n 24 && exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
            alone.args(["--exact", &format!("observe::processes::tests::{name}"), "--nocapture"]);
            let output = alone.env("LAB_TEST_ALONE", "").output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
            return;
        }
        let own = || Snapshot::take(&[std::process::id()], &[]);
        let children = sleepers(40);
        let seen = own();
        drop(children);
        let seen = seen.unwrap();
        assert_eq!(seen.processes.len(), 41);
        assert!(seen.threads.len() > 41, "this one has several threads");
        let mut files: Vec<File> = (0..24).map_while(|_| File::open("/dev/null").ok()).collect();
        // One descriptor is left: enough for /proc itself, and for no file in it.
        files.pop();
        let error = own().unwrap_err();
        drop(files);
        assert!(error.ends_with("Too many open files (os error 24)"), "{error}");
    }
}
