//! Row `pin`: a hot page that all threads read, as the root of an index.

use sync::atomic::{AtomicBool, AtomicU64, Ordering, yield_thread};
use sync::{CachePadded, Version, VersionLatch};
use variants::caller::Caller;
use variants::pin::{AddFrame, CountedFrame, ExchangeFrame, Frame, PinnedFrame};

use super::{Arm, Machine, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// One operation in so many tries to replace the page.
const REPLACE: u64 = 1024;
/// Steps of computing in a read, some 75 ns: a binary search in a page.
const INSIDE: u32 = 40;
/// Steps between two operations.
const OUTSIDE: u32 = 40;
/// Bits of the engine's state word that count pins.
const PINS: u32 = 20;

/// The row.
pub(super) const ROW: Row = Row {
    id: "pin",
    report: "P15",
    about: "pins of a hot page: a count under a spin lock, a compare-and-swap loop, an optimistic add, none",
    operation: "pin, read 2 words for 75 ns, unpin; 1 in 1024 tries to replace the page",
    needs: Some(Machine::Nodes(4, "a failed exchange costs another transfer of the line")),
    code: "crates/variants/src/pin",
    arms: &[
        Arm { name: "spin lock", part: Part::Stock, start: start::<CountedFrame> },
        Arm { name: "compare-and-swap", part: Part::Step, start: start::<ExchangeFrame> },
        Arm { name: "optimistic-add", part: Part::Published, start: start::<AddFrame> },
        Arm { name: "validate", part: Part::Allcore, start: |_| hot(Own::<false>::default()) },
        Arm { name: "try_pin", part: Part::Allcore, start: |_| hot(Own::<true>::default()) },
    ],
};

fn start<F: PinnedFrame + 'static>(_: usize) -> Started {
    hot(F::new(0))
}

fn hot(frame: impl Frame + 'static) -> Started {
    Ok(Box::new(Hot {
        frame,
        words: Default::default(),
        latest: Default::default(),
        replaced: AtomicU64::new(0),
        is_torn: AtomicBool::new(false),
    }))
}

/// The engine's frame word: a reader pins, as the engine does where a page must stay, or checks the
/// version, as its reads do.
#[derive(Debug, Default)]
struct Own<const PINNED: bool>(CachePadded<Header>);

#[derive(Debug, Default)]
struct Header {
    latch: VersionLatch<PINS>,
    page: AtomicU64,
}

impl<const PINNED: bool> Own<PINNED> {
    /// The word with an open latch.
    #[inline]
    fn open(&self, me: &mut Caller) -> Version<PINS> {
        loop {
            if let Some(seen) = self.0.latch.read(|| &"mechanism") {
                return seen;
            }
            // The evictor has lost its processor.
            me.retried();
            yield_thread();
        }
    }

    /// Whether the frame held `page` at that word.
    #[inline]
    fn holds(&self, page: u64) -> bool {
        // Relaxed: validated by the version, or kept by the pin.
        self.0.page.load(Ordering::Relaxed) == page
    }
}

impl<const PINNED: bool> Frame for Own<PINNED> {
    #[inline]
    fn visit<R>(&self, me: &mut Caller, page: u64, mut body: impl FnMut() -> R) -> Option<R> {
        loop {
            let seen = self.open(me);
            if PINNED {
                if self.0.latch.try_pin(seen) {
                    let result = self.holds(page).then(&mut body);
                    self.0.latch.unpin();
                    return result;
                }
            } else {
                let result = self.holds(page).then(&mut body);
                if self.0.latch.validate(seen) {
                    return result;
                }
            }
            me.retried();
        }
    }

    fn replace(&self, me: &mut Caller, from: u64, to: u64, load: impl FnOnce()) -> bool {
        let seen = self.open(me);
        let hold = self.holds(from).then(|| self.0.latch.try_lock_idle(seen, || &"mechanism")).flatten();
        let Some(hold) = hold else {
            return false;
        };
        load();
        // Relaxed: published by the release of the latch.
        self.0.page.store(to, Ordering::Relaxed);
        self.0.latch.unlock_changed(hold);
        true
    }
}

#[derive(Debug)]
struct Hot<F> {
    frame: F,
    /// The page's bytes: its number, twice.
    words: CachePadded<[AtomicU64; 2]>,
    /// The page that the frame holds, to look for it.
    latest: CachePadded<AtomicU64>,
    replaced: AtomicU64,
    is_torn: AtomicBool,
}

impl<F: Frame> Subject for Hot<F> {
    fn work(&self, worker: &mut Worker<'_>) {
        // Relaxed, here and below: ordered by the frame, or read after the threads' end.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let [left, right] = &*self.words;
        let (mut page, mut count, mut replaced) = (0, 0u64, 0);
        worker.repeat(|me| {
            let read = || {
                let seen = load(left);
                compute(INSIDE);
                (seen, load(right))
            };
            match self.frame.visit(me, page, read) {
                Some(seen) if seen != (page, page) => self.is_torn.store(true, Ordering::Relaxed),
                Some(_) => {}
                None => page = load(&self.latest),
            }
            count += 1;
            if count.is_multiple_of(REPLACE) {
                let fill = || self.words.iter().for_each(|word| word.store(page + 1, Ordering::Relaxed));
                if self.frame.replace(me, page, page + 1, fill) {
                    page += 1;
                    replaced += 1;
                    self.latest.store(page, Ordering::Relaxed);
                }
            }
            compute(OUTSIDE);
        });
        self.replaced.fetch_add(replaced, Ordering::Relaxed);
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed, all: the threads have ended.
        let replaced = self.replaced.load(Ordering::Relaxed);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        if self.is_torn.load(Ordering::Relaxed) {
            return Err("a thread has lost a page that it had pinned".into());
        }
        if words != [replaced; 2] {
            return Err(format!(
                "{replaced} replacements have left page {words:?}: two took the frame at once"
            ));
        }
        Ok(())
    }
}
