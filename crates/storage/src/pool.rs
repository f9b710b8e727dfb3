//! The buffer pool: pages in memory frames. Two loads find a page, and a read writes nothing.
//!
//! A flat array in reserved virtual memory maps page numbers to frames (`Entry`): no hash table, no
//! partition lock. What must hold:
//!
//! 1. An entry names a frame only while the frame's header names the page. Both change under the
//!    frame's latch, with one exception. A load first enters the page as `loading`, together with
//!    the frame it reads into. That frame belongs to the loader alone until the load ends, so
//!    `loading` is unique and one exchange can take it back.
//! 2. Concurrent loads of a page share one read. The later ones wait for the entry to change and
//!    hold nothing.
//! 3. An eviction latches exactly the state word that it saw when it chose the page, and needs the
//!    page clean under that latch (`Frame`).
//! 4. A page goes to disk only once the log is durable up to the page's LSN (`writer`).
//! 5. A frame shortage never spins and never waits with a latch: it parks, or fails after a bounded
//!    number of revolutions.

use std::io;
use std::sync::Arc;

use runtime::memory::{self, AtomicArray, HugePages, Region, RegionKind};
use runtime::topology::Workers;
use runtime::{page_counts, stop, time};
use sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use sync::profile::Hold;
use sync::racy::RacyBytes;
use sync::{CachePadded, ShardedCounter, WaitQueue, assert_apart};

use crate::Error;
use crate::datafile::DataFile;
use crate::entry::Entry;
use crate::frame::{Frame, State};
use crate::free::FreeFrames;
use crate::log::Wal;
use crate::page::{self, Damage, Lsn, PAGE_SIZE, PageKind, PageNo};
use crate::sweep::{Machine, Sweep, batch_size};
pub use guard::{Miss, PageMut, PageRef, Pinned, Restart};
pub use latch::yield_for_latch;
pub use regions::RegionUse;
pub(crate) use regions::policy;
pub use state::PoolState;

use growth::Growth;
pub(crate) use headers::Headers;
use regions::Policies;

mod growth;
mod guard;
mod headers;
mod latch;
mod load;
mod regions;
mod state;
mod stretch;
#[cfg(variants)]
mod views;

/// Frames that a search looks at, at least, before it rests.
pub(crate) const LOOK_AHEAD: usize = 64;
/// And at most, however many frames the hand claims at a time.
const MOST_LOOKS: usize = 1024;
/// Queues for fibers that wait for a page being loaded; pages share them by number.
const LOAD_QUEUES: usize = 64;
/// Frames without which a core makes no progress: a structure change's reserve, loads under way, a
/// batch of writes.
pub const FRAMES_MIN_PER_CORE: usize = 32;

/// The log as the pool needs it.
pub trait PageLog: Send + Sync {
    /// End of the reserved log: the next record begins here or later.
    fn position(&self) -> Lsn;
    /// Everything before this is on disk.
    fn durable(&self) -> Lsn;
    /// Parks until the log is on disk up to `lsn`.
    fn wait_durable(&self, lsn: Lsn) -> Result<(), Error>;
}

impl PageLog for Wal {
    fn position(&self) -> Lsn {
        Wal::position(self)
    }

    fn durable(&self) -> Lsn {
        Wal::durable(self)
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        Wal::wait_durable(self, lsn)
    }
}

/// Sizes of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Frames of 8 KiB, raised to the cores' minimum.
    pub frames: usize,
    /// Cores that use the pool.
    pub cores: usize,
    /// Frames the sweep claims at a time; `None` chooses by nodes, cores and frames.
    pub sweep_batch: Option<usize>,
    /// Whether to ask for huge pages.
    pub huge_pages: HugePages,
}

/// Bytes of so many frames, and of their headers.
fn region_bytes(frames: usize) -> [usize; 2] {
    [frames * PAGE_SIZE, frames * size_of::<Frame>()]
}

/// Memory for so many frames, and for their headers.
fn allocate(frames: usize, pages: HugePages) -> io::Result<[Region; 2]> {
    let [frames, headers] = region_bytes(frames);
    let frames = Region::frames(frames, pages)?;
    // A system that has pages of 1 GiB for the frames may have reserved none of 2 MiB.
    let others = if frames.kind() == RegionKind::Gigantic { HugePages::Try } else { pages };
    Ok([frames, Region::frames(headers, others)?])
}

/// The huge pages of 2 MiB that a pool of so many frames lacks, if it may be in no others.
pub fn lacks_huge_pages(frames: usize) -> Option<usize> {
    let is_lacking = allocate(frames, HugePages::On).is_err();
    is_lacking.then(|| memory::huge_pages_for(&region_bytes(frames)))
}

/// Counts since the pool was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStatistics {
    /// Pages read from disk.
    pub loads: u64,
    /// Waits for pages to be read. A scan that reads ahead waits once for many pages.
    pub reads: u64,
    /// Frames handed out for pages, read or new. Also where the page came from elsewhere meanwhile.
    pub allocations: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages written.
    pub writes: u64,
    /// Batches of writes that failed; the writer tries them again.
    pub write_failures: u64,
    /// Complete passes of the clock sweep.
    pub passes: u64,
}

/// Counters behind [`PoolStatistics`].
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) loads: ShardedCounter,
    pub(crate) reads: ShardedCounter,
    pub(crate) allocations: ShardedCounter,
    pub(crate) evictions: ShardedCounter,
    pub(crate) writes: ShardedCounter,
    pub(crate) write_failures: ShardedCounter,
}

/// The buffer pool.
pub struct Pool {
    region: Arc<Region>,
    headers: Headers,
    policies: Policies,
    growth: Growth,
    /// Entries of the pages of the file `pages`, and of those of the file `temp`.
    tables: [AtomicArray<AtomicU32>; 2],
    files: [DataFile; 2],
    pub(crate) sweep: Sweep,
    pub(crate) free: FreeFrames,
    #[cfg(variants)]
    pub(crate) views: views::Views,
    loads: Box<[CachePadded<WaitQueue>]>,
    pub(crate) log: Arc<dyn PageLog>,
    /// Whether a page newer than the log is damage. False while recovery discards the log's end.
    bound_to_log: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) stopping: AtomicBool,
    /// Page writers that run, and the queue of those that wait for their end.
    pub(crate) writers: AtomicUsize,
    pub(crate) writers_ended: WaitQueue,
}

assert_apart!(Pool: sweep from region, headers, growth, tables, files, free, loads, log);

impl Pool {
    /// A pool over the two files, without pages. `workers` are those of the runtime it runs in.
    pub fn new(
        options: PoolOptions,
        workers: &Workers,
        pages: DataFile,
        temporary: DataFile,
        log: Arc<dyn PageLog>,
    ) -> Result<Arc<Pool>, Error> {
        use crate::error::IoContext;
        let cores = options.cores.max(1);
        let frames = options.frames.clamp(FRAMES_MIN_PER_CORE * cores, (Entry::LOADING - 1) as usize);
        let [region, headers] =
            allocate(frames, options.huge_pages).during("allocating the buffer pool")?.map(Arc::new);
        let headers = Headers::new(headers, frames);
        let table = |file: &DataFile| {
            let pages = file.pages_max() as usize;
            let table = match options.huge_pages {
                HugePages::Off => AtomicArray::reserve(pages),
                HugePages::Try | HugePages::On => AtomicArray::reserve_huge(pages),
            };
            table.during("reserving the page table")
        };
        let tables = [table(&pages)?, table(&temporary)?];
        let policies = Policies::spread(workers, &headers, &tables);
        let growth = Growth::new(&region, &headers, cores, workers);
        let machine = Machine { nodes: workers.nodes_with_cores(), cores: workers.cores() };
        let nodes: Vec<usize> = (0..cores).map(|core| workers.node_of(core)).collect();
        let batch = batch_size(frames, machine, cores, options.sweep_batch);
        if let Some(wanted) = options.sweep_batch.filter(|wanted| *wanted > batch) {
            log::warn!(
                "the clock sweep claims {batch} frames at a time, not {wanted}: all claims together \
                 are at most half of the {frames} frames"
            );
        }
        let sweep = Sweep::new(frames, cores, batch);
        #[cfg(variants)]
        let sweep = sweep.with_hand(frames, machine.nodes, options.sweep_batch);
        Ok(Arc::new(Pool {
            free: FreeFrames::new(frames, &nodes, |from, to| workers.distance(from, to)),
            sweep,
            tables,
            files: [pages, temporary],
            region,
            headers,
            policies,
            growth,
            #[cfg(variants)]
            views: views::Views::new(frames),
            loads: (0..LOAD_QUEUES).map(|_| CachePadded::new(WaitQueue::new(&"page load"))).collect(),
            log,
            bound_to_log: AtomicBool::new(false),
            counters: Counters {
                loads: ShardedCounter::new(cores),
                reads: ShardedCounter::new(cores),
                allocations: ShardedCounter::new(cores),
                evictions: ShardedCounter::new(cores),
                writes: ShardedCounter::new(cores),
                write_failures: ShardedCounter::new(cores),
            },
            stopping: AtomicBool::new(false),
            writers: AtomicUsize::new(0),
            writers_ended: WaitQueue::new(&"page writer end"),
        }))
    }

    /// Refuses from now on a page on disk that is newer than the log: the log has lost its end.
    pub(crate) fn bind_to_log(&self) {
        // Relaxed: redo would have refused a page that was read before.
        self.bound_to_log.store(true, Ordering::Relaxed);
    }

    /// Checks a page as it was read from its file.
    pub fn verify(&self, bytes: &[u8], page_no: PageNo) -> Result<(), Damage> {
        page::verify(bytes, page_no)?;
        // Relaxed: see `bind_to_log`. A page is written when the log is durable up to its LSN.
        let bound = !page_no.is_temporary() && self.bound_to_log.load(Ordering::Relaxed);
        if bound && page::lsn(bytes) > self.log.position() { Err(Damage::Newer) } else { Ok(()) }
    }

    /// The kind of memory that holds the frames.
    pub fn memory(&self) -> RegionKind {
        self.region.kind()
    }

    /// The memory of frames, and that of their headers.
    pub(crate) fn memory_regions(&self) -> [&Region; 2] {
        [&self.region, self.headers.region()]
    }

    /// Touches all memory of the pool, in use or not: frames, headers, and the page table of the
    /// pages that the file has. Calls `progress` with the touched frames now and then; false gives
    /// up. Blocks, so not to be called on a worker.
    pub fn preload(&self, progress: &mut dyn FnMut(usize) -> bool) {
        self.tables[0].touch(self.files[0].pages() as usize);
        self.growth.preload(progress);
    }

    /// Cores that use the pool.
    pub fn cores(&self) -> usize {
        self.free.cores()
    }

    /// Frames of the pool.
    pub fn frames(&self) -> usize {
        self.headers.len()
    }

    /// Frames that the clock sweep claims at a time.
    pub fn sweep_batch(&self) -> usize {
        self.sweep.batch()
    }

    /// The file of a page.
    pub fn file(&self, page_no: PageNo) -> &DataFile {
        &self.files[usize::from(page_no.is_temporary())]
    }

    /// The page's entry; `None` for a number beyond a file's limit, since a torn read may give any
    /// number.
    #[inline]
    fn entry(&self, page_no: PageNo) -> Option<&AtomicU32> {
        let table = &self.tables[usize::from(page_no.is_temporary())];
        let index = page_no.index() as usize;
        if index < table.len() { Some(table.get(index)) } else { None }
    }

    #[inline]
    pub(crate) fn header(&self, frame: u32) -> &Frame {
        &self.headers[frame as usize]
    }

    pub(crate) fn headers(&self) -> &[Frame] {
        &self.headers
    }

    /// The address of a frame's page.
    #[inline]
    pub(crate) fn bytes_of(&self, frame: u32) -> *mut u8 {
        let offset = frame as usize * PAGE_SIZE;
        debug_assert!(offset < self.region.len());
        // SAFETY: a frame's number is below the number of frames, and the region was made for that.
        unsafe { self.region.as_ptr().add(offset) }
    }

    /// A view on a resident page. It takes nothing and waits for nothing but a bounded spin. A hit
    /// writes nothing, except that it raises the usage count while that is below its maximum.
    #[inline]
    pub fn get(&self, page_no: PageNo) -> Result<PageRef<'_>, Miss> {
        let entry = self.entry(page_no).ok_or(Miss::Absent)?;
        // Acquire: this sees the frame's header as it was when the page was entered.
        let frame = Entry(entry.load(Ordering::Acquire)).frame().ok_or(Miss::Absent)?;
        let header = self.headers.get(frame as usize).ok_or(Miss::Absent)?;
        #[cfg(variants)]
        let view = self.views.view(frame, page_no).ok_or(Miss::Absent)?;
        let seen = header.latch.read(move || self.class_of(frame)).ok_or(Miss::Busy)?;
        // The frame may hold another page since the look at the entry.
        if header.page_no() != page_no {
            return Err(Miss::Absent);
        }
        header.touch();
        page_counts::looked();
        Ok(PageRef {
            pool: self,
            frame,
            seen,
            #[cfg(variants)]
            _view: view,
        })
    }

    /// Prefetches the first `len` bytes of a page, if it is resident.
    #[inline]
    pub fn prefetch(&self, page_no: PageNo, len: usize) {
        // Relaxed: nothing is read through it. If the frame holds another page by now, the prefetch
        // costs a few lines of cache.
        let entry = self.entry(page_no).map(|entry| Entry(entry.load(Ordering::Relaxed)));
        if let Some(frame) =
            entry.and_then(Entry::frame).filter(|frame| (*frame as usize) < self.headers.len())
        {
            // SAFETY: the frame exists, and the region stays mapped.
            unsafe { RacyBytes::new(self.bytes_of(frame), PAGE_SIZE) }.prefetch(0, len);
        }
    }

    /// Parks until the caller can repeat a [`Pool::get`] that missed. The caller holds no latch and
    /// begins again.
    #[cold]
    pub fn resolve(&self, page_no: PageNo, miss: Miss) -> Result<(), Error> {
        match miss {
            Miss::Absent => self.load(page_no),
            Miss::Busy => {
                yield_for_latch();
                Ok(())
            }
        }
    }

    /// Keeps a page in its frame until the pin is dropped; parks until it is resident.
    pub fn pin(&self, page_no: PageNo) -> Result<Pinned<'_>, Error> {
        loop {
            match self.get(page_no).map(|page| (page.frame, page.seen)) {
                Ok((frame, seen)) if self.header(frame).latch.try_pin(seen) => {
                    return Ok(Pinned::new(self, frame));
                }
                // The page has changed in between, or has too many pins: let others run, and look
                // again.
                Ok(_) => yield_for_latch(),
                Err(miss) => self.resolve(page_no, miss)?,
            }
        }
    }

    /// Parks until this core's reserve holds `count` frames for [`Pool::create`]. Other fibers of
    /// the core take from the same reserve, so the caller must not park between this and the last
    /// `create`.
    pub fn reserve(&self, count: usize) -> Result<(), Error> {
        let core = runtime::core();
        while !self.has_reserve(count) {
            let frame = self.take_frame()?;
            // Others may have filled the reserve meanwhile. Only `create` takes frames out of it.
            match self.has_reserve(count) {
                true => self.put_frame(frame),
                false => self.free.put_reserved(&self.headers, core, frame),
            }
        }
        Ok(())
    }

    /// Whether this core's reserve holds `count` frames now. A caller asks this after another call
    /// has parked.
    pub(crate) fn has_reserve(&self, count: usize) -> bool {
        self.free.reserved(runtime::core()) as usize >= count
    }

    /// A new page, empty and latched. It takes a frame from this core's reserve, so it neither
    /// parks nor fails.
    ///
    /// # Panics
    /// When the caller has not reserved a frame, or nobody claimed the number.
    pub fn create(&self, page_no: PageNo, kind: PageKind, tree: u32, level: u8) -> PageMut<'_> {
        let core = runtime::core();
        let entry = self.entry(page_no).expect("a claimed page number has an entry");
        let spare =
            self.free.take_reserved(&self.headers, core).expect("a frame was reserved before it is needed");
        let (frame, hold) = loop {
            // Acquire: this sees the frame's header as it was when the page was entered.
            let now = Entry(entry.load(Ordering::Acquire));
            if let Some(frame) = now.frame() {
                // A freed page of this number was not evicted yet. Its frame is used again. So a
                // write of the old content that is under way cannot end after a write of the new
                // one.
                if let Some(hold) = self.latch_resident(page_no, frame) {
                    self.free.put_reserved(&self.headers, core, spare);
                    break (frame, hold);
                }
                continue;
            }
            let hold = self.give(spare, page_no);
            let resident = Entry::resident(spare);
            // AcqRel: as in `load_with`, and a reader that sees the entry sees the header. Relaxed
            // on failure: looked at again.
            if entry.compare_exchange(now.0, resident.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if now.is_loading() {
                    // Another fiber followed an old reference to this number; its load finds that
                    // it has lost.
                    self.load_queue(page_no).wake_all();
                }
                break (spare, hold);
            }
            #[cfg(variants)]
            self.views.take_back(spare, page_no);
            self.header(spare).set_page_no(PageNo::NONE);
            self.header(spare).latch.unlock_changed(hold);
        };
        self.header(frame).set_usage(1);
        let mut page = PageMut::new(self, frame, hold);
        page::format(page.bytes_mut(), page_no, kind, tree, level);
        page
    }

    /// Latches a frame that has no page and gives it one. A reader that saw the frame's last page
    /// may hold the latch for a moment, until it finds that the page is gone.
    fn give(&self, frame: u32, page_no: PageNo) -> Hold {
        let hold = loop {
            if let Some(hold) = self.read_latch(frame).and_then(|seen| self.try_latch(frame, seen)) {
                break hold;
            }
        };
        self.header(frame).set_page_no(page_no);
        #[cfg(variants)]
        self.views.put_in(frame, page_no);
        hold
    }

    /// Takes the latch of a resident page that nobody refers to any more; `None` when the page has
    /// left the frame. The page writer or an eviction may hold the latch. It is running and about
    /// to release it: no latch survives a park.
    fn latch_resident(&self, page_no: PageNo, frame: u32) -> Option<Hold> {
        let seen = self.read_latch(frame)?;
        if self.header(frame).page_no() == page_no { self.try_latch(frame, seen) } else { None }
    }

    /// Drops a freed page without writing it. The record that frees it must have been appended. A
    /// page that is pinned, latched or being written stays and is evicted later.
    pub fn discard(&self, page_no: PageNo) {
        let Ok((frame, seen)) = self.get(page_no).map(|page| (page.frame, page.seen)) else { return };
        let header = self.header(frame);
        header.set_usage(0);
        if let Some(hold) = self.try_latch_idle(frame, seen) {
            if header.forget_changes() && self.may_vacate(page_no, frame) {
                self.vacate(page_no, frame, hold);
            } else {
                header.latch.unlock_unchanged(hold);
            }
        }
    }

    /// Whether nothing but the latch keeps the page in its frame.
    #[cfg(not(variants))]
    fn may_vacate(&self, _: PageNo, _: u32) -> bool {
        true
    }

    /// Whether no view has the page pinned. Then it is taken out of the pins.
    #[cfg(variants)]
    fn may_vacate(&self, page_no: PageNo, frame: u32) -> bool {
        self.views.take_out(frame, page_no)
    }

    /// Takes the page out of a frame whose latch the caller holds, and frees the frame.
    fn vacate(&self, page_no: PageNo, frame: u32, hold: Hold) {
        let entry = self.entry(page_no).expect("a resident page has an entry");
        let header = self.header(frame);
        debug_assert!(!header.is_dirty() && Entry(entry.load(Ordering::Relaxed)) == Entry::resident(frame));
        // Release: a reader that finds the page absent reads it from disk after its last write.
        entry.store(Entry::ABSENT.0, Ordering::Release);
        header.set_page_no(PageNo::NONE);
        header.latch.unlock_changed(hold);
        stop::point("storage.evict.before_free");
        self.put_frame(frame);
    }

    /// Evicts a clean page, if its frame is still in the state in which it was chosen.
    pub(crate) fn evict(&self, frame: u32, chosen: State) -> bool {
        stop::point("storage.evict.chosen");
        let header = self.header(frame);
        let Some(hold) = self.try_latch_idle(frame, chosen) else { return false };
        let page_no = header.page_no();
        // The sweep repeats the test for dirty under the latch. Since it chose the page, another
        // fiber may have changed and written it, or another sweeper may hold it.
        if header.is_dirty() || page_no == PageNo::NONE || !self.may_vacate(page_no, frame) {
            header.latch.unlock_unchanged(hold);
            return false;
        }
        self.vacate(page_no, frame, hold);
        self.counters.evictions.add(1);
        true
    }

    /// A frame for the caller alone: free, taken from a clean page, or waited for.
    fn take_frame(&self) -> Result<u32, Error> {
        let core = runtime::core();
        let failures = self.free.failures(core);
        loop {
            if let Some(frame) = self.try_frame(core) {
                return Ok(frame);
            }
            // Acquire: pairs with the stop.
            if self.stopping.load(Ordering::Acquire) {
                return Err(Error::NoFrames);
            }
            self.free.wait(core, failures)?;
        }
    }

    /// Takes a free frame, or that of a clean page that nobody has used lately. Does not wait for
    /// the page writer.
    fn try_frame(&self, core: usize) -> Option<u32> {
        let frame = self.find_frame(core)?;
        self.counters.allocations.add(1);
        #[cfg(variants)]
        self.sweep.allocated();
        Some(frame)
    }

    fn find_frame(&self, core: usize) -> Option<u32> {
        if !self.growth.is_whole()
            && let Some(frame) = self.free.take_own(&self.headers, core).or_else(|| self.grow(core))
        {
            return Some(frame);
        }
        if let Some(frame) = self.free.take(&self.headers, core) {
            return Some(frame);
        }
        // One batch finds a victim at once where most pages are clean. Else the page writer has
        // work to do.
        for _ in 0..self.sweep.batch().clamp(LOOK_AHEAD, MOST_LOOKS) {
            self.look(core, &mut |_, _| {});
            if self.free.len(core) > 0 {
                break;
            }
        }
        self.free.take(&self.headers, core)
    }

    /// Takes more frames into use, and returns one of them.
    #[cold]
    fn grow(&self, core: usize) -> Option<u32> {
        let frames = self.growth.claim(core)?;
        self.free.put_all(&self.headers, core, frames);
        self.free.take_own(&self.headers, core)
    }

    /// The headers of the frames in use, each with its frame's number.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (usize, &Frame)> {
        self.growth.in_use().flatten().map(|frame| (frame, &self.headers[frame]))
    }

    /// Looks at the next frame of the core's sweep. An unused clean page is evicted (true). An
    /// unused dirty one goes to `dirty`, together with the state in which it was chosen.
    pub(crate) fn look(&self, core: usize, dirty: &mut dyn FnMut(u32, State)) -> bool {
        let frame = self.sweep.next(core, time::now()) as u32;
        let header = self.header(frame);
        let state = header.latch.load();
        if header.stays(state) {
            return false;
        }
        if !header.is_dirty() {
            return self.evict(frame, state);
        }
        if !header.is_writing() {
            dirty(frame, state);
        }
        false
    }

    pub(crate) fn put_frame(&self, frame: u32) {
        self.free.put(&self.headers, runtime::core(), frame);
    }

    /// Marks a frame's page as changed; see `Frame::mark_dirty`.
    #[inline]
    pub(crate) fn mark_dirty(&self, frame: u32) {
        let header = self.header(frame);
        header.mark_dirty(|| if header.page_no().is_temporary() { None } else { Some(self.log.position()) });
    }

    /// Counts since the pool was made.
    pub fn statistics(&self) -> PoolStatistics {
        let count = |counter: &ShardedCounter| counter.sum().max(0) as u64;
        PoolStatistics {
            loads: count(&self.counters.loads),
            reads: count(&self.counters.reads),
            allocations: count(&self.counters.allocations),
            evictions: count(&self.counters.evictions),
            writes: count(&self.counters.writes),
            write_failures: count(&self.counters.write_failures),
            passes: self.sweep.position().passes,
        }
    }
}

#[cfg(test)]
mod tests;
