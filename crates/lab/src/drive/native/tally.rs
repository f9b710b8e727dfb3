//! The counts of one thread, and their sum over threads.
//!
//! The sum counts the arrivals of an open loop that never began. A thread that has lost all its
//! clients ends long before the round does, and no other thread serves its later arrivals.

use std::time::Duration;

use super::arrivals::Schedule;
use crate::drive::wire::{Code, Failure};
use crate::drive::{Kind, Measured, histogram};
use crate::load::Pace;
use crate::record::{CpuTime, Errors};

/// Steps into which the counted time of a rising rate is divided.
const RATE_STEPS: usize = 20;

/// The counts of one thread. Times are nanoseconds since the round's beginning.
#[derive(Debug)]
pub(super) struct Tally {
    /// When counting begins.
    from: u64,
    /// When counting ends: at the round's end, or earlier in an interrupted round.
    until: u64,
    /// The counts but for the errors. The CPU time is the thread's while it counted.
    pub(super) counts: Measured,
    /// The thread's arrivals that have not begun: the next one and all later ones (open loop).
    overdue: Option<Schedule>,
    /// Errors by their codes, with the first message.
    errors: Vec<(Code, Errors)>,
}

impl Tally {
    pub(super) fn new(kinds: usize, (from, until): (u64, u64), pace: Pace) -> Self {
        let (open, rises) = match pace {
            Pace::Open { from, to, .. } => (true, from != to),
            Pace::Closed { .. } => (false, false),
        };
        let counts = Measured {
            elapsed: Duration::ZERO,
            kinds: vec![Kind::default(); kinds],
            seconds: vec![0; ((until - from) / 1_000_000_000) as usize],
            lag: open.then(histogram),
            own_lag: open.then(histogram),
            by_rate: if rises { vec![histogram(); RATE_STEPS] } else { Vec::new() },
            unstarted: Some(0),
            errors: Vec::new(),
            lost_clients: None,
            client_cpu: CpuTime::default(),
        };
        Self { from, until, counts, overdue: None, errors: Vec::new() }
    }

    fn counts(&self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// Counts a transaction that began (or arrived) at `begun` as done.
    pub(super) fn done(&mut self, kind: u8, begun: u64, now: u64) {
        if !self.counts(now) {
            return;
        }
        let kind = &mut self.counts.kinds[usize::from(kind)];
        kind.done += 1;
        kind.latency.saturating_record(now - begun);
        if !self.counts.by_rate.is_empty() && begun >= self.from {
            let step =
                u128::from(begun - self.from) * RATE_STEPS as u128 / u128::from(self.until - self.from);
            self.counts.by_rate[step as usize].saturating_record(now - begun);
        }
        if let Some(second) = self.counts.seconds.get_mut(((now - self.from) / 1_000_000_000) as usize) {
            *second += 1;
        }
    }

    /// A transaction that arrived at `due` begins; after the end it counts as never begun. Its
    /// client was `free` at `due`, or became so only now.
    pub(super) fn begun(&mut self, due: u64, now: u64, free: bool) {
        if now >= self.until {
            self.unstarted(due, self.until);
        } else if now >= self.from
            && let (Some(lag), Some(own)) = (&mut self.counts.lag, &mut self.counts.own_lag)
        {
            lag.saturating_record(now - due);
            own.saturating_record(if free { now - due } else { 0 });
        }
    }

    /// Counts a transaction that arrived at `due` and had not begun by `end`.
    fn unstarted(&mut self, due: u64, end: u64) {
        if self.counts(due)
            && let (Some(lag), Some(unstarted)) = (&mut self.counts.lag, &mut self.counts.unstarted)
        {
            *unstarted += 1;
            lag.saturating_record(end - due);
        }
    }

    /// Counts a transaction that a client tries again, or gives up.
    pub(super) fn failed(&mut self, kind: u8, again: bool, now: u64) {
        if self.counts(now) {
            let kind = &mut self.counts.kinds[usize::from(kind)];
            if again {
                kind.retried += 1;
            } else {
                kind.failed += 1;
            }
        }
    }

    /// Counts a statement's error. `about` describes the statement, where it is known.
    pub(super) fn error(
        &mut self,
        failure: &Failure,
        tolerated: bool,
        now: u64,
        about: impl FnOnce() -> String,
    ) {
        if !self.counts(now) {
            return;
        }
        match self.errors.iter_mut().find(|(code, _)| *code == failure.code) {
            Some((_, errors)) => errors.count += 1,
            None => {
                let (mut message, about) = (failure.message.clone(), about());
                if !about.is_empty() {
                    message += &format!(" ({about})");
                }
                let code = failure.code.to_string();
                self.errors.push((failure.code, Errors { code, message, count: 1, tolerated }));
            }
        }
    }

    /// Counts a client that can't go on.
    pub(super) fn lost(&mut self, why: impl FnOnce() -> String) {
        self.counts.lost_clients.get_or_insert_with(|| (0, why())).0 += 1;
    }

    /// Ends the thread's counts, maybe early, with its remaining arrivals.
    pub(super) fn end(&mut self, now: u64, overdue: Option<Schedule>) {
        if now < self.until {
            // The steps are those of the whole round.
            self.counts.by_rate.clear();
        }
        self.until = self.until.min(now.max(self.from));
        self.overdue = overdue;
    }

    /// Counts arrivals before the round's end, at `until`, that never began.
    fn count_overdue(&mut self, until: u64) {
        self.until = until;
        let Some(mut overdue) = self.overdue.take() else { return };
        while let Some(due) = overdue.take(until.saturating_sub(1)) {
            self.unstarted(due, until);
        }
    }

    /// Adds another thread's counts.
    fn add(&mut self, other: Self) {
        const SAME: &str = "all histograms have the same bounds";
        let (mine, its) = (&mut self.counts, other.counts);
        for (mine, its) in mine.kinds.iter_mut().zip(its.kinds) {
            mine.done += its.done;
            mine.failed += its.failed;
            mine.retried += its.retried;
            mine.latency.add(&its.latency).expect(SAME);
        }
        for (mine, its) in mine.seconds.iter_mut().zip(its.seconds) {
            *mine += its;
        }
        let all = mine.lag.iter_mut().chain(&mut mine.own_lag).chain(&mut mine.by_rate);
        let others = its.lag.iter().chain(&its.own_lag).chain(&its.by_rate);
        all.zip(others).for_each(|(mine, its)| mine.add(its).expect(SAME));
        mine.unstarted = mine.unstarted.zip(its.unstarted).map(|(mine, its)| mine + its);
        mine.lost_clients = match (mine.lost_clients.take(), its.lost_clients) {
            (Some((mine, why)), Some((its, _))) => Some((mine + its, why)),
            (mine, its) => mine.or(its),
        };
        mine.client_cpu.user += its.client_cpu.user;
        mine.client_cpu.system += its.client_cpu.system;
        for (code, its) in other.errors {
            match self.errors.iter_mut().find(|(one, _)| *one == code) {
                Some((_, errors)) => errors.count += its.count,
                None => self.errors.push((code, its)),
            }
        }
    }

    /// The sum over all threads. It is an error if all clients were lost before counting began.
    pub(super) fn sum(mut tallies: Vec<Self>, clients: usize) -> Result<Measured, String> {
        // The round ends with the last thread.
        let until = tallies.iter().map(|one| one.until).max().expect("a round has a thread");
        tallies.iter_mut().for_each(|one| one.count_overdue(until));
        let mut tallies = tallies.into_iter();
        let mut all = tallies.next().expect("a round has a thread");
        tallies.for_each(|one| all.add(one));
        let elapsed = Duration::from_nanos(all.until - all.from);
        match &all.counts.lost_clients {
            Some((lost, why)) if *lost == clients && elapsed.is_zero() => {
                return Err(format!("no client got as far as the measured time: {why}"));
            }
            _ => (),
        }
        all.counts.seconds.truncate(elapsed.as_secs() as usize);
        let errors = all.errors.into_iter().map(|(_, errors)| errors).collect();
        Ok(Measured { elapsed, errors, ..all.counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Random;
    use crate::drive::native::arrivals::Share;
    use crate::load::Arrivals;
    use crate::report::samples::errors;

    const SECOND: u64 = 1_000_000_000;

    /// The pace of arrivals in most of these tests.
    const RISING: Pace = Pace::Open { from: 1.0, to: 10.0, arrivals: Arrivals::Even };

    #[test]
    fn only_the_measured_time_is_counted_and_an_early_end_shortens_it() {
        let mut tally = Tally::new(2, (SECOND, 4 * SECOND), RISING);
        tally.done(0, 0, SECOND - 1);
        tally.done(1, SECOND - 5, SECOND + 5);
        tally.done(1, SECOND, 2 * SECOND);
        tally.begun(SECOND, SECOND + 9, true);
        tally.begun(SECOND, SECOND + 20, false);
        tally.begun(SECOND, 4 * SECOND, true);
        tally.failed(0, true, 2 * SECOND);
        tally.failed(0, false, 2 * SECOND);
        tally.end(3 * SECOND + 1, None);
        tally.done(1, SECOND, 3 * SECOND + 2);
        let measured = Tally::sum(vec![tally], 1).unwrap();
        assert_eq!(measured.elapsed, Duration::from_nanos(2 * SECOND + 1));
        assert_eq!((measured.kinds[0].done, measured.kinds[1].done), (0, 2));
        assert_eq!((measured.kinds[0].retried, measured.kinds[0].failed), (1, 1));
        assert_eq!(measured.kinds[1].latency.min(), 10);
        assert_eq!(measured.seconds, [1, 1]);
        assert_eq!((measured.lag.unwrap().len(), measured.unstarted), (3, Some(1)));
        let own = measured.own_lag.unwrap();
        assert_eq!((own.len(), own.max()), (2, 9), "nobody was free for the other");
    }

    #[test]
    fn a_rising_rate_has_its_latencies_by_steps_of_the_whole_round() {
        let steps = |end: u64| -> Vec<u64> {
            let mut tally = Tally::new(1, (SECOND, 3 * SECOND), RISING);
            // Arrivals before counting began, in the first tenth of a second, and in the last.
            for due in [0, SECOND, SECOND + 1, 3 * SECOND - 2] {
                tally.done(0, due, 3 * SECOND - 1);
            }
            tally.end(end, None);
            Tally::sum(vec![tally], 1).unwrap().by_rate.iter().map(|step| step.len()).collect()
        };
        let mut wanted = vec![0; RATE_STEPS];
        (wanted[0], wanted[RATE_STEPS - 1]) = (2, 1);
        assert_eq!(steps(3 * SECOND), wanted);
        assert_eq!(steps(3 * SECOND - 1), [0; 0], "a round that was ended early");
    }

    #[test]
    fn the_sum_over_threads_keeps_the_first_reason_and_adds_errors_by_code() {
        let mut failure = Failure::default();
        let tallies = ["first", "second"].map(|text| {
            let mut tally = Tally::new(1, (0, SECOND), Pace::Closed { think: Duration::ZERO });
            failure.set(Code::State(*b"23505"), text.as_bytes());
            tally.error(&failure, false, 1, String::new);
            tally.lost(|| text.to_owned());
            tally.done(0, 1, 2);
            tally
        });
        let measured = Tally::sum(tallies.into(), 2).unwrap();
        assert_eq!(measured.lost_clients, Some((2, "first".to_owned())));
        assert_eq!(measured.errors, [errors("23505", "first", 2)]);
        assert_eq!((measured.kinds[0].done, measured.seconds.as_slice()), (2, &[2][..]));

        // Without any measured time, that reason is all there is.
        let mut tally = Tally::new(1, (SECOND, 2 * SECOND), RISING);
        tally.lost(|| "no table".to_owned());
        tally.end(5, None);
        assert!(Tally::sum(vec![tally], 1).unwrap_err().contains("no table"));
    }

    #[test]
    fn arrivals_up_to_the_rounds_end_count_where_a_thread_has_lost_its_clients() {
        // Two threads of a round from 1 s to 4 s at 10 a second. By 3 s the first one has begun all
        // its arrivals. The second one lost its client at 2 s.
        let tallies = || {
            [(0, 4 * SECOND), (1, 2 * SECOND)].map(|(thread, end)| {
                let share = Share { thread, threads: 2, clients: 2 };
                let even = Arrivals::Even;
                let mut schedule = Schedule::new((10.0, 10.0), 4 * SECOND, even, share, Random::new(1, 1));
                let mut tally = Tally::new(1, (SECOND, 4 * SECOND), RISING);
                while let Some(due) = schedule.take(end.min(3 * SECOND)) {
                    tally.begun(due, due, true);
                }
                tally.end(end, Some(schedule));
                tally
            })
        };
        let measured = Tally::sum(tallies().into(), 2).unwrap();
        assert_eq!(measured.elapsed, Duration::from_secs(3));
        // Those at 3.2 to 3.8 s, and at 2.1 to 3.9 s, are left.
        assert_eq!((measured.lag.unwrap().len(), measured.unstarted), (30, Some(4 + 10)));
        // If the other thread ends early, so does the round.
        let mut early = tallies();
        early[0].until = 3 * SECOND + SECOND / 2;
        let measured = Tally::sum(early.into(), 2).unwrap();
        assert_eq!((measured.lag.unwrap().len(), measured.unstarted), (25, Some(2 + 7)));
    }
}
