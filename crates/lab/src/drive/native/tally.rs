//! The counts of one thread, and their sum over threads.
//!
//! The sum counts the arrivals of an open loop that never began. A thread that has lost all its
//! clients ends long before the round does, and no other thread serves its later arrivals.

use std::time::Duration;

use hdrhistogram::Histogram;

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
    kinds: Vec<Kind>,
    seconds: Vec<u64>,
    /// Lateness of begins (open loop).
    lag: Option<Histogram<u64>>,
    /// Lateness of begins for which a client was free.
    own_lag: Option<Histogram<u64>>,
    /// Latencies by the step of a rising rate in which transactions arrived.
    by_rate: Vec<Histogram<u64>>,
    unstarted: u64,
    /// The thread's arrivals that have not begun: the next one and all later ones (open loop).
    overdue: Option<Schedule>,
    errors: Vec<Seen>,
    lost: Option<(usize, String)>,
    /// The thread's CPU time while it counted.
    pub(super) cpu: CpuTime,
}

/// Errors of one code.
#[derive(Debug)]
struct Seen {
    code: Code,
    /// The first message.
    message: String,
    count: u64,
    tolerated: bool,
}

impl Tally {
    pub(super) fn new(kinds: usize, (from, until): (u64, u64), pace: Pace) -> Self {
        let (open, rises) = match pace {
            Pace::Open { from, to, .. } => (true, from != to),
            Pace::Closed { .. } => (false, false),
        };
        let kind = || Kind { done: 0, failed: 0, retried: 0, latency: histogram() };
        Self {
            from,
            until,
            kinds: std::iter::repeat_with(kind).take(kinds).collect(),
            seconds: vec![0; ((until - from) / 1_000_000_000) as usize],
            lag: open.then(histogram),
            own_lag: open.then(histogram),
            by_rate: if rises { vec![histogram(); RATE_STEPS] } else { Vec::new() },
            unstarted: 0,
            overdue: None,
            errors: Vec::new(),
            lost: None,
            cpu: CpuTime::default(),
        }
    }

    fn counts(&self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }

    /// Counts a transaction that began (or arrived) at `begun` as done.
    pub(super) fn done(&mut self, kind: u8, begun: u64, now: u64) {
        if !self.counts(now) {
            return;
        }
        let kind = &mut self.kinds[usize::from(kind)];
        kind.done += 1;
        kind.latency.saturating_record(now - begun);
        if !self.by_rate.is_empty() && begun >= self.from {
            let step =
                u128::from(begun - self.from) * RATE_STEPS as u128 / u128::from(self.until - self.from);
            self.by_rate[step as usize].saturating_record(now - begun);
        }
        if let Some(second) = self.seconds.get_mut(((now - self.from) / 1_000_000_000) as usize) {
            *second += 1;
        }
    }

    /// A transaction that arrived at `due` begins; after the end it counts as never begun. Its
    /// client was `free` at `due`, or became so only now.
    pub(super) fn begun(&mut self, due: u64, now: u64, free: bool) {
        if now >= self.until {
            self.unstarted(due, self.until);
        } else if now >= self.from
            && let (Some(lag), Some(own)) = (&mut self.lag, &mut self.own_lag)
        {
            lag.saturating_record(now - due);
            own.saturating_record(if free { now - due } else { 0 });
        }
    }

    /// Counts a transaction that arrived at `due` and had not begun by `end`.
    fn unstarted(&mut self, due: u64, end: u64) {
        if self.counts(due)
            && let Some(lag) = &mut self.lag
        {
            self.unstarted += 1;
            lag.saturating_record(end - due);
        }
    }

    /// Counts a transaction that a client tries again, or gives up.
    pub(super) fn failed(&mut self, kind: u8, again: bool, now: u64) {
        if self.counts(now) {
            let kind = &mut self.kinds[usize::from(kind)];
            if again {
                kind.retried += 1;
            } else {
                kind.failed += 1;
            }
        }
    }

    /// Counts a statement's error; returns whether the workload tolerates it. `about` describes the
    /// statement, where it is known.
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
        match self.errors.iter_mut().find(|one| one.code == failure.code) {
            Some(one) => one.count += 1,
            None => {
                let (code, mut message, about) = (failure.code, failure.message.clone(), about());
                if !about.is_empty() {
                    message += &format!(" ({about})");
                }
                self.errors.push(Seen { code, message, count: 1, tolerated });
            }
        }
    }

    /// Counts a client that can't go on.
    pub(super) fn lost(&mut self, why: impl FnOnce() -> String) {
        match &mut self.lost {
            Some(lost) => lost.0 += 1,
            None => self.lost = Some((1, why())),
        }
    }

    /// Ends the thread's counts, maybe early, with its remaining arrivals.
    pub(super) fn end(&mut self, now: u64, overdue: Option<Schedule>) {
        if now < self.until {
            // The steps are those of the whole round.
            self.by_rate.clear();
        }
        self.until = self.until.min(now.max(self.from));
        self.overdue = overdue;
    }

    /// Counts arrivals before the round's end, at `until`, that never began. Returns false if
    /// `stopped` ended the count.
    fn count_overdue(&mut self, until: u64, stopped: &dyn Fn() -> bool) -> bool {
        self.until = until;
        let Some(mut overdue) = self.overdue.take() else { return true };
        while let Some(due) = overdue.take(until.saturating_sub(1)) {
            if stopped() {
                return false;
            }
            self.unstarted(due, until);
        }
        true
    }

    /// Adds another thread's counts.
    fn add(&mut self, other: Self) {
        for (mine, its) in self.kinds.iter_mut().zip(other.kinds) {
            mine.done += its.done;
            mine.failed += its.failed;
            mine.retried += its.retried;
            mine.latency.add(&its.latency).expect("all histograms have the same bounds");
        }
        for (mine, its) in self.seconds.iter_mut().zip(other.seconds) {
            *mine += its;
        }
        let mine = self.lag.iter_mut().chain(&mut self.own_lag).chain(&mut self.by_rate);
        let its = other.lag.iter().chain(&other.own_lag).chain(&other.by_rate);
        mine.zip(its).for_each(|(mine, its)| mine.add(its).expect("all histograms have the same bounds"));
        self.unstarted += other.unstarted;
        for its in other.errors {
            match self.errors.iter_mut().find(|one| one.code == its.code) {
                Some(one) => one.count += its.count,
                None => self.errors.push(its),
            }
        }
        self.lost = match (self.lost.take(), other.lost) {
            (Some((mine, why)), Some((its, _))) => Some((mine + its, why)),
            (mine, its) => mine.or(its),
        };
        self.cpu.user += other.cpu.user;
        self.cpu.system += other.cpu.system;
    }

    /// The sum over all threads. It is an error if all clients were lost before counting began, or
    /// if `stopped` ended the sum early.
    pub(super) fn sum(
        mut tallies: Vec<Self>,
        clients: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Measured, String> {
        // The round ends with the last thread.
        let until = tallies.iter().map(|one| one.until).max().expect("a round has a thread");
        if !tallies.iter_mut().all(|one| one.count_overdue(until, stopped)) {
            return Err("stopped before the overdue arrivals were counted".to_owned());
        }
        let mut tallies = tallies.into_iter();
        let mut all = tallies.next().expect("a round has a thread");
        tallies.for_each(|one| all.add(one));
        let elapsed = Duration::from_nanos(all.until - all.from);
        if let Some((lost, why)) = &all.lost
            && *lost == clients
            && elapsed.is_zero()
        {
            return Err(format!("no client got as far as the measured time: {why}"));
        }
        all.seconds.truncate(elapsed.as_secs() as usize);
        let errors = |Seen { code, message, count, tolerated }: Seen| Errors {
            code: code.to_string(),
            message,
            count,
            tolerated,
        };
        Ok(Measured {
            elapsed,
            kinds: all.kinds,
            seconds: all.seconds,
            lag: all.lag,
            own_lag: all.own_lag,
            by_rate: all.by_rate,
            unstarted: Some(all.unstarted),
            errors: all.errors.into_iter().map(errors).collect(),
            lost_clients: all.lost,
            client_cpu: all.cpu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Random;
    use crate::drive::native::arrivals::Share;
    use crate::load::Arrivals;

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
        let measured = Tally::sum(vec![tally], 1, &|| false).unwrap();
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
            Tally::sum(vec![tally], 1, &|| false).unwrap().by_rate.iter().map(|step| step.len()).collect()
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
        let measured = Tally::sum(tallies.into(), 2, &|| false).unwrap();
        assert_eq!(measured.lost_clients, Some((2, "first".to_owned())));
        assert_eq!(
            measured.errors,
            [Errors { code: "23505".to_owned(), message: "first".to_owned(), count: 2, tolerated: false }]
        );
        assert_eq!((measured.kinds[0].done, measured.seconds.as_slice()), (2, &[2][..]));
    }

    #[test]
    fn a_round_lost_before_its_measured_time_is_an_error() {
        let mut tally = Tally::new(1, (SECOND, 2 * SECOND), RISING);
        tally.lost(|| "no table".to_owned());
        tally.end(5, None);
        assert!(Tally::sum(vec![tally], 1, &|| false).unwrap_err().contains("no table"));
    }

    /// Two threads of a round from 1 s to 4 s at 10 a second; the second thread lost its client at
    /// 2 s.
    fn one_of_two_lost() -> Vec<Tally> {
        let tallies = [(0, 4 * SECOND), (1, 2 * SECOND)].map(|(thread, end)| {
            let share = Share { thread, threads: 2, clients: 2 };
            let even = Arrivals::Even;
            let mut schedule = Schedule::new((10.0, 10.0), 4 * SECOND, even, share, Random::new(1, 1));
            let mut tally = Tally::new(1, (SECOND, 4 * SECOND), RISING);
            while let Some(due) = schedule.take(end.min(3 * SECOND)) {
                tally.begun(due, due, true);
            }
            tally.end(end, Some(schedule));
            tally
        });
        tallies.into()
    }

    #[test]
    fn arrivals_up_to_the_rounds_end_count_where_a_thread_has_lost_its_clients() {
        let measured = Tally::sum(one_of_two_lost(), 2, &|| false).unwrap();
        assert_eq!(measured.elapsed, Duration::from_secs(3));
        // By 3 s the first thread has begun all its arrivals, the second those by 2 s. Those at 3.2
        // to 3.8 s, and at 2.1 to 3.9 s, are left.
        assert_eq!((measured.lag.unwrap().len(), measured.unstarted), (30, Some(4 + 10)));
        // If the other thread ends early, so does the round.
        let mut early = one_of_two_lost();
        early[0].until = 3 * SECOND + SECOND / 2;
        let measured = Tally::sum(early, 2, &|| false).unwrap();
        assert_eq!((measured.lag.unwrap().len(), measured.unstarted), (25, Some(2 + 7)));
        assert!(Tally::sum(one_of_two_lost(), 2, &|| true).unwrap_err().starts_with("stopped before"));
    }
}
