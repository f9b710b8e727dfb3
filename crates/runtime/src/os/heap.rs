//! The C library's heap.

/// Has the C library's allocator map blocks from `mapped` bytes on, and keep at most `end` free
/// bytes at a heap's end.
pub(crate) fn configure(mapped: i32, end: i32) {
    // SAFETY: plain calls; the allocator takes its own locks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, mapped);
        libc::mallopt(libc::M_TRIM_THRESHOLD, end);
    }
}

/// Gives the free pages of all threads' heaps back to the system.
pub(crate) fn trim() {
    // SAFETY: a plain call; it takes the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}
