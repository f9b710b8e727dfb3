//! A thread beside the cores that works ahead of them.
//!
//! It does step after step until there is nothing to do, and sleeps until somebody wakes it. An
//! idle helper has the lowest priority and may get no processor for long while the cores are busy.
//! So it holds no lock that a core takes, neither one of ours nor one that the kernel holds for it.
//! Work in which the kernel holds such a lock is for a normal helper. What must hold:
//!
//! 1. A wake-up is never lost: the thread looks for work after each one that comes before or during
//!    its last look.
//! 2. The thread ends with its owner, at the latest after the step under way.

use std::sync::Arc;

use sync::atomic::{AtomicBool, Ordering};

use crate::os::{self, thread::JoinHandle};

/// A priority of `setpriority`: the least share of a processor that others want too, about 1.5% of
/// it against one ordinary thread.
const LOWEST_PRIORITY: i32 = 19;

/// How urgent a helper's work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It has the least share of a processor that others want too.
    Idle,
    /// As urgent as the thread that starts the helper.
    Normal,
}

/// The thread, ended when this is dropped.
#[derive(Debug)]
pub struct Helper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle>,
}

#[derive(Debug)]
struct Shared {
    asked: AtomicBool,
    ended: AtomicBool,
}

impl Helper {
    /// Starts the thread, on these processors of the process, or on all for an empty list. It calls
    /// `step` until that returns false, and again after each [`Helper::wake`]. If the system
    /// refuses the thread, no step is done.
    pub fn start(
        name: &str,
        urgency: Urgency,
        processors: &[usize],
        mut step: impl FnMut() -> bool + Send + 'static,
    ) -> Helper {
        let shared = Arc::new(Shared { asked: AtomicBool::new(false), ended: AtomicBool::new(false) });
        let (theirs, processors) = (Arc::clone(&shared), processors.to_vec());
        let work = move || {
            if urgency == Urgency::Idle {
                os::processor::be_nice(LOWEST_PRIORITY);
            }
            if !processors.is_empty() {
                os::processor::confine(&processors);
            }
            // Acquire: pairs with the drop.
            while !theirs.ended.load(Ordering::Acquire) {
                if step() {
                    continue;
                }
                // AcqRel: a wake-up that finds the flag taken back here sets it anew. The next step
                // sees what came before the wake-up.
                while !theirs.asked.swap(false, Ordering::AcqRel) {
                    os::thread::park();
                }
            }
        };
        Helper { shared, thread: os::thread::spawn(name, None, work).ok() }
    }

    /// Whether the system granted the thread.
    pub fn is_running(&self) -> bool {
        self.thread.is_some()
    }

    /// Lets the thread look for work. A system call only if nobody has asked since its last look.
    pub fn wake(&self) {
        // AcqRel: as in `start`; the thread sees what came before the wake-up.
        if !self.shared.asked.swap(true, Ordering::AcqRel)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Release: what came before the end is seen with it.
        self.shared.ended.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn each_wake_up_is_followed_by_a_look_for_work() {
        let (todo, done) = (Arc::new(AtomicUsize::new(3)), Arc::new(AtomicUsize::new(0)));
        let (their_todo, their_done) = (Arc::clone(&todo), Arc::clone(&done));
        let helper = Helper::start("test", Urgency::Idle, &[], move || {
            let some =
                their_todo.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
            their_done.fetch_add(usize::from(some.is_ok()), Ordering::AcqRel);
            some.is_ok()
        });
        let wait_for = |count| {
            while done.load(Ordering::Acquire) < count {
                std::thread::yield_now();
            }
        };
        wait_for(3);
        for round in 1..200 {
            todo.fetch_add(1, Ordering::AcqRel);
            helper.wake();
            wait_for(3 + round);
        }
        drop(helper);
        assert_eq!(Arc::strong_count(&done), 1, "the thread has ended");
    }
}
