//! A file of pages: `pages`, or `temp`, which is emptied at each start.
//!
//! Reads and writes bypass the kernel's page cache where the file system allows it, since the
//! buffer pool is the cache. The length is kept in memory (`pages`), so serving never asks the
//! kernel for it. It is raised only after the file has grown.

use std::io;
use std::path::Path;

use runtime::file::{AlignedBuf, File, OpenOptions};
use runtime::memory::AtomicArray;
use runtime::stop;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Error;
use crate::error::{FormatProblem, IoContext, IoFailure};
use crate::page::{self, PAGE_SIZE, PageNo};

/// Most pages of a file: 8 TiB. Bounds the page table's reserved memory (4 GiB of addresses).
pub(crate) const PAGES_MAX: u32 = 1 << 30;

/// How a file of pages is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// The file must not exist.
    New,
    /// The file must exist.
    Existing,
    /// The file is made, or emptied.
    Empty,
    /// The file must exist and is only read.
    ReadOnly,
    /// The file must exist and is not changed. Written pages go to an overlay, which is gone with
    /// the process.
    Overlaid,
    /// A file without a name, gone with the process.
    Nameless,
}

/// The folder's identity in the store's own page, page 0, from byte 48 on: the generation u64, the
/// salt u32. It lies within the first 512 bytes, which a disk writes whole, and so does the page's
/// checksum.
const STAMP: usize = 48;
/// Bytes of page 0 that a new stamp writes.
const STAMP_BLOCK: usize = 4096;

/// The stamp of a file of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The folder's salt.
    pub salt: u32,
    /// The last checkpoint that wrote the file.
    pub generation: u64,
}

impl Stamp {
    /// The stamp in the bytes of page 0; `None` where the page is damaged.
    fn of(page: &[u8]) -> Option<Stamp> {
        page::verify(page, PageNo(0)).ok()?;
        let generation = u64::from_le_bytes(*page[STAMP..].first_chunk()?);
        Some(Stamp { salt: u32::from_le_bytes(*page[STAMP + 8..].first_chunk()?), generation })
    }
}

/// The pages written over a file that must not change.
#[derive(Debug)]
struct Overlay {
    /// Pages, at the places they have in the file below.
    file: File,
    /// A bit for each page in the overlay.
    written: AtomicArray<AtomicU64>,
}

impl Overlay {
    fn new() -> Result<Overlay, Error> {
        let file = File::temporary().during("making a file for what recovery changes")?;
        let written = AtomicArray::reserve(PAGES_MAX as usize / 64).during("reserving the overlay's map")?;
        Ok(Overlay { file, written })
    }

    fn holds(&self, page_no: PageNo) -> bool {
        let index = page_no.index() as usize;
        // Acquire: pairs with `note`, which sets the bit after the page is written.
        self.written.get(index / 64).load(Ordering::Acquire) >> (index % 64) & 1 == 1
    }

    fn note(&self, page_no: PageNo) {
        let index = page_no.index() as usize;
        // Release: a reader that sees the bit finds the page.
        self.written.get(index / 64).fetch_or(1 << (index % 64), Ordering::Release);
    }
}

/// A file of pages.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    overlay: Option<Overlay>,
    pages: AtomicU32,
}

impl DataFile {
    /// Opens the file at `path`.
    pub fn open(path: &Path, opening: Opening) -> Result<DataFile, Error> {
        if opening == Opening::Nameless {
            let file = File::temporary().during("making a temporary file")?;
            return Ok(DataFile { file, overlay: None, pages: AtomicU32::new(0) });
        }
        let overlay = if opening == Opening::Overlaid { Some(Overlay::new()?) } else { None };
        let options = OpenOptions {
            create: matches!(opening, Opening::New | Opening::Empty),
            create_new: opening == Opening::New,
            truncate: opening == Opening::Empty,
            direct: true,
            read_only: matches!(opening, Opening::ReadOnly | Opening::Overlaid),
        };
        let file = match File::open(path, options) {
            // A file system without direct I/O answers with EINVAL.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                File::open(path, OpenOptions { direct: false, create_new: false, ..options })
            }
            opened => opened,
        };
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Format(FormatProblem::Missing("pages".to_owned())));
            }
            opened => opened.during("opening a file of pages")?,
        };
        let pages = file.len().during("looking at a file of pages")? / PAGE_SIZE as u64;
        let pages = u32::try_from(pages).ok().filter(|&pages| pages <= PAGES_MAX);
        let pages = pages.ok_or(Error::Format(FormatProblem::Damaged("pages")))?;
        Ok(DataFile { file, overlay, pages: AtomicU32::new(pages) })
    }

    /// Pages that the file has room for.
    pub fn pages(&self) -> u32 {
        // Acquire: pairs with the growth's release.
        self.pages.load(Ordering::Acquire)
    }

    /// The most pages the file can ever have.
    pub(crate) fn pages_max(&self) -> u32 {
        PAGES_MAX
    }

    /// Reads a page that is within the file.
    pub fn read(&self, page_no: PageNo, to: &mut [u8]) -> Result<(), Error> {
        let file = self.file_of(page_no);
        stop::fault("storage.pages.read")
            .and_then(|()| file.read_at(to, page_no.offset()))
            .or_else(|error| match error.kind() {
                // The file below an overlay does not grow.
                io::ErrorKind::UnexpectedEof if self.overlay.is_some() => {
                    to.fill(0);
                    Ok(())
                }
                _ => Err(error),
            })
            .during("reading a page")
    }

    /// The file that holds the newest state of a page.
    fn file_of(&self, page_no: PageNo) -> &File {
        match &self.overlay {
            Some(overlay) if overlay.holds(page_no) => &overlay.file,
            _ => &self.file,
        }
    }

    /// Reads several pages at once; returns for each whether it could be read.
    pub fn read_many(&self, pages: &mut [(PageNo, &mut [u8])]) -> Vec<bool> {
        if self.overlay.is_some() {
            return pages.iter_mut().map(|(page_no, to)| self.read(*page_no, to).is_ok()).collect();
        }
        let mut pieces: Vec<(u64, &mut [u8])> =
            pages.iter_mut().map(|(page_no, to)| (page_no.offset(), &mut **to)).collect();
        self.file.read_many(&mut pieces)
    }

    /// Writes several pages at once. They may lie beyond the file's end, which recovery needs.
    pub fn write_many(&self, pages: &[(PageNo, &[u8])]) -> Result<(), Error> {
        let pieces: Vec<(u64, &[u8])> =
            pages.iter().map(|&(page_no, bytes)| (page_no.offset(), bytes)).collect();
        let file = self.overlay.as_ref().map_or(&self.file, |overlay| &overlay.file);
        stop::fault("storage.pages.write").and_then(|()| file.write_many(&pieces)).during("writing pages")?;
        if let Some(overlay) = &self.overlay {
            pages.iter().for_each(|(page_no, _)| overlay.note(*page_no));
        }
        let end = pages.iter().map(|(page_no, _)| page_no.index() + 1).max().unwrap_or(0);
        // Release: a reader that sees the length sees the file that long.
        self.pages.fetch_max(end, Ordering::Release);
        Ok(())
    }

    /// Makes room on disk for `pages` pages altogether. One fiber at a time.
    pub fn grow(&self, pages: u32) -> Result<(), Error> {
        let now = self.pages();
        if pages <= now {
            return Ok(());
        }
        if pages > PAGES_MAX {
            return Err(Error::io("growing a file of pages", &io::ErrorKind::StorageFull.into()));
        }
        let (offset, len) = (PageNo(now).offset(), u64::from(pages - now) * PAGE_SIZE as u64);
        if self.overlay.is_none() {
            self.file.allocate(offset, len).during("growing a file of pages")?;
        }
        // Release: as in `write_many`.
        self.pages.fetch_max(pages, Ordering::Release);
        Ok(())
    }

    /// The stamp; `None` where page 0 is damaged.
    pub(crate) fn read_stamp(&self) -> Result<Option<Stamp>, Error> {
        let mut page = AlignedBuf::new(PAGE_SIZE);
        self.file.read_at(&mut page, 0).during("reading the first page")?;
        Ok(Stamp::of(&page))
    }

    /// Writes the stamp into page 0, which nothing else changes once it is written. Durable after
    /// [`DataFile::sync`]. A file without a page stays as it is.
    pub fn stamp(&self, stamp: Stamp) -> Result<(), Error> {
        if self.pages() == 0 || self.overlay.is_some() {
            return Ok(());
        }
        let mut page = AlignedBuf::new(PAGE_SIZE);
        self.file.read_at(&mut page, 0).during("reading the first page")?;
        // A damaged page 0 stays damaged: the next reader reports it.
        if Stamp::of(&page).is_some() {
            page[STAMP..STAMP + 8].copy_from_slice(&stamp.generation.to_le_bytes());
            page[STAMP + 8..STAMP + 12].copy_from_slice(&stamp.salt.to_le_bytes());
            page::seal(&mut page);
            self.file.write_at(&page[..STAMP_BLOCK], 0).during("stamping the first page")?;
        }
        Ok(())
    }

    /// Makes written pages and the file's length durable. After a failure nobody knows what is on
    /// disk, although the pages count as clean: the caller must not go on. So a full disk is no
    /// [`Error::DiskFull`] here.
    pub fn sync(&self) -> Result<(), Error> {
        if self.overlay.is_some() {
            return Ok(());
        }
        stop::fault("storage.pages.sync")
            .and_then(|()| self.file.sync_data())
            .map_err(|error| Error::Io(IoFailure::of("syncing a file of pages", &error)))
    }
}
