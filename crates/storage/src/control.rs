//! The control file: where recovery begins, and facts about the log that the log itself does not
//! hold.
//!
//! The file has two copies, each in a block of its own, which are written in turn. The valid copy
//! with the higher sequence number counts. A torn write damages only the older copy. So one copy is
//! always valid. Log is released only after the newer copy is durable, so the log that a copy needs
//! is still there.
//!
//! A block behind the copies holds the mark of the log's durable end (`log::durable`).

use std::path::Path;

use runtime::file::{AlignedBuf, File, OpenOptions};
use sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::error::{FormatProblem, IoContext};
use crate::page::{Lsn, PAGE_SIZE};

/// The file's name.
pub(crate) const NAME: &str = "control";
const COPY_BYTES: usize = 4096;
const COPIES: u64 = 2;
/// Bytes of the copies; the durable mark lies behind them.
pub(crate) const BYTES: u64 = COPIES * COPY_BYTES as u64;
const MAGIC: u64 = u64::from_le_bytes(*b"ALLCORE\x01");
/// Version of this file and of the log's records.
const VERSION: u32 = 3;

/// The most bytes of values that the crates above keep in a checkpoint.
pub(crate) const MOST_INFO: usize = 2000;

/// Offsets of the fields in a copy.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const CHECKSUM: usize = 8;
    pub(super) const VERSION: usize = 12;
    pub(super) const SEQUENCE: usize = 16;
    pub(super) const SALT: usize = 24;
    pub(super) const PAGE_BYTES: usize = 28;
    pub(super) const SEGMENT_BYTES: usize = 32;
    pub(super) const REDO: usize = 40;
    pub(super) const FLOOR: usize = 48;
    pub(super) const LOG_END: usize = 56;
    pub(super) const PAGES: usize = 64;
    pub(super) const INFO_LENGTH: usize = 68;
    pub(super) const GENERATION: usize = 72;
    pub(super) const FLAGS: usize = 80;
    pub(super) const INFO: usize = 84;
}
const _: () = assert!(at::INFO + MOST_INFO <= COPY_BYTES);
/// Flag: the store was closed, and nothing was appended after the log end.
const CLOSED: u32 = 1;

/// The content of the control file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// The initial value of every record's checksum: a record of another folder's log fails its
    /// check here.
    pub salt: u32,
    /// Bytes of a log segment.
    pub segment_bytes: u64,
    /// Where redo begins.
    pub redo: Lsn,
    /// Where the log is needed from: at most `redo`, and before the first record of every
    /// transaction that was alive.
    pub floor: Lsn,
    /// The log reaches at least this far: it was durable before the control file was written.
    pub(crate) log_end: Lsn,
    /// The least number of pages in the file `pages`.
    pub pages: u32,
    /// The number of checkpoints. The file `pages` has this number, or the next one after a
    /// checkpoint that was cut short.
    pub generation: u64,
    /// The store was closed: nothing was appended after `log_end`.
    pub closed: bool,
    /// The values of the crates above.
    pub info: Vec<u8>,
}

impl Control {
    /// The content for a new data folder.
    pub(crate) fn new(segment_bytes: u64, salt: u32, start: Lsn) -> Control {
        let (redo, floor, log_end) = (start, start, start);
        let (generation, closed, info) = (0, false, Vec::new());
        Control { salt, segment_bytes, redo, floor, log_end, pages: 0, generation, closed, info }
    }

    fn encode(&self, sequence: u64, copy: &mut [u8]) {
        assert!(self.info.len() <= MOST_INFO, "checkpoint info is at most {MOST_INFO} bytes");
        copy.fill(0);
        let mut put = |at: usize, bytes: &[u8]| copy[at..at + bytes.len()].copy_from_slice(bytes);
        put(at::MAGIC, &MAGIC.to_le_bytes());
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::SEQUENCE, &sequence.to_le_bytes());
        put(at::SALT, &self.salt.to_le_bytes());
        put(at::PAGE_BYTES, &(PAGE_SIZE as u32).to_le_bytes());
        put(at::SEGMENT_BYTES, &self.segment_bytes.to_le_bytes());
        put(at::REDO, &self.redo.0.to_le_bytes());
        put(at::FLOOR, &self.floor.0.to_le_bytes());
        put(at::LOG_END, &self.log_end.0.to_le_bytes());
        put(at::PAGES, &self.pages.to_le_bytes());
        put(at::GENERATION, &self.generation.to_le_bytes());
        put(at::FLAGS, &if self.closed { CLOSED } else { 0 }.to_le_bytes());
        put(at::INFO_LENGTH, &(self.info.len() as u32).to_le_bytes());
        put(at::INFO, &self.info);
        let checksum = crc32c::crc32c(&copy[at::VERSION..]);
        copy[at::CHECKSUM..at::VERSION].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The sequence number and content of a copy; `None` if the copy is not valid.
    fn decode(copy: &[u8]) -> Option<(u64, Result<Control, Error>)> {
        let u32_at =
            |at: usize| copy.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().expect("four")));
        let u64_at = |at: usize| {
            copy.get(at..at + 8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight")))
        };
        if u64_at(at::MAGIC)? != MAGIC || u32_at(at::CHECKSUM)? != crc32c::crc32c(copy.get(at::VERSION..)?) {
            return None;
        }
        let sequence = u64_at(at::SEQUENCE)?;
        let version = u32_at(at::VERSION)?;
        let other = |found: String, read: String| {
            Some((sequence, Err(Error::Format(FormatProblem::Version { found, read }))))
        };
        if version != VERSION {
            return other(format!("control file {version}"), format!("control file {VERSION}"));
        }
        let page_bytes = u32_at(at::PAGE_BYTES)?;
        if page_bytes as usize != PAGE_SIZE {
            return other(format!("pages of {page_bytes} bytes"), format!("pages of {PAGE_SIZE} bytes"));
        }
        let segment_bytes = u64_at(at::SEGMENT_BYTES)?;
        let info_length = u32_at(at::INFO_LENGTH)? as usize;
        if !segment_bytes.is_power_of_two() || info_length > MOST_INFO {
            return None;
        }
        let control = Control {
            salt: u32_at(at::SALT)?,
            segment_bytes,
            redo: Lsn(u64_at(at::REDO)?),
            floor: Lsn(u64_at(at::FLOOR)?),
            log_end: Lsn(u64_at(at::LOG_END)?),
            pages: u32_at(at::PAGES)?,
            generation: u64_at(at::GENERATION)?,
            closed: u32_at(at::FLAGS)? & CLOSED != 0,
            info: copy[at::INFO..at::INFO + info_length].to_vec(),
        };
        Some((sequence, Ok(control)))
    }
}

/// The control file of a data folder.
#[derive(Debug)]
pub struct ControlFile {
    file: File,
    /// Opened for looking only: writes do nothing.
    read_only: bool,
    /// The sequence number of the copy that counts.
    sequence: AtomicU64,
}

impl ControlFile {
    /// Makes the file with both copies valid.
    pub(crate) fn create(folder: &Path, control: &Control) -> Result<ControlFile, Error> {
        let options = OpenOptions { create: true, truncate: true, ..OpenOptions::default() };
        let file = File::open(&folder.join(NAME), options).during("making the control file")?;
        let control_file = ControlFile { file, read_only: false, sequence: AtomicU64::new(0) };
        for _ in 0..COPIES {
            control_file.write(control)?;
        }
        control_file.file.sync_data().during("syncing the control file")?;
        runtime::file::sync_dir(folder).during("syncing the data folder")?;
        Ok(control_file)
    }

    /// Opens the file and reads the copy that counts.
    #[cfg(test)]
    pub(crate) fn open(folder: &Path) -> Result<(ControlFile, Control), Error> {
        ControlFile::open_as(folder, false)
    }

    /// Opens the file and reads the copy that counts. With `read_only`, later writes do nothing.
    pub(crate) fn open_as(folder: &Path, read_only: bool) -> Result<(ControlFile, Control), Error> {
        let path = folder.join(NAME);
        if !runtime::file::exists(&path).during("looking for the control file")? {
            return Err(Error::Format(FormatProblem::Missing(NAME.to_owned())));
        }
        let file = File::open(&path, OpenOptions { read_only, ..OpenOptions::default() })
            .during("opening the control file")?;
        let mut bytes = AlignedBuf::new(BYTES as usize);
        let length = file.read_some_at(&mut bytes, 0).during("reading the control file")?;
        let valid: Vec<_> = bytes[..length].chunks_exact(COPY_BYTES).filter_map(Control::decode).collect();
        let both = valid.len() as u64 == COPIES;
        match valid.into_iter().max_by_key(|(sequence, _)| *sequence) {
            Some((sequence, control)) => {
                if !both {
                    log::warn!("one of the two copies in file {NAME} is damaged: the other one counts");
                }
                Ok((ControlFile { file, read_only, sequence: AtomicU64::new(sequence) }, control?))
            }
            None => Err(Error::Format(FormatProblem::Damaged(NAME))),
        }
    }

    /// Overwrites the older copy, durable when this returns. One caller at a time.
    pub(crate) fn write(&self, control: &Control) -> Result<(), Error> {
        if self.read_only {
            return Ok(());
        }
        // Relaxed: one caller at a time.
        let sequence = self.sequence.load(Ordering::Relaxed) + 1;
        let mut copy = AlignedBuf::new(COPY_BYTES);
        control.encode(sequence, &mut copy);
        let place = (sequence % COPIES) * COPY_BYTES as u64;
        self.file.write_at_durable(&copy, place).during("writing the control file")?;
        // Relaxed: as above. The store comes last, so that a failed write is repeated in the same
        // place.
        self.sequence.store(sequence, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
