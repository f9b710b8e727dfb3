//! The page writer: keeps clean free frames ahead of demand, and writes pages for checkpoints.
//!
//! A fiber on each core. One round:
//!
//! 1. Walk the sweep, as far as the last rounds let expect enough frames ([`Pace`]). A clean page
//!    that nobody used since the last passes gives its frame up at once. A dirty one is copied into
//!    the writer's buffer and marked as being written. The copy is optimistic: the writer holds the
//!    latch only to confirm that the copy is of one state and to set the mark. So others change the
//!    page while the copy is written.
//! 2. Wait until the log is on disk up to the highest LSN among the copies. No page is written
//!    before its log.
//! 3. Seal the copies with their checksums and write them, several at once.
//! 4. Unmark the pages. Those that nobody has touched since they were chosen give their frames up.
//!
//! A failed write leaves its pages as dirty as they were. The writer counts it and tries it again,
//! and reports it to fibers that wait for frames if nothing else frees any. So a full disk or a
//! passing I/O error costs time and loses nothing.

use std::sync::Arc;
use std::time::Duration;

use runtime::file::AlignedBuf;
use runtime::{Cause, Runtime, fail_stop, fiber, stop};
use sync::atomic::Ordering;
use sync::profile::Hold;
use sync::racy::RacyBytes;

use crate::Error;
use crate::frame::{State, USAGE_MAX};
use crate::pace::Pace;
use crate::page::{self, Lsn, PAGE_SIZE, PageNo};
use crate::pool::{LOOK_AHEAD, Pool, yield_for_latch};

/// The most pages that a writer has under way at once.
const BATCH: usize = 64;
/// Frames that a round looks at, at most. They are at most those of the pool, too.
const LOOKS_MAX: usize = 16 * LOOK_AHEAD;
/// Revolutions of the sweep without a freed frame, after which waiting fibers get an error. The
/// usage counts need `USAGE_MAX + 1`; the rest, each with a pause, is for pins and writes that are
/// just under way.
const REVOLUTIONS_MAX: u32 = USAGE_MAX as u32 + 1 + 100;
/// Pause after a revolution that freed nothing, and between looks at frames that others are
/// writing.
const PAUSE: Duration = Duration::from_millis(1);
/// Pause after a failed write.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// Headers that the search for dirty pages reads between two safe points.
const FRAMES_PER_SAFE_POINT: usize = 256;
/// Attempts to copy a page that keeps changing, before the writer copies it under its latch.
const COPY_ATTEMPTS: u32 = 3;

/// A copy under way to disk.
struct Copy {
    frame: u32,
    page_no: PageNo,
    /// The state in which the frame was chosen.
    chosen: State,
}

/// Private copies of pages, and the frames they came from.
struct Batch {
    buffer: AlignedBuf,
    copies: Vec<Copy>,
    most: usize,
}

impl Batch {
    fn new(most: usize) -> Batch {
        Batch { buffer: AlignedBuf::new(most * PAGE_SIZE), copies: Vec::with_capacity(most), most }
    }

    fn is_full(&self) -> bool {
        self.copies.len() == self.most
    }

    fn slot(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffer[index * PAGE_SIZE..(index + 1) * PAGE_SIZE]
    }

    /// Copies a page and claims its write, if its frame is still as `chosen`.
    fn add(&mut self, pool: &Pool, frame: u32, chosen: State) -> bool {
        let header = pool.header(frame);
        let index = self.copies.len();
        // SAFETY: the region is mapped and initialized for as long as the pool lives. The copy
        // counts only if the version is unchanged after it.
        let bytes = unsafe { RacyBytes::new(pool.bytes_of(frame), PAGE_SIZE) };
        let copied = bytes.copy_all(self.slot(index));
        if !copied || !header.latch.validate(chosen) {
            return false;
        }
        let Some(hold) = pool.try_latch(frame, chosen) else { return false };
        let page_no = header.page_no();
        let claimed = page_no != PageNo::NONE && header.begin_write();
        header.latch.unlock_unchanged(hold);
        if claimed {
            self.copies.push(Copy { frame, page_no, chosen });
        }
        claimed
    }

    /// As `add`, for a page that must be written although it keeps changing: at last the copy is
    /// made under the latch.
    fn add_stubbornly(&mut self, pool: &Pool, frame: u32) -> bool {
        let header = pool.header(frame);
        for _ in 0..COPY_ATTEMPTS {
            if let Some(state) = pool.read_latch(frame)
                && self.add(pool, frame, state)
            {
                return true;
            }
            if !header.is_dirty() || header.is_writing() {
                return false;
            }
        }
        let (chosen, hold) = latch_yielding(pool, frame);
        let page_no = header.page_no();
        let claimed = page_no != PageNo::NONE && header.begin_write();
        if claimed {
            // SAFETY: as in `add`; the latch is held, so the bytes are still.
            let bytes = unsafe { RacyBytes::new(pool.bytes_of(frame), PAGE_SIZE) };
            let copied = bytes.copy_all(self.slot(self.copies.len()));
            debug_assert!(copied, "a slot has the size of a page");
            self.copies.push(Copy { frame, page_no, chosen });
        }
        header.latch.unlock_unchanged(hold);
        claimed
    }

    /// Writes the copies and unmarks their pages, also after a failure. The copies stay listed for
    /// the caller.
    fn write(&mut self, pool: &Pool) -> Result<(), Error> {
        stop::point("storage.evict.before_write");
        let written = self.write_to_files(pool);
        stop::point("storage.writer.after_write");
        for copy in &self.copies {
            let (_, hold) = latch_yielding(pool, copy.frame);
            let header = pool.header(copy.frame);
            header.end_write(written.is_ok());
            header.latch.unlock_unchanged(hold);
        }
        match written {
            Ok(()) => pool.counters.writes.add(self.copies.len() as i64),
            Err(_) => pool.counters.write_failures.add(1),
        }
        written
    }

    fn write_to_files(&mut self, pool: &Pool) -> Result<(), Error> {
        let mut highest = Lsn::ZERO;
        for (copy, bytes) in self.copies.iter().zip(self.buffer.chunks_exact_mut(PAGE_SIZE)) {
            if !copy.page_no.is_temporary() {
                highest = highest.max(page::lsn(bytes));
            }
            page::seal(bytes);
        }
        // The log comes first: the page's last record is on disk before the page.
        if pool.log.durable() < highest {
            pool.log.wait_durable(highest)?;
        }
        for temporary in [false, true] {
            let pages: Vec<(PageNo, &[u8])> = self
                .copies
                .iter()
                .zip(self.buffer.chunks_exact(PAGE_SIZE))
                .filter(|(copy, _)| copy.page_no.is_temporary() == temporary)
                .map(|(copy, bytes)| (copy.page_no, bytes))
                .collect();
            if let Some(&(first, _)) = pages.first() {
                pool.file(first).write_many(&pages)?;
            }
        }
        Ok(())
    }
}

/// Takes a frame's latch and lets other fibers run while another holds it; returns the state
/// before.
#[track_caller]
fn latch_yielding(pool: &Pool, frame: u32) -> (State, Hold) {
    loop {
        if let Some(state) = pool.read_latch(frame)
            && let Some(hold) = pool.try_latch(frame, state)
        {
            return (state, hold);
        }
        yield_for_latch();
    }
}

/// The writer of one core.
struct PageWriter<'p> {
    pool: &'p Pool,
    core: usize,
    batch: Batch,
    pace: Pace,
}

impl PageWriter<'_> {
    fn run(&mut self) {
        let pool = self.pool;
        // Acquire: pairs with the stop.
        let stopped = || pool.stopping.load(Ordering::Acquire);
        while !stopped() {
            pool.free.sleep(self.core, stopped);
            self.fill();
        }
    }

    /// Frees frames until there are enough, or until none can be freed.
    fn fill(&mut self) {
        let pool = self.pool;
        let mut fruitless = 0;
        let mut walked = 0;
        let mut failure = None;
        // Acquire: pairs with the stop.
        while pool.free.lack(self.core) > 0 && !pool.stopping.load(Ordering::Acquire) {
            let (looked, freed, failed) = self.round();
            if failed.is_some() {
                // A failure counts like a revolution, so a pool full of pages that cannot be
                // written is found in a few seconds.
                (failure, walked) = (failed, pool.frames());
                fiber::sleep(PAUSE_AFTER_FAILURE);
            }
            if freed {
                (fruitless, walked, failure) = (0, 0, None);
                fiber::yield_now();
                continue;
            }
            walked += looked;
            if walked < pool.frames() {
                fiber::yield_now();
                continue;
            }
            (fruitless, walked) = (fruitless + 1, 0);
            if fruitless == REVOLUTIONS_MAX {
                pool.free.fail(self.core, failure.unwrap_or(Error::NoFrames));
                return;
            }
            fiber::sleep(PAUSE);
        }
    }

    /// One round; returns the number of frames looked at, whether any came free, and the error of a
    /// failed write.
    fn round(&mut self) -> (usize, bool, Option<Error>) {
        let (pool, core, batch) = (self.pool, self.core, &mut self.batch);
        batch.copies.clear();
        let mut freed = pool.free.restock(pool.headers(), core);
        let most = self.pace.look_at(batch.most.min(pool.free.lack(core) as usize));
        let (mut looked, mut found) = (0, 0);
        while looked < most && !batch.is_full() && pool.free.lack(core) > 0 {
            looked += 1;
            let evicted = pool.look(core, &mut |frame, state| {
                batch.add(pool, frame, state);
            });
            found += usize::from(evicted);
            freed |= evicted;
            if looked.is_multiple_of(LOOK_AHEAD) {
                fiber::safe_point();
            }
        }
        self.pace.after(looked, found + batch.copies.len());
        if batch.copies.is_empty() {
            return (looked, freed, None);
        }
        if let Err(error) = batch.write(pool) {
            return (looked, freed, Some(error));
        }
        for copy in &batch.copies {
            freed |= pool.evict(copy.frame, copy.chosen);
        }
        (looked, freed, None)
    }
}

/// A page writer that has not ended. A panic in one ends the process: it leaves pages marked as
/// being written, which nobody would ever write or evict again.
struct Running<'p>(&'p Pool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if runtime::is_panicking() {
            fail_stop(Cause::Engine, format_args!("a page writer panicked"));
        }
        // AcqRel: a reader that sees zero sees the writers' work done.
        self.0.writers.fetch_sub(1, Ordering::AcqRel);
        self.0.writers_ended.wake_all();
    }
}

impl Pool {
    /// The most pages of a batch: a writer may not have a large part of a small pool under way.
    fn batch_pages(&self) -> usize {
        (self.frames() / (8 * self.cores())).clamp(1, BATCH)
    }

    /// Starts a page writer on each core.
    pub fn start_writers(self: &Arc<Self>, runtime: &Runtime) {
        for core in 0..self.cores() {
            // AcqRel: counted before it can end.
            self.writers.fetch_add(1, Ordering::AcqRel);
            let pool = Arc::clone(self);
            runtime.spawn(core, move || {
                let _running = Running(&pool);
                let batch = Batch::new(pool.batch_pages());
                let pace = Pace::new(LOOK_AHEAD.min(pool.frames()), LOOKS_MAX.min(pool.frames()));
                PageWriter { pool: &pool, core, batch, pace }.run();
            });
        }
    }

    /// Stops the page writers and parks until they have ended. It writes nothing: flush before.
    pub fn stop_writers(&self) {
        // Release: pairs with the writers' look.
        self.stopping.store(true, Ordering::Release);
        self.free.shut();
        // Acquire: see the writers' end.
        self.writers_ended.wait_until(|| self.writers.load(Ordering::Acquire) == 0);
    }

    /// Writes every page that has a change logged before `lsn`, then syncs the file, for a
    /// checkpoint. It also writes pages changed meanwhile, or leaves them to the next checkpoint.
    pub fn flush_before(&self, lsn: Lsn) -> Result<(), Error> {
        self.flush_before_paced(lsn, &mut |_, _| {})?;
        self.file(PageNo(0)).sync()
    }

    /// As [`Pool::flush_before`] without the sync. After each batch `pace(done, total)` may park,
    /// to spread the writes out.
    pub(crate) fn flush_before_paced(
        &self,
        lsn: Lsn,
        pace: &mut dyn FnMut(usize, usize),
    ) -> Result<(), Error> {
        let mut batch = Batch::new(self.batch_pages());
        loop {
            let mut due = self.dirty_before(lsn);
            if due.is_empty() {
                break;
            }
            // In the order of the file, which suits disks.
            due.sort_unstable();
            let total = due.len();
            let mut wrote = false;
            for (done, &(_, frame)) in due.iter().enumerate() {
                batch.add_stubbornly(self, frame);
                if batch.is_full() || (done + 1 == total && !batch.copies.is_empty()) {
                    batch.write(self)?;
                    batch.copies.clear();
                    wrote = true;
                    pace(done + 1, total);
                }
                fiber::safe_point();
            }
            if !wrote {
                // Other writers have all the remaining pages under way.
                fiber::sleep(PAUSE);
            }
        }
        // A freed page is dropped without being written, and with it changes before `lsn`. So the
        // record that frees it must be durable too, before recovery stops reading the log before
        // `lsn`.
        self.log.wait_durable(self.log.position())
    }

    /// Frames whose page has an unwritten change logged before `lsn`.
    fn dirty_before(&self, lsn: Lsn) -> Vec<(PageNo, u32)> {
        let mut due = Vec::new();
        for (frame, header) in self.in_use() {
            if header.is_dirty_before(lsn) {
                due.push((header.page_no(), frame as u32));
            }
            // Reading all headers of a large pool takes long, so yield. A frame that becomes dirty
            // after the loop has passed it was changed after `lsn`, so it need not be found.
            if frame.is_multiple_of(FRAMES_PER_SAFE_POINT) {
                fiber::safe_point();
            }
        }
        due
    }
}
