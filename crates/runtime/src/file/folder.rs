//! Folders and locks: rare, so they go through the pool of threads.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use super::pool::blocking;

/// Holds a file's exclusive lock until dropped; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FileLock {
    _file: std::fs::File,
}

/// Creates the file if needed and locks it; `WouldBlock` when somebody else holds it.
pub fn lock_exclusive(path: &Path) -> io::Result<FileLock> {
    blocking(|| {
        let file =
            std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    })
}

/// Paths of what is in a folder, sorted.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    blocking(|| {
        let mut paths = std::fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    })
}

/// Creates a folder and what leads to it.
pub fn create_dir(folder: &Path) -> io::Result<()> {
    blocking(|| std::fs::create_dir_all(folder))
}

/// Whether something is at the path.
pub fn exists(path: &Path) -> io::Result<bool> {
    blocking(|| path.try_exists())
}

/// Renames within a file system; durable after `sync_dir`.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    blocking(|| std::fs::rename(from, to))
}

/// Removes a file; durable after `sync_dir`.
pub fn remove(path: &Path) -> io::Result<()> {
    blocking(|| std::fs::remove_file(path))
}

/// Makes the folder's entries durable.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    blocking(|| std::fs::File::open(folder)?.sync_all())
}
