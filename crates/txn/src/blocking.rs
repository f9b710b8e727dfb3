//! The sessions that block a waiting session, as `pg_blocking_pids` lists them.
//!
//! The deadlock search asks who must go on first; this module asks whom to show. So it names the
//! lock's holders, and also every session earlier in the queue whose request conflicts.

use sync::atomic::Ordering;

use crate::Engine;
use crate::locks::Tag;
use crate::slots::Target;
use crate::status::Status;

impl Engine {
    /// Labels of the sessions that block the session with this label, each once. Empty if it does
    /// not wait. Cost: one pass over the whole lock table.
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

    /// Slots that hold a mode in conflict with the request, or that ask for one earlier in the
    /// queue.
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
