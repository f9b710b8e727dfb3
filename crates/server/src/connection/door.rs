//! Login, one step at a time: TLS, the start-up packet, the proof of identity, the session.
//!
//! What must hold: a step takes the phase out of the connection and leaves [`Phase::Over`] until it
//! succeeds. So a login that failed never goes on.

use super::{Connection, Fault, Live, Phase};
use crate::encode;
use crate::login::{self, First, Proof, Sasl, StartupRequest, Step};
use crate::places::Place;
use crate::secret::Secret;
use crate::shared::{Policy, Shared};
use crate::tls::{Opened, TLS_HANDSHAKE, Tls};
use crate::wire::Wire;
use runtime::net::{Peer, SessionIo};
use sql::{SqlError, SqlState};
use std::sync::Arc;

impl Connection {
    /// One step of the login. False if more bytes are needed or the connection is over.
    pub(super) fn log_in(&mut self, io: &mut SessionIo<'_>) -> Result<bool, Fault> {
        let encrypted = self.tls.is_some();
        let peer = io.peer().clone();
        if matches!(self.phase, Phase::Fresh) && !encrypted && io.input().first() == Some(&TLS_HANDSHAKE) {
            let Some(offer) = &self.policy.tls else {
                let message = "received direct SSL connection request without SSL support";
                return Err(Fault::Fatal(SqlError::new(SqlState::PROTOCOL_VIOLATION, message)));
            };
            self.tls = Some(Box::new(Tls::accept(offer, Opened::AtOnce).map_err(|_| Fault::Broken)?));
            return Ok(true);
        }
        let mut wire = Wire::new(io, self.tls.as_deref_mut())?;
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Fresh => {
                if wire.lacks_protocol() {
                    let message =
                        "received direct SSL connection request without ALPN protocol negotiation extension";
                    return Err(Fault::Fatal(SqlError::new(SqlState::PROTOCOL_VIOLATION, message)));
                }
                let (first, length) = login::first_packet(wire.input()).map_err(Fault::Fatal)?;
                wire.consume(length);
                match first {
                    First::Partial => {
                        self.phase = Phase::Fresh;
                        wire.finish()?;
                        return Ok(false);
                    }
                    First::Tls | First::Gss if encrypted => {
                        let message = "encryption was asked for twice";
                        return Err(Fault::Fatal(SqlError::new(SqlState::PROTOCOL_VIOLATION, message)));
                    }
                    First::Tls => self.answer_tls(io)?,
                    First::Gss => {
                        wire.output().push(b'N');
                        wire.finish()?;
                        self.phase = Phase::Fresh;
                    }
                    First::Cancel { process, secret } => {
                        self.shared.cancel(process, &secret);
                        return Ok(false);
                    }
                    First::Session(request) => {
                        self.request = Some(Box::new(request));
                        self.challenge(io, &peer)?;
                    }
                }
            }
            Phase::Proving(sasl) => {
                let Some(total) = login::password_message(wire.input()).map_err(Fault::Fatal)? else {
                    self.phase = Phase::Proving(sasl);
                    wire.finish()?;
                    return Ok(false);
                };
                let body = wire.input()[5..total].to_vec();
                wire.consume(total);
                wire.finish()?;
                self.prove(io, &peer, sasl, &body)?;
            }
            Phase::Admitted => {
                wire.finish()?;
                self.enter(io)?;
            }
            other => self.phase = other,
        }
        Ok(true)
    }

    fn answer_tls(&mut self, io: &mut SessionIo<'_>) -> Result<(), Fault> {
        self.phase = Phase::Fresh;
        match &self.policy.tls {
            Some(offer) => {
                if !io.input().is_empty() {
                    // Bytes in the clear before the handshake could come from anybody.
                    let message = "received unencrypted data after SSL request";
                    return Err(Fault::Fatal(SqlError::new(SqlState::PROTOCOL_VIOLATION, message)));
                }
                io.output().push(b'S');
                self.tls = Some(Box::new(Tls::accept(offer, Opened::Asked).map_err(|_| Fault::Broken)?));
            }
            None => io.output().push(b'N'),
        }
        Ok(())
    }

    /// Answers the start-up packet: lets the client in, asks for proof, or refuses.
    fn challenge(&mut self, io: &mut SessionIo<'_>, peer: &Peer) -> Result<(), Fault> {
        if let Some(place) = &self.place {
            place.check().map_err(Fault::Fatal)?;
        }
        if self.policy.tls_required && self.tls.is_none() && matches!(peer, Peer::Tcp(_)) {
            let fault = SqlError::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "this server takes no unencrypted connections over TCP",
            );
            return Err(Fault::Fatal(fault.with_hint("Connect with sslmode=require.")));
        }
        let (Some(request), policy) = (&self.request, &self.policy) else { return Err(Fault::Broken) };
        let can_bind = self.tls.as_ref().is_some_and(|tls| tls.end_point().is_some());
        let mut wire = Wire::new(io, self.tls.as_deref_mut())?;
        if let Some(unknown) = &request.unknown {
            login::negotiate(wire.output(), request.minor, unknown);
        }
        let Some(passwords) = &policy.passwords else {
            wire.finish()?;
            self.phase = Phase::Admitted;
            return Ok(());
        };
        let verifier = passwords(&request.user);
        login::offer(wire.output(), can_bind);
        wire.finish()?;
        self.phase = Phase::Proving(Sasl::Offered(verifier));
        Ok(())
    }

    /// Handles a message of the exchange in which the client proves its identity. The answer to a
    /// proof waits if the user, or many from the address, have failed before. So it does not show
    /// early whether the proof is right.
    fn prove(&mut self, io: &mut SessionIo<'_>, peer: &Peer, sasl: Sasl, body: &[u8]) -> Result<(), Fault> {
        let Some(request) = &self.request else { return Err(Fault::Broken) };
        let is_proof = matches!(sasl, Sasl::Challenged(_));
        if is_proof {
            let wait = self.shared.wait(peer, &request.user).map_err(|_| {
                let message = "too many logins from this address have failed";
                let fault = SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message);
                Fault::Fatal(fault.with_hint("Try again in a minute."))
            })?;
            if !wait.is_zero() {
                runtime::interrupt::sleep(wait).map_err(|by| Fault::Fatal(SqlError::interrupted(by)))?;
            }
        }
        let end_point = self.tls.as_ref().and_then(|tls| tls.end_point().map(Arc::clone));
        let mut wire = Wire::new(io, self.tls.as_deref_mut())?;
        let proof =
            Proof { user: &request.user, secret: &self.policy.secret, end_point: end_point.as_deref() };
        let step = login::step(sasl, &proof, body, wire.output());
        wire.finish()?;
        match step {
            Ok(Step::Continue(sasl)) => {
                self.phase = Phase::Proving(sasl);
                Ok(())
            }
            Ok(Step::Proved) => {
                self.phase = Phase::Admitted;
                Ok(())
            }
            Err(fault) => {
                if is_proof {
                    self.shared.failed(peer, &request.user);
                }
                Err(Fault::Fatal(fault))
            }
        }
    }

    /// Opens the session of a client that has proved its identity, on the worker where the session
    /// stays.
    fn enter(&mut self, io: &mut SessionIo<'_>) -> Result<(), Fault> {
        let (Some(request), Some(place)) = (&self.request, &mut self.place) else {
            return Err(Fault::Broken);
        };
        let mut wire = Wire::new(io, self.tls.as_deref_mut())?;
        let live = open(&self.shared, &self.policy, request, place, &mut wire).map_err(Fault::Fatal)?;
        wire.finish()?;
        self.phase = Phase::Live(live);
        Ok(())
    }
}

fn open(
    shared: &Shared,
    policy: &Policy,
    request: &StartupRequest,
    place: &mut Place,
    wire: &mut Wire<'_, '_>,
) -> Result<Live, SqlError> {
    place.enter(shared.database.has_reserve(&request.user), &shared.limits())?;
    let mut session = shared.database.connect(&request.database, &request.user, wire.interrupt())?;
    for (settings, by_client) in [(&policy.settings, false), (&request.settings, true)] {
        for (name, value) in settings {
            session.startup_setting(name, value, by_client)?;
        }
    }
    let secret = Secret::new(request.minor);
    place.name(session.id(), secret);
    let out = wire.output();
    encode::authentication(out, 0, &[]);
    for (name, value) in session.reported_settings() {
        encode::parameter_status(out, name, &value);
    }
    encode::key_data(out, session.id(), secret.bytes());
    encode::ready(out, session.status());
    Ok(Live { session, heard: true, skipping: false, refused: None, text: String::new() })
}
