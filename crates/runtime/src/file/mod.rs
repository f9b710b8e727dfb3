//! Files. A fiber that reads or writes parks while the kernel works. A thread that is no worker
//! blocks.
//!
//! The start chooses one of two ways behind one surface: a ring (io_uring) for each core, or a pool
//! of I/O threads. Rare operations (open, rename, folders) use the pool in both cases. What must
//! hold: an operation's buffer outlives it. Its fiber does not leave before the operation has
//! ended, even if it is interrupted.

mod buffer;
mod folder;
mod pool;
mod ring;
mod word;

pub use buffer::AlignedBuf;
pub use folder::{
    FileLock, access, copy, create_dir, disk_bytes, exists, free_bytes, list, lock_exclusive, lock_existing,
    remove, rename, replace, set_mode, stamp, sync_dir,
};
pub(crate) use pool::Pool;

use std::io;
use std::path::Path;
use std::sync::Arc;

use sync::core_local;

use crate::device::How;
use crate::device::{self, Operation};
pub use crate::device::{Access, Stamp, Unusable};
pub use crate::os::regular::RegularFile;
use crate::os::{self, Fd, regular};
use ring::Ring;
pub use word::MappedWord;

use crate::fiber;
use crate::here::Here;
use crate::shared::Turns;

/// Pieces of one batch kept in flight at once.
const IN_FLIGHT: usize = 64;

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileIo {
    /// io_uring where the kernel grants it, else threads.
    #[default]
    Auto,
    /// io_uring, or starting fails.
    IoUring,
    /// A small pool of I/O threads.
    Threads,
}

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
pub struct File {
    file: RegularFile,
    direct: bool,
}

impl File {
    /// Opens a regular file; one it creates has permissions 0600. Where the file system refuses
    /// direct I/O (tmpfs), the file is opened without.
    ///
    /// # Errors
    /// Those of the system. [`Unusable`] where what is there is no regular file.
    pub fn open(path: &Path, options: OpenOptions) -> io::Result<File> {
        let how = How {
            read: true,
            write: !options.read_only,
            create: options.create,
            create_new: options.create_new,
            truncate: options.truncate,
            direct: options.direct,
        };
        let (file, direct) = blocking(|| regular::open(path, how))?;
        Ok(File { file, direct })
    }

    /// A file that has no name and is gone with the process, in the system's folder for temporary
    /// files.
    pub fn temporary() -> io::Result<File> {
        Ok(File { file: blocking(regular::open_unnamed)?, direct: false })
    }

    /// Fills `to` from `offset`; `UnexpectedEof` when the file ends before.
    pub fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_some_at(to, offset)? {
            read if read == to.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads up to `to.len()` bytes from `offset`: less only at the end of the file.
    pub fn read_some_at(&self, to: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(variants)]
        return crate::replaced::reading(|| self.read_some_at_once(to, offset));
        #[cfg(not(variants))]
        self.read_some_at_once(to, offset)
    }

    fn read_some_at_once(&self, to: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < to.len() {
            let got = self.run(Operation::read(self.file.fd(), &mut to[read..], offset + read as u64))?;
            read += got;
            // A direct read ends off a block boundary only at the end of the file, and can't be
            // continued there.
            if got == 0 || (self.direct && !got.is_multiple_of(512)) {
                break;
            }
        }
        Ok(read)
    }

    /// Fills several pieces, with several reads in flight. Returns which pieces were filled. The
    /// others met an error, the file's end or an interrupt; [`File::read_at`] reports which.
    pub fn read_many(&self, pieces: &mut [(u64, &mut [u8])]) -> Vec<bool> {
        #[cfg(variants)]
        return crate::replaced::reading(|| self.read_many_at_once(pieces));
        #[cfg(not(variants))]
        self.read_many_at_once(pieces)
    }

    fn read_many_at_once(&self, pieces: &mut [(u64, &mut [u8])]) -> Vec<bool> {
        let fd = self.file.fd();
        let mut filled = Vec::with_capacity(pieces.len());
        for batch in pieces.chunks_mut(IN_FLIGHT) {
            let operations: Vec<_> =
                batch.iter_mut().map(|(offset, piece)| Operation::read(fd, piece, *offset)).collect();
            let mut results = vec![0; operations.len()];
            run_all(&operations, &mut results);
            let whole = |result: &i32, piece: &[u8]| usize::try_from(*result) == Ok(piece.len());
            filled.extend(results.iter().zip(&*batch).map(|(result, (_, piece))| whole(result, piece)));
        }
        filled
    }

    /// Writes all of `from` at `offset`.
    pub fn write_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.write_all(from, offset, false)
    }

    /// Writes all of `from` at `offset`, durable when it returns.
    pub fn write_at_durable(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.write_all(from, offset, true)
    }

    fn write_all(&self, from: &[u8], offset: u64, durable: bool) -> io::Result<()> {
        let mut written = 0;
        while written < from.len() {
            let rest = &from[written..];
            match self.run(Operation::write(self.file.fd(), rest, offset + written as u64, durable))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }

    /// Writes several pieces, with several writes in flight. Returns the first error once all have
    /// ended.
    pub fn write_many(&self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        let fd = self.file.fd();
        let mut first_error = None;
        for batch in pieces.chunks(IN_FLIGHT) {
            let operations: Vec<_> =
                batch.iter().map(|(offset, piece)| Operation::write(fd, piece, *offset, false)).collect();
            let mut results = vec![0; operations.len()];
            run_all(&operations, &mut results);
            for ((offset, piece), &result) in batch.iter().zip(&results) {
                // A short or interrupted write is completed by a write of its own.
                let written = match device::outcome(result) {
                    Ok(written) => self.write_at(&piece[written..], offset + written as u64),
                    Err(error) if device::is_transient(&error) => self.write_at(piece, *offset),
                    Err(error) => Err(error),
                };
                first_error = first_error.or(written.err());
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Makes everything written durable, and what is needed to read it back.
    pub fn sync_data(&self) -> io::Result<()> {
        self.run(Operation::Sync { fd: self.file.fd() }).map(|_| ())
    }

    /// Reserves disk space for `len` bytes from `offset`, and grows the file. Fails with
    /// `StorageFull` if there is none.
    pub fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        match self.run(Operation::Allocate { fd: self.file.fd(), offset, len }) {
            // A file system that can't reserve: grow the file at least.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                if self.len()? < offset + len {
                    self.set_len(offset + len)
                } else {
                    Ok(())
                }
            }
            done => done.map(|_| ()),
        }
    }

    /// Present length.
    pub fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with a hole) to `len`.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        blocking(|| self.file.set_len(len))
    }

    /// Runs one operation until it has an outcome that is final.
    fn run(&self, operation: Operation) -> io::Result<usize> {
        loop {
            let mut result = [0];
            run_all(std::slice::from_ref(&operation), &mut result);
            match device::outcome(result[0]) {
                Err(error) if device::is_transient(&error) => {}
                outcome => return outcome,
            }
        }
    }
}

/// Opens a regular file to read it, on the thread that calls.
///
/// # Errors
/// Those of the system. [`Unusable`] where something else is there, or symbolic links lead in a
/// circle.
pub fn open_to_read(path: &Path) -> io::Result<RegularFile> {
    regular::open(path, How::READ).map(|(file, _)| file)
}

/// Runs operations at the same time and waits for all: `results` are counts, or negated error
/// numbers.
fn run_all(operations: &[Operation], results: &mut [i32]) {
    match fiber::current() {
        None => operations
            .iter()
            .zip(results)
            .for_each(|(operation, result)| *result = os::operation::execute(operation)),
        Some((core, fiber)) => {
            Turns::add(&core.shared.turns.get(core.number).operations, operations.len());
            match &here() {
                Disk { ring: Some(ring), .. } => ring.run_all(fiber, operations, results),
                Disk { pool, .. } => pool.execute_all(fiber, operations, results),
            }
        }
    }
}

core_local! {
    static DISK: Here<Disk> = const { Here::none() };
}

/// The files of the core whose thread this is. Panics elsewhere.
fn here() -> &'static Disk {
    DISK.with(Here::get).expect("this runs on a worker of the runtime only")
}

/// The pool of threads of the runtime this code runs in.
#[cfg(test)]
pub(crate) fn pool() -> &'static Arc<Pool> {
    &here().pool
}

/// Runs a blocking `body` on a thread of the pool while the fiber parks, or on this thread if it
/// runs no fiber.
pub fn blocking<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let Some((_, fiber)) = fiber::current() else { return body() };
    here().pool.run(fiber, body)
}

/// One core's way to its files.
pub(crate) struct Disk {
    /// None: operations go to the pool.
    ring: Option<Ring>,
    pool: Arc<Pool>,
}

impl Disk {
    /// One for each core, and why io_uring was refused if it was wanted.
    pub(crate) fn for_cores(
        cores: usize,
        file_io: FileIo,
        pool: &Arc<Pool>,
    ) -> io::Result<(Vec<Disk>, Option<String>)> {
        let threads = || (0..cores).map(|_| Disk::without_ring(pool)).collect();
        if file_io == FileIo::Threads {
            return Ok((threads(), None));
        }
        let rings: io::Result<Vec<_>> =
            (0..cores).map(|_| Ok(Disk { ring: Some(Ring::new()?), pool: Arc::clone(pool) })).collect();
        match rings {
            Ok(disks) => Ok((disks, None)),
            Err(error) if file_io == FileIo::Auto => Ok((threads(), Some(error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// For a worker whose operations are few: they go to the pool of threads.
    pub(crate) fn without_ring(pool: &Arc<Pool>) -> Disk {
        Disk { ring: None, pool: Arc::clone(pool) }
    }

    /// This thread's files are these from now on, until [`Disk::leave`].
    pub(crate) fn enter(&self) {
        DISK.with(|disk| disk.enter(self));
    }

    /// The core's loop has ended.
    pub(crate) fn leave(&self) {
        DISK.with(Here::leave);
    }

    /// The descriptor to poll for completions.
    pub(crate) fn event(&self) -> Option<Fd> {
        self.ring.as_ref().map(Ring::event)
    }

    /// Gives the kernel what was queued this turn.
    pub(crate) fn submit(&self) {
        if let Some(ring) = &self.ring {
            ring.submit();
        }
    }

    /// Whether operations have ended whose fibers were not woken yet.
    pub(crate) fn has_completions(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::has_completions)
    }

    /// Wakes the fibers whose operations have ended.
    pub(crate) fn complete(&self) {
        if let Some(ring) = &self.ring {
            ring.complete();
        }
    }
}

#[cfg(test)]
mod tests;
