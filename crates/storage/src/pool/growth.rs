//! A pool's memory comes into use by units, ahead of demand.
//!
//! The number of frames is fixed, but only the frames of claimed units are in use. A core whose
//! free list is empty claims a unit of its NUMA node, then of the other nodes. One helper a node
//! touches the units that come next. So a small database takes little memory, and a start costs
//! nothing that grows with the pool. What must hold:
//!
//! 1. Nothing is evicted while a unit is unclaimed. So the sweep meets frames in use only.
//! 2. A core never waits for a helper, which has the lowest priority ([`Helper`]).
//! 3. A frame of an unclaimed unit is on no list and has no page. Its header is zeroed memory. The
//!    sweep may read it, and finds no page.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use runtime::helper::{Helper, Urgency};
use runtime::memory::Region;
use runtime::time;
use runtime::topology::Workers;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::headers::Headers;
use super::stretch::Stretch;
use crate::frame::Frame;
use crate::page::PAGE_SIZE;

/// Frames of a unit: 2 MiB, a huge page. Units of a small pool are smaller, so that every core gets
/// several.
const UNIT: usize = 256;
/// Least number of units of a small pool that a core can claim.
const UNITS_PER_CORE: usize = 4;
/// Units that a node's helper touches ahead of use, beside one for each core of the node. Where a
/// page is larger, a page.
const AHEAD: usize = 8;
/// Time between two looks at how far a preload is.
const LOOK: Duration = Duration::from_millis(50);

/// A node's part of the pool.
#[derive(Debug)]
struct Part {
    stretch: Stretch,
    frames: Range<usize>,
    /// The workers that claim from it first.
    cores: usize,
    /// The processors of its helpers; none for all.
    processors: Box<[usize]>,
}

/// The pool's memory, as helpers see it.
#[derive(Debug)]
struct Memory {
    parts: Box<[Part]>,
    /// Frames of a unit.
    unit: usize,
    frames: Arc<Region>,
    headers: Arc<Region>,
}

/// The frames in use, and the helpers that touch those that come next.
#[derive(Debug)]
pub(crate) struct Growth {
    helpers: Box<[Helper]>,
    memory: Arc<Memory>,
    /// The part that each core claims from first.
    part_of: Box<[usize]>,
    /// Whether all units are claimed. Written once; every miss reads it.
    whole: AtomicBool,
}

impl Growth {
    /// A pool of which nothing is in use. Its first `cores` workers claim frames.
    pub(crate) fn new(region: &Arc<Region>, headers: &Headers, cores: usize, workers: &Workers) -> Growth {
        let unit = (headers.len() / (UNITS_PER_CORE * cores)).clamp(1, UNIT);
        let nodes: Vec<usize> = (0..cores).map(|core| workers.node_of(core)).collect();
        let shares = shares(headers.len(), unit, &nodes[..cores.min(workers.cores())]);
        let page = region.kind().page_bytes() / (unit * PAGE_SIZE);
        let part = |(node, frames): &(usize, Range<usize>)| {
            let cores = nodes.iter().filter(|&of| of == node).count();
            let stretch = Stretch::new(frames.len().div_ceil(unit), page.max(AHEAD + cores));
            let processors = if workers.nodes() > 1 { workers.processors_of(*node) } else { &[] };
            Part { stretch, frames: frames.clone(), cores, processors: processors.into() }
        };
        let part_of =
            nodes.iter().map(|node| shares.iter().position(|(of, _)| of == node).unwrap_or(0)).collect();
        let (frames, headers) = (Arc::clone(region), Arc::clone(headers.region()));
        let memory = Arc::new(Memory { parts: shares.iter().map(part).collect(), unit, frames, headers });
        let helper = |(at, part): (usize, &Part)| {
            let memory = Arc::clone(&memory);
            Helper::start("touch", Urgency::Idle, &part.processors, move || memory.touch_next(at))
        };
        let helpers = memory.parts.iter().enumerate().map(helper).collect();
        Growth { helpers, memory, part_of, whole: AtomicBool::new(false) }
    }

    /// Whether all frames are in use.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        // Acquire: the sweep comes after the claims that it relies on.
        self.whole.load(Ordering::Acquire)
    }

    /// Claims frames for a core, which nobody else has; `None` when all are in use.
    pub(crate) fn claim(&self, core: usize) -> Option<Range<usize>> {
        let (own, parts) = (self.part_of[core], &self.memory.parts);
        for at in (own..parts.len()).chain(0..own) {
            if let Some(unit) = parts[at].stretch.claim() {
                if parts[at].stretch.is_short() {
                    self.helpers[at].wake();
                }
                return Some(self.memory.frames_of(at, unit));
            }
        }
        // Release: pairs with `is_whole`.
        self.whole.store(true, Ordering::Release);
        None
    }

    /// The frames in use, in their order.
    ///
    /// A checkpoint finds all frames here that were changed before it began. The core claimed the
    /// frame before it reserved log space for the change. The checkpoint's exchange on the log's
    /// position word came after that reservation, and this look comes after the exchange.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = Range<usize>> {
        self.memory.parts.iter().map(|part| {
            let claimed = part.stretch.claimed() * self.memory.unit;
            part.frames.start..part.frames.end.min(part.frames.start + claimed)
        })
    }

    /// Touches all frames, in use or not, with a thread for each core. Calls `progress` with the
    /// touched frames now and then; false gives up. Not for a worker, since it sleeps meanwhile.
    pub(crate) fn preload(&self, progress: &mut dyn FnMut(usize) -> bool) {
        let memory = &self.memory;
        let all: usize = memory.parts.iter().map(|part| part.stretch.units()).sum();
        let done = Arc::new(AtomicUsize::new(0));
        let mut helpers = Vec::new();
        for (at, part) in memory.parts.iter().enumerate() {
            let next = Arc::new(AtomicUsize::new(0));
            let step = || {
                let (memory, next, done) = (Arc::clone(memory), Arc::clone(&next), Arc::clone(&done));
                move || memory.preload_next(at, &next, &done)
            };
            let start = |_| Helper::start("preload", Urgency::Normal, &part.processors, step());
            let before = helpers.len();
            helpers.extend((0..part.cores).map(start).filter(Helper::is_running));
            if helpers.len() == before {
                // The system refuses threads, so this one does the work.
                let step = step();
                while step() {
                    // Relaxed, here and below: a count that orders nothing.
                    if !progress(done.load(Ordering::Relaxed) * memory.unit) {
                        return;
                    }
                }
            }
        }
        while done.load(Ordering::Relaxed) < all {
            time::sleep_thread(LOOK);
            if !progress(done.load(Ordering::Relaxed) * memory.unit) {
                return;
            }
        }
        memory.parts.iter().for_each(|part| part.stretch.touch_no_more());
    }
}

impl Memory {
    /// The frames of a part's unit.
    fn frames_of(&self, part: usize, unit: usize) -> Range<usize> {
        let frames = &self.parts[part].frames;
        let first = frames.start + unit * self.unit;
        first..frames.end.min(first + self.unit)
    }

    fn touch(&self, part: usize, unit: usize) {
        let frames = self.frames_of(part, unit);
        self.headers.touch(frames.start * size_of::<Frame>()..frames.end * size_of::<Frame>());
        self.frames.touch(frames.start * PAGE_SIZE..frames.end * PAGE_SIZE);
    }

    /// Touches the unit that comes into use next; false when enough are touched.
    fn touch_next(&self, part: usize) -> bool {
        let unit = self.parts[part].stretch.begin();
        unit.is_some_and(|unit| {
            self.touch(part, unit);
            true
        })
    }

    /// Touches the next unit of all; false when there are no more.
    fn preload_next(&self, part: usize, next: &AtomicUsize, done: &AtomicUsize) -> bool {
        // Relaxed, here and below: counts that order nothing.
        let unit = next.fetch_add(1, Ordering::Relaxed);
        let is_one = unit < self.parts[part].stretch.units();
        if is_one {
            self.touch(part, unit);
            done.fetch_add(1, Ordering::Relaxed);
        }
        is_one
    }
}

/// Deals frames out to nodes by their number of cores, in whole units but for the last one's.
fn shares(frames: usize, unit: usize, nodes_of_cores: &[usize]) -> Vec<(usize, Range<usize>)> {
    let mut nodes = nodes_of_cores.to_vec();
    nodes.sort_unstable();
    let mut shares: Vec<(usize, Range<usize>)> = Vec::new();
    let mut cores = 0;
    let mut first = 0;
    for group in nodes.chunk_by(|one, other| one == other) {
        cores += group.len();
        let end = if cores == nodes.len() { frames } else { frames * cores / nodes.len() / unit * unit };
        if first < end {
            shares.push((group[0], first..end));
        }
        first = end;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_the_frames_by_their_cores() {
        assert_eq!(shares(1000, 10, &[0]), [(0, 0..1000)]);
        assert_eq!(shares(1005, 10, &[0, 0, 1, 1]), [(0, 0..500), (1, 500..1005)]);
        assert_eq!(shares(100, 10, &[0, 2, 2]), [(0, 0..30), (2, 30..100)]);
        assert_eq!(shares(5, 10, &[0, 1]), [(1, 0..5)], "less than a unit: one node has all");
    }
}
