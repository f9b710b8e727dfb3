//! Sets up a connection to a PostgreSQL server: start-up, authentication (trust, clear text, MD5,
//! SCRAM-SHA-256), and preparing the workload's statements.

use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;

use super::answer::error;
use super::{FITS, Postgres, Session};
use crate::drive::wire::{Failure, Refusal};
use crate::load::Protocol;

pub(crate) struct Greeting {
    scram: Option<Box<sasl::ScramSha256>>,
    /// Statements prepared, once they are under way.
    prepared: Option<usize>,
}

impl Greeting {
    pub(super) fn new(wire: &Postgres, out: &mut BytesMut) -> Self {
        let settings = [
            ("user", wire.target.user.as_str()),
            ("database", &wire.target.database),
            ("application_name", "lab"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
        ];
        frontend::startup_message(settings, out).expect(FITS);
        Self { scram: None, prepared: None }
    }

    /// Takes one message; returns the session once the connection is ready.
    pub(super) fn take(
        &mut self,
        wire: &Postgres,
        message: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Session>, Refusal> {
        let body = &message[5..];
        match message[0] {
            b'R' => self.authenticate(wire, body, out)?,
            b'E' => return Err(Refusal::Server(self.refused(wire, body))),
            b'1' => self.prepared = self.prepared.map(|done| done + 1),
            b'Z' if self.prepared.is_none() && wire.early().next().is_some() => {
                self.prepared = Some(0);
                wire.early().for_each(|number| wire.parse(number, out));
                frontend::sync(out);
            }
            b'Z' => return Ok(Some(Session::new())),
            b'S' | b'K' | b'N' | b'A' => (),
            _ => return Err("a message that does not belong to a start".into()),
        }
        Ok(None)
    }

    /// The error, with the statement it is about.
    fn refused(&self, wire: &Postgres, body: &[u8]) -> Failure {
        let mut failure = Failure::default();
        error(body, &mut failure);
        if let Some(number) = self.prepared.and_then(|done| wire.early().nth(done)) {
            failure.message = format!("{} (preparing `{}`)", failure.message, wire.statements[number].text);
        }
        failure
    }

    fn authenticate(&mut self, wire: &Postgres, body: &[u8], out: &mut BytesMut) -> Result<(), Refusal> {
        let Some((kind, data)) = body.split_first_chunk() else {
            return Err("a request for authentication without its kind".into());
        };
        let password = || {
            wire.target.password.as_deref().map(str::as_bytes).ok_or(
                "the server asks for a password: give one in the arm's URL (postgres://user:password@...)",
            )
        };
        let said = |error| Refusal::Other(format!("the server's part of SCRAM is wrong: {error}"));
        let unasked = "SCRAM goes on without a beginning";
        match u32::from_be_bytes(*kind) {
            0 => (),
            3 => frontend::password_message(password()?, out).expect(FITS),
            5 => {
                let salt = data.try_into().map_err(|_| "MD5 authentication without salt")?;
                let hash = md5_hash(wire.target.user.as_bytes(), password()?, salt);
                frontend::password_message(hash.as_bytes(), out).expect(FITS);
            }
            // A server that offers SASL knows SCRAM-SHA-256, or refuses it itself.
            10 => {
                let scram = sasl::ScramSha256::new(password()?, sasl::ChannelBinding::unsupported());
                frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), out).expect(FITS);
                self.scram = Some(Box::new(scram));
            }
            11 => {
                let scram = self.scram.as_mut().ok_or(unasked)?;
                scram.update(data).map_err(said)?;
                frontend::sasl_response(scram.message(), out).expect(FITS);
            }
            12 => self.scram.as_mut().ok_or(unasked)?.finish(data).map_err(said)?,
            kind => {
                return Err(Refusal::Other(format!(
                    "the server asks for authentication of kind {kind}; trust, password, md5 and scram-sha-256 are known"
                )));
            }
        }
        Ok(())
    }
}

impl Postgres {
    /// The statements that the driver prepares at the beginning.
    fn early(&self) -> impl Iterator<Item = usize> {
        (0..self.statements.len()).filter(|number| self.statements[*number].protocol == Protocol::Prepared)
    }
}
