//! Linux's futex: the kernel puts a thread to sleep while a word has a value.

#![allow(clippy::disallowed_types)] // an interface to the machine

use std::ptr;
use std::sync::atomic::AtomicU32;

/// The threads that sleep on a word. The kernel keeps them by the word's address.
#[derive(Debug, Default)]
pub(crate) struct Sleepers;

impl Sleepers {
    /// Puts this thread to sleep if the word has the expected value. The kernel compares and
    /// enqueues in one step. Returns after a wake-up, spuriously, or at once if the value differs.
    pub(crate) fn wait(&self, word: &AtomicU32, expected: u32) {
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        let forever = ptr::null::<libc::timespec>();
        // SAFETY: the kernel reads the word, which the reference keeps alive during the call. A
        // null timeout means no limit. Each error (the value differs, a signal) is a return that
        // the caller expects.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, forever) };
    }

    /// Wakes at most `count` of the threads that sleep on the word.
    pub(crate) fn wake(&self, word: &AtomicU32, count: u32) {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        let count = count.min(i32::MAX as u32);
        // SAFETY: the kernel uses the word's address as a key and neither reads nor writes it.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, count) };
    }
}
