//! The published search: the scan walks unlocked, and the lock is taken for changes only (B14).
//!
//! 1. A search reads the counter of places. Buffers put on the list later have a higher place, so
//!    they bound the scan: it ends at the first of them.
//! 2. It walks from header to header without the lock. Behind each step it looks again at the
//!    header that it came from. If that one has moved, or has another successor, the search starts
//!    again at the front.
//! 3. It passes over busy buffers. It makes the first other one busy, takes the lock and looks
//!    again at the buffer's place. If the buffer has not moved, the search takes it off the list.
//!    Otherwise it leaves the buffer and starts again.
//! 4. A release takes the lock and puts the buffer at the end, with a new place.
//!
//! What must hold: headers are type-stable (`headers`). A place is given once. So an unchanged
//! place means that the header has lain on the list all the time, and that its successor was right.
//! Each new start means that another thread has changed the list meanwhile. A search that starts
//! again keeps its bound. One that finds nothing takes a new bound if buffers were put on the list
//! meanwhile.
//!
//! The lock is [`AdaptiveLock`](crate::sleep_lock::AdaptiveLock), FreeBSD's `mtx(9)`.
//!
//! Cost in line transfers: busy headers on the way are read without the lock, and all but the last
//! stay in every core's cache. Under the lock a removal moves 4 lines at any length of the scan:
//! the lock, the victim and its neighbours. A release moves 5: the lock, the end of the list, the
//! last header, the buffer and the counter of places.

use super::headers::{END, Headers, OFF, Search};
use crate::caller::Caller;
use crate::spin::Exclusion;

/// The list with a lock around each change.
#[derive(Debug)]
pub struct ScannedList(pub(super) Headers);

/// A header where the scan found it.
#[derive(Clone, Copy)]
struct Found {
    at: usize,
    place: u64,
}

impl ScannedList {
    /// This number of buffers, for threads numbered below `threads`.
    pub fn new(buffers: usize, threads: usize) -> Self {
        Self(Headers::new(buffers, threads))
    }

    /// The header behind `from`. `Err` if the list has changed there.
    fn step(&self, from: Found) -> Result<Found, Moved> {
        let Self(headers) = self;
        let at = headers.next(from.at);
        let found = Found { at, place: headers.place(at) };
        // The loads above acquire, so these two come after them.
        let is_there = headers.place(from.at) == from.place && headers.next(from.at) == at;
        if is_there && found.place != OFF { Ok(found) } else { Err(Moved) }
    }

    /// One walk from the front, up to this place.
    pub(super) fn walk(&self, me: &mut Caller, bound: u64) -> Result<Option<usize>, Moved> {
        let Self(headers) = self;
        let mut here = Found { at: END, place: headers.place(END) };
        loop {
            here = self.step(here)?;
            if here.at == END || here.place > bound {
                return Ok(None);
            }
            if headers.enter(here.at) {
                return self.take(me, here).map(Some);
            }
        }
    }

    /// Takes a busy header off the list.
    fn take(&self, me: &mut Caller, found: Found) -> Result<usize, Moved> {
        let Self(headers) = self;
        let is_there = headers.mutex.with(me, || {
            let is_there = headers.place(found.at) == found.place;
            if is_there {
                headers.remove(found.at);
            }
            is_there
        });
        if is_there {
            return Ok(found.at - 1);
        }
        headers.leave(found.at);
        Err(Moved)
    }
}

/// The list has changed under the scan.
pub(super) struct Moved;

impl Search for ScannedList {
    fn headers(&self) -> &Headers {
        &self.0
    }

    fn search(&self, me: &mut Caller) -> Option<usize> {
        let mut bound = self.0.newest();
        loop {
            match self.walk(me, bound) {
                Ok(None) if self.0.newest() > bound => bound = self.0.newest(),
                Ok(found) => return found,
                Err(Moved) => {}
            }
            me.retried();
        }
    }
}
