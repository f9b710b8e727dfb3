//! State that all connections of a server share: the database, the login policy, the places of connections, logins
//! that have failed.
//!
//! Connections write here when they come, log in and go; no statement does.

use crate::places::{Limits, Place, Places};
use crate::scram::Verifier;
use crate::throttle::{Throttle, TooMany};
use crate::tls::Offer;
use runtime::interrupt::Reason;
use runtime::net::Peer;
use sql::database::Database;
use std::sync::Arc;
use std::time::Duration;
use sync::SpinLock;
use sync::atomic::{AtomicU64, Ordering};

/// Finds what is kept of a user's password.
pub type PasswordSource = dyn Fn(&str) -> Option<Verifier> + Send + Sync;

/// Which clients may connect, and how. A running server takes another policy for the connections that come after it.
#[derive(Clone)]
pub struct Policy {
    /// TLS, where it is offered.
    pub tls: Option<Arc<Offer>>,
    /// Whether a client that comes over TCP must use TLS.
    pub tls_required: bool,
    /// The passwords, where clients must prove themselves; None where every client is believed.
    pub passwords: Option<Arc<PasswordSource>>,
    /// Makes the salts that unknown users are shown: known to nobody outside, and the same after a restart.
    pub secret: [u8; 32],
    /// Longest time that a login may take.
    pub login_limit: Duration,
    /// Connections that may be on their way in at one time.
    pub max_logins: usize,
    /// Of the sessions there may be, those kept for superusers.
    pub reserved: usize,
    /// Settings that sessions begin with: names and values.
    pub settings: Vec<(String, String)>,
}

impl Default for Policy {
    /// Believes every client, takes a minute for each and any number of them.
    fn default() -> Self {
        Self {
            tls: None,
            tls_required: false,
            passwords: None,
            secret: [0; 32],
            login_limit: Duration::from_secs(60),
            max_logins: usize::MAX,
            reserved: 0,
            settings: Vec::new(),
        }
    }
}

/// What all connections share.
pub struct Shared {
    /// The database served.
    pub database: Database,
    policy: SpinLock<Arc<Policy>>,
    /// Grows with each new policy.
    policies: AtomicU64,
    places: Arc<Places>,
    throttle: SpinLock<Throttle>,
}

impl Shared {
    /// For a server of `database`.
    pub fn new(database: Database, policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            database,
            policy: SpinLock::new(Arc::new(policy)),
            policies: AtomicU64::new(0),
            places: Arc::default(),
            throttle: SpinLock::default(),
        })
    }

    /// The policy for connections that come now.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.lock())
    }

    /// Takes another policy.
    pub fn set_policy(&self, policy: Policy) {
        let before = std::mem::replace(&mut *self.policy.lock(), Arc::new(policy));
        // Release: whoever sees the number finds the policy.
        self.policies.fetch_add(1, Ordering::Release);
        drop(before);
    }

    /// The number of the policy there is, or of one before it.
    #[inline]
    pub fn policy_number(&self) -> u64 {
        self.policies.load(Ordering::Acquire) // pairs with set_policy
    }

    /// How many connections there may be.
    pub fn limits(&self) -> Limits {
        let policy = self.policy();
        let sessions = self.database.max_connections();
        Limits { sessions, reserved: policy.reserved, logins: policy.max_logins }
    }

    /// A place for a connection that has just come.
    pub fn arrive(&self, peer: &Peer) -> Place {
        self.places.arrive(peer, &self.limits())
    }

    /// How long the answer to a client's proof has to wait, because its user or its address has failed before.
    pub fn wait(&self, peer: &Peer, user: &str) -> Result<Duration, TooMany> {
        let Peer::Tcp(address) = peer else { return Ok(Duration::ZERO) };
        self.throttle.lock().wait(address.ip(), user, runtime::time::precise())
    }

    /// Notes that a client could not prove that it is this user.
    pub fn failed(&self, peer: &Peer, user: &str) {
        if let Peer::Tcp(address) = peer {
            self.throttle.lock().failed(address.ip(), user, runtime::time::precise());
        }
    }

    /// Interrupts the statement of a session, where the secret that is shown is the session's.
    pub fn cancel(&self, process: u32, shown: &[u8]) {
        if self.places.secret(process).is_some_and(|expected| expected.is(shown)) {
            self.database.interrupt(process, Reason::Cancel);
        }
    }
}
