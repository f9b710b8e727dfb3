//! Frames without a page, and the fibers that wait for one.
//!
//! Each core has a list of its own, so that taking a frame touches nothing of another core. A core
//! whose list is empty looks at a few lists of its own NUMA node, then at a few of the nearest
//! other nodes. At last it looks at a few of the rest. Each core also has a reserve for structure
//! changes: only the core's own fibers take from it, and no other core steals from it. The lists
//! are linked through the frame headers, without allocation.
//!
//! A look at another core's list is a transfer of its cache line, there and back. So a search looks
//! at [`NEAR`] + 2 [`FAR`] lists at most, on a machine of any size. What must hold:
//!
//! 1. A search begins at the list where the last one of its core found frames, or behind the last
//!    one where it found none. So searches without luck come round to every list, and no free frame
//!    is out of reach.
//! 2. A core without luck evicts from its own batch of the sweep. If that gives no frame either,
//!    the fiber asks its core's page writer and parks.
//! 3. The writer searches the lists for its waiters too, once a round, and wakes one waiter for
//!    each frame that it frees or finds. It fails all waiters after a bounded number of revolutions
//!    that freed none: more rounds than there are lists.

use std::ops::Range;

use runtime::wait_event::{self, WaitEvent};
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use sync::{PerCore, SpinLock, WaitQueue};

use crate::Error;
use crate::frame::Frame;

const NOTHING: u32 = u32::MAX;
/// Lists of the core's own node that a search looks at, at most.
const NEAR: usize = 4;
/// Lists of the nearest other nodes that a search looks at, at most, and of the rest.
const FAR: usize = 2;
/// Frames moved at once from another core's list, so that a core warming up alone does not ask for
/// each.
const STEAL: usize = 8;

#[derive(Debug)]
struct List {
    first: u32,
    len: u32,
}

impl List {
    const EMPTY: List = List { first: NOTHING, len: 0 };

    fn push(&mut self, headers: &[Frame], frame: u32) {
        headers[frame as usize].set_next_free(self.first);
        self.first = frame;
        self.len += 1;
    }

    fn pop(&mut self, headers: &[Frame]) -> Option<u32> {
        if self.first == NOTHING {
            return None;
        }
        let frame = self.first;
        self.first = headers[frame as usize].next_free();
        self.len -= 1;
        Some(frame)
    }
}

#[derive(Debug)]
struct Lists {
    free: List,
    reserved: List,
}

/// The lists that one core may search, as a ring of places in its node's `FreeFrames::by_distance`.
/// It begins at `first` and goes round the `round` places from `base` on.
#[derive(Debug)]
struct Ring {
    base: usize,
    round: usize,
    first: usize,
    len: usize,
    /// Where the next search begins. Only the ring's own core uses it.
    at: AtomicUsize,
}

impl Ring {
    /// The place after so many steps from `first`.
    fn place(&self, step: usize) -> usize {
        self.base + (self.first - self.base + step) % self.round
    }
}

#[derive(Debug)]
struct Core {
    node: usize,
    /// The lists of the core's own node, without its own one, those of the nearest other nodes, and
    /// those of the rest.
    rings: [Ring; 3],
    lists: SpinLock<Lists>,
    /// The length of the free list, readable without its lock: a hint.
    free: AtomicU32,
    /// Fibers that wait for a frame.
    waiters: WaitQueue,
    /// The queue in which the page writer sleeps.
    writer: WaitQueue,
    /// Whether a fiber has asked the page writer for frames.
    wanted: AtomicBool,
    /// The number of times the page writer gave up, and its last reason.
    failures: AtomicU64,
    failure: SpinLock<Option<Error>>,
}

impl Core {
    fn new(node: usize, rings: [Ring; 3]) -> Core {
        Core {
            node,
            rings,
            lists: SpinLock::new(&"free frames", Lists { free: List::EMPTY, reserved: List::EMPTY }),
            free: AtomicU32::new(0),
            waiters: WaitQueue::new(&"free frame"),
            writer: WaitQueue::new(&"page writer idle"),
            wanted: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            failure: SpinLock::new(&"page writer failure", None),
        }
    }
}

/// The free frames of a pool.
#[derive(Debug)]
pub(crate) struct FreeFrames {
    cores: PerCore<Core>,
    /// By node, the cores in order of their nodes' distance from it: first its own.
    by_distance: Box<[Box<[usize]>]>,
    low: u32,
    high: u32,
    /// Whether all cores use the first list.
    #[cfg(variants)]
    is_one: bool,
}

impl FreeFrames {
    /// Lists without frames, for a pool of `frames` frames. `nodes` has the node of each core, and
    /// `distance` is that from a node to another.
    pub(crate) fn new(
        frames: usize,
        nodes: &[usize],
        distance: impl Fn(usize, usize) -> usize,
    ) -> FreeFrames {
        let cores = nodes.len();
        let share = frames / cores;
        // The page writer keeps about 1% of the pool free: at least two frames a core, at most two
        // batches.
        let high = (share / 100).clamp(2, 128) as u32;
        // Row `free-queues` (B14) in its stock state: one list for all, which keeps as much.
        #[cfg(variants)]
        let is_one = variants::chosen::is_stock(variants::chosen::Row::FreeQueues);
        #[cfg(variants)]
        let high = if is_one { high * cores as u32 } else { high };
        let count = nodes.iter().max().expect("a pool has cores") + 1;
        let order = |from: usize| {
            let mut order: Vec<usize> = (0..cores).collect();
            // Among nodes of one distance, those behind the node come first.
            let rank = |node: usize| (node != from, distance(from, node), (node + count - from) % count);
            order.sort_by_key(|&core| rank(nodes[core]));
            order.into_boxed_slice()
        };
        let by_distance: Box<[Box<[usize]>]> = (0..count).map(order).collect();
        let core = |core: usize| {
            let (node, order) = (nodes[core], &by_distance[nodes[core]]);
            let place = order.iter().position(|&one| one == core).expect("each core has a place");
            let own = order.partition_point(|&one| nodes[one] == node);
            let nearest = order.get(own).map_or(0, |&one| distance(node, nodes[one]));
            let of_nearest = |&one: &usize| nodes[one] == node || distance(node, nodes[one]) == nearest;
            let near = order.partition_point(of_nearest);
            let ring = |base, round, first, len| Ring { base, round, first, len, at: AtomicUsize::new(0) };
            // Behind the core's own place, round its node. Cores of a node begin at different lists
            // of others.
            let others = |base, end: usize| {
                let round = end - base;
                ring(base, round, base + place % round.max(1), round)
            };
            let within = ring(0, own, (place + 1) % own, own - 1);
            Core::new(node, [within, others(own, near), others(near, cores)])
        };
        FreeFrames {
            cores: PerCore::new(cores, core),
            by_distance,
            low: high.div_ceil(2),
            high,
            #[cfg(variants)]
            is_one,
        }
    }

    /// The core's list, and the fibers that wait for a frame there.
    #[cfg(not(variants))]
    #[inline]
    fn of(&self, core: usize) -> &Core {
        self.cores.get(core)
    }

    /// The list that the core uses, its own or the first one for all, and the fibers that wait for
    /// a frame there.
    #[cfg(variants)]
    fn of(&self, core: usize) -> &Core {
        if !self.is_one {
            return self.cores.get(core);
        }
        variants::runs::count(variants::chosen::Row::FreeQueues);
        self.cores.get(0)
    }

    /// Puts frames into a core's list where no fiber waits, to be taken in their order.
    pub(crate) fn put_all(&self, headers: &[Frame], core: usize, frames: Range<usize>) {
        let own = self.of(core);
        let mut lists = own.lists.lock();
        frames.rev().for_each(|frame| lists.free.push(headers, frame as u32));
        // Relaxed: a hint.
        own.free.store(lists.free.len, Ordering::Relaxed);
    }

    /// Puts a frame into a core's list and wakes a fiber that waits there.
    pub(crate) fn put(&self, headers: &[Frame], core: usize, frame: u32) {
        let own = self.of(core);
        let mut lists = own.lists.lock();
        lists.free.push(headers, frame);
        // Relaxed: a hint.
        own.free.store(lists.free.len, Ordering::Relaxed);
        drop(lists);
        own.waiters.wake_one();
    }

    /// Takes a frame from the core's list, or from another's that a search finds; asks the page
    /// writer when few are left.
    pub(crate) fn take(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let taken = self.take_own(headers, core).or_else(|| self.steal(headers, core));
        if self.len(core) < self.low {
            self.ask(core);
        }
        taken
    }

    /// Takes a frame from the core's list alone.
    pub(crate) fn take_own(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let own = self.of(core);
        let mut lists = own.lists.lock();
        let taken = lists.free.pop(headers);
        // Relaxed: a hint.
        own.free.store(lists.free.len, Ordering::Relaxed);
        taken
    }

    fn steal(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let own = self.cores.get(core);
        let mut rings = own.rings.iter().zip([NEAR, FAR, FAR]);
        rings.find_map(|(ring, most)| self.search(headers, core, ring, most))
    }

    /// Looks at `most` lists of the ring, at most, and takes frames from the first one that has
    /// any.
    fn search(&self, headers: &[Frame], core: usize, ring: &Ring, most: usize) -> Option<u32> {
        for _ in 0..most.min(ring.len) {
            // Relaxed: only this core uses it.
            let step = ring.at.load(Ordering::Relaxed);
            let other = self.by_distance[self.cores.get(core).node][ring.place(step)];
            if self.len(other) > 0
                && let Some(frame) = self.steal_from(headers, core, other)
            {
                return Some(frame);
            }
            // Relaxed: as above.
            ring.at.store((step + 1) % ring.len, Ordering::Relaxed);
        }
        None
    }

    /// Moves frames from another core's list to this core's, but for one, which it returns.
    fn steal_from(&self, headers: &[Frame], core: usize, other: usize) -> Option<u32> {
        // One lock at a time: a small array holds the frames between the two.
        let mut stolen = [NOTHING; STEAL];
        let mut count = 0;
        {
            let theirs = self.of(other);
            let mut lists = theirs.lists.lock();
            // At most half, so that two cores do not take the same frames from each other for ever.
            let most = (lists.free.len as usize).div_ceil(2).min(STEAL);
            while count < most
                && let Some(frame) = lists.free.pop(headers)
            {
                stolen[count] = frame;
                count += 1;
            }
            // Relaxed: a hint.
            theirs.free.store(lists.free.len, Ordering::Relaxed);
        }
        let (&first, rest) = stolen[..count].split_first()?;
        rest.iter().for_each(|&frame| self.put(headers, core, frame));
        Some(first)
    }

    /// Moves frames from other cores' lists to fibers that wait on this core. The page writer calls
    /// it.
    pub(crate) fn restock(&self, headers: &[Frame], core: usize) -> bool {
        if !self.of(core).waiters.has_waiters() {
            return false;
        }
        let stolen = self.steal(headers, core);
        stolen.iter().for_each(|&frame| self.put(headers, core, frame));
        stolen.is_some()
    }

    /// Number of cores.
    pub(crate) fn cores(&self) -> usize {
        self.cores.len()
    }

    /// The approximate number of frames in a core's list.
    pub(crate) fn len(&self, core: usize) -> u32 {
        // Relaxed: a hint.
        self.of(core).free.load(Ordering::Relaxed)
    }

    /// Frames that the core's list lacks until its page writer may rest; at least one while fibers
    /// wait.
    pub(crate) fn lack(&self, core: usize) -> u32 {
        let waits = self.of(core).waiters.has_waiters();
        self.high.saturating_sub(self.len(core)).max(u32::from(waits))
    }

    /// Frames in the core's reserve.
    pub(crate) fn reserved(&self, core: usize) -> u32 {
        self.cores.get(core).lists.lock().reserved.len
    }

    /// Adds a frame to the core's reserve.
    pub(crate) fn put_reserved(&self, headers: &[Frame], core: usize, frame: u32) {
        self.cores.get(core).lists.lock().reserved.push(headers, frame);
    }

    /// Takes a frame out of the core's reserve.
    pub(crate) fn take_reserved(&self, headers: &[Frame], core: usize) -> Option<u32> {
        self.cores.get(core).lists.lock().reserved.pop(headers)
    }

    /// Asks the core's page writer for frames.
    pub(crate) fn ask(&self, core: usize) {
        let own = self.cores.get(core);
        // Relaxed: a first look, so that a working page writer is not asked again and again. The
        // swap orders the request before the look for the sleeping writer.
        if !own.wanted.load(Ordering::Relaxed) && !own.wanted.swap(true, Ordering::AcqRel) {
            own.writer.wake_one();
        }
    }

    /// Puts the page writer to sleep until a fiber asks for frames or `stopped` holds.
    pub(crate) fn sleep(&self, core: usize, stopped: impl Fn() -> bool) {
        let own = self.cores.get(core);
        // AcqRel: the request is taken once, and the writer sees what came before it.
        own.writer.wait_until(|| stopped() || own.wanted.swap(false, Ordering::AcqRel));
    }

    /// Wakes the page writers to stop, and fails all fibers that wait for a frame.
    pub(crate) fn shut(&self) {
        for (core, own) in self.cores.iter().enumerate() {
            own.writer.wake_all();
            self.fail(core, Error::NoFrames);
        }
    }

    /// How many times the core's page writer has given up so far. A fiber reads it before it waits.
    pub(crate) fn failures(&self, core: usize) -> u64 {
        // Acquire: pairs with `fail`.
        self.cores.get(core).failures.load(Ordering::Acquire)
    }

    /// Records that the page writer gives up: all fibers that wait on this core get `error`.
    pub(crate) fn fail(&self, core: usize, error: Error) {
        let own = self.cores.get(core);
        *own.failure.lock() = Some(error);
        // Release: a fiber that sees the count sees the error.
        own.failures.fetch_add(1, Ordering::Release);
        self.of(core).waiters.wake_all();
    }

    /// Parks until this core may have a free frame. Fails when the page writer has given up since
    /// `failures`.
    pub(crate) fn wait(&self, core: usize, failures: u64) -> Result<(), Error> {
        let own = self.cores.get(core);
        let there = || {
            self.ask(core);
            self.len(core) > 0 || self.failures(core) != failures
        };
        wait_event::during(WaitEvent::FreeFrame, || self.of(core).waiters.wait_until(there));
        if self.len(core) == 0 && self.failures(core) != failures {
            return Err(own.failure.lock().clone().unwrap_or(Error::NoFrames));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
