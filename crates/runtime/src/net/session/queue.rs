//! Replies that the kernel holds because their clients have not read them.
//!
//! They lie in the memory of the server's control group, and for a Unix socket they stay there when
//! the server closes it. What must hold:
//!
//! 1. The session reads its queue's length after every [`LOOKED`] bytes sent, when its socket is
//!    full, and when it is closed. If the queue was not empty, it reads it again each second. The
//!    bytes found count for the process, and as memory that the session would give back.
//! 2. A session that is closed with more than [`LEFT`] in its queue stays, without its handler,
//!    until its client has read or has closed. So there are no more such queues than connections
//!    may be.
//! 3. A Unix socket's queue begins short and gets longer once its client has read a full queue, as
//!    TCP's do by themselves. All queues together may take 1/[`SHARE`] of the memory. Beyond that,
//!    the queues of new sessions, and those read again, become as short as the kernel allows.

use std::cell::Cell;
use std::time::Duration;

use sync::CachePadded;
use sync::atomic::{AtomicI64, Ordering};

use super::Session;
use crate::account;
use crate::net::{self, Net, Peer};
use crate::os;
use crate::timer;

/// Bytes sent from one look to the next.
const LOOKED: usize = 16 << 10;
/// Bytes that are left to the kernel when a session is closed: its last words.
const LEFT: usize = 4 << 10;
/// From one look at all queues that were not empty to the next.
const BETWEEN: Duration = Duration::from_secs(1);
/// A share of the limit of all sessions together that queues may take before they become short.
const SHARE: i64 = 16;
/// Lengths of queues to ask the kernel for, in bytes. They are a Unix socket's first one, the one
/// after a client has read a full queue, and the least. A queue full of a long reply holds 90, 228
/// and 9 KiB (measured on Linux 6.18).
pub(in crate::net) const FIRST: i32 = 32 << 10;
const THEN: i32 = 104 << 10;
const LEAST: i32 = 2 << 10;

/// Bytes in all queues. Padded: any core writes it, and the linker puts other statics next to it.
static UNREAD: CachePadded<AtomicI64> = CachePadded::new(AtomicI64::new(0));

/// The state of one session's queue.
#[derive(Default)]
pub(in crate::net) struct Queue {
    /// Bytes found at the last look.
    found: Cell<usize>,
    /// Bytes sent since.
    sent: Cell<usize>,
    /// The length that was set last; none where it is as the session found it.
    length: Cell<Option<i32>>,
    /// The client has read what filled the socket.
    is_read: Cell<bool>,
    /// It is among those that are looked at each second.
    is_listed: Cell<bool>,
}

impl Queue {
    /// The state that another core needs. It looks at the bytes itself.
    pub(in crate::net) fn to_move(&self) -> Queue {
        Queue { length: self.length.clone(), is_read: self.is_read.clone(), ..Queue::default() }
    }
}

impl Session {
    /// Notes that so many bytes were sent.
    #[inline]
    pub(in crate::net) fn note_sent(&self, net: &Net, bytes: usize) {
        let sent = self.queue.sent.get() + bytes;
        self.queue.sent.set(sent);
        if sent >= LOOKED {
            self.look_at_queue(net);
        }
    }

    /// Counts what is in the queue, and gives it the length that it may have.
    #[cold]
    pub(in crate::net) fn look_at_queue(&self, net: &Net) {
        self.queue.sent.set(0);
        self.set_queue(os::socket::unread(self.socket(), matches!(self.peer, Peer::Tcp(_))));
        if self.queue.found.get() > 0 && !self.queue.is_listed.replace(true) {
            net.list_queue(self.key);
        }
        self.fit_queue();
    }

    /// The client has read what filled the socket.
    pub(in crate::net) fn queue_is_read(&self) {
        self.set_queue(0);
        self.queue.is_read.set(true);
        self.fit_queue();
    }

    /// Whether to wait for the client: it is connected and has left much of the replies unread.
    pub(in crate::net) fn is_unread(&self, net: &Net) -> bool {
        self.look_at_queue(net);
        self.queue.found.get() > LEFT
    }

    /// Counts no queue any more: the socket is another session's, or is closed.
    pub(in crate::net) fn leave_queue(&self) {
        self.set_queue(0);
    }

    fn set_queue(&self, bytes: usize) {
        let before = self.queue.found.replace(bytes);
        if bytes == before {
            return;
        }
        account::charged_to_nobody(|| {
            account::keep(bytes);
            account::keep_no_more(before);
        });
        self.interrupt.set_unread(bytes as i64);
        // Relaxed: a sum, which orders nothing.
        UNREAD.fetch_add(bytes as i64 - before as i64, Ordering::Relaxed);
    }

    /// Gives the queue the length that it may have.
    pub(in crate::net) fn fit_queue(&self) {
        // Relaxed: as above.
        let length = if UNREAD.load(Ordering::Relaxed) > account::limit() / SHARE {
            LEAST
        } else if self.queue.is_read.get() && matches!(self.peer, Peer::Unix { .. })
            || self.queue.length.get() == Some(LEAST)
        {
            THEN
        } else {
            return;
        };
        if self.queue.length.replace(Some(length)) != Some(length) {
            os::socket::set_queue(self.socket(), length);
        }
    }
}

impl Net {
    /// Has a session's queue looked at each second.
    fn list_queue(&self, key: u64) {
        let mut queues = self.queues.borrow_mut();
        if queues.is_empty() {
            timer::after(BETWEEN, || net::here().look_at_queues());
        }
        queues.push(key);
    }

    fn look_at_queues(&self) {
        for key in self.queues.take() {
            let Some(session) = self.find(key) else { continue };
            session.queue.is_listed.set(false);
            session.look_at_queue(self);
            if session.is_closed.get() {
                self.make_ready(&session);
            }
        }
    }
}
