//! Hardware and software counters of the workers' threads.
//!
//! The first look opens the counters, and they count from then on. Before it they cost nothing.
//! Where the kernel or the processor refuses one, the look gives the reason instead. The next look
//! tries it again, unless the machine has no such counter. What must hold:
//!
//! 1. A count is never a zero that stands for something uncounted.
//! 2. A count never falls from one look to the next, also where it is an estimate.

use std::io;

use sync::Mutex;

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

/// The counts of a thread since the look that opened their counters.
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
    /// Each counter, or the error by which it was refused.
    counters: [io::Result<Counter>; EVENTS],
    /// The highest counts that were shown.
    shown: [u64; EVENTS],
    user_only: bool,
}

/// The counters of each worker, once somebody has looked. A thread that looks holds the lock for
/// some system calls, and nobody else takes it.
#[derive(Debug)]
pub(crate) struct Counters(Box<[Mutex<Option<Opened>>]>);

impl Counters {
    /// Counters of so many workers, none of them open.
    pub(crate) fn new(workers: usize) -> Counters {
        Counters((0..workers).map(|_| Mutex::new(None)).collect())
    }

    /// The counts of a worker, whose thread has this number. Opens the counters at the first look.
    pub(crate) fn look(&self, worker: usize, thread: i32) -> Counts {
        let mut place = self.0[worker].lock();
        let opened = place.get_or_insert_with(Opened::none);
        opened.open(thread);
        opened.read()
    }

    /// The counts of a worker if its counters are open.
    pub(crate) fn opened(&self, worker: usize) -> Option<Counts> {
        self.0[worker].lock().as_mut().map(Opened::read)
    }
}

impl Opened {
    /// No counter, and none refused for good.
    fn none() -> Opened {
        let closed = || Err(io::ErrorKind::NotFound.into());
        Opened { counters: COUNTED.map(|_| closed()), shown: [0; EVENTS], user_only: false }
    }

    /// Opens the counters of a thread that are not open, but for those that the machine does not
    /// have.
    fn open(&mut self, thread: i32) {
        for (counter, (event, _)) in self.counters.iter_mut().zip(COUNTED) {
            let again = counter.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Unsupported);
            if again {
                *counter = open(event, thread, &mut self.user_only);
            }
        }
    }

    /// The counts, and the reasons for those that are refused.
    fn read(&mut self) -> Counts {
        let mut refused = Vec::new();
        let events = std::array::from_fn(|at| {
            let (name, shown) = (COUNTED[at].1, &mut self.shown[at]);
            let count = match &self.counters[at] {
                Ok(counter) => counter.read().map_err(|error| reason(&error)),
                Err(error) => Err(reason(error)),
            };
            match count.and_then(|count| count.ok_or_else(|| "it has had no turn yet".to_owned())) {
                Ok(count) => {
                    *shown = count.max(*shown);
                    (name, Some(*shown))
                }
                Err(why) => {
                    refused.push((name, why));
                    (name, None)
                }
            }
        });
        Counts { events, user_only: self.user_only, refused: told(&refused) }
    }
}

/// Opens a counter of a thread. Where the kernel forbids looks into itself, it counts the program
/// alone, and `user_only` is set. A context switch or a move happens in the kernel, so those two
/// stay refused: they would count nothing.
fn open(event: Event, thread: i32, user_only: &mut bool) -> io::Result<Counter> {
    let is_in_kernel = matches!(event, Event::ContextSwitches | Event::Migrations);
    Counter::open(event, thread, true).or_else(|error| {
        if is_in_kernel || error.kind() != io::ErrorKind::PermissionDenied {
            return Err(error);
        }
        let counter = Counter::open(event, thread, false)?;
        *user_only = true;
        Ok(counter)
    })
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
        let missing = || io::ErrorKind::Unsupported.into();
        let forbidden = || io::ErrorKind::PermissionDenied.into();
        let full = || io::Error::other("no descriptor is left");
        let refused: [fn() -> io::Error; EVENTS] =
            [missing, missing, missing, missing, full, forbidden, forbidden, full];
        let counters = refused.map(|error| Err(error()));
        let mut opened = Opened { counters, shown: [0; EVENTS], user_only: true };
        let Counts { events, refused, .. } = opened.read();
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

    #[test]
    fn a_refused_counter_is_tried_again_unless_the_machine_has_none() {
        let mut opened = Opened::none();
        opened.counters[4] = Err(io::Error::other("no descriptor is left"));
        opened.counters[7] = Err(io::ErrorKind::Unsupported.into());
        let missing = opened.read().refused.unwrap();
        assert!(missing.contains("no descriptor is left"), "{missing}");
        opened.open(0);
        let refused = opened.read().refused.unwrap();
        assert!(!refused.contains("no descriptor is left"), "{refused}");
        assert!(refused.contains("page_faults: this machine has no such counter"), "{refused}");
    }

    #[test]
    fn a_count_does_not_fall() {
        let mut opened = Opened::none();
        opened.open(0);
        opened.shown = [u64::MAX; EVENTS];
        let counts = opened.read();
        assert!(counts.events.iter().all(|(_, count)| count.is_none_or(|count| count == u64::MAX)));
    }
}
