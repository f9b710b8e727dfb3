//! Folders, and what is known of a path.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::device::{Access, Stamp};

/// Permissions of folders made here: their owner alone may list and enter them.
const PRIVATE_FOLDER: u32 = 0o700;

/// Paths of a folder's entries, in no order.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// Creates a folder with permissions 0700, and the folders that lead to it with the usual ones. A
/// folder that is there stays as it is.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

/// Whether something is at the path.
pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// The owner and permissions of what is at the path.
pub(crate) fn access(path: &Path) -> io::Result<Access> {
    let about = std::fs::metadata(path)?;
    Ok(Access { owner: about.uid(), mode: about.mode() & 0o7777, is_folder: about.is_dir() })
}

/// The identity, size and times of change of what is at the path.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    let about = std::fs::metadata(path)?;
    Ok(Stamp { file: (about.ino(), about.len()), changed: (about.ctime(), about.ctime_nsec()) })
}

/// Sets the permission bits of what is at the path.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Renames within a file system; durable after [`sync()`].
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Removes a file; durable after [`sync()`].
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Makes the folder's entries durable.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    let mut how = std::fs::OpenOptions::new();
    // Only a folder: to open a FIFO would wait.
    how.read(true).custom_flags(libc::O_DIRECTORY).open(folder)?.sync_all()
}

/// Bytes that the folder's file system has room for, and that it has in all.
pub(crate) fn room(folder: &Path) -> io::Result<(u64, u64)> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero byte, and the result has room for what the kernel writes.
    if unsafe { libc::statvfs(path.as_ptr(), facts.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it has filled the result in.
    let facts = unsafe { facts.assume_init() };
    Ok((facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize))
}
