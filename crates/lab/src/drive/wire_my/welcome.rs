//! Sets up a connection to a MySQL or MariaDB server: greeting, authentication, and preparing the
//! workload's statements. It authenticates by mysql_native_password, or by caching_sha2_password
//! with the server's public key or over a Unix socket.

use std::panic::catch_unwind;

use mysql_common::crypto::encrypt;
use mysql_common::scramble::{scramble_native, scramble_sha256};

use super::answer::{error, prepared};
use super::packet::{frame, packet, put_length, take, take_zero_ended};
use super::{Known, Mysql, Prepared, Session, UNPREPARABLE, prepare};
use crate::drive::wire::{Failure, Refusal, each_message};
use crate::load::Protocol;

/// Capabilities that the driver asks for: long passwords, a database at once, protocol 4.1,
/// transactions, 20 bytes of nonce, several results (prepared or not), plug-in authentication with
/// responses of any length.
const CAPABILITIES: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x20_0000;
/// utf8mb4_general_ci, which both servers know.
const CHARSET: u8 = 45;
const PACKET_MAX: u32 = 1 << 24;
const NATIVE: &[u8] = b"mysql_native_password";
const SHA2: &[u8] = b"caching_sha2_password";
const NONCE: usize = 20;

#[derive(Default)]
pub(crate) struct Greeting {
    input: Vec<u8>,
    state: State,
    nonce: Vec<u8>,
    known: Vec<Known>,
}

#[derive(Default, Clone, Copy)]
enum State {
    /// For the server's greeting.
    #[default]
    Greeted,
    /// For the end of authentication or its next step.
    Authenticated,
    /// For the server's public key.
    Key,
    /// For the number of the next statement.
    Prepared,
    /// For this many packets of its description.
    Described(u32),
}

impl Greeting {
    pub(super) fn take(
        &mut self,
        wire: &Mysql,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, Refusal> {
        let mut input = std::mem::take(&mut self.input);
        let session = each_message(&mut input, bytes, |bytes| {
            let Some((number, body)) = frame(bytes).map_err(str::to_owned)? else { return Ok(None) };
            if body.first() == Some(&0xff) {
                let failure = self.refused(wire, body);
                if !matches!(self.state, State::Prepared) || failure.code != UNPREPARABLE {
                    return Err(Refusal::Server(failure));
                }
                self.known.push(Known::Text);
                let ready = self.prepare_next(wire, out)?;
                return Ok(Some((body.len() + 4, ready.then(|| self.session()))));
            }
            let ready = self.step(wire, number, body, out)?;
            Ok(Some((body.len() + 4, ready.then(|| self.session()))))
        })?;
        self.input = input;
        Ok(session)
    }

    fn session(&mut self) -> Session {
        Session::ready(std::mem::take(&mut self.known))
    }

    /// Takes one packet; returns whether the connection is ready.
    fn step(&mut self, wire: &Mysql, number: u8, body: &[u8], out: &mut Vec<u8>) -> Result<bool, Refusal> {
        let cut = || Refusal::Protocol("the server's greeting is cut or not MySQL's".to_owned());
        match self.state {
            State::Greeted => {
                let plugin = self.greeting(body).ok_or_else(cut)?;
                packet(out, number.wrapping_add(1), |out| self.introduce(wire, &plugin, out));
                self.state = State::Authenticated;
                Ok(false)
            }
            State::Authenticated => match body {
                [0x00, ..] => self.prepare_next(wire, out),
                // The name of another way to authenticate, and its nonce.
                [0xfe, rest @ ..] => {
                    let mut rest = rest;
                    let plugin = take_zero_ended(&mut rest).ok_or_else(cut)?.to_vec();
                    self.nonce = rest.strip_suffix(&[0]).unwrap_or(rest).to_vec();
                    let response = self.respond(wire, &plugin)?;
                    packet(out, number.wrapping_add(1), |out| out.extend_from_slice(&response));
                    Ok(false)
                }
                // caching_sha2_password: the server remembers the password; only then comes the
                // end.
                [0x01, 0x03, ..] => Ok(false),
                // The server does not remember it, and wants it whole.
                [0x01, 0x04, ..] if wire.local => {
                    packet(out, number.wrapping_add(1), |out| {
                        out.extend_from_slice(wire.password.as_bytes());
                        out.push(0);
                    });
                    Ok(false)
                }
                [0x01, 0x04, ..] => {
                    packet(out, number.wrapping_add(1), |out| out.push(2));
                    self.state = State::Key;
                    Ok(false)
                }
                _ => Err(Refusal::Protocol("an unknown step of authentication".to_owned())),
            },
            State::Key => {
                let key = body.strip_prefix(&[1]).unwrap_or(body);
                let secret = self.encrypted(wire, key)?;
                packet(out, number.wrapping_add(1), |out| out.extend_from_slice(&secret));
                self.state = State::Authenticated;
                Ok(false)
            }
            State::Prepared => {
                let (id, left) = prepared(body).ok_or_else(cut)?;
                self.known.push(Known::Number(id));
                self.described(wire, left, out)
            }
            State::Described(left) => self.described(wire, left - 1, out),
        }
    }

    /// Reads the server's greeting; returns the name of its way to authenticate.
    fn greeting(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let mut rest = body.strip_prefix(&[10])?;
        take_zero_ended(&mut rest)?;
        take(&mut rest, 4)?;
        self.nonce = take(&mut rest, 8)?.to_vec();
        // A zero, half of the capabilities, charset, status, the other half, the nonce's length,
        // ten more.
        take(&mut rest, 1 + 2 + 1 + 2 + 2 + 1 + 10)?;
        self.nonce.extend_from_slice(take(&mut rest, NONCE - 8)?);
        take(&mut rest, 1)?;
        Some(take_zero_ended(&mut rest).unwrap_or(NATIVE).to_vec())
    }

    /// Writes the client's user, password and database.
    fn introduce(&self, wire: &Mysql, plugin: &[u8], out: &mut Vec<u8>) {
        // The driver answers an unknown way with one that it knows; the server then names the way
        // it wants.
        let (plugin, response) = match self.respond(wire, plugin) {
            Ok(response) => (plugin, response),
            Err(_) => (NATIVE, native(wire, &self.nonce)),
        };
        out.extend_from_slice(&CAPABILITIES.to_le_bytes());
        out.extend_from_slice(&PACKET_MAX.to_le_bytes());
        out.push(CHARSET);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(wire.user.as_bytes());
        out.push(0);
        put_length(out, response.len() as u64);
        out.extend_from_slice(&response);
        out.extend_from_slice(wire.database.as_bytes());
        out.push(0);
        out.extend_from_slice(plugin);
        out.push(0);
    }

    fn respond(&self, wire: &Mysql, plugin: &[u8]) -> Result<Vec<u8>, Refusal> {
        match plugin {
            NATIVE => Ok(native(wire, &self.nonce)),
            SHA2 => Ok(scramble_sha256(&self.nonce, wire.password.as_bytes())
                .map(|hash| hash.to_vec())
                .unwrap_or_default()),
            other => Err(Refusal::Protocol(format!(
                "the server authenticates `{}` by {}; mysql_native_password and caching_sha2_password are known",
                wire.user,
                String::from_utf8_lossy(other)
            ))),
        }
    }

    /// The password, encrypted for the server alone.
    fn encrypted(&self, wire: &Mysql, key: &[u8]) -> Result<Vec<u8>, Refusal> {
        if !key.trim_ascii_start().starts_with(b"-----BEGIN PUBLIC KEY-----") {
            return Err(Refusal::Protocol("what the server sent is no public key".to_owned()));
        }
        let mut secret = wire.password.clone().into_bytes();
        secret.push(0);
        for (byte, nonce) in secret.iter_mut().zip(self.nonce.iter().cycle()) {
            *byte ^= nonce;
        }
        // The crate checks keys, and the length of the secret they can hide, by assertions.
        catch_unwind(|| encrypt(&secret, key)).map_err(|_| {
            let why = "the server's public key is malformed, or too short for the password";
            Refusal::Protocol(why.to_owned())
        })
    }

    /// Prepares the next statement; returns true when none is left.
    fn prepare_next(&mut self, wire: &Mysql, out: &mut Vec<u8>) -> Result<bool, Refusal> {
        let now = |one: &Prepared| one.protocol == Protocol::Prepared && !one.late;
        while wire.statements.get(self.known.len()).is_some_and(|one| !now(one)) {
            self.known.push(Known::Nothing);
        }
        let Some(statement) = wire.statements.get(self.known.len()) else { return Ok(true) };
        prepare(&statement.text, out);
        self.state = State::Prepared;
        Ok(false)
    }

    fn described(&mut self, wire: &Mysql, left: u32, out: &mut Vec<u8>) -> Result<bool, Refusal> {
        if left == 0 {
            return self.prepare_next(wire, out);
        }
        self.state = State::Described(left);
        Ok(false)
    }

    /// The error, with the statement it is about.
    fn refused(&self, wire: &Mysql, body: &[u8]) -> Failure {
        let mut failure = Failure::default();
        error(body, &mut failure);
        if let (State::Prepared, Some(statement)) = (self.state, wire.statements.get(self.known.len())) {
            failure.message = format!("{} (preparing `{}`)", failure.message, statement.text);
        }
        failure
    }
}

fn native(wire: &Mysql, nonce: &[u8]) -> Vec<u8> {
    scramble_native(nonce, wire.password.as_bytes()).map(|hash| hash.to_vec()).unwrap_or_default()
}
