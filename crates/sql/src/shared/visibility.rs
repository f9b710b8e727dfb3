//! Definitions that are published while their commit is still on its way into every snapshot.
//!
//! A statement waits for those among the definitions it goes by; what is published later is none of
//! its business, so a stream of definitions makes nobody wait for ever.

use sync::SpinLock;
use sync::atomic::{AtomicU32, Ordering};

/// Transactions whose definitions are published and whose commit a snapshot may not include yet.
#[derive(Default)]
pub(super) struct Unsettled {
    /// How many there are: what every statement looks at.
    count: AtomicU32,
    /// The lowest generation that each may have published.
    since: SpinLock<Vec<u64>>,
}

/// One of them, until it is dropped.
pub(crate) struct Settling<'u> {
    unsettled: &'u Unsettled,
    since: u64,
}

impl Unsettled {
    /// Begins before anything of generation `since` or higher is published.
    pub fn begin(&self, since: u64) -> Settling<'_> {
        self.since.lock().push(since);
        // Relaxed: the publication comes after it, and its release brings the count to whoever sees
        // the definitions.
        self.count.fetch_add(1, Ordering::Relaxed);
        Settling { unsettled: self, since }
    }

    /// Whether none is left that may have published definitions of this generation or a lower one.
    #[inline]
    pub fn is_over(&self, generation: u64) -> bool {
        // Acquire: pairs with the end of a `Settling`, whose commit a snapshot taken from now on
        // includes.
        self.count.load(Ordering::Acquire) == 0 || self.since.lock().iter().all(|&since| since > generation)
    }
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let mut since = self.unsettled.since.lock();
        if let Some(at) = since.iter().position(|&other| other == self.since) {
            since.swap_remove(at);
        }
        // Release: whoever sees the count fall takes a snapshot that includes the commit.
        self.unsettled.count.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_published_before_is_waited_for() {
        let unsettled = Unsettled::default();
        assert!(unsettled.is_over(7));
        let first = unsettled.begin(7);
        assert!(unsettled.is_over(6) && !unsettled.is_over(7) && !unsettled.is_over(8));
        let second = unsettled.begin(9);
        drop(first);
        assert!(unsettled.is_over(8) && !unsettled.is_over(9));
        let third = unsettled.begin(9);
        drop(second);
        assert!(!unsettled.is_over(9));
        drop(third);
        assert!(unsettled.is_over(9));
    }
}
