//! Guessing passwords slowly: addresses whose logins fail wait before the next answer, others never do.
//!
//! The table has a fixed number of addresses and keeps those that failed most. An address waits in a queue of its own:
//! each answer is due a pause after the one before, however many connections ask at once. Unix sockets are not counted,
//! so that the administrator of the machine always gets in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Addresses remembered.
const ADDRESSES: usize = 1024;
/// Failures that cost nothing: people mistype.
const FREE: u32 = 5;
/// The pause after the first failure that costs; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Doublings at most: a pause of 3.2 s.
const DOUBLINGS: u32 = 5;
/// A longer queue than this is not joined.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// An address is forgiven one failure in this time.
const FORGIVEN: Duration = Duration::from_secs(15);

/// What is remembered of an address.
#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    /// Up to when forgiving has been counted.
    since: u64,
    /// When the next answer may be given.
    next: u64,
}

/// The addresses that have failed of late.
#[derive(Default)]
pub struct Throttle {
    addresses: HashMap<IpAddr, Failures>,
}

/// The queue of an address is too long: its client is to come again later.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

/// Whom an address stands for: an IPv6 client has a network of 64 bits to choose its address from.
fn who(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Failures {
    fn forgive(&mut self, now: u64) {
        let forgiven = now.saturating_sub(self.since) / nanos(FORGIVEN);
        self.count = self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
        self.since += forgiven * nanos(FORGIVEN);
    }
}

impl Throttle {
    /// How long an answer to this address has to wait, by the runtime's clock in nanoseconds; its place in the queue is
    /// taken.
    pub fn wait(&mut self, address: IpAddr, now: u64) -> Result<Duration, TooMany> {
        let Some(failures) = self.addresses.get_mut(&who(address)) else { return Ok(Duration::ZERO) };
        failures.forgive(now);
        let Some(beyond) = failures.count.checked_sub(FREE) else { return Ok(Duration::ZERO) };
        let due = failures.next.max(now);
        if due - now > nanos(LONGEST_WAIT) {
            return Err(TooMany);
        }
        failures.next = due + nanos(FIRST_PAUSE) * (1 << beyond.min(DOUBLINGS));
        Ok(Duration::from_nanos(due - now))
    }

    /// Notes a failed login.
    pub fn failed(&mut self, address: IpAddr, now: u64) {
        let who = who(address);
        if !self.addresses.contains_key(&who) && self.addresses.len() >= ADDRESSES {
            self.forget_the_best(now);
        }
        let failures = self.addresses.entry(who).or_insert(Failures { count: 0, since: now, next: now });
        failures.forgive(now);
        failures.count = failures.count.saturating_add(1);
        if failures.count == FREE {
            failures.next = failures.next.max(now) + nanos(FIRST_PAUSE);
        }
    }

    /// Makes room: forgets whoever has been forgiven everything, else the address with the fewest failures.
    fn forget_the_best(&mut self, now: u64) {
        self.addresses.retain(|_, failures| {
            failures.forgive(now);
            failures.count > 0
        });
        if self.addresses.len() < ADDRESSES {
            return;
        }
        let best = self.addresses.iter().min_by_key(|(_, failures)| failures.count).map(|(who, _)| *who);
        best.map(|who| self.addresses.remove(&who));
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
    fn whoever_fails_often_waits_and_others_do_not() {
        let mut throttle = Throttle::default();
        let (guesser, other) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..FREE {
            assert_eq!(throttle.wait(guesser, 0), Ok(Duration::ZERO));
            throttle.failed(guesser, 0);
        }
        // Many connections at once stand in one queue.
        let waits: Vec<_> = (0..3).map(|_| throttle.wait(guesser, 0).unwrap()).collect();
        assert_eq!(waits, [FIRST_PAUSE, 2 * FIRST_PAUSE, 3 * FIRST_PAUSE]);
        assert_eq!(throttle.wait(other, 0), Ok(Duration::ZERO));
        (0..20).for_each(|_| throttle.failed(guesser, 0));
        let granted = std::iter::from_fn(|| throttle.wait(guesser, 0).ok()).count();
        assert!(granted < 10, "{granted} guesses in ten seconds");
        assert_eq!(throttle.wait(guesser, 0), Err(TooMany));
        // Time heals.
        let later = nanos(FORGIVEN) * 25;
        assert_eq!(throttle.wait(guesser, later), Ok(Duration::ZERO));
    }

    #[test]
    fn an_ipv6_network_and_a_mapped_address_are_one_guesser() {
        assert_eq!(who(address("2001:db8:1:2:3:4:5:6")), who(address("2001:db8:1:2:ffff::1")));
        assert_ne!(who(address("2001:db8:1:2::")), who(address("2001:db8:1:3::")));
        assert_eq!(who(address("::ffff:10.0.0.1")), address("10.0.0.1"));
    }

    #[test]
    fn a_full_table_keeps_the_worst() {
        let mut throttle = Throttle::default();
        let worst = address("10.0.0.1");
        (0..50).for_each(|_| throttle.failed(worst, 0));
        for number in 0..10 * ADDRESSES as u32 {
            throttle.failed(std::net::Ipv4Addr::from_bits(0x2000_0000 + number).into(), SECOND);
        }
        assert_eq!(throttle.addresses.len(), ADDRESSES);
        assert!(
            throttle
                .wait(worst, SECOND)
                .is_ok_and(|_| throttle.wait(worst, SECOND).unwrap() > Duration::ZERO)
        );
    }
}
