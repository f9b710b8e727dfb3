//! io_uring, which this machine never grants: files go to threads, sockets to single calls.

use std::io;

use super::{Descriptor, Fd};
use crate::device::Operation;

/// A ring of this thread: there is none.
#[derive(Debug)]
pub(crate) enum Ring {}

impl Ring {
    /// # Errors
    /// Always.
    pub(crate) fn for_files(_: u32, _: &Descriptor) -> io::Result<Ring> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the model machine has no io_uring"))
    }

    /// # Errors
    /// Always.
    pub(crate) fn for_sockets(_: u32) -> io::Result<Ring> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) unsafe fn push(&mut self, _: &Operation, _: u64) -> bool {
        match *self {}
    }

    pub(crate) unsafe fn push_send(&mut self, _: Fd, _: &[u8], _: u64) -> bool {
        match *self {}
    }

    pub(crate) unsafe fn push_receive(&mut self, _: Fd, _: &mut [u8], _: u64) -> bool {
        match *self {}
    }

    pub(crate) fn submit(&self) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn submit_and_wait(&self, _: usize) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn has_completions(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn completions(&mut self) -> std::iter::Empty<(u64, i32)> {
        match *self {}
    }
}

/// Whether an error keeps the ring from taking entries for the moment only.
pub(crate) fn is_passing(_: &io::Error) -> bool {
    false
}
