//! A word of a file, mapped into memory.

use std::io;
use std::path::Path;
use std::ptr::{self, NonNull};

use sync::atomic::AtomicU64;

use super::regular;
use crate::device::How;

/// Bytes of the file that are mapped.
const LENGTH: usize = 4096;
/// File systems that overwrite a block in place. Elsewhere a store may need a new block, and a full
/// disk would then end the process by SIGBUS: ext4, xfs, tmpfs, overlay.
const IN_PLACE: [i64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];

/// Maps the word at `offset` of the file at `path`, a multiple of 4096, from where on at least 4096
/// bytes must be written. `Unsupported` where the file system does not overwrite in place.
pub(crate) fn map(path: &Path, offset: u64) -> io::Result<NonNull<AtomicU64>> {
    let (file, _) = regular::open(path, How { write: true, ..How::READ })?;
    if file.len()? < offset + LENGTH as u64 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and the result has room for what the kernel writes.
    if unsafe { libc::fstatfs(file.fd(), facts.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it has filled the result in.
    let kind = unsafe { facts.assume_init() }.f_type;
    if !IN_PLACE.contains(&kind) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let at = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: a new mapping touches no existing memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), LENGTH, access, libc::MAP_SHARED, file.fd(), at) };
    match NonNull::new(start.cast()) {
        Some(word) if start != libc::MAP_FAILED => Ok(word),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes back what [`map`] has mapped.
///
/// # Safety
/// The word is [`map`]'s, and nothing refers to it any more.
pub(crate) unsafe fn unmap(word: NonNull<AtomicU64>) {
    // SAFETY: by contract, mapped with this length.
    unsafe { libc::munmap(word.as_ptr().cast(), LENGTH) };
}
