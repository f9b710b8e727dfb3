//! Sockets: listeners, and sessions that own no fiber while they wait for their client.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Runtime;
use crate::interrupt::Interrupt;

/// What a session wants after it has served what had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More bytes of its client.
    Wait,
    /// To end: what is in the output is sent as far as the socket takes it.
    Close,
}

/// One client's side of a connection, as a state machine that owns no fiber while it waits.
pub trait Serve: Send + 'static {
    /// Called on a pooled fiber of the session's core when bytes have come, or the session was woken, or interrupted.
    /// Handles every whole message there is; may park.
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next;

    /// The peer is gone, or [`Next::Close`] was returned: releases what is held. Runs on a fiber; may park.
    fn closed(&mut self);
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

/// A connection that has just been accepted.
#[derive(Debug)]
pub struct Accepted {
    /// Where it comes from.
    pub peer: Peer,
    /// Sessions open on all cores, without this one.
    pub sessions: usize,
}

/// Makes the session of an accepted connection; `None` refuses it.
pub type Accept = dyn Fn(&Accepted) -> Option<Box<dyn Serve>> + Send + Sync;

/// A place being listened at; closed when dropped.
#[derive(Debug)]
pub struct Listener {}

/// Listens at `address`. Works until the listener is dropped or the runtime shuts down.
pub fn listen(_runtime: &Arc<Runtime>, _address: Address, _accept: Arc<Accept>) -> io::Result<Listener> {
    todo!()
}

impl Listener {
    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> &Address {
        todo!()
    }
}

/// Wakes a session from outside, so that its `serve` is called.
#[derive(Debug, Clone)]
pub struct WakeHandle {}

impl WakeHandle {
    /// Calls the session's `serve` soon, even if no bytes have come. From any core or thread.
    pub fn wake(&self) {
        todo!()
    }
}

/// A session's bytes in and out, while it is served.
#[derive(Debug)]
pub struct SessionIo<'a> {
    _life: std::marker::PhantomData<&'a mut ()>,
}

impl SessionIo<'_> {
    /// What was received and not consumed, contiguous.
    pub fn input(&self) -> &[u8] {
        todo!()
    }

    /// Drops the first `count` bytes of the input.
    pub fn consume(&mut self, _count: usize) {
        todo!()
    }

    /// Parks until `input()` holds `at_least` bytes; sends what is in the output first. `UnexpectedEof` when the peer
    /// has closed, `Interrupted` (not taken) when an interrupt is pending.
    pub fn fill(&mut self, _at_least: usize) -> io::Result<()> {
        todo!()
    }

    /// The reply: append to it. It is sent at the end of the round.
    pub fn output(&mut self) -> &mut Vec<u8> {
        todo!()
    }

    /// Input and output at once.
    pub fn both(&mut self) -> (&[u8], &mut Vec<u8>) {
        todo!()
    }

    /// Sends the output now; parks while the socket is full. Call it when the output is over 64 KiB.
    pub fn flush(&mut self) -> io::Result<()> {
        todo!()
    }

    /// The session's interrupt.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        todo!()
    }

    /// Where the client comes from.
    pub fn peer(&self) -> &Peer {
        todo!()
    }

    /// Whether the peer has closed its side: nothing more will come.
    pub fn at_end(&self) -> bool {
        todo!()
    }

    /// A handle that wakes this session from outside.
    pub fn wake_handle(&self) -> WakeHandle {
        todo!()
    }
}
