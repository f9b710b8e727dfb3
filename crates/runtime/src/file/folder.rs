//! Folders and locks. These operations are rare, so they use the pool of threads.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{blocking, open_to_read};
use crate::device::{Access, How, Stamp};
use crate::os::folder;
use crate::os::regular::{self, RegularFile};

/// Holds a file's exclusive lock until dropped; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FileLock {
    _file: RegularFile,
}

/// Creates the file if needed and locks it. Fails with `WouldBlock` if another process holds it.
pub fn lock_exclusive(path: &Path) -> io::Result<FileLock> {
    let how = How { write: true, create: true, ..How::READ };
    blocking(|| lock(regular::open(path, how)?.0))
}

/// Locks an existing file without writing to its folder. `None` if there is no such file. Fails
/// with `WouldBlock` if another process holds it.
pub fn lock_existing(path: &Path) -> io::Result<Option<FileLock>> {
    blocking(|| match open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => lock(opened?).map(Some),
    })
}

fn lock(file: RegularFile) -> io::Result<FileLock> {
    file.try_lock()?;
    Ok(FileLock { _file: file })
}

/// Copies a regular file to `to` with permissions 0600, durable when this returns but for its name
/// ([`sync_dir`]).
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    blocking(|| {
        let (mut from, (mut to, _)) = (open_to_read(from)?, regular::open(to, How::OVERWRITE)?);
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    })
}

/// Makes a file hold `content` in one step, durable when this returns. Writes to the name with
/// `.new` first, with permissions 0600.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let draft =
        PathBuf::from([path.as_os_str(), ".new".as_ref()].into_iter().collect::<std::ffi::OsString>());
    blocking(|| {
        let (mut file, _) = regular::open(&draft, How::OVERWRITE)?;
        file.write_all(content)?;
        file.sync_all()
    })?;
    rename(&draft, path)?;
    sync_dir(folder)
}

/// Paths of what is in a folder, sorted.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = blocking(|| folder::list(folder))?;
    paths.sort();
    Ok(paths)
}

/// Creates a folder with permissions 0700, and the folders that lead to it with the usual ones. A
/// folder that is there stays as it is.
pub fn create_dir(folder: &Path) -> io::Result<()> {
    blocking(|| folder::create(folder))
}

/// Whether something is at the path.
pub fn exists(path: &Path) -> io::Result<bool> {
    blocking(|| folder::exists(path)).map_err(|error| regular::at(path, error))
}

/// The owner and permissions of what is at the path.
pub fn access(path: &Path) -> io::Result<Access> {
    blocking(|| folder::access(path))
}

/// The identity, size and times of change of what is at the path.
pub fn stamp(path: &Path) -> io::Result<Stamp> {
    blocking(|| folder::stamp(path))
}

/// Sets the permission bits of what is at the path.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    blocking(|| folder::set_mode(path, mode))
}

/// Renames within a file system; durable after `sync_dir`.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    blocking(|| folder::rename(from, to))
}

/// Removes a file; durable after `sync_dir`.
pub fn remove(path: &Path) -> io::Result<()> {
    blocking(|| folder::remove(path))
}

/// Makes the folder's entries durable.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    blocking(|| folder::sync(folder))
}

/// Bytes that the folder's file system has room for.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    blocking(|| folder::room(folder)).map(|(free, _)| free)
}

/// Bytes that the folder's file system has in all.
pub fn disk_bytes(folder: &Path) -> io::Result<u64> {
    blocking(|| folder::room(folder)).map(|(_, all)| all)
}
