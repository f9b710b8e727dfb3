//! Places: how many connections there may be, at which stage, and of whom.
//!
//! A connection takes a place when it comes and gives it back when its socket is closed. What must hold:
//!
//! 1. A connection on its way in takes a passing place. So does one whose session has ended and whose socket is still
//!    there: its client has not read, or has not closed. One holder ([`Holder`]) gets half of the passing places.
//! 2. A session takes a session's place. It keeps that when it ends and its holder has no share left, so that sockets
//!    are no more than places. Ended sessions count towards their holder's share in either case.
//! 3. The administrator of the machine is no holder, and has passing places of its own.
//! 4. Of the refused, so many are waited for, and so many linger. The others are told at once and closed.

use crate::secret::Secret;
use crate::throttle::network;
use runtime::interrupt::{Interrupt, Reason};
use runtime::net::Peer;
use sql::{SqlError, SqlState};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use sync::SpinLock;

/// Refused connections whose start-up packets are waited for, and those of one holder that linger.
const REFUSED_MOST: usize = 32;
/// Places beyond those of sessions and logins: for the refused that wait, and as many that have had
/// their last words.
const REFUSED_PLACES: usize = 2 * REFUSED_MOST;
/// Passing places beyond the limit for the machine's administrator.
const ADMINISTRATOR_MORE: usize = 16;

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sessions.
    pub sessions: usize,
    /// Those of them that are kept for superusers.
    pub reserved: usize,
    /// Connections on their way in.
    pub logins: usize,
}

impl Limits {
    /// Connections there may be at one time over TCP, or with `local` over Unix sockets: further
    /// ones wait in the kernel until some have gone.
    pub fn connections(&self, local: bool) -> usize {
        let all = self.sessions.saturating_add(self.logins);
        all.saturating_add(REFUSED_PLACES + if local { ADMINISTRATOR_MORE } else { 0 })
    }

    /// Passing places, for a holder or for the administrator.
    fn passing(&self, holder: Option<Holder>) -> usize {
        self.logins.saturating_add(if holder.is_none() { ADMINISTRATOR_MORE } else { 0 })
    }

    /// Passing places that one holder gets.
    fn share(&self) -> usize {
        self.logins.div_ceil(2)
    }
}

/// Whom a share of the places belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    /// An address, or an IPv6 network. All addresses of loopback are one: a client there has its choice.
    Network(IpAddr),
    /// A user of this machine, over a Unix socket.
    User(u32),
}

impl Holder {
    /// None for the administrator of the machine.
    fn of(peer: &Peer) -> Option<Holder> {
        match peer {
            _ if peer.is_administrator() => None,
            Peer::Unix { user, .. } => Some(Holder::User(*user)),
            Peer::Tcp(address) if address.ip().to_canonical().is_loopback() => {
                Some(Holder::Network(Ipv4Addr::LOCALHOST.into()))
            }
            Peer::Tcp(address) => Some(Holder::Network(network(address.ip()))),
        }
    }
}

/// What a holder has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Held {
    /// Connections on their way in, and ended sessions.
    passing: usize,
    sessions: usize,
    refused: usize,
}

/// The places of a server.
#[derive(Default)]
pub struct Places(SpinLock<Counts>);

#[derive(Default)]
struct Counts {
    passing: usize,
    sessions: usize,
    refused: usize,
    held: HashMap<Holder, Held>,
    /// Refused, and waiting to be asked, so that their clients can be told: the interrupts of their
    /// sessions, oldest first.
    waiting: VecDeque<Arc<Interrupt>>,
    /// What cancel requests must show, by the session's process number.
    secrets: HashMap<u32, Secret>,
}

/// A connection's stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// On its way in, or its session has ended.
    Passing,
    Refused,
    Session,
    /// Its session has ended and keeps its place, since its holder has no other.
    Ended,
}

impl Counts {
    /// Counts a connection at its stage.
    fn add(&mut self, stage: Stage, holder: Option<Holder>) {
        *self.places(stage) += 1;
        if let Some(holder) = holder {
            *self.held.entry(holder).or_default().at(stage) += 1;
        }
    }

    /// Takes a connection back.
    fn take(&mut self, stage: Stage, holder: Option<Holder>) {
        *self.places(stage) -= 1;
        if let Some(holder) = holder
            && let Some(held) = self.held.get_mut(&holder)
        {
            *held.at(stage) -= 1;
            if *held == Held::default() {
                self.held.remove(&holder);
            }
        }
    }

    /// Counts a connection at another stage.
    fn change(&mut self, stage: &mut Stage, to: Stage, holder: Option<Holder>) {
        self.take(*stage, holder);
        self.add(to, holder);
        *stage = to;
    }

    fn places(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Passing => &mut self.passing,
            Stage::Refused => &mut self.refused,
            Stage::Session | Stage::Ended => &mut self.sessions,
        }
    }

    /// Whether a holder may take one more passing place.
    fn has_room(&self, holder: Option<Holder>, limits: &Limits) -> bool {
        let held = holder.and_then(|holder| self.held.get(&holder)).map_or(0, |held| held.passing);
        self.passing < limits.passing(holder) && (holder.is_none() || held < limits.share())
    }
}

impl Held {
    /// What a connection at this stage counts among.
    fn at(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Passing | Stage::Ended => &mut self.passing,
            Stage::Session => &mut self.sessions,
            Stage::Refused => &mut self.refused,
        }
    }
}

/// A connection's place; given back when dropped.
pub struct Place {
    places: Arc<Places>,
    stage: Stage,
    holder: Option<Holder>,
    /// The number by which cancel requests name its session.
    process: Option<u32>,
    /// Its entry among the refused that wait.
    waiting: Option<Arc<Interrupt>>,
}

fn too_many() -> SqlError {
    SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

impl Places {
    /// A place for a connection that has just come: among the passing, else among the refused.
    pub fn arrive(self: &Arc<Self>, peer: &Peer, limits: &Limits) -> Place {
        let holder = Holder::of(peer);
        let mut counts = self.0.lock();
        let stage = if counts.has_room(holder, limits) { Stage::Passing } else { Stage::Refused };
        counts.add(stage, holder);
        drop(counts);
        Place { places: Arc::clone(self), stage, holder, process: None, waiting: None }
    }

    /// The secret of a session, by its process number.
    pub fn secret(&self, process: u32) -> Option<Secret> {
        self.0.lock().secrets.get(&process).copied()
    }
}

impl Place {
    /// Whether the connection may log in.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.stage == Stage::Refused { Err(too_many()) } else { Ok(()) }
    }

    /// Whether its socket may stay after its last words, so that they reach its client in any case.
    pub fn may_linger(&self) -> bool {
        if self.stage != Stage::Refused {
            return true;
        }
        let counts = self.places.0.lock();
        let held = self.holder.and_then(|holder| counts.held.get(&holder)).map_or(0, |held| held.refused);
        held <= REFUSED_MOST && counts.refused <= REFUSED_PLACES
    }

    /// Notes that the connection, if it is refused, waits to be asked. Where too many do, the
    /// oldest of them is told at once: a client that speaks hears of it when it asks, and those
    /// that stay silent keep nobody out.
    pub fn wait_if_refused(&mut self, interrupt: &Arc<Interrupt>) {
        if self.stage == Stage::Refused && self.waiting.is_none() {
            self.waiting = Some(Arc::clone(interrupt));
            let oldest = {
                let mut counts = self.places.0.lock();
                counts.waiting.push_back(Arc::clone(interrupt));
                if counts.waiting.len() > REFUSED_MOST { counts.waiting.pop_front() } else { None }
            };
            if let Some(oldest) = oldest {
                oldest.raise(Reason::Terminate);
            }
        }
    }

    /// Takes a session's place, or refuses it where there are too many.
    pub fn enter(&mut self, superuser: bool, limits: &Limits) -> Result<(), SqlError> {
        self.check()?;
        let mut counts = self.places.0.lock();
        let free = limits.sessions.saturating_sub(counts.sessions);
        if free == 0 {
            drop(counts);
            return Err(too_many());
        }
        if free <= limits.reserved && !superuser {
            drop(counts);
            let message = "remaining connection slots are reserved for roles with the SUPERUSER attribute";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        counts.change(&mut self.stage, Stage::Session, self.holder);
        Ok(())
    }

    /// Makes the session known to cancel requests under its process number: they must show this
    /// secret.
    pub fn name(&mut self, process: u32, secret: Secret) {
        self.process = Some(process);
        self.places.0.lock().secrets.insert(process, secret);
    }

    /// Forgets the session's number, before another session may get it.
    pub fn unname(&mut self) {
        if let Some(process) = self.process.take() {
            self.places.0.lock().secrets.remove(&process);
        }
    }

    /// Its session has ended. Others get the session's place, if its socket has another.
    pub fn end(&mut self, limits: &Limits) {
        if self.stage == Stage::Session {
            let mut counts = self.places.0.lock();
            let has_room = counts.has_room(self.holder, limits);
            let stage = if has_room { Stage::Passing } else { Stage::Ended };
            counts.change(&mut self.stage, stage, self.holder);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.unname();
        let mut counts = self.places.0.lock();
        counts.take(self.stage, self.holder);
        if let Some(waiting) = &self.waiting {
            counts.waiting.retain(|one| !Arc::ptr_eq(one, waiting));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { sessions: 10, reserved: 2, logins: 6 };

    /// A user of the machine that runs no test.
    fn user(number: u32) -> Peer {
        Peer::Unix { user: 54_321 + number, process: None }
    }

    fn at(address: [u8; 4]) -> Peer {
        Peer::Tcp((address, 999).into())
    }

    /// As many places as may log in, of those that come from `peer`.
    fn all_of(places: &Arc<Places>, peer: &Peer) -> Vec<Place> {
        let arrivals = std::iter::repeat_with(|| places.arrive(peer, &LIMITS));
        arrivals.take_while(|place| place.check().is_ok()).take(100).collect()
    }

    #[test]
    fn a_holder_gets_half_of_the_ways_in() {
        for (one, same, other) in [
            (user(1), user(1), user(2)),
            (at([10, 0, 0, 1]), at([10, 0, 0, 1]), at([10, 0, 0, 2])),
            (at([127, 0, 0, 1]), at([127, 0, 0, 2]), user(1)),
        ] {
            let places = Arc::<Places>::default();
            let of_one = all_of(&places, &one);
            assert_eq!(of_one.len(), 3);
            assert!(all_of(&places, &same).is_empty());
            let of_other = all_of(&places, &other);
            assert_eq!(of_other.len(), 3);
            let root = all_of(&places, &Peer::Unix { user: 0, process: None });
            assert_eq!(root.len(), ADMINISTRATOR_MORE);
            drop((of_one, of_other, root));
            let counts = places.0.lock();
            assert_eq!((counts.passing, counts.refused, counts.held.len()), (0, 0, 0));
        }
    }

    #[test]
    fn ended_sessions_count_and_leave_the_reserved_places() {
        let places = Arc::<Places>::default();
        let mut kept = Vec::new();
        while kept.len() < 8 {
            let mut place = places.arrive(&user(1), &LIMITS);
            place.enter(false, &LIMITS).unwrap();
            kept.push(place);
        }
        assert!(places.arrive(&user(1), &LIMITS).enter(false, &LIMITS).is_err());
        assert!(places.arrive(&user(1), &LIMITS).enter(true, &LIMITS).is_ok());
        kept.iter_mut().for_each(|place| place.end(&LIMITS));
        // Three are among the passing, five keep their sessions' places; all eight are the user's.
        assert!(all_of(&places, &user(1)).is_empty());
        {
            let counts = places.0.lock();
            assert_eq!((counts.passing, counts.sessions), (3, 5));
        }
        let mut other = places.arrive(&user(2), &LIMITS);
        assert!(other.enter(false, &LIMITS).is_ok());
        kept.truncate(2);
        assert_eq!(all_of(&places, &user(1)).len(), 1);
        drop((kept, other));
        let counts = places.0.lock();
        assert_eq!((counts.passing, counts.sessions, counts.held.len()), (0, 0, 0));
    }
}
