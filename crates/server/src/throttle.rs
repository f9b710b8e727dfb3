//! Slows down guesses of passwords: after failures, a user's logins from an address wait for their
//! answer. Others hardly ever wait.
//!
//! Failures are counted twice.
//!
//! - An address and a user name together have a queue of their own. Each answer is due a pause
//!   after the one before, however many connections ask at once. So a client with a wrong password
//!   slows down only itself.
//! - An address as a whole has a queue as well. It begins after more failures (40) than one user
//!   can cause at the allowed pace. It bounds the guesses of a client that tries many names.
//!
//! Unix sockets are not counted, so that the administrator of the machine always gets in.
//!
//! What must hold:
//!
//! 1. A login takes its place in both queues or in none: one that would wait too long is refused
//!    before it takes any.
//! 2. Each table has at most [`REMEMBERED`] entries. A full one forgets the key with the fewest
//!    failures, so a flood of new keys does not erase the worst.
//! 3. The failures of one user, as fast as they may come, never reach [`OF_ADDRESS`].
//! 4. Failures count for an IPv6 network of 64 bits, and for the IPv4 address in a mapped one
//!    ([`network`]). A client cannot choose itself a new queue.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use runtime::hash::SeededMap;

/// Entries of each table.
const REMEMBERED: usize = 1024;
/// Longest queue that a login may join.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Bytes of a user's name that are compared.
const NAME: usize = 63;

/// The rule by which failures turn into pauses.
struct Pace {
    /// Failures without a pause.
    free: u32,
    /// The pause after the first failure that costs one; each further failure doubles it.
    first_pause: Duration,
    /// Most doublings.
    doublings: u32,
    /// Time in which one failure is forgiven.
    forgiven: Duration,
}

/// The rule for a user at an address: people mistype. The longest pause is 3.2 s.
const OF_USER: Pace = Pace {
    free: 5,
    first_pause: Duration::from_millis(100),
    doublings: 5,
    forgiven: Duration::from_secs(15),
};

/// The rule for all users at an address. Three users who fail as fast as they may (11 times in 6 s,
/// then every 3.2 s) do not reach it.
const OF_ADDRESS: Pace =
    Pace { free: 40, first_pause: Duration::from_secs(1), doublings: 0, forgiven: Duration::from_secs(1) };

/// The logins that failed recently.
#[derive(Default)]
pub(crate) struct Throttle {
    addresses: Table<IpAddr>,
    users: Table<(IpAddr, Box<[u8]>)>,
}

/// The error if the queue of a user or an address is too long: the client should come again later.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl Throttle {
    /// Takes places in the queues. Returns how long an answer to this user at this address waits.
    /// `now` is the runtime's clock in nanoseconds.
    pub fn wait(&mut self, address: IpAddr, user: &str, now: u64) -> Result<Duration, TooMany> {
        let address = network(address);
        let of_address = self.addresses.due(&OF_ADDRESS, &address, now);
        let of_user = self.users.due(&OF_USER, &(address, name(user)), now);
        let due = [&of_address, &of_user].into_iter().flatten().map(|(_, due)| *due).fold(now, u64::max);
        if due - now > nanos(LONGEST_WAIT) {
            return Err(TooMany);
        }
        if let Some((failures, due)) = of_address {
            failures.take_turn(&OF_ADDRESS, due);
        }
        if let Some((failures, due)) = of_user {
            failures.take_turn(&OF_USER, due);
        }
        Ok(Duration::from_nanos(due - now))
    }

    /// Notes a failed login.
    pub fn failed(&mut self, address: IpAddr, user: &str, now: u64) {
        let address = network(address);
        self.addresses.failed(&OF_ADDRESS, address, now);
        self.users.failed(&OF_USER, (address, name(user)), now);
    }
}

/// The address under which failures are counted: an IPv6 client can choose its address from a
/// network of 64 bits.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// A user's name as the table keeps it. Users whose names begin with the same bytes share a queue.
fn name(user: &str) -> Box<[u8]> {
    user.as_bytes()[..user.len().min(NAME)].into()
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// The failures of a key that still count.
#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    /// Time up to which forgiveness has been counted.
    since: u64,
    /// Time of the next answer.
    next: u64,
}

impl Failures {
    fn forgive(&mut self, pace: &Pace, now: u64) {
        let forgiven = now.saturating_sub(self.since) / nanos(pace.forgiven);
        self.count = self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
        self.since += forgiven * nanos(pace.forgiven);
    }

    /// Takes the place in the queue whose turn is at `due`.
    fn take_turn(&mut self, pace: &Pace, due: u64) {
        let beyond = self.count.saturating_sub(pace.free);
        self.next = due + nanos(pace.first_pause) * (1 << beyond.min(pace.doublings));
    }
}

/// The keys that failed recently.
struct Table<K> {
    entries: SeededMap<K, Failures>,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { entries: SeededMap::default() }
    }
}

impl<K: Hash + Eq + Clone> Table<K> {
    /// Time of the answer to a key that has to wait.
    fn due(&mut self, pace: &Pace, key: &K, now: u64) -> Option<(&mut Failures, u64)> {
        let failures = self.entries.get_mut(key)?;
        failures.forgive(pace, now);
        let due = failures.next.max(now);
        (failures.count >= pace.free).then_some((failures, due))
    }

    fn failed(&mut self, pace: &Pace, key: K, now: u64) {
        if !self.entries.contains_key(&key) && self.entries.len() >= REMEMBERED {
            self.forget_the_best(pace, now);
        }
        let failures = self.entries.entry(key).or_insert(Failures { count: 0, since: now, next: now });
        failures.forgive(pace, now);
        failures.count = failures.count.saturating_add(1);
        if failures.count == pace.free {
            failures.next = failures.next.max(now) + nanos(pace.first_pause);
        }
    }

    /// Makes room: forgets all keys whose failures are all forgiven, otherwise the key with the
    /// fewest failures.
    fn forget_the_best(&mut self, pace: &Pace, now: u64) {
        self.entries.retain(|_, failures| {
            failures.forgive(pace, now);
            failures.count > 0
        });
        if self.entries.len() < REMEMBERED {
            return;
        }
        let best = self.entries.iter().min_by_key(|(_, failures)| failures.count).map(|(key, _)| key.clone());
        best.map(|key| self.entries.remove(&key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_user_who_fails_often_waits_and_others_do_not() {
        let mut throttle = Throttle::default();
        let (here, elsewhere) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..OF_USER.free {
            assert_eq!(throttle.wait(here, "app", 0), Ok(Duration::ZERO));
            throttle.failed(here, "app", 0);
        }
        // Many connections at once stand in one queue.
        let waits: Vec<_> = (0..3).map(|_| throttle.wait(here, "app", 0).unwrap()).collect();
        assert_eq!(waits, [1, 2, 3].map(|turn| turn * OF_USER.first_pause));
        (0..20).for_each(|_| throttle.failed(here, "app", 0));
        let granted = std::iter::from_fn(|| throttle.wait(here, "app", 0).ok()).count();
        assert!(granted < 10, "{granted} guesses in ten seconds");
        assert_eq!(throttle.wait(here, "app", 0), Err(TooMany));
        // The same address's other users, and the user at another address, do not wait.
        assert_eq!(throttle.wait(here, "postgres", 0), Ok(Duration::ZERO));
        assert_eq!(throttle.wait(elsewhere, "app", 0), Ok(Duration::ZERO));
        // Time forgives.
        let later = nanos(OF_USER.forgiven) * 25;
        assert_eq!(throttle.wait(here, "app", later), Ok(Duration::ZERO));
    }

    /// Guesses for an hour as fast as allowed, by this many users in turn. Returns the number of
    /// answers.
    fn guess(throttle: &mut Throttle, here: IpAddr, users: usize) -> u64 {
        let (mut now, mut answered) = (0, 0);
        let names: Vec<String> = (0..users).map(|number| format!("user{number}")).collect();
        for user in names.iter().cycle() {
            if now > 3600 * SECOND {
                return answered;
            }
            match throttle.wait(here, user, now) {
                // The others' guesses go on meanwhile.
                Ok(wait) => {
                    throttle.failed(here, user, now + nanos(wait));
                    answered += 1;
                    now += nanos(wait) / users as u64;
                }
                Err(TooMany) => now += SECOND / 10,
            }
        }
        unreachable!("the names are cycled through for ever")
    }

    #[test]
    fn one_user_s_failures_never_slow_the_address() {
        let mut throttle = Throttle::default();
        let here = address("10.0.0.1");
        for users in 1..=3 {
            assert!(guess(&mut throttle, here, users) > 1000);
            assert_eq!(throttle.wait(here, "postgres", 3600 * SECOND), Ok(Duration::ZERO), "{users} users");
            throttle = Throttle::default();
        }
    }

    #[test]
    fn many_users_at_an_address_are_bounded_together() {
        for users in [20, 1000, 100_000] {
            let mut throttle = Throttle::default();
            let answered = guess(&mut throttle, address("10.0.0.1"), users);
            assert!(answered <= 3600 + 2 * u64::from(OF_ADDRESS.free), "{answered} guesses of {users} users");
            assert_ne!(throttle.wait(address("10.0.0.1"), "postgres", 3600 * SECOND), Ok(Duration::ZERO));
            assert_eq!(throttle.wait(address("10.0.0.2"), "user1", 3600 * SECOND), Ok(Duration::ZERO));
            assert!(throttle.users.entries.len() <= REMEMBERED);
        }
    }

    #[test]
    fn an_ipv6_network_and_a_mapped_address_are_one_guesser() {
        assert_eq!(network(address("2001:db8:1:2:3:4:5:6")), network(address("2001:db8:1:2:ffff::1")));
        assert_ne!(network(address("2001:db8:1:2::")), network(address("2001:db8:1:3::")));
        assert_eq!(network(address("::ffff:10.0.0.1")), address("10.0.0.1"));
    }

    #[test]
    fn a_full_table_keeps_the_worst() {
        let mut throttle = Throttle::default();
        let worst = address("10.0.0.1");
        (0..50).for_each(|_| throttle.failed(worst, "app", 0));
        for number in 0..10 * REMEMBERED as u32 {
            throttle.failed(std::net::Ipv4Addr::from_bits(0x2000_0000 + number).into(), "app", SECOND);
        }
        assert_eq!(throttle.addresses.entries.len(), REMEMBERED);
        assert_eq!(throttle.users.entries.len(), REMEMBERED);
        let mut wait = || throttle.wait(worst, "app", SECOND);
        assert!(wait().is_ok() && wait().unwrap() > Duration::ZERO);
    }
}
