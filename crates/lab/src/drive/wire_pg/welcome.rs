//! Sets up a connection to a PostgreSQL server: start-up, authentication (trust, clear text, MD5,
//! SCRAM-SHA-256), and preparing the workload's statements.

use postgres_protocol::authentication::{md5_hash, sasl};

use super::answer::{error, frame};
use super::{Postgres, SYNC, Session, message, name, parse, put_text};
use crate::drive::wire::{Failure, Refusal, each_message};
use crate::load::Protocol;

pub(crate) struct Greeting {
    input: Vec<u8>,
    scram: Option<Box<sasl::ScramSha256>>,
    /// Statements prepared, once they are under way.
    prepared: Option<usize>,
}

impl Greeting {
    pub(super) fn new(wire: &Postgres, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(3u32 << 16).to_be_bytes());
        for (key, value) in [
            ("user", wire.user.as_str()),
            ("database", &wire.database),
            ("application_name", "lab"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
        ] {
            put_text(out, key);
            put_text(out, value);
        }
        out.push(0);
        let length = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Self { input: Vec::new(), scram: None, prepared: None }
    }

    pub(super) fn take(
        &mut self,
        wire: &Postgres,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, Refusal> {
        let mut input = std::mem::take(&mut self.input);
        let session = each_message(&mut input, bytes, |bytes| {
            let Some((tag, body, length)) = frame(bytes).map_err(str::to_owned)? else { return Ok(None) };
            let ready = self.step(wire, tag, body, out)?;
            Ok(Some((length, ready.then(|| Session::new(wire.statements.len())))))
        })?;
        self.input = input;
        Ok(session)
    }

    /// Takes one message; returns whether the connection is ready.
    fn step(&mut self, wire: &Postgres, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Result<bool, Refusal> {
        match tag {
            b'R' => self.authenticate(wire, body, out)?,
            b'E' => return Err(Refusal::Server(self.refused(wire, body))),
            b'1' => self.prepared = self.prepared.map(|done| done + 1),
            b'Z' if self.prepared.is_none() && wire.prepared().next().is_some() => {
                self.prepared = Some(0);
                for (id, statement) in wire.prepared() {
                    parse(out, &name(id), statement);
                }
                out.extend_from_slice(SYNC);
            }
            b'Z' => return Ok(true),
            b'S' | b'K' | b'N' | b'A' => (),
            _ => return Err(Refusal::Protocol("a message that does not belong to a start".to_owned())),
        }
        Ok(false)
    }

    /// The error, with the statement it is about.
    fn refused(&self, wire: &Postgres, body: &[u8]) -> Failure {
        let mut failure = Failure::default();
        error(body, &mut failure);
        if let Some((_, text)) = self.prepared.and_then(|done| wire.prepared().nth(done)) {
            failure.message = format!("{} (preparing `{text}`)", failure.message);
        }
        failure
    }

    fn authenticate(&mut self, wire: &Postgres, body: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let Some((kind, data)) = body.split_first_chunk() else {
            return Err(Refusal::Protocol("a request for authentication without its kind".to_owned()));
        };
        let password = || {
            wire.password.as_deref().ok_or_else(|| {
                "the server asks for a password: give one in the arm's URL (postgres://user:password@...)"
                    .to_owned()
            })
        };
        let said = |error: std::io::Error| format!("the server's part of SCRAM is wrong: {error}");
        match u32::from_be_bytes(*kind) {
            0 => (),
            3 => {
                let password = password()?;
                message(out, b'p', |out| put_text(out, password));
            }
            5 => {
                let salt = data.try_into().map_err(|_| "MD5 authentication without salt".to_owned())?;
                let hash = md5_hash(wire.user.as_bytes(), password()?.as_bytes(), salt);
                message(out, b'p', |out| put_text(out, &hash));
            }
            10 => {
                if !data.split(|&byte| byte == 0).any(|name| name == sasl::SCRAM_SHA_256.as_bytes()) {
                    return Err(Refusal::Protocol("the server offers no SCRAM-SHA-256".to_owned()));
                }
                let scram =
                    sasl::ScramSha256::new(password()?.as_bytes(), sasl::ChannelBinding::unsupported());
                message(out, b'p', |out| {
                    put_text(out, sasl::SCRAM_SHA_256);
                    out.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
                    out.extend_from_slice(scram.message());
                });
                self.scram = Some(Box::new(scram));
            }
            11 => {
                let scram =
                    self.scram.as_mut().ok_or_else(|| "SCRAM goes on without a beginning".to_owned())?;
                scram.update(data).map_err(said)?;
                message(out, b'p', |out| out.extend_from_slice(scram.message()));
            }
            12 => {
                let scram = self.scram.as_mut().ok_or_else(|| "SCRAM ends without a beginning".to_owned())?;
                scram.finish(data).map_err(said)?;
            }
            kind => {
                return Err(Refusal::Protocol(format!(
                    "the server asks for authentication of kind {kind}; trust, password, md5 and scram-sha-256 are known"
                )));
            }
        }
        Ok(())
    }
}

impl Postgres {
    /// The statements that the driver prepares at the beginning, by their numbers.
    fn prepared(&self) -> impl Iterator<Item = (usize, &str)> {
        let prepared = self.statements.iter().enumerate();
        prepared
            .filter(|(_, one)| one.protocol == Protocol::Prepared && one.late.is_none())
            .map(|(id, one)| (id, one.text.as_str()))
    }
}
