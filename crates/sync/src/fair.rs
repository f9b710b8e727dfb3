//! A queue whose waiters go in the order of their arrival: only the first one tests its condition.
//!
//! A waiter keeps its place until it leaves. [`crate::WaitQueue`] takes a waiter out when it wakes
//! it, so that a newcomer may come before the woken one has run. What must hold:
//!
//! 1. Only the waiter that arrived first tests its condition.
//! 2. No wake-up is lost. A waiter joins the queue, finds itself first, tests its condition, and
//!    then parks. A thread that changes the condition calls [`FairQueue::wake_first`] afterwards.
//!    Joining and waking take the lock: either the waking thread finds the waiter and wakes it, or
//!    the waiter joins later and sees the change. The lock orders all memory; nothing else has to.
//! 3. A waiter that leaves the first place, served or interrupted, wakes the next one. Leaving and
//!    the test for the first place take the lock: the next one either finds itself first or is
//!    woken.
//!
//! A wake-up that comes before the park is kept ([`crate::park`]). Wakers are called without the
//! lock.

use std::collections::VecDeque;
use std::task::Waker;

use crate::park;
use crate::profile::{self, Class};
use crate::spin::{SpinGuard, SpinLock};

/// Waiters in the order of their arrival.
#[derive(Debug)]
pub struct FairQueue {
    waiters: SpinLock<Waiters>,
}

#[derive(Debug)]
struct Waiters {
    queue: VecDeque<Waiter>,
    /// Number of the next waiter that arrives.
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    waker: Waker,
}

impl Waiters {
    fn first(&self) -> Option<Waker> {
        self.queue.front().map(|first| first.waker.clone())
    }
}

/// A waiter's place, which it leaves when this is dropped.
struct Place<'a> {
    queue: &'a FairQueue,
    number: u64,
}

impl FairQueue {
    /// An empty queue, in which waits are of this class.
    #[cfg(not(loom))]
    pub const fn new(class: Class) -> Self {
        Self { waiters: SpinLock::new(class, Waiters { queue: VecDeque::new(), next: 0 }) }
    }

    /// An empty queue, in which waits are of this class.
    #[cfg(loom)]
    pub fn new(class: Class) -> Self {
        Self { waiters: SpinLock::new(class, Waiters { queue: VecDeque::new(), next: 0 }) }
    }

    /// Waits until the caller is first and `condition` holds. `park` parks the caller; it may give
    /// up with an error (an interrupt). Neither is called under the queue's lock.
    ///
    /// # Errors
    /// Those of `park`.
    #[track_caller]
    pub fn wait_until_with<E>(
        &self,
        mut condition: impl FnMut() -> bool,
        mut park: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let place = self.join();
        if place.is_first(self.waiters.lock()) && condition() {
            return Ok(());
        }
        profile::wait(self.waiters.class(), || {
            loop {
                park()?;
                if place.is_first(self.waiters.lock_again()) && condition() {
                    return Ok(());
                }
            }
        })
    }

    fn join(&self) -> Place<'_> {
        let waker = park::current();
        let mut waiters = self.waiters.lock();
        let number = waiters.next;
        waiters.next += 1;
        waiters.queue.push_back(Waiter { number, waker });
        Place { queue: self, number }
    }

    /// Wakes the first waiter. Call it after a change that may have made its condition true.
    pub fn wake_first(&self) {
        let first = self.waiters.lock().first();
        if let Some(waker) = first {
            waker.wake();
        }
    }

    /// Whether anybody waits.
    pub fn has_waiters(&self) -> bool {
        !self.waiters.lock().queue.is_empty()
    }
}

impl Place<'_> {
    fn is_first(&self, waiters: SpinGuard<'_, Waiters>) -> bool {
        waiters.queue.front().is_some_and(|first| first.number == self.number)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let (left, next) = {
            let mut waiters = self.queue.waiters.lock();
            let at = waiters.queue.iter().position(|waiter| waiter.number == self.number);
            let left = at.and_then(|at| waiters.queue.remove(at));
            (left, waiters.first().filter(|_| at == Some(0)))
        };
        drop(left);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::atomic::{AtomicBool, AtomicU64, Ordering};

    fn parked() -> Result<(), ()> {
        park::park();
        Ok(())
    }

    fn until_waiting(queue: &FairQueue, count: usize) {
        while queue.waiters.lock().queue.len() < count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn waiters_go_in_the_order_of_their_arrival() {
        let threads = crate::stress::threads();
        let queue = FairQueue::new(&"test");
        let open = AtomicBool::new(false);
        let (went, hear) = channel();
        std::thread::scope(|scope| {
            for number in 0..threads {
                let (queue, open, went) = (&queue, &open, went.clone());
                scope.spawn(move || {
                    let goes = || open.load(Ordering::Acquire) && went.send(number).is_ok();
                    queue.wait_until_with(goes, parked)
                });
                until_waiting(queue, number + 1);
            }
            open.store(true, Ordering::Release);
            queue.wake_first();
        });
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), (0..threads).collect::<Vec<_>>());
        assert!(!queue.has_waiters());
    }

    #[test]
    fn a_waiter_that_gives_up_hands_its_place_to_the_next_one() {
        let queue = FairQueue::new(&"test");
        let (gives_up, waits) = (AtomicBool::new(false), AtomicU64::new(1));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                queue.wait_until_with(
                    || false,
                    || {
                        park::park();
                        if gives_up.load(Ordering::Acquire) { Err("stop") } else { Ok(()) }
                    },
                )
            });
            until_waiting(&queue, 1);
            let second = scope.spawn(|| queue.wait_until_with(|| waits.load(Ordering::Acquire) == 0, parked));
            until_waiting(&queue, 2);
            // The first one alone is woken for the second one's condition, and gives up.
            waits.store(0, Ordering::Release);
            gives_up.store(true, Ordering::Release);
            queue.wake_first();
            assert_eq!(first.join().unwrap(), Err("stop"));
            assert_eq!(second.join().unwrap(), Ok(()));
        });
        assert!(!queue.has_waiters());
    }
}
