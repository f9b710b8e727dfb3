//! Resident memory that the count misses: free pieces within the heaps, and pages in partial use.
//!
//! A hash table that grows leaves a hole behind. While many grow, the sum only rises, so nothing
//! asks for a trim, and the holes stay resident. What must hold:
//!
//! 1. The watch reads the resident size every second. While more than half of the limit is taken, a
//!    thread that takes or gives back a lease asks for a reading. These come at most every
//!    [`BETWEEN`].
//! 2. If more is resident than the process may have, the watch trims the heaps. The excess that a
//!    trim leaves counts as taken, which makes memory short: sessions are refused and stopped
//!    before the system kills the process. Growth between two trims counts once it exceeds the
//!    bound by a 32nd.

use std::io;

use sync::atomic::{AtomicI64, Ordering};

use super::{TAKEN, limit};
use crate::os::process::{Pages, page_bytes};
use crate::time;

/// The least time between two readings, in nanoseconds.
const BETWEEN: u64 = 5_000_000;
/// The longest time between two readings, in nanoseconds.
const AT_LEAST: u64 = 1_000_000_000;
/// A 32nd of the bound on resident memory: an excess beyond that counts before the next trim.
const FAR: i64 = 32;
/// The least pause between two trims, in nanoseconds and in multiples of the last trim's duration.
/// During a trim, a thread that allocates stands still.
const BETWEEN_TRIMS: u64 = 50_000_000;
const TRIM_TIMES: u64 = 10;

/// Bytes that count as taken because they are resident. The watch alone writes it.
static EXCESS: AtomicI64 = AtomicI64::new(0);

/// Bytes that count as taken because more is resident than the process may have, not because
/// sessions hold them.
pub fn excess() -> i64 {
    // Relaxed: a number that orders nothing.
    EXCESS.load(Ordering::Relaxed)
}

/// The resident memory of the process, and its limit.
pub(super) struct Resident {
    most: i64,
    /// Pages: in all, resident, and those of them that belong to files.
    pages: Pages,
    looked: u64,
    trim_at: u64,
}

impl Resident {
    /// The process may have so many bytes resident, but for pages of files.
    pub(super) fn at_most(bytes: u64) -> io::Result<Resident> {
        let most = i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(Resident { most, pages: Pages::open()?, looked: 0, trim_at: 0 })
    }

    /// When it may look again.
    pub(super) fn next_look(&self) -> u64 {
        self.looked + BETWEEN
    }

    /// When it looks again though nobody asks.
    pub(super) fn last_look(&self) -> u64 {
        self.looked + AT_LEAST
    }

    /// Reads the resident size, trims the heaps if it exceeds the bound, and counts the excess that
    /// remains.
    pub(super) fn look(&mut self, trim: impl FnOnce()) {
        let mut over = self.over();
        self.looked = time::precise();
        let trims = over > 0 && self.looked >= self.trim_at;
        if trims {
            trim();
            let now = time::precise();
            self.trim_at = now + BETWEEN_TRIMS.max(TRIM_TIMES * (now - self.looked));
            over = self.over();
        }
        // Relaxed, here and below: a sum, and a number that orders nothing.
        let counted = excess();
        let held = TAKEN.load(Ordering::Relaxed) - counted;
        let beyond = if over > 0 { (limit() + over - held).max(0) } else { 0 };
        let is_known = trims || over > self.most / FAR;
        let counts = if is_known { beyond } else { beyond.min(counted) };
        TAKEN.fetch_add(counts - counted, Ordering::Relaxed);
        EXCESS.store(counts, Ordering::Relaxed);
    }

    /// Bytes resident beyond what may be. None is where the system does not tell.
    fn over(&self) -> i64 {
        let mut line = [0; 128];
        let length = self.pages.read(&mut line);
        anonymous_pages(&line[..length]).map_or(0, |pages| pages * page_bytes() - self.most)
    }
}

/// Resident pages less those of files.
fn anonymous_pages(line: &[u8]) -> Option<i64> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1);
    let mut next = || fields.next()?.parse::<i64>().ok();
    Some(next()? - next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_pages_are_the_resident_ones_that_belong_to_no_file() {
        assert_eq!(anonymous_pages(b"9000 812 200 5 0 700 0\n"), Some(612));
        assert_eq!(anonymous_pages(b""), None);
    }
}
