//! Sockets: listeners, and sessions that own no fiber while they wait for their client.
//!
//! A core's readable sessions form a list. A pooled fiber serves one after the other and collects
//! their small replies (`round.rs`). The core sends the replies together before it receives for the
//! next sessions, or at the end of the loop's turn.
//!
//! When the fiber parks, the loop goes on with another fiber, which adds to the same replies. So
//! even if many sessions of a round wait for each other's locks, one call still sends the round.
//!
//! An idle connection costs its state alone, and a busy core runs all its sessions on one warm
//! stack. If the kernel grants a ring, one system call sends the replies and receives for the next
//! sessions (`batch.rs`). What must hold:
//!
//! 1. A session is served by one fiber at a time. Once it has entered a core it stays there, but
//!    for a move between two of its messages (`rehome.rs`).
//! 2. A session's replies leave in the order they were made. While its socket is full, the session
//!    is not served (backpressure).
//! 3. All collected replies are sent before the loop's turn ends, and before a fiber that has used
//!    up its time slice yields.
//! 4. `closed` is called exactly once for every session that was accepted, then its socket is
//!    closed, then what `remains` gave is dropped.

#[cfg(not(model))]
pub mod apart;
mod arrivals;
mod batch;
mod door;
mod listener;
mod rehome;
mod replies;
mod round;
mod session;

pub use door::{Door, Greet, Talk};
pub(crate) use listener::listen_at;
pub use listener::{Accept, Accepted, Address, Bound, Listener};
pub(crate) use rehome::Picked;
pub use round::SessionIo;
pub(crate) use round::serve_round;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use sync::atomic::Ordering;
use sync::core_local;

use crate::device::Happened;
use crate::here::Here;
use crate::interrupt::Reason;
use crate::mailbox;
use crate::os;
use crate::reactor::Reactor;
use crate::shared::Shared;
use arrivals::{Arrivals, MOST};
use batch::Batch;
use listener::Listening;
use replies::Replies;
use round::{BUFFER, Buffers};
use session::{Moved, Session};

/// The most replies collected: a reply that is sent much later has left the cache.
const REPLIES_MAX: usize = 2 * MOST;
/// Buffers that are kept for the next rounds.
const BUFFERS_KEPT: usize = 16;

core_local! {
    static NET: Here<Net> = const { Here::none() };
}

/// The sockets of the core whose thread this is. Panics elsewhere.
#[inline]
pub(crate) fn here() -> &'static Net {
    NET.with(Here::get).expect("this runs on a worker of the runtime only")
}

/// Sends the replies that were collected on this core.
pub(crate) fn send_replies() {
    here().send_replies();
}

/// A session's wish after it has served its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More bytes of its client.
    Wait,
    /// To be served on a core from now on, at once, because its client has been let in. One that is
    /// on a core is served there again.
    Enter,
    /// As `Enter`, on the reserve worker.
    EnterReserve,
    /// To end: what is in the output is sent as far as the socket takes it.
    Close,
}

/// One client's side of a connection, as a state machine that owns no fiber while it waits.
pub trait Serve: Send + 'static {
    /// Called on a pooled fiber of the session's worker when bytes have come or the session was
    /// woken or interrupted. Called too when the peer has closed ([`SessionIo::at_end`]). Handles
    /// every whole message in the input. May park.
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next;

    /// Whether it is to be served on the service worker until it returns [`Next::Enter`]: that
    /// worker lets clients in whatever the cores do. One that never returns it stays there.
    fn is_entering(&self) -> bool {
        false
    }

    /// Called shortly before `serve`, when `self` is in the cache: asks (`sync::prefetch`) for the
    /// memory beside it that `serve` will need. Between two turns of a session many others have had
    /// the cache.
    fn prefetch(&self) {}

    /// Between two messages of its client: whether it may move to another core. Then nothing of it
    /// lives on this one but timers that it can take back. Runs on the core's loop: it must not
    /// park.
    fn may_leave_core(&self) -> bool {
        false
    }

    /// It is about to move to another core, as it may: takes its timers back. Runs on the core's
    /// loop: it must not park.
    fn leave_core(&mut self) {}

    /// It has come to a core. `serve` follows, whether or not bytes have come. Runs on the core's
    /// loop: it must not park.
    fn enter_core(&mut self) {}

    /// The peer is gone, or [`Next::Close`] was returned, or `serve` panicked: releases what is
    /// held. Runs on a fiber; may park.
    fn closed(&mut self);

    /// Called after `closed`: what stays until the socket is closed, which may wait for the client
    /// to read. It is dropped behind the socket.
    fn remains(&mut self) -> Option<Box<dyn Send>> {
        None
    }
}

/// Where a client comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket, with the user the kernel vouches for.
    Unix {
        /// Effective user of the client's process.
        user: u32,
        /// Process of the client, where known.
        process: Option<i32>,
    },
}

impl Peer {
    /// Whether the kernel vouches that the client is root, or the user this process runs as.
    pub fn is_administrator(&self) -> bool {
        matches!(self, Peer::Unix { user, .. } if *user == 0 || *user == os::socket::user())
    }
}

/// The sockets of one core.
pub(crate) struct Net {
    core: usize,
    shared: Arc<Shared>,
    reactor: Rc<Reactor>,
    /// None: each send and receive is a system call.
    batch: Option<Batch>,
    arrivals: Arrivals,
    /// Buffers of rounds that are over.
    buffers: Cell<Option<Box<Buffers>>>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    /// Sessions to be served, in the order they became so.
    ready: RefCell<VecDeque<Rc<Session>>>,
    /// The number of them that this turn serves.
    due: Cell<usize>,
    /// The replies of this turn that are not sent yet.
    replies: RefCell<Replies>,
    listeners: RefCell<Vec<Option<Rc<Listening>>>>,
    /// Sessions whose queues were not empty, to be looked at again.
    queues: RefCell<Vec<u64>>,
    draining: Cell<bool>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    session: Option<Rc<Session>>,
}

impl Net {
    /// No sockets. With `batched` they share system calls where the kernel grants a ring.
    pub(crate) fn new(core: usize, shared: &Arc<Shared>, reactor: &Rc<Reactor>, batched: bool) -> Net {
        #[cfg(variants)]
        let batched = batched && !variants::chosen::is_stock(variants::chosen::Row::Socket);
        let batch = if batched { Batch::new() } else { None };
        Net {
            core,
            shared: Arc::clone(shared),
            reactor: Rc::clone(reactor),
            arrivals: Arrivals::new(batch.is_some()),
            buffers: Cell::new(None),
            batch,
            slots: RefCell::default(),
            free: RefCell::default(),
            ready: RefCell::default(),
            due: Cell::new(0),
            replies: RefCell::default(),
            listeners: RefCell::default(),
            queues: RefCell::default(),
            draining: Cell::new(false),
        }
    }

    /// This thread's sockets are these from now on, until [`Net::leave`].
    pub(crate) fn enter(&self) {
        NET.with(|net| net.enter(self));
    }

    /// The core's loop has ended.
    pub(crate) fn leave(&self) {
        NET.with(Here::leave);
    }

    /// Whether many sockets share a system call.
    pub(crate) fn is_batched(&self) -> bool {
        self.batch.is_some()
    }

    /// Takes over a connection placed on this worker.
    fn attach(&self, mut moved: Moved) {
        moved.handler.enter_core();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut slots = self.slots.borrow_mut();
            slots.push(Slot::default());
            u32::try_from(slots.len() - 1).expect("fewer sessions than memory")
        });
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[index as usize];
        let key = (u64::from(slot.generation) << 32) | u64::from(index);
        let session = Rc::new(Session::new(self, key, moved));
        slot.session = Some(session.clone());
        drop(slots);
        if session.watch_first(self).is_err() {
            // The kernel can't watch it (out of memory): to be closed at once.
            session.dead.set(true);
            self.make_ready(&session);
        } else if self.draining.get() {
            session.interrupt.raise(Reason::Shutdown);
        } else {
            // Served before its first byte, so that the handler can bound the wait for it.
            self.woken(key);
        }
    }

    /// Gives a session whose client has been let in to a core, or to the reserve worker.
    fn hand_over(&self, session: &Session, mut handler: Box<dyn Serve>, (partial, reserve): (Vec<u8>, bool)) {
        match os::socket::duplicate(session.descriptor()) {
            Ok(socket) => {
                let moved = session.depart(socket, handler, partial);
                self.detach(session);
                let core = self.shared.place(reserve);
                mailbox::send(self.shared.mailbox(core), move || here().attach(moved));
            }
            // No descriptor is left; the client sees its connection closed.
            Err(error) => {
                self.detach(session);
                log::warn!("a connection is closed since it cannot be handed to a core: {error}");
                handler.closed();
            }
        }
    }

    /// Forgets a session, closing its socket once nobody serves it.
    fn detach(&self, session: &Session) {
        let (index, generation) = (session.key as u32, (session.key >> 32) as u32);
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[index as usize];
        if slot.generation != generation {
            return;
        }
        let gone = slot.session.take();
        // Keys stay below the reactor's other tokens.
        slot.generation = (generation + 1) & 0x3fff_ffff;
        drop(slots);
        self.free.borrow_mut().push(index);
        self.reactor.remove(session.socket());
        drop(gone);
        // Relaxed: a count orders nothing else.
        self.shared.sessions.get(self.core).fetch_sub(1, Ordering::Relaxed);
    }

    fn find(&self, key: u64) -> Option<Rc<Session>> {
        let slots = self.slots.borrow();
        let slot = slots.get(key as u32 as usize)?;
        slot.session.as_ref().filter(|_| slot.generation == (key >> 32) as u32).cloned()
    }

    /// An event of a session's socket.
    pub(crate) fn event(&self, key: u64, happened: Happened) {
        if let Some(session) = self.find(key)
            && session.event(self, happened)
        {
            self.make_ready(&session);
        }
    }

    /// A session was woken from outside.
    fn woken(&self, key: u64) {
        if let Some(session) = self.find(key) {
            session.woken.set(true);
            self.make_ready(&session);
        }
    }

    fn make_ready(&self, session: &Rc<Session>) {
        // A session being served is looked at again when that ends.
        if !session.busy.get() && !session.queued.replace(true) {
            self.ready.borrow_mut().push_back(session.clone());
        }
    }

    /// The session to be served next. Once all sessions with received bytes are served, sends the
    /// replies so far and receives for the next sessions.
    fn next_ready(&self) -> Option<Rc<Session>> {
        if !self.has_due() {
            return None;
        }
        if let Some(batch) = self.batch.as_ref().filter(|_| self.arrivals.are_served())
            && self.ready.borrow().len() + self.replies.borrow().len() > 1
        {
            batch.exchange(self, &self.replies.borrow(), &self.ready.borrow());
            self.clear_replies(&mut self.replies.borrow_mut());
        }
        let session = self.ready.borrow_mut().pop_front()?;
        session.queued.set(false);
        self.due.set(self.due.get() - 1);
        Some(session)
    }

    /// Prefetches the memory of the next sessions while one is served. The first step fetches a
    /// session's own memory, the second what it points to, the third what its handler needs.
    fn prefetch_next(&self) {
        let ready = self.ready.borrow();
        if let Some(session) = ready.get(2) {
            sync::prefetch(&**session);
        }
        if let Some(session) = ready.get(1) {
            session.prefetch();
        }
        if let Some(session) = ready.front() {
            session.prefetch_handler();
        }
    }

    /// Sends the replies collected so far.
    pub(crate) fn send_replies(&self) {
        let mut replies = self.replies.borrow_mut();
        if !replies.is_empty() {
            self.send_all(&mut replies);
        }
    }

    /// Adds a small reply to those that are sent together.
    fn collect(&self, session: &Rc<Session>, reply: &[u8]) {
        let mut replies = self.replies.borrow_mut();
        // At most one reply of a session is collected at a time, which keeps their order.
        if session.replied.replace(true) {
            self.send_all(&mut replies);
            session.replied.set(true);
        }
        replies.push(session, reply);
        if replies.len() >= REPLIES_MAX || replies.bytes() >= BUFFER {
            self.send_all(&mut replies);
        }
    }

    /// Sends everything, without waiting: what a socket does not take is left with its session.
    fn send_all(&self, replies: &mut Replies) {
        #[cfg(variants)]
        if self.batch.is_none() {
            crate::replaced::sent_alone(replies.len());
        }
        match &self.batch {
            Some(batch) if replies.len() > 1 => batch.exchange(self, replies, &VecDeque::new()),
            _ => replies.iter().for_each(|(session, bytes)| session.send_or_keep(self, bytes)),
        }
        self.clear_replies(replies);
    }

    /// Forgets replies that have been sent.
    fn clear_replies(&self, replies: &mut Replies) {
        replies.clear(|session| {
            if session.dead.get() {
                self.make_ready(session);
            }
        });
    }

    /// Buffers for a round that begins.
    #[inline]
    fn take_buffers(&self) -> Box<Buffers> {
        let Some(mut kept) = self.buffers.take() else { return Box::new(Buffers::new()) };
        self.buffers.set(kept.next.take());
        kept
    }

    /// A round is over: the next one has its buffers.
    #[inline]
    fn keep_buffers(&self, mut buffers: Box<Buffers>) {
        let kept = self.buffers.take();
        buffers.kept = kept.as_ref().map_or(1, |kept| kept.kept + 1);
        if buffers.kept > BUFFERS_KEPT {
            return self.buffers.set(kept);
        }
        buffers.next = kept;
        self.buffers.set(Some(buffers));
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty()
    }

    /// Fixes the sessions of this turn: those that are ready now. Returns their number. A session
    /// that is ready again before the turn's end waits for the next turn. So a client that sends
    /// faster than it is served does not keep the loop from its other work.
    pub(crate) fn begin_serving(&self) -> usize {
        let due = self.ready.borrow().len();
        self.due.set(due);
        due
    }

    /// Whether any are left to be served in this turn.
    pub(crate) fn has_due(&self) -> bool {
        self.due.get() > 0
    }

    /// A listener has connections.
    pub(crate) fn accept(&self, token: u64) {
        let listening = self.listeners.borrow().get(token as usize).cloned().flatten();
        if let Some(listening) = listening {
            listening.accept_all(self, token);
        }
    }

    /// Stops listening and tells every session to end.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        for listening in self.listeners.borrow_mut().drain(..).flatten() {
            self.reactor.remove(listening.socket());
        }
        let sessions: Vec<_> = self.slots.borrow().iter().filter_map(|slot| slot.session.clone()).collect();
        sessions.iter().for_each(|session| session.interrupt.raise(Reason::Shutdown));
    }

    /// At the worker's end: closes what is left.
    pub(crate) fn close_all(&self) {
        self.listeners.borrow_mut().clear();
        self.ready.borrow_mut().clear();
        self.due.set(0);
        self.slots.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests;
