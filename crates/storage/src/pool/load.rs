//! Reading pages into frames: one by one as they are missed, or several at once ahead of a scan.
//!
//! A load takes a frame, enters it as being loaded into, reads, and enters the page ([`Loading`]).
//! It ends in every case, also after a panic: otherwise the fibers that wait for the page would
//! wait for ever.

use runtime::wait_event::{self, WaitEvent};
use runtime::{page_counts, stop};
use sync::WaitQueue;
use sync::atomic::{AtomicU32, Ordering};

use super::{LOAD_QUEUES, Pool};
use crate::Error;
use crate::entry::Entry;
use crate::page::{Damage, PAGE_SIZE, PageNo};

/// How a load treats a page that is damaged or was never written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDamage {
    Fail,
    Zero,
}

/// A page being read into a frame that its entry names. A drop gives the load up: before the read
/// is under way, or after a panic.
pub(super) struct Loading<'p> {
    pool: &'p Pool,
    page_no: PageNo,
    entry: &'p AtomicU32,
    frame: u32,
}

impl<'p> Loading<'p> {
    /// Enters the frame, if the entry is as `seen`.
    pub(super) fn begin(
        pool: &'p Pool,
        page_no: PageNo,
        entry: &'p AtomicU32,
        seen: Entry,
        frame: u32,
    ) -> Option<Loading<'p>> {
        let ours = Entry::loading(frame);
        // AcqRel: the frame's last page gave it up before it is entered here. Relaxed on failure:
        // looked at again.
        entry.compare_exchange(seen.0, ours.0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        Some(Loading { pool, page_no, entry, frame })
    }

    /// The bytes of the frame, to read into.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the region is mapped. The frame has no page and is on no list, so this load alone
        // writes it until the page is entered. Readers with an old view of the frame read racily
        // and fail to validate.
        unsafe { std::slice::from_raw_parts_mut(self.pool.bytes_of(self.frame), PAGE_SIZE) }
    }

    /// Enters the page that was read, or returns its frame. False when `create` has entered a new
    /// page of that number in another frame meanwhile: then the read is of no use.
    fn end(self, readable: bool) -> bool {
        let entered = self.finish(readable);
        std::mem::forget(self);
        entered
    }

    fn finish(&self, readable: bool) -> bool {
        let (pool, frame) = (self.pool, self.frame);
        let header = pool.header(frame);
        let hold = readable.then(|| {
            pool.counters.loads.add(1);
            let hold = pool.give(frame, self.page_no);
            header.set_usage(1);
            hold
        });
        let outcome = if readable { Entry::resident(frame) } else { Entry::ABSENT };
        let ours = Entry::loading(frame);
        // Release: a reader that sees the entry sees the page. Relaxed on failure: see above.
        let entered =
            self.entry.compare_exchange(ours.0, outcome.0, Ordering::Release, Ordering::Relaxed).is_ok();
        if !entered && readable {
            #[cfg(variants)]
            pool.views.take_back(frame, self.page_no);
            header.set_page_no(PageNo::NONE);
        }
        if let Some(hold) = hold {
            header.latch.unlock_changed(hold);
        }
        if !(entered && readable) {
            pool.put_frame(frame);
        }
        pool.load_queue(self.page_no).wake_all();
        entered
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.finish(false);
    }
}

impl Pool {
    /// Parks until the page is resident. It may be gone again when the caller looks; then the
    /// caller begins again, or pins it.
    #[cold]
    pub fn load(&self, page_no: PageNo) -> Result<(), Error> {
        self.load_with(page_no, OnDamage::Fail)
    }

    /// As [`Pool::load`], for recovery: a page that is damaged or was never written comes as zeros,
    /// and the log's image makes it anew.
    pub(crate) fn load_or_zero(&self, page_no: PageNo) -> Result<(), Error> {
        self.load_with(page_no, OnDamage::Zero)
    }

    fn load_with(&self, page_no: PageNo, on_damage: OnDamage) -> Result<(), Error> {
        let entry = self.entry(page_no).ok_or(Error::Corrupt { page: page_no, what: "no such page" })?;
        let mut spare = None;
        let loaded = loop {
            // Acquire: this sees the frame's header as it was when the page was entered.
            let now = Entry(entry.load(Ordering::Acquire));
            if now.frame().is_some() {
                break Ok(());
            }
            if now.is_loading() {
                // Acquire: as above.
                let loaded = || !Entry(entry.load(Ordering::Acquire)).is_loading();
                wait_event::during(WaitEvent::BufferIo, || self.load_queue(page_no).wait_until(loaded));
                continue;
            }
            let frame = match spare.take() {
                Some(frame) => frame,
                None => self.take_frame()?,
            };
            match Loading::begin(self, page_no, entry, now, frame) {
                Some(loading) => break self.load_into(loading, on_damage),
                None => spare = Some(frame),
            }
        };
        if let Some(frame) = spare {
            self.put_frame(frame);
        }
        loaded
    }

    pub(super) fn load_into(&self, mut loading: Loading<'_>, on_damage: OnDamage) -> Result<(), Error> {
        self.counters.reads.add(1);
        page_counts::read(1);
        let page_no = loading.page_no;
        let read = self.read_page(page_no, loading.bytes(), on_damage);
        stop::point("storage.load.read");
        if loading.end(read.is_ok()) { read } else { Ok(()) }
    }

    /// Parks until the missing ones of `pages` are resident, as far as frames are free. Reads them
    /// all at once. For scans, which know the pages they will need. [`Pool::load`] reports later
    /// those that cannot be read. All pages are of one file.
    pub fn load_ahead(&self, pages: &[PageNo]) {
        let core = runtime::core();
        let mut loads = Vec::with_capacity(pages.len());
        for &page_no in pages.iter().filter(|page_no| page_no.index() < self.file(**page_no).pages()) {
            let Some(entry) = self.entry(page_no) else { continue };
            // Relaxed: a first look; the exchange decides.
            if entry.load(Ordering::Relaxed) != Entry::ABSENT.0 {
                continue;
            }
            // The load does not wait for a frame: others may wait for those taken already.
            let Some(frame) = self.try_frame(core) else { break };
            match Loading::begin(self, page_no, entry, Entry::ABSENT, frame) {
                Some(loading) => loads.push(loading),
                None => self.put_frame(frame),
            }
        }
        let Some(first) = loads.first().map(|loading| loading.page_no) else { return };
        let mut reads: Vec<(PageNo, &mut [u8])> =
            loads.iter_mut().map(|loading| (loading.page_no, loading.bytes())).collect();
        self.counters.reads.add(1);
        page_counts::read(reads.len());
        let filled = wait_event::during(WaitEvent::DataFileRead, || self.file(first).read_many(&mut reads));
        stop::point("storage.load.read");
        for (mut loading, filled) in loads.into_iter().zip(filled) {
            let page_no = loading.page_no;
            let readable = filled && self.verify(loading.bytes(), page_no).is_ok();
            loading.end(readable);
        }
    }

    pub(super) fn load_queue(&self, page_no: PageNo) -> &WaitQueue {
        &self.loads[page_no.index() as usize % LOAD_QUEUES]
    }

    fn read_page(&self, page_no: PageNo, bytes: &mut [u8], on_damage: OnDamage) -> Result<(), Error> {
        let file = self.file(page_no);
        let found = if page_no.index() < file.pages() {
            wait_event::during(WaitEvent::DataFileRead, || file.read(page_no, bytes))?;
            self.verify(bytes, page_no)
        } else {
            Err(Damage::NeverWritten)
        };
        match found {
            Ok(()) => Ok(()),
            Err(_) if on_damage == OnDamage::Zero => {
                bytes.fill(0);
                Ok(())
            }
            Err(damage) => Err(Error::Corrupt { page: page_no, what: damage.what() }),
        }
    }
}
