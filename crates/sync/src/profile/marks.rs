//! Which locks are waited for: marks that waiters put and holders take.
//!
//! A lock has no room for a count of its waiters, and most locks have none. So a waiter writes the
//! lock's key into a small table by hash, and a release looks there. Two locks that share a place
//! overwrite each other's marks: then a contended hold is not counted as one.

use crate::atomic::{AtomicUsize, Ordering};

/// Places of the table. Few locks are waited for at the same time.
const PLACES: usize = 512;

/// A place on a cache line of its own: a release must not wait for the line of another lock.
#[repr(align(64))]
struct Mark(AtomicUsize);

/// The key of a lock that tells by itself whether it is waited for, and the place of no mark.
const NONE: usize = 0;

static MARKS: [Mark; PLACES] = [const { Mark(AtomicUsize::new(NONE)) }; PLACES];

/// The place of a key. Locks in an array lie at multiples of their size, so high bits decide.
fn place(key: usize) -> &'static AtomicUsize {
    let mixed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &MARKS[(mixed >> (u64::BITS - PLACES.ilog2())) as usize].0
}

/// Marks a key.
pub(super) fn put(key: usize) {
    let mark = place(key);
    // Relaxed: a count; the lock orders what matters. The load keeps waiters from writing again
    // and again.
    if mark.load(Ordering::Relaxed) != key {
        mark.store(key, Ordering::Relaxed); // Relaxed: as above
    }
}

/// Whether the key was marked; takes the mark.
pub(super) fn take(key: usize) -> bool {
    let mark = place(key);
    // Relaxed: as in `put`.
    let marked = key != NONE && mark.load(Ordering::Relaxed) == key;
    if marked {
        mark.store(NONE, Ordering::Relaxed); // Relaxed: as above
    }
    marked
}

/// Whether a key is marked.
#[cfg(test)]
pub(super) fn is_put(key: usize) -> bool {
    place(key).load(Ordering::Relaxed) == key // Relaxed: as in `put`
}
