//! CPU time and context switches of trees of processes, from /proc.
//!
//! What must hold:
//! 1. A process's time counts once: while it lives as its own, then as its parent's, which takes it over with the wait. The
//!    sum over a tree of both only grows, whatever comes and goes in it.
//! 2. The load driver's tree leaves out servers that it started itself.

use std::collections::{HashMap, HashSet};

use procfs::CurrentSI;
use procfs::process::{Process, Stat, all_processes};

/// CPU time in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) user: u64,
    pub(super) kernel: u64,
}

/// Context switches of threads since they began, by thread: voluntary, involuntary.
pub(super) type Switched = HashMap<i32, (u64, u64)>;

/// The machine at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    /// Of all CPUs since the machine began.
    pub(super) all: u64,
    /// Of these, with nothing to do.
    pub(super) idle: u64,
    /// The server's.
    pub(super) server: Ticks,
    /// The load driver's.
    pub(super) client: Ticks,
    /// The server's threads.
    pub(super) switched: Switched,
    /// The server's processes.
    pub(super) processes: Vec<i32>,
}

impl Snapshot {
    /// Now, of a server with these first processes. An error says why /proc can't be read.
    pub(super) fn take(roots: &[u32]) -> Result<Self, String> {
        let unreadable = |error| format!("/proc can't be read: {error}");
        let total = procfs::KernelStats::current().map_err(unreadable)?.total;
        // Guests' time is in the users' already.
        let parts = [total.iowait, total.irq, total.softirq, total.steal].map(|part| part.unwrap_or(0));
        let idle = total.idle + parts[0];
        let all = total.user + total.nice + total.system + total.idle + parts.iter().sum::<u64>();
        let (mut stats, mut handles) = (Vec::new(), HashMap::new());
        // One that ends meanwhile is left out: its parent has its time, or will have.
        for process in all_processes().map_err(unreadable)?.flatten() {
            if let Ok(stat) = process.stat() {
                stats.push(stat);
                handles.insert(process.pid, process);
            }
        }
        let roots: Vec<i32> = roots.iter().map(|root| *root as i32).collect();
        let server = tree(&stats, &roots, &HashSet::new());
        let client = tree(&stats, &[std::process::id() as i32], &server);
        let processes: Vec<i32> = server.iter().copied().collect();
        let switched = processes.iter().filter_map(|pid| handles.get(pid)).flat_map(switches).collect();
        Ok(Self {
            all,
            idle,
            server: ticks(&stats, &server),
            client: ticks(&stats, &client),
            switched,
            processes,
        })
    }
}

/// The processes at or below `roots`, but for `without` and what is below them.
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

/// The time of these processes, and of those of their children that have ended.
fn ticks(stats: &[Stat], of: &HashSet<i32>) -> Ticks {
    let mut ticks = Ticks::default();
    for stat in stats.iter().filter(|stat| of.contains(&stat.pid)) {
        // Times of ended children are signed in /proc, never negative.
        ticks.user += stat.utime + stat.cutime.max(0) as u64;
        ticks.kernel += stat.stime + stat.cstime.max(0) as u64;
    }
    ticks
}

fn switches(process: &Process) -> Vec<(i32, (u64, u64))> {
    let Ok(tasks) = process.tasks() else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| {
            let status = task.status().ok()?;
            Some((task.tid, (status.voluntary_ctxt_switches?, status.nonvoluntary_ctxt_switches?)))
        })
        .collect()
}

/// Switches between two moments, of the threads that live at the second: voluntary, involuntary.
pub(super) fn switches_between(before: &Switched, after: &Switched) -> (u64, u64) {
    let mut sum = (0, 0);
    for (thread, now) in after {
        let then = before.get(thread).copied().unwrap_or_default();
        // A thread's number may have been given to another one.
        let then = if then.0 > now.0 || then.1 > now.1 { (0, 0) } else { then };
        sum = (sum.0 + now.0 - then.0, sum.1 + now.1 - then.1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use procfs::FromRead;

    use super::*;

    fn stat(pid: i32, parent: i32, own: (u64, u64), ended: (u64, u64)) -> Stat {
        let line = format!(
            "{pid} (a b) c) S {parent} 1 1 0 -1 0 0 0 0 0 {} {} {} {} 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 \
             0 0 0 0 0 0 0 0",
            own.0, own.1, ended.0, ended.1
        );
        Stat::from_read(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_tree_is_what_lies_below_but_for_servers_the_driver_started() {
        let stats = [
            stat(10, 1, (1, 1), (0, 0)),
            stat(11, 10, (2, 2), (0, 0)),
            stat(12, 11, (4, 4), (8, 8)),
            stat(20, 1, (16, 16), (0, 0)),
        ];
        let server = tree(&stats, &[11], &HashSet::new());
        assert_eq!(ticks(&stats, &server), Ticks { user: 14, kernel: 14 });
        let client = tree(&stats, &[10], &server);
        assert_eq!(ticks(&stats, &client), Ticks { user: 1, kernel: 1 });
        assert_eq!(tree(&stats, &[99], &HashSet::new()), HashSet::new(), "a process that has ended");
    }

    #[test]
    fn an_ended_child_counts_once() {
        let before = [stat(10, 1, (5, 0), (0, 0)), stat(11, 10, (7, 0), (0, 0))];
        let after = [stat(10, 1, (6, 0), (9, 0))];
        let of = |stats: &[Stat]| ticks(stats, &tree(stats, &[10], &HashSet::new())).user;
        assert_eq!(of(&after) - of(&before), 3, "one tick of its own, two of the child before it ended");
    }

    #[test]
    fn threads_that_begin_count_from_nothing_and_ended_ones_not() {
        let before = Switched::from([(1, (10, 5)), (2, (100, 100)), (3, (50, 0))]);
        let after = Switched::from([(1, (13, 6)), (3, (4, 4)), (4, (2, 2))]);
        assert_eq!(switches_between(&before, &after), (3 + 4 + 2, 1 + 4 + 2));
    }

    #[test]
    fn children_that_come_and_go_are_seen_on_this_machine() {
        // A shell that runs a loop in a child of its own, three times over, waiting for each, and then waits itself.
        let script = "for turn in 1 2 3; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done; echo; read line";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let before = Snapshot::take(&[shell.id()]).unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let after = Snapshot::take(&[shell.id()]).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(after.processes.len(), 1, "its children have ended");
        let spent = after.server.user + after.server.kernel - before.server.user - before.server.kernel;
        assert!(spent >= 3, "three loops of 60,000 steps in {spent} ticks");
        assert!(after.all - before.all >= spent);
        assert!(switches_between(&before.switched, &after.switched).0 >= 1, "it waited for its children");
    }
}
