//! Folders and locks: rare, so they go through the pool of threads.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // calls the system

use std::fs::TryLockError;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::PRIVATE_FILE;
use super::blocking;
use crate::os::regular;

/// Permissions of folders made here: their owner alone may list and enter them.
const PRIVATE_FOLDER: u32 = 0o700;

/// Holds a file's exclusive lock until dropped; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FileLock {
    _file: std::fs::File,
}

/// Creates the file if needed and locks it; `WouldBlock` when somebody else holds it.
pub fn lock_exclusive(path: &Path) -> io::Result<FileLock> {
    blocking(|| {
        let mut how = std::fs::OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
        let file = regular::open(path, &mut how, 0)?;
        match file.try_lock() {
            Ok(()) => Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    })
}

/// Locks a file that exists, without writing to its folder: `None` when there is no such file,
/// `WouldBlock` when somebody else holds it.
pub fn lock_existing(path: &Path) -> io::Result<Option<FileLock>> {
    blocking(|| {
        let file = match regular::open_to_read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    })
}

/// An open file without a name, in the system's folder for temporary files.
pub(super) fn unnamed() -> io::Result<std::fs::File> {
    blocking(|| {
        let mut how = std::fs::OpenOptions::new();
        how.read(true).write(true);
        let folder = std::env::temp_dir();
        match how.custom_flags(libc::O_TMPFILE).open(&folder) {
            // A file system that has no files without names.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
                let name = format!("allcore-{}-{:x}", std::process::id(), crate::random::u64());
                let path = folder.join(name);
                let file = how.custom_flags(0).create_new(true).mode(PRIVATE_FILE).open(&path)?;
                std::fs::remove_file(&path)?;
                Ok(file)
            }
            opened => opened,
        }
    })
}

/// Copies a regular file to `to` with permissions 0600, durable when this returns but for its name
/// ([`sync_dir`]).
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    blocking(|| {
        let mut how = std::fs::OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(PRIVATE_FILE);
        let (mut from, mut to) = (regular::open_to_read(from)?, regular::open(to, &mut how, 0)?);
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    })
}

/// Makes a file hold `content` in one step, durable when this returns: its name with `.new` is
/// written first. It has permissions 0600.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let draft =
        PathBuf::from([path.as_os_str(), ".new".as_ref()].into_iter().collect::<std::ffi::OsString>());
    blocking(|| {
        let mut how = std::fs::OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(PRIVATE_FILE);
        let mut file = regular::open(&draft, &mut how, 0)?;
        file.write_all(content)?;
        file.sync_all()
    })?;
    rename(&draft, path)?;
    sync_dir(folder)
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

/// Creates a folder with permissions 0700, and the folders that lead to it with the usual ones. A
/// folder that is there stays as it is.
pub fn create_dir(folder: &Path) -> io::Result<()> {
    blocking(|| {
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match std::fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            made => made,
        }
    })
}

/// Whether something is at the path.
pub fn exists(path: &Path) -> io::Result<bool> {
    blocking(|| path.try_exists()).map_err(|error| regular::at(path, error))
}

/// A file's owner and mode.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// The owner's user number.
    pub owner: u32,
    /// The permission bits.
    pub mode: u32,
}

/// The owner and permissions of what is at the path.
pub fn access(path: &Path) -> io::Result<Access> {
    blocking(|| {
        let about = std::fs::metadata(path)?;
        Ok(Access { owner: about.uid(), mode: about.mode() & 0o7777 })
    })
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
    let mut how = std::fs::OpenOptions::new();
    // Only a folder: to open a FIFO would wait.
    how.read(true).custom_flags(libc::O_DIRECTORY);
    blocking(|| how.open(folder)?.sync_all())
}

/// Bytes that the folder's file system has room for.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    file_system(folder).map(|facts| facts.f_bavail * facts.f_frsize)
}

/// Bytes that the folder's file system has in all.
pub fn disk_bytes(folder: &Path) -> io::Result<u64> {
    file_system(folder).map(|facts| facts.f_blocks * facts.f_frsize)
}

fn file_system(folder: &Path) -> io::Result<libc::statvfs> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    blocking(|| {
        let mut facts = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the path ends with a zero byte, and the result has room for what the kernel
        // writes.
        if unsafe { libc::statvfs(path.as_ptr(), facts.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it has filled the result in.
        Ok(unsafe { facts.assume_init() })
    })
}
