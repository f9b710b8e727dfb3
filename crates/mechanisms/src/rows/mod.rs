//! The rows: for each mechanism its report, its arms, and the machines that can show it.
//!
//! A row's file has the operation that every arm repeats, and the checks of it.

mod clean_list;
mod client_random;
mod clock_hand;
mod fault_path;
mod file_lock;
mod free_queues;
mod latch;
mod needs_buffer;
mod no_remap;
mod page_tables;
mod pin;
mod pinned_memory;
mod preload;
mod relation_size;
mod run_queue;
mod semaphore;
mod sleep_lock;
mod snapshot;
mod socket;
mod spin;
mod title;

use std::hint::black_box;

use crate::round::Subject;

/// Every row, in the order of the reports.
pub(crate) const ROWS: &[Row] = &[
    spin::ROW,
    sleep_lock::ROW,
    latch::ROW,
    pin::ROW,
    clock_hand::ROW,
    snapshot::ROW,
    needs_buffer::ROW,
    clean_list::ROW,
    free_queues::ROW,
    fault_path::ROW,
    preload::ROW,
    pinned_memory::ROW,
    page_tables::ROW,
    no_remap::ROW,
    semaphore::ROW,
    run_queue::ROW,
    socket::ROW,
    relation_size::ROW,
    file_lock::ROW,
    title::ROW,
    client_random::ROW,
];

/// A mechanism.
#[derive(Debug)]
pub(crate) struct Row {
    /// The name on the command line.
    pub id: &'static str,
    /// Where the mechanism was published.
    pub report: &'static str,
    /// The stock state and the fix, in a line.
    pub about: &'static str,
    /// The operation that every arm repeats.
    pub operation: &'static str,
    /// The machine that the published gain needs, named before the run. Absent for a row that two
    /// cores can show.
    pub needs: Option<Machine>,
    /// The file or folder of its variants.
    pub code: &'static str,
    /// The first one is the stock state. A row whose engine type needs a server has no own arm.
    pub arms: &'static [Arm],
}

/// A machine that shows the gain of a published fix: how many it has of what, on the report's
/// machine, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Machine {
    /// Threads that run at once: many cores.
    Cores(usize, &'static str),
    /// Cache lines that move between NUMA nodes, or between sockets: several of them.
    Nodes(usize, &'static str),
}

impl Machine {
    /// The mark of its row.
    pub fn words(self) -> String {
        match self {
            Self::Cores(cores, why) => format!("needs many cores, {cores} in the report ({why})"),
            Self::Nodes(nodes, why) => format!("needs several NUMA nodes, {nodes} in the report ({why})"),
        }
    }
}

/// An implementation of a row's mechanism.
#[derive(Debug)]
pub(crate) struct Arm {
    /// Its name.
    pub name: &'static str,
    /// Its part in the comparison.
    pub part: Part,
    /// Makes the structure for a number of threads.
    pub start: fn(usize) -> Started,
}

/// A structure to measure. `Err`: a line that says why this machine has none.
pub(crate) type Started = Result<Box<dyn Subject>, String>;

/// The structure counts the atomic changes that it repeats.
const COUNTED: bool = true;
/// The kernel or the C library repeats them, and does not count.
const UNCOUNTED: bool = false;

/// An arm's part in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// The state that stopped scaling.
    Stock,
    /// Between the two.
    Step,
    /// The published fix.
    Published,
    /// The engine's own type.
    Allcore,
}

impl Part {
    /// Its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Step => "step",
            Self::Published => "published",
            Self::Allcore => "allcore",
        }
    }
}

/// Computes for about 2 ns a step, in registers alone: six dependent operations, which the compiler
/// cannot shorten.
#[inline]
fn compute(steps: u32) {
    let mut state = black_box(1u64);
    for _ in 0..steps {
        state = next_random(state);
    }
    black_box(state);
}

/// The next number of a sequence without 0 (xorshift).
#[inline]
fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::time::Duration;

    use sync::atomic::AtomicBool;

    use super::*;
    use crate::round::{Outcome, round};

    /// Arms that a machine may refuse: the last word of their names, with a part of the reason.
    const MAY_REFUSE: [(&str, &str); 3] =
        [("huge", "no transparent huge pages"), ("huge", "free huge pages"), ("reserved", "free huge pages")];

    #[test]
    fn a_row_begins_with_its_stock_state_and_has_a_fix() {
        let ids: BTreeSet<_> = ROWS.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), ROWS.len(), "a row's name is its own");
        for row in ROWS {
            let is_only = |part| row.arms.iter().filter(|arm| arm.part == part).count() == 1;
            assert!(row.arms[0].part == Part::Stock && is_only(Part::Stock), "{}", row.id);
            // The fix of `run-queue` is the kernel's scheduler.
            let is_fix = |arm: &Arm| matches!(arm.part, Part::Published | Part::Allcore);
            assert!(row.arms.iter().any(is_fix), "{}", row.id);
            let published = row.arms.iter().filter(|arm| arm.part == Part::Published);
            assert!(published.count() <= 1, "{}: the row is judged by one published arm", row.id);
            let names: BTreeSet<_> = row.arms.iter().map(|arm| arm.name).collect();
            assert_eq!(names.len(), row.arms.len(), "{}", row.id);
            let code = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(row.code);
            assert!(code.exists(), "{}: {}", row.id, row.code);
        }
    }

    #[test]
    fn each_arm_of_each_row_passes_its_own_check_with_more_threads_than_cores() {
        let threads = 6.max(std::thread::available_parallelism().map_or(1, usize::from) + 2);
        for (row, arm) in ROWS.iter().flat_map(|row| row.arms.iter().map(move |arm| (row, arm))) {
            let name = format!("{}, {}", row.id, arm.name);
            let done = match (arm.start)(threads) {
                Ok(subject) => {
                    round(&*subject, threads, 0, Duration::from_millis(20), &AtomicBool::new(false))
                }
                Err(reason) => Ok(Outcome::Refused(reason)),
            };
            match done.unwrap_or_else(|fault| panic!("{name}: {fault}")) {
                Outcome::Counted(_) => {}
                Outcome::Refused(reason) => {
                    let may = |(word, part): &(&str, &str)| {
                        arm.name.split(' ').next_back() == Some(word) && reason.contains(part)
                    };
                    assert!(MAY_REFUSE.iter().any(may), "{name} is refused: {reason}");
                    // Not by a macro, whose text the harness keeps of a test that passes.
                    let _ = writeln!(std::io::stderr(), "skipped: {name}, because {reason}");
                }
                Outcome::Stopped => panic!("{name}: nobody stopped the round"),
            }
        }
    }
}
