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

use runtime::helper::Helper;
use runtime::memory::Region;
use runtime::topology::Workers;
use sync::atomic::{AtomicBool, Ordering};

use super::headers::Headers;
use super::stretch::Stretch;
use crate::frame::Frame;
use crate::page::PAGE_SIZE;

/// Frames of a unit: 2 MiB, a huge page. Units of a small pool are smaller, so that every core gets
/// several.
const UNIT: usize = 256;
/// Least number of units of a small pool that a core can claim.
const UNITS_PER_CORE: usize = 4;
/// Units that a node's helper touches ahead of use, beside one for each core of the node.
const AHEAD: usize = 8;

/// A node's part of the pool.
#[derive(Debug)]
struct Part {
    stretch: Stretch,
    first: usize,
    end: usize,
}

/// The frames in use, and the helpers that touch those that come next.
#[derive(Debug)]
pub(crate) struct Growth {
    /// Declared first: the helpers end before the memory is given back.
    helpers: Box<[Helper]>,
    parts: Arc<[Part]>,
    unit: usize,
    /// The part that each core claims from first.
    part_of: Box<[usize]>,
    /// Whether all units are claimed. Written once; every miss reads it.
    whole: AtomicBool,
}

impl Growth {
    /// A pool of which nothing is in use. Its first `cores` workers claim frames.
    pub(crate) fn new(region: &Arc<Region>, headers: &Headers, cores: usize, workers: &Workers) -> Growth {
        let frames = headers.len();
        let unit = (frames / (UNITS_PER_CORE * cores)).clamp(1, UNIT);
        let nodes: Vec<usize> = (0..cores).map(|core| workers.node_of(core)).collect();
        let shares = shares(frames, unit, &nodes[..cores.min(workers.cores())]);
        let part = |(node, range): &(usize, Range<usize>)| {
            let cores = nodes.iter().filter(|&of| of == node).count();
            let stretch = Stretch::new(range.len().div_ceil(unit), AHEAD + cores);
            Part { stretch, first: range.start, end: range.end }
        };
        let parts: Arc<[Part]> = shares.iter().map(part).collect();
        let part_of =
            nodes.iter().map(|node| shares.iter().position(|(of, _)| of == node).unwrap_or(0)).collect();
        let helper = |(at, (node, _)): (usize, &(usize, Range<usize>))| {
            let (parts, region, headers) =
                (Arc::clone(&parts), Arc::clone(region), Arc::clone(headers.region()));
            let step = move || parts[at].touch_next(unit, &region, &headers);
            let processors = if workers.nodes() > 1 { workers.processors_of(*node) } else { &[] };
            Helper::start("touch", processors, step)
        };
        let helpers = shares.iter().enumerate().map(helper).collect();
        Growth { helpers, parts, unit, part_of, whole: AtomicBool::new(false) }
    }

    /// Whether all frames are in use.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        // Acquire: the sweep comes after the claims that it relies on.
        self.whole.load(Ordering::Acquire)
    }

    /// Claims frames for a core, which nobody else has; `None` when all are in use.
    pub(crate) fn claim(&self, core: usize) -> Option<Range<usize>> {
        let own = self.part_of[core];
        for at in (own..self.parts.len()).chain(0..own) {
            let part = &self.parts[at];
            if let Some(unit) = part.stretch.claim() {
                if part.stretch.is_short() {
                    self.helpers[at].wake();
                }
                return Some(part.frames(unit, self.unit));
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
        self.parts.iter().map(|part| {
            let claimed = part.stretch.claimed() * self.unit;
            part.first..part.end.min(part.first + claimed)
        })
    }
}

impl Part {
    fn frames(&self, unit: usize, size: usize) -> Range<usize> {
        let first = self.first + unit * size;
        first..self.end.min(first + size)
    }

    /// Touches the next unit; false when enough are touched.
    fn touch_next(&self, size: usize, region: &Region, headers: &Region) -> bool {
        let Some(unit) = self.stretch.begin() else { return false };
        let frames = self.frames(unit, size);
        headers.touch(frames.start * size_of::<Frame>()..frames.end * size_of::<Frame>());
        region.touch(frames.start * PAGE_SIZE..frames.end * PAGE_SIZE);
        true
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
