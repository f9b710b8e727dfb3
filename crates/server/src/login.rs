//! Login messages, from the first byte to the first ReadyForQuery: TLS, start-up packet,
//! authentication.
//!
//! ```text
//! Fresh --SSLRequest--> Fresh (under TLS, or 'N')      Fresh --CancelRequest--> closed
//! Fresh --start-up, trust--> live
//! Fresh --start-up, scram--> SaslFirst --> SaslFinal --> live
//! ```
//!
//! What must hold:
//!
//! 1. A client without a proof makes the server wait for short messages only. The first byte and
//!    the length are judged before anything else of a message has come.
//! 2. An unknown user takes the same steps as a known one and fails at the same one.
//! 3. [`Step::Proved`] comes from a finished exchange alone, and each step consumes the exchange.
//!    So a client cannot repeat one.
//! 4. PLUS is offered and taken only where the connection has the hash of a certificate.
//! 5. Names of users and databases are cut as `name` cuts them. So a long name finds the object
//!    that CREATE made from it.

use crate::decode::{self, Fields, Frame, Violation};
use crate::encode;
use crate::message::{self, SaslInitial};
use crate::scram::{Binding, Exchange, Failure, Verifier};
use sql::{SqlError, SqlState};
use values::identifier::truncate_name;
use values::text::parse_bool;

/// The start-up packet: the client's user, and what it asks for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StartupRequest {
    /// The role.
    pub user: String,
    /// The database; the user's name if the client names none.
    pub database: String,
    /// Settings for the session, in the client's order.
    pub settings: Vec<(String, String)>,
    /// The minor version of the protocol that is spoken.
    pub minor: u16,
    /// The unknown options, if the client asked for a newer version or for options of the protocol
    /// that this server does not know.
    pub unknown: Option<Vec<String>>,
}

/// The request in the first packet.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// The packet has not come completely.
    Partial,
    /// TLS.
    Tls,
    /// GSSAPI encryption.
    Gss,
    /// Cancel the statement of the session with this process number and secret.
    Cancel {
        /// The number from BackendKeyData.
        process: u32,
        /// The secret from BackendKeyData.
        secret: Vec<u8>,
    },
    /// A session.
    Session(StartupRequest),
}

/// The newest minor version of protocol 3 that this server speaks.
const NEWEST_MINOR: u16 = 2;
/// Bytes of the longest secret in a cancel request, as in PostgreSQL.
const LONGEST_SECRET: usize = 256;

/// Reads the first packet. Returns its request and its length.
pub fn first_packet(input: &[u8]) -> Result<(First, usize), SqlError> {
    let Some(head) = input.first_chunk::<{ decode::STARTUP_HEAD }>() else { return Ok((First::Partial, 0)) };
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    if !(decode::STARTUP_HEAD..=decode::STARTUP_LIMIT).contains(&length) {
        return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, "invalid length of startup packet"));
    }
    if input.len() < length {
        return Ok((First::Partial, 0));
    }
    let mut fields = Fields::new(&input[decode::STARTUP_HEAD..length]);
    let request = match code {
        decode::SSL_REQUEST => First::Tls,
        decode::GSS_REQUEST => First::Gss,
        decode::CANCEL_REQUEST => {
            let process = fields.u32().map_err(|v| v.error())?;
            let secret = input[decode::STARTUP_HEAD + 4..length].to_vec();
            if !(1..=LONGEST_SECRET).contains(&secret.len()) {
                return Err(malformed("invalid length of cancel key in cancel request packet"));
            }
            First::Cancel { process, secret }
        }
        version if version >> 16 == decode::PROTOCOL_3 >> 16 => {
            let minor = (version & 0xffff) as u16;
            First::Session(parameters(fields, minor)?)
        }
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            let message = format!(
                "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}"
            );
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    Ok((request, length))
}

fn parameters(mut fields: Fields<'_>, minor: u16) -> Result<StartupRequest, SqlError> {
    let layout = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "invalid startup packet layout: expected terminator as last byte",
        )
    };
    let text = |read: Result<_, Violation>| {
        read.map_err(|fault| match fault {
            Violation::Utf8(_) => fault.error(),
            _ => layout(),
        })
    };
    let mut request = StartupRequest::default();
    let mut unknown = Vec::new();
    loop {
        let name: &str = text(fields.string())?;
        if name.is_empty() {
            break;
        }
        let value = text(fields.string())?;
        match name {
            "user" => truncate_name(value).clone_into(&mut request.user),
            "database" => truncate_name(value).clone_into(&mut request.database),
            "options" => request.settings.extend(command_line_settings(value)?),
            "replication" if asks_for_replication(value)? => {
                return Err(SqlError::unsupported("replication"));
            }
            "replication" => {}
            name if name.starts_with("_pq_.") => unknown.push(name.to_owned()),
            name => request.settings.push((name.to_owned(), value.to_owned())),
        }
    }
    fields.end().map_err(|_| layout())?;
    if request.user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
    }
    if request.database.is_empty() {
        request.database.clone_from(&request.user);
    }
    request.minor = minor.min(NEWEST_MINOR);
    request.unknown = (minor > NEWEST_MINOR || !unknown.is_empty()).then_some(unknown);
    Ok(request)
}

/// Whether the value of `replication` asks for replication.
fn asks_for_replication(value: &str) -> Result<bool, SqlError> {
    let is_word = value.bytes().all(|byte| byte.is_ascii_graphic());
    match parse_bool(value) {
        _ if value == "database" => Ok(true),
        Ok(asks) if is_word => Ok(asks),
        _ => {
            let message = format!("invalid value for parameter \"replication\": \"{value}\"");
            let fault = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
            Err(fault.with_hint("Valid values are: \"false\", 0, \"true\", 1, \"database\"."))
        }
    }
}

/// The settings in `options`: `-c name=value` and `--name=value`, with a backslash before each
/// blank within a value.
fn command_line_settings(options: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            c if c.is_ascii_whitespace() => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("-c") {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) => rest.to_owned(),
            None => word.strip_prefix("--").unwrap_or("").to_owned(),
        };
        let Some((name, value)) = assignment.split_once('=') else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

/// NegotiateProtocolVersion: the parts of the request that this server does not speak. The version
/// is the whole one, as PostgreSQL sends it: libpq takes a bare minor version for one below 3.0 and
/// hangs up.
pub(crate) fn negotiate(out: &mut Vec<u8>, minor: u16, unknown: &[String]) {
    let start = encode::begin(out, b'v');
    out.extend_from_slice(&(decode::PROTOCOL_3 | u32::from(minor)).to_be_bytes());
    out.extend_from_slice(&u32::try_from(unknown.len()).unwrap_or(0).to_be_bytes());
    for name in unknown {
        out.extend_from_slice(name.as_bytes());
        out.push(0);
    }
    encode::end(out, start);
}

/// A SASL exchange in progress.
pub enum Sasl {
    /// The server has offered the mechanisms.
    Offered(Option<Verifier>),
    /// The server has sent its first message.
    Challenged(Box<Exchange>),
}

/// Outcome of a step of the exchange.
pub enum Step {
    /// The exchange needs another message.
    Continue(Sasl),
    /// The client has proved its identity.
    Proved,
}

const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// AuthenticationSASL: offers SCRAM-SHA-256, and PLUS if a proof can be bound to the connection's
/// certificate.
pub fn offer(out: &mut Vec<u8>, can_bind: bool) {
    let offered: &[u8] =
        if can_bind { b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0" } else { b"SCRAM-SHA-256\0\0" };
    encode::authentication(out, 10, offered);
}

/// The values against which a proof is checked.
pub struct Proof<'a> {
    /// The user name that the client gave.
    pub user: &'a str,
    /// The secret from which the salts of unknown users are made.
    pub secret: &'a [u8; 32],
    /// The hash of the certificate with which the connection's TLS began.
    pub end_point: Option<&'a [u8]>,
}

/// Handles one password message (type 'p'), given its body, and writes the answer.
pub fn step(sasl: Sasl, proof: &Proof<'_>, body: &[u8], out: &mut Vec<u8>) -> Result<Step, SqlError> {
    let failed = |failure| explain(failure, proof.user);
    let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| malformed("malformed SCRAM message"));
    match sasl {
        Sasl::Offered(verifier) => {
            let SaslInitial { mechanism, data } = message::sasl_initial(body).map_err(|v| v.error())?;
            let binding = match (mechanism, proof.end_point) {
                (PLUS, Some(hash)) => Binding::EndPoint(hash),
                (PLAIN, Some(_)) => Binding::Declined,
                (PLAIN, None) => Binding::None,
                _ => return Err(malformed("client selected an invalid SASL authentication mechanism")),
            };
            let (exchange, answer) =
                Exchange::begin(proof.user, verifier, proof.secret, binding, utf8(data)?).map_err(failed)?;
            encode::authentication(out, 11, answer.as_bytes());
            Ok(Step::Continue(Sasl::Challenged(Box::new(exchange))))
        }
        Sasl::Challenged(exchange) => {
            let answer = exchange.finish(utf8(body)?).map_err(failed)?;
            encode::authentication(out, 12, answer.as_bytes());
            Ok(Step::Proved)
        }
    }
}

fn malformed(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, text.into())
}

/// The error that the client gets for a failed exchange.
fn explain(failure: Failure, user: &str) -> SqlError {
    let refused = |text: &str| SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, text);
    match failure {
        Failure::Malformed(text) => malformed(text),
        Failure::UnknownBinding(name) => {
            malformed(format!("unsupported SCRAM channel-binding type \"{name}\""))
        }
        Failure::Downgraded => refused("SCRAM channel binding negotiation error").with_detail(
            "The client supports SCRAM channel binding but thinks the server does not.  \
             However, this server does support channel binding.",
        ),
        Failure::BoundElsewhere => refused("SCRAM channel binding check failed"),
        Failure::WrongPassword => SqlError::new(
            SqlState::INVALID_PASSWORD,
            format!("password authentication failed for user \"{user}\""),
        ),
    }
}

/// Finds the password message for which an exchange waits. Returns the end of its body, or `None`
/// if it has not come completely.
pub fn password_message(input: &[u8]) -> Result<Option<usize>, SqlError> {
    // Judged by the first byte. Other types may have a length of a gigabyte, and a client without
    // proof must not make the server keep that much.
    if let Some(kind) = input.first().filter(|&&kind| kind != b'p') {
        return Err(SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            format!("expected SASL response, got message type {kind}"),
        ));
    }
    match decode::frame(input).map_err(|v| v.error())? {
        Frame::Partial => Ok(None),
        Frame::Message { total, .. } => Ok(Some(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(&code.to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn session(body: &[u8]) -> Result<StartupRequest, SqlError> {
        match first_packet(&packet(decode::PROTOCOL_3, body))?.0 {
            First::Session(request) => Ok(request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_start_up_packet_gives_user_database_and_settings() {
        let request =
            session(b"user\0ada\0application_name\0psql\0options\0-c a.b=1 --work-mem=4\\ MB\0\0").unwrap();
        assert_eq!((request.user.as_str(), request.database.as_str()), ("ada", "ada"));
        let settings = [("application_name", "psql"), ("a.b", "1"), ("work_mem", "4 MB")];
        assert_eq!(request.settings, settings.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!((request.minor, request.unknown), (0, None));
    }

    #[test]
    fn long_names_are_cut_where_a_character_begins() {
        let named = |user: &str, database: &str| {
            let body = format!("user\0{user}\0database\0{database}\0\0");
            let request = session(body.as_bytes()).unwrap();
            (request.user, request.database)
        };
        let (ascii, wide) = ("d".repeat(64), "d".repeat(62) + "\u{e9}\u{e9}");
        assert_eq!(named(&ascii, &wide), ("d".repeat(63), "d".repeat(62)));
        // The database has the user's name, which was cut.
        assert_eq!(named(&wide, ""), ("d".repeat(62), "d".repeat(62)));
        assert_eq!(named(&ascii[1..], "a"), ("d".repeat(63), "a".to_owned()));
    }

    #[test]
    fn replication_is_unsupported_and_nonsense_is_invalid() {
        let asked = |value: &str| session(format!("user\0ada\0replication\0{value}\0\0").as_bytes());
        for no in ["false", "FALSE", "f", "off", "of", "no", "0"] {
            assert!(asked(no).is_ok(), "{no}");
        }
        for yes in ["true", "tru", "on", "YES", "1", "database"] {
            assert_eq!(asked(yes).unwrap_err().code, SqlState::FEATURE_NOT_SUPPORTED, "{yes}");
        }
        for nonsense in ["x", "o", "", " on", "2", "Database"] {
            let fault = asked(nonsense).unwrap_err();
            assert_eq!(fault.code, SqlState::INVALID_PARAMETER_VALUE);
            assert_eq!(fault.message, format!("invalid value for parameter \"replication\": \"{nonsense}\""));
        }
    }

    #[test]
    fn a_newer_version_is_negotiated_down() {
        let asked = |minor: u32, body: &[u8]| match first_packet(&packet(decode::PROTOCOL_3 | minor, body)) {
            Ok((First::Session(request), _)) => (request.minor, request.unknown),
            other => panic!("{other:?}"),
        };
        let plain = b"user\0ada\0\0";
        assert_eq!([0, 1, 2].map(|minor| asked(minor, plain)), [0, 1, 2].map(|minor| (minor, None)));
        assert_eq!(asked(9999, plain), (2, Some(Vec::new())));
        let option = Some(vec!["_pq_.x".to_owned()]);
        assert_eq!(asked(0, b"user\0ada\0_pq_.x\x001\0\0"), (0, option));
    }

    #[test]
    fn a_cancel_request_shows_a_secret_of_any_length() {
        let shown = |secret: &[u8]| {
            first_packet(&packet(decode::CANCEL_REQUEST, &[&[0, 0, 0, 7], secret].concat())).map(|(it, _)| it)
        };
        for length in [1, 4, 32, LONGEST_SECRET] {
            let secret = vec![9; length];
            assert_eq!(shown(&secret).unwrap(), First::Cancel { process: 7, secret });
        }
        for length in [0, LONGEST_SECRET + 1] {
            assert_eq!(shown(&vec![9; length]).unwrap_err().code, SqlState::PROTOCOL_VIOLATION);
        }
    }

    #[test]
    fn every_prefix_of_a_start_up_packet_is_partial() {
        let whole = packet(decode::PROTOCOL_3, b"user\0ada\0\0");
        for cut in 0..whole.len() {
            assert_eq!(first_packet(&whole[..cut]).unwrap().0, First::Partial, "{cut}");
        }
    }

    /// A client that has not proved its identity cannot make the server wait for a long message and
    /// keep it.
    #[test]
    fn the_server_waits_only_for_a_short_password_message() {
        for cut in 0..9 {
            assert_eq!(password_message(&b"p\0\0\0\x08abcd"[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(password_message(b"p\0\0\0\x08abcd").unwrap(), Some(9));
        for head in [&b"Q"[..], b"d\x3f\xff\xff\xff", b"X\0\0\0\x04", b"p\0\0\x40\0", b"p\0\0\0\x03"] {
            let fault = password_message(head).unwrap_err();
            assert_eq!(fault.code, SqlState::PROTOCOL_VIOLATION, "{head:?}");
        }
    }

    #[test]
    fn faulty_start_up_packets_are_refused() {
        let code = |bytes: &[u8]| first_packet(bytes).unwrap_err().code;
        assert_eq!(code(&packet(decode::PROTOCOL_3, b"\0")), SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
        assert_eq!(code(&packet(decode::PROTOCOL_3, b"user\0ada\0")), SqlState::PROTOCOL_VIOLATION);
        assert_eq!(code(&packet(decode::PROTOCOL_3, b"user\0ada\0\0x")), SqlState::PROTOCOL_VIOLATION);
        let not_utf8 = packet(decode::PROTOCOL_3, b"user\0\xff\n\0\0");
        assert_eq!(code(&not_utf8), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
        assert_eq!(code(&packet(2 << 16, b"")), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(code(&[0, 0, 0, 7, 0, 0, 0, 0]), SqlState::PROTOCOL_VIOLATION);
        assert_eq!(code(&[0x7f, 0, 0, 0, 0, 3, 0, 0]), SqlState::PROTOCOL_VIOLATION);
        assert_eq!(code(b"GET / HTTP/1.1\r\n\r\n"), SqlState::PROTOCOL_VIOLATION);
    }
}
