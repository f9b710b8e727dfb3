//! Publications: definitions that are published although a snapshot may not include their commit
//! yet.
//!
//! A statement waits for the publications among its own definitions, not for later ones. So a
//! stream of definitions makes no statement wait for ever.

use sync::SpinLock;
use sync::atomic::{AtomicU32, Ordering};

/// Transactions whose definitions are published and whose commit a snapshot may not include yet.
pub(super) struct Publications {
    /// Their number, which every statement reads.
    count: AtomicU32,
    /// The lowest generation that each may have published.
    since: SpinLock<Vec<u64>>,
}

/// One of them, until it is dropped.
pub(crate) struct Publication<'u> {
    publications: &'u Publications,
    since: u64,
}

impl Publications {
    /// None.
    pub fn new() -> Publications {
        Publications { count: AtomicU32::new(0), since: SpinLock::new(&"publications", Vec::new()) }
    }

    /// Begins before anything of generation `since` or higher is published.
    pub fn begin(&self, since: u64) -> Publication<'_> {
        self.since.lock().push(since);
        // Relaxed: the publication comes after it, and its release brings the count to every reader
        // that sees the definitions.
        self.count.fetch_add(1, Ordering::Relaxed);
        Publication { publications: self, since }
    }

    /// Whether none is left that may have published definitions of this generation or a lower one.
    #[inline]
    pub fn is_over(&self, generation: u64) -> bool {
        // Acquire: pairs with the end of a `Publication`, whose commit a snapshot taken from now on
        // includes.
        self.count.load(Ordering::Acquire) == 0 || self.since.lock().iter().all(|&since| since > generation)
    }
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        let mut since = self.publications.since.lock();
        if let Some(at) = since.iter().position(|&other| other == self.since) {
            since.swap_remove(at);
        }
        // Release: a reader that sees the count fall takes a snapshot that includes the commit.
        self.publications.count.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_published_before_is_waited_for() {
        let publications = Publications::new();
        assert!(publications.is_over(7));
        let first = publications.begin(7);
        assert!(publications.is_over(6) && !publications.is_over(7) && !publications.is_over(8));
        let second = publications.begin(9);
        drop(first);
        assert!(publications.is_over(8) && !publications.is_over(9));
        let third = publications.begin(9);
        drop(second);
        assert!(!publications.is_over(9));
        drop(third);
        assert!(publications.is_over(9));
    }
}
