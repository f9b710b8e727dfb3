//! One word of a file, mapped into memory.
//!
//! A store to it costs no system call and outlives the process. It reaches the disk when the kernel
//! writes the page back. So after a power failure the file may hold an older value, but never half
//! of one.

use std::io;
use std::path::Path;
use std::ptr::NonNull;

use sync::atomic::AtomicU64;

use super::blocking;
use crate::os::word;

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
        blocking(|| word::map(path, offset).map(MappedWord))
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
        // SAFETY: mapped in `open`; nobody has a reference any more.
        unsafe { word::unmap(self.0) };
    }
}
