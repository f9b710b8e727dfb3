//! The kernel's account of a thread or of the whole process: page faults, processor time, and the
//! processor it ran on last.

use std::path::PathBuf;
use std::time::Duration;

use crate::os;

/// The account, since the thread or the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Page faults that needed no disk.
    pub(crate) minor: u64,
    /// Page faults that waited for a disk.
    pub(crate) major: u64,
    /// Processor time in the program's own code, in steps of 10 ms.
    pub(crate) user: Duration,
    /// Processor time in the kernel, in steps of 10 ms.
    pub(crate) system: Duration,
    /// The processor it ran on last.
    pub(crate) processor: usize,
}

impl Stat {
    /// The account of a thread of this process, by its number. `None` where the system does not
    /// tell.
    pub(crate) fn of_thread(number: i32) -> Option<Stat> {
        Self::read(format!("/proc/self/task/{number}/stat").into())
    }

    /// The sum for all threads that the process ever had.
    pub(crate) fn of_process() -> Option<Stat> {
        Self::read("/proc/self/stat".into())
    }

    fn read(path: PathBuf) -> Option<Stat> {
        Self::parse(&os::process::text(path).ok()?, os::process::ticks_a_second())
    }

    fn parse(line: &str, ticks: u64) -> Option<Stat> {
        // A name may hold spaces and brackets; behind it stand the state and numbers.
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let time = |place: usize| Some(Duration::from_millis(number(place)? * 1000 / ticks.max(1)));
        Some(Stat {
            minor: number(7)?,
            major: number(9)?,
            user: time(11)?,
            system: time(12)?,
            processor: number(36)? as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_stand_behind_any_name() {
        let line = "77 (a ) b) R 1 77 77 0 -1 4194304 1234 99 56 7 150 20 0 0 20 0 8 0 100 1 1 1 1 1 1 1 1 \
                    1 1 1 1 1 0 0 17 3 0 0 0 0 0";
        let stat = Stat {
            minor: 1234,
            major: 56,
            user: Duration::from_millis(1500),
            system: Duration::from_millis(200),
            processor: 3,
        };
        assert_eq!(Stat::parse(line, 100), Some(stat));
        assert_eq!(Stat::parse("77 (a", 100), None);
        assert_eq!(Stat::parse("77 (a) R 1 77", 100), None);
    }
}
