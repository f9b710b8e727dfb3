//! Row `no-remap-io`: pages that are mapped for a moment, and pages that are not.
//!
//! FreeBSD maps the buffer of each I/O into the kernel's memory and unmaps it afterwards. The unmap
//! interrupts every CPU that may still have the translation, a TLB shoot-down. The fix is unmapped
//! I/O. A process sees the same with files: [`MappedReads`] is the stock state, and
//! [`BufferedReads`] the published one.
//!
//! 1. [`MappedReads`] maps the page, with its memory present, copies it and unmaps it.
//! 2. [`BufferedReads`] asks the kernel to copy the page, through a mapping that the kernel keeps.
//!
//! What must hold: nobody truncates the file, else a mapped read ends the process.
//!
//! Cost: [`BufferedReads`] takes 1 system call. In line transfers it costs 1, since the kernel
//! counts the use of its page. [`MappedReads`] takes 2 system calls. In line transfers each costs
//! that 1 and 1 more for the address space's lock, which it takes exclusively. The second one
//! interrupts each other CPU that runs a thread of the process.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr;

use variants::caller::Caller;

use super::{PAGE, Reads};
use crate::checked;

/// Reads a page at its position, without a lock.
pub(super) fn read_page(file: &File, page: u64, to: &mut [u8]) {
    file.read_exact_at(to, page * PAGE as u64).expect("a page of the file");
}

/// Reads that map the page.
#[derive(Debug)]
pub struct MappedReads(File);

impl MappedReads {
    /// Reads of this file.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl Reads for MappedReads {
    fn read(&self, _: &mut Caller, page: u64, to: &mut [u8]) {
        assert_eq!(to.len(), PAGE, "a read is of a page");
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_POPULATE);
        let offset = (page * PAGE as u64) as libc::off_t;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), PAGE, protection, flags, self.0.as_raw_fd(), offset) };
        checked("mmap", if start == libc::MAP_FAILED { -1 } else { 0 });
        // SAFETY: the mapping is PAGE bytes, readable, and apart from `to`. The file is private to
        // this program, and nobody changes it meanwhile.
        unsafe { ptr::copy_nonoverlapping(start.cast::<u8>(), to.as_mut_ptr(), PAGE) };
        // SAFETY: the mapping made above, to which no pointer is left.
        let result = unsafe { libc::munmap(start, PAGE) };
        checked("munmap", result.into());
    }
}

/// Reads that map nothing.
#[derive(Debug)]
pub struct BufferedReads(File);

impl BufferedReads {
    /// Reads of this file.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl Reads for BufferedReads {
    fn read(&self, _: &mut Caller, page: u64, to: &mut [u8]) {
        read_page(&self.0, page, to);
    }
}
