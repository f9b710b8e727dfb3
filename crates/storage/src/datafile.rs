//! A file of pages: `pages`, or `temp`, which is emptied at each start.
//!
//! Read and written around the kernel's page cache where the file system allows it, since the buffer pool is the cache.
//! The length is kept in memory (`pages`): nobody asks the kernel for it while serving. It is raised only after the
//! file has grown.

use std::io;
use std::path::Path;

use runtime::file::{File, OpenOptions};
use sync::atomic::{AtomicU32, Ordering};
use sync::stop;

use crate::Error;
use crate::error::{FormatProblem, IoContext};
use crate::page::{PAGE_SIZE, PageNo};

/// Most pages of a file: 8 TiB. Bounds the page table's reserved memory (4 GiB of addresses).
pub const PAGES_MAX: u32 = 1 << 30;

/// How a file of pages is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// It must not exist.
    New,
    /// It must exist.
    Existing,
    /// It is made, or emptied.
    Empty,
}

/// A file of pages.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    pages: AtomicU32,
}

impl DataFile {
    /// Opens the file at `path`.
    pub fn open(path: &Path, opening: Opening) -> Result<DataFile, Error> {
        let options = OpenOptions {
            create: opening != Opening::Existing,
            create_new: opening == Opening::New,
            truncate: opening == Opening::Empty,
            direct: true,
            read_only: false,
        };
        let file = match File::open(path, options) {
            // A file system without direct I/O says so with EINVAL.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                File::open(path, OpenOptions { direct: false, create_new: false, ..options })
            }
            opened => opened,
        };
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Format(FormatProblem::Missing("pages")));
            }
            opened => opened.during("opening a file of pages")?,
        };
        let pages = file.len().during("looking at a file of pages")? / PAGE_SIZE as u64;
        let pages = u32::try_from(pages).ok().filter(|&pages| pages <= PAGES_MAX);
        let pages = pages.ok_or(Error::Format(FormatProblem::Damaged("pages")))?;
        Ok(DataFile { file, pages: AtomicU32::new(pages) })
    }

    /// Pages the file has room for.
    pub fn pages(&self) -> u32 {
        // Acquire: pairs with the growth.
        self.pages.load(Ordering::Acquire)
    }

    /// Most pages it can ever have.
    pub fn pages_max(&self) -> u32 {
        PAGES_MAX
    }

    /// Reads a page that is within the file.
    pub fn read(&self, page_no: PageNo, to: &mut [u8]) -> Result<(), Error> {
        stop::fault("storage.pages.read")
            .and_then(|()| self.file.read_at(to, page_no.offset()))
            .during("reading a page")
    }

    /// Reads several pages at once; which ones could be read.
    pub fn read_many(&self, pages: &mut [(PageNo, &mut [u8])]) -> Vec<bool> {
        let mut pieces: Vec<(u64, &mut [u8])> =
            pages.iter_mut().map(|(page_no, to)| (page_no.offset(), &mut **to)).collect();
        self.file.read_many(&mut pieces)
    }

    /// Writes pages, several at once. They may lie beyond the file's end, which recovery needs.
    pub fn write_many(&self, pages: &[(PageNo, &[u8])]) -> Result<(), Error> {
        let pieces: Vec<(u64, &[u8])> =
            pages.iter().map(|&(page_no, bytes)| (page_no.offset(), bytes)).collect();
        stop::fault("storage.pages.write")
            .and_then(|()| self.file.write_many(&pieces))
            .during("writing pages")?;
        let end = pages.iter().map(|(page_no, _)| page_no.index() + 1).max().unwrap_or(0);
        // Release: who sees the length sees the file that long.
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
        self.file.allocate(offset, len).during("growing a file of pages")?;
        // Release: as in `write_many`.
        self.pages.fetch_max(pages, Ordering::Release);
        Ok(())
    }

    /// Makes what was written durable, and the file's length. A failure leaves unknown what is on disk, although the
    /// pages count as clean: the caller may not go on.
    pub fn sync(&self) -> Result<(), Error> {
        stop::fault("storage.pages.sync")
            .and_then(|()| self.file.sync_data())
            .during("syncing a file of pages")
    }
}
