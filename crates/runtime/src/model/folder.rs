//! Folders, and what is known of a path.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::disk;
use super::events::Event;
use super::machine::here;
use crate::device::{Access, Stamp};

/// Time of a call, in nanoseconds.
const CALL: u64 = 3_000;
/// Bytes of the disk; none of them is ever used up.
const DISK: u64 = 1 << 40;

/// Paths of a folder's entries.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    here().spend(CALL);
    here().note_path(Event::List, folder, disk().list(folder))
}

/// Creates a folder, and the folders that lead to it.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    here().spend(CALL);
    disk().make_folder(folder);
    here().note_path(Event::MakeFolder, folder, Ok(()))
}

/// Whether something is at the path.
pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    here().spend(CALL);
    here().note_path(Event::Look, path, Ok(disk().exists(path)))
}

/// The owner and permissions of what is at the path.
pub(crate) fn access(path: &Path) -> io::Result<Access> {
    let disk = disk();
    let is_folder = disk.is_folder(path);
    let access = match disk.exists(path) {
        true => Ok(Access { owner: 0, mode: if is_folder { 0o700 } else { 0o600 }, is_folder }),
        false => Err(io::ErrorKind::NotFound.into()),
    };
    here().note_path(Event::Look, path, access)
}

/// The identity, size and times of change of what is at the path: it has no times.
pub(crate) fn stamp(path: &Path) -> io::Result<Stamp> {
    let file = here().note_path(Event::Look, path, disk().find(path))?;
    let len = disk().file(file).len();
    Ok(Stamp { file: (file as u64, len), changed: (0, 0) })
}

/// Sets the permission bits of what is at the path: they are always the same.
pub(crate) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Renames a file.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    here().spend(CALL);
    let mut disk = disk();
    let file = here().note_path(Event::Remove, from, disk.unname(from))?;
    here().note_path(Event::Rename, to, disk.name(to, file))
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    here().spend(CALL);
    here().note_path(Event::Remove, path, disk().unname(path)).map(drop)
}

/// Makes the folder's entries durable: they always are.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    here().sleep(10 * CALL);
    let done = if disk().is_folder(folder) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) };
    here().note_path(Event::SyncFolder, folder, done)
}

/// Bytes that the disk has room for, and that it has in all.
pub(crate) fn room(_: &Path) -> io::Result<(u64, u64)> {
    Ok((DISK, DISK))
}
