//! CPU time of a thread.

use rustix::time::{ClockId, clock_gettime};

use crate::record::CpuTime;

/// CPU time of a thread since it began. The sum is exact; its division is known to a tick of the
/// kernel (10 ms).
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    seconds: f64,
    user_ticks: u64,
    system_ticks: u64,
}

impl Reading {
    /// Reads the calling thread's CPU time.
    pub(super) fn of_this_thread() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let stat = std::fs::read_to_string("/proc/thread-self/stat");
        let (user_ticks, system_ticks) = stat.ok().and_then(|stat| ticks(&stat)).unwrap_or_default();
        Self { seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9, user_ticks, system_ticks }
    }

    /// CPU time between two readings; time below a tick counts as user time.
    pub(super) fn until(&self, later: &Self) -> CpuTime {
        let seconds = later.seconds - self.seconds;
        let user = later.user_ticks - self.user_ticks;
        let system = later.system_ticks - self.system_ticks;
        let share = if user + system > 0 { system as f64 / (user + system) as f64 } else { 0.0 };
        CpuTime { user: seconds * (1.0 - share), system: seconds * share }
    }
}

/// User and system ticks, which follow the name in brackets and eleven other fields.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_a_name_with_brackets_and_spaces() {
        let stat = "42 (a ) b) R 1 2 3 4 5 6 7 8 9 10 77 33 0 0 20 0";
        assert_eq!(ticks(stat), Some((77, 33)));
        assert_eq!(ticks("42 (a"), None);
    }

    #[test]
    fn a_thread_that_works_is_seen_working() {
        let before = Reading::of_this_thread();
        // The machine may keep this thread from working for long: allow 60 s.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let used = || {
            let used = before.until(&Reading::of_this_thread());
            used.user + used.system
        };
        while used() < 0.001 {
            assert!(std::time::Instant::now() < until, "{}", used());
        }
        let before = Reading { seconds: 1.0, user_ticks: 10, system_ticks: 20 };
        let used = before.until(&Reading { seconds: 3.0, user_ticks: 11, system_ticks: 23 });
        assert_eq!(used, CpuTime { user: 0.5, system: 1.5 });
    }
}
