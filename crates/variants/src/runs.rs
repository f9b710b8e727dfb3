//! How often the engine has run each variant that `--variant` names.
//!
//! A hook of the engine counts where it runs the variant in place of the engine's own mechanism, or
//! beside it. So a hook that the engine no longer passes shows as 0. What must hold: counting moves
//! no cache line between cores. Each slot of threads has a line of its own. An addition is a load
//! and a store, which a variant pays and the engine's own mechanism does not. Two threads that
//! share a slot may lose a count, so a sum is exact where all threads are workers.

use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, LazyLock, slot};

use crate::chosen::{Choice, ROWS, Row};

/// Slots of threads: as many as workers of a large machine.
const SLOTS: usize = 512;

/// The counts of one slot, a row each.
type Counts = CachePadded<[AtomicU64; ROWS.len()]>;

static RUNS: LazyLock<Box<[Counts]>> =
    LazyLock::new(|| (0..SLOTS).map(|_| CachePadded::new([0; ROWS.len()].map(AtomicU64::new))).collect());

/// Counts a run of the row's variant.
#[inline]
pub fn count(row: Row) {
    let runs = &RUNS[slot::current() % SLOTS][row as usize];
    // Relaxed, both: a count that orders nothing.
    runs.store(runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The runs of a row's variant until now.
fn of(row: Row) -> u64 {
    // Relaxed: as above.
    RUNS.iter().map(|slot| slot[row as usize].load(Ordering::Relaxed)).sum()
}

/// The runs of each row that a choice replaces, as `pin 120, latch 0`, or `none` without such a
/// row.
pub fn line(choice: &Choice) -> String {
    let words: Vec<String> = choice.replaced().map(|(row, name)| format!("{name} {}", of(row))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_runs_of_the_rows_that_are_replaced() {
        (0..3).for_each(|_| count(Row::Title));
        std::thread::spawn(|| count(Row::Title)).join().unwrap();
        let choice: Choice = "title=stock,socket=stock".parse().unwrap();
        assert_eq!(line(&choice), "title 4, socket 0");
        assert_eq!(line(&Choice::default()), "none");
    }
}
