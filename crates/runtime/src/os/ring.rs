//! The kernel's io_uring: operations of many files or sockets by one system call.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::device::Operation;

/// A ring of this thread.
pub(crate) struct Ring(IoUring);

impl Ring {
    /// A ring for files, with room for so many operations. `event` is signalled when one ends.
    ///
    /// # Errors
    /// Where the kernel grants none, or none that can do what is needed.
    pub(crate) fn for_files(entries: u32, event: &OwnedFd) -> io::Result<Ring> {
        // A completion waits for this thread's next system call, and does not interrupt it. Linux
        // before 5.19 does not know that.
        let ring = match IoUring::builder().setup_coop_taskrun().build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries)?,
            built => built?,
        };
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::Fallocate::CODE];
        if !needed.into_iter().all(|code| probe.is_supported(code)) || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring lacks file operations",
            ));
        }
        ring.submitter().register_eventfd(event.as_raw_fd())?;
        Ok(Ring(ring))
    }

    /// A ring for sockets, with room for so many operations, none of which waits.
    ///
    /// # Errors
    /// As [`Ring::for_files`].
    pub(crate) fn for_sockets(entries: u32) -> io::Result<Ring> {
        let ring = IoUring::builder().setup_single_issuer().setup_coop_taskrun().build(entries)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if ![opcode::Send::CODE, opcode::Recv::CODE].into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Whether entries are taken at all is found out here and not by the first client.
        ring.submit()?;
        Ok(Ring(ring))
    }

    /// Queues an operation, whose completion carries `tag`; false when there is no room.
    ///
    /// # Safety
    /// The operation's buffer stays valid until it has ended.
    #[inline]
    pub(crate) unsafe fn push(&mut self, operation: &Operation, tag: u64) -> bool {
        // SAFETY: by contract.
        unsafe { self.0.submission().push(&entry(operation).user_data(tag)) }.is_ok()
    }

    /// Queues a send that does not wait for room; false when the ring has none.
    ///
    /// # Safety
    /// As [`Ring::push`].
    #[inline]
    pub(crate) unsafe fn push_send(&mut self, fd: RawFd, from: &[u8], tag: u64) -> bool {
        let send = opcode::Send::new(types::Fd(fd), from.as_ptr(), from.len() as u32);
        let send = send.flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).build().user_data(tag);
        // SAFETY: by contract.
        unsafe { self.0.submission().push(&send) }.is_ok()
    }

    /// Queues a receive that does not wait for input; false when the ring has no room.
    ///
    /// # Safety
    /// As [`Ring::push`].
    #[inline]
    pub(crate) unsafe fn push_receive(&mut self, fd: RawFd, to: &mut [u8], tag: u64) -> bool {
        let receive = opcode::Recv::new(types::Fd(fd), to.as_mut_ptr(), to.len() as u32);
        let receive = receive.flags(libc::MSG_DONTWAIT).build().user_data(tag);
        // SAFETY: by contract.
        unsafe { self.0.submission().push(&receive) }.is_ok()
    }

    /// Gives the kernel what is queued; how many operations it has taken.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn submit(&self) -> io::Result<usize> {
        self.0.submit()
    }

    /// Gives the kernel what is queued, and waits until so many operations have ended.
    ///
    /// # Errors
    /// Those of the system; [`is_passing`] tells which of them are no matter.
    pub(crate) fn submit_and_wait(&self, count: usize) -> io::Result<usize> {
        self.0.submit_and_wait(count)
    }

    /// Whether an operation has ended whose completion has not been taken.
    pub(crate) fn has_completions(&mut self) -> bool {
        !self.0.completion().is_empty()
    }

    /// Takes the completions: the operation's tag, and a count or a negated error number.
    #[inline]
    pub(crate) fn completions(&mut self) -> impl Iterator<Item = (u64, i32)> + '_ {
        self.0.completion().map(|completion| (completion.user_data(), completion.result()))
    }
}

/// Whether an error keeps the kernel from taking entries for the moment only: the next call takes
/// what is left.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::ENOMEM].contains(&error.raw_os_error().unwrap_or(0))
}

/// As an entry of a ring's submission queue.
fn entry(operation: &Operation) -> squeue::Entry {
    match *operation {
        Operation::Read { fd, to, len, offset } => {
            opcode::Read::new(types::Fd(fd), to, len).offset(offset).build()
        }
        Operation::Write { fd, from, len, offset, durable } => {
            let flags = if durable { libc::RWF_DSYNC } else { 0 };
            opcode::Write::new(types::Fd(fd), from, len).offset(offset).rw_flags(flags).build()
        }
        Operation::Sync { fd } => {
            opcode::Fsync::new(types::Fd(fd)).flags(types::FsyncFlags::DATASYNC).build()
        }
        Operation::Allocate { fd, offset, len } => {
            opcode::Fallocate::new(types::Fd(fd), len).offset(offset).build()
        }
    }
}
