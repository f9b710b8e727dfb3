//! Listening: the service worker accepts connections. Sessions that let their client in stay there
//! until they ask to enter ([`Serve::is_entering`]); all others are placed on the core that has the
//! fewest.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // calls the system

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::Ordering;

use super::session::{FIRST_QUEUE, Moved};
use super::{Net, Peer, Serve};
use crate::fiber::core::{self, contain};
use crate::os::{check, set_option};
use crate::shared::Shared;
use crate::{call, mailbox, timer};

/// Connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// Connections accepted in one turn.
const ACCEPTED_PER_TURN: usize = 128;
/// How long accepting rests when descriptors or memory have run out, or there are too many
/// sessions.
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
    socket: OwnedFd,
    accept: Arc<Accept>,
    /// While there are so many sessions, connections wait in the kernel.
    most: usize,
}

/// An address that was taken: clients can connect, and wait to be accepted. Dropping it gives the
/// address up.
#[derive(Debug)]
pub struct Bound {
    /// None once a listener has it.
    socket: Option<OwnedFd>,
    /// With the port that was taken.
    address: Address,
}

impl Bound {
    /// Takes an address.
    pub fn new(address: Address) -> io::Result<Bound> {
        let (socket, address) = match address {
            Address::Tcp(at) => bind_tcp(at)?,
            Address::Unix { path, mode } => bind_unix(path, mode)?,
        };
        Ok(Bound { socket: Some(socket), address })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let (Some(_), Address::Unix { path, .. }) = (self.socket.take(), &self.address) {
            let _ = std::fs::remove_file(path);
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
        net.reactor.add_listener(socket.as_raw_fd(), token as u64)?;
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

fn bind_tcp(at: SocketAddr) -> io::Result<(OwnedFd, Address)> {
    let listener = TcpListener::bind(at)?; // sets SO_REUSEADDR
    listener.set_nonblocking(true)?;
    // SAFETY: a plain system call on our socket: listening again only changes the backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) })?;
    let address = Address::Tcp(listener.local_addr()?);
    Ok((listener.into(), address))
}

fn bind_unix(path: PathBuf, mode: u32) -> io::Result<(OwnedFd, Address)> {
    remove_stale(&path)?;
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, flags, 0))?) };
    // SAFETY: all zero is a value of this plain struct.
    let mut at: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    at.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    if name.len() >= at.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is too long for a Unix socket"));
    }
    at.sun_path.iter_mut().zip(name).for_each(|(to, &from)| *to = from as libc::c_char);
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `at` is readable for `len`.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const at).cast(), len) })?;
    // Nobody can connect before it listens, so nobody slips in before the permissions are right.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    // SAFETY: a plain system call on our socket.
    check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok((socket, Address::Unix { path, mode }))
}

/// Removes a socket that nobody listens at any more; anything else at the path is left alone.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
            _ => Err(io::ErrorKind::AddrInUse.into()),
        },
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
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
            // Failing means that somebody has removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listening {
    pub(super) fn socket(&self) -> RawFd {
        self.socket.as_raw_fd()
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
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        return self.rest(net, token);
                    }
                    _ => {} // that connection failed before it was accepted; others may be good
                },
            }
        }
    }

    /// Descriptors or memory have run out, or there are too many sessions: to be told of the same
    /// connection at once again would only burn the core.
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

    /// Asks who serves it; keeps it here to let its client in, or gives it to the core with the
    /// fewest sessions.
    fn place(&self, net: &Net, socket: OwnedFd, peer: Peer) {
        let shared = &net.shared;
        // Relaxed: a flag; a session that slips in is told to end when it is attached.
        if shared.draining.load(Ordering::Relaxed) {
            return;
        }
        let accepted = Accepted { peer, sessions: shared.session_count() };
        let mut handler = None;
        contain("accepting a connection", || handler = Some((self.accept)(&accepted)));
        let Some(handler) = handler else { return };
        let moved = Moved::new(socket, accepted.peer, handler);
        if moved.handler.is_entering() {
            // Relaxed: a count orders nothing else.
            shared.sessions.get(net.core).fetch_add(1, Ordering::Relaxed);
            net.attach(moved);
        } else {
            let core = shared.place(false);
            mailbox::send(shared.mailbox(core), move || super::here().attach(moved));
        }
    }
}

/// Takes a connection that waits at a listening socket.
pub(super) fn accept_one(listener: RawFd) -> io::Result<(OwnedFd, Peer)> {
    // SAFETY: all zero is a value of this plain struct.
    let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: `from` is writable for `len`; the descriptor given is owned by nobody else.
    let socket = unsafe {
        let fd = check(libc::accept4(listener, (&raw mut from).cast(), &mut len, flags))?;
        OwnedFd::from_raw_fd(fd)
    };
    let peer = match from.ss_family as i32 {
        libc::AF_UNIX => {
            set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, FIRST_QUEUE)?;
            unix_peer(&socket)?
        }
        _ => {
            set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
            set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
            Peer::Tcp(tcp_peer(&from).ok_or(io::ErrorKind::InvalidData)?)
        }
    };
    Ok((socket, peer))
}

fn unix_peer(socket: &OwnedFd) -> io::Result<Peer> {
    let mut about = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `about` is writable for `len`.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut about).cast(),
            &mut len,
        )
    })?;
    Ok(Peer::Unix { user: about.uid, process: (about.pid > 0).then_some(about.pid) })
}

fn tcp_peer(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match from.ss_family as i32 {
        libc::AF_INET => {
            // SAFETY: the family says which struct it is, and the storage is big and aligned enough
            // for each.
            let v4 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in>() };
            Some((u32::from_be(v4.sin_addr.s_addr).to_be_bytes(), u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in6>() };
            Some((v6.sin6_addr.s6_addr, u16::from_be(v6.sin6_port)).into())
        }
        _ => None,
    }
}
