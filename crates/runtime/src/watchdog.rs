//! The watchdog: a thread of its own that notices a worker held by one fiber.
//!
//! Each worker stores the number of its loop's turns, a plain store a turn. A number that stands
//! for longer than [`LIMIT`] while the worker is not asleep shows that it runs code without a safe
//! point. Everything else on that worker waits. The watchdog only reads, so the workers pay nothing
//! else for it. It may report a worker that merely gets no CPU time. Its thread looks at the load
//! of the cores as well (`balance`).

use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;

use crate::balance::{Balance, INTERVAL};
use crate::fiber::core;
use crate::shared::Shared;
use crate::{os, time};

/// Time for which a worker is held before it is reported.
pub const LIMIT: Duration = Duration::from_secs(1);
/// Called with the number of a worker that has been held for this long, and its name in the log.
/// Runs on the watchdog's thread.
pub type Report = dyn Fn(usize, &str, Duration) + Send;

/// State of a worker at the last look.
#[derive(Clone, Copy, Default)]
struct Seen {
    turn: u64,
    since: u64,
}

/// The thread's life: until the runtime exits.
pub(crate) fn watch(shared: &Arc<Shared>, report: &Report) {
    let mut seen = vec![Seen::default(); shared.service() + 1];
    let (mut balance, mut interval) = (Balance::new(shared, time::precise()), INTERVAL);
    // Relaxed: a flag that is looked at again.
    while !shared.exiting.load(Ordering::Relaxed) {
        os::thread::park_timeout(interval);
        let now = time::precise();
        for (core, seen) in seen.iter_mut().enumerate() {
            look(shared, core, seen, now, report);
        }
        interval = balance.look(now);
    }
}

fn look(shared: &Shared, core: usize, seen: &mut Seen, now: u64, report: &Report) {
    // Relaxed: only whether it changes; `held` is information only.
    let turn = shared.turns.get(core).count.load(Ordering::Relaxed);
    let held = shared.held.get(core);
    let was_held = held.load(Ordering::Relaxed) != 0;
    if turn != seen.turn || shared.mailbox(core).mail().is_asleep() {
        if was_held {
            held.store(0, Ordering::Relaxed);
            let lasted = Duration::from_nanos(now.saturating_sub(seen.since));
            let name = shared.name(core);
            log::info!("{name} goes on; it was held for {:.1} s", lasted.as_secs_f64());
        }
        *seen = Seen { turn, since: now };
        return;
    }
    let lasted = Duration::from_nanos(now.saturating_sub(seen.since));
    if lasted >= LIMIT && !was_held {
        held.store(seen.since, Ordering::Relaxed);
        report(core, &shared.name(core), lasted);
    }
}

/// Whether the watchdog has noticed that this worker of the runtime this code runs in is held.
pub fn is_held(core: usize) -> bool {
    // Relaxed: information only.
    core::current().is_some_and(|here| {
        core <= here.shared.service() && here.shared.held.get(core).load(Ordering::Relaxed) != 0
    })
}

/// Whether the watchdog has noticed that every core of the runtime this code runs in is held.
pub fn all_held() -> bool {
    (0..core::core_count()).all(is_held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIo;
    use crate::tests::start_with;

    #[test]
    fn a_held_core_is_reported_once_and_an_idle_one_never() {
        let runtime = start_with(2, FileIo::Threads);
        let (told, hear) = std::sync::mpsc::channel();
        let report = move |_, name: &str, lasted| told.send((name.to_owned(), lasted)).unwrap();
        runtime.watch(Box::new(report)).unwrap();
        let hear = sync::Mutex::new(hear);
        for (worker, expected) in [(1, "core 1"), (2, "the reserve worker"), (3, "the service worker")] {
            // It is held until the report has come, so a slow machine only makes the test longer.
            let (name, lasted) = runtime.call(worker, || {
                let hear = hear.lock();
                let first = hear.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(hear.try_recv().is_err());
                first
            });
            assert_eq!(name, expected);
            assert!(lasted >= LIMIT);
        }
        runtime.shutdown();
    }
}
