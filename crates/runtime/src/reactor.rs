//! The core's epoll set: its sessions, its listeners, its mailbox's eventfd and its disk ring's.
//!
//! Sessions are edge-triggered: an event only marks the session, which is read until the kernel has no more. Listeners
//! are level-triggered.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::os::{check, check_len};
use crate::worker::Worker;

/// Events taken from the kernel at once.
const BATCH: usize = 512;
const MAILBOX: u64 = u64::MAX;
const DISK: u64 = u64::MAX - 1;
/// Tokens with this bit are listeners'; the two above are told apart first.
pub(crate) const LISTENER: u64 = 1 << 63;

pub(crate) struct Reactor {
    epoll: OwnedFd,
    mailbox: RawFd,
    events: RefCell<Vec<libc::epoll_event>>,
}

/// What a session is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    Input,
    InputAndOutput,
}

impl Watch {
    fn events(self) -> u32 {
        let output = if self == Watch::InputAndOutput { libc::EPOLLOUT } else { 0 };
        (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET | output) as u32
    }
}

impl Reactor {
    /// A set with the mailbox's event in it, which must live as long as the reactor polls.
    pub(crate) fn new(mailbox: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        let none = libc::epoll_event { events: 0, u64: 0 };
        let reactor = Self { epoll, mailbox: mailbox.as_raw_fd(), events: RefCell::new(vec![none; BATCH]) };
        reactor.control(libc::EPOLL_CTL_ADD, mailbox.as_raw_fd(), libc::EPOLLIN as u32, MAILBOX)?;
        Ok(reactor)
    }

    /// Watches the disk ring's eventfd: edge-triggered, so that it needs no reading.
    pub(crate) fn watch_disk(&self, event: BorrowedFd<'_>) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        self.control(libc::EPOLL_CTL_ADD, event.as_raw_fd(), events, DISK)
    }

    pub(crate) fn add_session(&self, socket: RawFd, key: u64) -> io::Result<()> {
        debug_assert!(key < LISTENER);
        self.control(libc::EPOLL_CTL_ADD, socket, Watch::Input.events(), key)
    }

    pub(crate) fn watch_session(&self, socket: RawFd, key: u64, watch: Watch) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, watch.events(), key)
    }

    pub(crate) fn add_listener(&self, socket: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, libc::EPOLLIN as u32, token | LISTENER)
    }

    pub(crate) fn remove(&self, socket: RawFd) {
        // Failing means it is not in the set: then there is nothing to do.
        let _ = self.control(libc::EPOLL_CTL_DEL, socket, 0, 0);
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` is valid for the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) })?;
        Ok(())
    }

    /// Takes events and passes them on; whether there were any. `None` waits without limit.
    pub(crate) fn poll(&self, worker: &Worker, timeout: Option<i32>) -> bool {
        let mut events = self.events.borrow_mut();
        // SAFETY: the buffer has room for `BATCH` events, and the kernel writes at most that many.
        let count = check_len(unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), BATCH as i32, timeout.unwrap_or(-1))
        } as isize)
        .unwrap_or(0); // EINTR, the only possible failure: the loop comes again
        for event in &events[..count] {
            let (flags, token) = (event.events, event.u64);
            match token {
                MAILBOX => self.empty_mailbox_event(),
                DISK => {}
                token if token & LISTENER != 0 => worker.net.accept(worker, token & !LISTENER),
                key => worker.net.event(worker, key, flags),
            }
        }
        drop(events);
        worker.disk.complete(worker);
        count > 0
    }

    fn empty_mailbox_event(&self) {
        let mut count = 0u64;
        // SAFETY: eight writable bytes. EAGAIN (somebody else read it) is as good.
        unsafe { libc::read(self.mailbox, (&raw mut count).cast(), 8) };
    }
}
