//! Resident memory that the count misses: free pieces within the heaps, and pages that are used in
//! part.
//!
//! A hash table that grows leaves a hole where it was. Where many grow, the sum only rises, so
//! nothing asks for a trim, and the holes stay resident. What must hold:
//!
//! 1. While more than half of the limit is taken, each lease that a thread takes or gives back has
//!    the watch look at what is resident, at most every [`BETWEEN`].
//! 2. Where more is resident than the process may have, the heaps are trimmed. What is beyond it
//!    still counts as taken, so that memory is short: sessions are refused and stopped before the
//!    system kills the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sync::atomic::Ordering;

use super::{TAKEN, limit};
use crate::time;

/// Between two looks, in nanoseconds.
const BETWEEN: u64 = 5_000_000;
/// From the end of a trim to the next, in nanoseconds, and in times of what the trim has taken:
/// meanwhile a thread that allocates stands still.
const BETWEEN_TRIMS: u64 = 50_000_000;
const TRIM_TIMES: u64 = 10;

/// What the process may have resident, and what it has.
pub(super) struct Resident {
    most: i64,
    /// Pages: in all, resident, and those of them that belong to files.
    file: File,
    /// Bytes that count as taken because they are resident.
    counted: i64,
    looked: u64,
    trim_at: u64,
}

impl Resident {
    /// The process may have so many bytes resident, but for pages of files.
    pub(super) fn at_most(bytes: u64) -> io::Result<Resident> {
        let most = i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(Resident { most, file: File::open("/proc/self/statm")?, counted: 0, looked: 0, trim_at: 0 })
    }

    /// When it may look again.
    pub(super) fn next_look(&self) -> u64 {
        self.looked + BETWEEN
    }

    /// Looks, trims where more is resident than may be, and counts what remains beyond.
    pub(super) fn look(&mut self, trim: impl FnOnce()) {
        let mut over = self.over();
        self.looked = time::precise();
        if over > 0 && self.looked >= self.trim_at {
            trim();
            let now = time::precise();
            self.trim_at = now + BETWEEN_TRIMS.max(TRIM_TIMES * (now - self.looked));
            over = self.over();
        }
        // Relaxed: a sum, which orders nothing.
        let held = TAKEN.load(Ordering::Relaxed) - self.counted;
        let counts = if over > 0 { (limit() - held).max(0) + over } else { 0 };
        TAKEN.fetch_add(counts - self.counted, Ordering::Relaxed);
        self.counted = counts;
    }

    /// Bytes resident beyond what may be. None is where the system does not tell.
    fn over(&self) -> i64 {
        let mut line = [0; 128];
        let length = self.file.read_at(&mut line, 0).unwrap_or(0);
        anonymous_pages(&line[..length]).map_or(0, |pages| pages * page_bytes() - self.most)
    }
}

/// Resident pages less those of files.
fn anonymous_pages(line: &[u8]) -> Option<i64> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1);
    let mut next = || fields.next()?.parse::<i64>().ok();
    Some(next()? - next()?)
}

fn page_bytes() -> i64 {
    // SAFETY: a plain call.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
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
