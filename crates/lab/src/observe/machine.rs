//! Facts of the machine that make its figures differ from another's, as name and value.
//!
//! A fact that can't be read is left out.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::cpus::{Cpus, Time};
use crate::record::{LOAD_AT_START, MEMORY_AT_START};

/// The machine's facts, read below `root` (`/`). This takes a third of a second, in which it
/// measures other programs' load: call it before the first client runs.
pub fn facts(root: &Path) -> Vec<(String, String)> {
    let machine = Machine(root);
    let facts = [
        ("CPU", machine.cpu()),
        ("topology", machine.topology()),
        ("CPU limit", machine.cpu_limit()),
        ("memory", machine.memory("MemTotal")),
        (MEMORY_AT_START, machine.memory("MemAvailable")),
        ("huge pages", machine.huge_pages()),
        ("kernel", machine.kernel()),
        ("governor", machine.governor()),
        ("virtualisation", machine.virtualisation()),
        (LOAD_AT_START, machine.load()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

struct Machine<'a>(&'a Path);

impl Machine<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    }

    /// The value of the first line `name : value`.
    fn value(&self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path)?;
        let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
    }

    /// The entries of a folder called `prefix` and a number.
    fn numbered(&self, path: &str, prefix: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(path)) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let numbered =
            |name: &String| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        names.filter(numbered).map(|name| format!("{path}/{name}")).collect()
    }

    fn cpu(&self) -> Option<String> {
        // ARM's kernels give no name, only numbers.
        self.value("proc/cpuinfo", "model name").or_else(|| {
            let part = self.value("proc/cpuinfo", "CPU part")?;
            Some(format!("implementer {}, part {part}", self.value("proc/cpuinfo", "CPU implementer")?))
        })
    }

    fn topology(&self) -> Option<String> {
        let (mut sockets, mut cores, mut threads) = (BTreeSet::new(), BTreeSet::new(), 0);
        for cpu in self.numbered("sys/devices/system/cpu", "cpu") {
            // A CPU that is offline has no topology.
            let Some(core) = self.text(&format!("{cpu}/topology/core_id")) else { continue };
            let socket = self.text(&format!("{cpu}/topology/physical_package_id")).unwrap_or_default();
            threads += 1;
            sockets.insert(socket.clone());
            cores.insert((socket, core));
        }
        let nodes = self.numbered("sys/devices/system/node", "node").len().max(1);
        (threads > 0).then(|| {
            let parts =
                [(sockets.len(), "socket"), (cores.len(), "core"), (threads, "thread"), (nodes, "NUMA node")];
            parts.map(|(count, what)| counted(count, what)).join(", ")
        })
    }

    /// A container's share of the CPUs.
    fn cpu_limit(&self) -> Option<String> {
        let text = self.text("sys/fs/cgroup/cpu.max")?;
        let (quota, period) = text.split_once(' ')?;
        let cpus = quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?;
        Some(format!("{cpus:.1} CPUs by cgroup"))
    }

    fn memory(&self, name: &str) -> Option<String> {
        let kib = self.value("proc/meminfo", name)?.strip_suffix(" kB")?.parse::<f64>().ok()?;
        Some(format!("{:.1} GiB", kib / 1024.0 / 1024.0))
    }

    fn huge_pages(&self) -> Option<String> {
        let reserved = self.value("proc/meminfo", "HugePages_Total")?;
        let size = self.value("proc/meminfo", "Hugepagesize").unwrap_or_default();
        // The chosen word is in brackets.
        let transparent = self
            .text("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_string()))
            .unwrap_or("unknown".into());
        Some(format!("{reserved} reserved of {size}, transparent ones: {transparent}"))
    }

    fn kernel(&self) -> Option<String> {
        Some(format!("{} {}", self.text("proc/sys/kernel/ostype")?, self.text("proc/sys/kernel/osrelease")?))
    }

    fn governor(&self) -> Option<String> {
        let policies = self.numbered("sys/devices/system/cpu/cpufreq", "policy");
        let governors: BTreeSet<String> =
            policies.iter().filter_map(|policy| self.text(&format!("{policy}/scaling_governor"))).collect();
        if governors.is_empty() {
            return Some("none: the clock is not the kernel's to set".into());
        }
        let boost = match self.text("sys/devices/system/cpu/cpufreq/boost").as_deref() {
            Some("1") => ", boost on",
            Some("0") => ", boost off",
            _ => "",
        };
        Some(governors.into_iter().collect::<Vec<_>>().join(", ") + boost)
    }

    fn virtualisation(&self) -> Option<String> {
        let flags = self.value("proc/cpuinfo", "flags")?;
        if !flags.split(' ').any(|flag| flag == "hypervisor") {
            return Some("none".into());
        }
        let maker = self.text("sys/class/dmi/id/sys_vendor");
        let product = self.text("sys/class/dmi/id/product_name");
        let named: Vec<String> = [maker, product].into_iter().flatten().collect();
        Some(if named.is_empty() {
            "a virtual machine".into()
        } else {
            format!("a virtual machine: {}", named.join(" "))
        })
    }

    fn load(&self) -> Option<String> {
        const WHILE: Duration = Duration::from_millis(300);
        let before = self.cpus()?;
        std::thread::sleep(WHILE);
        let busy = 1.0 - self.cpus()?.idle_since(before).unwrap_or(1.0);
        let average = self.text("proc/loadavg")?;
        let minute = average.split(' ').next()?;
        Some(format!("{:.0}% of the CPUs busy, load average {minute}", busy * 100.0))
    }

    fn cpus(&self) -> Option<Time> {
        Some(Cpus::parse(&self.text("proc/stat")?).time())
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn fact(facts: &[(String, String)], name: &str) -> Option<String> {
        facts.iter().find(|fact| fact.0 == name).map(|fact| fact.1.clone())
    }

    #[test]
    fn two_sockets_of_two_cores_of_two_threads() {
        let mut files = vec![
            (
                "proc/cpuinfo".to_string(),
                "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu sse\n".to_string(),
            ),
            (
                "proc/meminfo".into(),
                "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\nHugePages_Total: 8\nHugepagesize: 2048 kB\n"
                    .into(),
            ),
            ("sys/kernel/mm/transparent_hugepage/enabled".into(), "always [madvise] never\n".into()),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor".into(), "performance\n".into()),
            ("sys/devices/system/cpu/cpufreq/boost".into(), "1\n".into()),
            ("sys/devices/system/cpu/cpuidle/x".into(), String::new()),
            ("sys/devices/system/node/node0/x".into(), String::new()),
            ("sys/devices/system/node/node1/x".into(), String::new()),
            ("sys/fs/cgroup/cpu.max".into(), "250000 100000\n".into()),
        ];
        for cpu in 0..8 {
            let place = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            files.push((format!("{place}/core_id"), format!("{}\n", cpu % 2)));
            files.push((format!("{place}/physical_package_id"), format!("{}\n", cpu / 4)));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let facts = facts(machine(&files).path());
        let expected = [
            ("CPU", "Some CPU @ 2 GHz"),
            ("topology", "2 sockets, 4 cores, 8 threads, 2 NUMA nodes"),
            ("CPU limit", "2.5 CPUs by cgroup"),
            ("memory", "2.0 GiB"),
            (MEMORY_AT_START, "1.0 GiB"),
            ("huge pages", "8 reserved of 2048 kB, transparent ones: madvise"),
            ("governor", "performance, boost on"),
            ("virtualisation", "none"),
        ];
        for (name, value) in expected {
            assert_eq!(fact(&facts, name).as_deref(), Some(value), "{facts:?}");
        }
        assert_eq!(fact(&facts, "kernel"), None, "what can't be read is left out");
    }

    #[test]
    fn a_machine_without_anything_has_no_topology() {
        let facts = facts(machine(&[("sys/fs/cgroup/cpu.max", "max 100000\n")]).path());
        assert_eq!(
            facts,
            [("governor".to_string(), "none: the clock is not the kernel's to set".to_string())]
        );
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let facts = facts(Path::new("/"));
        for name in ["topology", "memory", MEMORY_AT_START, "kernel", LOAD_AT_START] {
            assert!(fact(&facts, name).is_some(), "{facts:?}");
        }
    }
}
