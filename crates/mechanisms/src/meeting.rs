//! Threads that begin each pass together, and what is made anew between two passes.
//!
//! What must hold: a pass begins when all members have come, or left for good. So a thread that
//! ends holds up no other one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The meeting of a number of threads.
#[derive(Debug)]
pub(crate) struct Meeting {
    state: Mutex<State>,
    begun: Condvar,
}

#[derive(Debug)]
struct State {
    members: usize,
    waiting: usize,
    passes: u64,
    /// The moment when the pass under way began, and the time that the last one took.
    since: Instant,
    took: Duration,
}

impl Meeting {
    /// A meeting of so many threads.
    pub fn of(members: usize) -> Self {
        let state = State { members, waiting: 0, passes: 0, since: Instant::now(), took: Duration::ZERO };
        Self { state: Mutex::new(state), begun: Condvar::new() }
    }

    /// Waits until all members have come. The last one runs `between` before the others go on.
    /// Returns the time of the pass that this ends, from its begin until the last member came.
    pub fn come(&self, between: impl FnOnce()) -> Duration {
        let mut state = self.state();
        state.waiting += 1;
        if state.waiting == state.members {
            let took = state.since.elapsed();
            self.begin(state, between, true);
            return took;
        }
        let pass = state.passes;
        let begun = self.begun.wait_while(state, |state| state.passes == pass);
        begun.unwrap_or_else(PoisonError::into_inner).took
    }

    /// Leaves for good. The pass of the others begins if they wait for this thread alone.
    pub fn leave(&self, between: impl FnOnce()) {
        let mut state = self.state();
        state.members -= 1;
        if state.members > 0 && state.waiting == state.members {
            self.begin(state, between, false);
        }
    }

    /// Begins a pass. A member that panics in `between` leaves the others to go on: its row fails.
    fn begin(&self, mut state: MutexGuard<'_, State>, between: impl FnOnce(), is_member: bool) {
        struct Begun<'a>(MutexGuard<'a, State>, &'a Condvar, bool);
        impl Drop for Begun<'_> {
            fn drop(&mut self) {
                let Self(state, begun, is_member) = self;
                state.waiting = 0;
                state.passes += 1;
                state.since = Instant::now();
                state.members -= usize::from(*is_member && thread::panicking());
                begun.notify_all();
            }
        }
        state.took = state.since.elapsed();
        let _begun = Begun(state, &self.begun, is_member);
        between();
    }

    /// The state, also behind a thread that has panicked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_pass_begins_together_and_a_thread_that_leaves_holds_up_no_other() {
        const THREADS: u64 = 8;
        let (meeting, between, done) = (Meeting::of(THREADS as usize), AtomicU64::new(0), AtomicU64::new(0));
        // Thread n takes part in n passes.
        let life = |passes: u64| {
            for pass in 0..passes {
                let took = meeting.come(|| _ = between.fetch_add(1, Ordering::Relaxed));
                assert!(between.load(Ordering::Relaxed) == pass + 1, "nobody is a pass ahead");
                assert!(took < Duration::from_secs(60));
                done.fetch_add(1, Ordering::Relaxed);
            }
            meeting.leave(|| _ = between.fetch_add(1, Ordering::Relaxed));
        };
        thread::scope(|scope| (1..=THREADS).for_each(|passes| _ = scope.spawn(move || life(passes))));
        // The last thread to leave begins no pass.
        assert_eq!((between.into_inner(), done.into_inner()), (THREADS, THREADS * (THREADS + 1) / 2));
    }

    #[test]
    fn a_pass_takes_until_its_last_member_comes_without_what_is_between() {
        // On a busy machine the threads' sleeps may take far longer than asked.
        const BETWEEN: Duration = Duration::from_secs(2);
        let meeting = Meeting::of(2);
        let life = |sleep| {
            meeting.come(|| thread::sleep(BETWEEN));
            thread::sleep(Duration::from_millis(sleep));
            meeting.come(|| ())
        };
        let took = thread::scope(|scope| {
            let threads = [5, 20].map(|sleep| scope.spawn(move || life(sleep)));
            threads.map(|thread| thread.join().unwrap())
        });
        let expected = Duration::from_millis(20)..BETWEEN;
        assert!(took.iter().all(|took| expected.contains(took)), "{took:?}");
    }

    #[test]
    fn a_member_that_panics_between_two_passes_holds_up_no_other() {
        let meeting = Meeting::of(2);
        let come = || catch_unwind(AssertUnwindSafe(|| meeting.come(|| panic!("expected")))).is_err();
        let faults = thread::scope(|scope| {
            let threads = [scope.spawn(come), scope.spawn(come)];
            threads.map(|thread| usize::from(thread.join().unwrap())).into_iter().sum::<usize>()
        });
        assert_eq!(faults, 1, "the other goes on");
        assert!(come(), "alone it is the last one");
    }
}
