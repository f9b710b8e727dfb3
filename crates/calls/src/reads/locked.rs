//! Row `file-lock`: the lock of a file, taken for reads.
//!
//! On FreeBSD 10 a read of a file in tmpfs takes the file's lock exclusively ([`ExclusiveReads`],
//! the stock state). The fix takes it shared for operations that change nothing ([`SharedReads`],
//! the published one).
//!
//! 1. A read takes the file's lock.
//! 2. It copies the page from the kernel's cache and gives the lock back.
//!
//! What must hold: nobody truncates the file under a read. The lock is
//! [`TurnstileLatch`], FreeBSD's reader-writer lock that sleeps.
//!
//! Cost: 1 system call; in line transfers, 2 for the lock and its release. With n threads that
//! read at once, [`ExclusiveReads`] serves one of them, and [`SharedReads`] all.

use std::fs::File;

use variants::caller::Caller;
use variants::latch::{HeldLatch, Latch, TurnstileLatch};

use super::Reads;
use super::mapped::read_page;

/// Reads under the exclusive lock.
#[derive(Debug)]
pub struct ExclusiveReads {
    lock: TurnstileLatch,
    file: File,
}

impl ExclusiveReads {
    /// Reads of this file, for threads numbered below `threads`.
    pub fn new(file: File, threads: usize) -> Self {
        Self { lock: TurnstileLatch::new(threads), file }
    }
}

impl Reads for ExclusiveReads {
    fn read(&self, me: &mut Caller, page: u64, to: &mut [u8]) {
        self.lock.write(me, || read_page(&self.file, page, to));
    }
}

/// Reads under the shared lock.
#[derive(Debug)]
pub struct SharedReads {
    lock: TurnstileLatch,
    file: File,
}

impl SharedReads {
    /// Reads of this file, for threads numbered below `threads`.
    pub fn new(file: File, threads: usize) -> Self {
        Self { lock: TurnstileLatch::new(threads), file }
    }
}

impl Reads for SharedReads {
    fn read(&self, me: &mut Caller, page: u64, to: &mut [u8]) {
        self.lock.read(me, || read_page(&self.file, page, to));
    }
}
