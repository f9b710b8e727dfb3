//! Frames without a page, and the fibers that wait for one.
//!
//! Each core has a list of its own, so that taking a frame touches nothing of another core. A core
//! whose list is empty takes from the others' before it evicts. Each core also has a reserve for
//! structure changes: only the core's own fibers take from it, and no other core steals from it.
//! The lists are linked through the frame headers, without allocation.
//!
//! A fiber that finds no frame asks its core's page writer and parks. The writer wakes one waiter
//! for each frame that it frees. It fails all waiters after a bounded number of revolutions that
//! freed none.

use runtime::wait_event::{self, WaitEvent};
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sync::{PerCore, SpinLock, WaitQueue};

use crate::Error;
use crate::frame::Frame;

const NOTHING: u32 = u32::MAX;
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

#[derive(Debug)]
struct Core {
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

/// The free frames of a pool.
#[derive(Debug)]
pub(crate) struct FreeFrames {
    cores: PerCore<Core>,
    low: u32,
    high: u32,
}

impl FreeFrames {
    /// Deals all frames out to the cores.
    pub(crate) fn new(headers: &[Frame], cores: usize) -> FreeFrames {
        let share = headers.len() / cores;
        // The page writer keeps about 1% of the pool free: at least two frames a core, at most two
        // batches.
        let high = (share / 100).clamp(2, 128) as u32;
        let free = FreeFrames {
            cores: PerCore::new(cores, |_| Core {
                lists: SpinLock::new(Lists { free: List::EMPTY, reserved: List::EMPTY }),
                free: AtomicU32::new(0),
                waiters: WaitQueue::new(),
                writer: WaitQueue::new(),
                wanted: AtomicBool::new(false),
                failures: AtomicU64::new(0),
                failure: SpinLock::new(None),
            }),
            low: high.div_ceil(2),
            high,
        };
        // In reverse order, so that frames are first used in the order of their addresses.
        for frame in (0..headers.len()).rev() {
            free.put(headers, (frame / share.max(1)).min(cores - 1), frame as u32);
        }
        free
    }

    /// Puts a frame into a core's list and wakes a fiber that waits there.
    pub(crate) fn put(&self, headers: &[Frame], core: usize, frame: u32) {
        let own = self.cores.get(core);
        let mut lists = own.lists.lock();
        lists.free.push(headers, frame);
        // Relaxed: a hint.
        own.free.store(lists.free.len, Ordering::Relaxed);
        drop(lists);
        own.waiters.wake_one();
    }

    /// Takes a frame from the core's list, or from another's; asks the page writer when few are
    /// left.
    pub(crate) fn take(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let taken = self.take_own(headers, core).or_else(|| self.steal(headers, core));
        if self.len(core) < self.low {
            self.ask(core);
        }
        taken
    }

    fn take_own(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let own = self.cores.get(core);
        let mut lists = own.lists.lock();
        let taken = lists.free.pop(headers);
        // Relaxed: a hint.
        own.free.store(lists.free.len, Ordering::Relaxed);
        taken
    }

    fn steal(&self, headers: &[Frame], core: usize) -> Option<u32> {
        let others = (1..self.cores.len()).map(|distance| (core + distance) % self.cores.len());
        for other in others.filter(|&other| self.len(other) > 0) {
            // One lock at a time: a small array holds the frames between the two.
            let mut stolen = [NOTHING; STEAL];
            let mut count = 0;
            {
                let own = self.cores.get(other);
                let mut lists = own.lists.lock();
                // At most half, so that two cores do not take the same frames from each other for
                // ever.
                let most = (lists.free.len as usize).div_ceil(2).min(STEAL);
                while count < most
                    && let Some(frame) = lists.free.pop(headers)
                {
                    stolen[count] = frame;
                    count += 1;
                }
                // Relaxed: a hint.
                own.free.store(lists.free.len, Ordering::Relaxed);
            }
            if let Some((&first, rest)) = stolen[..count].split_first() {
                rest.iter().for_each(|&frame| self.put(headers, core, frame));
                return Some(first);
            }
        }
        None
    }

    /// Moves frames from other cores' lists to fibers that wait on this core. The page writer calls
    /// it.
    pub(crate) fn restock(&self, headers: &[Frame], core: usize) -> bool {
        if !self.cores.get(core).waiters.has_waiters() {
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
        self.cores.get(core).free.load(Ordering::Relaxed)
    }

    /// Whether the core's list is short enough that its page writer should go on.
    pub(crate) fn below_high(&self, core: usize) -> bool {
        self.len(core) < self.high || self.cores.get(core).waiters.has_waiters()
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
        own.waiters.wake_all();
    }

    /// Parks until this core may have a free frame. Fails when the page writer has given up since
    /// `failures`.
    pub(crate) fn wait(&self, core: usize, failures: u64) -> Result<(), Error> {
        let own = self.cores.get(core);
        let there = || {
            self.ask(core);
            self.len(core) > 0 || self.failures(core) != failures
        };
        wait_event::during(WaitEvent::FreeFrame, || own.waiters.wait_until(there));
        if self.len(core) == 0 && self.failures(core) != failures {
            return Err(own.failure.lock().clone().unwrap_or(Error::NoFrames));
        }
        Ok(())
    }
}
