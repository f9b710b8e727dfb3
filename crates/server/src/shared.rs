//! State that all connections of a server share: the database, the login policy, the places of
//! connections, failed logins.
//!
//! Connections write here when they come, log in and go; no statement does.
//!
//! What must hold:
//!
//! 1. A policy is replaced whole. A login reads all its rules from the policy that was in force
//!    when its connection came.
//! 2. The policy's number grows after the policy is in its place. So a session that sees the new
//!    number finds that policy or a later one.
//! 3. The former policy is dropped outside of the spin lock: it may hold the last reference to a
//!    certificate and to passwords.
//! 4. A statement is cancelled only by a client that shows the session's secret.

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

/// Looks up a user's verifier.
pub type PasswordSource = dyn Fn(&str) -> Option<Verifier> + Send + Sync;

/// The clients that may connect, and how. A running server may get another policy for later
/// connections.
#[derive(Clone)]
pub struct Policy {
    /// TLS, if the server offers it.
    pub tls: Option<Arc<Offer>>,
    /// Whether a TCP client must use TLS.
    pub tls_required: bool,
    /// The passwords; `None` if clients need no proof.
    pub passwords: Option<Arc<PasswordSource>>,
    /// The secret from which the salts of unknown users come: known to nobody outside, and the same
    /// after a restart.
    pub secret: [u8; 32],
    /// Longest time of a login.
    pub login_limit: Duration,
    /// Most connections on their way in at one time.
    pub max_logins: usize,
    /// Sessions reserved for the user `postgres`.
    pub reserved: usize,
    /// Settings with which sessions begin: names and values.
    pub settings: Vec<(String, String)>,
}

impl Default for Policy {
    /// Needs no proof, gives each login a minute, and takes any number of clients.
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

/// The state that all connections share.
pub struct Shared {
    /// The served database.
    pub database: Database,
    policy: SpinLock<Arc<Policy>>,
    /// Grows with each new policy.
    policies: AtomicU64,
    places: Arc<Places>,
    throttle: SpinLock<Throttle>,
}

impl Shared {
    /// The state for a server of `database`.
    pub fn new(database: Database, policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            database,
            policy: SpinLock::new(&"login policy", Arc::new(policy)),
            policies: AtomicU64::new(0),
            places: Arc::default(),
            throttle: SpinLock::new(&"login throttle", Throttle::default()),
        })
    }

    /// The policy for connections that come now.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.lock())
    }

    /// Sets another policy.
    pub(crate) fn set_policy(&self, policy: Policy) {
        let before = std::mem::replace(&mut *self.policy.lock(), Arc::new(policy));
        // Release: a reader of the number finds the policy.
        self.policies.fetch_add(1, Ordering::Release);
        drop(before);
    }

    /// The number of the present policy, or of an earlier one.
    #[inline]
    pub(crate) fn policy_number(&self) -> u64 {
        self.policies.load(Ordering::Acquire) // pairs with set_policy
    }

    /// The bounds of the numbers of connections.
    pub fn limits(&self) -> Limits {
        let policy = self.policy();
        let sessions = self.database.max_connections();
        Limits { sessions, reserved: policy.reserved, logins: policy.max_logins }
    }

    /// A place for a new connection.
    pub(crate) fn arrive(&self, peer: &Peer) -> Place {
        self.places.arrive(peer, &self.limits())
    }

    /// How long the answer to a client's proof waits because its user or its address has failed
    /// before.
    pub fn wait(&self, peer: &Peer, user: &str) -> Result<Duration, TooMany> {
        let Peer::Tcp(address) = peer else { return Ok(Duration::ZERO) };
        self.throttle.lock().wait(address.ip(), user, runtime::time::precise())
    }

    /// Notes that a client failed to prove that it is this user.
    pub fn failed(&self, peer: &Peer, user: &str) {
        if let Peer::Tcp(address) = peer {
            self.throttle.lock().failed(address.ip(), user, runtime::time::precise());
        }
    }

    /// Interrupts the statement of a session, if the shown secret is the session's.
    pub fn cancel(&self, process: u32, shown: &[u8]) {
        if self.places.secret(process).is_some_and(|expected| expected.is(shown)) {
            self.database.interrupt(process, Reason::Cancel);
        }
    }
}
