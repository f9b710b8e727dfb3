//! The byte streams of one session, on a plain socket or under TLS.
//!
//! What must hold: under TLS, callers read and write plain text only. [`Wire`] decrypts the bytes
//! that have come before it hands them out, and encrypts the output before the socket gets it.

use crate::tls::Tls;
use runtime::interrupt::Interrupt;
use runtime::net::{Peer, SessionIo};
use std::io;
use std::sync::Arc;

/// Replies above this size are sent before the round ends, so that a large result neither takes
/// memory nor waits.
const FLUSH_AT: usize = 64 * 1024;

/// The streams from which a session reads, and to which it writes, while it is served.
pub struct Wire<'a, 'io> {
    io: &'a mut SessionIo<'io>,
    tls: Option<&'a mut Tls>,
}

impl<'a, 'io> Wire<'a, 'io> {
    /// The streams over `io`. Under TLS, the bytes that have come are decrypted first.
    pub fn new(io: &'a mut SessionIo<'io>, tls: Option<&'a mut Tls>) -> io::Result<Self> {
        let mut wire = Self { io, tls };
        wire.decrypt()?;
        Ok(wire)
    }

    #[inline]
    fn decrypt(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            let used = tls.decrypt(self.io.input())?;
            self.io.consume(used);
        }
        Ok(())
    }

    #[inline]
    fn encrypt(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.encrypt(self.io.output()),
            None => Ok(()),
        }
    }

    /// Bytes received and not consumed.
    #[inline]
    pub fn input(&self) -> &[u8] {
        match &self.tls {
            Some(tls) => tls.input(),
            None => self.io.input(),
        }
    }

    /// Whether the client began with TLS and has not named PostgreSQL's protocol.
    pub(crate) fn lacks_protocol(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.lacks_protocol())
    }

    /// Drops the first `n` bytes of the input.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        match &mut self.tls {
            Some(tls) => tls.consume(n),
            None => self.io.consume(n),
        }
    }

    /// Sends the reply so far, then waits until the input holds `at_least` bytes.
    pub fn fill(&mut self, at_least: usize) -> io::Result<()> {
        self.encrypt()?;
        if self.tls.is_none() {
            return self.io.fill(at_least);
        }
        while self.input().len() < at_least {
            let more = self.io.input().len() + 1;
            self.io.fill(more)?;
            self.decrypt()?;
            self.encrypt()?;
        }
        Ok(())
    }

    /// The client's address.
    pub fn peer(&self) -> &Peer {
        self.io.peer()
    }

    /// The session's interrupt.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        self.io.interrupt()
    }

    /// The buffer to which the reply is appended.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        match &mut self.tls {
            Some(tls) => &mut tls.reply,
            None => self.io.output(),
        }
    }

    /// Sends a reply that has grown large. Parks while the client does not read.
    #[inline]
    pub(crate) fn flush_if_large(&mut self) -> io::Result<()> {
        if self.output().len() < FLUSH_AT { Ok(()) } else { self.flush() }
    }

    /// Sends the reply so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.encrypt()?;
        self.io.flush()
    }

    /// Hands the reply over; it is sent when the round ends.
    pub fn finish(mut self) -> io::Result<()> {
        self.encrypt()?;
        if let Some(tls) = &mut self.tls {
            tls.let_go();
        }
        Ok(())
    }
}
