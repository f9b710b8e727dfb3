//! What all connections of a server share: the database, who may come in, and who can be cancelled.

use crate::scram::Verifier;
use runtime::interrupt::{Interrupt, Reason};
use rustls::ServerConfig;
use sql::{Database, SqlError, SqlState};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use sync::SpinLock;

/// Finds what is kept of a user's password.
pub type PasswordSource = Box<dyn Fn(&str) -> Option<Verifier> + Send + Sync>;

/// What all connections share.
pub struct Shared {
    /// The database served.
    pub database: Database,
    /// TLS, where it is offered.
    pub tls: Option<Arc<ServerConfig>>,
    /// The passwords, where clients must prove themselves.
    pub passwords: Option<PasswordSource>,
    /// How long a client may take to log in.
    pub login_limit: Duration,
    max_connections: usize,
    secret: [u8; 32],
    sessions: SpinLock<Sessions>,
}

#[derive(Default)]
struct Sessions {
    last: u32,
    live: HashMap<u32, (u32, Arc<Interrupt>)>,
}

/// A session's place among the live ones; given back when dropped.
pub struct Registration {
    shared: Arc<Shared>,
    /// The number the client knows the session by.
    pub process: u32,
    /// What a cancel request must show.
    pub secret: u32,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.sessions.lock().live.remove(&self.process);
    }
}

impl Shared {
    /// For a server of `database`.
    pub fn new(
        database: Database,
        tls: Option<Arc<ServerConfig>>,
        passwords: Option<PasswordSource>,
        max_connections: usize,
    ) -> Arc<Self> {
        let mut secret = [0; 32];
        runtime::random::fill(&mut secret);
        let sessions = SpinLock::new(Sessions::default());
        let login_limit = Duration::from_secs(60);
        Arc::new(Self { database, tls, passwords, login_limit, max_connections, secret, sessions })
    }

    /// A value nobody outside knows, the same while the server runs.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Makes a session known to cancel requests, or refuses it where there are too many.
    pub fn register(self: &Arc<Self>, interrupt: &Arc<Interrupt>) -> Result<Registration, SqlError> {
        let mut secret = [0; 4];
        runtime::random::fill(&mut secret);
        let secret = u32::from_be_bytes(secret);
        let mut sessions = self.sessions.lock();
        if sessions.live.len() >= self.max_connections {
            drop(sessions);
            let message = "sorry, too many clients already";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        loop {
            // Process numbers are positive 31-bit integers to clients.
            sessions.last = sessions.last % 0x7fff_ffff + 1;
            if !sessions.live.contains_key(&sessions.last) {
                break;
            }
        }
        let process = sessions.last;
        sessions.live.insert(process, (secret, Arc::clone(interrupt)));
        Ok(Registration { shared: Arc::clone(self), process, secret })
    }

    /// Interrupts the statement of a session, where the secret is the session's.
    pub fn cancel(&self, process: u32, secret: u32) {
        let found = self.sessions.lock().live.get(&process).cloned();
        if let Some((expected, interrupt)) = found
            && expected == secret
        {
            interrupt.raise(Reason::Cancel);
        }
    }
}
