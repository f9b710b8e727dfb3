//! The version latch: writers exclude each other, readers write nothing and validate what they
//! read.
//!
//! It is the engine's only sequence lock. One 64-bit word: `[version | latch 1 | pins PINS]`. What
//! must hold:
//!
//! 1. A reader notes the word, reads through [`crate::racy::RacyBytes`] or atomics, and validates.
//!    Every change raises the version, so an unchanged version and an open latch mean unchanged
//!    bytes. The version repeats after 2^(63 - PINS) changes (2^43 with 20 bits of pins). That is
//!    far beyond what one optimistic read can sleep through.
//! 2. Pins don't touch the version, so a pin never fails a reader. [`VersionLatch::try_lock_idle`]
//!    alone heeds them: what is pinned stays where it is.
//! 3. A holder counts as one of a latch ([`held`]), but not in [`VersionLatch::write_alone`], which
//!    never waits.
//! 4. The holder keeps the profiler's [`Hold`] and gives it back with the latch: the word has no
//!    room for it. Callers name the latch's class only when the profiler is on.
//!
//! `tests/loom.rs` checks it with and without pins.

use std::panic::Location;

use crate::atomic::{AtomicU64, Ordering, fence, spin_loop};
use crate::held;
use crate::machine::preemption_point;
use crate::profile::{self, Class, Hold, Kind, Site, Waiting};

/// Attempts to see an open latch before the caller must unwind. A latch is held for well under a
/// microsecond. So the holder is about to finish, or its thread was preempted and waiting here is
/// in vain.
const SPINS: u32 = if cfg!(loom) { 2 } else { 200 };

/// The word of a [`VersionLatch`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<const PINS: u32 = 0>(u64);

impl<const PINS: u32> Version<PINS> {
    const PIN_MASK: u64 = (1 << PINS) - 1;
    const LATCH: u64 = 1 << PINS;

    /// Whether a writer holds the latch.
    #[inline]
    pub fn is_locked(self) -> bool {
        self.0 & Self::LATCH != 0
    }

    /// Whether the latch has pins.
    #[inline]
    pub fn is_pinned(self) -> bool {
        self.0 & Self::PIN_MASK != 0
    }

    /// Version and latch, without the pins: what an optimistic reader compares.
    #[inline]
    pub fn version(self) -> u64 {
        self.0 & !Self::PIN_MASK
    }
}

/// A latch that is read optimistically, with a count of `PINS` bits beside it.
#[derive(Debug)]
pub struct VersionLatch<const PINS: u32 = 0> {
    word: AtomicU64,
}

impl<const PINS: u32> Default for VersionLatch<PINS> {
    fn default() -> Self {
        Self { word: AtomicU64::new(0) }
    }
}

impl<const PINS: u32> VersionLatch<PINS> {
    const PIN: u64 = 1;
    const PIN_MASK: u64 = Version::<PINS>::PIN_MASK;
    /// The most pins that stay. As many threads can add one that they take back, before
    /// the count would run into the latch.
    const PINS_MOST: u64 = Self::PIN_MASK / 2;
    const LATCH: u64 = Version::<PINS>::LATCH;
    const VERSION: u64 = Self::LATCH << 1;

    /// The word now.
    #[inline]
    pub fn load(&self) -> Version<PINS> {
        // Acquire: who sees the word sees what the last holder of the latch wrote.
        let seen = Version(self.word.load(Ordering::Acquire));
        preemption_point();
        seen
    }

    /// The word once the latch is open, after a bounded spin. `None`: give up what is held, park or
    /// yield, and start over.
    #[inline]
    #[track_caller]
    pub fn read(&self, class: impl FnOnce() -> Class) -> Option<Version<PINS>> {
        let seen = self.load();
        if !seen.is_locked() {
            return Some(seen);
        }
        self.read_after_wait(class, Location::caller())
    }

    #[cold]
    #[inline(never)]
    fn read_after_wait(
        &self,
        class: impl FnOnce() -> Class,
        at: &'static Location<'static>,
    ) -> Option<Version<PINS>> {
        if !profile::is_on() {
            return self.read_after_spin();
        }
        let (site, waiting) = (Site { class: class(), kind: Kind::Read, at }, Waiting::begin(self.key()));
        let read = self.read_after_spin();
        waiting.end(&site);
        read
    }

    fn read_after_spin(&self) -> Option<Version<PINS>> {
        for _ in 0..SPINS {
            spin_loop();
            let seen = self.load();
            if !seen.is_locked() {
                return Some(seen);
            }
        }
        None
    }

    /// Whether nothing changed since `seen`: only then may the caller believe what it read since.
    #[inline]
    pub fn validate(&self, seen: Version<PINS>) -> bool {
        preemption_point();
        // Acquire: the racy reads before this stay before the load below (the reader's half of a
        // sequence lock).
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        Version::<PINS>(self.word.load(Ordering::Relaxed)).version() == seen.version()
    }

    /// Takes the latch if version and latch are as `seen`; pins may come and go.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self, seen: Version<PINS>, class: impl FnOnce() -> Class) -> Option<Hold> {
        let at = Location::caller();
        if self.take(seen) {
            return Some(Hold::begin(self.key(), move || Site { class: class(), kind: Kind::Acquire, at }));
        }
        if profile::is_on() {
            self.count_refused(class, at);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn count_refused(&self, class: impl FnOnce() -> Class, at: &'static Location<'static>) {
        if self.load().is_locked() {
            profile::mark(self.key());
        }
        profile::count(move || Site { class: class(), kind: Kind::Upgrade, at });
    }

    #[inline(always)]
    fn take(&self, seen: Version<PINS>) -> bool {
        // Relaxed: the exchange below acquires.
        let mut now = self.word.load(Ordering::Relaxed);
        while now & !Self::PIN_MASK == seen.version() && now & Self::LATCH == 0 {
            let locked = now | Self::LATCH;
            // Acquire: what the last holder wrote is seen. Relaxed on failure: looked at again.
            match self.word.compare_exchange_weak(now, locked, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    self.locked();
                    return true;
                }
                Err(found) => now = found,
            }
        }
        false
    }

    /// Takes the latch if the whole word is as `seen` and there is no pin: for giving what is
    /// latched to another use.
    #[track_caller]
    pub fn try_lock_idle(&self, seen: Version<PINS>, class: impl FnOnce() -> Class) -> Option<Hold> {
        if seen.is_locked() || seen.is_pinned() {
            return None;
        }
        let locked = seen.0 | Self::LATCH;
        // Acquire and Relaxed: as in `take`.
        self.word.compare_exchange(seen.0, locked, Ordering::Acquire, Ordering::Relaxed).ok()?;
        self.locked();
        let at = Location::caller();
        Some(Hold::begin(self.key(), move || Site { class: class(), kind: Kind::Acquire, at }))
    }

    #[inline]
    fn locked(&self) {
        held::acquire();
        // Release: the latch bit is seen before any byte written under it (the writer's half of a
        // sequence lock).
        fence(Ordering::Release);
        preemption_point();
    }

    /// Gives the latch back after a change: readers that began before must start over. Only for the
    /// holder. Returns the word that this leaves.
    #[inline]
    pub fn unlock_changed(&self, hold: Hold) -> Version<PINS> {
        hold.end(self.key());
        held::release();
        preemption_point();
        // Release: who sees the new word sees what was written. An addition, since pins come and
        // go.
        let raise = Self::VERSION - Self::LATCH;
        Version(self.word.fetch_add(raise, Ordering::Release).wrapping_add(raise))
    }

    /// Gives the latch back when nothing was changed: readers that began before stay valid. Only
    /// for the holder. Returns the word that this leaves.
    #[inline]
    pub fn unlock_unchanged(&self, hold: Hold) -> Version<PINS> {
        hold.end(self.key());
        held::release();
        preemption_point();
        // Release: what was written beside the latched bytes is seen by the next holder.
        Version(self.word.fetch_sub(Self::LATCH, Ordering::Release) - Self::LATCH)
    }

    /// The latch's name in the profiler's marks: its address.
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Adds a pin if version and latch are as `seen`, and there are few enough.
    ///
    /// One addition, which is taken back where the caller is not entitled to it (Korotkov and
    /// others 2015). Two callers who pin never fail each other. A pin that is about to be taken
    /// back makes [`VersionLatch::try_lock_idle`] fail, as a pin that stays would.
    pub fn try_pin(&self, seen: Version<PINS>) -> bool {
        const { assert!(PINS > 1, "this latch has no pins") };
        // Acquire: what this pin keeps is seen whole.
        let before = Version::<PINS>(self.word.fetch_add(Self::PIN, Ordering::Acquire));
        let is_entitled = before.version() == seen.version()
            && !before.is_locked()
            && before.0 & Self::PIN_MASK < Self::PINS_MOST;
        if !is_entitled {
            // Relaxed: nothing was read under this pin.
            self.word.fetch_sub(Self::PIN, Ordering::Relaxed);
        }
        is_entitled
    }

    /// Takes a pin off.
    pub fn unpin(&self) {
        const { assert!(PINS > 0, "this latch has no pins") };
        // Release: what the pin's owner read is read before what it kept can go to another use.
        let before = self.word.fetch_sub(Self::PIN, Ordering::Release);
        debug_assert!(before & Self::PIN_MASK != 0, "a pin is taken off once");
    }
}

impl VersionLatch {
    /// Runs `write` while readers see the latch as held, by plain stores. Only for words that one
    /// thread alone ever latches. `write` must neither panic nor suspend.
    #[inline]
    pub(crate) fn write_alone(&self, write: impl FnOnce()) {
        // Relaxed: only the caller changes the word.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word | Self::LATCH, Ordering::Relaxed);
        // Release: as in `locked`.
        fence(Ordering::Release);
        write();
        // Release: as in `unlock_changed`.
        self.word.store(word + Self::VERSION, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_fails_readers_and_no_change_does_not() {
        let latch: VersionLatch = VersionLatch::default();
        let before = latch.read(|| &"test").unwrap();
        let lock = || latch.try_lock(before, || &"test");
        let hold = lock().unwrap();
        assert!(latch.read(|| &"test").is_none() && lock().is_none() && !latch.validate(before));
        latch.unlock_unchanged(hold);
        assert!(latch.validate(before));
        latch.unlock_changed(lock().unwrap());
        assert!(!latch.validate(before) && lock().is_none());
        assert_eq!(held::count(), 0);
    }

    #[test]
    fn a_pin_fails_no_reader_and_keeps_the_latch_from_being_taken_idle() {
        let latch: VersionLatch<20> = VersionLatch::default();
        let seen = latch.read(|| &"test").unwrap();
        assert!(latch.try_pin(seen) && latch.validate(seen));
        let lock_idle = |seen| latch.try_lock_idle(seen, || &"test");
        assert!(lock_idle(latch.load()).is_none(), "what is pinned stays");
        assert!(lock_idle(seen).is_none(), "pinned since");
        let hold = latch.try_lock(seen, || &"test").unwrap();
        assert!(!latch.try_pin(seen));
        latch.unlock_changed(hold);
        assert!(!latch.validate(seen) && latch.try_lock(seen, || &"test").is_none() && !latch.try_pin(seen));
        latch.unpin();
        assert!(lock_idle(seen).is_none(), "changed since");
        latch.unlock_unchanged(lock_idle(latch.load()).unwrap());
        assert_eq!(held::count(), 0);
    }

    #[test]
    fn a_lone_writer_fails_readers() {
        let latch: VersionLatch = VersionLatch::default();
        let before = latch.read(|| &"test").unwrap();
        latch.write_alone(|| assert!(latch.read(|| &"test").is_none() && !latch.validate(before)));
        assert!(latch.read(|| &"test").is_some() && !latch.validate(before));
    }

    #[test]
    fn a_pin_too_many_or_of_another_version_is_taken_back() {
        let latch: VersionLatch<2> = VersionLatch::default();
        let seen = latch.load();
        assert!(latch.try_pin(seen) && !latch.try_pin(seen));
        latch.unpin();
        assert_eq!(latch.load(), seen);
        let hold = latch.try_lock(seen, || &"test").unwrap();
        assert!(!latch.try_pin(seen) && !latch.try_pin(latch.load()));
        latch.unlock_changed(hold);
        assert!(!latch.try_pin(seen) && !latch.load().is_pinned());
    }
    #[test]
    fn threads_past_the_cores_see_whole_changes_and_lose_none() {
        const CHANGES: u64 = 50_000;
        let threads = crate::stress::threads();
        let latch: VersionLatch<20> = VersionLatch::default();
        // Relaxed, here and below: the latch orders them.
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        // A thread could be done before the next one begins.
        let all = std::sync::Barrier::new(threads);
        let load = || (first.load(Ordering::Relaxed), second.load(Ordering::Relaxed));
        let change = || {
            all.wait();
            let mut done = 0;
            while done < CHANGES {
                let Some(seen) = latch.read(|| &"test") else { continue };
                let Some(hold) = latch.try_lock(seen, || &"test") else { continue };
                let (one, other) = load();
                assert_eq!(one, other);
                first.store(one + 1, Ordering::Relaxed);
                second.store(one + 1, Ordering::Relaxed);
                latch.unlock_changed(hold);
                done += 1;
            }
        };
        let look = || {
            all.wait();
            let mut seen_last = 0;
            while seen_last < CHANGES {
                let Some(seen) = latch.read(|| &"test") else { continue };
                let pinned = latch.try_pin(seen);
                let (one, other) = load();
                if latch.validate(seen) {
                    assert_eq!(one, other);
                    assert!(one >= seen_last);
                    seen_last = one;
                }
                if pinned {
                    latch.unpin();
                }
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..threads {
                if thread % 2 == 0 {
                    scope.spawn(change)
                } else {
                    scope.spawn(look)
                };
            }
        });
        assert_eq!(load(), (CHANGES * threads.div_ceil(2) as u64, CHANGES * threads.div_ceil(2) as u64));
        assert!(!latch.load().is_locked() && !latch.load().is_pinned());
    }
}
