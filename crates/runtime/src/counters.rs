//! Hardware and software counters of the workers' threads.
//!
//! The first look opens the counters, and they count from then on. Before it they cost nothing.
//! Where the kernel or the processor refuses one, the look gives the reason instead. What must
//! hold: a count is never a zero that stands for something uncounted.

use std::io;

use sync::OnceLock;

use crate::os::counter::{Counter, Event};

/// Number of the counted events: a worker's counters take as many descriptors.
pub const EVENTS: usize = COUNTED.len();

/// The counted events with their names.
const COUNTED: [(Event, &str); 8] = [
    (Event::Cycles, "cycles"),
    (Event::Instructions, "instructions"),
    (Event::CacheMisses, "cache_misses"),
    (Event::NodeLoads, "node_loads"),
    (Event::TaskClock, "task_clock"),
    (Event::ContextSwitches, "context_switches"),
    (Event::Migrations, "migrations"),
    (Event::PageFaults, "page_faults"),
];

/// The counts of a thread since the first look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The counts by name, from the hardware and from the kernel. `task_clock` is in nanoseconds. A
    /// count is none where the counter is refused or had no turn yet.
    pub events: [(&'static str, Option<u64>); EVENTS],
    /// Whether events in the kernel are left out, of all counts but the time.
    pub user_only: bool,
    /// The reasons for refused counters, each behind the names of those it refuses.
    pub refused: Option<String>,
}

/// The opened counters of a worker.
#[derive(Debug)]
struct Opened {
    /// Each counter, or the reason why it was refused.
    counters: [Result<Counter, String>; EVENTS],
    user_only: bool,
}

/// The counters of each worker, once somebody has looked.
#[derive(Debug)]
pub(crate) struct Counters(Box<[OnceLock<Opened>]>);

impl Counters {
    /// Counters of so many workers, none of them open.
    pub(crate) fn new(workers: usize) -> Counters {
        Counters((0..workers).map(|_| OnceLock::new()).collect())
    }

    /// The counts of a worker, whose thread has this number. Opens the counters at the first look.
    pub(crate) fn look(&self, worker: usize, thread: i32) -> Counts {
        read(self.0[worker].get_or_init(|| open(thread)))
    }

    /// The counts of a worker if its counters are open.
    pub(crate) fn opened(&self, worker: usize) -> Option<Counts> {
        self.0[worker].get().map(read)
    }
}

/// Opens the counters of a thread. Where the kernel forbids looks into itself, they count the
/// program alone. A context switch or a move happens in the kernel, so those two stay refused: they
/// would count nothing.
fn open(thread: i32) -> Opened {
    let mut user_only = false;
    let counters = COUNTED.map(|(event, _)| {
        let is_in_kernel = matches!(event, Event::ContextSwitches | Event::Migrations);
        let opened = Counter::open(event, thread, true).or_else(|error| {
            if is_in_kernel || error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            let counter = Counter::open(event, thread, false)?;
            user_only = true;
            Ok(counter)
        });
        opened.map_err(|error| reason(&error))
    });
    Opened { counters, user_only }
}

/// The counts, and the reasons for those that are refused.
fn read(opened: &Opened) -> Counts {
    let mut refused = Vec::new();
    let events = std::array::from_fn(|at| {
        let name = COUNTED[at].1;
        let count = match &opened.counters[at] {
            Ok(counter) => counter.read().map_err(|error| reason(&error)),
            Err(why) => Err(why.clone()),
        };
        match count.and_then(|count| count.ok_or_else(|| "it has had no turn yet".to_owned())) {
            Ok(count) => (name, Some(count)),
            Err(why) => {
                refused.push((name, why));
                (name, None)
            }
        }
    });
    Counts { events, user_only: opened.user_only, refused: told(&refused) }
}

/// The reason for a refusal in words.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Unsupported => "this machine has no such counter".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "the kernel forbids it (kernel.perf_event_paranoid, seccomp)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// `cycles, instructions: why; page_faults: why`.
fn told(refused: &[(&str, String)]) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in refused {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let texts: Vec<String> =
        reasons.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_counter_has_no_count_and_its_reason() {
        let missing = || reason(&io::ErrorKind::Unsupported.into());
        let forbidden = || reason(&io::ErrorKind::PermissionDenied.into());
        let full = || reason(&io::Error::other("no descriptor is left"));
        let refused = [missing, missing, missing, missing, full, forbidden, forbidden, full];
        let opened = Opened { counters: refused.map(|reason| Err(reason())), user_only: true };
        let Counts { events, refused, .. } = read(&opened);
        assert!(events.iter().all(|(_, count)| count.is_none()), "{events:?}");
        assert_eq!(
            refused.as_deref(),
            Some(
                "cycles, instructions, cache_misses, node_loads: this machine has no such counter; \
                 task_clock, page_faults: no descriptor is left; \
                 context_switches, migrations: the kernel forbids it (kernel.perf_event_paranoid, seccomp)"
            )
        );
        assert_eq!(told(&[]), None);
    }
}
