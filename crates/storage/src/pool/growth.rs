//! A pool's memory comes into use by units, ahead of demand.
//!
//! The number of frames is fixed, but only the frames of claimed units are in use. A core whose
//! free list is empty claims a unit of its NUMA node, then of the other nodes, the nearest first.
//! One helper a node touches the units that come next. So a small database takes little memory, and
//! a start costs nothing that grows with the pool. What must hold:
//!
//! 1. Nothing is evicted while a unit is unclaimed. So the sweep meets frames in use only.
//! 2. A core waits for no helper of the lowest priority ([`Helper`]), since the two have no lock in
//!    common. The kernel holds the mapping shared while it zeroes an ordinary or transparent page,
//!    and faults of others share it. It holds a mutex of an explicit huge page, and a core that
//!    meets the same page waits for it. There the helper is as urgent as the core.
//! 3. A frame of an unclaimed unit is on no list and has no page. Its header is zeroed memory. The
//!    sweep may read it, and finds no page.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use runtime::helper::{Helper, Urgency};
use runtime::memory::Region;
#[cfg(variants)]
use runtime::memory::RegionKind;
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
    /// By such a part, the parts in order of their nodes' distance: first itself.
    orders: Box<[Box<[usize]>]>,
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
        // Workers that are not pinned run on all nodes, and so do the helpers.
        let is_confined = workers.is_pinned() && workers.nodes() > 1;
        let part = |(node, frames): &(usize, Range<usize>)| {
            let cores = nodes.iter().filter(|&of| of == node).count();
            let stretch = Stretch::new(frames.len().div_ceil(unit), page.max(AHEAD + cores));
            let processors = if is_confined { workers.processors_of(*node) } else { &[] };
            Part { stretch, frames: frames.clone(), cores, processors: processors.into() }
        };
        let part_of =
            nodes.iter().map(|node| shares.iter().position(|(of, _)| of == node).unwrap_or(0)).collect();
        let order = |(own, (from, _)): (usize, &(usize, Range<usize>))| {
            let mut order: Vec<usize> = (own..shares.len()).chain(0..own).collect();
            order[1..].sort_by_key(|&at| workers.distance(*from, shares[at].0));
            order.into_boxed_slice()
        };
        let orders = shares.iter().enumerate().map(order).collect();
        let (frames, headers) = (Arc::clone(region), Arc::clone(headers.region()));
        let memory = Arc::new(Memory { parts: shares.iter().map(part).collect(), unit, frames, headers });
        let is_explicit = memory.frames.kind().is_explicit() || memory.headers.kind().is_explicit();
        let urgency = if is_explicit { Urgency::Normal } else { Urgency::Idle };
        let helper = |(at, part): (usize, &Part)| {
            let memory = Arc::clone(&memory);
            Helper::start("touch", urgency, &part.processors, move || memory.touch_next(at))
        };
        let parts = memory.parts.iter().enumerate();
        #[cfg(variants)]
        let parts = parts.filter(|_| !is_touched_at_use());
        let helpers = parts.map(helper).collect();
        Growth { helpers, memory, part_of, orders, whole: AtomicBool::new(false) }
    }

    /// Whether all frames are in use.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        // Acquire: the sweep comes after the claims that it relies on.
        self.whole.load(Ordering::Acquire)
    }

    /// Claims frames for a core, which nobody else has; `None` when all are in use.
    pub(crate) fn claim(&self, core: usize) -> Option<Range<usize>> {
        let parts = &self.memory.parts;
        for &at in &self.orders[self.part_of[core]] {
            if let Some(unit) = parts[at].stretch.claim() {
                #[cfg(variants)]
                if self.memory.is_unpinned() {
                    variants::runs::count(variants::chosen::Row::PinnedMemory);
                }
                #[cfg(variants)]
                if is_touched_at_use() {
                    variants::runs::count(variants::chosen::Row::Preload);
                    return Some(self.memory.frames_of(at, unit));
                }
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
        let all: usize = memory.parts.iter().map(|part| part.frames.len()).sum();
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
                    if !progress(done.load(Ordering::Relaxed)) {
                        return;
                    }
                }
            }
        }
        while done.load(Ordering::Relaxed) < all {
            time::sleep_thread(LOOK);
            if !progress(done.load(Ordering::Relaxed)) {
                return;
            }
        }
        memory.parts.iter().for_each(|part| part.stretch.touch_no_more());
    }
}

/// Whether this process runs row `preload` (B14) in its stock state: the first use of memory
/// touches it, and no helper does so ahead.
#[cfg(variants)]
fn is_touched_at_use() -> bool {
    variants::chosen::is_stock(variants::chosen::Row::Preload)
}

impl Memory {
    /// Whether this process runs row `pinned-memory` (B14) in its stock state: memory of ordinary
    /// pages, which the store does not lock.
    #[cfg(variants)]
    fn is_unpinned(&self) -> bool {
        variants::chosen::is_stock(variants::chosen::Row::PinnedMemory)
            && [&self.frames, &self.headers].iter().all(|region| region.kind() == RegionKind::Ordinary)
    }

    /// The frames of a part's unit.
    fn frames_of(&self, part: usize, unit: usize) -> Range<usize> {
        let frames = &self.parts[part].frames;
        let first = frames.start + unit * self.unit;
        first..frames.end.min(first + self.unit)
    }

    fn touch(&self, frames: Range<usize>) {
        self.headers.touch(frames.start * size_of::<Frame>()..frames.end * size_of::<Frame>());
        self.frames.touch(frames.start * PAGE_SIZE..frames.end * PAGE_SIZE);
    }

    /// Touches the unit that comes into use next; false when enough are touched.
    fn touch_next(&self, part: usize) -> bool {
        let unit = self.parts[part].stretch.begin();
        unit.is_some_and(|unit| {
            self.touch(self.frames_of(part, unit));
            true
        })
    }

    /// Touches the next step of all; false when there are no more. A step is a page where pages are
    /// larger than units: two threads in one page would wait for each other.
    fn preload_next(&self, part: usize, next: &AtomicUsize, done: &AtomicUsize) -> bool {
        let step = self.unit.max(self.frames.kind().page_bytes() / PAGE_SIZE);
        // Relaxed, here and below: counts that order nothing.
        let frames = step_of(&self.parts[part].frames, step, next.fetch_add(1, Ordering::Relaxed));
        let is_one = !frames.is_empty();
        if is_one {
            self.touch(frames.clone());
            done.fetch_add(frames.len(), Ordering::Relaxed);
        }
        is_one
    }
}

/// Step `at` through a part's frames, empty behind the last one. Steps end at multiples of `step`,
/// as pages do, so the first and the last one may be shorter.
fn step_of(part: &Range<usize>, step: usize, at: usize) -> Range<usize> {
    let first = (part.start / step + at) * step;
    first.max(part.start)..(first + step).min(part.end)
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
    use runtime::memory::HugePages;
    use runtime::topology::Topology;

    use super::*;

    /// A pool of so many frames for the first `cores` of all workers, on a machine of this shape.
    fn growth(frames: usize, (nodes, of_node): (usize, usize), cores: usize, is_pinned: bool) -> Growth {
        growth_on(&Topology::synthetic(nodes, of_node, 1), frames, cores, is_pinned)
    }

    fn growth_on(machine: &Topology, frames: usize, cores: usize, is_pinned: bool) -> Growth {
        let all = machine.processors().len();
        let pinned = if is_pinned { machine.choose(all).unwrap() } else { Vec::new() };
        let workers = Workers::new(machine, &pinned, all, all);
        let region = |bytes| Arc::new(Region::frames(bytes, HugePages::Off).unwrap());
        let headers = Headers::new(region(frames * size_of::<Frame>()), frames);
        Growth::new(&region(frames * PAGE_SIZE), &headers, cores, &workers)
    }

    /// Claims all frames, round after round of the cores, and checks after each claim what is in
    /// use. Returns for each claim the core and the frames.
    fn claim_all(growth: &Growth, frames: usize, cores: usize) -> Vec<(usize, Range<usize>)> {
        let mut owner = vec![None; frames];
        let mut claims = Vec::new();
        for core in (0..cores).cycle() {
            assert!(!growth.is_whole(), "a core has not yet found out that nothing is left");
            let Some(claimed) = growth.claim(core) else { break };
            assert!(!claimed.is_empty());
            for frame in claimed.clone() {
                assert_eq!(owner[frame].replace(core), None, "frame {frame} of {claimed:?} is claimed");
            }
            let in_use: Vec<usize> = growth.in_use().flatten().collect();
            let all: Vec<usize> = (0..frames).filter(|&frame| owner[frame].is_some()).collect();
            assert_eq!(in_use, all);
            claims.push((core, claimed));
        }
        assert!(growth.is_whole());
        assert!(owner.iter().all(Option::is_some), "{owner:?}");
        assert!((0..cores).all(|core| growth.claim(core).is_none()));
        claims
    }

    #[test]
    fn claims_of_all_nodes_deal_out_each_frame_once() {
        for nodes in [1, 2, 4, 6] {
            for frames in [1, 5, 64, 1000, 1001, 4099] {
                for (cores, is_pinned) in [(2 * nodes, true), (2 * nodes, false), (1, true), (nodes, true)] {
                    let growth = growth(frames, (nodes, 2), cores, is_pinned);
                    claim_all(&growth, frames, cores);
                }
            }
        }
    }

    #[test]
    fn a_core_claims_from_its_own_node_first() {
        let (frames, cores) = (4 * 1024, 8);
        let growth = growth(frames, (4, 2), cores, true);
        assert_eq!(growth.memory.parts.len(), 4);
        for (at, part) in growth.memory.parts.iter().enumerate() {
            assert_eq!((part.frames.clone(), part.cores), (at * 1024..(at + 1) * 1024, 2));
            assert_eq!(&*part.processors, [2 * at, 2 * at + 1]);
        }
        // All cores claim equally fast, so none has to claim from another node.
        for (core, claimed) in claim_all(&growth, frames, cores) {
            assert_eq!(claimed.start / 1024, core / 2, "core {core} got {claimed:?}");
        }
    }

    #[test]
    fn a_core_claims_from_nearer_nodes_before_others() {
        // The nodes of a core of node 1 are 1, its socket's 0, then those of the other socket.
        let growth = growth_on(&Topology::synthetic_sockets(2, 2, 1, 1), 400, 4, true);
        let claims = std::iter::from_fn(|| growth.claim(1));
        let mut parts: Vec<usize> = claims.map(|claimed| claimed.start / 100).collect();
        parts.dedup();
        assert_eq!(parts, [1, 0, 2, 3]);
    }

    #[test]
    fn one_core_claims_from_the_other_nodes_when_its_own_has_no_more() {
        let growth = growth(1000, (2, 2), 4, true);
        let claims: Vec<Range<usize>> = std::iter::from_fn(|| growth.claim(3)).collect();
        assert!(claims[0].start >= 496, "{claims:?}");
        assert_eq!(claims.iter().map(Range::len).sum::<usize>(), 1000);
        assert!(growth.is_whole());
    }

    #[test]
    fn helpers_of_workers_that_are_not_pinned_run_anywhere() {
        let growth = growth(1000, (4, 2), 8, false);
        let [part] = &*growth.memory.parts else { panic!("workers of unknown nodes have one part") };
        assert_eq!((part.frames.clone(), part.cores, &*part.processors), (0..1000, 8, &[][..]));
    }

    #[test]
    fn a_preload_touches_all_nodes_parts() {
        let growth = growth(1001, (2, 2), 4, true);
        let mut last = 0;
        growth.preload(&mut |done| {
            assert!((last..=1001).contains(&done), "{done} after {last}");
            last = done;
            true
        });
        let frames = &growth.memory.frames;
        assert_eq!(frames.present(0..frames.len()), frames.len());
        assert_eq!(growth.in_use().flatten().count(), 0, "nothing of it is in use");
        claim_all(&growth, 1001, 4);
    }

    #[test]
    fn steps_through_a_part_end_where_pages_end() {
        let steps = |part: Range<usize>| -> Vec<Range<usize>> {
            (0..).map(|at| step_of(&part, 100, at)).take_while(|step| !step.is_empty()).collect()
        };
        assert_eq!(steps(0..250), [0..100, 100..200, 200..250]);
        assert_eq!(steps(130..300), [130..200, 200..300]);
        assert_eq!(steps(130..170), vec![Range { start: 130, end: 170 }]);
        assert!(step_of(&(130..170), 100, 7).is_empty(), "far behind the end");
    }

    #[test]
    fn nodes_share_the_frames_by_their_cores() {
        assert_eq!(shares(1000, 10, &[0]), [(0, 0..1000)]);
        assert_eq!(shares(1005, 10, &[0, 0, 1, 1]), [(0, 0..500), (1, 500..1005)]);
        assert_eq!(shares(100, 10, &[0, 2, 2]), [(0, 0..30), (2, 30..100)]);
        assert_eq!(shares(5, 10, &[0, 1]), [(1, 0..5)], "less than a unit: one node has all");
    }
}
