//! One connection's state on its core.

mod queue;
mod wake;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::arrivals::Arrival;
use super::{Net, Peer, Serve};
use crate::account;
use crate::device::Happened;
use crate::fiber::Fiber;
use crate::interrupt::Interrupt;
use crate::os::{self, Descriptor, Fd};
use crate::reactor::Watch;
use crate::time;
pub(super) use queue::FIRST as FIRST_QUEUE;
use queue::Queue;

/// The most bytes of one receive. A call with more room would go on for as long as the peer sends.
const RECEIVED_AT_ONCE: usize = 256 * 1024;
/// Input after a connection's last message is dropped in pieces of this many bytes. At most
/// [`DROPPED_TURNS`] pieces are dropped at once. A client that sends more is cut off.
const DROPPED_AT_ONCE: usize = 16 * 1024;
const DROPPED_TURNS: usize = 64;

/// A session; touched by its core's thread alone, so its fields are plain cells.
pub(super) struct Session {
    socket: Descriptor,
    /// Slot and generation, the token of its events.
    pub(super) key: u64,
    pub(super) peer: Peer,
    pub(super) interrupt: Arc<Interrupt>,
    /// Taken while it is served, and for good once it is closed.
    pub(super) handler: Cell<Option<Box<dyn Serve>>>,
    /// The socket may have bytes.
    pub(super) readable: Cell<bool>,
    /// The peer has closed or the connection is broken: reading will find the end.
    pub(super) hung_up: Cell<bool>,
    /// The end was read.
    pub(super) at_end: Cell<bool>,
    /// The connection failed: nothing more can be sent.
    pub(super) dead: Cell<bool>,
    /// When it is closed, its client is given time to read the last words.
    pub(super) lingers: Cell<bool>,
    /// It has said that nothing follows.
    said_end: Cell<bool>,
    /// To be served although no bytes have come.
    pub(super) woken: Cell<bool>,
    /// Bytes that were received for it before its turn.
    pub(super) arrived: Cell<Option<Arrival>>,
    /// A reply of it is collected and not sent.
    pub(super) replied: Cell<bool>,
    /// In the ready list.
    pub(super) queued: Cell<bool>,
    /// A fiber serves it.
    pub(super) busy: Cell<bool>,
    /// A message whose rest has not come yet.
    pub(super) partial: Cell<Vec<u8>>,
    /// Replies the socket has not taken yet; while there are any, the session is not served.
    pub(super) unsent: RefCell<Vec<u8>>,
    /// Replies that the kernel holds.
    pub(super) queue: Queue,
    /// When it came to this core, if it came from another one.
    pub(super) came: Cell<Option<u64>>,
    /// The handler has let go for good.
    pub(super) is_closed: Cell<bool>,
    /// The fiber that serves it and waits for the socket.
    pub(super) waiter: Cell<Option<Arc<Fiber>>>,
    /// The rest that its handler left behind. Dropped behind the socket, since it comes behind it
    /// here.
    pub(super) remains: Cell<Option<Box<dyn Send>>>,
}

/// A connection on its way to a worker.
pub(super) struct Moved {
    socket: Descriptor,
    peer: Peer,
    pub(super) handler: Box<dyn Serve>,
    /// Bytes that its client has sent and nobody has read.
    partial: Vec<u8>,
    /// Replies that its socket has not taken.
    unsent: Vec<u8>,
    queue: Queue,
    /// Its interrupt, if it comes from a core.
    pub(super) interrupt: Option<Arc<Interrupt>>,
}

impl Moved {
    /// A connection of which nothing has been read.
    pub(super) fn new(socket: Descriptor, peer: Peer, handler: Box<dyn Serve>) -> Self {
        let (partial, unsent, queue) = (Vec::new(), Vec::new(), Queue::default());
        Self { socket, peer, handler, partial, unsent, queue, interrupt: None }
    }
}

impl Session {
    pub(super) fn new(net: &Net, key: u64, moved: Moved) -> Self {
        let Moved { socket, peer, handler, partial, unsent, queue, interrupt } = moved;
        let came = interrupt.as_ref().map(|_| time::now());
        let interrupt = interrupt.unwrap_or_else(Interrupt::new);
        interrupt.attach(net.core, wake::waker(net, key));
        Self {
            socket,
            key,
            peer,
            interrupt,
            handler: Cell::new(Some(handler)),
            readable: Cell::new(false),
            hung_up: Cell::new(false),
            at_end: Cell::new(false),
            dead: Cell::new(false),
            lingers: Cell::new(false),
            said_end: Cell::new(false),
            woken: Cell::new(false),
            arrived: Cell::new(None),
            replied: Cell::new(false),
            queued: Cell::new(false),
            busy: Cell::new(false),
            partial: Cell::new(partial),
            unsent: RefCell::new(unsent),
            queue,
            came: Cell::new(came),
            is_closed: Cell::new(false),
            waiter: Cell::new(None),
            remains: Cell::new(None),
        }
    }

    pub(super) fn socket(&self) -> Fd {
        os::id(&self.socket)
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.socket
    }

    pub(super) fn watch_first(&self, net: &Net) -> io::Result<()> {
        net.reactor.add_session(self.socket(), self.key)?;
        self.fit_queue();
        if !self.unsent.borrow().is_empty() {
            net.reactor.watch_session(self.socket(), self.key, Watch::InputAndOutput)?;
        }
        if !self.unsent.borrow().is_empty() || self.came.get().is_some() {
            self.look_at_queue(net);
        }
        Ok(())
    }

    /// The part of a session that moves to another worker. The socket is another descriptor of the
    /// same connection: this one may still be named by events on their way.
    pub(super) fn depart(&self, socket: Descriptor, handler: Box<dyn Serve>, partial: Vec<u8>) -> Moved {
        let (peer, unsent) = (self.peer.clone(), self.unsent.take());
        self.leave_queue();
        Moved { socket, peer, handler, partial, unsent, queue: self.queue.to_move(), interrupt: None }
    }

    /// Whether it waits for its client, all is sent and nothing ends it: nothing of it but its
    /// handler's state can live on this core.
    pub(super) fn may_move(&self) -> bool {
        let is_served = self.busy.get() || self.replied.get() || self.arrived.get().is_some();
        let ends = self.hung_up.get() || self.at_end.get() || self.dead.get() || self.is_closed.get();
        !is_served && !ends && self.unsent.borrow().is_empty() && !self.interrupt.is_pending()
    }

    /// Asks for the memory of its handler and interrupt.
    #[inline]
    pub(super) fn prefetch(&self) {
        sync::prefetch(&*self.interrupt);
        // SAFETY: the cell belongs to this thread, and nothing is taken out of it while the
        // reference lives.
        if let Some(handler) = unsafe { &*self.handler.as_ptr() } {
            sync::prefetch(&**handler);
        }
    }

    /// Lets the handler ask for what it will need.
    #[inline]
    pub(super) fn prefetch_handler(&self) {
        // SAFETY: as above; a handler's `prefetch` knows nothing of this session and can't take it
        // out.
        if let Some(handler) = unsafe { &*self.handler.as_ptr() } {
            handler.prefetch();
        }
    }

    /// Notes an event; whether the session is to be served.
    pub(super) fn event(self: &Rc<Self>, net: &Net, happened: Happened) -> bool {
        if happened.hung_up {
            self.hung_up.set(true);
        }
        if happened.input {
            self.readable.set(true);
        }
        if happened.room && !self.unsent.borrow().is_empty() {
            self.send_unsent(net);
        }
        if let Some(fiber) = self.waiter.take() {
            fiber.notify_on_core();
        }
        true
    }

    /// Sends as much of the leftover replies as the socket takes.
    pub(super) fn send_unsent(&self, net: &Net) {
        let mut unsent = self.unsent.borrow_mut();
        match send(self.socket(), &unsent) {
            Ok(sent) => drop(unsent.drain(..sent)),
            Err(_) => {
                self.dead.set(true);
                unsent.clear();
            }
        }
        if unsent.is_empty() {
            account::charged_to(&self.interrupt, || unsent.shrink_to(0));
            drop(unsent);
            self.watch(net, Watch::Input);
            self.queue_is_read();
        } else {
            drop(unsent);
            self.look_at_queue(net);
        }
    }

    /// Sends `bytes`, after what was left over before; the rest is left over.
    pub(super) fn send_or_keep(&self, net: &Net, bytes: &[u8]) {
        if self.dead.get() || bytes.is_empty() {
            return;
        }
        if !self.unsent.borrow().is_empty() {
            return self.keep(bytes);
        }
        self.sent(net, bytes, send(self.socket(), bytes));
    }

    /// The connection is over, and what was left over is dropped.
    pub(super) fn give_up_sending(&self) {
        self.dead.set(true);
        account::charged_to(&self.interrupt, || drop(self.unsent.take()));
    }

    /// Whether replies may be sent: nothing was left over, and there is somebody to send to.
    pub(super) fn takes_replies(&self) -> bool {
        !self.dead.get() && self.unsent.borrow().is_empty()
    }

    /// So much of `bytes` was sent, while nothing was left over before; the rest is left over.
    pub(super) fn sent(&self, net: &Net, bytes: &[u8], sent: io::Result<usize>) {
        match sent {
            Ok(sent) if sent == bytes.len() => return self.note_sent(net, sent),
            Ok(sent) => self.keep(&bytes[sent..]),
            Err(error) if is_transient(&error) => self.keep(bytes),
            Err(_) => return self.dead.set(true),
        }
        self.watch(net, Watch::InputAndOutput);
        self.look_at_queue(net);
    }

    /// Keeps what the socket does not take; it is the session's until it is sent.
    fn keep(&self, bytes: &[u8]) {
        let mut unsent = self.unsent.borrow_mut();
        account::charged_to(&self.interrupt, || unsent.extend_from_slice(bytes));
    }

    fn watch(&self, net: &Net, watch: Watch) {
        if net.reactor.watch_session(self.socket(), self.key, watch).is_err() {
            self.dead.set(true);
        }
    }

    /// Receives into the room `bytes` has, [`RECEIVED_AT_ONCE`] at most; `Ok(0)` is the peer's end,
    /// `WouldBlock` nothing for now.
    pub(super) fn receive(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let room = bytes.spare_capacity_mut();
        let asked = room.len().min(RECEIVED_AT_ONCE);
        let received = os::socket::receive(self.socket(), &mut room[..asked]);
        let received = self.received(asked, received)?;
        // SAFETY: the kernel has written that many bytes behind the old length.
        unsafe { bytes.set_len(bytes.len() + received) };
        Ok(received)
    }

    /// Says that nothing follows.
    pub(super) fn say_end(&self) {
        if !self.said_end.replace(true) {
            os::socket::end_output(self.socket());
        }
    }

    /// Ends the output, and drops input that the client still sends. Returns whether to wait for
    /// more input. A socket that is closed with unread input answers with a reset, and the client's
    /// kernel then drops the last reply.
    pub(super) fn lingers_on(&self) -> bool {
        if !self.lingers.get() || self.at_end.get() {
            return false;
        }
        self.say_end();
        let mut dropped = Vec::with_capacity(DROPPED_AT_ONCE);
        for _ in 0..DROPPED_TURNS {
            dropped.clear();
            match self.receive(&mut dropped) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return is_transient(&error),
            }
        }
        false
    }

    /// Ends the wait: the client has had the time to take the last reply and to close.
    pub(super) fn wait_no_more(&self) {
        self.lingers.set(false);
        account::charged_to(&self.interrupt, || drop(self.unsent.take()));
    }

    /// Notes what a receive of `asked` bytes says of the socket.
    pub(super) fn received(&self, asked: usize, result: io::Result<usize>) -> io::Result<usize> {
        let exhausted = match &result {
            // Less than asked for: the kernel has no more now, and will tell when it has. After a
            // hang-up it will not tell again, so the end is still to be read.
            Ok(received) => *received < asked && !self.hung_up.get(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if exhausted {
            self.readable.set(false);
        }
        result
    }

    /// Whether a receive before its turn helps: it will be served, and nothing came before.
    pub(super) fn is_receivable(&self) -> bool {
        self.readable.get() && self.takes_replies() && self.arrived.get().is_none()
    }

    /// Receives for the session's turn, or takes what was received before it; the end and errors
    /// are noted. Whether there is anything to serve.
    pub(super) fn receive_or_end(&self, net: &Net, to: &mut Vec<u8>) -> bool {
        let received = match self.arrived.take() {
            Some(arrival) => self.take_arrival(net, arrival, to),
            None => self.receive(to),
        };
        match received {
            Ok(0) => {
                self.at_end.set(true);
                self.readable.set(false);
            }
            Ok(_) => {}
            Err(error) if is_transient(&error) => return false,
            Err(_) => {
                self.dead.set(true);
                return false;
            }
        }
        true
    }

    /// Appends what came before its turn to `to`, as [`Session::receive`] does.
    fn take_arrival(&self, net: &Net, arrival: Arrival, to: &mut Vec<u8>) -> io::Result<usize> {
        let (received, is_full) = net.arrivals.take(arrival, to)?;
        // If this receive does not find further bytes or an error, the next call does.
        Ok(if is_full { received + self.receive(to).unwrap_or(0) } else { received })
    }

    /// Keeps what was received for a turn that can't be had now, until the next. False when the
    /// session is to be served nevertheless, since its connection has failed.
    pub(super) fn keep_arrival(&self, net: &Net) -> bool {
        if self.arrived.get().is_some() {
            let mut bytes = self.partial.take();
            if self.receive_or_end(net, &mut bytes) {
                self.woken.set(true);
            }
            self.partial.set(bytes);
        }
        !self.dead.get()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave_queue();
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sends as much as the socket takes; `Ok(0)` when it is full.
fn send(socket: Fd, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match os::socket::send(socket, &bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => break,
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(sent)
}
