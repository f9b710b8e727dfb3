//! Arrival times of an open loop's transactions.
//!
//! The rate goes evenly from one value to another over the round. So the number of arrivals by time
//! t is N(t) = from t + (to - from) t² / 2T. Arrival number n is due when N(t) = n. Even arrivals
//! are at every whole n. With exponentially distributed steps of n they are a Poisson process of
//! that changing rate.
//!
//! Each thread gets arrivals in proportion to its clients. Even arrivals go to the clients in turn:
//! number n to client n mod clients, and so to that client's thread. For a Poisson process each
//! thread has a process of its own, at its clients' share of the rate.
//!
//! The driver computes an arrival when it needs it. A driver that falls behind keeps no queue of
//! overdue arrivals: the next arrival lies in the past, and begins late.

use crate::client::Random;
use crate::load::Arrivals;

/// The thread that these arrivals are for: client number c belongs to thread c mod threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub thread: usize,
    pub threads: usize,
    /// The number of clients; each thread has at least one.
    pub clients: usize,
}

impl Share {
    /// The thread's next arrival after this one.
    fn after(self, number: f64) -> f64 {
        let (thread, threads, clients) = (self.thread as f64, self.threads as f64, self.clients as f64);
        let client = number % clients;
        if client + threads < clients { number + threads } else { number - client + clients + thread }
    }

    /// The ratio of all arrivals to the thread's.
    fn of_each(self) -> f64 {
        let own = (self.clients - self.thread).div_ceil(self.threads);
        self.clients as f64 / own as f64
    }
}

#[derive(Debug)]
pub(super) struct Schedule {
    /// The rate at the beginning, a second.
    from: f64,
    /// Half of the rate's gain per second.
    half_gain: f64,
    arrivals: Arrivals,
    /// The next arrival's number among those of all threads.
    number: f64,
    share: Share,
    random: Random,
    /// When the next is due, in nanoseconds since the round's beginning. `None` where the rate
    /// falls to 0 before it.
    pub(super) due: Option<u64>,
}

impl Schedule {
    /// Rates are per second, over all threads; `whole` is the round's length in nanoseconds.
    pub(super) fn new(
        (from, to): (f64, f64),
        whole: u64,
        arrivals: Arrivals,
        share: Share,
        random: Random,
    ) -> Self {
        let half_gain = (to - from) / 2.0 / (whole as f64 / 1e9).max(1e-9);
        let number = share.thread as f64;
        let mut schedule = Self { from, half_gain, arrivals, number, share, random, due: None };
        if arrivals == Arrivals::Poisson {
            schedule.number = schedule.gap();
        }
        schedule.due = schedule.time();
        schedule
    }

    /// Takes the next arrival if it is due by `now`.
    pub(super) fn take(&mut self, now: u64) -> Option<u64> {
        let due = self.due.filter(|&due| due <= now)?;
        self.number = match self.arrivals {
            Arrivals::Even => self.share.after(self.number),
            Arrivals::Poisson => self.number + self.gap(),
        };
        self.due = self.time();
        Some(due)
    }

    /// The step to the next arrival. Each thread has its share of a Poisson process, which is one
    /// itself.
    fn gap(&mut self) -> f64 {
        -(1.0 - self.random.unit()).ln() * self.share.of_each()
    }

    /// The time when N(t) is `number`. This is the other form of the quadratic formula, which is
    /// exact where the rate does not change.
    fn time(&self) -> Option<u64> {
        let under = self.from * self.from + 4.0 * self.half_gain * self.number;
        let seconds = 2.0 * self.number / (self.from + under.max(0.0).sqrt());
        // At number 0, a rate that rises from 0 gives 0 / 0: the first arrival is due at once.
        let seconds = if self.number == 0.0 { 0.0 } else { seconds };
        (under >= 0.0 && seconds.is_finite()).then(|| (seconds * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn of_each(rates: (f64, f64), arrivals: Arrivals, threads: usize, clients: usize) -> Vec<Vec<u64>> {
        let of = |thread: usize| {
            let random = Random::new(7, thread as u64);
            let share = Share { thread, threads, clients };
            let mut schedule = Schedule::new(rates, 10 * SECOND, arrivals, share, random);
            std::iter::from_fn(|| schedule.take(10 * SECOND - 1)).collect()
        };
        (0..threads).map(of).collect()
    }

    fn all(rates: (f64, f64), arrivals: Arrivals, threads: usize) -> Vec<u64> {
        let mut due = of_each(rates, arrivals, threads, 2 * threads).concat();
        due.sort_unstable();
        due
    }

    #[test]
    fn threads_have_their_clients_share_and_even_arrivals_make_one_even_row() {
        let row: Vec<u64> = (0..10_000).map(|n| n * SECOND / 1000).collect();
        for (threads, clients) in [(1, 1), (1, 5), (2, 3), (3, 3), (3, 7), (4, 6), (8, 9)] {
            for (arrivals, off) in [(Arrivals::Even, 1.0), (Arrivals::Poisson, 300.0)] {
                let due = of_each((1000.0, 1000.0), arrivals, threads, clients);
                for (thread, due) in due.iter().enumerate() {
                    let own = (thread..clients).step_by(threads).count();
                    let wanted = 10_000.0 * own as f64 / clients as f64;
                    let apart = (due.len() as f64 - wanted).abs();
                    assert!(apart <= own as f64 * off, "{arrivals:?} {thread}: {} of {wanted}", due.len());
                }
                let mut due = due.concat();
                due.sort_unstable();
                assert_eq!(due == row, arrivals == Arrivals::Even, "{threads} threads, {clients} clients");
            }
        }
        // The first thread has numbers 0 and 2 of three.
        let due = of_each((1.0, 1.0), Arrivals::Even, 2, 3);
        assert_eq!(due[1], [1, 4, 7].map(|second| second * SECOND));
        assert_eq!(due[0], [0, 2, 3, 5, 6, 8, 9].map(|second| second * SECOND));
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
        // The standard deviation of 10,000 arrivals is 100.
        assert!((9_500..=10_500).contains(&due.len()), "{}", due.len());
        let gaps: Vec<f64> = due.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((0.9..1.1).contains(&(deviation / mean)), "mean {mean} ms, deviation {deviation} ms");
    }

    #[test]
    fn a_late_thread_gets_past_arrivals_with_their_own_times() {
        let alone = Share { thread: 0, threads: 1, clients: 1 };
        let mut schedule = Schedule::new((10.0, 10.0), SECOND, Arrivals::Even, alone, Random::new(1, 1));
        assert_eq!(schedule.take(0), Some(0));
        assert_eq!(schedule.take(SECOND / 20), None);
        assert_eq!(schedule.take(SECOND), Some(SECOND / 10));
        assert_eq!(schedule.take(SECOND), Some(SECOND / 5));
        assert_eq!(schedule.due, Some(3 * SECOND / 10));
    }
}
