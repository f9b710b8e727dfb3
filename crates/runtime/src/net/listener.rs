//! Listening: the service worker accepts connections. Sessions that let their client in stay there
//! until they ask to enter ([`Serve::is_entering`]). All others are placed on a core at once;
//! `load.rs` says on which.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;

use super::session::{FIRST_QUEUE, Moved};
use super::{Net, Peer, Serve};
use crate::device::Origin;
use crate::fiber::core::{self, contain};
use crate::os::socket;
use crate::os::{self, Descriptor, Fd};
use crate::shared::Shared;
use crate::{call, mailbox, timer};

/// Connections accepted in one turn.
const ACCEPTED_PER_TURN: usize = 128;
/// The pause in accepting when descriptors or memory have run out, or there are too many sessions.
const REST: Duration = Duration::from_millis(50);

/// Where to listen.
#[derive(Debug, Clone)]
pub enum Address {
    /// A TCP address; port 0 takes any.
    Tcp(SocketAddr),
    /// A Unix socket with these permissions; a stale socket at the path is removed.
    Unix {
        /// Where the socket is made.
        path: PathBuf,
        /// Its permission bits, as 0o777.
        mode: u32,
    },
}

impl std::fmt::Display for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(out),
            Address::Unix { path, .. } => path.display().fmt(out),
        }
    }
}

/// A connection that has just been accepted.
#[derive(Debug)]
pub struct Accepted {
    /// Where it comes from.
    pub peer: Peer,
    /// Sessions open on all cores, without this one.
    pub sessions: usize,
}

/// Makes the session of an accepted connection. Runs on a worker's loop: it must not park.
pub type Accept = dyn Fn(&Accepted) -> Box<dyn Serve> + Send + Sync;

/// A place being listened at; closed when dropped.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    address: Address,
    token: u64,
}

/// A listener on the service worker.
pub(super) struct Listening {
    socket: Descriptor,
    accept: Arc<Accept>,
    /// While there are so many sessions, connections wait in the kernel.
    most: usize,
}

/// An address that was taken: clients can connect, and wait to be accepted. Dropping it gives the
/// address up.
#[derive(Debug)]
pub struct Bound {
    /// None once a listener has it.
    socket: Option<Descriptor>,
    /// With the port that was taken.
    address: Address,
}

impl Bound {
    /// Takes an address.
    pub fn new(address: Address) -> io::Result<Bound> {
        let (socket, address) = match address {
            Address::Tcp(at) => {
                let (socket, at) = socket::listen_tcp(at)?;
                (socket, Address::Tcp(at))
            }
            Address::Unix { path, mode } => (socket::listen_unix(&path, mode)?, Address::Unix { path, mode }),
        };
        Ok(Bound { socket: Some(socket), address })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn descriptor(&self) -> Fd {
        self.socket.as_ref().map_or(-1, os::id)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let (Some(_), Address::Unix { path, .. }) = (self.socket.take(), &self.address) {
            socket::remove(path);
        }
    }
}

/// Listens at an address, until the listener is dropped or the runtime drains. While the runtime
/// has `most` sessions, further connections are not accepted yet.
pub(crate) fn listen_at(
    shared: &Arc<Shared>,
    mut place: Bound,
    most: usize,
    accept: Arc<Accept>,
) -> io::Result<Listener> {
    let address = place.address.clone();
    let Some(socket) = place.socket.take() else { return Err(io::ErrorKind::NotConnected.into()) };
    let token = call::run(shared.mailbox(shared.service()), move || {
        let net = super::here();
        let mut listeners = net.listeners.borrow_mut();
        let token = listeners.iter().position(Option::is_none).unwrap_or(listeners.len());
        net.reactor.add_listener(os::id(&socket), token as u64)?;
        let listening = Some(Rc::new(Listening { socket, accept, most }));
        match listeners.get_mut(token) {
            Some(slot) => *slot = listening,
            None => listeners.push(listening),
        }
        io::Result::Ok(token as u64)
    });
    let token = token.expect("the runtime has not been shut down")?;
    Ok(Listener { shared: Arc::clone(shared), address, token })
}

impl Listener {
    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let token = self.token;
        let remove = move || {
            let net = super::here();
            let listening = net.listeners.borrow_mut().get_mut(token as usize).and_then(Option::take);
            if let Some(listening) = listening {
                net.reactor.remove(listening.socket());
            }
        };
        // Relaxed: a flag set long before; a runtime that exits closes its listeners itself.
        if !self.shared.draining.load(Ordering::Relaxed) {
            match core::current() {
                // A thread waits, so that the address is free afterwards; a worker must not wait in
                // a drop.
                None => {
                    // A worker that has ended has closed its listeners.
                    let _ = call::run(self.shared.mailbox(self.shared.service()), remove);
                }
                Some(_) => {
                    mailbox::send(self.shared.mailbox(self.shared.service()), remove);
                }
            }
        }
        if let Address::Unix { path, .. } = &self.address {
            socket::remove(path);
        }
    }
}

impl Listening {
    pub(super) fn socket(&self) -> Fd {
        os::id(&self.socket)
    }

    /// Accepts what waits, up to a bound (the listener is level-triggered: the rest comes next
    /// turn).
    pub(super) fn accept_all(self: &Rc<Self>, net: &Net, token: u64) {
        for _ in 0..ACCEPTED_PER_TURN {
            if net.shared.session_count() >= self.most {
                return self.rest(net, token);
            }
            match accept_one(self.socket()) {
                Ok((socket, peer)) => self.place(net, socket, peer),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    _ if socket::is_exhausted(&error) => return self.rest(net, token),
                    _ => {} // that connection failed before it was accepted; others may be good
                },
            }
        }
    }

    /// Rests after descriptors or memory have run out, or while there are too many sessions.
    /// Without a pause, the loop would find the same connection again at once and only burn the
    /// core.
    fn rest(self: &Rc<Self>, net: &Net, token: u64) {
        net.reactor.remove(self.socket());
        let listening = self.clone();
        timer::after(REST, move || {
            let net = super::here();
            let listens = matches!(net.listeners.borrow().get(token as usize),
                Some(Some(present)) if Rc::ptr_eq(present, &listening));
            if listens && net.reactor.add_listener(listening.socket(), token).is_err() {
                listening.rest(net, token);
            }
        });
    }

    /// Asks who serves it; keeps it here to let its client in, or gives it to a core.
    fn place(&self, net: &Net, socket: Descriptor, peer: Peer) {
        let shared = &net.shared;
        // Relaxed: a flag; a session that slips in ends when it is attached.
        if shared.draining.load(Ordering::Relaxed) {
            return;
        }
        let accepted = Accepted { peer, sessions: shared.session_count() };
        let mut handler = None;
        contain("accepting a connection", || handler = Some((self.accept)(&accepted)));
        let Some(handler) = handler else { return };
        let moved = Moved::new(socket, accepted.peer, handler);
        if moved.handler.is_entering() {
            shared.note_came(net.core);
            net.attach(moved);
        } else {
            let core = shared.place(false);
            mailbox::send(shared.mailbox(core), move || super::here().attach(moved));
        }
    }
}

/// Takes a connection that waits at a listening socket.
pub(super) fn accept_one(listener: Fd) -> io::Result<(Descriptor, Peer)> {
    let (socket, origin) = socket::accept(listener, FIRST_QUEUE)?;
    let peer = match origin {
        Origin::Tcp(address) => Peer::Tcp(address),
        Origin::Unix { user, process } => Peer::Unix { user, process },
    };
    Ok((socket, peer))
}
