//! Starting a server on the CPUs of one NUMA node (`node=N`). Its memory comes from that node too,
//! as the kernel takes it from the node of the CPU that first touches it.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs `start`, which starts a process, on the CPUs of a node, as far as this thread may use them.
///
/// # Errors
/// A line: there is no such node, or this program may use none of its CPUs; and those of `start`.
pub(super) fn on<T>(node: &str, start: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let failed = |error| format!("CPU affinity can't be set: {error}");
    let before = sched_getaffinity(None).map_err(failed)?;
    let number: usize = node.parse().map_err(|_| format!("node={node}: write the number of a NUMA node"))?;
    let list = fs::read_to_string(format!("/sys/devices/system/node/node{number}/cpulist"));
    let list = list.map_err(|_| format!("node={node}: this machine has no such NUMA node"))?;
    let mut own = CpuSet::new();
    cpus(&list).filter(|cpu| before.is_set(*cpu)).for_each(|cpu| own.set(cpu));
    if own.count() == 0 {
        return Err(format!("node={node}: the servers may use none of its CPUs"));
    }
    sched_setaffinity(None, &own).map_err(failed)?;
    let _back = Back(before);
    start()
}

/// Gives this thread its CPUs back, also after a panic.
struct Back(CpuSet);

impl Drop for Back {
    fn drop(&mut self) {
        // The thread had them before, so the kernel does not refuse.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// The CPUs of a list of the kernel, as `0-3,8`, as far as a set has room for them.
fn cpus(list: &str) -> impl Iterator<Item = usize> {
    list.trim().split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last.saturating_add(1).min(CpuSet::MAX_CPU),
            _ => 0..0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_kernel_has_ranges_and_single_numbers() {
        assert_eq!(cpus("0-3,8,10-11\n").collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpus("\n").count(), 0, "a node of memory alone has no CPU");
    }

    #[test]
    fn a_process_starts_on_the_cpus_of_its_node() {
        if fs::metadata("/sys/devices/system/node/node0/cpulist").is_err() {
            println!("skipped: the kernel shows no NUMA nodes");
            return;
        }
        let before = sched_getaffinity(None).unwrap();
        let count = on("0", || Ok(sched_getaffinity(None).unwrap().count())).unwrap();
        assert!(count > 0 && count <= before.count(), "{count}");
        assert_eq!(sched_getaffinity(None).unwrap().count(), before.count());
        let refused = on("4095", || Ok(())).unwrap_err();
        assert_eq!(refused, "node=4095: this machine has no such NUMA node");
        let refused = on("x", || Ok(())).unwrap_err();
        assert_eq!(refused, "node=x: write the number of a NUMA node");
    }
}
