//! One round: the driver on this thread, and beside it a watching thread. The watcher reports
//! progress and passes the stop flag on. It opens and closes the observer's window where the driver
//! begins and ends to count. The driver holds its sessions until the window is closed.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sync::atomic::{AtomicBool, Ordering};

use super::{Contender, Progress};
use crate::drive::{Kind, Live, Measured, Phase, histogram};
use crate::load::{Arrivals, Load, Pace};
use crate::observe::Observe;
use crate::record::{KindCounts, Latency, Numbers, Observed, Offered, Round};
use crate::workload::Workload;

/// Interval between two checks of the driver's phase: observations are off by up to this at either
/// end.
const LOOK: Duration = Duration::from_millis(10);

/// Interval between two reports of progress.
const TICK: Duration = Duration::from_millis(250);

/// Runs one round. The error explains why it measured nothing.
pub(super) fn run(
    contender: &mut Contender<'_>,
    load: &Load,
    deep: bool,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(Measured, Observed), String> {
    let live = Live::watched(load.threads);
    let over = AtomicBool::new(false);
    let observer = &mut *contender.observer;
    let (measured, window) = std::thread::scope(|scope| {
        let watch = Watch { live: &live, over: &over, stop, window: load.measured, deep };
        let beside = scope.spawn(move || watch.run(observer, progress));
        // However the driver ends, the watching thread must end, too.
        let ended = Ended(&over);
        let measured = contender.driver.run(contender.target, contender.workload, load, &live);
        drop(ended);
        (measured, beside.join().expect("looking does not panic"))
    });
    let measured = measured.inspect_err(|_| contender.observer.forget())?;
    let observed = if window {
        let done = measured.kinds.iter().map(|kind| kind.done).sum();
        contender.observer.seen(done, measured.elapsed)
    } else {
        Observed {
            unseen: vec!["the round was over before it could be looked at".into()],
            ..Observed::default()
        }
    };
    Ok((measured, observed))
}

struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag publishes nothing else.
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Watch<'a> {
    live: &'a Live,
    over: &'a AtomicBool,
    stop: &'a AtomicBool,
    window: Duration,
    deep: bool,
}

impl Watch<'_> {
    /// Watches until the driver has ended; returns whether it counted for some time.
    fn run(&self, observer: &mut dyn Observe, progress: &mut dyn Progress) -> bool {
        let began = Instant::now();
        let (mut open, mut opened, mut told) = (false, false, began);
        loop {
            // Relaxed: as above, for both.
            let over = self.over.load(Ordering::Relaxed);
            if self.stop.load(Ordering::Relaxed) {
                self.live.stop();
            }
            let phase = self.live.phase();
            if !opened && phase == Phase::Measuring && !over {
                observer.begin(self.window, self.deep);
                (open, opened) = (true, true);
            }
            if open && (over || phase == Phase::Over) {
                observer.end();
                open = false;
            }
            if phase == Phase::Over {
                self.live.looked();
            }
            if over {
                return opened;
            }
            if told.elapsed() >= TICK {
                told = Instant::now();
                progress.tick(self.live.done(), began.elapsed());
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A report's round from the measurements. The error explains why there is none: no transaction was
/// done, or no client was left. `stopped`: the user ended the round.
pub(super) fn round(
    workload: &dyn Workload,
    load: &Load,
    measured: &Measured,
    observed: Observed,
    pass: u32,
    at: Duration,
    stopped: bool,
) -> Result<Round, String> {
    let done: u64 = measured.kinds.iter().map(|kind| kind.done).sum();
    let all_lost = measured.lost_clients.as_ref().filter(|(lost, _)| *lost >= load.clients);
    if let Some((_, why)) = all_lost.filter(|_| !stopped) {
        return Err(format!("no client could go on: {why}"));
    }
    let elapsed = measured.elapsed.as_secs_f64();
    if done == 0 || elapsed <= 0.0 {
        let lost = measured.lost_clients.as_ref().map(|(_, why)| why.clone());
        let failed = || measured.errors.first().map(|error| format!("{}: {}", error.code, error.message));
        let silent = || match measured.elapsed >= load.measured {
            true => format!(
                "the server did not answer for the whole round of {:?}, or a transaction takes longer",
                load.measured
            ),
            false => "the round ended too early for one".into(),
        };
        let why = lost.or_else(failed).unwrap_or_else(silent);
        return Err(format!("no transaction was done: {why}"));
    }
    let even = matches!(load.pace, Pace::Open { arrivals: Arrivals::Even, .. });
    Ok(Round {
        pass,
        at: at.as_secs_f64(),
        elapsed,
        tps: done as f64 / elapsed,
        offered: load.offered(measured.elapsed).map(|(from, to)| Offered { from, to, even }),
        kinds: workload.kinds().iter().zip(&measured.kinds).map(|(name, kind)| counts(name, kind)).collect(),
        latency: latency(&together(measured.kinds.iter().map(|kind| &kind.latency))),
        lag: measured.lag.as_ref().filter(|lag| !lag.is_empty()).map(latency),
        own_lag: measured.own_lag.as_ref().filter(|lag| !lag.is_empty()).map(latency),
        by_rate: measured.by_rate.iter().map(latency).collect(),
        seconds: measured.seconds.clone(),
        errors: measured.errors.clone(),
        unstarted: measured.unstarted,
        lost_clients: measured.lost_clients.clone(),
        client_cpu: measured.client_cpu,
        observed,
    })
}

fn counts(name: &str, kind: &Kind) -> KindCounts {
    KindCounts { name: name.into(), done: kind.done, failed: kind.failed, retried: kind.retried }
}

fn together<'a>(all: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut sum = histogram();
    for one in all {
        sum.add(one).expect("all histograms have the same bounds");
    }
    sum
}

/// No number when the histogram is empty, which happens when pgbench's sampled log holds no
/// transaction of this round.
fn latency(nanoseconds: &Histogram<u64>) -> Latency {
    if nanoseconds.is_empty() {
        return Latency::each(|_| f64::NAN);
    }
    let at = |quantile: f64| nanoseconds.value_at_quantile(quantile) as f64 / 1e6;
    Latency {
        mean: nanoseconds.mean() / 1e6,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: nanoseconds.max() as f64 / 1e6,
    }
}
