//! Separate CPUs for client and server (`--pin`), so that the kernel moves neither, and neither
//! takes the other's caches.
//!
//! What must hold: a server's affinity is restored when the run is over, however it ends, as long
//! as this process can act. [`Pinned`] restores it when it is dropped, [`give_back`] where the
//! process ends before. One run is pinned at a time.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use procfs::process::all_processes;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub client: Vec<usize>,
    pub server: Vec<usize>,
}

impl Split {
    /// Splits the CPUs this process may use: a quarter of the cores, at least one, to the client,
    /// the others to the server. Threads of a core stay together. A machine with one core is an
    /// error.
    pub fn of_this_machine() -> Result<Self, String> {
        let allowed =
            sched_getaffinity(None).map_err(|error| format!("CPU affinity can't be read: {error}"))?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let mut cores: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for cpu in cpus {
            let siblings = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            // Without topology each CPU counts as a core.
            let core = std::fs::read_to_string(Path::new(&siblings)).unwrap_or_else(|_| cpu.to_string());
            cores.entry(core).or_default().push(cpu);
        }
        let mut cores: Vec<Vec<usize>> = cores.into_values().collect();
        cores.sort();
        Self::of_cores(&cores)
    }

    fn of_cores(cores: &[Vec<usize>]) -> Result<Self, String> {
        if cores.len() < 2 {
            return Err("client and server can't have separate cores: the machine has only one".into());
        }
        // The client gets the last ones: the first tend to serve interrupts.
        let (server, client) = cores.split_at(cores.len() - (cores.len() / 4).max(1));
        Ok(Self { client: client.concat(), server: server.concat() })
    }

    /// Runs `work`, which starts a server, on the servers' CPUs, so that the server sizes itself
    /// for these; then the calling thread returns to its own. Without permission `work` runs
    /// anywhere, and [`Pinned::pin`] reports that.
    pub fn on_servers<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut there = Before::default();
        let _ = there.one(rustix::thread::gettid(), &set(&self.server));
        work()
    }
}

/// Pinned threads; dropping this value restores their CPUs.
#[derive(Debug)]
pub struct Pinned(());

/// The threads that this process has pinned.
static PINNED: Mutex<Option<Before>> = Mutex::new(None);

/// Restores the CPUs of all pinned threads, before the process ends without dropping anything.
pub(crate) fn give_back() {
    drop(PINNED.lock().unwrap_or_else(PoisonError::into_inner).take());
}

impl Drop for Pinned {
    fn drop(&mut self) {
        give_back();
    }
}

impl Pinned {
    /// Pins the calling thread, and threads it starts later, to the client's CPUs. Pins all threads
    /// of the servers with these first processes to theirs. Processes and threads that these start
    /// later inherit it. An error names the missing permission; then nothing is pinned.
    pub fn pin(split: &Split, servers: &[u32]) -> Result<Self, String> {
        let mut pinned = Before { threads: Vec::new(), servers: servers.to_vec() };
        let own = rustix::thread::gettid();
        pinned
            .one(own, &set(&split.client))
            .map_err(|error| format!("the client can't be pinned: {error}"))?;
        let server = set(&split.server);
        for thread in threads(servers)? {
            match pinned.one(thread, &server) {
                // The thread has ended in between.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => {
                    let pid = thread.as_raw_nonzero();
                    return Err(format!(
                        "the server can't be pinned (thread {pid}): {error}; run as its user or as root"
                    ));
                }
            }
        }
        *PINNED.lock().unwrap_or_else(PoisonError::into_inner) = Some(pinned);
        Ok(Self(()))
    }
}

/// The CPUs of the threads before they were pinned; dropping this value restores them.
#[derive(Debug, Default)]
struct Before {
    threads: Vec<(Pid, CpuSet)>,
    servers: Vec<u32>,
}

impl Before {
    fn one(&mut self, thread: Pid, to: &CpuSet) -> Result<(), rustix::io::Errno> {
        let before = sched_getaffinity(Some(thread))?;
        sched_setaffinity(Some(thread), to)?;
        self.threads.push((thread, before));
        Ok(())
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // Ended threads have no CPUs to restore: errors mean no more than that, here and below.
        for (thread, before) in &self.threads {
            let _ = sched_setaffinity(Some(*thread), before);
        }
        // Threads that began since have inherited the pinning; they get the CPUs of the server's
        // first thread.
        let Some((_, first)) = self.threads.get(1) else { return };
        let known: HashSet<Pid> = self.threads.iter().map(|(thread, _)| *thread).collect();
        for thread in threads(&self.servers).unwrap_or_default() {
            if !known.contains(&thread) {
                let _ = sched_setaffinity(Some(thread), first);
            }
        }
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    set
}

fn threads(roots: &[u32]) -> Result<Vec<Pid>, String> {
    let processes: Vec<_> =
        all_processes().map_err(|error| format!("/proc can't be read: {error}"))?.flatten().collect();
    let stats: Vec<_> = processes.iter().filter_map(|process| process.stat().ok()).collect();
    let roots: Vec<i32> = roots.iter().map(|root| *root as i32).collect();
    let of = super::processes::tree(&stats, &roots, &Default::default());
    let threads = processes
        .iter()
        .filter(|process| of.contains(&process.pid))
        .filter_map(|process| process.tasks().ok());
    Ok(threads.flat_map(|tasks| tasks.flatten()).filter_map(|task| Pid::from_raw(task.tid)).collect())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::tests::Spawned;

    #[test]
    fn a_quarter_of_the_cores_is_the_clients() {
        let cores: Vec<Vec<usize>> = (0..8).map(|core| vec![core, core + 8]).collect();
        let split = Split::of_cores(&cores).unwrap();
        assert_eq!(split.client, [6, 14, 7, 15]);
        assert_eq!(split.server.len(), 12);
        assert_eq!(Split::of_cores(&cores[..2]).unwrap(), Split { client: vec![1, 9], server: vec![0, 8] });
        assert!(Split::of_cores(&cores[..1]).unwrap_err().contains("has only one"));
    }

    #[test]
    fn a_process_started_on_the_servers_cpus_inherits_them() {
        let Ok(split) = Split::of_this_machine() else {
            crate::tests::skip("this machine has but one core");
            return;
        };
        let before = sched_getaffinity(None).unwrap();
        let (child, inside) = split.on_servers(|| (Spawned::sleeping(), sched_getaffinity(None).unwrap()));
        let pid = Pid::from_raw(child.id() as i32);
        assert_eq!((sched_getaffinity(pid).unwrap(), inside), (set(&split.server), set(&split.server)));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn a_server_is_pinned_with_its_children_and_given_back() {
        let Ok(split) = Split::of_this_machine() else {
            crate::tests::skip("this machine has but one core");
            return;
        };
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 30 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shell.stdout.as_mut().unwrap()), &mut line)
            .unwrap();
        let child = Pid::from_raw(line.trim().parse().unwrap());
        let (own, before) = (sched_getaffinity(None).unwrap(), sched_getaffinity(child).unwrap());

        let pinned = Pinned::pin(&split, &[shell.id()]).unwrap();
        assert_eq!(sched_getaffinity(child).unwrap(), set(&split.server));
        assert_eq!(sched_getaffinity(None).unwrap(), set(&split.client));
        // As where the process ends at once.
        give_back();
        assert_eq!(sched_getaffinity(child).unwrap(), before);
        drop(pinned);
        drop(Pinned::pin(&split, &[shell.id()]).unwrap());
        assert_eq!(sched_getaffinity(child).unwrap(), before);
        assert_eq!(sched_getaffinity(None).unwrap(), own);

        rustix::process::kill_process(child.unwrap(), rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
    }
}
