//! Channels between virtual threads.

use std::collections::VecDeque;
use std::sync::Arc;
pub use std::sync::mpsc::{RecvError, SendError};

use super::{Condvar, Mutex};

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    messages: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

/// Takes messages out.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// Puts messages in, without bound.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// A channel without bound.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { messages: VecDeque::new(), senders: 1, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Puts a message in.
    ///
    /// # Errors
    /// The message, when nobody will take it.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let mut state = self.0.state.lock();
        if !state.has_receiver {
            return Err(SendError(message));
        }
        state.messages.push_back(message);
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().senders -= 1;
        self.0.changed.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Waits for a message.
    ///
    /// # Errors
    /// When none is there and none will come.
    pub fn recv(&self) -> Result<T, RecvError> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(message) = state.messages.pop_front() {
                return Ok(message);
            }
            if state.senders == 0 {
                return Err(RecvError);
            }
            state = self.0.changed.wait(state);
        }
    }

    /// The messages, until no more will come.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.recv().ok())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_receiver = false;
        self.0.changed.notify_all();
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

/// The messages, until no more will come.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}
