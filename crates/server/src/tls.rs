//! TLS over a session's socket. The runtime carries the ciphertext; this module keeps the plain
//! text.
//!
//! A reload makes another [`Offer`] for later sessions. A session keeps the one that it began with.
//!
//! What must hold:
//!
//! 1. [`load`] refuses a key that others than its owner may read. As in PostgreSQL, the group may
//!    read a key that belongs to root.
//! 2. A session binds proofs to the certificate that its own handshake showed, also after a reload.
//! 3. A client that began with TLS names this protocol in the handshake, or it is refused. So a
//!    browser's request cannot reach the database.
//! 4. Decryption takes all bytes that the library can use and leaves a part of a record to the
//!    caller.
//! 5. Encryption takes the whole reply or fails. It yields but does not stop at an interrupt,
//!    because half a message cannot be taken back.

mod end_point;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason why the certificate or its key cannot be used.
#[derive(Debug)]
pub enum TlsError {
    /// A file could not be read as PEM.
    File(PathBuf, pem::Error),
    /// Others than the key's owner may read the file; it has these permissions.
    Open(PathBuf, u32),
    /// The certificate and key do not work together.
    Pair(rustls::Error),
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path, fault) => write!(f, "cannot read {}: {fault}", path.display()),
            Self::Open(path, mode) => {
                let path = path.display();
                write!(
                    f,
                    "others than its owner may read the key {path} ({mode:04o}): run 'chmod 600 {path}'"
                )
            }
            Self::Pair(fault) => write!(f, "certificate and key cannot be used: {fault}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// A certificate and its key, for TLS sessions.
pub struct Offer {
    config: Arc<ServerConfig>,
    /// The certificate's hash, to which clients bind their proof (`tls-server-end-point`, RFC
    /// 5929). `None` if the certificate's signature names no hash.
    end_point: Option<Arc<[u8]>>,
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Offer(..)")
    }
}

/// Loads the certificate chain and private key (both PEM) for all TLS sessions. Refuses a key that
/// others than its owner may read. As in PostgreSQL, the group may read a key that belongs to root.
pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Offer>, TlsError> {
    let in_file = |path: &Path| {
        let path = path.to_path_buf();
        move |fault| TlsError::File(path, fault)
    };
    let chain = read(certificate)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(in_file(certificate))?;
    // Before its permissions are judged: for something that is no regular file, changing them is no
    // advice.
    let text = read(key).map_err(in_file(key))?;
    let access = runtime::file::access(key).map_err(|e| in_file(key)(pem::Error::Io(e)))?;
    let open = access.mode & if access.owner == 0 { 0o037 } else { 0o077 };
    if open != 0 {
        return Err(TlsError::Open(key.to_path_buf(), access.mode));
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(in_file(key))?;
    let end_point = chain.first().and_then(|first| end_point::hash(first)).map(Arc::from);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    // A client that names other protocols only is refused.
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(Offer { config: Arc::new(config), end_point }))
}

fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    let mut text = Vec::new();
    let read = runtime::file::open_to_read(path).and_then(|mut file| file.read_to_end(&mut text));
    read.map(|_| text).map_err(pem::Error::Io)
}

/// The protocol's name in the handshake (ALPN), as in PostgreSQL.
const PROTOCOL: &[u8] = b"postgresql";

/// The first byte of a TLS handshake. A start-up packet begins with 0, the first byte of its
/// length.
pub(crate) const TLS_HANDSHAKE: u8 = 0x16;

/// The way in which a connection came to use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The client asked for it by a packet of PostgreSQL's protocol.
    Asked,
    /// The client began with it (`sslnegotiation=direct`). It might be a client of another
    /// protocol, so it must name ours.
    AtOnce,
}

/// Largest buffer that a waiting session keeps, in bytes.
const KEPT: usize = 16 * 1024;

/// One session's TLS state, and its plain text in both directions.
pub struct Tls {
    connection: ServerConnection,
    received: Vec<u8>,
    consumed: usize,
    /// Plain text to be encrypted and sent.
    pub reply: Vec<u8>,
    end_point: Option<Arc<[u8]>>,
    opened: Opened,
}

impl Tls {
    /// A connection that waits for the client's hello.
    pub fn accept(offer: &Offer, opened: Opened) -> Result<Self, rustls::Error> {
        let connection = ServerConnection::new(Arc::clone(&offer.config))?;
        let end_point = offer.end_point.clone();
        Ok(Self { connection, received: Vec::new(), consumed: 0, reply: Vec::new(), end_point, opened })
    }

    /// The channel binding of a client's proof: the hash of the certificate with which this session
    /// began.
    pub(crate) fn end_point(&self) -> Option<&Arc<[u8]>> {
        self.end_point.as_ref()
    }

    /// Whether the handshake is over, and a client that began with TLS did not name the protocol in
    /// it.
    pub(crate) fn lacks_protocol(&self) -> bool {
        self.opened == Opened::AtOnce
            && !self.connection.is_handshaking()
            && self.connection.alpn_protocol() != Some(PROTOCOL)
    }

    /// Plain text received and not consumed.
    pub fn input(&self) -> &[u8] {
        &self.received[self.consumed..]
    }

    /// Drops the first `n` bytes of the input.
    pub fn consume(&mut self, n: usize) {
        self.consumed += n;
        if self.consumed == self.received.len() {
            self.received.clear();
            self.consumed = 0;
        }
    }

    /// Decrypts as much of `ciphertext` as possible. Returns the number of bytes used.
    pub(crate) fn decrypt(&mut self, ciphertext: &[u8]) -> io::Result<usize> {
        let mut rest = ciphertext;
        while !rest.is_empty() {
            let before = rest.len();
            self.connection.read_tls(&mut rest)?;
            self.connection
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            self.take_plaintext()?;
            if rest.len() == before {
                break;
            }
        }
        Ok(ciphertext.len() - rest.len())
    }

    /// Gives back memory that large messages needed. A buffer keeps at most twice its bytes.
    pub fn let_go(&mut self) {
        for buffer in [&mut self.received, &mut self.reply] {
            if buffer.capacity() > KEPT.max(2 * buffer.len()) {
                buffer.shrink_to(KEPT.max(buffer.len()));
            }
        }
    }

    fn take_plaintext(&mut self) -> io::Result<()> {
        if self.consumed > 0 {
            self.received.drain(..self.consumed);
            self.consumed = 0;
        }
        match self.connection.reader().read_to_end(&mut self.received) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Sends the client the end of the connection. Without it, a client that waits for the end of
    /// its cancel request takes the end for a fault.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.connection.send_close_notify();
        // On a broken connection nobody receives it.
        let _ = self.encrypt(out);
    }

    /// Encrypts the reply, and messages of the handshake, behind the bytes in `out`.
    pub fn encrypt(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = self.reply.as_slice();
        loop {
            // The connection buffers a bounded amount: feed and drain it in turns.
            let taken = self.connection.writer().write(rest)?;
            rest = &rest[taken..];
            // A long reply takes tens of milliseconds. An interrupt waits, because half a message
            // cannot be taken back.
            runtime::work::yield_after(taken);
            let before = out.len();
            while self.connection.wants_write() {
                self.connection.write_tls(out)?;
            }
            if rest.is_empty() {
                break;
            }
            if taken == 0 && out.len() == before {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the TLS session takes nothing more",
                ));
            }
        }
        self.reply.clear();
        Ok(())
    }
}
