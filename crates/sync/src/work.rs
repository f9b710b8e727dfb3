//! A queue of work for threads of the operating system, which may sleep in it: fibers never wait
//! here.
//!
//! Threads are the caller's to start; the queue counts them and says how many more the waiting work
//! calls for. What must hold: each piece is taken once, and a thread sleeps only while there is
//! none. All threads return once the queue is closed and empty. `tests/loom_work.rs` runs it under
//! loom.

use std::collections::VecDeque;

use crate::machine::{Condvar, Mutex};

/// Pieces of work, and the threads that do them.
#[derive(Debug)]
pub struct WorkQueue<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    threads_max: usize,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    threads: usize,
    /// Threads that have nothing to do, and those about to start.
    idle: usize,
    closed: bool,
}

impl<T> WorkQueue<T> {
    /// An empty queue for at most so many threads.
    pub fn new(threads_max: usize) -> WorkQueue<T> {
        let state = State { queue: VecDeque::new(), threads: 0, idle: 0, closed: false };
        WorkQueue { state: Mutex::new(state), wake: Condvar::new(), threads_max }
    }

    /// Adds pieces; gives how many threads are to be started now, which count as there already:
    /// each calls [`WorkQueue::next`], or the caller [`WorkQueue::not_started`] for it.
    #[must_use]
    pub fn push_all(&self, pieces: impl IntoIterator<Item = T>) -> usize {
        let (wanted, added) = {
            let mut state = self.state.lock();
            let before = state.queue.len();
            state.queue.extend(pieces);
            let added = state.queue.len() - before;
            let wanted = state.queue.len().saturating_sub(state.idle).min(self.threads_max - state.threads);
            state.threads += wanted;
            state.idle += wanted;
            (wanted, added)
        };
        // One thread for each piece: a thread that is awake looks for more by itself before it
        // sleeps.
        for _ in 0..added.min(self.threads_max) {
            self.wake.notify_one();
        }
        wanted
    }

    /// A thread that was wanted could not be started. Gives how many there are.
    pub fn not_started(&self) -> usize {
        let mut state = self.state.lock();
        state.threads -= 1;
        state.idle -= 1;
        state.threads
    }

    /// The next piece for a thread, which sleeps until there is one; `None`: it is to end. `done`:
    /// it has done a piece before.
    pub fn next(&self, done: bool) -> Option<T> {
        let mut state = self.state.lock();
        if done {
            state.idle += 1;
        }
        loop {
            if let Some(piece) = state.queue.pop_front() {
                state.idle -= 1;
                return Some(piece);
            }
            if state.closed {
                return None;
            }
            state = self.wake.wait(state);
        }
    }

    /// Lets the threads end once the queue is empty.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }
}
