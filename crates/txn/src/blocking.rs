//! Whom a waiting session waits for, as `pg_blocking_pids` lists them.
//!
//! The search for deadlocks asks who must go on first; this asks whom to show. So it names everybody before the session in
//! the queue whose request conflicts with its own, as well as those who hold the lock.

use sync::atomic::Ordering;

use crate::Engine;
use crate::locks::Tag;
use crate::slots::Target;
use crate::status::Status;

impl Engine {
    /// The sessions that keep the session of this label waiting, by their labels, each once; none when it doesn't wait. It
    /// looks through the whole lock table.
    pub fn blocking(&self, session: u32) -> Vec<u32> {
        // Relaxed: information only.
        let label = |slot: u32| self.slots.get(slot).label.load(Ordering::Relaxed);
        let found = self.slots.iter().find(|(number, _)| session != 0 && label(*number) == session);
        let waiting = found.and_then(|(number, slot)| Some((number, slot.waiting()?.target)));
        let mut blocking: Vec<u32> = match waiting {
            None => Vec::new(),
            Some((number, Target::Lock(tag, mode))) => self.before(&tag, number, mode).map(label).collect(),
            Some((_, Target::End(owner, txid, _))) => {
                let runs = self.status.get(txid) == Status::Running(owner);
                runs.then(|| label(owner)).into_iter().collect()
            }
        };
        blocking.retain(|label| *label != 0 && *label != session);
        blocking.sort_unstable();
        blocking.dedup();
        blocking
    }

    /// The slots that hold what conflicts with a request, or ask for it earlier in the queue.
    fn before(&self, tag: &Tag, slot: u32, mode: u8) -> impl Iterator<Item = u32> {
        let conflicts = tag.as_ref().conflicts(mode);
        let (mut before, mut passed) = (Vec::new(), false);
        // Holders come first, then the queue in its order.
        self.locks.for_each(|other, number, modes, granted| {
            if other != tag {
                return;
            }
            passed |= number == slot && !granted;
            if !passed && number != slot && modes & conflicts != 0 {
                before.push(number);
            }
        });
        before.into_iter()
    }
}
