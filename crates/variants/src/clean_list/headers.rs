//! The buffers' headers, and the list that links them.
//!
//! Headers are type-stable: they are never freed, so a scan may look at one that has left the list.
//! Each stay on the list has a place, a number from a counter that only grows. So places rise along
//! the list, and a header whose place is unchanged has not moved.
//!
//! Orderings: links and places change under the list's lock. A removal clears the place before a
//! later insertion changes the links. Stores release and loads acquire, so a scan that reads a link
//! of a later stay finds the place changed too.
//!
//! Cost in line transfers, beside the lock: a removal moves 3 lines, the header's and those of its
//! neighbours. The end of the list is a neighbour of the first header. An insertion moves 4: the
//! end of the list, the last header, the buffer's and the counter of places. Each header has a line
//! of its own, and a look at one that has not changed since moves none. To make a header busy, or
//! to end its use, costs 1.

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::CleanList;
use crate::caller::Caller;
use crate::sleep_lock::AdaptiveLock;
use crate::spin::{Exclusion, Lock};

/// The header at both ends of the list. It never moves.
pub(super) const END: usize = 0;
/// The place of a header that is not on the list.
pub(super) const OFF: u64 = 0;
/// The place of [`END`], before all others.
const BEGIN: u64 = 1;

/// A list over headers, by its search. Both lists do the rest alike.
pub(super) trait Search: Sync {
    /// The headers.
    fn headers(&self) -> &Headers;
    /// Takes the first buffer that is not busy.
    fn search(&self, me: &mut Caller) -> Option<usize>;
}

impl<L: Search> CleanList for L {
    type Kept = ();

    fn victim(&self, me: &mut Caller, (): &mut ()) -> Option<usize> {
        self.search(me)
    }

    fn put(&self, me: &mut Caller, buffer: usize) {
        let headers = self.headers();
        headers.mutex.with(me, || headers.push(buffer + 1));
        headers.leave(buffer + 1);
    }

    #[inline]
    fn enter(&self, buffer: usize) -> bool {
        self.headers().enter(buffer + 1)
    }

    #[inline]
    fn leave(&self, buffer: usize) {
        self.headers().leave(buffer + 1);
    }
}

/// The headers, on a line each, and the list's lock.
#[derive(Debug)]
pub(super) struct Headers {
    pub(super) mutex: AdaptiveLock,
    /// The place given last.
    places: CachePadded<AtomicU64>,
    headers: Box<[CachePadded<Header>]>,
}

#[derive(Debug)]
struct Header {
    place: AtomicU64,
    next: AtomicUsize,
    last: AtomicUsize,
    is_busy: AtomicBool,
}

impl Headers {
    /// Headers of this number of buffers, all on the list, for threads numbered below `threads`.
    pub(super) fn new(buffers: usize, threads: usize) -> Self {
        let header = |at| {
            CachePadded::new(Header {
                place: AtomicU64::new(if at == END { BEGIN } else { OFF }),
                next: AtomicUsize::new(END),
                last: AtomicUsize::new(END),
                is_busy: AtomicBool::new(false),
            })
        };
        let headers = Self {
            mutex: AdaptiveLock::new(threads),
            places: CachePadded::new(AtomicU64::new(BEGIN)),
            headers: (0..=buffers).map(header).collect(),
        };
        (1..=buffers).for_each(|at| headers.push(at));
        headers
    }

    /// The place given last: a bound for a scan that begins now.
    #[inline]
    pub(super) fn newest(&self) -> u64 {
        // Relaxed: a bound, and nothing is read through it.
        self.places.load(Ordering::Relaxed)
    }

    /// A header's place.
    #[inline]
    pub(super) fn place(&self, at: usize) -> u64 {
        // Acquire: links of this stay are seen.
        self.headers[at].place.load(Ordering::Acquire)
    }

    /// The header behind one.
    #[inline]
    pub(super) fn next(&self, at: usize) -> usize {
        // Acquire: the place of the stay to which this link belongs is seen.
        self.headers[at].next.load(Ordering::Acquire)
    }

    /// Puts a header at the end. Under the lock.
    pub(super) fn push(&self, at: usize) {
        let end = &self.headers[END];
        // Relaxed, here and below: under the lock.
        let last = end.last.load(Ordering::Relaxed);
        let place = self.newest() + 1;
        // Release, both links: see the head.
        self.headers[at].next.store(END, Ordering::Release);
        self.headers[at].last.store(last, Ordering::Relaxed);
        self.places.store(place, Ordering::Relaxed);
        // Release: a scan that sees the place sees the links.
        self.headers[at].place.store(place, Ordering::Release);
        self.headers[last].next.store(at, Ordering::Release);
        end.last.store(at, Ordering::Relaxed);
    }

    /// Takes a header off the list. Under the lock.
    pub(super) fn remove(&self, at: usize) {
        // Relaxed, loads and `last`: under the lock.
        let next = self.headers[at].next.load(Ordering::Relaxed);
        let last = self.headers[at].last.load(Ordering::Relaxed);
        // Release, both: see the head. The link goes first: a scan that sees the place cleared then
        // has a way around, and starts again once only.
        self.headers[last].next.store(next, Ordering::Release);
        self.headers[next].last.store(last, Ordering::Relaxed);
        self.headers[at].place.store(OFF, Ordering::Release);
    }

    /// Makes a header busy. False if it is busy already.
    #[inline]
    pub(super) fn enter(&self, at: usize) -> bool {
        let busy = &self.headers[at].is_busy;
        // Relaxed: the exchange decides. Acquire: what the last user did is seen.
        !busy.load(Ordering::Relaxed)
            && busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends a use.
    #[inline]
    pub(super) fn leave(&self, at: usize) {
        // Release: the next user sees what this one did.
        self.headers[at].is_busy.store(false, Ordering::Release);
    }
}
