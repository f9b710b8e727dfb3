//! Parts of the buffer pool apart from a pool, so that `mechanisms` measures the engine's own types
//! and no copies of them.
//!
//! The frames here are headers alone. Nothing reaches a store, and no part of the server comes
//! here. What must hold: one thread at a time uses a core's number, as a core's fibers take turns.

use std::io;
use std::sync::Arc;

use runtime::memory::{HugePages, Region};

use crate::frame::Frame;
use crate::free::FreeFrames;
use crate::page::PageNo;
use crate::pool::Headers;
use crate::sweep::{Machine, Sweep, batch_size};

/// Headers of frames without pages.
fn headers(frames: usize) -> io::Result<Headers> {
    let region = Region::frames(frames * size_of::<Frame>(), HugePages::Try)?;
    Ok(Headers::new(Arc::new(region), frames))
}

/// The sweep of a pool of so many frames. `workers` cores use it, on a machine with so many NUMA
/// nodes and processors. `wanted` replaces the batch that the engine chooses there.
pub fn sweep(frames: usize, workers: usize, nodes: usize, processors: usize, wanted: Option<usize>) -> Sweep {
    let machine = Machine { nodes, cores: processors };
    Sweep::new(frames, workers, batch_size(frames, machine, workers, wanted))
}

/// The lists of free frames.
#[derive(Debug)]
pub struct FreeLists {
    headers: Headers,
    lists: FreeFrames,
}

impl FreeLists {
    /// All of so many frames, dealt out to the cores. `nodes` has the NUMA node of each core, and
    /// `distance` is that from a node to another.
    ///
    /// # Errors
    /// The system has no memory for headers.
    pub fn new(frames: usize, nodes: &[usize], distance: impl Fn(usize, usize) -> usize) -> io::Result<Self> {
        let (headers, lists) = (headers(frames)?, FreeFrames::new(frames, nodes, distance));
        let first = |core: usize| core * frames / nodes.len();
        (0..nodes.len()).for_each(|core| lists.put_all(&headers, core, first(core)..first(core + 1)));
        Ok(Self { headers, lists })
    }

    /// Takes a frame from the core's list, or from another's that a search finds.
    pub fn take(&self, core: usize) -> Option<usize> {
        self.lists.take(&self.headers, core).map(|frame| frame as usize)
    }

    /// Puts a frame into the core's list. Only for the thread that took it.
    pub fn put(&self, core: usize, frame: usize) {
        self.lists.put(&self.headers, core, frame as u32);
    }
}

/// Clean pages that are used where they are, and taken out of their frames by the sweep.
#[derive(Debug)]
pub struct CleanPages {
    headers: Headers,
    sweep: Sweep,
}

impl CleanPages {
    /// A page in each of so many frames, for the sweep of [`sweep`].
    ///
    /// # Errors
    /// The system has no memory for headers.
    pub fn new(frames: usize, sweep: Sweep) -> io::Result<Self> {
        let pages = Self { headers: headers(frames)?, sweep };
        (0..frames).for_each(|frame| pages.put(frame));
        Ok(pages)
    }

    /// Looks at the next frame of the core's sweep at the time `now`. Takes an unused page out of
    /// its frame, which is the caller's then.
    #[inline]
    pub fn look(&self, core: usize, now: u64) -> Option<usize> {
        let frame = self.sweep.next(core, now);
        let header = &self.headers[frame];
        let state = header.latch.load();
        if header.stays(state) {
            return None;
        }
        let hold = header.latch.try_lock_idle(state, || &"page")?;
        header.set_page_no(PageNo::NONE);
        header.latch.unlock_changed(hold);
        Some(frame)
    }

    /// Puts a page into a frame. Only for the thread that took it.
    #[inline]
    pub fn put(&self, frame: usize) {
        let header = &self.headers[frame];
        let hold = loop {
            // A reader that saw the last page may hold a pin for a moment. It does not keep the
            // latch.
            let seen = header.latch.read(|| &"page");
            if let Some(hold) = seen.and_then(|seen| header.latch.try_lock(seen, || &"page")) {
                break hold;
            }
        };
        header.set_page_no(PageNo(frame as u32));
        header.latch.unlock_changed(hold);
    }

    /// Pins the frame's page, beside others that have done so. False if the frame has none.
    #[inline]
    pub fn pin(&self, frame: usize) -> bool {
        let header = &self.headers[frame];
        let Some(seen) = header.latch.read(|| &"page") else { return false };
        let has_page = header.page_no() != PageNo::NONE;
        if has_page {
            header.touch();
        }
        has_page && header.latch.try_pin(seen)
    }

    /// Takes a pin off.
    #[inline]
    pub fn unpin(&self, frame: usize) {
        self.headers[frame].latch.unpin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_free_frame_is_taken_once() {
        let lists = FreeLists::new(10, &[0, 0, 1], |_, _| 20).unwrap();
        let mut taken: Vec<usize> = (0..10).map(|turn| lists.take(turn % 3).unwrap()).collect();
        assert_eq!(lists.take(0), None);
        lists.put(1, taken[4]);
        assert_eq!(lists.take(2), Some(taken[4]), "a core finds what another one put");
        taken.sort_unstable();
        assert_eq!(taken, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_pinned_page_stays_and_others_go_once_their_use_is_long_ago() {
        let pages = CleanPages::new(4, sweep(4, 1, 1, 2, None)).unwrap();
        assert!(pages.pin(1) && pages.pin(1));
        pages.pin(3);
        pages.unpin(3);
        let gone: Vec<usize> = (0..12).filter_map(|_| pages.look(0, 0)).collect();
        assert_eq!(gone, [0, 2, 3]);
        assert!(!pages.pin(2), "no page is there");
        pages.put(2);
        assert!(pages.pin(2));
        pages.unpin(1);
        assert_eq!((0..12).filter_map(|_| pages.look(0, 0)).count(), 0, "one pin is left");
    }
}
