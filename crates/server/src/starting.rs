//! Answers to clients while the server starts. A client goes through the login only as far as
//! necessary, within TLS if it wants TLS. Then it gets an error that asks it to come again later.
//!
//! What must hold:
//!
//! 1. An exchange runs on the thread of the door, which serves all clients. It never waits, and it
//!    reads neither the folder nor passwords.
//! 2. Bytes that follow a request for TLS unencrypted are refused. Otherwise somebody in between
//!    could put them in front of the client's own.
//! 3. A client that has asked for TLS gets its error within TLS. A fault of the protocol outside of
//!    TLS gets no answer, because the peer may speak another protocol.
//! 4. A cancel request ends the exchange without an answer: there is no statement yet.

use crate::encode::{self, Severity};
use crate::login::{self, First};
use crate::record::{self, Client};
use crate::tls::{Offer, Opened, TLS_HANDSHAKE, Tls};
use runtime::net::{Greet, Peer, Talk};
use sql::{SqlError, SqlState};
use std::io;
use std::sync::Arc;

/// Answers clients that connect before the server has started; [`runtime::net::Door`] calls it.
#[must_use]
pub fn starting(offer: Option<Arc<Offer>>) -> Box<Greet> {
    Box::new(move |peer| Box::new(Starting { peer, offer: offer.clone(), tls: None }))
}

/// The exchange with one client.
struct Starting {
    peer: Peer,
    offer: Option<Arc<Offer>>,
    tls: Option<Box<Tls>>,
}

/// The reason why an exchange ends early.
enum Fault {
    /// The client may speak another protocol, so it gets this error within TLS only.
    Protocol(SqlError),
    Tls(io::Error),
}

impl From<SqlError> for Fault {
    fn from(fault: SqlError) -> Self {
        Fault::Protocol(fault)
    }
}

impl From<io::Error> for Fault {
    fn from(fault: io::Error) -> Self {
        Fault::Tls(fault)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Fault::Protocol(SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
    }
}

impl Talk for Starting {
    fn hear(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        match self.step(input, out) {
            Ok(goes_on) => return goes_on,
            Err(Fault::Tls(fault)) => {
                record::tls_failed(&self.peer, &fault);
                // TLS sends the client the reason.
                if let Some(tls) = &mut self.tls {
                    let _ = tls.encrypt(out);
                }
            }
            Err(Fault::Protocol(fault)) => {
                record::fatal(&Client { peer: &self.peer, request: None, session: 0 }, &fault);
                if let Some(tls) = &mut self.tls {
                    tls.end_with(&fault, out);
                }
            }
        }
        false
    }

    fn evicted(&self, slots: usize) {
        record::starting_evicted(&self.peer, slots);
    }
}

impl Tls {
    /// Sends the client a last error.
    fn end_with(&mut self, fault: &SqlError, out: &mut Vec<u8>) {
        encode::error(&mut self.reply, Severity::Fatal, fault);
        // The exchange is over in any case.
        let _ = self.encrypt(out);
        self.end(out);
    }
}

impl Starting {
    /// Answers the bytes that have come. False once the exchange is over.
    fn step(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, Fault> {
        if self.tls.is_none() && input.first() == Some(&TLS_HANDSHAKE) {
            let offer =
                self.offer.as_ref().ok_or("received direct SSL connection request without SSL support")?;
            self.tls = Some(Box::new(Tls::accept(offer, Opened::AtOnce).map_err(io::Error::other)?));
        }
        loop {
            if let Some(tls) = &mut self.tls {
                let used = tls.decrypt(input)?;
                input.drain(..used);
                tls.encrypt(out)?;
                if tls.lacks_protocol() {
                    Err(
                        "received direct SSL connection request without ALPN protocol negotiation extension",
                    )?;
                }
            }
            let (first, length) = login::first_packet(self.tls.as_ref().map_or(input, |tls| tls.input()))?;
            match &mut self.tls {
                Some(tls) => tls.consume(length),
                None => drop(input.drain(..length)),
            }
            match (first, &mut self.tls) {
                (First::Partial, _) => return Ok(true),
                // There is no statement to cancel.
                (First::Cancel { .. }, _) => return Ok(false),
                (First::Tls | First::Gss, Some(_)) => Err("encryption was asked for twice")?,
                (First::Tls, None) => match &self.offer {
                    None => out.push(b'N'),
                    Some(_) if !input.is_empty() => Err("received unencrypted data after SSL request")?,
                    Some(offer) => {
                        out.push(b'S');
                        self.tls =
                            Some(Box::new(Tls::accept(offer, Opened::Asked).map_err(io::Error::other)?));
                    }
                },
                (First::Gss, None) => out.push(b'N'),
                (First::Session(_), tls) => {
                    let message = "the database system is starting up";
                    let fault = SqlError::new(SqlState::CANNOT_CONNECT_NOW, message);
                    match tls {
                        None => encode::error(out, Severity::Fatal, &fault),
                        Some(tls) => tls.end_with(&fault, out),
                    }
                    return Ok(false);
                }
            }
        }
    }
}
