//! The write-ahead log.
//!
//! One endless sequence of bytes, cut into segment files. A core reserves space by one atomic add,
//! all cores fill in parallel, and writes cover groups of records. What must hold:
//!
//! 1. An LSN is the position just after a record. A record is durable when `durable() >= lsn`. A
//!    page whose LSN is `lsn` contains that record's change.
//! 2. No unfilled reservation lies before a published end: `durable() <= filled() <= position()`.
//! 3. No fiber parks between reserving and filling.
//! 4. The first record of a page after a checkpoint's redo position carries the whole page, or says
//!    that the page is new.
//! 5. Stale bytes are no records: every record carries its own position and a checksum salted per
//!    data folder.
//! 6. Every commit record and the file `durable` name the record up to which the log was known to
//!    be durable. So a start can tell damage from an unfinished end (`durable`, `damage`).
//! 7. A failed log write is never tried again and never acknowledged: the process ends.

mod append;
mod change;
pub(crate) mod damage;
pub(crate) mod durable;
mod fill;
mod flights;
mod flush;
mod reader;
mod record;
mod ring;
mod segments;
#[cfg(test)]
pub(crate) mod tests;
mod waiters;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use runtime::memory::{HugePages, Region};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{CachePadded, OnceLock, PerCore, assert_apart};

use crate::Error;
use crate::control::{Control, ControlFile};
use crate::error::IoContext;
use crate::format::LOG_FOLDER;
pub use crate::page::Lsn;
use append::CoreCell;
pub(crate) use append::Share;
pub use change::{Change, LoggedPage};
use durable::Durable;
use fill::Fill;
pub use flights::FlightCounts;
use flush::Flush;
pub use reader::LogReader;
pub(crate) use record::PartForm;
pub use record::{Kind, Part, Record};
use ring::Ring;
use segments::Segments;
pub(crate) use segments::{clear_from, missing};

/// The unit of log writes: direct I/O needs it, and disks write it whole.
pub(crate) const BLOCK: u64 = 4096;
const _: () = assert!(BLOCK == flights::BLOCK);
/// Position of a new log's first record; position 0 means "none".
pub(crate) const FIRST: Lsn = Lsn(BLOCK);
/// Default size of a segment file. A run on the model machine fills several.
const SEGMENT_BYTES: u64 = if cfg!(model) { SMALLEST_SEGMENT } else { 64 << 20 };
/// The smallest segment: a record may cover no more than two.
const SMALLEST_SEGMENT: u64 = 1 << 20;
/// Default size of the smallest ring.
const RING_BYTES: usize = 16 << 20;
/// Links a change to the transaction that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxnLink {
    /// The transaction; 0 for structure changes, which belong to none and are never undone.
    pub txn: u64,
    /// LSN of this transaction's previous record; zero for its first.
    pub prev: Lsn,
    /// Set in a compensation record, which redoes an undo and is never undone itself. It is where
    /// undo goes on: the `prev` of the record that was undone.
    pub compensation: Option<Lsn>,
}

impl TxnLink {
    /// The link of a change that belongs to no transaction.
    pub const NONE: TxnLink = TxnLink { txn: 0, prev: Lsn::ZERO, compensation: None };
}

/// A checkpoint's number (modulo 256) and the position recovery would redo from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// Low 8 bits of the count of checkpoints begun since the start.
    pub number: u8,
    /// A page whose LSN is at most this has not been changed since the checkpoint began.
    pub redo: Lsn,
}

impl From<fill::Epoch> for Epoch {
    fn from(epoch: fill::Epoch) -> Epoch {
        Epoch { number: epoch.number, redo: Lsn(epoch.redo) }
    }
}

/// Sizes of a log.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Cores that append.
    pub cores: usize,
    /// Bytes of a segment file: a power of two, at least 1 MiB. Fixed when the data folder is made.
    pub segment_bytes: u64,
    /// Bytes of the ring in memory: a power of two, raised to the cores' need.
    pub ring_bytes: usize,
    /// Log volume after which a checkpoint is due.
    pub checkpoint_bytes: u64,
    /// Whether the ring tries huge pages.
    pub huge_pages: HugePages,
}

impl WalOptions {
    /// The default options.
    pub fn new(cores: usize) -> WalOptions {
        WalOptions {
            cores,
            segment_bytes: SEGMENT_BYTES,
            ring_bytes: RING_BYTES,
            checkpoint_bytes: 1 << 30,
            huge_pages: HugePages::Try,
        }
    }
}

/// Returns a log position.
pub(crate) type FloorSource = Box<dyn Fn() -> Lsn + Send + Sync>;
/// Returns the upper crates' values.
pub(crate) type InfoSource = Box<dyn Fn() -> Vec<u8> + Send + Sync>;
/// Receives the durable end of the log.
type DurableCallback = Box<dyn Fn(Lsn) + Send + Sync>;

/// The log as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogState {
    /// Everything before this is on disk.
    pub durable: Lsn,
    /// Everything before this is filled.
    pub filled: Lsn,
    /// End of the reserved space.
    pub position: Lsn,
    /// Its writes since the log was opened.
    pub writes: FlightCounts,
    /// Number of segments, spare ones among them.
    pub segments: usize,
}

/// The write-ahead log.
pub struct Wal {
    folder: PathBuf,
    options: WalOptions,
    salt: u32,
    fill: Fill,
    ring: Ring,
    /// Where this process began to append.
    begun: u64,
    cores: PerCore<CoreCell>,
    /// Total room granted to cores: positions below this may be reserved.
    granted: CachePadded<AtomicU64>,
    /// Bytes of the void records that fill blocks ([`Wal::fill_block`]).
    padding: CachePadded<AtomicU64>,
    /// The position at the last truncation, or at the start.
    truncated: AtomicU64,
    /// The durable end of the log.
    durable: Durable,
    flush: Flush,
    segments: Segments,
    this: Weak<Wal>,
    on_durable: OnceLock<DurableCallback>,
    pub(crate) floor_source: OnceLock<FloorSource>,
    pub(crate) info_source: OnceLock<InfoSource>,
    pub(crate) control: ControlFile,
    /// Number of the last checkpoint ([`Control::generation`]). Only the checkpoint under way
    /// writes it.
    pub(crate) generation: AtomicU64,
    /// Whether a checkpoint is under way.
    pub(crate) checkpointing: AtomicBool,
}

assert_apart!(Wal: granted from salt, ring, cores, segments);
assert_apart!(Wal: padding from salt, ring, cores, segments);

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal")
            .field("position", &self.position())
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}

impl Wal {
    /// Makes the log and the control file of a new data folder.
    pub fn create(folder: &Path, options: WalOptions) -> Result<Arc<Wal>, Error> {
        assert!(options.segment_bytes.is_power_of_two() && options.segment_bytes >= SMALLEST_SEGMENT);
        runtime::file::create_dir(&folder.join(LOG_FOLDER)).during("making the log's folder")?;
        let control = Control::new(options.segment_bytes, runtime::random::u64() as u32, FIRST);
        let file = ControlFile::create(folder, &control)?;
        Wal::assemble(folder, (file, &control), FIRST, None, options)
    }

    /// The log of a data folder whose records end at `end`. Bytes behind them are cleared. If the
    /// log was durable up to `before` and its part after `end` is discarded, the next start finds
    /// that damage again until [`Wal::settle_end`].
    pub(crate) fn resume(
        folder: &Path,
        file: ControlFile,
        control: &Control,
        (end, before): (Lsn, Option<Lsn>),
        options: WalOptions,
    ) -> Result<Arc<Wal>, Error> {
        clear_from(&folder.join(LOG_FOLDER), control.segment_bytes, end.0)?;
        Wal::assemble(folder, (file, control), end, before, options)
    }

    /// Records that no page holds a discarded change any more.
    pub(crate) fn settle_end(&self) -> Result<(), Error> {
        self.durable.settle()
    }

    /// As [`Wal::resume`] for looking only. An appended record counts as durable at once and goes
    /// nowhere. Nothing in the folder changes.
    pub(crate) fn rehearse(
        folder: &Path,
        file: ControlFile,
        control: &Control,
        end: Lsn,
        mut options: WalOptions,
    ) -> Result<Arc<Wal>, Error> {
        options.segment_bytes = control.segment_bytes;
        let segments = Segments::nowhere(control.segment_bytes);
        let durable = Durable::new(None, control.salt, end.0, None)?;
        Ok(Wal::build(folder, (file, control), end, options, (segments, durable)))
    }

    fn assemble(
        folder: &Path,
        (file, control): (ControlFile, &Control),
        end: Lsn,
        before: Option<Lsn>,
        mut options: WalOptions,
    ) -> Result<Arc<Wal>, Error> {
        options.segment_bytes = control.segment_bytes;
        let segments = {
            let size = control.segment_bytes;
            Segments::open(&folder.join(LOG_FOLDER), size, control.floor.0 / size, end.0 / size)?
        };
        // The segment being filled and the reserve; more are made as they are needed. On a full
        // disk the rest of the last segment must do: the checkpoint after recovery turns old
        // segments into new ones.
        while segments.ready_end() < (end.0 / control.segment_bytes + 2) * control.segment_bytes {
            let made = runtime::stop::fault("log.segment.reserve").during("making the log's reserve");
            match made.and_then(|()| segments.make()) {
                Err(error @ Error::DiskFull(_)) if segments.ready_end() > end.0 => {
                    ::log::warn!("the log has no reserve: {error}");
                    break;
                }
                made => made?,
            }
        }
        let durable = Durable::new(Some(folder), control.salt, end.0, before.map(|before| before.0))?;
        let wal = Wal::build(folder, (file, control), end, options, (segments, durable));
        read_last_block(&wal.segments, &wal.ring, end.0)?;
        Ok(wal)
    }

    fn build(
        folder: &Path,
        (file, control): (ControlFile, &Control),
        end: Lsn,
        mut options: WalOptions,
        (segments, durable): (Segments, Durable),
    ) -> Arc<Wal> {
        options.ring_bytes = ring_bytes(&options);
        Arc::new_cyclic(|this| Wal {
            folder: folder.to_owned(),
            options,
            salt: control.salt,
            fill: Fill::new(options.cores, end.0),
            ring: Ring::new(options.ring_bytes, options.huge_pages, end.0),
            begun: end.0,
            cores: PerCore::new(options.cores, |_| CoreCell::new(end.0)),
            granted: CachePadded::new(AtomicU64::new(end.0)),
            padding: CachePadded::new(AtomicU64::new(0)),
            truncated: AtomicU64::new(end.0),
            durable,
            flush: Flush::new(options.cores, end.0),
            segments,
            this: this.clone(),
            on_durable: OnceLock::new(),
            floor_source: OnceLock::new(),
            info_source: OnceLock::new(),
            control: file,
            generation: AtomicU64::new(control.generation),
            checkpointing: AtomicBool::new(false),
        })
    }

    /// The memory of the log's latest bytes, how many of them this process has used, and behind how
    /// many of these memory stands.
    pub(crate) fn memory(&self) -> (&Region, usize, usize) {
        let (ring, size) = (self.ring.memory(), self.ring.size() as usize);
        let used = (self.position().0 - self.begun).min(self.ring.size()) as usize;
        // The used part may reach over the ring's end.
        let start = self.begun as usize & (size - 1);
        let first = used.min(size - start);
        (ring, used, ring.present(start..start + first) + ring.present(0..used - first))
    }

    /// Touches all memory of the log's latest bytes, as far as the helper has not done so.
    pub(crate) fn preload(&self) {
        self.ring.memory().touch(0..self.ring.size() as usize);
    }

    /// The present checkpoint epoch.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.fill.epoch().into()
    }

    /// End of the reserved space.
    #[inline]
    pub fn position(&self) -> Lsn {
        Lsn(self.fill.position())
    }

    /// Bytes of log so far, as the volume between checkpoints counts them. A byte that fills a
    /// block counts as a quarter: it costs a recovery little, but disk space.
    pub(crate) fn volume(&self) -> u64 {
        // Relaxed: a count. It is read first, so it is never more than the position's part of it.
        let padding = self.padding.load(Ordering::Relaxed);
        self.position().0.saturating_sub(padding / 4 * 3)
    }

    /// Everything before this is filled. A lower bound, which may step back for moments, but never
    /// below `durable()`.
    #[inline]
    pub fn filled(&self) -> Lsn {
        // `durable` first: the filled part can only have grown since.
        let durable = self.durable();
        Lsn(self.fill.filled()).max(durable)
    }

    /// Everything before this is on disk.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.position())
    }

    /// The log as it is now.
    pub fn state(&self) -> LogState {
        LogState {
            // In this order each is at most the next one.
            durable: self.durable(),
            filled: self.filled(),
            position: self.position(),
            writes: self.flush.counts(),
            segments: self.segments.count(),
        }
    }

    /// Writes the mark for a later start, where a commit cannot write it itself.
    pub(crate) fn note_durable(&self) {
        self.durable.note();
    }

    /// Runs `callback(durable)` after each publication of `durable`, before the waiters for it
    /// wake. It must not park. Set once, before any append that matters to it.
    pub fn on_durable(&self, callback: impl Fn(Lsn) + Send + Sync + 'static) {
        assert!(self.on_durable.set(Box::new(callback)).is_ok(), "one callback");
    }

    /// Sets the source of the floor. `source` returns a lower bound of the first record of the
    /// oldest transaction alive, or [`Lsn::MAX`] when none lives. The log is kept from there on.
    ///
    /// A checkpoint calls it once its redo position is fixed and everything before that is filled.
    /// The bound must cover every transaction that has appended anything before the call. So a
    /// transaction announces `position()` as its bound before its first record.
    pub fn set_floor_source(&self, source: impl Fn() -> Lsn + Send + Sync + 'static) {
        assert!(self.floor_source.set(Box::new(source)).is_ok(), "one floor source");
    }

    /// Sets the source of the upper crates' values, at most [`crate::control::MOST_INFO`] bytes,
    /// which each checkpoint keeps. Recovery returns the last ones. A checkpoint calls it at the
    /// same moment as the floor source.
    pub fn set_checkpoint_info(&self, source: impl Fn() -> Vec<u8> + Send + Sync + 'static) {
        assert!(self.info_source.set(Box::new(source)).is_ok(), "one source of checkpoint info");
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The initial value of every record's checksum.
    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// The sizes in use.
    pub fn options(&self) -> &WalOptions {
        &self.options
    }

    /// Whether the disk has no room for the next segment. Then a checkpoint would release old ones.
    pub(crate) fn is_short(&self) -> bool {
        self.segments.is_short()
    }

    /// Begins a checkpoint epoch: from now on a page's next change carries its image. Returns once
    /// everything before the redo position is filled. One caller at a time.
    pub(crate) fn begin_epoch(&self) -> Lsn {
        let redo = self.fill.begin_epoch().redo;
        sync::profile::wait(&"log copies", || {
            while self.fill.filled() < redo {
                sync::park::yield_now();
            }
        });
        Lsn(redo)
    }

    /// Releases the log before `floor`.
    pub(crate) fn truncate(&self, floor: Lsn) -> Result<(), Error> {
        // Keeps as many segments ahead as the last round filled: the next one then makes none.
        // Padding makes a round longer than the volume between two checkpoints.
        let position = self.position().0;
        // Relaxed: one checkpoint at a time.
        let round = position - self.truncated.swap(position, Ordering::Relaxed);
        let volume = self.options.checkpoint_bytes;
        self.segments.recycle(floor.0, position, position + round.clamp(volume, 4 * volume))
    }
}

/// The ring's size: at least 4 times the credit that all cores may hold. So a flush always has
/// something to write when the ring is full.
fn ring_bytes(options: &WalOptions) -> usize {
    options.ring_bytes.max(options.cores * 4 * append::MOST_CREDIT as usize).next_power_of_two()
}

/// Reads the block with which the next flush begins into the ring.
fn read_last_block(segments: &Segments, ring: &Ring, end: u64) -> Result<(), Error> {
    let block = end & !(BLOCK - 1);
    if block == end {
        return Ok(());
    }
    let mut bytes = runtime::file::AlignedBuf::new(BLOCK as usize);
    let file = segments.file(end / segments.size());
    file.read_at(&mut bytes, block % segments.size()).during("reading the log's last block")?;
    // SAFETY: no other code has the log yet.
    unsafe { ring.write(block, &bytes[..(end - block) as usize]) };
    Ok(())
}

/// The core whose state and slot this code may use. Panics outside a worker.
#[inline]
fn this_core() -> usize {
    try_this_core().expect("only workers append to the log")
}

/// The core whose state and slot this code may use, or `None` outside a worker.
#[inline]
fn try_this_core() -> Option<usize> {
    #[cfg(test)]
    if let Some(core) = tests::core_of_this_thread() {
        return Some(core);
    }
    runtime::try_core()
}
