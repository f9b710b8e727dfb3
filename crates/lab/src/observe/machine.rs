//! Facts of the machine that make its figures differ from another's, as name and value.
//!
//! A fact that can't be read is left out.

use std::process::Command;

use procfs::{Current as _, LoadAverage, Meminfo};

use crate::record::{COMMIT, LOAD_AT_START, MEMORY_AT_START};

/// The machine's facts. The load is others' only before the first client runs.
pub fn facts() -> Vec<(String, String)> {
    let lscpu = Command::new("lscpu").env("LC_ALL", "C").output();
    let lscpu = lscpu.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let memory = Meminfo::current().ok();
    let memory = memory.as_ref();
    let [cpu, topology, virtualisation] = cpus(&lscpu);
    let facts = [
        ("CPU", cpu),
        ("topology", topology),
        ("CPU limit", text("/sys/fs/cgroup/cpu.max").and_then(|limit| cpu_limit(&limit))),
        ("memory", memory.map(|memory| gib(memory.mem_total))),
        (MEMORY_AT_START, memory.and_then(|memory| memory.mem_available).map(gib)),
        ("huge pages", memory.and_then(huge_pages)),
        ("kernel", Some(kernel())),
        ("governor", Some(governor())),
        ("virtualisation", virtualisation),
        // The script that measures knows it.
        (COMMIT, std::env::var("ALLCORE_COMMIT").ok().filter(|commit| !commit.is_empty())),
        (LOAD_AT_START, LoadAverage::current().ok().map(|load| format!("load average {}", load.one))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

fn text(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The CPUs' name, topology and hypervisor, from the lines `name: value` of lscpu.
fn cpus(lscpu: &str) -> [Option<String>; 3] {
    let value = |name: &str| {
        let mut pairs = lscpu.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
    };
    let parts = [("Socket(s)", "sockets"), ("Core(s) per socket", "cores each"), ("CPU(s)", "CPUs")];
    let parts = parts.into_iter().chain([("NUMA node(s)", "NUMA nodes")]);
    let counted: Option<Vec<String>> =
        parts.map(|(name, what)| Some(format!("{what}: {}", value(name)?))).collect();
    let virtual_by = value("Hypervisor vendor").map(|vendor| format!("a virtual machine: {vendor}"));
    [
        value("Model name"),
        counted.map(|counted| counted.join(", ")),
        value("Model name").map(|_| virtual_by.unwrap_or("none".into())),
    ]
}

/// A container's share of the CPUs, from its quota and period.
fn cpu_limit(limit: &str) -> Option<String> {
    let (quota, period) = limit.split_once(' ')?;
    let cpus = quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?;
    Some(format!("{cpus:.1} CPUs by cgroup"))
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

fn huge_pages(memory: &Meminfo) -> Option<String> {
    let (reserved, size) = (memory.hugepages_total?, memory.hugepagesize? >> 10);
    let words = text("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    // The chosen word is in brackets.
    let transparent = words.split(['[', ']']).nth(1).unwrap_or("unknown");
    Some(format!("{reserved} reserved of {size} kB, transparent ones: {transparent}"))
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

fn governor() -> String {
    let Some(governor) = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") else {
        return "none: the clock is not the kernel's to set".into();
    };
    match text("/sys/devices/system/cpu/cpufreq/boost").as_deref() {
        Some("1") => governor + ", boost on",
        Some("0") => governor + ", boost off",
        _ => governor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_described_as_lscpu_counts_them() {
        let lscpu = "CPU(s):                  8\n  On-line CPU(s) list:   0-7\nModel name:              Some CPU @ 2 GHz\n\
                     Core(s) per socket:      2\nSocket(s):               2\nNUMA node(s):            2\n";
        let topology = "sockets: 2, cores each: 2, CPUs: 8, NUMA nodes: 2";
        let expected =
            |virtualisation| ["Some CPU @ 2 GHz", topology, virtualisation].map(|fact| Some(fact.into()));
        assert_eq!(cpus(lscpu), expected("none"));
        assert_eq!(cpus(&format!("{lscpu}Hypervisor vendor:  KVM\n")), expected("a virtual machine: KVM"));
        assert_eq!(cpus(""), [const { None }; 3], "what can't be read is left out");
        assert_eq!(cpu_limit("250000 100000").as_deref(), Some("2.5 CPUs by cgroup"));
        assert_eq!(cpu_limit("max 100000"), None);
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let facts = facts();
        for name in ["memory", MEMORY_AT_START, "huge pages", "kernel", "governor", LOAD_AT_START] {
            assert!(facts.iter().any(|(fact, value)| fact == name && !value.is_empty()), "{facts:?}");
        }
    }
}
