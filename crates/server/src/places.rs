//! Places: the numbers of connections by stage and by holder.
//!
//! A connection takes a place when it comes and gives it back when its socket is closed. It
//! *passes* in two stages. One is on its way in. The other is when its session has ended but its
//! socket still exists, because the client has not read or not closed. Invariants:
//!
//! 1. A connection comes in only to a free passing place of its holder's share: half of them for
//!    each [`Holder`].
//! 2. The administrator of the machine fills passing places of its own first. Beyond them it is a
//!    holder like others.
//! 3. Passing connections beyond the passing places are ended sessions. [`ENDED_MORE`] of them have
//!    further places; the others keep places of sessions. [`Counts::kept`] computes their number,
//!    so they get a place at once when one becomes free.
//! 4. Live sessions and kept places together are at most the number of sessions allowed. So there
//!    are never more sockets than [`Limits::connections`].
//! 5. The refused connections whose start-up packets the server waits for are bounded, and so are
//!    those that linger. The server answers the others at once and closes them.
//!
//! So suppose that one holder leaves all sessions it can have unread, and fills its share
//! otherwise. It still leaves others [`ENDED_MORE`] places of sessions. It gets no further
//! connection in until it has fewer ended sessions than its share. Two holders can fill all passing
//! places but the administrator's: loopback is a holder, so a user of the machine can be two.

use crate::secret::Secret;
use crate::throttle::network;
use runtime::hash::{HashMap, SeededMap};
use runtime::interrupt::{Interrupt, Reason};
use runtime::net::Peer;
use sql::{SqlError, SqlState};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use sync::SpinLock;

/// Most refused connections whose start-up packets the server waits for; also the most of one
/// holder that linger.
const REFUSED_MOST: usize = 32;
/// Places beyond those of sessions and logins: for the refused connections that wait, and for as
/// many that have got their last error.
const REFUSED_PLACES: usize = 2 * REFUSED_MOST;
/// Passing places of the machine's administrator, beyond the limit.
const ADMINISTRATOR_OWN: usize = 16;

/// Places for ended sessions alone, used once the passing places do not suffice.
const ENDED_MORE: usize = 8;

/// Bounds of the numbers of connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sessions.
    pub sessions: usize,
    /// Sessions reserved for the user `postgres`, among these.
    pub reserved: usize,
    /// Connections on their way in.
    pub logins: usize,
}

impl Limits {
    /// Most connections at one time over TCP or, with `local`, over Unix sockets. Further ones wait
    /// in the kernel until some have gone.
    pub fn connections(&self, local: bool) -> usize {
        let all = self.sessions.saturating_add(self.logins);
        all.saturating_add(ENDED_MORE + REFUSED_PLACES + if local { ADMINISTRATOR_OWN } else { 0 })
    }

    /// Common passing places that one holder gets.
    fn share(&self) -> usize {
        self.logins.div_ceil(2)
    }
}

/// The owner of a share of the places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    /// An address, or an IPv6 network. All addresses of loopback are one, because a client there
    /// can choose among them.
    Network(IpAddr),
    /// A user of this machine, over a Unix socket.
    User(u32),
    /// Root, or the user as which the server runs, over a Unix socket.
    Administrator,
}

impl Holder {
    fn of(peer: &Peer) -> Holder {
        match peer {
            _ if peer.is_administrator() => Holder::Administrator,
            Peer::Unix { user, .. } => Holder::User(*user),
            Peer::Tcp(address) if address.ip().to_canonical().is_loopback() => {
                Holder::Network(Ipv4Addr::LOCALHOST.into())
            }
            Peer::Tcp(address) => Holder::Network(network(address.ip())),
        }
    }

    /// Passing places of this holder alone.
    fn own(self) -> usize {
        if self == Holder::Administrator { ADMINISTRATOR_OWN } else { 0 }
    }
}

/// The numbers of a holder's connections.
#[derive(Debug, Default)]
struct Held {
    /// Connections on their way in, and ended sessions.
    passing: usize,
    /// Those beyond its own places that its share covers.
    shared: usize,
    sessions: usize,
    refused: usize,
}

/// The places of a server.
pub struct Places(SpinLock<Counts>);

impl Default for Places {
    fn default() -> Places {
        Places(SpinLock::new(&"places", Counts::default()))
    }
}

#[derive(Default)]
struct Counts {
    /// Passing connections beyond their holders' own places.
    passing: usize,
    /// Those that their holders' shares cover.
    shared: usize,
    sessions: usize,
    refused: usize,
    held: SeededMap<Holder, Held>,
    /// Refused connections that wait for a start-up packet, so that their clients can get an error:
    /// the interrupts of their sessions, oldest first.
    waiting: VecDeque<Arc<Interrupt>>,
    /// The secrets that cancel requests must show, by the session's process number.
    secrets: HashMap<u32, Secret>,
}

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// On its way in, or its session has ended.
    Passing,
    Refused,
    Session,
}

impl Counts {
    /// Counts a connection at its stage.
    fn add(&mut self, stage: Stage, holder: Holder, limits: &Limits) {
        let held = self.held.entry(holder).or_default();
        match stage {
            Stage::Passing => {
                held.passing += 1;
                if held.passing > holder.own() {
                    self.passing += 1;
                    if held.shared < limits.share() {
                        held.shared += 1;
                        self.shared += 1;
                    }
                }
            }
            Stage::Refused => {
                held.refused += 1;
                self.refused += 1;
            }
            Stage::Session => {
                held.sessions += 1;
                self.sessions += 1;
            }
        }
    }

    /// Takes a connection out of the counts.
    fn take(&mut self, stage: Stage, holder: Holder) {
        let Some(held) = self.held.get_mut(&holder) else { return };
        match stage {
            Stage::Passing => {
                held.passing -= 1;
                if held.passing >= holder.own() {
                    self.passing -= 1;
                    if held.shared > held.passing - holder.own() {
                        held.shared -= 1;
                        self.shared -= 1;
                    }
                }
            }
            Stage::Refused => {
                held.refused -= 1;
                self.refused -= 1;
            }
            Stage::Session => {
                held.sessions -= 1;
                self.sessions -= 1;
            }
        }
        if held.passing + held.sessions + held.refused == 0 {
            self.held.remove(&holder);
        }
    }

    /// Moves a connection to another stage.
    fn change(&mut self, stage: &mut Stage, to: Stage, holder: Holder, limits: &Limits) {
        self.take(*stage, holder);
        self.add(to, holder, limits);
        *stage = to;
    }

    /// Whether one more connection of a holder may come in.
    fn has_room(&self, holder: Holder, limits: &Limits) -> bool {
        let passing = self.held.get(&holder).map_or(0, |held| held.passing);
        passing < holder.own() || self.shared < limits.logins && passing - holder.own() < limits.share()
    }

    /// Places of sessions that ended sessions keep, because they have no other.
    fn kept(&self, limits: &Limits) -> usize {
        (self.passing - self.shared.min(limits.logins)).saturating_sub(ENDED_MORE)
    }
}

/// A connection's place. Dropping it gives the place back.
pub struct Place {
    places: Arc<Places>,
    stage: Stage,
    holder: Holder,
    /// The number by which cancel requests name its session.
    process: Option<u32>,
    /// Its entry among the refused connections that wait.
    waiting: Option<Arc<Interrupt>>,
}

fn too_many() -> SqlError {
    SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

impl Places {
    /// A place for a new connection: among the passing ones, otherwise among the refused.
    pub(crate) fn arrive(self: &Arc<Self>, peer: &Peer, limits: &Limits) -> Place {
        let holder = Holder::of(peer);
        let mut counts = self.0.lock();
        let stage = if counts.has_room(holder, limits) { Stage::Passing } else { Stage::Refused };
        counts.add(stage, holder, limits);
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

    /// Whether its socket may stay after its last error, so that the error reaches the client in
    /// any case.
    pub(crate) fn may_linger(&self) -> bool {
        if self.stage != Stage::Refused {
            return true;
        }
        let counts = self.places.0.lock();
        let held = counts.held.get(&self.holder).map_or(0, |held| held.refused);
        held <= REFUSED_MOST && counts.refused <= REFUSED_PLACES
    }

    /// Notes that the connection, if it is refused, waits for a start-up packet. If too many wait,
    /// the oldest of them gets its error at once. So a client that speaks learns of the refusal,
    /// and silent ones keep nobody out.
    pub(crate) fn wait_if_refused(&mut self, interrupt: &Arc<Interrupt>) {
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

    /// Takes a place of a session, or refuses it if there are too many.
    pub fn enter(&mut self, has_reserve: bool, limits: &Limits) -> Result<(), SqlError> {
        self.check()?;
        let mut counts = self.places.0.lock();
        let free = limits.sessions.saturating_sub(counts.sessions + counts.kept(limits));
        if free == 0 {
            drop(counts);
            return Err(too_many());
        }
        if free <= limits.reserved && !has_reserve {
            drop(counts);
            let message = "remaining connection slots are reserved for the role \"postgres\"";
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, message));
        }
        counts.change(&mut self.stage, Stage::Session, self.holder, limits);
        Ok(())
    }

    /// Makes the session known to cancel requests under its process number; they must show this
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

    /// Ends its session: the connection passes again, until its socket is closed.
    pub fn end(&mut self, limits: &Limits) {
        if self.stage == Stage::Session {
            let mut counts = self.places.0.lock();
            counts.change(&mut self.stage, Stage::Passing, self.holder, limits);
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

    const LIMITS: Limits = Limits { sessions: 20, reserved: 2, logins: 6 };

    /// A user of the machine other than the one that runs the test.
    fn user(number: u32) -> Peer {
        Peer::Unix { user: 54_321 + number, process: None }
    }

    fn at(address: [u8; 4]) -> Peer {
        Peer::Tcp((address, 999).into())
    }

    /// Places of `peer`, as many as may log in.
    fn all_of(places: &Arc<Places>, peer: &Peer) -> Vec<Place> {
        let arrivals = std::iter::repeat_with(|| places.arrive(peer, &LIMITS));
        arrivals.take_while(|place| place.check().is_ok()).take(100).collect()
    }

    fn root() -> Peer {
        Peer::Unix { user: 0, process: None }
    }

    /// Sessions of `peer`, as many as get in.
    fn sessions_of(places: &Arc<Places>, peer: &Peer, has_reserve: bool) -> Vec<Place> {
        let arrivals = std::iter::repeat_with(|| places.arrive(peer, &LIMITS));
        let entered =
            arrivals.map_while(|mut place| place.enter(has_reserve, &LIMITS).is_ok().then_some(place));
        entered.take(100).collect()
    }

    fn end_all(sessions: &mut [Place]) {
        sessions.iter_mut().for_each(|place| place.end(&LIMITS));
    }

    /// Numbers of passing connections, of those that shares cover, of places that ended sessions
    /// keep, and of live sessions.
    fn counted(places: &Arc<Places>) -> [usize; 4] {
        let counts = places.0.lock();
        let kept = counts.kept(&LIMITS);
        assert!(counts.sessions + kept <= LIMITS.sessions);
        [counts.passing, counts.shared, kept, counts.sessions]
    }

    fn assert_empty(places: &Arc<Places>) {
        assert_eq!(counted(places), [0; 4]);
        let counts = places.0.lock();
        assert_eq!((counts.refused, counts.held.len()), (0, 0));
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
            let of_root = all_of(&places, &root());
            assert_eq!(of_root.len(), ADMINISTRATOR_OWN);
            drop((of_one, of_other, of_root));
            assert_empty(&places);
        }
    }

    #[test]
    fn the_administrator_fills_its_own_places_first() {
        let places = Arc::<Places>::default();
        let mut of_root = all_of(&places, &root());
        assert_eq!(of_root.len(), ADMINISTRATOR_OWN + 3);
        assert_eq!(counted(&places), [3, 3, 0, 0]);
        assert_eq!(all_of(&places, &user(1)).len(), 3);
        of_root.truncate(ADMINISTRATOR_OWN);
        assert_eq!(counted(&places), [0; 4]);
        let of_users = [all_of(&places, &user(1)), all_of(&places, &user(2))];
        assert_eq!(of_users.map(|of_user| of_user.len()), [3, 3]);
        drop(of_root);
        assert_empty(&places);
    }

    #[test]
    fn ended_sessions_beyond_the_share_keep_places_until_others_of_the_holder_go() {
        let places = Arc::<Places>::default();
        let mut ended = sessions_of(&places, &user(1), false);
        assert_eq!(ended.len(), 18);
        // They end while the holder's share is filled.
        let mut silent = all_of(&places, &user(1));
        end_all(&mut ended);
        assert_eq!(counted(&places), [21, 3, 10, 0]);
        assert_eq!(sessions_of(&places, &user(2), false).len(), ENDED_MORE);
        // Each that goes leaves its passing place to an ended session, which gives back another
        // place.
        silent.pop();
        assert_eq!(counted(&places), [20, 3, 9, 0]);
        drop(silent);
        assert_eq!(counted(&places), [18, 3, 7, 0]);
        assert!(all_of(&places, &user(1)).is_empty());
        assert_eq!(sessions_of(&places, &user(2), false).len(), ENDED_MORE + 3);
        ended.truncate(2);
        assert_eq!(all_of(&places, &user(1)).len(), 1);
        drop(ended);
        assert_empty(&places);
    }

    #[test]
    fn an_ended_session_takes_the_place_that_another_holder_leaves() {
        let places = Arc::<Places>::default();
        let mut ended = sessions_of(&places, &user(1), false);
        let silent = [all_of(&places, &user(2)), all_of(&places, &user(3))];
        end_all(&mut ended);
        assert_eq!(counted(&places), [24, 9, 10, 0]);
        drop(silent);
        assert_eq!(counted(&places), [18, 3, 7, 0]);
    }

    #[test]
    fn ended_sessions_of_postgres_leave_others_and_postgres_places() {
        let places = Arc::<Places>::default();
        let mut ended = sessions_of(&places, &user(1), true);
        assert_eq!(ended.len(), 20);
        let silent = all_of(&places, &user(1));
        end_all(&mut ended);
        assert_eq!(counted(&places), [23, 3, 12, 0]);
        let ordinary = sessions_of(&places, &user(2), false);
        assert_eq!(ordinary.len(), ENDED_MORE - LIMITS.reserved);
        assert_eq!(sessions_of(&places, &root(), true).len(), LIMITS.reserved);
        drop((silent, ordinary));
        assert_eq!(counted(&places), [20, 3, 9, 0]);
        drop(ended);
        assert_empty(&places);
    }

    #[test]
    fn ended_sessions_of_many_holders_are_no_more_than_places() {
        let places = Arc::<Places>::default();
        let mut ended = Vec::new();
        for number in 0..10 {
            let mut sessions = sessions_of(&places, &user(number), true);
            end_all(&mut sessions);
            ended.append(&mut sessions);
            counted(&places);
        }
        assert!(ended.len() <= LIMITS.sessions + LIMITS.logins + ENDED_MORE, "{}", ended.len());
        drop(ended);
        assert_empty(&places);
    }

    #[test]
    fn an_ended_session_within_the_share_keeps_no_place() {
        let places = Arc::<Places>::default();
        let mut ended = Vec::new();
        while let Some(mut place) = all_of(&places, &user(1)).pop() {
            place.enter(false, &LIMITS).unwrap();
            place.end(&LIMITS);
            ended.push(place);
        }
        assert_eq!(counted(&places), [3, 3, 0, 0]);
        assert_eq!(sessions_of(&places, &user(2), false).len(), 18);
    }
}
