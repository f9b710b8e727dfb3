//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677). PLUS binds the
//! client's proof to the server's certificate, so that nobody between the two can pass it on.
//!
//! The server keeps a password only as a [`Verifier`] in PostgreSQL's text form. Neither the
//! password nor a client's proof can be computed from it.
//!
//! What must hold:
//!
//! 1. An unknown user goes through the same exchange with a made-up verifier. Its salt depends on
//!    the name and a lasting secret, and it costs known users the same time. So a client cannot
//!    learn which users exist.
//! 2. Stored keys are compared in constant time.
//! 3. A nonce is new in each exchange, so a proof is of no use a second time.
//! 4. A client that could bind its proof, but believes that the server cannot, is refused: somebody
//!    in between may have changed the offer.
//! 5. `Debug` shows nothing of a verifier, because its text may reach a log.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

/// Rounds of the password's hash in new verifiers; PostgreSQL's default.
const ITERATIONS: u32 = 4096;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 18;

type Key = [u8; 32];

/// The stored form of a password. Its text is `SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY`.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        let (salt, stored, server) = (text(&self.salt), text(&self.stored_key), text(&self.server_key));
        write!(f, "SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// The error for a text that is no verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoVerifier;

impl FromStr for Verifier {
    type Err = NoVerifier;

    fn from_str(text: &str) -> Result<Self, NoVerifier> {
        let parse = || {
            let (head, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
            let (iterations, salt) = head.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            Some(Self {
                iterations: iterations.parse().ok().filter(|&n| n > 0)?,
                salt: BASE64_STANDARD.decode(salt).ok()?,
                stored_key: BASE64_STANDARD.decode(stored).ok()?.try_into().ok()?,
                server_key: BASE64_STANDARD.decode(server).ok()?.try_into().ok()?,
            })
        };
        parse().ok_or(NoVerifier)
    }
}

impl Verifier {
    /// A verifier of `password` with a new salt.
    pub fn of_password(password: &str) -> Self {
        Self::derive(password, random_bytes::<SALT_BYTES>().to_vec(), ITERATIONS)
    }

    fn derive(password: &str, salt: Vec<u8>, iterations: u32) -> Self {
        // If SASLprep does not apply to the bytes, PostgreSQL and its clients take them as they
        // are.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = Key::default();
        // Cannot fail: the output length is fixed and legal.
        let _ = pbkdf2::pbkdf2::<Hmac<Sha256>>(prepared.as_bytes(), &salt, iterations, &mut salted);
        let stored_key = Sha256::digest(hmac(&salted, b"Client Key")).into();
        Self { iterations, salt, stored_key, server_key: hmac(&salted, b"Server Key") }
    }

    /// The verifier of an unknown user: always the same for one name (a changing salt would betray
    /// it), and no password matches it.
    fn of_nobody(user: &str, server_secret: &Key) -> Self {
        let salt = hmac(server_secret, user.as_bytes())[..SALT_BYTES].to_vec();
        Self { iterations: ITERATIONS, salt, stored_key: Key::default(), server_key: Key::default() }
    }
}

/// Random bytes. A system without randomness cannot keep a secret, so the session fails.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    runtime::random::fill(&mut bytes).expect("the system gives no randomness");
    bytes
}

fn hmac(key: &[u8], text: &[u8]) -> Key {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(text);
            mac.finalize().into_bytes().into()
        }
        Err(_) => unreachable!("HMAC takes keys of every length"),
    }
}

/// The reason why an exchange failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// A message does not have SCRAM's form (08P01).
    Malformed(&'static str),
    /// The server does not offer this type of channel binding (08P01).
    UnknownBinding(String),
    /// The client could have bound its proof, but somebody made it believe that the server cannot
    /// (28000).
    Downgraded,
    /// The client bound its proof to another certificate than the server's (28000).
    BoundElsewhere,
    /// The proof does not match, or the user does not exist (28P01).
    WrongPassword,
}

/// The channel binding of a client's proof, by the mechanism that the client chose.
#[derive(Debug, Clone, Copy)]
pub enum Binding<'a> {
    /// None: the server did not offer PLUS.
    None,
    /// None: the server offered PLUS, and the client chose the mechanism without it.
    Declined,
    /// The hash of the server's certificate.
    EndPoint(&'a [u8]),
}

/// The only type of channel binding that the server offers.
const END_POINT: &str = "tls-server-end-point";

/// Reads the header of a client's first message, which says how the client binds its proof. Returns
/// the header's length.
fn header(client_first: &str, binding: Binding<'_>) -> Result<usize, Failure> {
    let malformed = Err(Failure::Malformed("malformed SCRAM message"));
    let (flag, _) = client_first.split_once(',').ok_or(Failure::Malformed("malformed SCRAM message"))?;
    match (flag, binding) {
        ("n", Binding::None | Binding::Declined) | ("y", Binding::None) => {}
        ("y", Binding::Declined) => return Err(Failure::Downgraded),
        (flag, Binding::EndPoint(_)) => match flag.strip_prefix("p=") {
            Some(END_POINT) => {}
            Some(other) => return Err(Failure::UnknownBinding(other.to_owned())),
            None => return malformed,
        },
        _ => return malformed,
    }
    // No authorisation identity follows; PostgreSQL takes none either.
    if client_first[flag.len()..].starts_with(",,") { Ok(flag.len() + 2) } else { malformed }
}

/// An exchange after the client's first message. It waits for the final one.
pub struct Exchange {
    verifier: Verifier,
    known: bool,
    nonce: String,
    /// The header of the client's first message, and the value to which the proof is bound.
    channel: Vec<u8>,
    first_bare: String,
    server_first: String,
}

impl Exchange {
    /// Reads the client's first message. Returns the exchange and the answer to send.
    /// `server_secret` is a value that nobody outside knows and that never changes: the salts of
    /// unknown users come from it.
    pub fn begin(
        user: &str,
        verifier: Option<Verifier>,
        server_secret: &Key,
        binding: Binding<'_>,
        client_first: &str,
    ) -> Result<(Self, String), Failure> {
        let nonce = BASE64_STANDARD.encode(random_bytes::<NONCE_BYTES>());
        Self::begin_with_nonce(user, verifier, server_secret, binding, client_first, &nonce)
    }

    fn begin_with_nonce(
        user: &str,
        verifier: Option<Verifier>,
        server_secret: &Key,
        binding: Binding<'_>,
        client_first: &str,
        server_nonce: &str,
    ) -> Result<(Self, String), Failure> {
        let (channel_header, first_bare) = client_first.split_at(header(client_first, binding)?);
        let client_nonce = first_bare
            .strip_prefix("n=")
            .and_then(|rest| rest.split_once(",r="))
            .map(|(_, nonce)| nonce.split(',').next().unwrap_or(nonce))
            .filter(|nonce| !nonce.is_empty() && nonce.bytes().all(|b| b.is_ascii_graphic()))
            .ok_or(Failure::Malformed("malformed SCRAM message"))?;
        let known = verifier.is_some();
        // Made in any case, so that known users take no less time than others.
        let nobody = Verifier::of_nobody(user, server_secret);
        let verifier = verifier.unwrap_or(nobody);
        let nonce = format!("{client_nonce}{server_nonce}");
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let mut channel = channel_header.as_bytes().to_vec();
        if let Binding::EndPoint(hash) = binding {
            channel.extend_from_slice(hash);
        }
        let exchange = Self {
            verifier,
            known,
            nonce,
            channel,
            first_bare: first_bare.to_owned(),
            server_first: server_first.clone(),
        };
        Ok((exchange, server_first))
    }

    /// Reads the client's final message. Returns the server's, which proves that the server knows
    /// the verifier.
    pub fn finish(self, client_final: &str) -> Result<String, Failure> {
        let malformed = Failure::Malformed("malformed SCRAM message");
        let (without_proof, proof) = client_final.rsplit_once(",p=").ok_or(malformed)?;
        let (channel, nonce) = without_proof
            .strip_prefix("c=")
            .and_then(|rest| rest.split_once(",r="))
            .ok_or(Failure::Malformed("malformed SCRAM message"))?;
        if channel != BASE64_STANDARD.encode(&self.channel) {
            return Err(match self.channel.starts_with(b"p") {
                true => Failure::BoundElsewhere,
                false => {
                    Failure::Malformed("unexpected SCRAM channel-binding attribute in client-final-message")
                }
            });
        }
        if nonce != self.nonce {
            return Err(Failure::Malformed("invalid SCRAM response"));
        }
        let proof: Key = BASE64_STANDARD
            .decode(proof)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Failure::Malformed("malformed SCRAM proof"))?;
        let message = format!("{},{},{without_proof}", self.first_bare, self.server_first);
        let mut client_key = hmac(&self.verifier.stored_key, message.as_bytes());
        for (byte, masked) in client_key.iter_mut().zip(proof) {
            *byte ^= masked;
        }
        let stored: Key = Sha256::digest(client_key).into();
        let matches: bool = stored.ct_eq(&self.verifier.stored_key).into();
        if !(matches && self.known) {
            return Err(Failure::WrongPassword);
        }
        let signature = hmac(&self.verifier.server_key, message.as_bytes());
        Ok(format!("v={}", BASE64_STANDARD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    fn rfc_exchange(password: &str) -> Result<String, Failure> {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::derive(password, salt, 4096);
        let (exchange, first) = Exchange::begin_with_nonce(
            "user",
            Some(verifier),
            &[7; 32],
            Binding::None,
            "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        )?;
        let expected =
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(first, expected);
        exchange.finish(
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        )
    }

    #[test]
    fn the_rfc_s_exchange_succeeds_and_another_password_does_not() {
        assert_eq!(rfc_exchange("pencil").as_deref(), Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert_eq!(rfc_exchange("pen"), Err(Failure::WrongPassword));
    }

    #[test]
    fn a_verifier_survives_its_text() {
        let verifier = Verifier::derive("secret", vec![1; 16], 4096);
        assert_eq!(verifier.to_string().parse::<Verifier>().as_ref(), Ok(&verifier));
        for text in ["", "md5abc", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$4096:AA=="] {
            assert_eq!(text.parse::<Verifier>(), Err(NoVerifier), "{text}");
        }
    }

    fn first(binding: Binding<'_>, message: &str) -> Result<(Exchange, String), Failure> {
        Exchange::begin_with_nonce("ghost", None, &[7; 32], binding, message, "abc")
    }

    #[test]
    fn unknown_users_get_a_steady_salt_and_malformed_messages_are_refused() {
        let first = |message: &str| first(Binding::None, message);
        let (_, one) = first("n,,n=,r=x").map_err(|_| ()).unwrap();
        let (_, two) = first("n,,n=,r=x").map_err(|_| ()).unwrap();
        assert_eq!(one, two);
        for bad in ["", "n", "n,,", "n,,n=", "n,,n=,r=", "p=tls,,n=,r=x", "n,a=b,n=,r=x", "n,,n=,r=\u{e9}"] {
            assert!(matches!(first(bad), Err(Failure::Malformed(_))), "{bad}");
        }
    }

    #[test]
    fn a_proof_is_bound_as_the_mechanism_says_or_refused() {
        let bound = Binding::EndPoint(b"hash");
        let (exchange, _) = first(bound, "p=tls-server-end-point,,n=,r=x").map_err(|_| ()).unwrap();
        assert_eq!(exchange.channel, b"p=tls-server-end-point,,hash");
        let elsewhere = BASE64_STANDARD.encode(b"p=tls-server-end-point,,other");
        let fault = exchange.finish(&format!("c={elsewhere},r=xabc,p=AAAA")).unwrap_err();
        assert_eq!(fault, Failure::BoundElsewhere);

        let fault = |binding, message: &str| first(binding, message).map(|_| ()).unwrap_err();
        assert_eq!(fault(Binding::Declined, "y,,n=,r=x"), Failure::Downgraded);
        let unknown = Failure::UnknownBinding("tls-unique".to_owned());
        assert_eq!(fault(bound, "p=tls-unique,,n=,r=x"), unknown);
        for (binding, message) in [
            (bound, "n,,n=,r=x"),
            (bound, "y,,n=,r=x"),
            (bound, "p=tls-server-end-point,a=b,n=,r=x"),
            (Binding::Declined, "p=tls-server-end-point,,n=,r=x"),
        ] {
            assert!(matches!(fault(binding, message), Failure::Malformed(_)), "{message}");
        }
        assert!(first(Binding::Declined, "n,,n=,r=x").is_ok() && first(Binding::None, "y,,n=,r=x").is_ok());
    }
}
