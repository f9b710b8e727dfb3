//! The durable end of the log, and the marks that tell it to a later start.
//!
//! After a crash the log ends where no record begins. That may be the unfinished end of work that
//! nobody was promised, or damage in the middle of acknowledged work. Marks distinguish the two:
//! each names the end of a record before which all of the log was durable.
//!
//! - Each commit record carries the mark known when it was appended. So a commit found behind a gap
//!   proves the gap to be damage, also after a power failure.
//! - The file `durable` holds the newest mark, and so does the last block of the control file. So
//!   an older copy of one of them hides nothing. Each is one word of mapped memory: a store costs
//!   no system call, and the value outlives the process. After a power failure a word may be older,
//!   never newer.
//!
//! A start that discards the log's end leaves the files' marks where they are until no page holds a
//! discarded change ([`Durable::settle`]). So the next start after an interrupted one finds the
//! same damage.
//!
//! What must hold: a mark is the end of a record. `position` alone can stop inside a record when a
//! burst is written in whole blocks. A crash may rightly lose the rest of that record.
//!
//! A block with a mark: the word, magic u64, salt u32, zeros to 4096 bytes. Bits 0 to 55 of the
//! word are the mark, bits 56 to 63 its check.

use std::path::{Path, PathBuf};

use runtime::file::{self, AlignedBuf, File, MappedWord, OpenOptions};
use sync::CachePadded;
use sync::atomic::{AtomicU64, Ordering};

use super::flights::Flight;
use super::record::{u32_at, u64_at};
use crate::Error;
use crate::control;
use crate::error::IoContext;
use crate::page::Lsn;

/// The file's name in the data folder.
pub(crate) const NAME: &str = "durable";
const MAGIC: u64 = u64::from_le_bytes(*b"ALLDUR\x01\0");
const LENGTH: usize = 4096;
const POSITION: u64 = (1 << 56) - 1;

/// Where a mark is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The file `durable`.
    Own,
    /// Behind the copies in the control file.
    Control,
}

/// All places of marks.
const PLACES: [Place; 2] = [Place::Own, Place::Control];

impl Place {
    fn file(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Place::Own => NAME,
            Place::Control => control::NAME,
        })
    }

    fn offset(self) -> u64 {
        match self {
            Place::Own => 0,
            Place::Control => control::BYTES,
        }
    }
}

/// The durable end of the log. Only the publisher of a flight writes it (`flights`).
#[derive(Debug)]
pub(super) struct Durable {
    shared: CachePadded<Positions>,
    files: Vec<MarkFile>,
    salt: u32,
    /// The files show a mark of at least this. 0 once the log's end is settled.
    least: AtomicU64,
}

#[derive(Debug)]
struct Positions {
    /// Everything before this is on disk.
    position: AtomicU64,
    /// The highest end of a record that is known to be at most `position`.
    mark: AtomicU64,
    /// An end of a record that was not durable yet when it was noted. The publisher alone uses it.
    boundary: AtomicU64,
}

/// A place of a mark, open.
#[derive(Debug)]
enum MarkFile {
    Mapped(MappedWord),
    /// A file whose mapping could end the process, and the mark's offset in it. [`Durable::note`]
    /// writes it five times a second; the last word is the mark written last.
    Written(File, u64, AtomicU64),
}

impl Durable {
    /// The end of a log that is durable up to `end`, the end of a record. With a folder, the files
    /// there show that from now on. If a later part of the log is discarded, `before` is where it
    /// was durable, and the files show `end` from [`Durable::settle`] on.
    pub(super) fn new(
        folder: Option<&Path>,
        salt: u32,
        end: u64,
        before: Option<u64>,
    ) -> Result<Durable, Error> {
        let least = before.unwrap_or(0);
        let mut files = Vec::new();
        for (folder, place) in folder.into_iter().flat_map(|folder| PLACES.map(|place| (folder, place))) {
            match MarkFile::make(folder, place, salt, end.max(least)) {
                // The start goes on without this file: then only commits carry marks.
                Err(error @ Error::DiskFull(_)) => {
                    let file = place.file(folder);
                    ::log::warn!(
                        "no mark of the log's durable end can be kept in {}: {error}",
                        file.display()
                    );
                }
                made => files.push(made?),
            }
        }
        let shared = Positions {
            position: AtomicU64::new(end),
            mark: AtomicU64::new(end),
            boundary: AtomicU64::new(0),
        };
        Ok(Durable { shared: CachePadded::new(shared), files, salt, least: AtomicU64::new(least) })
    }

    /// Makes the files show where the log ends now. Called before anything is appended.
    pub(super) fn settle(&self) -> Result<(), Error> {
        self.least.store(0, Ordering::Relaxed); // Relaxed: nobody else changes or reads it yet.
        let word = word(self.mark(), self.salt);
        for file in &self.files {
            match file {
                // Relaxed: as in `advance`.
                MarkFile::Mapped(file) => file.word().store(word, Ordering::Relaxed),
                MarkFile::Written(file, offset, _) => {
                    file.write_at(&word.to_le_bytes(), *offset).during("writing the durable mark")?;
                }
            }
        }
        Ok(())
    }

    /// The mark that the files show.
    fn shown(&self) -> u64 {
        self.mark().max(self.least.load(Ordering::Relaxed)) // Relaxed: see `settle`
    }

    /// Everything before this is on disk.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        // Acquire: pairs with the publisher's release.
        self.shared.position.load(Ordering::Acquire)
    }

    /// The highest end of a record that is known to be durable.
    #[inline]
    pub(super) fn mark(&self) -> u64 {
        // Relaxed: the value was true when it was stored, whatever else is seen.
        self.shared.mark.load(Ordering::Relaxed)
    }

    /// Publishes that everything before a flight's end is on disk.
    pub(super) fn publish(&self, Flight { end, filled, .. }: Flight) {
        // Relaxed: the publishers alone use it, and the lock of the flights orders them.
        let boundary = self.shared.boundary.load(Ordering::Relaxed);
        let mark = if end == filled { filled } else { boundary };
        // Relaxed: the publisher alone writes both.
        if mark <= end && mark > self.shared.mark.load(Ordering::Relaxed) {
            self.shared.mark.store(mark, Ordering::Relaxed); // Relaxed: see `mark`
            for file in &self.files {
                if let MarkFile::Mapped(file) = file {
                    // Relaxed: a word of its own, read by another process's start.
                    file.word().store(word(self.shown(), self.salt), Ordering::Relaxed);
                }
            }
        }
        if boundary <= end {
            self.shared.boundary.store(filled, Ordering::Relaxed); // Relaxed: as its load
        }
        // Release: a reader that sees it sees what the callback and the waiters need of this flush.
        self.shared.position.store(end, Ordering::Release);
    }

    /// Writes the mark to files that are not mapped. Off the commits' path.
    pub(super) fn note(&self) {
        for file in &self.files {
            let MarkFile::Written(file, offset, written) = file else { continue };
            let mark = self.shown();
            // Relaxed: one caller at a time.
            if written.load(Ordering::Relaxed) < mark {
                // A mark that is not written only makes damage harder to tell.
                if file.write_at(&word(mark, self.salt).to_le_bytes(), *offset).is_ok() {
                    written.store(mark, Ordering::Relaxed); // Relaxed: as above
                }
            }
        }
    }
}

impl MarkFile {
    fn make(folder: &Path, place: Place, salt: u32, mark: u64) -> Result<MarkFile, Error> {
        let (path, offset) = (place.file(folder), place.offset());
        let options = OpenOptions { create: true, ..OpenOptions::default() };
        let file = File::open(&path, options).during("opening the file of the durable mark")?;
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&word(mark, salt).to_le_bytes());
        bytes[8..16].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[16..20].copy_from_slice(&salt.to_le_bytes());
        file.write_at(&bytes, offset).during("writing the durable mark")?;
        file.sync_data().during("syncing the durable mark")?;
        match MappedWord::open(&path, offset) {
            Ok(mapped) => Ok(MarkFile::Mapped(mapped)),
            Err(_) => Ok(MarkFile::Written(file, offset, AtomicU64::new(mark))),
        }
    }
}

/// The mark in a place; `None` where the file is missing, damaged, or another folder's.
pub(super) fn read(folder: &Path, place: Place, salt: u32) -> Result<Option<Lsn>, Error> {
    let path = place.file(folder);
    if !file::exists(&path).during("looking for the durable mark")? {
        return Ok(None);
    }
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let file = File::open(&path, options).during("opening the file of the durable mark")?;
    let mut bytes = AlignedBuf::new(LENGTH);
    let length = file.read_some_at(&mut bytes, place.offset()).during("reading the durable mark")?;
    let found =
        u64_at(&bytes[..length], 0).zip(u64_at(&bytes[..length], 8)).zip(u32_at(&bytes[..length], 16));
    Ok(found.and_then(|((stored, magic), theirs)| {
        let mark = stored & POSITION;
        (magic == MAGIC && theirs == salt && stored == word(mark, salt)).then_some(Lsn(mark))
    }))
}

/// The mark with its check: a start always finds a flipped bit.
fn word(mark: u64, salt: u32) -> u64 {
    let mut folded = mark ^ u64::from(salt);
    folded ^= folded >> 32;
    folded ^= folded >> 16;
    folded ^= folded >> 8;
    mark | (!folded & 0xff) << 56
}
