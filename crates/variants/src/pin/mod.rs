//! Row `pin` (P15): keeping a page in its frame while it is read.
//!
//! PostgreSQL counts pins in the frame's header. P15 found 32% of CPU time in the spin lock around
//! that count. [`CountedFrame`] is the stock state. [`ExchangeFrame`] is the step, a
//! compare-and-swap loop on a state word. [`AddFrame`] is the published one, an optimistic add that
//! is taken back. The engine's reads do not pin at all: they check a version
//! (`sync::VersionLatch`).

mod add;
mod counted;
mod exchange;

pub use add::AddFrame;
pub use counted::CountedFrame;
pub use exchange::ExchangeFrame;

use crate::caller::Caller;
use crate::spin::Finally;

/// The highest usage count, as in PostgreSQL.
const USAGE_MAX: u8 = 5;

/// A frame of a buffer pool, whose page may change while nobody uses it.
pub trait Frame: Sync {
    /// Runs `body` while the frame holds `page`. `None` if it holds another one. A frame without
    /// pins runs it again if the page went meanwhile; the last result counts.
    fn visit<R>(&self, me: &mut Caller, page: u64, body: impl FnMut() -> R) -> Option<R>;
    /// Gives the frame from one page to another, whose bytes `load` fills in. False if the frame is
    /// in use or holds another page.
    fn replace(&self, me: &mut Caller, from: u64, to: u64, load: impl FnOnce()) -> bool;
}

/// A frame with a count of pins.
pub trait PinnedFrame: Sync + Sized {
    /// A frame that holds `page`.
    fn new(page: u64) -> Self;
    /// Pins the frame if it holds `page`.
    fn pin(&self, me: &mut Caller, page: u64) -> bool;
    /// Takes a pin off. Only for a thread that has one.
    fn unpin(&self, me: &mut Caller);
    /// Claims the frame if it holds `page` and has no pins.
    fn claim(&self, me: &mut Caller, page: u64) -> bool;
    /// Gives a claimed frame to `page`. Only for the thread that claimed it.
    fn give(&self, me: &mut Caller, page: u64);
    /// Pins on the frame.
    fn pins(&self, me: &mut Caller) -> u32;
}

impl<F: PinnedFrame> Frame for F {
    #[inline]
    fn visit<R>(&self, me: &mut Caller, page: u64, mut body: impl FnMut() -> R) -> Option<R> {
        if !self.pin(me, page) {
            return None;
        }
        let unpin = Finally(|| self.unpin(me));
        let result = body();
        drop(unpin);
        Some(result)
    }

    fn replace(&self, me: &mut Caller, from: u64, to: u64, load: impl FnOnce()) -> bool {
        let claimed = self.claim(me, from);
        if claimed {
            load();
            self.give(me, to);
        }
        claimed
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, rounds};

    /// Threads read the frame's page, whose two words hold its number, and try to replace it.
    fn keeps_pinned_pages(frame: &impl PinnedFrame) {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let latest = AtomicU64::new(0);
        // Relaxed, here and below: ordered by the frame under test.
        let replaced: u64 = at_once(|me| {
            let mut replaced = 0;
            for round in 0..rounds() {
                let page = latest.load(Ordering::Relaxed);
                let see = || words.each_ref().map(|word| word.load(Ordering::Relaxed));
                if let Some(seen) = frame.visit(me, page, see) {
                    assert_eq!(seen, [page; 2], "a pinned page has gone");
                }
                let load = || words.iter().for_each(|word| word.store(page + 1, Ordering::Relaxed));
                if round.is_multiple_of(8) && frame.replace(me, page, page + 1, load) {
                    latest.store(page + 1, Ordering::Relaxed);
                    replaced += 1;
                }
            }
            replaced
        })
        .into_iter()
        .sum();
        let me = &mut Caller::new(0);
        assert!(replaced > 0);
        assert_eq!(frame.visit(me, replaced, || ()), Some(()));
        assert_eq!(frame.visit(me, replaced + 1, || ()), None);
    }

    #[test]
    fn no_thread_of_more_than_cores_loses_a_page_that_it_has_pinned() {
        keeps_pinned_pages(&CountedFrame::new(0));
        keeps_pinned_pages(&ExchangeFrame::new(0));
        keeps_pinned_pages(&AddFrame::new(0));
    }

    /// A step of one of the threads.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Pin(u64),
        Unpin,
        Claim(u64),
        Give(u64),
    }

    /// Threads by number, 0 to 3, with their steps over pages 0 to 2.
    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        let step = prop_oneof![
            3 => (0u64..3).prop_map(Step::Pin),
            3 => Just(Step::Unpin),
            2 => (0u64..3).prop_map(Step::Claim),
            1 => (0u64..3).prop_map(Step::Give),
        ];
        prop::collection::vec((0usize..4, step), 0..300)
    }

    /// Plays the steps on a frame, and on its page and the pins of each thread as numbers.
    fn counts_pins(frame: &impl PinnedFrame, steps: &[(usize, Step)]) -> Result<(), TestCaseError> {
        let (mut page, mut evictor, mut pins) = (0, None, [0u32; 4]);
        for &(thread, step) in steps {
            let me = &mut Caller::new(thread);
            match step {
                // A pin of a claimed frame waits for the evictor.
                Step::Pin(wanted) if evictor.is_none() => {
                    prop_assert_eq!(frame.pin(me, wanted), page == wanted);
                    pins[thread] += u32::from(page == wanted);
                }
                Step::Unpin if pins[thread] > 0 => {
                    frame.unpin(me);
                    pins[thread] -= 1;
                }
                Step::Claim(wanted) => {
                    let is_idle = evictor.is_none() && page == wanted && pins == [0; 4];
                    prop_assert_eq!(frame.claim(me, wanted), is_idle);
                    evictor = evictor.or(is_idle.then_some(thread));
                }
                Step::Give(next) if evictor == Some(thread) => {
                    frame.give(me, next);
                    (page, evictor) = (next, None);
                }
                _ => {}
            }
            prop_assert_eq!(frame.pins(me), pins.iter().sum::<u32>());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_frame_keeps_its_page_while_it_has_pins(steps in steps()) {
            counts_pins(&CountedFrame::new(0), &steps)?;
            counts_pins(&ExchangeFrame::new(0), &steps)?;
            counts_pins(&AddFrame::new(0), &steps)?;
        }
    }

    fn refuses(frame: &impl PinnedFrame) {
        let (mut one, mut other) = (Caller::new(0), Caller::new(1));
        assert!(frame.pin(&mut one, 7) && frame.pin(&mut other, 7) && !frame.pin(&mut one, 8));
        assert_eq!(frame.pins(&mut one), 2);
        frame.unpin(&mut one);
        assert!(!frame.claim(&mut one, 7), "the other thread's pin keeps the page");
        frame.unpin(&mut other);
        assert!(!frame.claim(&mut one, 8) && frame.claim(&mut one, 7));
        assert_eq!(frame.pins(&mut one), 0, "a claim is no pin");
        frame.give(&mut one, 8);
        assert!(!frame.pin(&mut other, 7) && frame.pin(&mut other, 8));
    }

    #[test]
    fn a_pinned_frame_is_not_claimed() {
        refuses(&CountedFrame::new(7));
        refuses(&ExchangeFrame::new(7));
        refuses(&AddFrame::new(7));
    }
}
