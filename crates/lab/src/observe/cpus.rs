//! The machine's CPUs: the time each has passed, the idle part of it, and the CPUs a process may
//! use.

use std::collections::BTreeMap;
use std::ops::Add;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Time of CPUs since the machine began, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) all: u64,
    /// The idle part of it.
    pub(super) idle: u64,
}

impl Add for Time {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { all: self.all + other.all, idle: self.idle + other.idle }
    }
}

impl Time {
    /// The idle part of the time since `before`; none where no time has passed.
    pub(super) fn idle_since(self, before: Self) -> Option<f64> {
        let passed = self.all.saturating_sub(before.all);
        // The kernel's idle counter runs backwards at times: time that waits for a disk is part of
        // it.
        let idle = self.idle.saturating_sub(before.idle).min(passed);
        (passed > 0).then(|| idle as f64 / passed as f64)
    }
}

/// The CPUs that are online, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cpus(BTreeMap<usize, Time>);

impl Cpus {
    pub(super) fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string("/proc/stat");
        let cpus = Self::parse(&text.map_err(|error| format!("/proc/stat can't be read: {error}"))?);
        if cpus.0.is_empty() { Err("/proc/stat can't be understood".into()) } else { Ok(cpus) }
    }

    /// Parses lines such as `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.
    /// CPUs that are offline have none.
    fn parse(text: &str) -> Self {
        let time = |line: &str| {
            let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            let ticks: Vec<u64> = ticks.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
            // The user column includes guests' time.
            let all = ticks.iter().take(8).sum();
            Some((cpu.parse().ok()?, Time { all, idle: ticks.get(3)? + ticks.get(4).unwrap_or(&0) }))
        };
        Self(text.lines().filter_map(time).collect())
    }

    pub(super) fn time(&self) -> Time {
        self.0.values().fold(Time::default(), |sum, time| sum + *time)
    }

    /// The CPUs that a process (by default the calling thread) may use. `None` where it may use
    /// all, or the kernel does not tell.
    pub(super) fn of(&self, process: Option<u32>) -> Option<Time> {
        let process = match process {
            Some(process) => Some(Pid::from_raw(i32::try_from(process).ok()?)?),
            None => None,
        };
        self.within(&sched_getaffinity(process).ok()?)
    }

    fn within(&self, allowed: &CpuSet) -> Option<Time> {
        let own = || self.0.iter().filter(|(cpu, _)| **cpu < CpuSet::MAX_CPU && allowed.is_set(**cpu));
        let count = own().count();
        let is_part = count > 0 && count < self.0.len();
        is_part.then(|| own().fold(Time::default(), |sum, (_, time)| sum + *time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 0 30 300 30 0 0 0 0 0\n\
                        cpu0 10 1 10 100 10 1 2 3 9 9\n\
                        cpu2 20 0 20 200 20\n\
                        intr 5 cpu\n";

    #[test]
    fn times_are_read_by_cpu() {
        let cpus = Cpus::parse(STAT);
        let (first, third) = (Time { all: 137, idle: 110 }, Time { all: 260, idle: 220 });
        assert_eq!(cpus.0, BTreeMap::from([(0, first), (2, third)]));
        assert_eq!(cpus.time(), first + third);
        let set = |numbers: &[usize]| {
            let mut set = CpuSet::new();
            numbers.iter().for_each(|number| set.set(*number));
            set
        };
        assert_eq!(cpus.within(&set(&[2, 3])), Some(third));
        assert_eq!(cpus.within(&set(&[0, 1, 2])), None, "all that are on");
        assert_eq!(cpus.within(&set(&[5])), None);
        assert!(Cpus::parse("intr 5").0.is_empty());
    }

    #[test]
    fn idle_is_a_part_of_the_time_passed() {
        let time = |all, idle| Time { all, idle };
        assert_eq!(time(200, 80).idle_since(time(100, 50)), Some(0.3));
        assert_eq!(time(100, 50).idle_since(time(100, 50)), None);
        assert_eq!(time(200, 40).idle_since(time(100, 50)), Some(0.0));
    }

    #[test]
    fn this_machines_cpus_pass_time() {
        let cpus = Cpus::read().unwrap();
        assert!(cpus.time().all > 0 && cpus.time().idle <= cpus.time().all);
        assert_eq!(cpus.of(Some(u32::MAX)), None, "no process");
    }
}
