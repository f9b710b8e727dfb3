//! The engine's latch of a page: readers write nothing, and writers who lost it queue.
//!
//! Both types are the engine's: `sync::VersionLatch` and `sync::Spinners`. A page's header has one
//! of each (`storage::frame`), and they are used here as `storage::btree::descend` uses them. The
//! model checks of `variants` include this file.
//!
//! 1. A reader notes the word, reads, and validates. If the latch is held, it polls. If it is held
//!    for long or something has changed, the reader starts over.
//! 2. A writer takes the latch if the word is as it has seen it. If another thread was faster, the
//!    writer waits for its turn in the queue of losers. The first one there contends with newcomers
//!    alone. It tries [`TRIES_IN_TURN`] times before it leaves the queue.
//! 3. A thread whose latch stays held gives its time slice away: the holder has lost its processor.
//!    It does so outside of the queue, as the engine's fibers yield.
//!
//! What must hold: the queue holds no latch, so a thread that finds the latch open never waits for
//! its turn.
//!
//! Cost in line transfers: 0 for a read since this core's last look, if nothing has changed. A
//! change costs 1, and each reader's next look 1. A lost latch costs 5 for the way through the
//! queue, at any number of losers.

use sync::atomic::yield_thread;
use sync::profile::{self, Class, Hold, Kind, Site, Waiting};
use sync::{CachePadded, Spinners, VersionLatch};
use variants::caller::Caller;
use variants::latch::Latch;

/// Tries of a writer in one turn, as many as `storage::btree::descend` walks in one.
const TRIES_IN_TURN: u32 = if cfg!(loom) { 2 } else { 8 };

/// The class of the latch.
const CLASS: fn() -> Class = || &"mechanism";

/// The latch.
#[derive(Debug, Default)]
pub(super) struct Own(CachePadded<Header>);

#[derive(Debug, Default)]
struct Header {
    latch: VersionLatch,
    losers: Spinners,
}

/// A writer has not got the latch.
enum Lost {
    /// Another thread was faster.
    Overtaken,
    /// Another thread holds it for long.
    Held,
}

impl Own {
    /// One look at the latch, which takes it if it stays open.
    #[inline]
    fn take(&self) -> Result<Hold, Lost> {
        let seen = self.0.latch.read(CLASS).ok_or(Lost::Held)?;
        self.0.latch.try_lock(seen, CLASS).ok_or(Lost::Overtaken)
    }

    /// Tries in turn with the others who lost the latch.
    #[cold]
    fn take_in_turn(&self, me: &mut Caller) -> Result<Hold, Lost> {
        let (site, since) = (Site::here(&"turn at a page", Kind::Wait), Waiting::begin_unmarked());
        self.0.losers.in_turn(|has_waited| {
            match since {
                Some(since) if has_waited => since.end(&site),
                _ => profile::count(|| site),
            }
            for _ in 1..TRIES_IN_TURN {
                match self.take() {
                    Err(Lost::Overtaken) => me.retried(),
                    taken_or_held => return taken_or_held,
                }
            }
            self.take()
        })
    }
}

impl Latch for Own {
    #[inline]
    fn read<R>(&self, me: &mut Caller, mut body: impl FnMut() -> R) -> R {
        loop {
            match self.0.latch.read(CLASS) {
                Some(seen) => {
                    let result = body();
                    if self.0.latch.validate(seen) {
                        return result;
                    }
                }
                None => yield_thread(),
            }
            me.retried();
        }
    }

    #[inline]
    fn write<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R {
        let mut taken = self.take();
        let hold = loop {
            taken = match taken {
                Ok(hold) => break hold,
                Err(lost) => {
                    me.retried();
                    match lost {
                        Lost::Overtaken => self.take_in_turn(me),
                        Lost::Held => {
                            yield_thread();
                            self.take()
                        }
                    }
                }
            };
        };
        let result = body();
        self.0.latch.unlock_changed(hold);
        result
    }
}
