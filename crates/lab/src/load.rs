//! One round's load: the number of clients, the protocol of statements, and the pace of
//! transactions.

use std::time::Duration;

use clap::ValueEnum;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Protocol {
    /// As text with the values in it
    Simple,
    /// Parsed, bound and executed each time
    Extended,
    /// Prepared once for each connection
    Prepared,
}

impl Protocol {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// When transactions begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As soon as the client's last transaction is over and its think time has passed.
    Closed {
        /// Between two transactions of a client.
        think: Duration,
    },
    /// At this rate over all clients, whether the server keeps up or not; the rate rises
    /// evenly over the round. Latency counts from a transaction's arrival.
    Open {
        /// Transactions a second at the round's beginning.
        from: f64,
        /// And at its end.
        to: f64,
        /// How they are spaced.
        arrivals: Arrivals,
    },
}

/// How the transactions of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Arrivals {
    /// Evenly
    Even,
    /// By chance, as those of many users
    Poisson,
}

#[derive(Debug, Clone)]
pub struct Load {
    /// Connections.
    pub clients: usize,
    /// Threads of the driver.
    pub threads: usize,
    pub protocol: Protocol,
    /// The client sends all statements of a transaction at once and gets their answers together,
    /// where the workload [allows it](crate::workload::Workload::pipelines).
    pub pipeline: bool,
    pub pace: Pace,
    /// The time over which the clients begin, one after the other.
    pub ramp: Duration,
    /// Time after the ramp that the driver does not count.
    pub warmup: Duration,
    /// Time that the driver counts.
    pub measured: Duration,
    /// Number of tries for a transaction that fails by a deadlock or a serialization failure.
    pub tries: u32,
    pub seed: u64,
}

impl Load {
    /// A closed loop of prepared statements without a warm-up, tried once.
    #[cfg(test)]
    pub(crate) fn closed(clients: usize, threads: usize, measured: Duration) -> Self {
        Self {
            clients,
            threads,
            protocol: Protocol::Prepared,
            pipeline: false,
            pace: Pace::Closed { think: Duration::ZERO },
            ramp: Duration::ZERO,
            warmup: Duration::ZERO,
            measured,
            tries: 1,
            seed: 1,
        }
    }

    /// Arrivals a second where counting begins and where it ends, `counted` later; `None` in a
    /// closed loop.
    pub fn offered(&self, counted: Duration) -> Option<(f64, f64)> {
        let Pace::Open { from, to, .. } = self.pace else { return None };
        let before = self.ramp + self.warmup;
        let whole = (before + self.measured).as_secs_f64();
        let at = |time: Duration| from + (to - from) * (time.as_secs_f64() / whole).min(1.0);
        Some((at(before), at(before + counted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_rate_is_that_of_the_counted_time() {
        let second = Duration::from_secs(1);
        let pace = Pace::Open { from: 0.0, to: 100.0, arrivals: Arrivals::Even };
        let mut load = Load { pace, ramp: second, warmup: second, ..Load::closed(1, 1, 8 * second) };
        assert_eq!(load.offered(8 * second), Some((20.0, 100.0)));
        assert_eq!(load.offered(4 * second), Some((20.0, 60.0)), "a round that was ended early");
        load.pace = Pace::Closed { think: Duration::ZERO };
        assert_eq!(load.offered(8 * second), None);
    }
}
