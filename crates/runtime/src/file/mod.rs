//! Files: a fiber that reads or writes parks while the kernel works; a thread that is no worker just blocks.

mod buffer;

pub use buffer::AlignedBuf;

use std::io;
use std::path::{Path, PathBuf};

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions {
    /// Create it if it is missing.
    pub create: bool,
    /// Fail if it exists (with `create`).
    pub create_new: bool,
    /// Bypass the kernel's page cache: buffers, offsets and lengths are multiples of 4 KiB.
    pub direct: bool,
    /// Only for reading.
    pub read_only: bool,
    /// Empty it first.
    pub truncate: bool,
}

/// An open file.
#[derive(Debug)]
pub struct File {}

impl File {
    /// Opens a file.
    pub fn open(_path: &Path, _options: OpenOptions) -> io::Result<File> {
        todo!()
    }

    /// Fills `to` from `offset`; `UnexpectedEof` when the file ends before.
    pub fn read_at(&self, _to: &mut [u8], _offset: u64) -> io::Result<()> {
        todo!()
    }

    /// Reads up to `to.len()` bytes from `offset`: less only at the end of the file.
    pub fn read_some_at(&self, _to: &mut [u8], _offset: u64) -> io::Result<usize> {
        todo!()
    }

    /// Writes all of `from` at `offset`.
    pub fn write_at(&self, _from: &[u8], _offset: u64) -> io::Result<()> {
        todo!()
    }

    /// Writes all of `from` at `offset`, durable when it returns.
    pub fn write_at_durable(&self, _from: &[u8], _offset: u64) -> io::Result<()> {
        todo!()
    }

    /// Writes several pieces, keeping several in flight; the first error is returned once all have ended.
    pub fn write_many(&self, _pieces: &[(u64, &[u8])]) -> io::Result<()> {
        todo!()
    }

    /// Makes everything written durable, and what is needed to read it back.
    pub fn sync_data(&self) -> io::Result<()> {
        todo!()
    }

    /// Makes room on disk for `len` bytes from `offset`, growing the file; `StorageFull` when there is none.
    pub fn allocate(&self, _offset: u64, _len: u64) -> io::Result<()> {
        todo!()
    }

    /// Present length.
    pub fn len(&self) -> io::Result<u64> {
        todo!()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with a hole) to `len`.
    pub fn set_len(&self, _len: u64) -> io::Result<()> {
        todo!()
    }
}

/// Holds a file's exclusive lock until dropped; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FileLock {}

/// Creates the file if needed and locks it; `WouldBlock` when another process holds it.
pub fn lock_exclusive(_path: &Path) -> io::Result<FileLock> {
    todo!()
}

/// Names in a folder, sorted.
pub fn list(_folder: &Path) -> io::Result<Vec<PathBuf>> {
    todo!()
}

/// Creates a folder and what leads to it.
pub fn create_dir(_folder: &Path) -> io::Result<()> {
    todo!()
}

/// Whether something is at the path.
pub fn exists(_path: &Path) -> io::Result<bool> {
    todo!()
}

/// Renames within a file system; durable after `sync_dir`.
pub fn rename(_from: &Path, _to: &Path) -> io::Result<()> {
    todo!()
}

/// Removes a file; durable after `sync_dir`.
pub fn remove(_path: &Path) -> io::Result<()> {
    todo!()
}

/// Makes the folder's entries durable.
pub fn sync_dir(_folder: &Path) -> io::Result<()> {
    todo!()
}
