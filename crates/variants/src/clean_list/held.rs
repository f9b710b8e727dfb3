//! The stock search: the list's lock is held through the whole scan (B14, FreeBSD's `getnewbuf`
//! over the queue of clean buffers).
//!
//! 1. A search takes the list's lock and walks from the first buffer on.
//! 2. It passes over busy buffers. It makes the first other one busy, takes it off the list and
//!    gives the lock back.
//! 3. A release takes the lock and puts the buffer at the end.
//!
//! What must hold: links change and are read under the lock only.
//!
//! The lock is [`AdaptiveLock`](crate::sleep_lock::AdaptiveLock), FreeBSD's `mtx(9)`.
//!
//! Cost in line transfers: the lock, each busy header on the way, the victim and its neighbours,
//! all under the lock. With n threads and b busy buffers, n threads queue for sections of b
//! transfers.

use super::headers::{END, Headers, Search};
use crate::caller::Caller;
use crate::spin::Exclusion;

/// The list with a lock around each search.
#[derive(Debug)]
pub struct HeldList(Headers);

impl HeldList {
    /// This number of buffers, for threads numbered below `threads`.
    pub fn new(buffers: usize, threads: usize) -> Self {
        Self(Headers::new(buffers, threads))
    }
}

impl Search for HeldList {
    fn headers(&self) -> &Headers {
        &self.0
    }

    fn search(&self, me: &mut Caller) -> Option<usize> {
        let Self(headers) = self;
        headers.mutex.with(me, || {
            let mut at = headers.next(END);
            while at != END {
                if headers.enter(at) {
                    headers.remove(at);
                    return Some(at - 1);
                }
                at = headers.next(at);
            }
            None
        })
    }
}
