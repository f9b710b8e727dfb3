//! The core's epoll set: its sessions, its listeners, its mailbox's eventfd and its disk ring's.
//!
//! Sessions are edge-triggered: an event only marks the session, which is read until the kernel has
//! no more. Listeners are level-triggered.

use std::cell::RefCell;
use std::io;

use crate::device::{Happened, Interest};
use crate::os::poll::{self, Event, Poll};
use crate::os::{self, Descriptor, Fd};

/// Events taken from the kernel at once.
const BATCH: usize = 512;
const MAILBOX: u64 = u64::MAX;
const DISK: u64 = u64::MAX - 1;
/// Tokens with this bit are listeners'; the reactor takes the two above first.
const LISTENER: u64 = 1 << 63;

pub(crate) struct Reactor {
    poll: Poll,
    mailbox: Fd,
    events: RefCell<Vec<Event>>,
}

/// A socket that has an event.
pub(crate) enum Ready {
    /// A listener, by its token.
    Listener(u64),
    /// A session, by its key, and its events.
    Session(u64, Happened),
}

/// The events for which a session is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    Input,
    InputAndOutput,
}

impl Watch {
    fn interest(self) -> Interest {
        match self {
            Watch::Input => Interest::NewInput,
            Watch::InputAndOutput => Interest::NewInputAndOutput,
        }
    }
}

impl Reactor {
    /// A set with the mailbox's event in it, which must live as long as the reactor polls.
    pub(crate) fn new(mailbox: &Descriptor) -> io::Result<Self> {
        let events = RefCell::new(Event::buffer(BATCH));
        let reactor = Self { poll: Poll::new()?, mailbox: os::id(mailbox), events };
        reactor.poll.add(os::id(mailbox), Interest::Input, MAILBOX)?;
        Ok(reactor)
    }

    /// Watches the disk ring's eventfd: edge-triggered, so that it needs no reading.
    pub(crate) fn watch_disk(&self, event: Fd) -> io::Result<()> {
        self.poll.add(event, Interest::NewInput, DISK)
    }

    pub(crate) fn add_session(&self, socket: Fd, key: u64) -> io::Result<()> {
        debug_assert!(key < LISTENER);
        self.poll.add(socket, Watch::Input.interest(), key)
    }

    pub(crate) fn watch_session(&self, socket: Fd, key: u64, watch: Watch) -> io::Result<()> {
        self.poll.change(socket, watch.interest(), key)
    }

    pub(crate) fn add_listener(&self, socket: Fd, token: u64) -> io::Result<()> {
        self.poll.add(socket, Interest::Input, token | LISTENER)
    }

    pub(crate) fn remove(&self, socket: Fd) {
        self.poll.remove(socket);
    }

    /// Takes events and passes on those of sockets; returns the number of all. `None` waits without
    /// limit, else so many milliseconds.
    pub(crate) fn poll(&self, timeout: Option<i32>, mut pass_on: impl FnMut(Ready)) -> usize {
        let mut events = self.events.borrow_mut();
        let count = self.poll.wait(&mut events, timeout);
        for event in &events[..count] {
            match event.token() {
                MAILBOX => poll::drain(self.mailbox),
                DISK => {}
                token if token & LISTENER != 0 => pass_on(Ready::Listener(token & !LISTENER)),
                key => pass_on(Ready::Session(key, event.happened())),
            }
        }
        count
    }
}
