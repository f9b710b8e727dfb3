//! The log's files: segment `n` holds positions `n * size .. (n + 1) * size`. Its name is `n` in 16
//! hexadecimal digits.
//!
//! A segment gets its name only when all its blocks are allocated and written (zeros, or the bytes
//! of an older segment). So a flush never changes a file's metadata. The first core that notices
//! the need makes segments ahead of it. A segment that no recovery needs any more is renamed to the
//! end or removed. From the floor on, the names on disk are always consecutive.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::file::{self, AlignedBuf, File, OpenOptions};
use runtime::wait_event::{self, WaitEvent};
use runtime::{Cause, fail_stop};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{SpinLock, WaitQueue};

use super::{BLOCK, Wal};
use crate::Error;
use crate::error::{FormatProblem, IoContext};
use crate::format::{LOG_FOLDER, segment_name};

/// Segments ready beyond the granted end: one is the reserve for ends of transactions, one is being
/// filled, one is ahead.
const AHEAD: u64 = 2;
/// Segments for which the disk must have room besides, before an old segment is kept for later: a
/// full disk needs the space more.
const FREE_FOR_SPARES: u64 = 2;
/// Bytes of zeros in one write.
const PIECE: usize = 1 << 20;
/// The end of segments that have no files.
const NOWHERE: u64 = u64::MAX;
/// The name of a segment in the making.
const UNFINISHED: &str = "unfinished";

/// The numbers of the segments in the log's folder, ascending. Ignores other files.
pub(crate) fn list(folder: &Path) -> Result<Vec<u64>, Error> {
    let mut numbers: Vec<u64> = file::list(folder)
        .during("listing the log's folder")?
        .into_iter()
        .filter_map(|path| number_of(&path))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn number_of(path: &Path) -> Option<u64> {
    let found = path.file_name()?.to_str()?;
    u64::from_str_radix(found, 16).ok().filter(|number| found == segment_name(*number))
}

/// The segments that exist, and where the next ones come from.
#[derive(Debug)]
pub(super) struct Segments {
    folder: PathBuf,
    size: u64,
    /// Consecutive segments, oldest first.
    files: SpinLock<VecDeque<(u64, Arc<File>)>>,
    /// The end of the segments that exist.
    ready_end: AtomicU64,
    /// Whether a fiber changes the set of files.
    busy: AtomicBool,
    not_busy: WaitQueue,
    /// The number of turns that have ended, each of one fiber that changed the set.
    turns: AtomicU64,
    /// Fibers that wait for a segment, or for a turn to end without one.
    changed: WaitQueue,
    /// Why the last segment could not be made.
    failure: SpinLock<Option<Error>>,
}

impl Segments {
    /// Opens the segments from `first` to `last`, which must exist. Removes older ones, which a
    /// crash kept from being released.
    pub(super) fn open(folder: &Path, size: u64, first: u64, last: u64) -> Result<Segments, Error> {
        for older in list(folder)?.into_iter().filter(|number| *number < first) {
            file::remove(&folder.join(segment_name(older))).during("removing an old log segment")?;
        }
        let mut files = VecDeque::new();
        for number in list(folder)?.into_iter().filter(|number| *number <= last) {
            let path = folder.join(segment_name(number));
            files.push_back((
                number,
                Arc::new(open(&path, OpenOptions { direct: true, ..OpenOptions::default() })?),
            ));
        }
        let ready_end = files.back().map_or(last * size, |(newest, _)| (newest + 1) * size);
        Ok(Segments {
            folder: folder.to_owned(),
            size,
            files: SpinLock::new(&"log segments", files),
            ready_end: AtomicU64::new(ready_end),
            busy: AtomicBool::new(false),
            not_busy: WaitQueue::new(&"log segment maker"),
            turns: AtomicU64::new(0),
            changed: WaitQueue::new(&"log segment"),
            failure: SpinLock::new(&"log segment failure", None),
        })
    }

    /// Segments without files and without end: writes go nowhere.
    pub(super) fn nowhere(size: u64) -> Segments {
        Segments {
            folder: PathBuf::new(),
            size,
            files: SpinLock::new(&"log segments", VecDeque::new()),
            ready_end: AtomicU64::new(NOWHERE),
            busy: AtomicBool::new(false),
            not_busy: WaitQueue::new(&"log segment maker"),
            turns: AtomicU64::new(0),
            changed: WaitQueue::new(&"log segment"),
            failure: SpinLock::new(&"log segment failure", None),
        }
    }

    /// Whether writes go nowhere.
    pub(super) fn is_nowhere(&self) -> bool {
        self.ready_end() == NOWHERE
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Number of files.
    pub(super) fn count(&self) -> usize {
        self.files.lock().len()
    }

    pub(super) fn ready_end(&self) -> u64 {
        // Acquire: the file is in `files` before.
        self.ready_end.load(Ordering::Acquire)
    }

    /// The file of a segment that is ready and still needed.
    pub(super) fn file(&self, number: u64) -> Arc<File> {
        let found = {
            let files = self.files.lock();
            let first = files.front().map_or(0, |(first, _)| *first);
            number.checked_sub(first).and_then(|at| files.get(at as usize)).map(|(_, file)| file.clone())
        };
        found.unwrap_or_else(|| {
            fail_stop(Cause::Engine, format_args!("a log segment that must be ready is not there"))
        })
    }

    /// Makes the next segment as a new file.
    pub(super) fn make(&self) -> Result<(), Error> {
        let number = self.ready_end() / self.size;
        let unfinished = self.folder.join(UNFINISHED);
        let made = write_zeros(&unfinished, self.size);
        let file = made.inspect_err(|_| {
            // The blocks allocated so far go back, so that a full disk has room for what matters
            // more.
            let _ = file::remove(&unfinished);
        })?;
        self.adopt(&unfinished, number, file)
    }

    /// Renames a file to be the last segment.
    fn adopt(&self, from: &Path, number: u64, file: Arc<File>) -> Result<(), Error> {
        file::rename(from, &self.folder.join(segment_name(number))).during("naming a log segment")?;
        file::sync_dir(&self.folder).during("syncing the log's folder")?;
        self.files.lock().push_back((number, file));
        // Release: a reader that sees this finds the file.
        self.ready_end.store((number + 1) * self.size, Ordering::Release);
        Ok(())
    }

    /// Makes segments until they reach `end` or one fails.
    fn make_until(&self, end: u64) {
        let mut result = Ok(());
        while result.is_ok() && self.ready_end() < end {
            result = runtime::stop::fault("log.segment.make")
                .during("making a log segment")
                .and_then(|()| self.make());
            self.changed.wake_all();
        }
        *self.failure.lock() = result.err();
    }

    /// Whether the last segment failed for want of space.
    pub(super) fn is_short(&self) -> bool {
        matches!(*self.failure.lock(), Some(Error::DiskFull(_)))
    }

    fn try_busy(&self) -> bool {
        // Relaxed load: only spares the exchange. Acquire: this turn sees what the last one
        // changed.
        !self.busy.load(Ordering::Relaxed) && !self.busy.swap(true, Ordering::Acquire)
    }

    /// Ends a turn. A fiber that waits because another one was busy looks again after this.
    fn end_busy(&self) {
        // Release: pairs with `try_busy`.
        self.busy.store(false, Ordering::Release);
        // Release: a waiter that sees the count finds nobody busy, and the failure.
        self.turns.fetch_add(1, Ordering::Release);
        self.changed.wake_all();
        self.not_busy.wake_one();
    }

    /// Renames segments wholly before `floor` to the end while those ready do not reach
    /// `need_until`. Beyond that, up to `keep_until`, it does so only where the disk has room to
    /// spare. It removes the others.
    pub(super) fn recycle(&self, floor: u64, position: u64, keep_until: u64) -> Result<(), Error> {
        self.not_busy.wait_until(|| self.try_busy());
        let need_until = (position + AHEAD * self.size).next_multiple_of(self.size);
        let result = self.recycle_busy(floor, need_until, keep_until);
        *self.failure.lock() = None;
        self.end_busy();
        result
    }

    fn recycle_busy(&self, floor: u64, need_until: u64, keep_until: u64) -> Result<(), Error> {
        loop {
            let oldest = {
                let mut files = self.files.lock();
                match files.front() {
                    Some((number, _)) if (number + 1) * self.size <= floor => files.pop_front(),
                    _ => None,
                }
            };
            let Some((number, file)) = oldest else { return Ok(()) };
            runtime::stop::point("log.segment.recycle");
            let path = self.folder.join(segment_name(number));
            let spare = self.ready_end() >= need_until;
            if self.ready_end() < keep_until && (!spare || self.disk_has_room()) {
                self.adopt(&path, self.ready_end() / self.size, file)?;
            } else {
                file::remove(&path).during("removing an old log segment")?;
            }
        }
    }
}

impl Segments {
    /// Whether the disk has room besides. True when the system does not tell.
    fn disk_has_room(&self) -> bool {
        file::free_bytes(&self.folder).map_or(true, |free| free >= FREE_FOR_SPARES * self.size)
    }
}

impl Wal {
    /// Has segments made when `granted` comes near the end of those that are ready.
    #[inline]
    pub(super) fn prepare_segments(&self, granted: u64) {
        if granted + AHEAD * self.segments.size > self.segments.ready_end() {
            self.make_segments();
        }
    }

    #[cold]
    fn make_segments(&self) {
        let Some(wal) = self.this.upgrade() else { return };
        if self.segments.try_busy() {
            let work = move || {
                // Relaxed: a bound that moves on anyway.
                let granted = wal.granted.load(Ordering::Relaxed);
                wal.segments
                    .make_until((granted + AHEAD * wal.segments.size).next_multiple_of(wal.segments.size));
                wal.segments.end_busy();
            };
            match runtime::try_core() {
                Some(_) => runtime::fiber::spawn_local(work),
                None => work(),
            }
        }
    }

    /// Parks until segments reach `end` or a turn has ended. Fails when a segment cannot be made.
    pub(super) fn wait_for_segments(&self, end: u64) -> Result<(), Error> {
        let segments = &self.segments;
        // Acquire: pairs with the count's release. Read before the try below: a turn that made it
        // fail ends after this.
        let before = segments.turns.load(Ordering::Acquire);
        if segments.ready_end() >= end {
            return Ok(());
        }
        self.make_segments();
        // Acquire: the failure is seen with the count.
        let turned = || segments.turns.load(Ordering::Acquire) != before;
        let made = || segments.ready_end() >= end || turned();
        wait_event::during(WaitEvent::WalInit, || segments.changed.wait_until(made));
        let failure = segments.failure.lock().clone();
        match failure {
            Some(failure) if segments.ready_end() < end => Err(failure),
            _ => Ok(()),
        }
    }
}

/// Opens an existing segment file for reading only.
pub(super) fn open_for_reading(path: &Path) -> Result<File, Error> {
    open(path, OpenOptions { direct: true, read_only: true, ..OpenOptions::default() })
}

fn open(path: &Path, options: OpenOptions) -> Result<File, Error> {
    File::open(path, options).during("opening a log segment")
}

fn write_zeros(path: &Path, size: u64) -> Result<Arc<File>, Error> {
    let file =
        open(path, OpenOptions { create: true, truncate: true, direct: true, ..OpenOptions::default() })?;
    file.allocate(0, size).during("allocating a log segment")?;
    let zeros = AlignedBuf::new(PIECE.min(size as usize));
    for at in (0..size).step_by(zeros.len()) {
        file.write_at(&zeros, at).during("writing a log segment")?;
    }
    file.sync_data().during("syncing a log segment")?;
    Ok(Arc::new(file))
}

/// The error for a required segment that is missing.
pub(crate) fn missing(number: u64) -> Error {
    Error::Format(FormatProblem::Missing(format!("{LOG_FOLDER}/{}", segment_name(number))))
}

/// The error for a file that is longer than a segment.
pub(super) fn too_long(number: u64) -> Error {
    Error::Format(FormatProblem::Unfit(format!(
        "file {LOG_FOLDER}/{} is longer than a segment",
        segment_name(number)
    )))
}

/// Makes everything from `end` on read as zeros: clears the rest of its segment and removes later
/// segments. Without this, records that a crash left beyond a gap could be taken for records again
/// once the log has grown up to them.
pub(crate) fn clear_from(folder: &Path, size: u64, end: u64) -> Result<(), Error> {
    let number = end / size;
    // From the last one down, so that a crash in between leaves consecutive names.
    for later in list(folder)?.into_iter().rev().take_while(|later| *later > number) {
        file::remove(&folder.join(segment_name(later)))
            .during("removing a log segment past the log's end")?;
        file::sync_dir(folder).during("syncing the log's folder")?;
    }
    let path = folder.join(segment_name(number));
    if !list(folder)?.contains(&number) {
        return Ok(());
    }
    let file = open(&path, OpenOptions { direct: true, ..OpenOptions::default() })?;
    let length = file.len().during("measuring a log segment")?;
    if length > size {
        return Err(too_long(number));
    }
    if length < size {
        // The file was cut short behind the log's end: the missing part is written as zeros below.
        file.allocate(0, size).during("allocating a log segment")?;
    }
    let whole = length & !(BLOCK - 1);
    let mut piece = AlignedBuf::new(PIECE.min(size as usize));
    let mut at = (end % size) & !(BLOCK - 1);
    let mut keep = (end % size - at) as usize;
    while at < size {
        let length = piece.len().min((size - at) as usize);
        file.read_at(&mut piece[..length], at).during("reading the log's end")?;
        if at + length as u64 > whole || piece[keep..length].iter().any(|byte| *byte != 0) {
            piece[keep..length].fill(0);
            file.write_at(&piece[..length], at).during("clearing the log's end")?;
        }
        at += length as u64;
        keep = 0;
    }
    file.sync_data().during("syncing the log's end")
}
