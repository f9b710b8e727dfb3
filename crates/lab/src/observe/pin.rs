//! Separate CPUs for client and server (`--pin`), so that the kernel moves neither, and neither
//! takes the other's caches. The lab starts its servers on theirs. It leaves other servers alone.

use std::collections::BTreeMap;
use std::path::Path;

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
    pub(crate) fn of_this_machine() -> Result<Self, String> {
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
    /// for these; then the calling thread returns to its own.
    pub(crate) fn on_servers<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        let failed = |error| format!("CPU affinity can't be set: {error}");
        let before = sched_getaffinity(None).map_err(failed)?;
        sched_setaffinity(None, &set(&self.server)).map_err(failed)?;
        let done = work();
        sched_setaffinity(None, &before).map_err(failed)?;
        Ok(done)
    }

    /// Pins the calling thread, and threads it starts later, to the client's CPUs.
    pub(crate) fn pin_client(&self) -> Result<(), String> {
        sched_setaffinity(None, &set(&self.client))
            .map_err(|error| format!("CPU affinity can't be set: {error}"))
    }
}

fn set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    set
}

#[cfg(test)]
mod tests {
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
        let start = || (Spawned::sleeping(), sched_getaffinity(None).unwrap());
        let (child, inside) = split.on_servers(start).unwrap();
        let pid = rustix::process::Pid::from_raw(child.id() as i32);
        assert_eq!((sched_getaffinity(pid).unwrap(), inside), (set(&split.server), set(&split.server)));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
