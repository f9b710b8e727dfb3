//! The version latch: writers exclude each other, readers write nothing and validate what they read.
//!
//! One 64-bit word: bit 0 = held exclusively, the rest a version that grows with every change. A reader notes the
//! version, reads through [`crate::racy::RacyBytes`], and validates; the version never repeats, so an unchanged word
//! means unchanged bytes.

use crate::atomic::{AtomicU64, Ordering, fence, spin_loop};
use crate::held;

const EXCLUSIVE: u64 = 1;
const SPINS: u32 = if cfg!(loom) { 2 } else { 200 };

/// What an optimistic reader noted before it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// The raw word, bit 0 clear.
    pub fn word(self) -> u64 {
        self.0
    }
}

/// A latch that is read optimistically.
#[derive(Debug, Default)]
pub struct VersionLatch {
    word: AtomicU64,
}

impl VersionLatch {
    /// An open latch at version 0.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// An open latch at version 0.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// The present version, or `None` while a writer holds the latch.
    #[inline]
    pub fn read(&self) -> Option<Version> {
        // Acquire: what is read next is at least as new as this version.
        let word = self.word.load(Ordering::Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word))
    }

    /// Whether nothing changed since `version` was read: only then may anything read since be believed.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // Acquire fence: the data reads before it stay before the load of the word.
        fence(Ordering::Acquire);
        self.word.load(Ordering::Relaxed) == version.0
    }

    /// Takes the latch exclusively if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Relaxed: the exchange below decides.
        let word = self.word.load(Ordering::Relaxed);
        word & EXCLUSIVE == 0 && self.try_upgrade(Version(word))
    }

    /// Takes the latch exclusively if nothing changed since `version` was read.
    #[inline]
    pub fn try_upgrade(&self, version: Version) -> bool {
        // Acquire: the last writer's bytes are seen. Relaxed on failure: nothing is read.
        if self
            .word
            .compare_exchange(version.0, version.0 | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        // Release fence: a reader that sees a byte written from here on also sees the word changed.
        fence(Ordering::Release);
        held::acquire();
        true
    }

    /// Spins a bounded time for the latch. False: give up what is held, park or yield, and start over.
    #[inline]
    pub fn lock(&self) -> bool {
        for _ in 0..SPINS {
            if self.try_lock() {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Whether somebody holds the latch exclusively.
    #[inline]
    pub fn is_locked(&self) -> bool {
        // Relaxed: a hint.
        self.word.load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    /// Gives the latch back after a change: readers that began before must start over. Only for the holder.
    #[inline]
    pub fn unlock(&self) {
        let word = self.held_word();
        held::release();
        // Release: whoever reads the new version sees the change. Plain store: the holder alone writes the word.
        self.word.store(word + 1, Ordering::Release);
    }

    /// Gives the latch back when nothing was changed: readers that began before stay valid. Only for the holder.
    #[inline]
    pub fn unlock_unchanged(&self) {
        let word = self.held_word();
        held::release();
        // Release: pairs with the next holder's acquire.
        self.word.store(word - 1, Ordering::Release);
    }

    fn held_word(&self) -> u64 {
        // Relaxed: the holder wrote it.
        let word = self.word.load(Ordering::Relaxed);
        assert!(word & EXCLUSIVE != 0, "a version latch is given back that nobody holds");
        word
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_invalidates_and_no_change_does_not() {
        let latch = VersionLatch::new();
        let before = latch.read().unwrap();
        assert!(latch.try_lock());
        assert!(latch.read().is_none() && !latch.try_lock() && !latch.lock() && !latch.validate(before));
        latch.unlock_unchanged();
        assert!(latch.validate(before));
        assert!(latch.try_upgrade(before));
        latch.unlock();
        assert!(!latch.validate(before) && !latch.try_upgrade(before));
        assert_eq!(held::count(), 0);
    }
}
