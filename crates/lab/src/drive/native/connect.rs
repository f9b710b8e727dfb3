//! Sets connections up. An [`Attempt`] never waits: the load loop advances those of clients that
//! connect themselves. Before the round, [`connect`] begins many and ends them in turn, so that a
//! server that forks works on several.
//!
//! What must hold: all connections of a round exist before its first transaction. Otherwise the
//! round does not begin, and the error states how many there were and the obstacle.

use std::collections::VecDeque;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};

use crate::arm::Address;
use crate::drive::Live;
use crate::drive::wire::{Refusal, Wire};

/// Connections one thread has under way at a time. They keep a server that forks busy, and stay
/// below the usual length of a listener's queue.
const UNDER_WAY_MAX: usize = 64;
/// Longest wait for a server's next step.
pub(super) const STALL_MAX: Duration = Duration::from_secs(20);
/// Interval between two checks of the stop flag, in nanoseconds.
const LOOK: i64 = 50_000_000;
/// Pause before the next try, where a Unix socket's queue is full.
pub(super) const QUEUE_FULL: Duration = Duration::from_millis(2);
const INPUT: usize = 1 << 12;

/// The address where a server listens, its name resolved.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    address: SocketAddrAny,
}

impl Peer {
    /// Where a name has several addresses, the first one that accepts a connection counts.
    pub(super) fn resolve(address: &Address) -> Result<Self, String> {
        match address {
            Address::Tcp(host, port) => {
                let found = (host.as_str(), *port).to_socket_addrs();
                let found: Vec<_> =
                    found.map_err(|error| format!("{host} is no known host: {error}"))?.collect();
                let first = *found.first().ok_or_else(|| format!("{host} has no address"))?;
                let accepts = |address: &&_| TcpStream::connect_timeout(address, STALL_MAX).is_ok();
                let address =
                    if found.len() > 1 { *found.iter().find(accepts).unwrap_or(&first) } else { first };
                Ok(Self { name: format!("{host}:{port}"), address: address.into() })
            }
            Address::Unix(path) => {
                let name = path.display().to_string();
                let address = SocketAddrUnix::new(path)
                    .map_err(|error| format!("{name} can't be the path of a socket: {error}"))?;
                Ok(Self { name, address: address.into() })
            }
        }
    }

    pub(super) fn unreachable(&self, error: Errno) -> Refusal {
        let name = &self.name;
        Refusal::Other(match error {
            Errno::ADDRNOTAVAIL => format!(
                "this machine has no port left for another connection to {name}, as it keeps those of closed ones back \
                 for a while: give the server's Unix socket in the arm's URL, or widen net.ipv4.ip_local_port_range \
                 and set net.ipv4.tcp_tw_reuse to 1"
            ),
            error => {
                format!(
                    "no server can be reached at {name}: {error}; is it running, and does it listen there?"
                )
            }
        })
    }

    /// The reason why a connection ended before it was ready. `send` and `recv` report it; nobody
    /// asks the socket for its error (`SO_ERROR`). A Unix socket whose server closed early would
    /// return that error first, and the server's reason behind it would stay unread.
    pub(super) fn lost(&self, error: Errno) -> Refusal {
        match error {
            Errno::CONNRESET => Refusal::Other(format!(
                "{} closed the connection while it was set up; is it a server of the arm's kind?",
                self.name
            )),
            error => self.unreachable(error),
        }
    }

    /// The reason as a line for people.
    pub(super) fn told(&self, refusal: Refusal) -> String {
        match refusal {
            Refusal::Other(why) => why,
            Refusal::Server(failure) => {
                let advice = failure.code.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                format!("{} says {failure}{advice}", self.name)
            }
        }
    }

    /// Begins to connect. `Ok(None)`: the server's queue is full.
    fn connect(&self) -> Result<Option<OwnedFd>, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = self.address.address_family();
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        if family != AddressFamily::UNIX {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        match net::connect(&socket, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Some(socket)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A connection that is ready for statements.
pub(super) struct Connection<W: Wire> {
    pub(super) socket: OwnedFd,
    pub(super) session: W::Session,
}

/// Sets this many connections up, in addition to those that are `ready`.
pub(super) fn connect<W: Wire>(
    wire: &W,
    peer: &Peer,
    count: usize,
    live: &Live,
    ready: &mut Vec<Connection<W>>,
) -> Result<(), String> {
    let begin = || {
        let Some(mut attempt) = Attempt::begin(wire, peer)? else { return Ok(None) };
        // The server begins its work as soon as it has the first bytes.
        let session = attempt.advance(wire, peer)?;
        Ok::<_, Refusal>(Some((attempt, session)))
    };
    let mut under_way = VecDeque::with_capacity(UNDER_WAY_MAX);
    // The newest attempt's; those before it are ended first, since they count.
    let mut refusal = None;
    while ready.len() < count {
        while refusal.is_none() && under_way.len() < UNDER_WAY_MAX.min(count - ready.len()) {
            match begin() {
                Ok(Some(begun)) => under_way.push_back(begun),
                Ok(None) => break,
                Err(why) => refusal = Some(why),
            }
        }
        match under_way.pop_front() {
            Some((attempt, Some(session))) => ready.push(Connection { socket: attempt.socket, session }),
            Some((attempt, None)) => ready.push(attempt.end(wire, peer, live)?),
            None => match refusal {
                Some(why) => return Err(peer.told(why)),
                None => std::thread::sleep(QUEUE_FULL),
            },
        }
        if live.is_stopped() {
            return Err("stopped".to_owned());
        }
    }
    Ok(())
}

pub(super) struct Attempt<W: Wire> {
    pub(super) socket: OwnedFd,
    greeting: W::Greeting,
    /// Received bytes of an incomplete message.
    input: Vec<u8>,
    out: BytesMut,
}

impl<W: Wire> Attempt<W> {
    /// Begins an attempt. `Ok(None)`: the server's queue is full.
    pub(super) fn begin(wire: &W, peer: &Peer) -> Result<Option<Self>, Refusal> {
        let begun = peer.connect().map_err(|error| peer.unreachable(error))?;
        Ok(begun.map(|socket| {
            let mut out = BytesMut::new();
            let greeting = wire.greet(&mut out);
            Self { socket, greeting, input: Vec::new(), out }
        }))
    }

    /// Registers the socket with `epoll` as `number`.
    pub(super) fn watch(&self, epoll: &OwnedFd, number: usize) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(epoll, &self.socket, epoll::EventData::new_u64(number as u64), flags)
    }

    /// Waits until the connection is ready.
    fn end(mut self, wire: &W, peer: &Peer, live: &Live) -> Result<Connection<W>, String> {
        let mut last_news = Instant::now();
        while !live.is_stopped() {
            if let Some(session) = self.advance(wire, peer).map_err(|refusal| peer.told(refusal))? {
                return Ok(Connection { socket: self.socket, session });
            }
            let wanted = if self.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            let look = Timespec { tv_sec: 0, tv_nsec: LOOK };
            match poll(&mut [PollFd::new(&self.socket, wanted)], Some(&look)) {
                Ok(0) | Err(Errno::INTR) if last_news.elapsed() > STALL_MAX => {
                    return Err(format!("{} has not answered for {} s", peer.name, STALL_MAX.as_secs()));
                }
                Ok(0) | Err(Errno::INTR) => (),
                Ok(_) => last_news = Instant::now(),
                Err(error) => return Err(format!("connections can't be waited for: {error}")),
            }
        }
        Err("stopped".to_owned())
    }

    /// Does everything that needs no waiting; returns the session once the connection is ready.
    pub(super) fn advance(&mut self, wire: &W, peer: &Peer) -> Result<Option<W::Session>, Refusal> {
        loop {
            while !self.out.is_empty() {
                match net::send(&self.socket, &self.out, SendFlags::NOSIGNAL) {
                    Ok(sent) => self.out.advance(sent),
                    Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(None),
                    Err(Errno::INTR) => (),
                    // A server that refuses early has sent its reason, which is in the received
                    // bytes.
                    Err(Errno::PIPE | Errno::CONNRESET) => self.out.clear(),
                    Err(error) => return Err(peer.lost(error)),
                }
            }
            self.input.reserve(INPUT);
            match net::recv(&self.socket, spare_capacity(&mut self.input), RecvFlags::empty()) {
                Ok((0, _)) => return Err(peer.lost(Errno::CONNRESET)),
                Ok(_) => (),
                Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(peer.lost(error)),
            }
            let (used, session) = wire.welcome(&mut self.greeting, &self.input, &mut self.out).map_err(
                |refusal| match refusal {
                    Refusal::Other(why) => Refusal::Other(format!("{}: {why}", peer.name)),
                    server => server,
                },
            )?;
            self.input.drain(..used);
            if session.is_some() {
                return Ok(session);
            }
        }
    }
}
