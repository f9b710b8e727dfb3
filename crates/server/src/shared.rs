//! State that all connections of a server share: the database, the login policy, clients that log in and clients that
//! are in.
//!
//! Connections are counted when they come, log in and go; no statement writes here.

use crate::scram::Verifier;
use crate::secret::Secret;
use crate::throttle::{Throttle, TooMany};
use crate::tls::Offer;
use runtime::interrupt::{Interrupt, Reason};
use runtime::net::{Accepted, Peer};
use sql::database::Database;
use sql::{SqlError, SqlState};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
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
    places: SpinLock<Places>,
    throttle: SpinLock<Throttle>,
}

/// Connections by how far they have come.
#[derive(Default)]
struct Places {
    /// On their way in.
    coming: usize,
    /// Those of them that come from one address of another machine.
    coming_from: HashMap<IpAddr, usize>,
    /// Refused, and waiting to be asked, so that their clients can be told: the interrupts of their
    /// sessions, oldest first.
    refused: VecDeque<Arc<Interrupt>>,
    /// Logged in.
    inside: usize,
    /// What a cancel request must show, by the session's process number.
    secrets: HashMap<u32, Secret>,
}

/// Refused connections whose start-up packets are waited for; of more the oldest ones are told at
/// once.
const REFUSED_MOST: usize = 32;
/// Places beyond those of sessions and logins: for the refused that wait, and as many that have had
/// their last words.
const REFUSED_PLACES: usize = 2 * REFUSED_MOST;
/// Places beyond `max_logins` for those who come over a Unix socket: the machine's administrator.
const LOCAL_MORE: usize = 16;

/// A connection's stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Coming,
    Refused,
    Inside,
}

/// A connection's place; given back when dropped.
pub struct Place {
    shared: Arc<Shared>,
    stage: Stage,
    /// Whose count of comers it is in.
    from: Option<IpAddr>,
    /// The number by which cancel requests name its session.
    process: Option<u32>,
    /// Its entry among the refused that wait.
    waiting: Option<Arc<Interrupt>>,
}

/// The address of a client on another machine.
fn remote(peer: &Peer) -> Option<IpAddr> {
    match peer {
        Peer::Tcp(address) => Some(address.ip().to_canonical()).filter(|address| !address.is_loopback()),
        Peer::Unix { .. } => None,
    }
}

fn too_many() -> SqlError {
    SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

impl Place {
    /// Whether the connection may log in.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.stage == Stage::Refused { Err(too_many()) } else { Ok(()) }
    }

    /// Notes that the connection, if it is refused, waits to be asked. Where too many do, the
    /// oldest of them is told at once: a client that speaks hears of it when it asks, and those
    /// that stay silent keep nobody out.
    pub fn wait_if_refused(&mut self, interrupt: &Arc<Interrupt>) {
        if self.stage == Stage::Refused && self.waiting.is_none() {
            self.waiting = Some(Arc::clone(interrupt));
            let oldest = {
                let mut places = self.shared.places.lock();
                places.refused.push_back(Arc::clone(interrupt));
                if places.refused.len() > REFUSED_MOST { places.refused.pop_front() } else { None }
            };
            if let Some(oldest) = oldest {
                oldest.raise(Reason::Terminate);
            }
        }
    }

    /// Takes a place among the sessions, or refuses it where there are too many.
    pub fn enter(&mut self, superuser: bool) -> Result<(), SqlError> {
        self.check()?;
        let reserved = self.shared.policy().reserved;
        let mut places = self.shared.places.lock();
        let free = self.shared.database.max_connections().saturating_sub(places.inside);
        if free == 0 {
            drop(places);
            return Err(too_many());
        }
        if free <= reserved && !superuser {
            drop(places);
            let message = "remaining connection slots are reserved for roles with the SUPERUSER attribute";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        places.leave(self.stage, self.from.take());
        places.inside += 1;
        self.stage = Stage::Inside;
        Ok(())
    }

    /// Makes the session known to cancel requests under its process number: they must show this
    /// secret.
    pub fn name(&mut self, process: u32, secret: Secret) {
        self.process = Some(process);
        self.shared.places.lock().secrets.insert(process, secret);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.shared.places.lock();
        places.leave(self.stage, self.from.take());
        if let Some(waiting) = &self.waiting {
            places.refused.retain(|one| !Arc::ptr_eq(one, waiting));
        }
        if let Some(process) = self.process {
            places.secrets.remove(&process);
        }
    }
}

impl Places {
    fn leave(&mut self, stage: Stage, from: Option<IpAddr>) {
        match stage {
            Stage::Coming => self.coming -= 1,
            Stage::Refused => {}
            Stage::Inside => self.inside -= 1,
        }
        let Some(from) = from else { return };
        if let Some(count) = self.coming_from.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.coming_from.remove(&from);
            }
        }
    }
}

impl Shared {
    /// For a server of `database`.
    pub fn new(database: Database, policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            database,
            policy: SpinLock::new(Arc::new(policy)),
            policies: AtomicU64::new(0),
            places: SpinLock::default(),
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

    /// Connections there may be at one time over TCP, or with `local` over Unix sockets: further
    /// ones wait in the kernel until some have gone. Those that have had their last words are still
    /// there for a moment, and hold descriptors.
    pub fn most_connections(&self, local: bool) -> usize {
        let all = self.database.max_connections().saturating_add(self.policy().max_logins);
        all.saturating_add(REFUSED_PLACES + if local { LOCAL_MORE } else { 0 })
    }

    /// A place for a connection that has just come: among those on their way in, else among the
    /// refused. One address of another machine gets at most half of the places, so that a stranger
    /// who takes them all leaves some to others.
    pub fn arrive(self: &Arc<Self>, accepted: &Accepted) -> Place {
        let peer = &accepted.peer;
        let most = self.policy().max_logins;
        let (most, from) = match peer {
            Peer::Unix { .. } => (most.saturating_add(LOCAL_MORE), None),
            Peer::Tcp(_) => (most, remote(peer)),
        };
        let mut places = self.places.lock();
        let crowded = from.is_some_and(|from| {
            places.coming_from.get(&from).is_some_and(|count| *count >= most.div_ceil(2))
        });
        let (stage, from) = if places.coming < most && !crowded {
            places.coming += 1;
            (Stage::Coming, from)
        } else {
            (Stage::Refused, None)
        };
        if let Some(from) = from {
            *places.coming_from.entry(from).or_default() += 1;
        }
        drop(places);
        Place { shared: Arc::clone(self), stage, from, process: None, waiting: None }
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
        let expected = self.places.lock().secrets.get(&process).copied();
        if expected.is_some_and(|expected| expected.is(shown)) {
            self.database.interrupt(process, Reason::Cancel);
        }
    }
}
