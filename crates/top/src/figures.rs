//! Two samples make figures: rates and shares of the time between them.

use std::collections::HashMap;

use crate::sample::{Counts, Lock, OWN_TRANSACTIONS, Sample};

/// Figures of the time between two samples. Rates are by second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Without those of this program.
    pub(crate) commits: f64,
    pub(crate) rollbacks: f64,
    /// Shares of each core's time in the program and in the kernel, where the system tells.
    pub(crate) cores: Vec<Option<(f64, f64)>>,
    /// Counts of each core's hardware; none unless both samples have them.
    pub(crate) counters: Option<Vec<Counts>>,
    pub(crate) reads: f64,
    pub(crate) evictions: f64,
    pub(crate) page_writes: f64,
    pub(crate) log_bytes: f64,
    pub(crate) log_writes: f64,
    /// Sessions that one write of the log served; none without a write.
    pub(crate) served: Option<f64>,
    /// Only places that counted something: seconds and counts by second.
    pub(crate) locks: Vec<Lock>,
}

/// The figures between two samples. None if no time has passed, or if the samples are of two
/// connections, between which the server may have started anew.
pub(crate) fn between(before: &Sample, after: &Sample) -> Option<Figures> {
    let seconds = after.at.checked_sub(before.at)?.as_secs_f64();
    if seconds <= 0.0 || before.connection != after.connection {
        return None;
    }
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let own = before.commits.saturating_add(OWN_TRANSACTIONS);
    let mut figures = Figures {
        commits: rate(own, after.commits),
        rollbacks: rate(before.rollbacks, after.rollbacks),
        cores: cores(before, after, seconds),
        counters: counters(before, after, seconds),
        locks: locks(&before.locks, &after.locks, seconds),
        ..Figures::default()
    };
    if let (Some(before), Some(after)) = (&before.buffers, &after.buffers) {
        figures.reads = rate(before.reads, after.reads);
        figures.evictions = rate(before.evictions, after.evictions);
        figures.page_writes = rate(before.writes, after.writes);
    }
    if let (Some(before), Some(after)) = (&before.log, &after.log) {
        figures.log_bytes = rate(before.bytes, after.bytes);
        figures.log_writes = rate(before.writes, after.writes);
        let served = rate(before.served, after.served);
        figures.served = (figures.log_writes > 0.0).then(|| served / figures.log_writes);
    }
    Some(figures)
}

/// Shares of each core. The kernel counts in steps of 10 ms, so a share may exceed 1 a little.
fn cores(before: &Sample, after: &Sample, seconds: f64) -> Vec<Option<(f64, f64)>> {
    let share = |before: f64, after: f64| ((after - before) / seconds).clamp(0.0, 1.0);
    let pairs = after.cores.iter().enumerate();
    pairs
        .map(|(at, core)| {
            let earlier = before.cores.get(at)?.times?;
            let later = core.times?;
            let user = share(earlier.0, later.0);
            Some((user, share(earlier.1, later.1).min(1.0 - user)))
        })
        .collect()
}

/// Rates of the hardware counters. An estimate of the kernel may go back a little: that is zero.
fn counters(before: &Sample, after: &Sample, seconds: f64) -> Option<Vec<Counts>> {
    let (before, after) = (before.counters.as_ref()?, after.counters.as_ref()?);
    let rates = before.cores.iter().zip(&after.cores).map(|(before, after)| {
        let rate = |of: fn(&Counts) -> Option<f64>| Some(((of(after)? - of(before)?) / seconds).max(0.0));
        Counts {
            cycles: rate(|counts| counts.cycles),
            instructions: rate(|counts| counts.instructions),
            cache_misses: rate(|counts| counts.cache_misses),
        }
    });
    Some(rates.collect())
}

impl Counts {
    /// Instructions per cycle; none for a core that did not run.
    pub(crate) fn instructions_per_cycle(&self) -> Option<f64> {
        let cycles = self.cycles.filter(|cycles| *cycles > 0.0)?;
        Some(self.instructions? / cycles)
    }

    /// The counts of several cores together. A count that one of them lacks is none.
    pub(crate) fn sum(cores: &[Counts]) -> Counts {
        let sum = |of: fn(&Counts) -> Option<f64>| cores.iter().map(of).sum();
        Counts {
            cycles: sum(|counts| counts.cycles),
            instructions: sum(|counts| counts.instructions),
            cache_misses: sum(|counts| counts.cache_misses),
        }
    }
}

/// The counts of each place between the samples. A place whose counts went back was reset: it
/// counts from zero.
fn locks(before: &[Lock], after: &[Lock], seconds: f64) -> Vec<Lock> {
    let earlier: HashMap<&[String; 3], &Lock> = before.iter().map(|lock| (&lock.name, lock)).collect();
    let changed = after.iter().filter_map(|lock| {
        let from = earlier.get(&lock.name).filter(|from| from.count <= lock.count);
        let rate = |of: fn(&Lock) -> f64| ((of(lock) - from.map_or(0.0, |from| of(from))) / seconds).max(0.0);
        let rates = Lock {
            name: lock.name.clone(),
            wait: rate(|lock| lock.wait),
            hold: rate(|lock| lock.hold),
            count: rate(|lock| lock.count),
            contended: rate(|lock| lock.contended),
        };
        (rates.count > 0.0 || rates.wait > 0.0 || rates.hold > 0.0).then_some(rates)
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::{Core, Counters, Log};

    fn sample(seconds: u64, commits: u64, user: f64) -> Sample {
        Sample {
            at: Duration::from_secs(seconds),
            connection: 1,
            commits,
            cores: vec![
                Core { name: "core 0".to_owned(), times: Some((user, 1.0)) },
                Core { name: "core 1".to_owned(), times: None },
            ],
            ..Sample::default()
        }
    }

    fn lock(site: &str, wait: f64, count: f64) -> Lock {
        let name = ["class", site, "acquire"].map(str::to_owned);
        Lock { name, wait, hold: 0.0, count, contended: 0.0 }
    }

    #[test]
    fn rates_are_by_second_and_leave_out_the_program_itself() {
        let figures = between(&sample(10, 100, 5.0), &sample(12, 302, 6.0)).unwrap();
        assert_eq!((figures.commits, figures.rollbacks), (100.0, 0.0));
        assert_eq!(figures.cores, [Some((0.5, 0.0)), None]);
        assert_eq!(figures.served, None);
        // A quiet server has no transactions.
        assert_eq!(between(&sample(10, 100, 5.0), &sample(12, 102, 5.0)).unwrap().commits, 0.0);
    }

    #[test]
    fn the_log_tells_how_many_sessions_share_a_write() {
        let log = |writes, served| {
            let log =
                Log { durable: 0, writes, bytes: 512 * writes, served, in_flight: 0, sessions_in_flight: 0 };
            move |sample: Sample| Sample { log: Some(log.clone()), ..sample }
        };
        let before = log(10, 10)(sample(0, 0, 0.0));
        let figures = between(&before, &log(14, 20)(sample(2, 0, 0.0))).unwrap();
        assert_eq!((figures.log_writes, figures.log_bytes, figures.served), (2.0, 1024.0, Some(2.5)));
    }

    #[test]
    fn no_time_and_two_connections_give_no_figures() {
        assert_eq!(between(&sample(10, 0, 0.0), &sample(10, 0, 0.0)), None);
        assert_eq!(between(&sample(10, 0, 0.0), &sample(9, 0, 0.0)), None);
        let other = Sample { connection: 2, ..sample(12, 0, 0.0) };
        assert_eq!(between(&sample(10, 0, 0.0), &other), None);
    }

    #[test]
    fn time_beyond_the_interval_is_all_of_it() {
        let figures = between(&sample(10, 0, 5.0), &sample(11, 0, 7.0)).unwrap();
        assert_eq!(figures.cores[0], Some((1.0, 0.0)));
        // A count that went back, as after a reset, is no time.
        assert_eq!(between(&sample(10, 0, 5.0), &sample(11, 0, 4.0)).unwrap().cores[0], Some((0.0, 0.0)));
    }

    #[test]
    fn hardware_counters_give_instructions_per_cycle_where_both_samples_have_them() {
        let counts = |cycles, instructions, cache_misses| Counts { cycles, instructions, cache_misses };
        let with = |seconds, cores: &[Counts]| {
            let counters = Counters { cores: cores.to_vec(), refused: None };
            Sample { counters: Some(counters), ..sample(seconds, 0, 0.0) }
        };
        let before = with(0, &[counts(Some(1e9), Some(1e9), Some(50.0)), counts(None, Some(1.0), None)]);
        let after = with(2, &[counts(Some(3e9), Some(4e9), Some(40.0)), counts(Some(9.0), Some(1.0), None)]);
        let rates = between(&before, &after).unwrap().counters.unwrap();
        assert_eq!(rates, [counts(Some(1e9), Some(1.5e9), Some(0.0)), counts(None, Some(0.0), None)]);
        assert_eq!(rates[0].instructions_per_cycle(), Some(1.5));
        assert_eq!(rates[1].instructions_per_cycle(), None);
        assert_eq!(Counts::sum(&rates[..1]), rates[0]);
        assert_eq!(Counts::sum(&rates), counts(None, Some(1.5e9), None));
        // A core that sleeps has none per cycle. A first look has nothing to compare with.
        assert_eq!(counts(Some(0.0), Some(0.0), None).instructions_per_cycle(), None);
        assert_eq!(between(&sample(0, 0, 0.0), &after).unwrap().counters, None);
    }

    #[test]
    fn locks_count_from_zero_after_a_reset_and_silent_ones_are_left_out() {
        let before = [lock("a", 1.0, 10.0), lock("b", 1.0, 10.0), lock("c", 1.0, 10.0)];
        let after = [lock("a", 2.0, 20.0), lock("b", 0.5, 4.0), lock("c", 1.0, 10.0), lock("d", 0.0, 2.0)];
        let rates = locks(&before, &after, 2.0);
        let found: Vec<_> = rates.iter().map(|lock| (lock.name[1].as_str(), lock.wait, lock.count)).collect();
        assert_eq!(found, [("a", 0.5, 5.0), ("b", 0.25, 2.0), ("d", 0.0, 1.0)]);
    }
}
