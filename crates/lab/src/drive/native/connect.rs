//! Sets connections up: each thread has many under way and never waits for just one.
//!
//! What must hold: all connections of a round exist before its first transaction. Otherwise the
//! round does not begin, and the error states how many there were and the obstacle. Connections
//! that clients set up themselves later are an [`Attempt`] of the load loop.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::arm::Address;
use crate::drive::Live;
use crate::drive::wire::{Failure, Refusal, Wire};

/// Connections one thread has under way at a time. They keep a server that forks busy, and stay
/// below the usual length of a listener's queue.
const UNDER_WAY_MAX: usize = 64;
/// Longest time without progress on any of a thread's connections.
const STALL_MAX: Duration = Duration::from_secs(20);
/// The same after the server refused one.
const STALL_MAX_AFTER_FAULT: Duration = Duration::from_secs(1);
/// Interval between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);
/// Pause before the next try, where a Unix socket's queue is full.
pub(super) const QUEUE_FULL: Duration = Duration::from_millis(2);

/// The addresses where a server listens, names resolved.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    endpoints: Vec<Endpoint>,
}

#[derive(Debug)]
enum Endpoint {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

impl Peer {
    pub(super) fn resolve(address: &Address) -> Result<Self, String> {
        match address {
            Address::Tcp(host, port) => {
                let name = format!("{host}:{port}");
                let found = (host.as_str(), *port).to_socket_addrs();
                let endpoints: Vec<_> = found
                    .map_err(|error| format!("{host} is no known host: {error}"))?
                    .map(Endpoint::Tcp)
                    .collect();
                if endpoints.is_empty() {
                    return Err(format!("{host} has no address"));
                }
                Ok(Self { name, endpoints })
            }
            Address::Unix(path) => {
                let name = path.display().to_string();
                let address = SocketAddrUnix::new(path)
                    .map_err(|error| format!("{name} can't be the path of a socket: {error}"))?;
                Ok(Self { name, endpoints: vec![Endpoint::Unix(address)] })
            }
        }
    }

    pub(super) fn unreachable(&self, error: Errno) -> Denied {
        let name = &self.name;
        Denied::Otherwise(match error {
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

    /// The reason as a line for people.
    pub(super) fn told(&self, denied: Denied) -> String {
        match denied {
            Denied::Otherwise(why) => why,
            Denied::Server(failure) => {
                let advice = failure.code.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                format!("{} says {failure}{advice}", self.name)
            }
        }
    }

    /// Begins to connect to the endpoint of this number. `Ok(None)`: the server's queue is full.
    fn connect(&self, number: usize) -> Result<Option<OwnedFd>, Errno> {
        let family = match &self.endpoints[number] {
            Endpoint::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Endpoint::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = match &self.endpoints[number] {
            Endpoint::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                net::connect(&socket, address)
            }
            Endpoint::Unix(address) => net::connect(&socket, address),
        };
        match begun {
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

/// Why a connection could not be set up.
#[derive(Debug)]
pub(super) enum Denied {
    /// The server reported this error.
    Server(Failure),
    /// Any other reason, as text.
    Otherwise(String),
}

/// The reason why a thread lacks connections.
pub(super) struct NotConnected {
    /// The number of connections it has.
    pub(super) connected: usize,
    /// The obstacle.
    pub(super) why: String,
}

/// A connection under way.
pub(super) struct Attempt<W: Wire> {
    pub(super) socket: OwnedFd,
    /// The number of the peer's endpoint that it tries.
    endpoint: usize,
    greeting: W::Greeting,
    /// Bytes to send.
    out: Vec<u8>,
}

/// Sets this many connections up.
pub(super) fn connect<W: Wire>(
    wire: &W,
    peer: &Peer,
    count: usize,
    live: &Live,
) -> Result<Vec<Connection<W>>, NotConnected> {
    let mut ready = Vec::with_capacity(count);
    match connect_all(wire, peer, count, live, &mut ready) {
        Ok(()) => Ok(ready),
        Err(why) => Err(NotConnected { connected: ready.len(), why }),
    }
}

fn connect_all<W: Wire>(
    wire: &W,
    peer: &Peer,
    count: usize,
    live: &Live,
    ready: &mut Vec<Connection<W>>,
) -> Result<(), String> {
    let system = |error: Errno| format!("connections can't be waited for: {error}");
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
    let mut attempts: Vec<Option<Attempt<W>>> = std::iter::repeat_with(|| None).take(UNDER_WAY_MAX).collect();
    let mut events = Vec::with_capacity(UNDER_WAY_MAX);
    let mut input = Vec::with_capacity(1 << 14);
    let mut last_news = Instant::now();
    // The first fault. The loop still waits for the attempts under way, to learn how many
    // connections the server takes.
    let mut fault: Option<String> = None;
    while ready.len() < count {
        let mut under_way = attempts.iter().flatten().count();
        let mut pause = LOOK;
        for (number, place) in attempts.iter_mut().enumerate() {
            if fault.is_none() && place.is_none() && ready.len() + under_way < count {
                let begun = Attempt::begin(wire, peer).map_err(|denied| peer.told(denied))?;
                let Some(attempt) = begun else {
                    pause = QUEUE_FULL;
                    break;
                };
                attempt.watch(&epoll, number).map_err(system)?;
                *place = Some(attempt);
                under_way += 1;
            }
        }
        if let Some(why) = fault.take_if(|_| under_way == 0 || last_news.elapsed() > STALL_MAX_AFTER_FAULT) {
            return Err(why);
        }
        events.clear();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(system(error)),
        }
        if live.is_stopped() {
            return Err("stopped".to_owned());
        }
        if !events.is_empty() {
            last_news = Instant::now();
        } else if last_news.elapsed() > STALL_MAX {
            return Err(format!("{} has not answered for {} s", peer.name, STALL_MAX.as_secs()));
        }
        for event in &events {
            let number = event.data.u64() as usize;
            let Some(mut attempt) = attempts[number].take() else { continue };
            match attempt.advance(wire, peer, &mut input) {
                Err(denied) => {
                    fault.get_or_insert_with(|| peer.told(denied));
                    continue;
                }
                Ok(Advance::Ready(session)) => {
                    ready.push(Connection { socket: attempt.socket, session });
                    continue;
                }
                Ok(Advance::Going) => (),
                Ok(Advance::Anew) => attempt.watch(&epoll, number).map_err(system)?,
            }
            attempts[number] = Some(attempt);
        }
    }
    Ok(())
}

/// The outcome of an attempt's step.
pub(super) enum Advance<W: Wire> {
    /// The socket is a connection.
    Ready(W::Session),
    Going,
    /// The attempt goes on with a new socket.
    Anew,
}

impl<W: Wire> Attempt<W> {
    /// Begins an attempt. `Ok(None)`: the server's queue is full.
    pub(super) fn begin(wire: &W, peer: &Peer) -> Result<Option<Self>, Denied> {
        Self::begin_at(wire, peer, 0)
    }

    /// Tries the peer's endpoints from number `endpoint` on.
    fn begin_at(wire: &W, peer: &Peer, mut endpoint: usize) -> Result<Option<Self>, Denied> {
        loop {
            match peer.connect(endpoint) {
                Ok(Some(socket)) => {
                    let mut out = Vec::new();
                    let greeting = wire.greet(&mut out);
                    return Ok(Some(Self { socket, endpoint, greeting, out }));
                }
                Ok(None) => return Ok(None),
                Err(_) if endpoint + 1 < peer.endpoints.len() => endpoint += 1,
                Err(error) => return Err(peer.unreachable(error)),
            }
        }
    }

    /// Registers the socket with `epoll` as `number`.
    pub(super) fn watch(&self, epoll: &OwnedFd, number: usize) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(epoll, &self.socket, epoll::EventData::new_u64(number as u64), flags)
    }

    /// Does everything that needs no waiting.
    pub(super) fn advance(
        &mut self,
        wire: &W,
        peer: &Peer,
        input: &mut Vec<u8>,
    ) -> Result<Advance<W>, Denied> {
        match sockopt::socket_error(&self.socket).unwrap_or_else(Err) {
            Ok(()) => (),
            Err(error) if self.endpoint + 1 < peer.endpoints.len() => {
                let next = Self::begin_at(wire, peer, self.endpoint + 1)?;
                *self = next.ok_or_else(|| peer.unreachable(error))?;
                return Ok(Advance::Anew);
            }
            Err(error) => return Err(peer.unreachable(error)),
        }
        let broken = |error: Errno| {
            Denied::Otherwise(format!("{} broke off while the connection was set up: {error}", peer.name))
        };
        loop {
            while !self.out.is_empty() {
                match net::send(&self.socket, &self.out, SendFlags::NOSIGNAL) {
                    Ok(sent) => drop(self.out.drain(..sent)),
                    Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(Advance::Going),
                    Err(Errno::INTR) => (),
                    // A server that refuses early has sent its reason, which is in the received
                    // bytes.
                    Err(Errno::PIPE | Errno::CONNRESET) => self.out.clear(),
                    Err(error) => return Err(broken(error)),
                }
            }
            input.clear();
            match net::recv(&self.socket, spare_capacity(input), RecvFlags::empty()) {
                Ok((0, _)) => {
                    return Err(Denied::Otherwise(format!(
                        "{} closed the connection while it was set up; is it a server of the arm's kind?",
                        peer.name
                    )));
                }
                Ok(_) => (),
                Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(Advance::Going),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(broken(error)),
            }
            match wire.welcome(&mut self.greeting, input, &mut self.out) {
                Ok(Some(session)) => return Ok(Advance::Ready(session)),
                Ok(None) => (),
                Err(Refusal::Protocol(why)) => {
                    return Err(Denied::Otherwise(format!("{}: {why}", peer.name)));
                }
                Err(Refusal::Server(failure)) => return Err(Denied::Server(failure)),
            }
        }
    }
}
