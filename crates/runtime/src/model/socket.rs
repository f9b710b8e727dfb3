//! Sockets in memory: connections between virtual threads.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use super::events::{Event, digest};
use super::machine::here;
use super::pipe::{CALL, End, Pending};
use super::table::{self, Descriptor, Open};
use super::{Fd, changes, id};
use crate::device::Origin;

fn end(socket: Fd) -> io::Result<Rc<End>> {
    match table::get(socket) {
        Some(Open::Socket(end)) => Ok(end),
        _ => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Whether something can be taken from a socket, a listener or an event.
pub(super) fn has_input(fd: Fd) -> bool {
    match table::get(fd) {
        Some(Open::Socket(end)) => end.has_input(),
        Some(Open::Listener(pending)) => !pending.queue.borrow().is_empty(),
        Some(Open::Event(count)) => count > 0,
        _ => false,
    }
}

/// Whether a socket takes something.
pub(super) fn has_room(fd: Fd) -> bool {
    matches!(table::get(fd), Some(Open::Socket(end)) if end.has_room())
}

thread_local! {
    /// The places at which somebody listens.
    static LISTENERS: RefCell<Vec<std::rc::Weak<Pending>>> = const { RefCell::new(Vec::new()) };
}

fn listener(address: &str) -> Option<Rc<Pending>> {
    LISTENERS.with_borrow(|listeners| {
        listeners.iter().filter_map(std::rc::Weak::upgrade).find(|pending| pending.address == address)
    })
}

fn listen(address: String, is_tcp: bool) -> io::Result<Descriptor> {
    if listener(&address).is_some() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    here().note(Event::Listen, &[digest(address.as_bytes())]);
    let pending = Rc::new(Pending { address, is_tcp, queue: RefCell::default(), made: Cell::new(0) });
    LISTENERS.with_borrow_mut(|listeners| listeners.push(Rc::downgrade(&pending)));
    Ok(Descriptor::new(Open::Listener(pending)))
}

/// Listens at a TCP address; port 0 takes port 1.
pub(crate) fn listen_tcp(mut at: SocketAddr) -> io::Result<(Descriptor, SocketAddr)> {
    at.set_port(at.port().max(1));
    listen(at.to_string(), true).map(|socket| (socket, at))
}

/// Listens at a Unix socket.
pub(crate) fn listen_unix(path: &Path, _: u32) -> io::Result<Descriptor> {
    listen(path.display().to_string(), false)
}

/// Removes the name of a Unix socket: it goes with its listener.
pub(crate) fn remove(_: &Path) {}

/// Takes a connection that waits at a listening socket.
pub(crate) fn accept(listener: Fd, _: i32) -> io::Result<(Descriptor, Origin)> {
    here().spend(CALL);
    let Some(Open::Listener(pending)) = table::get(listener) else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let end = pending.queue.borrow_mut().pop_front().ok_or(io::ErrorKind::WouldBlock)?;
    let origin = match pending.is_tcp {
        true => Origin::Tcp(SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 1))),
        false => Origin::Unix { user: 0, process: None },
    };
    let socket = Descriptor::new(Open::Socket(end));
    here().note(Event::Accept, &[listener as u64, id(&socket) as u64]);
    Ok((socket, origin))
}

/// Whether accepting failed because descriptors or memory have run out: they never do.
pub(crate) fn is_exhausted(_: &io::Error) -> bool {
    false
}

/// The user this process runs as.
pub(crate) fn user() -> u32 {
    0
}

/// Another descriptor of the same connection.
pub(crate) fn duplicate(socket: &Descriptor) -> io::Result<Descriptor> {
    Ok(Descriptor::new(Open::Socket(end(id(socket))?)))
}

/// Sends as much as the socket takes at once; `WouldBlock` when it is full.
pub(crate) fn send(socket: Fd, bytes: &[u8]) -> io::Result<usize> {
    end(socket)?.send(bytes)
}

/// Receives what is there; `Ok(0)` is the peer's end, `WouldBlock` nothing for now.
pub(crate) fn receive(socket: Fd, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    end(socket)?.receive(room)
}

/// Says that nothing follows.
pub(crate) fn end_output(socket: Fd) {
    if let Ok(end) = end(socket) {
        end.end_output();
    }
}

/// Asks for a length of the send queue: it has always the same.
pub(crate) fn set_queue(_: Fd, _: i32) {}

/// Bytes that were sent and that the peer has not received.
pub(crate) fn unread(socket: Fd, _: bool) -> usize {
    end(socket).map_or(0, |end| end.unread())
}

/// A client's end of a connection; reads and writes let its virtual thread wait.
#[derive(Debug)]
pub struct Connection(Rc<End>);

impl Connection {
    /// Connects to the place at which a listener of the simulation listens.
    ///
    /// # Errors
    /// `ConnectionRefused` where nobody listens.
    pub fn open(address: &crate::net::Address) -> io::Result<Connection> {
        let pending = listener(&address.to_string()).ok_or(io::ErrorKind::ConnectionRefused)?;
        pending.made.set(pending.made.get() + 1);
        let (client, server) = End::pair(pending.made.get());
        here().note(Event::Connect, &[digest(pending.address.as_bytes()), pending.made.get()]);
        pending.queue.borrow_mut().push_back(server);
        changes::tell();
        Ok(Connection(client))
    }

    fn wait<R>(&self, mut step: impl FnMut(&End) -> io::Result<R>) -> io::Result<R> {
        loop {
            match step(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    changes::wait();
                    here().park_until(None);
                }
                done => return done,
            }
        }
    }
}

impl Read for Connection {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut room = vec![MaybeUninit::uninit(); to.len()];
        let count = self.wait(|end| end.receive(&mut room))?;
        // SAFETY: so many bytes were received.
        to.iter_mut().zip(&room[..count]).for_each(|(to, byte)| *to = unsafe { byte.assume_init() });
        Ok(count)
    }
}

impl Write for Connection {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.wait(|end| end.send(from))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
