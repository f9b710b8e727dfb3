//! How many log writes may be in flight, found by trial.
//!
//! The log counts the sessions that it serves in windows of time. One window in so many tries the
//! next lower or the next higher depth. A depth that serves more replaces the present one. On a
//! disk that serves one write at a time, more writes would only make groups smaller. Where the
//! processors are busy, each write costs time that sessions want. Neither can be told from the
//! disk's times.
//!
//! What must hold: a difference counts only beyond 3 standard errors of the trials' mean. One
//! window may differ from the next by 20%.

/// The most writes in flight.
pub const MOST: usize = 1 << STEPS;
/// The depths are the powers of two up to this one's.
const STEPS: u32 = 3;
/// Nanoseconds over which sessions are counted.
const WINDOW: u64 = 10_000_000;
/// One window in so many tries the next depth, up and down in turns.
const TRIAL: u32 = 6;
/// Trials of a depth before it may replace the present one.
const TRIALS: u64 = 4;
/// Trials after which older ones count half.
const MEMORY: u64 = 32;

/// The most writes in flight, and the trials of the next lower and the next higher number.
#[derive(Debug)]
pub struct Depth {
    /// The binary logarithm of the depth.
    step: u32,
    /// The step that this window tries; `step` if none.
    tried: u32,
    /// Windows that have ended.
    windows: u32,
    /// When this window began, and sessions served since.
    since: u64,
    sessions: u64,
    /// Smoothed sessions a second at `step`; 0 if unknown.
    rate: u64,
    /// The trials of the next lower and of the next higher step.
    others: [Trials; 2],
}

/// Rates of a step in thousandths of the present one's: their number, sum and sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Trials {
    count: u64,
    sum: u64,
    squares: u64,
}

impl Trials {
    fn add(&mut self, ratio: u64) {
        if self.count == MEMORY {
            *self = Trials { count: self.count / 2, sum: self.sum / 2, squares: self.squares / 2 };
        }
        // A longer ratio than 4 is as good as 4.
        let ratio = ratio.min(4000);
        *self =
            Trials { count: self.count + 1, sum: self.sum + ratio, squares: self.squares + ratio * ratio };
    }

    /// Whether the mean is above 1.02 by 3 standard errors.
    fn is_better(&self) -> bool {
        if self.count < TRIALS {
            return false;
        }
        let mean = self.sum / self.count;
        let variance = (self.squares / self.count).saturating_sub(mean * mean);
        mean > 1020 + 3 * (variance / (self.count - 1)).isqrt()
    }
}

impl Depth {
    /// The highest depth, of which nothing is known.
    pub fn new() -> Depth {
        Depth {
            step: STEPS,
            tried: STEPS,
            windows: 0,
            since: 0,
            sessions: 0,
            rate: 0,
            others: [Trials::default(); 2],
        }
    }

    /// The most writes in flight now.
    pub(crate) fn most(&self) -> usize {
        1 << self.tried
    }

    /// Counts sessions that are served at `now`.
    pub(crate) fn note(&mut self, sessions: usize, now: u64) {
        self.sessions += sessions as u64;
        let span = now.saturating_sub(self.since);
        if span < WINDOW {
            return;
        }
        let rate = self.sessions * 1_000_000_000 / span;
        (self.since, self.sessions) = (now, 0);
        // A longer window has a pause in it, which tells nothing of the depth.
        if span < 10 * WINDOW {
            self.end_window(rate);
        }
    }

    fn end_window(&mut self, rate: u64) {
        if self.tried == self.step {
            self.rate = if self.rate == 0 { rate } else { (self.rate * 3 + rate) / 4 };
        } else {
            let trials = &mut self.others[usize::from(self.tried > self.step)];
            trials.add(rate * 1000 / self.rate.max(1));
            if trials.is_better() {
                (self.step, self.rate, self.others) = (self.tried, 0, [Trials::default(); 2]);
            }
        }
        self.windows = self.windows.wrapping_add(1);
        self.tried = self.step;
        if self.windows.is_multiple_of(TRIAL) && self.rate > 0 {
            let higher = (self.windows / TRIAL).is_multiple_of(2);
            let tried = if higher { self.step + 1 } else { self.step.wrapping_sub(1) };
            self.tried = if tried <= STEPS { tried } else { self.step };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Ends 6,000 windows (60 s) in which a depth serves so many sessions a second, with evenly
    /// distributed noise of so many percent. Returns the windows at each depth.
    fn windows_by_depth(noise: u64, served: impl Fn(u64) -> u64) -> [usize; MOST + 1] {
        let mut depth = Depth::new();
        let (mut windows, mut random) = ([0; MOST + 1], 1_u64);
        for window in 1..6000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let percent = 100 - noise + (random >> 33) % (2 * noise + 1);
            depth.note((served(depth.most() as u64) * percent / 10_000) as usize, window * WINDOW);
            windows[1 << depth.step] += 1;
        }
        windows
    }

    #[test]
    fn as_many_writes_depart_as_serve_most_sessions() {
        for noise in [0, 10, 20] {
            // Processors that are busy, or a disk that serves one write at a time.
            let windows = windows_by_depth(noise, |depth| 20_000 - 1_500 * depth);
            assert!(windows[1] > 4000, "{noise}% {windows:?}");
            // A disk that serves many.
            let windows = windows_by_depth(noise, |depth| 10_000 * depth);
            assert!(windows[MOST] > 5000, "{noise}% {windows:?}");
            // One that serves four.
            let windows = windows_by_depth(noise, |depth| if depth > 4 { 30_000 } else { 10_000 * depth });
            assert!(windows[4] > 4000, "{noise}% {windows:?}");
            // Nothing to gain and nothing to lose.
            let windows = windows_by_depth(noise, |_| 10_000);
            assert!(windows[MOST] + windows[MOST / 2] > 4000, "{noise}% {windows:?}");
        }
    }

    #[test]
    fn a_pause_tells_nothing_of_the_depth() {
        let mut depth = Depth::new();
        let mut now = 0;
        for round in 0..2000 {
            // Each trial falls into a pause.
            let pause = depth.tried != depth.step || round % 7 == 0;
            now += if pause { 20 * WINDOW } else { WINDOW };
            depth.note(100, now);
        }
        assert_eq!(depth.step, STEPS);
    }
}
