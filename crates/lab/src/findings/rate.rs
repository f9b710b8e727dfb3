//! Open loops: whether the server kept up with the arrival rate.
//!
//! Throughput at a given rate does not show the server's capacity: open loops get no findings on
//! shape, growth or the law.

use crate::figures::{clients, list, number, percent, whole};
use crate::record::{Offered, Point, Round};
use crate::stats::median;

/// The server holds a rate if its shortfall is at most this part.
const MISSED: f64 = 0.02;

/// The server keeps up in a second if its shortfall there is at most this part of the arrivals.
const MISSED_SECOND: f64 = 0.05;

/// The largest shortfall of Poisson arrivals that counts as chance, in standard deviations.
const CHANCE: f64 = 3.0;

/// The numbers of clients with which the server held the rate, and a sentence for each point at
/// which it did not. Empty in a closed loop.
pub(super) fn held(points: &[&Point]) -> (Option<String>, Vec<String>) {
    let offered: Vec<(&Point, Offered, f64)> =
        points.iter().filter_map(|point| Some((*point, point.offered()?, point.kept()?))).collect();
    let Some((_, rate, _)) = offered.first() else { return (None, Vec::new()) };
    let rate = match rate.from == rate.to {
        true => format!("the rate of {} a second", number(rate.from)),
        false => format!("the rate of {} to {} a second", number(rate.from), number(rate.to)),
    };
    let (held, missed): (Vec<_>, Vec<_>) =
        offered.into_iter().partition(|(point, offered, kept)| is_held(point, offered, *kept));
    let counts: Vec<String> = held.iter().map(|(point, ..)| whole(point.clients as f64)).collect();
    let noun = if counts == ["1"] { "client" } else { "clients" };
    let held = (!counts.is_empty()).then(|| format!("{rate} is held with {} {noun}", list(&counts)));
    let missed = missed.iter().map(|(point, offered, kept)| {
        format!(
            "{rate} is not held with {}: {} of the arrivals are done{}{}",
            clients(point.clients),
            percent(*kept),
            until(point, offered),
            unstarted(point)
        )
    });
    (held, missed.collect())
}

fn is_held(point: &Point, offered: &Offered, kept: f64) -> bool {
    let seconds: f64 = point.rounds.iter().map(|round| round.elapsed).sum();
    let due = offered.mean() * seconds;
    1.0 - kept <= MISSED.max(may_lack(offered, due, point.rounds.len()) / due)
}

/// Largest shortfall that the arrival process itself explains, in transactions. Even arrivals lose
/// one at the end of each window; Poisson arrivals vary by chance.
fn may_lack(offered: &Offered, due: f64, stretches: usize) -> f64 {
    if offered.even { stretches as f64 } else { CHANCE * due.sqrt() }
}

/// The rate up to which a server kept up with a rising one.
fn until(point: &Point, offered: &Offered) -> String {
    if offered.to <= offered.from {
        return String::new();
    }
    let ends: Vec<f64> = point.rounds.iter().filter_map(fell_behind).collect();
    match median(&ends) {
        _ if 2 * ends.len() <= point.rounds.len() => String::new(),
        end if end <= offered.from => format!("; it does not even keep up with {} a second", number(end)),
        end => format!("; it keeps up until {} arrivals a second", number(end)),
    }
}

/// The rate at the beginning of a round's last seconds, if the server kept up in none of them;
/// `None` where it kept up in the last one.
fn fell_behind(round: &Round) -> Option<f64> {
    let offered = round.offered?;
    let at = |seconds: f64| offered.from + (offered.to - offered.from) * seconds / round.elapsed;
    let keeps_up = |(second, done): (usize, &u64)| {
        let due = at(second as f64 + 0.5);
        *done as f64 >= due - may_lack(&offered, due, 1).max(MISSED_SECOND * due)
    };
    let behind = round.seconds.iter().enumerate().rposition(keeps_up).map_or(0, |last| last + 1);
    (behind < round.seconds.len()).then(|| at(behind as f64))
}

fn unstarted(point: &Point) -> String {
    match point.unstarted() {
        None | Some(0) => String::new(),
        Some(1) => "; 1 transaction never began".into(),
        Some(count) => format!("; {} transactions never began", whole(count as f64)),
    }
}
