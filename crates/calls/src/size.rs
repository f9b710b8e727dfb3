//! Row `relation-size` (H11): the number of a table's pages, which the planner of each statement
//! asks for.
//!
//! In 2011 the kernel took the mutex of the inode for `lseek(SEEK_END)`, and 56 clients had a
//! seventh of the throughput of 40. Later kernels do not. [`Seek::shared`] stands in for that
//! state: an open file for all threads, whose position the kernel guards by a mutex to this day.
//! Three fixes were published. The report measured prepared plans, which do not ask. Two more are
//! here. [`Seek::own`] is the kernel's: an open file for each thread, as PostgreSQL's processes
//! have, and no mutex. [`Stat`] is `fstat`, which moves no position.
//!
//! 1. The file grows by one page under a lock that all growers share.
//! 2. A reader asks the kernel for the size.
//!
//! What must hold: the size never falls, and a grower sees its own page.
//!
//! Cost: 1 system call. In line transfers, [`Seek::shared`] costs 1 or 2 in the kernel, for the
//! file's mutex and position. [`Seek::own`] and [`Stat`] touch a file of the thread's own, and read
//! the inode's size. That costs 1 if the file has grown since this core's last call, 0 otherwise.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use sync::Mutex;

use crate::checked;

/// Bytes of a page.
pub const PAGE: u64 = 8192;

/// A file of pages that grows.
pub trait Pages: Sync {
    /// Pages of the file, as this thread asks for them.
    fn pages(&self, thread: usize) -> u64;
    /// Grows the file by one page.
    fn grow(&self);
}

/// A file whose end is sought.
#[derive(Debug)]
pub struct Seek {
    growth: Mutex<u64>,
    /// One for all threads, or one for each.
    files: Box<[File]>,
}

impl Seek {
    /// One open file for all threads.
    pub fn shared(file: File) -> Self {
        Self { growth: Mutex::new(0), files: Box::new([file]) }
    }

    /// An open file for each thread.
    ///
    /// # Errors
    /// As [`opened`].
    pub fn own(file: &File, threads: usize) -> io::Result<Self> {
        Ok(Self { growth: Mutex::new(0), files: opened(file, threads)? })
    }
}

/// An open file for each thread.
///
/// # Errors
/// The file cannot be opened so often.
fn opened(file: &File, threads: usize) -> io::Result<Box<[File]>> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    (0..threads).map(|_| File::options().read(true).write(true).open(&path)).collect()
}

impl Pages for Seek {
    #[inline]
    fn pages(&self, thread: usize) -> u64 {
        let file = &self.files[thread % self.files.len()];
        // SAFETY: takes no pointer, and the descriptor is open.
        let end = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) };
        checked("lseek", end) as u64 / PAGE
    }

    fn grow(&self) {
        grow(&self.files[0], &self.growth);
    }
}

/// A file that is asked for its state.
#[derive(Debug)]
pub struct Stat {
    growth: Mutex<u64>,
    files: Box<[File]>,
}

impl Stat {
    /// An open file for each thread, of this empty one.
    ///
    /// # Errors
    /// The file cannot be opened so often.
    pub fn own(file: &File, threads: usize) -> io::Result<Self> {
        Ok(Self { growth: Mutex::new(0), files: opened(file, threads)? })
    }
}

impl Pages for Stat {
    #[inline]
    fn pages(&self, thread: usize) -> u64 {
        let file = self.files[thread % self.files.len()].as_raw_fd();
        // SAFETY: zeroes are a valid `stat`, which the call fills in.
        let mut state: libc::stat = unsafe { std::mem::zeroed() };
        // The C library's function makes another call, which reads a path too.
        // SAFETY: the pointer is to a `stat`, and the descriptor is open.
        let result = unsafe { libc::syscall(libc::SYS_fstat, file, &raw mut state) };
        checked("fstat", result);
        state.st_size as u64 / PAGE
    }

    fn grow(&self) {
        grow(&self.files[0], &self.growth);
    }
}

/// Adds a page to a file. Returns its pages.
pub fn grow(file: &File, growth: &Mutex<u64>) -> u64 {
    let mut pages = growth.lock();
    *pages += 1;
    file.set_len(*pages * PAGE).expect("a temporary file grows by a hole");
    *pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_threads::{at_once, threads};

    fn never_falls(sizes: &impl Pages) {
        const TURNS: u64 = 50;
        at_once(|me| {
            let mut last = 0;
            for round in 0..TURNS {
                sizes.grow();
                let pages = sizes.pages(me.number());
                assert!(pages > last && pages > round, "a grower sees its own page");
                last = pages;
            }
        });
        assert_eq!(sizes.pages(0), threads() as u64 * TURNS);
    }

    #[test]
    fn a_size_never_falls_under_more_threads_than_cores() {
        crate::raise_file_limit();
        let file = || crate::test_file();
        never_falls(&Seek::shared(file()));
        never_falls(&Seek::own(&file(), threads()).unwrap());
        never_falls(&Stat::own(&file(), threads()).unwrap());
    }
}
