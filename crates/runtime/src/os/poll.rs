//! Waiting for many descriptors at once: an epoll set, and eventfds that wake it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{check, check_len};
use crate::device::{Happened, Interest, Side};

/// The kernel's flags.
fn flags(interest: Interest) -> u32 {
    let flags = match interest {
        Interest::Input => libc::EPOLLIN,
        Interest::NewInput => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET,
        Interest::NewInputAndOutput => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET | libc::EPOLLOUT,
    };
    flags as u32
}

/// Something happened at a descriptor that was added with this token.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Event(libc::epoll_event);

impl Event {
    /// Room for so many events.
    pub(crate) fn buffer(count: usize) -> Vec<Event> {
        vec![Event(libc::epoll_event { events: 0, u64: 0 }); count]
    }

    /// The token that the descriptor was added with.
    #[inline]
    pub(crate) fn token(&self) -> u64 {
        self.0.u64
    }

    /// The descriptor's events.
    #[inline]
    pub(crate) fn happened(&self) -> Happened {
        let flags = self.0.events;
        let has = |flag: i32| flags & flag as u32 != 0;
        Happened {
            input: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            room: has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR),
            hung_up: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
        }
    }
}

/// A set of watched descriptors.
#[derive(Debug)]
pub(crate) struct Poll(OwnedFd);

impl Poll {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Poll> {
        // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
        Ok(Poll(unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) }))
    }

    /// Watches a descriptor; its events carry `token`.
    pub(crate) fn add(&self, fd: RawFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, flags(interest), token)
    }

    /// Watches a descriptor of the set for something else.
    pub(crate) fn change(&self, fd: RawFd, interest: Interest, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, flags(interest), token)
    }

    /// Watches a descriptor no longer.
    pub(crate) fn remove(&self, fd: RawFd) {
        // Failing means it is not in the set: then there is nothing to do.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` is valid for the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &mut event) })?;
        Ok(())
    }

    /// Waits for events, for at most so many milliseconds (`None`: without limit), and puts them
    /// into the buffer. Returns their number.
    pub(crate) fn wait(&self, events: &mut [Event], timeout: Option<i32>) -> usize {
        let (room, timeout) = (events.len() as i32, timeout.unwrap_or(-1));
        // SAFETY: the kernel writes at most as many events as the buffer has room for.
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr().cast(), room, timeout) };
        // EINTR is the only possible failure: the caller comes again.
        check_len(count as isize).unwrap_or(0)
    }
}

/// A new eventfd, non-blocking.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))?)) }
}

/// Adds one to an eventfd, which wakes a thread that polls it.
pub(crate) fn signal(event: &OwnedFd) {
    let one = 1u64;
    // SAFETY: eight readable bytes. A full counter (the only failure) means it is signalled
    // already.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Takes what was added to an eventfd.
pub(crate) fn drain(event: RawFd) {
    let mut count = 0u64;
    // SAFETY: eight writable bytes. EAGAIN (somebody else read it) is as good.
    unsafe { libc::read(event, (&raw mut count).cast(), 8) };
}

/// Waits until one of these descriptors has input or room, for at most so many milliseconds (-1:
/// without limit); which of them have. An error or a signal looks like none.
pub(crate) fn wait_for(fds: &[(RawFd, Side)], limit: i32) -> Vec<bool> {
    let events = |side| match side {
        Side::Input => libc::POLLIN,
        Side::Room => libc::POLLOUT,
    };
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|&(fd, side)| libc::pollfd { fd, events: events(side), revents: 0 }).collect();
    // SAFETY: the array is valid for its length throughout the call.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit) };
    polled.iter().map(|polled| polled.revents != 0).collect()
}
