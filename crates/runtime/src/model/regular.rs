//! Regular files of the disk in memory.

use std::io::{self, Read, Write};
use std::path::Path;

use super::Fd;
use super::disk::{Contents, disk};
use super::events::{Event, digest};
use super::machine::here;
use super::table::{Descriptor, Open};
use crate::device::{How, Unusable};

/// An open regular file.
#[derive(Debug)]
pub struct RegularFile {
    descriptor: Descriptor,
    file: usize,
    /// Where it is read and written next.
    at: u64,
    how: How,
    has_lock: std::cell::Cell<bool>,
}

impl RegularFile {
    fn new(file: usize, how: How) -> RegularFile {
        let descriptor = Descriptor::new(Open::File { file, is_writable: how.write });
        RegularFile { descriptor, file, at: 0, how, has_lock: std::cell::Cell::new(false) }
    }

    /// Refuses a call that the file was not opened for.
    fn require(&self, is_open: bool) -> io::Result<()> {
        if is_open { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)) }
    }

    fn contents<R>(&self, body: impl FnOnce(&mut Contents) -> R) -> R {
        body(disk().file(self.file))
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> Fd {
        self.descriptor.id()
    }

    /// The permission bits.
    ///
    /// # Errors
    /// None.
    pub fn mode(&self) -> io::Result<u32> {
        Ok(0o600)
    }

    /// Present length.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.contents(|contents| contents.len()))
    }

    /// Cuts or extends (with a hole) to `len`.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.contents(|contents| contents.set_len(len));
        here().note(Event::Resize, &[self.fd() as u64, len]);
        Ok(())
    }

    /// Makes the file durable with all that describes it.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        here().sleep(100_000);
        here().note(Event::Sync, &[self.fd() as u64]);
        Ok(())
    }

    /// Takes the file's exclusive lock until it is closed; `WouldBlock` when another has it.
    pub(crate) fn try_lock(&self) -> io::Result<()> {
        let was_locked = self.contents(|contents| std::mem::replace(&mut contents.is_locked, true));
        here().note(Event::Lock, &[self.fd() as u64, u64::from(was_locked)]);
        if was_locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.has_lock.set(true);
        Ok(())
    }
}

impl Drop for RegularFile {
    fn drop(&mut self) {
        if self.has_lock.get() {
            self.contents(|contents| contents.is_locked = false);
        }
    }
}

// SAFETY: all virtual threads run on one real thread.
unsafe impl Sync for RegularFile {}

impl Read for RegularFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.require(self.how.read)?;
        let count = self.contents(|contents| contents.read(to, self.at));
        here().note(Event::Read, &[self.fd() as u64, self.at, digest(&to[..count])]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for RegularFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.require(self.how.write)?;
        self.contents(|contents| contents.write(from, self.at));
        here().note(Event::Write, &[self.fd() as u64, self.at, digest(from)]);
        self.at += from.len() as u64;
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a regular file; whether direct I/O was granted.
///
/// # Errors
/// As a file system's. [`Unusable`] where a folder is there.
pub(crate) fn open(path: &Path, how: How) -> io::Result<(RegularFile, bool)> {
    here().spend(5_000);
    let opened = here().note_path(Event::OpenFile, path, open_now(path, how))?;
    Ok((opened, how.direct))
}

fn open_now(path: &Path, how: How) -> io::Result<RegularFile> {
    let mut disk = disk();
    let file = match disk.find(path) {
        Ok(_) if how.create_new => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            let message = format!("{} is a folder, not a regular file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, Unusable(message)));
        }
        Err(error) if !how.create && !how.create_new => return Err(error),
        Err(_) => {
            let file = disk.make();
            disk.name(path, file)?;
            file
        }
    };
    if how.truncate {
        disk.file(file).set_len(0);
    }
    drop(disk);
    Ok(RegularFile::new(file, how))
}

/// An open file without a name.
pub(crate) fn open_unnamed() -> io::Result<RegularFile> {
    let file = disk().make();
    Ok(RegularFile::new(file, How { write: true, ..How::READ }))
}

/// An error with its path where the system's words alone would not help: there are no links.
pub(crate) fn at(_: &Path, error: io::Error) -> io::Error {
    error
}
