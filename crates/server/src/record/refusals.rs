//! The log's lines about clients that are not let in. They are bounded, so that a flood of them
//! does not fill the disk.
//!
//! Refusals of one SQLSTATE are a *kind*. A second begins with a kind's first refusal. Refusals
//! without a line are counted by address, and the count is logged at the second's end.
//!
//! What must hold:
//!
//! 1. Each refusal gets a line or is counted at one place. So the lines and counts of a second add
//!    up to its refusals.
//! 2. An address gets [`OF_ADDRESS`] lines of a kind's [`OF_KIND`]. So one address does not use up
//!    the lines of the others.
//! 3. A kind keeps [`ADDRESSES`] addresses and drops them at the end of its second. So a flood from
//!    many addresses takes bounded memory.
//! 4. The first refusal without a line is announced as such. The caller then arranges that the
//!    count is logged even if no further refusal comes.

use crate::throttle::network;
use runtime::net::Peer;
use sql::SqlState;
use std::fmt;
use std::net::IpAddr;
use sync::SpinLock;

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;
/// Most lines of a kind in a second.
const OF_KIND: usize = 32;
/// Most lines of a kind and an address in a second.
const OF_ADDRESS: usize = 2;
/// Most addresses of a kind that are counted separately in a second.
const ADDRESSES: usize = 64;
/// Addresses that the line at the end of a second names: those with the most refusals.
const NAMED: usize = 8;

/// The refusals of the seconds in progress.
pub static REFUSALS: SpinLock<Refusals> = SpinLock::new(&"refusals", Refusals { kinds: Vec::new() });

/// Refusals by kind.
pub struct Refusals {
    kinds: Vec<Kind>,
}

struct Kind {
    code: SqlState,
    /// Beginning of its second, by the runtime's clock.
    since: u64,
    lines: usize,
    addresses: Vec<Address>,
    /// Refusals without a line from addresses that are not counted separately.
    others: u64,
}

/// An address with its refusals.
struct Address {
    /// `None` for Unix sockets.
    from: Option<IpAddr>,
    lines: usize,
    omitted: u64,
}

/// Whether a refusal gets a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It gets a line.
    Said,
    /// It is the first of its second without a line.
    FirstOmitted,
    /// It gets no line.
    Omitted,
}

/// The refusals of a kind that got no line in a second.
pub struct Omitted {
    /// The kind.
    pub code: SqlState,
    /// Their number.
    pub count: u64,
    /// Their numbers by address, the greatest first.
    named: Vec<(Option<IpAddr>, u64)>,
}

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn admit(&mut self, code: SqlState, peer: &Peer, now: u64) -> Verdict {
        let from = match peer {
            Peer::Tcp(address) => Some(network(address.ip())),
            Peer::Unix { .. } => None,
        };
        let at = self.kinds.iter().position(|kind| kind.code == code).unwrap_or_else(|| {
            self.kinds.push(Kind { code, since: now, lines: 0, addresses: Vec::new(), others: 0 });
            self.kinds.len() - 1
        });
        self.kinds[at].admit(from)
    }

    /// Ends the seconds that are over. Returns the refusals without a line.
    pub fn over(&mut self, now: u64) -> Vec<Omitted> {
        let ended = self.kinds.extract_if(.., |kind| now.saturating_sub(kind.since) >= SECOND);
        ended.filter_map(Kind::omitted).collect()
    }
}

impl Kind {
    fn admit(&mut self, from: Option<IpAddr>) -> Verdict {
        let is_first = self.others == 0 && self.addresses.iter().all(|address| address.omitted == 0);
        let known = self.addresses.iter().position(|address| address.from == from);
        let omitted = match known {
            None if self.addresses.len() == ADDRESSES => &mut self.others,
            known => {
                let at = known.unwrap_or_else(|| {
                    self.addresses.push(Address { from, lines: 0, omitted: 0 });
                    self.addresses.len() - 1
                });
                let address = &mut self.addresses[at];
                if address.lines < OF_ADDRESS && self.lines < OF_KIND {
                    address.lines += 1;
                    self.lines += 1;
                    return Verdict::Said;
                }
                &mut address.omitted
            }
        };
        *omitted += 1;
        if is_first { Verdict::FirstOmitted } else { Verdict::Omitted }
    }

    fn omitted(mut self) -> Option<Omitted> {
        self.addresses.retain(|address| address.omitted > 0);
        self.addresses.sort_by_key(|address| std::cmp::Reverse(address.omitted));
        let count = self.others + self.addresses.iter().map(|address| address.omitted).sum::<u64>();
        let named =
            self.addresses.iter().take(NAMED).map(|address| (address.from, address.omitted)).collect();
        (count > 0).then_some(Omitted { code: self.code, count, named })
    }
}

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} further refusals in a second:", self.count)?;
        let mut separator = "";
        let mut rest = self.count;
        for (from, count) in &self.named {
            match from {
                Some(address) => write!(f, "{separator} {count} from {address}")?,
                None => write!(f, "{separator} {count} from Unix sockets")?,
            }
            separator = ",";
            rest -= count;
        }
        if rest > 0 { write!(f, "{separator} {rest} from other addresses") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(host: u8) -> Peer {
        Peer::Tcp(([10, 0, 0, host], 999).into())
    }

    fn refusals() -> Refusals {
        Refusals { kinds: Vec::new() }
    }

    #[test]
    fn a_flood_of_one_address_leaves_the_lines_of_others() {
        let mut refusals = refusals();
        let (code, other) = (SqlState::INVALID_PASSWORD, SqlState::PROTOCOL_VIOLATION);
        let verdicts: Vec<_> = (0..100).map(|now| refusals.admit(code, &from(1), now)).collect();
        assert!(verdicts[..2].iter().all(|verdict| *verdict == Verdict::Said));
        assert_eq!(verdicts[2], Verdict::FirstOmitted);
        assert!(verdicts[3..].iter().all(|verdict| *verdict == Verdict::Omitted));
        assert_eq!(refusals.admit(code, &from(2), 100), Verdict::Said);
        assert_eq!(refusals.admit(other, &from(1), 100), Verdict::Said);
        let local = Peer::Unix { user: 0, process: None };
        assert_eq!(refusals.admit(code, &local, 100), Verdict::Said);
        assert!(refusals.over(SECOND - 1).is_empty());
        let over = refusals.over(SECOND);
        let said: Vec<_> = over.iter().map(|omitted| (omitted.code, omitted.to_string())).collect();
        assert_eq!(said, [(code, "98 further refusals in a second: 98 from 10.0.0.1".to_owned())]);
        // The next second begins with its first refusal.
        assert_eq!(refusals.admit(code, &from(1), 2 * SECOND), Verdict::Said);
        assert!(refusals.over(3 * SECOND - 1).is_empty());
        assert!(refusals.over(3 * SECOND + 100).is_empty());
        assert!(refusals.kinds.is_empty());
    }

    #[test]
    fn a_flood_of_many_addresses_is_bounded_and_counted() {
        let mut refusals = refusals();
        let code = SqlState::TOO_MANY_CONNECTIONS;
        let said = (0..=255)
            .flat_map(|host| (0..3).map(move |_| host))
            .filter(|host| refusals.admit(code, &from(*host), 0) == Verdict::Said)
            .count();
        assert_eq!(said, OF_KIND);
        assert!(refusals.kinds[0].addresses.len() <= ADDRESSES);
        let over = refusals.over(SECOND);
        assert_eq!(over[0].count, 768 - OF_KIND as u64);
        let line = over[0].to_string();
        assert!(line.starts_with("736 further refusals in a second: 3 from 10.0.0.16, 3 from"), "{line}");
        assert!(line.ends_with(", 712 from other addresses"), "{line}");
    }
}
