//! Queues of sleeping threads, which link threads by number.
//!
//! PostgreSQL links the `PGPROC`s of its backends, FreeBSD its thread structures. Here each thread
//! has a node with a link, what it wants, and its gate. One node is enough, because a thread sleeps
//! in one queue at a time.
//!
//! 1. A thread enters at the end, under the lock that guards the queue. It gives the lock back and
//!    sleeps on its gate.
//! 2. Another thread takes it out under the lock, alone or in a [`Chain`]. It gives the lock back
//!    and posts to each thread of the chain.
//!
//! What must hold: ends and links change under the lock. A thread that was taken out enters no
//! queue before it has taken its post. So nobody but the thread that took a chain out changes its
//! links, and that one reads a link before it posts.
//!
//! Orderings: all relaxed, because the lock orders changes of a queue. The posts of a chain come
//! after the loads of its links, by the release of each post.
//!
//! Cost in line transfers: 2 to enter, for the ends of the queue and the last thread's node. Taking
//! a thread out costs 1 for its node, and its gate's post finds the line there. The thread's
//! wake-up moves the line back, 1 more.

use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};
use sync::profile::{self, Class};

use crate::caller::Caller;
use crate::gate::Gate;

/// No thread; thread `n` is `n + 1`.
const NOBODY: usize = 0;

/// The nodes of all threads.
#[derive(Debug)]
pub(crate) struct Waiters(Box<[CachePadded<Node>]>);

#[derive(Debug, Default)]
struct Node {
    /// The thread behind this one in its queue or chain.
    next: AtomicUsize,
    /// The wish of the thread, in its queue's own numbers.
    wants: AtomicUsize,
    gate: Gate,
}

/// The ends of a queue. They lie beside the lock that guards it.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    first: AtomicUsize,
    last: AtomicUsize,
}

impl Queue {
    /// Whether nobody is in the queue. Under its lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed) == NOBODY
    }
}

/// Threads that were taken out of a queue, in its order.
#[derive(Debug)]
#[must_use]
pub(crate) struct Chain {
    first: usize,
}

impl Chain {
    /// Whether nobody was taken out.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NOBODY
    }
}

/// A thread's lot in a walk along its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It takes the thread out.
    Take,
    /// It leaves the thread there.
    Pass,
    /// It leaves this one and all behind it there.
    Stop,
}

impl Waiters {
    /// Nodes of the threads numbered below `threads`.
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| CachePadded::default()).collect())
    }

    fn node(&self, thread: usize) -> &Node {
        &self.0[thread - 1]
    }

    /// Enters this thread at the end. Under the queue's lock.
    pub(crate) fn enter(&self, queue: &Queue, me: &Caller, wants: usize) {
        let own = me.number() + 1;
        let node = self.node(own);
        node.next.store(NOBODY, Ordering::Relaxed);
        node.wants.store(wants, Ordering::Relaxed);
        match queue.last.load(Ordering::Relaxed) {
            NOBODY => queue.first.store(own, Ordering::Relaxed),
            last => self.node(last).next.store(own, Ordering::Relaxed),
        }
        queue.last.store(own, Ordering::Relaxed);
    }

    /// Walks from the front on and takes threads out, as `choose` says by what each of them wants.
    /// Under the queue's lock.
    pub(crate) fn take(&self, queue: &Queue, mut choose: impl FnMut(usize) -> Choice) -> Chain {
        self.walk(queue, |_, wants| choose(wants))
    }

    /// Takes all threads out. Under the queue's lock.
    pub(crate) fn take_all(&self, queue: &Queue) -> Chain {
        let first = queue.first.load(Ordering::Relaxed);
        queue.first.store(NOBODY, Ordering::Relaxed);
        queue.last.store(NOBODY, Ordering::Relaxed);
        Chain { first }
    }

    /// Takes this thread out again. False if another thread has done so. Under the queue's lock.
    pub(crate) fn leave(&self, queue: &Queue, me: &Caller) -> bool {
        let (own, mut found) = (me.number() + 1, false);
        let own = self.walk(queue, |thread, _| match () {
            () if found => Choice::Stop,
            () if thread != own => Choice::Pass,
            () => {
                found = true;
                Choice::Take
            }
        });
        !own.is_empty()
    }

    fn walk(&self, queue: &Queue, mut choose: impl FnMut(usize, usize) -> Choice) -> Chain {
        let link = |thread: usize| &self.node(thread).next;
        let mut chain = Chain { first: NOBODY };
        let (mut at, mut before, mut taken) = (queue.first.load(Ordering::Relaxed), NOBODY, NOBODY);
        while at != NOBODY {
            let next = link(at).load(Ordering::Relaxed);
            match choose(at, self.node(at).wants.load(Ordering::Relaxed)) {
                Choice::Stop => break,
                Choice::Pass => before = at,
                Choice::Take => {
                    match before {
                        NOBODY => queue.first.store(next, Ordering::Relaxed),
                        before => link(before).store(next, Ordering::Relaxed),
                    }
                    if next == NOBODY {
                        queue.last.store(before, Ordering::Relaxed);
                    }
                    match taken {
                        NOBODY => chain.first = at,
                        taken => link(taken).store(at, Ordering::Relaxed),
                    }
                    link(at).store(NOBODY, Ordering::Relaxed);
                    taken = at;
                }
            }
            at = next;
        }
        chain
    }

    /// Sleeps until a thread that took this one out has posted. Without the queue's lock.
    #[track_caller]
    pub(crate) fn sleep(&self, me: &Caller, class: Class) {
        profile::wait(class, || self.node(me.number() + 1).gate.wait());
    }

    /// Wakes the threads of a chain. Without the queue's lock.
    pub(crate) fn wake(&self, chain: Chain) {
        let mut at = chain.first;
        while at != NOBODY {
            let node = self.node(at);
            // Before the post: the thread may enter a queue right after it.
            at = node.next.load(Ordering::Relaxed);
            node.gate.post();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// A step of the queue's lock holder.
    #[derive(Debug, Clone)]
    enum Step {
        Enter(usize, usize),
        Leave(usize),
        Take(Vec<u8>),
        TakeAll,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0usize..6, 0usize..4).prop_map(|(thread, wants)| Step::Enter(thread, wants)),
            1 => (0usize..6).prop_map(Step::Leave),
            1 => prop::collection::vec(0u8..3, 0..6).prop_map(Step::Take),
            1 => Just(Step::TakeAll),
        ];
        prop::collection::vec(step, 0..100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_queue_of_linked_threads_is_a_queue(steps in steps()) {
            let (waiters, queue) = (Waiters::new(6), Queue::default());
            let mut expected: VecDeque<(usize, usize)> = VecDeque::new();
            for step in steps {
                let (chain, taken) = match step {
                    Step::Enter(thread, _) if expected.iter().any(|(other, _)| *other == thread) => continue,
                    Step::Enter(thread, wants) => {
                        waiters.enter(&queue, &Caller::new(thread), wants);
                        expected.push_back((thread, wants));
                        continue;
                    }
                    Step::Leave(thread) => {
                        let place = expected.iter().position(|(other, _)| *other == thread);
                        prop_assert_eq!(waiters.leave(&queue, &Caller::new(thread)), place.is_some());
                        place.and_then(|place| expected.remove(place));
                        continue;
                    }
                    Step::TakeAll => (waiters.take_all(&queue), expected.drain(..).collect()),
                    Step::Take(choices) => {
                        // Beyond the list, the walk stops.
                        let choice = |at: usize| match choices.get(at) {
                            Some(0) => Choice::Take,
                            Some(1) => Choice::Pass,
                            _ => Choice::Stop,
                        };
                        let (mut at, mut seen) = (0, Vec::new());
                        let chain = waiters.take(&queue, |wants| {
                            seen.push(wants);
                            at += 1;
                            choice(at - 1)
                        });
                        let end = (0..expected.len()).find(|at| choice(*at) == Choice::Stop);
                        let end = end.unwrap_or(expected.len());
                        let wants = expected.iter().map(|(_, wants)| *wants);
                        prop_assert_eq!(seen, wants.take(end + 1).collect::<Vec<_>>());
                        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
                        for (at, waiter) in expected.drain(..).enumerate() {
                            if at < end && choice(at) == Choice::Take {
                                taken.push(waiter);
                            } else {
                                left.push_back(waiter);
                            }
                        }
                        expected = left;
                        (chain, taken)
                    }
                };
                let taken: Vec<usize> = taken.into_iter().map(|(thread, _)| thread).collect();
                let link = |thread: &usize| Some(waiters.node(*thread).next.load(Ordering::Relaxed));
                let is_some = |thread: &usize| *thread != NOBODY;
                let linked = std::iter::successors(Some(chain.first).filter(is_some), |thread| {
                    link(thread).filter(is_some)
                });
                prop_assert_eq!(linked.map(|thread| thread - 1).collect::<Vec<_>>(), taken.clone());
                waiters.wake(chain);
                // Each has a post of its own, so none of them sleeps.
                taken.iter().for_each(|thread| waiters.sleep(&Caller::new(*thread), &"test"));
                prop_assert_eq!(queue.is_empty(), expected.is_empty());
            }
        }
    }
}
