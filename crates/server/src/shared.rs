//! What all connections of a server share: the database, who may come in, and who can be cancelled.

use crate::scram::{Verifier, random_bytes};
use runtime::interrupt::Reason;
use rustls::ServerConfig;
use sql::database::Database;
use sql::{SqlError, SqlState};
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
    secret: [u8; 32],
    sessions: SpinLock<Sessions>,
}

#[derive(Default)]
struct Sessions {
    /// Sessions that are in or on their way in.
    count: usize,
    /// What a cancel request must show, by the session's process number.
    secrets: HashMap<u32, u32>,
}

/// A session's place among the live ones; given back when dropped.
pub struct Registration {
    shared: Arc<Shared>,
    secret: u32,
    process: Option<u32>,
}

impl Registration {
    /// What a cancel request must show.
    pub fn secret(&self) -> u32 {
        self.secret
    }

    /// Makes the session known to cancel requests under its process number.
    pub fn name(&mut self, process: u32) {
        self.process = Some(process);
        self.shared.sessions.lock().secrets.insert(process, self.secret);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut sessions = self.shared.sessions.lock();
        sessions.count -= 1;
        if let Some(process) = self.process {
            sessions.secrets.remove(&process);
        }
    }
}

impl Shared {
    /// For a server of `database`.
    pub fn new(
        database: Database,
        tls: Option<Arc<ServerConfig>>,
        passwords: Option<PasswordSource>,
        login_limit: Duration,
    ) -> Arc<Self> {
        let secret = random_bytes();
        let sessions = SpinLock::new(Sessions::default());
        Arc::new(Self { database, tls, passwords, login_limit, secret, sessions })
    }

    /// A value nobody outside knows, the same while the server runs.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Takes a place for a session, or refuses it where there are too many.
    pub fn register(self: &Arc<Self>) -> Result<Registration, SqlError> {
        let secret = u32::from_be_bytes(random_bytes());
        let mut sessions = self.sessions.lock();
        if sessions.count >= self.database.max_connections() {
            drop(sessions);
            let message = "sorry, too many clients already";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        sessions.count += 1;
        Ok(Registration { shared: Arc::clone(self), secret, process: None })
    }

    /// Interrupts the statement of a session, where the secret is the session's.
    pub fn cancel(&self, process: u32, secret: u32) {
        let expected = self.sessions.lock().secrets.get(&process).copied();
        if expected == Some(secret) {
            self.database.interrupt(process, Reason::Cancel);
        }
    }
}
