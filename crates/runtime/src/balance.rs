//! Looks at the load of the cores four times a second. A core that has been much busier than
//! another one gives it sessions.
//!
//! The watchdog's thread looks. It reads what each worker writes once a turn, or when it sleeps, so
//! a statement costs no core anything for this. It decides by [`crate::load`] and sends the busy
//! core a message. That core picks the sessions ([`crate::net`]).

use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;

use crate::load::{Balancer, LOOKS, Load, Transfer, WHOLE};
use crate::mailbox;
use crate::net::{self, Picked};
use crate::shared::Shared;
use crate::stop;

/// Interval between two looks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);
/// The same while a test has all sessions wander.
const WANDERING: Duration = Duration::from_millis(5);
/// A core that has not got to a message by then drops it: the next decision is due. A turn of a
/// core with 1,000 sessions takes as long.
const VALID: Duration = Duration::from_millis(LOOKS as u64 * 250);

/// Counts of a core at the last look.
#[derive(Clone, Copy, Default)]
struct Seen {
    idle: u64,
    turns: u64,
    waited: u64,
    /// Sessions and fibers that waited in a turn, in parts of [`WHOLE`].
    in_turn: u64,
}

/// The state from look to look.
pub(crate) struct Balance {
    shared: Arc<Shared>,
    balancer: Balancer,
    seen: Box<[Seen]>,
    looked: u64,
}

impl Balance {
    pub(crate) fn new(shared: &Arc<Shared>, now: u64) -> Balance {
        let nodes = shared.nodes();
        let seen = nodes.iter().map(|_| Seen::default()).collect();
        Balance { shared: Arc::clone(shared), balancer: Balancer::new(nodes), seen, looked: now }
    }

    /// Looks at all cores; when to look again.
    pub(crate) fn look(&mut self, now: u64) -> Duration {
        let cores = self.shared.core_count();
        // A test has every session move to the next core whenever it may.
        if stop::fault("runtime.balance.wander").is_err() {
            for from in 0..cores {
                self.send(from, (from + 1) % cores, Picked::All);
            }
            return WANDERING;
        }
        let elapsed = now.saturating_sub(self.looked);
        if elapsed > 0 {
            self.looked = now;
            let loads: Vec<Load> = (0..cores).map(|core| self.load(core, now, elapsed)).collect();
            for (core, load) in loads.iter().enumerate() {
                self.shared.show_load(core, load.demand);
            }
            for Transfer { from, to, share } in self.balancer.look(&loads) {
                self.send(from, to, Picked::Waiting { share, until: now + VALID.as_nanos() as u64 });
            }
        }
        INTERVAL
    }

    fn send(&self, from: usize, to: usize, picked: Picked) {
        if from != to {
            mailbox::send(self.shared.mailbox(from), move || net::here().give_away(to, picked));
        }
    }

    /// The load of a core since the last look.
    fn load(&mut self, core: usize, now: u64, elapsed: u64) -> Load {
        let turns = self.shared.turns.get(core);
        let before = self.seen[core];
        // Relaxed: figures, of which one may be a moment older than another.
        let mut present = Seen {
            idle: turns.idle.total(now),
            turns: turns.count.load(Ordering::Relaxed),
            waited: turns.waited.load(Ordering::Relaxed),
            in_turn: before.in_turn,
        };
        let waited = (present.waited - before.waited) * WHOLE;
        // A core that has begun no turn since is still in one with as many.
        if let Some(in_turn) = waited.checked_div(present.turns - before.turns) {
            present.in_turn = in_turn;
        }
        self.seen[core] = present;
        let idle = present.idle.saturating_sub(before.idle).min(elapsed);
        Load::of(WHOLE - idle * WHOLE / elapsed, present.in_turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileIo, tests::start_with, time};

    #[test]
    fn a_core_is_as_busy_as_it_does_not_sleep() {
        let runtime = start_with(2, FileIo::Threads);
        let began = time::precise();
        let mut balance = Balance::new(&runtime.shared, began);
        balance.look(began + 1);
        let busy = |core: usize| {
            runtime.call(core, || {
                let began = time::precise();
                while time::precise() - began < 50_000_000 {
                    std::hint::spin_loop();
                }
            });
        };
        for (core, other) in [(0, 1), (1, 0)] {
            let since = time::precise();
            busy(core);
            let now = time::precise();
            let (own, others) = (balance.load(core, now, now - since), balance.load(other, now, now - since));
            assert!(own.busy > 900 && own.demand >= own.busy, "{own:?}");
            assert!(others.busy < 500, "{others:?}");
            // Both sleep for a while, and still do.
            let since = time::precise();
            time::sleep_thread(Duration::from_millis(50));
            let now = time::precise();
            for core in [core, other] {
                assert!(balance.load(core, now, now - since).busy < 500);
            }
        }
        runtime.shutdown();
    }
}
