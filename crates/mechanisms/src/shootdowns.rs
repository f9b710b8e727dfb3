//! The machine's count of TLB shoot-downs: interrupts by which one CPU makes another one forget a
//! translation.
//!
//! The count is the whole machine's. On a quiet machine it is the measured program's.

use std::fs;

/// Shoot-downs received since the machine's start, by all CPUs together. `None` where the kernel
/// does not count them.
pub(crate) fn count() -> Option<u64> {
    of(&fs::read_to_string("/proc/interrupts").ok()?)
}

/// The sum of the line `TLB` of `/proc/interrupts`: a number for each CPU, then words.
fn of(interrupts: &str) -> Option<u64> {
    let line = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(line.split_whitespace().map_while(|word| word.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_sum_over_cpus() {
        let text = "           CPU0       CPU1\n LOC:   10   20   Local timer interrupts\n \
                    TLB:    1004576    1035893   TLB shootdowns\n";
        assert_eq!(of(text), Some(2_040_469));
        assert_eq!(of("IPI0:  1  2  Rescheduling interrupts\n"), None);
    }
}
