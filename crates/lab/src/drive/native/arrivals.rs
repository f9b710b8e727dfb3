//! When transactions of an open loop are due.
//!
//! The rate goes evenly from one value to another over the round, so the number of transactions due by time t is
//! N(t) = from t + (to - from) t² / 2T. Arrival number n is due when N(t) = n: at every whole n where they are spaced
//! evenly; with steps of n distributed exponentially it is a Poisson process of that changing rate.
//!
//! An arrival is worked out when somebody asks for it. A driver that falls behind keeps no queue of what is overdue: the
//! next arrival lies in the past, and is begun late.

use crate::client::Random;
use crate::drive::Arrivals;

/// The arrivals of one thread.
#[derive(Debug)]
pub(super) struct Schedule {
    /// A second, at the beginning.
    from: f64,
    /// Half of what the rate gains each second.
    half_gain: f64,
    arrivals: Arrivals,
    /// Of the next arrival, among those of all threads.
    number: f64,
    /// All threads.
    threads: f64,
    random: Random,
    /// When the next is due; never, where the rate has fallen to nothing before it.
    due: Option<u64>,
}

impl Schedule {
    /// Rates are a second, over all threads; `whole` is the round's length in nanoseconds.
    pub(super) fn new(
        (from, to): (f64, f64),
        whole: u64,
        arrivals: Arrivals,
        (thread, threads): (usize, usize),
        random: Random,
    ) -> Self {
        let half_gain = (to - from) / 2.0 / (whole as f64 / 1e9).max(1e-9);
        let (number, threads) = (thread as f64, threads as f64);
        let mut schedule = Self { from, half_gain, arrivals, number, threads, random, due: None };
        if arrivals == Arrivals::Poisson {
            schedule.number = schedule.gap();
        }
        schedule.due = schedule.time();
        schedule
    }

    /// When the next is due, in nanoseconds since the round's beginning.
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Takes the next if it is due by `now`.
    pub(super) fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.due.filter(|&due| due <= now)?;
        self.number += match self.arrivals {
            Arrivals::Even => self.threads,
            Arrivals::Poisson => self.gap(),
        };
        self.due = self.time();
        Some(due)
    }

    /// Each thread has its share of a Poisson process, which is one itself.
    fn gap(&mut self) -> f64 {
        -(1.0 - self.random.unit()).ln() * self.threads
    }

    /// When N(t) is `number`. The usual formula's other form, which is exact where the rate does not change.
    fn time(&self) -> Option<u64> {
        let under = self.from * self.from + 4.0 * self.half_gain * self.number;
        let seconds = 2.0 * self.number / (self.from + under.max(0.0).sqrt());
        // At number 0 with a rate that rises from 0 this is 0 / 0: the first is due at once.
        let seconds = if self.number == 0.0 { 0.0 } else { seconds };
        (under >= 0.0 && seconds.is_finite()).then(|| (seconds * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn all(rates: (f64, f64), arrivals: Arrivals, threads: usize) -> Vec<u64> {
        let mut due = Vec::new();
        for thread in 0..threads {
            let random = Random::new(7, thread as u64);
            let mut schedule = Schedule::new(rates, 10 * SECOND, arrivals, (thread, threads), random);
            due.extend(std::iter::from_fn(|| schedule.take(10 * SECOND - 1)));
        }
        due.sort_unstable();
        due
    }

    #[test]
    fn even_arrivals_of_several_threads_make_one_even_row() {
        let due = all((100.0, 100.0), Arrivals::Even, 3);
        let wanted: Vec<u64> = (0..1000).map(|n| n * SECOND / 100).collect();
        assert_eq!(due, wanted);
    }

    #[test]
    fn a_rising_rate_gives_its_mean_and_is_denser_at_the_end() {
        let due = all((0.0, 200.0), Arrivals::Even, 2);
        assert_eq!(due.len(), 1000);
        // N(5 s) = 200 / 20 s² * 25 s².
        assert_eq!(due.iter().filter(|&&due| due < 5 * SECOND).count(), 250);
        let falling = all((200.0, 0.0), Arrivals::Even, 2);
        assert_eq!(falling.iter().filter(|&&due| due < 5 * SECOND).count(), 750);
        assert!((999..=1000).contains(&falling.len()));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_one() {
        let due = all((1000.0, 1000.0), Arrivals::Poisson, 4);
        // Of 10,000 the standard deviation is 100.
        assert!((9_500..=10_500).contains(&due.len()), "{}", due.len());
        let gaps: Vec<f64> = due.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((0.9..1.1).contains(&(deviation / mean)), "mean {mean} ms, deviation {deviation} ms");
    }

    #[test]
    fn who_is_late_gets_what_was_due_with_its_own_time() {
        let mut schedule = Schedule::new((10.0, 10.0), SECOND, Arrivals::Even, (0, 1), Random::new(1, 1));
        assert_eq!(schedule.take(0), Some(0));
        assert_eq!(schedule.take(SECOND / 20), None);
        assert_eq!(schedule.take(SECOND), Some(SECOND / 10));
        assert_eq!(schedule.take(SECOND), Some(SECOND / 5));
        assert_eq!(schedule.due(), Some(3 * SECOND / 10));
    }
}
