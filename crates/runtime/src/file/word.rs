//! One word of a file, mapped into memory.
//!
//! A store to it costs no system call and outlives the process. It reaches the disk when the kernel
//! writes the page back, so after a power failure the file may hold an older value, but never half
//! of one.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // calls the system

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use sync::atomic::AtomicU64;

use super::blocking;
use crate::os::regular;

/// Bytes of the file that are mapped.
const LENGTH: usize = 4096;
/// File systems that overwrite a block in place. Elsewhere a store may need a new block, and a full
/// disk would then end the process by SIGBUS.
const IN_PLACE: [i64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630]; // ext4, xfs, tmpfs, overlay

/// The first word of a file, shared with the file.
#[derive(Debug)]
pub struct MappedWord(NonNull<AtomicU64>);

// SAFETY: shared access gives `&AtomicU64` only.
unsafe impl Send for MappedWord {}
// SAFETY: as above.
unsafe impl Sync for MappedWord {}

impl MappedWord {
    /// Maps the word at `offset` of the file at `path`, a multiple of 4096, from where on at least
    /// 4096 bytes must be written. `Unsupported` where the file system does not overwrite in place.
    pub fn open(path: &Path, offset: u64) -> io::Result<MappedWord> {
        blocking(|| {
            let file = regular::open(path, std::fs::OpenOptions::new().read(true).write(true), 0)?;
            if file.metadata()?.len() < offset + LENGTH as u64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut facts = std::mem::MaybeUninit::<libc::statfs>::uninit();
            // SAFETY: the descriptor is open, and the result has room for what the kernel writes.
            if unsafe { libc::fstatfs(file.as_raw_fd(), facts.as_mut_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the call succeeded, so it has filled the result in.
            let kind = unsafe { facts.assume_init() }.f_type;
            if !IN_PLACE.contains(&kind) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
            let fd = file.as_raw_fd();
            // SAFETY: a new mapping touches no existing memory.
            let start = unsafe { libc::mmap(ptr::null_mut(), LENGTH, access, libc::MAP_SHARED, fd, at) };
            match NonNull::new(start.cast()) {
                Some(word) if start != libc::MAP_FAILED => Ok(MappedWord(word)),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }

    /// The word.
    #[inline]
    pub fn word(&self) -> &AtomicU64 {
        // SAFETY: the mapping is aligned, holds at least this word, and lives as long as `self`.
        // The word is only ever reached as an atomic.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for MappedWord {
    fn drop(&mut self) {
        // SAFETY: mapped in `open` with this length; nobody has a reference any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}
