//! Setting connections up: each thread has many under way and waits for none alone.
//!
//! What must hold: all connections of a round are there before its first transaction, or the round is not begun and the
//! error says how many there were and what stood in the way.

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
use crate::drive::wire::{Refusal, Wire};

/// Connections one thread has under way at a time: enough to keep a server that forks busy, and below the usual length
/// of a listener's queue.
const UNDER_WAY_MAX: usize = 64;
/// How long a server may do nothing for any of a thread's connections.
const PATIENCE: Duration = Duration::from_secs(20);
/// And after one was refused.
const PATIENCE_AFTER_FAULT: Duration = Duration::from_secs(1);
/// How often it is looked whether the round was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// Until the next try, where a Unix socket's queue is full.
const QUEUE_FULL: Duration = Duration::from_millis(2);

/// Where a server listens, names resolved.
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

    fn unreachable(&self, error: Errno) -> String {
        format!(
            "no server can be reached at {}: {error}; is it running, and does it listen there?",
            self.name
        )
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

/// Why a thread's connections are not there.
pub(super) struct NotConnected {
    /// How many are.
    pub(super) connected: usize,
    /// What stood in the way.
    pub(super) why: String,
}

/// A connection under way.
struct Attempt<W: Wire> {
    socket: OwnedFd,
    /// Which of the peer's endpoints it tries.
    endpoint: usize,
    greeting: W::Greeting,
    /// To be sent.
    out: Vec<u8>,
}

/// Sets up so many connections.
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
    // The first fault; what is under way then is waited for, so that it is known how many a server takes.
    let mut fault: Option<String> = None;
    while ready.len() < count {
        let mut under_way = attempts.iter().flatten().count();
        let mut pause = LOOK;
        for (number, place) in attempts.iter_mut().enumerate() {
            if fault.is_none() && place.is_none() && ready.len() + under_way < count {
                let Some(attempt) = Attempt::begin(wire, peer, 0)? else {
                    pause = QUEUE_FULL;
                    break;
                };
                attempt.watch(&epoll, number).map_err(system)?;
                *place = Some(attempt);
                under_way += 1;
            }
        }
        if let Some(why) = fault.take_if(|_| under_way == 0 || last_news.elapsed() > PATIENCE_AFTER_FAULT) {
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
        } else if last_news.elapsed() > PATIENCE {
            return Err(format!("{} has not answered for {} s", peer.name, PATIENCE.as_secs()));
        }
        for event in &events {
            let number = event.data.u64() as usize;
            let Some(attempt) = attempts[number].take() else { continue };
            match attempt.advance(wire, peer, &mut input) {
                Err(why) => {
                    fault.get_or_insert(why);
                }
                Ok(Advance::Ready(connection)) => ready.push(connection),
                Ok(Advance::Going(attempt)) => attempts[number] = Some(attempt),
                Ok(Advance::Anew(attempt)) => {
                    attempt.watch(&epoll, number).map_err(system)?;
                    attempts[number] = Some(attempt);
                }
            }
        }
    }
    Ok(())
}

/// What became of an attempt.
enum Advance<W: Wire> {
    Ready(Connection<W>),
    Going(Attempt<W>),
    /// It is one with a new socket.
    Anew(Attempt<W>),
}

impl<W: Wire> Attempt<W> {
    /// Tries the peer's endpoints from number `endpoint` on. `Ok(None)`: the server's queue is full.
    fn begin(wire: &W, peer: &Peer, endpoint: usize) -> Result<Option<Self>, String> {
        let mut endpoint = endpoint;
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

    fn watch(&self, epoll: &OwnedFd, number: usize) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(epoll, &self.socket, epoll::EventData::new_u64(number as u64), flags)
    }

    /// Does all that can be done without waiting.
    fn advance(mut self, wire: &W, peer: &Peer, input: &mut Vec<u8>) -> Result<Advance<W>, String> {
        match sockopt::socket_error(&self.socket).unwrap_or_else(Err) {
            Ok(()) => (),
            Err(error) if self.endpoint + 1 < peer.endpoints.len() => {
                let again = Self::begin(wire, peer, self.endpoint + 1)?;
                return again.map(Advance::Anew).ok_or_else(|| peer.unreachable(error));
            }
            Err(error) => return Err(peer.unreachable(error)),
        }
        let broken =
            |error: Errno| format!("{} broke off while the connection was set up: {error}", peer.name);
        loop {
            while !self.out.is_empty() {
                match net::send(&self.socket, &self.out, SendFlags::NOSIGNAL) {
                    Ok(sent) => drop(self.out.drain(..sent)),
                    Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(Advance::Going(self)),
                    Err(Errno::INTR) => (),
                    // Whoever is sent away before he has spoken finds the reason in what came in.
                    Err(Errno::PIPE | Errno::CONNRESET) => self.out.clear(),
                    Err(error) => return Err(broken(error)),
                }
            }
            input.clear();
            match net::recv(&self.socket, spare_capacity(input), RecvFlags::empty()) {
                Ok((0, _)) => {
                    return Err(format!(
                        "{} closed the connection while it was set up; is it a server of the arm's kind?",
                        peer.name
                    ));
                }
                Ok(_) => (),
                Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(Advance::Going(self)),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(broken(error)),
            }
            match wire.welcome(&mut self.greeting, input, &mut self.out) {
                Ok(Some(session)) => return Ok(Advance::Ready(Connection { socket: self.socket, session })),
                Ok(None) => (),
                Err(Refusal::Protocol(why)) => return Err(format!("{}: {why}", peer.name)),
                Err(Refusal::Server(failure)) => {
                    let advice =
                        failure.code.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                    return Err(format!("{} says {failure}{advice}", peer.name));
                }
            }
        }
    }
}
